"""What a driver does to subnormal numbers that SPIR-V lets it do, undone by exact operations.

Without `DenormPreserve` a device may take subnormal operands for zeros and make subnormal results
zeros (Vulkan specification, "Precision of Core SPIR-V Instructions"). NVIDIA's driver, which does
not offer that mode, keeps them in sums, products and bits, but takes float32 operands for zeros in
comparisons, in roundings to whole numbers and in conversions to float64, and makes results zeros in
conversions to float32 and in what it takes for a minimum or maximum: a choice between two numbers
that are compared (docs/spirv.md). Each is made here of operations that keep them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sarek_numba.ir.types import FLOAT32, FLOAT64, Scalar

if TYPE_CHECKING:
    from sarek_vulkan.code import Code, Value

_SCALE = 2.0**64  # makes every subnormal float32 a normal number
_LEAST_NORMAL = 2.0**-126
_LARGEST = (2 - 2.0**-23) * 2.0**127
_LEAST_BITS = 149  # the least subnormal float32 is 2^-149
_WHOLE = 2.0**52  # added to a float64 below it, leaves the nearest integer in the low bits


def compare(code: Code, name: str, a: Value, b: Value) -> Value:
    """A comparison of float32 by its instruction's name.

    Taking subnormal numbers for zeros keeps the order but for pairs of them, and so does scaling
    but for pairs that both become infinite. So one of two comparisons, of the numbers and of the
    scaled numbers, tells any two apart; where a NaN takes part, both say the same. With a normal
    constant one of the two is enough, but the numbers themselves are never compared alone.
    """
    if a.id == b.id:
        return code.plain_compare(name, a, b)
    constants = [code.types.floats.get(x.id) for x in (a, b)]
    for constant in constants:
        if constant is not None and abs(constant) >= _LEAST_NORMAL:
            scale = _SCALE if abs(constant) < _SCALE else 1 / _SCALE
            return code.plain_compare(name, _scaled(code, a, scale), _scaled(code, b, scale))
    scaled = code.plain_compare(name, _scaled(code, a), _scaled(code, b))
    if 0.0 in constants:  # which keeps its place wherever the other one is scaled to
        return scaled
    plain = code.plain_compare(name, a, b)
    tells_apart = name in ("OpFUnordNotEqual", "OpFOrdLessThan", "OpFOrdGreaterThan")
    return code.either(plain, scaled) if tells_apart else code.both(plain, scaled)


def converted(code: Code, value: Value, to: Scalar) -> Value:
    """A float32 as a float64 or the other way round."""
    return _widened(code, value) if to is FLOAT64 else _narrowed(code, value)


def floor(code: Code, a: Value) -> Value:
    """The largest integer that is not above; the sign of a zero is left open."""
    whole = code.extended("Trunc", a.type, a)
    return code.select(
        code.compare("lt", a, whole), code.sub(whole, code.constant(a.type, 1.0)), whole
    )


def ceil(code: Code, a: Value) -> Value:
    """The least integer that is not below; the sign of a zero is left open."""
    whole = code.extended("Trunc", a.type, a)
    return code.select(
        code.compare("gt", a, whole), code.add(whole, code.constant(a.type, 1.0)), whole
    )


def _scaled(code: Code, a: Value, scale: float = _SCALE) -> Value:
    known = code.types.floats.get(a.id)
    if known == 0.0:
        return a
    if known is not None and _LEAST_NORMAL <= abs(known * scale) <= _LARGEST:
        return code.constant(a.type, known * scale)
    return code.mul(a, code.constant(a.type, scale))


def _widened(code: Code, a: Value) -> Value:
    """A subnormal number is scaled, widened and scaled back, all of it exact."""
    wide = code.plain_convert(a, FLOAT64)
    scaled = code.plain_convert(_scaled(code, a), FLOAT64)
    small = code.mul(scaled, code.constant(FLOAT64, 1 / _SCALE))
    return code.select(_is_tiny(code, a), small, wide)


def _narrowed(code: Code, a: Value) -> Value:
    """A result below the normal numbers is that many of the least number, rounded to even."""
    plain = code.plain_convert(a, FLOAT32)
    bits = code.bits_of(a)
    sign = code.both(bits, code.constant(bits.type, 1 << 63))
    size = code.reinterpreted(code.bitwise("xor", bits, sign), FLOAT64)
    count = code.add(
        code.mul(size, code.constant(FLOAT64, 2.0**_LEAST_BITS)), code.constant(FLOAT64, _WHOLE)
    )
    low = code.resized(code.bits_of(count), Scalar.UINT32)
    high = code.resized(code.shifted("right", sign, code.constant(sign.type, 32)), Scalar.UINT32)
    small = code.reinterpreted(code.either(low, high), FLOAT32)
    return code.select(_is_tiny(code, a), small, plain)


def _is_tiny(code: Code, a: Value) -> Value:
    """Whether |a| is below the normal numbers of float32, by comparisons with those."""
    least = code.constant(a.type, _LEAST_NORMAL)
    opposite = code.constant(a.type, -_LEAST_NORMAL)
    return code.both(code.compare("lt", a, least), code.compare("gt", a, opposite))


WHOLE = {"floor": floor, "ceil": ceil}
