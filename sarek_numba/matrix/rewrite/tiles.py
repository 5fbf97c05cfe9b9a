"""Tiles of the operands in shared memory: declared, filled, and where fragments lie in them.

Both lie with the inner dimension side by side, however the matrices lie, since that is how matrix
units want them. There are two buffers, so that one is filled while the other is used. A line is
longer than the tile by 16 bytes: then lines of fragments begin in different banks. What lies
outside of the matrices is zero, which adds nothing to a sum.

`fill` brings a tile element by element. `Fetch` brings it in two halves: reads into variables of a
thread, all before the products of a step, and stores behind them, so that memory has their time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sarek_numba.ir.build import (
    add,
    and_,
    assign,
    cast,
    const_int,
    expr,
    for_,
    if_,
    le,
    let,
    let_mut,
    lit,
    lt,
    read,
    select,
    shared_decl,
    store,
)
from sarek_numba.ir.nodes import Expr, SharedDecl, Stmt, Var
from sarek_numba.ir.types import FLOAT32, HALVES, INT32, Scalar
from sarek_numba.matrix.product import Operand
from sarek_numba.matrix.rewrite.arithmetic import index, quotient, remainder, times, total
from sarek_numba.matrix.rewrite.form import Lines
from sarek_numba.matrix.rewrite.frame import Frame
from sarek_numba.matrix.rewrite.scheme import split, zero

BUFFERS = 2
_PADDING = 16  # bytes
_OUTER, _INNER = 8, 4  # elements that 32 threads bring of a tile that lies the other way


@dataclass(frozen=True, slots=True)
class Tile:
    """The part of "a" or "b" that a step needs: `outer` rows of A, or columns of B, and `inner`
    elements of each; `limit` is the number of the matrix' rows or columns. `arrays` has one for
    each piece of an element.
    """

    name: str
    operand: Operand
    component: Scalar
    outer: int
    inner: int
    lines: Lines
    limit: str
    arrays: tuple[Var, ...]

    @property
    def line(self) -> int:
        """Elements from one line to the next."""
        return padded(self.inner, self.component)

    @property
    def is_turned(self) -> bool:
        """Whether the other dimension lies side by side in the matrix."""
        return self.lines is (Lines.COLUMNS if self.name == "a" else Lines.ROWS)

    def at(self, buffer: Expr, outer: Expr, inner: Expr) -> Expr:
        """The index of an element in one of the buffers."""
        whole = times(buffer, self.outer * self.line)
        return total([whole, times(outer, self.line), inner])

    def place(self, frame: Frame, outer: Expr, inner: Expr) -> Expr:
        """The index of an element of the matrix."""
        if self.name == "a":
            return frame.place("a", outer, inner)
        return frame.place("b", inner, outer)

    def strides(self, frame: Frame) -> tuple[Expr, Expr]:
        """From one row (column) of the matrix to the next, and along the inner dimension."""
        names = ("row", "column") if self.name == "a" else ("column", "row")
        outer, inner = (frame.numbers(f"{self.name}_{name}") for name in names)
        return outer, inner


def padded(columns: int, component: Scalar) -> int:
    """The elements of a row of shared memory for so many."""
    return columns + _PADDING * 8 // component.bits


def shared_bytes(outer: int, inner: int, component: Scalar, pieces: int) -> int:
    """What the buffers of a tile take."""
    return BUFFERS * pieces * outer * padded(inner, component) * component.bits // 8


def tiles_of(frame: Frame) -> tuple[Tile, Tile]:
    """The tiles of A and of B."""
    rows, columns, inner = frame.form.tiling.shape(frame.config)
    product, scheme, config, form = frame.product, frame.scheme, frame.config, frame.form
    a, b = product.a, product.b
    return (
        _tile(frame, "a", a, config.a, (rows, inner), form.a, "rows", scheme.a),
        _tile(frame, "b", b, config.b, (columns, inner), form.b, "columns", scheme.b),
    )


def _tile(
    frame: Frame,
    name: str,
    operand: Operand,
    component: Scalar,
    shape: tuple[int, int],
    lines: Lines,
    limit: str,
    pieces: int,
) -> Tile:
    size = BUFFERS * shape[0] * padded(shape[1], component)
    declared = [
        shared_decl(frame.fresh, f"{name}_tile", component, size).var for _ in range(pieces)
    ]
    return Tile(name, operand, component, *shape, lines, limit, tuple(declared))


def declarations(tile: Tile) -> list[SharedDecl]:
    size = BUFFERS * tile.outer * tile.line
    return [SharedDecl(var, tile.component, const_int(size)) for var in tile.arrays]


def _put(frame: Frame, tile: Tile, at: Var, value: Var) -> list[Stmt]:
    """Store the pieces of an element."""
    made, pieces = split(value, frame.form.lowering, tile.component, len(tile.arrays), frame.fresh)
    kept = [store(array, at, piece) for array, piece in zip(tile.arrays, pieces, strict=True)]
    return [*made, *kept]


# --- element by element ---------------------------------------------------------------------------


def fill(frame: Frame, tile: Tile, first: tuple[Expr, Expr], buffer: Expr) -> Stmt:
    """Every thread of a block brings some elements of a tile that begins at an outer and an inner
    index. Neighbouring threads take neighbours in memory.
    """
    fresh, index, threads = frame.fresh, frame.index, frame.form.threads
    size = tile.outer * tile.inner
    turn, at = fresh("turn", index), fresh("element", index)
    outer, inner = fresh("outer", index), fresh("inner", index)
    length = tile.outer if tile.is_turned else tile.inner
    slow, fast = quotient(at, length), remainder(at, length)
    body = [
        let(outer, fast if tile.is_turned else slow),
        let(inner, slow if tile.is_turned else fast),
        *_element(frame, tile, first, buffer, outer, inner),
    ]
    if size % threads:
        body = [if_(lt(at, size), body)]
    turns = -(-size // threads)
    loop = for_(turn, 0, turns, let(at, add(frame.thread, times(expr(turn), threads))), *body)
    return frame.form.short(loop)


def _element(
    frame: Frame, tile: Tile, first: tuple[Expr, Expr], buffer: Expr, outer: Var, inner: Var
) -> list[Stmt]:
    fresh, index = frame.fresh, frame.index
    matrix_outer, matrix_inner = (fresh(f"{tile.name}_{d}", index) for d in ("outer", "inner"))
    at, value = fresh("place", index), fresh("value", tile.operand.type)
    source = tile.place(frame, expr(matrix_outer), expr(matrix_inner))
    inside = and_(
        lt(matrix_outer, frame.numbers(tile.limit)), lt(matrix_inner, frame.numbers("inner"))
    )
    cleared = [store(array, at, zero(tile.component)) for array in tile.arrays]
    return [
        let(matrix_outer, add(first[0], outer)),
        let(matrix_inner, add(first[1], inner)),
        let(at, tile.at(buffer, expr(outer), expr(inner))),
        if_(
            inside,
            [let(value, read(tile.operand.array, source)), *_put(frame, tile, at, value)],
            cleared,
        ),
    ]


# --- reads first, stores later --------------------------------------------------------------------


@dataclass(slots=True)
class Fetch:
    """A tile in two halves. `offsets` are those of the elements that a thread brings from its
    first, which is at `outer` and `inner`; `values` hold them meanwhile.
    """

    frame: Frame
    tile: Tile
    outer: Var
    inner: Var
    first: tuple[Expr, Expr]
    offsets: list[tuple[int, int]]
    values: list[Var] = field(default_factory=list)

    def declare(self) -> list[Stmt]:
        """Where a thread's first element is, and the variables."""
        fresh, type = self.frame.fresh, self.tile.operand.type
        self.values = [fresh(f"{self.tile.name}_value", type, True) for _ in self.offsets]
        return [
            let(self.outer, self.first[0]),
            let(self.inner, self.first[1]),
            *(let_mut(value, _nothing(type)) for value in self.values),
        ]

    def read(self, outer: Expr, start: Expr) -> list[Stmt]:
        """Read the elements of the tile that begins there; without questions if all exist."""
        frame, tile, kind = self.frame, self.tile, self.frame.index
        row, column = (frame.fresh(f"{tile.name}_{d}", kind) for d in ("outer", "inner"))
        place = frame.fresh("place", kind)
        limits = frame.numbers(tile.limit), frame.numbers("inner")
        whole = and_(le(add(outer, tile.outer), limits[0]), le(add(start, tile.inner), limits[1]))
        strides = tile.strides(frame)
        some: list[Stmt] = []
        every: list[Stmt] = []
        safe = tile.place(frame, outer, start)
        for value, (down, along) in zip(self.values, self.offsets, strict=True):
            at = _moved(place, down, along, strides)
            every.append(assign(value, read(tile.operand.array, at)))
            inside = and_(lt(add(row, down), limits[0]), lt(add(column, along), limits[1]))
            found = frame.fresh("value", tile.operand.type)
            some.append(let(found, read(tile.operand.array, select(inside, at, safe))))
            some.append(assign(value, select(inside, found, _nothing(tile.operand.type))))
        return [
            let(row, add(outer, self.outer)),
            let(column, add(start, self.inner)),
            let(place, tile.place(frame, expr(row), expr(column))),
            if_(whole, every, some),
        ]

    def store(self, buffer: Expr) -> list[Stmt]:
        """Store what was read."""
        frame, tile, kind = self.frame, self.tile, self.frame.index
        first = frame.fresh("place", kind)
        made: list[Stmt] = [let(first, tile.at(buffer, expr(self.outer), expr(self.inner)))]
        for value, (down, along) in zip(self.values, self.offsets, strict=True):
            at, held = frame.fresh("place", kind), frame.fresh("value", tile.operand.type)
            made += [let(at, add(first, down * tile.line + along)), let(held, value)]
            made += _put(frame, tile, at, held)
        return made


