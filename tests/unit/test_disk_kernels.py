"""Kernels kept on disk: found again where nothing changed, and not where anything did.

A new dispatcher of a function is as a new process to the cache: it has compiled nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import compile as compiling
from sarek_numba.execute import simulated_warp_width
from sarek_numba.ir.hash import content_hash
from sarek_numba.ir.nodes import Kernel
from sarek_numba.ir.stored import decode, encode
from sarek_numba.ir.walk import bodies_of_kernel, walk_stmts
from sarek_numba.runtime import compiled, disk
from sarek_numba.runtime.cache import counters
from tests.kernels.case import Case
from tests.kernels.corpus import CASES

FLOATS = np.zeros(4, np.float32)


class Compilations:
    """How often the front end was run, as a difference."""

    def __init__(self) -> None:
        self.count = 0

    def of(self, action: Callable[[], Any]) -> int:
        before = self.count
        action()
        return self.count - before


@pytest.fixture
def compilations(disk_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Compilations:
    """Counts calls of the front end, with an empty cache on disk."""
    counted = Compilations()
    infer = compiling.infer

    def counting(*given: Any) -> Any:
        counted.count += 1
        return infer(*given)

    monkeypatch.setattr(compiling, "infer", counting)
    return counted


def _again(kernel: Any, **options: Any) -> Any:
    return sarek.kernel(**options)(kernel.py_func)


# --- round trips ----------------------------------------------------------------------------------


def _spans(kernel: Kernel) -> list[Any]:
    return [
        (type(stmt).__name__, getattr(stmt, "span", None))
        for body in bodies_of_kernel(kernel)
        for stmt in walk_stmts(body)
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_kernel_of_the_corpus_survives(case: Case) -> None:
    """Equal after JSON, node for node, with all its spans."""
    import json

    launch = case.launch(np.random.default_rng(0))
    kernel = case.kernel.ir(*launch.arguments)
    files = sorted({span.file for _, span in _spans(kernel) if span} | {kernel.span.file})
    rows = json.loads(json.dumps(encode(kernel, files)))
    restored = decode(rows, [f"{file}, moved" for file in files])
    assert restored == kernel
    assert content_hash(restored) == content_hash(kernel)
    moved = [(name, span and f"{span.file}, moved") for name, span in _spans(kernel)]
    assert [(name, span and span.file) for name, span in _spans(restored)] == moved
    places = [span and (span.line, span.column, span.end_column) for _, span in _spans(kernel)]
    assert [s and (s.line, s.column, s.end_column) for _, s in _spans(restored)] == places


def test_one_object_stays_one() -> None:
    """Passes tell nodes by identity: what stood at two places does so again."""
    kernel = CASES[0].kernel.ir(*CASES[0].launch(np.random.default_rng(0)).arguments)
    twice = decode(encode((kernel.body, kernel.body), [kernel.span.file]), ["f"])
    assert twice[0] is twice[1]


# --- hits -----------------------------------------------------------------------------------------


@sarek.function
def doubled(x):
    return x * 2


FACTOR = 3


@sarek.kernel
def calling(out, x, a):
    i = sarek.grid(1)
    if i < len(out):
        out[i] = doubled(x[i]) * a + FACTOR


def test_a_kept_kernel_is_not_inferred(compilations: Compilations) -> None:
    """The second dispatcher gets an equal kernel, with spans and captured values."""
    first, second = _again(calling), _again(calling)
    arguments = (FLOATS, FLOATS, 2.0)
    assert compilations.of(lambda: first.ir(*arguments)) == 1
    assert compilations.of(lambda: second.ir(*arguments)) == 0
    assert first.ir(*arguments) == second.ir(*arguments)
    assert _spans(first.ir(*arguments)) == _spans(second.ir(*arguments))
    [[made]], [[kept]] = (list(k._specialisations.values()) for k in (first, second))
    assert [c.name for c in made.captures] == [c.name for c in kept.captures]
    assert all(a.value is b.value for a, b in zip(made.captures, kept.captures, strict=True))
    assert made.analysed == kept.analysed


def test_captured_values_are_compared_at_later_launches(
    compilations: Compilations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel from disk meets a rebound global as one that was compiled does."""
    _again(calling).ir(FLOATS, FLOATS, 2.0)
    kept = _again(calling)
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    assert compilations.of(lambda: kept[1, 4](out, x, 2.0)) == 0
    assert out.tolist() == [7.0] * 4
    monkeypatch.setitem(globals(), "FACTOR", 30)
    assert compilations.of(lambda: kept[1, 4](out, x, 2.0)) == 1
    assert out.tolist() == [34.0] * 4
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert compilations.of(lambda: kept[1, 4](out, x, 2.0)) == 0
    assert out.tolist() == [7.0] * 4


