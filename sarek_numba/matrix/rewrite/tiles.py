"""Tiles of the operands in shared memory: declared, filled, and where fragments lie in them.

There are two buffers, so that one is filled while the other is used. A row is longer than the tile
by 16 bytes: then rows of fragments begin in different banks. What lies outside of the matrices is
zero, which adds nothing to a sum.
"""

from __future__ import annotations

from dataclasses import dataclass

from sarek_numba.ir.build import (
    add,
    and_,
    const_int,
    expr,
    for_,
    if_,
    let,
    lt,
    read,
    shared_decl,
    store,
)
from sarek_numba.ir.nodes import Expr, SharedDecl, Stmt, Var
from sarek_numba.ir.types import Scalar
from sarek_numba.matrix.product import Operand
from sarek_numba.matrix.rewrite.arithmetic import quotient, remainder, times, total
from sarek_numba.matrix.rewrite.form import Lines
from sarek_numba.matrix.rewrite.frame import Frame
from sarek_numba.matrix.rewrite.scheme import split, zero

BUFFERS = 2
_PADDING = 16  # bytes


@dataclass(frozen=True, slots=True)
class Tile:
    """The part of "a" or "b" that a step needs; `arrays` has one for each piece of an element."""

    name: str
    operand: Operand
    component: Scalar
    rows: int
    columns: int
    lines: Lines
    limits: tuple[str, str]
    arrays: tuple[Var, ...]

    @property
    def line(self) -> int:
        """Elements from one row to the next."""
        return padded(self.columns, self.component)

    def at(self, buffer: Expr, row: Expr, column: Expr) -> Expr:
        """The index of an element in one of the buffers."""
        whole = times(buffer, self.rows * self.line)
        return total([whole, times(row, self.line), column])


def padded(columns: int, component: Scalar) -> int:
    """The elements of a row of shared memory for so many."""
    return columns + _PADDING * 8 // component.bits


def shared_bytes(rows: int, columns: int, component: Scalar, pieces: int) -> int:
    """What the buffers of a tile take."""
    return BUFFERS * pieces * rows * padded(columns, component) * component.bits // 8


def tiles_of(frame: Frame) -> tuple[Tile, Tile]:
    """The tiles of A and of B."""
    rows, columns, inner = frame.form.tiling.shape(frame.config)
    product, scheme, config, form = frame.product, frame.scheme, frame.config, frame.form
    a, b = product.a, product.b
    return (
        _tile(frame, "a", a, config.a, (rows, inner), form.a, ("rows", "inner"), scheme.a),
        _tile(frame, "b", b, config.b, (inner, columns), form.b, ("inner", "columns"), scheme.b),
    )


def _tile(
    frame: Frame,
    name: str,
    operand: Operand,
    component: Scalar,
    shape: tuple[int, int],
    lines: Lines,
    limits: tuple[str, str],
    pieces: int,
) -> Tile:
    size = BUFFERS * shape[0] * padded(shape[1], component)
    declared = [
        shared_decl(frame.fresh, f"{name}_tile", component, size).var for _ in range(pieces)
    ]
    return Tile(name, operand, component, *shape, lines, limits, tuple(declared))


def declarations(tile: Tile) -> list[SharedDecl]:
    size = BUFFERS * tile.rows * tile.line
    return [SharedDecl(var, tile.component, const_int(size)) for var in tile.arrays]


def fill(frame: Frame, tile: Tile, first: tuple[Expr, Expr], buffer: Expr) -> Stmt:
    """Every thread of a block brings some elements of a tile that begins at a row and a column.

    Neighbouring threads take neighbours in memory.
    """
    fresh, index, threads = frame.fresh, frame.index, frame.form.threads
    size = tile.rows * tile.columns
    turn, at = fresh("turn", index), fresh("element", index)
    row, column = fresh("row", index), fresh("column", index)
    by_columns = tile.lines is Lines.COLUMNS
    length = tile.rows if by_columns else tile.columns
    slow, fast = quotient(at, length), remainder(at, length)
    body = [
        let(row, fast if by_columns else slow),
        let(column, slow if by_columns else fast),
        *_element(frame, tile, first, buffer, row, column),
    ]
    if size % threads:
        body = [if_(lt(at, size), body)]
    turns = -(-size // threads)
    loop = for_(turn, 0, turns, let(at, add(frame.thread, times(expr(turn), threads))), *body)
    return frame.form.short(loop)


def _element(
    frame: Frame, tile: Tile, first: tuple[Expr, Expr], buffer: Expr, row: Var, column: Var
) -> list[Stmt]:
    fresh, index = frame.fresh, frame.index
    matrix_row, matrix_column = (
        fresh(f"{tile.name}_row", index),
        fresh(f"{tile.name}_column", index),
    )
    at, value = fresh("place", index), fresh("value", tile.operand.type)
    source = frame.place(tile.name, expr(matrix_row), expr(matrix_column))
    made, pieces = split(value, frame.form.lowering, tile.component, len(tile.arrays), fresh)
    inside = and_(
        lt(matrix_row, frame.numbers(tile.limits[0])),
        lt(matrix_column, frame.numbers(tile.limits[1])),
    )
    kept = [store(array, at, piece) for array, piece in zip(tile.arrays, pieces, strict=True)]
    cleared = [store(array, at, zero(tile.component)) for array in tile.arrays]
    return [
        let(matrix_row, add(first[0], row)),
        let(matrix_column, add(first[1], column)),
        let(at, tile.at(buffer, expr(row), expr(column))),
        if_(inside, [let(value, read(tile.operand.array, source)), *made, *kept], cleared),
    ]
