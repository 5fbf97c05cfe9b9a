"""Threads that do the work of several: results are those of the user's threads, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_interp import execute as oracle
from sarek_numba import policy
from sarek_numba.ir import nodes as ir
from sarek_numba.ir.types import Threads, UserArgument
from sarek_numba.ir.walk import map_body_expressions, map_expr
from sarek_numba.passes.coarsen import NAME, PROOF, asked, each_of
from sarek_numba.runtime.registry import Device
from tests import coarsened
from tests.executors import SEED, compare
from tests.kernels.corpus import CASES

NAMES = coarsened.names()
N = 1000


@pytest.fixture(autouse=True)
def _wanted(monkeypatch: Any) -> None:
    monkeypatch.setenv("SAREK_OPT_ENABLE", NAME)


@pytest.fixture(scope="module", params=NAMES)
def device(request: Any) -> Device:
    return coarsened.device(request.param)


def launch(device: Device, kernel: Any, grid: Any, block: Any, *arguments: Any) -> None:
    with sarek.use_device(device):
        kernel[grid, block](*arguments)


# --- kernels --------------------------------------------------------------------------------------


@sarek.kernel
def scaled(x, y, a, n):
    i = sarek.global_idx.x
    if i >= n:
        return
    y[i] = a * x[i] + y[i]


@sarek.kernel
def copied(x, y):
    i = sarek.global_idx.x
    if i < len(x):
        y[i] = x[i]


@sarek.kernel
def reduced(x, n):
    i = sarek.global_idx.x
    if i < len(x):
        x[i] = x[i] % n


@sarek.kernel
def unguarded(x, y):
    i = sarek.global_idx.x
    y[i] = x[i] + 1


@sarek.kernel
def branching(x, y):
    i = sarek.global_idx.x
    if i < len(x):
        v = x[i]
        if v > 0:
            y[i] = v * 3
        elif v < -1:
            v = v - y[i]
            y[i] = v


@sarek.kernel
def in_steps(x):
    """Each thread writes twice, and reads what it wrote."""
    i = sarek.global_idx.x
    if i < len(x):
        x[i] = x[i] * 2
        x[i] = x[i] + 1


@sarek.kernel
def by_parts(x, y):
    """Of every coordinate along x there is one use."""
    i = sarek.block_idx.x * sarek.block_dim.x + sarek.thread_idx.x
    if i < len(x):
        y[i] = x[i] + sarek.gridsize(1) * 1000 + sarek.block_idx.x * 7 + sarek.thread_idx.x


@sarek.kernel
def planes(x, y):
    i, j, k = sarek.grid(3)
    if k < x.shape[0] and j < x.shape[1] and i < x.shape[2]:
        y[k, j, i] = x[k, j, i] + sarek.block_idx.x * 100


@sarek.kernel
def stencil(x, y):
    i = sarek.global_idx.x
    if 0 < i < len(x) - 1:
        y[i] = x[i - 1] + x[i] + x[i + 1]


@sarek.kernel
def divided(x, y, n):
    """The division stands behind its test, which no thread may pass for another."""
    i = sarek.global_idx.x
    if n > 0 and i < len(x):
        y[i] = x[i] + i % n


# --- launches -------------------------------------------------------------------------------------

SHAPES = [(1, 1), (1, 64), (2, 32), (3, 32), (7, 33), (8, 16), (9, 16), (31, 32)]


def numbers(size: int, dtype: Any = np.float32, seed: int = 1) -> Any:
    return np.random.default_rng(seed).integers(-50, 50, size).astype(dtype)


@pytest.mark.parametrize(("grid", "block"), SHAPES)
def test_exactly_the_threads_of_the_user_run(device: Device, grid: int, block: int) -> None:
    """Ragged sizes, grids that are no multiples, fewer threads than elements, and more."""
    threads = grid * block
    for n in (threads - 1, threads, threads + 5, threads // 2):
        x, y = numbers(threads + 5), numbers(threads + 5, seed=2)
        expected, did = y.copy(), min(n, threads)
        expected[:did] = 2 * x[:did] + y[:did]
        launch(device, scaled, grid, block, x, y, np.float32(2), n)
        assert np.array_equal(y, expected)
    x, y = numbers(threads + 40), numbers(threads + 40, seed=2)
    expected = y.copy()
    expected[:threads] = x[:threads] + 1
    launch(device, unguarded, grid, block, x, y)
    assert np.array_equal(y, expected)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.float32, np.float64, np.bool_])
def test_elements_of_any_width(device: Device, dtype: Any) -> None:
    """As many of the user's threads as fit into the bytes that a thread is to have."""
    x, y = numbers(N, dtype), numbers(N, dtype, seed=2)
    launch(device, copied, 8, 128, x, y)
    assert np.array_equal(x, y)
    wanted = {1: 8, 2: 8, 4: 8, 8: 4}[np.dtype(dtype).itemsize]
    if not device.name.startswith("shim:"):
        with asked():
            program = device.driver.prepare(copied.ir(x, y))
        assert each_of(program.params) == wanted


