"""Launches that wait and are given to the device as one: which are, and that nobody can tell."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sarek_numba as sarek
from sarek_numba import errors, policy
from sarek_numba.capability import Capability, Verdict
from sarek_numba.codegen import joined
from sarek_numba.execute import window
from sarek_numba.runtime import fusion
from tests.conformance.test_window import as_vectors
from tests.executors import SEED, compare, has_warps
from tests.kernels.corpus import CASES

OPENCL = [d.name for d in sarek.devices() if d.name.startswith("opencl")]
on_windows = pytest.mark.parametrize("name", OPENCL)
GROUP = 4


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Fusion is on; each test begins with empty windows, statistics and records."""
    window.flush()
    window.statistics.reset()
    policy.clear_report()
    window.configure(fuse=True)
    yield
    window.configure(enabled=True, limit=64, fuse="auto")


def outcomes():
    return [str(r.outcome) for r in policy.report() if r.optimisation == "fusion"]


# --- what a kernel sees ---------------------------------------------------------------------------


@sarek.kernel
def places(out, number):
    """Everything that a thread can ask of its place."""
    wide, high, _ = sarek.gridsize(3)
    at = sarek.global_idx.x + wide * (sarek.global_idx.y + high * sarek.global_idx.z)
    out[at, 0] = number
    out[at, 1] = sarek.block_idx.x + 100 * sarek.block_idx.y + 10000 * sarek.block_idx.z
    out[at, 2] = sarek.grid_dim.x + 100 * sarek.grid_dim.y + 10000 * sarek.grid_dim.z
    out[at, 3] = sarek.thread_idx.x + 100 * sarek.thread_idx.y + 10000 * sarek.thread_idx.z
    out[at, 4] = sarek.global_idx.x + 100 * sarek.global_idx.y + 10000 * sarek.global_idx.z
    out[at, 5] = sarek.block_dim.x + 100 * sarek.block_dim.y + 10000 * sarek.block_dim.z


GRIDS = [(1,), (3,), (2, 3), (1, 1, 4), (2, 2, 2), (16,), (4, 1, 3), (1, 5)]


@on_windows
def test_places(name):
    """Launches of different grids as one: each block sees the grid of its own launch."""
    block = (4, 2, 1)

    def launched(device):
        outs = []
        for number in range(29):
            grid = GRIDS[number % len(GRIDS)]
            outs.append(sarek.zeros((8 * int(np.prod(grid)), 6), np.int64))
            places.launch(outs[-1], number, grid=grid, block=block, device=device)
        return [np.asarray(out).copy() for out in outs]

    expected = launched("native")
    for _ in range(2):
        actual = launched(name)
        assert all((a == e).all() for a, e in zip(actual, expected, strict=True))
    assert window.statistics.fused == 16 + 8 + 4


@sarek.kernel
def block_sums(out, counts, x, first):
    """Static shared memory, barriers, and atomics on memory of the launch's own."""
    t = sarek.thread_idx.x
    room = sarek.shared.array(32, np.int32)
    room[t] = x[sarek.global_idx.x] + first
    sarek.barrier()
    step = 16
    while step > 0:
        if t < step:
            room[t] += room[t + step]
        sarek.barrier()
        step //= 2
    if t == 0:
        out[sarek.block_idx.x] = room[0]


@sarek.kernel
def lopsided(out, x):
    """Of each two threads one writes for the other, in a branch that only it takes."""
    t = sarek.thread_idx.x
    room = sarek.shared.array(32, np.int32)
    room[t] = x[sarek.global_idx.x]
    sarek.barrier()
    if t % 2 == 0:
        room[t ^ 1] = room[t] * 2
    sarek.barrier()
    out[sarek.global_idx.x] = room[t]


@on_windows
def test_case_115_writes_for_others_in_a_branch(name):
    """No barrier is put into the branch: as many stand in the joined program as in the kernel."""
    values = np.arange(3 * 32, dtype=np.int32)
    for _ in range(2):
        pairs = [(sarek.zeros(96, np.int32), sarek.vector(values + k)) for k in range(8)]
        for out, x in pairs:
            lopsided.launch(out, x, grid=3, block=32, device=name)
        for k, (out, _) in enumerate(pairs):
            assert (out[::2] == values[::2] + k).all()
            assert (out[1::2] == 2 * (values[::2] + k)).all()
    assert window.statistics.fused == 8
    program = sarek.device(name).driver.prepare(lopsided.ir(values, values))
    whole = program.joined(8).source
    assert "joined_first" in whole
    assert whole.count("barrier(") == program.source.count("barrier(") == 2


