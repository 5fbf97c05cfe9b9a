"""Hand-made kernels on every OpenCL driver: control, memory, atomics, helpers, names and limits."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from opencl_kernels import drivers

from sarek_numba.codegen import cfamily
from sarek_numba.errors import InvalidDimensions, OutOfMemory, SourceCompilationError
from sarek_numba.ir import build as b
from sarek_numba.ir.nodes import (
    Barrier,
    Break,
    Call,
    Continue,
    Direction,
    Expr,
    HelperFunction,
    Kernel,
    Return,
    Stmt,
    make_kernel,
)
from sarek_numba.ir.types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    UNIT,
    Array,
    MemSpace,
    Scalar,
    TupleType,
    Vec,
)
from sarek_opencl import driver as library
from sarek_opencl.dialect import DIALECT, EXTENDED_OPS, without_extended_atomics
from sarek_opencl.runtime import OpenCLDriver, OpenCLProgram

pytestmark = [
    pytest.mark.skipif(not drivers(), reason="no OpenCL device"),
    pytest.mark.parametrize("device", sorted(drivers())),
]


def launch(
    device: str,
    kernel: Kernel,
    *arguments: np.ndarray | np.generic,
    grid: int = 1,
    block: int = 1,
    shared_bytes: int = 0,
) -> None:
    """Run a kernel as printed; arrays are bound as read and written."""
    driver = drivers()[device]
    run(driver, program(driver, kernel), arguments, grid, block, shared_bytes)


def program(driver: OpenCLDriver, kernel: Kernel) -> OpenCLProgram:
    return OpenCLProgram(driver, kernel.params, cfamily.emit(kernel, DIALECT), driver.options)


def run(
    driver: OpenCLDriver,
    ready: OpenCLProgram,
    arguments: Sequence[np.ndarray | np.generic],
    grid: int,
    block: int,
    shared_bytes: int = 0,
) -> None:
    bound = [
        driver.bind(a.view(np.uint8), read=True, written=a.flags.writeable)
        if isinstance(a, np.ndarray)
        else a
        for a in arguments
    ]
    ready.launch((grid, 1, 1), (block, 1, 1), shared_bytes, bound)
    for argument, buffer in zip(arguments, bound, strict=True):
        if isinstance(argument, np.ndarray):
            driver.unbind(buffer)


_END = 2**31 - 1
_RANGES = [
    (0, 10, 3),
    (10, 0, -3),
    (5, 5, 1),
    (3, -3, 1),
    (0, 5, 0),
    (_END - 5, _END, 2),
    (_END - 4, _END, 3),
    (-_END - 1, -_END + 6, 4),
    (-_END + 5, -_END - 1, -4),
    (-_END - 1, _END, _END),
    (_END, -_END - 1, -_END - 1),
]


@pytest.mark.parametrize("scalar", [Scalar.INT32, Scalar.INT64, Scalar.INT8])
def test_loops_run_as_python_ranges(device: str, scalar: Scalar) -> None:
    """Any bounds and step, ends of the type included, in all three directions."""
    shrink = {Scalar.INT8: 24, Scalar.INT32: 0, Scalar.INT64: -32}[scalar]
    ranges = [tuple(_resized(v, shrink) for v in bounds) for bounds in _RANGES]
    fresh = b.Fresh()
    out = b.array_param(fresh, "out", INT64, 0)
    first, stop, step = (b.scalar_param(fresh, n, scalar, k) for k, n in enumerate("fse", 1))
    body: list[Stmt] = []
    for number, direction in enumerate(Direction):
        i = fresh("i", scalar)
        count, total = fresh("count", INT64, True), fresh("total", INT64, True)
        body += [
            b.let_mut(count, 0),
            b.let_mut(total, 0),
            b.for_(
                i,
                first.var,
                stop.var,
                b.assign(count, b.add(count, 1)),
                b.if_(b.gt(count, 40), [Break()]),
                b.if_(b.eq(b.bitand(count, 1), 0), [Continue()]),
                b.assign(total, b.add(b.mul(total, 31), b.cast(INT64, i))),
                step=step.var,
                direction=direction,
            ),
            b.store(out.var, 2 * number, count),
            b.store(out.var, 2 * number + 1, total),
        ]
    kernel = make_kernel("loops", tuple(body), params=(out, first, stop, step))
    for bounds in ranges:
        result = np.zeros(6, np.int64)
        launch(device, kernel, result, *(np.dtype(scalar.value).type(v) for v in bounds))
        expected = _python_loop(*bounds)
        assert tuple(result[4:]) == expected, bounds
        own = 0 if bounds[2] > 0 else 2
        if bounds[2]:
            assert tuple(result[own : own + 2]) == expected, bounds


def _resized(value: int, shrink: int) -> int:
    if abs(value) < 100:
        return value
    end = 1 << (31 - shrink)
    return value - (1 << 31) + end if value > 0 else value + (1 << 31) - end


def _python_loop(first: int, stop: int, step: int) -> tuple[int, int]:
    count = total = 0
    for i in range(first, stop, step) if step else ():
        count += 1
        if count > 40:
            break
        if count % 2 == 0:
            continue
        total = total * 31 + i
    return count, (total + 2**63) % 2**64 - 2**63


_ATOMIC_TYPES = (
    Scalar.INT32,
    Scalar.UINT32,
    Scalar.INT64,
    Scalar.UINT64,
    FLOAT32,
    FLOAT64,
)


@pytest.mark.parametrize("loops", [False, True], ids=["functions", "loops"])
@pytest.mark.parametrize("space", [MemSpace.GLOBAL, MemSpace.SHARED], ids=lambda s: s.value)
@pytest.mark.parametrize("scalar", _ATOMIC_TYPES, ids=lambda s: s.value)
def test_atomics(device: str, scalar: Scalar, space: MemSpace, loops: bool) -> None:
    """Every operation, contended by 64 threads; each old value is one that was there.

    With `loops` as for a device that has an exchange and a compare-and-exchange alone.
    """
    ops = ["add", "sub", "min", "max", "exch", "store", "load", "cas"]
    ops += [] if scalar.is_float else ["and", "or", "xor", "inc", "dec"]
    fresh = b.Fresh()
    cells = b.array_param(fresh, "cells", scalar, 0)
    old = b.array_param(fresh, "old", scalar, 1)
    shared = b.shared_decl(fresh, "tile", scalar, len(ops))
    place = cells.var if space is MemSpace.GLOBAL else shared.var
    t, value = fresh("t", INT64), fresh("value", scalar)
    body: list[Stmt] = [
        b.let(t, b.coordinate("thread_idx")),
        b.let(value, b.cast(scalar, b.add(t, 1))),
    ]
    copy = b.if_(b.lt(t, len(ops)), [b.store(shared.var, t, b.read(cells.var, t))])
    if space is MemSpace.SHARED:
        body += [copy, Barrier()]
    for k, op in enumerate(ops):
        if op == "store":
            body.append(b.atomic(op, place, k, 3))
            continue
        result = fresh("old", scalar)
        given = {"load": {}, "cas": {"compare": 100}}.get(op, {})
        args = () if op == "load" else (50,) if op in ("inc", "dec") else (value,)
        body.append(b.atomic(op, place, k, *args, result=result, **given))
        body.append(b.store(old.var, b.add(b.mul(t, len(ops)), k), result))
    if space is MemSpace.SHARED:
        body.append(Barrier())
        body.append(b.if_(b.lt(t, len(ops)), [b.store(cells.var, t, b.read(shared.var, t))]))
    kernel = make_kernel("atomics", tuple(body), params=(cells, old), locals=(shared,))
    dtype = np.dtype(scalar.value)
    values = np.full(len(ops), 100, dtype)
    olds = np.zeros((64, len(ops)), dtype)
    exchanges = {k: text for k, text in DIALECT.atomics.items() if k[0] not in EXTENDED_OPS}
    dialect = replace(DIALECT, atomics=exchanges) if loops else DIALECT
    emitted = cfamily.emit(kernel, dialect)
    driver = drivers()[device]
    ready = OpenCLProgram(driver, kernel.params, emitted, driver.options)
    run(driver, ready, [values, olds.ravel()], 1, 64)
    given_values = np.arange(1, 65)
    expected = {"add": 100 + 2080, "min": 1, "max": 100, "store": 3, "load": 100}
    expected |= {"inc": 63 % 51, "dec": 50 - 63 % 51}  # 100 is outside of 0 … 50: one step enters
    wraps = scalar in (Scalar.UINT32, Scalar.UINT64)
    expected["sub"] = (100 - 2080) % 2**scalar.bits if wraps else 100 - 2080
    for op, reduce in (
        ("and", np.bitwise_and),
        ("or", np.bitwise_or),
        ("xor", np.bitwise_xor),
    ):
        expected[op] = reduce(100, reduce.reduce(given_values))
    for k, op in enumerate(ops):
        if op in expected:
            assert values[k] == dtype.type(expected[op]), op
        column = olds[:, k]
        if op == "exch":
            chain = sorted([*column.tolist(), values[k].item()])
            assert chain == sorted([100, *given_values.tolist()])
        if op == "cas":
            assert sum(column == 100) == 1
            assert set(column[column != 100]) == {values[k]}
        if op == "load":
            assert (column == 100).all()


def test_64_bit_atomics_without_their_second_extension(device: str) -> None:
    """Maxima are loops of the first extension's exchange, on 64-bit integers alone."""
    fresh = b.Fresh()
    longs = b.array_param(fresh, "longs", INT64, 0)
    ints = b.array_param(fresh, "ints", INT32, 1)
    t = b.coordinate("thread_idx")
    body = (b.atomic("max", longs.var, 0, t), b.atomic("max", ints.var, 0, b.cast(INT32, t)))
    kernel = make_kernel("k", body, params=(longs, ints))
    emitted = cfamily.emit(kernel, without_extended_atomics(DIALECT))
    assert "cl_khr_int64_base_atomics : enable" in emitted.text
    assert "cl_khr_int64_extended_atomics" not in emitted.text
    assert "atomic_max(&ints[0]" in emitted.text
    assert "cl_khr_int64_extended_atomics : enable" in cfamily.emit(kernel, DIALECT).text
    values = [np.zeros(1, np.int64), np.zeros(1, np.int32)]
    driver = drivers()[device]
    run(driver, OpenCLProgram(driver, kernel.params, emitted, driver.options), values, 1, 64)
    assert [v.item() for v in values] == [63, 63]


