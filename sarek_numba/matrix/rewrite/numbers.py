"""What a rewritten kernel is told at launch beside the user's arguments: numbers of a `Bound`.

Each is a parameter behind the user's arguments, in one order for the parameters and the values.
Block and grid of the user's launch are among them where the product uses them, since the rewritten
kernel has others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sarek_numba.ir.build import Fresh, expr, lit
from sarek_numba.ir.nodes import Coordinate, Expr, Index, ParamDecl, Var
from sarek_numba.ir.types import INT64, Scalar, UserArgument
from sarek_numba.ir.walk import walk_exprs
from sarek_numba.matrix.bind import Bound, Dimensions, Placement
from sarek_numba.matrix.product import Product
from sarek_numba.matrix.rewrite.form import Form, Lines

Of = tuple[Coordinate, int]


def uniforms(product: Product) -> tuple[Of, ...]:
    """The coordinates of the user's launch that the stored value is computed from."""
    found: dict[Of, None] = {}
    roots = [product.start, product.epilogue]
    if product.factor is not None:
        roots.append(product.factor)
    for node in walk_exprs(*roots):
        if isinstance(node, Index):
            found[node.coordinate, node.axis] = None
    return tuple(found)


def values(
    product: Product, bound: Bound, form: Form, grid: Dimensions, block: Dimensions
) -> dict[str, int]:
    """Every number by its name, in the order of the parameters."""
    rows, columns, inner = form.tiling.shape(form.config)
    tiles = -(-bound.m // rows), -(-bound.n // columns)
    batches = 1
    for count in bound.batch:
        batches *= count
    found = {
        "rows": bound.m,
        "columns": bound.n,
        "inner": bound.k,
        "row_tiles": tiles[0],
        "column_tiles": tiles[1],
        "steps": -(-bound.k // inner),
        "work": tiles[0] * tiles[1] * batches,
    }
    for at, count in enumerate(bound.batch):
        found[f"batch_{at}"] = count
    for name, placement in (("a", bound.a), ("b", bound.b), ("c", bound.c)):
        found |= _placement(name, placement)
    firsts = dict(bound.firsts)
    for name, axis in _axes(product).items():
        found[f"first_{name}"] = firsts[axis]
    for coordinate, axis in uniforms(product):
        found[name_of_uniform(coordinate, axis)] = _uniform(coordinate, axis, grid, block)
    return found


def _placement(name: str, of: Placement) -> dict[str, int]:
    found = {
        f"{name}_offset": of.offset,
        f"{name}_row": of.row_stride,
        f"{name}_column": of.column_stride,
    }
    return found | {f"{name}_batch_{at}": step for at, step in enumerate(of.batch_strides)}


def _axes(product: Product) -> dict[str, int]:
    """The axes that the stored value may depend on, with the ids of their variables."""
    batch = {f"batch_{at}": axis.var.id for at, axis in enumerate(product.batch)}
    return {"row": product.m.var.id, "column": product.n.var.id} | batch


def name_of_uniform(coordinate: Coordinate, axis: int) -> str:
    return f"{coordinate.value}_{'xyz'[axis]}"


def _uniform(coordinate: Coordinate, axis: int, grid: Dimensions, block: Dimensions) -> int:
    known = {
        Coordinate.BLOCK_DIM: block[axis],
        Coordinate.GRID_DIM: grid[axis],
        Coordinate.GRID_SIZE: block[axis] * grid[axis],
    }
    return known[coordinate]


def index_type(numbers: dict[str, int], bound: Bound) -> Scalar:
    """int32 where every place, and what is computed on the way to it, is in its range."""
    reach = max(abs(value) for value in numbers.values())
    ends = (abs(end) for extent in bound.extents for end in extent)
    sizes = bound.m, bound.n, bound.k
    strides = [
        abs(stride) * size
        for of, (rows, columns) in (
            (bound.a, (bound.m, bound.k)),
            (bound.b, (bound.k, bound.n)),
            (bound.c, (bound.m, bound.n)),
        )
        for stride, size in (
            (of.row_stride, rows),
            (of.column_stride, columns),
            *zip(of.batch_strides, bound.batch, strict=True),
        )
    ]
    most = max(reach, *ends, *sizes, sum(strides))
    return Scalar.INT32 if most < 2**30 else INT64


@dataclass(frozen=True, slots=True)
class Numbers:
    """The parameters of a kernel in IR."""

    params: tuple[ParamDecl, ...]
    vars: dict[str, Var]
    form: Form

    def __call__(self, name: str) -> Expr:
        """A number; a stride of 1 that the kernel is made for is a constant."""
        unit = {Lines.ROWS: "column", Lines.COLUMNS: "row", Lines.NONE: ""}
        lines = {"a": self.form.a, "b": self.form.b, "c": self.form.c}
        matrix, _, what = name.partition("_")
        if matrix in lines and what == unit[lines[matrix]]:
            return lit(self.form.index, 1)
        return expr(self.vars[name])


def numbers_of(names: Iterable[str], form: Form, arguments: int, fresh: Fresh) -> Numbers:
    """The parameters for numbers of these names, behind so many arguments of the user's."""
    made = {name: fresh(name, form.index) for name in names}
    params = tuple(
        ParamDecl(var, None, UserArgument(arguments + at)) for at, var in enumerate(made.values())
    )
    return Numbers(params, made, form)
