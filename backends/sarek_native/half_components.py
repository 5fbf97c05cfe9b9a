"""Halves as numbers of LLVM, by operations that all CPUs have and that become vectors.

LLVM's own conversions of halves are calls into a library where the CPU has no instruction, which
this process need not have. A half of 16 bits is moved to the place of a float32's exponent and
scaled, which is exact; a float64 is rounded to whole units of the half's last place by an addition
that carries the rest out of its 53 bits, once, and then moved back, which is exact again.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from sarek_numba.ir.types import Scalar


@dataclass(frozen=True)
class _Format:
    """`digits` of the significand behind the first, the least exponent, the distance of biases
    from float32, and a NaN.
    """

    digits: int
    least: int
    scale: int
    nan: int

    @property
    def shift(self) -> int:
        """How many bits fewer than a float32 there are behind the point."""
        return 23 - self.digits

    @property
    def end(self) -> float:
        """The power of two from which on there is infinity alone."""
        return 2.0 ** (1 - self.least + 1)

    @property
    def infinity(self) -> int:
        return 0x7FFF >> self.digits << self.digits


_FORMATS = {
    Scalar.FLOAT16: _Format(10, -14, 112, 0x7E00),
    Scalar.BFLOAT16: _Format(7, -126, 0, 0x7FC0),
}
_FINITE = 2.0**200  # larger numbers are infinity as either half


def _bits(value: float) -> str:
    """A constant of LLVM, which it writes as the bits of a float64."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def widened(type: Scalar, bits: str, name: str, prefix: str) -> str:
    """Instructions that make a double called `name` of the `bits` of a half."""
    form = _FORMATS[type]
    p = f"%{prefix}.half"
    scaled = f"""
  {p}.word = zext i16 {bits} to i32
  {p}.sign = shl i32 {p}.word, 16
  {p}.side = and i32 {p}.sign, -2147483648
  {p}.rest = and i32 {p}.word, 32767
  {p}.moved = shl i32 {p}.rest, {form.shift}
  {p}.float = bitcast i32 {p}.moved to float
  {p}.scaled = fmul float {p}.float, {_bits(2.0**form.scale)}
  {p}.value = bitcast float {p}.scaled to i32
  {p}.outside = icmp uge i32 {p}.rest, {form.infinity}
  {p}.special = or i32 {p}.moved, 2139095040
  {p}.magnitude = select i1 {p}.outside, i32 {p}.special, i32 {p}.value
  {p}.signed = or i32 {p}.magnitude, {p}.side
  {p}.whole = bitcast i32 {p}.signed to float
  {name} = fpext float {p}.whole to double"""
    return scaled.strip("\n")


def narrowed(type: Scalar, value: str, name: str) -> str:
    """Instructions that make an i16 called `name`, the bits of the half nearest to a double."""
    form = _FORMATS[type]
    carry = 1.5 * 2.0 ** (52 - form.digits)
    rounded = f"""
  %h.bits = bitcast double {value} to i64
  %h.power.bits = and i64 %h.bits, 9218868437227405312
  %h.power = bitcast i64 %h.power.bits to double
  %h.low = fcmp olt double %h.power, {_bits(2.0**form.least)}
  %h.least = select i1 %h.low, double {_bits(2.0**form.least)}, double %h.power
  %h.high = fcmp ogt double %h.least, {_bits(_FINITE)}
  %h.unit = select i1 %h.high, double {_bits(_FINITE)}, double %h.least
  %h.carry = fmul double %h.unit, {_bits(carry)}
  %h.clear = and i64 %h.bits, 9223372036854775807
  %h.size = bitcast i64 %h.clear to double
  %h.up = fadd double %h.size, %h.carry
  %h.rounded = fsub double %h.up, %h.carry
  %h.inside = fcmp olt double %h.rounded, {_bits(form.end)}
  %h.finite = select i1 %h.inside, double %h.rounded, double 0x0000000000000000
  %h.float = fptrunc double %h.finite to float
  %h.scaled = fmul float %h.float, {_bits(2.0**-form.scale)}
  %h.word = bitcast float %h.scaled to i32
  %h.moved = lshr i32 %h.word, {form.shift}
  %h.known = select i1 %h.inside, i32 %h.moved, i32 {form.infinity}
  %h.nan = fcmp uno double {value}, {value}
  %h.magnitude = select i1 %h.nan, i32 {form.nan}, i32 %h.known
  %h.short = trunc i32 %h.magnitude to i16
  %h.top = lshr i64 %h.bits, 48
  %h.top.short = trunc i64 %h.top to i16
  %h.sign = and i16 %h.top.short, -32768
  {name} = or i16 %h.short, %h.sign"""
    return rounded.strip("\n")
