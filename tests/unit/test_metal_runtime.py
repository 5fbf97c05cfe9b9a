"""The runtime of Metal against a fake of the framework, which keeps PyObjC's names and rules."""

from __future__ import annotations

import gc
import linecache
from dataclasses import replace

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_metal import driver, record, runtime
from sarek_metal.dialect import BUFFERS, DIALECT
from sarek_metal.memory import PAGE, Held, Layout
from sarek_metal.runtime import MetalBackend
from sarek_numba import execute
from sarek_numba.capability import Capability
from sarek_numba.errors import (
    CapabilityError,
    DeviceLost,
    InvalidArgument,
    InvalidDimensions,
    LaunchFailed,
    OutOfMemory,
    SourceCompilationError,
)
from sarek_numba.execute import Language
from sarek_numba.ir.types import Scalar
from sarek_numba.runtime import registry
from sarek_numba.runtime.device import BackendUnavailable
from sarek_numba.runtime.registry import Device
from sarek_numba.verify.numerics import self_test
from tests.fake_metal import FakeDevice, FakeError, FakeMetal, Options, framework
from tests.toolchains import shim

pytestmark = pytest.mark.skipif(bool(shim.why_not()), reason=shim.why_not() or "present")


@pytest.fixture
def fake():
    """A framework with one device; `fake.device` is that of launches."""
    made = FakeMetal()
    driver.use(framework(made))
    yield made
    driver.use(None)
    execute.clear_launch_cache()


@pytest.fixture
def device(fake):
    """The device as users hold it, and as launches find it."""
    return Device(MetalBackend().drivers()[0])


@sarek.kernel
def add(x, n):
    i = sarek.global_idx.x
    if i < len(x):
        x[i] += n


@sarek.kernel
def scale(x, n):
    i = sarek.global_idx.x
    if i < len(x):
        x[i] = x[i] * n + 1


def numbers(count: int = 40) -> np.ndarray:
    return np.arange(count, dtype=np.int32)


def raw(device: Device) -> FakeDevice:
    return device.driver.access.device


# --- finding it -----------------------------------------------------------------------------------


def test_other_systems_have_no_metal():
    """The reason names the system; on macOS it names the package."""
    with pytest.raises(BackendUnavailable, match="only on macOS, and this system is linux"):
        driver._load("linux")
    with pytest.raises(BackendUnavailable, match="pip install pyobjc-framework-Metal"):
        driver._load("darwin")


def test_a_system_without_devices():
    """As in a virtual machine."""
    driver.use(framework(FakeMetal(devices=0)))
    try:
        with pytest.raises(BackendUnavailable, match="there is no Metal device"):
            MetalBackend().drivers()
    finally:
        driver.use(None)


def test_the_default_device_is_the_first():
    """Whatever the order of the others."""
    driver.use(framework(FakeMetal(devices=3)))
    try:
        found = MetalBackend().drivers()
        assert [one.record.name for one in found] == ["metal:0", "metal:1", "metal:2"]
        assert [one.access.device.number for one in found] == [0, 2, 1]
    finally:
        driver.use(None)


def test_the_backend_is_found_by_name(fake):
    """By the entry point or the table of first parties."""
    registry.forget_backends()
    try:
        assert sarek.device("metal").name == "metal:0"
        assert "Fake 0" in sarek.device("metal").record.description
    finally:
        driver.use(None)
        registry.forget_backends()


# --- what a kernel is given -----------------------------------------------------------------------


def test_numbers_are_laid_out_as_in_c(device):
    """Each at a multiple of its size, the whole at one of the widest."""

    @sarek.kernel
    def many(x, y, a, b, c, d, e):
        x[0] = a + b + c + e
        y[0] = d

    arrays = np.zeros(1, np.int64), np.zeros(1, np.float32)
    given = np.int8(1), np.int64(2), np.int16(3), np.float32(4), np.int8(5)
    program = device.driver.prepare(many.ir(*arrays, *given))
    numbers = [k for k, param in enumerate(program.params) if isinstance(param.var.type, Scalar)]
    types = [program.params[k].var.type.value for k in numbers]
    assert sorted(types) == ["float32", "int16", "int64", "int8", "int8"]
    values = [0] * len(program.params)
    for number, k in enumerate(numbers, 1):
        values[k] = number
    packed = Layout(program.params).pack(values)
    expected = np.dtype([(f"n{k}", type) for k, type in enumerate(types)], align=True)
    assert len(packed) == expected.itemsize
    assert list(np.frombuffer(packed, expected)[0]) == [1, 2, 3, 4, 5]


def test_numpy_arrays_and_vectors(device):
    """Both are worked on where they lie; nothing is copied."""
    x, v = numbers(), sarek.vector(numbers())
    with sarek.use_device(device):
        add[2, 32](x, 3)
        for _ in range(5):
            add[2, 32](v, 3)
    assert np.array_equal(x, numbers() + 3)
    assert (v == numbers() + 15).all()
    assert raw(device).calls["pages"] == 2
    assert raw(device).calls["buffer"] == 0


