"""The texts of `library`: see there."""

from __future__ import annotations

from collections.abc import Mapping

# A finite float is a significand, an integer whose bit $fraction is set, and an exponent as in the
# bits of a normal number; of a subnormal one the exponent is 0 or less.
FLOATS: Mapping[str, str] = {
    "significand": """
function significand_$n(a: $u) -> $u {
  let stated: $u = a & ${mask}$u
  if a > ${mask}$u {
    return stated | ${hidden}$u
  }
  return stated <<.u (clz.$u(stated) - ${lead}$u)
}""",
    "exponent": """
function exponent_$n(a: $u) -> i32 {
  if a > ${mask}$u {
    return i32(a >>.u ${fraction}i32)
  }
  return 1i32 - i32(clz.$u(a) - ${lead}$u)
}""",
    # A significand with one more bit, `rest` telling of those below, rounded to nearest even.
    "rounded": """
function rounded_$n(sign: $u, exponent: i32, given: $u, given_rest: bool) -> $t {
  if exponent >= ${exponents}i32 {
    return reinterpret.$t(sign | ${infinity}$u)
  }
  var significand: $u = given
  var rest: bool = given_rest
  var base: $u = 0$u
  if exponent <= 0i32 {
    let shift: i32 = 1i32 - exponent
    if shift > ${fraction}i32 + 2i32 {
      return reinterpret.$t(sign)
    }
    let lost: $u = given & ((1$u <<.u shift) - 1$u)
    rest = given_rest or lost != 0$u
    significand = given >>.u shift
  } else {
    base = $u(exponent - 1i32) <<.u ${fraction}i32
  }
  let kept: $u = significand >>.u 1i32
  let up: bool = (significand & 1$u) != 0$u and (rest or (kept & 1$u) != 0$u)
  return reinterpret.$t(sign | base + kept + (up ? 1$u : 0$u))
}""",
    # Restoring division, bit by bit.
    "divide": """
function divide_$n(x: $t, y: $t) -> $t {
  let left: $u = reinterpret.$u(x)
  let right: $u = reinterpret.$u(y)
  let sign: $u = (left ^ right) & ${sign}$u
  let a: $u = left & ${magnitude}$u
  let b: $u = right & ${magnitude}$u
  if a > ${infinity}$u or b > ${infinity}$u or a == b and (a == 0$u or a == ${infinity}$u) {
    return $nan
  }
  if a == ${infinity}$u or b == 0$u {
    return reinterpret.$t(sign | ${infinity}$u)
  }
  if b == ${infinity}$u or a == 0$u {
    return reinterpret.$t(sign)
  }
  var rest: $u = @significand_$n:$u(a)
  let divisor: $u = @significand_$n:$u(b)
  var exponent: i32 = @exponent_$n:i32(a) - @exponent_$n:i32(b) + ${bias}i32
  if rest < divisor {
    rest = rest <<.u 1i32
    exponent = exponent - 1i32
  }
  var quotient: $u = 0$u
  for number: i32 in range.u(0i32, ${fraction}i32 + 2i32, 1i32) {
    quotient = quotient <<.u 1i32
    if rest >= divisor {
      rest = rest - divisor
      quotient = quotient | 1$u
    }
    rest = rest <<.u 1i32
  }
  return @rounded_$n:$t(sign, exponent, quotient, rest != 0$u)
}""",
    # W. Kahan's bit by bit: root + root + bit is taken from the rest while it fits.
    "sqrt": """
function sqrt_$n(x: $t) -> $t {
  let a: $u = reinterpret.$u(x)
  if (a & ${magnitude}$u) == 0$u or a == ${infinity}$u {
    return x
  }
  if a > ${infinity}$u {
    return $nan
  }
  let exponent: i32 = @exponent_$n:i32(a) - ${bias}i32
  var rest: $u = @significand_$n:$u(a) <<.u (1i32 + (exponent & 1i32))
  var root: $u = 0$u
  var taken: $u = 0$u
  var bit: $u = ${root}$u
  while bit != 0$u {
    let part: $u = taken + bit
    if part <= rest {
      taken = part + bit
      rest = rest - part
      root = root + bit
    }
    rest = rest <<.u 1i32
    bit = bit >>.u 1i32
  }
  let half: i32 = exponent >>.u 1i32
  return @rounded_$n:$t(0$u, half + ${bias}i32, root, rest != 0$u)
}""",
    "fmod": """
function fmod_$n(x: $t, y: $t) -> $t {
  let sign: $u = reinterpret.$u(x) & ${sign}$u
  let a: $u = reinterpret.$u(x) & ${magnitude}$u
  let b: $u = reinterpret.$u(y) & ${magnitude}$u
  if b == 0$u or a >= ${infinity}$u or b > ${infinity}$u {
    return $nan
  }
  if a < b {
    return x
  }
  let divisor: $u = @significand_$n:$u(b)
  let least: i32 = @exponent_$n:i32(b)
  var rest: $u = @significand_$n:$u(a)
  var exponent: i32 = @exponent_$n:i32(a)
  while exponent > least {
    if rest >= divisor {
      rest = rest - divisor
    }
    rest = rest <<.u 1i32
    exponent = exponent - 1i32
  }
  if rest >= divisor {
    rest = rest - divisor
  }
  if rest == 0$u {
    return reinterpret.$t(sign)
  }
  let shift: i32 = i32(clz.$u(rest)) - ${lead}i32
  rest = rest <<.u shift
  exponent = exponent - shift
  if exponent > 0i32 {
    return reinterpret.$t(sign | ($u(exponent) <<.u ${fraction}i32) | (rest & ${mask}$u))
  }
  return reinterpret.$t(sign | (rest >>.u (1i32 - exponent)))
}""",
    # Python's `//` and `%`, of the two above: `ir.semantics`.
    "floor_mod": """
function floor_mod_$n(x: $t, y: $t) -> $t {
  let rest: $t = @fmod_$n:$t(x, y)
  if rest == 0.0$t {
    return reinterpret.$t(reinterpret.$u(y) & ${sign}$u)
  }
  return ((y < 0.0$t) != (rest < 0.0$t) ? rest + y : rest)
}""",
    "floor_div": """
function floor_div_$n(x: $t, y: $t) -> $t {
  let quotient: $t = @divide_$n:$t(x, y)
  if y == 0.0$t {
    return quotient
  }
  let rest: $t = @fmod_$n:$t(x, y)
  let d: $t = @divide_$n:$t(x - rest, y)
  let turned: bool = rest != 0.0$t and (y < 0.0$t) != (rest < 0.0$t)
  let whole: $t = (turned ? d - 1.0$t : d)
  if whole == 0.0$t {
    return reinterpret.$t(reinterpret.$u(quotient) & ${sign}$u)
  }
  let below: $t = floor.$t(whole)
  return (whole - below > 0.5$t ? below + 1.0$t : below)
}""",
    "nextafter": """
function nextafter_$n(x: $t, y: $t) -> $t {
  let from: $u = reinterpret.$u(x)
  let to: $u = reinterpret.$u(y)
  let a: $u = from & ${magnitude}$u
  if a > ${infinity}$u or (to & ${magnitude}$u) > ${infinity}$u {
    return $nan
  }
  if x == y {
    return y
  }
  if a == 0$u {
    return reinterpret.$t(to & ${sign}$u | 1$u)
  }
  let grows: bool = (x < y) == (from < ${sign}$u)
  return reinterpret.$t((grows ? from + 1$u : from - 1$u))
}""",
}

