"""Enumeration of devices and the choice of one."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from sarek_numba.errors import UnknownDevice
from sarek_numba.runtime import registry
from sarek_numba.runtime.device import BackendUnavailable
from sarek_numba.runtime.registry import Device, device, devices, use_device
from tests.unit import fake_backend
from tests.unit.fake_backend import FakeDriver, fake_device, record

__all__ = ["fake_device"]


class _Entry:
    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self.value = value


class _Backend:
    def __init__(self, found: Any) -> None:
        self.found = found
        self.asked = 0

    def drivers(self) -> Any:
        self.asked += 1
        if isinstance(self.found, Exception):
            raise self.found
        return [FakeDriver(record(name)) for name in self.found]


@pytest.fixture
def backends(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Five backends: one with two devices, one without its package, one that breaks, a stranger."""
    found = {
        "opencl": _Backend(["opencl:one:0", "opencl:two:0"]),
        "cuda": _Backend(BackendUnavailable("no driver is installed")),
        "vulkan": _Backend(RuntimeError("broken")),
        "native": _Backend(["native"]),
        "stranger": _Backend(["stranger:0"]),
    }
    for name, made in found.items():
        monkeypatch.setattr(fake_backend, name, made, raising=False)
    entries = [_Entry(name, f"{fake_backend.__name__}:{name}") for name in found]
    entries.append(_Entry("hip", "no_such_package"))
    monkeypatch.setattr(registry, "FIRST_PARTY", {})
    monkeypatch.setattr(registry, "entry_points", lambda group: entries)
    monkeypatch.delenv("SAREK_DEVICE", raising=False)
    monkeypatch.delenv("SAREK_DISABLE", raising=False)
    registry.forget_backends()
    yield found
    registry.forget_backends()


def _names(found: Any) -> list[str]:
    return [d.name for d in found]


def test_order_is_fixed_whatever_the_order_of_entry_points(backends: Any) -> None:
    """CUDA, HIP, OpenCL, Vulkan, Metal, native, interpreter, then third parties."""
    assert _names(devices()) == ["opencl:one:0", "opencl:two:0", "native", "stranger:0"]


def test_backends_are_asked_once_and_devices_are_unique(backends: Any) -> None:
    """Enumeration after the first is a look-up, and gives the same objects."""
    assert devices() == devices()
    assert device("native") is devices()[2]
    assert backends["opencl"].asked == 1


def test_every_backend_has_a_line_with_its_reason(backends: Any) -> None:
    """devices(why=True) tells why a backend has no device."""
    assert [(n, d and d.name, reason) for n, d, reason in devices(why=True)] == [
        ("cuda", None, "no driver is installed"),
        ("hip", None, "ModuleNotFoundError: No module named 'no_such_package'"),
        ("opencl:one:0", "opencl:one:0", "the device opencl:one:0"),
        ("opencl:two:0", "opencl:two:0", "the device opencl:two:0"),
        ("vulkan", None, "RuntimeError: broken"),
        ("native", "native", "the device native"),
        ("stranger:0", "stranger:0", "the device stranger:0"),
    ]


def test_table_shows_itself(backends: Any) -> None:
    """In a terminal as a table, in a notebook as HTML."""
    table: Any = devices(why=True)
    assert "no driver is installed" in repr(table)
    assert "<td>vulkan</td><td>no</td><td>RuntimeError: broken</td>" in table._repr_html_()


