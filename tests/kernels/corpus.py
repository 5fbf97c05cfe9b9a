"""Every kernel of the corpus, in order."""

from __future__ import annotations

from tests.kernels import atomics, control, elementwise, functions, functions_as_values, memory
from tests.kernels.case import Case

CASES: tuple[Case, ...] = tuple(
    case
    for module in (elementwise, control, memory, atomics, functions, functions_as_values)
    for case in module.corpus
)
