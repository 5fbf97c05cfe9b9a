"""What a kernel needs of a device, each need with the span of its first use.

`needs(kernel)` walks the IR; `capability` compares the result with a device record.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sarek_numba.ir.nodes import AtomicOp
from sarek_numba.ir.types import MemSpace, Scalar
from sarek_numba.span import Span


@dataclass(frozen=True, slots=True)
class Need:
    """`feature` is "storage", "arithmetic", "atomic", "shared", "barrier" or "dynamic_shared".

    "storage" and "arithmetic" name a scalar; "atomic" an operation, a scalar and a memory space.
    """

    feature: str
    scalar: Scalar | None = None
    op: AtomicOp | None = None
    space: MemSpace | None = None
    span: Span | None = field(default=None, compare=False)
