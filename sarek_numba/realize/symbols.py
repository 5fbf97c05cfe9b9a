"""Numbers that are known now and remember what they are made of.

A capture gives them to a block of a program: they are ints and floats, which launches take, and a
launch that is taken down has the symbolic numbers instead. What Python decides by their values is
decided once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sarek_numba.realize.data import OPERATIONS, Operation, Symbolic


def _operator(name: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    def apply(self: Any, other: Any) -> Any:
        if isinstance(other, bool) or not isinstance(other, int | float):
            return NotImplemented
        left, right = (other, self) if reflected else (self, other)
        value = OPERATIONS[name](_plain(left), _plain(right))
        return known(value, Operation(name, symbol_of(left), symbol_of(right)))

    return apply


class _Known:
    """Arithmetic of numbers that remember."""

    symbol: Symbolic

    __add__, __radd__ = _operator("+"), _operator("+", True)
    __sub__, __rsub__ = _operator("-"), _operator("-", True)
    __mul__, __rmul__ = _operator("*"), _operator("*", True)
    __floordiv__, __rfloordiv__ = _operator("//"), _operator("//", True)
    __truediv__, __rtruediv__ = _operator("/"), _operator("/", True)
    __mod__, __rmod__ = _operator("%"), _operator("%", True)

    def __neg__(self) -> Any:
        return 0 - self

    def __reduce__(self) -> Any:
        return type(_plain(self)), (_plain(self),)


class KnownInt(_Known, int):
    """An int that is a symbolic number."""


class KnownFloat(_Known, float):
    """A float that is a symbolic number."""


def known(value: Any, symbol: Symbolic) -> Any:
    """A number that stands for a symbolic one, whose value it is now."""
    made: Any = KnownInt(value) if isinstance(value, int) else KnownFloat(value)
    made.symbol = symbol
    return made


def symbol_of(value: Any) -> Any:
    """The symbolic number that a value stands for, or the value itself; of a tuple, of each."""
    if isinstance(value, tuple | list):
        return tuple(map(symbol_of, value))
    return value.symbol if isinstance(value, _Known) else value


def _plain(value: Any) -> Any:
    if isinstance(value, KnownInt):
        return int.__int__(value)
    return float.__float__(value) if isinstance(value, KnownFloat) else value
