"""Grants: what a kernel's results may deviate by, and why. See `sarek_numba.policy`.

Each function takes the reason, in words for whoever reads the report later, and raises PolicyError
without one.
"""

from __future__ import annotations

from sarek_numba.errors import PolicyError
from sarek_numba.policy import Consent, Grant

ROUNDINGS = ("float16", "bfloat16", "tf32", "bf16x3")


def relaxed_accumulation(why: str) -> Grant:
    """Sums of products may be added up in another order."""
    return _grant(Consent.RELAXED_ACCUMULATION, why)


def operand_rounding(to: str, why: str) -> Grant:
    """Operands of products may be rounded to "float16", "bfloat16", "tf32" or "bf16x3"."""
    if to not in ROUNDINGS:
        raise PolicyError(
            f"operand_rounding() takes {', '.join(map(repr, ROUNDINGS))}, not {to!r}\n"
            "  hint: name the format that operands are rounded to"
        )
    return _grant(Consent.OPERAND_ROUNDING, why, to)


def automatic_float_rewrite(why: str) -> Grant:
    """Products of matrices of floats may be rewritten without being asked for one by one."""
    return _grant(Consent.AUTOMATIC_FLOAT_REWRITE, why)


def fastmath(why: str) -> Grant:
    """Float operations may be contracted and reassociated, division, square root and functions be
    approximate, and subnormals be flushed. NaN and infinity keep their meaning.
    """
    return _grant(Consent.FASTMATH, why)


def _grant(consent: Consent, why: str, detail: str | None = None) -> Grant:
    if not isinstance(why, str) or not why.strip():
        raise PolicyError(
            f"{consent.value}() needs a reason, not {why!r}\n"
            f'  hint: sarek.accept.{consent.value}("the results feed a preview only")'
        )
    return Grant(consent, why.strip(), detail)
