"""The search for the fastest block."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import InvalidArgument, OutOfMemory
from sarek_numba.realize import local_size, optimize_local_size
from sarek_numba.realize.compile import program_for
from sarek_numba.runtime import disk
from tests.unit.realize_kit import SCALE, floats

N = 1000


@sarek.kernel
def grow(x: Any) -> None:
    i = sarek.global_idx.x
    if i < len(x):
        x[i] += 1


@sarek.kernel
def unguarded(x: Any) -> None:
    i = sarek.global_idx.x
    x[i] += 1


@sarek.kernel
def block_numbers(x: Any) -> None:
    """A result that depends on the block: no search is right for it."""
    i = sarek.global_idx.x
    if i < len(x):
        x[i] = sarek.block_idx.x


GROW, UNGUARDED = grow.ir(sarek.float32[:]), unguarded.ir(sarek.float32[:])
NUMBERS = block_numbers.ir(sarek.float32[:])


@pytest.fixture(autouse=True)
def _forget():
    local_size._chosen.clear()


def made(kernel, device="native"):
    return program_for(sarek.device(device), kernel)


class Timer:
    """Pretends: the time of a block is what `cost` says."""

    def __init__(self, cost):
        self.cost = cost
        self.seen = []

    def __call__(self, block):
        self.seen.append(block)
        return self.cost(block)


def test_f01_candidates_are_powers_of_two():
    """Of each side up to 1024, of at most 1024 threads, 512 among them."""
    found = local_size.candidates((2048, 2048, 2048), (1024, 1024, 1024), 1024, False)
    expected = {
        (2**a, 2**b, 2**c)
        for a in range(11)
        for b in range(11)
        for c in range(11)
        if a + b + c <= 10
    }
    assert set(found) == expected
    assert len(found) == len(expected) == 286
    assert (512, 1, 1) in found
    small = local_size.candidates((2048, 2048, 2048), (64, 8, 2), 128, False)
    assert max(b[0] for b in small) == 64
    assert max(b[1] for b in small) == 8
    assert max(b[2] for b in small) == 2
    assert max(np.prod(b) for b in small) == 128


def test_f01_each_is_tried_twice_and_the_fastest_wins():
    """In an order that the seed makes; the shorter of two times counts."""
    times = iter(range(10**6))

    def cost(block):
        return 0.5 if block == (64, 1, 1) and next(times) > 0 else 1.0

    orders = []
    for seed in (1, 1, 2):
        timer = Timer(cost)
        found = optimize_local_size(
            "native", made(SCALE), 4096, [floats()] * 2, seed=seed, timer=timer, cached=False
        )
        assert found == (64, 1, 1)
        assert set(Counter(timer.seen).values()) == {2}
        assert sorted(set(timer.seen)) == [(2**k, 1, 1) for k in range(11)]
        orders.append(timer.seen)
    assert orders[0] == orders[1] != orders[2]


@pytest.mark.parametrize("device", ["native", "interpreter", "opencl"])
def test_f02_nothing_of_the_users_is_written(device):
    """A kernel in place, its buffer twice, a part of a larger one."""
    x = floats(0, 40)
    before = np.array(x)
    program = made(GROW, device)
    optimize_local_size(device, program, 8, [x[4:12]], guarded=True, cached=False)
    y = np.arange(8, dtype=np.float32)
    optimize_local_size(device, program, 8, [y], guarded=True, cached=False)
    scale = made(SCALE, device)
    optimize_local_size(device, scale, 8, [x[:8], x[:8], 8, 2.0], guarded=True, cached=False)
    assert np.array_equal(x, before)
    assert np.array_equal(y, np.arange(8))


def test_f03_all_failing_is_an_error_with_a_note_for_each():
    """The note has the error of the block."""

    def fail(block):
        raise RuntimeError(f"not {block[0]}")

    with pytest.raises(InvalidArgument) as refused:
        optimize_local_size("native", made(GROW), 4, [floats()], timer=fail, cached=False)
    assert str(refused.value) == (
        "kernel 'grow': none of 3 blocks can be launched with (4, 1, 1) threads"
    )
    assert sorted(refused.value.__notes__) == [
        f"block ({k}, 1, 1): RuntimeError: not {k}" for k in (1, 2, 4)
    ]


def test_f03_one_that_fails_is_left_out():
    """Also if it fails in its second trial."""
    seen = Counter()

    def cost(block):
        seen[block] += 1
        if block == (4, 1, 1) and seen[block] == 2:
            raise RuntimeError
        return 1.0 / block[0]

    found = optimize_local_size("native", made(GROW), 4, [floats()], timer=cost, cached=False)
    assert found == (2, 1, 1)


@pytest.mark.parametrize("error", [OutOfMemory("none", 1, 0), KeyboardInterrupt(), MemoryError()])
def test_f04_memory_and_interrupts_are_not_swallowed(error):
    """They are not of one candidate."""

    def fail(block):
        raise error

    with pytest.raises(type(error)):
        optimize_local_size("native", made(GROW), 4, [floats()], timer=fail, cached=False)


def test_f04_every_candidate_computes_the_whole():
    """Without a guard it divides the threads, with one the grid is rounded up."""
    blocks = local_size.candidates((1000, 6, 1), (1024,) * 3, 1024, False)
    assert all(1000 % x == 0 and 6 % y == 0 and z == 1 for x, y, z in blocks)
    assert max(x for x, _, _ in blocks) == 8
    x = sarek.zeros(N, np.float32)
    block = optimize_local_size("native", made(UNGUARDED), N, [x], cached=False)
    unguarded[local_size.grid_of((N, 1, 1), block), block](x)
    assert np.array_equal(x, np.ones(N))
    blocks = local_size.candidates((N, 1, 1), (1024,) * 3, 1024, True)
    assert (1024, 1, 1) in blocks
    for block in blocks:
        x = sarek.zeros(N, np.float32)
        grow[local_size.grid_of((N, 1, 1), block), block](x)
        assert np.array_equal(x, np.ones(N))


def test_f04_scalars_are_passed():
    """A kernel that does nothing without its number is measured with it."""
    out, x = sarek.zeros(N, np.float32), floats(1, N)
    trial = local_size._Trial(sarek.device("native"), made(SCALE), (N, 1, 1), [out, x, N, 3.0])
    (result,) = trial.result((256, 1, 1))
    assert np.array_equal(result, 3 * np.arange(1, N + 1))


def test_f04_the_winner_is_verified():
    """A block whose result is not that of the first candidate does not win, however fast."""
    x = sarek.zeros(64, np.float32)
    found = optimize_local_size("native", made(NUMBERS), 64, [x], guarded=True, cached=False)
    assert found == (1, 1, 1)


def test_f04_choices_are_kept_by_program_device_and_size_class(tmp_path, monkeypatch):
    """In the process and on disk; sizes between two powers of two are alike."""
    monkeypatch.setenv("SAREK_CACHE", "1")
    monkeypatch.setenv("SAREK_CACHE_DIR", str(tmp_path))
    timer = Timer(lambda block: abs(block[0] - 32))

    def search(device, kernel, size):
        before = len(timer.seen)
        found = optimize_local_size(
            device, made(kernel, device), size, [floats(0, 4096)], guarded=True, timer=timer
        )
        assert found == (32, 1, 1)
        return len(timer.seen) > before

    assert search("native", GROW, 1000)
    assert not search("native", GROW, 900)
    assert search("native", GROW, 2000)
    assert search("native", UNGUARDED, 1000)
    assert search("interpreter", GROW, 1000)
    local_size._chosen.clear()
    assert not search("native", GROW, 700), "from the disk"
    assert {entry.kind for entry in disk.entries(tmp_path)} >= {"local_size"}
    for entry in list(disk.entries(tmp_path)):
        if entry.kind == "local_size":
            entry.path.write_bytes(b"nonsense")
    local_size._chosen.clear()
    assert search("native", GROW, 1000)


def test_f04_a_choice_that_does_not_divide_is_searched_again():
    """1000 and 1001 are of one class, and unguarded kernels need a divisor."""
    timer = Timer(lambda block: 1.0 / block[0])
    program = made(UNGUARDED)
    assert optimize_local_size("native", program, 1000, [floats()], timer=timer) == (8, 1, 1)
    assert optimize_local_size("native", program, 1001, [floats()], timer=timer) == (1, 1, 1)


def test_f04_first_launches_are_not_timed(monkeypatch):
    """What a block costs once, as compiling, does not count."""
    launched = Counter()
    clock = [0.0]
    real = local_size.launching.launch

    def launch(device, analysed, arguments, grid, block, shared):
        launched[block] += 1
        clock[0] += 100 if launched[block] == 1 and block == (4, 1, 1) else 1.0 / block[0]
        real(device, analysed, arguments, grid, block, shared)

    monkeypatch.setattr(local_size.launching, "launch", launch)
    monkeypatch.setattr(local_size.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(local_size, "_PATIENCE", 10**6)
    assert optimize_local_size("native", made(GROW), 4, [floats()], cached=False) == (4, 1, 1)
    assert launched[2, 1, 1] == 3


@pytest.mark.parametrize(("later", "best"), [(2.0, (256, 1, 1)), (0.5, (64, 1, 1))])
def test_a_block_that_was_fast_by_chance_does_not_win(later, best, monkeypatch):
    """It has to be faster than the usual one in turns too, not in its two times alone."""
    launched = Counter()
    clock = [0.0]
    real = local_size.launching.launch

    def launch(device, analysed, arguments, grid, block, shared):
        launched[block] += 1
        lucky = 0.1 if launched[block] <= 3 else later
        clock[0] += {(64, 1, 1): lucky, (256, 1, 1): 1.0}.get(block, 3.0)
        real(device, analysed, arguments, grid, block, shared)

    monkeypatch.setattr(local_size.launching, "launch", launch)
    monkeypatch.setattr(local_size.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(local_size, "_PATIENCE", 10**6)
    size = 1024
    given = [floats(0, size)]
    assert optimize_local_size("native", made(GROW), size, given, cached=False) == best


def test_a_long_search_shows_a_bar(monkeypatch, capsys):
    """After a second, and not before."""
    from rich import progress

    shown = []
    monkeypatch.setattr(progress.Progress, "start", lambda self: shown.append("start"))
    monkeypatch.setattr(progress.Progress, "stop", lambda self: shown.append("stop"))
    arguments = ("native", made(GROW), 4, [floats()])
    optimize_local_size(*arguments, timer=lambda block: 1.0, cached=False)
    assert shown == []
    monkeypatch.setattr(local_size, "_PATIENCE", -1.0)
    optimize_local_size(*arguments, timer=lambda block: 1.0, cached=False)
    assert shown == ["start", "stop"]


def test_forall_searches_when_asked():
    """`block="auto"` is the block that was found; the result is that of any."""
    for device in ("native", "opencl"):
        with sarek.use_device(device):
            x = sarek.zeros(N, np.float32)
            for _ in range(3):
                grow.forall(N, block="auto")(x)
            assert np.array_equal(x, np.full(N, 3))
            grow.forall(0, block="auto")(x)
    with pytest.raises(sarek.InvalidDimensions, match="block 'fast'"):
        grow.forall(N, block="fast")(x)


def test_no_search_inside_a_capture():
    """Its launches would be taken down."""
    x = sarek.zeros(77, np.float32)
    search = grow.forall(77, block="auto")
    with pytest.raises(sarek.GraphError, match="a block is searched inside a capture"):
        captured(search, x)


def captured(search, x):
    with sarek.capture():
        search(x)
