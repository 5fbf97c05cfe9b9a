"""Division of floats, exactly rounded, and what is made of it: `fmod`, `//` and `%`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sarek_numba.ir.nodes import BinOp
from sarek_numba.ir.types import Scalar
from sarek_vulkan import functions
from sarek_vulkan.code import Value

if TYPE_CHECKING:
    from sarek_vulkan.expressions import Expressions


def float_division(emitter: Expressions, op: BinOp, a: Value, b: Value) -> Value:
    """`/`, `%` as C has it, and Python's `//` and `%`."""
    if op is BinOp.DIV:
        return divided(emitter, a, b)
    if op is BinOp.MOD:
        return functions.own(emitter, "fmod", a, b)
    rest = functions.own(emitter, "fmod", a, b)
    if op is BinOp.FLOORMOD:
        return _modulo(emitter, a, b, rest)
    return _floor(emitter, a, b, rest)


def divided(emitter: Expressions, a: Value, b: Value) -> Value:
    """The quotient, rounded correctly."""
    code, abilities = emitter.code, emitter.program.abilities
    if code.contracts or a.type in abilities.exact_division:
        return code.arithmetic("div", a, b)
    if a.type is Scalar.FLOAT32 and Scalar.FLOAT64 in abilities.exact_division:
        # float64 has more than twice float32's bits and two more, so rounding twice is rounding
        # once: S. A. Figueroa, "When is double rounding innocuous?", SIGNUM Newsletter 30 (1995).
        # A quotient of two numbers of 24 bits lies no nearer than 2^-49 of itself to the middle of
        # two neighbours that it does not hit, so that this holds for subnormal quotients too.
        wide = [code.converted(x, Scalar.FLOAT64) for x in (a, b)]
        return code.converted(code.arithmetic("div", *wide), Scalar.FLOAT32)
    return functions.own(emitter, "divide", a, b)


def _adjusts(emitter: Expressions, b: Value, rest: Value) -> Value:
    code = emitter.code
    differ = code.bitwise("xor", code.negative(b), code.negative(rest))
    return code.both(code.compare("ne", rest, code.constant(rest.type, 0.0)), differ)


def _modulo(emitter: Expressions, a: Value, b: Value, rest: Value) -> Value:
    code = emitter.code
    shifted = code.select(_adjusts(emitter, b, rest), code.add(rest, b), rest)
    zero = functions.copysign(code, (code.constant(a.type, 0.0), b))
    return code.select(code.is_zero(shifted), zero, shifted)


def _floor(emitter: Expressions, a: Value, b: Value, rest: Value) -> Value:
    """The quotient rounded down, by the formula of the specification."""
    code, type = emitter.code, a.type
    zero, one = code.constant(type, 0.0), code.constant(type, 1.0)
    quotient = divided(emitter, a, b)
    d = divided(emitter, code.sub(a, rest), b)
    d = code.select(_adjusts(emitter, b, rest), code.sub(d, one), d)
    whole = functions.whole(code, "floor", d)  # the sign of a zero is set below
    above = code.compare("gt", code.sub(d, whole), code.constant(type, 0.5))
    whole = code.select(above, code.add(whole, one), whole)
    signed_zero = functions.copysign(code, (zero, quotient))
    whole = code.select(code.is_zero(d), signed_zero, whole)
    return code.select(code.is_zero(b), quotient, whole)
