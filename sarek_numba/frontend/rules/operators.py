"""Rules of Python's operators, on numbers and on tuples, None and compile-time values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from sarek_numba.errors import ConstantOverflow
from sarek_numba.frontend.complexes import is_complex
from sarek_numba.frontend.extensions import CompileTime
from sarek_numba.frontend.language import Axes
from sarek_numba.frontend.records import RecordType, is_variant_type
from sarek_numba.frontend.rules.registry import name_of, rule
from sarek_numba.frontend.typed import (
    Binary,
    Constant,
    Contains,
    Convert,
    Intrinsic,
    Operation,
    Type,
    Unary,
)
from sarek_numba.frontend.weak import (
    Refusal,
    Weak,
    WeakFloat,
    WeakInt,
    check_fit,
    constant_of,
    describe,
    fits,
    is_bool,
    is_integer,
    is_number,
    is_real,
    is_whole,
    promote,
)
from sarek_numba.ir.nodes import BinOp, UnOp

# Beyond this a constant expression is a mistake, and Python may take very long over it.
_MOST_CONSTANT_BITS = 4096

_SIGNS = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.pow: "**",
    operator.lshift: "<<",
    operator.rshift: ">>",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
    operator.ne: "!=",
    operator.neg: "-",
    operator.pos: "+",
    operator.invert: "~",
}


def constant(value: Any) -> Operation:
    """A value decided while compiling."""
    if isinstance(value, bool):
        return Operation(Constant(value), (), types.boolean)
    if isinstance(value, int):
        return Operation(Constant(value), (), WeakInt.of(value))
    return Operation(Constant(value), (), WeakFloat(value))


def fold(function: Callable[..., Any], *operands: Type) -> Operation | None:
    """The operation on constants, by Python's own arithmetic; None if not all are constants."""
    values = [constant_of(operand) for operand in operands]
    if None in values:
        return None
    _check_size(function, values)
    try:
        value = function(*values)
    except ZeroDivisionError:
        raise Refusal(
            "this constant expression divides by zero", "math.inf and math.nan are constants"
        ) from None
    except (ValueError, OverflowError, TypeError) as error:
        raise Refusal(
            f"this constant expression has no value: {error}", "compute it before the launch"
        ) from None
    if isinstance(value, complex):
        raise Refusal("this constant expression is complex", "use a number that is not negative")
    return constant(value)


def _check_size(function: Callable[..., Any], values: list[Any]) -> None:
    if function not in (operator.pow, operator.lshift) or not all(
        isinstance(value, int) for value in values
    ):
        return
    base, count = values
    bits = max(base.bit_length(), 1) * count if function is operator.pow else count
    if bits > _MOST_CONSTANT_BITS:
        raise Refusal(
            "this constant expression is too large for any type",
            "a Python int computes as int64",
            ConstantOverflow,
        )


def require_numbers(function: Any, *operands: Type) -> None:
    """Refuse operands that are no numbers, naming them."""
    if all(map(is_number, operands)):
        return
    sign = _SIGNS.get(function) or f"{name_of(function)}()"
    described = " and ".join(map(describe, operands))
    hint = "use numbers"
    if any(map(is_complex, operands)):
        hint = _hint_on_complex(function)
    elif any(map(is_variant_type, operands)):
        hint = "match it, and use its parts"
    elif any(isinstance(operand, RecordType) for operand in operands):
        hint = "use its fields"
    elif any(isinstance(operand, types.Array) for operand in operands):
        hint = "name an element, as in a[i]; a kernel works on single numbers"
    elif any(isinstance(operand, types.NoneType) for operand in operands):
        hint = "test it first with `is None`"
    elif any(isinstance(operand, types.BaseTuple) for operand in operands):
        hint = "name the items of the tuple, as in t[0]"
    elif any(isinstance(getattr(operand, "value", None), Axes) for operand in operands):
        hint = "name an axis, as in sarek.thread_idx.x"
    elif any(isinstance(getattr(operand, "value", None), str) for operand in operands):
        hint = "a kernel has no strings"
    elif any(isinstance(operand, CompileTime) and callable(operand.value) for operand in operands):
        hint = "call it, as in f(x)"
    raise Refusal(f"{sign} is not defined for {described}", hint)


