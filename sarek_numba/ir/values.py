"""Variables and constants of Sarek IR; see `ir.nodes`."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from sarek_numba.ir.types import ElementType, Scalar
from sarek_numba.span import Span


def span_field() -> Any:
    """The span of a node: no part of its equality, hash or printing."""
    return field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Var:
    """A variable: an object with a unique id in its kernel. Text sees names, passes see ids.

    An array parameter, a shared, local or constant array is a Var of type `Vec` or `Array`.
    """

    name: str
    id: int
    type: ElementType
    mutable: bool = False


@dataclass(frozen=True, slots=True)
class Const:
    """A scalar constant, kept as its bit pattern so that 0.0, -0.0 and NaNs stay apart.

    No constant has type float16 or bfloat16: such values come from a `Cast`.
    """

    type: Scalar
    bits: int
    span: Span | None = span_field()

    @property
    def value(self) -> bool | int | float:
        """The value as a Python number."""
        return _unpack(self.type, self.bits)


_FLOAT_FORMAT = {Scalar.FLOAT32: ("<f", "<I"), Scalar.FLOAT64: ("<d", "<Q")}


def constant(type: Scalar, value: Any, span: Span | None = None) -> Const:
    """A `Const` of a Python or NumPy number; a float is rounded once to float32 where asked.

    Raises OverflowError if an integer does not fit the type.
    """
    if type in _FLOAT_FORMAT:
        float_format, bits_format = _FLOAT_FORMAT[type]
        packed = _pack_float(float_format, float(value))
        return Const(type, struct.unpack(bits_format, packed)[0], span=span)
    assert not type.is_float, "halves have no constants"
    number = int(value)
    if not type.minimum <= number <= type.maximum:
        raise OverflowError(f"{number} does not fit {type.value}")
    return Const(type, number & ((1 << type.bits) - 1), span=span)


def _pack_float(float_format: str, value: float) -> bytes:
    try:
        return struct.pack(float_format, value)
    except OverflowError:  # a float64 beyond float32 rounds to infinity
        return struct.pack(float_format, float("inf") if value > 0 else float("-inf"))


def _unpack(type: Scalar, bits: int) -> bool | int | float:
    if type in _FLOAT_FORMAT:
        float_format, bits_format = _FLOAT_FORMAT[type]
        value: float = struct.unpack(float_format, struct.pack(bits_format, bits))[0]
        return value
    if type is Scalar.BOOL:
        return bool(bits)
    return bits - (1 << type.bits) if bits > type.maximum else bits
