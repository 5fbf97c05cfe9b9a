"""Stable radix sort, of keys alone and of keys with values.

The keys are divided by their highest bits into buckets, in order: each segment counts its keys, the
counts are added up in the order (bucket, segment), and every key moves to the place that its bucket
counts next. Then each bucket, which lies in a cache by now, is sorted for itself by its lower bits,
least significant digit first; digits that are all equal are left out, and a few keys are sorted by
insertion.

Integers are compared as unsigned distances from the least key, so that keys of a small range have
as many buckets as others. Floats without NaN and -0.0 are ordered as the integers that their
patterns become when the sign bit of positive ones and all bits of negative ones are flipped. Where
there is a NaN or -0.0, the negative ones, the zeros, the positive ones and the NaN have buckets of
their own, in which nothing but the pattern counts, and of zeros and NaN nothing at all: so the
order is that of `np.sort(kind="stable")`, bits untouched.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import sarek_numba as sarek
from sarek_numba.errors import InvalidArgument
from sarek_numba.stdlib import block
from sarek_numba.stdlib.arguments import (
    ELEMENTS,
    FLOATS,
    Array,
    Where,
    check_array,
    check_length,
    refuse_in_graphs,
    segments,
)
from sarek_numba.stdlib.reduce import LANES, THREADS

# Bits of an integer and of a float that choose its bucket, and of a digit within one, at most. Of a
# float the sign and the exponent are most of them. Below so many keys there are fewer counters.
MANY = 1 << 14
WHOLE_BITS, FLOAT_BITS, DIGIT_BITS = 9, 12, 10
FEWER_BITS, FEWER_DIGIT_BITS = 5, 8
FEW = 24  # keys that are sorted by insertion
_SPREAD = 7919  # prime, and no divisor of a number of buckets
_MOST = 2**32 - 1  # places are counted in uint32


@sarek.function
def _ranked(key: Any, sign: Any) -> Any:
    """The integer that has the rank of a float among floats; `sign` is None for an integer."""
    if sign is None:
        return key
    bits = 8 * key.dtype.itemsize
    return key ^ (sign | ((key ^ key) - (key >> (bits - 1))))


@sarek.function
def _unranked(rank: Any, sign: Any) -> Any:
    """The pattern of the float that has this rank."""
    bits = 8 * rank.dtype.itemsize
    return rank ^ (sign | ((rank >> (bits - 1)) - rank.dtype.type(1)))


@sarek.function
def _bucket(key: Any, base: Any, infinity: Any, shift: Any, mask: Any) -> Any:
    """The bucket of a key; `infinity`, the pattern of that float, is None for an integer.

    `base` is the least key of integers, and the sign bit of floats. Buckets of floats are numbered
    from negative ones by way of zeros and positive ones to NaN.
    """
    if infinity is None:
        return int(((key - base) >> shift) & mask)
    # no branch on the sign, which no processor can foresee
    bits = 8 * key.dtype.itemsize
    negative = key >> (bits - 1)
    flip = (key ^ key) - negative
    zeros = int(mask) + 1
    bucket = int(((key ^ flip) >> (shift & (bits - 1))) & mask) + (1 - int(negative)) * (zeros + 1)
    magnitude = key & ~base
    bucket = zeros if magnitude == 0 else bucket
    return 2 * zeros + 1 if magnitude > infinity else bucket


@sarek.kernel(wraparound=False)
def extremes(
    lows: Any, highs: Any, negative_zeros: Any, keys: Any, sign: Any, segment: Any
) -> None:
    """The least and the greatest rank of each segment, and for floats whether there is a -0.0."""
    first = sarek.block_idx.x * int(segment)
    last = min(first + int(segment), len(keys))
    low = high = _ranked(keys[first], sign)
    zeros = keys[first] ^ keys[first]
    for i in range(first + sarek.thread_idx.x, last, sarek.block_dim.x):
        rank = _ranked(keys[i], sign)
        low = min(low, rank)
        high = max(high, rank)
        if negative_zeros is not None:
            zeros = max(zeros, sign if keys[i] == sign else zeros)
    low, high = block.reduce_min(low), block.reduce_max(high)
    if negative_zeros is not None:
        zeros = block.reduce_max(zeros)
    if sarek.thread_idx.x == 0:
        lows[sarek.block_idx.x] = low
        highs[sarek.block_idx.x] = high
        if negative_zeros is not None:
            negative_zeros[sarek.block_idx.x] = zeros


@sarek.kernel(wraparound=False)
def restore_floats(keys: Any, sign: Any, segment: Any) -> None:
    """Ranks become patterns again."""
    first = sarek.block_idx.x * int(segment)
    last = min(first + int(segment), len(keys))
    for i in range(first + sarek.thread_idx.x, last, sarek.block_dim.x):
        keys[i] = _unranked(keys[i], sign)


@sarek.kernel
def differing_bits(differing: Any, keys: Any, segment: Any) -> None:
    """The bits in which patterns of each segment differ from the first of all."""
    first = sarek.block_idx.x * int(segment)
    last = min(first + int(segment), len(keys))
    known = keys[0]
    found = known ^ known
    for i in range(first, last):
        found |= keys[i] ^ known
    differing[sarek.block_idx.x] = found


@sarek.kernel
def start_buckets(starts: Any, bounds: Any, counts: Any) -> None:
    """Where each bucket begins, and the part of it that a segment gives; one thread."""
    total = sarek.uint32(0)
    buckets, segments = counts.shape
    for bucket in range(buckets):
        bounds[bucket] = total
        for segment in range(segments):
            starts[bucket, segment] = total
            total += counts[bucket, segment]
    bounds[buckets] = total


@lru_cache
def divider(buckets: int) -> tuple[Any, Any]:
    """Kernels that count the keys of up to so many buckets, and that move them there."""

    @sarek.kernel(wraparound=False)
    def count_buckets(
        counts: Any, keys: Any, base: Any, infinity: Any, sign: Any, shift: Any, mask: Any,
        segment: Any,
    ) -> None:  # fmt: skip
        """counts[bucket, segment]: how many keys of a segment are of a bucket."""
        here = sarek.shared.array(buckets, sarek.uint32)
        for bucket in range(counts.shape[0]):
            here[bucket] = 0
        first = sarek.block_idx.x * int(segment)
        last = min(first + int(segment), len(keys))
        for i in range(first, last):
            bucket = _bucket(_ranked(keys[i], sign), base, infinity, shift, mask)
            here[bucket] += 1
        for bucket in range(counts.shape[0]):
            counts[bucket, sarek.block_idx.x] = here[bucket]

    @sarek.kernel(wraparound=False)
    def move_to_buckets(
        out: Any, keys: Any, values_out: Any, values: Any, starts: Any, base: Any, infinity: Any,
        sign: Any, shift: Any, mask: Any, segment: Any,
    ) -> None:  # fmt: skip
        """Put each key of a segment, a float by its rank, at the next place of its bucket."""
        places = sarek.shared.array(buckets, sarek.uint32)
        for bucket in range(starts.shape[0]):
            places[bucket] = starts[bucket, sarek.block_idx.x]
        first = sarek.block_idx.x * int(segment)
        last = min(first + int(segment), len(keys))
        for i in range(first, last):
            key = _ranked(keys[i], sign)
            bucket = _bucket(key, base, infinity, shift, mask)
            place = places[bucket]
            places[bucket] = place + 1
            out[place] = key
            if values is not None:
                values_out[place] = values[i]

    return count_buckets, move_to_buckets


@sarek.function
def _bits(key: Any, base: Any, flip: Any) -> Any:
    """What keys of one bucket are compared by."""
    return (key - base) ^ flip


@sarek.function
def _move_by_digit(
    out: Any, keys: Any, values_out: Any, values: Any, first: Any, last: Any, places: Any, row: Any,
    shift: Any, mask: Any, base: Any, flip: Any,
) -> None:  # fmt: skip
    """Put each key of a bucket at the next place of its digit."""
    for i in range(first, last):
        key = keys[i]
        digit = row + int((_bits(key, base, flip) >> (shift & (8 * key.dtype.itemsize - 1))) & mask)
        place = places[digit]
        places[digit] = place + 1
        out[place] = key
        if values is not None:
            values_out[place] = values[i]


@sarek.function
def _insert(keys: Any, values: Any, first: Any, last: Any, base: Any, flip: Any) -> None:
    """Sort a few keys."""
    for i in range(first + 1, last):
        j = i
        while j > first and _bits(keys[j - 1], base, flip) > _bits(keys[j], base, flip):
            keys[j - 1], keys[j] = keys[j], keys[j - 1]
            if values is not None:
                values[j - 1], values[j] = values[j], values[j - 1]
            j -= 1


@lru_cache
def bucket_sorter(bits: int, passes: int) -> Any:
    """The kernel that sorts each bucket by its lower `passes` digits of `bits` bits."""
    rows = tuple((p * bits, p << bits) for p in range(passes))
    digits = 1 << bits

    @sarek.kernel(wraparound=False)
    def sort_buckets(
        keys: Any, spare: Any, values: Any, values_spare: Any, bounds: Any, mask: Any, base: Any,
        infinity: Any,
    ) -> None:  # fmt: skip
        """One thread a bucket."""
        places = sarek.shared.array(passes * digits, sarek.uint32)
        # neighbouring buckets of floats hold most keys, and neighbouring blocks have one thread
        bucket = sarek.block_idx.x * _SPREAD % sarek.grid_dim.x
        first, last = int(bounds[bucket]), int(bounds[bucket + 1])
        if last - first < 2:
            return
        flip = mask ^ mask
        if infinity is not None:
            zeros = (sarek.grid_dim.x - 2) // 2
            if bucket == zeros or bucket == 2 * zeros + 1:
                return
            if bucket < zeros:
                flip = ~flip
        if last - first <= FEW:
            _insert(keys, values, first, last, base, flip)
            return
        for k in range(passes * digits):
            places[k] = 0
        for i in range(first, last):
            key = _bits(keys[i], base, flip)
            for shift, row in rows:
                places[row + int((key >> shift) & mask)] += 1
        is_spare = False
        for p in range(passes):
            if not _start_digits(places, p * digits, digits, first, last - first):
                continue
            if is_spare:
                _move_by_digit(
                    keys, spare, values, values_spare, first, last, places, p * digits, p * bits,
                    mask, base, flip,
                )  # fmt: skip
            else:
                _move_by_digit(
                    spare, keys, values_spare, values, first, last, places, p * digits, p * bits,
                    mask, base, flip,
                )  # fmt: skip
            is_spare = not is_spare
        if is_spare:
            for i in range(first, last):
                keys[i] = spare[i]
                if values is not None:
                    values[i] = values_spare[i]

    return sort_buckets


@sarek.function
def _start_digits(places: Any, row: Any, digits: Any, first: Any, size: Any) -> Any:
    """Counts of digits become the places where they begin; whether there is more than one digit."""
    place = sarek.uint32(first)
    several = True
    for k in range(row, row + digits):
        count = places[k]
        places[k] = place
        place += count
        if count == size:
            several = False
    return several


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
    refuse_in_graphs(function, "call it between graphs")
    given = check_array(function, "keys", keys, ELEMENTS)
    if len(given) > _MOST:
        raise InvalidArgument(
            f"{function}(): 'keys' has {len(given)} elements; it takes at most {_MOST}\n"
            "  hint: sort parts of it"
        )
    return given


@dataclass(frozen=True, slots=True)
class _Order:
    """How keys are divided into buckets: arguments of the kernels, and how many bits matter.

    Floats have an `infinity` if their kinds have buckets of their own, or else a `sign` bit.
    """

    base: Any
    infinity: Any
    sign: Any
    bits: int
    buckets: int
    significant: int


def _order(keys: Array, shape: dict[str, Any]) -> _Order:
    pattern = np.dtype(f"uint{8 * keys.itemsize}")
    if keys.dtype in FLOATS:
        return _order_of_floats(keys.view(pattern), np.array(np.inf, keys.dtype), shape)
    lows, highs = (np.empty(shape["grid"], keys.dtype) for _ in range(2))
    length = segments(len(keys))[1]
    extremes.launch(lows, highs, None, keys, None, length, **_by_neighbours(shape))
    significant = (int(highs.max()) - int(lows.min())).bit_length()
    base = lows.min(keepdims=True).view(pattern)[0]
    bits = WHOLE_BITS if len(keys) >= MANY else FEWER_BITS
    return _Order(base, None, None, bits, 1 << bits, significant)


def _float_bits(device: Where) -> int:
    """One less where the counters of all buckets are more than the shared memory of a block."""
    room = sarek.device(device).limits.shared_bytes
    return FLOAT_BITS if 4 * _buckets_of_floats(FLOAT_BITS) <= room else FLOAT_BITS - 1


def _buckets_of_floats(bits: int) -> int:
    """Of negative floats, zeros, positive ones, NaN."""
    return (2 << bits) + 2


def _most_buckets(device: Where) -> int:
    return _buckets_of_floats(_float_bits(device))


def _order_of_floats(keys: Array, infinity: Array, shape: dict[str, Any]) -> _Order:
    pattern = keys.dtype
    width = 8 * pattern.itemsize
    sign = pattern.type(1 << (width - 1))
    bits = _float_bits(shape["device"]) if len(keys) >= MANY else FEWER_BITS
    lows, highs = (np.empty(shape["grid"], pattern) for _ in range(2))
    zeros, length = np.empty_like(lows), segments(len(keys))[1]
    extremes.launch(lows, highs, zeros, keys, sign, length, **_by_neighbours(shape))
    low, high = int(lows.min()), int(highs.max())
    greatest = int(infinity.view(pattern)) ^ int(sign)  # the rank of infinity
    if zeros.any() or high > greatest or low < (1 << width) - 1 - greatest:
        return _Order(sign, infinity.view(pattern)[()], None, bits, _buckets_of_floats(bits), width)
    return _Order(pattern.type(low), None, sign, bits, 1 << bits, (high - low).bit_length())


def _by_neighbours(shape: dict[str, Any]) -> dict[str, Any]:
    """As many threads in a block as read neighbours of memory at once."""
    is_cpu = sarek.device(shape["device"]).record.is_cpu
    return {**shape, "block": LANES if is_cpu else THREADS}


def _divided(
    source: Array, order: _Order, shape: dict[str, Any]
) -> tuple[tuple[Any, ...], Array, Array] | None:
    """What chooses a key's bucket, where its segment's part of each begins, and each bucket.

    None if all keys are equal.
    """
    pattern, length = source.dtype, segments(len(source))[1]
    counts = np.empty((order.buckets, shape["grid"]), np.uint32)
    starts, bounds = np.empty_like(counts), np.empty(order.buckets + 1, np.uint32)
    mask = pattern.type((1 << min(order.bits, 8 * pattern.itemsize)) - 1)
    significant = order.significant
    while significant:
        shift = max(0, significant - order.bits)
        how = order.base, order.infinity, order.sign, shift, mask, length
        count_buckets, _ = divider(_most_buckets(shape["device"]))
        count_buckets.launch(counts, source, *how, **shape)
        start_buckets.launch(starts, bounds, counts, grid=1, block=1, device=shape["device"])
        if np.diff(bounds).max() < len(source):
            return how, starts, bounds
        differing = np.empty(shape["grid"], pattern)
        differing_bits.launch(differing, source, length, **shape)
        known, significant = significant, int(np.bitwise_or.reduce(differing)).bit_length()
        if significant == known:  # zeros of both signs, or NaN
            return None
    return None


def _sorted(keys: Array, values: Array | None, device: Where) -> tuple[Array, Array | None]:
    if len(keys) < 2:
        return keys.copy(), None if values is None else values.copy()
    shape: dict[str, Any] = {"grid": segments(len(keys))[0], "block": 1, "device": device}
    order = _order(keys, shape)
    source = keys.view(f"uint{8 * keys.itemsize}")
    divided = _divided(source, order, shape)
    if divided is None:
        return keys.copy(), None if values is None else values.copy()
    how, starts, bounds = divided
    moved, carried = _like(source, values)
    _, move_to_buckets = divider(_most_buckets(device))
    move_to_buckets.launch(moved, source, carried, values, starts, *how, **shape)
    shift = how[3]
    if shift:
        passes = -(-shift // (DIGIT_BITS if len(keys) >= MANY else FEWER_DIGIT_BITS))
        bits = -(-shift // passes)
        spare, carried_spare = _like(source, values)
        zero, mask = source.dtype.type(0), source.dtype.type((1 << bits) - 1)
        base = order.base if order.infinity is None else zero
        bucket_sorter(bits, passes).launch(
            moved, spare, carried, carried_spare, bounds, mask, base, order.infinity,
            grid=order.buckets, block=1, device=device,
        )  # fmt: skip
    if order.sign is not None:
        restore_floats.launch(moved, order.sign, segments(len(keys))[1], **_by_neighbours(shape))
    return moved.view(keys.dtype), carried


def _like(keys: Array, values: Array | None) -> tuple[Array, Array | None]:
    return np.empty_like(keys), None if values is None else np.empty_like(values)
