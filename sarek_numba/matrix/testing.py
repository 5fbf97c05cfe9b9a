"""What tests turn on: a fault in the analysis, the shape that a rewrite is laid out for.

Contexts, reset on leaving. The width and the edge count on the interpreter alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

failing: ContextVar[bool] = ContextVar("sarek_matrix_failing", default=False)
width: ContextVar[int] = ContextVar("sarek_matrix_width", default=32)
edge: ContextVar[int] = ContextVar("sarek_matrix_edge", default=16)
tiling: ContextVar[int | None] = ContextVar("sarek_matrix_tiling", default=None)
direct: ContextVar[bool | None] = ContextVar("sarek_matrix_direct", default=None)
gpus: ContextVar[bool] = ContextVar("sarek_matrix_gpus", default=False)
any_size: ContextVar[bool] = ContextVar("sarek_matrix_any_size", default=False)


def pins() -> bool:
    """Whether a test states the form of rewrites."""
    return tiling.get() is not None or direct.get() is not None


@contextmanager
def fail_analysis() -> Iterator[None]:
    """The analysis of a kernel that was not looked at before raises, as a defect in it would."""
    token = failing.set(True)
    try:
        yield
    finally:
        failing.reset(token)


@contextmanager
def subgroup_width(threads: int) -> Iterator[None]:
    """The threads of a wave that a rewrite is laid out for: 32 or 64. Raises ValueError."""
    if threads not in (32, 64):
        raise ValueError(f"a wave has 32 or 64 threads, not {threads!r}")
    token = width.set(threads)
    try:
        yield
    finally:
        width.reset(token)


@contextmanager
def fragment_edge(elements: int) -> Iterator[None]:
    """The edge of the fragments of a rewrite: 8 or 16. Raises ValueError."""
    if elements not in (8, 16):
        raise ValueError(f"a fragment has an edge of 8 or 16, not {elements!r}")
    token = edge.set(elements)
    try:
        yield
    finally:
        edge.reset(token)


@contextmanager
def tile(number: int) -> Iterator[None]:
    """The tiling of that number in `rewrite.plan.TILINGS` that fits, staged."""
    token, other = tiling.set(number), direct.set(False)
    try:
        yield
    finally:
        tiling.reset(token)
        direct.reset(other)


@contextmanager
def directly() -> Iterator[None]:
    """Aligned operands of any type come from global memory, fragment by fragment."""
    token = direct.set(True)
    try:
        yield
    finally:
        direct.reset(token)


@contextmanager
def small_ones_too() -> Iterator[None]:
    """A device's own kernels for products run products of any size."""
    token = any_size.set(True)
    try:
        yield
    finally:
        any_size.reset(token)


@contextmanager
def as_on_gpus() -> Iterator[None]:
    """CPUs get the kernels of GPUs: short loops unrolled, tiles read first and stored later."""
    token = gpus.set(True)
    try:
        yield
    finally:
        gpus.reset(token)
