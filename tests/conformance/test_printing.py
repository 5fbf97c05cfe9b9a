"""`print` in kernels: the same text from every executor, in the order of blocks and threads."""

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba as sarek
from tests.conformance.everywhere import everywhere
from tests.conformance.made import made
from tests.executors import run
from tests.kernels.case import Launch


def printed(executor, kernel, capsys, *arguments, grid=1, block=1):
    """What one launch writes to sys.stdout."""
    capsys.readouterr()
    run(executor, kernel, Launch(grid, block, arguments, ()))
    return capsys.readouterr().out


@sarek.kernel
def places():
    t = sarek.thread_idx
    b = sarek.block_idx
    print(b.x, b.y, t.x, t.y, t.z)
    sarek.barrier()
    print("after the barrier", sarek.global_idx.x)


@everywhere
def test_lines_come_by_block_then_thread_then_program(executor, capsys):
    """Whatever order threads run in, and however often they meet a barrier."""
    text = printed(executor, places, capsys, grid=(2, 2), block=(3, 2, 2))
    expected = ""
    for by, bx in np.ndindex(2, 2):
        for tz, ty, tx in np.ndindex(2, 2, 3):
            expected += f"{bx} {by} {tx} {ty} {tz}\nafter the barrier {bx * 3 + tx}\n"
    assert text == expected


@sarek.kernel
def elements(values):
    i = sarek.global_idx.x
    if i < len(values):
        print(i, values[i])


_INTEGERS = [np.dtype(name) for name in "i1 i2 i4 i8 u1 u2 u4 u8".split()]
_VALUES = [
    *(np.array([np.iinfo(t).min, 0, 1, np.iinfo(t).max], t) for t in _INTEGERS),
    *(
        np.array(
            [0.1, -0.0, np.inf, -np.inf, np.nan, 1e16, 1e-5, 1 / 3, np.finfo(t).max,
             np.finfo(t).tiny / 8],
            t,
        )
        for t in (np.float32, np.float64)
    ),
    np.array([True, False]),
]  # fmt: skip


@everywhere
@pytest.mark.parametrize("values", _VALUES, ids=lambda values: values.dtype.name)
def test_case_170_every_type(values, executor, capsys):
    """A value is written as NumPy writes a scalar of its type."""
    text = printed(executor, elements, capsys, values, block=16)
    assert text == "".join(f"{i} {value!s}\n" for i, value in enumerate(values))


@sarek.kernel
def forty(n, x):
    print()
    print(n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9,
          x, x, x, x, x, x, x, x, x, x, True, False, 1, 2.5, n > 3, n, n, n, n, n,
          n, n, n, n, n, n, n, n, n, "end")  # fmt: skip


@everywhere
def test_case_170_no_arguments_and_forty(executor, capsys):
    """There is no limit on how many values are printed."""
    text = printed(executor, forty, capsys, 7, np.float32(0.1))
    numbers = [*range(7, 17), *([np.float32(0.1)] * 10), True, False, 1, 2.5, True]
    assert text == "\n" + " ".join(map(str, [*numbers, *([7] * 14), "end"])) + "\n"


COUNTED = """
@sarek.kernel
def k(n, x):
    if n > 0:
        print({})
"""


@everywhere
def test_case_170_every_number_of_arguments(executor, capsys):
    """No, few, and around 32 values in one call: numbers, literals and texts in turn."""
    x = np.float32(0.1)
    for count in (0, 1, 2, 5, 31, 32, 33, 40):
        parts = [("n", "x", repr(k), repr(f"é{k}"))[k % 4] for k in range(count)]
        text = printed(executor, made(COUNTED.format(", ".join(parts)), "k"), capsys, 7, x)
        shown = [(7, x, k, f"é{k}")[k % 4] for k in range(count)]
        assert text == " ".join(map(str, shown)) + "\n"


@sarek.kernel
def complex_elements(values):
    i = sarek.global_idx.x
    if i % 3 != 1:
        print(values[i], i)


@sarek.kernel
def parts_of_complex_elements(values):
    i = sarek.global_idx.x
    print(values[i].real, values[i].imag)


@everywhere
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_case_170_complex(dtype, executor, capsys):
    """A complex number is printed by its parts; whole it is refused by name, with that hint."""
    values = np.array([0, 1 - 2j, -0.5 + 1e20j, complex(np.inf, np.nan), 1 / 3 - 0.1j], dtype)
    text = printed(executor, parts_of_complex_elements, capsys, values, block=5)
    assert text == "".join(f"{v.real!s} {v.imag!s}\n" for v in values)
    if executor != "emulation":
        with pytest.raises(sarek.TypingError, match=r"not complex\d+\n(.*\n)*.*real and imag"):
            printed(executor, complex_elements, capsys, values, block=5)


@sarek.kernel
def signs(n):
    print("100% %d %s {} \\ \" '", "é 数 \t|", n, sep="")
    print("a", n, "b", sep=None, end="; ")
    print(end="never empty\n")


@everywhere
def test_case_170_percent_and_unicode(executor, capsys):
    """Text is text: nothing in it is a format."""
    text = printed(executor, signs, capsys, 3)
    assert text == "100% %d %s {} \\ \" 'é 数 \t|3\na 3 b; never empty\n"


@sarek.function
def noted(value, label):
    print("  noted", value)
    return value * 2


@sarek.kernel
def divergent(out):
    i = sarek.global_idx.x
    for j in range(i % 3):
        if (i + j) % 2:
            print("thread", i, "pass", j)
        else:
            out[i] = noted(j, 0)
    while out[i] < 0:
        print("thread", i, "has", out[i])
        out[i] += 1


@everywhere
def test_case_170_in_divergent_code(executor, capsys):
    """In branches, loops and device functions only the threads that are there print."""
    out = np.full(37, -1, np.int32)
    text = printed(executor, divergent, capsys, out, grid=1, block=37)
    expected = ""
    for i in range(37):
        value = -1
        for j in range(i % 3):
            if (i + j) % 2:
                expected += f"thread {i} pass {j}\n"
            else:
                expected += f"  noted {j}\n"
                value = j * 2
        if value < 0:
            expected += f"thread {i} has {value}\n"
    assert text == expected


@sarek.kernel
def flood(n):
    for j in range(n):
        print(j, sarek.global_idx.x, 1.0, 2.0, 3.0, 4.0)


def test_prints_beyond_the_report_are_counted(capsys):
    """A device's report has room for some hundred thousand prints; a warning counts the others."""
    with pytest.warns(RuntimeWarning, match=r"kernel 'flood': \d+ prints found no room"):
        flood.launch(1000, grid=8, block=64, device="native")
    lines = capsys.readouterr().out.splitlines()
    assert 200_000 < len(lines) < 512_000
    assert lines[0] == "0 0 1.0 2.0 3.0 4.0"
