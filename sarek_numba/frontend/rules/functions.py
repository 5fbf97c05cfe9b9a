"""Rules of mathematical functions: of `math`, of NumPy on scalars, and of `sarek.math`.

Three families give the same intrinsics and differ in what weak arguments become: `math` and
`sarek.math` give a Python float back, NumPy gives a float64.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from sarek_numba.frontend import language, mathematics
from sarek_numba.frontend.halves import Half, is_half
from sarek_numba.frontend.rules.builtins import absolute, digits_of, rounded_to
from sarek_numba.frontend.rules.operators import at_run_time, fold, require_numbers
from sarek_numba.frontend.rules.registry import lookup, rule
from sarek_numba.frontend.typed import (
    Binary,
    Convert,
    HalfBits,
    HalfFromBits,
    Intrinsic,
    Operation,
    RoundToInt,
    Select,
    Type,
    Unary,
)
from sarek_numba.frontend.weak import (
    WEAK_FLOAT,
    WEAK_INT,
    Refusal,
    Weak,
    WeakFloat,
    WeakInt,
    check_fit,
    describe,
    dtype_of,
    is_bool,
    is_float,
    is_integer,
    is_real,
    is_whole,
    operand,
    promote,
)
from sarek_numba.ir.nodes import BinOp, UnOp
from sarek_numba.ir.types import Scalar

Rule = Callable[..., Operation]

_ZERO = WeakInt.of(0)  # np.round without decimals


def _float_type(args: tuple[Type, ...], weak: Type) -> Type:
    """The float type in which a function of these arguments computes.

    `weak` is what it is for arguments that are all weak. Where NumPy computes in float16, it is
    float32.
    """
    if all(isinstance(arg, Weak) for arg in args):
        return weak
    common = args[0]
    for arg in args[1:]:
        common = promote(common, arg)
    if is_float(common):
        return common
    return types.float32 if dtype_of(common).itemsize <= 2 else types.float64


def _floating(name: str, function: Any, arity: int, weak: Type) -> Rule:
    """A function of floats that gives a float of their type."""

    def compute(*args: Type) -> Operation:
        require_numbers(function, *args)
        common = _float_type(args, weak)
        return Operation(Intrinsic(name), (common,) * arity, common)

    return _with_arity(compute, arity)


def _with_arity(compute: Callable[..., Operation], arity: int) -> Rule:
    """The same rule with a fixed number of positional arguments, so that calls are checked."""

    def one(x: Type, /) -> Operation:
        return compute(x)

    def two(x1: Type, x2: Type, /) -> Operation:
        return compute(x1, x2)

    def three(x1: Type, x2: Type, x3: Type, /) -> Operation:
        return compute(x1, x2, x3)

    return (one, two, three)[arity - 1]


_PYTHON = {
    **{name: (name, 1) for name in (
        "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh "
        "atanh erf erfc gamma lgamma cbrt sqrt"
    ).split()},
    **{name: (name, 2) for name in ("pow", "atan2", "hypot", "fmod", "copysign", "nextafter")},
    "fabs": ("abs", 1),
    "fma": ("fma", 3),
}  # fmt: skip

_NUMPY = {
    **{name: (name, 1) for name in (
        "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh cbrt sqrt rint"
    ).split()},
    **{f"arc{name}": (f"a{name}", 1) for name in "sin cos tan sinh cosh tanh".split()},
    "arctan2": ("atan2", 2),
    "hypot": ("hypot", 2),
    "copysign": ("copysign", 2),
    "nextafter": ("nextafter", 2),
    "fabs": ("abs", 1),
}  # fmt: skip

_OWN = {
    **{name: (name, 1) for name in (
        "rsqrt erf erfc gamma lgamma expm1 log1p sinpi cospi"
    ).split()},
    "hypot": ("hypot", 2),
    "copysign": ("copysign", 2),
    "fma": ("fma", 3),
}  # fmt: skip

for _module, _table, _weak in (
    (math, _PYTHON, WEAK_FLOAT),
    (np, _NUMPY, types.float64),
    (mathematics, _OWN, WEAK_FLOAT),
):
    for _name, (_intrinsic, _arity) in _table.items():
        _function = getattr(_module, _name, None)  # math.cbrt, exp2, fma are not in every Python
        if _function is not None:
            rule(_function)(_floating(_intrinsic, _function, _arity, _weak))


# --- to integers ----------------------------------------------------------------------------------


def _to_whole(function: Any, mode: str) -> Rule:
    def resolve(x: Type, /) -> Operation:
        require_numbers(function, x)
        folded = fold(function, x)
        if folded is not None:
            return folded
        what = RoundToInt(mode) if is_real(x) else Convert()
        return Operation(what, (at_run_time(x),), WEAK_INT)

    return resolve


def _rounded(function: Any, mode: str) -> Rule:
    def resolve(x: Type, /) -> Operation:
        require_numbers(function, x)
        strong = default_type(x)
        if is_bool(strong):
            raise Refusal(f"np.{function.__name__} of a bool", "write int(x)")
        what = Convert() if is_integer(strong) else Intrinsic(mode)
        return Operation(what, (strong,), strong)

    return resolve


for _mode in ("floor", "ceil", "trunc"):
    rule(getattr(math, _mode))(_to_whole(getattr(math, _mode), _mode))
    rule(getattr(np, _mode))(_rounded(getattr(np, _mode), _mode))


def default_type(type: Type) -> Type:
    """NumPy's type of a value that it takes by itself: int64 and float64 for Python numbers."""
    if isinstance(type, WeakInt):
        at_run_time(type)
        return types.int64
    return types.float64 if isinstance(type, WeakFloat) else type


