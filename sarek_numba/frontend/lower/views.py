"""Views of arrays: elements, slices, shapes.

A view is a base array with an offset, a shape and strides, all int64 expressions. Slices follow
Python: bounds count from the end when negative, and are clamped to the axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from sarek_numba.frontend.lower.convert import int64
from sarek_numba.frontend.lower.operators import add, larger, multiply, smaller, subtract
from sarek_numba.frontend.lower.values import Cell, SliceValue, View
from sarek_numba.ir.nodes import Binary, BinOp, Const, Expr, IfExpr, Subscript, Var
from sarek_numba.span import Span

Bind = Callable[[Expr], Expr]
IndexItem = Cell | SliceValue


def whole(base: Var, shape: Sequence[Expr], order: str = "C", pairs: bool = False) -> View:
    """All of an array in C or F order; with `pairs` one of complex elements."""
    return View(base, tuple(map(Cell, shape)), Cell(int64(0)), (), order, pairs)


def strides_of(view: View, bind: Bind) -> list[Expr]:
    """The strides of a view, computed from the shape where the order gives them."""
    if view.order is None:
        return [cell.expr for cell in view.strides]
    axes = list(range(view.ndim))
    if view.order == "C":
        axes.reverse()
    strides: list[Expr] = [int64(1)] * view.ndim
    for before, axis in pairwise(axes):
        strides[axis] = bind(multiply(view.shape[before].expr, strides[before]))
    return strides


def size_of(view: View) -> Expr:
    """The number of elements."""
    size: Expr = int64(1)
    for extent in view.shape:
        size = multiply(size, extent.expr)
    return size


def subscript(view: View, axis: int, index: Expr, span: Span | None) -> Expr:
    """One checked index of one axis; only what is known not to be negative does not wrap."""
    wrap = not (isinstance(index, Const) and int(index.value) >= 0)
    extent = view.shape[axis].expr
    if isinstance(index, Const) and wrap and isinstance(extent, Const):
        index, wrap = int64(int(index.value) + int(extent.value), span), False
    return Subscript(view.base, axis, index, extent, wrap, view.part, span=span)


def flat_index(view: View, indices: Sequence[Expr], span: Span | None) -> Expr:
    """The place in the base of one element, an int64 for each axis."""
    checked = [subscript(view, axis, index, span) for axis, index in enumerate(indices)]
    if view.order is not None:
        axes = range(view.ndim) if view.order == "C" else reversed(range(view.ndim))
        flat: Expr = int64(0)
        for axis in axes:
            flat = add(multiply(flat, view.shape[axis].expr), checked[axis])
        return flat
    flat = view.offset.expr
    for index, stride in zip(checked, view.strides, strict=True):
        flat = add(flat, multiply(index, stride.expr))
    return flat


def select(view: View, items: Sequence[IndexItem], bind: Bind, span: Span | None) -> View:
    """The view that integers and slices select; axes without an item are whole."""
    strides = strides_of(view, bind)
    offset = view.offset.expr
    shape: list[Cell] = []
    steps: list[Cell] = []
    for axis in range(view.ndim):
        item = items[axis] if axis < len(items) else SliceValue(None, None, None)
        if isinstance(item, Cell):
            index = subscript(view, axis, item.expr, span)
            offset = add(offset, multiply(index, strides[axis]))
            continue
        first, extent, step = slice_axis(view.shape[axis].expr, item, bind)
        offset = add(offset, multiply(first, strides[axis]))
        shape.append(Cell(bind(extent)))
        steps.append(Cell(bind(multiply(step, strides[axis]))))
    return replace(view, shape=tuple(shape), offset=Cell(offset), strides=tuple(steps), order=None)


def transpose(view: View) -> View:
    """The view with its axes reversed."""
    order = {"C": "F", "F": "C", None: None}[view.order]
    return replace(view, shape=view.shape[::-1], strides=view.strides[::-1], order=order)


# --- slices ---------------------------------------------------------------------------------------


def slice_axis(extent: Expr, item: SliceValue, bind: Bind) -> tuple[Expr, Expr, Expr]:
    """First index, number of elements and step of a slice of an axis."""
    step: Expr = int64(1) if item.step is None else bind(item.step.expr)
    if item.start is None and item.stop is None and _value(step) == 1:
        return int64(0), extent, step
    extent = bind(extent)
    known = _value(step)
    if item.start is None and item.stop is None and known == -1:
        return subtract(extent, int64(1)), extent, step
    if known is not None:
        first, count = (_upwards if known > 0 else _downwards)(extent, item, step, bind)
        return first, count, step
    up, up_count = _upwards(extent, item, step, bind)
    down, down_count = _downwards(extent, item, step, bind)
    forward = Binary(BinOp.GT, step, int64(0))
    return IfExpr(forward, up, down), IfExpr(forward, up_count, down_count), step


def _upwards(extent: Expr, item: SliceValue, step: Expr, bind: Bind) -> tuple[Expr, Expr]:
    first = int64(0) if item.start is None else bind(_bound(item.start, extent, 0, 0, bind))
    stop = extent if item.stop is None else _bound(item.stop, extent, 0, 0, bind)
    return first, _count(subtract(stop, first), step)


def _downwards(extent: Expr, item: SliceValue, step: Expr, bind: Bind) -> tuple[Expr, Expr]:
    last = subtract(extent, int64(1))
    first = last if item.start is None else _bound(item.start, extent, -1, -1, bind)
    first = bind(first)
    stop = int64(-1) if item.stop is None else _bound(item.stop, extent, -1, -1, bind)
    return first, _count(subtract(first, stop), subtract(int64(0), step))


def _count(distance: Expr, step: Expr) -> Expr:
    """How many steps fit: none if the distance is not positive."""
    distance = larger(distance, int64(0))
    if _value(step) == 1:
        return distance
    rounded = add(distance, subtract(step, int64(1)))
    if isinstance(rounded, Const) and _value(step):
        return int64(int(rounded.value) // int(_value(step) or 1))
    return Binary(BinOp.FLOORDIV, rounded, step, weak=True)


def _bound(cell: Cell, extent: Expr, lowest: int, shift: int, bind: Bind) -> Expr:
    """A bound within lowest … extent + shift, counted from the end if it is negative."""
    highest = add(extent, int64(shift)) if shift else extent
    known = _value(cell.expr)
    if known is not None and known >= 0:
        return smaller(cell.expr, highest)
    if known is not None:
        return larger(add(extent, cell.expr), int64(lowest))
    bound = bind(cell.expr)
    from_end = larger(add(bound, extent), int64(lowest))
    negative = Binary(BinOp.LT, bound, int64(0))
    return IfExpr(negative, from_end, smaller(bound, highest))


def _value(expr: Expr) -> int | None:
    return int(expr.value) if isinstance(expr, Const) else None