def _hint_on_complex(function: Any) -> str:
    if function in _ORDERINGS:
        return "complex numbers have no order: compare abs(z), or z.real"
    if function in _TO_REAL or isinstance(function, types.Number):
        return "name one of its parts, as in z.real, or its size, abs(z)"
    if isinstance(function, np.ufunc) or getattr(function, "__module__", None) == "math":
        return "of a complex number there are np.exp, np.sqrt, np.angle, np.conj, abs and powers"
    return "a complex number has + - * / **, == and !=, abs(z), z.real and z.imag"


_TO_REAL = (int, float, round)
_ORDERINGS = (
    operator.lt, operator.le, operator.gt, operator.ge, min, max, np.minimum, np.maximum
)  # fmt: skip


def _refuse_two_bools(function: Any, left: Type, right: Type) -> None:
    if is_bool(left) and is_bool(right):
        sign = _SIGNS[function]
        raise Refusal(
            f"{sign} is not defined for two bools",
            f"write int(a) {sign} int(b), or a | b, a & b, a ^ b for logic",
        )


# --- arithmetic -----------------------------------------------------------------------------------

_ARITHMETIC = {
    operator.add: (operator.iadd, BinOp.ADD),
    operator.sub: (operator.isub, BinOp.SUB),
    operator.mul: (operator.imul, BinOp.MUL),
    operator.floordiv: (operator.ifloordiv, BinOp.FLOORDIV),
    operator.mod: (operator.imod, BinOp.FLOORMOD),
}


def _arithmetic(function: Any, op: BinOp) -> Callable[[Type, Type], Operation]:
    def resolve(left: Type, right: Type) -> Operation:
        require_numbers(function, left, right)
        folded = fold(function, left, right)
        if folded is not None:
            return folded
        _refuse_two_bools(function, left, right)
        common = promote(left, right)
        return Operation(Binary(op), (common, common), common)

    return resolve


for _function, (_inplace, _op) in _ARITHMETIC.items():
    rule(_function, _inplace)(_arithmetic(_function, _op))


@rule(operator.truediv, operator.itruediv)
def true_division(left: Type, right: Type) -> Operation:
    require_numbers(operator.truediv, left, right)
    folded = fold(operator.truediv, left, right)
    if folded is not None:
        return folded
    _refuse_two_bools(operator.truediv, left, right)
    common = promote(left, right)
    if isinstance(common, WeakInt):
        common = WeakFloat()
    elif not is_real(common):
        common = types.float64
    return Operation(Binary(BinOp.DIV), (common, common), common)


_BITWISE = {
    operator.and_: (operator.iand, BinOp.BITAND),
    operator.or_: (operator.ior, BinOp.BITOR),
    operator.xor: (operator.ixor, BinOp.BITXOR),
}


def _bitwise(function: Any, op: BinOp) -> Callable[[Type, Type], Operation]:
    def resolve(left: Type, right: Type) -> Operation:
        require_numbers(function, left, right)
        if is_real(left) or is_real(right):
            raise Refusal(
                f"{_SIGNS[function]} is not defined for {describe(left)} and {describe(right)}",
                "sarek.math.reinterpret gives the bits of a float",
            )
        folded = fold(function, left, right)
        if folded is not None:
            return folded
        common = promote(left, right)
        if is_real(common):
            signed = left if getattr(left, "signed", False) else right
            raise Refusal(
                f"{_SIGNS[function]} of {left} and {right}: no integer type holds both",
                f"write sarek.uint64(...) around the {signed}",
            )
        return Operation(Binary(op), (common, common), common)

    return resolve


for _function, (_inplace, _op) in _BITWISE.items():
    rule(_function, _inplace)(_bitwise(_function, _op))


_SHIFTS = {
    operator.lshift: (operator.ilshift, BinOp.SHL),
    operator.rshift: (operator.irshift, BinOp.SHR),
}


