"""Cases from the field: what atomics of each type do, and what they need (section I)."""

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.capability import Capability, Verdict
from sarek_numba.ir.nodes import AtomicOp
from sarek_numba.ir.types import MemSpace, Scalar
from tests.conformance.everywhere import everywhere
from tests.executors import EMULATION, device_of, executors, run
from tests.kernels.case import Launch

devices = pytest.mark.parametrize("device", [name for name in executors() if name != EMULATION])

INTEGERS = (np.int32, np.uint32, np.int64, np.uint64)
FLOATS = (np.float32, np.float64)
ATOMIC = (*INTEGERS, *FLOATS)


@sarek.kernel
def take_turns(out, cells):
    i = sarek.global_idx.x
    out[0, i] = sarek.atomic.exch(cells, 0, i + 1)
    out[1, i] = sarek.atomic.add(cells, 1, i + 1)
    out[2, i] = sarek.atomic.sub(cells, 2, 1)
    out[3, i] = sarek.atomic.max(cells, 3, i)


@everywhere
@pytest.mark.parametrize("dtype", ATOMIC)
def test_case_121_multisets(executor, dtype):
    """Old values fit one order of the threads: what each found is what another one left."""
    cells, out = np.array([0, 0, 64, 0], dtype), np.zeros((4, 64), dtype)
    run(executor, take_turns, Launch(2, 32, (out, cells), ()))
    assert sorted([*out[0].tolist(), cells[0]]) == list(range(65))
    found = sorted(out[1].tolist())
    steps = np.diff([*found, int(cells[1])]).tolist()
    assert found[0] == 0
    assert sorted(steps) == list(range(1, 65))
    assert sorted(out[2].tolist()) == list(range(1, 65))
    assert cells[2] == 0
    left = {int(v) for v in out[3]} - {0}
    assert all(out[3][v] < v for v in left)
    assert cells[3] == 63


def adding_by_cas(bits):
    """Kernels that add floats: by the atomic, by a loop of CAS on floats, and on their bits."""
    floats, words = (sarek.float32, sarek.uint32) if bits == 32 else (sarek.float64, sarek.uint64)

    @sarek.kernel
    def add(totals, patterns, x):
        i = sarek.global_idx.x
        t = sarek.thread_idx.x
        part = sarek.shared.array(2, floats)
        if t < 2:
            part[t] = 0.0
        sarek.barrier()
        sarek.atomic.add(part, 0, x[i])
        sarek.atomic.add(totals, 0, x[i])
        seen = sarek.atomic.load(totals, 1)
        while True:
            old = sarek.atomic.cas(totals, 1, seen, seen + x[i])
            if old == seen:
                break
            seen = old
        word = sarek.atomic.load(patterns, 0)
        while True:
            total = sarek.math.reinterpret(word, floats) + x[i]
            old_word = sarek.atomic.cas(patterns, 0, word, sarek.math.reinterpret(total, words))
            if old_word == word:
                break
            word = old_word
        sarek.barrier()
        if t == 0:
            sarek.atomic.add(totals, 2, part[0])

    return add


@everywhere
@pytest.mark.parametrize("bits", [32, 64])
def test_case_122_125_by_cas(executor, bits):
    """float32 and float64 sums by the atomic, by CAS on floats and on uint32 and uint64 bits."""
    floats, words = np.dtype(f"f{bits // 8}"), np.dtype(f"u{bits // 8}")
    x = ((np.arange(96) - 40) * 0.25).astype(floats)  # every order of adding is exact
    totals, patterns = np.zeros(3, floats), np.zeros(1, words)
    run(executor, adding_by_cas(bits), Launch(3, 32, (totals, patterns, x), ()))
    assert totals.tolist() == [x.sum()] * 3
    assert patterns.view(floats).tolist() == [x.sum()]


@sarek.kernel
def into_integers(cells, x):
    i = sarek.global_idx.x
    sarek.atomic.add(cells, 0, x[i])
    sarek.atomic.max(cells, 1, x[i])
    sarek.atomic.add(cells[2:][::-1], i % 4, x[i])


@everywhere
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("source", [np.int8, np.int32, np.int64, np.float32, np.float64])
def test_case_124_integers(executor, dtype, source):
    """An integer element is added to as an integer: a float value is converted first, as a store
    converts it, and its bits are added to nothing.
    """
    x = (np.arange(64) % 11).astype(source)
    if np.dtype(source).kind == "f":
        x += source(0.75)
    cells = np.zeros(6, dtype)
    run(executor, into_integers, Launch(2, 32, (cells, x), ()))
    whole = np.trunc(x).astype(np.int64)
    quarters = whole.reshape(-1, 4).sum(0)
    assert cells.tolist() == [whole.sum(), whole.max(), *quarters[::-1]]


@sarek.kernel
def every_operation(cells, x):
    i = sarek.global_idx.x
    sarek.atomic.add(cells, 0, x[i])
    sarek.atomic.min(cells, 0, x[i])
    sarek.atomic.exch(cells, 0, x[i])
    sarek.atomic.cas(cells, 0, x[i], x[i])
    sarek.atomic.store(cells, 1, x[i])
    x[i] = sarek.atomic.load(cells, 1)


OPERATIONS = (
    AtomicOp.ADD, AtomicOp.MIN, AtomicOp.EXCH, AtomicOp.CAS, AtomicOp.STORE, AtomicOp.LOAD
)  # fmt: skip


@devices
@pytest.mark.parametrize("dtype", ATOMIC)
def test_case_125_query(device, dtype):
    """What the device says of each operation on each type is what a launch finds."""
    cells, x = np.ones(2, dtype), np.ones(1, dtype)
    scalar = Scalar(np.dtype(dtype).name)
    needed = {need.op for need in every_operation.needs(cells, x) if need.feature == "atomic"}
    assert needed == set(OPERATIONS)
    run(device, every_operation, Launch(1, 1, (cells, x), ()))
    facts = device_of(device).record.facts
    verdicts = [facts[Capability("atomic", scalar, op, MemSpace.GLOBAL)] for op in OPERATIONS]
    assert all(fact.evidence for fact in verdicts)
    assert {fact.verdict for fact in verdicts} == {Verdict.AVAILABLE}
    assert cells.tolist() == [1, 1]


@sarek.kernel
def add_one(cells):
    sarek.atomic.add(cells, 0, 1)


@devices
@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint16, np.bool_])
def test_case_122_124_other_types(device, dtype):
    """Halves and narrow types have no atomics: refused by name, and nothing changes."""
    cells = np.zeros(2, dtype)
    with pytest.raises((sarek.CompileError, sarek.LaunchError)) as raised:
        run(device, add_one, Launch(1, 1, (cells,), ()))
    assert np.dtype(dtype).name in str(raised.value)
    assert not cells.any()
