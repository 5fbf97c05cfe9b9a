"""Polynomials with integer coefficients over numbered symbols: what an index is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Monomial = tuple[int, ...]  # numbers of symbols in order, one as often as its power


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of monomials; sorted and without zeros, so that equal ones are equal data."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    def __add__(self, other: Polynomial) -> Polynomial:
        return _sum((*self.terms, *other.terms))

    def __neg__(self) -> Polynomial:
        return Polynomial(tuple((monomial, -factor) for monomial, factor in self.terms))

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial) -> Polynomial:
        return _sum(
            (tuple(sorted((*left, *right))), factor * by)
            for left, factor in self.terms
            for right, by in other.terms
        )

    def __bool__(self) -> bool:
        return bool(self.terms)

    @property
    def symbols(self) -> frozenset[int]:
        """All symbols in it."""
        return frozenset(symbol for monomial, _ in self.terms for symbol in monomial)

    @property
    def constant(self) -> int | None:
        """Its value, if it has no symbol."""
        if not self.terms:
            return 0
        return self.terms[0][1] if self.terms[-1][0] == () else None

    def coefficient(self, symbol: int) -> Polynomial:
        """What the symbol is multiplied by, where it stands alone; see `degree`."""
        return _sum((_less(monomial, (symbol,)), factor) for monomial, factor in self._of(symbol))

    def degree(self, symbols: frozenset[int]) -> int:
        """The most of these symbols that are multiplied with each other."""
        return max((sum(s in symbols for s in monomial) for monomial, _ in self.terms), default=0)

    def without(self, symbols: frozenset[int]) -> Polynomial:
        """The terms that have none of the symbols."""
        return Polynomial(tuple(t for t in self.terms if not symbols & frozenset(t[0])))

    def replaced(self, symbol: int, by: Polynomial) -> Polynomial:
        """The polynomial with another in place of a symbol."""
        result = self.without(frozenset((symbol,)))
        for monomial, factor in self._of(symbol):
            part = Polynomial(((tuple(s for s in monomial if s != symbol), factor),))
            for _ in range(monomial.count(symbol)):
                part = part * by
            result = result + part
        return result

    def divided(self, by: Polynomial) -> tuple[Polynomial, Polynomial]:
        """Quotient and the terms that are left, by a divisor of one term; else all is left."""
        if len(by.terms) != 1:
            return (ONE, ZERO) if by == self and by else (ZERO, self)
        (divisor, number), quotient, rest = by.terms[0], [], []
        for monomial, factor in self.terms:
            if factor % number == 0 and _contains(monomial, divisor):
                quotient.append((_less(monomial, divisor), factor // number))
            else:
                rest.append((monomial, factor))
        return _sum(quotient), _sum(rest)

    def value(self, numbers: Mapping[int, int]) -> int:
        """Its value, given that of each symbol."""
        total = 0
        for monomial, factor in self.terms:
            for symbol in monomial:
                factor *= numbers[symbol]
            total += factor
        return total

    def _of(self, symbol: int) -> list[tuple[Monomial, int]]:
        return [term for term in self.terms if symbol in term[0]]


def _sum(terms: Iterable[tuple[Monomial, int]]) -> Polynomial:
    total: dict[Monomial, int] = {}
    for monomial, factor in terms:
        total[monomial] = total.get(monomial, 0) + factor
    return Polynomial(tuple(sorted((m, f) for m, f in total.items() if f)))


def _contains(monomial: Monomial, part: Monomial) -> bool:
    return all(monomial.count(symbol) >= part.count(symbol) for symbol in part)


def _less(monomial: Monomial, part: Monomial) -> Monomial:
    left = list(monomial)
    for symbol in part:
        left.remove(symbol)
    return tuple(left)


def number(value: int) -> Polynomial:
    return Polynomial((((), value),)) if value else Polynomial()


def symbol(of: int) -> Polynomial:
    return Polynomial((((of,), 1),))


ZERO, ONE = number(0), number(1)
