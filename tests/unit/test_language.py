"""The language's objects in plain Python."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from sarek_numba.errors import SarekError, UnsupportedConstruct
from sarek_numba.frontend import language as sarek
from sarek_numba.frontend import mathematics
from sarek_numba.frontend.functions import function
from sarek_numba.frontend.matrices import Config, coopmat
from sarek_numba.ir.nodes import AtomicOp, Coordinate, FenceScope


class Recorder:
    """A thread at 10 × coordinate + axis, which records what is asked of it."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def coordinate(self, coordinate: Coordinate, axis: int) -> int:
        return 10 * list(Coordinate).index(coordinate) + axis

    def __getattr__(self, name: str) -> Any:
        return lambda *args: self.calls.append((name, *args))


def test_indices_are_python_ints_of_the_thread() -> None:
    with sarek.emulating(Recorder()):
        assert (sarek.thread_idx.x, sarek.thread_idx.z) == (0, 2)
        assert sarek.global_idx.x == 40
        assert sarek.grid(2) == (40, 41)
        assert sarek.gridsize(1) == 50


def test_the_global_thread_id_behaves_as_an_int() -> None:
    with sarek.emulating(Recorder()):
        thread = sarek.global_thread_id
        assert (thread + 1, 1 + thread, thread * 2, 100 - thread, thread // 3) == (
            41,
            41,
            80,
            60,
            13,
        )
        assert (thread < 41, thread == 40, thread % 7, -thread) == (True, True, 5, -40)
        assert np.arange(50)[thread] == 40
        assert type(np.float32(2) * thread) is np.float32
        assert list(range(thread))[-1] == 39


def test_calls_go_to_the_thread() -> None:
    thread = Recorder()
    with sarek.emulating(thread):
        sarek.barrier()
        sarek.mem_fence("block")
        sarek.shared.array((2, 3), sarek.float32)
        sarek.shared.array(0, np.int32)
        sarek.local.array(4, sarek.uint8)
        sarek.atomic.add("a", 1, 2)
        sarek.atomic.cas("a", 1, 2, 3)
        with sarek.superstep():
            pass
    float32, int32, uint8 = np.dtype("float32"), np.dtype("int32"), np.dtype("uint8")
    assert thread.calls == [
        ("barrier",),
        ("mem_fence", FenceScope.BLOCK),
        ("shared_array", (2, 3), float32),
        ("dynamic_shared", 0, int32),
        ("local_array", (4,), uint8),
        ("atomic", AtomicOp.ADD, "a", 1, 2, None),
        ("atomic", AtomicOp.CAS, "a", 1, 3, 2),
        ("barrier",),
    ]


def test_outside_of_a_kernel_the_error_says_so() -> None:
    with pytest.raises(SarekError, match=r"sarek\.thread_idx has a meaning only inside a kernel"):
        _ = sarek.thread_idx.x


def test_a_matrix_operation_needs_a_kernel() -> None:
    with pytest.raises(SarekError, match=r"sarek\.coopmat\.load has a meaning only inside"):
        coopmat.load(1, 2, 0, 8)
    with pytest.raises(AttributeError):
        _ = sarek.atomic.sum


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ((8, 8, 8.0, "int8", "int8", "int32", "int32"), TypeError, "k of .* is a whole number"),
        ((8, 0, 8, "int8", "int8", "int32", "int32"), ValueError, "n of .* is at least 1, not 0"),
        ((8, 8, 8, "int8", "int8", "int32", "bool"), TypeError, "result of .* is bool; components"),
        ((8, 8, 8, "int8", "int9", "int32", "int32"), TypeError, "b of .* is 'int9'; components"),
        ((8, 8, 8, "int8", "int8", "float32", "float32"), ValueError, "mixes integers and floats"),
        ((8, 8, 8, *["float32"] * 4, True), ValueError, "sums of float32 do not saturate"),
        ((8, 8, 8, *["int32"] * 4, False, "block"), ValueError, "the scope is 'subgroup' or"),
    ],
)
def test_configurations_that_have_no_meaning(arguments, error, said) -> None:
    """They are refused where they are made."""
    with pytest.raises(error, match=said):
        Config(*arguments)


def test_configurations_are_values() -> None:
    """The same whatever names their types have."""
    first = Config(8, 8, 8, "int8", np.uint8, sarek.int32, np.dtype("int32"))
    second = Config(np.int64(8), 8, 8, sarek.int8, "u1", "i4", sarek.int32)
    assert first == second
    assert hash(first) == hash(second)
    assert repr(first) == "sarek.coopmat.Config(8, 8, 8, int8, uint8, int32, int32)"


