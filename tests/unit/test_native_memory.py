"""Native: barriers, shared, local and constant memory, and atomics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sarek_numba.ir.build import (
    Fresh,
    add,
    array_param,
    assign,
    atomic,
    cast,
    const_decl,
    coordinate,
    eq,
    floordiv,
    floormod,
    for_,
    gt,
    if_,
    let,
    let_mut,
    local_decl,
    lt,
    mul,
    read,
    scalar_param,
    shared_decl,
    store,
    sub,
    while_,
)
from sarek_numba.ir.nodes import Barrier, Break, Continue, Return, VarRef, make_kernel
from sarek_numba.ir.types import FLOAT32, FLOAT64, INT32, INT64, DynamicSharedLength, Scalar
from tests.unit.native_kit import launch, same

SHAPES = (1, 7, 24, 33, 64, 1000)


@pytest.mark.parametrize("threads", [1, 2, 8, 32, 256, 1024])
def test_tree_reduction(threads: int) -> None:
    """A loop that holds a barrier, its bound a uniform variable that changes in it."""
    f = Fresh()
    a, out = array_param(f, "a", INT64, 0), array_param(f, "out", INT64, 1)
    shared = shared_decl(f, "sums", INT64, 1024)
    t, width = f("t", INT64), f("width", INT64, True)
    body = (
        let(t, coordinate("thread_idx")),
        store(shared.var, t, read(a.var, coordinate("global_idx"))),
        Barrier(),
        let_mut(width, floordiv(coordinate("block_dim"), 2)),
        while_(
            gt(width, 0),
            if_(
                lt(t, width),
                [store(shared.var, t, add(read(shared.var, t), read(shared.var, add(t, width))))],
            ),
            Barrier(),
            assign(width, floordiv(width, 2)),
        ),
        if_(eq(t, 0), [store(out.var, coordinate("block_idx"), read(shared.var, 0))]),
    )
    kernel = make_kernel("reduce", body, params=(a, out), locals=(shared,))
    values = np.random.default_rng(0).integers(-1000, 1000, 3 * threads)
    result = np.zeros(3, np.int64)
    launch(kernel, [values, result], (3, 1, 1), (threads, 1, 1))
    assert result.tolist() == values.reshape(3, threads).sum(1).tolist()


@pytest.mark.parametrize("side", [4, 8, 16])
def test_tiled_product(side: int) -> None:
    """An accumulator of each thread lives across barriers in a loop."""
    f = Fresh()
    a, b, c = (array_param(f, name, FLOAT32, k) for k, name in enumerate("abc"))
    n = scalar_param(f, "n", INT64, 3)
    tiles = [shared_decl(f, name, FLOAT32, 256) for name in ("left", "right")]
    x, y, row, column = (f(name, INT64) for name in ("x", "y", "row", "column"))
    tile, k, total = f("tile", INT64), f("k", INT64), f("total", FLOAT32, True)
    width = coordinate("block_dim")
    here = add(mul(y, width), x)
    step = add(
        total,
        mul(
            read(tiles[0].var, add(mul(y, width), k)),
            read(tiles[1].var, add(mul(k, width), x)),
        ),
    )
    body = (
        let(x, coordinate("thread_idx", 0)),
        let(y, coordinate("thread_idx", 1)),
        let(row, coordinate("global_idx", 1)),
        let(column, coordinate("global_idx", 0)),
        let_mut(total, 0.0),
        for_(
            tile,
            0,
            coordinate("grid_dim"),
            store(tiles[0].var, here, read(a.var, add(mul(row, n.var), add(mul(tile, width), x)))),
            store(
                tiles[1].var,
                here,
                read(b.var, add(mul(add(mul(tile, width), y), n.var), column)),
            ),
            Barrier(),
            for_(k, 0, width, assign(total, step)),
            Barrier(),
        ),
        store(c.var, add(mul(row, n.var), column), total),
    )
    kernel = make_kernel("product", body, params=(a, b, c, n), locals=tuple(tiles))
    size = 3 * side
    rng = np.random.default_rng(1)
    left, right = (rng.integers(-8, 8, (size, size)).astype(np.float32) for _ in range(2))
    result = np.zeros((size, size), np.float32)
    launch(kernel, [left, right, result, np.int64(size)], (3, 3, 1), (side, side, 1))
    assert (result == left @ right).all()


@pytest.mark.parametrize("threads", SHAPES)
def test_values_live_across_barriers(threads: int) -> None:
    """Variables of a thread, of the block, and a local array; jumps that all threads take."""
    f = Fresh()
    out = array_param(f, "out", INT64, 0)
    shared, mine = shared_decl(f, "shared", INT64, 1024), local_decl(f, "mine", INT64, 3)
    t, seen, j = f("t", INT64), f("seen", INT64), f("j", INT64)
    own, uniform = f("own", INT64, True), f("uniform", INT64, True)
    neighbour = floormod(add(t, 1), coordinate("block_dim"))
    body = (
        let(t, coordinate("thread_idx")),
        let_mut(own, mul(t, t)),
        let_mut(uniform, 5),
        for_(
            j,
            0,
            10,
            store(shared.var, t, add(own, j)),
            store(mine.var, floormod(j, 3), own),
            Barrier(),
            let(seen, read(shared.var, neighbour)),
            if_(eq(j, 2), [Continue()]),
            Barrier(),
            assign(uniform, add(uniform, j)),
            if_(gt(uniform, 14), [Break()]),
            assign(own, add(seen, uniform)),
            Barrier(),
        ),
        if_(lt(t, 2), [Return()]),
        store(out.var, t, add(mul(own, 1000), add(read(mine.var, 1), uniform))),
    )
    kernel = make_kernel("across", body, params=(out,), locals=(shared, mine))
    result = np.full(threads, -1, np.int64)
    launch(kernel, [result], block=(threads, 1, 1))
    values, total = np.arange(threads) ** 2, 5
    kept = np.zeros((3, threads), np.int64)
    for step in range(10):
        kept[step % 3] = values
        around = np.roll(values + step, -1)
        if step == 2:
            continue
        total += step
        if total > 14:
            break
        values = around + total
    expected = np.where(np.arange(threads) < 2, -1, values * 1000 + kept[1] + total)
    assert result.tolist() == expected.tolist()


def test_a_barrier_in_a_uniform_branch_after_a_region_that_returned() -> None:
    """Threads that returned in one branch stay away from what follows it."""
    f = Fresh()
    out, flag = array_param(f, "out", INT64, 0), scalar_param(f, "flag", INT64, 1)
    t = f("t", INT64)
    body = (
        let(t, coordinate("thread_idx")),
        if_(
            gt(flag.var, 0),
            [store(out.var, t, 1), Barrier(), if_(lt(t, 20), [Return()])],
            [store(out.var, t, 2)],
        ),
        store(out.var, t, add(read(out.var, t), 10)),
    )
    kernel = make_kernel("branches", body, params=(out, flag))
    for chosen in (0, 1):
        result = np.zeros(40, np.int64)
        launch(kernel, [result, np.int64(chosen)], block=(40, 1, 1))
        stayed = np.where(np.arange(40) < 20, 1, 11)
        assert result.tolist() == (stayed if chosen else np.full(40, 12)).tolist()


def test_dynamic_shared_memory_and_its_views() -> None:
    f = Fresh()
    out = array_param(f, "out", INT64, 0)
    size = scalar_param(f, "bytes", INT64, DynamicSharedLength())
    first, second = shared_decl(f, "first", INT64, None), shared_decl(f, "second", INT64, None, 256)
    t = f("t", INT64)
    body = (
        let(t, coordinate("thread_idx")),
        store(first.var, t, mul(t, 2)),
        store(second.var, t, mul(t, 3)),
        Barrier(),
        store(out.var, t, add(read(first.var, sub(31, t)), read(second.var, sub(31, t)))),
        if_(eq(t, 0), [store(out.var, 0, size.var)]),
    )
    kernel = make_kernel("dynamic", body, params=(out, size), locals=(first, second))
    result = np.zeros(32, np.int64)
    launch(kernel, [result, np.int64(512)], block=(32, 1, 1), shared_bytes=512)
    assert result.tolist() == [512, *(5 * (31 - k) for k in range(1, 32))]


@pytest.mark.parametrize("size", [3, 700])
def test_local_and_constant_arrays(size: int) -> None:
    """Storage of each thread, on the stack or in the frame, and a table of constants."""
    f = Fresh()
    out = array_param(f, "out", FLOAT32, 0)
    mine = local_decl(f, "mine", FLOAT32, size)
    table = const_decl(f, "table", FLOAT32, [1.5, -2.5, 4.25])
    t, j = f("t", INT64), f("j", INT64)
    body = (
        let(t, coordinate("global_idx")),
        for_(
            j, 0, size, store(mine.var, floormod(add(j, t), size), read(table.var, floormod(j, 3)))
        ),
        store(out.var, t, read(mine.var, 1)),
    )
    kernel = make_kernel("local", body, params=(out,), locals=(mine, table))
    result = np.zeros(50, np.float32)
    launch(kernel, [result], (2, 1, 1), (25, 1, 1))
    constants = [1.5, -2.5, 4.25]
    assert result.tolist() == [constants[(1 - t) % size % 3] for t in range(50)]


def _atomics(element: Scalar, name: str, shared: bool) -> Any:
    f = Fresh()
    target, values, old = (array_param(f, n, element, k) for k, n in enumerate(("to", "v", "old")))
    i, before = f("i", INT64), f("before", element)
    cell = shared_decl(f, "cell", element, 1)
    place = cell.var if shared else target.var
    start = if_(eq(coordinate("thread_idx"), 0), [store(place, 0, read(target.var, 0))])
    finish = if_(eq(coordinate("thread_idx"), 0), [store(target.var, 0, read(place, 0))])
    body = (
        let(i, coordinate("thread_idx")),
        *((start, Barrier()) if shared else ()),
        if_(
            lt(floormod(i, 3), 2),
            [
                atomic(name, place, 0, read(values.var, i), result=before),
                store(old.var, i, before),
            ],
        ),
        *((Barrier(), finish) if shared else ()),
    )
    return make_kernel("atomic", body, params=(target, values, old), locals=(cell,))


@pytest.mark.parametrize("shared", [False, True], ids=["global", "shared"])
@pytest.mark.parametrize("name", ["add", "sub", "min", "max", "exch", "and", "or", "xor"])
@pytest.mark.parametrize("element", [INT32, Scalar.UINT32, FLOAT32, INT64, Scalar.UINT64, FLOAT64])
def test_atomics_in_the_order_of_threads(element: Scalar, name: str, shared: bool) -> None:
    """The threads of one block that run act one after another, and see the value before."""
    if element.is_float and name in ("and", "or", "xor"):
        pytest.skip("floats have no bitwise operations")
    rng = np.random.default_rng(4)
    values = (rng.uniform(-100, 100, 40)).astype(np.int64).astype(element.value)
    if element.is_float:
        values[[4, 9, 13]] = [np.nan, -0.0, 0.0]
    target, old = np.array([3], element.value), np.zeros(40, element.value)
    step = {
        "add": np.add,
        "min": np.fmin,
        "max": np.fmax,
        "exch": lambda current, value: value,
        "sub": np.subtract,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }[name]
    current, expected = target[0].copy(), np.zeros(40, element.value)
    with np.errstate(over="ignore"):
        for t in range(40):
            if t % 3 < 2:
                expected[t] = current
                current = step(current, values[t])
    launch(_atomics(element, name, shared), [target, values, old], block=(40, 1, 1))
    assert same(old, expected).all()
    assert same(target, np.array([current], element.value)).all()


def test_compare_and_exchange_load_and_store() -> None:
    """One thread of all takes the lock; an atomic load sees it; the store releases it."""
    f = Fresh()
    lock, out = array_param(f, "lock", INT32, 0), array_param(f, "out", INT32, 1)
    t, old, seen = f("t", INT64), f("old", INT32), f("seen", INT32)
    body = (
        let(t, coordinate("thread_idx")),
        atomic("cas", lock.var, 0, add(cast(INT32, t), 1), compare=0, result=old),
        atomic("load", lock.var, 0, result=seen),
        store(out.var, t, add(mul(old, 1000), seen)),
        if_(eq(old, 0), [atomic("store", lock.var, 1, 7)]),
    )
    kernel = make_kernel("lock", body, params=(lock, out))
    held, result = np.zeros(2, np.int32), np.zeros(20, np.int32)
    launch(kernel, [held, result], block=(20, 1, 1))
    assert held.tolist() == [1, 7]
    assert result.tolist() == [1, *[1001] * 19]


@pytest.mark.parametrize("element", [Scalar.INT8, Scalar.BOOL, Scalar.INT16, FLOAT64])
def test_strided_and_scattered_access(element: Scalar) -> None:
    """Gathers and scatters of narrow elements change nothing beside them."""
    f = Fresh()
    a, out = array_param(f, "a", element, 0), array_param(f, "out", element, 1)
    i = f("i", INT64)
    body = (
        let(i, coordinate("global_idx")),
        if_(lt(floormod(i, 5), 3), [store(out.var, sub(90, mul(i, 3)), read(a.var, mul(i, 2)))]),
    )
    source = np.random.default_rng(5).integers(0, 2, 60).astype(element.value)
    result = np.zeros(100, element.value)
    launch(make_kernel("strides", body, params=(a, out)), [source, result], block=(30, 1, 1))
    expected = np.zeros(100, element.value)
    for t in range(30):
        if t % 5 < 3:
            expected[90 - 3 * t] = source[2 * t]
    assert result.tolist() == expected.tolist()


def test_of_lanes_that_share_an_element_the_last_wins() -> None:
    f = Fresh()
    out = array_param(f, "out", INT64, 0)
    i = f("i", INT64)
    body = (
        let(i, coordinate("global_idx")),
        if_(lt(i, 21), [store(out.var, 0, i), store(out.var, add(1, floormod(i, 2)), i)]),
        store(out.var, 3, VarRef(i)),
    )
    result = np.zeros(4, np.int64)
    launch(make_kernel("last", body, params=(out,)), [result], block=(30, 1, 1))
    assert result.tolist() == [20, 20, 19, 29]
