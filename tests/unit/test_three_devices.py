"""Native code, PoCL and llvmpipe at work together: what `docs/several.md` says, on all three."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import InvalidArgument, execute
from sarek_numba.realize import copies, several

PRESENT = {d.name for d in sarek.devices()}
DEVICES = ["native", "opencl:pocl:0", "vulkan:0"]
MISSING = [name for name in DEVICES if name not in PRESENT]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not here: {', '.join(MISSING)}")


@sarek.kernel
def add_to_nearest(sums: Any, counts: Any, points: Any, centres: Any) -> None:
    i = sarek.global_idx.x
    if i < points.shape[0]:
        nearest = 0
        least = np.float32(np.inf)
        for k in range(centres.shape[0]):
            distance = np.float32(0)
            for j in range(points.shape[1]):
                distance += (points[i, j] - centres[k, j]) ** 2
            if distance < least:
                nearest = k
                least = distance
        sarek.atomic.add(counts, nearest, 1)
        for j in range(points.shape[1]):
            sarek.atomic.add(sums, (nearest, j), points[i, j])


@sarek.kernel
def to_means(centres: Any, sums: Any, counts: Any) -> None:
    k = sarek.global_idx.x
    if k < centres.shape[0] and counts[k] > 0:
        for j in range(centres.shape[1]):
            centres[k, j] = sums[k, j] / np.float32(counts[k])


def lloyd(points, centres, rounds):
    """k-means of NumPy; sums of whole numbers are exact in every order."""
    for _ in range(rounds):
        distances = ((points[:, None] - centres[None]) ** 2).sum(2)
        nearest = distances.argmin(1)
        counts = np.bincount(nearest, minlength=len(centres))
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, points)
        means = sums / np.maximum(counts, 1)[:, None].astype(np.float32)
        centres = np.where(counts[:, None] > 0, means, centres)
    return centres


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("count", [1000, 997, 2])
def test_k_means(count, captured):
    """Points stay where they are; the devices sum up together, and all have NumPy's centres."""
    generator = np.random.default_rng(count)
    values = generator.integers(-50, 50, (count, 2)).astype(np.float32)
    first = generator.integers(-50, 50, (5, 2)).astype(np.float32)
    points = sarek.shard(values, DEVICES)
    centres = sarek.shard(first, DEVICES, axis=None)
    sums = sarek.shard(np.zeros((5, 2), np.float32), DEVICES, axis=None)
    counts = sarek.shard(np.zeros(5, np.int32), DEVICES, axis=None)

    def step():
        sums.fill(0)
        counts.fill(0)
        add_to_nearest.forall(points, 64)(sums, counts, points, centres)
        sarek.all_reduce(sums)
        sarek.all_reduce(counts)
        to_means[1, 8](centres, sums, counts)

    rounds = 4
    if captured:
        with sarek.capture() as g:
            step()
        step = g.replay
    for _ in range(rounds):
        step()
    expected = lloyd(values, first, rounds)
    for part in centres.parts:
        assert np.asarray(part).tobytes() == expected.tobytes()
    assert int(np.asarray(counts.parts[0]).sum()) == count


@pytest.mark.parametrize("op", ["sum", "prod", "min", "max"])
def test_all_reduce(op):
    """The same bits on each, those of NumPy in the order of the devices."""
    generator = np.random.default_rng(3)
    values = [generator.random((3, 7), np.float32) for _ in DEVICES]
    x = sarek.shard(values[0], DEVICES, axis=None)
    for part, each in zip(x.parts, values, strict=True):
        part[...] = each
    combine = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}[op]
    expected = combine(combine(values[0], values[1]), values[2])
    sarek.all_reduce(x, op)
    for part, device in zip(x.parts, x.devices, strict=True):
        assert part.is_current(device)
        assert np.asarray(part).tobytes() == expected.tobytes()


def test_copies():
    """From each to the next one, through the host; within one device where it can."""
    values = np.arange(99, dtype=np.float32)
    x = sarek.shard(values, DEVICES)
    double = sarek.shard(np.zeros(99, np.float32), DEVICES)
    to_double.forall(x)(double, x)
    turned = sarek.shard(np.zeros(99, np.float32), DEVICES[1:] + DEVICES[:1])
    copies.statistics.reset()
    several.copy_shards(turned, double)
    assert copies.statistics.native + copies.statistics.through_host == len(DEVICES)
    assert np.array_equal(sarek.gather(turned), 2 * values)
    for part, device in zip(turned.parts, turned.devices, strict=True):
        assert part.is_current(device)
    for device in DEVICES:
        assert np.array_equal(sarek.gather(double, device), 2 * values)


@sarek.kernel
def to_double(out: Any, x: Any) -> None:
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = 2 * x[i]


def test_unequal_counts_are_refused():
    """In launches, before the first, and in copies; nothing is written."""
    x = sarek.shard(np.ones(9, np.float32), DEVICES)
    out = sarek.shard(np.zeros(9, np.float32), DEVICES[:2])
    before = execute.counters.launches
    for launch in (to_double.forall(x), to_double[1, 16]):
        with pytest.raises(InvalidArgument) as refused:
            launch(out, x)
        assert str(refused.value) == (
            "kernel 'to_double': 'out' is on 2 devices and 'x' on 3\n"
            "  hint: all of them are on the same devices"
        )
    with pytest.raises(InvalidArgument) as refused:
        several.copy_shards(out, x)
    assert str(refused.value) == "copy: the destination is on 2 devices, the source on 3"
    assert execute.counters.launches == before
    assert not np.asarray(out).any()
