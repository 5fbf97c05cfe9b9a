"""The named functions of `Intrinsic` nodes, as one table: arity, operand families and exactness.

All arguments of an intrinsic have one type, which is also the result type, unless the entry says
otherwise. `exact` functions give the same bits on every device; the others have a measured bound
per device. `ir.semantics` gives each its meaning; every printer has a spelling for each.
"""

from __future__ import annotations

from dataclasses import dataclass

from sarek_numba.ir.types import Kind


@dataclass(frozen=True, slots=True)
class IntrinsicInfo:
    """`result` is None for the argument type, "bool", or "given" when the node's type decides."""

    name: str
    arity: int
    kinds: frozenset[Kind]
    exact: bool
    result: str | None = None


_F = frozenset({Kind.FLOAT})
_I = frozenset({Kind.SIGNED, Kind.UNSIGNED})
_FI = _F | _I
_ANY = _FI | {Kind.BOOL}

_TRANSCENDENTAL = """
    exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
    sinpi cospi erf erfc gamma lgamma cbrt rsqrt
""".split()


def _table() -> dict[str, IntrinsicInfo]:
    entries = [IntrinsicInfo(name, 1, _F, exact=False) for name in _TRANSCENDENTAL]
    entries += [IntrinsicInfo(name, 2, _F, exact=False) for name in ("pow", "atan2", "hypot")]
    entries += [
        IntrinsicInfo(name, 1, _F, exact=True)
        for name in ("sqrt", "floor", "ceil", "trunc", "rint")
    ]
    entries += [
        IntrinsicInfo("abs", 1, _FI, exact=True),
        IntrinsicInfo("fma", 3, _F, exact=True),
        IntrinsicInfo("fmod", 2, _F, exact=True),
        IntrinsicInfo("copysign", 2, _F, exact=True),
        IntrinsicInfo("nextafter", 2, _F, exact=True),
        # builtin min(a, b) is `b if b < a else a`; minimum and fmin are NumPy's
        IntrinsicInfo("min", 2, _ANY, exact=True),
        IntrinsicInfo("max", 2, _ANY, exact=True),
        IntrinsicInfo("minimum", 2, _FI, exact=True),
        IntrinsicInfo("maximum", 2, _FI, exact=True),
        IntrinsicInfo("fmin", 2, _FI, exact=True),
        IntrinsicInfo("fmax", 2, _FI, exact=True),
        IntrinsicInfo("isnan", 1, _F, exact=True, result="bool"),
        IntrinsicInfo("isinf", 1, _F, exact=True, result="bool"),
        IntrinsicInfo("isfinite", 1, _F, exact=True, result="bool"),
        IntrinsicInfo("signbit", 1, _F, exact=True, result="bool"),
        # base ** exponent modulo 2^n; a negative exponent gives 0 (±1 for bases ±1)
        IntrinsicInfo("ipow", 2, _I, exact=True),
        IntrinsicInfo("popcount", 1, _I, exact=True),
        IntrinsicInfo("clz", 1, _I, exact=True),
        # the same bits as another type of the same width
        IntrinsicInfo("reinterpret", 1, _FI, exact=True, result="given"),
    ]
    return {entry.name: entry for entry in entries}


INTRINSICS = _table()
