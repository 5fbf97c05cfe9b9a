"""`sarek.profile`, `SAREK_DEBUG`, and the warning of copies that nobody sees."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import execute
from sarek_numba.runtime import clock, telemetry
from sarek_numba.runtime.cache import counters
from tests.executors import devices

DEVICES = devices()


@sarek.kernel
def twice(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = 2 * x[i]


@sarek.kernel
def once(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = x[i]


def some(count=1000):
    return np.full(count, 9, np.float32), np.arange(count, dtype=np.float32)


# --- profile --------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_a_profile_has_every_launch(device):
    """Those like earlier ones too, which otherwise go the short way."""
    out, x = some()
    for _ in range(4):
        twice.launch(out, x, grid=4, block=256, device=device)
    with sarek.profile(flops={"twice": lambda out, x: len(out), "once": 0}) as found:
        for _ in range(3):
            twice.launch(out, x, grid=4, block=256, device=device)
        once.launch(out, x, grid=4, block=256, device=device)
    twice.launch(out, x, grid=4, block=256, device=device)
    entries = {entry.kernel: entry for entry in found.kernels()}
    assert {name: entry.launches for name, entry in entries.items()} == {"twice": 3, "once": 1}
    entry = entries["twice"]
    assert entry.device == sarek.device(device).record.name
    assert (entry.read_bytes, entry.written_bytes) == (3 * x.nbytes, 3 * out.nbytes)
    assert entry.flops == 3000
    assert entries["once"].flops == 0
    assert 0 < entry.device_s <= entry.host_s
    assert entry.overhead_s == entry.host_s - entry.device_s
    assert entry.gigabytes_per_second == pytest.approx(24000 / entry.device_s / 1e9)
    assert entry.gigaflops_per_second == pytest.approx(3000 / entry.device_s / 1e9)
    assert (out == 2 * x).all()
    assert not telemetry.listeners


OTHERS = """
kernel void scale(global float *x, int length, float a) {
    int i = get_global_id(0);
    if (i < length) x[i] *= a;
}
"""
IN_OPENCL_C = [d for d in DEVICES if execute.supports_language(d, execute.Language.OPENCL)]


@pytest.mark.parametrize("device", IN_OPENCL_C)
@pytest.mark.parametrize("where", ["array", "vector", "stream"])
def test_a_profile_has_kernels_of_others(device, where, caplog, monkeypatch):
    """On every way that a launch takes, and `SAREK_DEBUG` tells them."""
    array = np.ones(1000, np.float32)
    x = array if where == "array" else sarek.vector(array)
    stream = sarek.device(device).stream() if where == "stream" else None
    given = (device, OTHERS, execute.Language.OPENCL, "scale", [x, 2.0], 256, 4)
    execute.run_source(*given, stream=stream)
    with sarek.profile() as found:
        for _ in range(3):
            execute.run_source(*given, stream=stream)
    execute.run_source(*given, stream=stream)
    (entry,) = found.kernels()
    assert (entry.kernel, entry.device) == ("scale", sarek.device(device).record.name)
    assert (entry.launches, entry.read_bytes, entry.written_bytes) == (3, 12_000, 12_000)
    assert 0 < entry.device_s <= entry.host_s
    monkeypatch.setenv("SAREK_DEBUG", "2")
    execute.run_source(*given, stream=stream)
    assert any("scale on " in record.getMessage() for record in caplog.records)
    assert np.asarray(x).tolist() == [64.0] * 1000


@pytest.mark.parametrize("device", [d for d in DEVICES if d.startswith("opencl")])
def test_streams_and_vectors_are_measured_too(device):
    out, x = map(sarek.vector, some())
    stream = sarek.device(device).stream()
    with sarek.profile() as found:
        for _ in range(3):
            twice.launch(out, x, grid=4, block=256, device=device, stream=stream)
    stream.synchronize()
    assert len(found.launches) == 3
    assert all(0 < launch.device_s <= launch.host_s for launch in found.launches)
    assert found.uploads == 2
    assert found.uploaded_bytes == 8000
    assert found.kernels()[0].gigaflops_per_second is None
    assert np.asarray(out).tolist() == (2 * np.asarray(x)).tolist()


def test_a_profile_shows_itself(tmp_path):
    out, x = some()
    with sarek.profile(flops={"twice": 1000}) as found:
        twice.launch(out, x, grid=4, block=256, device="native")
        once.launch(out, x, grid=4, block=256, device="interpreter")
    text = str(found)
    assert "twice" in text
    assert "GFLOP/s" in text
    assert "0 uploads (0 bytes)" in text
    assert found._repr_html_().count("native") == 1
    (first, second) = found.rows()
    assert {first["kernel"], second["kernel"]} == {"twice", "once"}
    found.chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["name"] for event in events] == ["twice", "twice", "once", "once"]
    for host, device in (events[:2], events[2:]):
        assert host["cat"] == "host"
        assert device["cat"] == "device"
        assert host["ts"] <= device["ts"]
        assert device["ts"] + device["dur"] == pytest.approx(host["ts"] + host["dur"])
    assert events[1]["tid"] == "native"
    assert events[0]["args"]["grid"] == [4, 1, 1]


def test_a_frame_is_pandas():
    import pandas

    with sarek.profile() as found:
        twice.launch(*some(), grid=4, block=256, device="native")
    assert isinstance(found.frame(), pandas.DataFrame)


def test_a_profile_listens_to_all_threads_and_ends_with_its_block():
    def launch():
        twice.launch(*some(), grid=4, block=256, device="native")

    def fail(threads):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        raise ZeroDivisionError

    threads = [threading.Thread(target=launch) for _ in range(4)]
    with pytest.raises(ZeroDivisionError), sarek.profile() as found, sarek.profile() as inner:
        fail(threads)
    assert len(found.launches) == len(inner.launches) == 4
    launch()
    assert len(found.launches) == 4
    assert not telemetry.listeners


def test_a_refused_launch_is_none():
    with sarek.profile() as found, pytest.raises(sarek.ArgumentCountError):
        twice.launch(np.zeros(3), grid=1, block=1, device="native")
    assert found.launches == []
    assert found.kernels() == []


@pytest.mark.parametrize("flops", [{"twice": "many"}, {3: 4}, {"twice": None}])
def test_operations_are_numbers_or_functions(flops):
    refused = pytest.raises(sarek.InvalidArgument, match="maps names of kernels to numbers")
    with refused, sarek.profile(flops=flops):
        pass


# --- SAREK_DEBUG ----------------------------------------------------------------------------------


def debugged(monkeypatch, caplog, words):
    """What three launches say, as pairs of component and message."""
    monkeypatch.setenv("SAREK_DEBUG", words)
    device = next((d for d in DEVICES if d.startswith("opencl")), "native")
    out, x = map(sarek.vector, some())
    sarek.clear_launch_cache()
    for _ in range(3):
        twice.launch(out, x, grid=4, block=256, device=device)
    assert out[3] == 6
    records = [r for r in caplog.records if r.name.startswith("sarek_numba.")]
    return [(r.name.removeprefix("sarek_numba."), r.getMessage()) for r in records]


@pytest.mark.parametrize(
    ("words", "components"),
    [
        ("0", set()),
        ("1", {"transfer", "kernel", "memory"}),
        ("2", {"transfer", "kernel", "memory", "execute"}),
        ("transfer", {"transfer"}),
        ("2,execute", {"execute"}),
        ("execute", set()),
        ("1, memory, transfer", {"memory", "transfer"}),
        ("all", {"transfer", "kernel", "memory"}),
    ],
)
@pytest.mark.skipif(not any(d.startswith("opencl") for d in DEVICES), reason="no OpenCL device")
def test_debugging_tells_of_components(monkeypatch, caplog, words, components):
    assert {component for component, _ in debugged(monkeypatch, caplog, words)} == components


def test_levels_tell_more(monkeypatch, caplog):
    messages = debugged(monkeypatch, caplog, "2,execute")
    assert len(messages) == 3  # one of each launch
    assert all("grid (4, 1, 1), block (256, 1, 1)" in text for _, text in messages)
    caplog.clear()
    text = "\n".join(text for _, text in debugged(monkeypatch, caplog, "4,kernel"))
    assert text.startswith("twice for ")
    assert "// twice" in text or "; kernel twice" in text
    caplog.clear()
    assert "options" not in str(debugged(monkeypatch, caplog, "2,kernel"))


def test_messages_go_to_standard_error(tmp_path):
    """Unless the program has handlers of its own."""
    script = tmp_path / "twice.py"
    script.write_text(
        "import numpy as np, sarek_numba as sarek\n"
        "@sarek.kernel\ndef k(x):\n    x[sarek.global_idx.x] = 1\n"
        "k.launch(np.zeros(4), grid=1, block=4, device='native')\n"
    )
    environment = {**os.environ, "SAREK_DEBUG": "2", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True
    )
    lines = done.stderr.splitlines()
    assert lines[0] == "sarek kernel: k for native"
    assert lines[-1].startswith("sarek execute: k on native: grid (1, 1, 1), block (4, 1, 1), ")


# --- copies ---------------------------------------------------------------------------------------


def test_large_arrays_on_a_gpu_are_worth_a_warning_once(monkeypatch):
    """Here on a device that is said to be none of a CPU."""
    device = sarek.device("native")
    monkeypatch.setattr(device.driver, "record", replace(device.record, is_cpu=False))
    monkeypatch.setattr(clock, "_told", set())
    out, x = some(2**19)
    with pytest.warns(sarek.HiddenCopyWarning, match=r"2 arrays of NumPy, one of 2097152 bytes"):
        twice.launch(out, x, grid=1, block=64, device="native")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        twice.launch(out, x, grid=1, block=64, device="native")
        once.launch(*some(100), grid=1, block=64, device="native")
        once.launch(*map(sarek.vector, some(2**19)), grid=1, block=64, device="native")
    assert counters.launches
