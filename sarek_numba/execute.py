"""The layer below launches: what a user of it may set for them."""

from __future__ import annotations

from sarek_numba.settings import simulated_warp_width

__all__ = ["simulated_warp_width"]
