"""A whole rewritten kernel, for all launches of one form.

Blocks share out the tiles of the result, more than one for a block where a grid may not have as
many blocks. Tiles are taken in groups of a few rows, so that blocks that run at the same time read
the same parts of the operands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sarek_numba.ir.build import (
    Fresh,
    add,
    coordinate,
    expr,
    for_,
    if_,
    intrinsic,
    let,
    lt,
    mul,
    sub,
)
from sarek_numba.ir.nodes import (
    ArrayRead,
    Barrier,
    Direction,
    Expr,
    Kernel,
    SharedDecl,
    Stmt,
    Var,
    VarRef,
)
from sarek_numba.ir.walk import walk_exprs
from sarek_numba.matrix.product import Product
from sarek_numba.matrix.rewrite import multiply
from sarek_numba.matrix.rewrite.arithmetic import index, quotient, remainder, times
from sarek_numba.matrix.rewrite.epilogue import declaration, epilogue
from sarek_numba.matrix.rewrite.form import Form, Lines, Staged
from sarek_numba.matrix.rewrite.frame import Frame
from sarek_numba.matrix.rewrite.numbers import numbers_of
from sarek_numba.matrix.rewrite.scheme import scheme_of
from sarek_numba.matrix.rewrite.tiles import Tile, declarations, fetch_of, fill, tiles_of

GROUP = 8  # rows of tiles that blocks go through together


def rewritten(
    kernel: Kernel, product: Product, form: Form, names: Iterable[str], arguments: int
) -> Kernel:
    """The kernel that does what a product says.

    `kernel` is the one that the product was found in, whose parameters the new one keeps. Behind
    its `arguments` come the numbers of these names (`numbers.values`). It is launched with blocks
    of `form.threads` threads along x and any number of blocks.
    """
    fresh = beyond(kernel, product)
    numbers = numbers_of(names, form, arguments, fresh)
    kind = form.index
    thread, lane, warp = (fresh(name, kind) for name in ("thread", "lane", "warp"))
    warp_row, warp_column = fresh("warp_row", kind), fresh("warp_column", kind)
    frame = Frame(
        product=product,
        form=form,
        scheme=scheme_of(product, form.lowering),
        numbers=numbers,
        fresh=fresh,
        thread=thread,
        lane=lane,
        warp=warp,
        warp_row=warp_row,
        warp_column=warp_column,
        first_row=fresh("first_row", kind),
        first_column=fresh("first_column", kind),
        batch=tuple(fresh(f"batch_{at}", kind) for at in range(len(product.batch))),
    )
    scratch = declaration(frame)
    shared, begun, sums = (
        _staged(frame) if isinstance(form.variant, Staged) else ([], [], _direct(frame))
    )
    body = [*_threads(frame), *multiply.declare(frame), *begun, _work(frame, sums, scratch.var)]
    return Kernel(
        name=kernel.name,
        body=tuple(body),
        params=(*kernel.params, *numbers.params),
        locals=(*shared, scratch),
        index_bits=kernel.index_bits,
        warp_width=form.width,
        fastmath=kernel.fastmath,
        span=kernel.span,
    )


def beyond(kernel: Kernel, product: Product) -> Fresh:
    """A supply of variables that neither the kernel's parameters nor the product has."""
    roots = [product.start, product.epilogue]
    if product.factor is not None:
        roots.append(product.factor)
    axes = (product.m, product.n, product.k, *product.batch)
    ids = [product.result.id, product.before.id, *(axis.var.id for axis in axes)]
    ids += [decl.var.id for decl in kernel.params]
    for node in walk_exprs(*roots):
        match node:
            case VarRef(var=var) | ArrayRead(array=var):
                ids.append(var.id)
    return Fresh(1 + max(ids))


def _threads(frame: Frame) -> list[Stmt]:
    """The place of a thread, and of its warp in the block's tile."""
    form, config = frame.form, frame.config
    (_, across), (rows, columns) = form.tiling.warps, form.tiling.fragments
    return [
        let(frame.thread, coordinate("thread_idx", 0, form.index)),
        let(frame.lane, remainder(frame.thread, form.width)),
        let(frame.warp, quotient(frame.thread, form.width)),
        let(frame.warp_row, times(quotient(frame.warp, across), rows * config.m)),
        let(frame.warp_column, times(remainder(frame.warp, across), columns * config.n)),
    ]


# --- tiles of the result --------------------------------------------------------------------------


def _work(frame: Frame, sums: Sequence[Stmt], scratch: Var) -> Stmt:
    """All tiles of a block, one after the other."""
    kind, work = frame.index, frame.fresh("work", frame.index)
    body = [*_place(frame, work), *multiply.clear(frame), *sums, *epilogue(frame, scratch)]
    first, step = (coordinate(name, 0, kind) for name in ("block_idx", "grid_dim"))
    stop = frame.numbers("work")
    return for_(work, first, stop, *body, step=step, direction=Direction.UPTO)


