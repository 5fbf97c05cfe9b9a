"""The functions of `ir.intrinsics` on values, as one total table.

Exactly rounded ones are LLVM's own intrinsics, or comparisons and selects by the formulas of the
specification (machine minima disagree on zeros and NaNs). The others call the C library for each
lane that runs, float32 through float64 as the oracle computes it; polynomials on whole vectors
replace entries of `INTRINSICS_EMITTED` one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from sarek_native import support
from sarek_native.builder import Code
from sarek_native.masks import Mask
from sarek_native.operators import binary, cast, common, compare, unary
from sarek_native.values import REGISTER, Value, float_literal, signed
from sarek_numba.ir.nodes import BinOp, UnOp
from sarek_numba.ir.types import BOOL, FLOAT64, Scalar

Emit = Callable[[Code, Sequence[Value], Scalar, Mask], Value]


def intrinsic(code: Code, name: str, args: Sequence[Value], type: Scalar, mask: Mask) -> Value:
    """Call the function `name`; `type` is that of the result."""
    return INTRINSICS_EMITTED[name](code, args, type, mask)


def _library(function: str, wide: bool = True) -> Emit:
    def emit(code: Code, args: Sequence[Value], type: Scalar, mask: Mask) -> Value:
        return support.lane_call(code, function, args, mask, wide)

    return emit


def _llvm(name: str, suffix: str = "") -> Emit:
    """An intrinsic of LLVM on operands of the result's type; `suffix` is a constant operand."""

    def emit(code: Code, args: Sequence[Value], type: Scalar, mask: Mask) -> Value:
        o = (
            common(code, *args)
            if all(a.uniform for a in args)
            else common(code, *_spread(code, args))
        )
        typed = ", ".join(f"{o.llvm} {o.text(argument)}" for argument in args)
        return o.value(code.define(f"call {o.llvm} @llvm.{name}({typed}{suffix})"))

    return emit


def _spread(code: Code, args: Sequence[Value]) -> list[Value]:
    return [code.as_lanes(argument) for argument in args]


def _absolute(code: Code, args: Sequence[Value], type: Scalar, mask: Mask) -> Value:
    if type.is_float:
        return _llvm("fabs")(code, args, type, mask)
    return _llvm("abs", ", i1 false")(code, args, type, mask) if signed(type) else args[0]


def _builtin(op: BinOp) -> Emit:
    """Python's: the second operand if it is beyond the first."""

    def emit(code: Code, args: Sequence[Value], type: Scalar, mask: Mask) -> Value:
        a, b = args
        return code.select(compare(code, op, b, a), b, a)

    return emit


def _numpy(op: BinOp, deciding: int) -> Emit:
    """NumPy's: the first operand if `a op b`, or if the operand at `deciding` is a NaN."""

    def emit(code: Code, args: Sequence[Value], type: Scalar, mask: Mask) -> Value:
        a, b = args
        chosen = compare(code, op, a, b)
        if type.is_float:
            is_nan = compare(code, BinOp.NE, args[deciding], args[deciding])
            chosen = binary(code, BinOp.BITOR, chosen, is_nan)
        return code.select(chosen, a, b)

    return emit


def _against_infinity(instruction: str) -> Emit:
    def emit(code: Code, args: Sequence[Value], type: Scalar, mask: Mask) -> Value:
        magnitude = _llvm("fabs")(code, args, args[0].type, mask)
        o = common(code, magnitude)
        infinity = o.constant(float_literal(math.inf))
        return o.truth(o.do(instruction, o.text(magnitude), infinity))

    return emit


def _is_nan(code: Code, args: Sequence[Value], type: Scalar, mask: Mask) -> Value:
    return compare(code, BinOp.NE, args[0], args[0])


def _sign_bit(code: Code, args: Sequence[Value], type: Scalar, mask: Mask) -> Value:
    integer = Scalar(f"int{args[0].type.bits}")
    bits = _reinterpret(code, args, integer, mask)
    return compare(code, BinOp.LT, bits, Value(integer, "0"))