def test_warnings_are_shown_again(compilations: Compilations) -> None:
    """With the same text at the same place."""

    def shown(kernel: Any) -> list[tuple[str, str, int]]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kernel.ir(np.zeros(4, np.int32), np.zeros(4, np.int32))
        return [(str(w.message), w.filename, w.lineno) for w in caught]

    first = shown(_again(wide_sum))
    assert len(first) == 1
    assert "wraps at its limits" in first[0][0]
    before = compilations.count
    assert shown(_again(wide_sum)) == first
    assert compilations.count == before


@sarek.kernel
def wide_sum(out, x):
    total = 0
    for k in range(len(x)):
        total += np.int8(x[k])
    out[0] = total


@sarek.kernel(debug=True)
def failing(out, x):
    i = sarek.grid(1)
    print("thread", i)
    assert x[i] > 0, "not positive"
    out[i] = x[i + 1]


@pytest.mark.parametrize("device", ["native", "interpreter"])
def test_findings_and_prints_are_the_same(
    compilations: Compilations, capsys: pytest.CaptureFixture[str], device: str
) -> None:
    """Lines, texts and values of a kernel from disk are those of one just compiled."""

    def outcome(kernel: Any) -> tuple[str, str, str]:
        x = np.array([1, 1, 0, 1], np.float32)
        with pytest.raises(sarek.OracleError) as caught:
            kernel.launch(np.zeros(4, np.float32), x, grid=1, block=4, device=device)
        return type(caught.value).__name__, str(caught.value), capsys.readouterr().out

    first = outcome(_again(failing, debug=True))
    assert "test_disk_kernels.py" in first[1]
    before = compilations.count
    assert outcome(_again(failing, debug=True)) == first
    assert compilations.count == before


def test_refusals_are_the_same(compilations: Compilations) -> None:
    """A kernel that cannot be compiled leaves nothing behind, and says so each time."""

    def wrong(out, x):
        out[0] = x.nothing

    texts = []
    for _ in range(3):
        with pytest.raises(sarek.CompileError) as caught:
            sarek.kernel(wrong).ir(FLOATS, FLOATS)
        texts.append(str(caught.value))
    assert len(set(texts)) == 1
    assert list(disk.entries(Path(os.environ["SAREK_CACHE_DIR"]))) == []


def test_damaged_content_is_compiled_anew(compilations: Compilations, disk_cache: Path) -> None:
    """An entry that is whole and yet no kernel is dropped, and written again."""
    _again(calling).ir(FLOATS, FLOATS, 2.0)
    [entry] = disk.entries(disk_cache)
    good = disk.load(disk.KERNELS, entry.path.name)
    assert good is not None
    for bad in (b"", b"[]", b"[[],[]]", b'[[["Nothing"]],[]]', b"\xff", good[:-9], b"[1,2]"):
        disk.save(disk.KERNELS, entry.path.name, bad)
        assert compilations.of(lambda: _again(calling).ir(FLOATS, FLOATS, 2.0)) == 1, bad
        assert disk.load(disk.KERNELS, entry.path.name) == good


# --- misses: what the front end is told -----------------------------------------------------------


def _plain(out, x, a):
    i = sarek.grid(1)
    if x is not None and i < len(out):
        out[i] = x[i]
        if a:
            out[i] = 1


def _array(dtype: Any = np.float32, shape: Any = 4, order: Any = "C") -> Any:
    return np.zeros(shape, dtype, order)


def _readonly(array: Any) -> Any:
    array.flags.writeable = False
    return array


