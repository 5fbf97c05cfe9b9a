"""The meaning of every operator of the IR, as NumPy functions on lanes.

`binary`, `unary`, `cast` and `intrinsic` give a function of arrays of exactly the operand type's
NumPy type (one element for each lane, or one element alone where all lanes agree), which gives an
array of the result's type. All are total: nothing raises, no warning leaks, no operand is changed.
The oracle and the constant folder use these and nothing else. Where a value leaves the range of a
weak int is told by `binary_overflows`, `unary_overflows` and `outside_of`.

The payload and sign of a NaN are not part of the meaning.
"""

from __future__ import annotations

import functools

import numpy as np

from sarek_numba.ir.intrinsics import INTRINSICS
from sarek_numba.ir.nodes import SHIFTS, BinOp, Const, UnOp
from sarek_numba.ir.semantics import floats, functions, fused, integers, whole
from sarek_numba.ir.semantics.arrays import Lanes, Mask, Operator, dtype_of, silent
from sarek_numba.ir.semantics.atomics import decrement, increment
from sarek_numba.ir.semantics.casts import conversion, half_of
from sarek_numba.ir.semantics.overflow import binary_overflows, outside_of, unary_overflows
from sarek_numba.ir.types import Scalar

__all__ = [
    "Lanes",
    "Mask",
    "Operator",
    "as_constant",
    "as_lane",
    "binary",
    "binary_overflows",
    "cast",
    "decrement",
    "dtype_of",
    "fold_binary",
    "fold_cast",
    "fold_intrinsic",
    "fold_unary",
    "half_of",
    "increment",
    "intrinsic",
    "outside_of",
    "unary",
    "unary_overflows",
]

_COMPARE: dict[BinOp, Operator] = {
    BinOp.EQ: np.equal,
    BinOp.NE: np.not_equal,
    BinOp.LT: np.less,
    BinOp.LE: np.less_equal,
    BinOp.GT: np.greater,
    BinOp.GE: np.greater_equal,
}
_LOGICAL: dict[BinOp, Operator] = {
    BinOp.AND: np.logical_and,
    BinOp.OR: np.logical_or,
    BinOp.BITAND: np.logical_and,
    BinOp.BITOR: np.logical_or,
    BinOp.BITXOR: np.logical_xor,
}


@functools.cache
def binary(op: BinOp, type: Scalar) -> Operator:
    """The function of two operands of `type`; the count of a shift may be of any integer type.

    Raises KeyError for a pair that has no meaning, such as a shift of floats.
    """
    if op in _COMPARE:
        return silent(_COMPARE[op])
    if type is Scalar.BOOL:
        return _LOGICAL[op]
    table = floats.OPERATORS if type.is_float else integers.OPERATORS
    return table[op.name.lower()]


@functools.cache
def unary(op: UnOp, type: Scalar) -> Operator:
    """The function of one operand. Raises KeyError for a pair that has no meaning."""
    if type is Scalar.BOOL:
        return {UnOp.NOT: np.logical_not, UnOp.BITNOT: np.logical_not}[op]
    if op is UnOp.BITNOT and type.is_float:
        raise KeyError(op)
    return {UnOp.NEG: np.negative, UnOp.BITNOT: np.invert}[op]


@functools.cache
def cast(source: Scalar, target: Scalar) -> Operator:
    """The conversion from `source` to `target`."""
    return conversion(source, target)


@functools.cache
def intrinsic(name: str, operand: Scalar, result: Scalar | None = None) -> Operator:
    """The function of `ir.intrinsics` called `name`, on arguments of type `operand`.

    `result` counts for `reinterpret` alone. Raises KeyError for a pair that has no meaning.
    """
    if operand.kind not in INTRINSICS[name].kinds:
        raise KeyError((name, operand))
    if name == "reinterpret":
        assert result is not None
        dtype = dtype_of(result)
        return lambda a: a.view(dtype)
    if name == "fma":
        return fused.fma32 if operand is Scalar.FLOAT32 else fused.fma64
    if name in functions.FLOAT64:
        return (functions.FLOAT32 if operand is Scalar.FLOAT32 else functions.FLOAT64)[name]
    return silent(_EXACT[name])


_EXACT: dict[str, Operator] = {
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "abs": np.abs,
    "fmod": np.fmod,
    "copysign": np.copysign,
    "nextafter": np.nextafter,
    "min": floats.builtin_min,
    "max": floats.builtin_max,
    "minimum": floats.minimum,
    "maximum": floats.maximum,
    "fmin": floats.fmin,
    "fmax": floats.fmax,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "signbit": np.signbit,
    "ipow": integers.power,
    "popcount": integers.population_count,
    "clz": integers.leading_zeros,
}


# --- constants ------------------------------------------------------------------------------------


def as_lane(value: Const) -> Lanes:
    """A constant as an array of one element."""
    width = value.type.bits // 8
    return np.frombuffer(value.bits.to_bytes(width, "little"), dtype_of(value.type)).copy()


def as_constant(type: Scalar, lane: Lanes) -> Const:
    """The constant of an array of one element."""
    return Const(type, int.from_bytes(lane.ravel()[:1].tobytes(), "little"))


def fold_binary(op: BinOp, left: Const, right: Const) -> Const:
    """The constant that a binary operator gives; both operands have one type but for shifts."""
    assert op in SHIFTS or left.type is right.type
    exact = whole.fold_binary(op, left, right)
    if exact is not None:
        return exact
    result = binary(op, left.type)(as_lane(left), as_lane(right))
    return as_constant(Scalar.BOOL if result.dtype == np.bool_ else left.type, result)


def fold_unary(op: UnOp, operand: Const) -> Const:
    """The constant that a unary operator gives."""
    exact = whole.fold_unary(op, operand)
    if exact is not None:
        return exact
    return as_constant(operand.type, unary(op, operand.type)(as_lane(operand)))


def fold_cast(target: Scalar, operand: Const) -> Const:
    """The constant that a conversion gives."""
    exact = whole.fold_cast(target, operand)
    if exact is not None:
        return exact
    return as_constant(target, cast(operand.type, target)(as_lane(operand)))


def fold_intrinsic(name: str, result: Scalar, *args: Const) -> Const:
    """The constant that an intrinsic gives."""
    if name == "reinterpret":
        return Const(result, args[0].bits)
    function = intrinsic(name, args[0].type, result)
    return as_constant(result, function(*map(as_lane, args)))
