"""The Vulkan library: what is found and why not, structures, results, lost devices."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sarek_numba as sarek
import sarek_vulkan
from sarek_numba.errors import (
    BackendError,
    DeviceLost,
    InvalidDimensions,
    LaunchFailed,
    OutOfMemory,
    SourceCompilationError,
)
from sarek_numba.ir.types import Scalar
from sarek_numba.runtime.device import BackendUnavailable
from sarek_numba.runtime.registry import Device
from sarek_vulkan import driver, features, foreign, record
from sarek_vulkan.physical import KINDS
from sarek_vulkan.runtime import VulkanDriver, usable
from tests.unit.vulkan_kit import devices, driver_of, on_vulkan

SOURCES = sorted(Path(sarek_vulkan.__file__).parent.glob("*.py"))
needs_device = pytest.mark.skipif(not devices(), reason="there is no Vulkan device")


@sarek.kernel
def scale(x, a):
    i = sarek.global_idx.x
    if i < len(x):
        x[i] *= a


@sarek.kernel
def through_shared(out, n):
    tile = sarek.shared.dynamic(0, sarek.float32)
    t = sarek.thread_idx.x
    tile[t] = t
    sarek.barrier()
    out[t] = tile[n - 1 - t]


# --- what is found --------------------------------------------------------------------------------


def outcome(code: str = "", **environment: str) -> str:
    """What a process says that asks for the devices after some code."""
    program = f"{code}\nfrom sarek_vulkan.runtime import backend\n" + (
        "try:\n    print([d.record.name for d in backend.drivers()])\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_without_the_package():
    """What to install is said."""
    said = outcome("import sys; sys.modules['vulkan'] = None")
    assert said.startswith("BackendUnavailable the package vulkan cannot be imported")
    assert "pip install 'sarek-numba[vulkan]'" in said


def test_with_half_a_package(tmp_path):
    """A folder of that name is no package, and one that fails otherwise is none either."""
    (tmp_path / "vulkan").mkdir()
    said = outcome(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nsys.modules.pop('vulkan', 0)"
    )
    (tmp_path / "vulkan" / "__init__.py").write_text("")
    said = outcome(f"import sys; sys.path.insert(0, {str(tmp_path)!r})")
    assert "is not whole; pip install --force-reinstall vulkan" in said
    (tmp_path / "vulkan" / "__init__.py").write_text("raise AttributeError('x')")
    said = outcome(f"import sys; sys.path.insert(0, {str(tmp_path)!r})")
    assert "cannot be imported (x); pip install" in said


def test_without_a_loader(tmp_path):
    """The package is there, and the loader's library is not."""
    (tmp_path / "vulkan.py").write_text("raise OSError('Cannot find Vulkan SDK version')")
    said = outcome(f"import sys; sys.path.insert(0, {str(tmp_path)!r})")
    assert "BackendUnavailable the Vulkan loader cannot be loaded (Cannot find" in said
    assert "apt-get install libvulkan1" in said


@needs_device
def test_without_a_driver():
    """The loader is there, and finds none."""
    nowhere = {"VK_ICD_FILENAMES": os.devnull, "VK_DRIVER_FILES": os.devnull}
    said = outcome(**nowhere)
    assert said.startswith("BackendUnavailable")
    assert "apt-get install mesa-vulkan-drivers" in said


@needs_device
def test_devices_are_told_apart_and_put_in_order():
    """One device behind two drivers is one; GPUs come first; what cannot be used has a reason."""
    found = driver_of(next(iter(devices().values()))).physical
    found = replace(found, kind=4)  # a CPU, whatever it is
    gpu = replace(found, kind=2, uuid=b"another", name="gpu")
    twin = replace(found, name="twin")
    old = replace(found, version=1 << 22 | 1 << 12, name="old")
    bare = replace(found, features=frozenset(), name="bare")
    idle = replace(found, family=None, name="idle")
    kept, reasons = usable([found, twin, old, gpu, bare, idle])
    assert [each.name for each in kept] == ["gpu", found.name]
    assert reasons == [
        "old: it has Vulkan 1.1.0, and 1.2 is needed",
        "bare: it lacks VkPhysicalDeviceVulkan12Features.bufferDeviceAddress, "
        "VkPhysicalDeviceVulkan12Features.timelineSemaphore",
        "idle: none of its queues computes",
    ]
    assert len(KINDS) == 5


