"""Records of random shapes on every executor: each number is where the host has it."""

from __future__ import annotations

import linecache
import random

import numpy as np

import sarek_numba as sarek
from sarek_numba.ir.records import leaves, record_of
from sarek_numba.verify.ulp import ulp_distance
from tests.conformance.everywhere import everywhere
from tests.executors import run
from tests.kernels.case import Launch
from tests.record_shapes import NUMBERS, fill, random_dtype

DEVICE_SHAPES = 10
FEWER_SHAPES = 5
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


@sarek.kernel
def spread(q, one):
    i = sarek.global_idx.x
    if i < len(q):
        q[i] = one


@everywhere
def test_arguments_of_random_shapes(executor):
    """A record passed by value has each number where an array of the other layout has it."""
    values, seed = np.random.default_rng(5), 0
    for _ in range(FEWER_SHAPES):
        packed, aligned, seed = _shapes(seed)
        p = np.zeros(2, packed)
        fill(values, p)
        q = np.zeros(COUNT, aligned)
        run(executor, spread, Launch(1, 8, (q, p[1]), ()))
        expected = np.zeros(COUNT, aligned)
        expected[...] = p[1]
        assert not ulp_distance(q, expected).any(), (seed, packed)


@everywhere
def test_fields_of_random_shapes(executor):
    """Each field is stored by itself: numbers, records, arrays of either, backwards and by rows."""
    values, seed = np.random.default_rng(6), 0
    for _ in range(FEWER_SHAPES):
        packed, aligned, seed = _shapes(seed)
        p = np.zeros(COUNT, packed)
        fill(values, p)
        expected = np.zeros(COUNT, aligned)
        stores = []
        for name in packed.names:
            kind, shape = packed[name].subdtype or (packed[name], ())
            if kind.names is None and shape:
                stores.append(f'q[i].{name} = p["{name}"][-1 - i{", ::-1" * len(shape)}]')
                backwards = (slice(None, None, -1),) * (1 + len(shape))
                expected[name] = p[name][backwards]
            else:
                stores.append(f"q[i].{name} = p[-1 - i].{name}")
                expected[name] = p[name][::-1]
        q = np.zeros(COUNT, aligned)
        run(executor, _kernel(stores), Launch(1, 8, (q, p), ()))
        assert not ulp_distance(q, expected).any(), (seed, stores, packed)


def _shapes(seed):
    """The next dtype that fits an argument, packed and aligned, and the seed behind it."""
    while True:
        packed, aligned = (
            random_dtype(random.Random(seed), align=align, depth=2, scalars=NUMBERS)
            for align in (False, True)
        )
        seed += 1
        if sum(leaf.count for leaf in leaves(record_of(packed))) <= 64:
            return packed, aligned, seed


def _kernel(stores):
    lines = ["def by_fields(q, p):", "    i = sarek.global_idx.x", "    if i < len(p):"]
    text = "\n".join([*lines, *(f"        {store}" for store in stores), ""])
    file = f"<stores {len(linecache.cache)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names = {"sarek": sarek}
    exec(compile(text, file, "exec"), names)
    return sarek.kernel(names["by_fields"])


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
