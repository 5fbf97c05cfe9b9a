"""Random structured kernels: every executor gives what CPython gives.

The seeds of `KERNELS`, by generator, run on the oracle and, where it is present, on Intel's OpenCL
runtime. Native code and PoCL take long to compile a batch, so `make test` gives them the first
`FEWER`; `make fuzz` gives everything to all.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

import sarek_numba as sarek
from tests.executors import has_warps
from tests.fuzz.__main__ import main
from tests.fuzz.arrays import first_difference
from tests.fuzz.batch import Batch, emulated, on_device
from tests.fuzz.campaign import Answer, Outcome, Worker, run, shrink
from tests.fuzz.features import FEATURES, count
from tests.fuzz.generator import generate
from tests.fuzz.programs import Form, Statement
from tests.fuzz.unions import UNIONS

KERNELS, FEWER = {1: 150, 2: 30, 3: 30}, {1: 20, 2: 10, 3: 10}
SIZE, COUNTED = 10, 300
SLOW = ("native", "opencl:pocl:0", "vulkan:0")
DEVICES = tuple(device.name for device in sarek.devices())


@pytest.mark.parametrize(
    ("generator", "first"), [(g, k) for g, end in KERNELS.items() for k in range(0, end, SIZE)]
)
def test_executors_equal_cpython(generator, first):
    """No executor differs on the kernels of these seeds (case 73: control flow to depth 5)."""
    programs = [generate(seed, generator) for seed in range(first, first + SIZE)]
    batch = Batch(programs, Form.FUNCTION)
    assert len(batch.expected) > batch.left_out
    for name in DEVICES:
        if batch.mode.warps and name != "interpreter":
            continue  # compilers take minutes for so many; some run alone below
        if first < FEWER[generator] or name not in SLOW:
            found = list(batch.differences(name, on_device(name)))
            assert not found, "\n\n".join(map(str, found))


@pytest.mark.parametrize(
    ("generator", "seed"), [*((1, k) for k in range(10)), *((3, k) for k in range(0, 30, 4))]
)
def test_kernels_of_one_program_equal_cpython(generator, seed):
    """No executor differs on a program that is a kernel by itself."""
    batch = Batch([generate(seed, generator)], Form.KERNEL)
    for name in DEVICES:
        if name not in SLOW and (has_warps(name) or not batch.mode.warps):
            found = list(batch.differences(name, on_device(name)))
            assert not found, "\n\n".join(map(str, found))


def test_a_seed_gives_one_program():
    """The generator is a function of its seed."""
    assert generate(5).text() == generate(5).text()
    assert generate(5).text() != generate(6).text()


@pytest.mark.parametrize(
    ("generator", "start", "known"),
    [(1, 100000, "8843a78c69ff8043"), (2, 200000, "1c71e7a706210a80")],
)
def test_older_generators_give_what_campaigns_ran(generator, start, known):
    """What is known of seeds of an older generator stays true: its texts do not change."""
    digest = hashlib.sha256()
    for seed in (*range(150), *range(start, start + 150)):
        digest.update(generate(seed, generator).text().encode())
    assert digest.hexdigest()[:16] == known
    assert generate(5, generator).text() != generate(5, generator + 1).text()


def test_programs_of_ten_seeds_are_one_kernel():
    """Seeds that follow one another share hints and blocks; others differ in them."""
    for first in range(0, 200, 10):
        assert len({generate(seed).mode for seed in range(first, first + 10)}) == 1
    assert len({generate(seed).mode for seed in range(0, 600, 10)}) > 10


def test_variants_are_compared_by_what_they_hold():
    """A part of a case that an element has counts; bytes of the other cases do not."""
    union = next(union for union in UNIONS if union.name == "U2")
    one = union.variant.array([union.variant.C2(1.5, 7), union.variant.C0()])
    for index, number, same in ((0, 8, False), (1, 8, True)):
        other = one.copy()
        other["C2"]["f1"][index] = number
        what = first_difference({"vs": one}, {"vs": other})
        assert (what is None) is same, what
    other = union.variant.array([union.variant.C2(1.5, 7), union.variant.C1(0)])
    assert "vs.tag[1]" in first_difference({"vs": one}, {"vs": other})


def test_kernels_with_warps_are_left_out_where_there_are_none(tmp_path):
    """A device without warps is not asked for them, and the campaign counts such kernels."""
    seed = next(seed for seed in range(0, 500, 10) if generate(seed).mode.warps)
    worker, outcome = Worker(), Outcome()
    try:
        batch = [generate(seed)]
        without = [name for name in DEVICES if not has_warps(name)]
        assert not any(run(iter([(batch, Form.FUNCTION)]), without, worker, outcome))
    finally:
        worker.stop()
    assert outcome.incapable == dict.fromkeys(without, 1)
    assert not outcome.programs


def test_results_name_the_generator(tmp_path):
    """A chunk of the other generator is no chunk of this one, though its seeds are the same."""
    results = tmp_path / "results.jsonl"
    given = ["--count", "2", "--executors", "interpreter", "--results", str(results)]
    for generator in ("1", "2", "2"):
        assert CliRunner().invoke(main, [*given, "--generator", generator]).exit_code == 0
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    assert [line["generator"] for line in lines] == [1, 2]


def test_a_wrong_executor_is_found():
    """Positive control: an executor that runs nothing differs."""
    batch = Batch([generate(seed) for seed in range(3)], Form.FUNCTION)
    assert list(batch.differences("nothing", lambda *_: None))


def test_a_planted_difference_is_shrunk():
    """Shrinking keeps the statement that shows a wrong executor, and little else."""
    whole = generate(3, 1)
    marked = replace(whole, body=[*whole.body, Statement("d[h, 1] = 7777")], epilogue=())

    def wrong(kernel, grid, block, arguments):
        emulated(kernel, grid, block, arguments)
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
    """Each feature stands in some of the kernels of few seeds."""
    counted = count([generate(seed) for seed in range(COUNTED)])
    assert [name for name in FEATURES if counted[name] < COUNTED / 50] == []
