"""Float operations with an operand that is a constant zero, spelled without that operation.

Mesa 22.3 (gallivm's lp_build_mul, lp_build_add, lp_build_div) takes x * 0.0 for 0.0 whatever x is,
0.0 + x for x, 0.0 / x for 0.0, and x / 0.0 for something undefined. What IEEE 754 says of them
takes a few operations on bits, so all devices get these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sarek_numba.ir.types import Scalar

if TYPE_CHECKING:
    from sarek_vulkan.code import Code, Value

_INFINITY = {Scalar.FLOAT32: 0x7F800000, Scalar.FLOAT64: 0x7FF0000000000000}


def with_zero(code: Code, name: str, a: Value, b: Value) -> Value | None:
    """`add`, `sub`, `mul` or `div` where one operand is a constant zero; None where it may stay."""
    left, right = (code.types.zeros.get(value.id) for value in (a, b))  # their sign bits
    match name:
        case "mul" if left is not None:
            return _result(code, b, left, 0, "infinity")
        case "mul" if right is not None:
            return _result(code, a, right, 0, "infinity")
        case "div" if left is not None:
            return _result(code, b, left, 0, "zero")
        case "div" if right is not None:
            return _result(code, a, right, _INFINITY[a.type], "zero")
        case "add" if left == 0:
            return _plain(code, b, b)
        case "add" if right == 0:
            return _plain(code, a, a)
        case "sub" if left == 0:
            return _plain(code, b, code.negate(b))
        case _:  # x - 0.0 and x + -0.0 are x
            return None


def _plain(code: Code, x: Value, result: Value) -> Value:
    """`result`, but 0.0 where x is a zero of either sign."""
    return code.select(code.is_zero(x), code.constant(x.type, 0.0), result)


def _result(code: Code, x: Value, sign: int, magnitude: int, invalid: str) -> Value:
    """`magnitude` with the sign of x, turned by `sign`; a NaN for a NaN or an `invalid` x."""
    bits = code.bits_of(x)
    type, top = bits.type, 1 << (bits.type.bits - 1)
    size = code.both(bits, code.constant(type, top - 1))
    infinity = code.constant(type, _INFINITY[x.type])
    if invalid == "infinity":
        wrong = code.compare("ge", size, infinity)
    else:
        wrong = code.either(code.is_zero(size), code.compare("gt", size, infinity))
    own = code.both(bits, code.constant(type, top))
    turned = code.bitwise("xor", own, code.constant(type, magnitude | (top if sign else 0)))
    nan = code.constant(type, _INFINITY[x.type] | _INFINITY[x.type] >> 1)
    return code.reinterpreted(code.select(wrong, nan, turned), x.type)