def test_disabled_backends_are_absent_and_not_asked(
    backends: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SAREK_DISABLE is read at each call."""
    monkeypatch.setenv("SAREK_DISABLE", "OpenCL, cuda")
    assert _names(devices()) == ["native", "stranger:0"]
    assert backends["opencl"].asked == 0
    with pytest.raises(UnknownDevice) as error:
        device("opencl:one:0")
    assert str(error.value) == (
        "no device is named 'opencl:one:0'; present are native, stranger:0\n"
        "  note: opencl: disabled by SAREK_DISABLE"
    )
    monkeypatch.delenv("SAREK_DISABLE")
    assert device("opencl:one:0").name == "opencl:one:0"


def test_names_may_stop_at_a_colon(backends: Any) -> None:
    """A backend's name is its first device; part of a word is nothing."""
    assert device("opencl").name == "opencl:one:0"
    assert device("OpenCL:two").name == "opencl:two:0"
    assert device("stranger").name == "stranger:0"
    with pytest.raises(UnknownDevice):
        device("opencl:tw")


def test_predicate_and_best(backends: Any) -> None:
    """best is the first of devices(); a predicate chooses the first that it accepts."""
    assert device("best").name == "opencl:one:0"
    assert device(lambda d: d.name.endswith("o:0")).name == "opencl:two:0"
    assert device(device("native")) is device("native")
    with pytest.raises(UnknownDevice) as error:
        device(lambda d: False)
    assert str(error.value) == (
        "no device satisfies the predicate; present are "
        "opencl:one:0, opencl:two:0, native, stranger:0"
    )


def test_unknown_name_lists_the_devices_and_a_near_miss(backends: Any) -> None:
    """The text names what there is."""
    with pytest.raises(UnknownDevice) as error:
        device("opencl:on:0")
    assert str(error.value) == (
        "no device is named 'opencl:on:0'; present are "
        "opencl:one:0, opencl:two:0, native, stranger:0\n"
        "  hint: did you mean 'opencl:one:0'?"
    )
    with pytest.raises(LookupError):
        device("tpu")


def test_absent_backend_is_named_with_its_reason(backends: Any) -> None:
    """Asking for cuda where its driver is missing says so."""
    with pytest.raises(UnknownDevice, match="note: cuda: no driver is installed"):
        device("cuda:0")


def test_default_is_use_device_then_the_environment_then_native(
    backends: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each beats the next."""
    assert device().name == "native"
    monkeypatch.setenv("SAREK_DEVICE", "stranger")
    assert device().name == "stranger:0"
    with use_device("opencl:two:0"):
        assert device().name == "opencl:two:0"
        with use_device("native"):
            assert device().name == "native"
        assert device().name == "opencl:two:0"
    assert device().name == "stranger:0"


def test_unknown_device_in_the_environment_says_where_it_came_from(
    backends: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text names the variable."""
    monkeypatch.setenv("SAREK_DEVICE", "gpu")
    with pytest.raises(UnknownDevice, match=r"^SAREK_DEVICE: no device is named .gpu."):
        device()


def test_use_device_belongs_to_its_thread(backends: Any) -> None:
    """Another thread keeps the default."""
    from threading import Thread

    seen = []
    with use_device("stranger"):
        thread = Thread(target=lambda: seen.append(device().name))
        thread.start()
        thread.join()
    assert seen == ["native"]


def test_use_device_is_undone_when_its_block_fails(backends: Any) -> None:
    """And an unknown name enters nothing."""
    with pytest.raises(RuntimeError), use_device("stranger"):
        raise RuntimeError
    with pytest.raises(UnknownDevice), use_device("gpu"):
        pass
    assert device().name == "native"


def test_device_tells_what_it_supports(fake_device: Device) -> None:
    """By words or by types; unknown is not supported."""
    assert fake_device.supports("arithmetic", "float32")
    assert not fake_device.supports("arithmetic", "float64")
    assert fake_device.supports("atomic", "int32", "add", "global")
    assert not fake_device.supports("atomic", "int32", "max", "global")
    assert fake_device.supports("barrier")
    with pytest.raises(ValueError, match="float31"):
        fake_device.supports("arithmetic", "float31")


def test_device_shows_its_name_and_description(fake_device: Device) -> None:
    """The repr is what a notebook shows."""
    assert repr(fake_device) == "<sarek device fake:0: the device fake:0>"


def test_importing_the_package_opens_and_loads_nothing() -> None:
    """No backend, no Numba, no display library."""
    code = (
        "import sys, sarek_numba; "
        "loaded = {'numba', 'rich', 'click', 'pyopencl', 'sarek_opencl'} & set(sys.modules); "
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
