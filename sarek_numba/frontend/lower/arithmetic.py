"""Arithmetic of complex numbers on expressions: the formulas of NumPy, and of CPython."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sarek_numba.frontend.lower.operators import Bind, choose
from sarek_numba.ir.nodes import Binary, BinOp, Expr, Intrinsic, Unary, UnOp, constant
from sarek_numba.ir.types import BOOL
from sarek_numba.ir.typing import scalar_of
from sarek_numba.span import Span

Parts = tuple[Expr, Expr]


def both(function: Callable[..., Expr], *operands: Parts) -> Parts:
    """A function of real numbers on the real and on the imaginary parts."""
    real, imag = zip(*operands, strict=True)
    return function(*real), function(*imag)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`weak` is whether the numbers are Python's own. Everything made is at `span`."""

    bind: Bind
    weak: bool
    span: Span | None

    # --- real numbers -----------------------------------------------------------------------------

    def plus(self, a: Expr, b: Expr) -> Expr:
        return Binary(BinOp.ADD, a, b, span=self.span)

    def minus(self, a: Expr, b: Expr) -> Expr:
        return Binary(BinOp.SUB, a, b, span=self.span)

    def times(self, a: Expr, b: Expr) -> Expr:
        return Binary(BinOp.MUL, a, b, span=self.span)

    def over(self, a: Expr, b: Expr) -> Expr:
        return Binary(BinOp.DIV, a, b, span=self.span)

    def negative(self, a: Expr) -> Expr:
        return Unary(UnOp.NEG, a, span=self.span)

    def call(self, name: str, *args: Expr) -> Expr:
        """A function of `ir.intrinsics` that gives the type of its arguments."""
        return Intrinsic((), name, args, scalar_of(args[0]), span=self.span)

    def number(self, like: Expr, value: float) -> Expr:
        """A constant of the type of an expression."""
        return constant(scalar_of(like), value, self.span)

    def test(self, op: BinOp, a: Expr, b: Expr) -> Expr:
        """A comparison, or the conjunction or disjunction of two."""
        return Binary(op, a, b, span=self.span)

    def choose(self, condition: Expr, then: Expr, orelse: Expr) -> Expr:
        return choose(condition, then, orelse, self.span)

    # --- tests ------------------------------------------------------------------------------------

    def bound(self, z: Parts) -> Parts:
        """The number as one whose parts may be used often."""
        return both(self.bind, z)

    def equal(self, a: Parts, b: Parts) -> Expr:
        return self.test(BinOp.AND, *both(lambda x, y: self.test(BinOp.EQ, x, y), a, b))

    def differ(self, a: Parts, b: Parts) -> Expr:
        return self.test(BinOp.OR, *both(lambda x, y: self.test(BinOp.NE, x, y), a, b))

    def truth(self, z: Parts) -> Expr:
        return self.differ(z, (self.number(z[0], 0.0),) * 2)

    def falsehood(self, z: Parts) -> Expr:
        return self.equal(z, (self.number(z[0], 0.0),) * 2)

    def either(self, name: str, z: Parts) -> Expr:
        """Whether a test of `ir.intrinsics` holds for one of the parts."""
        return self.test(BinOp.OR, *both(lambda x: self.classify(name, x), z))

    def finite(self, z: Parts) -> Expr:
        return self.test(BinOp.AND, *both(lambda x: self.classify("isfinite", x), z))

    def classify(self, name: str, x: Expr) -> Expr:
        """A test of `ir.intrinsics`."""
        return Intrinsic((), name, (x,), BOOL, span=self.span)

    # --- products ---------------------------------------------------------------------------------

    def product(self, a: Parts, b: Parts) -> Parts:
        a = self.bound(a)
        b = a if b is a else self.bound(b)
        times = self.times
        real = self.minus(times(a[0], b[0]), times(a[1], b[1]))
        imag = self.plus(times(a[0], b[1]), times(a[1], b[0]))
        return real, imag

    def quotient(self, a: Parts, b: Parts) -> Parts:
        """Smith's method: scaled by the larger part of the divisor.

        NumPy multiplies by a reciprocal, CPython divides. A divisor of zero gives what NumPy gives.
        """
        a, b = self.bound(a), self.bound(b)
        plus, minus, times, over, bind = self.plus, self.minus, self.times, self.over, self.bind
        sizes = both(lambda x: self.call("abs", x), b)
        by_real = bind(self.test(BinOp.GE, *sizes))
        large = bind(self.choose(by_real, b[0], b[1]))
        ratio = bind(over(self.choose(by_real, b[1], b[0]), large))
        denominator = plus(large, times(self.choose(by_real, b[1], b[0]), ratio))
        first = bind(self.choose(by_real, a[0], a[1]))
        second = bind(self.choose(by_real, a[1], a[0]))
        real = plus(first, times(second, ratio))
        imag = self.choose(
            by_real, minus(second, times(first, ratio)), minus(times(first, ratio), second)
        )
        if self.weak:
            divisor = bind(denominator)
            quotients = over(real, divisor), over(imag, divisor)
        else:
            scale = bind(over(self.number(large, 1.0), denominator))
            quotients = times(real, scale), times(imag, scale)
        is_zero = bind(self.test(BinOp.EQ, large, self.number(large, 0.0)))
        zero = self.call("abs", b[0])
        return both(lambda q, part: self.choose(is_zero, over(part, zero), q), quotients, a)

    # --- powers -----------------------------------------------------------------------------------

    def whole_power(self, z: Parts, exponent: int) -> Parts:
        """A power by multiplications, as NumPy and CPython do it for small whole exponents."""
        one = self.number(z[0], 1.0), self.number(z[0], 0.0)
        if exponent == 0:
            return one
        if self.weak:
            found = self._by_squares(z, abs(exponent), one)
            return self.quotient(one, found) if exponent < 0 else found
        if exponent == 1:
            found = z
        elif exponent == 2:
            found = self.product(z, z)
        elif exponent == 3:
            found = self.product(z, self.product(z, z))
        else:
            found = self._by_squares(z, abs(exponent), one)
        if exponent < 0:
            found = self.quotient(one, found)
        of_zero = self.number(z[0], 0.0 if exponent > 0 else float("nan"))
        is_zero = self.bind(self.falsehood(z))
        return both(lambda part: self.choose(is_zero, of_zero, part), found)

    def _by_squares(self, z: Parts, exponent: int, one: Parts) -> Parts:
        found, square = one, z
        while exponent:
            if exponent & 1:
                found = self.product(found, square)
            exponent >>= 1
            if exponent:
                square = self.bound(self.product(square, square))
        return found
