"""`sarek devices` and `sarek doctor`: what they show, in text and as JSON, and their exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sarek_interp.driver import InterpreterBackend
from sarek_numba.cli import main, parts
from sarek_numba.cli.doctor import diagnose, handling
from sarek_numba.cli.parts import PARTS, Part, Probe, found
from sarek_numba.execute import clear_launch_cache
from sarek_numba.ir.types import Scalar
from sarek_numba.runtime import promised, registry
from sarek_numba.runtime.device import BackendUnavailable
from tests.unit import tampering
from tests.unit.tampering import TamperedDriver, tampered


class _Wrong:
    name = "wrong"

    def drivers(self) -> Any:
        return (TamperedDriver(tampering.reciprocal_division),)


class _Absent:
    name = "absent"

    def drivers(self) -> Any:
        raise BackendUnavailable("its loader [libabsent.so] is not installed")


wrong, absent, interpreter = _Wrong(), _Absent(), InterpreterBackend()


def _backends(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    table = {name: f"{__name__}:{name}" for name in names}
    monkeypatch.setattr(registry, "FIRST_PARTY", table)
    monkeypatch.setattr(registry, "entry_points", lambda group: ())
    for variable in ("SAREK_DEVICE", "SAREK_DISABLE"):
        monkeypatch.delenv(variable, raising=False)
    registry.forget_backends()


@pytest.fixture(autouse=True)
def _afterwards() -> Iterator[None]:
    yield
    registry.forget_backends()
    promised.forget_declared()
    clear_launch_cache()


@pytest.fixture
def well(monkeypatch: pytest.MonkeyPatch, disk_cache: Any) -> None:
    """A backend that is absent, and the interpreter."""
    _backends(monkeypatch, "absent", "interpreter")


@pytest.fixture
def unwell(monkeypatch: pytest.MonkeyPatch, disk_cache: Any) -> None:
    """The interpreter, and a device that divides by the reciprocal."""
    _backends(monkeypatch, "wrong", "interpreter")


def _run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def _words(result: Result) -> str:
    """The words of each column of the tables, column by column: cells may go over several lines."""
    columns: dict[int, list[str]] = {}
    for line in result.output.splitlines():
        for place, cell in enumerate(line.split("│")):
            columns.setdefault(place, []).extend(cell.split())
    return " | ".join(" ".join(words) for words in columns.values())


# --- sarek doctor ---------------------------------------------------------------------------------


def test_doctor_of_a_machine_that_is_well(well: None) -> None:
    """Devices and what they were checked for, what is absent with the reason, exit code 0."""
    result = _run("doctor")
    assert result.exit_code == 0, result.output
    assert "5 of 5 give the same bits" in result.output
    assert "40 of 40 promises are kept" in result.output
    assert "its loader [libabsent.so] is not installed" in result.output


def test_doctor_finds_a_wrong_device(unwell: None) -> None:
    """Exit code 1, the kernel and the element, and what of its numbers is wrong."""
    result = _run("doctor")
    assert result.exit_code == 1
    text = _words(result)
    assert "float32: differs element" in text
    assert "4 of 5 give the same bits" not in text  # float64 is wrong as well
    assert "correctly rounded float32 division: refused; measured: " in text
    assert _run("doctor", "--device", "interpreter").exit_code == 0


def test_doctor_as_json(unwell: None) -> None:
    """The same as data."""
    result = _run("doctor", "--json")
    assert result.exit_code == 1
    data = json.loads(result.output)
    assert data["well"] is False
    good, bad = data["devices"]
    assert (bad["name"], bad["well"], good["well"]) == ("tampered:0", False, True)
    assert bad["kernels"]["float32"]["outcome"] == "differs"
    division = bad["broken"]["correctly rounded float32 division"]
    assert division["handling"] == "refused"
    assert good["broken"] == {}
    names = {one["part"] for one in data["parts"]}
    assert names == {part.name for part in PARTS}


def test_doctor_measures_once(well: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second run takes what the first one kept, unless it is asked to measure again."""
    assert _run("doctor").exit_code == 0
    registry.forget_backends()
    measured: list[str] = []
    monkeypatch.setattr("sarek_numba.cli.doctor.self_test", lambda d: measured.append(d.name))
    assert _run("doctor").exit_code == 0
    assert measured == []
    assert _run("doctor", "--again").exit_code == 0
    assert measured == ["interpreter"]


def test_doctor_of_an_unknown_device(well: None) -> None:
    """Exit code 2, as for any wrong use."""
    result = CliRunner().invoke(main, ["doctor", "--device", "cuda:7"])
    assert result.exit_code == 2
    assert "UnknownDevice: no device is named 'cuda:7'" in result.output


