"""Records of the report buffer: where threads leave what they print and what they find.

The buffer is uint32 words. Word 0 counts the words asked for, word 1 the records that found no
room. Records stand from word `FIRST` on: 1 + the number of the *site*, the thread of the launch
(two words, low first), then the values of the site, two words each where their type has 64 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from sarek_numba.ir.build import Fresh
from sarek_numba.ir.nodes import (
    Assign,
    Atomic,
    AtomicOp,
    Binary,
    BinOp,
    Body,
    Cast,
    Coordinate,
    Expr,
    If,
    Index,
    Intrinsic,
    Kernel,
    LElement,
    Let,
    ParamDecl,
    Stmt,
    Var,
    VarRef,
    constant,
)
from sarek_numba.ir.types import INT64, ArrayInfo, ReportBuffer, Scalar, Vec
from sarek_numba.ir.typing import scalar_of
from sarek_numba.span import Span

CAPACITY = 1 << 22  # words
FIRST = 2
FOR_FAULTS = 1 << 18  # words at the end that no print may take
_UINT32, _UINT64 = Scalar.UINT32, Scalar.UINT64


@dataclass(frozen=True, slots=True)
class PrintSite:
    """A `print`: texts, and the types of the values that a record holds."""

    parts: tuple[str | Scalar, ...]


@dataclass(frozen=True, slots=True)
class BoundsSite:
    """A subscript of an axis of an array; a record holds the index and the extent, both int64."""

    array: str
    axis: int
    span: Span | None


@dataclass(frozen=True, slots=True)
class AssertSite:
    """An assertion; a record holds nothing more."""

    message: str
    span: Span | None


Site = PrintSite | BoundsSite | AssertSite


def words_of(type: Scalar) -> int:
    """The words that a value takes in a record."""
    return 2 if type.bits == 64 else 1


class Recorder:
    """Makes the statements that write records, and numbers the sites."""

    def __init__(self, kernel: Kernel) -> None:
        self.fresh = Fresh.beyond(kernel)
        self.buffer = self.fresh("report", Vec(_UINT32))
        self.sites: list[Site] = []

    def parameter(self) -> ParamDecl:
        """The buffer as a parameter of the kernel."""
        return ParamDecl(self.buffer, ArrayInfo(_UINT32), ReportBuffer())

    def record(
        self, site: Site, values: tuple[Expr, ...], span: Span | None, limit: int = CAPACITY
    ) -> Body:
        """Statements that append a record, or count it as lost where the buffer is full."""
        number = len(self.sites)
        self.sites.append(site)
        thread, before = self._named("thread", _thread_of_launch(), span)
        words: list[Expr] = [_word(number + 1), *_halves(Cast(_UINT64, thread))]
        for value in values:
            found, more = self._words(value, span)
            before = (*before, *more)
            words += found
        used, at = self.fresh("used", _UINT32), self.fresh("at", _UINT32)
        stores = tuple(
            Assign(LElement(self.buffer, _place(at, k)), word, span=span)
            for k, word in enumerate(words)
        )
        lost = (self._add(1, _word(1), None, span),)
        fits = Binary(BinOp.LE, VarRef(at), _word(limit - len(words)))
        taken = (self._add(0, _word(len(words)), at, span), If(fits, stores, lost, span=span))
        zero = constant(INT64, 0)
        return (
            *before,
            Atomic(AtomicOp.LOAD, used, self.buffer, zero, span=span),
            If(Binary(BinOp.LT, VarRef(used), _word(limit)), taken, lost, span=span),
        )

    def _add(self, word: int, value: Expr, old: Var | None, span: Span | None) -> Stmt:
        at = constant(INT64, word)
        return Atomic(AtomicOp.ADD, old, self.buffer, at, value, span=span)

    def _named(self, name: str, value: Expr, span: Span | None) -> tuple[Expr, Body]:
        var = self.fresh(name, scalar_of(value))
        return VarRef(var), (Let(var, value, span=span),)

    def _words(self, value: Expr, span: Span | None) -> tuple[list[Expr], Body]:
        """The words of a value, and what binds what they are made of."""
        type = scalar_of(value)
        if type in (Scalar.FLOAT16, Scalar.BFLOAT16):
            raise AssertionError("a half is read as float32")
        bits: Expr = value
        wide = words_of(type) == 2
        if type.is_float:
            unsigned = _UINT64 if wide else _UINT32
            bits = Intrinsic((), "reinterpret", (value,), unsigned, span=span)
        elif type is not (_UINT64 if wide else _UINT32):
            bits = Cast(_UINT64 if wide else _UINT32, value, span=span)
        name, bound = self._named("bits", bits, span)
        return (list(_halves(name)) if wide else [name]), bound


def _word(value: int) -> Expr:
    return constant(_UINT32, value)


def _place(at: Var, offset: int) -> Expr:
    index = Cast(INT64, VarRef(at))
    return Binary(BinOp.ADD, index, constant(INT64, FIRST + offset))


def _halves(value: Expr) -> tuple[Expr, Expr]:
    high = Binary(BinOp.SHR, value, constant(_UINT64, 32), unguarded=True)
    return Cast(_UINT32, value), Cast(_UINT32, high)


def _thread_of_launch() -> Expr:
    """The number of the thread in the launch: block by block, x fastest."""
    of_block = _linear(Coordinate.THREAD_IDX, Coordinate.BLOCK_DIM)
    threads: Expr = Index(Coordinate.BLOCK_DIM, 0)
    for axis in (1, 2):
        threads = Binary(BinOp.MUL, threads, Index(Coordinate.BLOCK_DIM, axis))
    block = _linear(Coordinate.BLOCK_IDX, Coordinate.GRID_DIM)
    return Binary(BinOp.ADD, Binary(BinOp.MUL, block, threads), of_block)


def _linear(place: Coordinate, extent: Coordinate) -> Expr:
    number: Expr = Index(place, 2)
    for axis in (1, 0):
        scaled = Binary(BinOp.MUL, number, Index(extent, axis))
        number = Binary(BinOp.ADD, scaled, Index(place, axis))
    return number
