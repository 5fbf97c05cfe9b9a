"""What range analysis is used for: guards and wraparound dropped, weak ints narrowed."""

from __future__ import annotations

from typing import Any

import pytest

from sarek_numba.codegen.target import Target
from sarek_numba.ir import build as b
from sarek_numba.ir import nodes as ir
from sarek_numba.ir.nodes import BinOp, Direction, Expr
from sarek_numba.ir.types import FLOAT32, INT32, INT64, Scalar, ShapeOf
from sarek_numba.ir.verify import verify
from sarek_numba.passes import optimise
from sarek_numba.passes.guards import drop_guards, open_subscripts
from sarek_numba.passes.narrow import narrow

WIDE, SHORT = Target("wide", 64), Target("short", 32)


class Kit:
    """Arrays `a` (int64) and `x` (float32, two axes), and arguments `n` (int32) and `m` (int64)."""

    def __init__(self, index: Scalar = INT32) -> None:
        self.fresh = b.Fresh()
        self.a = b.array_param(self.fresh, "a", INT64, 0)
        self.a_length = b.length_param(self.fresh, "a_length", 0, index)
        self.x = b.array_param(self.fresh, "x", FLOAT32, 1, ndim=2)
        self.rows = b.scalar_param(self.fresh, "rows", index, ShapeOf(1, 0))
        self.columns = b.scalar_param(self.fresh, "columns", index, ShapeOf(1, 1))
        self.n = b.scalar_param(self.fresh, "n", INT32, 2)
        self.m = b.scalar_param(self.fresh, "m", INT64, 3)
        self.wide_n = b.cast(INT64, self.n.var)
        self.extent = b.cast(INT64, self.a_length.var)
        self.i = self.fresh("i", INT64)

    def kernel(self, *body: ir.Stmt, **fields: Any) -> ir.Kernel:
        params = (self.a, self.a_length, self.x, self.rows, self.columns, self.n, self.m)
        kernel = ir.make_kernel("k", body, params=params, **fields)
        verify(kernel)
        return kernel

    def at(self, index: b.Operand, wrap: bool = True) -> Expr:
        return b.subscript(self.a.var, 0, index, self.extent, wrap)

    def store(self, value: b.Operand) -> ir.Stmt:
        return b.store(self.a.var, 0, value)

    def with_i(self, *body: ir.Stmt) -> ir.Kernel:
        """A kernel in which i is a global index below n."""
        guard = b.if_(b.ge(self.i, self.wide_n), [ir.Return()])
        return self.kernel(b.let(self.i, b.coordinate("global_idx")), guard, *body)


def dropped(kernel: ir.Kernel) -> ir.Stmt:
    """The last statement without needless guards."""
    result = drop_guards(kernel, WIDE)
    verify(result)
    return result.body[-1]


def value_of(kernel: ir.Kernel) -> Any:
    stmt = dropped(kernel)
    assert isinstance(stmt, ir.Assign)
    return stmt.value


@pytest.mark.parametrize(
    ("index", "wraps"),
    [
        (lambda kit: ir.VarRef(kit.i), False),
        (lambda kit: b.add(kit.i, 1), False),
        (lambda kit: b.bitand(kit.m.var, 7), False),
        (lambda kit: b.floormod(kit.m.var, 7), False),
        (lambda kit: b.sub(kit.i, 1), True),
        (lambda kit: ir.VarRef(kit.m.var), True),
        (lambda kit: b.mod(ir.VarRef(kit.m.var), 7), True),
    ],
)
def test_wraparound(index: Any, wraps: bool) -> None:
    """A subscript wraps only where its index may be negative."""
    kit = Kit()
    stmt = dropped(kit.with_i(b.store(kit.a.var, kit.at(index(kit)), 1)))
    assert isinstance(stmt, ir.Assign)
    assert stmt.target.index.wrap is wraps


def test_negative_index_counts_from_the_end() -> None:
    """An index that is surely negative becomes extent minus its size."""
    kit = Kit()
    stmt = dropped(kit.kernel(b.store(kit.a.var, kit.at(b.lit(INT64, -2)), 1)))
    assert stmt.target.index.wrap is False
    assert stmt.target.index.index == ir.Binary(
        BinOp.SUB, kit.extent, b.lit(INT64, 2), unguarded=True
    )


@pytest.mark.parametrize(
    ("expr", "unguarded"),
    [
        (lambda kit: b.add(kit.i, 1), True),
        (lambda kit: b.mul(kit.i, kit.wide_n), True),
        (lambda kit: b.mul(kit.m.var, 2), False),
        (lambda kit: b.div(kit.m.var, 3), True),
        (lambda kit: b.div(kit.m.var, -1), False),
        (lambda kit: b.div(kit.m.var, kit.wide_n), True),
        (lambda kit: b.div(kit.m.var, b.sub(kit.wide_n, 1)), False),
        (lambda kit: b.shl(kit.m.var, b.bitand(kit.i, 63)), True),
        (lambda kit: b.shl(kit.m.var, b.bitand(kit.i, 127)), False),
        (lambda kit: b.neg(kit.i), True),
        (lambda kit: b.neg(kit.m.var), False),
    ],
)
def test_guards(expr: Any, unguarded: bool) -> None:
    """An operator loses its guard exactly where its edge cannot be met; i < n, so n > 0."""
    kit = Kit()
    assert value_of(kit.with_i(kit.store(expr(kit)))).unguarded is unguarded


