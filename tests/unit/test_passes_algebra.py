"""Folding, algebra and pruning: each rule where it holds, and beside it where it does not."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sarek_numba.codegen.target import Target
from sarek_numba.ir import build as b
from sarek_numba.ir import nodes as ir
from sarek_numba.ir.nodes import BinOp, Expr, UnOp, constant
from sarek_numba.ir.types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    DynamicSharedLength,
    OffsetOf,
    Scalar,
    ShapeOf,
    StrideOf,
)
from sarek_numba.ir.verify import verify
from sarek_numba.passes.fold import fold
from sarek_numba.passes.prune import prune
from sarek_numba.passes.simplify import simplify

TARGET = Target("test")
I32, I64, U8 = INT32, INT64, Scalar.UINT8


class Kit:
    """A kernel that stores values of several types, and variables to compute them from."""

    def __init__(self) -> None:
        self.fresh = b.Fresh()
        scalars = (I32, I64, U8, FLOAT32, FLOAT64, BOOL)
        self.outs = {
            kind: b.array_param(self.fresh, f"out_{kind.value}", kind, place)
            for place, kind in enumerate(scalars)
        }
        self.params = {
            kind: b.scalar_param(self.fresh, f"p_{kind.value}", kind, 10 + place)
            for place, kind in enumerate(scalars)
        }

    def p(self, kind: Scalar) -> Expr:
        return ir.VarRef(self.params[kind].var)

    def store(self, value: Expr) -> ir.Stmt:
        return b.store(self.outs[b.scalar_of(value)].var, 0, value)

    def kernel(self, *body: ir.Stmt, **fields: Any) -> ir.Kernel:
        params = fields.pop("params", ())
        declared = (*self.outs.values(), *self.params.values(), *params)
        kernel = ir.make_kernel("k", body, params=declared, **fields)
        verify(kernel)
        return kernel


KIT = Kit()
X, Y, Z, F, D, T = (KIT.p(kind) for kind in (I32, I64, U8, FLOAT32, FLOAT64, BOOL))


def after(step: Any, value: Expr) -> Expr:
    """A value as a pass leaves it."""
    kernel = step(KIT.kernel(KIT.store(value)), TARGET)
    verify(kernel)
    return kernel.body[0].value


def c(kind: Scalar, value: float) -> ir.Const:
    return constant(kind, value)


NAN = float("nan")

SIMPLE = [
    (b.add(X, 0), X),
    (b.add(c(I32, 0), X), X),
    (b.sub(X, 0), X),
    (b.mul(X, 1), X),
    (b.mul(X, 0), c(I32, 0)),
    (b.floordiv(X, 1), X),
    (b.floormod(X, 1), c(I32, 0)),
    (b.bitand(Z, 255), Z),
    (b.bitor(X, 0), X),
    (b.shl(X, 0), X),
    (b.add(X, -3), b.sub(X, 3)),
    (b.sub(X, -3), b.add(X, 3)),
    (b.sub(c(I32, 0), X), b.neg(X)),
    (b.mul(X, -1), b.neg(X)),
    (b.add(X, b.neg(b.mul(X, 3))), b.sub(X, b.mul(X, 3))),
    (b.sub(X, b.mul(b.bitor(X, 3), -1)), b.add(X, b.bitor(X, 3))),
    (b.mul(c(I32, -1), X), b.neg(X)),
    (b.floordiv(X, -1), b.neg(X)),
    (b.add(b.bitnot(X), 1), b.neg(X)),
    (b.mul(F, 1.0), F),
    (b.div(F, 1.0), F),
    (b.sub(F, 0.0), F),
    (b.add(F, -0.0), F),
    (b.neg(b.neg(F)), F),
    (b.not_(b.not_(T)), T),
    (b.not_(b.lt(X, 3)), b.ge(X, 3)),
    (b.not_(b.eq(F, 3.0)), b.ne(F, 3.0)),
    (b.cast(I64, Y), Y),
    (b.cast(I32, b.cast(I64, X)), X),
    (b.cast(FLOAT32, b.cast(FLOAT64, F)), F),
    (b.cast(FLOAT32, b.cast(I64, X)), b.cast(FLOAT32, X)),
    (b.cast(U8, b.cast(I32, Y)), b.cast(U8, Y)),
    (b.lt(b.cast(I64, X), 7), b.lt(X, 7)),
    (b.eq(b.cast(I64, Z), b.cast(I64, Z)), b.eq(Z, Z)),
    (b.lt(b.cast(FLOAT64, F), 0.5), b.lt(F, 0.5)),
    (b.lt(c(I32, 3), X), b.gt(X, 3)),
    (b.eq(T, True), T),
    (b.ne(T, True), b.not_(T)),
    (b.select(T, c(BOOL, True), c(BOOL, False)), T),
]

KEPT = [
    b.add(F, 0.0),  # -0.0 + 0.0 is 0.0
    b.sub(F, -0.0),
    b.mul(F, 0.0),
    b.sub(c(FLOAT32, 0.0), F),  # of 0.0 it is 0.0
    b.add(X, 1),
    b.floordiv(X, 2),
    b.not_(b.lt(F, 3.0)),  # true for NaN
    b.cast(I64, b.cast(I32, Y)),  # drops the high bits
    b.cast(FLOAT64, b.cast(FLOAT32, D)),  # rounds
    b.cast(U8, b.cast(FLOAT64, X)),  # saturates
    b.cast(I32, b.cast(U8, X)),
    b.cast(FLOAT32, b.cast(FLOAT64, Y)),  # rounds twice
    b.lt(b.cast(I64, X), 2**40),
    b.lt(b.cast(FLOAT64, F), 0.1),  # no float32
    b.lt(b.cast(FLOAT32, X), 7.0),  # float32 does not hold every int32
    b.add(X, -(2**31)),
]


@pytest.mark.parametrize(("before", "expected"), SIMPLE)
def test_simplified(before: Expr, expected: Expr) -> None:
    """The rule holds for every value."""
    assert after(simplify, before) == expected


@pytest.mark.parametrize("expr", KEPT)
def test_not_simplified(expr: Expr) -> None:
    """The rule that looks alike is false for some value."""
    assert after(simplify, expr) == expr


FOLDED = [
    (b.add(c(I32, 2**31 - 1), c(I32, 1)), c(I32, -(2**31))),
    (b.floordiv(c(I32, -7), c(I32, 2)), c(I32, -4)),
    (b.floormod(c(I32, 5), c(I32, 0)), c(I32, 0)),
    (b.shl(c(I32, 1), c(I32, 40)), c(I32, 0)),
    (b.div(c(FLOAT32, 1.0), c(FLOAT32, 3.0)), c(FLOAT32, 1 / 3)),
    (b.mul(c(FLOAT64, -0.0), c(FLOAT64, 2.0)), c(FLOAT64, -0.0)),
    (b.neg(c(I32, -(2**31))), c(I32, -(2**31))),
    (b.cast(U8, c(I32, 300)), c(U8, 44)),
    (b.cast(I32, c(FLOAT64, 1e300)), c(I32, 2**31 - 1)),
    (b.intrinsic("sqrt", c(FLOAT32, 9.0)), c(FLOAT32, 3.0)),
    (b.lt(c(I32, 1), c(I32, 2)), c(BOOL, True)),
    (b.select(c(BOOL, False), X, b.add(c(I32, 1), c(I32, 2))), c(I32, 3)),
    (b.and_(c(BOOL, True), T), T),
    (b.and_(T, c(BOOL, False)), c(BOOL, False)),
    (b.or_(c(BOOL, True), T), c(BOOL, True)),
]


@pytest.mark.parametrize(("before", "expected"), FOLDED)
def test_folded(before: Expr, expected: Expr) -> None:
    """Constants become what `ir.semantics` gives, bit for bit."""
    assert after(fold, before) == expected


UNFOLDED = [
    b.intrinsic("sin", c(FLOAT32, 1.0)),  # devices round differently
    b.intrinsic("pow", c(FLOAT64, 2.0), c(FLOAT64, 0.5)),
    ir.Binary(BinOp.ADD, c(I64, 2**63 - 1), c(I64, 1), weak=True),  # the oracle reports it
    ir.Unary(UnOp.NEG, c(I64, -(2**63)), weak=True),
    ir.Cast(I32, c(I64, 2**40), weak=True),
]


@pytest.mark.parametrize("expr", UNFOLDED)
def test_not_folded(expr: Expr) -> None:
    """What devices or the oracle must see at run time stays."""
    assert after(fold, expr) == expr


def test_nan_is_folded_to_nan() -> None:
    """A NaN stays a NaN."""
    folded = after(fold, b.div(c(FLOAT64, 0.0), c(FLOAT64, 0.0)))
    assert isinstance(folded, ir.Const)
    assert math.isnan(folded.value)


def test_constants_and_copies_reach_their_uses() -> None:
    """A `Let` of a constant or of an immutable variable is seen through; of a mutable one not."""
    kit = Kit()
    one, copy, old = kit.fresh("one", I32), kit.fresh("copy", I32), kit.fresh("old", I32)
    moving = kit.fresh("moving", I32, True)
    kernel = kit.kernel(
        b.let(one, 1),
        b.let(copy, kit.p(I32)),
        b.let_mut(moving, 5),
        b.let(old, moving),
        b.assign(moving, 6),
        kit.store(b.add(one, copy)),
        kit.store(ir.VarRef(old)),
    )
    stores = fold(kernel, TARGET).body[-2:]
    assert stores[0].value == b.add(c(I32, 1), kit.p(I32))
    assert stores[1].value == ir.VarRef(old)


def test_constant_control_is_decided() -> None:
    """Branches, loops and conditions that are known leave only what runs."""
    kit = Kit()
    k = kit.fresh("k", I64)
    one, two = kit.store(c(I32, 1)), kit.store(c(I32, 2))
    kernel = kit.kernel(
        b.if_(b.lt(c(I32, 1), c(I32, 2)), [one], [two]),
        b.while_(c(BOOL, False), two),
        b.for_(k, 5, 5, two),
        b.for_(kit.fresh("j", I64), 5, 4, two, step=1),
    )
    assert fold(kernel, TARGET).body == (one,)


def test_loop_that_runs_stays() -> None:
    """A loop of one pass is a loop."""
    kit = Kit()
    kernel = kit.kernel(b.for_(kit.fresh("k", I64), 5, 6, kit.store(c(I32, 2))))
    assert fold(kernel, TARGET) is kernel


# --- pruning --------------------------------------------------------------------------------------


def test_dead_variables_go_and_living_ones_stay() -> None:
    """A variable that only dead ones read is dead, one that a store or a condition reads is not."""
    kit = Kit()
    dead, deader = kit.fresh("dead", I32), kit.fresh("deader", I32, True)
    live, deciding = kit.fresh("live", I32), kit.fresh("deciding", I32, True)
    alive = (
        b.let(live, kit.p(I32)),
        b.let_mut(deciding, 1),
        b.if_(b.lt(deciding, 3), [kit.store(ir.VarRef(live))]),
    )
    dying = (
        b.let(dead, b.add(kit.p(I32), 1)),
        b.let_mut(deader, dead),
        b.assign(deader, b.add(deader, 1)),
    )
    assert prune(kit.kernel(*dying, *alive), TARGET).body == alive
    assert prune(kit.kernel(*alive), TARGET).body == alive


def test_unreachable_statements_go() -> None:
    """Nothing behind a jump runs, nor behind a branch that jumps both ways."""
    kit = Kit()
    store, other = kit.store(c(I32, 1)), kit.store(c(I32, 2))
    k = kit.fresh("k", I64)
    loop = b.for_(k, 0, 3, b.if_(kit.p(BOOL), [ir.Break(), other]), store)
    both = b.if_(kit.p(BOOL), [store, ir.Return()], [ir.Return()])
    pruned = prune(kit.kernel(loop, both, other), TARGET).body
    expected_loop = b.for_(k, 0, 3, b.if_(kit.p(BOOL), [ir.Break()]), store)
    assert pruned == (expected_loop, b.if_(kit.p(BOOL), [store]))


def test_empty_branches_go() -> None:
    """A branch without effect goes, an empty `then` is turned round, a `while` may never end."""
    kit = Kit()
    store = kit.store(c(I32, 1))
    kernel = kit.kernel(
        b.if_(kit.p(BOOL), []),
        b.if_(b.lt(kit.p(I32), 2), [], [store]),
        b.for_(kit.fresh("k", I64), 0, 9),
        b.while_(kit.p(BOOL)),
    )
    expected = (b.if_(b.ge(kit.p(I32), 2), [store]), b.while_(kit.p(BOOL)))
    assert prune(kernel, TARGET).body == expected


def test_assertions_live() -> None:
    """What an assertion reads is kept for the oracle."""
    kit = Kit()
    x = kit.fresh("x", I32)
    body = (b.let(x, kit.p(I32)), ir.Assert(b.lt(x, 3), "small"))
    assert prune(kit.kernel(*body), TARGET).body == body


def test_unused_result_of_an_atomic_goes() -> None:
    """The operation stays, its old value does not."""
    kit = Kit()
    old, used = kit.fresh("old", I32), kit.fresh("used", I32)
    out = kit.outs[I32].var
    kernel = kit.kernel(
        b.atomic("add", out, 0, 1, result=old),
        b.atomic("add", out, 0, 1, result=used),
        kit.store(ir.VarRef(used)),
    )
    results = [s.result for s in prune(kernel, TARGET).body if isinstance(s, ir.Atomic)]
    assert results == [None, used]


def test_only_the_launch_s_own_parameters_go() -> None:
    """Unused shapes, strides, offsets and lengths go; the user's arguments and used ones stay."""
    kit = Kit()
    roles = (ShapeOf(0, 0), StrideOf(0, 0), OffsetOf(0), DynamicSharedLength())
    extra = [b.scalar_param(kit.fresh, f"extra{n}", I32, role) for n, role in enumerate(roles)]
    used = b.length_param(kit.fresh, "used", 0)
    kernel = kit.kernel(kit.store(ir.VarRef(used.var)), params=(*extra, used))
    assert prune(kernel, TARGET).params == (*kernel.params[:12], used)


