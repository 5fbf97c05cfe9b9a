"""Random kernels for the passes: integers of several widths, every statement, indices in range.

Every kernel is legal, ends (a `while` counts its passes down), and reads and writes within its
arrays, so that its results are defined and a pass must keep them bit for bit.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from sarek_numba.ir import build as b
from sarek_numba.ir import nodes as ir
from sarek_numba.ir.nodes import BinOp, Expr, Kernel, Stmt, Var
from sarek_numba.ir.types import BOOL, FLOAT32, INT32, INT64, Scalar
from sarek_numba.ir.typing import scalar_of

LENGTH = 16
_TYPES = (INT64, INT64, INT64, INT32, Scalar.UINT8, Scalar.INT8, Scalar.UINT64, Scalar.UINT32)
_ARITHMETIC = (
    *(BinOp.ADD, BinOp.SUB, BinOp.MUL, BinOp.DIV, BinOp.MOD, BinOp.FLOORDIV, BinOp.FLOORMOD),
    *(BinOp.BITAND, BinOp.BITOR, BinOp.BITXOR, BinOp.SHL, BinOp.SHR, BinOp.ADD, BinOp.SUB),
)
_COMPARE = (BinOp.EQ, BinOp.NE, BinOp.LT, BinOp.LE, BinOp.GT, BinOp.GE)
_EDGES = (0, 0, 1, 1, 2, 3, 4, 7, 8, 16, 100, 127, 128, 255, 2**31 - 1, 2**31, 2**32, 2**62)


@dataclass
class Generator:
    seed: int
    fresh: b.Fresh = field(default_factory=b.Fresh)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.data = b.array_param(self.fresh, "data", INT32, 0)
        self.length = b.length_param(self.fresh, "length", 0)
        self.wide = b.array_param(self.fresh, "wide", INT64, 1)
        self.real = b.array_param(self.fresh, "real", FLOAT32, 2)
        self.n = b.scalar_param(self.fresh, "n", INT32, 3)
        self.m = b.scalar_param(self.fresh, "m", INT64, 4)
        self.scope: list[Var] = [self.n.var, self.m.var]
        self.helpers: list[ir.HelperFunction] = []

    def kernel(self) -> Kernel:
        for _ in range(self.random.randrange(3)):
            self.helpers.append(self.helper())
        # what the kernel computed is seen at its end, unless it returned before
        body = self.body(4, loop=False, helper=False)
        return ir.make_kernel(
            f"random{self.seed}",
            (*body, *self.stores()),
            params=(self.data, self.length, self.wide, self.real, self.n, self.m),
            functions=tuple(self.helpers),
        )

    def arguments(self) -> dict[int, np.ndarray]:
        rng = np.random.default_rng(self.seed)
        edges = np.array([0, 1, -1, 7, 2**31 - 1, -(2**31), 2**40], np.int64)
        return {
            self.data.var.id: rng.integers(-20, 20, LENGTH).astype(np.int32),
            self.wide.var.id: np.where(rng.random(LENGTH) < 0.5, rng.choice(edges, LENGTH), 3),
            self.real.var.id: (rng.random(LENGTH) * 8 - 4).astype(np.float32),
            self.length.var.id: np.array([LENGTH], np.int32),
            self.n.var.id: rng.choice(np.array([0, 3, 17, -5], np.int32), 1),
            self.m.var.id: rng.choice(edges, 1),
        }

    # --- expressions ---

    def expr(self, type: Scalar, depth: int) -> Expr:
        pick = self.random.random
        if depth <= 0 or pick() < 0.15:
            return self.leaf(type)
        if pick() < 0.5:
            op = self.random.choice(_ARITHMETIC)
            right = self.expr(type, depth - 1)
            if op in ir.SHIFTS and pick() < 0.7:
                right = b.lit(type, self.random.randrange(8))
            return ir.Binary(op, self.expr(type, depth - 1), right)
        if pick() < 0.25:
            op = self.random.choice((ir.UnOp.NEG, ir.UnOp.BITNOT))
            return ir.Unary(op, self.expr(type, depth - 1))
        if pick() < 0.35:
            name = self.random.choice(("min", "max", "abs", "popcount", "ipow", "fmax"))
            count = 1 if name in ("abs", "popcount") else 2
            args = [self.expr(type, depth - 1) for _ in range(count)]
            return b.intrinsic(name, *args)
        if pick() < 0.4:
            condition = self.condition(depth - 1)
            return b.select(condition, self.expr(type, depth - 1), self.expr(type, depth - 1))
        if pick() < 0.5 and type is INT64:
            return self.read(depth - 1)
        return b.cast(type, self.expr(self.random.choice(_TYPES), depth - 1))

    def leaf(self, type: Scalar) -> Expr:
        known = [var for var in self.scope if var.type is type]
        if known and self.random.random() < 0.6:
            return ir.VarRef(self.random.choice(known))
        if type is INT64 and self.random.random() < 0.3:
            names = ("thread_idx", "block_idx", "block_dim", "global_idx", "grid_size")
            return b.coordinate(self.random.choice(names))
        value = self.random.choice(_EDGES) * self.random.choice((1, 1, -1))
        return b.lit(type, min(max(value, type.minimum), type.maximum))

    def read(self, depth: int) -> Expr:
        array = self.random.choice((self.data.var, self.wide.var))
        return b.cast(INT64, b.read(array, self.index(array, depth)))

    def index(self, array: Var, depth: int) -> Expr:
        """A subscript that is in range, whatever the expression in it."""
        inner = self.expr(INT64, depth)
        extent = b.cast(INT64, self.length.var)
        match self.random.randrange(4):
            case 0:
                return b.subscript(array, 0, b.bitand(inner, LENGTH - 1), extent, wrap=True)
            case 1:
                centred = b.sub(b.floormod(inner, 2 * LENGTH), LENGTH)
                return b.subscript(array, 0, centred, extent, wrap=True)
            case 2:
                low = b.intrinsic("max", inner, b.lit(INT64, 0))
                clamped = b.intrinsic("min", low, b.lit(INT64, LENGTH - 1))
                return b.subscript(array, 0, clamped, extent, wrap=True)
            case _:
                row = b.subscript(array, 0, b.bitand(inner, 3), b.lit(INT64, 4))
                column = b.subscript(array, 1, b.bitand(self.leaf(INT64), 3), b.lit(INT64, 4))
                return b.add(b.mul(row, 4), column)

    def condition(self, depth: int) -> Expr:
        pick = self.random.random()
        if depth > 0 and pick < 0.15:
            return b.and_(self.condition(depth - 1), self.condition(depth - 1))
        if depth > 0 and pick < 0.3:
            return b.or_(self.condition(depth - 1), self.condition(depth - 1))
        if depth > 0 and pick < 0.4:
            return b.not_(self.condition(depth - 1))
        known = [var for var in self.scope if var.type is BOOL]
        if known and pick < 0.55:
            return ir.VarRef(self.random.choice(known))
        type = self.random.choice(_TYPES)
        op = self.random.choice(_COMPARE)
        left = self.leaf(type) if pick < 0.8 else self.expr(type, depth - 1)
        return ir.Binary(op, left, self.leaf(type))

    # --- statements ---

    def body(self, depth: int, *, loop: bool, helper: bool) -> tuple[Stmt, ...]:
        outer = list(self.scope)
        body: list[Stmt] = []
        for _ in range(self.random.randrange(1, 6)):
            body += self.statement(depth, loop=loop, helper=helper)
        if depth < 4:
            self.scope = outer
        return tuple(body)

    def stores(self) -> list[Stmt]:
        stores: list[Stmt] = []
        for var in self.scope:
            if isinstance(var.type, Scalar) and var.type.is_integer:
                place = b.coordinate("global_idx")
                stores.append(b.store(self.wide.var, place, b.cast(INT64, var)))
        return self.random.sample(stores, min(2, len(stores)))

    def statement(self, depth: int, *, loop: bool, helper: bool) -> list[Stmt]:
        pick = self.random.random()
        if pick < 0.22:
            type = self.random.choice(_TYPES)
            value = self.expr(type, 3)
            var = self.fresh("v", type, mutable=self.random.random() < 0.6)
            self.scope.append(var)
            return [ir.LetMut(var, value) if var.mutable else ir.Let(var, value)]
        if pick < 0.28:
            value = self.condition(2)
            var = self.fresh("c", BOOL)
            self.scope.append(var)
            return [ir.Let(var, value)]
        if pick < 0.5:
            mutable = [v for v in self.scope if v.mutable and not v.name.startswith("fuel")]
            if mutable:
                var = self.random.choice(mutable)
                if self.random.random() < 0.4:
                    step = b.lit(var.type, self.random.choice((1, 2, 3)))
                    return [b.assign(var, b.add(var, step))]
                return [b.assign(var, self.expr(scalar_of(ir.VarRef(var)), 2))]
        if pick < 0.6 and not helper:
            array, type = self.random.choice(((self.data.var, INT32), (self.wide.var, INT64)))
            return [b.store(array, self.index(array, 2), self.expr(type, 2))]
        if depth > 0 and pick < 0.75:
            then = self.body(depth - 1, loop=loop, helper=helper)
            orelse = self.body(depth - 1, loop=loop, helper=helper)
            return [b.if_(self.condition(2), then, orelse if self.random.random() < 0.5 else ())]
        if depth > 0 and pick < 0.84:
            return [self.for_loop(depth, helper)]
        if depth > 0 and pick < 0.9:
            return self.while_loop(depth, helper)
        if pick < 0.93 and loop:
            jump = self.random.choice((ir.Break(), ir.Continue()))
            return [b.if_(self.condition(1), [jump])]
        if pick < 0.95:
            value = self.expr(INT64, 2) if helper else None
            return [b.if_(self.condition(1), [ir.Return(value)])]
        if self.helpers and not helper:
            return self.call()
        return []

    def for_loop(self, depth: int, helper: bool) -> Stmt:
        var = self.fresh("k", INT64)
        first: Expr = b.lit(INT64, self.random.choice((0, 0, 0, -3, 2**31 - 2, 5)))
        step = self.random.choice((1, 1, 1, 2, -1, -2))
        count = self.random.choice((0, 2, 3))
        stop: Expr = b.lit(INT64, first.value + count * step)  # type: ignore[union-attr]
        if self.random.random() < 0.4 and step > 0:
            first, stop = b.lit(INT64, 0), b.cast(INT64, self.n.var)
        self.scope.append(var)
        body = self.body(depth - 1, loop=True, helper=helper)
        self.scope.remove(var)
        if self.random.random() < 0.2:
            direction = ir.Direction.RUNTIME
            return ir.For(var, first, stop, b.lit(INT64, step), direction, body)
        return b.for_(var, first, stop, *body, step=step)

    def while_loop(self, depth: int, helper: bool) -> list[Stmt]:
        fuel = self.fresh("fuel", INT64, mutable=True)
        body = self.body(depth - 1, loop=True, helper=helper)
        if self.random.random() < 0.5:
            count = b.assign(fuel, b.sub(fuel, 1))
            condition = b.gt(fuel, 0)
            start = 5
        else:
            count, condition, start = b.assign(fuel, b.floordiv(fuel, 2)), b.ne(fuel, 0), 9
        if self.random.random() < 0.4:
            condition = b.and_(condition, self.condition(1))
        return [b.let_mut(fuel, start), b.while_(condition, count, *body)]

    def helper(self) -> ir.HelperFunction:
        outer = self.scope
        array = self.fresh("base", self.wide.var.type)
        params = [self.fresh("p", INT64), self.fresh("q", INT64)]
        self.scope = list(params)
        body = self.body(3, loop=False, helper=True)
        reads = b.read(array, b.bitand(params[0], LENGTH - 1))
        last = ir.Return(b.add(self.expr(INT64, 2), reads))
        self.scope = outer
        name = f"helper{len(self.helpers)}"
        body = tuple(_without_reads((*body, last), self, array))
        return ir.HelperFunction(name, (array, *params), INT64, body)

    def call(self) -> list[Stmt]:
        helper = self.random.choice(self.helpers)
        result = self.fresh("r", INT64)
        args = (ir.VarRef(self.wide.var), self.expr(INT64, 2), self.expr(INT64, 2))
        self.scope.append(result)
        return [ir.Call((result,), helper.name, args)]


def _without_reads(body: tuple[Stmt, ...], generator: Generator, array: Var) -> list[Stmt]:
    """The body of a helper with the kernel's arrays and parameters replaced by what it is given."""
    from sarek_numba.ir.walk import substitute_body

    values: dict[int, Expr] = {
        generator.wide.var.id: ir.VarRef(array),
        generator.data.var.id: ir.VarRef(array),
        generator.length.var.id: b.lit(INT32, LENGTH),
        generator.n.var.id: b.lit(INT32, 3),
    }
    return list(substitute_body(body, values))