def test_int32_overflow_is_guarded() -> None:
    """The range of the operator's own type counts."""
    kit = Kit()
    out = b.array_param(kit.fresh, "out", INT32, 9)
    total = b.add(ir.VarRef(kit.n.var), 1)
    kernel = ir.make_kernel("k", (b.store(out.var, 0, total),), params=(out, kit.n))
    assert value_of(kernel).unguarded is False
    guarded = b.if_(b.lt(ir.VarRef(kit.n.var), 100), [b.store(out.var, 0, total)])
    branch = dropped(ir.make_kernel("k", (guarded,), params=(out, kit.n)))
    assert branch.then[0].value.unguarded is True


@pytest.mark.parametrize(
    ("expr", "op"),
    [
        (lambda kit: b.floordiv(kit.i, 3), BinOp.DIV),
        (lambda kit: b.floormod(kit.i, 4), BinOp.MOD),
        (lambda kit: b.floordiv(kit.m.var, 8), BinOp.SHR),
        (lambda kit: b.floormod(kit.m.var, 8), BinOp.BITAND),
        (lambda kit: b.floordiv(kit.m.var, 3), BinOp.FLOORDIV),
        (lambda kit: b.floormod(kit.i, b.sub(kit.i, 5)), BinOp.FLOORMOD),
    ],
)
def test_flooring(expr: Any, op: BinOp) -> None:
    """Flooring division becomes C's for numbers that are not negative, a shift by powers of two."""
    kit = Kit()
    assert value_of(kit.with_i(kit.store(expr(kit)))).op is op


def test_minima_that_are_decided_go() -> None:
    """abs, min and max of values that leave no choice are the value."""
    kit = Kit()
    i, zero = ir.VarRef(kit.i), b.lit(INT64, 0)
    for call, expected in [
        (b.intrinsic("abs", i), i),
        (b.intrinsic("max", i, zero), i),
        (b.intrinsic("max", zero, i), i),
        (b.intrinsic("min", i, zero), zero),
    ]:
        assert value_of(kit.with_i(kit.store(call))) == expected
    kept = b.intrinsic("min", i, b.lit(INT64, 5))
    assert value_of(kit.with_i(kit.store(kept))) == kept


def test_conversions_there_and_back_go() -> None:
    """int64 by way of int32 is nothing where the value fits, and something where it may not."""
    kit = Kit()
    i = ir.VarRef(kit.i)
    assert value_of(kit.with_i(kit.store(b.cast(INT64, b.cast(INT32, i))))) == i
    cut = b.cast(INT64, b.cast(INT32, kit.m.var))
    assert value_of(kit.with_i(kit.store(cut))) == cut


@pytest.mark.parametrize(
    ("step", "direction", "unguarded"),
    [
        (lambda kit: b.lit(INT64, 3), Direction.UPTO, True),
        (lambda kit: b.lit(INT64, -3), Direction.DOWNTO, True),
        (lambda kit: kit.wide_n, Direction.UPTO, True),
        (lambda kit: b.sub(kit.wide_n, 7), Direction.RUNTIME, True),
        (lambda kit: ir.VarRef(kit.m.var), Direction.RUNTIME, False),
    ],
)
def test_loops(step: Any, direction: Direction, unguarded: bool) -> None:
    """The sign of a step becomes known, and so does that the last increment fits."""
    kit = Kit()
    k = kit.fresh("k", INT64)
    loop = ir.For(k, b.lit(INT64, 0), kit.wide_n, step(kit), Direction.RUNTIME, (kit.store(k),))
    found = dropped(kit.with_i(loop))
    assert isinstance(found, ir.For)
    assert (found.direction, found.unguarded) == (direction, unguarded)


def test_address_of_valid_subscripts_is_unguarded() -> None:
    """With 64-bit indices only the argument about addresses can show that row * columns fits."""
    kit = Kit()
    columns = b.cast(INT64, kit.columns.var)
    row = b.subscript(kit.x.var, 0, kit.m.var, b.cast(INT64, kit.rows.var), True)
    column = b.subscript(kit.x.var, 1, kit.m.var, columns, True)
    address = b.add(b.mul(row, kit.m.var), column)
    kernel = kit.kernel(b.store(kit.x.var, address, 1.0))
    index = dropped(kernel).target.index
    assert index.unguarded
    assert index.left.unguarded
    plain = b.add(b.mul(kit.m.var, kit.m.var), kit.m.var)
    assert not dropped(kit.kernel(b.store(kit.x.var, plain, 1.0))).target.index.unguarded


