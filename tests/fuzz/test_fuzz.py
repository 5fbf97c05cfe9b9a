"""Random structured kernels: every executor gives what CPython gives.

All `KERNELS` run on the oracle and, where it is present, on Intel's OpenCL runtime. Native code and
PoCL take seconds to compile a batch, so `make test` gives them the first `FEWER`; `make fuzz` gives
everything to all.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from click.testing import CliRunner

import sarek_numba as sarek
from tests.fuzz.__main__ import main
from tests.fuzz.batch import Batch, emulated, on_device
from tests.fuzz.campaign import Answer, Outcome, Worker, run, shrink
from tests.fuzz.features import FEATURES, count
from tests.fuzz.generator import generate
from tests.fuzz.programs import Form, Statement

KERNELS, FEWER, SIZE, ALONE = 300, 40, 10, 20
SLOW = ("native", "opencl:pocl:0")
DEVICES = tuple(device.name for device in sarek.devices())


@pytest.mark.parametrize("first", range(0, KERNELS, SIZE))
def test_executors_equal_cpython(first):
    """No executor differs on the kernels of these seeds (case 73: control flow to depth 5)."""
    batch = Batch([generate(seed) for seed in range(first, first + SIZE)], Form.FUNCTION)
    assert len(batch.expected) > batch.left_out
    for name in DEVICES:
        if first < FEWER or name not in SLOW:
            found = list(batch.differences(name, on_device(name)))
            assert not found, "\n\n".join(map(str, found))


@pytest.mark.parametrize("seed", range(ALONE))
def test_kernels_of_one_program_equal_cpython(seed):
    """No executor differs on a program that is a kernel by itself."""
    batch = Batch([generate(seed)], Form.KERNEL)
    for name in DEVICES:
        if name not in SLOW:
            found = list(batch.differences(name, on_device(name)))
            assert not found, "\n\n".join(map(str, found))


def test_a_seed_gives_one_program():
    """The generator is a function of its seed."""
    assert generate(5).text() == generate(5).text()
    assert generate(5).text() != generate(6).text()


def test_a_wrong_executor_is_found():
    """Positive control: an executor that runs nothing differs."""
    batch = Batch([generate(seed) for seed in range(3)], Form.FUNCTION)
    assert list(batch.differences("nothing", lambda *_: None))


def test_a_planted_difference_is_shrunk():
    """Shrinking keeps the statement that shows a wrong executor, and little else."""
    whole = generate(3)
    marked = replace(whole, body=[*whole.body, Statement("d[h, 1] = 7777")], epilogue=())

    def wrong(kernel, grid, arguments):
        emulated(kernel, grid, arguments)
        for array in arguments:
            array[array == 7777] = 0

    def again(program):
        try:
            return next(Batch([program], rounds=1).differences("wrong", wrong), None)
        except NameError:  # a deleted statement gave a name its value
            return None

    found = shrink(again(marked), again)
    assert [statement.line for statement in found.program.body] == ["d[h, 1] = 7777"]
    assert found.program.prologue == ("h = sarek.global_idx.x",)


def test_a_crashing_program_is_found_by_halves():
    """Of a batch that ends the process, the program that does it is named."""

    class Fragile(Worker):
        def ask(self, programs, form, executor):
            is_fatal = any(p.seed == 2 for p in programs)
            return None if is_fatal else Answer((), 3 * len(programs), 0)

    programs = [generate(seed) for seed in range(5)]
    outcome = Outcome()
    (found,) = run(iter([(programs, Form.FUNCTION)]), ["device"], Fragile(), outcome)
    assert [(each.program.seed, each.what) for each in found] == [(2, "crashed the process")]
    assert outcome.programs["device"] == 5
    assert outcome.comparisons["device"] == 12


def test_a_campaign_goes_on_where_it_stopped(tmp_path):
    """After its time no chunk begins; the next call runs the chunks that have no line."""
    results = tmp_path / "results.jsonl"
    given = ["--count", "3", "--chunk", "1", "--executors", "interpreter", "--results", results]
    stopped = CliRunner().invoke(main, [*map(str, given), "--seconds", "0.001"])
    assert stopped.exit_code == 0
    assert "interpreter: 0 kernels" in stopped.output or "interpreter: 1 kernels" in stopped.output
    before = results.read_text() if results.exists() else ""
    results.write_text(before + '{"first": 1, "cou')  # a line that was cut off
    assert "3 of 3 kernels" in CliRunner().invoke(main, list(map(str, given))).output
    lines = results.read_text().splitlines()
    again = CliRunner().invoke(main, list(map(str, given)))
    assert "interpreter: 3 kernels, 9 launches compared, 0 kernels differ" in again.output
    assert results.read_text().splitlines() == lines


def test_every_feature_is_used():
    """Each feature stands in some of the kernels that `make test` runs."""
    counted = count([generate(seed) for seed in range(KERNELS)])
    assert [name for name in FEATURES if counted[name] < KERNELS / 50] == []
