"""Cooperative matrices: fragments are kept whole, one for each warp of the chunk.

A load or store is shared out among the lanes of the warp, component by component, so that each
access is checked and traced as any other's. A multiply-add is `ir.semantics.matrices`. Each
operation checks that its warps are whole and that their lanes name one place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

import numpy as np

from sarek_interp.code import Context, Step
from sarek_interp.expressions import compile_expr, compile_index
from sarek_interp.machine import Lanes, Machine, Mask
from sarek_interp.warps import Warps, check_whole, width_of
from sarek_numba.errors import MisalignedMatrix, WarpDivergence
from sarek_numba.ir import semantics
from sarek_numba.ir.matrices import row_alignment
from sarek_numba.ir.nodes import (
    CMDecl,
    CMFill,
    CMLoad,
    CMMulAdd,
    CMStore,
    Coopmat,
    Fragment,
    Var,
)
from sarek_numba.ir.semantics.matrices import multiply_add
from sarek_numba.ir.types import Array, Scalar, Vec

_AGREE = "compute it from values that are the same for the whole warp"


def compile_matrix(c: Context, stmt: Coopmat) -> Step:
    """The step of an operation."""
    width = width_of(c)
    site = c.site(stmt.span)
    c.body.barriers = True
    match stmt.op:
        case CMDecl(name=name, fragment=fragment):
            return lambda m: _declare(m, Warps(m, width), name, fragment)
        case CMFill(target=name, value=value):
            evaluate = compile_expr(c, value).evaluate

            def fill(m: Machine) -> None:
                given = evaluate(m)
                warps = _gathered(m, width, site, "fill")
                first = _first(m, warps, given, site, "the value of sarek.coopmat.fill()")
                table = m.chunk.fragments[name]
                table[warps.warp] = _as(first, table.dtype)[warps.warp, None, None]

            return fill
        case CMMulAdd(target=target, a=a, b=b, c=addend, config=config):

            def multiply(m: Machine) -> None:
                warps = _gathered(m, width, site, "muladd")
                here = np.unique(warps.warp)
                held = (m.chunk.fragments[name][here] for name in (a, b, addend))
                m.chunk.fragments[target][here] = multiply_add(config, *held)

            return multiply
        case CMLoad() | CMStore():
            return _tile(c, stmt.op, width, site)
        case _:
            assert_never(stmt.op)


def _gathered(m: Machine, width: int, site: int, name: str) -> Warps:
    """The warps that run, of which each must be whole."""
    warps = Warps(m, width)
    check_whole(m, warps, site, f"sarek.coopmat.{name}()")
    return warps


def _declare(m: Machine, warps: Warps, name: str, fragment: Fragment) -> None:
    known = m.chunk.fragments.get(name)
    if known is None:
        shape = (warps.count, fragment.rows, fragment.columns)
        known = np.zeros(shape, semantics.dtype_of(fragment.component))
        m.chunk.fragments[name] = known
    known[warps.warp] = 0


def _first(m: Machine, warps: Warps, values: Lanes, site: int, what: str) -> Lanes:
    """What the lanes of each warp agree on; that they do not is a finding."""
    table = warps.of_all(m, values)
    there = np.zeros(table.shape, np.bool_)
    there[warps.warp, warps.lane] = True
    leader = np.argmax(there, axis=1)
    first: Lanes = np.take_along_axis(table, leader[:, None], axis=1)[:, 0]
    differing = there & (table != first[:, None]) & ((table == table) | (first == first)[:, None])
    if differing.any():
        apart = np.flatnonzero(differing[warps.warp, warps.lane])
        selected = m.selected()
        lanes = apart if selected is None else selected[apart]
        message = f"{what} is not the same for all threads of this warp"
        m.report(WarpDivergence, site, lanes, lambda: {"message": message, "hint": _AGREE})
    return first


def _as(values: Lanes, dtype: Any) -> Lanes:
    """Components as a type: what is of another one is the bits of halves, or is to be these."""
    return values if values.dtype == dtype else values.view(dtype)


# --- memory ---------------------------------------------------------------------------------------


def _tile(c: Context, op: CMLoad | CMStore, width: int, site: int) -> Step:
    array = op.source if isinstance(op, CMLoad) else op.target
    name = "load" if isinstance(op, CMLoad) else "store"
    at, stride = compile_index(c, op.index), compile_expr(c, op.stride).evaluate
    slot = c.use(array)
    held = op.target if isinstance(op, CMLoad) else op.source
    fragment = op.fragment
    rounds = _components(fragment, width)
    stored = semantics.dtype_of(_element(array))
    check = _alignment(op, array.name)

    def run(m: Machine) -> None:
        index, bad = at(m)
        step = stride(m)
        warps = _gathered(m, width, site, name)
        _first(m, warps, index, site, f"the place of sarek.coopmat.{name}()")
        _first(m, warps, step, site, f"the stride of sarek.coopmat.{name}()")
        check(m, index, step, site)
        storage, table = m.values[slot], m.chunk.fragments[held]
        lane = _of_frame(m, warps.lane)
        for rows, columns, valid in rounds:
            row, column = rows[lane], columns[lane]
            outer, inner = (column, row) if op.column_major else (row, column)
            place = index + outer * step + inner
            out = ~valid[lane] if bad is None else ~valid[lane] | bad
            outside: Mask | None = out if out.any() else None
            if isinstance(op, CMLoad):
                read = _as(storage.read(m, place, outside, site), table.dtype)
                found = np.broadcast_to(read, m.size)
                _put(m, warps, table, found, row, column, valid)
            else:
                mine = np.zeros(m.size, table.dtype)
                selected = slice(None) if m.selected() is None else m.selected()
                mine[selected] = table[warps.warp, row[selected], column[selected]]
                storage.write(m, place, outside, _as(mine, stored), site)

    return run


def _element(array: Var) -> Scalar:
    assert isinstance(array.type, Vec | Array)
    assert isinstance(array.type.element, Scalar)
    return array.type.element


def _put(
    m: Machine,
    warps: Warps,
    table: Lanes,
    found: Lanes,
    row: Lanes,
    column: Lanes,
    valid: Mask,
) -> None:
    """Give the components of one round what their lanes have read."""
    selected = m.selected()
    where = np.arange(m.size) if selected is None else selected
    chosen = valid[warps.lane]
    lanes = where[chosen]
    table[warps.warp[chosen], row[lanes], column[lanes]] = found[lanes]


def _of_frame(m: Machine, of_selected: Lanes) -> Lanes:
    """A number of each running lane, for all lanes of the frame."""
    selected = m.selected()
    if selected is None:
        return of_selected
    whole = np.zeros(m.size, of_selected.dtype)
    whole[selected] = of_selected
    return whole


def _components(fragment: Fragment, width: int) -> list[tuple[Lanes, Lanes, Mask]]:
    """For each round the component of each lane: its row, its column, and whether there is one."""
    count = fragment.rows * fragment.columns
    rounds = []
    for first in range(0, count, width):
        component = first + np.arange(width)
        valid = component < count
        row, column = np.divmod(np.where(valid, component, 0), fragment.columns)
        rounds.append((row, column, valid))
    return rounds


def _alignment(op: CMLoad | CMStore, name: str) -> Callable[[Machine, Lanes, Lanes, int], None]:
    """Report places and strides at which a device may not load or store a row."""
    wanted = row_alignment(op.fragment, op.column_major)
    size = wanted * op.fragment.component.bits // 8
    row = "columns" if op.column_major else "rows"

    def check(m: Machine, index: Lanes, stride: Lanes, site: int) -> None:
        for word, values in (("place", index), ("stride", stride)):
            off = m.narrowed((values % wanted != 0) | (values < 0))
            if off.any():
                lanes = np.flatnonzero(off)
                first = int(np.broadcast_to(values, m.size)[lanes[0]])

                def explain(word: str = word, first: int = first) -> dict[str, Any]:
                    what, hint = "is negative", "give one from 0 on"
                    if first >= 0:
                        what = f"begins {row} elsewhere than at multiples of {size} bytes"
                        hint = f"use a multiple of {wanted} elements"
                    message = f"the {word} {first} in '{name}' {what}"
                    return {"message": message, "array": name, "hint": hint}

                m.report(MisalignedMatrix, site, lanes, explain, word)

    return check
