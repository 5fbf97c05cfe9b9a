"""Every kernel of the corpus, in order."""

from __future__ import annotations

from tests.kernels import (
    atomics,
    atomics_typed,
    choices,
    collectives,
    complexes,
    control,
    edges,
    elementwise,
    functions,
    functions_as_values,
    handovers,
    matching,
    memory,
    merged,
    record_arguments,
    record_complexes,
    record_stores,
    records,
    recursion,
    registered,
    texts,
    tuple_loops,
    variants,
    warps,
)
from tests.kernels.case import Case

MODULES = (
    elementwise,
    edges,
    control,
    memory,
    merged,
    atomics,
    atomics_typed,
    functions,
    functions_as_values,
    complexes,
    matching,
    recursion,
    tuple_loops,
    warps,
    collectives,
    records,
    registered,
    texts,
    handovers,
    variants,
    record_arguments,
    record_complexes,
    record_stores,
    choices,
)
CASES: tuple[Case, ...] = tuple(case for module in MODULES for case in module.corpus)
