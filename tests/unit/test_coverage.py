"""`sarek.coverage`: what is counted, how it is shown, and what coverage.py makes of it."""

from __future__ import annotations

import builtins
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import display
from sarek_numba.ir.nodes import Empty
from sarek_numba.ir.walk import bodies_of_kernel, walk_stmts
from sarek_numba.verify.coverage import SHADES
from tests.unit.test_display import _contrast, _Reader

HERE = str(Path(__file__).resolve())


@sarek.function
def clipped(x):
    """Text that is no statement."""
    if x > 100:
        return 100
    return x


@sarek.kernel
def k(out, x, offset=None):
    tile = sarek.shared.array(32, sarek.int32)
    i = sarek.global_idx.x
    if i >= len(out):
        return
    total = 0
    for j in range(i % 3):
        if j == 1:
            continue
        total += (
            clipped(x[i])
            + j
        )  # fmt: skip
    while total > 1000:
        total -= 1
        break
    if offset is not None:
        total += offset
    else:
        pass
    tile[sarek.thread_idx.x] = total
    out[i] = total


FIRST = k.py_func.__code__.co_firstlineno + 1  # the line of the definition
N = 70  # of the 96 threads that are launched


def covered(offset=None):
    x = np.arange(N, dtype=np.int32)
    with sarek.coverage() as coverage:
        k[3, 32](np.zeros(N, np.int32), x, offset)
    return coverage


def rows(coverage, name):
    (function,) = [f for f in coverage.report().functions if f.name == name]
    return {line.number - function.lines[0].number: line for line in function.lines}


def test_hits_and_shares_of_every_statement():
    """Loops, branches not taken, `continue`, `pass`, declarations, branches that types decide."""
    found = rows(covered(), "k")
    passes = sum(i % 3 for i in range(N))
    second = sum(i % 3 == 2 for i in range(N))
    hits = {line: row.hits for line, row in found.items() if row.hits is not None}
    assert hits == {
        1: 96, 2: 96, 3: 96, 4: 26, 5: N, 6: N, 7: passes, 8: second, 9: passes - second,
        13: N, 14: 0, 15: 0, 16: N, 17: 0, 19: N, 20: N, 21: N,
    }  # fmt: skip
    assert found[3].share == 1.0
    assert found[4].share == 26 / 96
    assert found[7].share == sum(i % 3 > 0 for i in range(N)) / 96
    assert found[10].hits is None  # the middle of a statement
    assert found[18].hits is None  # `else:`


def test_device_functions_count_over_all_calls():
    """A docstring is no statement; two kernels' threads add up."""
    x = np.array([5, 500], np.int32)
    with sarek.coverage() as coverage:
        k[1, 32](np.zeros(2, np.int32), x)
        k[1, 32](np.zeros(2, np.int32), x.astype(np.float64))
    found = rows(coverage, "clipped")
    assert found[1].hits is None
    assert [found[line].hits for line in (2, 3, 4)] == [2, 2, 0]
    assert [found[line].share for line in (2, 3)] == [2 / 64, 2 / 64]
    assert coverage.report().launches == 2


def test_launches_of_several_types_add_up():
    """A branch that only another type of argument takes is counted there."""
    coverage = covered()
    with coverage:
        k[1, 32](np.zeros(4, np.int32), np.zeros(4, np.int32), 5)
    found = rows(coverage, "k")
    assert found[17].hits == 4
    assert found[17].share == 4 / 32  # of the launches whose kernel has it
    assert found[19].hits == N


def marks(kernel):
    statements = (stmt for body in bodies_of_kernel(kernel) for stmt in walk_stmts(body))
    return [stmt for stmt in statements if isinstance(stmt, Empty)]


def test_nothing_is_counted_or_marked_when_off():
    """Outside of `with`, and on other devices, kernels are compiled without marks."""
    x, out = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    coverage = covered()
    before = str(coverage)
    k.launch(out, x, grid=1, block=32, device="interpreter")
    assert str(coverage) == before
    with coverage:
        k.launch(out, x, grid=1, block=32, device="native")
        assert not marks(k.ir(out, x))
    assert str(coverage) == before
    assert not marks(k.ir(out, x))


def test_marks_are_there_when_on():
    """Positive control of the test above: a covered specialisation has them."""
    covered()
    kernels = [s.analysed.kernel for several in k._specialisations.values() for s in several]
    assert any(marks(kernel) for kernel in kernels)
    assert str(k).count("int32[:] C, int32[:] C, None") == 1  # and a kernel does not show it


def test_other_checks_go_on():
    """A launch within raises what the oracle finds, and what ran until then is counted."""

    @sarek.kernel
    def beyond(out):
        i = sarek.global_idx.x
        out[i] = 1
        sarek.barrier()

    with sarek.coverage() as coverage, pytest.raises(sarek.OutOfBounds):
        beyond[1, 4](np.zeros(2, np.int32))
    assert rows(coverage, "beyond")[2].hits == 4
    with sarek.coverage() as coverage:
        assert not sarek.sanitize(beyond)[1, 4](np.zeros(2, np.int32))
    assert rows(coverage, "beyond")[2].hits == 4


