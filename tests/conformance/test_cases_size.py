"""Cases from the field: large kernels (section M)."""

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba as sarek
from tests.conformance.everywhere import everywhere, gives
from tests.conformance.made import branching, kernel_of, made, straight

X = np.arange(3, 11, dtype=np.int32)


@pytest.fixture(scope="module")
def large():
    """Kernels with 2,000 statements, and what the oracle gives for them."""
    found = {}
    for make in (straight, branching):
        kernel, out = make(2000), np.zeros(8, np.int32)
        with sarek.use_device("interpreter"):
            kernel[1, 8](out, X)
        found[make.__name__] = kernel, out
    return found


@everywhere
@pytest.mark.parametrize("name", ["straight", "branching"])
def test_case_163_statements(executor, large, name):
    """2,000 statements in a row, and 400 branches in a row."""
    kernel, expected = large[name]
    gives(executor, kernel, expected, X)


@everywhere
def test_case_163_locals(executor):
    """200 locals that live across a loop."""
    lines = ["i = sarek.global_idx.x"]
    lines += [f"v{n} = x[i] + {n}" for n in range(200)]
    lines += ["for k in range(3):"]
    lines += [f"    v{n} = v{n} + v{(n + 1) % 200}" for n in range(200)]
    lines += ["out[i] = " + " + ".join(f"v{n}" for n in range(200))]
    values = [X.astype(np.int64) + n for n in range(200)]
    for _ in range(3):
        for n in range(200):
            values[n] = values[n] + values[(n + 1) % 200]
    gives(executor, kernel_of("out, x", lines), sum(values), X)


def nested_helpers():
    """60 nested loops: CPython nests no more than 20 in one function."""
    texts = []
    for level in range(4):
        lines = [f"@sarek.function\ndef level{level}(a):"]
        for depth in range(15):
            lines.append("    " * (depth + 1) + f"for k{depth} in range({2 if depth == 7 else 1}):")
        body = "a + k0 + k7 + 1" if level == 3 else f"level{level + 1}(a + k7)"
        lines += ["    " * 16 + f"a = {body}", "    return a", ""]
        texts.append("\n".join(lines))
    kernel = (
        "@sarek.kernel\ndef k(out, x):\n    i = sarek.global_idx.x\n    out[i] = level0(x[i])\n"
    )
    return made("\n".join([*reversed(texts), kernel]), "k")


def _nested(a, level=0):
    for k in range(2):
        a = a + k + 1 if level == 3 else _nested(a + k, level + 1)
    return a


@everywhere
def test_case_163_loops(executor):
    """60 nested loops."""
    gives(executor, nested_helpers(), [_nested(int(x)) for x in X], X)


@everywhere
def test_case_163_ifs(executor):
    """60 nested branches, with an exit in each."""
    lines = ["i = sarek.global_idx.x", "a = x[i]"]
    for depth in range(60):
        lines.append("    " * depth + f"if a > {depth % 9}:")
        lines.append("    " * (depth + 1) + "a = a + 1")
    lines += ["    " * 60 + "out[i] = a"]
    lines += ["    " * depth + "else:\n    " + "    " * (depth + 1) + f"out[i] = -{depth}"
              for depth in range(59, -1, -1)]  # fmt: skip

    def expected(a):
        for depth in range(60):
            if a <= depth % 9:
                return -depth
            a += 1
        return a

    x = np.arange(8, dtype=np.int32)
    gives(executor, kernel_of("out, x", lines), [expected(int(v)) for v in x], x)


@everywhere
def test_case_163_arguments(executor):
    """300 arguments: arrays, Python ints and floats."""
    names = [f"p{n}" for n in range(299)]
    terms = [f"p{n}[i]" if n % 10 == 0 else f"p{n}" for n in range(299)]
    lines = ["i = sarek.global_idx.x", "a = 0", *(f"a = a + {term}" for term in terms)]
    lines.append("out[i] = a")
    values = [np.full(8, n, np.int64) if n % 10 == 0 else n for n in range(299)]
    kernel = kernel_of("out, " + ", ".join(names), lines)
    gives(executor, kernel, [299 * 298 // 2] * 8, *values, dtype=np.int64)


@everywhere
def test_case_163_expression(executor):
    """One expression of 300 terms, and one 80 deep."""
    wide = ["i = sarek.global_idx.x", "out[i] = " + " + ".join(["x[i]"] * 300)]
    gives(executor, kernel_of("out, x", wide), X * 300, X)
    deep = ["i = sarek.global_idx.x", "out[i] = " + "(" * 80 + "x[i]" + " + 1)" * 80]
    gives(executor, kernel_of("out, x", deep), X + 80, X)


@sarek.kernel
def long_division(out, high, low, divisor):
    """128-bit by 64-bit division, bit by bit, in 32-bit limbs."""
    t = sarek.thread_idx.x
    d = divisor[t]
    remainder = np.uint64(0)
    quotient = np.uint64(0)
    for part in range(2):
        word = high[t] if part == 0 else low[t]
        for bit in range(63, -1, -1):
            carry = remainder >> 63
            remainder = (remainder << 1) | ((word >> bit) & 1)
            quotient = quotient << 1
            if carry == 1 or remainder >= d:
                remainder = remainder - d
                quotient = quotient | 1
    out[t, 0] = quotient
    out[t, 1] = remainder


@everywhere
def test_case_164_division(executor):
    """Long division of 128 bits in nested loops."""
    rows = [(2**64 - 2, 17, 2**64 - 1), (0, 5, 3), (1, 0, 7), (2**63, 2**63 + 1, 2**63 + 3)]
    high, low, divisor = (np.array(column, np.uint64) for column in zip(*rows, strict=True))
    expected = []
    for h, rest, d in rows:
        quotient, remainder = divmod((h << 64) | rest, d)
        expected.append((quotient % 2**64, remainder))
    gives(
        executor, long_division, np.array(expected, np.uint64), high, low, divisor, dtype=np.uint64
    )


@sarek.kernel
def empty_loops(out, n):
    for _ in range(0):
        for _ in range(0):
            pass
    for _ in range(n):
        for _ in range(n, 0):
            pass
    out[sarek.thread_idx.x] = 200 + sarek.thread_idx.x


@everywhere
def test_case_166_empty(executor):
    """Loops that do nothing, then stores of bytes."""
    gives(executor, empty_loops, [200, 201, 202, 203], 3, dtype=np.uint8)
