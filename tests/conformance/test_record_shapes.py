"""Records of random shapes on every executor: each number is where the host has it."""

from __future__ import annotations

import random

import numpy as np

import sarek_numba as sarek
from sarek_numba.verify.ulp import ulp_distance
from tests.conformance.everywhere import everywhere
from tests.executors import run
from tests.kernels.case import Launch
from tests.record_shapes import NUMBERS, fill, random_dtype

DEVICE_SHAPES = 10
COUNT = 5


@sarek.kernel
def rearrange(q, r, p):
    i = sarek.global_idx.x
    if i < len(p):
        c = p[len(p) - 1 - i].copy()
        q[i] = c
        r[i] = q[i]


@everywhere
def test_records_of_random_shapes(executor):
    """From a packed record through variables to an aligned one, and from that to a packed one."""
    values = np.random.default_rng(3)
    for seed in range(DEVICE_SHAPES):
        packed = random_dtype(random.Random(seed), align=False, depth=2, scalars=NUMBERS)
        aligned = random_dtype(random.Random(seed), align=True, depth=2, scalars=NUMBERS)
        p = np.zeros(COUNT, packed)
        fill(values, p)
        q, r = np.zeros(COUNT, aligned), np.zeros(COUNT, packed)
        run(executor, rearrange, Launch(1, 8, (q, r, p), ()))
        expected = np.zeros(COUNT, aligned)
        expected[...] = p[::-1]
        assert not ulp_distance(q, expected).any(), (seed, packed)
        assert r.tobytes() == p[::-1].tobytes(), (seed, packed)


def test_another_layout_is_seen():
    """The comparison above fails where a field is one byte off."""
    packed = np.dtype([("a", "u1"), ("b", "i4")])
    shifted = np.dtype({"names": ["a", "b"], "formats": ["u1", "i4"], "offsets": [0, 2]})
    p = np.array([(1, 258)], packed)
    expected = np.zeros(1, shifted)
    expected[...] = p
    moved = np.zeros(1, shifted)
    moved.view(np.uint8)[:5] = p.view(np.uint8)
    assert ulp_distance(moved, expected).any()
