"""Products computed by NumPy from nothing but a `Product` and the numbers of a launch."""

from __future__ import annotations

from typing import Any

import numpy as np

from sarek_numba.ir.nodes import ArrayRead, Expr, Kernel, VarRef
from sarek_numba.ir.semantics import dtype_of
from sarek_numba.ir.types import LengthOf, OffsetOf, Role, ShapeOf, StrideOf, UserArgument
from sarek_numba.matrix.bind import Bound, Launch, Placement, bind, leaves
from sarek_numba.matrix.evaluate import evaluate
from sarek_numba.matrix.product import Product
from sarek_numba.matrix.reasons import NotAProduct


def facts(kernel: Kernel, args: list[Any], grid: Any, block: Any) -> Launch:
    """What a launch is told of its arguments."""
    values = {decl.role: _value(decl.role, args) for decl in kernel.params if decl.array is None}
    buffers = {
        at: (arg.__array_interface__["data"][0], arg.itemsize)
        for at, arg in enumerate(args)
        if isinstance(arg, np.ndarray)
    }
    return Launch(_three(grid), _three(block), values, buffers)


def _three(sizes: Any) -> tuple[int, int, int]:
    x, y, z = (*sizes, 1, 1, 1)[:3]
    return x, y, z


def _value(role: Role, args: list[Any]) -> Any:
    match role:
        case UserArgument(argument=at):
            return args[at]
        case LengthOf(argument=at):
            return args[at].size
        case ShapeOf(argument=at, axis=axis):
            return args[at].shape[axis]
        case StrideOf(argument=at, axis=axis):
            return args[at].strides[axis] // args[at].itemsize
        case OffsetOf():
            return 0
    raise AssertionError(role)


def compute(
    kernel: Kernel, product: Product, args: list[Any], launch: Launch
) -> NotAProduct | None:
    """Do what the kernel does, to its arguments, as the product says."""
    bound = bind(kernel, product, launch)
    if isinstance(bound, NotAProduct):
        return bound
    for batch in np.ndindex(*bound.batch):
        _compute_one(kernel, product, args, launch, bound, batch)
    return None


def _compute_one(
    kernel: Kernel,
    product: Product,
    args: list[Any],
    launch: Launch,
    bound: Bound,
    batch: tuple[int, ...],
) -> None:
    rows, columns, inner = (np.arange(size) for size in (bound.m, bound.n, bound.k))
    firsts = dict(bound.firsts)
    axes = {
        product.m.var.id: rows[:, None] + firsts[product.m.var.id],
        product.n.var.id: columns[None, :] + firsts[product.n.var.id],
    }
    for axis, number in zip(product.batch, batch, strict=True):
        axes[axis.var.id] = np.array([[number + firsts[axis.var.id]]])
    place = _indices(bound.c, rows, columns, batch)
    before = _memory(args[product.c.argument], place)
    kind = dtype_of(product.accumulator)
    a = _memory(args[product.a.argument], _indices(bound.a, rows, inner, batch)).astype(kind)
    b = _memory(args[product.b.argument], _indices(bound.b, inner, columns, batch)).astype(kind)
    uniform = leaves(kernel, launch)
    known: dict[int, Any] = {product.before.id: before}
    arguments = {other.array.id: args[other.argument] for other in product.others}

    def leaf(expr: Expr) -> Any:
        match expr:
            case VarRef(var=var) if var.id in axes:
                return np.asarray(axes[var.id], np.int64)
            case VarRef(var=var) if var.id in known:
                return known[var.id]
            case ArrayRead(array=array, index=index):
                return _memory(arguments[array.id], evaluate(index, leaf))
        return uniform(expr)

    with np.errstate(all="ignore"):
        total = a @ b
        if product.factor is not None:
            total = total * evaluate(product.factor, leaf)
        known[product.result.id] = (total + evaluate(product.start, leaf)).astype(kind)
        stored = np.broadcast_to(evaluate(product.epilogue, leaf), place.shape)
    root, origin = _root(args[product.c.argument])
    assert stored.dtype == root.dtype
    root[place + origin] = stored


def _indices(placement: Placement, rows: Any, columns: Any, batch: tuple[int, ...]) -> Any:
    offset = placement.offset + sum(
        at * stride for at, stride in zip(batch, placement.batch_strides, strict=True)
    )
    return offset + rows[:, None] * placement.row_stride + columns * placement.column_stride


def _root(array: Any) -> tuple[Any, int]:
    """All memory around an array, flat, and where the array's first element is in it."""
    root = array
    while root.base is not None:
        root = root.base
    starts = [one.__array_interface__["data"][0] for one in (array, root)]
    return root.reshape(-1, order="A"), (starts[0] - starts[1]) // array.itemsize


def _memory(array: Any, index: Any) -> Any:
    root, origin = _root(array)
    return root[index + origin]


def roots(args: list[Any]) -> list[Any]:
    """All memory around the arguments, copied."""
    return [_root(arg)[0].copy() for arg in args if isinstance(arg, np.ndarray)]
