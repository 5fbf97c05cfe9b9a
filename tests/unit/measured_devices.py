"""The self-test of numerics on the devices present, once for all tests of a process."""

from __future__ import annotations

from functools import cache

from sarek_numba.runtime.registry import device
from sarek_numba.verify.numerics import Measured, measure


@cache
def measured(name: str) -> Measured:
    """What `measure` finds on the device of that name."""
    return measure(device(name))