def test_subscripts_that_do_not_wrap_are_their_index() -> None:
    """After the guards, a subscript says nothing more; one that wraps is needed."""
    kit = Kit()
    kernel = kit.kernel(
        b.store(kit.a.var, kit.at(kit.m.var, wrap=False), 1),
        b.store(kit.a.var, kit.at(kit.m.var), 1),
    )
    first, second = open_subscripts(kernel, WIDE).body
    assert first.target.index == ir.VarRef(kit.m.var)
    assert second == kernel.body[1]


# --- narrowing ------------------------------------------------------------------------------------


def types_of(kernel: ir.Kernel) -> dict[str, Scalar]:
    """The type of every variable declared in the body after narrowing, by name."""
    result = narrow(kernel, SHORT)
    verify(result)
    return {var.name: var.type for var in b.all_vars(result)}


def test_values_that_fit_are_narrowed() -> None:
    """A global index and a loop over it are int32 on a 32-bit target, and int64 on others."""
    kit = Kit()
    k, far = kit.fresh("k", INT64), kit.fresh("far", INT64)
    kernel = kit.with_i(
        b.for_(k, 0, kit.wide_n, b.store(kit.a.var, kit.at(k), k)),
        b.let(far, b.mul(kit.i, 4)),
        kit.store(far),
    )
    types = types_of(kernel)
    assert (types["i"], types["k"], types["far"]) == (INT32, INT32, INT64)
    assert narrow(kernel, WIDE) is kernel


def test_what_is_only_an_index_is_narrowed() -> None:
    """A position of unknown range is int32 if nothing but an index is made of it."""
    kit = Kit()
    place, seen = kit.fresh("place", INT64, True), kit.fresh("seen", INT64, True)
    kernel = kit.kernel(
        b.let_mut(place, kit.m.var),
        b.let_mut(seen, kit.m.var),
        b.while_(
            b.lt(seen, 7),
            b.assign(place, b.add(place, b.mul(seen, 3))),
            b.assign(seen, b.add(seen, 1)),
            b.store(kit.a.var, kit.at(place), 1),
        ),
    )
    types = types_of(kernel)
    assert (types["place"], types["seen"]) == (INT32, INT64)


def test_index_of_a_long_array_is_not_narrowed() -> None:
    """With 64-bit indices only a proven range narrows."""
    kit = Kit(INT64)
    place, low = kit.fresh("place", INT64), kit.fresh("low", INT64)
    extent = b.cast(INT64, kit.n.var)
    store = b.store(kit.a.var, b.subscript(kit.a.var, 0, place, extent, True), 1)
    kernel = kit.kernel(
        b.let(place, kit.m.var), b.let(low, b.bitand(kit.m.var, 9)), store, kit.store(low),
        index_bits=64,
    )  # fmt: skip
    types = types_of(kernel)
    assert (types["place"], types["low"]) == (INT64, INT32)


def test_flow_into_a_value_keeps_a_variable_wide() -> None:
    """A variable that reaches a stored int64 by way of another is looked at as a whole."""
    kit = Kit()
    one, two = kit.fresh("one", INT64), kit.fresh("two", INT64)
    wide = kit.kernel(b.let(one, kit.m.var), b.let(two, b.add(one, 1)), kit.store(two))
    assert types_of(wide)["one"] is INT64
    index = b.store(kit.a.var, kit.at(two), 1)
    short = kit.kernel(b.let(one, kit.m.var), b.let(two, b.add(one, 1)), index)
    assert types_of(short)["one"] is INT32


def test_narrow_kernel_reads_like_one_written_in_int() -> None:
    """A guarded 2-D access has no conversion left on a 32-bit target."""
    kit = Kit()
    k = kit.fresh("k", INT64)
    rows, columns = b.cast(INT64, kit.rows.var), b.cast(INT64, kit.columns.var)
    row = b.subscript(kit.x.var, 0, kit.i, rows, True)
    column = b.subscript(kit.x.var, 1, k, columns, True)
    kernel = kit.with_i(
        b.for_(k, 0, columns, b.store(kit.x.var, b.add(b.mul(row, columns), column), 1.0))
    )
    result = optimise(kernel, SHORT)
    k32 = ir.VarRef(ir.Var("k", k.id, INT32))
    i32 = ir.VarRef(ir.Var("i", kit.i.id, INT32))
    columns32 = ir.VarRef(kit.columns.var)
    loop = result.body[-1]
    assert isinstance(loop, ir.For)
    assert loop.stop == columns32
    product = ir.Binary(BinOp.MUL, i32, columns32, unguarded=True)
    expected = ir.Binary(BinOp.ADD, product, k32, unguarded=True)
    assert loop.body[0].target.index == expected
    assert result.body[1].condition == b.ge(i32, ir.VarRef(kit.n.var))
