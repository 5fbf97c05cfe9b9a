"""The HIP runtime through ctypes against functions of C whose device is host memory, lazily."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_hip import driver, finding, record
from sarek_hip.code_object import kernels
from sarek_hip.runtime import HipDriver, backend
from sarek_numba import errors, execute
from sarek_numba.capability.flags import illegal
from sarek_numba.execute import Language
from sarek_numba.ir.types import Scalar
from sarek_numba.runtime.cache import clear_launch_cache
from sarek_numba.runtime.device import BackendUnavailable
from sarek_numba.runtime.registry import Device
from tests import fake_hip
from tests.fake_hip import Library

N = 64
NUMBERS = np.arange(1, N + 1, dtype=np.float32)
ADD = """
extern "C" __global__ void add(float *out, int outs, const float *x, int xs, long long n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] += x[i];
}
"""


@sarek.kernel
def add(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] += x[i]


@sarek.kernel(fastmath="speed")
def fast(out, x):
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
def rotated(out):
    out[sarek.thread_idx.x] = sarek.warp.shuffle(sarek.thread_idx.x, 1)


@pytest.fixture
def library() -> Iterator[Library]:
    made = Library()
    yield made
    execute.window.configure(enabled=True)
    assert made.faults == []


@pytest.fixture
def api(library: Library) -> driver.Api:
    return fake_hip.api(library)


@pytest.fixture
def device(api: driver.Api) -> Device:
    """A device of its own, which no enumeration shows."""
    return Device(HipDriver(api, 0, "hip:fake"))


def pair() -> tuple[sarek.Vector, sarek.Vector]:
    return sarek.zeros(N, np.float32), sarek.vector(NUMBERS)


def launch(device: Device | str, *arguments: Any, kernel: Any = add, **options: Any) -> None:
    kernel.launch(*arguments, grid=1, block=N, device=device, **options)


# --- what is not there ----------------------------------------------------------------------------


class _Without:
    """A library without a function."""

    def __init__(self, library: Library, *names: str) -> None:
        self._library = library
        self._names = names

    def __getattr__(self, name: str) -> Any:
        if name in self._names:
            raise AttributeError(f"undefined symbol: {name}")
        return getattr(self._library, name)


@pytest.mark.parametrize(
    ("status", "words"),
    [(100, "there is no HIP device; "), (101, "no HIP device"), (3, "hipInit failed: hipError")],
)
def test_runtimes_without_devices(library: Library, status: int, words: str) -> None:
    """The reason tells what the driver said, and what helps."""
    library.fake.fail("start", status, "hipError")
    with pytest.raises(BackendUnavailable, match=f"{words}.*(kfd|rocminfo|AMD's driver)"):
        fake_hip.api(library)
    fake_hip.api(library)


def test_what_helps_without_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel driver, the right to open it, or a look at what it has."""
    there = tmp_path / "kfd"
    assert "apt-get install amdgpu-dkms" in finding.about_devices(there)
    there.touch()
    assert "rocminfo" in finding.about_devices(there)
    monkeypatch.setattr(finding.os, "access", lambda *_: False)
    assert "usermod -aG render,video" in finding.about_devices(there)


