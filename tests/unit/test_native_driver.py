"""Native: the device record, programs, threads, and long or deep kernels."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np

from sarek_native import backend
from sarek_native.groups import Variant
from sarek_numba.capability import Capability, Verdict
from sarek_numba.ir.build import (
    Fresh,
    add,
    array_param,
    assign,
    atomic,
    coordinate,
    for_,
    if_,
    let,
    let_mut,
    lt,
    mul,
    read,
    scalar_param,
    store,
)
from sarek_numba.ir.nodes import AtomicOp, Expr, Kernel, Stmt, VarRef, make_kernel
from sarek_numba.ir.types import FLOAT32, INT32, INT64, MemSpace, Scalar
from tests.unit.native_kit import driver, launch


def _saxpy() -> Kernel:
    f = Fresh()
    x, y = array_param(f, "x", FLOAT32, 0), array_param(f, "y", FLOAT32, 1)
    a, n, i = scalar_param(f, "a", FLOAT32, 2), scalar_param(f, "n", INT64, 3), f("i", INT64)
    step = store(y.var, i, add(mul(a.var, read(x.var, i)), read(y.var, i)))
    body = (let(i, coordinate("global_idx")), if_(lt(i, n.var), [step]))
    return make_kernel("saxpy", body, params=(x, y, a, n))


def test_the_record_says_what_the_code_does() -> None:
    (found,) = backend.drivers()
    record = found.record
    assert (record.name, record.model, record.is_cpu) == ("native", "direct", True)
    assert record.limits.block == (1024, 1024, 64)
    assert record.limits.grid == (2**31 - 1, 65_535, 65_535)
    assert record.limits.shared_bytes == 65_536
    wanted = [
        Capability("storage", Scalar.UINT16),
        Capability("arithmetic", INT64),
        Capability("atomic", FLOAT32, AtomicOp.CAS, MemSpace.SHARED),
        Capability("barrier"),
    ]
    assert all(record.facts[capability].verdict is Verdict.AVAILABLE for capability in wanted)
    assert Capability("storage", Scalar.FLOAT16) not in record.facts


def test_importing_the_backend_loads_no_llvm() -> None:
    code = "import sys, sarek_native; assert 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_guarded_kernel_uses_vector_accesses_without_masks() -> None:
    """Where all lanes pass the guard, loads and stores are plain vectors."""
    source = driver().source(_saxpy())
    assert source.startswith("; kernel saxpy")
    assert f"load <{driver().compiler.lanes} x float>, ptr" in source
    assert f"store <{driver().compiler.lanes} x float>" in source
    assert "gather" not in source
    assert "ret" in driver().prepare(_saxpy()).asm


def test_classes_of_block_shapes() -> None:
    """One compilation serves every block of a class."""
    assert Variant.of((64, 1, 1), 16) == Variant.of((256, 4, 2), 16) == Variant(True, True)
    assert Variant.of((100, 1, 1), 16) == Variant(True, False)
    assert Variant.of((8, 8, 1), 16) == Variant(False, True)
    assert Variant.of((5, 3, 1), 16) == Variant(False, False)
    assert Variant(False, False).groups((5, 3, 1), 16) == 1
    assert Variant(True, False).groups((100, 2, 1), 16) == 14


def test_every_scalar_type_arrives_as_it_is() -> None:
    f = Fresh()
    types = [t for t in Scalar if t not in (Scalar.FLOAT16, Scalar.BFLOAT16)]
    outputs = [array_param(f, f"o{k}", t, k) for k, t in enumerate(types)]
    scalars = [scalar_param(f, f"s{k}", t, 20 + k) for k, t in enumerate(types)]
    body = tuple(store(o.var, 0, s.var) for o, s in zip(outputs, scalars, strict=True))
    kernel = make_kernel("scalars", body, params=(*outputs, *scalars))
    values = [
        np.dtype(t.value).type(0.1 if t.is_float else t.minimum + t.maximum // 3) for t in types
    ]
    results = [np.zeros(1, t.value) for t in types]
    launch(kernel, [*results, *values], block=(1, 1, 1))
    assert [r[0] for r in results] == values


def test_empty_and_unaligned_arrays() -> None:
    """Elements need their own alignment only; an array without any is a valid argument."""
    x, y = np.zeros(0, np.float32), np.zeros(0, np.float32)
    launch(_saxpy(), [x, y, np.float32(2), np.int64(0)])
    base = np.zeros(4096 + 1, np.float32)
    for offset in (1, 3):
        x = np.arange(1000, dtype=np.float32)
        y = base[offset : offset + 1000]
        y[:] = 1
        launch(_saxpy(), [x, y, np.float32(2), np.int64(1000)], (16, 1, 1))
        assert (y == 2 * x + 1).all()
        assert base[offset - 1] == base[offset + 1000] == 0
        base[:] = 0


def test_many_blocks_on_all_threads_and_many_launches_at_once() -> None:
    """Every block runs once, whoever runs it, with launches from several threads together."""
    f = Fresh()
    count, total = array_param(f, "count", INT32, 0), array_param(f, "total", INT32, 1)
    i, j, n = f("i", INT64), f("j", INT64), f("n", INT32, True)
    body = (
        let(i, coordinate("global_idx")),
        let_mut(n, 0),
        for_(j, 0, 200, assign(n, add(n, read(count.var, i)))),
        atomic("add", count.var, i, 1),
        atomic("add", total.var, 0, 1),
    )
    program = driver().prepare(make_kernel("count", body, params=(count, total)))
    errors: list[str] = []

    def work() -> None:
        counts, totals = np.zeros(64 * 3000, np.int32), np.zeros(1, np.int32)
        bound = [
            driver().bind(array.view(np.uint8), read=True, written=True)
            for array in (counts, totals)
        ]
        for _ in range(3):
            program.launch((1000, 3, 1), (64, 1, 1), 0, bound)
        if not ((counts[: 64 * 1000] == 9).all() and totals[0] == 3 * 64 * 3000):
            errors.append(f"{counts.min()} {counts.max()} {totals[0]}")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_long_kernel() -> None:
    """20,000 statements: seconds, where anything quadratic would take hours."""
    f = Fresh()
    out, i, x = array_param(f, "out", INT64, 0), f("i", INT64), f("x", INT64, True)
    steps: list[Stmt] = [assign(x, add(mul(x, 3), k % 7)) for k in range(20_000)]
    body = (let(i, coordinate("global_idx")), let_mut(x, i), *steps, store(out.var, i, x))
    kernel = make_kernel("long", body, params=(out,))
    result = np.zeros(16, np.int64)
    launch(kernel, [result], block=(16, 1, 1), passes=False)
    expected = np.arange(16, dtype=np.int64)
    with np.errstate(over="ignore"):
        for k in range(20_000):
            expected = expected * 3 + k % 7
    assert (result == expected).all()


def test_deep_expressions_and_deep_loops() -> None:
    """A thousand levels of an expression, sixty nested loops."""
    f = Fresh()
    out, i, x = array_param(f, "out", INT64, 0), f("i", INT64), f("x", INT64, True)
    deep: Expr = VarRef(i)
    for _ in range(1000):
        deep = add(deep, 1)
    inner: tuple[Stmt, ...] = (assign(x, add(x, 1)),)
    for level in range(60):
        inner = (for_(f(f"j{level}", INT64), 0, 2 if level % 20 == 0 else 1, *inner),)
    body = (let(i, coordinate("global_idx")), let_mut(x, deep), *inner, store(out.var, i, x))
    kernel = make_kernel("deep", body, params=(out,))
    result = np.zeros(8, np.int64)
    launch(kernel, [result], block=(8, 1, 1), passes=False)
    assert result.tolist() == [i + 1008 for i in range(8)]
