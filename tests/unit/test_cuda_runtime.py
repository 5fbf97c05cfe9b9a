"""The CUDA runtime against a fake driver, whose memory is the host's and whose streams are lazy."""

from __future__ import annotations

import gc
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_cuda import driver, record
from sarek_cuda.runtime import CudaDriver
from sarek_numba import errors, execute
from sarek_numba.execute import Language
from sarek_numba.ir.types import Scalar
from sarek_numba.runtime.cache import clear_launch_cache
from sarek_numba.runtime.device import BackendUnavailable
from sarek_numba.runtime.registry import Device
from tests.fake_cuda import CONTEXT, FakeApi

N = 64
NUMBERS = np.arange(1, N + 1, dtype=np.float32)
ADD = """
extern "C" __global__ void add(float *out, int outs, const float *x, int xs, long long n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] += x[i];
}
"""

SHARED = """
extern "C" __global__ void put(float *out, int outs) {
    __shared__ unsigned char bytes[SIZE];
    bytes[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = bytes[threadIdx.x];
}
"""


@sarek.kernel
def add(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] += x[i]


@sarek.kernel
def fast(out, x):
    with sarek.accept.fastmath("speed"):
        i = sarek.global_idx.x
        out[i] = x[i] / 3


@sarek.kernel
def reversed_by(out, x):
    tile = sarek.shared.array(0, sarek.float32)
    i = sarek.thread_idx.x
    tile[i] = x[i]
    sarek.barrier()
    out[i] = tile[sarek.block_dim.x - 1 - i]


@sarek.kernel
def beside(out):
    tile = sarek.shared.array(46 * 1024, sarek.uint8)
    behind = sarek.shared.array(0, sarek.int8)
    i = sarek.thread_idx.x
    tile[46 * 1024 - 1 - i] = i
    if i < len(behind):
        behind[i] = 100
    sarek.barrier()
    out[i] = tile[46 * 1024 - 1 - i]
    out[i] += len(behind)


@sarek.kernel
def large(out):
    odd = sarek.shared.array(3, sarek.int8)
    tile = sarek.shared.array(13_000, sarek.float32)
    behind = sarek.shared.array(0, sarek.int8)
    i = sarek.thread_idx.x
    tile[i] = i
    if i == 0:
        odd[2] = 1
        behind[0] = 2
    sarek.barrier()
    out[i] = tile[i] + odd[2] + behind[0] + len(behind)


@pytest.fixture
def api() -> Iterator[FakeApi]:
    yield FakeApi()
    execute.window.configure(enabled=True)


@pytest.fixture
def device(api: FakeApi) -> Device:
    """A device of its own, which no enumeration shows."""
    return Device(CudaDriver(api, 0, "cuda:fake"))


def pair() -> tuple[sarek.Vector, sarek.Vector]:
    return sarek.zeros(N, np.float32), sarek.vector(NUMBERS)


def launch(device: Device, *arguments: Any, kernel: Any = add, **options: Any) -> None:
    kernel.launch(*arguments, grid=1, block=N, device=device, **options)


# --- the API --------------------------------------------------------------------------------------


