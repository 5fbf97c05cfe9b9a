"""From sums in fragments to elements of the result: each warp passes its own through shared memory.

There an element has one thread, which computes what the user's kernel stores from the sum, the old
element and whatever else, and stores it if the result has such an element. So nothing else is
written, and C may lie in any way.
"""

from __future__ import annotations

from sarek_numba.ir.build import (
    add,
    and_,
    cast,
    eq,
    expr,
    for_,
    if_,
    let,
    lt,
    mul,
    read,
    shared_decl,
    store,
)
from sarek_numba.ir.matrices import fragments_of
from sarek_numba.ir.nodes import (
    CMStore,
    Coopmat,
    Expr,
    Index,
    SharedDecl,
    Stmt,
    Var,
    WarpBarrier,
)
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.walk import map_expr
from sarek_numba.matrix.rewrite.arithmetic import index, quotient, remainder, times, total
from sarek_numba.matrix.rewrite.form import Form, Lines
from sarek_numba.matrix.rewrite.frame import Frame
from sarek_numba.matrix.rewrite.multiply import name_of_sum
from sarek_numba.matrix.rewrite.numbers import name_of_uniform
from sarek_numba.matrix.rewrite.scheme import Scheme, joined


def scratch_size(form: Form, scheme: Scheme) -> int:
    """The elements of shared memory for one fragment of each warp."""
    return form.tiling.count * scheme.planes * _plane(form)


def _plane(form: Form) -> int:
    return form.config.m * form.config.n


def declaration(frame: Frame) -> SharedDecl:
    size = scratch_size(frame.form, frame.scheme)
    return shared_decl(frame.fresh, "sums", frame.config.result, size)


def epilogue(frame: Frame, scratch: Var) -> list[Stmt]:
    """Store the elements of a tile, fragment by fragment."""
    rows, columns = frame.form.tiling.fragments
    which = frame.fresh("fragment", frame.index)
    origin = frame.fresh("origin", frame.index)
    base = times(expr(frame.warp), frame.scheme.planes * _plane(frame.form))
    loop = for_(
        which,
        0,
        rows * columns,
        *_spill(frame, scratch, origin, which),
        WarpBarrier(),
        _elements(frame, scratch, origin, which),
        WarpBarrier(),
    )
    return [let(origin, base), loop]


def _spill(frame: Frame, scratch: Var, origin: Var, which: Var) -> list[Stmt]:
    """The chosen fragment of all planes to shared memory."""
    rows, columns = frame.form.tiling.fragments
    made: list[Stmt] = []
    for row in reversed(range(rows)):
        for column in reversed(range(columns)):
            stores = [_store(frame, scratch, origin, p, row, column)
                      for p in range(frame.scheme.planes)]  # fmt: skip
            number = row * columns + column
            last = number + 1 == rows * columns
            made = stores if last else [if_(eq(which, number), stores, made)]
    return made


def _store(frame: Frame, scratch: Var, origin: Var, plane: int, row: int, column: int) -> Stmt:
    shape = fragments_of(frame.config)["result"]
    place = add(origin, plane * _plane(frame.form))
    line = index(frame.index, shape.columns)
    return Coopmat(CMStore(name_of_sum(plane, row, column), shape, scratch, place, line))


def _elements(frame: Frame, scratch: Var, origin: Var, which: Var) -> Stmt:
    """Each lane computes and stores some elements of a fragment."""
    fresh, kind, config = frame.fresh, frame.index, frame.config
    size, width = config.m * config.n, frame.form.width
    turn, at = fresh("turn", kind), fresh("element", kind)
    row, column = fresh("row", kind), fresh("column", kind)
    by_columns = frame.form.c is Lines.COLUMNS
    length = config.m if by_columns else config.n
    slow, fast = quotient(at, length), remainder(at, length)
    body = [
        let(row, fast if by_columns else slow),
        let(column, slow if by_columns else fast),
        *_element(frame, scratch, origin, which, row, column),
    ]
    if size % width:
        body = [if_(lt(at, size), body)]
    loop = for_(
        turn, 0, -(-size // width), let(at, add(frame.lane, times(expr(turn), width))), *body
    )
    return frame.form.short(loop)


def _element(
    frame: Frame, scratch: Var, origin: Var, which: Var, row: Var, column: Var
) -> list[Stmt]:
    fresh, kind, config = frame.fresh, frame.index, frame.config
    _, across = frame.form.tiling.fragments
    matrix_row, matrix_column = fresh("c_row", kind), fresh("c_column", kind)
    from_row = times(quotient(which, across), config.m)
    from_column = times(remainder(which, across), config.n)
    inside = and_(
        lt(matrix_row, frame.numbers("rows")), lt(matrix_column, frame.numbers("columns"))
    )
    return [
        let(matrix_row, total([expr(frame.first_row), expr(frame.warp_row), from_row, expr(row)])),
        let(
            matrix_column,
            total([expr(frame.first_column), expr(frame.warp_column), from_column, expr(column)]),
        ),
        if_(inside, _stored(frame, scratch, origin, (row, column), (matrix_row, matrix_column))),
    ]


def _stored(
    frame: Frame, scratch: Var, origin: Var, local: tuple[Var, Var], at: tuple[Var, Var]
) -> list[Stmt]:
    """What the user's kernel does with the sum of one element in the scratch."""
    line = frame.config.n
    within = total([expr(origin), times(expr(local[0]), line), expr(local[1])])
    planes: list[Expr] = [
        read(scratch, add(within, plane * _plane(frame.form)) if plane else within)
        for plane in range(frame.scheme.planes)
    ]
    return stored(frame, joined(planes, frame.product.accumulator), at)


def stored(frame: Frame, summed: Expr, at: tuple[Var, Var]) -> list[Stmt]:
    """What the user's kernel does with a sum, in the type of the product's sums."""
    product, kind = frame.product, frame.index
    place = frame.fresh("c_place", kind)
    if product.factor is not None:
        summed = mul(summed, _told(frame, product.factor))
    made: list[Stmt] = [let(place, frame.place("c", expr(at[0]), expr(at[1])))]
    made += _axes(frame, at)
    if product.uses_before:
        made.append(let(product.before, read(product.c.array, place)))
    made.append(let(product.result, add(summed, _told(frame, product.start))))
    return [*made, store(product.c.array, place, _told(frame, product.epilogue))]


def _axes(frame: Frame, at: tuple[Var, Var]) -> list[Stmt]:
    """The variables of the product's axes, which expressions of the user's are written in."""
    product, numbers = frame.product, frame.numbers
    axes = [("row", product.m.var, at[0]), ("column", product.n.var, at[1])]
    axes += [
        (f"batch_{which}", axis.var, frame.batch[which]) for which, axis in enumerate(product.batch)
    ]
    return [let(var, _as(var, add(value, numbers(f"first_{name}")))) for name, var, value in axes]


def _as(var: Var, value: Expr) -> Expr:
    assert isinstance(var.type, Scalar)
    return cast(var.type, value)


def _told(frame: Frame, written: Expr) -> Expr:
    """An expression with numbers of the user's launch in place of its dimensions."""

    def replaced(node: Expr) -> Expr:
        if isinstance(node, Index):
            number = frame.numbers(name_of_uniform(node.coordinate, node.axis))
            return cast(node.type, number)
        return node

    return map_expr(written, replaced)
