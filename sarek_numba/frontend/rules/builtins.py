"""Rules of Python's built-in functions."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from numba.core import types

from sarek_numba.errors import UnsupportedConstruct
from sarek_numba.frontend.extensions import RANGE, CompileTime, SliceType
from sarek_numba.frontend.rules.operators import (
    at_run_time,
    constant,
    fold,
    power,
    require_numbers,
    truth,
)
from sarek_numba.frontend.rules.registry import rule
from sarek_numba.frontend.typed import (
    Constant,
    Convert,
    DivMod,
    Extent,
    Intrinsic,
    MakeRange,
    MakeSlice,
    Operation,
    RoundDigits,
    RoundToInt,
    Type,
)
from sarek_numba.frontend.weak import (
    WEAK_FLOAT,
    WEAK_INT,
    Refusal,
    WeakInt,
    constant_of,
    describe,
    is_bool,
    is_number,
    is_real,
    is_whole,
    join,
    operand,
    promote,
    tuple_of,
)

_ZERO = WeakInt.of(0)  # int() and float() without an argument


@rule(abs)
def absolute(x: Type) -> Operation:
    require_numbers(abs, x)
    if is_bool(x):
        raise Refusal("abs of a bool", "write int(x)")
    folded = fold(abs, x)
    if folded is not None:
        return folded
    run_time = at_run_time(x)
    return Operation(Intrinsic("abs"), (run_time,), run_time)


def _extreme(function: Callable[..., Any]) -> Callable[..., Operation]:
    name = function.__name__

    def resolve(*args: Type) -> Operation:
        if len(args) == 1 and isinstance(args[0], types.BaseTuple):
            raise Refusal(
                f"{name}() takes numbers, not {describe(args[0])}", "name its items one by one"
            )
        if len(args) < 2:
            raise Refusal(f"{name}() takes at least two numbers", f"write {name}(a, b)")
        require_numbers(function, *args)
        folded = fold(function, *args)
        if folded is not None:
            return folded
        common = args[0]
        for other in args[1:]:
            joined = join(common, other)
            if joined is None:
                raise Refusal(
                    f"{name}() of {describe(common)} and {describe(other)}, which have no "
                    "common type",
                    "convert one of them",
                )
            common = joined
        common = at_run_time(common)
        return Operation(Intrinsic(name), (common,) * len(args), common)

    return resolve


for _function in (min, max):
    rule(_function)(_extreme(_function))


rule(pow)(power)


@rule(divmod)
def division_with_remainder(x: Type, y: Type) -> Operation:
    require_numbers(divmod, x, y)
    if is_bool(x) and is_bool(y):
        raise Refusal("divmod of two bools", "write int(x)")
    left, right = constant_of(x), constant_of(y)
    if left is not None and right:
        pair = divmod(left, right)
        items = tuple(constant(item).result for item in pair)
        return Operation(Constant(pair), (), tuple_of(items))
    common = promote(x, y)
    return Operation(DivMod(), (common, common), tuple_of((common, common)))


@rule(round)
def rounding(number: Type, ndigits: Type = types.none) -> Operation:
    require_numbers(round, number)
    if is_bool(number):
        raise Refusal("round of a bool", "write int(x)")
    if isinstance(ndigits, types.NoneType):
        folded = fold(round, number)
        if folded is not None:
            return folded
        what = RoundToInt("rint") if is_real(number) else Convert()
        return Operation(what, (at_run_time(number),), WEAK_INT)
    return rounded_to(number, digits_of(ndigits))


def digits_of(type: Type) -> int:
    """The constant number of digits that a rounding names."""
    if not isinstance(type, WeakInt) or type.value is None:
        with operand(1):
            raise Refusal(
                f"the digits to round to are a constant int, not {describe(type)}",
                "write a literal or a global",
            )
    return type.value


def rounded_to(number: Type, digits: int) -> Operation:
    """`np.round` at the number's type."""
    run_time = at_run_time(number)
    if is_real(number):
        return Operation(RoundDigits(digits), (run_time,), run_time)
    if digits < 0:
        raise Refusal("rounding an integer to tens", "write x // 10 * 10, or round float(x)")
    return Operation(Convert(), (run_time,), run_time)


