"""Every conversion, by type constructor and by store, at boundary values, on every executor."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from sarek_numba.verify.ulp import ulp_distance
from tests.conformance import numbers
from tests.conformance.columns import BLOCK, ORACLE, reading
from tests.conformance.generated import kernel
from tests.conformance.numbers import DTYPES, KINDS, STRONG
from tests.executors import EMULATION, executors, run
from tests.kernels.case import Launch, poison


@lru_cache
def values(kind: str) -> np.ndarray:
    """Values of a kind at and around the ends of every type."""
    if kind == "bool":
        return np.array([False, True])
    powers = [2**k for k in (0, 1, 7, 8, 15, 16, 24, 31, 32, 53, 62, 63, 64)]
    # Rounding 2^54 + 2^30 + 1 to float64 and then to float32 gives another value than at once.
    powers += [2**54 + 2**30 + 1, 2**24 + 3, 2**53 + 1, 10**17 + 3]
    near = {sign * power + step for power in powers for sign in (-1, 1) for step in (-1, 0, 1)}
    if not numbers.is_real(kind):
        low, high = numbers.ends(kind)
        return np.array(sorted(v for v in near if low <= v <= high), DTYPES[kind])
    dtype = DTYPES[kind]
    whole = np.array(sorted(near), np.float64).astype(dtype)
    info = np.finfo(dtype)
    with np.errstate(all="ignore"):
        special = np.array(
            [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, -0.99, 1.5, 2.5, 255.9, 0.1, info.max,
             info.min, info.tiny, info.smallest_subnormal, 1e-40, 1e39, 3.4028235677973366e38,
             3.4028235677973362e38, 1 + 2.0**-24, 1 + 2.0**-24 + 2.0**-50],
            np.float64,
        ).astype(dtype)  # fmt: skip
        around = [np.nextafter(whole, dtype.type(end)) for end in (np.inf, -np.inf)]
    return np.unique(np.concatenate([whole, *around, special]))


@lru_cache
def _conversions(kind: str) -> Any:
    body = ["i = sarek.global_idx.x", "if i < len(x_in):", f"    x = {reading(kind, 'x_in')}"]
    for k, target in enumerate(STRONG):
        wide = "real" if numbers.is_real(target) else "whole"
        constructor = "np.bool_" if target == "bool" else f"np.{target}"
        guard = f"if ask[i, {k}]: " if kind == "weak_int" else ""
        body.append(f"    {guard}{wide}[i, {k}] = {constructor}(x)")
        body.append(f"    {guard}to_{target}[i] = x")
    parameters = ["whole", "real", "ask", "x_in", *(f"to_{target}" for target in STRONG)]
    return kernel(f"conversions_of_{kind}", parameters, body)


def _asked(executor: str, kind: str, x: np.ndarray) -> np.ndarray:
    """A Python int that does not fit: NumPy raises, and so does the oracle where it is stored."""
    ask = np.ones((len(x), len(STRONG)), bool)
    if kind == "weak_int" and executor in (EMULATION, ORACLE):
        for k, target in enumerate(STRONG):
            if target in numbers.INTEGERS:
                ask[:, k] = [numbers.fits(value, target) for value in x.tolist()]
    return ask


@pytest.mark.parametrize("executor", executors())
@pytest.mark.parametrize("kind", KINDS)
def test_conversions(kind: str, executor: str) -> None:
    """Integers modulo 2^n, floats truncated and saturated, NaN 0, one rounding to a float."""
    x = values(kind)
    ask = _asked(executor, kind, x)
    whole, real = poison(ask.shape, np.int64), poison(ask.shape, np.float64)
    stores = [poison(len(x), DTYPES[target]) for target in STRONG]
    untouched = [array.copy() for array in stores]
    with np.errstate(all="ignore"):
        launch = Launch(-(-len(x) // BLOCK), BLOCK, (whole, real, ask, x, *stores), ())
        run(executor, _conversions(kind), launch)
    wrong = []
    for k, target in enumerate(STRONG):
        expected = numbers.converted(x, kind, target)
        if numbers.is_real(target):
            cast = real[:, k], expected.astype(np.float64)
        else:
            cast = whole[:, k], numbers.as_int64(expected.tolist(), target)
        kept = np.where(ask[:, k], expected, untouched[k])
        for what, actual, right in (("cast", *cast), ("store", stores[k], kept)):
            rows = np.flatnonzero((ulp_distance(actual, right) > 0) & ask[:, k])
            wrong += [
                f"{what} to {target}: {x[row]!r} gave {actual[row]!r}, expected {right[row]!r}"
                for row in rows[:2]
            ]
    assert not wrong, "\n".join([f"on {executor}:", *wrong])
