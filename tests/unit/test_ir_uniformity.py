"""Levels of values and control: what must be divergent is, what is uniform raises no alarm."""

from __future__ import annotations

import pytest

from sarek_numba.ir import build as b
from sarek_numba.ir.nodes import (
    Barrier,
    Break,
    Call,
    Const,
    Continue,
    Expr,
    Kernel,
    Let,
    Return,
    Stmt,
    Var,
    VarRef,
    make_kernel,
)
from sarek_numba.ir.types import BOOL, INT64, UNIT
from sarek_numba.ir.uniformity import BLOCK, THREAD, UNIFORM, Uniformity, Variance, analyse

fresh = b.Fresh()
x = b.array_param(fresh, "x", INT64, 0)  # read only
y = b.array_param(fresh, "y", INT64, 1)  # written by every kernel below
n = b.scalar_param(fresh, "n", INT64, 2)
s = b.shared_decl(fresh, "s", INT64, 64)
dynamic = [b.shared_decl(fresh, f"d{i}", INT64, None, offset=8 * i) for i in range(2)]
i, j, k, t, v = (fresh(name, INT64) for name in "ijktv")
acc, count = fresh("acc", INT64, mutable=True), fresh("count", INT64, mutable=True)
barrier = Barrier()
THREAD_IDX, BLOCK_IDX = b.coordinate("thread_idx"), b.coordinate("block_idx")
divergent = b.lt(THREAD_IDX, 3)
by_block = b.lt(BLOCK_IDX, 3)
true = Const(BOOL, 1)


def kernel(*body: Stmt, **fields: object) -> Kernel:
    written = b.store(y.var, 0, 1)
    return make_kernel("k", (*body, written), params=(x, y, n), locals=(s, *dynamic), **fields)


def level(*body: Stmt, of: Var, **fields: object) -> Variance:
    return analyse(kernel(*body, **fields)).of_var(of)


def barrier_level(*body: Stmt, **fields: object) -> Variance:
    return analyse(kernel(*body, **fields)).control_of(barrier).level


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b.expr(n.var), UNIFORM),
        (b.coordinate("block_dim"), UNIFORM),
        (b.add(b.coordinate("grid_size"), 1), UNIFORM),
        (b.mul(BLOCK_IDX, b.coordinate("block_dim")), BLOCK),
        (b.coordinate("global_idx"), THREAD),
        (b.read(x.var, n.var), UNIFORM),
        (b.read(x.var, BLOCK_IDX), BLOCK),
        (b.read(x.var, THREAD_IDX), THREAD),
        (b.read(y.var, n.var), THREAD),
        (b.read(s.var, n.var), BLOCK),
        (b.select(divergent, 1, b.lit(INT64, 2)), THREAD),
        (b.select(by_block, 1, b.lit(INT64, 2)), BLOCK),
    ],
)
def test_expression(value: Expr, expected: Variance) -> None:
    assert level(b.let(v, value), of=v) == expected


def test_assigned_under_divergent_control() -> None:
    """The variable is divergent afterwards, though what is assigned is uniform."""
    body = (b.let_mut(acc, 0), b.if_(divergent, [b.assign(acc, 1)]))
    assert level(*body, of=acc) == THREAD


def test_bound_and_assigned_under_the_same_divergent_control() -> None:
    """All threads that can see the variable assign it: it stays uniform among them."""
    loop = b.while_(b.lt(acc, n.var), b.assign(acc, b.add(acc, 1)))
    assert level(b.if_(divergent, (b.let_mut(acc, 0), loop)), of=acc) == UNIFORM


def test_counter_after_early_return_is_uniform() -> None:
    body = (
        b.if_(divergent, [Return()]),
        b.let_mut(acc, 0),
        b.while_(b.lt(acc, n.var), b.assign(acc, b.add(acc, 1))),
    )
    assert level(*body, of=acc) == UNIFORM


@pytest.mark.parametrize("departure", [Break(), Continue()], ids=["break", "continue"])
def test_assigned_in_a_loop_that_threads_leave_apart(departure: Stmt) -> None:
    loop = b.for_(i, 0, n.var, b.assign(acc, i), b.if_(divergent, [departure]))
    found = analyse(kernel(b.let_mut(acc, 0), loop))
    assert found.of_var(acc) == THREAD
    assert found.of_var(i) == UNIFORM
    assert found.of_loop(loop) == THREAD