def _shift(function: Any, op: BinOp) -> Callable[[Type, Type], Operation]:
    def resolve(value: Type, count: Type) -> Operation:
        require_numbers(function, value, count)
        if is_real(value) or is_real(count):
            raise Refusal(
                f"{_SIGNS[function]} is not defined for {describe(value)} and {describe(count)}",
                "write int(...) around the float",
            )
        folded = fold(function, value, count)
        if folded is not None:
            return folded
        _refuse_two_bools(function, value, count)
        result, counted = _shift_types(value, count)
        return Operation(Binary(op), (result, counted), result)

    return resolve


def _shift_types(value: Type, count: Type) -> tuple[Type, Type]:
    """The type of the result, which the value is converted to, and that of the count."""
    if isinstance(count, WeakInt):
        return (WeakInt() if not is_integer(value) else value), WeakInt()
    common = promote(value, count)
    if is_bool(count):
        return common, common
    return (common if is_whole(common) else value), count


for _function, (_inplace, _op) in _SHIFTS.items():
    rule(_function, _inplace)(_shift(_function, _op))


@rule(operator.pow, operator.ipow)
def power(base: Type, exponent: Type) -> Operation:
    require_numbers(operator.pow, base, exponent)
    alternatives = getattr(exponent, "alternatives", None)
    if is_whole(base) and alternatives and min(alternatives) < 0:
        raise Refusal(
            "an integer cannot be raised to a negative power",
            "write float(x) ** -1, or 1 / x for a float",
        )
    folded = fold(operator.pow, base, exponent)
    if folded is not None:
        return folded
    _refuse_two_bools(operator.pow, base, exponent)
    common = promote(base, exponent)
    return Operation(Intrinsic("pow" if is_real(common) else "ipow"), (common, common), common)


# --- comparisons ----------------------------------------------------------------------------------

_COMPARISONS = {
    operator.lt: BinOp.LT,
    operator.le: BinOp.LE,
    operator.gt: BinOp.GT,
    operator.ge: BinOp.GE,
    operator.eq: BinOp.EQ,
    operator.ne: BinOp.NE,
}


def _comparison(function: Any, op: BinOp) -> Callable[[Type, Type], Operation]:
    def resolve(left: Type, right: Type) -> Operation:
        decided = _compare_objects(function, left, right)
        if decided is None:
            require_numbers(function, left, right)
            decided = fold(function, left, right) or _out_of_range(function, left, right)
        if decided is not None:
            return decided
        return Operation(Binary(op), compared_as(left, right), types.boolean)

    return resolve


def compared_as(left: Type, right: Type) -> tuple[Type, Type]:
    """The types in which two numbers are compared: integers as they are, by mathematical value."""
    if is_real(left) or is_real(right):
        common = promote(left, right)
        return common, common
    if is_bool(left) and is_bool(right):
        return left, right
    if is_bool(left):
        return WeakInt(), _operand(right)
    if is_bool(right):
        return _operand(left), WeakInt()
    if isinstance(left, WeakInt) and _constants_fit(left, right):
        return right, right
    if isinstance(right, WeakInt) and _constants_fit(right, left):
        return left, left
    return _operand(left), _operand(right)


def _operand(type: Type) -> Type:
    return WeakInt() if isinstance(type, WeakInt) else type


def _constants_fit(weak: WeakInt, type: Type) -> bool:
    return (
        is_integer(type)
        and weak.alternatives is not None
        and all(fits(value, type) for value in weak.alternatives)
    )


def _out_of_range(function: Any, left: Type, right: Type) -> Operation | None:
    """A comparison with a constant outside the range of the other's type is decided."""
    if _is_outside(left, right):
        return constant(bool(function(constant_of(left), right.minval)))
    if _is_outside(right, left):
        return constant(bool(function(left.minval, constant_of(right))))
    return None


def _is_outside(weak: Type, type: Type) -> bool:
    if not (isinstance(weak, WeakInt) and weak.value is not None and is_integer(type)):
        return False
    return not fits(weak.value, type)


