"""Products on matrix units write what the kernel as given writes, and nothing else."""

from __future__ import annotations

from itertools import product as pairs
from typing import Any

import ml_dtypes  # noqa: F401 - tells NumPy of bfloat16
import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import accept, execute, policy
from sarek_numba.errors import OracleError
from sarek_numba.matrix import Specialised, specialise, testing
from sarek_numba.matrix.rewrite.form import Direct, Staged
from sarek_numba.matrix.rewrite.plan import TILINGS
from tests.executors import devices

DEVICES = [name for name in devices() if sarek.device(name).record.coopmat]
EDGES = (1, 7, 8, 9, 15, 16, 17, 31, 33)
LARGER = (64, 72, 100)
BLOCK = (8, 4)
PAIRS = {
    "int8": ("int8", "int8", "int32"),
    "uint8": ("uint8", "uint8", "int32"),
    "int32": ("int32", "int32", "int32"),
    "uint32": ("uint32", "uint32", "uint32"),
    "int16": ("int16", "int16", "int32"),
    "mixed": ("uint16", "int8", "int32"),
    "float16": ("float16", "float16", "float32"),
    "bfloat16": ("bfloat16", "bfloat16", "float32"),
    "float32": ("float32", "float32", "float32"),
}
FLOATS = ("float16", "bfloat16", "float32")
CONSENT = (
    accept.relaxed_accumulation("sums of small whole numbers are exact in any order"),
    accept.operand_rounding("float16", "small whole numbers are exact in float16"),
)
on_devices = pytest.mark.parametrize("device", DEVICES)
fast = pytest.mark.parametrize("device", [name for name in DEVICES if name != "interpreter"])


