"""Planted bugs, each found by the check meant for it, beside near misses that must stay silent."""

from __future__ import annotations

import numpy as np
import pytest

from sarek_numba import errors as sarek_errors
from sarek_numba.ir import build as b
from tests.unit import oracle_plants_access, oracle_plants_flow
from tests.unit.oracle_kit import Builder, errors, gid, run, tid
from tests.unit.oracle_plants import PLANTS, zeros

__all__ = ["oracle_plants_access", "oracle_plants_flow"]  # importing them fills PLANTS


@pytest.mark.parametrize("name", PLANTS)
def test_plant(name: str) -> None:
    """A bug is found, by its own check and no other; a near miss is silent."""
    planted = PLANTS[name]
    kernel, arguments = planted.build()
    report = run(kernel, planted.grid, planted.block, *arguments, **planted.options)
    expected = set() if planted.error is None else {planted.error}
    assert set(errors(report)) == expected, str(report)
    if planted.error is not None:
        with pytest.raises(getattr(sarek_errors, planted.error)) as raised:
            report.raise_first()
        assert raised.value.findings == report.findings


def test_the_corpus_has_both_sides() -> None:
    """At least twelve bugs and twelve near misses, and every oracle error that can occur."""
    bugs = {plant.error for plant in PLANTS.values()} - {None}
    every = {cls.__name__ for cls in sarek_errors.OracleError.__subclasses__()}
    assert bugs == every - {"WarpDivergence", "MisalignedMatrix"}  # `test_matrices` has this one
    assert sum(plant.error is not None for plant in PLANTS.values()) >= 12
    assert sum(plant.error is None for plant in PLANTS.values()) >= 12


def test_memory_beyond_an_array_stays_untouched() -> None:
    """A store out of range is suppressed, and a read there gives 0."""
    k = Builder()
    out, src = k.array("out"), k.array("src")
    memory = np.arange(100, 112, dtype=np.int32)
    kernel = k.kernel(b.store(out, gid(), b.read(src, b.add(gid(), 4))))
    report = run(kernel, 1, 8, memory[2:8], memory[8:12].copy())
    assert errors(report) == ["OutOfBounds", "OutOfBounds"]
    assert memory.tolist() == [100, 101, 0, 0, 0, 0, 0, 0, 108, 109, 110, 111]


def test_a_failed_subscript_suppresses_an_access_that_is_inside_the_buffer() -> None:
    k = Builder()
    out = k.array("out")
    column = b.subscript(out, 1, tid(), b.const_int(2))
    kernel = k.kernel(b.store(out, column, 1))
    data = zeros(8)
    report = run(kernel, 1, 8, data)
    assert errors(report) == ["OutOfBounds"]
    assert report.findings[0].threads == 6
    assert data.tolist() == [1, 1, 0, 0, 0, 0, 0, 0]
