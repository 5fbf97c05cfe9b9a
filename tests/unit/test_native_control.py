"""Native: masks of divergent control, helpers, loops, and shapes of blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sarek_numba.ir.build import (
    Fresh,
    add,
    and_,
    array_param,
    assign,
    coordinate,
    eq,
    floordiv,
    floormod,
    for_,
    ge,
    gt,
    helper,
    if_,
    let,
    let_mut,
    lit,
    lt,
    mul,
    ne,
    read,
    scalar_param,
    select,
    store,
    sub,
    while_,
)
from sarek_numba.ir.nodes import (
    App,
    Break,
    Call,
    Continue,
    Direction,
    Kernel,
    Return,
    Stmt,
    TupleExpr,
    Var,
    VarRef,
    make_kernel,
)
from sarek_numba.ir.types import BOOL, INT64, Scalar, TupleType
from tests.unit.native_kit import launch

THREADS = (1, 7, 16, 24, 33, 100, 1000)


class Writing:
    """A kernel that computes one int64 for each thread from its number `i`, in `result`."""

    def __init__(self) -> None:
        self.fresh = Fresh()
        self.out = array_param(self.fresh, "out", INT64, 0)
        self.i = self.fresh("i", INT64)
        self.result = self.fresh("result", INT64, True)

    def kernel(self, *body: Stmt, **fields: Any) -> Kernel:
        return make_kernel(
            "writing",
            (
                let(self.i, coordinate("global_idx")),
                let_mut(self.result, 0),
                *body,
                store(self.out.var, self.i, self.result),
            ),
            params=(self.out,),
            **fields,
        )

    def run(self, kernel: Kernel, threads: int, blocks: int = 2) -> list[int]:
        out = np.full(threads * blocks, -1, np.int64)
        launch(kernel, [out], (blocks, 1, 1), (threads, 1, 1))
        return out.tolist()


@pytest.mark.parametrize("threads", THREADS)
def test_nested_divergent_branches(threads: int) -> None:
    w = Writing()
    third = eq(floormod(w.i, 3), 0)
    inner = [if_(third, [assign(w.result, 1)], [assign(w.result, 2)])]
    body = if_(lt(floormod(w.i, 4), 2), inner, [assign(w.result, add(w.i, 10))])
    expected = [(1 if i % 3 == 0 else 2) if i % 4 < 2 else i + 10 for i in range(2 * threads)]
    assert w.run(w.kernel(body), threads) == expected


@pytest.mark.parametrize("threads", THREADS)
def test_break_and_continue_of_single_threads(threads: int) -> None:
    w = Writing()
    j = w.fresh("j", INT64)
    loop = for_(
        j,
        0,
        floormod(w.i, 11),
        if_(eq(floormod(add(w.i, j), 3), 0), [Continue()]),
        if_(gt(mul(j, j), w.i), [Break()]),
        assign(w.result, add(w.result, add(j, 1))),
    )
    expected = []
    for i in range(2 * threads):
        total = 0
        for step in range(i % 11):
            if (i + step) % 3 == 0:
                continue
            if step * step > i:
                break
            total += step + 1
        expected.append(total)
    assert w.run(w.kernel(loop), threads) == expected


@pytest.mark.parametrize("threads", THREADS)
def test_early_return_leaves_the_rest_untouched(threads: int) -> None:
    w = Writing()
    j = w.fresh("j", INT64)
    body = (
        if_(eq(floormod(w.i, 5), 1), [Return()]),
        for_(
            j,
            0,
            6,
            if_(eq(add(j, floormod(w.i, 7)), 9), [Return()]),
            assign(w.result, add(w.result, j)),
        ),
        assign(w.result, add(w.result, 100)),
    )
    expected = [-1 if i % 5 == 1 or 4 <= i % 7 <= 9 else 115 for i in range(2 * threads)]
    assert w.run(w.kernel(*body), threads) == expected


def test_while_with_a_condition_of_each_thread() -> None:
    """Collatz steps."""
    w = Writing()
    n = w.fresh("n", INT64, True)
    body = (
        let_mut(n, add(w.i, 1)),
        while_(
            ne(n, 1),
            assign(n, select(eq(floormod(n, 2), 0), floordiv(n, 2), add(mul(n, 3), 1))),
            assign(w.result, add(w.result, 1)),
        ),
    )

    def steps(n: int) -> int:
        return 0 if n == 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)

    assert w.run(w.kernel(*body), 24) == [steps(i + 1) for i in range(48)]


@pytest.mark.parametrize(
    ("first", "stop", "step"),
    [
        (0, 10, 3),
        (10, 0, -3),
        (5, 2, 1),
        (-(2**63), -(2**63) + 3, 1),
        (2**63 - 4, 2**63 - 1, 2),
        (-(2**63) + 2, -(2**63), -1),
        (-(2**63), 2**63 - 1, 2**62),
        (0, 10, 0),
    ],
)
def test_ranges_are_exact_at_the_ends(first: int, stop: int, step: int) -> None:
    """Bounds known to the launch only, of any direction; a step of zero runs no pass."""
    fresh = Fresh()
    out = array_param(fresh, "out", INT64, 0)
    bounds = [scalar_param(fresh, name, INT64, k + 1) for k, name in enumerate("abc")]
    j, count, last = fresh("j", INT64), fresh("n", INT64, True), fresh("last", INT64, True)
    a, b, c = (VarRef(bound.var) for bound in bounds)
    loop = for_(j, a, b, assign(count, add(count, 1)), assign(last, j), step=c)
    body = (
        let_mut(count, 0),
        let_mut(last, 0),
        loop,
        store(out.var, 0, count),
        store(out.var, 1, last),
    )
    kernel = make_kernel("ranges", body, params=(out, *bounds))
    result = np.zeros(2, np.int64)
    launch(kernel, [result, *map(np.int64, (first, stop, step))], block=(1, 1, 1))
    passes = range(first, stop, step) if step else range(0)
    assert result.tolist() == [len(passes), passes[-1] if passes else 0]


def test_narrow_loop_variables_do_not_wrap() -> None:
    """A loop over all of uint8 but the last value ends."""
    fresh = Fresh()
    out = array_param(fresh, "out", INT64, 0)
    j, count = fresh("j", Scalar.UINT8), fresh("n", INT64, True)
    loop = for_(j, 0, 255, assign(count, add(count, 1)), direction=Direction.UPTO)
    kernel = make_kernel(
        "bytes", (let_mut(count, 0), loop, store(out.var, 0, count)), params=(out,)
    )
    result = np.zeros(1, np.int64)
    launch(kernel, [result], block=(1, 1, 1))
    assert result[0] == 255


def test_untaken_operands_touch_no_memory() -> None:
    """`0 <= k and a[k] > 0` and a conditional load never read outside."""
    fresh = Fresh()
    out, a = array_param(fresh, "out", INT64, 0), array_param(fresh, "a", INT64, 1)
    i, k = fresh("i", INT64), fresh("k", INT64)
    far = mul(sub(k, 2), 1 << 40)
    guarded = and_(ge(far, 0), gt(read(a.var, select(lt(k, 3), far, lit(INT64, 0))), 0))
    value = select(lt(k, 3), lit(INT64, 7), read(a.var, mul(sub(k, 3), 0)))
    body = (
        let(i, coordinate("global_idx")),
        let(k, floormod(i, 5)),
        store(out.var, i, select(guarded, value, lit(INT64, -1))),
    )
    kernel = make_kernel("guards", body, params=(out, a))
    result = np.zeros(40, np.int64)
    launch(kernel, [result, np.array([5], np.int64)], block=(40, 1, 1))
    assert result.tolist() == [{0: -1, 1: -1, 2: 7, 3: 5, 4: 5}[i % 5] for i in range(40)]


def _halving(w: Writing) -> Any:
    """How often x can be halved, or -1 from 20 on; returns from within a loop."""
    x, n, c = w.fresh("x", INT64), w.fresh("n", INT64, True), w.fresh("c", INT64, True)
    return helper(
        "halving",
        [x],
        INT64,
        if_(ge(x, 20), [Return(lit(INT64, -1))]),
        let_mut(n, x),
        let_mut(c, 0),
        while_(
            gt(n, 0),
            if_(ne(floormod(n, 2), 0), [Return(VarRef(c))]),
            assign(n, floordiv(n, 2)),
            assign(c, add(c, 1)),
        ),
        Return(lit(INT64, 99)),
    )


def test_helpers_return_from_within_loops() -> None:
    """As a call and as an expression under a mask; lanes that returned go on after the call."""
    w = Writing()
    value = w.fresh("value", INT64)
    called = [Call((value,), "halving", (VarRef(w.i),)), assign(w.result, value)]
    applied = [assign(w.result, add(App("halving", (mul(w.i, 2),), INT64), 1000))]
    kernel = w.kernel(if_(lt(floormod(w.i, 3), 2), called, applied), functions=(_halving(w),))

    def halving(x: int) -> int:
        return -1 if x >= 20 else 99 if x == 0 else (x & -x).bit_length() - 1

    expected = [halving(i) if i % 3 < 2 else halving(2 * i) + 1000 for i in range(48)]
    assert w.run(kernel, 24) == expected


def test_helpers_give_several_results() -> None:
    w = Writing()
    x = w.fresh("x", INT64)
    pair = helper(
        "pair",
        [x],
        TupleType((INT64, BOOL)),
        Return(TupleExpr((mul(x, 3), eq(floormod(x, 2), 0)))),
    )
    triple, even = w.fresh("triple", INT64), w.fresh("even", BOOL)
    body = (
        Call((triple, even), "pair", (VarRef(w.i),)),
        assign(w.result, select(even, triple, lit(INT64, 0))),
    )
    expected = [3 * i if i % 2 == 0 else 0 for i in range(14)]
    assert w.run(w.kernel(*body, functions=(pair,)), 7) == expected


@pytest.mark.parametrize(
    "block", [(1, 1, 1), (7, 3, 2), (5, 5, 1), (16, 4, 1), (40, 2, 3), (3, 1, 9)]
)
def test_coordinates_of_any_block_shape(block: tuple[int, int, int]) -> None:
    """Every thread of every block runs once, and knows where it is."""
    fresh = Fresh()
    grid = (3, 2, 2)
    out = [array_param(fresh, f"o{axis}", INT64, axis) for axis in range(3)]
    parts = {name: [coordinate(name, axis) for axis in range(3)] for name in _COORDINATES}
    x, y, z = parts["global_idx"]
    nx, ny, _ = parts["grid_size"]
    flat: Var = fresh("flat", INT64)
    stores = [
        store(out[0].var, flat, add(x, mul(add(y, mul(z, 100)), 100))),
        store(out[1].var, flat, add(parts["thread_idx"][0], mul(parts["thread_idx"][1], 100))),
        store(out[2].var, flat, add(parts["block_idx"][2], mul(parts["thread_idx"][2], 100))),
    ]
    body = (let(flat, add(x, mul(nx, add(y, mul(ny, z))))), *stores)
    count = int(np.prod(grid) * np.prod(block))
    results = [np.full(count, -1, np.int64) for _ in range(3)]
    launch(make_kernel("coordinates", body, params=tuple(out)), results, grid, block)
    sizes = [g * b for g, b in zip(grid, block, strict=True)]
    z_all, y_all, x_all = np.meshgrid(*(np.arange(s) for s in sizes[::-1]), indexing="ij")
    places = [v.ravel() for v in (x_all, y_all, z_all)]
    tx, ty, tz = (p % b for p, b in zip(places, block, strict=True))
    assert (results[0] == places[0] + 100 * (places[1] + 100 * places[2])).all()
    assert (results[1] == tx + 100 * ty).all()
    assert (results[2] == places[2] // block[2] + 100 * tz).all()


_COORDINATES = ("global_idx", "grid_size", "thread_idx", "block_idx")
