"""Conversions between scalar types, each with at most one rounding.

Halves are stored as bits; the functions of `library` that take them apart work on integers, because
Vulkan leaves the rounding of its own conversions to halves open.
"""

from __future__ import annotations

from collections.abc import Callable

from sarek_numba.ir.types import BOOL, FLOAT32, Scalar
from sarek_vulkan.code import Code, Value, signed

_HALVES = frozenset({Scalar.FLOAT16, Scalar.BFLOAT16})
Library = Callable[[str, Value], Value]


def cast(code: Code, value: Value, to: Scalar, library: Library) -> Value:
    """Integers modulo 2^n, floats to integers saturating with NaN giving 0, to bool `!= 0`.

    `library` calls a function of `library` by its name.
    """
    source = value.type
    if source is to:
        return value
    if source in _HALVES:
        wide = library(f"from_{source.value}", code.bits_of(value))
        return cast(code, wide, to, library)
    if to in _HALVES:
        return _to_half(code, value, to, library)
    if to is BOOL:
        return code.compare("ne", value, code.constant(source, 0))
    if source is BOOL:
        return code.select(value, code.constant(to, 1), code.constant(to, 0))
    if source.is_float and to.is_float:
        return code.converted(value, to)
    if source.is_float:
        return _saturated(code, value, to)
    if to.is_float:
        wide = code.resized(value, _at_least_32(source))
        return code.value("OpConvertSToF" if signed(source) else "OpConvertUToF", to, wide.id)
    return code.narrowed(value, to)


def _to_half(code: Code, value: Value, to: Scalar, library: Library) -> Value:
    """A half, rounded once from the value itself."""
    source = value.type
    if source is BOOL or source.bits < 32:
        value = cast(code, value, FLOAT32, library)  # exact
    elif source.is_integer and to is Scalar.FLOAT16:
        # exact below 2^24, and all from 65520 on is infinity, which rounding does not change
        value = cast(code, value, FLOAT32, library)
    elif source.is_integer:
        value = library(f"odd_{source.value}", value)
    bits = library(f"{to.value}_from_{value.type.value}", value)
    return code.reinterpreted(bits, to)


def _at_least_32(type: Scalar) -> Scalar:
    if type.bits >= 32:
        return type
    return Scalar.INT32 if signed(type) else Scalar.UINT32


def _saturated(code: Code, value: Value, to: Scalar) -> Value:
    """A float truncated to an integer; what lies outside goes to the nearest end, a NaN to 0."""
    source, wide = value.type, _at_least_32(to)
    low, high = float(to.minimum), float(to.maximum + 1)  # powers of two, so exact
    inside = code.value("OpConvertFToS" if signed(to) else "OpConvertFToU", wide, value.id)
    result = code.narrowed(inside, to)
    above = code.compare("ge", value, code.constant(source, high))
    result = code.select(above, code.constant(to, to.maximum), result)
    # all that truncates to the least number or lies below it
    below = code.compare("le", value, code.constant(source, low))
    result = code.select(below, code.constant(to, to.minimum), result)
    nan = code.compare("ne", value, value)
    return code.select(nan, code.constant(to, 0), result)