def _reinterpret(code: Code, args: Sequence[Value], type: Scalar, mask: Mask) -> Value:
    (value,) = args
    if REGISTER[value.type] == REGISTER[type]:
        return Value(type, value.text, value.lanes, value.stride)
    value = value if value.uniform else code.as_lanes(value)
    source, target = (code.type_of(t, value.lanes) for t in (value.type, type))
    return Value(type, code.define(f"bitcast {source} {value.text} to {target}"), value.lanes)


def _integer_power(code: Code, args: Sequence[Value], type: Scalar, mask: Mask) -> Value:
    """By squaring, as many rounds as the widest exponent that runs needs."""
    lanes = not all(argument.uniform for argument in args)
    vector = code.type_of(type, lanes)
    name = f"power.{type.value}.{'lanes' if lanes else 'one'}"
    code.require(name, lambda: _power_function(code.width, name, type, lanes))
    typed = []
    for argument in args:
        typed.append(f"{vector} {code.spread(argument) if lanes else argument.text}")
    return Value(type, code.define(f"call {vector} @{name}({', '.join(typed)})"), lanes)


def _power_function(width: int, name: str, type: Scalar, lanes: bool) -> str:
    code = Code(width)
    o = common(code, Value(type, "%base", lanes))
    one = o.constant("1")
    exponent, keep = "%exponent", ""
    if signed(type):  # a negative exponent keeps ±1, by its parity, and gives 0 for other bases
        negative = o.do("icmp slt", "%exponent", o.constant("0"))
        exponent = o.select(negative, o.do("and", "%exponent", one), "%exponent")
        above = o.do("icmp ugt", o.do("add", "%base", one), o.constant("2"))
        zero_base = o.do("icmp eq", "%base", o.constant("0"))
        keep = o.both("and", negative, o.both("or", above, zero_base))
    slots = [code.slot(type, lanes) for _ in range(3)]
    for slot, text in zip(slots, (one, "%base", exponent), strict=True):
        code.write(slot, o.value(text))
    code.label("head")
    result, factor, rest = (code.read(slot).text for slot in slots)
    left = o.do("icmp ne", rest, o.constant("0"))
    if lanes:
        bits = code.define(f"bitcast {o.flag} {left} to i{width}")
        left = code.define(f"icmp ne i{width} {bits}, 0")
    code.branch(left, "round", "done")
    code.label("round")
    odd = o.do("icmp ne", o.do("and", rest, one), o.constant("0"))
    code.write(slots[0], o.value(o.select(odd, o.do("mul", result, factor), result)))
    code.write(slots[1], o.value(o.do("mul", factor, factor)))
    code.write(slots[2], o.value(o.do("lshr", rest, one)))
    code.jump("head")
    code.label("done")
    if keep:
        result = o.select(keep, o.constant("0"), result)
    code.effect(f"ret {o.llvm} {result}")
    body = "\n".join(code.allocas + code.lines)
    header = f"define internal {o.llvm} @{name}({o.llvm} %base, {o.llvm} %exponent) #0"
    return f"{header} {{\nentry:\n{body}\n}}\n"


def _inverse_root(code: Code, args: Sequence[Value], type: Scalar, mask: Mask) -> Value:
    root = _llvm("sqrt")(code, [cast(code, args[0], FLOAT64)], FLOAT64, mask)
    return cast(code, binary(code, BinOp.DIV, _number(1.0), root), type)


def _number(value: float) -> Value:
    return Value(FLOAT64, float_literal(value))