def _moved(place: Var, down: int, along: int, strides: tuple[Expr, Expr]) -> Expr:
    steps = [times(stride, by) for stride, by in zip(strides, (down, along), strict=True) if by]
    return total([expr(place), *steps])


def _nothing(type: Scalar) -> Expr:
    """The zero of an operand's type."""
    if type in HALVES:
        return cast(type, lit(FLOAT32, 0.0))
    return lit(type, 0.0) if type is FLOAT32 else cast(type, lit(INT32, 0))


def fetch_of(frame: Frame, tile: Tile) -> Fetch | None:
    """How threads share out a tile; None where it is no whole number of elements for each.

    Threads take neighbours in memory. Of a tile that lies the other way 32 threads take a part of
    8 by 4, so that their stores meet different banks.
    """
    threads, size = frame.form.threads, tile.outer * tile.inner
    if size % threads:
        return None
    turns = size // threads
    fresh, kind = frame.fresh, frame.index
    outer, inner = (fresh(f"{tile.name}_first_{d}", kind) for d in ("outer", "inner"))
    if not tile.is_turned:
        if threads % tile.inner:
            return None
        place = quotient(frame.thread, tile.inner), remainder(frame.thread, tile.inner)
        offsets = [(turn * (threads // tile.inner), 0) for turn in range(turns)]
        return Fetch(frame, tile, outer, inner, place, offsets)
    part = _OUTER * _INNER
    across, parts = tile.outer // _OUTER, threads // part
    if tile.outer % _OUTER or tile.inner % _INNER or threads % part:
        return None
    which = quotient(frame.thread, part)
    inside = remainder(frame.thread, part)
    if across % parts == 0:
        ratio = across // parts
        first_outer, first_inner = which, index(kind, 0)
        offsets = [(turn % ratio * parts, turn // ratio) for turn in range(turns)]
    elif parts % across == 0:
        first_outer, first_inner = remainder(which, across), quotient(which, across)
        offsets = [(0, turn * (parts // across)) for turn in range(turns)]
    else:
        return None
    place = (
        add(times(first_outer, _OUTER), remainder(inside, _OUTER)),
        add(times(first_inner, _INNER), quotient(inside, _OUTER)),
    )
    scaled = [(down * _OUTER, along * _INNER) for down, along in offsets]
    return Fetch(frame, tile, outer, inner, place, scaled)