def _compare_objects(function: Any, left: Type, right: Type) -> Operation | None:
    """Comparisons that need no value: with None, and of compile-time objects."""
    if function not in (operator.eq, operator.ne):
        return None
    if isinstance(left, types.NoneType) or isinstance(right, types.NoneType):
        return constant((left == right) == (function is operator.eq))
    if isinstance(left, CompileTime) and isinstance(right, CompileTime):
        return constant(bool(function(left.value, right.value)))
    return None


for _function, _op in _COMPARISONS.items():
    rule(_function)(_comparison(_function, _op))


def _identity(function: Any) -> Callable[[Type, Type], Operation]:
    def resolve(left: Type, right: Type) -> Operation:
        nothing = (types.NoneType, CompileTime)
        if isinstance(left, types.NoneType) or isinstance(right, types.NoneType):
            return constant((left == right) == (function is operator.is_))
        if isinstance(left, nothing) and isinstance(right, nothing):
            return constant((left.value is right.value) == (function is operator.is_))
        if is_bool(left) and is_bool(right):
            op = BinOp.EQ if function is operator.is_ else BinOp.NE
            return Operation(Binary(op), (left, right), types.boolean)
        raise Refusal("`is` compares with None alone", "compare numbers with ==")

    return resolve


for _function in (operator.is_, operator.is_not):
    rule(_function)(_identity(_function))


@rule(operator.contains)
def contains(items: Type, item: Type) -> Operation:
    if not isinstance(items, types.BaseTuple):
        raise Refusal(
            f"`in` is not defined for {describe(items)}", "use a tuple, or a loop over the array"
        )
    if any(map(is_complex, (item, *items.types))):
        raise Refusal("`in` is not defined for complex numbers", "write z == a or z == b")
    require_numbers(operator.eq, item, *items.types)
    compares = tuple(compared_as(each, item) for each in items.types)
    return Operation(Contains(compares), (items, item), types.boolean)


# --- one operand ----------------------------------------------------------------------------------


@rule(operator.neg)
def negation(operand: Type) -> Operation:
    return _sign(operator.neg, operand, Unary(UnOp.NEG))


@rule(operator.pos)
def plus(operand: Type) -> Operation:
    return _sign(operator.pos, operand, Convert())


def _sign(function: Any, operand: Type, what: Unary | Convert) -> Operation:
    require_numbers(function, operand)
    if is_bool(operand):
        raise Refusal(f"{_SIGNS[function]} of a bool", "write int(x), or not x")
    folded = fold(function, operand)
    if folded is not None:
        return folded
    run_time = at_run_time(operand)
    return Operation(what, (run_time,), run_time)


@rule(operator.invert)
def inversion(operand: Type) -> Operation:
    require_numbers(operator.invert, operand)
    if is_real(operand):
        raise Refusal(f"~ is not defined for {describe(operand)}", "write int(...) around it")
    folded = fold(operator.invert, operand)
    if folded is not None:
        return folded
    run_time = at_run_time(operand)
    return Operation(Unary(UnOp.BITNOT), (run_time,), run_time)


@rule(operator.not_)
def logical_not(operand: Type) -> Operation:
    decided = truth(operand)
    if decided is not None:
        return constant(not decided)
    require_numbers(operator.not_, operand)
    run_time = at_run_time(operand)
    return Operation(Unary(UnOp.NOT), (run_time,), types.boolean)


def truth(operand: Type) -> bool | None:
    """The truth of a value that is known while compiling; None at run time."""
    if isinstance(operand, types.NoneType):
        return False
    if isinstance(operand, types.Array):
        raise Refusal(
            "an array has no truth value", "test an element, or its size as in len(a) > 0"
        )
    if isinstance(operand, types.BaseTuple):
        return len(operand) > 0
    value = constant_of(operand)
    return None if value is None else bool(value)


def at_run_time(type: Type) -> Type:
    """The type of an operand whose constant does not matter."""
    if isinstance(type, WeakInt):
        check_int64(type)
        return WeakInt()
    return WeakFloat() if isinstance(type, Weak) else type


def check_int64(type: WeakInt) -> None:
    """Refuse a Python int that a kernel cannot compute with."""
    check_fit(type, types.int64)
