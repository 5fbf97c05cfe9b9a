"""A small evaluator of IR, one thread at a time, built on `ir.semantics`: what passes are held to.

`run` executes a kernel for every thread of a launch, in order, and tells an observer the value of
each expression. It is no oracle of the language (no barriers between threads, no reports), and
shares nothing with `passes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sarek_numba.ir import nodes as ir
from sarek_numba.ir import semantics
from sarek_numba.ir.nodes import AtomicOp, BinOp, Coordinate, Direction, Kernel
from sarek_numba.ir.types import BOOL, INT64, Array, Scalar, Unit
from sarek_numba.ir.typing import type_of
from sarek_numba.ir.walk import deep_recursion

Observer = Callable[[ir.Expr, Any], None]
Arguments = dict[int, Any]


class OutOfFuel(Exception):
    """A kernel that runs for too long."""


class _Jump(Exception):
    pass


class _Break(_Jump):
    pass


class _Continue(_Jump):
    pass


@dataclass
class _Return(_Jump):
    value: tuple[Any, ...] = ()


def lane(scalar: Scalar, value: Any) -> Any:
    return np.array([value], semantics.dtype_of(scalar))


@dataclass
class Thread:
    kernel: Kernel
    values: dict[int, Any]
    coordinates: dict[tuple[Coordinate, int], int]
    observe: Observer = lambda expr, value: None
    fuel: int = 3000
    helpers: dict[str, ir.HelperFunction] = field(init=False)

    def __post_init__(self) -> None:
        self.helpers = {helper.name: helper for helper in self.kernel.functions}

    # --- expressions ---

    def value(self, expr: ir.Expr) -> Any:
        result = self._value(expr)
        if isinstance(type_of(expr), Scalar):
            self.observe(expr, result)
        return result

    def _value(self, expr: ir.Expr) -> Any:
        match expr:
            case ir.Const():
                return semantics.as_lane(expr)
            case ir.VarRef(var=var):
                return self.values[var.id]
            case ir.Binary(op=BinOp.AND, left=left, right=right):
                return self.value(right) if self.value(left)[0] else lane(BOOL, False)
            case ir.Binary(op=BinOp.OR, left=left, right=right):
                return lane(BOOL, True) if self.value(left)[0] else self.value(right)
            case ir.Binary(op=op, left=left, right=right):
                function = semantics.binary(op, type_of(left))
                with np.errstate(all="ignore"):
                    return function(self.value(left), self.value(right))
            case ir.Unary(op=op, operand=operand):
                return semantics.unary(op, type_of(operand))(self.value(operand))
            case ir.Cast(type=target, operand=operand):
                return semantics.cast(type_of(operand), target)(self.value(operand))
            case ir.Intrinsic(name=name, args=args, type=type):
                function = semantics.intrinsic(name, type_of(args[0]), type)
                return function(*[self.value(arg) for arg in args])
            case ir.Index(coordinate=coordinate, axis=axis, type=type):
                return lane(type, self.coordinates[coordinate, axis])
            case ir.Subscript(index=index, extent=extent, wrap=wrap):
                at, size = self.value(index), self.value(extent)
                return at + size if wrap and at[0] < 0 else at
            case ir.ArrayRead(array=array, index=index):
                at = int(self.value(index)[0])
                assert 0 <= at < len(self.values[array.id]), "index out of range"
                return self.values[array.id][at : at + 1].copy()
            case ir.IfExpr(condition=condition, then=then, orelse=orelse):
                return self.value(then if self.value(condition)[0] else orelse)
            case ir.ArrayLen(array=array):
                return lane(INT64, len(self.values[array.id]))
            case ir.App(function=function, args=args):
                return self.call(function, args)[0]
            case _:
                raise NotImplementedError(expr)

    # --- statements ---

    def body(self, body: ir.Body) -> None:
        for stmt in body:
            self.statement(stmt)

    def statement(self, stmt: ir.Stmt) -> None:
        self.fuel -= 1
        if self.fuel < 0:
            raise OutOfFuel
        match stmt:
            case ir.Let(var=var, value=value) | ir.Assign(target=ir.LVar(var=var), value=value):
                self.values[var.id] = self.value(value)
            case ir.LetMut(var=var, value=value):
                new = lane(var.type, 0) if value is None else self.value(value)
                self.values[var.id] = new
            case ir.Assign(target=ir.LElement(array=array, index=index), value=value):
                new = self.value(value)
                at = int(self.value(index)[0])
                assert 0 <= at < len(self.values[array.id]), "index out of range"
                self.values[array.id][at] = new[0]
            case ir.If(condition=condition, then=then, orelse=orelse):
                self.body(then if self.value(condition)[0] else orelse)
            case ir.While() | ir.For():
                self.loop(stmt)
            case ir.Break():
                raise _Break
            case ir.Continue():
                raise _Continue
            case ir.Return(value=value):
                items = value.items if isinstance(value, ir.TupleExpr) else (value,)
                raise _Return(tuple([self.value(item) for item in items if item is not None]))
            case ir.Seq(body=body) | ir.Block(body=body) | ir.Pragma(body=body):
                self.body(body)
            case ir.Call(results=results, function=function, args=args):
                for var, new in zip(results, self.call(function, args), strict=True):
                    self.values[var.id] = new
            case ir.Atomic():
                self.atomic(stmt)
            case ir.Barrier() | ir.MemFence() | ir.Empty() | ir.Assert() | ir.ExprStmt():
                pass
            case _:
                raise NotImplementedError(stmt)

    def passes(self, stmt: ir.While | ir.For) -> Iterator[None]:
        if isinstance(stmt, ir.While):
            while self.value(stmt.condition)[0]:
                yield
            return
        first, stop, step = (int(self.value(e)[0]) for e in (stmt.first, stmt.stop, stmt.step))
        if stmt.direction is not Direction.RUNTIME:
            assert (step > 0) is (stmt.direction is Direction.UPTO)
        for value in range(first, stop, step) if step else ():
            self.values[stmt.var.id] = lane(stmt.var.type, value)
            yield
        if stmt.unguarded and step:
            final = first + len(range(first, stop, step)) * step
            assert stmt.var.type.minimum <= final <= stmt.var.type.maximum

    def loop(self, stmt: ir.While | ir.For) -> None:
        for _ in self.passes(stmt):
            self.fuel -= 1
            if self.fuel < 0:
                raise OutOfFuel
            try:
                self.body(stmt.body)
            except _Break:
                return
            except _Continue:
                pass

    def call(self, name: str, args: tuple[ir.Expr, ...]) -> tuple[Any, ...]:
        helper = self.helpers[name]
        given = [self.value(arg) for arg in args]
        outer, self.values = self.values, {}
        for param, value in zip(helper.params, given, strict=True):
            self.values[param.id] = value
        for decl in helper.locals:
            size = int(semantics.as_lane(decl.value.size)[0])
            self.values[decl.var.id] = np.zeros(size, semantics.dtype_of(decl.var.type.element))
        try:
            self.body(helper.body)
        except _Return as result:
            return result.value
        finally:
            self.values = outer
        return () if isinstance(helper.result, Unit) else (lane(helper.result, 0),)

    def atomic(self, stmt: ir.Atomic) -> None:
        array, at = self.values[stmt.array.id], int(self.value(stmt.index)[0])
        old = array[at : at + 1].copy()
        if stmt.op is AtomicOp.ADD:
            array[at] += self.value(stmt.value)[0]
        elif stmt.op is AtomicOp.EXCH:
            array[at] = self.value(stmt.value)[0]
        else:
            raise NotImplementedError(stmt.op)
        if stmt.result is not None:
            self.values[stmt.result.id] = old


def run(
    kernel: Kernel,
    arguments: Arguments,
    grid: int = 2,
    block: int = 3,
    observe: Observer = lambda expr, value: None,
) -> Arguments:
    """The arrays after a launch in one dimension; `arguments` are given by id of the parameter.

    Raises OutOfFuel if a thread takes too many steps.
    """
    arrays = {id: np.copy(value) for id, value in arguments.items()}
    with deep_recursion():
        for place in range(grid * block):
            one = dict.fromkeys(((c, axis) for c in Coordinate for axis in (1, 2)), 0) | {
                ((Coordinate.BLOCK_DIM), 1): 1,
                (Coordinate.BLOCK_DIM, 2): 1,
            }
            one |= {
                (Coordinate.GRID_DIM, 1): 1,
                (Coordinate.GRID_DIM, 2): 1,
                (Coordinate.GRID_SIZE, 1): 1,
                (Coordinate.GRID_SIZE, 2): 1,
                (Coordinate.THREAD_IDX, 0): place % block,
                (Coordinate.BLOCK_IDX, 0): place // block,
                (Coordinate.BLOCK_DIM, 0): block,
                (Coordinate.GRID_DIM, 0): grid,
                (Coordinate.GLOBAL_IDX, 0): place,
                (Coordinate.GRID_SIZE, 0): grid * block,
            }
            thread = Thread(kernel, dict(arrays), one, observe)
            for decl in kernel.locals:
                if isinstance(decl.var.type, Array) and isinstance(decl, ir.LocalDecl):
                    size = int(semantics.as_lane(decl.value.size)[0])
                    dtype = semantics.dtype_of(decl.var.type.element)
                    thread.values[decl.var.id] = np.zeros(size, dtype)
            with suppress(_Return):
                thread.body(kernel.body)
    return arrays
