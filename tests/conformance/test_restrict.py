"""`@sarek.kernel(restrict=True)`: what is promised is checked, and told to compilers."""

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.errors import InvalidArgument, UnsupportedConstruct
from tests.conformance.everywhere import everywhere
from tests.executors import run
from tests.kernels.case import Launch

DEVICES = [device.name for device in sarek.devices()]
on_devices = pytest.mark.parametrize("device", DEVICES)
POINT = np.dtype([("x", np.float32), ("n", np.int32)])


@sarek.kernel(restrict=True)
def add(out, x, y):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = x[i] + y[i]


@sarek.kernel(restrict=True)
def store_twice(out, x):
    """The second read of x[0] may be taken from the first: nothing else writes there."""
    i = sarek.global_idx.x
    out[2 * i] = x[0]
    out[2 * i + 1] = x[0]


@sarek.kernel(restrict=True)
def move(points, out):
    i = sarek.global_idx.x
    points[i].n = int(points[i].x)
    out[i] = points[i].n


@everywhere
def test_restricted_arrays(executor):
    """Arrays that are read may be one array; what is written lies apart."""
    x = np.arange(40, dtype=np.float32)
    out = np.zeros(40, np.float32)
    run(executor, add, Launch(2, 32, (out, x, x), ()))
    assert out.tolist() == (x + x).tolist()
    out = np.zeros(64, np.float32)
    run(executor, store_twice, Launch(1, 32, (out, x + 5), ()))
    assert out.tolist() == [5] * 64


@everywhere
def test_fields_of_records_are_not_taken_apart(executor):
    """The numbers of a record share its memory: no promise is made of them."""
    points = np.zeros(8, POINT)
    points["x"] = np.arange(8) + 0.5
    out = np.zeros(8, np.int64)
    run(executor, move, Launch(1, 8, (points, out), ()))
    assert points["n"].tolist() == out.tolist() == list(range(8))


BASE = np.arange(64, dtype=np.float32)
OVERLAPS = {
    "the same array": (
        lambda a: (a, a, a[:0]),
        "'out', which it writes, overlaps 'x' in 256 bytes",
    ),
    "shifted": (lambda a: (a[:32], a[:0], a[31:63]), "overlaps 'y' in 4 bytes"),
    "interleaved": (lambda a: (a[::2], a[1::2], a[:0]), "overlaps 'x' in 248 bytes"),
    "of another type": (lambda a: (a[:8], a[4:8].view(np.int32), a[9:]), "'x' in 16 bytes"),
}


@on_devices
@pytest.mark.parametrize("name", OVERLAPS)
def test_an_overlap_is_refused(device, name):
    """By name, twice, with nothing changed; without the option the same launch runs."""
    made, text = OVERLAPS[name]
    memory = BASE.copy()
    for _ in range(2):
        with pytest.raises(InvalidArgument, match=text):
            add.launch(*made(memory), grid=1, block=1, device=device)
    assert memory.tolist() == BASE.tolist()
    free = sarek.kernel(add.py_func)
    free.launch(memory, memory, memory, grid=1, block=64, device=device)
    assert memory.tolist() == (BASE + BASE).tolist()


@on_devices
def test_neighbours_and_empty_arrays_do_not_overlap(device):
    """Ranges that touch share no byte; an empty array has none."""
    memory = BASE.copy()
    out, x, y = memory[:16], memory[16:32], memory[32:48]
    add.launch(out, x, y, grid=1, block=16, device=device)
    assert out.tolist() == (x + y).tolist()
    add.launch(out[:0], memory[3:3], memory[5:5], grid=1, block=16, device=device)


def test_compilers_are_told():
    """`restrict` in OpenCL, noalias in LLVM IR, and neither without the promise."""
    types = (sarek.float32[::1],) * 3
    free = sarek.kernel(add.py_func)
    native = add.source("native", *types)
    assert native.count("ptr noalias %p.") == 3
    assert "noalias %p." not in free.source("native", *types)
    for name in DEVICES:
        if name.startswith("opencl"):
            assert "global const float *restrict x" in add.source(name, *types)
            assert "global float *restrict out" in add.source(name, *types)
            assert "*restrict" not in free.source(name, *types)


def test_the_promise_is_part_of_the_kernel():
    """The two share no program: the text of the IR says which is which."""
    from sarek_numba.ir.hash import content_hash
    from sarek_numba.ir.parse import parse
    from sarek_numba.ir.text import text

    made = add.ir(*(sarek.float32[::1],) * 3)
    free = sarek.kernel(add.py_func).ir(*(sarek.float32[::1],) * 3)
    assert ", C, readonly, restrict)" in text(made) or ", C, restrict)" in text(made)
    assert parse(text(made)) == made
    assert content_hash(made) != content_hash(free)


def test_bad_values_are_refused():
    """Only a bool has a meaning."""
    with pytest.raises(UnsupportedConstruct, match=r"restrict=...\) is True or False, not 'out'"):
        sarek.kernel(restrict="out")
