"""The rule of the marks that stand before statements; see `frontend.covering`."""

from __future__ import annotations

from numba.core import types

from sarek_numba.frontend import covering
from sarek_numba.frontend.rules.registry import rule
from sarek_numba.frontend.typed import Mark, Operation


@rule(covering.mark)
def mark() -> Operation:
    return Operation(Mark(), (), types.none)