def test_helpers_return_tuples_and_write_arrays(device: str) -> None:
    """A helper with a tuple result, one that writes a shared array, one that returns nothing."""
    fresh = b.Fresh()
    out = b.array_param(fresh, "out", INT32, 0)
    source = b.array_param(fresh, "source", INT32, 1)
    tile = b.shared_decl(fresh, "tile", INT32, 4)
    pair = TupleType((INT32, BOOL))
    x, y = fresh("x", INT32), fresh("y", INT32)
    split = b.helper("divmod", (x, y), pair, Return(b.tuple_(b.floordiv(x, y), b.gt(x, y))))
    array, index, v = (
        fresh("array", Array(INT32, MemSpace.SHARED)),
        fresh("i", INT64),
        fresh("v", INT32),
    )
    put = b.helper("put", (array, index, v), UNIT, b.store(array, index, v), Barrier())
    data = fresh("data", Vec(INT32))
    get = b.helper("get", (data,), INT32, Return(b.add(b.read(data, 0), b.read(data, 1))))
    q, larger, total = fresh("q", INT32), fresh("larger", BOOL), fresh("total", INT32)
    body = (
        Call((total,), "get", (b.expr(source.var),)),
        Call((q, larger), "divmod", (b.expr(total), b.lit(INT32, -4))),
        Call((), "put", (b.expr(tile.var), b.const_int(2), b.expr(q))),
        b.store(out.var, 0, b.read(tile.var, 2)),
        b.store(out.var, 1, b.cast(INT32, larger)),
    )
    kernel = make_kernel(
        "helpers", body, params=(out, source), locals=(tile,), functions=(split, put, get)
    )
    result = np.zeros(2, np.int32)
    launch(device, kernel, result, np.array([4, 5], np.int32))
    assert result.tolist() == [9 // -4, 1]


def test_dynamic_shared_memory_is_reversed(device: str) -> None:
    """Two views of the dynamic region at different offsets, and a barrier."""
    fresh = b.Fresh()
    out = b.array_param(fresh, "out", FLOAT32, 0)
    ints = b.shared_decl(fresh, "ints", INT32, None)
    floats = b.shared_decl(fresh, "floats", FLOAT32, None, offset=32 * 4)
    t = fresh("t", INT64)
    mirrored = b.sub(31, t)
    body = (
        b.let(t, b.coordinate("thread_idx")),
        b.store(ints.var, t, b.cast(INT32, t)),
        b.store(floats.var, t, 0.5),
        Barrier(),
        b.store(
            out.var,
            t,
            b.add(b.cast(FLOAT32, b.read(ints.var, mirrored)), b.read(floats.var, mirrored)),
        ),
    )
    kernel = make_kernel("reverse", body, params=(out,), locals=(ints, floats))
    result = np.zeros(32, np.float32)
    launch(device, kernel, result, block=32, shared_bytes=256)
    assert result.tolist() == [31.5 - k for k in range(32)]


def test_constant_local_and_bool_arrays(device: str) -> None:
    """A constant array with every edge of float32, an array of the thread, bools in memory."""
    fresh = b.Fresh()
    edges = [0.1, -0.0, float("inf"), float("-inf"), 1e-45, 3.4028234663852886e38, float("nan")]
    table = b.const_decl(fresh, "table", FLOAT32, edges)
    out = b.array_param(fresh, "out", FLOAT32, 0)
    flags = b.array_param(fresh, "flags", BOOL, 1)
    flag = b.scalar_param(fresh, "flag", BOOL, 2)
    mine = b.local_decl(fresh, "mine", FLOAT32, 8)
    i = fresh("i", INT64)
    body = (
        b.for_(i, 0, len(edges), b.store(mine.var, i, b.read(table.var, i))),
        b.let(fresh("unused", INT32), 0),
        b.for_(
            j := fresh("i", INT64),
            0,
            len(edges),
            b.store(
                out.var,
                b.subscript(out.var, 0, b.sub(j, len(edges)), b.const_int(7), True),
                b.read(mine.var, j),
            ),
        ),
        b.store(flags.var, 0, b.and_(flag.var, b.not_(b.read(flags.var, 1)))),
        b.store(flags.var, 2, b.cast(BOOL, b.read(out.var, 6))),
    )
    kernel = make_kernel("tables", body, params=(out, flags, flag), locals=(table, mine))
    result, bools = np.zeros(7, np.float32), np.array([False, False, False])
    launch(device, kernel, result, bools, np.bool_(True))
    assert result.view(np.uint32).tolist()[:6] == np.float32(edges).view(np.uint32).tolist()[:6]
    assert np.isnan(result[6])
    assert bools.tolist() == [True, False, True]


_NAMES = """
    float kernel input local or é č μ 核 ﬁ fi global get_global_id sin step dot length barrier main
    int4 NULL linux half image2d_t sarek_kernel dynamic_shared floor_div_i32 __x _X __ a__b class
    and not template min exp as_int this printf M_PI true NAN k_stop quad complex event_t
""".split()


def test_any_name_is_a_variable(device: str) -> None:
    """Keywords, built-in functions, letters of any alphabet: as parameter, local and helper."""
    fresh = b.Fresh()
    out = b.array_param(fresh, "out", INT32, 0)
    params = [b.scalar_param(fresh, name, INT32, k) for k, name in enumerate(_NAMES, 1)]
    functions: list[HelperFunction] = []
    body: list[Stmt] = []
    total: Expr = b.lit(INT32, 0)
    for k, (name, param) in enumerate(zip(_NAMES, params, strict=True)):
        x, local = fresh(name, INT32), fresh(name, INT32)
        called = fresh(name, INT32)
        functions.append(b.helper(f"{name}", (x,), INT32, Return(b.floordiv(x, 1))))
        body.append(Call((called,), name, (b.expr(param.var),)))
        body.append(b.let(local, b.mul(called, k + 1)))
        total = b.add(total, local)
    body.append(b.store(out.var, 0, total))
    kernel = make_kernel("kernel", tuple(body), params=(out, *params), functions=tuple(functions))
    result = np.zeros(1, np.int32)
    launch(device, kernel, result, *(np.int32(k) for k in range(len(_NAMES))))
    assert result[0] == sum(k * (k + 1) for k in range(len(_NAMES)))
    shown = cfamily.emit(kernel, DIALECT, entry="größe").text
    assert "kernel void grosse(" in shown or "kernel void gr" in shown
    assert "__" not in shown


def test_deep_expressions_compile(device: str) -> None:
    """A thousand nested operations, in statements and in the condition of a loop."""
    fresh = b.Fresh()
    out = b.array_param(fresh, "out", Scalar.UINT32, 0)
    x, n = fresh("x", Scalar.UINT32, True), fresh("n", Scalar.UINT32, True)
    deep: Expr = b.expr(x)
    for k in range(1000):
        deep = b.sub(k, b.mul(3, deep))
    condition: Expr = b.lt(n, 5)
    for _ in range(1000):
        condition = b.and_(b.ge(n, 0), condition)
    bound: Expr = b.expr(n)
    for _ in range(500):
        bound = b.sub(7, b.sub(7, bound))
    body = (
        b.let_mut(x, 1),
        b.let_mut(n, 0),
        b.while_(condition, b.assign(n, b.add(n, 1)), b.assign(x, deep)),
        b.while_(b.lt(bound, 9), b.assign(n, b.add(n, 1))),
        b.if_(b.eq(x, 0), [Return()], [b.if_(b.gt(bound, 9), [Return()])]),
        b.store(out.var, 0, x),
        b.store(out.var, 1, n),
    )
    kernel = make_kernel("deep", body, params=(out,))
    value = 1
    for _ in range(5):
        for k in range(1000):
            value = (k - 3 * value) % 2**32
    result = np.zeros(2, np.uint32)
    launch(device, kernel, result)
    assert result.tolist() == [value, 9]


def test_buffers_of_any_kind(device: str) -> None:
    """Read-only memory, memory at an odd address of the host, and an empty array."""
    fresh = b.Fresh()
    out = b.array_param(fresh, "out", INT32, 0)
    source = b.array_param(fresh, "source", INT32, 1)
    empty = b.array_param(fresh, "empty", INT32, 2)
    i = fresh("i", INT64)
    body = (
        b.let(i, b.coordinate("global_idx")),
        b.store(out.var, i, b.mul(b.read(source.var, i), 2)),
    )
    kernel = make_kernel("double", body, params=(out, source, empty))
    storage = np.zeros(68 * 4 + 4, np.uint8)
    result = storage[4 : 4 + 64 * 4].view(np.int32)
    data = np.arange(65, dtype=np.int32)[1:]
    data.setflags(write=False)
    launch(device, kernel, result, data, np.zeros(0, np.int32), grid=2, block=32)
    assert result.tolist() == [2 * k for k in range(1, 65)]
    assert not storage[:4].any()
    assert not storage[4 + 64 * 4 :].any()


def test_launches_of_many_threads(device: str) -> None:
    """One program launched by eight Python threads at once, each with arguments of its own."""
    fresh = b.Fresh()
    out = b.array_param(fresh, "out", INT32, 0)
    value = b.scalar_param(fresh, "value", INT32, 1)
    i = fresh("i", INT64)
    body = (b.let(i, b.coordinate("global_idx")), b.store(out.var, i, value.var))
    kernel = make_kernel("fill", body, params=(out, value))
    driver = drivers()[device]
    ready = program(driver, kernel)
    results = [np.zeros(64, np.int32) for _ in range(8)]

    def work(number: int) -> None:
        for _ in range(20):
            run(driver, ready, (results[number], np.int32(number)), 2, 32)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [set(r.tolist()) for r in results] == [{k} for k in range(8)]


def test_values_handed_on_in_a_divergent_loop(device: str) -> None:
    """Fibonacci numbers, a different one in each thread (Intel's compiler crashes on the loop)."""
    fresh = b.Fresh()
    out = b.array_param(fresh, "out", INT64, 0)
    i, v, t = fresh("i", INT64), fresh("v", INT64), fresh("t", INT64)
    x, y = fresh("x", INT64, True), fresh("y", INT64, True)
    turn = (b.let(t, y), b.assign(y, b.add(x, y)), b.assign(x, t))
    body = (
        b.let(i, b.coordinate("global_idx")),
        b.let_mut(x, 0),
        b.let_mut(y, 1),
        b.for_(v, 0, b.floormod(i, 40), *turn),
        b.store(out.var, i, x),
    )
    driver = drivers()[device]
    result = np.zeros(64, np.int64)
    run(driver, driver.prepare(make_kernel("fibonacci", body, params=(out,))), [result], 2, 32)
    numbers = [0, 1]
    while len(numbers) < 40:
        numbers.append(numbers[-1] + numbers[-2])
    assert result.tolist() == [numbers[k % 40] for k in range(64)]


def test_refusals(device: str) -> None:
    """A block beyond the kernel's limit, source that no compiler takes, a buffer beyond memory."""
    driver = drivers()[device]
    kernel = make_kernel("nothing", ())
    ready = program(driver, kernel)
    with pytest.raises(InvalidDimensions, match="CL_KERNEL_WORK_GROUP_SIZE"):
        ready.launch((1, 1, 1), (2**20, 1, 1), 0, [])
    ready.launch((1, 1, 1), (1, 1, 1), 0, [])
    with pytest.raises(SourceCompilationError) as caught:
        library.compile_program(driver.context, driver.device, "kernel void f( {", ())
    assert caught.value.source == "kernel void f( {"
    assert caught.value.log
    with pytest.raises(OutOfMemory) as memory:
        _allocate(driver, 2**50)
    assert memory.value.asked == 2**50


def _allocate(driver: OpenCLDriver, size: int) -> None:
    cl = library.load()
    with library.check("a test", driver.device, size):
        cl.Buffer(driver.context, cl.mem_flags.READ_WRITE, size)