def test_the_report_is_a_table():
    """Line, hits, share and text; percentages are 0 and 100 only where that is exact."""
    text = str(covered().report())
    assert text.startswith("lines of kernels in 1 launch, 96 threads\n\nclipped, ")
    assert f"k, {HERE}:{FIRST}: 14 of 17 statements ran" in text
    assert f"{FIRST + 4:>5}         26    27.1 %          return\n" in text
    assert f"{FIRST + 14:>5}          0       0 %          total -= 1\n" in text
    assert repr(covered()) == text
    assert str(sarek.coverage().report()) == "no launch was counted"


def test_the_source_is_annotated_in_a_notebook():
    """Every line with its counts; what ran and what did not stand on grounds of their own."""
    html = covered()._repr_html_()
    shown = _Reader(html)
    assert "      26   27.1 %          return " in shown.text
    assert html.count('<span class="s-missed">') == 3 + 1
    assert "clipped(x[i])" in shown.text


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_words_are_legible_on_both_grounds(theme):
    """Of lines that ran and of lines that did not."""
    inks = [display.INK[theme], *(row[theme + 1] for row in display.PALETTE.values())]
    for shades in SHADES.values():
        assert min(_contrast(ink, shades[theme]) for ink in inks) >= 4.5


# --- coverage.py ----------------------------------------------------------------------------------

PROGRAM = """
import numpy as np
import sarek_numba as sarek


@sarek.function
def sign(x):
    if x < 0:
        return -1
    return 1


@sarek.kernel
def k(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        match sign(x[i]):
            case 1:
                out[i] = 5
            case 0:
                out[i] = 6
            case _:
                out[i] = 7
    for j in range(0):
        out[i] = j


with sarek.coverage() as c:
    k[1, 4](np.zeros(3, np.int32), np.ones(3, np.int32))
c.save(".coverage.kernels")
"""


def run(folder, *command):
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_coverage_reports_and_combines(tmp_path):
    """`coverage report` reads the file; combined with a run of Python only what never ran is
    missing.
    """
    pytest.importorskip("coverage")
    program = PROGRAM.lstrip()
    (tmp_path / "program.py").write_text(program)
    run(tmp_path, "-m", "coverage", "run", "-p", "--include=program.py", "program.py")
    alone = run(tmp_path, "-m", "coverage", "report", "-m", "--data-file=.coverage.kernels")
    assert "program.py" in alone
    run(tmp_path, "-m", "coverage", "combine")
    report = run(tmp_path, "-m", "coverage", "report", "-m", "--include=program.py")
    missing = next(line for line in report.splitlines() if line.startswith("program.py"))
    lines = program.splitlines()
    never = ["        return -1", "            case 0:", "                out[i] = 6",
             "            case _:", "                out[i] = 7", "        out[i] = j"]  # fmt: skip
    expected = sorted(lines.index(text) + 1 for text in never)
    assert _numbers(missing.split("%")[1]) == expected
    run(tmp_path, "-m", "coverage", "html", "-d", "html")
    assert (tmp_path / "html" / "index.html").exists()


def _numbers(ranges: str) -> list[int]:
    found = []
    for part in ranges.replace(" ", "").split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def test_saving_replaces(tmp_path):
    """The file holds the counts of this object alone."""
    coverage_library = pytest.importorskip("coverage")
    path = tmp_path / ".coverage.kernels"
    assert covered().save(path) == path
    covered(7).save(str(path))
    data = coverage_library.CoverageData(str(path))
    data.read()
    assert data.measured_files() == {HERE}
    ran = {line - FIRST for line in data.lines(HERE) if line >= FIRST}
    assert 17 in ran
    assert 19 not in ran


def test_saving_needs_something_that_ran(tmp_path):
    """Text that is no file has no place in a data file."""
    with pytest.raises(ValueError, match="no line of a file ran"):
        sarek.coverage().save(tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    """coverage.py is an extra: it is imported when data is saved."""
    imported = builtins.__import__

    def refuse(name, *rest):
        if name == "coverage":
            raise ImportError(name)
        return imported(name, *rest)

    coverage = covered()
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ModuleNotFoundError) as raised:
        coverage.save(tmp_path / "x")
    assert str(raised.value) == (
        "saving coverage needs the package 'coverage'\n  hint: pip install 'sarek-numba[coverage]'"
    )


def test_a_kernel_without_text_has_no_lines():
    """It runs and is checked; nothing can be told of its lines, and the report says so."""
    space = {"sarek": sarek}
    exec(textwrap.dedent("@sarek.kernel\ndef made(out):\n    out[0] = 5\n"), space)
    out = np.zeros(1, np.int32)
    with sarek.coverage() as coverage:
        space["made"][1, 1](out)
    assert out[0] == 5
    assert coverage.lines == {}
    assert str(coverage) == (
        "lines of kernels in 1 launch, 1 thread\n"
        "1 launch had no text that can be read: nothing was counted for it"
    )