@rule(np.round, np.around)
def numpy_round(a: Type, decimals: Type = _ZERO) -> Operation:
    require_numbers(np.round, a)
    if is_bool(a):
        raise Refusal("np.round of a bool", "write int(x)")
    return rounded_to(default_type(a), digits_of(decimals))


# --- classification -------------------------------------------------------------------------------

_CLASSIFY = {
    "isnan": (math.isnan, np.isnan),
    "isinf": (math.isinf, np.isinf),
    "isfinite": (math.isfinite, np.isfinite),
    "signbit": (np.signbit,),
}


def _classify(name: str, function: Any) -> Rule:
    def resolve(x: Type, /) -> Operation:
        require_numbers(function, x)
        operand = at_run_time(x) if is_real(x) else types.float64
        return Operation(Intrinsic(name), (operand,), types.boolean)

    return resolve


for _name, _functions in _CLASSIFY.items():
    for _function in _functions:
        rule(_function)(_classify(_name, _function))


# --- NumPy's functions that are operators ---------------------------------------------------------

_OPERATORS: dict[Any, Any] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.true_divide: operator.truediv,  # np.divide is the same object
    np.floor_divide: operator.floordiv,
    np.remainder: operator.mod,  # np.mod is the same object
    np.power: operator.pow,
    np.divmod: divmod,
    np.left_shift: operator.lshift,
    np.right_shift: operator.rshift,
    np.bitwise_and: operator.and_,
    np.bitwise_or: operator.or_,
    np.bitwise_xor: operator.xor,
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
    np.negative: operator.neg,
    np.positive: operator.pos,
    np.invert: operator.invert,  # np.bitwise_not is the same object
    np.absolute: abs,  # np.abs is the same object
}


def _as_operator(function: Any, arity: int) -> Rule:
    def compute(*args: Type) -> Operation:
        known = lookup(function)
        assert known is not None
        if all(isinstance(arg, Weak) for arg in args):
            require_numbers(function, *args)
            args = tuple(map(default_type, args))
        return known(*args)

    return _with_arity(compute, arity)


for _ufunc, _function in _OPERATORS.items():
    rule(_ufunc)(_as_operator(_function, _ufunc.nin))


@rule(np.fmod)
def c_remainder(x1: Type, x2: Type, /) -> Operation:
    require_numbers(np.fmod, x1, x2)
    common = default_type(promote(x1, x2))
    if is_bool(common):
        raise Refusal("np.fmod of two bools", "write int(x)")
    what = Intrinsic("fmod") if is_float(common) else Binary(BinOp.MOD)
    return Operation(what, (common, common), common)


