"""Vectors against a model: whatever is done to them, and wherever, no datum is lost or stale.

Rules write on the host, launch on every device and on streams of it, move, free, take sub-vectors
and drop them, also while launches on them wait, launch on many parts in a row; the model is a plain
NumPy array. Some vectors are page-locked, some records in columns, and columns of these.
`python -m tests.unit.test_vector_machine STEPS` runs until so many rules were applied.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

import sarek_numba as sarek
from sarek_numba.execute import window
from tests.unit.apart import OPENCL, apart

NAMES = [device.name for device in sarek.devices()]
DEVICES: list[Any] = [*NAMES, *(apart(name) for name in OPENCL)]  # some have memory of their own
LENGTH = 40
PAIR = np.dtype([("first", np.int64), ("second", np.int32), ("third", np.int64)])

# Of each device the launches that wait, and two streams by number.
STREAMS = [(name, number) for name in DEVICES for number in (None, 0, 1)]
_made: dict[tuple[str, int], object] = {}


def stream_of(name: str, number: int | None):
    """The stream of a device as it is now: other tests may have had all devices forgotten."""
    if number is None:
        return None
    device = sarek.device(name)
    stream = _made.get((name, number))
    if stream is None or stream.device is not device:
        stream = _made[name, number] = device.stream()
    return stream


devices = st.sampled_from(DEVICES)
streams = st.sampled_from(STREAMS)
places = st.integers(0, LENGTH - 1)
places_to_pin = st.booleans() | st.sampled_from(NAMES)
spans = st.tuples(places, places).map(lambda pair: (min(pair), max(pair) + 1))
rows = st.one_of(  # parts of a vector: apart from each other, or anyhow
    st.permutations([(k, k + 4) for k in range(0, LENGTH, 4)]),
    st.lists(spans, min_size=4, max_size=9),
)


@sarek.kernel
def add(out, x, n):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] += x[i % len(x)] + n


@sarek.kernel
def write_some(out, n):
    """Only every third element: what lies between must survive."""
    i = sarek.global_idx.x
    if i % 3 == 0 and i < len(out):
        out[i] = n


@sarek.kernel
def read(total, x):
    s = sarek.int64(0)
    for i in range(len(x)):
        s += x[i] * (i + 1)
    total[0] = s


@sarek.kernel
def exchange(p, n):
    """Two columns of three, and of every second record alone."""
    i = sarek.global_idx.x
    if i % 2 == 0 and i < len(p):
        before = p[i].first
        p[i].first = p[i].third + n
        p[i].third = before


class VectorMachine(RuleBasedStateMachine):
    vectors = Bundle("vectors")
    records = Bundle("records")
    steps = 0  # of all runs

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[tuple[Any, np.ndarray]] = []
        window.configure(fuse=True)
        VectorMachine.steps -= 1  # invariants are looked at before the first step too

    @rule(target=vectors, start=st.integers(-9, 9), pinned=places_to_pin)
    def make(self, start: int, pinned: bool | str) -> object:
        model = np.arange(start, start + LENGTH, dtype=np.int64)
        pair = sarek.vector(model, pinned=pinned), model
        self.pairs.append(pair)
        return pair

    @rule(target=records, start=st.integers(-9, 9))
    def make_records(self, start: int) -> object:
        model = np.zeros(LENGTH, PAIR)
        model["first"], model["third"] = np.arange(LENGTH) + start, start
        pair = sarek.soa(model), model
        self.pairs.append(pair)
        return pair

    @rule(target=vectors, pair=records, name=st.sampled_from(["first", "third"]))
    def take_column(self, pair: tuple, name: str) -> object:
        return pair[0][name], pair[1][name]

    @rule(target=records, pair=records, first=places, step=st.sampled_from([1, 2, -1]))
    def take_records(self, pair: tuple, first: int, step: int) -> object:
        part = slice(first, None, step)
        return (pair[0][part], pair[1][part]) if len(pair[1][part]) else multiple()

    @rule(pair=records, index=places, value=st.integers(-99, 99))
    def write_record(self, pair: tuple, index: int, value: int) -> None:
        vector, model = pair
        vector[index % len(model)] = model[index % len(model)] = (value, value, -value)

    @rule(pair=records, where=streams, n=st.integers(-9, 9))
    def launch_exchange(self, pair: tuple, where: tuple, n: int) -> None:
        (vector, model), device, stream = pair, where[0], stream_of(*where)
        exchange.launch(vector, n, grid=2, block=32, device=device, stream=stream)
        before = model["first"][::2].copy()
        model["first"][::2] = model["third"][::2] + n
        model["third"][::2] = before

    @rule(pair=records, index=places)
    def read_record(self, pair: tuple, index: int) -> None:
        vector, model = pair
        assert vector[index % len(model)] == model[index % len(model)]

    @rule(pair=vectors | records, several=st.lists(devices, min_size=1, max_size=4))
    def partition(self, pair: tuple, several: list[str]) -> None:
        for part, device in zip(pair[0].partition(several), several, strict=True):
            assert part.is_current(device)

    @rule(pair=vectors | records)
    def gather(self, pair: tuple) -> None:
        assert pair[0].gather().is_current()

    @rule(target=vectors, pair=vectors, first=places, step=st.sampled_from([1, 2, -1, 3]))
    def take_part(self, pair: tuple, first: int, step: int) -> object:
        vector, model = pair
        part = slice(first, None, step)
        if not len(model[part]):
            return multiple()
        return vector[part], model[part]

    @rule(pair=vectors, index=places, value=st.integers(-99, 99))
    def write_one(self, pair: tuple, index: int, value: int) -> None:
        vector, model = pair
        vector[index % len(model)] = model[index % len(model)] = value

    @rule(pair=vectors, index=places, value=st.integers(-99, 99))
    def write_stretch(self, pair: tuple, index: int, value: int) -> None:
        vector, model = pair
        vector[index:] = model[index:] = value

    @rule(pair=vectors, value=st.integers(-99, 99))
    def write_in_host(self, pair: tuple, value: int) -> None:
        vector, model = pair
        with vector.host() as array:
            assert (array == model).all()
            array[::2] = value
        model[::2] = value

    @rule(left=vectors, right=vectors)
    def copy_between(self, left: tuple, right: tuple) -> None:
        count = min(len(left[1]), len(right[1]))
        left[0][:count] = right[0][:count]
        left[1][:count] = right[1][:count].copy()

    @rule(pair=vectors, other=vectors, on=streams, n=st.integers(-9, 9))
    def launch_add(self, pair: tuple, other: tuple, on: tuple, n: int) -> None:
        (vector, model), (right, values) = pair, other
        if np.shares_memory(model, values):  # the threads would race
            right, values = right.copy(), values.copy()
        add.launch(vector, right, n, grid=2, block=32, device=on[0], stream=stream_of(*on))
        model += values[np.arange(len(model)) % len(values)] + n

    @rule(pair=vectors, on=streams, n=st.integers(-9, 9))
    def launch_write_some(self, pair: tuple, on: tuple, n: int) -> None:
        vector, model = pair
        write_some.launch(vector, n, grid=2, block=32, device=on[0], stream=stream_of(*on))
        model[::3] = n

    @rule(pair=vectors, device=devices, parts=rows)
    def launch_on_parts(self, pair: tuple, device: str, parts: list) -> None:
        """Many launches in a row: those on parts apart may be given to the device as one."""
        vector, model = pair
        for n, (first, last) in enumerate(parts):
            if len(model[first:last]):
                write_some.launch(vector[first:last], n, grid=2, block=32, device=device)
                model[first:last][::3] = n

    @rule(pair=vectors, on=streams)
    def launch_read(self, pair: tuple, on: tuple) -> None:
        (vector, model), device, stream = pair, on[0], stream_of(*on)
        total = np.zeros(1, np.int64)
        read.launch(total, vector, grid=1, block=1, device=device, stream=stream)
        assert total[0] == (model * np.arange(1, len(model) + 1)).sum()
        assert vector.is_current(device)

    @rule(pair=vectors, first=streams, second=streams, n=places, pinned=places_to_pin)
    def launch_with_temporaries(
        self, pair: tuple, first: tuple, second: tuple, n: int, pinned: bool | str
    ) -> None:
        """Nobody has what one launch writes and another reads when these may still be waiting."""
        vector, model = pair
        values = np.arange(n, n + LENGTH, dtype=np.int64)
        given, between = sarek.vector(values, pinned=pinned), sarek.zeros(LENGTH, np.int64)
        add.launch(between, given, n, grid=2, block=32, device=first[0], stream=stream_of(*first))
        add.launch(
            vector, between, 1, grid=2, block=32, device=second[0], stream=stream_of(*second)
        )
        del given, between
        gc.collect()
        others = [sarek.full(LENGTH, -1, np.int64, pinned=pinned).to(first[0]) for _ in range(3)]
        model += (values + n)[np.arange(len(model)) % LENGTH] + 1
        del others

    @rule(target=vectors, on=streams, first=places, n=places, pinned=places_to_pin)
    def part_of_dropped(self, on: tuple, first: int, n: int, pinned: bool | str) -> object:
        """A part lives on without the vector that a launch is writing to."""
        values = np.arange(n, n + LENGTH, dtype=np.int64)
        whole = sarek.vector(values, pinned=pinned)
        write_some.launch(whole, n, grid=2, block=32, device=on[0], stream=stream_of(*on))
        values[::3] = n
        pair = whole[first:], values[first:]
        del whole
        gc.collect()
        self.pairs.append(pair)
        return pair

    @rule(first=streams, second=streams)
    def order(self, first: tuple, second: tuple) -> None:
        one, other = stream_of(*first), stream_of(*second)
        if one and other:
            one.wait(other.record())

    @rule(pair=vectors, device=devices)
    def move(self, pair: tuple, device: str) -> None:
        assert pair[0].to(device).is_current(device)

    @rule(pair=vectors, device=st.none() | devices)
    def free(self, pair: tuple, device: str | None) -> None:
        pair[0].free(device)

    @rule(pair=vectors)
    def read_host(self, pair: tuple) -> None:
        vector, model = pair
        assert (np.asarray(vector) == model).all()
        assert vector.is_current()
        assert vector[len(model) // 2] == model[len(model) // 2]

    @rule(enabled=st.booleans(), limit=st.sampled_from([1, 3, 64]))
    def configure_window(self, enabled: bool, limit: int) -> None:
        window.configure(enabled=enabled, limit=limit)

    @rule()
    def collect(self) -> None:
        gc.collect()

    @invariant()
    def count_step(self) -> None:
        VectorMachine.steps += 1

    def teardown(self) -> None:
        window.configure(enabled=True, limit=64, fuse="auto")
        for vector, model in self.pairs:
            assert (vector == model).all()


TestVectors = VectorMachine.TestCase
TestVectors.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)


if __name__ == "__main__":
    steps = int(sys.argv[1])
    longer = settings(max_examples=20, stateful_step_count=50, deadline=None)
    while VectorMachine.steps < steps:
        run_state_machine_as_test(VectorMachine, settings=longer)
        fused, names = window.statistics.fused, ", ".join(map(str, DEVICES))
        print(f"{VectorMachine.steps} steps, {fused} fused, on {names}", flush=True)
