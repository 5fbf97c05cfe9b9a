"""Inlining, unrolling, flattening and lengths: the results stay, the construct goes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes_evaluator import lane, run

from sarek_numba.codegen.target import Target
from sarek_numba.ir import build as b
from sarek_numba.ir import nodes as ir
from sarek_numba.ir.types import INT32, INT64, UNIT, LengthOf, TupleType, Vec
from sarek_numba.ir.verify import verify
from sarek_numba.ir.walk import walk_body_exprs, walk_stmts
from sarek_numba.passes.inline import inline
from sarek_numba.passes.legalise import flatten, legalise
from sarek_numba.passes.unroll import unroll

FLAT = Target("flat", calls=False)
CALLS = Target("calls")
SPLIT = Target("split", inline_barriers=True)
VALUES = [-9, -4, -1, 0, 1, 2, 3, 5, 8, 13, 21, 100]


class Kit:
    """`out` and `data` are int64 arrays, `t` the number of the thread."""

    def __init__(self) -> None:
        self.fresh = b.Fresh()
        self.out = b.array_param(self.fresh, "out", INT64, 0)
        self.data = b.array_param(self.fresh, "data", INT64, 1)
        self.length = b.length_param(self.fresh, "data_length", 1)
        self.t = b.coordinate("global_idx")
        self.x, self.y = self.var("x"), self.var("y")

    def var(self, name: str, type: Any = INT64, mutable: bool = False) -> ir.Var:
        return self.fresh(name, type, mutable)

    def kernel(self, *body: ir.Stmt, **fields: Any) -> ir.Kernel:
        params = fields.pop("params", (self.out, self.data, self.length))
        kernel = ir.make_kernel("k", body, params=params, **fields)
        verify(kernel)
        return kernel

    def call(self, *body: ir.Stmt) -> ir.Kernel:
        """A kernel in which each thread stores f(data[t], t), `body` being that of f(x, y)."""
        helper = b.helper("f", [self.x, self.y], INT64, *body)
        r = self.var("r")
        args = (b.read(self.data.var, self.t), self.t)
        return self.kernel(
            ir.Call((r,), "f", args), b.store(self.out.var, self.t, r), functions=(helper,)
        )


def results(kit: Kit, kernel: ir.Kernel) -> list[int]:
    arguments = {
        kit.out.var.id: np.zeros(len(VALUES), np.int64),
        kit.data.var.id: np.array(VALUES, np.int64),
        kit.length.var.id: lane(INT32, len(VALUES)),
    }
    given = {p.var.id: arguments.get(p.var.id, lane(INT32, len(VALUES))) for p in kernel.params}
    return [int(v) for v in run(kernel, given, grid=3, block=4)[kit.out.var.id]]


def inlined(kit: Kit, kernel: ir.Kernel, target: Target = FLAT) -> ir.Kernel:
    """The kernel without calls, which gives the same results."""
    result = inline(kernel, target)
    verify(result)
    assert results(kit, result) == results(kit, kernel)
    assert not any(isinstance(stmt, ir.Call) for stmt in walk_stmts(result.body))
    assert not any(isinstance(expr, ir.App) for expr in walk_body_exprs(result.body))
    return result


def test_one_return_at_the_end_is_a_let() -> None:
    """A helper that computes and returns leaves bindings and no branch."""
    kit = Kit()
    z = kit.var("z")
    kernel = kit.call(b.let(z, b.mul(kit.x, 2)), ir.Return(b.add(z, kit.y)))
    body = inlined(kit, kernel).body
    assert [type(stmt) for stmt in body] == [ir.Let, ir.Let, ir.Let, ir.Let, ir.Assign]


def early(kit: Kit) -> tuple[ir.Stmt, ...]:
    """A return in a branch."""
    negative = b.if_(b.lt(kit.x, 0), [ir.Return(b.neg(kit.x))])
    return (negative, ir.Return(b.mul(kit.x, 3)))


def both(kit: Kit) -> tuple[ir.Stmt, ...]:
    """A return in each branch, and one nested."""
    inner = b.if_(b.gt(kit.x, 5), [ir.Return(b.lit(INT64, 50))], [ir.Return(b.lit(INT64, 51))])
    return (b.if_(b.gt(kit.x, 0), [inner], [ir.Return(ir.VarRef(kit.y))]),)


def partial(kit: Kit) -> tuple[ir.Stmt, ...]:
    """A branch that returns on one of its paths only."""
    z = kit.var("z", mutable=True)
    inner = b.if_(b.gt(kit.x, 5), [ir.Return(b.lit(INT64, 7))])
    return (
        b.let_mut(z, kit.x),
        b.if_(b.gt(kit.x, 0), [inner, b.assign(z, 70)]),
        b.assign(z, b.add(z, 1)),
        ir.Return(ir.VarRef(z)),
    )


def from_loop(kit: Kit) -> tuple[ir.Stmt, ...]:
    """A return within a loop."""
    k = kit.var("k")
    found = b.if_(b.gt(b.mul(k, k), kit.x), [ir.Return(ir.VarRef(k))])
    return (b.for_(k, 0, 8, found), ir.Return(b.lit(INT64, -1)))


def from_loops(kit: Kit) -> tuple[ir.Stmt, ...]:
    """A return from two loops at once, with statements behind each."""
    k, j, z = kit.var("k"), kit.var("j", mutable=True), kit.var("z", mutable=True)
    found = b.if_(b.eq(b.add(b.mul(k, 4), j), kit.x), [ir.Return(b.add(b.mul(k, 100), j))])
    skip = b.if_(b.eq(j, 2), [b.assign(j, 3), ir.Continue()])
    inner = b.while_(b.lt(j, 4), found, skip, b.assign(j, b.add(j, 1)))
    outer = b.for_(k, 0, 3, b.let_mut(j, 0), inner, b.assign(z, b.add(z, 1)))
    return (b.let_mut(z, 0), outer, b.assign(z, b.mul(z, 2)), ir.Return(ir.VarRef(z)))


def in_pragma(kit: Kit) -> tuple[ir.Stmt, ...]:
    """A return within hinted statements."""
    k = kit.var("k")
    found = b.if_(b.gt(b.mul(k, k), kit.x), [ir.Return(ir.VarRef(k))])
    return (ir.Pragma(("unroll",), (b.for_(k, 0, 8, found),)), ir.Return(b.lit(INT64, -1)))


@pytest.mark.parametrize("shape", [early, both, partial, from_loop, from_loops, in_pragma])
def test_early_returns(shape: Any) -> None:
    """Every shape of return gives what the call gives, and no flag where none is needed."""
    kit = Kit()
    result = inlined(kit, kit.call(*shape(kit)))
    flags = [v for v in b.all_vars(result) if v.name == "done"]
    assert bool(flags) is (shape in (partial, from_loop, from_loops, in_pragma))


def test_nested_calls_and_tuples() -> None:
    """A helper that calls a helper, and one with two results."""
    kit = Kit()
    p, q, r, s, u, v = (kit.var(name) for name in "pqrsuv")
    pair = TupleType((INT64, INT64))
    swap = b.helper("swap", [p, q], pair, ir.Return(ir.TupleExpr((ir.VarRef(q), ir.VarRef(p)))))
    twice = b.helper(
        "twice",
        [u],
        INT64,
        ir.Call((r, s), "swap", (ir.VarRef(u), b.lit(INT64, 10))),
        b.if_(b.lt(s, 3), [ir.Return(b.sub(r, s))]),
        ir.Return(b.add(r, s)),
    )
    kernel = kit.kernel(
        ir.Call((v,), "twice", (b.read(kit.data.var, kit.t),)),
        b.store(kit.out.var, kit.t, v),
        functions=(swap, twice),
    )
    assert inlined(kit, kernel).functions == ()


def test_arrays_are_the_caller_s() -> None:
    """An array parameter becomes the array given wherever it stands; locals are declared."""
    kit = Kit()
    base, old, p = kit.var("base", Vec(INT64)), kit.var("old"), kit.var("p")
    scratch = b.local_decl(kit.fresh, "scratch", INT64, 4)
    body = (
        b.store(scratch.var, 1, b.mul(b.read(base, p), 2)),
        b.store(base, p, b.read(scratch.var, 1)),
        b.atomic("add", base, p, 5, result=old),
    )
    helper = ir.HelperFunction("f", (base, p), UNIT, body, (scratch,))
    call = ir.Call((), "f", (ir.VarRef(kit.out.var), kit.t))
    result = inlined(kit, kit.kernel(b.store(kit.out.var, kit.t, 3), call, functions=(helper,)))
    assert [decl.var.type for decl in result.locals] == [scratch.var.type]


def test_arguments_are_evaluated_once_and_before() -> None:
    """An argument keeps its value although the variable behind it changes."""
    kit = Kit()
    m = kit.var("m", mutable=True)
    result = kit.var("r")
    helper = b.helper("f", [kit.x], INT64, ir.Return(b.add(kit.x, kit.x)))
    kernel = kit.kernel(
        b.let_mut(m, 4),
        ir.Call((result,), "f", (ir.VarRef(m),)),
        b.assign(m, 100),
        b.store(kit.out.var, kit.t, b.add(result, m)),
        functions=(helper,),
    )
    inlined(kit, kernel)


def test_pure_calls_within_expressions() -> None:
    """A call in an expression runs only where the expression is evaluated."""
    kit = Kit()
    helper = b.helper(
        "f",
        [kit.x],
        INT64,
        b.if_(b.lt(kit.x, 4), [ir.Return(b.lit(INT64, 1))]),
        ir.Return(b.mul(kit.x, 2)),
    )
    app = ir.App("f", (b.read(kit.data.var, kit.t),), INT64)
    i = kit.var("i", mutable=True)
    guarded = b.and_(b.lt(kit.t, 3), b.gt(app, 1))
    kernel = kit.kernel(
        b.let_mut(i, 0),
        b.while_(b.lt(i, ir.App("f", (kit.t,), INT64)), b.assign(i, b.add(i, 1))),
        b.if_(guarded, [b.assign(i, b.add(i, 1000))]),
        b.store(kit.out.var, kit.t, b.select(b.gt(i, 4), app, ir.VarRef(i))),
        functions=(helper,),
    )
    inlined(kit, kernel)


def test_what_is_inlined_is_up_to_the_target() -> None:
    """A target with calls keeps them; one that splits at barriers inlines what holds one."""
    kit = Kit()
    plain = b.helper("plain", [kit.x], INT64, ir.Return(ir.VarRef(kit.x)))
    waits = b.helper("waits", [], UNIT, ir.Barrier())
    also = b.helper("also", [], UNIT, ir.Call((), "waits", ()))
    r = kit.var("r")
    kernel = kit.kernel(
        ir.Call((r,), "plain", (kit.t,)),
        ir.Call((), "also", ()),
        b.store(kit.out.var, kit.t, r),
        functions=(plain, waits, also),
    )
    assert inline(kernel, CALLS) is kernel
    split = inline(kernel, SPLIT)
    verify(split)
    assert split.functions == (plain,)
    assert split.body == (kernel.body[0], ir.Barrier(), kernel.body[2])


# --- unrolling ------------------------------------------------------------------------------------


def hinted(kit: Kit, *body: ir.Stmt, stop: b.Operand | int = 4) -> ir.Kernel:
    k = kit.var("k")
    z = kit.var("z")
    statements = (b.let(z, b.add(k, 1)), b.store(kit.out.var, z, k), *body)
    return kit.kernel(ir.Pragma(("unroll",), (b.for_(k, 0, stop, *statements),)))


def test_short_constant_loop_is_unrolled() -> None:
    """Every pass becomes statements with variables of their own."""
    kit = Kit()
    kernel = hinted(kit)
    result = unroll(kernel, CALLS)
    verify(result)
    assert len(result.body) == 8
    assert results(kit, result) == results(kit, kernel)


def test_other_loops_keep_their_hint() -> None:
    """A long loop, one of unknown length and one that is left stay as they are."""
    kit = Kit()
    leave = b.if_(b.gt(kit.t, 1), [ir.Break()])
    unknown = b.cast(INT64, kit.length.var)
    for kernel in (hinted(kit, stop=1000), hinted(kit, stop=unknown), hinted(kit, leave)):
        assert unroll(kernel, CALLS) is kernel


# --- legal form -----------------------------------------------------------------------------------


def test_scopes_and_empty_statements_are_opened() -> None:
    """Nested sequences become one body."""
    kit = Kit()
    store = b.store(kit.out.var, 0, 1)
    nested = ir.Block((ir.Seq((store, ir.Empty())), ir.ExprStmt(kit.t), ir.Block(())))
    kernel = kit.kernel(nested, b.if_(b.gt(kit.t, 0), [ir.Seq((store,))]))
    assert flatten(kernel, CALLS).body == (store, b.if_(b.gt(kit.t, 0), [store]))


def test_length_becomes_its_parameter() -> None:
    """The parameter that is there is used, one that is missing is added."""
    kit = Kit()
    body = (b.store(kit.out.var, kit.t, ir.ArrayLen(kit.data.var)),)
    there = legalise(kit.kernel(*body), CALLS)
    assert there.body[0].value == b.cast(INT64, kit.length.var)
    assert there.params == (kit.out, kit.data, kit.length)
    added = legalise(kit.kernel(*body, params=(kit.out, kit.data)), CALLS)
    verify(added)
    assert added.params[-1].role == LengthOf(1)
    assert added.params[-1].var.type is INT32


def test_length_of_a_helper_s_array_is_passed() -> None:
    """A helper that asks for a length gets it from whoever calls it, however far up."""
    kit = Kit()
    p, q, r, s = kit.var("p", Vec(INT64)), kit.var("q", Vec(INT64)), kit.var("r"), kit.var("s")
    inner = b.helper("inner", [p], INT64, ir.Return(ir.ArrayLen(p)))
    outer = b.helper(
        "outer",
        [q],
        INT64,
        ir.Call((r,), "inner", (ir.VarRef(q),)),
        ir.Return(b.add(r, 1)),
    )
    kernel = kit.kernel(
        ir.Call((s,), "outer", (ir.VarRef(kit.data.var),)),
        b.store(kit.out.var, kit.t, s),
        functions=(inner, outer),
    )
    result = legalise(kernel, CALLS)
    verify(result)
    assert results(kit, result) == [len(VALUES) + 1] * len(VALUES)


def test_length_of_declared_arrays_is_known() -> None:
    """The length of a shared or constant array is a number."""
    kit = Kit()
    tile = b.shared_decl(kit.fresh, "tile", INT64, 24)
    table = b.const_decl(kit.fresh, "table", INT64, [1, 2, 3])
    kernel = kit.kernel(
        b.store(kit.out.var, 0, ir.ArrayLen(tile.var)),
        b.store(kit.out.var, 1, ir.ArrayLen(table.var)),
        locals=(tile, table),
    )
    values = [stmt.value for stmt in legalise(kernel, CALLS).body]
    assert values == [b.lit(INT64, 24), b.lit(INT64, 3)]
