"""Conversions to and from halves, as functions of Sarek IR on the bits of the numbers.

A half is its bits, a uint16. `TEXTS` has each function as text: `from_float16` gives the float32
that some bits name, `float16_from_float64` the bits of the nearest half, ties to even, overflow to
infinity. `odd_int64` gives an integer as a float32 whose last bit tells whether anything was lost:
what rounds that to a bfloat16 rounds the integer itself. All are one expression after another,
without branches, so that compilers of vectors take them, and work on integers, so that no device's
own conversions or subnormal numbers matter. The one exception is a sum of floats, which is exactly
rounded everywhere: of a number below the least normal half and one so large that the units of the
sum are those of subnormal halves. It loses nothing where subnormal numbers are taken for zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from string import Template

from sarek_numba.ir.nodes import HelperFunction
from sarek_numba.ir.parse import parse
from sarek_numba.ir.types import HALVES, Scalar

FRACTION = {Scalar.FLOAT32: 23, Scalar.FLOAT64: 52, Scalar.FLOAT16: 10, Scalar.BFLOAT16: 7}
_FLOATS = (Scalar.FLOAT32, Scalar.FLOAT64)
_WIDE = tuple(s for s in Scalar if s.is_integer and s.bits >= 32)

# Numbers below 2**-14 are their fraction as an integer, with another exponent.
_FROM_FLOAT16 = """
function from_float16(x: u16) -> f32 {
  let given: u32 = u32(x)
  let sign: u32 = (given & 32768u32) <<.u 16i32
  let a: u32 = given & 32767u32
  let shifted: u32 = a <<.u 13i32
  let number: u32 = reinterpret.u32(f32(i32(a)))
  let small: u32 = (a == 0u32 ? 0u32 : number - 201326592u32)
  let large: u32 = (a < 31744u32 ? shifted + 939524096u32 : shifted | 2139095040u32)
  return reinterpret.f32(sign | (a < 1024u32 ? small : large))
}"""

_FROM_BFLOAT16 = """
function from_bfloat16(x: u16) -> f32 {
  return reinterpret.f32(u32(x) <<.u 16i32)
}"""

# Exponents are those of float32, so subnormal numbers need nothing of their own.
_BFLOAT16_FROM_FLOAT32 = """
function bfloat16_from_float32(x: f32) -> u16 {
  let given: u32 = reinterpret.u32(x)
  let kept: u32 = given >>.u 16i32
  let rounded: u32 = (given + 32767u32 + (kept & 1u32)) >>.u 16i32
  return u16(((given & 2147483647u32) > 2139095040u32 ? kept | 64u32 : rounded))
}"""

# A carry out of the fraction is the next exponent, and out of the largest, infinity.
_TO_HALF = """
function ${half}_from_$n(x: $t) -> u16 {
  let given: $u = reinterpret.$u(x)
  let sign: $u = (given >>.u ${to_sign}i32) & 32768$u
  let a: $u = given & ${magnitude}$u
  let raised: $u = a - ${rebias}$u + ${below}$u + ((a >>.u ${cut}i32) & 1$u)
  let units: $u = reinterpret.$u(reinterpret.$t(a) + reinterpret.$t(${unit}$u))
  let special: $u = (a > ${infinity}$u ? ${quiet}$u : ${top}$u)
  let large: $u = (a < ${beyond}$u ? raised >>.u ${cut}i32 : special)
  return u16(sign | (a < ${normal}$u ? units - ${unit}$u : large))
}"""

_ODD = """
function odd_$n(x: $t) -> f32 {
  let negative: bool = $negative
  let a: $u = (negative ? $u(-x) : $u(x))
  let zeros: $u = clz.$u(a)
  let shift: $u = (zeros < ${kept}$u ? ${kept}$u - zeros : 0$u)
  let kept: $u = (a >>.u shift) <<.u shift
  let odd: $u = (kept == a ? a : kept | (1$u <<.u shift))
  let number: f32 = f32(odd)
  return (negative ? -number : number)
}"""


def _bias(type: Scalar) -> int:
    return (1 << (type.bits - FRACTION[type] - 2)) - 1


def _words(half: Scalar, source: Scalar) -> dict[str, object]:
    """The words of a conversion from a float to a half."""
    fraction, cut = FRACTION[source], FRACTION[source] - FRACTION[half]
    shift = _bias(source) - _bias(half)
    infinity = (1 << (source.bits - 1)) - (1 << fraction)
    top = ((1 << (15 - FRACTION[half])) - 1) << FRACTION[half]
    return {
        "half": half.value,
        "n": source.value,
        "t": f"f{source.bits}",
        "u": f"u{source.bits}",
        "to_sign": source.bits - 16,
        "magnitude": (1 << (source.bits - 1)) - 1,
        "infinity": infinity,
        "cut": cut,  # bits that are lost
        "below": (1 << (cut - 1)) - 1,
        "rebias": shift << fraction,
        "normal": (shift + 1) << fraction,  # the least normal half
        "beyond": (_bias(source) + _bias(half) + 1) << fraction,
        "top": top,
        "quiet": top | 1 << (FRACTION[half] - 1),
        # the power of two whose last bit is worth the least half
        "unit": (shift + 1 + fraction - FRACTION[half]) << fraction,
    }


def _texts() -> dict[str, str]:
    texts = {
        "from_float16": _FROM_FLOAT16,
        "from_bfloat16": _FROM_BFLOAT16,
        "bfloat16_from_float32": _BFLOAT16_FROM_FLOAT32,
    }
    for half in sorted(HALVES, key=lambda each: each.value):
        for source in _FLOATS:
            text = Template(_TO_HALF).substitute(_words(half, source))
            texts.setdefault(f"{half.value}_from_{source.value}", text)
    for type in _WIDE:
        words: dict[str, object] = {
            "n": type.value,
            "t": f"{type.value[0]}{type.bits}",
            "u": f"u{type.bits}",
            "kept": type.bits - FRACTION[Scalar.FLOAT32] - 1,
            "negative": f"x < 0i{type.bits}" if type.minimum else "false",
        }
        texts[f"odd_{type.value}"] = Template(_ODD).substitute(words)
    return texts


TEXTS: Mapping[str, str] = _texts()


@cache
def function(name: str) -> HelperFunction:
    """A function by its name, one object for each. Raises KeyError."""
    return parse(f"kernel halves index 32 {{\n{TEXTS[name]}\n}}\n").functions[0]
