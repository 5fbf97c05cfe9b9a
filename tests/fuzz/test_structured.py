"""Random structured kernels: the oracle on what the front end makes of them equals CPython."""

from __future__ import annotations

import pytest

from tests.fuzz.executors import emulated, on_oracle
from tests.fuzz.generator import (
    Program,
    Statement,
    define,
    differences,
    generate,
    shrink,
)

BATCHES, SIZE = 4, 5


@pytest.mark.parametrize("batch", range(BATCHES))
def test_oracle_equals_cpython(batch):
    """No difference on the kernels of these seeds."""
    programs = [generate(seed) for seed in range(batch * SIZE, (batch + 1) * SIZE)]
    found = differences(programs, emulated, {"oracle": on_oracle})
    assert not found, "\n\n".join(map(str, found))


def test_generator_is_seeded():
    """A seed gives one program."""
    assert generate(5).text == generate(5).text
    assert generate(5).text != generate(6).text


def test_a_planted_difference_is_found_and_shrunk():
    """The comparison sees a wrong executor, and shrinking keeps the statement that shows it."""
    program = generate(3)
    marked = Program(program.name, program.seed, [*program.body, Statement("x[o + 1] = 77")])

    def wrong(function, arguments):
        emulated(function, arguments)
        arguments[0][arguments[0] == 77] = 78

    def differs(candidate: Program) -> bool:
        return bool(differences([candidate], emulated, {"wrong": wrong}, rounds=1))

    assert differs(marked)
    small = shrink(marked, differs)
    assert small.text.count("\n") < 25
    assert "x[o + 1] = 77" in small.text
    assert small.name in define([small])