def test_runtimes_that_lack_something(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions that are newer than the runtime, no hiprtc, a runtime of long ago."""
    with pytest.raises(BackendUnavailable, match=r"too old .*hipFuncGetAttribute.*ROCm 5\.7"):
        driver.opened(_Without(library, "hipFuncGetAttribute"), library)
    with pytest.raises(BackendUnavailable, match=r"hiprtc cannot be loaded \(libhiprtc.so: gone\)"):
        driver.opened(library, _Without(library, "hiprtcVersion"), "libhiprtc.so: gone")
    monkeypatch.setattr(fake_hip, "VERSION", 50221153)
    with pytest.raises(BackendUnavailable, match=r"HIP 5\.2\.21153 is too old; install ROCm 5\.7"):
        fake_hip.api(Library())


def test_libraries_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None, one that is broken, and where ROCM_PATH says; each with its reason."""
    monkeypatch.setattr(driver, "folders", lambda: [tmp_path / "lib"])
    monkeypatch.setattr(driver, "file_names", lambda name: [f"libsarek_{name}.so.6"])
    with pytest.raises(BackendUnavailable, match=r"is not here .*amdhip64.*rocm-hip-runtime"):
        driver._load()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libsarek_amdhip64.so.6").write_bytes(b"no library")
    with pytest.raises(BackendUnavailable, match=r"cannot be loaded .*; it is installed in part"):
        driver._load()
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    assert next(iter(finding.folders())) == tmp_path / "lib"
    assert finding.file_names("hiprtc", "linux")[0] == "libhiprtc.so.7"
    assert finding.file_names("amdhip64", "win32")[0] == "amdhip64_7.dll"


def test_devices_that_tell_no_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are left out; with none left the reason says why."""
    library = Library(devices=2)
    made = fake_hip.api(library)
    assert [d.record.name for d in backend.drivers_of(made)] == ["hip:0", "hip:1"]
    library.architecture = "Vega"
    with pytest.raises(BackendUnavailable, match=r"hip:0: the prop.* HIP 7\.1\.54321; hip:1"):
        backend.drivers_of(made)
    with pytest.raises(BackendUnavailable, match="no HIP device"):
        backend.drivers_of(fake_hip.api(Library(devices=0)))


# --- the API --------------------------------------------------------------------------------------


def test_statuses(library: Library, api: driver.Api) -> None:
    """An error has HIP's name, and leaves none behind that another library would find."""
    library.fake.fail("allocate", 2, "any")
    with pytest.raises(driver.HipError, match=r"^hipErrorOutOfMemory$") as error:
        api.allocate(1)
    assert error.value.code == 2
    assert library.hipGetLastError() == 0
    stream, event = api.stream(), api.event(timed=False)
    let_go = library.fake.gate(library.object(stream))
    api.record(event, stream)
    assert not api.has_happened(event)
    assert library.hipGetLastError() == 0
    let_go()
    api.wait_for(event)
    assert api.has_happened(event)


@pytest.mark.parametrize(("name", "place"), [*driver.PROPERTIES])
def test_architecture_in_each_layout(name: str, place: int) -> None:
    """Of the structure that this runtime has."""
    library = Library()
    del library.hipGetDevicePropertiesR0600
    library.provide(name, place)
    library.architecture = "gfx1100"
    assert fake_hip.api(library).architecture(0) == "gfx1100"


def test_real_library() -> None:
    """Every function is in AMD's own library, whose compiler takes the options and the text."""
    try:
        library = driver.find("amdhip64")
        compiler = library if hasattr(library, "hiprtcVersion") else driver.find("hiprtc")
    except OSError as error:
        pytest.skip(f"no HIP runtime: {error}")
    made = driver.Api(library, compiler)
    made.declare()
    made.declare_compiler()
    assert made.runtime_version() >= 50_000_000
    assert made.compiler_version() >= (9, 0)
    for fast_math in (False, True):
        code, log = made.compile(ADD, record.options_for("gfx90a", fast=fast_math))
        assert kernels(code) == {"add": (8, 4, 8, 4, 8)}
        assert log == ""
    code, log = made.compile("int f() { return x; }", record.options_for("gfx90a"))
    assert code == b""
    assert "undeclared identifier 'x'" in log


# --- records --------------------------------------------------------------------------------------


def test_record(device: Device) -> None:
    """Limits of the driver, identity for caches, facts with evidence."""
    limits, found = device.record.limits, dict(device.record.identity)
    assert (limits.threads_per_block, limits.shared_bytes, limits.warp_width) == (1024, 65536, 64)
    assert limits.grid == (2**31 - 1, 65536, 65536)
    assert found == {
        "device": "Fake of host memory",
        "architecture": "gfx90a:sramecc+:xnack-",
        "driver": "7.1.54321",
        "runtime": "7.1.54321",
        "hiprtc": "9.0",
    }
    assert all(fact.evidence and fact.basis for fact in device.record.facts.values())
    assert device.supports("atomic", "float64", "add", "shared")
    assert device.supports("warp")
    assert not device.supports("arithmetic", Scalar.FLOAT16)


def test_options(device: Device) -> None:
    """Exact by default; with fast math nothing that assumes NaN or infinity away."""
    exact = record.options_for("gfx942")
    assert exact[0] == "--offload-arch=gfx942"
    for option in (
        "-fno-fast-math",
        "-ffp-contract=off",
        "-fhip-fp32-correctly-rounded-divide-sqrt",
        "-fno-gpu-flush-denormals-to-zero",
        "-mno-unsafe-fp-atomics",
    ):
        assert option in exact
    loose = record.options_for("gfx942", fast=True)
    assert illegal("k", exact, device.record) == []
    assert illegal("k", loose, device.record, fastmath=True) == []
    broken = {refusal.need.feature for refusal in illegal("k", loose, device.record)}
    assert {"contraction", "division", "square_root", "subnormal_results"} <= broken


def test_more_threads_than_the_device_counts(device: Device) -> None:
    """Grid times block along an axis is below 2^32, whatever the grid's own limit."""
    out, x = pair()
    with pytest.raises(errors.InvalidDimensions, match=r"4294967296 threads; .* most 4294967295"):
        add.launch(out, x, grid=1 << 26, block=64, device=device)


def test_warps_are_whole(library: Library, device: Device) -> None:
    """A block of warp operations has whole wavefronts, of 64 threads on this device."""
    out = np.zeros(32, np.int32)
    with pytest.raises(errors.InvalidDimensions, match="64"):
        rotated.launch(out, grid=1, block=32, device=device)
    assert "hipMalloc" not in library.calls


# --- compiling ------------------------------------------------------------------------------------


def test_code_objects_are_kept_on_disk(library: Library, api: Any, disk_cache: Any) -> None:
    """Another driver compiles nothing; what the runtime does not take any more is made again."""
    for _ in range(2):
        clear_launch_cache()
        out, x = pair()
        launch(Device(HipDriver(api, 0, "hip:fake")), out, x)
        assert (out == NUMBERS).all()
    assert library.calls.count("hiprtcCompileProgram") == 1
    (entry,) = [path for path in disk_cache.glob("*/hip/*/*") if path.is_file()]
    assert b"amdhsa.kernels" in entry.read_bytes()
    load, refused = library._hipModuleLoadData, []

    def refuses_once(out: Any, image: int) -> int:
        if not refused:
            refused.append(image)
            return 209
        return load(out, image)

    library._hipModuleLoadData = refuses_once  # type: ignore[method-assign] # for this test
    clear_launch_cache()
    launch(Device(HipDriver(api, 0, "hip:fake")), *pair())
    assert library.calls.count("hiprtcCompileProgram") == 2


def test_compiler_log(device: Device) -> None:
    """Source that is rejected comes back with the log."""
    with pytest.raises(errors.SourceCompilationError, match="hiprtc rejects") as error:
        execute.run_source(device, "__global__ void k( {", Language.HIP, "k", [], 1, 1)
    assert "error" in error.value.log
    assert error.value.source == "__global__ void k( {"


def test_fast_math_is_another_program(library: Library, device: Device) -> None:
    """By the pragma in its text and by its options."""
    given: list[Any] = []
    compile_ = library.fake.compile
    library.fake.compile = (  # type: ignore[method-assign] # for this test
        lambda source, options, *, ptx: (
            given.append((source, options)) or compile_(source, options, ptx=ptx)
        )
    )
    for kernel in (add, fast):
        launch(device, *pair(), kernel=kernel)
    (exact, exact_options), (loose, loose_options) = given
    assert "fp contract(off)" in exact
    assert "fp contract(on)" in loose
    assert "-ffp-contract=off" in exact_options
    assert "-fgpu-flush-denormals-to-zero" in loose_options


# --- launches -------------------------------------------------------------------------------------


def test_the_fake_is_lazy(library: Library, device: Device, monkeypatch: Any) -> None:
    """A positive control: a runtime that does not wait is found out."""
    out, x = pair()
    for call in ("finish_stream", "advance"):
        monkeypatch.setattr(library.fake, call, lambda *_: None)
    launch(device, out, x)
    assert (np.asarray(out) == 0).all()


@pytest.mark.parametrize("size", [4 * N, 64 << 10])
def test_dynamic_shared_memory(device: Device, size: int) -> None:
    """As much as the device has, without being told."""
    for _ in range(4):
        out, x = pair()
        launch(device, out, x, kernel=reversed_by, shared_bytes=size)
        assert (out == NUMBERS[::-1]).all()
    with pytest.raises(errors.InvalidDimensions, match="has 65536"):
        launch(device, *pair(), kernel=reversed_by, shared_bytes=(64 << 10) + 1)


def test_parts_are_addresses(library: Library, device: Device) -> None:
    """Parts of a buffer anywhere cost no copy."""
    whole, x = sarek.zeros(1000, np.float32), sarek.vector(NUMBERS)
    model = np.zeros(1000, np.float32)
    whole.to(device)
    for first in (0, 1, 7, 500, 501, 936):
        launch(device, whole[first : first + N], x)
        model[first : first + N] += NUMBERS
    assert library.calls.count("hipMalloc") == 2
    assert (whole == model).all()


def test_measured_launches_have_times(library: Library, device: Device) -> None:
    """By events around them, which are used again."""
    out, x = pair()
    with sarek.profile() as profile:
        for _ in range(20):
            launch(device, out, x)
    assert (out == 20 * NUMBERS).all()
    assert "add" in str(profile)
    assert "hipEventElapsedTime" in library.calls
    assert library.calls.count("hipEventCreateWithFlags") <= 8


def test_devices_of_threads_are_restored() -> None:
    """What a thread used is current again after each call, failures included."""
    library = Library(devices=2)
    device = Device(HipDriver(fake_hip.api(library), 1, "hip:second"))
    out, x = pair()
    launch(device, out, x)
    stream = device.stream()
    launch(device, out, x, stream=stream)
    stream.record().synchronize()
    assert (out == 2 * NUMBERS).all()
    library.fake.fail("allocate", 2, "hipErrorOutOfMemory", times=2)
    with pytest.raises(errors.OutOfMemory):
        sarek.zeros(N, np.int8).to(device)
    assert library.threads.device == 0
    assert library.calls.count("hipSetDevice") % 2 == 0
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(int((out == 2 * NUMBERS).all())))
    thread.start()
    thread.join()
    assert found == [1]
    assert library.faults == []


