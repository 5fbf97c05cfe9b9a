"""The shim itself: its machine runs blocks as a device does, and its checks find what is wrong."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.errors import LaunchFailed, SourceCompilationError
from tests.conformance.conftest import DECLARED, FOLDER, is_wanted
from tests.executors import check, run
from tests.kernels import elementwise, memory
from tests.kernels.case import Launch
from tests.toolchains import shim
from tests.toolchains.shim import driver as shim_driver
from tests.unit.fragment_kernels import Config, once, operands, reference

pytestmark = pytest.mark.skipif(bool(shim.why_not()), reason=shim.why_not() or "present")
CUDA = "shim:cuda"


@pytest.fixture
def changed(monkeypatch):
    """`changed(**fields)`: the shim with another dialect, which nothing that was compiled knows."""
    languages = dict(shim.LANGUAGES)

    def change(name=CUDA, /, **fields):
        language = languages[name]
        dialect = replace(language.dialect, **fields)
        monkeypatch.setitem(shim_driver.LANGUAGES, name, replace(language, dialect=dialect))
        shim.device.cache_clear()

    yield change
    monkeypatch.undo()
    shim.device.cache_clear()


def _case(corpus, name):
    return next(case for case in corpus.corpus if case.name == name)


def test_a_wrong_word_of_the_dialect_is_refused(changed):
    """The text is compiled: a barrier of another name is an error, with the text and the log."""
    changed(barrier="__sync_threads()")
    with pytest.raises(SourceCompilationError, match="g\\+\\+ rejects") as caught:
        check(CUDA, _case(memory, "scan_in_dynamic_shared_memory"))
    assert "__sync_threads" in caught.value.log
    assert "sarek_kernel" in caught.value.source


def test_a_wrong_meaning_of_the_dialect_is_found(changed):
    """The text is run: without a barrier, and with a float that is not cut off, results differ."""
    changed(barrier="(void)0")
    with pytest.raises(AssertionError, match="differs at"):
        check(CUDA, _case(memory, "scan_in_dynamic_shared_memory"))
    coordinates = shim.LANGUAGES[CUDA].dialect.narrow_coordinates
    shifted = {key: tuple(f"{axis} + 1" for axis in axes) for key, axes in coordinates.items()}
    changed(narrow_coordinates=shifted)
    with pytest.raises(AssertionError, match="differs at"):
        check(CUDA, _case(elementwise, "saxpy_float32"))


def test_threads_that_wait_for_each_other_for_ever_are_reported(changed):
    """A barrier that half of a block comes to is the end of a launch, not of the process."""
    changed(barrier="if (threadIdx.x % 2) __syncthreads(); else __syncwarp()")
    case = _case(memory, "scan_in_dynamic_shared_memory")
    with pytest.raises(LaunchFailed, match="wait for each other"):
        check(CUDA, case)
    changed()
    check(CUDA, case)


@sarek.kernel
def rotated(out):
    """Threads read what their neighbours wrote, again and again, in every block anew."""
    tile = sarek.shared.array(1024, sarek.int32)
    t = sarek.thread_idx.x + sarek.block_dim.x * (
        sarek.thread_idx.y + sarek.block_dim.y * sarek.thread_idx.z
    )
    n = sarek.block_dim.x * sarek.block_dim.y * sarek.block_dim.z
    block = sarek.block_idx.x + sarek.grid_dim.x * sarek.block_idx.y
    tile[t] = t + block
    sarek.barrier()
    for _ in range(3):
        value = tile[(t + 1) % n]
        sarek.barrier()
        tile[t] = value
        sarek.barrier()
    out[block, t] = tile[t]


@pytest.mark.parametrize("block", [1, 7, 32, 33, 1024, (5, 3, 4), (1, 64, 2)])
def test_blocks_of_any_shape(block):
    """Fibers are used again by blocks of other sizes; threads follow x, then y, then z."""
    n = int(np.prod(block))
    out = np.zeros((6, n), np.int32)
    run(CUDA, rotated, Launch((3, 2), block, (out,), ()))
    expected = (np.arange(n) + 3) % n + np.arange(6)[:, None]
    assert np.array_equal(out, expected)


@sarek.kernel
def rounded(out, a, b, c):
    i = sarek.global_idx.x
    out[i] = a[i] * b[i] + c[i]


def test_products_and_sums_are_rounded_apart():
    """The compiler makes no fused operation; where it did, the value would be another."""
    a = np.full(8, 1 + 2.0**-12, np.float32)
    c = np.full(8, -1 - 2.0**-11, np.float32)
    out = np.ones(8, np.float32)
    run(CUDA, rounded, Launch(1, 8, (out, a, a, c), ()))
    assert np.array_equal(out, np.zeros(8, np.float32))
    fused = float(a[0]) * float(a[0]) + float(c[0])
    assert fused != 0


_HARDENED = """
import sys
from tests.executors import check
from tests.kernels import memory
from tests.toolchains.shim import driver