@sarek.kernel
def multiply(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = np.int32(0)
        for k in range(a.shape[1]):
            total += np.int32(a[i, k]) * np.int32(b[k, j])
        c[i, j] = total


@sarek.kernel
def multiply_unsigned(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = np.uint32(0)
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


@sarek.kernel
def multiply_floats(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += np.float32(a[i, k]) * np.float32(b[k, j])
        c[i, j] = total


@sarek.kernel
def twice(x):
    x[sarek.block_idx.x, sarek.thread_idx.x] *= 2


def kernel_of(kind: str) -> Any:
    if kind in FLOATS:
        return multiply_floats
    return multiply_unsigned if kind == "uint32" else multiply


def ends_of(type: Any) -> tuple[Any, Any]:
    """The ends of a type; what no sum survives in one of floats."""
    if np.dtype(type).name in FLOATS:
        return np.nan, np.inf
    return np.iinfo(type).min, np.iinfo(type).max


class Room:
    """A matrix within a vector that is full of the ends of its type; all of it is on the device."""

    def __init__(self, matrix: Any, by_columns: bool = False, aligned: bool = False) -> None:
        rows, columns = matrix.shape
        low, high = ends_of(matrix.dtype)
        before, room = (0, 0) if aligned else (3, 5)
        shape = (columns, rows) if by_columns else (rows, columns)
        self.content = np.empty((shape[0] + room, shape[1] + room), matrix.dtype)
        self.content.flat[::2], self.content.flat[1::2] = low, high
        self.place = slice(before, before + shape[0]), slice(before, before + shape[1])
        self.content[self.place] = matrix.T if by_columns else matrix
        self.by_columns = by_columns

    def on(self, device: str) -> Any:
        """The matrix on a device."""
        self.memory = sarek.vector(self.content).to(device)
        inner = self.memory[self.place]
        return inner.T if self.by_columns else inner

    def bytes(self, device: str) -> Any:
        """All memory as the device has it."""
        if sarek.device(device).driver.memory is not None:
            execute.mark_stale((self.memory,), sarek.device(device))
        return np.asarray(self.memory).view(np.uint8)


def rooms(kind: str, m: int, n: int, k: int, **layout: Any) -> list[Room]:
    """C, A and B: all integers of their types may occur; small ones as floats."""
    rng = np.random.default_rng(m * 10_000 + n * 100 + k)
    made = []
    for type, shape in zip(PAIRS[kind], ((m, k), (k, n), (m, n)), strict=True):
        if kind in FLOATS:
            matrix = rng.integers(-8, 9, shape).astype(type)
        else:
            matrix = rng.integers(*ends_of(type), shape, type, endpoint=True)
        made.append(Room(matrix, **layout))
    return [made[2], *made[:2]]


def grid_of(m: int, n: int) -> tuple[int, int]:
    return -(-m // BLOCK[0]), -(-n // BLOCK[1])


def both(device: str, kind: str, m: int, n: int, k: int, **layout: Any) -> Specialised:
    """Run a product as given and as rewritten; all memory must be the same afterwards."""
    kernel = kernel_of(kind)
    given, other = rooms(kind, m, n, k, **layout), rooms(kind, m, n, k, **layout)
    kernel.launch(
        *(one.on(device) for one in given), grid=grid_of(m, n), block=BLOCK, device=device
    )
    arguments = [one.on(device) for one in other]
    with policy.grant(*(CONSENT if kind in FLOATS else ())):
        outcome = sarek.matrix.run(
            kernel, *arguments, grid=grid_of(m, n), block=BLOCK, device=device
        )
    if not isinstance(outcome, Specialised) and "no cooperative matrix" in outcome.reason:
        pytest.skip(outcome.reason)
    assert isinstance(outcome, Specialised), str(outcome)
    for theirs, ours in zip(given, other, strict=True):
        np.testing.assert_array_equal(theirs.bytes(device), ours.bytes(device))
    return outcome


@fast
def test_every_size_around_the_edges_of_fragments(device: str) -> None:
    """Memory around the operands is no part of a sum, and none around C is written."""
    for m, n, k in pairs(EDGES, EDGES, EDGES):
        assert both(device, "int8", m, n, k).variant == Staged()


@pytest.mark.parametrize("edge", [8, 16])
@pytest.mark.parametrize("width", [32, 64])
def test_sizes_in_the_interpreter(edge: int, width: int) -> None:
    """With fragments and waves of either kind; it tells of races, and of what is read unset."""
    for at, (m, n, k) in enumerate(pairs(EDGES, EDGES, EDGES)):
        if at % 29 == (edge + width) % 29:
            with testing.fragment_edge(edge), testing.subgroup_width(width):
                outcome = both("interpreter", "int8", m, n, k)
            assert outcome.config.m == edge
            assert outcome.ir.warp_width == width


@on_devices
@pytest.mark.parametrize("tiling", range(len(TILINGS)))
def test_tilings(device: str, tiling: int) -> None:
    """Blocks of several warps, warps of several fragments, more than one tile along each axis."""
    sizes = [(33, 17, 70)]
    if device != "interpreter":
        sizes = [*pairs(LARGER, LARGER, LARGER), (300, 290, 130)]
    with testing.tile(tiling):
        for m, n, k in sizes:
            both(device, "int8", m, n, k)


@on_devices
@pytest.mark.parametrize("kind", PAIRS)
def test_types_of_operands(device: str, kind: str) -> None:
    """Sums modulo 2^32 of operands of any width and sign, at the ends of their types too; of whole
    numbers as floats.
    """
    for m, n, k in ((9, 17, 33), (16, 16, 16), (1, 1, 1)):
        outcome = both(device, kind, m, n, k)
        assert isinstance(outcome.evidence, policy.Granted if kind in FLOATS else policy.Proof)


@on_devices
def test_operands_that_lie_by_columns(device: str) -> None:
    """Where the elements of a column are neighbours."""
    both(device, "int8", 17, 33, 31, by_columns=True)


@on_devices
@pytest.mark.parametrize("by_columns", [False, True])
def test_fragments_from_global_memory(device: str, by_columns: bool) -> None:
    """Where rows are aligned and tiles whole."""
    with testing.directly():
        found = both(device, "int8", 64, 64, 64, by_columns=by_columns, aligned=True)
        assert isinstance(found.variant, Direct)
        ragged = both(device, "int8", 64, 60, 64, by_columns=by_columns, aligned=True)
        assert ragged.variant == Staged()
        apart = both(device, "int8", 64, 64, 64, by_columns=by_columns)
        assert apart.variant == Staged()


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("kind", ["int8", "float16", "int32", "mixed"])
def test_kernels_of_gpus(kind: str, by_columns: bool) -> None:
    """In the oracle: tiles that are read before the products of a step and stored behind them, with
    whole tiles and ragged ones, a step too few to do so, operands that lie either way.
    """
    with testing.as_on_gpus():
        for m, n, k in ((33, 19, 37), (33, 33, 63), (1, 1, 1)):
            with testing.tile(len(TILINGS) - 2):
                both("interpreter", kind, m, n, k, by_columns=by_columns)


@fast
@pytest.mark.parametrize("kind", FLOATS)
def test_sizes_of_floats(device: str, kind: str) -> None:
    """NaN and infinities around the operands are in no sum."""
    for at, (m, n, k) in enumerate(pairs(EDGES, EDGES, EDGES)):
        if at % 5 == 0:
            both(device, kind, m, n, k)


SEEN = (AssertionError, OracleError)  # the oracle tells of what leaves its array
WRONG = [("rows", 1), ("rows", -1), ("columns", 1), ("columns", -1), ("inner", 1), ("inner", -1),
         ("steps", -1), ("row_tiles", -1), ("b_row", 1), ("a_offset", 1), ("c_row", 1)]  # fmt: skip


@on_devices
@pytest.mark.parametrize(("number", "by"), WRONG)
def test_a_wrong_rewrite_is_seen(
    device: str, number: str, by: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One number that is wrong by one: of a size, a stride, an offset, the tiles or the steps."""
    real = specialise.values

    def wrong(*of: Any) -> dict[str, int]:
        told = real(*of)
        return told | {number: told[number] + by}

    monkeypatch.setattr(specialise, "values", wrong)
    with testing.tile(len(TILINGS) - 1), pytest.raises(SEEN, match=r"not equal|outside"):
        both(device, "int8", 33, 19, 37)


@on_devices
def test_streams(device: str) -> None:
    """On a stream each rewrite sees what the one before it wrote; the oracle rewrites none."""
    m = 40
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-5, 6, (m, m)).astype(np.int32) for _ in range(2))
    first, second, left, right = (
        sarek.vector(one) for one in (np.zeros_like(a), np.zeros_like(a), a, b)
    )
    stream = sarek.device(device).stream()
    outcomes = [
        sarek.matrix.run(
            multiply, c, x, y, grid=grid_of(m, m), block=BLOCK, device=device, stream=stream
        )
        for c, x, y in ((first, left, right), (second, first, right), (first, second, left))
    ]
    stream.synchronize()
    np.testing.assert_array_equal(np.asarray(first), a @ b @ b @ a)
    for outcome in outcomes:
        if device == "interpreter":
            assert "no launches on streams" in str(outcome)
        else:
            assert isinstance(outcome, Specialised)


@on_devices
def test_between_other_launches(device: str) -> None:
    """What waits in the window is done before a rewrite, what follows is done after it."""
    m = 40
    a = np.arange(m * m, dtype=np.int32).reshape(m, m) % 7
    x, y, z = (sarek.vector(one) for one in (a, np.zeros_like(a), np.zeros_like(a)))
    twice.launch(x, grid=m, block=m, device=device)
    run = sarek.matrix.run(multiply, y, x, x, grid=grid_of(m, m), block=BLOCK, device=device)
    assert isinstance(run, Specialised)
    twice.launch(y, grid=m, block=m, device=device)
    multiply.launch(z, y, x, grid=grid_of(m, m), block=BLOCK, device=device)
    np.testing.assert_array_equal(np.asarray(z), (2 * (2 * a) @ (2 * a)) @ (2 * a))


@on_devices
def test_a_capture_takes_down_the_kernel_as_given(device: str) -> None:
    """Its replays may have other arguments, of which nothing is known: and it says so."""
    a = np.arange(81, dtype=np.int32).reshape(9, 9)
    x, y = sarek.vector(a), sarek.vector(np.zeros_like(a))
    with sarek.use_device(device):
        with sarek.capture() as graph:
            outcome = sarek.matrix.run(
                multiply, y, x, x, grid=grid_of(9, 9), block=BLOCK, device=device
            )
        assert str(outcome) == "Original: nothing is known about this launch"
        assert not np.asarray(y).any()
        graph.replay()
        np.testing.assert_array_equal(np.asarray(y), a @ a)
        np.asarray(x)
        x[:] = a.T
        graph.replay()
    np.testing.assert_array_equal(np.asarray(y), a.T @ a.T)
