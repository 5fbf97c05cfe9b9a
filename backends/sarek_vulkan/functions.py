"""Intrinsics of the IR: instructions, a few of them together, or a function of `library`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sarek_numba.errors import CapabilityError
from sarek_numba.ir.types import BOOL, FLOAT32, FLOAT64, Scalar
from sarek_numba.passes import library
from sarek_vulkan import operators, subnormals
from sarek_vulkan.code import Code, Value

if TYPE_CHECKING:
    from sarek_vulkan.expressions import Expressions

Direct = Callable[[Code, Sequence[Value]], Value]

# GLSL.std.450's of the same meaning, which round correctly ("Precision of Individual Operations" of
# the Vulkan specification, appendix "Precision and Operation of SPIR-V Instructions")
_EXTENDED: Mapping[str, str] = {
    "floor": "Floor",
    "ceil": "Ceil",
    "trunc": "Trunc",
}


def _magnitude(code: Code, a: Value) -> Value:
    """The bits of |a|."""
    bits = code.bits_of(a)
    return code.both(bits, code.constant(bits.type, (1 << (a.type.bits - 1)) - 1))


def _infinity(code: Code, a: Value) -> Value:
    pattern = 0x7F800000 if a.type is FLOAT32 else 0x7FF0000000000000
    return code.constant(code.bits_of(a).type, pattern)


def _classified(order: str) -> Direct:
    """Whether |a| compares so with infinity, by its bits, of which no device assumes anything."""

    def classify(code: Code, args: Sequence[Value]) -> Value:
        return code.compare(order, _magnitude(code, args[0]), _infinity(code, args[0]))

    return classify


def _sign(code: Code, args: Sequence[Value]) -> Value:
    bits = code.bits_of(args[0])
    return code.compare("ge", bits, code.constant(bits.type, 1 << (bits.type.bits - 1)))


def _absolute(code: Code, args: Sequence[Value]) -> Value:
    (a,) = args
    if a.type.is_integer:
        return operators.absolute(code, a)
    return code.reinterpreted(_magnitude(code, a), a.type)


def copysign(code: Code, args: Sequence[Value]) -> Value:
    """|a| with the sign of b."""
    a, b = args
    bits = code.bits_of(b)
    sign = code.both(bits, code.constant(bits.type, 1 << (bits.type.bits - 1)))
    return code.reinterpreted(code.either(_magnitude(code, a), sign), a.type)


def _rounded(code: Code, args: Sequence[Value]) -> Value:
    """The nearest integer, ties to even: a sum with a number whose last bit counts ones rounds so.

    Mesa 22.3's RoundEven of float64 makes 1.5 a 1 and loses the sign of a zero.
    """
    (a,) = args
    size = _absolute(code, args)
    large = code.constant(a.type, 2.0**23 if a.type is FLOAT32 else 2.0**52)
    whole = copysign(code, (code.sub(code.add(size, large), large), a))
    return code.select(code.compare("lt", size, large), whole, a)


def _strict(order: str) -> Direct:
    """Python's `min` and `max`: the second operand only if it is beyond the first."""

    def choose(code: Code, args: Sequence[Value]) -> Value:
        a, b = args
        if a.type is BOOL:
            both = order == "lt"
            return code.both(a, b) if both else code.either(a, b)
        return code.select(code.compare(order, b, a), b, a)

    return choose


def _numpy(order: str, wins: int) -> Direct:
    """NumPy's minima and maxima: the first operand too where operand `wins` is a NaN."""

    def choose(code: Code, args: Sequence[Value]) -> Value:
        a, b = args
        first = code.compare(order, a, b)
        if a.type.is_float:
            first = code.either(first, code.compare("ne", args[wins], args[wins]))
        return code.select(first, a, b)

    return choose


def _population(code: Code, args: Sequence[Value]) -> Value:
    """Bits that are set; OpBitCount takes 32 bits."""
    (a,) = args
    parts = [
        code.value("OpBitCount", Scalar.UINT32, word.id) for word in _words(code, code.bits_of(a))
    ]
    total = parts[0] if len(parts) == 1 else code.add(*parts)
    return Value(code.resized(total, a.type).id, a.type)