def test_divergence_through_a_chain_of_variables_in_a_loop() -> None:
    """A level that arrives over the back edge reaches what was looked at before."""
    body = (
        b.let_mut(acc, 0),
        b.let_mut(count, 0),
        b.for_(i, 0, n.var, b.assign(count, acc), b.assign(acc, THREAD_IDX)),
    )
    assert level(*body, of=count) == THREAD


def test_shared_load_after_store_and_barrier() -> None:
    stored = b.store(s.var, THREAD_IDX, 1)
    assert level(stored, b.let(v, b.read(s.var, 0)), of=v) == THREAD
    assert level(stored, Barrier(), b.let(v, b.read(s.var, 0)), of=v) == BLOCK


def test_shared_store_over_the_back_edge() -> None:
    load, stored = b.let(v, b.read(s.var, 0)), b.store(s.var, THREAD_IDX, 1)
    assert level(b.for_(i, 0, n.var, load, stored), of=v) == THREAD
    assert level(b.for_(i, 0, n.var, load, Barrier(), stored, Barrier()), of=v) == BLOCK
    bound = b.for_(i, 0, b.read(s.var, 0), stored)
    assert level(bound, of=i) == UNIFORM
    assert analyse(kernel(bound)).of_loop(bound) == BLOCK


def test_shared_store_on_one_path() -> None:
    stored = b.if_(by_block, [b.store(s.var, 0, 1)])
    assert level(stored, b.let(v, b.read(s.var, 0)), of=v) == THREAD


def test_views_of_the_dynamic_region_overlap() -> None:
    stored = b.store(dynamic[0].var, 0, 1)
    assert level(stored, b.let(v, b.read(dynamic[1].var, 0)), of=v) == THREAD


def test_atomic_result_is_divergent() -> None:
    assert level(b.atomic("load", y.var, 0, result=v), of=v) == THREAD


UNIFORM_BARRIERS: dict[str, tuple[Stmt, ...]] = {
    "straight": (barrier,),
    "argument": (b.if_(b.lt(n.var, 5), [barrier]),),
    "block": (b.if_(by_block, [barrier]),),
    "return by block": (b.if_(by_block, [Return()]), barrier),
    "loop counter": (b.for_(i, 0, n.var, b.if_(b.eq(b.mod(i, 2), 0), [barrier])),),
    "after divergent branch": (b.if_(divergent, [b.let(v, 1)]), barrier),
    "after divergent loop": (b.for_(i, THREAD_IDX, n.var), barrier),
    "after divergent break": (b.for_(i, 0, n.var, b.if_(divergent, [Break()])), barrier),
    "before divergent continue": (b.for_(i, 0, n.var, barrier, b.if_(divergent, [Continue()])),),
    "inner break": (
        b.for_(i, 0, n.var, b.for_(j, 0, n.var, b.if_(divergent, [Break()])), barrier),
    ),
    "break by loaded flag": (
        b.while_(
            true,
            b.store(s.var, 0, 1),
            Barrier(),
            Let(v, b.read(s.var, 0)),
            barrier,
            b.if_(b.eq(v, 0), [Break()]),
        ),
    ),
    "other arm of a uniform branch": (
        b.for_(i, 0, n.var, b.if_(by_block, [b.if_(divergent, [Continue()])], [barrier])),
    ),
}