RECORD = np.dtype([("x", np.float32), ("y", np.float32)])
INT8S = _array(np.int8)
ARGUMENTS = {
    "the element type": ((INT8S, INT8S, 1), (INT8S, _array(np.int16), 1)),
    "bool or int8": ((INT8S, INT8S, 1), (INT8S, _array(np.bool_), 1)),
    "signedness": ((INT8S, _array(np.int32), 1), (INT8S, _array(np.uint32), 1)),
    "None": ((INT8S, INT8S, 1), (INT8S, None, 1)),
    "a bool for an int": ((INT8S, INT8S, 1), (INT8S, INT8S, True)),
    "a float for an int": ((INT8S, INT8S, 1), (INT8S, INT8S, 1.0)),
    "a NumPy scalar": ((INT8S, INT8S, 1), (INT8S, INT8S, np.int32(1))),
    "its width": ((INT8S, INT8S, np.int32(1)), (INT8S, INT8S, np.int64(1))),
    "an int beyond int32": ((INT8S, INT8S, 1), (INT8S, INT8S, 1 << 40)),
    "strides": ((INT8S, INT8S, 1), (INT8S, _array(np.int8, 8)[::2], 1)),
    "read-only": ((INT8S, INT8S, 1), (INT8S, _readonly(_array(np.int8)), 1)),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_are_part_of_the_key(compilations: Compilations, name: str) -> None:
    """Each kind of argument is compiled for itself, and found for itself."""
    one, other = ARGUMENTS[name]
    assert compilations.of(lambda: sarek.kernel(_plain).ir(*one)) == 1
    assert compilations.of(lambda: sarek.kernel(_plain).ir(*other)) == 1
    assert compilations.of(lambda: sarek.kernel(_plain).ir(*one)) == 0
    assert compilations.of(lambda: sarek.kernel(_plain).ir(*other)) == 0


def _rows(out):
    i = sarek.grid(1)
    out[i] = 1


@pytest.mark.parametrize(
    "other", [_array(np.int8, (2, 2)), _array(RECORD)], ids=["axes", "records"]
)
def test_shapes_of_arrays_are_part_of_the_key(disk_cache: Path, other: Any) -> None:
    """The number of axes, and the fields of records; refused here, so nothing is compiled."""
    sarek.kernel(_rows).ir(INT8S)
    before = counters.disk_misses
    with pytest.raises(sarek.CompileError):
        sarek.kernel(_rows).ir(other)
    assert counters.disk_misses == before + 1


HINTS: list[dict[str, Any]] = [
    {"wraparound": False},
    {"bounds": "clamp"},
    {"strict": True},
    {"max_threads": 64},
    {"restrict": True},
]


@pytest.mark.parametrize("hint", HINTS, ids=lambda hint: next(iter(hint)))
def test_hints_are_part_of_the_key(compilations: Compilations, hint: dict[str, Any]) -> None:
    """Each alone."""
    assert compilations.of(lambda: sarek.kernel(_rows).ir(INT8S)) == 1
    assert compilations.of(lambda: sarek.kernel(**hint)(_rows).ir(INT8S)) == 1
    assert compilations.of(lambda: sarek.kernel(**hint)(_rows).ir(INT8S)) == 0


def _lanes(out):
    out[sarek.grid(1)] = sarek.warp.size


def test_the_width_of_a_warp_is_part_of_the_key(compilations: Compilations) -> None:
    """And gives another kernel."""
    found = []
    for width in (8, 16, 8, 16):
        with simulated_warp_width(width):
            kernel = sarek.kernel(_lanes)
            count = compilations.of(lambda kernel=kernel: kernel.ir(INT8S))
            found.append((kernel.ir(INT8S).warp_width, count))
    assert found == [(8, 1), (16, 1), (8, 0), (16, 0)]


def test_the_width_of_indices_is_part_of_the_key(compilations: Compilations) -> None:
    """A grid beyond 2**31 threads takes 64-bit lengths."""
    found = [
        compilations.of(lambda bits=bits: sarek.kernel(_rows)._specialise(_kinds(INT8S), bits))
        for bits in (32, 64, 32, 64)
    ]
    assert found == [1, 1, 0, 0]


def _kinds(*arguments: Any) -> Any:
    names = tuple("abc"[: len(arguments)])
    from sarek_numba.runtime.arguments import describe

    return describe("k", names, arguments, (None,) * len(arguments)).kinds


VERSIONS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "numba": lambda patch: patch.setattr(numba, "__version__", "0.0"),
    "numpy": lambda patch: patch.setattr(np, "__version__", "0.0"),
    "Python": lambda patch: patch.setattr(sys, "version", "2.7"),
    "this package": lambda patch: patch.setattr(disk, "own_package", lambda: "0.0"),
}


