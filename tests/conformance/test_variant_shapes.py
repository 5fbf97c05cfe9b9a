"""Variants of random shapes on every executor: tags and parts are where the host has them."""

from __future__ import annotations

import random
import sys
import time

import numpy as np

import sarek_numba as sarek
from sarek_numba.verify.ulp import ulp_distance
from tests.conformance.everywhere import everywhere
from tests.executors import EMULATION, run
from tests.kernels.case import Launch
from tests.variant_shapes import SHAPES, fill, moved, random_variant

DEVICE_SHAPES = 5
COUNT = 6


@sarek.function
def passed(value):
    return value


@sarek.kernel
def rearrange(q, r, s, p):
    tile = sarek.shared.array(COUNT, p.dtype)
    mine = sarek.local.array(2, p.dtype)
    i = sarek.global_idx.x
    if i < len(p):
        c = p[len(p) - 1 - i]
        q[i] = c
        tile[i] = q[i]
    sarek.barrier()
    if i < len(p):
        mine[i % 2] = tile[i]
        r[i] = mine[i % 2]
        s[i].inner = passed(r[i])
        s[i].number = i
        p[i] = s[i].inner


def shapes(seed):
    """A variant, its dtype again, and a record of it.

    Each fourth time the second has one case behind the other, and the record is packed: numbers
    that are not aligned are read byte by byte, which takes compilers long.
    """
    variant = random_variant(random.Random(seed), depth=2)
    loose = variant.dtype
    if seed % 4 == 0:
        loose = np.concatenate([np.zeros(1, variant.dtype)] * 2).dtype
    fields = [("flag", "i1"), ("inner", variant.dtype), ("number", "i2")]
    return variant, loose, np.dtype(fields, align=seed % 4 != 0)


def check(executor, seed):
    """The values survive each way of a round trip, and no byte beside them changes."""
    variant, loose, packed = shapes(seed)
    values = np.random.default_rng(seed)
    p = np.zeros(COUNT, variant.dtype)
    fill(values, p)
    before = p.copy()
    backwards = moved(p[::-1], variant.dtype)
    arguments = [np.zeros(COUNT, kind) for kind in (loose, variant.dtype, packed)]
    expected = [moved(backwards, loose), backwards, np.zeros(COUNT, packed)]
    moved(backwards, variant.dtype, expected[2]["inner"])
    expected[2]["number"] = np.arange(COUNT)
    run(executor, rearrange, Launch(1, 8, (*arguments, p), ()))
    for actual, wanted in zip((*arguments, p), (*expected, backwards), strict=True):
        assert not ulp_distance(actual, wanted).any(), (seed, variant.dtype)
    if executor != EMULATION:  # CPython copies what lies between fields too
        for actual, wanted in zip(arguments, expected, strict=False):
            assert actual.tobytes() == wanted.tobytes(), (seed, variant.dtype)
    assert variant.values(p) == variant.values(before)[::-1], (seed, variant.dtype)


@everywhere
def test_variants_of_random_shapes(executor):
    """Through variables, functions, shared and local memory, records and another layout."""
    for seed in range(DEVICE_SHAPES):
        check(executor, seed)


def test_a_wrong_case_is_seen():
    """The comparison above fails where a value is of another case, or a part differs."""
    shape = sarek.variant("S", A=sarek.int32, B=sarek.int32)
    one, other = shape.array([shape.A(1), shape.A(2)]), shape.array([shape.B(1), shape.A(3)])
    assert ulp_distance(one, other).tolist() == [np.inf, 1.0]


if __name__ == "__main__":
    name, seconds = sys.argv[1], float(sys.argv[2])
    start = time.monotonic()
    done = 0
    while done < SHAPES and time.monotonic() - start < seconds:
        check(name, done)
        done += 1
    print(f"{name}: {done} variants agree with the host")
