"""Replay by the mechanism of a device: that it is used, and what is left to a list of calls."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_cuda.runtime import CudaDriver
from sarek_numba import execute, realize
from sarek_numba.realize import Buffers
from sarek_numba.runtime.binding import word_of
from sarek_numba.runtime.graphs import Use, dependencies_of, pattern_of
from sarek_numba.runtime.registry import Device
from tests.fake_cuda import FakeApi
from tests.unit.realize_kit import N, buffer, floats, graph, scale, scaled

DEVICES = ["native", "cuda:fake", "cuda:0", "vulkan:0", "opencl:intel:0"]


@sarek.kernel
def add(out: Any, x: Any) -> None:
    i = sarek.global_idx.x
    if i < len(out) and i < len(x):
        out[i] += x[i]


@sarek.kernel
def loud(out: Any) -> None:
    i = sarek.global_idx.x
    out[i] = i
    print(i)


def is_own(g):
    """Whether the last replay was by the device's mechanism."""
    return g.mechanism == "device"


@pytest.fixture(params=DEVICES)
def on(request):
    """A device that has a mechanism."""
    with sarek.use_device(made(request.param)) as which:
        yield which


def made(name):
    """The device, or the test is skipped."""
    if name == "cuda:fake":
        return Device(CudaDriver(FakeApi(), 0, name))
    try:
        return sarek.device(name)
    except sarek.UnknownDevice:
        pytest.skip(f"there is no {name} here")


# --- dependencies ---------------------------------------------------------------------------------


def uses(*rows):
    return [[Use(first, last, written) for first, last, written in row] for row in rows]


@pytest.mark.parametrize(
    ("left", "right", "alike"),
    [
        ([[(0, 8, True)], [(0, 8, False)]], [[(64, 72, True)], [(64, 72, False)]], True),
        ([[(0, 8, True)], [(0, 8, False)]], [[(64, 72, True)], [(72, 80, False)]], False),
        ([[(0, 8, True)], [(8, 16, False)]], [[(0, 8, True)], [(7, 15, False)]], False),
        ([[(0, 8, True)], [(8, 16, False)]], [[(0, 8, True)], [(8, 16, True)]], False),
        ([[(0, 8, True)], [(4, 4, False)]], [[(0, 8, True)], [(9, 9, False)]], True),
        ([[(0, 8, True)], [(4, 12, True)]], [[(4, 12, True)], [(0, 8, True)]], True),
    ],
)
def test_patterns_say_where_dependencies_come_from(left, right, alike):
    """Equal patterns have equal dependencies, whatever the addresses are."""
    left, right = uses(*left), uses(*right)
    assert (pattern_of(left) == pattern_of(right)) is alike
    if alike:
        assert dependencies_of(left) == dependencies_of(right)


@pytest.mark.parametrize(
    ("dtype", "value", "word"),
    [
        ("float32", 0.0, b"\0"),
        ("float32", 1.0, np.float32(1).tobytes()),
        ("float64", 0.0, b"\0"),
        ("int64", -1, b"\xff"),
        ("int32", 0x00010001, b"\1\0"),
        ("float64", 2.5, np.float64(2.5).tobytes()),
        ("complex64", 1 + 1j, np.float32(1).tobytes()),
    ],
)
def test_words_are_as_short_as_they_can_be(dtype, value, word):
    """What is filled is repeated of the fewest bytes."""
    assert word_of(np.dtype(dtype), value) == word


# --- replays --------------------------------------------------------------------------------------