@sarek.kernel
def histogram(counts, x):
    i = sarek.global_idx.x
    if i < len(x):
        sarek.atomic.add(counts, x[i] % len(counts), 1)


@on_windows
def test_blocks_stay_whole(name):
    """Barriers and shared arrays are of one launch; shared reads are allowed."""
    x = sarek.arange(7 * 32, dtype=np.int32)
    counts = sarek.zeros(1, np.int32)
    for again in range(2):
        outs = [sarek.zeros(7, np.int32) for _ in range(8)]
        for k, out in enumerate(outs):
            block_sums.launch(out, counts, x, 1000 * k, grid=7, block=32, device=name)
        sums = np.arange(7 * 32).reshape(7, 32).sum(axis=1)
        for k, out in enumerate(outs):
            assert (out == sums + 32000 * k).all()
        assert window.statistics.fused == 8 * again


@on_windows
def test_atomics(name):
    """Each launch counts into an array of its own, or all into one: these are not joined."""
    x = sarek.arange(100, dtype=np.int32)
    for _ in range(2):
        every = [sarek.zeros(3 + k, np.int32) for k in range(8)]
        one = sarek.zeros(5, np.int32)
        for counts in every:
            histogram.launch(counts, x, grid=4, block=32, device=name)
        for _ in range(8):
            histogram.launch(one, x, grid=4, block=32, device=name)
        for counts in every:
            assert (counts == np.bincount(np.arange(100) % len(counts))).all()
        assert (one == 160).all()
    assert window.statistics.fused == 8


# --- which are joined -----------------------------------------------------------------------------


def apart(count, kernel, name, grid=1):
    """Independent launches in one window; what they give is checked."""
    outs = [sarek.zeros(64, np.int64) for _ in range(count)]
    x = sarek.arange(64, dtype=np.int64)
    for k, out in enumerate(outs):
        kernel.launch(out, x, k, grid=grid, block=64, device=name)
    window.flush()
    assert all((out == np.arange(64) + k).all() for k, out in enumerate(outs))


def fresh_kernel(salt):
    """A kernel with a program of its own."""

    @sarek.kernel
    def shifted(out, x, n):
        i = sarek.global_idx.x
        if i < len(out):
            out[i] = x[i] + n + salt - salt * len(x) // len(x)

    return shifted


@on_windows
@pytest.mark.parametrize(
    ("count", "first", "fused"), [(3, 0, 0), (4, 0, 4), (7, 0, 4), (15, 0, 12), (64, 48, 64)]
)
def test_from_the_second_time_on(name, count, first, fused):
    """Nothing is compiled for what is met once. Numbers of launches are 4, 8 and 16."""
    kernel = fresh_kernel(100 * len(name) + count)
    apart(count, kernel, name)
    assert window.statistics.fused == first
    assert outcomes() == ([f"applied, {fusion.PROOF}"] if first else [])
    apart(count, kernel, name)
    assert window.statistics.fused == first + fused
    assert outcomes() == ([f"applied, {fusion.PROOF}"] if fused else [])


@on_windows
def test_off(name, monkeypatch):
    """`SAREK_OPT_DISABLE=fusion`."""
    kernel = fresh_kernel(7000 + len(name))
    monkeypatch.setenv("SAREK_OPT_DISABLE", "fusion")
    for _ in range(3):
        apart(8, kernel, name)
    assert window.statistics.fused == 0
    assert outcomes() == ["not applied: SAREK_OPT_DISABLE turns it off"]
    monkeypatch.delenv("SAREK_OPT_DISABLE")
    for _ in range(2):
        apart(8, kernel, name)
    assert window.statistics.fused == 8


@on_windows
def test_large_launches(name):
    """More blocks than 16 are work enough for a device."""
    kernel = fresh_kernel(8000 + len(name))
    for _ in range(3):
        apart(8, kernel, name, grid=17)
    assert window.statistics.fused == 0


