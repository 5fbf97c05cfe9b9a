"""The table of devices in docs/devices.md: made from its data, and true of the devices present."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sarek_numba.capability import FEATURES, PROMISES, Capability, Fact, Probe, Verdict
from sarek_numba.capability.model import CapabilityKind
from sarek_numba.codegen.target import Target
from sarek_numba.ir.types import Scalar
from sarek_numba.runtime.registry import devices
from tests.unit.fake_backend import FACTS, record
from tests.unit.measured_devices import measured
from tools import absent_devices, device_table
from tools.device_table import MARKDOWN, PROMISE_ROWS, entry_of, load, merge, with_table

DIVISION = Capability("division", Scalar.FLOAT32)
ROW = "exact division (float32)"


def test_page_is_made_from_its_data() -> None:
    """Nothing between the marks was written by hand."""
    text = MARKDOWN.read_text()
    assert with_table(text, load()) == text


def test_every_feature_and_promise_has_a_row() -> None:
    """But those that refine a row, or depend on a block."""
    assert device_table.unused_features() == {"store", "warp_rows"}
    assert {c.feature for wanted in PROMISE_ROWS.values() for c in wanted} == set(PROMISES)
    assert set(PROMISES) <= set(FEATURES)


@pytest.mark.parametrize("device", devices(), ids=lambda d: d.name)
def test_present_device_is_as_the_table_says(device) -> None:
    """With the driver that the table knows, every word is the same."""
    record = replace(device.record, measured=measured(device.name))
    entry = entry_of(record, device.driver.target)
    known = {one.key: one for one in load()}.get(entry.key)
    if known is None:
        pytest.skip(
            f"{entry.device} with {entry.driver} is not in docs/devices.json: "
            "python -m tools.device_table --measure --write adds it"
        )
    assert entry.rows == known.rows


@pytest.mark.parametrize("made", [absent_devices.hip_gfx90a, absent_devices.hip_gfx1100])
def test_absent_device_is_as_the_table_says(made) -> None:
    """The columns of devices that nobody here has are made from their records."""
    entry = entry_of(made(), None)
    assert entry in load()
    assert "never run" in entry.driver
    assert not entry.measured


def test_words_of_a_row() -> None:
    """Yes, no, not known, how many of several; what becomes of a broken promise."""
    none = Fact(Verdict.UNAVAILABLE, CapabilityKind.OPTIONAL, "measured: no")
    facts = {**FACTS, Capability("arithmetic", Scalar.INT16): none}
    broken = {
        DIVISION: Probe(9, 1, ""),
        Capability("subnormal_inputs", Scalar.FLOAT32): Probe(9, 1),
    }
    made = record(facts=facts, measured=broken)
    rows = entry_of(made, None).rows
    assert rows["float64"] == "no"
    assert rows["printing"] == "not known"
    assert rows["8- and 16-bit integers"] == "7 of 8"
    assert rows["exact square root (float32)"] == "yes"
    assert rows["exact square root (float64)"] == "no"
    assert rows[ROW] == "no, refused"
    assert rows["subnormal operands (float32)"] == "no, declared"
    emulating = Target("fake", emulates=frozenset({"division"}))
    assert entry_of(made, emulating).rows[ROW] == "emulated exactly"


def test_new_entries_replace_those_of_the_same_driver() -> None:
    """Other machines' stay, in the order of backends."""
    old = [replace(entry_of(record(), None), device=name) for name in ("native", "cuda")]
    new = replace(old[0], rows={"float64": "yes"})
    assert [one.device for one in merge(old, [new])] == ["cuda", "native"]
    assert merge(old, [new])[1] is new


def test_data_names_no_machine() -> None:
    """Nothing of the host is in it but the versions of drivers."""
    for entry in json.loads(device_table.JSON.read_text())["devices"]:
        assert set(entry) == {"device", "driver", "measured", "rows", "limits"}
