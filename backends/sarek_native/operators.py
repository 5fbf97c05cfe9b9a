"""Operators and conversions, exact at every edge as `ir.semantics` fixes them.

An operator on uniform values is scalar code; sums of linear values stay linear; the rest is lanes.
x86 traps on a division by zero and on INT_MIN / -1, in lanes that do not run too, so a divisor is
replaced by 1 there unless all lanes run and the edge is proven away.
"""

from __future__ import annotations

from collections.abc import Callable

from sarek_native import support
from sarek_native.builder import Code
from sarek_native.masks import Mask
from sarek_native.values import REGISTER, Value, float_literal, signed, zero
from sarek_numba.ir.nodes import COMPARISONS, LOGICAL, SHIFTS, BinOp, UnOp
from sarek_numba.ir.types import BOOL, Kind, Scalar

_INTEGER = {
    BinOp.ADD: "add",
    BinOp.SUB: "sub",
    BinOp.MUL: "mul",
    BinOp.BITAND: "and",
    BinOp.BITOR: "or",
    BinOp.BITXOR: "xor",
}
_FLOAT = {BinOp.ADD: "fadd", BinOp.SUB: "fsub", BinOp.MUL: "fmul", BinOp.DIV: "fdiv"}
_ORDER = {BinOp.LT: "lt", BinOp.LE: "le", BinOp.GT: "gt", BinOp.GE: "ge"}
_DIVISIONS = frozenset({BinOp.DIV, BinOp.MOD, BinOp.FLOORDIV, BinOp.FLOORMOD})
_LONGEST_STRIDE = 1 << 20  # a stride is multiplied by lane numbers while emitting


class Operation:
    """Shorthand for instructions on operands of one shape, vectors if `lanes`."""

    def __init__(self, code: Code, type: Scalar, lanes: bool) -> None:
        self.code = code
        self.type = type
        self.lanes = lanes
        self.llvm = code.type_of(type, lanes)
        self.flag = code.type_of(BOOL, lanes)

    def text(self, value: Value) -> str:
        return self.code.spread(value) if self.lanes else value.text

    def constant(self, number: str) -> str:
        return self.code.splat(REGISTER[self.type], number) if self.lanes else number

    def do(self, instruction: str, left: str, right: str) -> str:
        return self.code.define(f"{instruction} {self.llvm} {left}, {right}")

    def both(self, instruction: str, left: str, right: str) -> str:
        """An instruction on two flags."""
        return self.code.define(f"{instruction} {self.flag} {left}, {right}")

    def select(self, flag: str, then: str, orelse: str) -> str:
        typed = f"{self.llvm} {then}, {self.llvm} {orelse}"
        return self.code.define(f"select {self.flag} {flag}, {typed}")

    def call(self, intrinsic: str, *arguments: str) -> str:
        typed = ", ".join(f"{self.llvm} {argument}" for argument in arguments)
        return self.code.define(f"call {self.llvm} @llvm.{intrinsic}({typed})")

    def value(self, text: str) -> Value:
        return Value(self.type, text, self.lanes)

    def truth(self, text: str) -> Value:
        return Value(BOOL, text, self.lanes)


def common(code: Code, *values: Value) -> Operation:
    """An operation on the first value's type, scalar where all are uniform."""
    return Operation(code, values[0].type, not all(value.uniform for value in values))


def binary(
    code: Code, op: BinOp, left: Value, right: Value, unguarded: bool = False, mask: Mask = None
) -> Value:
    """`left op right`. Every operator but And and Or, which choose what is evaluated."""
    assert op not in LOGICAL
    if op in COMPARISONS:
        return compare(code, op, left, right)
    if op in SHIFTS:
        return _shift(code, op, left, right, unguarded)
    linear = _linear(code, op, left, right)
    if linear is not None:
        return linear
    operation = common(code, left, right)
    if left.type.is_float:
        return _float(operation, op, left, right, mask)
    if op in _DIVISIONS:
        return _divide(operation, op, left, right, unguarded, mask)
    return operation.value(operation.do(_INTEGER[op], operation.text(left), operation.text(right)))


def _linear(code: Code, op: BinOp, left: Value, right: Value) -> Value | None:
    """Sums and constant multiples of linear values; None where the result is not linear."""
    if left.lanes or right.lanes or not (left.stride or right.stride):
        return None
    if op in (BinOp.ADD, BinOp.SUB):
        stride = left.stride + right.stride if op is BinOp.ADD else left.stride - right.stride
    elif op is BinOp.MUL:
        factor = right if left.stride else left
        if factor.stride or factor.text.startswith("%"):
            return None
        stride = left.stride * int(right.text) if left.stride else right.stride * int(left.text)
    else:
        return None
    if abs(stride) > _LONGEST_STRIDE:
        return None
    text = code.define(f"{_INTEGER[op]} {REGISTER[left.type]} {left.text}, {right.text}")
    return Value(left.type, text, stride=stride)