@sarek.kernel
def neighbours(out, x):
    """Each element needs those beside it."""
    i = sarek.global_idx.x
    n = len(x)
    if i < n:
        out[i] = x[(i + n - 1) % n] + x[(i + 1) % n]


@on_windows
@pytest.mark.parametrize("part", ["whole", "one element"])
def test_consumers_are_not_joined_to_producers(name, part):
    """Chains, and launches that share one element that some of them write."""
    for _ in range(3):
        memory = sarek.ones(5 * 64 + 1, np.float64)
        model = np.ones(5 * 64 + 1)
        reach = 65 if part == "one element" else 64
        for k in range(4):
            a, b = slice(64 * k, 64 * k + reach), slice(64 * (k + 1), 64 * (k + 1) + reach)
            if part == "one element":
                a, b = slice(64 * k, 64 * k + 32), slice(64 * k + 63, 64 * k + 95)
            neighbours.launch(memory[b], memory[a], grid=2, block=64, device=name)
            model[b] = np.roll(model[a], 1) + np.roll(model[a], -1)
        assert (memory == model).all()
    if part == "whole":
        assert window.statistics.fused == 0
        assert any("uses bytes that one before it writes" in text for text in outcomes())


# --- programs that cannot be joined ---------------------------------------------------------------


@sarek.kernel
def dynamic(out):
    room = sarek.shared.array(0, np.int64)
    room[sarek.thread_idx.x] = 1
    sarek.barrier()
    out[sarek.thread_idx.x] = room[sarek.thread_idx.x]


@sarek.kernel
def waiting(out, flag):
    """A block waits for another one: both must run."""
    if sarek.thread_idx.x == 0:
        while sarek.atomic.load(flag, 0) < sarek.block_idx.x:
            sarek.mem_fence("device")
        out[sarek.block_idx.x] = 1
        sarek.atomic.add(flag, 0, 1)


@sarek.kernel
def many(a, b, c, d, e, f, g, h, out):
    i = sarek.thread_idx.x
    out[i] = a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + h[i]


@on_windows
def test_waiting_blocks(name):
    """They might be of different launches on a device that runs one block at a time."""
    for _ in range(3):
        made = [(sarek.zeros(1, np.int32), sarek.zeros(1, np.int32)) for _ in range(4)]
        for out, flag in made:
            waiting.launch(out, flag, grid=1, block=1, device=name)
        assert all(out[0] == 1 for out, _ in made)
    assert window.statistics.fused == 0
    assert any("wait for each other" in text for text in outcomes())


@on_windows
def test_many_arguments(name):
    """Sixteen launches of nine arrays are too many bytes; eight are not."""
    x = [sarek.full(8, k, np.int64) for k in range(8)]
    for _ in range(3):
        outs = [sarek.zeros(8, np.int64) for _ in range(16)]
        for out in outs:
            many.launch(*x, out, grid=1, block=8, device=name)
        assert all((out == 28).all() for out in outs)
    assert window.statistics.fused == 8 + 16  # in the second window 16 are refused, and 8 are met
    assert any("the arguments of 16 launches are" in text for text in outcomes())


@sarek.function
def place():
    return sarek.grid(1) + 5


@sarek.function(inline=False)
def far_place(i):
    return place() if i > 0 else -1


@sarek.kernel
def asking(out):
    i = sarek.thread_idx.x
    out[i] = far_place(i)


def test_texts_and_functions_that_ask():
    """What the printed kernel cannot put right is refused, by what it is."""
    kernel = asking.ir(sarek.zeros(4, np.int64))
    assert kernel.functions
    assert "asks for the place in the grid" in (joined.why_not(kernel) or "")
    assert "dynamic shared memory" in (joined.why_not(dynamic.ir(sarek.zeros(4, np.int64))) or "")
    assert joined.why_not(places.ir(sarek.zeros((4, 6), np.int64), 1)) is None


def test_names():
    """Parameters with the names of the program's own members, in any order."""

    @sarek.kernel
    def awkward(joined_numbers, joined_first, first, joined_first_0, columns_1):
        joined_numbers[sarek.grid(1)] = joined_first + 10 * first + joined_first_0 + columns_1

    for name in OPENCL:
        for _ in range(2):
            outs = [sarek.zeros(8, np.int64) for _ in range(4)]
            for k, out in enumerate(outs):
                awkward.launch(out, k, 2, 3, 4, grid=2, block=4, device=name)
            assert all((out == 27 + k).all() for k, out in enumerate(outs))
    assert window.statistics.fused == 4 * len(OPENCL)


