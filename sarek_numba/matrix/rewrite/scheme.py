"""Elements of operands as pieces that matrix units multiply, and results from their sums.

Integers of more than eight bits are digits of a number to the base 256, each from -128 to 127:
x = d0 + 256 d1 + 65536 d2 + 2^24 d3 modulo 2^32. Products of digits are summed by their weight, and
those of 2^32 and more are nothing. Where a float32 may be rounded to bfloat16 in two pieces
(bf16x3), three of the four products count: that of both rests is below what is lost anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

from sarek_numba.ir.build import (
    Fresh,
    add,
    bitand,
    cast,
    expr,
    intrinsic,
    let,
    lit,
    select,
    shl,
    shr,
    sub,
)
from sarek_numba.ir.nodes import Expr, Stmt, Var
from sarek_numba.ir.types import FLOAT32, HALVES, INT32, Scalar
from sarek_numba.matrix.lowering import Lowering
from sarek_numba.matrix.product import Case, Product

_DIGIT = 8  # bits
_DIGITS = 4  # of 32 bits
_TF32_REST = 13  # bits of a float32 that tf32 has not


@dataclass(frozen=True, slots=True)
class Scheme:
    """`a` and `b` are the numbers of pieces of an element. `terms` are products of a piece of A and
    one of B, with the plane that each is added up in; plane p has the weight 256^p.
    """

    a: int
    b: int
    terms: tuple[tuple[int, int, int], ...]

    @property
    def planes(self) -> int:
        return 1 + max(plane for _, _, plane in self.terms)


def scheme_of(product: Product, lowering: Lowering) -> Scheme:
    """How many pieces the operands have, and which products of them count."""
    if lowering.case is Case.INT32:
        a, b = _digits(product.a.type), _digits(product.b.type)
        terms = [(i, j, i + j) for i in range(a) for j in range(b) if i + j < _DIGITS]
        return Scheme(a, b, tuple(terms))
    if lowering.rounding == "bf16x3":
        return Scheme(2, 2, ((0, 0, 0), (0, 1, 0), (1, 0, 0)))
    return Scheme(1, 1, ((0, 0, 0),))


def _digits(type: Scalar) -> int:
    """Digits from -128 to 127 need one more where a type has no sign, or an odd byte carries."""
    if type is Scalar.INT8 or type is Scalar.BOOL:
        return 1
    return min(type.bits // _DIGIT + 1, _DIGITS)


def zero(component: Scalar) -> Expr:
    """Zero of any type; halves have no constants."""
    return cast(component, lit(FLOAT32, 0.0)) if component in HALVES else lit(component, 0)


def split(
    value: Var, lowering: Lowering, component: Scalar, pieces: int, fresh: Fresh
) -> tuple[list[Stmt], list[Expr]]:
    """The pieces of an element, with the statements that they take."""
    if lowering.case is Case.INT32:
        return _split_integer(value, pieces, fresh)
    if lowering.rounding == "bf16x3":
        rest = sub(value, cast(FLOAT32, cast(component, value)))
        finite = intrinsic("isfinite", cast(FLOAT32, cast(component, value)))
        return [], [cast(component, value), cast(component, select(finite, rest, 0.0))]
    if lowering.rounding == "tf32":
        return [], [_tf32(value)]
    if value.type is component:
        return [], [expr(value)]
    return [], [cast(component, value)]


def _split_integer(value: Var, pieces: int, fresh: Fresh) -> tuple[list[Stmt], list[Expr]]:
    made: list[Stmt] = []
    rest = fresh("rest", INT32)
    made.append(let(rest, cast(INT32, value)))
    digits: list[Expr] = []
    for piece in range(pieces):
        digit = fresh("digit", Scalar.INT8)
        made.append(let(digit, cast(Scalar.INT8, rest)))
        digits.append(expr(digit))
        if piece + 1 < pieces:
            following = fresh("rest", INT32)
            made.append(let(following, shr(sub(rest, cast(INT32, digit)), lit(INT32, _DIGIT))))
            rest = following
    return made, digits


def _tf32(value: Var) -> Expr:
    """Rounded to the nearest of 10 bits behind the point, ties away from zero, as PTX's `rna`."""
    kind = Scalar.UINT32
    bits = intrinsic("reinterpret", value, type=kind)
    half, kept = 1 << (_TF32_REST - 1), (1 << 32) - (1 << _TF32_REST)
    rounded = bitand(add(bits, lit(kind, half)), lit(kind, kept))
    rounded_float = intrinsic("reinterpret", rounded, type=FLOAT32)
    return select(intrinsic("isnan", value), expr(value), rounded_float)


def joined(planes: list[Expr], accumulator: Scalar) -> Expr:
    """The sum in the type of the kernel's, from the sums in the planes."""
    total = planes[0]
    for weight, plane in enumerate(planes[1:], 1):
        total = add(total, shl(plane, lit(INT32, _DIGIT * weight)))
    return total if accumulator in (INT32, FLOAT32) else cast(accumulator, total)