def compare(code: Code, op: BinOp, left: Value, right: Value) -> Value:
    operation = common(code, left, right)
    if left.type.is_float:
        word = {BinOp.EQ: "oeq", BinOp.NE: "une"}.get(op) or f"o{_ORDER[op]}"
        instruction = f"fcmp {word}"
    else:
        sign = "s" if signed(left.type) else "u"
        word = {BinOp.EQ: "eq", BinOp.NE: "ne"}.get(op) or f"{sign}{_ORDER[op]}"
        instruction = f"icmp {word}"
    return operation.truth(operation.do(instruction, operation.text(left), operation.text(right)))


def _float(operation: Operation, op: BinOp, left: Value, right: Value, mask: Mask) -> Value:
    a, b = operation.text(left), operation.text(right)
    if op in _FLOAT:
        return operation.value(operation.do(_FLOAT[op] + operation.code.float_flags, a, b))
    remainder = support.lane_call(operation.code, "fmod", (left, right), mask)
    m = operation.text(remainder)
    if op is BinOp.MOD:
        return remainder
    return _floored(operation, op, a, b, m)


def _floored(operation: Operation, op: BinOp, a: str, b: str, m: str) -> Value:
    """Floor division or modulo from m = fmod(a, b), by the formula of the specification."""
    o = operation
    nothing = o.constant(float_literal(0.0))
    by_zero = o.do("fcmp oeq", b, nothing)
    m_set = o.do("fcmp une", m, nothing)
    b_negative = o.do("fcmp olt", b, nothing)
    m_negative = o.do("fcmp olt", m, nothing)
    adjust = o.both("and", m_set, o.both("xor", b_negative, m_negative))
    if op is BinOp.FLOORMOD:
        shifted = o.select(adjust, o.do("fadd", m, b), m)
        signed_zero = o.call("copysign", nothing, b)
        result = o.select(m_set, shifted, signed_zero)
        return o.value(o.select(by_zero, o.constant(float_literal(float("nan"))), result))
    quotient = o.do("fdiv", a, b)
    d = o.do("fdiv", o.do("fsub", a, m), b)
    d = o.select(adjust, o.do("fsub", d, o.constant(float_literal(1.0))), d)
    q = o.call("floor", d)
    rest = o.do("fsub", d, q)
    above = o.do("fcmp ogt", rest, o.constant(float_literal(0.5)))
    q = o.select(above, o.do("fadd", q, o.constant(float_literal(1.0))), q)
    d_zero = o.do("fcmp oeq", d, nothing)
    q = o.select(d_zero, o.call("copysign", nothing, quotient), q)
    return o.value(o.select(by_zero, quotient, q))


def _divide(
    operation: Operation, op: BinOp, left: Value, right: Value, unguarded: bool, mask: Mask
) -> Value:
    """Integer division: by zero gives 0, INT_MIN / -1 wraps, and nothing traps."""
    o = operation
    n, d = o.text(left), o.text(right)
    sign = signed(o.type)
    by_zero: str | None = None
    if not _harmless(right, sign) and not (unguarded and mask is None):
        by_zero = o.do("icmp eq", d, o.constant("0"))
        edge = by_zero
        if sign:
            minus = o.do("icmp eq", d, o.constant("-1"))
            lowest = o.do("icmp eq", n, o.constant(str(o.type.minimum)))
            edge = o.both("or", by_zero, o.both("and", minus, lowest))
        d = o.select(edge, o.constant("1"), d)
    q = _quotient(o, n, d, right, sign)
    r = o.do("sub", n, o.do("mul", q, d))
    if sign and op in (BinOp.FLOORDIV, BinOp.FLOORMOD):
        r_set = o.do("icmp ne", r, o.constant("0"))
        differ = o.do("icmp slt", o.do("xor", r, d), o.constant("0"))
        adjust = o.both("and", r_set, differ)
        q = o.select(adjust, o.do("sub", q, o.constant("1")), q)
        r = o.select(adjust, o.do("add", r, d), r)
    if op in (BinOp.MOD, BinOp.FLOORMOD):
        return o.value(r)
    return o.value(q if by_zero is None else o.select(by_zero, o.constant("0"), q))


def _harmless(divisor: Value, sign: bool) -> bool:
    """Is the divisor a constant for which no edge exists?"""
    text = divisor.text
    return (
        divisor.uniform and not text.startswith("%") and text != "0" and not (sign and text == "-1")
    )


def _quotient(operation: Operation, n: str, d: str, divisor: Value, sign: bool) -> str:
    """n / d truncated.

    Lanes of up to 32 bits divide as float64, whose quotient of two such integers truncates to the
    exact one; a vector of 64 bits is divided lane by lane.
    """
    o = operation
    constant = divisor.uniform and not divisor.text.startswith("%")
    if not o.lanes or constant or o.type.bits > 32:
        return o.do("sdiv" if sign else "udiv", n, d)
    letter = "s" if sign else "u"
    wide = o.code.vector("double")
    operands = [o.code.define(f"{letter}itofp {o.llvm} {text} to {wide}") for text in (n, d)]
    q = o.code.define(f"fdiv {wide} {operands[0]}, {operands[1]}")
    return o.code.define(f"fpto{letter}i {wide} {q} to {o.llvm}")