def test_branches_and_what_a_thread_wrote_itself(device: Device) -> None:
    """Branches that data decides, and the order of one thread's own accesses."""
    x, y = numbers(N), numbers(N, seed=2)
    with_x = np.where(x > 0, x * 3, np.where(x < -1, x - y, y))
    launch(device, branching, 8, 128, x, y)
    assert np.array_equal(y, with_x)
    expected = x * 2 + 1
    launch(device, in_steps, 9, 128, x)
    assert np.array_equal(x, expected)


def test_every_coordinate_is_that_of_the_users_thread(device: Device) -> None:
    """The place along x by its parts, and the other axes, which stay as they are."""
    x, y = np.arange(500, dtype=np.int32), np.zeros(500, np.int32)
    launch(device, by_parts, 7, 96, x, y)
    block, thread = np.divmod(x, 96)
    assert np.array_equal(y, x + 7 * 96 * 1000 + block * 7 + thread)
    x, y = numbers(3 * 5 * 50, np.int32).reshape(3, 5, 50), np.zeros((3, 5, 50), np.int32)
    launch(device, planes, (7, 3, 2), (8, 2, 2), x, y)
    assert np.array_equal(y, x + np.arange(50, dtype=np.int32) // 8 * 100)


def test_guards_of_any_kind(device: Device) -> None:
    """A test with two ends, and a division that only stands behind its test."""
    x, y = numbers(N), numbers(N, seed=2)
    expected = y.copy()
    expected[1:-1] = x[:-2] + x[1:-1] + x[2:]
    launch(device, stencil, 8, 128, x, y)
    assert np.array_equal(y, expected)
    x, y = numbers(N, np.int32), np.zeros(N, np.int32)
    launch(device, divided, 8, 128, x, y, 0)
    assert not y.any()
    launch(device, divided, 8, 128, x, y, 7)
    assert np.array_equal(y, x + np.arange(N) % 7)


def test_arguments_that_share_memory(device: Device) -> None:
    """In place, one array behind the other in one memory, and every second element."""
    base = numbers(2 * N)
    expected = base.copy()
    expected[N:] = 3 * expected[:N] + expected[N:]
    launch(device, scaled, 8, 128, base[:N], base[N:], np.float32(3), N)
    assert np.array_equal(base, expected)
    expected[:N] = 3 * expected[:N] + expected[:N]
    launch(device, scaled, 8, 128, base[:N], base[:N], np.float32(3), N)
    assert np.array_equal(base, expected)
    expected[1::2] = 3 * expected[::2] + expected[1::2]
    launch(device, scaled, 8, 128, base[::2], base[1::2], np.float32(3), N)
    assert np.array_equal(base, expected)


def test_launches_like_earlier_ones(device: Device) -> None:
    """Plans, the window and streams have the launched grid and the user's number of threads."""
    x = sarek.vector(numbers(N))
    expected = np.asarray(x).copy()
    for grid in (5, 8):
        configured = in_steps[grid, 128]
        with sarek.use_device(device):
            for _ in range(5):
                configured(x)
                expected[: grid * 128] = expected[: grid * 128] * 2 + 1
                reduced[grid, 128](x, 251)
                expected[: grid * 128] %= 251
    if device.driver.queues is not None:
        stream = device.stream()
        in_steps.launch(x, grid=5, block=128, device=device, stream=stream)
        stream.synchronize()
        expected[: 5 * 128] = expected[: 5 * 128] * 2 + 1
    assert np.array_equal(np.asarray(x), expected)


# --- the whole corpus -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_corpus_keeps_its_results(case: Any) -> None:
    """Each kernel of the corpus is coarsened and has NumPy's results, or it is said why not."""
    made = case.launch(np.random.default_rng(SEED))
    device = coarsened.device(coarsened.NARROW_ORACLE)
    driver: Any = device.driver
    driver.decision.outcome = None
    sarek.execute.clear_launch_cache()
    with sarek.use_device(device):
        case.kernel[made.grid, made.block, None, made.shared_bytes](*made.arguments)
    assert driver.decision.outcome is not None
    for position, (actual, expected) in enumerate(zip(made.arguments, made.expected, strict=True)):
        if expected is not None:
            compare(device.name, case, position, actual, expected)


# --- the edge of the index width ------------------------------------------------------------------


@sarek.kernel
def far(y, start):
    i = sarek.global_idx.x
    if i >= start:
        y[i - start] = i


@pytest.mark.parametrize("short", [0, 1, 5, 200])
def test_no_index_leaves_32_bits(short: int) -> None:
    """The last block of a launch of nearly 2**31 threads; the oracle reports what overflows."""
    block, threads = 128, 2**31 - 128 - 128 * (short % 7)
    device = coarsened.device(coarsened.NARROW_ORACLE)
    y, start = np.zeros(4096, np.int64), threads - 100 - short
    made = device.driver.optimised(far.ir(y, start))  # type: ignore[attr-defined]
    [each] = [param.role.each for param in made.params if isinstance(param.role, Threads)]
    last = -(-(threads // block) // each) - 1

    def moved(expr: ir.Expr) -> ir.Expr:
        is_block = isinstance(expr, ir.Index) and expr.coordinate is ir.Coordinate.BLOCK_IDX
        return ir.constant(expr.type, last) if is_block else expr  # type: ignore[union-attr]

    body = map_body_expressions(made.body, lambda root: map_expr(root, moved))
    given: list[Any] = []
    for param in made.params:
        match param.role:
            case Threads():
                given.append(np.int32(threads))
            case UserArgument(argument=0):
                given.append(y.view(np.uint8))
            case UserArgument():
                given.append(np.int32(start))
            case _:
                given.append(np.int32(len(y)))
    oracle(replace(made, body=body), (1, 1, 1), (block, 1, 1), given)
    first = max(start, last * each * block)
    assert np.array_equal(y[first - start : threads - start], np.arange(first, threads))
    assert not y[threads - start :].any()


# --- decisions ------------------------------------------------------------------------------------


def test_the_decision_is_told_and_can_be_switched_off(monkeypatch: Any, capsys: Any) -> None:
    """A record with the proof; SAREK_OPT_DISABLE brings the plain kernel, at once and by plans."""
    device = coarsened.device("native")
    monkeypatch.setenv("SAREK_EXPLAIN", "1")
    sarek.execute.clear_launch_cache()
    policy.clear_report()
    x = sarek.vector(np.ones(N, np.float32))
    for off in (False, True, False):
        for _ in range(4):
            launch(device, in_steps, 9, 128, x)
        monkeypatch.setenv("SAREK_OPT_DISABLE", "" if off else "coarsening")
    told = [record for record in policy.report() if record.optimisation == NAME]
    assert [type(record.outcome) for record in told] == [policy.Applied, policy.Refused]
    assert PROOF.text in str(told[0])
    assert "8 elements a thread" in str(told[0])
    assert str(told[1]).endswith("not applied: SAREK_OPT_DISABLE turns it off")
    assert str(told[0]) in capsys.readouterr().err
    assert np.array_equal(np.asarray(x), np.full(N, 2**13 - 1, np.float32))


# --- wrong coarsening -----------------------------------------------------------------------------


def _thread_too_many(expr: ir.Expr) -> ir.Expr:
    """One more thread than the user has."""
    match expr:
        case ir.Binary(op=ir.BinOp.LT, right=ir.VarRef(var=ir.Var(name="rest"))):
            return replace(expr, op=ir.BinOp.LE)
    return expr


def _without_guard(expr: ir.Expr) -> ir.Expr:
    """All threads pass if one of them does."""
    match expr:
        case ir.Binary(op=ir.BinOp.AND):
            return replace(expr, op=ir.BinOp.OR)
    return expr


def _neighbours_of_itself(expr: ir.Expr) -> ir.Expr:
    """Elements that are neighbours are taken by one thread, in a distance that is not theirs."""
    match expr:
        case ir.Binary(op=ir.BinOp.MUL, left=ir.Index(coordinate=ir.Coordinate.BLOCK_DIM)):
            return replace(expr, left=ir.constant(expr.left.type, 16))  # type: ignore[union-attr]
    return expr


class _Planted(coarsened.CoarsenedOracle):
    def __init__(self, wrong: Any) -> None:
        super().__init__(32)
        self.wrong = wrong

    def optimised(self, kernel: ir.Kernel) -> ir.Kernel:
        made = super().optimised(kernel)
        body = map_body_expressions(made.body, lambda root: map_expr(root, self.wrong))
        return replace(made, body=body)


@pytest.mark.parametrize("wrong", [_thread_too_many, _without_guard, _neighbours_of_itself])
def test_a_wrong_coarsening_is_found(wrong: Any) -> None:
    """Each is seen by the tests above: by values, or by the oracle's own checks."""
    device = Device(_Planted(wrong))
    with pytest.raises((AssertionError, sarek.SarekError)):
        test_exactly_the_threads_of_the_user_run(device, 9, 33)
    unchanged = Device(_Planted(lambda expr: expr))
    test_exactly_the_threads_of_the_user_run(unchanged, 9, 33)