def _public(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


def test_the_fake_has_every_call() -> None:
    """None of the fake's calls reaches a driver."""
    assert _public(driver.Api) - _public(FakeApi) == {"check", "framework"}


@pytest.mark.parametrize(("version", "calls"), [(12030, []), (12040, [7])])
def test_old_drivers_load_when_they_launch(version: int, calls: list[int]) -> None:
    """`cuFuncLoad` came with CUDA 12.4."""
    loaded: list[int] = []
    cuda = _Library(cuDriverGetVersion=(0, version))
    cuda.cuFuncLoad = lambda function: loaded.append(function) or (0,)  # type: ignore[attr-defined]
    driver.Api(cuda, None).finish_loading(7)
    assert loaded == calls


def test_every_name_exists_in_the_bindings() -> None:
    """Calls and enumerations of the driver and of NVRTC, attributes and flags."""
    cuda = pytest.importorskip("cuda.bindings.driver")
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
    text = "".join(Path(module.__file__).read_text() for module in (driver, record))
    calls = set(re.findall(r"(?:_cuda|cuda)\.(cu[A-Z]\w+|CU\w+)", text))
    assert len(calls) > 30
    assert [name for name in sorted(calls) if not hasattr(cuda, name)] == []
    assert [n for n in set(re.findall(r"nvrtc\.(nvrtc\w+)", text)) if not hasattr(nvrtc, n)] == []
    attributes = {*FakeApi().attributes}
    known = cuda.CUdevice_attribute
    assert [n for n in attributes if not hasattr(known, f"CU_DEVICE_ATTRIBUTE_{n}")] == []
    for name in ("MAX_THREADS_PER_BLOCK", "NUM_REGS", "MAX_DYNAMIC_SHARED_SIZE_BYTES"):
        assert hasattr(cuda.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
    for code in driver.STICKY:
        assert cuda.CUresult(code).name.startswith("CUDA_ERROR_")


class _Status(int):
    name = "CUDA_ERROR_NO_DEVICE"


class _Library:
    """A binding of which the calls that are given answer."""

    def __init__(self, **answers: Any) -> None:
        for name, answer in answers.items():
            setattr(self, name, answer if callable(answer) else lambda *_, a=answer: a)
        self.CUresult = lambda code: _Status(code)
        self.cuGetErrorString = lambda _: (0, b"in words")


def _missing(*_: Any) -> Any:
    raise RuntimeError("Failed to dlopen libnvrtc.so.13\nand more")


@pytest.mark.parametrize(
    ("cuda", "nvrtc", "words"),
    [
        ({"cuInit": _missing}, {}, "driver cannot be loaded .*dlopen.*nvidia-driver"),
        ({"cuInit": (_Status(100),)}, {}, "there is no CUDA device; nvidia-smi"),
        ({"cuInit": (_Status(999),)}, {}, r"cuInit failed: CUDA_ERROR_NO_DEVICE \(in words\)"),
        ({"cuInit": (0,)}, {"nvrtcVersion": _missing}, "pip install 'nvidia-cuda-nvrtc-cu12==12"),
        ({"cuInit": (0,)}, {"nvrtcVersion": (0, 13, 1)}, "newer driver than that of CUDA 12.4"),
    ],
)
def test_reasons_for_no_devices(cuda: Any, nvrtc: Any, words: str) -> None:
    """Each says what is missing and what helps."""
    with pytest.raises(BackendUnavailable, match=words):
        driver.opened(_Library(cuDriverGetVersion=(0, 12040), **cuda), _Library(**nvrtc))
    driver.opened(
        _Library(cuDriverGetVersion=(0, 12040), cuInit=(0,)), _Library(nvrtcVersion=(0, 12, 8))
    )


def test_without_bindings_the_reason_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """An absent library is a reason with the command that helps, not an ImportError."""
    import sys

    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(BackendUnavailable, match=r"pip install 'sarek-numba\[cuda\]'"):
        driver._load()


def test_statuses() -> None:
    """A call gives what stands beside its status, or the error by its name and text."""
    made = driver.Api(_Library(), _Library())
    assert made.check((0,)) is None
    assert made.check((0, 5)) == 5
    assert made.check((0, 1, 2)) == (1, 2)
    with pytest.raises(driver.CudaError, match=r"CUDA_ERROR_NO_DEVICE \(in words\)") as error:
        made.check((_Status(100), 3))
    assert error.value.code == 100


def test_nvrtc_compiles() -> None:
    """Machine code, PTX, and the log of what is wrong; it needs no GPU."""
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
    made = driver.Api(None, nvrtc)
    try:
        made.compiler_version()
    except Exception as error:
        pytest.skip(f"no NVRTC: {error}")
    options = record.options_for(record.Architecture("sm_90", ptx=False))
    code, log = made.compile(ADD, options, ptx=False)
    assert code.startswith(b"\x7fELF")
    assert log == ""
    ptx, _ = made.compile(ADD, ("--gpu-architecture=compute_90",), ptx=True)
    assert b".entry add" in ptx
    code, log = made.compile("int f() { return x; }", options, ptx=False)
    assert code == b""
    assert 'identifier "x" is undefined' in log


# --- records --------------------------------------------------------------------------------------


def test_architectures() -> None:
    """The device's own, PTX of the newest that is older, or a reason."""
    known = (75, 80, 90)
    assert record.architecture_for(90, known) == record.Architecture("sm_90", ptx=False)
    assert record.architecture_for(103, known) == record.Architecture("compute_90", ptx=True)
    assert record.architecture_for(86, known) == record.Architecture("compute_80", ptx=True)
    with pytest.raises(BackendUnavailable, match=r"7\.5 and later, and the device has 6\.1"):
        record.architecture_for(61, known)


def test_options() -> None:
    """Exact by default; with fast math nothing that assumes NaN or infinity away."""
    exact = record.options_for(record.Architecture("sm_90", ptx=False))
    assert exact == (
        "--gpu-architecture=sm_90",
        "--std=c++17",
        "--fmad=false",
        "--prec-div=true",
        "--prec-sqrt=true",
        "--ftz=false",
    )
    loose = record.options_for(record.Architecture("sm_90", ptx=False), fast=True)
    assert "--fmad=true" in loose
    assert not [option for option in loose if "use_fast_math" in option]


def test_record(device: Device) -> None:
    """Limits of the driver, identity for caches, facts with evidence."""
    limits, found = device.record.limits, dict(device.record.identity)
    assert (limits.threads_per_block, limits.shared_bytes) == (1024, 227 << 10)
    assert limits.grid == (2**31 - 1, 65535, 65535)
    assert (limits.argument_bytes, limits.registers) == (32764, 65536)
    assert found == {
        "device": "Fake of host memory",
        "architecture": "sm_90",
        "driver": "13.0",
        "nvrtc": "13.0",
    }
    assert all(fact.evidence and fact.basis for fact in device.record.facts.values())
    assert device.supports("atomic", "float64", "add", "shared")
    assert device.supports("warp")
    assert not device.supports("arithmetic", Scalar.FLOAT16)


def test_devices_that_cannot_be_compiled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are left out; with none left the reason says why."""
    from sarek_cuda.runtime import backend

    api = FakeApi(devices=2)
    assert [d.record.name for d in backend.drivers_of(api)] == ["cuda:0", "cuda:1"]
    api.attributes["COMPUTE_CAPABILITY_MAJOR"] = 6
    with pytest.raises(BackendUnavailable, match=r"cuda:0: NVRTC compiles for .*; cuda:1: NVRTC"):
        backend.drivers_of(api)
    with pytest.raises(BackendUnavailable, match="no CUDA device"):
        backend.drivers_of(FakeApi(devices=0))


# --- compiling ------------------------------------------------------------------------------------


def test_machine_code_is_kept_on_disk(api: FakeApi, disk_cache: Any) -> None:
    """Another driver compiles nothing; what the driver does not take any more is made again."""
    for _ in range(2):
        clear_launch_cache()
        out, x = pair()
        launch(Device(CudaDriver(api, 0, "cuda:fake")), out, x)
        assert (out == NUMBERS).all()
    assert api.calls["compile"] == 1
    (entry,) = [path for path in disk_cache.glob("*/cuda/*/*") if path.is_file()]
    assert b"fake cubin" in entry.read_bytes()
    load, fail = api.load, []

    def refuses_once(image: bytes) -> Any:
        if not fail:
            fail.append(image)
            raise driver.ImageError(driver.CudaError(209, "CUDA_ERROR_NO_BINARY_FOR_GPU"), "")
        return load(image)

    api.load = refuses_once  # type: ignore[method-assign] # for this test
    clear_launch_cache()
    launch(Device(CudaDriver(api, 0, "cuda:fake")), *pair())
    assert api.calls["compile"] == 2


def test_compiler_log(device: Device) -> None:
    """Source that is rejected comes back with the log."""
    with pytest.raises(errors.SourceCompilationError, match="NVRTC rejects") as error:
        execute.run_source(device, "__global__ void k( {", Language.CUDA, "k", [], 1, 1)
    assert "error" in error.value.log
    assert error.value.source == "__global__ void k( {"


def test_image_that_the_driver_does_not_take(device: Device, api: FakeApi) -> None:
    """The error is of compiling, with the driver's words."""
    with pytest.raises(errors.SourceCompilationError, match=r"the PTX: CUDA_ERROR_INVALID_PTX"):
        execute.run_source(device, ".version 1", Language.PTX, "k", [], 1, 1)


# --- contexts -------------------------------------------------------------------------------------


def test_a_thread_without_a_context_gets_it(device: Device, api: FakeApi) -> None:
    """For good; nothing is pushed."""
    failed: list[BaseException] = []

    def work() -> None:
        try:
            out, x = pair()
            launch(device, out, x)
            assert (out == NUMBERS).all()
            assert api.current_context() == CONTEXT
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not failed
    assert api.calls["push_context"] == 0


def test_the_context_of_another_device_is_restored(device: Device, api: FakeApi) -> None:
    """Whatever is done meanwhile, failures included."""
    api.set_context(77)
    out, x = pair()
    launch(device, out, x)
    stream = device.stream()
    launch(device, out, x, stream=stream)
    stream.record().synchronize()
    assert (out == 2 * NUMBERS).all()
    api.fail("allocate", 2, "CUDA_ERROR_OUT_OF_MEMORY", times=2)
    with pytest.raises(errors.OutOfMemory):
        sarek.zeros(N, np.int8).to(device)
    assert api.current_context() == 77
    assert api.calls["push_context"] == api.calls["pop_context"] > 0


# --- launches -------------------------------------------------------------------------------------


def test_the_fake_is_lazy(device: Device, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """A positive control: a runtime that does not wait is found out."""
    out, x = pair()
    for call in ("finish_stream", "advance"):
        monkeypatch.setattr(FakeApi, call, lambda *_: None)
    launch(device, out, x)
    assert (np.asarray(out) == 0).all()


@pytest.mark.parametrize("size", [4 * N, 48 << 10, 100 << 10])
def test_dynamic_shared_memory(device: Device, api: FakeApi, size: int) -> None:
    """Beyond 48 KiB the function is told before the launch, once."""
    for _ in range(4):
        out, x = pair()
        launch(device, out, x, kernel=reversed_by, shared_bytes=size)
        assert (out == NUMBERS[::-1]).all()
    assert api.calls["set_function_attribute"] == (size > 48 << 10)


def test_shared_memory_beyond_the_limits(device: Device, api: FakeApi) -> None:
    """Beyond the device's, be they dynamic or declared; nothing has moved."""
    out, x = pair()
    with pytest.raises(errors.InvalidDimensions, match="has 232448"):
        launch(device, out, x, kernel=reversed_by, shared_bytes=228 << 10)
    with pytest.raises(errors.InvalidDimensions, match=r"52003 static and 184320 dynamic.*232448"):
        launch(device, out, kernel=large, shared_bytes=180 << 10)
    assert api.calls["copy_in"] == 0


@pytest.mark.parametrize("size", [0, 2 << 10, 4 << 10, 180 << 10])
def test_declared_and_dynamic_shared_memory(device: Device, api: FakeApi, size: int) -> None:
    """Together beyond 48 KiB the function is told before the launch, once."""
    for _ in range(4):
        out = sarek.zeros(N, np.float32)
        launch(device, out, kernel=beside, shared_bytes=size)
        assert (out == np.arange(N) + size).all()
    assert api.calls["set_function_attribute"] == (size > 2 << 10)


def test_the_fake_has_the_limits_of_the_driver(device: Device) -> None:
    """A positive control: 48 KiB may be declared, and dynamic bytes come on top of them."""
    for size, works in ((48 << 10, True), ((48 << 10) + 4, False)):
        text = SHARED.replace("SIZE", str(size))
        out = sarek.zeros(N, np.float32)
        if works:
            execute.run_source(device, text, Language.CUDA, "put", [out], N, 1)
            assert (out == np.arange(N)).all()
            continue
        with pytest.raises(errors.SourceCompilationError) as error:
            execute.run_source(device, text, Language.CUDA, "put", [out], N, 1)
        assert "uses too much shared data (0xc004 bytes, 0xc000 max)" in error.value.log


def test_code_is_on_the_device_before_the_launch(device: Device, api: FakeApi) -> None:
    """Loading waits for the streams, which another thread may let go on only before the launch."""
    stream = device.stream()
    let_go = api.gate(stream.queue.handle.raw)  # type: ignore[attr-defined] # CUDA's
    out, x = pair()
    timer = threading.Timer(0.1, let_go)
    timer.start()
    launch(device, out, x, stream=stream)
    assert not timer.is_alive()
    assert (out == NUMBERS).all()
    assert api.calls["finish_loading"] == api.calls["function"] == 1


@pytest.mark.parametrize("enabled", [True, False], ids=["window", "at once"])
def test_declared_shared_memory_beyond_48_kib(device: Device, api: FakeApi, enabled: bool) -> None:
    """It is the first part of the dynamic region, which each launch gets that much more of."""
    execute.window.configure(enabled=enabled)
    for k in range(4):
        out = sarek.zeros(N, np.float32) if k else np.zeros(N, np.float32)
        launch(device, out, kernel=large, shared_bytes=72)
        assert (out == np.arange(N) + 1 + 2 + 72).all()
    assert api.calls["set_function_attribute"] == 1
    text = large.source(device, np.zeros(N, np.float32))
    assert re.findall(r"\(unsigned char \*\)dynamic_shared \+ (\d+)", text) == ["4", "52008"]


def test_block_beyond_the_kernel(device: Device, api: FakeApi) -> None:
    """By the function's own limit, in each launch, before anything moves."""
    limit = "MAX_THREADS_PER_BLOCK"
    attribute = api.function_attribute
    api.function_attribute = (  # type: ignore[method-assign] # for this test
        lambda function, name: 32 if name == limit else attribute(function, name)
    )
    out, x = pair()
    for _ in range(3):
        with pytest.raises(errors.InvalidDimensions, match=f"most 32 threads .*{limit}.* has 64"):
            launch(device, out, x)
    assert (api.calls["copy_in"], api.calls["launch"]) == (0, 0)


def test_parts_are_addresses(device: Device, api: FakeApi) -> None:
    """Parts of a buffer anywhere cost no copy; learnt launches take them too."""
    whole, x = sarek.zeros(1000, np.float32), sarek.vector(NUMBERS)
    model = np.zeros(1000, np.float32)
    whole.to(device)
    for first in (0, 1, 7, 500, 501, 936):
        launch(device, whole[first : first + N], x)
        model[first : first + N] += NUMBERS
    assert api.calls["allocate"] == 2
    assert (whole == model).all()


@pytest.mark.parametrize("enabled", [True, False], ids=["window", "at once"])
def test_launches_record_few_events(device: Device, api: FakeApi, enabled: bool) -> None:
    """One for many, when somebody asks what is done."""
    execute.window.configure(enabled=enabled)
    out, x = pair()
    for _ in range(10):
        launch(device, out, x)
    device.synchronize()
    before = api.calls.copy()
    for _ in range(256):
        launch(device, out, x)
    assert (out == 266 * NUMBERS).all()
    calls = api.calls - before
    assert calls["launch"] == 256
    assert calls["record"] <= 16
    assert calls["finish_stream"] <= 16


def test_launches_at_once_are_not_waited_for(device: Device, api: FakeApi) -> None:
    """Without the window a learnt launch is given to the driver, and nothing else is called."""
    execute.window.configure(enabled=False)
    out, x = pair()
    call = add._configured(1, N, None, 0, device)
    for _ in range(6):
        call(out, x)
    before = api.calls.copy()
    for _ in range(10):
        call(out, x)
    assert api.calls - before == {"launch": 10, "machine code": 10, "current_context": 10}
    assert not out.is_current()
    assert (out == 16 * NUMBERS).all()


def test_the_whole_span_of_strided_vectors_is_waited_for(device: Device, api: FakeApi) -> None:
    """What lies far from the first element too."""
    for enabled in (True, False):
        execute.window.configure(enabled=enabled)
        whole, x = sarek.zeros(4 * N, np.float32), sarek.vector(NUMBERS)
        for turn in range(1, 6):
            launch(device, whole[::4], x)
            assert whole[4 * N - 4] == turn * N


def test_threads_launch_at_once_and_wait(device: Device, api: FakeApi) -> None:
    """What grows while another thread waits for it is not dropped: each sees its own results."""
    execute.window.configure(enabled=False)
    failed: list[str] = []

    def work() -> None:
        out, x = pair()
        for turn in range(1, 120):
            launch(device, out, x)
            if turn % 7 == 0 and not (out == turn * NUMBERS).all():
                failed.append(f"{turn}: {out}")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_vectors_dropped_under_launches_at_once(device: Device, api: FakeApi) -> None:
    """Their memory is no one else's before the launches are done."""
    execute.window.configure(enabled=False)
    out = sarek.zeros(N, np.float32)
    for k in range(150):
        launch(device, out, sarek.full(N, k, np.float32))
        gc.collect() if k % 20 == 0 else None
    assert (out == sum(range(150))).all()
    api.advance()
    gc.collect()
    device.synchronize()
    assert device.memory_statistics().in_use == 512


def test_nothing_grows_without_the_window(device: Device, api: FakeApi) -> None:
    """Work that is done is forgotten though nobody waits."""
    execute.window.configure(enabled=False)
    out, x = pair()
    for k in range(3000):
        launch(device, out, x)
        if k % 100 == 0:
            api.advance()
    uses = out._storage._uses._uses
    assert len(uses) == 1
    assert len(uses[0][3].queue._works) <= 1100
    assert (out == 3000 * NUMBERS).all()


def test_measured_launches_have_times(device: Device, api: FakeApi) -> None:
    """By events around them, which are used again."""
    out, x = pair()
    with sarek.profile() as profile:
        for _ in range(20):
            launch(device, out, x)
    assert (out == 20 * NUMBERS).all()
    assert "add" in str(profile)
    assert api.calls["event"] <= 8


# --- failures -------------------------------------------------------------------------------------


def test_out_of_memory_says_how_much(device: Device, api: FakeApi) -> None:
    """Bytes asked and free; what is cached is given up first; then all works again."""
    api.size = 4 << 20
    kept = sarek.zeros(1 << 20, np.uint8).to(device)
    with pytest.raises(errors.OutOfMemory, match="8388608 bytes, and 3145728 are free") as error:
        sarek.zeros(8 << 20, np.uint8).to(device)
    assert (error.value.asked, error.value.available) == (8 << 20, 3 << 20)
    del kept
    gc.collect()
    sarek.zeros(4 << 20, np.uint8).to(device)
    gc.collect()
    out, x = pair()
    launch(device, out, x)
    assert (out == NUMBERS).all()


def test_arrays_that_do_not_fit(device: Device, api: FakeApi) -> None:
    """Memory that was taken for the others is given back."""
    api.size = 1 << 20
    arrays = np.zeros(1 << 17, np.float32), np.zeros(1 << 18, np.float32)
    for _ in range(3):
        with pytest.raises(errors.OutOfMemory):
            launch(device, *arrays)
    assert device.memory_statistics().in_use == 0


@pytest.mark.parametrize("enabled", [True, False], ids=["window", "at once"])
def test_a_lost_device_stays_lost(device: Device, api: FakeApi, enabled: bool) -> None:
    """The error names the first launch; whatever is asked later says the same; no data is lost."""
    execute.window.configure(enabled=enabled)
    out, x = pair()
    launch(device, out, x)
    assert out[0] == 1
    untouched = sarek.vector(NUMBERS)
    untouched.to(device)
    api.lose()
    words = "cuda:fake was lost: a launch failed with CUDA_ERROR_ILLEGAL_ADDRESS: an access to an"

    def run() -> Any:
        launch(device, out, x)
        return np.asarray(out)

    with pytest.raises(errors.DeviceLost, match=words) as error:
        run()
    if enabled:
        assert "launch of kernel 'add' at" in str(error.value)
    other, y = pair()
    for ask in (
        lambda: launch(device, other, y),
        lambda: launch(device, np.zeros(N, np.float32), y),
        lambda: device.stream(),
        lambda: sarek.zeros(3, np.int8).to(device),
        lambda: np.asarray(out),
    ):
        with pytest.raises(errors.DeviceLost, match="nothing of CUDA works in this process"):
            ask()
    assert (untouched == NUMBERS).all()
    assert (y == NUMBERS).all()
    launch("native", other, y)
    assert (other == NUMBERS).all()


def test_a_launch_that_the_driver_refuses(device: Device, api: FakeApi) -> None:
    """It is raised, and the next one works."""
    out, x = np.zeros(N, np.float32), NUMBERS.copy()
    api.fail("launch", 1, "CUDA_ERROR_INVALID_VALUE")
    with pytest.raises(errors.LaunchFailed, match="a launch on cuda:fake failed: CUDA_ERROR_INV"):
        launch(device, out, x)
    launch(device, out, x)
    assert (out == NUMBERS).all()


def test_too_few_resources(device: Device, api: FakeApi) -> None:
    """A block for which there are too few registers is one that the kernel cannot have."""
    out, x = np.zeros(N, np.float32), NUMBERS.copy()
    api.fail("launch", 701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES")
    with pytest.raises(errors.InvalidDimensions, match=r"too few registers .* 64 threads"):
        launch(device, out, x)
    launch(device, out, x)
    assert (out == NUMBERS).all()


def test_forked_process(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Says so, each time, and what helps."""
    out, x = pair()
    launch(device, out, x)
    assert (out == NUMBERS).all()
    monkeypatch.setattr(driver.CUDA, "forked", True)
    for _ in range(2):
        with pytest.raises(errors.DeviceLost, match=r"opened before .* forked[^!]*spawn"):
            launch(device, *pair())
    monkeypatch.undo()
    launch(device, out, x)
    assert (out == 2 * NUMBERS).all()


# --- kernels of others ----------------------------------------------------------------------------


def test_kernels_of_others(device: Device) -> None:
    """With lengths behind arrays, and 64-bit numbers as NumPy scalars."""
    out, x = pair()
    execute.run_source(device, ADD, Language.CUDA, "add", [out, x, np.int64(N)], N, 1)
    assert (out == NUMBERS).all()
    assert execute.supports_language(device, Language.PTX)


@pytest.mark.parametrize(
    ("name", "number", "error", "words"),
    [
        ("sub", np.int64(N), errors.InvalidArgument, r"no kernel 'sub'\n.*it has add"),
        ("add", np.int32(N), errors.ArgumentTypeError, "parameter 4 has 8 bytes.*int32, of 4"),
        ("add", None, errors.ArgumentCountError, "has 5 parameters, and the arguments fill 4"),
    ],
)
def test_misuse_of_kernels_of_others(
    device: Device, name: str, number: Any, error: type[Exception], words: str
) -> None:
    """A name that is not there, a number of another width, arguments that are missing."""
    out, x = pair()
    given = [out, x] if number is None else [out, x, number]

    def run() -> None:
        execute.run_source(device, ADD, Language.CUDA, name, given, N, 1)
        execute.window.flush()

    with pytest.raises(error, match=words):
        run()
    assert (out == 0).all()


# --- memory ---------------------------------------------------------------------------------------


def test_page_locked_memory(device: Device, api: FakeApi) -> None:
    """Vectors on it are used as all others; it goes with the last array of it."""
    x = sarek.vector(NUMBERS, pinned=device)
    out = sarek.zeros(N, np.float32)
    launch(device, out, x)
    assert (out == NUMBERS).all()
    assert x.pinned == "cuda:fake"
    assert len(api.host) == 1
    view = np.asarray(x)
    del x
    gc.collect()
    assert len(api.host) == 1
    assert (view == NUMBERS).all()
    del view
    gc.collect()
    assert not api.host


def test_memory_is_used_again(device: Device, api: FakeApi) -> None:
    """What a vector gives up the next one takes; none is given back while work may use it."""
    for _ in range(20):
        out, x = pair()
        launch(device, out, x)
        del out, x
    gc.collect()
    device.synchronize()
    assert api.calls["allocate"] < 50
    assert device.memory_statistics().in_use == 0
    device.free_cached()
    assert not api.memory
