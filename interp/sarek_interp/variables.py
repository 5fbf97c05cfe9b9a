"""Variables and arrays as statements see them: declarations, assignments, stores, atomics."""

from __future__ import annotations

from typing import Any

import numpy as np

from sarek_interp import atomics
from sarek_interp.code import Context, LocalArray, Step, refuse, scalar
from sarek_interp.expressions import compile_expr, compile_index
from sarek_interp.fences import synchronise
from sarek_interp.machine import FALSE, TRUE, Lanes, Machine
from sarek_interp.pairs import part_of
from sarek_numba.ir import semantics
from sarek_numba.ir.nodes import (
    ArrayCreate,
    Assign,
    Atomic,
    AtomicOp,
    Expr,
    LElement,
    LVar,
    Var,
)
from sarek_numba.ir.types import MemSpace


def declaration(c: Context, var: Var, value: Expr) -> Step | None:
    if isinstance(value, ArrayCreate):
        return _new_array(c, var, value)
    compiled = compile_expr(c, value)
    slot = c.declare(var)
    if not var.mutable and compiled.interval is not None:
        c.function.intervals[slot] = compiled.interval
    evaluate = compiled.evaluate

    def run(m: Machine) -> None:
        m.values[slot] = evaluate(m)

    return run


def unbound(c: Context, var: Var) -> Step:
    slot = c.declare(var)
    zero = np.zeros(1, semantics.dtype_of(scalar(var.type, None)))
    bound = c.function.bound.setdefault(slot, c.new_slot())
    c.body.declared.add(bound)

    def run(m: Machine) -> None:
        m.values[slot] = zero
        m.values[bound] = FALSE

    return run


def assignment(c: Context, stmt: Assign) -> Step:
    match stmt.target:
        case LVar(var=var):
            evaluate = compile_expr(c, stmt.value).evaluate
            slot = c.assign(var)
            bound = c.function.bound.get(slot)
            if bound is None:
                return lambda m: merge(m, slot, evaluate(m))
            c.touch(bound)

            def assign_and_bind(m: Machine) -> None:
                merge(m, slot, evaluate(m))
                merge(m, bound, TRUE)

            return assign_and_bind
        case LElement(array=array, index=index):
            return _store(c, stmt, array, index)
        case _:
            raise refuse("an assignment to a part of a record", stmt.span)


def merge(m: Machine, slot: int, value: Lanes) -> None:
    """Give a variable a new value for the live lanes."""
    old = m.values.get(slot)
    if m.mask is None or old is None:
        m.values[slot] = value
    elif old is not value:
        m.values[slot] = np.where(m.mask, value, old)


def _store(c: Context, stmt: Assign, array: Var, index: Expr) -> Step:
    evaluate = compile_expr(c, stmt.value).evaluate
    at = compile_index(c, index)
    slot = c.use(array)
    span = stmt.target.span or stmt.span
    site = c.access_site(span, array, part_of(array, index), "write")

    def run(m: Machine) -> None:
        value = evaluate(m)
        lanes, bad = at(m)
        m.values[slot].write(m, lanes, bad, value, site)
        if m.chunk.launch.watch is not None:
            m.chunk.launch.watch.stored(m, m.values[slot], lanes, site)

    return run


def _new_array(c: Context, var: Var, create: ArrayCreate) -> Step | None:
    slot = c.declare(var)
    array = LocalArray(
        slot, var, scalar(create.element, create.span), constant_size(c, create.size)
    )
    if create.space is MemSpace.SHARED:
        c.static_shared.append(array)
        return None
    c.local_arrays.append(array)
    return lambda m: m.values[slot].forget(m)


def constant_size(c: Context, size: Expr) -> int:
    """The number of elements of a static array: an expression of constants alone."""
    nobody: Any = None
    return int(compile_expr(c, size).evaluate(nobody)[0])


def atomic(c: Context, stmt: Atomic) -> Step:
    at = compile_index(c, stmt.index)
    compare = None if stmt.compare is None else compile_expr(c, stmt.compare).evaluate
    value = None if stmt.value is None else compile_expr(c, stmt.value).evaluate
    array, op = c.use(stmt.array), stmt.op
    result = None if stmt.result is None else c.declare(stmt.result)
    site = c.site(stmt.span)
    reads = op is not AtomicOp.STORE

    def run(m: Machine) -> None:
        storage = m.values[array]
        lanes, bad = at(m)
        operands = [None if e is None else e(m) for e in (compare, value)]
        where, chosen = storage.locate_atomic(m, lanes, bad, site, reads)
        given = [None if x is None else _lanes_of(m, x, chosen) for x in operands]
        old = atomics.update(m, storage, op, where, chosen, given[1], given[0])
        if c.clocked:
            synchronise(m, storage, op, where, chosen, old, given[0])
        if m.chunk.launch.watch is not None and op is not AtomicOp.LOAD:
            m.chunk.launch.watch.stored(m, storage, lanes, site)
        if result is not None:
            if chosen is None:
                m.values[result] = old
            else:
                spread = np.zeros(m.size, old.dtype)
                spread[chosen] = old
                m.values[result] = spread

    return run


def _lanes_of(m: Machine, values: Lanes, lanes: Any) -> Lanes:
    whole = np.broadcast_to(values, m.size)
    return whole if lanes is None else whole[lanes]