def test_pages_that_cannot_be_buffers_are_copied(device):
    """Memory that begins at an odd place, or in pages that Metal refuses."""
    raw(device).copies = True
    x, v = numbers(), sarek.vector(numbers())
    with sarek.use_device(device):
        add[2, 32](x, 3)
        add[2, 32](v, 4)
    assert np.array_equal(x, numbers() + 3)
    assert (v == numbers() + 4).all()
    assert raw(device).calls["buffer"] == 2
    raw(device).copies = False
    odd = np.frombuffer(bytearray(PAGE), np.uint8)[4:8].view(np.int32)
    held = device.driver.memory.hold(odd.view(np.uint8))
    assert isinstance(held, Held)
    assert (held.copy is None) == (odd.ctypes.data % 16 == 0)


def test_dynamic_shared_memory(device):
    """Its bytes are rounded up to what Metal takes; the fake refuses others."""

    @sarek.kernel
    def reverse(x):
        tile = sarek.shared.array(0, sarek.int32)
        t = sarek.thread_idx.x
        tile[t] = x[t]
        sarek.barrier()
        x[t] = tile[sarek.block_dim.x - 1 - t]

    x = numbers(5)
    with sarek.use_device(device):
        reverse[1, 5, None, 20](x)
    assert x.tolist() == [4, 3, 2, 1, 0]


def test_more_numbers_than_bytes_of_arguments(device):
    """A structure beyond 4 KiB is a buffer."""
    count = 1100
    names = [f"n{k}" for k in range(count)]
    total = " + ".join(names)
    file, scope = "<many numbers>", {"sarek": sarek}
    code = f"def many(x, {', '.join(names)}):\n    x[0] = {total}\n"
    linecache.cache[file] = (len(code), None, code.splitlines(True), file)
    exec(compile(code, file, "exec"), scope)
    x = np.zeros(1, np.int64)
    with sarek.use_device(device):
        sarek.kernel(scope["many"])[1, 1](x, *range(count))
    assert x[0] == sum(range(count))


def test_more_arrays_than_places(device):
    """Refused by name, before anything moves."""
    names = [f"a{k}" for k in range(BUFFERS)]
    code = f"def many({', '.join(names)}):\n" + "".join(f"    {n}[0] = {n}[1] + 1\n" for n in names)
    linecache.cache["<many arrays>"] = (len(code), None, code.splitlines(True), "<many arrays>")
    scope = {"sarek": sarek}
    exec(compile(code, "<many arrays>", "exec"), scope)
    kernel = sarek.kernel(scope["many"])
    with sarek.use_device(device):
        arrays = [numbers(2) for _ in names]
        kernel[1, 1](*arrays)  # wraparound is known: no lengths, so all places are for buffers
        assert all(a.tolist() == [2, 1] for a in arrays)
    more = code.replace("def many(", "def many(more, ").replace("a0[0] =", "more[0] = a0[0] =")
    linecache.cache["<more>"] = (len(more), None, more.splitlines(True), "<more>")
    exec(compile(more, "<more>", "exec"), scope)
    with sarek.use_device(device), pytest.raises(InvalidArgument, match=r"32 buffers.*31 places"):
        sarek.kernel(scope["many"])[1, 1](numbers(2), *arrays)


# --- numbers --------------------------------------------------------------------------------------


def test_what_is_not_known_is_refused_until_it_is_measured(device):
    """Sums of floats stand on a rounding that the specification leaves open."""
    x = np.ones(4, np.float32)
    with sarek.use_device(device):
        with pytest.raises(CapabilityError, match=r"float32 rounding.*not known to have") as error:
            scale[1, 4](x, np.float32(3))
        assert "sarek doctor measures it" in str(error.value)
        assert x.tolist() == [1, 1, 1, 1]
        self_test(device)
        scale[1, 4](x, np.float32(3))
    assert x.tolist() == [4, 4, 4, 4]


def test_what_is_measured_inexact_is_emulated(device, monkeypatch):
    """The native root is measured, not the emulated one; then kernels get the emulated one."""

    @sarek.kernel
    def root(x):
        i = sarek.global_idx.x
        x[i] = np.sqrt(x[i])

    rough = {**DIALECT.functions, ("sqrt", Scalar.FLOAT32): "(precise::sqrt({0}) * 1.0000001f)"}
    monkeypatch.setattr(runtime, "DIALECT", replace(DIALECT, functions=rough))
    x = np.random.default_rng(3).random(256, np.float32)
    with sarek.use_device(device):
        measured = self_test(device).measured
        assert measured[Capability("square_root", Scalar.FLOAT32)].wrong
        assert not measured[Capability("division", Scalar.FLOAT32)].wrong
        assert "sqrt_float32(" in device.driver.source(root.ir(x))
        y = x.copy()
        root[4, 64](y)
    assert np.array_equal(y, np.sqrt(x))