def test_work_that_another_thread_submits(device: Device, monkeypatch: Any) -> None:
    """Who needs it waits for that thread, in the middle of whose calls it is not begun."""
    (out, x), (other, y) = pair(), pair()
    launch(device, out, x)
    launch(device, other, y)
    entered, go, found = threading.Event(), threading.Event(), []
    access: Any = device.driver.access  # type: ignore[attr-defined] # HIP's
    given = access.launch

    def slow(*arguments: Any) -> Any:
        entered.set()
        go.wait(10)
        return given(*arguments)

    monkeypatch.setattr(access, "launch", slow)
    threads = [threading.Thread(target=lambda: np.asarray(out))]
    threads[0].start()
    assert entered.wait(10)
    threads += [threading.Thread(target=lambda: found.append((other == NUMBERS).all()))]
    threads[1].start()
    threads[1].join(0.2)
    go.set()
    for thread in threads:
        thread.join()
    assert found == [True]


def test_launches_of_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the window it calls the library itself, unless the thread's device is another."""
    library = Library(devices=2)
    device = Device(HipDriver(fake_hip.api(library), 0, "hip:fake"))
    access: Any = device.driver.access  # type: ignore[attr-defined] # HIP's
    by_python, given = [], access.launch

    def count(*arguments: Any) -> Any:
        by_python.append(arguments)
        return given(*arguments)

    monkeypatch.setattr(access, "launch", count)
    execute.window.configure(enabled=False)
    out, x = pair()
    call = add._configured(1, N, None, 0, device)
    for _ in range(6):
        call(out, x)
    by_python.clear()
    before = library.calls.count("hipModuleLaunchKernel")
    for _ in range(20):
        call(out, x)
    assert library.calls.count("hipModuleLaunchKernel") - before == 20
    assert by_python == []
    access.api.set_context(2)
    call(out, x)
    assert len(by_python) == 1
    assert access.api.current_context() == 2
    assert (out == 27 * NUMBERS).all()
    execute.window.configure(enabled=True)
    assert library.faults == []