def test_annotations() -> None:
    assert repr(sarek.float32[:, ::1]) == "sarek.float32[:, ::1]"
    assert sarek.int8[:] == sarek.int8[:]
    layouts = [sarek.int8[:].layout, sarek.int8[::1].layout, sarek.int8[::1, :].layout]
    assert layouts == ["A", "C", "F"]
    with pytest.raises(TypeError):
        _ = sarek.int8[1:2]


def test_types_are_dtypes_and_constructors() -> None:
    assert np.zeros(2, sarek.float32).dtype == np.float32
    assert type(sarek.int16(3)) is np.int16


def test_device_functions_can_be_called() -> None:
    @function
    def double(x: int) -> int:
        return 2 * x

    assert double(4) == 8


REFUSED_OPTIONS = {
    "inline_depth=17": "inline_depth=17 is no int from 1 to 16\n"
    "    hint: write deeper recursion as a loop",
    "inline_depth=0": "inline_depth=0 is no int from 1 to 16\n"
    "    hint: write deeper recursion as a loop",
    "inline_depth=2.0": "inline_depth=2.0 is no int from 1 to 16\n"
    "    hint: write deeper recursion as a loop",
    "inline=1": "inline=1 is no bool\n    hint: write inline=True",
    "inline=True, inline_depth=2": "a function that calls itself cannot be inlined\n"
    "    hint: leave out inline, or inline_depth",
    "cache=True": "@sarek.function has no option 'cache'\n"
    "    hint: its options are inline and inline_depth",
}


@pytest.mark.parametrize("options", REFUSED_OPTIONS)
def test_options_of_device_functions_are_refused_where_they_stand(options, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(f"@function({options})\ndef double(x):\n    return 2 * x\n")
    with pytest.raises(UnsupportedConstruct) as caught:
        exec(compile(path.read_text(), str(path), "exec"), {"function": function})
    shown = str(caught.value).replace(str(path), "module.py")
    name = options.partition("=")[0]
    message, hint = REFUSED_OPTIONS[options].split("\n    ")
    assert shown.splitlines() == [
        f"module.py:1:11: {message}",
        f"  1 | @function({options})",
        f"    |           {'^' * len(name)}",
        f"  {hint}",
    ]


def test_mathematics_in_plain_python() -> None:
    assert type(mathematics.rsqrt(np.float32(4))) is np.float32
    assert mathematics.clz(np.uint8(1)) == 7
    assert mathematics.popcount(np.int16(-1)) == 16
    assert mathematics.reinterpret(np.float32(1), np.uint32) == 0x3F800000
    assert mathematics.sinpi(1.0) == 0.0
    assert mathematics.cospi(0.5) == 0.0


def test_turns_in_plain_python_are_reduced_exactly() -> None:
    """Beside a zero the result is as far from it as the argument, times pi."""
    for whole, step in ((1.0, 2.0**-52), (-1.0, 2.0**-53), (2.0**22, 2.0**-30)):
        beside = abs(mathematics.sinpi(whole + step))
        assert beside == pytest.approx(step * math.pi, rel=1e-15, abs=0)
    assert mathematics.cospi(0.5 - 2.0**-54) == pytest.approx(2.0**-54 * math.pi, rel=1e-15, abs=0)
    assert [mathematics.sinpi(x / 2) for x in range(-3, 4)] == [1, 0, -1, 0, 1, 0, -1]
    assert [mathematics.cospi(x / 2) for x in range(-3, 4)] == [0, -1, 0, 1, 0, -1, 0]
    assert math.copysign(1, mathematics.sinpi(-1.0)) == -1


def test_gamma_in_plain_python_overflows_with_a_sign() -> None:
    assert mathematics.gamma(-5e-324) == -math.inf
    assert mathematics.gamma(5e-324) == math.inf
    assert math.isnan(mathematics.gamma(-2.0))


def test_fma_rounds_once() -> None:
    x = np.float32(1 + 2**-12)
    exact = float(x) * float(x) - 1.0
    assert mathematics.fma(x, x, np.float32(-1)) == np.float32(exact)
    assert x * x - np.float32(1) != np.float32(exact)


def test_the_language_needs_no_numba() -> None:
    code = "import sys; import sarek_numba.frontend.language; print('numba' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"