def test_options_keep_results(fake, device):
    """Before macOS 15 by fastMathEnabled, later by the mode; fast ones never."""
    for has_mode in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Options, "has_math_mode", has_mode)
            made = driver.options(driver.load())
            assert not made.fast
            assert made.precise
            abilities = record.abilities_of(driver.load(), raw(device))
            assert abilities.has_scoped_fences == has_mode


# --- refusals and failures ------------------------------------------------------------------------


def test_blocks_beyond_the_kernel(device):
    """A kernel with many registers takes fewer threads: named with its limit."""
    raw(device).most_threads = 64
    x = numbers(128)
    with sarek.use_device(device), pytest.raises(InvalidDimensions, match="at most 64 threads"):
        add[1, 128](x, 1)
    assert np.array_equal(x, numbers(128))


def test_a_kernel_that_fails(device):
    """An error of its command buffer is a LaunchFailed with what it means; the device lives on."""
    raw(device).fail("kernel", FakeError(3, "Caused GPU Address Fault Error"))
    x = numbers()
    with sarek.use_device(device):
        with pytest.raises(LaunchFailed, match="no memory of the kernel"):
            add[2, 32](x, 1)
        add[2, 32](x, 1)
    assert np.array_equal(x, numbers() + 1)


def test_a_device_that_is_lost(device):
    """From then on every launch says so."""
    raw(device).fail("kernel", FakeError(11, "The device was removed"))
    with sarek.use_device(device):
        for _ in range(2):
            with pytest.raises(DeviceLost, match="metal:0 was lost"):
                add[2, 32](numbers(), 1)
    assert raw(device).calls["kernel"] == 1


def test_no_memory(device):
    """Bytes asked and available; then the device is usable again."""
    raw(device).copies = True
    raw(device).size = 1000
    x = numbers(1000)
    with sarek.use_device(device):
        with pytest.raises(OutOfMemory) as error:
            add[32, 32](x, 1)
        assert (error.value.asked, error.value.available) == (4000, 1000)
        raw(device).size, device.driver.memory._most = 1 << 20, 1 << 20
        add[32, 32](x, 1)
    assert np.array_equal(x, numbers(1000) + 1)
    gc.collect()
    assert raw(device).allocated == 0


def test_a_pipeline_that_is_refused(device):
    """What the driver's own compiler says is the log."""
    raw(device).fail("pipeline")
    with (
        sarek.use_device(device),
        pytest.raises(SourceCompilationError, match="makes no code") as error,
    ):
        add[1, 32](numbers(), 1)
    assert error.value.log == "no registers"
    assert "sarek_kernel" in error.value.source


def test_work_behind_a_failure_goes_on(device):
    """A queue that follows failed work of another is let go."""
    first, second = device.stream(), device.stream()
    x, y = sarek.vector(numbers()), sarek.vector(numbers())
    raw(device).fail("kernel", FakeError(2, "timeout"))
    add.launch(x, 1, grid=2, block=32, device=device, stream=first)
    event = first.record()
    second.wait(event)
    add.launch(y, 1, grid=2, block=32, device=device, stream=second)
    with pytest.raises(LaunchFailed, match="ran for too long"):
        first.synchronize()
    second.synchronize()
    assert (y == numbers() + 1).all()


# --- texts of others ------------------------------------------------------------------------------

SOURCE = """
#include <metal_stdlib>
using namespace metal;

kernel void scale(device float *x [[buffer(0)]], constant int &n [[buffer(1)]],
                  constant float &factor [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i < uint(n)) x[i] *= factor;
}
"""


def test_sources_in_metal(device):
    """Arrays with their lengths and numbers, by their places."""
    x = np.arange(10, dtype=np.float32)
    execute.run_source(device, SOURCE, Language.METAL, "scale", [x, 2.0], block=16, grid=1)
    assert np.array_equal(x, 2 * np.arange(10, dtype=np.float32))


def test_sources_that_are_wrong(device):
    """The log is shown; a kernel that is not there is named with those that are."""
    x = np.arange(10, dtype=np.float32)
    wrong = SOURCE.replace("factor;", "factr;")
    with pytest.raises(SourceCompilationError, match="rejects the program") as error:
        execute.run_source(device, wrong, Language.METAL, "scale", [x, 2.0], block=16, grid=1)
    assert "factr" in error.value.log
    with pytest.raises(InvalidArgument, match="no kernel 'gone'\n  hint: it has scale"):
        execute.run_source(device, SOURCE, Language.METAL, "gone", [x, 2.0], block=16, grid=1)
