"""`@sarek.kernel(strict=True)`: stores that hold every value of what is stored, and no others.

Constants count as they are; a Python float fits every float type, as it does where it meets one.
"""

from __future__ import annotations

from sarek_numba.frontend.complexes import element_scalar
from sarek_numba.frontend.weak import (
    Refusal,
    Type,
    WeakFloat,
    WeakInt,
    constant_of,
    describe,
)
from sarek_numba.ir import semantics
from sarek_numba.ir.nodes import Cast, Const, Expr
from sarek_numba.ir.types import FLOAT32, HALVES, Kind, Scalar
from sarek_numba.ir.typing import scalar_of

# Integers of up to so many bits are exact in a float type.
_PRECISION = {Scalar.FLOAT16: 11, Scalar.BFLOAT16: 8, Scalar.FLOAT32: 24, Scalar.FLOAT64: 53}


def check_exact(value: Type, element: Type) -> None:
    """Refuse a store that can lose information."""
    source, target = element_scalar(value), element_scalar(element)
    known = constant_of(value)
    if source is Scalar.FLOAT32 and target in HALVES:
        return  # which may hold a half: lowering looks at where it comes from
    if holds(source, target) if known is None else _holds_constant(value, known, target):
        return
    shown = describe(value) if known is None else f"{known!r}"
    raise Refusal(*words(shown, element))


def words(shown: str, element: Type) -> tuple[str, str]:
    """What is wrong with a store into elements of a type, and what to write instead."""
    name = "bool_" if element_scalar(element) is Scalar.BOOL else element
    return (
        f"storing {shown} in an array of {element} can lose information, and the kernel states "
        "strict=True",
        f"cast it, as in sarek.{name}(...)",
    )


def may_round(value: Expr, half: Scalar) -> bool:
    """Whether a float32 that is stored as a half may be none: what it comes from tells."""
    match value:
        case Cast(operand=operand):
            return scalar_of(operand) is not half
        case Const():
            return semantics.fold_cast(FLOAT32, semantics.fold_cast(half, value)) != value
        case _:
            return True


def holds(source: Scalar, target: Scalar) -> bool:
    """Whether a type has every value of another."""
    if source is target or source is Scalar.BOOL:
        return True
    if target is Scalar.BOOL:
        return False
    if source.is_float:
        return target.is_float and _PRECISION[source] <= _PRECISION[target]
    if target.is_float:
        return source.bits - (source.kind is Kind.SIGNED) <= _PRECISION[target]
    return target.minimum <= source.minimum and source.maximum <= target.maximum


def _holds_constant(value: Type, known: int | float, target: Scalar) -> bool:
    """`check_fit` has refused what is out of an integer type's range already."""
    if isinstance(value, WeakFloat):
        return target.is_float or (target.is_integer and float(known).is_integer())
    assert isinstance(value, WeakInt)
    if target is Scalar.BOOL:
        return known in (0, 1)
    return not target.is_float or abs(known) <= 2 ** _PRECISION[target]