@pytest.mark.parametrize("name", VERSIONS)
def test_versions_are_part_of_the_key(
    compilations: Compilations, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Of all that the front end's result depends on."""
    kernel = sarek.kernel(_rows)
    assert compilations.of(lambda: kernel.ir(INT8S)) == 1
    VERSIONS[name](monkeypatch)
    assert compilations.of(lambda: sarek.kernel(_rows).ir(INT8S)) == 1
    monkeypatch.undo()


# --- what is not kept ----------------------------------------------------------------------------


def test_a_kernel_without_content_runs_and_is_not_kept(
    compilations: Compilations, disk_cache: Path
) -> None:
    """Here a module stands in a variable, so that its attributes are read unseen."""
    settings = ModuleType("settings_of_the_user")
    vars(settings)["N"] = 5

    def through(out):
        held = settings
        out[sarek.grid(1)] = held.N

    for _ in range(2):
        out = np.zeros(4, np.int32)
        assert compilations.of(lambda out=out: sarek.kernel(through).ir(out)) == 1
    assert list(disk.entries(disk_cache)) == []


def test_a_change_while_compiling_is_not_kept(
    disk_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel made of one value must not stand under the key of another."""
    found = compiled.look_up(calling.py_func, ("k",))
    assert found is not None
    made = compiled.Compiled(calling.ir(FLOATS, FLOATS, 2.0), ())
    monkeypatch.setitem(globals(), "FACTOR", 4)
    found.keep(made)
    assert [e for e in disk.entries(disk_cache) if e.path.name == found.key] == []
    monkeypatch.setitem(globals(), "FACTOR", 3)
    found.keep(made)
    assert [e for e in disk.entries(disk_cache) if e.path.name == found.key] != []


# --- processes ------------------------------------------------------------------------------------

_MAIN = """
import sys
import numpy as np
import sarek_numba as sarek
from sarek_numba.execute import counters
import constants, helpers

def factory(k):
    @sarek.kernel
    def scaled(out):
        i = sarek.grid(1)
        if i < len(out):
            out[i] = helpers.changed(i) * k + constants.OFFSET
    return scaled

for device in sys.argv[1:]:
    for k in (1, 2, 3):
        out = np.zeros(4, np.int32)
        factory(k).launch(out, grid=1, block=4, device=device)
        print(*out)
print(counters.compiles, "sarek_numba.compile" in sys.modules)
"""


def _process(folder: Path, *devices: str) -> list[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(folder / "main.py"), *devices],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


def _expected(offset: int, factor: int, devices: int) -> list[str]:
    values = [[i * factor * k + offset for i in range(4)] for k in (1, 2, 3)]
    return [" ".join(map(str, each)) for each in values] * devices


def test_edits_in_other_modules_are_noticed(disk_cache: Path, tmp_path: Path) -> None:
    """Cases 76 and 77: a constant in one module, a callee in another; and a second process that
    finds all compiles nothing and imports no compiler.
    """
    without = ("interpreter", "vulkan")  # Vulkan's programs are not on disk, its pipelines are
    devices = [d.name for d in sarek.devices() if d.record.backend not in without]
    (tmp_path / "main.py").write_text(_MAIN)
    constants, helpers = tmp_path / "constants.py", tmp_path / "helpers.py"
    callee = "import sarek_numba as sarek\n\n@sarek.function\ndef changed(x):\n    return x * {}\n"
    constants.write_text("OFFSET = 1\n")
    helpers.write_text(callee.format(10))
    made = 3 * len(devices)
    assert _process(tmp_path, *devices) == [*_expected(1, 10, len(devices)), f"{made} True"]
    assert _process(tmp_path, *devices) == [*_expected(1, 10, len(devices)), "0 False"]
    constants.write_text("OFFSET = 25\n")
    assert _process(tmp_path, "native") == [*_expected(25, 10, 1), "3 True"]
    helpers.write_text(callee.format(100))
    assert _process(tmp_path, "native") == [*_expected(25, 100, 1), "3 True"]
    assert _process(tmp_path, "native") == [*_expected(25, 100, 1), "0 False"]


_SIXTEEN = """
import os, sys, threading
import numpy as np
import sarek_numba as sarek
from sarek_numba import compile, dispatcher

@sarek.kernel
def new(out):
    i = sarek.grid(1)
    if i < len(out):
        out[i] = i * i + 7

sarek.device("native")
children = []
start, go = os.pipe()
for _ in range(16):
    child = os.fork()
    if not child:
        os.close(go)
        os.read(start, 1)  # until all are there
        good = []
        def launch():
            out = np.zeros(100, np.int64)
            new[1, 128](out)
            good.append(np.array_equal(out, np.arange(100) ** 2 + 7))
        threads = [threading.Thread(target=launch) for _ in range(4)]
        [each.start() for each in threads]
        [each.join() for each in threads]
        os._exit(0 if good == [True] * 4 else 1)
    children.append(child)
os.close(go)
print([os.waitpid(child, 0)[1] for child in children] == [0] * 16)
"""


def test_sixteen_processes_at_once(disk_cache: Path, tmp_path: Path) -> None:
    """Case 85: each with four threads meets one new kernel; one entry stays."""
    script = tmp_path / "sixteen.py"
    script.write_text(_SIXTEEN)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n", done.stderr
    kinds = sorted(entry.kind for entry in disk.entries(disk_cache))
    assert kinds == ["kernels", "launchers", "native"]