# --- failures -------------------------------------------------------------------------------------


@on_windows
def test_a_device_that_refuses(name, monkeypatch):
    """The launches are given to it one by one; the next time at once."""
    from sarek_opencl import driver

    start, counts = driver.enqueue, []

    def failing(queue, kernel, total, block):
        counts.append(total[0] // block[0])
        if counts[-1] == 5:
            raise errors.LaunchFailed("five are too many")
        return start(queue, kernel, total, block)

    kernel = fresh_kernel(9000 + len(name))
    apart(5, kernel, name)
    monkeypatch.setattr(fusion, "COUNTS", (5,))
    apart(5, kernel, name)
    monkeypatch.setattr(driver, "enqueue", failing)
    apart(5, kernel, name)
    assert [count for count in counts if count != 1] == [5]
    apart(5, kernel, name)
    assert [count for count in counts if count != 1] == [5]
    assert outcomes() == [
        "not applied: the device refused 5 launches as one: five are too many",
    ]


@on_windows
def test_a_failure_names_all(name, monkeypatch):
    """Which of them it was nobody knows."""
    from sarek_opencl.queues import OpenCLQueues

    kernel = fresh_kernel(9500 + len(name))
    apart(4, kernel, name)
    outs = [sarek.zeros(64, np.int64) for _ in range(4)]
    x = sarek.arange(64, dtype=np.int64)
    for out in outs[:2]:
        kernel.launch(out, x, 1, grid=1, block=64, device=name)
    for out in outs[2:]:
        kernel.launch(out, x, 1, grid=1, block=64, device=name)
    window.flush()
    assert window.statistics.fused == 4

    def wait(self, mark):
        raise errors.LaunchFailed("the device stopped")

    line = test_a_failure_names_all.__code__.co_firstlineno + 10
    with monkeypatch.context() as patch:
        patch.setattr(OpenCLQueues, "wait", wait)
        patch.setattr(OpenCLQueues, "status", lambda self, mark: 1)
        with pytest.raises(errors.LaunchFailed) as error:
            np.asarray(outs[1])
    assert str(error.value) == (
        "the device stopped\n"
        "  note: of one of 4 launches that ran as one:\n"
        f"    kernel 'shifted' at {__file__}:{line}\n"
        f"    kernel 'shifted' at {__file__}:{line + 2}"
    )
    sarek.device(name).synchronize()


@on_windows
@pytest.mark.parametrize("failing", [0, 1])
def test_failures_of_launches_out_of_order(name, failing, monkeypatch):
    """Launches of two kernels in turn are two sets: who reads what the third launch made waits for
    both, and is told which of the sets failed.
    """
    from sarek_opencl.queues import OpenCLQueues

    salt = 10 * len(name) + failing
    kernels = [fresh_kernel(11000 + salt), fresh_kernel(12000 + salt)]
    outs = [[sarek.zeros(64, np.int64) for _ in range(4)] for _ in range(2)]
    x = sarek.arange(64, dtype=np.int64)
    for _ in range(2):
        window.flush()
        for one, other in zip(*outs, strict=True):
            kernels[0].launch(one, x, 1, grid=1, block=64, device=name)
            kernels[1].launch(other, x, 1, grid=1, block=64, device=name)
    line = test_failures_of_launches_out_of_order.__code__.co_firstlineno + 15
    waiting = list(window._windows[sarek.device(name).driver.queues].waiting)
    window.flush()
    assert window.statistics.fused == 8
    marks = [waiting[0].mark, waiting[-1].mark]
    assert [work.mark for work in waiting] == [marks[0], *[marks[1]] * 7]
    wait, status = OpenCLQueues.wait, OpenCLQueues.status

    def failed(self, mark):
        if mark is marks[failing]:
            raise errors.LaunchFailed("the device stopped")
        wait(self, mark)

    def stopped(self, mark):
        return -1 if mark is marks[failing] else status(self, mark)

    with monkeypatch.context() as patch:
        patch.setattr(OpenCLQueues, "wait", failed)
        patch.setattr(OpenCLQueues, "status", stopped)
        with pytest.raises(errors.LaunchFailed) as error:
            np.asarray(outs[0][1])
        assert str(error.value) == (
            "the device stopped\n"
            "  note: of one of 4 launches that ran as one:\n"
            f"    kernel 'shifted' at {__file__}:{line + failing}"
        )
        with pytest.raises(errors.LaunchFailed):
            sarek.device(name).synchronize()
    sarek.device(name).synchronize()


# --- what is told ---------------------------------------------------------------------------------


@on_windows
def test_explanations(name, monkeypatch, capsys):
    """SAREK_EXPLAIN says of what is joined that it is, and of what is not why not."""
    monkeypatch.setenv("SAREK_EXPLAIN", "1")
    kernel, large = fresh_kernel(13000 + len(name)), fresh_kernel(14000 + len(name))

    def told():
        return capsys.readouterr().err.splitlines()

    for _ in range(3):
        apart(4, kernel, name)
    start = f"sarek: kernel 'shifted' on {name}: fusion "
    assert told() == [f"{start}applied, {fusion.PROOF}"]
    apart(4, large, name, grid=17)
    assert told() == [
        f"{start}not applied: it is large: launches of more than 16 blocks are given one by one"
    ]
    window.configure(fuse=False)
    apart(4, kernel, name)
    assert told() == [f"{start}not applied: window.configure turned it off"]
    window.configure(fuse="auto")
    fused = window.statistics.fused
    apart(4, kernel, name)
    fact = sarek.device(name).record.facts[Capability("fusion")]
    if sarek.device(name).record.is_cpu:
        assert fact.verdict is Verdict.UNAVAILABLE
        assert told() == [f"{start}not applied: {fact.evidence}"]
        assert window.statistics.fused == fused
    else:
        assert fact.verdict is Verdict.AVAILABLE
        assert window.statistics.fused == fused + 4


def test_switches():
    """Words for what is no switch; what is not given stays."""
    for fuse in (1, "on", 0.5):
        with pytest.raises(errors.InvalidArgument, match=f'True, False or "auto", not {fuse!r}'):
            window.configure(fuse=fuse)
    window.configure(limit=32)
    for name in OPENCL:
        kernel = fresh_kernel(15000 + len(name))
        before = window.statistics.fused
        for _ in range(2):
            apart(4, kernel, name)
        assert window.statistics.fused == before + 4
        window.configure("opencl", fuse=False)
        apart(4, kernel, name)
        assert window.statistics.fused == before + 4
        window.configure(fuse=True)


@on_windows
@pytest.mark.parametrize("step", [1, 2], ids=["with a plan", "every second element"])
def test_windows_that_repeat_are_not_searched(name, step):
    """Launches like earlier ones have plans, strided vectors have none: both are looked up."""
    kernel = fresh_kernel(16000 + 10 * len(name) + step)
    outs = [sarek.zeros(64 * step, np.int64) for _ in range(4)]
    x = sarek.arange(64, dtype=np.int64)
    decisions = window._windows[sarek.device(name).driver.queues]._decisions
    searches = []
    for k in range(8):
        for out in outs:
            kernel.launch(out[::step], x, k, grid=1, block=64, device=name)
        window.flush()
        searches.append(decisions.searches)
    assert searches[4:] == [searches[4]] * 4
    assert window.statistics.fused >= 16
    assert all((out[::step] == np.arange(64) + 7).all() for out in outs)


# --- the corpus -----------------------------------------------------------------------------------

SOME = """
grid_stride_uint8 two_dimensions_fortran two_dimensions_strided exact_float64
nested_loops_with_every_exit guarded_neighbours tree_reduction insertion_sort_in_local_memory
constant_weights views_by_slicing overlapping_views_of_one_array zero_size_array
values_live_across_barriers_in_loops compare_and_swap_loop shared_memory_and_barrier_in_a_helper
four_complex64 bounded_recursion block_sums_through_warps ballots_and_votes fields_of_packed_records
text_of_floats last_block_of_a_sum nested_patterns a_variant_as_an_argument with_bias
scan_in_dynamic_shared_memory
""".split()


def launched(cases, name):
    """Four launches of each, with data of their own, in windows; results are read at the end."""
    made = []
    for case in cases:
        for k in range(GROUP):
            launch = case.launch(np.random.default_rng(SEED + k))
            given = as_vectors(launch.arguments)
            options = {"block": launch.block, "shared_bytes": launch.shared_bytes}
            case.kernel.launch(*given, grid=launch.grid, device=name, **options)
            made.append((case, launch, given))
    results = [
        [np.asarray(array).copy() if isinstance(array, sarek.Vector) else array for array in given]
        for _, _, given in made
    ]
    return made, results


def test_some_are_of_the_corpus():
    """A name that is no more would be a kernel that is tested no more."""
    assert set(SOME) <= {case.name for case in CASES}


@on_windows
def test_the_corpus_in_groups(name):
    """Some kernels of each feature give in groups what each gives alone, bit for bit."""
    cases = [case for case in CASES if case.name in SOME and (not case.warps or has_warps(name))]
    with_fusion = [launched(cases, name) for _ in range(2)][-1]
    fused = window.statistics.fused
    assert fused > 2 * GROUP * len(cases) // 3
    window.configure(fuse=False)
    _, without = launched(cases, name)
    assert window.statistics.fused == fused
    for (case, launch, _), actual, apart_from in zip(*with_fusion, without, strict=True):
        for position, expected in enumerate(launch.expected):
            if expected is not None:
                compare(name, case, position, np.asarray(actual[position]), expected)
                if actual[position].dtype.kind != "V":  # records have bytes that are no field's
                    assert actual[position].tobytes() == apart_from[position].tobytes()


# --- sequences ------------------------------------------------------------------------------------

LENGTH, CUT = 48, 12


@sarek.kernel
def add_times(out, x, n):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] += x[i % len(x)] * n