# The product and the addend as integers of more than twice a significand's bits, aligned; what is
# shifted out of the lesser one leaves a mark in its last bit, far below those that count.
FMA: Mapping[str, str] = {
    "jammed": """
function jammed(x: u64, shift: i32) -> u64 {
  if shift == 0i32 {
    return x
  }
  if shift > 63i32 {
    return (x != 0u64 ? 1u64 : 0u64)
  }
  let lost: u64 = x & ((1u64 <<.u shift) - 1u64)
  return (x >>.u shift) | (lost != 0u64 ? 1u64 : 0u64)
}""",
    "fma_float32": """
function fma_float32(x: f32, y: f32, z: f32) -> f32 {
  let a: u32 = reinterpret.u32(x) & 2147483647u32
  let b: u32 = reinterpret.u32(y) & 2147483647u32
  let c: u32 = reinterpret.u32(z) & 2147483647u32
  if a >= 2139095040u32 or b >= 2139095040u32 or c >= 2139095040u32 or a == 0u32 or b == 0u32 {
    return x * y + z
  }
  let sign: u32 = (reinterpret.u32(x) ^ reinterpret.u32(y)) & 2147483648u32
  let addend_sign: u32 = reinterpret.u32(z) & 2147483648u32
  let factor: u64 = u64(@significand_float32:u32(a))
  var product: u64 = (factor * u64(@significand_float32:u32(b))) <<.u 14i32
  var unit: i32 = @exponent_float32:i32(a) + @exponent_float32:i32(b) - 314i32
  var addend: u64 = u64(@significand_float32:u32(c)) <<.u 37i32
  let addend_unit: i32 = @exponent_float32:i32(c) - 187i32
  if c != 0u32 {
    if addend_unit > unit {
      product = @jammed:u64(product, addend_unit - unit)
      unit = addend_unit
    } else {
      addend = @jammed:u64(addend, unit - addend_unit)
    }
  }
  var total: u64 = product + addend
  var total_sign: u32 = sign
  if sign != addend_sign {
    total = (product >= addend ? product - addend : addend - product)
    total_sign = (product >= addend ? sign : addend_sign)
  }
  if total == 0u64 {
    return 0.0f32
  }
  let zeros: i32 = i32(clz.u64(total))
  total = total <<.u zeros
  let exponent: i32 = unit + 190i32 - zeros
  let kept: u32 = u32(total >>.u 39i32)
  let rest: bool = (total & 549755813887u64) != 0u64
  return @rounded_float32:f32(total_sign, exponent, kept, rest)
}""",
    "product_high": """
function product_high(a: u64, b: u64) -> u64 {
  let a_low: u64 = a & 4294967295u64
  let b_low: u64 = b & 4294967295u64
  let a_high: u64 = a >>.u 32i32
  let b_high: u64 = b >>.u 32i32
  let first: u64 = a_high * b_low + ((a_low * b_low) >>.u 32i32)
  let second: u64 = a_low * b_high + (first & 4294967295u64)
  return a_high * b_high + (first >>.u 32i32) + (second >>.u 32i32)
}""",
    "jammed_pair": """
function jammed_pair(high: u64, low: u64, shift: i32) -> tuple<u64, u64> {
  if shift == 0i32 {
    return tuple(high, low)
  }
  if shift >= 64i32 {
    let mark: u64 = (low != 0u64 ? 1u64 : 0u64)
    return tuple(0u64, @jammed:u64(high, shift - 64i32) | mark)
  }
  let moved: u64 = (low >>.u shift) | (high <<.u (64i32 - shift))
  let lost: u64 = low & ((1u64 <<.u shift) - 1u64)
  return tuple(high >>.u shift, moved | (lost != 0u64 ? 1u64 : 0u64))
}""",
    "fma_float64": """
function fma_float64(x: f64, y: f64, z: f64) -> f64 {
  let infinity: u64 = 9218868437227405312u64
  let a: u64 = reinterpret.u64(x) & 9223372036854775807u64
  let b: u64 = reinterpret.u64(y) & 9223372036854775807u64
  let c: u64 = reinterpret.u64(z) & 9223372036854775807u64
  if a >= infinity or b >= infinity or c >= infinity or a == 0u64 or b == 0u64 {
    return x * y + z
  }
  let sign: u64 = (reinterpret.u64(x) ^ reinterpret.u64(y)) & 9223372036854775808u64
  let addend_sign: u64 = reinterpret.u64(z) & 9223372036854775808u64
  let left: u64 = @significand_float64:u64(a)
  let right: u64 = @significand_float64:u64(b)
  let whole: u64 = left * right
  var p: u64 = (@product_high:u64(left, right) <<.u 20i32) | (whole >>.u 44i32)
  var q: u64 = whole <<.u 20i32
  var unit: i32 = @exponent_float64:i32(a) + @exponent_float64:i32(b) - 2170i32
  var r: u64 = @significand_float64:u64(c) <<.u 8i32
  var s: u64 = 0u64
  let addend_unit: i32 = @exponent_float64:i32(c) - 1147i32
  if c != 0u64 {
    if addend_unit > unit {
      let high: u64, low: u64 = call jammed_pair(p, q, addend_unit - unit)
      p = high
      q = low
      unit = addend_unit
    } else {
      let upper: u64, lower: u64 = call jammed_pair(r, s, unit - addend_unit)
      r = upper
      s = lower
    }
  }
  var total: u64 = 0u64
  var below: u64 = 0u64
  var total_sign: u64 = sign
  if sign == addend_sign {
    below = q + s
    total = p + r + (below < q ? 1u64 : 0u64)
  } else {
    if p > r or p == r and q >= s {
      below = q - s
      total = p - r - (q < s ? 1u64 : 0u64)
    } else {
      below = s - q
      total = r - p - (s < q ? 1u64 : 0u64)
      total_sign = addend_sign
    }
  }
  if total == 0u64 {
    if below == 0u64 {
      return 0.0
    }
    total = below
    below = 0u64
    unit = unit - 64i32
  }
  let zeros: i32 = i32(clz.u64(total))
  if zeros > 0i32 {
    total = (total <<.u zeros) | (below >>.u (64i32 - zeros))
    below = below <<.u zeros
  }
  let rest: bool = (total & 1023u64) != 0u64 or below != 0u64
  let exponent: i32 = unit + 1150i32 - zeros
  return @rounded_float64:f64(total_sign, exponent, total >>.u 10i32, rest)
}""",
}

INTEGERS = """
function ipow_$n(base: $t, exponent: $t) -> $t {
  var result: $t = 1$t
  var power: $t = base
  var rest: $t = exponent
  while rest != 0$t {
    if (rest & 1$t) != 0$t {
      result = result * power
    }
    power = power * power
    rest = rest >>.u 1i32
  }
  return result
}"""

SIGNED = """
function ipow_$n(base: $t, exponent: $t) -> $t {
  if exponent < 0$t {
    if base == 1$t or base == -1$t and (exponent & 1$t) == 0$t {
      return 1$t
    }
    return (base == -1$t ? -1$t : 0$t)
  }
  var result: $t = 1$t
  var power: $t = base
  var rest: $t = exponent
  while rest != 0$t {
    if (rest & 1$t) != 0$t {
      result = result * power
    }
    power = power * power
    rest = rest >>.u 1i32
  }
  return result
}"""