# --- failures -------------------------------------------------------------------------------------


def test_out_of_memory_says_how_much(library: Library, device: Device) -> None:
    """Bytes asked and free; what is cached is given up first; then all works again."""
    library.fake.size = 4 << 20
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


@pytest.mark.parametrize("code", [700, 719])
def test_a_lost_device_stays_lost(library: Library, device: Device, code: int) -> None:
    """The error names the first failure; whatever is asked later says the same; no data is lost."""
    out, x = pair()
    launch(device, out, x)
    assert out[0] == 1
    untouched = sarek.vector(NUMBERS)
    untouched.to(device)
    library.fake.lose(code, "any")
    words = f"hip:fake was lost: .*{fake_hip.NAMES[code].decode()}: {driver.STICKY[code]}"

    def run() -> Any:
        launch(device, out, x)
        return np.asarray(out)

    with pytest.raises(errors.DeviceLost, match=words):
        run()
    other, y = pair()
    for ask in (
        lambda: launch(device, other, y),
        lambda: device.stream(),
        lambda: sarek.zeros(3, np.int8).to(device),
        lambda: np.asarray(out),
    ):
        with pytest.raises(errors.DeviceLost, match="nothing of HIP works in this process"):
            ask()
    assert (untouched == NUMBERS).all()
    launch("native", other, y)
    assert (other == NUMBERS).all()


