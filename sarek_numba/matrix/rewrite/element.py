"""What becomes of one finished sum, as a kernel: for devices that add up in a way of their own."""

from __future__ import annotations

from collections.abc import Sequence

from sarek_numba.ir.build import cast, expr
from sarek_numba.ir.nodes import Kernel, ParamDecl, Var
from sarek_numba.ir.types import UserArgument
from sarek_numba.matrix.product import Product
from sarek_numba.matrix.rewrite.epilogue import stored
from sarek_numba.matrix.rewrite.form import Form
from sarek_numba.matrix.rewrite.frame import Frame
from sarek_numba.matrix.rewrite.kernel import beyond
from sarek_numba.matrix.rewrite.numbers import numbers_of
from sarek_numba.matrix.rewrite.scheme import scheme_of


def element(
    kernel: Kernel, product: Product, form: Form, names: Sequence[str], arguments: int
) -> Kernel:
    """A kernel whose thread stores one element; the product has at most one batch axis.

    Its parameters are those of `kernel`, behind its `arguments` the numbers of these names
    (`numbers.values`), and then row, column, batch and sum.
    """
    fresh = beyond(kernel, product)
    numbers = numbers_of(names, form, arguments, fresh)
    kind = form.index
    row, column, batch = (fresh(name, kind) for name in ("row", "column", "batch"))
    summed = fresh("sum", form.lowering.accumulator)
    unused: Var = row  # threads have no places in blocks here
    frame = Frame(
        product=product,
        form=form,
        scheme=scheme_of(product, form.lowering),
        numbers=numbers,
        fresh=fresh,
        thread=unused,
        lane=unused,
        warp=unused,
        warp_row=unused,
        warp_column=unused,
        first_row=unused,
        first_column=unused,
        batch=(batch,) * len(product.batch),
    )
    first = arguments + len(names)
    told = tuple(
        ParamDecl(var, None, UserArgument(first + at))
        for at, var in enumerate((row, column, batch, summed))
    )
    value = expr(summed)
    if product.accumulator is not form.lowering.accumulator:
        value = cast(product.accumulator, value)
    return Kernel(
        name=kernel.name,
        body=tuple(stored(frame, value, (row, column))),
        params=(*kernel.params, *numbers.params, *told),
        index_bits=kernel.index_bits,
        fastmath=kernel.fastmath,
        span=kernel.span,
    )
