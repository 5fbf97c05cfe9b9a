"""What captures, replays and several devices are wrongly asked for: each is refused in full words,
on each kind of graph, and what was there is as before."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import GraphError, InvalidArgument, execute
from sarek_numba.realize import Buffers, ExecContext, Stack, capturing, resolve, run_linear
from sarek_numba.realize.several import copy_shards
from tests.unit.realize_kit import N, buffer, floats, graph, scale, scaled

PRESENT = {d.name for d in sarek.devices()}
DEVICES = [n for n in ("native", "opencl:pocl:0", "vulkan:0", "interpreter") if n in PRESENT]


@pytest.fixture(params=DEVICES)
def on(request):
    """The name of a device, which launches go to."""
    with sarek.use_device(request.param):
        yield request.param


def captured():
    """A graph of y = n elements of 2 * x, these two, and what y is after a replay."""
    x, y = floats(), sarek.zeros(N, np.float32)
    with sarek.capture(x=x, y=y) as g:
        scale[4, 16](y, x, g.variable("n", N), 2.0)
    return g, x, y


def refused(act, error=GraphError):
    """What a refusal says."""
    with pytest.raises(error) as found:
        act()
    return str(found.value)


def works(g, y):
    """Whether a graph replays as if nothing had been."""
    y.fill(-1)
    g.replay()
    return np.array_equal(y, 2 * np.arange(N))


def test_the_host_reads_inside_a_capture(on):
    """The read is refused, not the capture: it can go on."""
    x, y = floats(), sarek.zeros(N, np.float32)
    with sarek.capture() as g:
        scale[4, 16](y, x, N, 2.0)
        assert refused(lambda: y[0]) == (
            "the host reads a vector, whose elements are not computed before the graph is "
            "replayed, inside a capture\n"
            "  hint: read it after g.replay(), outside of `with sarek.capture()`"
        )
    assert works(g, y)


def test_captures_are_nested(on):
    """The outer one goes on."""
    x, y = floats(), sarek.zeros(N, np.float32)
    with sarek.capture() as g:
        assert refused(sarek.capture().__enter__) == (
            "a capture is under way already, and captures do not nest\n"
            "  hint: end the outer `with sarek.capture()` first"
        )
        scale[4, 16](y, x, N, 2.0)
    assert works(g, y)


def test_an_input_is_missing(on):
    """Of a schedule, and of a function of jit."""
    linear = graph(scaled(buffer(), sarek.realize.Param(0)))
    text = refused(lambda: run_linear(on, linear, None, {"n": N}), InvalidArgument)
    assert text == "parameter 0 is bound to no input: there are 0"

    @sarek.jit
    def step(out, x):
        scale[4, 16](out, x, N, 2.0)

    text = refused(lambda: step(floats()), sarek.ArgumentCountError)
    assert text == "function 'step': missing a required argument: 'x'"


def test_an_input_is_too_many(on):
    """By its name, with those that there are."""
    g, _, y = captured()
    assert refused(lambda: g.replay(z=floats())) == (
        "the graph has no input 'z'; its inputs are: x, y, n"
    )
    assert works(g, y)


def test_an_input_has_another_size(on):
    """Neither shorter nor longer nor of other axes."""
    g, _, y = captured()
    for value in (floats(0, N - 1), floats(0, N + 1), floats().reshape(8, 8)):
        assert refused(lambda v=value: g.replay(x=v)) == (
            f"input 'x' was captured as an array of shape (64,), and is given {value.shape}"
        )
    assert works(g, y)


def test_an_input_has_another_dtype(on):
    """Of another size or of the same one."""
    g, _, y = captured()
    for dtype in (np.float64, np.int32):
        assert refused(lambda d=dtype: g.replay(x=sarek.zeros(N, d))) == (
            f"input 'x' was captured as float32, and is given {np.dtype(dtype)}"
        )
    assert works(g, y)


class OnAnotherDevice:
    """Memory of a GPU that another library has."""

    __cuda_array_interface__ = {  # noqa: RUF012 # the protocol has it so
        "shape": (N,), "typestr": "<f4", "data": (0x7000_0000, False), "version": 3,
    }  # fmt: skip


def test_an_input_is_on_another_device(on):
    """Memory of a library on its own device, and what is on several; a vector goes to any."""
    g, _, y = captured()
    assert refused(lambda: g.replay(x=OnAnotherDevice())) == (
        "input 'x' is a OnAnotherDevice, not a vector or an array of NumPy"
    )
    parts = sarek.shard(np.zeros(N, np.float32), [on])
    assert refused(lambda: g.replay(x=parts)) == (
        "input 'x' is a ShardedVector, not a vector or an array of NumPy"
    )
    g.replay(x=floats(1).to("native"))
    assert np.array_equal(y, 2 * np.arange(1, N + 1))
    node = Stack((buffer(), buffer()))
    assert refused(lambda: resolve(Buffers(), ExecContext(), node), InvalidArgument) == (
        "a stack of 2 buffers is on 2 devices, and one is wanted\n"
        "  hint: Select(node, i) is what one of them has"
    )
    assert works(g, y)


def test_inputs_are_given_twice(on):
    """One vector in two places, or one that is captured for the other place."""
    g, x, y = captured()
    same = floats()
    for given in ({"x": same, "y": same}, {"x": y}, {"y": x}):
        found = refused(lambda v=given: g.replay(**v))
        one, other = sorted(("input 'x'", "input 'y'"), key=found.index)
        assert found == (
            f"{one} shares memory with {other}, and did not when it was captured\n"
            "  hint: pass a copy, or capture it so"
        )
    assert works(g, y)


def test_a_vector_is_let_go_under_a_graph(on):
    """The graph has it, as long as there is the graph."""
    g, x, y = captured()
    gone = weakref.ref(x)
    del x
    for _ in range(3):
        gc.collect()
        assert gone() is not None
        assert works(g, y)
    del g
    gc.collect()
    assert gone() is None


def fail(y, x):
    with sarek.capture() as g:
        scale[4, 16](y, x, N, 2.0)
        g.variable("n", 3)
        raise ZeroDivisionError("of the block")


def test_an_exception_ends_a_capture(on):
    """It comes out; launches are launches again, and another capture can begin."""
    x, y = floats(), sarek.zeros(N, np.float32)
    assert refused(lambda: fail(y, x), ZeroDivisionError) == "of the block"
    assert capturing == []
    assert not np.asarray(y).any()
    before = execute.counters.launches
    scale[4, 16](y, x, N, 3.0)
    assert np.array_equal(y, 3 * np.arange(N))
    assert execute.counters.launches == before + 1
    g, _, y = captured()
    assert works(g, y)
    failed = sarek.capture()
    with pytest.raises(KeyError), failed:
        raise KeyError("of the block")
    assert refused(failed.replay) == (
        "the capture ended by KeyError, so there is no graph to replay"
    )


def test_counts_of_devices_are_unequal(on):
    """In launches and copies, also inside a capture: it has nothing of them."""
    others = [on, *(name for name in DEVICES if name != on)][:2]
    x = sarek.shard(np.ones(N, np.float32), others)
    out = sarek.shard(np.zeros(N, np.float32), [on])
    hint = "\n  hint: all of them are on the same devices"

    def check():
        assert refused(lambda: scale[4, 16](out, x, N, 2.0), InvalidArgument) == (
            f"kernel 'scale': 'out' is on 1 devices and 'x' on 2{hint}"
        )
        assert refused(lambda: copy_shards(out, x), InvalidArgument) == (
            "copy: the destination is on 1 devices, the source on 2"
        )

    check()
    with sarek.capture() as g:
        check()
    assert len(g.linear) == 0
    assert not np.asarray(out).any()