@sarek.kernel
def turned(out, x, n):
    """Each element needs others of its block, through shared memory."""
    t = sarek.thread_idx.x
    room = sarek.shared.array(32, np.int64)
    i = sarek.global_idx.x
    room[t] = x[i % len(x)]
    sarek.barrier()
    if i < len(out):
        out[i] = room[t ^ 1] - n


@sarek.kernel
def counted(out, x, n):
    i = sarek.global_idx.x
    if i < len(x):
        sarek.atomic.add(out, (x[i] + n) % len(out), 1)


KERNELS = (add_times, turned, counted)
parts = st.one_of(
    st.integers(0, LENGTH // CUT - 1).map(lambda k: (CUT * k, CUT * (k + 1))),
    st.tuples(st.integers(0, LENGTH - 1), st.integers(1, LENGTH)).map(
        lambda pair: (pair[0], min(LENGTH, pair[0] + pair[1]))
    ),
)
places_in_memory = st.tuples(st.integers(0, 5), parts)
steps = st.lists(
    st.tuples(
        st.integers(0, len(KERNELS) - 1),
        st.lists(places_in_memory, min_size=4, max_size=9, unique=True),
        st.integers(-3, 3),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


def after(device, made):
    """What six vectors hold after a sequence: runs of launches of a kernel on some parts each,
    which read another vector's; some runs end with a host read.
    """
    vectors = [sarek.vector(np.arange(LENGTH, dtype=np.int64) * (k + 1)) for k in range(6)]
    for kernel, targets, n, reads in made:
        for k, (which, (first, last)) in enumerate(targets):
            x = vectors[(which + 1 + (k * n) % 5) % 6]
            out = vectors[which][first:last]
            KERNELS[kernel].launch(out, x, n, grid=2, block=32, device=device)
        if reads:
            assert vectors[targets[0][0]].shape == np.asarray(vectors[targets[0][0]]).shape
    return [np.asarray(vector).copy() for vector in vectors]


@on_windows
def test_sequences(name):
    """Any launches on vectors that they share: with fusion, without it, and by the oracle."""
    fused = []

    @settings(max_examples=12, deadline=None)
    @given(steps)
    def check(made):
        expected = after("interpreter", made)
        for fuse in (True, True, False):
            window.configure(fuse=fuse)
            before = window.statistics.fused
            for actual, one in zip(after(name, made), expected, strict=True):
                assert (actual == one).all()
            fused.append((fuse, window.statistics.fused - before))

    check()
    assert sum(count for fuse, count in fused if fuse) > 0
    assert not any(count for fuse, count in fused if not fuse)