def test_launches_that_the_runtime_refuses(library: Library, device: Device) -> None:
    """Each is raised, and the next one works; too few registers are a block that cannot be."""
    out, x = np.zeros(N, np.float32), NUMBERS.copy()
    library.fake.fail("launch", 1, "any")
    with pytest.raises(errors.LaunchFailed, match="a launch on hip:fake failed: hipErrorInvalidVa"):
        launch(device, out, x)
    library.fake.fail("launch", 701, "any")
    with pytest.raises(errors.InvalidDimensions, match=r"too few registers .* 64 threads"):
        launch(device, out, x)
    launch(device, out, x)
    assert (out == NUMBERS).all()


def test_block_beyond_the_kernel(
    library: Library, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the function's own limit, in each launch, before anything moves."""
    monkeypatch.setattr(library.fake, "function_attribute", lambda *_: 32)
    for _ in range(3):
        with pytest.raises(errors.InvalidDimensions, match=r"32 threads .*HIP_FUNC_ATTR.* has 64"):
            launch(device, *pair())
    assert "hipMemcpyHtoDAsync" not in library.calls


def test_forked_process(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Says so, each time, and what helps."""
    out, x = pair()
    launch(device, out, x)
    assert (out == NUMBERS).all()
    monkeypatch.setattr(driver.HIP, "forked", True)
    for _ in range(2):
        with pytest.raises(errors.DeviceLost, match=r"opened before .* HIP does not .* forked"):
            launch(device, *pair())
    monkeypatch.undo()
    launch(device, out, x)
    assert (out == 2 * NUMBERS).all()


# --- kernels of others, memory --------------------------------------------------------------------


def test_kernels_of_others(device: Device, tmp_path: Path) -> None:
    """HIP C++ by text and by file, with lengths behind arrays, 64-bit numbers as NumPy scalars."""
    out, x = pair()
    execute.run_source(device, ADD, Language.HIP, "add", [out, x, np.int64(N)], N, 1)
    path = tmp_path / "add.hip"
    path.write_text(ADD)
    execute.run_source_file(device, path, "add", [out, x, np.int64(N)], N, 1)
    assert (out == 2 * NUMBERS).all()
    assert not execute.supports_language(device, Language.CUDA)
    mangled = ADD.replace('extern "C" ', "").replace(" add(", " _Z3addPfiPKfix(")  # as clang has it
    execute.run_source(device, mangled, Language.HIP, "add", [out, x, np.int64(N)], N, 1)
    assert (out == 3 * NUMBERS).all()


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
        execute.run_source(device, ADD, Language.HIP, name, given, N, 1)
        execute.window.flush()

    with pytest.raises(error, match=words):
        run()
    assert (out == 0).all()


def test_page_locked_memory(library: Library, device: Device) -> None:
    """Vectors on it are used as all others; it goes with the last array of it."""
    x = sarek.vector(NUMBERS, pinned=device)
    out = sarek.zeros(N, np.float32)
    launch(device, out, x)
    assert (out == NUMBERS).all()
    assert x.pinned == "hip:fake"
    assert len(library.fake.host) == 1
    del x
    gc.collect()
    assert not library.fake.host


def test_memory_is_used_again(library: Library, device: Device) -> None:
    """What a vector gives up the next one takes; none is given back while work may use it."""
    for _ in range(20):
        out, x = pair()
        launch(device, out, x)
        del out, x
    gc.collect()
    device.synchronize()
    assert library.calls.count("hipMalloc") < 50
    assert device.memory_statistics().in_use == 0
    device.free_cached()
    assert not library.fake.memory


def test_addresses_beyond_32_bits_pass(api: driver.Api, library: Library) -> None:
    """Pointers are given whole, as the declared types have it."""
    address = api.allocate(256)
    assert address == next(iter(library.fake.memory))
    assert address > 2**32
    assert ctypes.sizeof(driver.RUNTIME_CALLS["hipFree"][0]) == 8
    api.free(address)
    assert library.fake.memory == {}
