"""Halves by their bits: all patterns, and the numbers at which rounding to them changes.

Nothing here rounds: a boundary lies exactly between two neighbours, so what a number beside it
becomes is known.
"""

from __future__ import annotations

from functools import lru_cache

import ml_dtypes
import numpy as np

HALVES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
INFINITY = {"float16": 0x7C00, "bfloat16": 0x7F80}
_TOP = {"float16": 2.0**16, "bfloat16": 2.0**128}  # what the bits of infinity would stand for


def patterns(half: str) -> np.ndarray:
    """All 65,536 of them."""
    return np.arange(1 << 16, dtype=np.uint16).view(HALVES[half])


def assert_same_bits(actual: np.ndarray, expected: np.ndarray, what: str = "") -> None:
    """Equal patterns of halves, but for NaN, of which any is as good."""
    nan = np.isnan(expected.astype(np.float32))
    assert np.array_equal(np.isnan(actual.astype(np.float32)), nan), f"{what}: NaN elsewhere"
    a, b = actual.view(np.uint16), expected.view(np.uint16)
    wrong = np.flatnonzero((a != b) & ~nan)
    shown = [(int(k), hex(a[k]), hex(b[k])) for k in wrong[:3]]
    assert not len(wrong), f"{what}: {len(wrong)} differ, first (index, is, expected) {shown}"


@lru_cache
def boundaries(half: str, source: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of a float type at and beside every point where rounding to a half changes, and the
    halves that they become: for each sign, the halves, the middles between neighbours and what lies
    next to these in the float type, also beyond the largest.
    """
    count = INFINITY[half]
    bits = np.arange(count, dtype=np.uint16)
    low = bits.view(HALVES[half]).astype(np.float64)
    high = np.append(low[1:], _TOP[half])
    middle = low + (high - low) / 2
    even = bits + (bits & 1)
    dtype = np.dtype(source)
    exact = middle.astype(dtype)
    assert np.array_equal(exact.astype(np.float64), middle)
    with np.errstate(all="ignore"):
        numbers = [low.astype(dtype), exact, np.nextafter(exact, dtype.type(0)),
                   np.nextafter(exact, dtype.type(np.inf)),
                   np.nextafter(low.astype(dtype), dtype.type(np.inf))]  # fmt: skip
    expected = [bits, even, bits, bits + np.uint16(1), bits]
    more = np.array([_TOP[half] if half == "float16" else np.inf, np.inf, np.finfo(dtype).max])
    numbers.append(more.astype(dtype))
    expected.append(np.full(len(more), count, np.uint16))
    given, wanted = np.concatenate(numbers), np.concatenate(expected).astype(np.uint16)
    both = np.concatenate([wanted, wanted | np.uint16(0x8000)]).view(HALVES[half])
    return np.concatenate([given, -given]), both


@lru_cache
def integers(half: str, source: str) -> tuple[np.ndarray, np.ndarray]:
    """Integers of a type at and beside the middles of neighbouring halves, and what they become."""
    info = np.iinfo(source)
    count = INFINITY[half]
    low = [int(v) for v in np.arange(count, dtype=np.uint16).view(HALVES[half]).astype(float)]
    given: list[int] = []
    wanted: list[int] = []
    top = int(_TOP[half])
    for bits, (here, above) in enumerate(zip(low, [*low[1:], top], strict=True)):
        if above - here < 2:
            continue
        middle = here + (above - here) // 2
        odd = bits & 1
        points = [(here, bits), (middle - 1, bits), (middle, bits + odd), (middle + 1, bits + 1)]
        if above - here == 2:
            points = [(here, bits), (middle, bits + odd)]
        given += [value for value, _ in points]
        wanted += [each for _, each in points]
    values = [*given, *(-v for v in given), info.max, info.min]
    ends = [_rounded(half, info.max), _rounded(half, info.min)]
    bits = [*wanted, *(0x8000 | b if v else b for v, b in zip(given, wanted, strict=True)), *ends]
    kept = [(v, b) for v, b in zip(values, bits, strict=True) if info.min <= v <= info.max]
    numbers = np.array([v for v, _ in kept], np.dtype(source))
    return numbers, np.array([b for _, b in kept], np.uint16).view(HALVES[half])


def _rounded(half: str, power: int) -> int:
    """The bits of an end of an integer type: 0, or within one of a power of two."""
    exponent = (abs(power) + 1).bit_length() - 1
    sign = 0x8000 if power < 0 else 0
    if power in (0, 127, 255):  # exact in both
        return int(np.array([power]).astype(HALVES[half]).view(np.uint16)[0])
    if half == "float16" and exponent >= 16:
        return sign | INFINITY[half]
    if half == "float16" and power == 2**15 - 1:
        return 0x7800  # 32768
    bias, fraction = (15, 10) if half == "float16" else (127, 7)
    return sign | (exponent + bias) << fraction
