"""Passes: legal IR in, legal IR out, with the same results bit for bit.

`optimise(kernel, target)` runs `PIPELINE`. Assertions, and weak ints that leave their range, mean
what they meant before; all else that cannot be seen in a result may change.
"""

from __future__ import annotations

from sarek_numba.ir.nodes import Kernel
from sarek_numba.ir.texts import picked
from sarek_numba.ir.walk import deep_recursion
from sarek_numba.passes.coarsen import coarsen
from sarek_numba.passes.collectives import shuffles_only
from sarek_numba.passes.common import Pass, Target
from sarek_numba.passes.exact import exact_operations
from sarek_numba.passes.fold import fold
from sarek_numba.passes.functions import own_functions
from sarek_numba.passes.guards import drop_guards, open_subscripts
from sarek_numba.passes.halves import halves
from sarek_numba.passes.inline import inline
from sarek_numba.passes.legalise import flatten, legalise
from sarek_numba.passes.narrow import narrow
from sarek_numba.passes.prune import prune
from sarek_numba.passes.ranges import Ranges, ranges_of
from sarek_numba.passes.simplify import simplify
from sarek_numba.passes.unroll import unroll


def pick_texts(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with the texts that the target runs, and fallbacks where it has none."""
    return picked(kernel, target.framework)


__all__ = ["PIPELINE", "Pass", "Ranges", "Target", "optimise", "ranges_of"]

PIPELINE: tuple[Pass, ...] = (
    halves,
    pick_texts,
    own_functions,
    exact_operations,
    flatten,
    inline,
    shuffles_only,
    legalise,
    fold,
    unroll,
    fold,
    simplify,
    prune,
    drop_guards,  # in 64 bits, where a sum of coordinates is proven not to be negative
    narrow,
    drop_guards,
    open_subscripts,
    fold,
    simplify,
    prune,
    coarsen,
)


def optimise(kernel: Kernel, target: Target) -> Kernel:
    """The kernel as the printers of `target` take it."""
    given: dict[Pass, Kernel] = {}
    with deep_recursion():
        for step in PIPELINE:
            if given.get(step) is not kernel:  # else nothing has changed since this pass
                kernel = given[step] = step(kernel, target)
    return kernel
