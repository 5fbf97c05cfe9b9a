"""The benchmark of streaming kernels, on small sizes: every contender, the table, wrong results.

Its CUDA part runs on the fake device, so that nothing of it is new where there is a GPU.
"""

from __future__ import annotations

import ctypes
import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import sarek_numba as sarek
from benchmarks import streaming_contenders as contenders
from benchmarks import streaming_gpu as benchmark
from benchmarks.streaming_kernels import KERNELS, by_hand
from sarek_cuda.runtime import CudaDriver
from sarek_numba.runtime.registry import Device
from tests.fake_cuda import FakeApi
from tests.toolchains import nvidia, shim

SETTINGS = benchmark.Settings(rounds=3, seconds=1e-4, rotated=1)
SIZE = 2**10


def _copied(to: int, of: int, size: int, stream: Any) -> tuple[int]:
    """`cuMemcpyDtoDAsync` of the fake, whose memory is the host's."""
    stream.waiting.append(lambda: bool(ctypes.memmove(to, of, size)) or True)
    return (0,)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Device:
    """A device of its own, which coarsens launches of any size."""
    if shim.why_not():
        pytest.skip(shim.why_not())
    api: Any = FakeApi()
    api._cuda = SimpleNamespace(cuMemcpyDtoDAsync=_copied)
    monkeypatch.setattr(api, "check", lambda result: result[0], raising=False)
    device = Device(CudaDriver(api, 0, "cuda:fake"))
    contenders.at_any_size([device])
    return device


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", KERNELS)
def test_every_contender_on_cuda(cuda: Device, name: str, dtype: str) -> None:
    """Each is right before and after the rounds, and has a time for each of them."""
    found = benchmark.measure(cuda, benchmark.Problem(name, dtype, SIZE), SETTINGS)
    expected = {"by hand", "by hand, wide", "ours", "ours, coarsened"}
    assert set(found) == expected | ({"device's copy"} if name == "copy" else set())
    for who, row in found.items():
        if who == "by hand, wide" and name == "stencil":
            assert row["absent"] == "there is no such form of this kernel"
            continue
        if who == "ours, coarsened" and (name, dtype) == ("stencil", "float64"):
            assert "a thread reads 40 bytes, which are enough to wait for" in row["absent"]
            continue
        assert "failed" not in row, row
        assert "absent" not in row, row
        assert len(row["samples_us"]) == SETTINGS.rounds
        assert row["gbytes_s"] > 0
    each = 2 if name == "stencil" or dtype == "float64" else 4
    if name == "stencil" and dtype == "float64":
        return
    assert found["ours, coarsened"]["note"] == f"{each} elements a thread"
    assert found["ours"]["note"] == ""


@pytest.mark.parametrize("name", KERNELS)
def test_halves_on_cuda(cuda: Device, name: str) -> None:
    """Ours; by hand there are instructions of PTX, which the fake's compiler does not know."""
    found = benchmark.measure(cuda, benchmark.Problem(name, "float16", SIZE), SETTINGS)
    assert "failed" in found["by hand"]
    assert found["ours"]["samples_us"], found["ours"]
    coarse = found["ours, coarsened"]
    assert coarse["samples_us"] or "not applied" in coarse["absent"], coarse


@pytest.mark.parametrize("device", ["native", "opencl"])
@pytest.mark.parametrize("name", ["copy", "saxpy", "stencil"])
def test_devices_of_this_machine(device: str, name: str) -> None:
    """Those that are CPUs are not asked for coarsened programs, which is said."""
    if device not in {each.record.backend for each in sarek.devices()}:
        pytest.skip(f"there is no {device}")
    one = sarek.device(device)
    found = benchmark.measure(one, benchmark.Problem(name, "float32", SIZE), SETTINGS)
    assert found["ours"]["samples_us"]
    assert not any("failed" in row for row in found.values()), found
    if device == "opencl" and one.record.is_cpu:
        assert "never asked" in found["ours, coarsened"]["absent"]
        assert ("device's copy" in found) == (name == "copy")


def test_a_wrong_result_has_no_time(cuda: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a contender that leaves one element out the row says what is wrong."""
    text = by_hand("copy", "float32", wide=False)
    assert text is not None
    wrong = text.replace("i < n", "i < n - 1")
    monkeypatch.setattr(contenders, "by_hand", lambda *given, **options: wrong)
    row = benchmark.measure(cuda, benchmark.Problem("copy", "float32", SIZE), SETTINGS)["by hand"]
    assert "1 of 1024 elements are wrong; the first, 1023, is nan" in row["failed"]
    assert "gbytes_s" not in row


def test_results_that_become_wrong_later_have_none(
    cuda: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is right at first and wrong after the rounds is found too."""
    monkeypatch.setattr(contenders.ByHand, "time", _spoilt(contenders.ByHand.time))
    row = benchmark.measure(cuda, benchmark.Problem("copy", "float32", SIZE), SETTINGS)["by hand"]
    assert "elements are wrong" in row["failed"]
    assert row["samples_us"] == []


def _spoilt(usual: Any) -> Any:
    def time(self: Any, calls: int) -> Any:
        self.count = getattr(self, "count", 0) + 1
        if self.count > 4:
            self.grid = (1, 1, 1)
        return usual(self, calls)

    return time


def test_command_line(tmp_path: Any) -> None:
    """JSON and table; types that a device lacks and rows that had no time are named."""
    path = tmp_path / "result.json"
    options = ["--devices", "native", "--kernels", "copy,exp", "--dtypes", "float32,float16"]
    quick = ["--sizes", "8", "--rounds", "2", "--rotate-mb", "0", "--sample-ms", "0.1"]
    done = CliRunner().invoke(benchmark.main, [*options, *quick, "--json", str(path)])
    assert done.exit_code == 0, done.output
    found = json.loads(path.read_text())
    kernels = [row["kernel"] for row in found["rows"] if row["dtype"] == "float32"]
    assert kernels == ["copy", "exp"]
    assert "| native | copy | float32 | 256 |" in done.output
    again = CliRunner().invoke(benchmark.main, ["--show", str(path)])
    assert again.output.strip() in done.output
    late = CliRunner().invoke(benchmark.main, [*options, *quick, "--limit", "-1"])
    assert "absent: copy float32 256: -1 s were over" in late.output
    wrong = CliRunner().invoke(benchmark.main, ["--kernels", "copi"])
    assert "unknown: copi; known: copy" in wrong.output


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_texts_by_hand_compile(dtype: str) -> None:
    """NVRTC takes each; those that are wide have accesses of 16 bytes, the others none."""
    if nvidia.nvrtc() is None:
        pytest.skip("there is no NVRTC")
    for name, wide in ((name, wide) for name in KERNELS for wide in (False, True)):
        text = by_hand(name, dtype, wide=wide)
        if text is not None:
            code = nvidia.ptx(text)
            assert (".v4" in code or ".v2.f64" in code or ".v2.u64" in code) == wide, (name, code)


def test_bytes_are_counted_once() -> None:
    """Of each array, once for reading it and once for writing it."""
    moved = {name: what.moved for name, what in KERNELS.items()}
    three = {"add", "triad", "saxpy"}
    assert moved == {name: 3 if name in three else 2 for name in KERNELS}
    problem = benchmark.Problem("triad", "float64", SIZE)
    assert problem.bytes == 3 * 8 * SIZE
    assert np.isnan(problem.before).all()