@rule(int)
def to_int(x: Type = _ZERO, base: Type = types.none) -> Operation:
    if base != types.none:
        raise Refusal("int() with a base reads text", "a kernel has no text: write int(x)")
    require_numbers(int, x)
    return fold(int, x) or Operation(Convert(), (at_run_time(x),), WEAK_INT)


@rule(float)
def to_float(x: Type = _ZERO) -> Operation:
    require_numbers(float, x)
    return fold(float, x) or Operation(Convert(), (at_run_time(x),), WEAK_FLOAT)


@rule(bool)
def to_bool(x: Type = types.none) -> Operation:
    decided = truth(x)
    if decided is not None:
        return constant(decided)
    if isinstance(x, CompileTime):
        return constant(bool(x.value))
    require_numbers(bool, x)
    return Operation(Convert(), (at_run_time(x),), types.boolean)


@rule(range)
def counting(*args: Type) -> Operation:
    if not 1 <= len(args) <= 3:
        raise Refusal(
            f"range() takes one to three integers, and {len(args)} are given",
            "write range(start, stop, step)",
        )
    for position, arg in enumerate(args):
        if not is_whole(arg):
            hint = "write int(...) around it" if is_number(arg) else "write an integer"
            if isinstance(arg, types.Array):
                hint = "write range(len(a))"
            with operand(position):
                raise Refusal(f"range() takes integers, not {describe(arg)}", hint)
    if len(args) == 3 and constant_of(args[2]) == 0:
        with operand(2):
            raise Refusal("the step of range() is zero", "write a positive or a negative step")
    for arg in args:
        at_run_time(arg)
    return Operation(MakeRange(), (WEAK_INT,) * len(args), RANGE)


@rule(len)
def length(x: Type) -> Operation:
    if isinstance(x, types.BaseTuple):
        return constant(len(x))
    if not isinstance(x, types.Array):
        hint = "len() takes an array or a tuple"
        raise Refusal(f"len() is not defined for {describe(x)}", hint)
    if x.ndim == 0:
        raise Refusal("an array without axes has no len()", "its one element is a[()]")
    extents = getattr(x, "extents", None)
    if extents is not None:
        return constant(extents[0])
    return Operation(Extent(0), (x,), WEAK_INT)


@rule(slice)
def slicing(*args: Type) -> Operation:
    parts = (types.none, *args) if len(args) == 1 else args
    start, stop, step = (*parts, types.none)[:3]
    for name, part in (("lower", start), ("upper", stop), ("step", step)):
        if not (is_whole(part) or isinstance(part, types.NoneType)):
            hint = "write int(...) around it" if is_number(part) else "write integers"
            with operand(name):
                raise Refusal(f"a slice takes integers, not {describe(part)}", hint)
    if constant_of(step) == 0:
        with operand("step"):
            raise Refusal("the step of a slice is zero", "write a positive or a negative step")
    operands = tuple(types.none if isinstance(a, types.NoneType) else WEAK_INT for a in args)
    return Operation(MakeSlice(), operands, SliceType(start, stop, step))


_HINTS = {
    "sum": "write a loop that adds",
    "any": "write a loop with `or`",
    "all": "write a loop with `and`",
    "enumerate": "write for i in range(len(a))",
    "zip": "write for i in range(len(a))",
    "list": "use sarek.local.array for a small array per thread",
    "dict": "use arrays",
    "set": "use arrays",
    "tuple": "write the items in parentheses",
    "reversed": "write range(n - 1, -1, -1)",
    "isinstance": "types are known when the kernel is compiled: leave the test out",
    "str": "a kernel has no strings",
    "repr": "a kernel has no strings",
    "map": "write a loop",
    "filter": "write a loop",
    "sorted": "write the sort with loops over an array",
    "hasattr": "a kernel is typed when it is compiled",
    "getattr": "name the attribute itself",
    "type": "a kernel is typed when it is compiled",
}


def refused_builtin(function: Any) -> Refusal | None:
    """Why a built-in without a rule is refused; None if it is no built-in."""
    name = getattr(function, "__name__", None)
    if name is None or getattr(builtins, name, None) is not function:
        return None
    hint = _HINTS.get(name, "do it before or after the launch")
    return Refusal(f"{name}() is not part of the kernel language", hint, UnsupportedConstruct)