@on_vulkan
def test_what_is_advertised_is_enabled(device):
    """Every capability of SPIR-V that a device has comes of a feature, all of which are enabled."""
    physical = driver_of(device).physical
    of_features = {c for f in physical.features for c in f.capabilities}
    others = {"Shader", *features.SUBGROUP_OPERATIONS.values(), *features.FLOAT_CONTROLS.values()}
    assert physical.capabilities <= of_features | others
    assert all(feature in physical.features for feature in features.REQUIRED)


# --- tables ---------------------------------------------------------------------------------------


@needs_device
def test_every_structure_has_a_type():
    """Names of structures in the sources are Vulkan's, with a type or without."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    made = set(re.findall(r'make\(\s*"(\w+)"', text)) | set(features.STRUCTURES)
    plain = set(re.findall(r'plain\(\s*"(\w+)"', text))
    assert len(made) > 30
    for name in made:
        assert driver.make(name).sType == driver._structure_type(name)
    for name in plain:
        driver.plain(name)
    for feature in features.ALL:
        driver.ffi.new(f"{feature.structure} *").__getattribute__(feature.field)


def test_capabilities_are_known_by_number():
    """What features allow can be found in a module of others."""
    known = set(foreign.CAPABILITIES.values())
    allowed = {c for f in features.ALL for c in f.capabilities}
    allowed |= set(features.FLOAT_CONTROLS.values()) | set(features.SUBGROUP_OPERATIONS.values())
    assert allowed <= known


def test_facts_are_total():
    """Every scalar in memory and in arithmetic has a row; float16 is in memory alone."""
    assert set(record.STORAGE) - {Scalar.FLOAT16} == set(record.ARITHMETIC)
    assert {"bool", "int8", "int64", "float32", "float64"} <= {s.value for s in record.STORAGE}


# --- results --------------------------------------------------------------------------------------


def test_results_are_errors():
    """Each failure is an error of this package; newer results go by their number."""
    driver.check(0, "a launch", "gpu")
    driver.check(5, "a launch", "gpu")
    with pytest.raises(OutOfMemory, match="OUT_OF_DEVICE_MEMORY") as caught:
        driver.check(-2, "allocating", "gpu", 10, 7)
    assert (caught.value.asked, caught.value.available) == (10, 7)
    with pytest.raises(DeviceLost, match="a launch on gpu failed: VK_ERROR_DEVICE_LOST"):
        driver.check(-4, "a launch", "gpu")
    with pytest.raises(LaunchFailed, match="VkResult -1000999000"):
        driver.check(-1000999000, "a launch", "gpu")
    with pytest.raises(BackendError, match="compiling on gpu failed: VK_ERROR_UNKNOWN"):
        driver.check(-13, "compiling", "gpu")


@on_vulkan
def test_a_lost_device_says_so(device):
    """The launch that loses it is named; later ones are refused; other devices go on."""
    own = VulkanDriver(driver_of(device).physical, "vulkan:lost")
    lost = Device(own)
    x = sarek.ones(8, np.float32)
    scale.launch(x, np.float32(2), grid=1, block=8, device=lost)
    assert (x == 2).all()
    own.logical.call.vkQueueSubmit = lambda *_: -4
    scale.launch(x, np.float32(2), grid=1, block=8, device=lost)
    with pytest.raises(DeviceLost, match="a launch of 'scale' on vulkan:lost failed: VK_ERROR_DEV"):
        lost.synchronize()
    with pytest.raises(DeviceLost, match="was lost before and does not come back"):
        scale.launch(np.ones(8, np.float32), np.float32(2), grid=1, block=8, device=lost)
    y = np.ones(8, np.float32)
    scale.launch(y, np.float32(3), grid=1, block=8, device=device)
    assert (y == 3).all()


def submitted(device: Device, x: sarek.Vector) -> None:
    """A launch, out of the window too."""
    scale.launch(x, np.float32(2), grid=1, block=8, device=device)
    device.synchronize()


@on_vulkan
def test_a_submission_that_fails_is_told_once(device):
    """Nobody waits for ever for what the driver refused, and the device goes on."""
    own = VulkanDriver(driver_of(device).physical, "vulkan:failing")
    failing = Device(own)
    x = sarek.ones(8, np.float32)
    scale.launch(x, np.float32(2), grid=1, block=8, device=failing)
    failing.synchronize()
    real = own.logical.call.vkQueueSubmit
    own.logical.call.vkQueueSubmit = lambda *_: -13
    with pytest.raises(LaunchFailed, match=r"a launch of 'scale' on .* VK_ERROR_UNKNOWN"):
        submitted(failing, x)
    own.logical.call.vkQueueSubmit = real
    y = np.ones(8, np.float32)
    scale.launch(y, np.float32(2), grid=1, block=8, device=failing)
    assert (y == 2).all()


@sarek.kernel
def reversed_locally(out, n):
    own = sarek.local.array(40, sarek.float64)
    for k in range(n):
        own[k] = k
    out[sarek.global_idx.x] = own[n - 1 - sarek.global_idx.x]


@on_vulkan
@pytest.mark.parametrize("kernel", [scale, reversed_locally], ids=lambda k: k.__name__)
def test_a_pipeline_that_the_driver_does_not_make(device, kernel):
    """It names the kernel, what the driver says, and local arrays, of which no limit is known."""
    own = VulkanDriver(driver_of(device).physical, "vulkan:failing")
    x = np.ones(8, np.float64)
    given = 8 if kernel is reversed_locally else 2.0
    own.logical.call.vkCreateComputePipelines = lambda *_: -13
    with pytest.raises(SourceCompilationError, match=r"(?s)no pipeline .*UNKNOWN") as raised:
        kernel.launch(x, given, grid=1, block=8, device=Device(own))
    assert f"kernel '{kernel.__name__}'" in str(raised.value)
    assert ("320 bytes of a thread" in str(raised.value)) is (kernel is reversed_locally)
    assert x.tolist() == [1] * 8


# --- limits ---------------------------------------------------------------------------------------


@on_vulkan
def test_more_shared_memory_than_there_is(device):
    """It is refused by name before there is a pipeline: some drivers make it and then are lost."""
    limit = device.limits.shared_bytes
    out = np.zeros(8, np.float32)
    through_shared.launch(out, 8, grid=1, block=8, shared_bytes=32, device=device)
    assert (out == np.arange(7, -1, -1)).all()
    with pytest.raises(InvalidDimensions, match="shared"):
        through_shared.launch(out, 8, grid=1, block=8, shared_bytes=limit + 8, device=device)
    program = next(p for p in driver_of(device)._programs.values() if p.module.dynamic_shared)
    with pytest.raises(InvalidDimensions, match="maxComputeSharedMemorySize"):
        program.pipeline((8, 1, 1), limit + 8)
    with pytest.raises(InvalidDimensions, match="maxComputeWorkGroupInvocations"):
        program.check((4096, 4096, 1))


@needs_device
def test_in_a_forked_process():
    """A device that a parent opened is refused there, with what to do."""
    code = """
import os, numpy as np, sarek_numba as sarek
from tests.unit.vulkan_kit import devices
from tests.unit.test_vulkan_driver import scale
device, x = next(iter(devices().values())), np.ones(8, np.float32)
scale.launch(x, np.float32(2), grid=1, block=8, device=device)
child = os.fork()
if not child:
    try:
        scale.launch(x, np.float32(2), grid=1, block=8, device=device)
    except sarek.DeviceLost as lost:
        os._exit(7 if "Vulkan drivers do not work in forked processes" in str(lost) else 1)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
scale.launch(x, np.float32(2), grid=1, block=8, device=device)
assert (x == 4).all()
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=120)


def test_unavailable_is_no_crash(monkeypatch):
    """An enumeration without devices raises what `devices(why=True)` shows."""
    from sarek_vulkan import runtime

    monkeypatch.setattr(runtime.driver, "physical_devices", list)
    with pytest.raises(BackendUnavailable, match="have no devices"):
        runtime._drivers.__wrapped__()
