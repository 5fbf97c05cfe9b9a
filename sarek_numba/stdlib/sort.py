"""Stable radix sort, of keys alone and of keys with values.

Least significant digit first, eight bits a pass. A pass counts the digits of each segment, adds the
counts up in the order (digit, segment), and moves every element to the place that its digit counts
next. Passes in which all digits are equal are left out. Keys are sorted as unsigned patterns:
signed ones with the sign flipped; of floats the negative ones complemented, both zeros one pattern
and all NaN the last, so that the order is that of `np.sort(kind="stable")`, bits untouched.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import sarek_numba as sarek
from sarek_numba.errors import InvalidArgument
from sarek_numba.stdlib.arguments import (
    ELEMENTS,
    Array,
    Where,
    check_array,
    check_length,
    segments,
)

DIGITS = 256
_MOST = 2**32 - 1  # places are counted in uint32


@sarek.function
def _digit(key: Any, sign: Any, infinity: Any, shift: Any) -> Any:
    """The digit at `shift` of a key as an unsigned pattern; `infinity` None is an integer's."""
    if infinity is None:
        return int(((key ^ sign) >> shift) & 255)
    ordered = key | sign
    if key & sign != 0:
        ordered = ~key
    magnitude = key & ~sign
    if magnitude == 0:
        ordered = sign
    if magnitude > infinity:
        ordered = ~(key ^ key)
    return int((ordered >> shift) & 255)


@sarek.kernel
def count_digits(
    counts: Any, keys: Any, sign: Any, infinity: Any, shift: Any, segment: Any
) -> None:
    """counts[digit * segments + segment]: how often a digit occurs in a segment."""
    here = sarek.shared.array(DIGITS, sarek.uint32)
    for digit in range(DIGITS):
        here[digit] = 0
    first = sarek.block_idx.x * int(segment)
    last = min(first + int(segment), len(keys))
    for i in range(first, last):
        digit = _digit(keys[i], sign, infinity, shift)
        here[digit] += 1
    for digit in range(DIGITS):
        counts[digit * sarek.grid_dim.x + sarek.block_idx.x] = here[digit]


@sarek.kernel
def start_digits(starts: Any, counts: Any, occupied: Any) -> None:
    """The exclusive sum of the counts, and how many digits occur at all; one thread."""
    total = sarek.uint32(0)
    digits = 0
    segments = len(counts) // DIGITS
    for digit in range(DIGITS):
        before = total
        for i in range(digit * segments, (digit + 1) * segments):
            starts[i] = total
            total += counts[i]
        if total != before:
            digits += 1
    occupied[0] = digits


@sarek.kernel
def move_digits(
    out: Any, keys: Any, values_out: Any, values: Any, starts: Any, sign: Any, infinity: Any,
    shift: Any, segment: Any,
) -> None:  # fmt: skip
    """Put each element of a segment at the next place of its digit."""
    places = sarek.shared.array(DIGITS, sarek.uint32)
    for digit in range(DIGITS):
        places[digit] = starts[digit * sarek.grid_dim.x + sarek.block_idx.x]
    first = sarek.block_idx.x * int(segment)
    last = min(first + int(segment), len(keys))
    for i in range(first, last):
        key = keys[i]
        digit = _digit(key, sign, infinity, shift)
        place = places[digit]
        places[digit] = place + 1
        out[place] = key
        if values is not None:
            values_out[place] = values[i]


def sort(keys: Array, *, device: Where = None) -> Array:
    """The keys, of shape (n,), in ascending order: equal to `np.sort(keys, kind="stable")`."""
    given = _checked("sort", keys)
    sorted_keys, _ = _sorted(given, None, device)
    return sorted_keys


def sort_by_key(keys: Array, values: Array, *, device: Where = None) -> tuple[Array, Array]:
    """Keys, of shape (n,), in ascending order, and the values, of shape (n,), moved along.

    Values of equal keys keep their order, as with `np.argsort(keys, kind="stable")`.
    """
    given = _checked("sort_by_key", keys)
    moved = check_array("sort_by_key", "values", values)
    check_length("sort_by_key", "values", moved, len(given), "keys")
    sorted_keys, sorted_values = _sorted(given, moved, device)
    assert sorted_values is not None
    return sorted_keys, sorted_values


def _checked(function: str, keys: Any) -> Array:
    given = check_array(function, "keys", keys, ELEMENTS)
    if len(given) > _MOST:
        raise InvalidArgument(
            f"{function}(): 'keys' has {len(given)} elements; it takes at most {_MOST}\n"
            "  hint: sort parts of it"
        )
    return given


def _sorted(keys: Array, values: Array | None, device: Where) -> tuple[Array, Array | None]:
    if len(keys) < 2:
        return keys.copy(), None if values is None else values.copy()
    pattern = np.dtype(f"uint{8 * keys.itemsize}")
    sign, infinity = _order(keys.dtype, pattern)
    number, length = segments(len(keys))
    counts = np.empty(number * DIGITS, np.uint32)
    starts = np.empty_like(counts)
    occupied = np.empty(1, np.int32)
    source, carried = keys.view(pattern), values
    moved = False
    spare: list[tuple[Array, Array | None]] = []
    for shift in range(0, 8 * keys.itemsize, 8):
        count_digits.launch(
            counts, source, sign, infinity, shift, length, grid=number, block=1, device=device
        )
        start_digits.launch(starts, counts, occupied, grid=1, block=1, device=device)
        if occupied[0] == 1:
            continue
        if len(spare) < 2:
            spare.append((np.empty_like(source), None if values is None else np.empty_like(values)))
        target, carried_target = spare[-1]
        move_digits.launch(
            target, source, carried_target, carried, starts, sign, infinity, shift, length,
            grid=number, block=1, device=device,
        )  # fmt: skip
        source, carried = target, carried_target
        spare.reverse()
        moved = True
    if not moved:
        return keys.copy(), None if values is None else values.copy()
    return source.view(keys.dtype), carried


def _order(dtype: np.dtype[Any], pattern: np.dtype[Any]) -> tuple[Any, Any]:
    """What `_digit` needs to know of a type: the sign bit to flip, and the pattern of infinity."""
    highest = pattern.type(1 << (8 * pattern.itemsize - 1))
    if dtype.kind == "f":
        return highest, np.array(np.inf, dtype).view(pattern)[()]
    return highest if dtype.kind == "i" else pattern.type(0), None
