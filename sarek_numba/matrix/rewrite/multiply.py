"""Fragments of a warp: declared, loaded and multiplied.

Sums are fragments `sum<plane>_<row>_<column>`. Operands are loaded where they are needed, as
`a<piece>_<row>` and `b<piece>_<column>`, of the warp's rows and columns of fragments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sarek_numba.ir.build import lit
from sarek_numba.ir.matrices import fragments_of
from sarek_numba.ir.nodes import (
    CMDecl,
    CMFill,
    CMLoad,
    CMMulAdd,
    Coopmat,
    CoopmatOp,
    Expr,
    Fragment,
    Stmt,
    Var,
)
from sarek_numba.matrix.rewrite.frame import Frame

Source = Callable[[str, int, int, int], tuple[Var, Expr, Expr, bool]]
"""For "a" or "b", a piece, the row or column of fragments of the warp, and a part of the step: the
array, the index of the fragment, from one row (column) to the next, and whether these are columns.
"""


def name_of_sum(plane: int, row: int, column: int) -> str:
    return f"sum{plane}_{row}_{column}"


def sums(frame: Frame) -> Iterator[str]:
    """The names of a warp's sums."""
    rows, columns = frame.form.tiling.fragments
    for plane in range(frame.scheme.planes):
        for row in range(rows):
            for column in range(columns):
                yield name_of_sum(plane, row, column)


def declare(frame: Frame) -> list[Stmt]:
    """All fragments of a warp."""
    rows, columns = frame.form.tiling.fragments
    shapes = fragments_of(frame.config)
    made: list[CoopmatOp] = [CMDecl(name, shapes["result"]) for name in sums(frame)]
    made += [
        CMDecl(_operand(which, piece, at), shapes[which])
        for which, pieces, count in (("a", frame.scheme.a, rows), ("b", frame.scheme.b, columns))
        for piece in range(pieces)
        for at in range(count)
    ]
    return [Coopmat(op) for op in made]


def clear(frame: Frame) -> list[Stmt]:
    """All sums are zero."""
    result = fragments_of(frame.config)["result"]
    zero = lit(result.component, 0)
    return [Coopmat(CMFill(name, result, zero)) for name in sums(frame)]


def step(frame: Frame, source: Source) -> list[Stmt]:
    """Add up the products of one step of the inner dimension."""
    made: list[CoopmatOp] = []
    rows, columns = frame.form.tiling.fragments
    shapes = fragments_of(frame.config)
    for part in range(frame.form.tiling.depth):
        for which, pieces, count in (("a", frame.scheme.a, rows), ("b", frame.scheme.b, columns)):
            made += [
                _load(which, shapes[which], piece, at, part, source)
                for piece in range(pieces)
                for at in range(count)
            ]
        made += _products(frame, rows, columns)
    return [Coopmat(op) for op in made]


def _load(which: str, shape: Fragment, piece: int, at: int, part: int, source: Source) -> CoopmatOp:
    array, place, line, column_major = source(which, piece, at, part)
    return CMLoad(_operand(which, piece, at), shape, array, place, line, column_major)


def _products(frame: Frame, rows: int, columns: int) -> list[CoopmatOp]:
    made: list[CoopmatOp] = []
    for a, b, plane in frame.scheme.terms:
        for row in range(rows):
            for column in range(columns):
                name = name_of_sum(plane, row, column)
                left, right = _operand("a", a, row), _operand("b", b, column)
                made.append(CMMulAdd(name, left, right, name, frame.config))
    return made


def _operand(which: str, piece: int, at: int) -> str:
    return f"{which}{piece}_{at}"