driver.SYSTEM = ("-D_FORTIFY_SOURCE=2", "-fcf-protection=full", "-fstack-protector-all")
if sys.argv[1] == "as it is":
    driver.OPTIONS.remove("-U_FORTIFY_SOURCE")
check("shim:cuda", next(c for c in memory.corpus if c.name == "scan_in_dynamic_shared_memory"))
"""


@pytest.mark.parametrize("options", ["ours", "as it is"])
def test_systems_that_harden_programs(options):
    """What a system's compiler adds does not keep fibers from changing places; a check of longjmp
    would end the process.
    """
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", _HARDENED, options]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if options == "ours":
        assert done.returncode == 0, done.stderr
    elif done.returncode == 0:
        pytest.skip("the C library here has no such check")
    else:
        assert "longjmp" in done.stderr


def test_what_a_shim_runs_is_declared():
    """The rule names shims and modules that exist, the corpus among them; CUDA's runs all."""
    assert set(DECLARED) == set(shim.LANGUAGES) - {CUDA}
    for modules in DECLARED.values():
        assert "test_corpus" in modules
        assert all((FOLDER / f"{module}.py").exists() for module in modules)
    assert is_wanted("test_arrays", [CUDA, np.float32(1), "native"])
    assert is_wanted("test_corpus", ["shim:hip", 3])
    assert not is_wanted("test_arrays", [3, "shim:metal"])


@pytest.mark.parametrize("offset", [1, 2, 8])
@pytest.mark.parametrize("half", ["float16", "int8"])
def test_fragments_of_parts_of_arrays(half, offset):
    """A matrix that begins at any element, so where no access of a whole word may be."""
    result = "float32" if half == "float16" else "int32"
    config = Config(16, 8, 16, half, half, result, result)
    matrices = [np.rint(each * 4).astype(each.dtype) for each in operands(config, (1, 1, 1), "x")]
    apart = []
    for matrix in matrices:
        memory = np.zeros(matrix.size + offset, matrix.dtype)
        apart.append(memory[offset:].reshape(matrix.shape))
        apart[-1][...] = matrix
    out = np.zeros(config.m * config.n + 2 * offset, result)
    part = out[offset : offset + config.m * config.n].reshape(config.m, config.n)
    run(CUDA, once(config), Launch(1, 32, (*apart, part), ()))
    assert np.array_equal(part, reference(config, *matrices))
    assert not out[:offset].any()
    assert not out[offset + part.size :].any()


def test_a_wrong_lane_of_a_fragment_is_found(changed):
    """The lanes' own places are run: with another order of them the product is another."""
    config = Config(16, 8, 16, "int8", "int8", "int32", "int32")
    a, b, c = operands(config, (1, 1, 1), "random")

    def product():
        out = np.zeros_like(c)
        run(CUDA, once(config), Launch(1, 32, (a, b, c, out), ()))
        return out

    assert np.array_equal(product(), reference(config, a, b, c))
    for right, wrong in (("lane / 4 *", "lane % 8 *"), ("8 * line", "4 * line")):
        words = {
            name: tuple(text.replace(right, wrong) for text in texts)
            for name, texts in shim.LANGUAGES[CUDA].dialect.word_prologue.items()
        }
        changed(word_prologue=words)
        assert not np.array_equal(product(), reference(config, a, b, c))


@pytest.mark.parametrize("language", [CUDA, "shim:hip"])
@pytest.mark.parametrize("result", ["int32", "uint32"])
@pytest.mark.parametrize("kept", ["sum < lowest ? lowest : ", "sum > highest ? highest : "])
def test_a_wrong_end_of_saturating_sums_is_found(changed, language, result, kept):
    """Sums at both ends of their type are run: with one that is not kept the product is another."""
    config = Config(16, 16, 16, "int8", "int8", result, result, True)
    a, b, _ = operands(config, (1, 1, 1), "edges")
    ends = np.iinfo(result)
    c = np.full((16, 16), ends.min, result)
    c[::2] = ends.max

    def product():
        out = np.zeros_like(c)
        run(language, once(config), Launch(1, 32, (a, b, c, out), ()))
        return out

    assert np.array_equal(product(), reference(config, a, b, c))
    words = {
        name: tuple(text.replace(kept, "") for text in texts)
        for name, texts in shim.LANGUAGES[language].dialect.word_prologue.items()
    }
    changed(language, word_prologue=words)
    assert not np.array_equal(product(), reference(config, a, b, c))
