"""Which launches use coarsened programs, on fake GPUs: by size and settings; what is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_cuda.runtime import CudaDriver
from sarek_hip.runtime import HipDriver
from sarek_numba import execute, policy
from sarek_numba.capability import Residency
from sarek_numba.passes.coarsen import NAME, asked, each_of
from sarek_numba.runtime import coarsening
from sarek_numba.runtime.cache import clear_launch_cache, counters
from sarek_numba.runtime.registry import Device
from sarek_opencl import nvidia
from tests import fake_hip
from tests.fake_cuda import FakeApi, FakeFunction
from tests.toolchains import shim

pytestmark = pytest.mark.skipif(bool(shim.why_not()), reason=shim.why_not() or "present")

RUNS = 2 * 2048  # threads that a fake device runs at a time
EACH = 4  # elements of 32 bits a thread
BLOCK = 64
FILLS = RUNS * EACH // BLOCK  # blocks of the smallest launch that is coarsened


@sarek.kernel
def scaled(out, x, factor):
    i = sarek.global_idx.x
    if i < len(out) and i < len(x):
        out[i] = out[i] + x[i] * factor


@sarek.kernel
def met(out):
    i = sarek.global_idx.x
    sarek.barrier()
    out[i] = i


@pytest.fixture(params=["cuda", "hip"])
def device(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """A device of its own, with coarsening turned on."""
    monkeypatch.setenv("SAREK_OPT_ENABLE", NAME)
    clear_launch_cache()
    policy.clear_report()
    counters.reset()
    if request.param == "cuda":
        yield Device(CudaDriver(FakeApi(), 0, "cuda:fake"))
    else:
        yield Device(HipDriver(fake_hip.api(), 0, "hip:fake"))
    execute.window.configure(enabled=True)


def told() -> list[str]:
    """What was decided, without the names of kernel and device."""
    records = [record for record in policy.report() if record.optimisation == NAME]
    return [str(record.outcome) for record in records]


def grids(device: Device, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Filled with the blocks of each launch that the driver is given."""
    driver: Any = device.driver
    found: list[tuple[int, ...]] = []
    usual = driver.prepare

    def prepare(kernel: Any) -> Any:
        program = usual(kernel)
        enqueue = program.enqueue

        def noted(handle: Any, grid: Any, *rest: Any) -> Any:
            found.append(grid)
            return enqueue(handle, grid, *rest)

        program.enqueue = noted
        return program

    monkeypatch.setattr(driver, "prepare", prepare)
    monkeypatch.setattr(driver, "plans", None)
    return found


def run(device: Device, blocks: int, *, size: int | None = None) -> None:
    """A launch whose results are checked."""
    n = blocks * BLOCK if size is None else size
    x = np.arange(n, dtype=np.float32)
    out = np.ones(n, np.float32)
    scaled.launch(out, x, np.float32(2), grid=blocks, block=BLOCK, device=device)
    did = min(n, blocks * BLOCK)
    assert np.array_equal(out[:did], 1 + 2 * x[:did])
    assert (out[did:] == 1).all()


# --- size -----------------------------------------------------------------------------------------


def test_records_say_how_many_threads_run(device: Device) -> None:
    """By the driver's answers, which are named."""
    residency = device.record.limits.residency
    assert residency is not None
    assert residency.threads == RUNS
    assert "DeviceGetAttribute" in residency.evidence