def _place(frame: Frame, work: Var) -> list[Stmt]:
    """Which tile of which batch a piece of work is."""
    numbers, kind, fresh = frame.numbers, frame.index, frame.fresh
    rows, columns, _ = frame.form.tiling.shape(frame.config)
    tiles, tile = fresh("tiles", kind), fresh("tile", kind)
    group, inside = fresh("group", kind), fresh("inside", kind)
    tall = fresh("group_rows", kind)
    across, down = numbers("column_tiles"), numbers("row_tiles")
    wide = mul(across, GROUP)
    low = intrinsic("min", sub(down, times(expr(group), GROUP)), index(kind, GROUP))
    tile_row = add(times(expr(group), GROUP), remainder(inside, tall))
    return [
        let(tiles, mul(down, across)),
        *_batch(frame, quotient(work, tiles)),
        let(tile, remainder(work, tiles) if frame.batch else expr(work)),
        let(group, quotient(tile, wide)),
        let(inside, remainder(tile, wide)),
        let(tall, low),
        let(frame.first_row, times(tile_row, rows)),
        let(frame.first_column, times(quotient(inside, tall), columns)),
    ]


def _batch(frame: Frame, whole: Expr) -> list[Stmt]:
    """The indices of the batch, of which the last runs fastest."""
    made: list[Stmt] = []
    for at in reversed(range(len(frame.batch))):
        rest = frame.fresh("rest", frame.index)
        made.append(let(rest, whole))
        count = frame.numbers(f"batch_{at}")
        made.append(let(frame.batch[at], remainder(rest, count) if at else expr(rest)))
        whole = quotient(rest, count)
    return made


# --- sums -----------------------------------------------------------------------------------------


def _staged(frame: Frame) -> tuple[list[SharedDecl], list[Stmt], list[Stmt]]:
    """Sums over tiles in shared memory: while one buffer is used, the other is filled.

    Gives the arrays, what stands before all tiles, and the sums.
    """
    a, b = tiles_of(frame)
    kind, fresh = frame.index, frame.fresh
    *_, inner = frame.form.tiling.shape(frame.config)
    step, following = fresh("step", kind), fresh("next", kind)
    firsts = ((a, expr(frame.first_row)), (b, expr(frame.first_column)))
    fetches = [fetch_of(frame, tile) for tile in (a, b)] if frame.form.unrolled else [None, None]
    begun = [stmt for fetch in fetches if fetch is not None for stmt in fetch.declare()]

    def read(at: Expr) -> list[Stmt]:
        """The first half of a step's tiles, of those that come in two."""
        return [
            stmt
            for fetch, (_, first) in zip(fetches, firsts, strict=True)
            if fetch is not None
            for stmt in fetch.read(first, times(at, inner))
        ]

    def filled(at: Expr, buffer: Expr) -> list[Stmt]:
        """The second half, and tiles that come as a whole."""
        made: list[Stmt] = []
        for fetch, (tile, first) in zip(fetches, firsts, strict=True):
            if fetch is None:
                made.append(fill(frame, tile, (first, times(at, inner)), buffer))
            else:
                made += fetch.store(buffer)
        return made

    zero, steps = index(kind, 0), frame.numbers("steps")
    loop = for_(
        step,
        0,
        steps,
        let(following, add(step, 1)),
        if_(lt(following, steps), read(expr(following))),
        *multiply.step(frame, _from_tiles(frame, a, b, remainder(step, 2))),
        if_(lt(following, steps), filled(expr(following), remainder(following, 2))),
        Barrier(),
    )
    before = if_(lt(0, steps), [*read(zero), *filled(zero, zero)])
    return [*declarations(a), *declarations(b)], begun, [before, Barrier(), loop]


def _from_tiles(frame: Frame, a: Tile, b: Tile, buffer: Expr) -> multiply.Source:
    config, kind = frame.config, frame.index

    def source(which: str, piece: int, at: int, part: int) -> tuple[Var, Expr, Expr, bool]:
        inner = index(kind, part * config.k)
        if which == "a":
            tile, outer = a, add(frame.warp_row, at * config.m)
        else:
            tile, outer = b, add(frame.warp_column, at * config.n)
        place = tile.at(buffer, outer, inner)
        return tile.arrays[piece], place, index(kind, tile.line), which == "b"

    return source


def _direct(frame: Frame) -> list[Stmt]:
    """Sums over fragments from global memory."""
    config, form, numbers = frame.config, frame.form, frame.numbers
    step = frame.fresh("step", frame.index)
    *_, inner = form.tiling.shape(config)
    product = frame.product

    def source(which: str, piece: int, at: int, part: int) -> tuple[Var, Expr, Expr, bool]:
        row: Expr
        column: Expr
        along = add(times(expr(step), inner), part * config.k)
        if which == "a":
            array, lines = product.a.array, form.a
            row, column = add(add(frame.first_row, frame.warp_row), at * config.m), along
        else:
            array, lines = product.b.array, form.b
            row, column = along, add(add(frame.first_column, frame.warp_column), at * config.n)
        turned = lines is Lines.COLUMNS
        line = numbers(f"{which}_{'column' if turned else 'row'}")
        return array, frame.place(which, row, column), line, turned

    return [for_(step, 0, numbers("steps"), *multiply.step(frame, source))]


__all__ = ["GROUP", "beyond", "rewritten"]
