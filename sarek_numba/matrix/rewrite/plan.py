"""Which form of a rewrite a launch gets: variant, tiling, types of indices, how matrices lie.

The order of the tables is a preference: larger tiles read operands less often, as long as there are
enough of them for all parts of a device.
"""

from __future__ import annotations

from collections.abc import Sequence

from sarek_numba.capability import Limits
from sarek_numba.ir.matrices import fragments_of, row_alignment
from sarek_numba.ir.nodes import CoopmatConfig
from sarek_numba.ir.types import Scalar
from sarek_numba.matrix import testing
from sarek_numba.matrix.bind import Bound, Placement
from sarek_numba.matrix.lowering import Lowering
from sarek_numba.matrix.product import Product
from sarek_numba.matrix.rewrite.epilogue import scratch_size
from sarek_numba.matrix.rewrite.form import Direct, Form, Lines, Staged, Tiling, Variant
from sarek_numba.matrix.rewrite.scheme import Scheme, scheme_of
from sarek_numba.matrix.rewrite.tiles import shared_bytes

# Warps of a block, fragments of a warp, and the bytes of a row of A that a step takes at least.
TILINGS = (
    ((2, 4), (4, 2), 64),
    ((2, 2), (2, 2), 64),
    ((2, 2), (1, 1), 32),
    ((1, 1), (1, 1), 16),
)
DIRECT = (((2, 2), (2, 2)), ((1, 2), (2, 1)), ((1, 1), (1, 1)))
MOST_SUMS = 64  # registers of a thread that hold sums
ENOUGH_TILES = 128  # for the parts of a large device
_HALF = 16  # bits
_ALIGNED = 16  # bytes


def lines_of(rows: int, columns: int, at: Placement) -> Lines:
    """How a matrix lies; one row or column lies as suits."""
    if at.column_stride == 1:
        return Lines.ROWS
    return Lines.COLUMNS if at.row_stride == 1 else Lines.NONE


def forms_of(
    *,
    product: Product,
    bound: Bound,
    lowering: Lowering,
    config: CoopmatConfig,
    width: int,
    index: Scalar,
    limits: Limits,
    aligned: tuple[bool, bool],
) -> list[Form] | str:
    """The forms that fit a launch, by preference, or why there is none. `aligned` says of A and B
    whether element 0 of the buffer stands at a multiple of 16 bytes.
    """
    scheme = scheme_of(product, lowering)
    lines = (
        lines_of(bound.m, bound.k, bound.a),
        lines_of(bound.k, bound.n, bound.b),
        lines_of(bound.m, bound.n, bound.c),
    )

    def made(variant: Variant, tiling: Tiling) -> Form:
        return Form(lowering, variant, tiling, config, width, index, *lines)

    directs = _directs(product, bound, config, scheme, lines, aligned)
    fitting = [
        form
        for form in (
            *(made(Direct(tiling.count), tiling) for tiling in directs),
            *(made(Staged(), tiling) for tiling in _tilings(config)),
        )
        if _fits(form, scheme, limits)
    ]
    if any(isinstance(form.variant, Staged) for form in fitting):
        return fitting
    return f"its tiles take more than the {limits.shared_bytes} bytes of shared memory there are"


def preferred(forms: Sequence[Form], bound: Bound) -> Form:
    """The form of a launch for which nothing was measured: a direct one, or the largest tiles of
    which there are enough.
    """
    staged = [form for form in forms if isinstance(form.variant, Staged)]
    wanted = testing.tiling.get()
    if wanted is not None:
        return staged[min(wanted, len(staged) - 1)]
    if isinstance(forms[0].variant, Direct):
        return forms[0]
    return next((form for form in staged if _tiles(form, bound) >= ENOUGH_TILES), staged[-1])


def _tilings(config: CoopmatConfig) -> list[Tiling]:
    row = config.k * config.a.bits // 8
    return [Tiling(warps, fragments, max(1, bytes_ // row)) for warps, fragments, bytes_ in TILINGS]


def _tiles(form: Form, bound: Bound) -> int:
    rows, columns, _ = form.tiling.shape(form.config)
    count = -(-bound.m // rows) * -(-bound.n // columns)
    for size in bound.batch:
        count *= size
    return count


def _fits(form: Form, scheme: Scheme, limits: Limits) -> bool:
    """Whether a block has the threads, the registers and the shared memory."""
    config, tiling = form.config, form.tiling
    fragments = tiling.fragments[0] * tiling.fragments[1] * scheme.planes
    if fragments * config.m * config.n > MOST_SUMS * form.width:
        return False
    if form.threads > min(limits.threads_per_block, limits.block[0]):
        return False
    return _shared(form, scheme) <= limits.shared_bytes


def _shared(form: Form, scheme: Scheme) -> int:
    config = form.config
    rows, columns, inner = form.tiling.shape(config)
    total = scratch_size(form, scheme) * config.result.bits // 8
    if isinstance(form.variant, Staged):
        total += shared_bytes(rows, inner, config.a, scheme.a)
        total += shared_bytes(columns, inner, config.b, scheme.b)
    return total


# --- without staging ------------------------------------------------------------------------------


def _directs(
    product: Product,
    bound: Bound,
    config: CoopmatConfig,
    scheme: Scheme,
    lines: tuple[Lines, Lines, Lines],
    aligned: tuple[bool, bool],
) -> list[Tiling]:
    """Tilings of whole tiles of operands of 16 bits whose rows are aligned."""
    wanted = testing.direct.get()
    if wanted is False or len(scheme.terms) > 1:
        return []
    operands = ((product.a.type, config.a), (product.b.type, config.b))
    if any(type is not component for type, component in operands):
        return []
    if wanted is None and any(type.bits != _HALF for type, _ in operands):
        return []
    shapes = fragments_of(config)
    for which, at, order, is_aligned in (
        ("a", bound.a, lines[0], aligned[0]),
        ("b", bound.b, lines[1], aligned[1]),
    ):
        turned = order is Lines.COLUMNS
        unit = row_alignment(shapes[which], turned)
        stride = at.column_stride if turned else at.row_stride
        places = (at.offset, stride, *at.batch_strides)
        if order is Lines.NONE or stride < 0 or not is_aligned or any(p % unit for p in places):
            return []
    found = [Tiling(warps, fragments, 1) for warps, fragments in DIRECT]
    return [tiling for tiling in found if _is_whole(tiling, config, bound)]


def _is_whole(tiling: Tiling, config: CoopmatConfig, bound: Bound) -> bool:
    rows, columns, inner = tiling.shape(config)
    return not (bound.m % rows or bound.n % columns or bound.k % inner)


__all__ = ["forms_of", "lines_of", "preferred"]
