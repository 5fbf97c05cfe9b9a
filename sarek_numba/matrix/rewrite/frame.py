"""What the parts of a rewritten kernel share: form, numbers, places of tiles and threads."""

from __future__ import annotations

from dataclasses import dataclass

from sarek_numba.ir.build import Fresh, expr
from sarek_numba.ir.nodes import CoopmatConfig, Expr, Var
from sarek_numba.ir.types import Scalar
from sarek_numba.matrix.product import Product
from sarek_numba.matrix.rewrite.arithmetic import times, total
from sarek_numba.matrix.rewrite.form import Form
from sarek_numba.matrix.rewrite.numbers import Numbers
from sarek_numba.matrix.rewrite.scheme import Scheme


@dataclass(frozen=True, slots=True)
class Frame:
    """`thread` is the number of a thread in its block, `lane` in its warp. `first_row` and
    `first_column` are those of the block's tile, `warp_row` and `warp_column` where the part of the
    warp begins within it; `batch` are the indices of the batch. All have the type of indices.
    """

    product: Product
    form: Form
    scheme: Scheme
    numbers: Numbers
    fresh: Fresh
    thread: Var
    lane: Var
    warp: Var
    warp_row: Var
    warp_column: Var
    first_row: Var
    first_column: Var
    batch: tuple[Var, ...]

    @property
    def config(self) -> CoopmatConfig:
        return self.form.config

    @property
    def index(self) -> Scalar:
        return self.form.index

    def place(self, matrix: str, row: Expr, column: Expr) -> Expr:
        """The index of an element of "a", "b" or "c" in its array."""
        number = self.numbers
        batch = [
            times(expr(at), number(f"{matrix}_batch_{which}"))
            for which, at in enumerate(self.batch)
        ]
        return total(
            [
                number(f"{matrix}_offset"),
                *batch,
                times(row, number(f"{matrix}_row")),
                times(column, number(f"{matrix}_column")),
            ]
        )
