"""Facts about cooperative matrices that everyone shares."""

from __future__ import annotations

from sarek_numba.ir.statements import CoopmatConfig, Fragment
from sarek_numba.ir.types import HALVES, ElementType, Scalar

_WIDEST_ALIGNMENT = 16  # bytes
ACCUMULATORS = ("c", "result")
COMPONENTS = tuple(
    Scalar(name)
    for name in """
        int8 uint8 int16 uint16 int32 uint32 float16 bfloat16 float32 float64
    """.split()
)
HALF_BITS = Scalar.UINT16  # what memory has in place of halves where `passes.halves` was


def fragments_of(config: CoopmatConfig) -> dict[str, Fragment]:
    """The fragments of a configuration by their use."""
    m, n, k, scope = config.m, config.n, config.k, config.scope
    return {
        "a": Fragment("a", config.a, m, k, scope),
        "b": Fragment("b", config.b, k, n, scope),
        "c": Fragment("c", config.c, m, n, scope),
        "result": Fragment("result", config.result, m, n, scope),
    }


def lies_in(component: Scalar, element: ElementType) -> bool:
    """Whether components may be in memory of such elements: of halves, their bits may."""
    return element is component or (component in HALVES and element is HALF_BITS)


def in_memory(component: Scalar) -> Scalar:
    """The elements of memory that hold components after `passes.halves`."""
    return HALF_BITS if component in HALVES else component


def row_alignment(fragment: Fragment, column_major: bool) -> int:
    """The elements of which the place of each row (column, if these lie together) is a multiple.

    "At least the lesser of 16 bytes or the natural alignment of a row or column" (Vulkan 1.4,
    VUID-RuntimeSpirv-OpCooperativeMatrixLoadKHR-08986). Where that is no whole number of elements,
    or a row is no power of two of bytes, the greatest power of two that divides it counts.
    """
    size = fragment.component.bits // 8
    row = (fragment.rows if column_major else fragment.columns) * size
    natural = row & -row
    return max(1, min(_WIDEST_ALIGNMENT, natural) // size)


def sums_fit(config: CoopmatConfig, bits: int) -> bool:
    """Whether exact sums of integers, `c` included, fit a signed integer of so many bits."""
    product = config.a.bits + config.b.bits
    return max(product + (config.k - 1).bit_length(), config.c.bits) + 2 <= bits


def is_computed(config: CoopmatConfig) -> bool:
    """Whether the executors that compute matrices by themselves have a configuration."""
    parts = (config.a, config.b, config.c, config.result)
    return config.scope == "subgroup" and all(part in COMPONENTS for part in parts)
