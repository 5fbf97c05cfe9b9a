"""Which arrays a kernel reads, writes and updates atomically: one analysis for all who ask.

An array is named by its Var in the kernel (a parameter, a shared, local or constant array); what
helpers do counts for the arrays that they are given. An atomic load is a read, an atomic store is a
write, every other atomic is both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sarek_numba.ir.nodes import (
    App,
    ArrayRead,
    Atomic,
    AtomicOp,
    Body,
    Call,
    CMLoad,
    Coopmat,
    Expr,
    Kernel,
    Stmt,
    Var,
    VarRef,
)
from sarek_numba.ir.types import Array, UserArgument, Vec
from sarek_numba.ir.walk import assigned_by, expressions_of, walk_exprs, walk_stmts


@dataclass(frozen=True, slots=True)
class Effects:
    """Arrays read, written and updated atomically, as ids of Vars."""

    reads: frozenset[int]
    writes: frozenset[int]
    atomics: frozenset[int]


def effects_of(kernel: Kernel) -> Effects:
    """The effects of a kernel's body, helpers included."""
    helpers: dict[str, _Summary] = {}
    for function in kernel.functions:  # callees come before their callers
        summary = _summarise(function.body, helpers)
        helpers[function.name] = _Summary(function.params, summary.sets)
    reads, writes, atomics = _summarise(kernel.body, helpers).sets
    return Effects(frozenset(reads), frozenset(writes), frozenset(atomics))


def reads(kernel: Kernel) -> frozenset[int]:
    """Positions of the user's array arguments that the kernel may read."""
    return arguments(kernel, effects_of(kernel).reads)


def writes(kernel: Kernel) -> frozenset[int]:
    """Positions of the user's array arguments that the kernel may write."""
    return arguments(kernel, effects_of(kernel).writes)


def atomics(kernel: Kernel) -> frozenset[int]:
    """Positions of the user's array arguments that the kernel may update atomically."""
    return arguments(kernel, effects_of(kernel).atomics)


def arguments(kernel: Kernel, variables: Iterable[int]) -> frozenset[int]:
    """Positions of the user's arguments among some variables, given by id."""
    wanted = set(variables)
    return frozenset(
        param.role.argument
        for param in kernel.params
        if param.var.id in wanted and isinstance(param.role, UserArgument)
    )


def columns(kernel: Kernel, variables: Iterable[int]) -> frozenset[tuple[int, int]]:
    """Position and column of the columns of the user's arguments among some variables."""
    wanted = set(variables)
    return frozenset(
        (param.role.argument, param.role.column)
        for param in kernel.params
        if param.var.id in wanted
        and isinstance(param.role, UserArgument)
        and param.role.column is not None
    )


_Sets = tuple[set[int], set[int], set[int]]


@dataclass(frozen=True, slots=True)
class _Summary:
    params: tuple[Var, ...]
    sets: _Sets


def _summarise(body: Body, helpers: Mapping[str, _Summary]) -> _Summary:
    sets: _Sets = (set(), set(), set())
    for stmt in walk_stmts(body):
        _add_stmt(stmt, sets, helpers)
        for expr in walk_exprs(*expressions_of(stmt)):
            if isinstance(expr, ArrayRead):
                sets[0].add(expr.array.id)
            elif isinstance(expr, App):
                _add_call(expr.function, expr.args, sets, helpers)
    return _Summary((), sets)


def _add_stmt(stmt: Stmt, sets: _Sets, helpers: Mapping[str, _Summary]) -> None:
    read, written, atomic = sets
    match stmt:
        case Atomic(op=op, array=array):
            atomic.add(array.id)
            if op is not AtomicOp.STORE:
                read.add(array.id)
            if op is not AtomicOp.LOAD:
                written.add(array.id)
        case Call(function=function, args=args):
            _add_call(function, args, sets, helpers)
        case Coopmat(op=CMLoad(source=array)):
            read.add(array.id)
        case _:
            target = assigned_by(stmt)
            if target is not None and isinstance(target.type, Vec | Array):
                written.add(target.id)


def _add_call(
    function: str, args: tuple[Expr, ...], sets: _Sets, helpers: Mapping[str, _Summary]
) -> None:
    callee = helpers[function]
    for param, array in array_arguments(callee.params, args):
        for ours, theirs in zip(sets, callee.sets, strict=True):
            if param.id in theirs:
                ours.add(array.id)


def array_arguments(params: tuple[Var, ...], args: tuple[Expr, ...]) -> Iterator[tuple[Var, Var]]:
    """The array parameters of a helper, each with the array that a call gives it."""
    for param, arg in zip(params, args, strict=True):
        if isinstance(param.type, Vec | Array) and isinstance(arg, VarRef):
            yield param, arg.var
