"""What compilers of devices made, kept on disk: found for the same device and text alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.execute import Language, clear_launch_cache, run_source, supports_language
from sarek_numba.runtime import disk
from sarek_numba.runtime.cache import counters
from sarek_opencl import driver as opencl_driver

# Vulkan's modules are this project's own, and its pipelines are in the driver's cache
WITHOUT = ("interpreter", "vulkan")
DEVICES = [device.name for device in sarek.devices() if device.record.backend not in WITHOUT]
OPENCL = [name for name in DEVICES if name.startswith("opencl")]
on_devices = pytest.mark.parametrize("name", DEVICES)


@sarek.kernel
def squares(out, x):
    i = sarek.grid(1)
    if i < len(out):
        out[i] = x[i] * x[i] + 1


def _compiles(name: str, grid: int = 1, block: Any = 64) -> int:
    """Launch as a process that has compiled nothing; how many programs were compiled."""
    clear_launch_cache()
    getattr(sarek.device(name).driver, "_programs", {}).clear()
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    before = counters.compiles
    squares.launch(out, x, grid=grid, block=block, device=name)
    assert out.tolist() == [1, 2, 5, 10]
    return counters.compiles - before


def _entries(folder: Path) -> list[str]:
    return sorted(entry.path.name for entry in disk.entries(folder) if entry.kind in disk.CODE)


@on_devices
def test_code_is_compiled_once(disk_cache: Path, name: str) -> None:
    """And found again with the cache on, by each device for itself."""
    assert [_compiles(name) for _ in range(3)] == [1, 0, 0]
    assert len(_entries(disk_cache)) == 1


@on_devices
def test_without_a_cache_it_is_compiled_again(
    disk_cache: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The control: a launch here is really as one of a new process."""
    monkeypatch.setenv("SAREK_CACHE", "0")
    assert [_compiles(name) for _ in range(2)] == [1, 1]


def _fake_driver(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    if name.startswith("opencl"):
        identity = opencl_driver.identity_of

        def faked(device: Any) -> Any:
            return (*identity(device)[:-1], ("driver", "a later one"))

        monkeypatch.setattr(opencl_driver, "identity_of", faked)
    else:
        compiler = sarek.device(name).driver.compiler
        faked_identity = (("llvmlite", "a later one"), *compiler.identity[1:])
        monkeypatch.setattr(compiler, "identity", faked_identity)


CHANGES: dict[str, Callable[[pytest.MonkeyPatch, str], None]] = {
    "the driver's version": _fake_driver,
    "this package": lambda patch, _: patch.setattr(disk, "own_package", lambda: "a later one"),
}


@on_devices
@pytest.mark.parametrize("change", CHANGES)
def test_versions_are_part_of_the_key(
    disk_cache: Path, monkeypatch: pytest.MonkeyPatch, name: str, change: str
) -> None:
    """Of the compiler, and of this package."""
    assert _compiles(name) == 1
    CHANGES[change](monkeypatch, name)
    assert _compiles(name) == 1
    assert _compiles(name) == 0
    assert len(_entries(disk_cache)) == 2


@pytest.mark.parametrize("name", OPENCL)
def test_options_and_text_are_part_of_the_key(
    disk_cache: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Of a program, whoever made it."""
    driver = sarek.device(name).driver
    text = "kernel void k(global int *x) { x[0] = 1; }"

    def build(source: str, options: tuple[str, ...]) -> tuple[int, int]:
        before = counters.disk_hits, counters.disk_misses
        opencl_driver.compile_program(driver.context, driver.device, source, options)
        return counters.disk_hits - before[0], counters.disk_misses - before[1]

    assert build(text, ()) == (0, 1)
    assert build(text, ("-DX",)) == (0, 1)
    assert build(text + "\n", ()) == (0, 1)
    assert build(text, ()) == (1, 0)


def test_devices_share_nothing(disk_cache: Path) -> None:
    """Case 80: each compiles for itself."""
    assert [_compiles(name) for name in DEVICES] == [1] * len(DEVICES)
    assert len(_entries(disk_cache)) == len(DEVICES)


def test_block_shapes_of_native_code_are_kept(disk_cache: Path) -> None:
    """Each class of block shapes has code of its own."""
    _compiles("native")
    _compiles("native", block=(4, 2))
    several = _entries(disk_cache)
    before = counters.disk_misses
    _compiles("native", block=(4, 2))
    assert _entries(disk_cache) == several
    assert len(several) == 2
    assert counters.disk_misses == before


@pytest.mark.parametrize("name", OPENCL)
def test_a_binary_that_the_driver_refuses(disk_cache: Path, name: str) -> None:
    """It is dropped and compiled anew."""
    _compiles(name)
    [key] = _entries(disk_cache)
    good = disk.load("opencl", key)
    assert good is not None
    disk.save("opencl", key, b"no program of this driver")
    assert disk.load("opencl", key) == b"no program of this driver"
    _compiles(name)
    again = disk.load("opencl", key)
    assert again is not None
    assert again != b"no program of this driver"


@pytest.mark.parametrize("name", OPENCL)
def test_programs_of_others_are_kept(disk_cache: Path, name: str) -> None:
    """`run_source` compiles through the same cache, and its refusals are not kept."""
    device = sarek.device(name)
    assert supports_language(device, Language.OPENCL)
    out = np.zeros(4, np.int32)
    source = "kernel void k(global int *x, int n) { x[get_global_id(0)] = n; }"
    run_source(device, source, Language.OPENCL, "k", [out], block=4, grid=1)
    assert out.tolist() == [4] * 4
    assert len(_entries(disk_cache)) == 1
    for _ in range(2):
        with pytest.raises(sarek.SourceCompilationError):
            run_source(device, "kernel nothing", Language.OPENCL, "k", [out], block=4, grid=1)
    assert len(_entries(disk_cache)) == 1