def _sine_turns(code: Code, args: Sequence[Value], type: Scalar, mask: Mask) -> Value:
    """sin(pi x): |x| modulo 2 is exact, and what is left is reduced to a quarter exactly."""
    x = cast(code, args[0], FLOAT64)
    turn = _turn(code, x, mask)
    lower = compare(code, BinOp.GE, turn, _number(1.0))
    part = code.select(lower, binary(code, BinOp.SUB, turn, _number(1.0)), turn)
    beyond = compare(code, BinOp.GT, part, _number(0.5))
    part = code.select(beyond, binary(code, BinOp.SUB, _number(1.0), part), part)
    value = _quarter(code, part, ("sin", "cos"), mask)
    value = code.select(lower, unary(code, UnOp.NEG, value), value)
    whole = compare(code, BinOp.EQ, part, _number(0.0))
    signed_zero = _llvm("copysign")(code, [_number(0.0), x], FLOAT64, mask)
    mirrored = code.select(_sign_bit(code, [x], BOOL, mask), unary(code, UnOp.NEG, value), value)
    return cast(code, code.select(whole, signed_zero, mirrored), type)


def _cosine_turns(code: Code, args: Sequence[Value], type: Scalar, mask: Mask) -> Value:
    turn = _turn(code, cast(code, args[0], FLOAT64), mask)
    beyond = compare(code, BinOp.GT, turn, _number(1.0))
    turn = code.select(beyond, binary(code, BinOp.SUB, _number(2.0), turn), turn)
    negative = compare(code, BinOp.GT, turn, _number(0.5))
    part = code.select(negative, binary(code, BinOp.SUB, _number(1.0), turn), turn)
    value = _quarter(code, part, ("cos", "sin"), mask)
    return cast(code, code.select(negative, unary(code, UnOp.NEG, value), value), type)


def _turn(code: Code, x: Value, mask: Mask) -> Value:
    magnitude = _llvm("fabs")(code, [x], FLOAT64, mask)
    return support.lane_call(code, "fmod", (magnitude, _number(2.0)), mask)


def _quarter(code: Code, part: Value, functions: tuple[str, str], mask: Mask) -> Value:
    """The first function of pi * part up to a quarter, the second of what is left to a half."""
    near = compare(code, BinOp.LE, part, _number(0.25))
    rest = binary(code, BinOp.SUB, _number(0.5), part)
    values = []
    for function, turns in zip(functions, (part, rest), strict=True):
        angle = binary(code, BinOp.MUL, _number(math.pi), turns)
        values.append(support.lane_call(code, function, (angle,), mask))
    return code.select(near, values[0], values[1])


_LIBRARY = """
    exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
    erf erfc lgamma cbrt pow atan2 hypot
""".split()

INTRINSICS_EMITTED: dict[str, Emit] = {
    **{name: _library(name) for name in _LIBRARY},
    "gamma": _library("tgamma"),
    "sinpi": _sine_turns,
    "cospi": _cosine_turns,
    "rsqrt": _inverse_root,
    "sqrt": _llvm("sqrt"),
    "floor": _llvm("floor"),
    "ceil": _llvm("ceil"),
    "trunc": _llvm("trunc"),
    "rint": _llvm("roundeven"),
    "abs": _absolute,
    "fma": _llvm("fma"),
    "fmod": _library("fmod", wide=False),
    "copysign": _llvm("copysign"),
    "nextafter": _library("nextafter", wide=False),
    "min": _builtin(BinOp.LT),
    "max": _builtin(BinOp.GT),
    "minimum": _numpy(BinOp.LE, 0),
    "maximum": _numpy(BinOp.GE, 0),
    "fmin": _numpy(BinOp.LE, 1),
    "fmax": _numpy(BinOp.GE, 1),
    "isnan": _is_nan,
    "isinf": _against_infinity("fcmp oeq"),
    "isfinite": _against_infinity("fcmp olt"),
    "signbit": _sign_bit,
    "ipow": _integer_power,
    "popcount": _llvm("ctpop"),
    "clz": _llvm("ctlz", ", i1 false"),
    "reinterpret": _reinterpret,
}
