"""Text of HIP C++ that is not CUDA's: roots that are exact whatever the instruction does."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_hip.dialect import DIALECT, contracting
from sarek_numba.ir.types import Scalar
from tests.toolchains import shim

SQRT = ("sqrt", Scalar.FLOAT32)


@sarek.kernel
def roots(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = math.sqrt(x[i])


def _operands() -> np.ndarray:
    """Every exponent with random digits, squares and their neighbours, and what is no number."""
    random = np.random.default_rng(1)
    bits = random.integers(0, 2**32, 40_000, dtype=np.uint32)
    squares = np.square(random.integers(1, 4096, 2000).astype(np.float32))
    near = [np.nextafter(squares, np.float32(way)) for way in (0, np.inf)]
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 1.2e-38, 3.4028235e38], np.float32)
    return np.concatenate([bits.view(np.float32), squares, *near, edges])


@pytest.mark.skipif(bool(shim.why_not()), reason=shim.why_not() or "present")
def test_roots_are_exact() -> None:
    """The shim's instruction is off by one place, this way or that, as AMD's may be."""
    x = _operands()
    out = np.zeros_like(x)
    roots.launch(out, x, grid=-(-len(x) // 64), block=64, device=shim.device("shim:hip"))
    with np.errstate(invalid="ignore"):
        wanted = np.sqrt(x)
    same = (out.view(np.uint32) == wanted.view(np.uint32)) | (np.isnan(out) & np.isnan(wanted))
    assert same.all(), [(a, b) for a, b in zip(x[~same], out[~same], strict=True)][:5]


def test_fast_math_has_the_compilers_root() -> None:
    """Exactness is what `accept.fastmath` gives up."""
    assert DIALECT.functions[SQRT] == "exact_root({0})"
    assert contracting(DIALECT).functions[SQRT] == "sqrtf({0})"