def test_a_graph_is_replayed_by_the_device(on):
    """Launches, copies and fills, with other inputs and variables, again and again."""
    x, out = floats(), sarek.zeros(N, np.float32)
    with sarek.capture(x=x, out=out) as g:
        n = g.variable("n", N)
        a = g.variable("a", 2.0)
        half = sarek.zeros(N, np.float32)
        scale.forall(n)(half, x, n, a)
        out.fill(1.0)
        add[4, 16](out, half)
        out[: N // 2] = half[N // 2 :]
    expected = np.ones(N, np.float32)
    launches = execute.counters.launches
    for start, n, a in [(0, N, 2.0), (0, N, 2.0), (5, N, -1.0), (5, 3, 4.0)]:
        half = np.zeros(N, np.float32)
        half[:n] = a * np.arange(start, start + N)[:n]
        expected[:] = 1 + half
        expected[: N // 2] = half[N // 2 :]
        g.replay(x=floats(start), n=n, a=a)
        assert is_own(g)
        assert np.array_equal(out, expected)
    assert execute.counters.launches == launches + 8


def test_replays_follow_what_the_host_does_between_them(on):
    """What the host writes is there, what it reads is right, and memory that was freed comes back.

    This is where a replay looks at vectors again.
    """
    x, out = floats(), sarek.zeros(N, np.float32)
    with sarek.capture(x=x, out=out) as g:
        add[4, 16](out, x)
        add[4, 16](out[:8], x[8:16])
    expected = np.zeros(N, np.float32)
    for k in range(6):
        x[k] = 100.0 + k
        if k == 3:
            x._storage.free()
            out._storage.free()
        if k == 4:
            add[4, 16](x, out)
        now = np.array(x)
        expected += now
        expected[:8] += now[8:16]
        g.replay()
        assert np.array_equal(out, expected)
    assert is_own(g)


def test_an_empty_grid_does_nothing_and_comes_back(on):
    """Its neighbours go on as if it was not there."""
    x, out = floats(), sarek.zeros(N, np.float32)
    with sarek.capture(x=x, out=out) as g:
        n = g.variable("n", N, 0)
        out.fill(0.5)
        scale.forall(n)(out, x, n, 2.0)
        add[4, 16](out, x)
    for n in (N, 0, N, 1):
        g.replay(n=n)
        expected = np.full(N, 0.5, np.float32)
        expected[:n] = 2 * np.arange(n)
        assert np.array_equal(out, expected + np.arange(N))
        assert is_own(g)


def test_memory_that_is_shared_anew_is_ordered_anew(on):
    """A graph whose second launch is given what its first one writes has another dependency."""
    nodes = first, x, second, y = [buffer() for _ in range(4)]
    schedule = graph(scaled(first, x, 2.0), scaled(second, y, 3.0))
    made = [floats(k) for k in range(4)]
    binding = Buffers()
    for node, vector in zip(nodes, made, strict=True):
        binding.seed(node, vector)
    for source, expected in [
        (made[3], 3.0 * np.arange(3, N + 3)),
        (made[0], 6 * np.arange(1, N + 1)),
    ]:
        binding.seed(y, source)
        for _ in range(2):
            realize.run_linear(None, schedule, binding, {"n": N})
            assert np.array_equal(made[2], expected)
    assert all(
        each._graph is not None for each in binding.recorded.values() if hasattr(each, "_graph")
    )


@pytest.mark.parametrize("what", ["print", "strided copy", "strided fill"])
def test_what_no_mechanism_does_is_done_one_by_one(on, what, capsys):
    """With the same results."""
    x, out = floats(), sarek.zeros(N, np.float32)
    with sarek.capture(x=x, out=out) as g:
        if what == "print":
            loud[1, 2](out)
        elif what == "strided copy":
            out[::2] = x[::2]
        else:
            out[::2] = 3.0
        add[4, 16](out, x)
    for _ in range(3):
        out.fill(0.0)
        g.replay()
    expected = np.arange(N, dtype=np.float32)
    if what == "print":
        expected[:2] *= 2
        assert capsys.readouterr().out == "0\n1\n" * 3
    elif what == "strided copy":
        expected[::2] *= 2
    else:
        expected[::2] += 3
    assert np.array_equal(out, expected)
    assert not is_own(g)


def test_large_launches_of_a_graph_run_on_all_threads():
    """The list leaves at such a launch, and goes on behind it."""
    n = 1 << 20
    x, out = sarek.ones(n, np.float32), sarek.zeros(n, np.float32)
    with sarek.use_device("native"):
        with sarek.capture(x=x, out=out) as g:
            for _ in range(3):
                add[n // 64, 64](out, x)
            out[:8] = x[:8]
        for k in range(3):
            g.replay()
            assert np.array_equal(out[8:], np.full(n - 8, 3 * (k + 1)))
            assert np.array_equal(out[:8], np.ones(8))
    assert is_own(g)


def test_threads_that_replay_one_graph_take_turns(on):
    """Each replay is whole."""
    x, out = sarek.ones(N, np.float32), sarek.zeros(N, np.float32)
    with sarek.capture(x=x, out=out) as g:
        a = g.variable("a", 1.0)
        temporary = sarek.zeros(N, np.float32)
        scale[4, 16](temporary, x, N, a)
        add[4, 16](out, temporary)

    def replay(a):
        for _ in range(20):
            g.replay(a=a)

    threads = [threading.Thread(target=replay, args=(a,)) for a in (1.0, 100.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(out, np.full(N, 2020.0))