DIVERGENT_BARRIERS: dict[str, tuple[Stmt, ...]] = {
    "branch": (b.if_(divergent, [barrier]),),
    "other arm": (b.if_(divergent, [], [barrier]),),
    "early return": (b.if_(divergent, [Return()]), barrier),
    "nested early return": (b.if_(by_block, [b.if_(divergent, [Return()])]), barrier),
    "return in a loop": (b.for_(i, 0, n.var, b.if_(divergent, [Return()])), barrier),
    "before a return in the loop": (b.for_(i, 0, n.var, barrier, b.if_(divergent, [Return()])),),
    "loop bounds": (b.for_(i, THREAD_IDX, n.var, barrier),),
    "while": (b.let_mut(acc, THREAD_IDX), b.while_(b.lt(acc, 9), barrier)),
    "before break": (b.for_(i, 0, n.var, barrier, b.if_(divergent, [Break()])),),
    "after continue": (b.for_(i, 0, n.var, b.if_(divergent, [Continue()]), barrier),),
    "through a variable": (
        b.let_mut(acc, 0),
        b.if_(divergent, [b.assign(acc, 1)]),
        b.if_(b.eq(acc, 0), [barrier]),
    ),
    "count from a divergent loop": (
        b.let_mut(acc, 0),
        b.for_(i, 0, n.var, b.assign(acc, i), b.if_(divergent, [Break()])),
        b.if_(b.eq(acc, 0), [barrier]),
    ),
    "flag without barrier": (
        b.store(s.var, 0, 1),
        b.if_(b.eq(b.read(s.var, 0), 1), [barrier]),
    ),
}


@pytest.mark.parametrize("name", UNIFORM_BARRIERS)
def test_no_false_alarm(name: str) -> None:
    assert barrier_level(*UNIFORM_BARRIERS[name]) <= BLOCK


@pytest.mark.parametrize("name", DIVERGENT_BARRIERS)
def test_divergent_barrier(name: str) -> None:
    assert barrier_level(*DIVERGENT_BARRIERS[name]) == THREAD


# --- helpers --------------------------------------------------------------------------------------

p, q, r = (fresh(name, INT64) for name in "pqr")
array = fresh("a", x.var.type)
shared = fresh("a", s.var.type)
first_of = b.helper("first_of", [array], INT64, Return(b.read(array, 0)))
plus_one = b.helper("plus_one", [p], INT64, Return(b.add(p, 1)))
chosen = b.helper(
    "chosen", [q], INT64, b.if_(b.lt(q, 3), [Return(b.lit(INT64, 1))]), Return(b.lit(INT64, 2))
)
fill = b.helper("fill", [shared], UNIT, b.store(shared, THREAD_IDX, 1))
wait = b.helper("wait", [r], INT64, b.if_(b.lt(r, 3), [barrier]), Return(b.expr(r)))


def call(result: Var, function: str, *args: b.Operand) -> Call:
    return Call((result,), function, tuple(b.expr(arg) for arg in args))


def test_helper_is_analysed_for_each_combination_of_levels() -> None:
    body = (call(v, "plus_one", n.var), call(k, "plus_one", THREAD_IDX))
    found = analyse(kernel(*body, functions=(plus_one,)))
    assert (found.of_var(v), found.of_var(k), found.of_var(p)) == (UNIFORM, THREAD, THREAD)


def test_helper_that_returns_early_apart() -> None:
    assert level(call(v, "chosen", n.var), of=v, functions=(chosen,)) == UNIFORM
    assert level(call(v, "chosen", THREAD_IDX), of=v, functions=(chosen,)) == THREAD


def test_helper_that_reads_an_array() -> None:
    assert level(call(v, "first_of", x.var), of=v, functions=(first_of,)) == UNIFORM
    assert level(call(v, "first_of", y.var), of=v, functions=(first_of,)) == THREAD


def test_helper_that_stores_to_shared_memory() -> None:
    body = (Call((), "fill", (VarRef(s.var),)), b.let(v, b.read(s.var, 0)))
    assert level(*body, of=v, functions=(fill,)) == THREAD


def test_helper_that_is_not_called_is_known_too() -> None:
    found = analyse(kernel(functions=(plus_one, chosen)))
    assert found.of_var(p) == THREAD
    assert found.control_of(chosen.body[0]).level == UNIFORM


def waiting(argument: b.Operand, *around: Stmt) -> Uniformity:
    return analyse(kernel(*around, call(v, "wait", argument), functions=(wait,)))


def test_barrier_in_a_helper() -> None:
    assert not waiting(BLOCK_IDX).is_divergent(barrier)
    assert waiting(THREAD_IDX).is_divergent(barrier)
    assert waiting(BLOCK_IDX, b.if_(divergent, [Return()])).is_divergent(barrier)
