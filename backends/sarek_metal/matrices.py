"""Cooperative matrices as `simdgroup_matrix` of Metal: 8 by 8 components, floats alone.

What a thread holds is the language's own affair, and so are loads and stores, transposed ones too.
Section 6.7 of the Metal Shading Language Specification, version 3.2, has matrices of half, bfloat
and float. It states one type for all of a multiply-add; Metal's header takes operands of another
type than that of the sums, which is what programs use for products of halves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sarek_numba.errors import InvalidIR
from sarek_numba.ir.nodes import CoopmatConfig, Fragment
from sarek_numba.ir.types import HALVES, Scalar

EDGE = 8
SOURCE = "section 6.7: simdgroup_matrix, on GPUs of the family Apple7 and later"
TYPES: Mapping[Scalar, str] = {
    Scalar.FLOAT16: "half",
    Scalar.BFLOAT16: "bfloat",
    Scalar.FLOAT32: "float",
}
NAMES = """
    simdgroup_matrix make_filled_simdgroup_matrix simdgroup_load simdgroup_store simdgroup_multiply
    simdgroup_multiply_accumulate make_diagonal_simdgroup_matrix simdgroup ulong2
""".split()
_SUMS = (
    (Scalar.FLOAT16, Scalar.FLOAT16),
    (Scalar.BFLOAT16, Scalar.FLOAT32),
    (Scalar.FLOAT32, Scalar.FLOAT32),
    (Scalar.FLOAT16, Scalar.FLOAT32),
)


def configurations(*, has_bfloat: bool) -> tuple[CoopmatConfig, ...]:
    """What a device has whose language has the type bfloat, or has not (before version 3.1)."""
    return tuple(
        CoopmatConfig(EDGE, EDGE, EDGE, operand, operand, sums, sums)
        for operand, sums in _SUMS
        if has_bfloat or operand is not Scalar.BFLOAT16
    )


@dataclass(frozen=True, slots=True)
class MetalMatrices:
    """See `codegen.matrices.Matrices`."""

    def declare(self, name: str, fragment: Fragment) -> str:
        type = _type(fragment)
        return f"simdgroup_matrix<{type}, 8, 8> {name} = {_filled(type, f'{type}(0)')}"

    def fill(self, name: str, fragment: Fragment, value: str) -> str:
        type = _type(fragment)
        if fragment.component in HALVES:
            value = f"as_type<{type}>((ushort)({value}))"
        return f"{name} = {_filled(type, value)}"

    def load(
        self, name: str, fragment: Fragment, space: str, place: str, stride: str, column_major: bool
    ) -> str:
        pointer = f"(const {space} {_type(fragment)} *)({place})"
        return f"simdgroup_load({name}, {pointer}, {_steps(stride, column_major)})"

    def store(
        self, name: str, fragment: Fragment, space: str, place: str, stride: str, column_major: bool
    ) -> str:
        pointer = f"({space} {_type(fragment)} *)({place})"
        return f"simdgroup_store({name}, {pointer}, {_steps(stride, column_major)})"

    def multiply_add(self, config: CoopmatConfig, result: str, a: str, b: str, c: str) -> str:
        if config not in configurations(has_bfloat=True):
            raise InvalidIR(f"the Metal Shading Language has no multiply-add {config}")
        return f"simdgroup_multiply_accumulate({result}, {a}, {b}, {c})"


def _type(fragment: Fragment) -> str:
    type = TYPES.get(fragment.component)
    if type is None or (fragment.rows, fragment.columns) != (EDGE, EDGE):
        sizes = f"{fragment.rows} by {fragment.columns} {fragment.component.value}"
        raise InvalidIR(f"the Metal Shading Language has no fragment of {sizes}")
    return type


def _filled(type: str, value: str) -> str:
    return f"make_filled_simdgroup_matrix<{type}, 8>({value})"


def _steps(stride: str, column_major: bool) -> str:
    """Elements from a row to the next in memory, the first of them, whether rows are columns."""
    return f"(ulong)({stride}), ulong2(0), {'true' if column_major else 'false'}"


MATRICES = MetalMatrices()
