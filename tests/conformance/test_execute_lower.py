"""`execute.run`, `run_vectors_outcome`, `run_interpreter_vectors`: what each runs and refuses."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import execute, policy
from sarek_numba.errors import (
    ArgumentCountError,
    ArgumentTypeError,
    CapabilityError,
    InvalidArgument,
    InvalidDimensions,
    JitError,
    OutOfBounds,
    StreamError,
)
from sarek_numba.ir.native import NUMPY_ARRAY, NativeFunction, NativeVec, vec_as_vector, vec_length
from sarek_numba.ir.types import Scalar
from sarek_numba.runtime import handmade
from sarek_numba.runtime.cache import clear_launch_cache, counters

DEVICES = [device.name for device in sarek.devices()]
on_devices = pytest.mark.parametrize("device", DEVICES)
each_kind = pytest.mark.parametrize("make", [np.array, sarek.vector])


@sarek.kernel
def saxpy(y, x, a):
    i = sarek.global_idx.x
    if i < len(y):
        y[i] += a * x[i]


@sarek.kernel
def doubles(out, x):
    out[0] = x[0] * 2.0


SAXPY = saxpy.ir(sarek.float32[:], sarek.float32[:], sarek.float32)


class Calls:
    """A native saxpy that says what it was given, and IR that says whether it was asked for."""

    def __init__(self):
        self.given = []
        self.made = 0
        self.function = NativeFunction(self.run)

    def run(self, parallel, block, grid, args):
        self.given.append((parallel, block, grid, args))
        y, x = (vec_as_vector(NUMPY_ARRAY, arg) for arg in args[:2])
        assert vec_length(args[0]) == len(y)
        y += args[2].value * x

    def ir(self):
        self.made += 1
        return SAXPY


def arrays(make=np.array):
    return make(np.ones(100, np.float32)), make(np.arange(100, dtype=np.float32))


# --- run ------------------------------------------------------------------------------------------


@on_devices
@each_kind
def test_the_device_takes_what_it_needs(device, make):
    """`native` calls the function and asks for no IR; all others the reverse."""
    calls = Calls()
    y, x = arrays(make)
    counters.reset()
    for a in (2.0, np.float32(1)):
        execute.run(device, "saxpy", calls.ir, [y, x, a], 64, (2, 1), native_fn=calls.function)
    assert (y == 1 + 3 * np.arange(100)).all()
    assert counters.launches == 2
    is_native = device == "native"
    assert (calls.made, len(calls.given)) == ((0, 2) if is_native else (2, 0))
    assert (counters.compiles, counters.capability_checks) == (0, 0) or not is_native
    if is_native:
        parallel, block, grid, args = calls.given[0]
        assert (parallel, block, grid) == (True, (64, 1, 1), (2, 1, 1))
        assert [type(arg).__name__ for arg in args] == ["NativeVec", "NativeVec", "NativeFloat32"]


@on_devices
@each_kind
def test_ir_alone_is_enough(device, make):
    """Also on `native`, which generates code of it then."""
    y, x = arrays(make)
    execute.run(device, "saxpy", SAXPY, [y, x, 2.0], 64, 2)
    execute.run(device, "saxpy", lambda: SAXPY, [y, x, 1.0], 64, 2)
    assert (y == 1 + 3 * np.arange(100)).all()


@on_devices
def test_what_is_missing_is_named(device):
    """No IR where it is needed, neither of the two, and things that are neither."""
    calls = Calls()
    y, x = arrays(sarek.vector)
    counters.reset()
    needs = f"kernel 'k' has no IR, which device '{device}' needs"
    neither = "kernel 'k' has neither IR nor a native function, and device 'native' runs one"
    for _ in range(2):
        for nothing in (None, lambda: None):
            with pytest.raises(JitError, match=neither if device == "native" else needs):
                execute.run(device, "k", nothing, [y, x, 1.0], 64, 2)
        if device != "native":
            with pytest.raises(JitError, match=needs):
                execute.run(device, "k", None, [y, x, 1.0], 64, 2, native_fn=calls.function)
        with pytest.raises(JitError, match="kernel 'k' has str in place of IR"):
            execute.run(device, "k", "IR", [y, x, 1.0], 64, 2)
        with pytest.raises(JitError, match="kernel 'k' has function in place of a native"):
            execute.run(device, "k", SAXPY, [y, x, 1.0], 64, 2, native_fn=lambda *_: None)
        with pytest.raises(JitError, match="the kernel has"):
            execute.run_vectors(device, None, [y, x, 1.0], 64, 2)
    assert (counters.launches, counters.uploads, counters.compiles) == (0, 0, 0)
    assert calls.given == []
    assert y.is_current()
    assert (y == 1).all()
    execute.run(device, "k", SAXPY, [y, x, 1.0], 64, 2, native_fn=calls.function)
    assert (y == 1 + np.arange(100)).all()


@on_devices
@each_kind
def test_the_function_of_the_ir(device, make):
    """A kernel that has a native function is that function on `native`, its code elsewhere."""
    calls = Calls()
    kernel = replace(SAXPY, native_function=calls.function)
    y, x = arrays(make)
    execute.run(device, "saxpy", kernel, [y, x, 2.0], 64, 2)
    execute.run_vectors(device, kernel, [y, x, np.float32(1)], 64, 2)
    assert (y == 1 + 3 * np.arange(100)).all()
    assert len(calls.given) == (2 if device == "native" else 0)


F32 = np.zeros(4, np.float32)
WRONG = {
    "two axes": ([F32.reshape(2, 2)], ArgumentTypeError, "argument 0 is a 2-D array of float32"),
    "complex": ([np.zeros(4, np.complex64)], ArgumentTypeError, "1-D array of complex64"),
    "records": ([np.zeros(4, [("a", "f4")])], ArgumentTypeError, "of records"),
    "big-endian": ([F32.astype(">f4")], ArgumentTypeError, "order of another machine"),
    "objects": ([F32.astype(object)], ArgumentTypeError, "Python objects are not taken"),
    "list": ([F32, [1.0]], ArgumentTypeError, "'argument 1' is a list"),
    "bool": ([F32, True], ArgumentTypeError, "argument 1 is a scalar of bool"),
    "unsigned": ([F32, np.uint32(1)], ArgumentTypeError, "a scalar of uint32"),
    "wide int": ([F32, 2**40], ArgumentTypeError, "int beyond int32"),
    "None": ([F32, None], ArgumentTypeError, "argument 1 is None"),
    "stride of 0": (
        [np.lib.stride_tricks.as_strided(F32, (4,), (0,))], InvalidArgument, "a stride is 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_a_function_does_not_take(name):
    """By position and kind, before it is called."""
    arguments, error, message = WRONG[name]
    calls = Calls()
    counters.reset()
    for _ in range(2):
        with pytest.raises(error, match=message):
            execute.run("native", "k", None, arguments, 4, 1, native_fn=calls.function)
    assert (calls.given, counters.launches) == ([], 0)


def test_limits_and_streams_of_a_function():
    """As of any launch: dimensions, shared bytes, streams of other devices."""
    calls = Calls()
    y, x = arrays()
    limits = sarek.device("native").limits
    foreign = sarek.device("interpreter").stream()
    for error, given in (
        (InvalidDimensions, {"block": limits.threads_per_block + 1, "grid": 1}),
        (InvalidDimensions, {"block": 1, "grid": 0}),
        (InvalidDimensions, {"block": 1, "grid": 1, "shared_bytes": limits.shared_bytes + 1}),
        (StreamError, {"block": 1, "grid": 1, "stream": foreign}),
    ):
        with pytest.raises(error):
            execute.run("native", "k", None, [y, x, 1.0], native_fn=calls.function, **given)
    assert calls.given == []
    own = sarek.device("native").stream()
    execute.run("native", "k", None, [y, x, 1.0], 4, 1, stream=own, native_fn=calls.function)
    assert (y == 1 + np.arange(100)).all()


def test_memory_of_a_function():
    """Strides, unaligned arrays, one array twice, parts of vectors, and what a device has newer."""
    calls = Calls()
    y, x = np.ones(20, np.float32), np.arange(40, dtype=np.float32)
    execute.run("native", "k", None, [y[::-2], x[::4], 1.0], 4, 1, native_fn=calls.function)
    expected = np.ones(20, np.float32)
    expected[::-2] += x[::4]
    assert (y == expected).all()
    unaligned = np.zeros(4 * 8 + 1, np.uint8)[1:].view(np.float32)
    unaligned[:] = 3
    execute.run("native", "k", None, [unaligned, x[:8], 1.0], 4, 1, native_fn=calls.function)
    assert (unaligned == 3 + x[:8]).all()
    twice = np.ones(4, np.float32)
    execute.run("native", "k", None, [twice, twice, 1.0], 4, 1, native_fn=calls.function)
    assert (twice == 2).all()
    empty = np.zeros(0, np.float32)
    execute.run("native", "k", None, [empty, empty, 1.0], 4, 1, native_fn=calls.function)
    for device in DEVICES:
        v, w = arrays(sarek.vector)
        saxpy.launch(v, w, np.float32(1), grid=1, block=128, device=device)
        execute.run("native", "k", None, [v[10:20], w[:10], 1.0], 4, 1, native_fn=calls.function)
        saxpy.launch(v, w, np.float32(1), grid=1, block=128, device=device)
        model = 1 + 2 * np.arange(100)
        model[10:20] += np.arange(10)
        assert (v == model).all(), device


def test_numbers_of_a_function():
    """A Python int is an int32, a float a float32; NumPy scalars have their width."""
    seen = []
    function = NativeFunction(lambda parallel, block, grid, args: seen.extend(args))
    numbers = [7, 1.5, np.int64(2**40), np.float64(0.1), np.float32(3), 1e300]
    execute.run("native", "k", None, numbers, 1, 1, native_fn=function)
    assert [arg.value.dtype.name for arg in seen] == [
        "int32", "float32", "int64", "float64", "float32", "float32",
    ]  # fmt: skip
    assert [float(arg.value) for arg in seen[:4]] == [7, 1.5, 2.0**40, 0.1]
    assert np.isinf(seen[5].value)
    seen.clear()
    wide = replace(
        saxpy.ir(sarek.float32[:], sarek.float32[:], sarek.float64), native_function=function
    )
    execute.run("native", "k", wide, [F32, F32, 0.1], 1, 1)
    assert seen[2].value == np.float64(0.1)


def test_read_only_arrays_stay_so():
    """A function cannot write what is read-only, and what it raises reaches the caller."""
    fixed = np.ones(4, np.float32)
    fixed.flags.writeable = False

    def write(parallel, block, grid, args):
        assert isinstance(args[0], NativeVec)
        vec_as_vector(NUMPY_ARRAY, args[0])[0] = 5

    with pytest.raises(ValueError, match="read-only"):
        execute.run("native", "k", None, [fixed], 1, 1, native_fn=NativeFunction(write))
    out = sarek.ones(4, np.float32)
    execute.run("native", "k", None, [out], 1, 1, native_fn=NativeFunction(write))
    assert out[0] == 5


def test_ir_made_again_and_again_is_forgotten():
    """New kernels of the same content compile once, and not all of them are kept."""
    y, x = arrays()
    clear_launch_cache()
    counters.reset()
    for _ in range(1100):
        execute.run("native", "saxpy", lambda: replace(SAXPY), [y, x, 0.0], 1, 1)
    assert (counters.compiles, counters.capability_checks) == (1, 1)
    assert len(handmade._analysed) <= 1024


def test_threads_make_ir_at_once():
    """Sixteen threads with a kernel of their own but one content compile once."""
    clear_launch_cache()
    counters.reset()
    start, results = threading.Barrier(16), []

    def work():
        y, x = arrays()
        start.wait()
        execute.run("native", "saxpy", lambda: replace(SAXPY), [y, x, 1.0], 64, 2)
        results.append((y == 1 + x).all())

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (results, counters.compiles) == ([True] * 16, 1)


# --- what ran -------------------------------------------------------------------------------------


@on_devices
def test_what_ran(device, monkeypatch, capsys):
    """The original, whatever is asked for, and why; also for `SAREK_EXPLAIN`."""
    monkeypatch.setenv("SAREK_EXPLAIN", "1")
    policy.clear_report()
    y, x = arrays()
    plain = execute.run_vectors_outcome(device, SAXPY, [y, x, 1.0], 64, 2)
    asked = execute.run_vectors_outcome(
        device, lambda: SAXPY, [y, x, 1.0], 64, 2, precision="bfloat16", explicit=True
    )
    assert (y == 1 + 2 * x).all()
    assert isinstance(plain, execute.Original)
    assert "no loop adds up products" in plain.reason or "has no rewrite" in plain.reason
    assert asked == plain
    assert f"sarek: kernel 'saxpy': {plain}" in capsys.readouterr().err
    # it is no product, so nothing was decided of it
    assert all(record.optimisation == "coarsening" for record in policy.report())


@on_devices
def test_outcomes_that_are_refused(device):
    """Precisions that are none, and whatever a launch refuses."""
    y, x = arrays(sarek.vector)
    counters.reset()
    for _ in range(2):
        with pytest.raises(InvalidArgument, match=r"precision is 'float8'\n.*'bf16x3'"):
            execute.run_vectors_outcome(device, SAXPY, [y, x, 1.0], 64, 2, precision="float8")
        with pytest.raises(InvalidArgument, match="explicit is True or False, not 1"):
            execute.run_vectors_outcome(device, SAXPY, [y, x, 1.0], 64, 2, explicit=1)
        with pytest.raises(ArgumentCountError, match="takes 3 arguments, and 2"):
            execute.run_vectors_outcome(device, SAXPY, [y, x], 64, 2)
    assert (counters.launches, counters.uploads) == (0, 0)
    assert (y == 1).all()


# --- the oracle without a device ------------------------------------------------------------------


@each_kind
def test_the_oracle_needs_no_device(make, monkeypatch):
    """It runs where launches have no interpreter, with the lengths of the arrays."""
    monkeypatch.setenv("SAREK_DISABLE", "interpreter")
    assert "interpreter" not in [device.name for device in sarek.devices()]
    y, x = arrays(make)
    execute.run_interpreter_vectors(SAXPY, [y, x, 2.0], 64, 2)
    execute.run_interpreter_vectors(lambda: SAXPY, [y, x, 1.0], 64, 2)
    assert (y == 1 + 3 * np.arange(100)).all()


def test_the_oracle_finds_and_refuses():
    """Findings, arguments and dimensions, as in a launch on its device."""
    y, x = arrays()
    with pytest.raises(OutOfBounds):
        execute.run_interpreter_vectors(SAXPY, [y, x[:50], 1.0], 64, 2)
    assert (y[50:] == 1).all()
    for arguments, block, grid in (
        ([y, x], 64, 2),
        ([y, x, 1.0, 100], 64, 2),  # lengths are no arguments
        ([y, 1.0, x], 64, 2),
        ([y, x.astype(np.float64), 1.0], 64, 2),
        ([y, x, 1.0], 0, 2),
        ([y, x, 1.0], 1025, 2),
    ):
        texts = []
        for launch in (
            lambda *of: execute.run_vectors("interpreter", *of),
            execute.run_interpreter_vectors,
        ):
            with pytest.raises(sarek.SarekError) as raised:
                launch(SAXPY, arguments, block, grid)
            texts.append((type(raised.value), str(raised.value)))
        assert texts[0] == texts[1]


def test_one_text_of_what_is_not_there(monkeypatch):
    """The oracle's own gate: a record without float64 is refused as on the device."""
    driver = sarek.device("interpreter").driver
    facts = {c: f for c, f in driver.record.facts.items() if c.scalar is not Scalar.FLOAT64}
    assert len(facts) < len(driver.record.facts)
    monkeypatch.setattr(driver, "record", replace(driver.record, facts=facts))
    clear_launch_cache()
    ir, out = doubles.ir(sarek.float64[:], sarek.float64[:]), np.zeros(1)
    texts = []
    for _ in range(2):
        with pytest.raises(CapabilityError) as of_device:
            execute.run_vectors("interpreter", ir, [out, np.ones(1)], 1, 1)
        with pytest.raises(CapabilityError) as of_oracle:
            execute.run_interpreter_vectors(ir, [out, np.ones(1)], 1, 1)
        texts += [str(of_device.value), str(of_oracle.value)]
    assert len(set(texts)) == 1
    assert "needs float64" in texts[0]
    assert out[0] == 0
    monkeypatch.undo()
    clear_launch_cache()
    execute.run_interpreter_vectors(ir, [out, np.ones(1)], 1, 1)
    assert out[0] == 2