def test_device_that_crashes_is_a_diagnosis(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that a driver raises ends the doctor."""

    def prepare(self: Any, kernel: Any) -> Any:
        raise OSError("the driver is gone")

    device = tampered(tampering.unchanged)
    monkeypatch.setattr(TamperedDriver, "prepare", prepare)
    found = diagnose(device)
    assert not found.is_well
    assert "OSError: the driver is gone" in found.checked[0].text
    assert "OSError: the driver is gone" in found.error


def test_handling_is_named() -> None:
    """Declared, emulated or refused."""
    from sarek_numba.capability import Capability
    from sarek_numba.codegen.target import Target

    device = tampered(tampering.unchanged, target=Target("t", emulates=frozenset({"division"})))
    words = {
        name: handling(device, Capability(name, Scalar.FLOAT32))
        for name in ("division", "square_root", "subnormal_inputs", "contraction")
    }
    assert words == {
        "division": "emulated",
        "square_root": "refused",
        "subnormal_inputs": "declared",
        "contraction": "refused",
    }


# --- parts ----------------------------------------------------------------------------------------


def test_every_backend_has_parts_and_each_an_install_command() -> None:
    """All that devices are listed of, in the order of the registry."""
    assert [*dict.fromkeys(part.backend for part in PARTS)] == list(registry.ORDER)
    assert all(part.install and part.places for part in PARTS)


@pytest.mark.parametrize(
    ("place", "is_there"),
    [
        ((Probe.MODULE, "json"), True),
        ((Probe.MODULE, "no_such_package.part"), False),
        ((Probe.DISTRIBUTION, "numpy"), True),
        ((Probe.DISTRIBUTION, "no-such-distribution"), False),
        ((Probe.LIBRARY, "libc.so.6"), sys.platform == "linux"),
        ((Probe.LIBRARY, "libnothing.so.9"), False),
        ((Probe.BUNDLED, "numpy/__init__.py"), True),
        ((Probe.BUNDLED, "numpy/no_such_*"), False),
        ((Probe.FILES, sys.executable), True),
        ((Probe.FILES, "/no/such/*.icd"), False),
        ((Probe.PROGRAM, "sh"), True),
        ((Probe.PROGRAM, "no-such-program"), False),
    ],
)
def test_probe(place: tuple[Probe, str], is_there: bool) -> None:
    """Each way to find a part, once found and once not."""
    [one] = found([Part("x", "part", "tool", (place,), "get it")])
    assert (one.place is not None) == is_there


def test_part_of_another_system_is_not_missing() -> None:
    """Metal is nothing that Linux lacks."""
    metal = [part for part in PARTS if part.backend == "metal"]
    assert {one.why for one in found(metal, "linux")} == {"only on darwin"}


def test_library_that_crashes_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried in another process; those before it are found all the same."""
    crashing = parts._TRY.replace(
        "        ctypes.CDLL(name)", "        ctypes.CDLL(name)\n        ctypes.string_at(0)"
    )
    monkeypatch.setattr(parts, "_TRY", crashing)
    assert list(parts._libraries(["libc.so.6"])) == []


# --- sarek devices --------------------------------------------------------------------------------


def test_devices_as_json(well: None) -> None:
    """Records as data: types, limits, facts with verdict and evidence."""
    result = _run("devices", "--json")
    assert result.exit_code == 0
    here, away = json.loads(result.output)
    assert away == {
        "name": "absent",
        "present": False,
        "reason": "its loader [libabsent.so] is not installed",
    }
    assert here["types"]["float64"][0] == "arithmetic"
    assert "atomic add shared" in here["types"]["int32"]
    assert here["limits"]["block"] == [1024, 1024, 64]
    assert {fact["verdict"] for fact in here["facts"]} == {"available", "unavailable"}
    assert here["coopmat"].startswith("every shape, components int8, uint8")


def test_one_device_with_its_evidence(well: None) -> None:
    """`sarek devices NAME`."""
    result = _run("devices", "interpreter")
    assert result.exit_code == 0
    text = _words(result)
    assert "by construction: the interpreter is the meaning of the IR" in text
    assert "65536" in text
    data = json.loads(_run("devices", "interpreter", "--json").output)
    assert data["name"] == "interpreter"


def test_one_device_that_is_unknown(well: None) -> None:
    """Exit code 1 with the error's own text."""
    result = _run("devices", "cuda")
    assert result.exit_code == 1
    assert "UnknownDevice: no device is named 'cuda'" in result.output


def test_devices_show_reasons_with_brackets(well: None) -> None:
    """Nothing of a reason is taken for markup."""
    assert "[libabsent.so]" in _run("devices").output
