"""Products on Hopper behind `sarek.matrix.run`, against the fake driver and the shim."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_cuda import hopper
from sarek_cuda.hopper import Major
from sarek_cuda.products import tiling_for
from sarek_cuda.runtime import CudaDriver
from sarek_numba import policy
from sarek_numba.ir.types import Scalar
from sarek_numba.matrix import launches, testing
from sarek_numba.matrix.rewrite.form import Staged
from sarek_numba.runtime.registry import Device
from tests.fake_cuda import FakeApi
from tests.own_products import (
    BF16,
    BLOCK,
    F16,
    F32,
    I8,
    I32,
    U8,
    Room,
    batched,
    is_own,
    layer,
    multiply,
    multiply_bytes,
    run,
    wide,
)
from tests.toolchains import nvidia
from tests.toolchains.shim import driver as shim

pytestmark = pytest.mark.skipif(bool(shim.why_not()), reason=shim.why_not() or "-")


@pytest.fixture(scope="module")
def device() -> Device:
    """A device of compute capability 9.0, which no enumeration shows."""
    return Device(CudaDriver(FakeApi(), 0, "cuda:fake"))


@pytest.mark.parametrize("turned", [(False, False), (True, True), (False, True), (True, False)])
@pytest.mark.parametrize("dtype", [F16, BF16])
def test_floats(device: Device, dtype: Any, turned: tuple[bool, bool]) -> None:
    """Any orders of indices; nothing around C is written, nothing around A and B is read."""
    for m, n, k in ((70, 72, 40), (131, 193, 150), (1, 8, 16), (9, 1, 8)):
        a, b = Room((m, k), dtype, 1, turned=turned[0]), Room((k, n), dtype, 2, turned=turned[1])
        c = Room((m, n), F32, 3)
        with testing.small_ones_too():
            assert is_own(run(multiply, (c.matrix, a.matrix, b.matrix), device, (m, n)))
        assert (c.matrix == wide(a.matrix) @ wide(b.matrix)).all()
        assert c.is_whole()


@pytest.mark.parametrize("types", [(I8, I8), (U8, I8), (U8, U8)])
def test_bytes(device: Device, types: tuple[Any, Any]) -> None:
    """Both operands lie side by side along k."""
    for m, n, k in ((70, 72, 40), (131, 193, 300)):
        a, b, c = (
            Room((m, k), types[0], 1),
            Room((k, n), types[1], 2, turned=True),
            Room((m, n), I32),
        )
        with testing.small_ones_too():
            assert is_own(run(multiply_bytes, (c.matrix, a.matrix, b.matrix), device, (m, n)))
        assert (c.matrix == wide(a.matrix) @ wide(b.matrix)).all()
        assert c.is_whole()


def test_what_becomes_of_a_sum(device: Device) -> None:
    """Old elements, other arrays, numbers of the launch, indices; halves are stored."""
    m, n, k = 100, 90, 70
    a, b, c = Room((m, k), F16, 1), Room((k, n), F16, 2), Room((m, n), F16, 3)
    bias = np.arange(n, dtype=F32)
    ours = 2 * (wide(a.matrix) @ wide(b.matrix)) - 3 * wide(c.matrix) + bias
    ours = np.maximum(ours + np.arange(m)[:, None], 0)
    args = c.matrix, a.matrix, b.matrix, bias, F32(2), F32(-3)
    with testing.small_ones_too():
        assert is_own(run(layer, args, device, (n, m)))
    assert (c.matrix == ours.astype(F16)).all()
    assert c.is_whole()


def test_batches(device: Device) -> None:
    """B is the same in all of them."""
    a, b, c = Room((3, 65, 40), F16, 1), Room((40, 70), F16, 2), Room((3, 65, 70), F32, 3)
    with testing.small_ones_too():
        assert is_own(run(batched, (c.matrix, a.matrix, b.matrix), device, (65, 70, 3)))
    assert (c.matrix == wide(a.matrix) @ wide(b.matrix)).all()
    assert c.is_whole()


def test_vectors(device: Device) -> None:
    """Launches of one size share a program; maps are made anew for other memory."""
    api = device.driver.access.api
    before = api.calls["tensor_map"], api.calls["load"]
    for seed in range(3):
        a, b = (Room((64, 64), F16, 2 * seed + k).matrix.copy() for k in range(2))
        given = [sarek.vector(each) for each in (np.zeros((64, 64), F32), a, b)]
        for _ in range(2):
            assert is_own(run(multiply, given, device, (64, 64)))
        assert (np.asarray(given[0]) == wide(a) @ wide(b)).all()
    assert api.calls["tensor_map"] - before[0] <= 6
    assert api.calls["load"] - before[1] <= 1


def test_what_was_decided_is_remembered(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as grants, numbers and memory are the same; each launch asks for these anew."""
    matrices = [np.zeros((88, 88), kind) for kind in (F32, F16, F16)]
    given = [sarek.vector(each) for each in matrices]
    asked = []
    policy.clear_report()
    choose = launches.choose
    monkeypatch.setattr(launches, "choose", lambda **how: asked.append(1) or choose(**how))
    first = run(multiply, given, device, (88, 88))
    assert is_own(first)
    for _ in range(3):
        assert run(multiply, given, device, (88, 88)) is first
    assert len(asked) == 1
    assert policy.report()[-1].outcome == policy.Applied(first.evidence)
    refused = sarek.matrix.run(multiply, *given, grid=(11, 11), block=BLOCK, device=device)
    assert "relaxed_accumulation" in str(refused)
    monkeypatch.setenv("SAREK_OPT_DISABLE", "matrix_rewrite")
    assert "SAREK_OPT_DISABLE" in str(run(multiply, given, device, (88, 88)))
    monkeypatch.delenv("SAREK_OPT_DISABLE")
    assert "no thread" in str(run(multiply, given, device, (88, 80)))
    given[1] = sarek.vector(matrices[1])
    assert is_own(run(multiply, given, device, (88, 88)))
    assert len(asked) == 5