def test_a_launch_that_fills_the_device_is_coarsened(device: Device, monkeypatch: Any) -> None:
    """A quarter of the blocks; one block fewer, and each thread is one of the user's."""
    found = grids(device, monkeypatch)
    run(device, FILLS)
    run(device, FILLS - 1)
    run(device, FILLS + 3)
    assert found == [(FILLS // EACH, 1, 1), (FILLS - 1, 1, 1), (FILLS // EACH + 1, 1, 1)]
    [done, refused] = told()
    assert done.startswith(f"applied, proven: {EACH} elements a thread")
    assert refused.startswith(f"not applied: launches of fewer than {RUNS * EACH} threads")
    assert f"it runs {RUNS} at a time" in refused
    assert counters.coarsened == 1


def test_small_launches_make_no_coarsened_program(device: Device) -> None:
    """Below the least that any number of elements asks for."""
    run(device, RUNS * 2 // BLOCK - 1)
    assert (counters.coarsened, counters.compiles) == (0, 1)
    assert told()[0].startswith("not applied: launches of fewer than")


def test_threads_of_all_axes_count(device: Device, monkeypatch: Any) -> None:
    """Blocks along y and z fill a device as those along x do."""
    found = grids(device, monkeypatch)
    x = np.zeros(FILLS * BLOCK, np.float32)
    for grid in ((FILLS // 4, 2, 2), (FILLS // 4, 2, 1)):
        scaled.launch(x, x, np.float32(0), grid=grid, block=BLOCK, device=device)
    assert found == [(FILLS // 4 // EACH, 2, 2), (FILLS // 4, 2, 1)]


def test_plans_keep_each_size_apart(device: Device, monkeypatch: Any) -> None:
    """Large and small launches in turn, learnt, with the setting changed between them."""
    n = FILLS * BLOCK
    out, x = sarek.zeros(n, np.float32), sarek.ones(n, np.float32)
    expected = np.zeros(n, np.float32)
    for setting in (NAME, "", NAME):
        monkeypatch.setenv("SAREK_OPT_ENABLE", setting)
        for _, blocks in product(range(4), (FILLS, 5, FILLS - 1)):
            scaled.launch(out, x, np.float32(1), grid=blocks, block=BLOCK, device=device)
            expected[: blocks * BLOCK] += 1
    assert np.array_equal(np.asarray(out), expected)
    assert counters.coarsened == 1


# --- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize("short", [0, 1, 63, 64, 65, 255])
def test_sizes_that_are_no_multiples(device: Device, short: int) -> None:
    """Elements end, or threads do, anywhere in the work of one thread."""
    run(device, FILLS, size=FILLS * BLOCK - short)
    run(device, FILLS + 1, size=FILLS * BLOCK + short)
    assert counters.coarsened == 1


def test_misaligned_strided_and_shared_arrays(device: Device) -> None:
    """No access is wider than an element, so any place is as good as any other."""
    n = FILLS * BLOCK
    base = np.arange(2 * n + 3, dtype=np.float32)
    for out, x in ((slice(1, n + 1), slice(n + 2, 2 * n + 2)), (slice(0, 2 * n, 2),
                   slice(1, 2 * n, 2)), (slice(3, n + 3), slice(3, n + 3))):  # fmt: skip
        expected = base.copy()
        expected[out] = expected[out] + expected[x] * 2
        scaled.launch(base[out], base[x], np.float32(2), grid=FILLS, block=BLOCK, device=device)
        assert np.array_equal(base, expected)
    bytes_ = np.zeros(4 * n + 1, np.uint8)
    odd = bytes_[1:].view(np.float32)  # which does not stand at a multiple of its size
    scaled.launch(odd, base[:n], np.float32(1), grid=FILLS, block=BLOCK, device=device)
    assert np.array_equal(odd, base[:n])
    assert counters.coarsened > 0


def test_arrays_of_other_lengths(device: Device) -> None:
    """Each bound holds for each thread."""
    n = FILLS * BLOCK
    out, x = np.zeros(n, np.float32), np.arange(n - 70, dtype=np.float32)
    scaled.launch(out, x, np.float32(1), grid=FILLS, block=BLOCK, device=device)
    assert np.array_equal(out[:-70], x)
    assert not out[-70:].any()
    assert counters.coarsened == 1


def test_streams_and_the_window(device: Device) -> None:
    """Launches that wait have the grid that they were decided with."""
    n = FILLS * BLOCK
    out, x = sarek.zeros(n, np.float32), sarek.ones(n, np.float32)
    stream = device.stream()
    for _ in range(3):
        scaled.launch(out, x, np.float32(1), grid=FILLS, block=BLOCK, device=device, stream=stream)
    stream.synchronize()
    execute.window.configure(enabled=False)
    scaled.launch(out, x, np.float32(1), grid=FILLS, block=BLOCK, device=device)
    assert (np.asarray(out) == 4).all()
    assert counters.coarsened == 1


# --- settings -------------------------------------------------------------------------------------


def test_what_is_not_measured_is_off(device: Device, monkeypatch: Any, capsys: Any) -> None:
    """Until the backend is in the table, or SAREK_OPT_ENABLE names it; SAREK_OPT_DISABLE wins."""
    monkeypatch.setenv("SAREK_EXPLAIN", "1")
    monkeypatch.delenv("SAREK_OPT_ENABLE")
    monkeypatch.setattr(coarsening, "MEASURED", {})
    backend = device.record.backend
    run(device, FILLS)
    why = f"not applied: it is not measured on '{backend}'; SAREK_OPT_ENABLE=coarsening turns it on"
    assert told() == [why]
    line = f"sarek: kernel 'scaled' on {device.name}: coarsening {why}\n"
    assert capsys.readouterr().err.count(line) == 1
    monkeypatch.setattr(coarsening, "MEASURED", {backend: "measured by this test"})
    run(device, FILLS)
    assert told()[1:] == [told()[-1]]
    assert told()[-1].startswith("applied, proven: 4 elements a thread")
    assert "coarsening applied" in capsys.readouterr().err
    for word in (NAME, "all"):
        policy.clear_report()
        monkeypatch.setenv("SAREK_OPT_DISABLE", word)
        run(device, FILLS)
        assert told() == ["not applied: SAREK_OPT_DISABLE turns it off"]
    assert counters.coarsened == 1


def test_the_source_is_that_of_large_launches(device: Device, monkeypatch: Any) -> None:
    """With the parameter that counts threads; without the setting the plain text."""
    x = np.zeros(4, np.float32)
    assert "int threads" in str(scaled.source(device, x, x, np.float32(1)))
    monkeypatch.delenv("SAREK_OPT_ENABLE")
    monkeypatch.setattr(coarsening, "MEASURED", {})
    assert "int threads" not in str(scaled.source(device, x, x, np.float32(1)))


def test_a_kernel_that_is_left_alone_is_compiled_once(device: Device) -> None:
    """Its program serves large launches; the reason is told."""
    out = np.zeros(FILLS * BLOCK, np.int32)
    met.launch(out, grid=FILLS, block=BLOCK, device=device)
    assert np.array_equal(out, np.arange(len(out)))
    assert told() == ["not applied: its threads meet at a barrier"]
    assert (counters.coarsened, counters.compiles) == (0, 1)


# --- devices --------------------------------------------------------------------------------------


def test_a_device_that_does_not_say_how_many_threads_it_runs(device: Device) -> None:
    """Nothing is coarsened: nobody knows what is too small."""
    driver: Any = device.driver
    driver.record = replace(driver.record, limits=replace(driver.record.limits, residency=None))
    run(device, FILLS)
    assert told() == ["not applied: the device does not say how many threads it runs at a time"]
    assert counters.coarsened == 0


def test_blocks_that_have_too_few_registers(monkeypatch: Any) -> None:
    """Where a coarsened program takes smaller blocks than the launch has, the plain one does it."""
    monkeypatch.setenv("SAREK_OPT_ENABLE", NAME)
    clear_launch_cache()
    policy.clear_report()
    device = Device(CudaDriver(FakeApi(), 0, "cuda:fake"))
    with asked():
        plain_count = len(device.driver.prepare(scaled.ir(*[np.zeros(4, np.float32)] * 2,
                                                          np.float32(1))).params) - 1  # fmt: skip
    usual = FakeFunction.__init__

    def hungry(self: Any, *given: Any) -> None:
        usual(self, *given)
        if len(self.sizes) > plain_count:
            self.attributes["MAX_THREADS_PER_BLOCK"] = BLOCK - 1

    monkeypatch.setattr(FakeFunction, "__init__", hungry)
    device = Device(CudaDriver(FakeApi(), 0, "cuda:fake"))
    run(device, FILLS)
    assert told()[-1] == (
        f"not applied: blocks of {BLOCK} threads may need more registers for it than there are"
    )


def test_cpus_are_never_asked(monkeypatch: Any) -> None:
    """Threads of a block are a loop there; its compiler makes wide accesses by itself."""
    monkeypatch.setenv("SAREK_OPT_ENABLE", NAME)
    x = np.zeros(4, np.float32)
    for device in sarek.devices():
        if device.record.is_cpu:
            assert not coarsening.can(device)
            with asked() as decision:
                program = device.driver.prepare(scaled.ir(x, x, np.float32(1)))
            assert each_of(program.params) == 1
            assert decision.outcome is None


@pytest.mark.parametrize(
    ("major", "minor", "threads"), [(7, 5, 1024), (8, 9, 1536), (9, 0, 2048), (99, 0, None)]
)
def test_nvidia_through_opencl(major: int, minor: int, threads: int | None) -> None:
    """The driver tells the capability, the guide what a multiprocessor holds."""

    class Known:
        compute_capability_major_nv = major
        compute_capability_minor_nv = minor
        max_compute_units = 132

    expected = None if threads is None else Residency(
        132 * threads,
        f"CL_DEVICE_MAX_COMPUTE_UNITS times {threads} threads, which the CUDA C++ Programming "
        f"Guide states for compute capability {major}.{minor}",
    )  # fmt: skip
    assert nvidia.residency_of(Known()) == expected