def _leading(code: Code, args: Sequence[Value]) -> Value:
    """Zero bits above the highest one; FindUMsb takes 32 bits and gives -1 for 0."""
    (a,) = args
    found = [
        code.extended("FindUMsb", Scalar.UINT32, word) for word in _words(code, code.bits_of(a))
    ]
    highest = found[0]
    if len(found) == 2:
        none = code.compare("eq", found[1], code.constant(Scalar.UINT32, -1))
        upper = code.add(found[1], code.constant(Scalar.UINT32, 32))
        highest = code.select(none, found[0], upper)
    last = code.constant(Scalar.UINT32, a.type.bits - 1)
    return code.resized(code.sub(last, highest), a.type)


def _words(code: Code, bits: Value) -> list[Value]:
    """The 32-bit words of an unsigned integer, the low one first."""
    low = code.resized(bits, Scalar.UINT32)
    if bits.type.bits <= 32:
        return [low]
    high = code.shifted("right", bits, code.constant(Scalar.UINT32, 32))
    return [low, code.resized(high, Scalar.UINT32)]


DIRECT: Mapping[str, Direct] = {
    "isnan": _classified("gt"),
    "isinf": _classified("eq"),
    "isfinite": _classified("lt"),
    "signbit": _sign,
    "abs": _absolute,
    "copysign": copysign,
    "rint": _rounded,
    "min": _strict("lt"),
    "max": _strict("gt"),
    "minimum": _numpy("le", 0),
    "maximum": _numpy("ge", 0),
    "fmin": _numpy("le", 1),
    "fmax": _numpy("ge", 1),
    "popcount": _population,
    "clz": _leading,
}

# Inexact functions by the names of GLSL.std.450, where a device's own keep their bounds
NATIVE: Mapping[str, str] = {
    **{name: name.capitalize() for name in "sin cos tan asin acos atan sinh cosh tanh".split()},
    **{name: name.capitalize() for name in "asinh acosh atanh exp exp2 log log2 pow".split()},
    "atan2": "Atan2",
    "rsqrt": "InverseSqrt",
}


def intrinsic(emitter: Expressions, name: str, args: Sequence[Value], type: Scalar) -> Value:
    """The value of an intrinsic. Raises CapabilityError for one that the device lacks."""
    code, abilities = emitter.code, emitter.program.abilities
    operand = args[0].type
    if name in DIRECT:
        return DIRECT[name](code, args)
    if name in _EXTENDED:
        # the sign of a zero is not promised
        return copysign(code, (whole(code, name, args[0]), args[0]))
    if name == "reinterpret":
        return code.reinterpreted(args[0], type)
    if name == "sqrt" and operand in abilities.exact_square_root:
        return code.extended("Sqrt", type, *args)
    if name == "sqrt" and type is FLOAT32 and FLOAT64 in abilities.exact_square_root:
        # rounding twice is rounding once, as of quotients (`division`), and no root is subnormal
        wide = code.converted(args[0], FLOAT64)
        return code.plain_convert(code.extended("Sqrt", FLOAT64, wide), FLOAT32)
    if name == "fma" and operand in abilities.exact_fma:
        return code.exact(code.extended("Fma", type, *args))
    if (name, operand) in abilities.native and name in NATIVE:
        return code.extended(NATIVE[name], type, *args)
    return own(emitter, name, *args)


def whole(code: Code, name: str, a: Value) -> Value:
    """`floor`, `ceil` or `trunc`; the sign of a zero is left open."""
    if a.type in code.flushed and name in subnormals.WHOLE:
        return subnormals.WHOLE[name](code, a)
    return code.extended(_EXTENDED[name], a.type, a)


def own(emitter: Expressions, name: str, *args: Value) -> Value:
    """What the function of `library` for a type gives. Raises CapabilityError if there is none."""
    type = args[0].type
    function = f"{name}_{type.value}"
    if not library.has(function):
        raise CapabilityError(
            f"Vulkan has no {name} of {type.value} that keeps the documented bound\n"
            "  hint: choose a device with float64, on which the project's own functions run"
        )
    return emitter.library(function, *args)