def test_large_ones_begin_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device works while the host goes on; a small product waits with others."""
    api, began = FakeApi(), []
    api.attributes["MULTIPROCESSOR_COUNT"] = 132
    monkeypatch.setattr(api, "launch_of", lambda *of: lambda: None)
    device = Device(CudaDriver(api, 0, "cuda:large"))
    for size in (64, 320):
        given = [sarek.zeros((size, size), kind) for kind in (F32, F16, F16)]
        assert is_own(run(multiply, given, device, (size, size)))
        before = api.calls["launch"]
        assert is_own(run(multiply, given, device, (size, size)))
        began.append(api.calls["launch"] - before)
    assert began == [0, 1]


def test_what_is_left_to_the_other_kernel(device: Device) -> None:
    """Small products, lines that begin anywhere, bytes that lie side by side along n."""
    a, b, c = Room((70, 40), F16, 1), Room((40, 72), F16, 2), Room((70, 72), F32, 3)
    assert run(multiply, (c.matrix, a.matrix, b.matrix), device, (70, 72)).variant == Staged()
    a, b, c = Room((70, 40), F16, 1), Room((40, 72), F16, 2), Room((70, 72), F32, 3)
    odd = np.ascontiguousarray(np.pad(a.matrix, ((0, 0), (0, 3))))[:, :40]
    with testing.small_ones_too():
        assert run(multiply, (c.matrix, odd, b.matrix), device, (70, 72)).variant == Staged()
        assert (c.matrix == wide(a.matrix) @ wide(b.matrix)).all()
        args = c.matrix, a.matrix[:, 1:], b.matrix[1:]
        assert run(multiply, args, device, (70, 72)).variant == Staged()
        with testing.tile(0):
            args = c.matrix, a.matrix, b.matrix
            assert run(multiply, args, device, (70, 72)).variant == Staged()


def test_other_capabilities() -> None:
    """The kernel is for 9.0 alone."""
    api = FakeApi()
    api.attributes["COMPUTE_CAPABILITY_MAJOR"] = 8
    device = Device(CudaDriver(api, 0, "cuda:older"))
    a, b, c = Room((64, 64), F16, 1), Room((64, 64), F16, 2), Room((64, 64), F32, 3)
    assert not is_own(run(multiply, (c.matrix, a.matrix, b.matrix), device, (64, 64)))
    assert (c.matrix == wide(a.matrix) @ wide(b.matrix)).all()


def test_a_column_too_much_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a kernel with a wrong guard writes between the rows of C."""
    emit = hopper.emit
    wrong = "(column < n + 1)"
    monkeypatch.setattr(hopper, "emit", lambda *of: emit(*of).replace("(column < n)", wrong))
    device = Device(CudaDriver(FakeApi(), 0, "cuda:control"))
    a, b, c = Room((64, 64), F16, 1), Room((64, 66), F16, 2), Room((64, 66), F32, 3)
    assert is_own(run(multiply, (c.matrix, a.matrix, b.matrix), device, (64, 66)))
    assert not c.is_whole()


@pytest.mark.skipif(bool(nvidia.why_not()), reason=nvidia.why_not() or "-")
def test_a_program_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a launch, as the compiler gets it."""
    api, given = FakeApi(), []
    compile = api.compile
    monkeypatch.setattr(api, "compile", lambda *of, **how: given.append(of) or compile(*of, **how))
    device = Device(CudaDriver(api, 0, "cuda:compiled"))
    a, b, c = Room((64, 64), F16, 1), Room((64, 64), F16, 2), Room((64, 64), F16, 3)
    args = c.matrix, a.matrix, b.matrix, np.ones(64, F32), F32(2), F32(-3)
    assert is_own(run(layer, args, device, (64, 64)))
    (program,) = (source for source, options in given if "sarek_product" in source)
    assert not nvidia.refusal(program, "sm_90a")


def order(m: int, n: int) -> Any:
    """As much of one as a tiling depends on."""
    half = SimpleNamespace(type=Scalar.FLOAT16)
    return SimpleNamespace(m=m, n=n, batches=1, a=half, b=half)


def test_tilings() -> None:
    """Large products have large tiles; small ones have tiles for as many multiprocessors."""
    majors = (Major.K, Major.OUTER)
    chosen = {size: tiling_for(order(size, size), majors, 132) for size in (256, 1024, 4096, 8192)}
    assert [(t.rows, t.columns, t.group) for t in chosen.values()] == [
        (64, 64, 4),
        (64, 128, 4),
        (128, 256, 4),
        (128, 256, 16),
    ]