def _extreme(name: str, function: Any) -> Rule:
    def resolve(x1: Type, x2: Type, /) -> Operation:
        require_numbers(function, x1, x2)
        common = default_type(promote(x1, x2))
        if is_bool(common):
            raise Refusal(f"np.{name} of two bools", "write a & b, or a | b")
        return Operation(Intrinsic(name), (common, common), common)

    return resolve


for _name in ("minimum", "maximum", "fmin", "fmax"):
    rule(getattr(np, _name))(_extreme(_name, getattr(np, _name)))


def _logical(function: Any, op: BinOp) -> Rule:
    def resolve(x1: Type, x2: Type, /) -> Operation:
        require_numbers(function, x1, x2)
        return Operation(Binary(op), (types.boolean, types.boolean), types.boolean)

    return resolve


rule(np.logical_and)(_logical(np.logical_and, BinOp.BITAND))
rule(np.logical_or)(_logical(np.logical_or, BinOp.BITOR))
rule(np.logical_xor)(_logical(np.logical_xor, BinOp.BITXOR))


@rule(np.logical_not)
def logical_not(x: Type, /) -> Operation:
    require_numbers(np.logical_not, x)
    return Operation(Unary(UnOp.NOT), (at_run_time(x),), types.boolean)


@rule(np.where)
def where(condition: Type, x: Type, y: Type, /) -> Operation:
    require_numbers(np.where, condition, x, y)
    both_bool = is_bool(x) and is_bool(y)
    common = x if both_bool else default_type(promote(x, y))
    return Operation(Select(), (types.boolean, common, common), common)


# --- sarek.math -----------------------------------------------------------------------------------


def _on_bits(name: str, function: Any) -> Rule:
    def resolve(x: Type, /) -> Operation:
        if not is_whole(x):
            raise Refusal(
                f"sarek.math.{name}() takes an integer, not {describe(x)}",
                "sarek.math.reinterpret(x, dtype) gives the bits of a float",
            )
        run_time = at_run_time(x)
        return Operation(Intrinsic(name), (run_time,), run_time)

    return resolve


for _name in ("clz", "popcount"):
    rule(getattr(mathematics, _name))(_on_bits(_name, getattr(mathematics, _name)))


@rule(mathematics.reinterpret)
def reinterpret(x: Type, dtype: Type) -> Operation:
    from sarek_numba.frontend.rules.types import element_type

    require_numbers(mathematics.reinterpret, x)
    with operand(1):
        target = element_type(dtype)
    given = default_type(x)
    if is_half(target):
        raise Refusal(
            f"sarek.math.reinterpret as {target}, which no value has",
            f"write sarek.half_from_bits(x, sarek.{target}), a float32",
        )
    if is_bool(given) or is_bool(target):
        raise Refusal("sarek.math.reinterpret of a bool", "write int(x), or x != 0")
    if given.bitwidth != target.bitwidth:
        raise Refusal(
            f"sarek.math.reinterpret of {given} as {target}, which differ in width",
            "sarek.half_bits(x) gives the bits of a half"
            if target == types.uint16 and given == types.float32
            else "convert to a type of the same width first",
        )
    return Operation(Intrinsic("reinterpret"), (given,), target)


@rule(language.half_bits)
def half_bits(x: Type, dtype: Type | None = None) -> Operation:
    require_numbers(language.half_bits, x)
    return Operation(HalfBits(_half_named(dtype)), (x,), types.uint16)


@rule(language.half_from_bits)
def half_from_bits(bits: Type, dtype: Type | None = None) -> Operation:
    if not is_whole(bits):
        with operand(0):
            raise Refusal(
                f"sarek.half_from_bits() takes an integer, not {describe(bits)}",
                "sarek.half_bits(x) gives the bits of a float, as a uint16",
            )
    with operand(0):
        check_fit(bits, types.uint16)
    return Operation(HalfFromBits(_half_named(dtype)), (types.uint16,), types.float32)


def _half_named(dtype: Type | None) -> Scalar:
    """The half that an argument names: float16 without one."""
    from sarek_numba.frontend.rules.types import element_type

    if dtype is None:
        return Scalar.FLOAT16
    with operand(1):
        found = element_type(dtype)
        if not isinstance(found, Half):
            raise Refusal(f"{found} is no half", "write sarek.float16 or sarek.bfloat16")
    return found.scalar


assert absolute is lookup(abs)