def _shift(code: Code, op: BinOp, left: Value, right: Value, unguarded: bool) -> Value:
    o = common(code, left, right)
    width = left.type.bits
    count_type = code.type_of(right.type, o.lanes)
    counted = Operation(code, right.type, o.lanes)
    count = _resized(code, counted.text(right), right.type.bits, width, o.lanes)
    arithmetic = op is BinOp.SHR and signed(left.type)
    name = "shl" if op is BinOp.SHL else "ashr" if arithmetic else "lshr"
    if unguarded:
        return o.value(o.do(name, o.text(left), count))
    limit = counted.constant(str(width))
    outside = code.define(f"icmp uge {count_type} {counted.text(right)}, {limit}")
    if arithmetic:
        count = o.select(outside, o.constant(str(width - 1)), count)
        return o.value(o.do(name, o.text(left), count))
    count = o.select(outside, o.constant("0"), count)
    return o.value(o.select(outside, o.constant("0"), o.do(name, o.text(left), count)))


def _resized(code: Code, text: str, old: int, new: int, lanes: bool) -> str:
    """An integer's low bits in another width, zeros above."""
    if old == new:
        return text
    source, target = (code.vector(f"i{bits}") if lanes else f"i{bits}" for bits in (old, new))
    return code.define(f"{'zext' if new > old else 'trunc'} {source} {text} to {target}")


def unary(code: Code, op: UnOp, operand: Value) -> Value:
    if op is UnOp.NEG and operand.stride and not operand.lanes:
        base = code.define(f"sub {REGISTER[operand.type]} 0, {operand.text}")
        return Value(operand.type, base, stride=-operand.stride)
    if op is UnOp.NOT and operand.type is not BOOL:
        operand = cast(code, operand, BOOL)
    o = common(code, operand)
    text = o.text(operand)
    if op is UnOp.NEG:
        if operand.type.is_float:
            return o.value(code.define(f"fneg {o.llvm} {text}"))
        return o.value(o.do("sub", o.constant("0"), text))
    return o.value(o.do("xor", text, o.constant("true" if operand.type is BOOL else "-1")))


def cast(code: Code, value: Value, to: Scalar) -> Value:
    """Integers modulo 2^n, floats to integers saturating with NaN giving 0, to bool != 0."""
    source = value.type
    if source is to:
        return value
    kept = source.is_integer and to.is_integer and to.bits <= source.bits
    if value.stride and not value.lanes and kept:
        return _convert(code, value, "trunc" if to.bits < source.bits else "", to, False)
    if not value.uniform:
        value = code.as_lanes(value)
    o = common(code, value)
    if to is BOOL:
        word = "fcmp une" if source.is_float else "icmp ne"
        return o.truth(o.do(word, value.text, o.constant(zero(source))))
    if source.is_float and to.is_integer:
        sat = "fptosi" if signed(to) else "fptoui"
        result = code.type_of(to, value.lanes)
        name = f"{sat}.sat.{_mangled(code, to, value.lanes)}.{_mangled(code, source, value.lanes)}"
        text = code.define(f"call {result} @llvm.{name}({o.llvm} {value.text})")
        return Value(to, text, value.lanes)
    return _convert(
        code, value, _CONVERSIONS[source.is_float, to.is_float](source, to), to, value.lanes
    )


def _mangled(code: Code, type: Scalar, lanes: bool) -> str:
    name = REGISTER[type] if type.is_integer else f"f{type.bits}"
    return f"v{code.width}{name}" if lanes else name


def _integers(source: Scalar, to: Scalar) -> str:
    if source.kind is Kind.BOOL:
        return "zext"
    if to.bits == source.bits:
        return ""
    return "trunc" if to.bits < source.bits else "sext" if signed(source) else "zext"


def _to_float(source: Scalar, to: Scalar) -> str:
    return "sitofp" if signed(source) else "uitofp"


def _floats(source: Scalar, to: Scalar) -> str:
    return "fptrunc" if to.bits < source.bits else "fpext"


_CONVERSIONS: dict[tuple[bool, bool], Callable[[Scalar, Scalar], str]] = {
    (False, False): _integers,
    (False, True): _to_float,
    (True, True): _floats,
}


def _convert(code: Code, value: Value, instruction: str, to: Scalar, lanes: bool) -> Value:
    if not instruction:
        return Value(to, value.text, lanes, value.stride)
    source, target = (code.type_of(type, lanes) for type in (value.type, to))
    text = code.define(f"{instruction} {source} {value.text} to {target}")
    return Value(to, text, lanes, value.stride)