def test_unused_declarations_and_helpers_go() -> None:
    """Arrays and helpers that nothing names go, those that something names stay."""
    kit = Kit()
    unused = b.shared_decl(kit.fresh, "unused", I32, 8)
    tile = b.shared_decl(kit.fresh, "tile", I32, 8)
    p, r = kit.fresh("p", I32), kit.fresh("r", I32)
    inner = b.helper("inner", [p], I32, ir.Return(ir.VarRef(p)))
    q, s = kit.fresh("q", I32), kit.fresh("s", I32)
    outer = b.helper(
        "outer", [q], I32, ir.Call((s,), "inner", (ir.VarRef(q),)), ir.Return(ir.VarRef(s))
    )
    t = kit.fresh("t", I32)
    dead = b.helper("dead", [t], I32, ir.Return(ir.VarRef(t)))
    kernel = kit.kernel(
        ir.Call((r,), "outer", (c(I32, 1),)),
        b.store(tile.var, 0, r),
        locals=(unused, tile),
        functions=(inner, outer, dead),
    )
    pruned = prune(kernel, TARGET)
    assert pruned.locals == (tile,)
    assert pruned.functions == (inner, outer)


def test_calls_without_effect_go() -> None:
    """A call whose result is dead goes if the helper only computes; one that stores stays."""
    kit = Kit()
    p, q, r, s = (kit.fresh(name, I32) for name in "pqrs")
    base = kit.fresh("base", kit.outs[I32].var.type)
    pure = b.helper("pure", [p], I32, ir.Return(b.add(p, 1)))
    writes = b.helper("writes", [base, q], I32, b.store(base, 0, q), ir.Return(ir.VarRef(q)))
    out = ir.VarRef(kit.outs[I32].var)
    calls = (ir.Call((r,), "pure", (c(I32, 1),)), ir.Call((s,), "writes", (out, c(I32, 1))))
    assert prune(kit.kernel(*calls, functions=(pure, writes)), TARGET).body == calls[1:]
