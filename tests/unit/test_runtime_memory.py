"""Extents, regions, placements and copies of array arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from sarek_numba.errors import InvalidArgument
from sarek_numba.runtime.memory import (
    address,
    arrange,
    bound_regions,
    extent,
    is_addressable,
    repeats_elements,
)
from tests.unit.fake_backend import FakeDriver, record

BASE = np.arange(60, dtype=np.float32)
CUBE = BASE.reshape(3, 4, 5)

LAYOUTS: dict[str, tuple[Any, str]] = {
    "contiguous": (BASE, "C"),
    "offset": (BASE[7:], "C"),
    "empty": (BASE[:0], "C"),
    "empty row": (np.empty((5, 0), np.float32), "C"),
    "scalar array": (np.array(3.0, np.float32), "C"),
    "two axes": (CUBE, "C"),
    "fortran": (CUBE.T, "F"),
    "every second": (BASE[::2], "A"),
    "reversed": (BASE[::-1], "A"),
    "reversed by three": (BASE[50:2:-3], "A"),
    "inner": (CUBE[1:, 1:3, ::2], "A"),
    "swapped": (CUBE.transpose(1, 0, 2), "A"),
    "rows reversed": (CUBE[::-1], "A"),
    "broadcast": (np.broadcast_to(BASE[:5], (4, 5)), "A"),
    "odd strides of single axes": (as_strided(BASE, (1, 5), (12344, 4)), "C"),
    "one element": (BASE[::-1][:1], "C"),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_placement_addresses_each_element(name: str) -> None:
    """offset + index · strides, in the bound bytes, is the element, whatever the array's shape."""
    array, layout = LAYOUTS[name]
    arrangement = arrange([array], ["x"])
    placement = arrangement.placements[0]
    assert placement.layout == layout
    assert placement.length == array.size
    assert placement.shape == array.shape
    with bound_regions(FakeDriver(record()), arrangement, [array], {0}, set()) as [memory]:
        elements = memory.view(array.dtype)
        for index in np.ndindex(array.shape):
            flat = sum(i * s for i, s in zip(index, placement.strides, strict=True))
            assert elements[placement.offset + flat] == array[index]


def test_extent_covers_what_an_array_spans() -> None:
    """The extent of a reversed array starts at its last element."""
    start = address(BASE)
    assert extent(BASE[::-2], address(BASE[::-2])) == (start + 4, start + 240)
    first, last = extent(BASE[2:2], address(BASE))
    assert first == last


def test_arrays_apart_have_regions_of_their_own() -> None:
    """Neighbours that share no byte stay apart."""
    left, right = BASE[:30], BASE[30:]
    assert [r.members for r in arrange([right, left], "ab").regions] == [(1,), (0,)]


def test_same_array_twice_is_one_region_and_stays_contiguous() -> None:
    """k(a, a) binds one buffer, and neither array needs an offset."""
    arrangement = arrange([BASE, BASE], "ab")
    assert [r.members for r in arrangement.regions] == [(0, 1)]
    assert [(p.offset, p.layout) for p in arrangement.placements] == [(0, "C"), (0, "C")]


def test_overlapping_views_share_a_region() -> None:
    """A shifted view gets an offset and the layout of any strides."""
    arrangement = arrange([BASE[1:], BASE[:-1], BASE[40:]], "abc")
    assert len(arrangement.regions) == 1
    assert [(p.offset, p.layout) for p in arrangement.placements] == [
        (1, "A"),
        (0, "C"),
        (40, "A"),
    ]


def test_interleaved_views_share_a_region() -> None:
    """Copying one back must not undo what was written to the other."""
    assert len(arrange([BASE[::2], BASE[1::2]], "ab").regions) == 1


def test_chains_of_overlaps_are_one_region() -> None:
    """a meets b and b meets c: all three share, in whatever order they come."""
    parts = [BASE[40:60], BASE[0:30], BASE[20:50]]
    region = arrange(parts, "abc").regions[0]
    assert sorted(region.members) == [0, 1, 2]
    assert (region.start, region.end) == extent(BASE, address(BASE))


def test_empty_arrays_share_nothing() -> None:
    """An empty view within another array is a region of no bytes."""
    assert sorted(r.size for r in arrange([BASE, BASE[5:5]], "ab").regions) == [0, 240]


def test_reach_is_of_the_region() -> None:
    """The widest index is one into the region, which may be far longer than the array."""
    assert arrange([BASE[::59]], "a").reach == 60


def test_unaligned_array_is_copied_and_written_back() -> None:
    """A view at an odd address is given to a device as aligned elements, and gets the results."""
    raw = np.zeros(41, np.uint8)
    odd = raw[1:].view(np.float32)
    odd[:] = np.arange(10)
    arrangement = arrange([odd], ["x"])
    assert not is_addressable(odd, address(odd))
    assert arrangement.placements[0].layout == "C"
    with bound_regions(FakeDriver(record()), arrangement, [odd], {0}, {0}) as [memory]:
        assert address(memory) % 4 == 0
        memory.view(np.float32)[:] += 1
    assert odd.tolist() == list(range(1, 11))


def test_field_of_packed_records_is_copied_and_written_back() -> None:
    """Strides of five bytes cannot be counted in float32 elements."""
    records = np.zeros(4, np.dtype([("flag", "u1"), ("value", "<f4")]))
    field = records["value"]
    arrangement = arrange([field], ["x"])
    with bound_regions(FakeDriver(record()), arrangement, [field], set(), {0}) as [memory]:
        memory.view(np.float32)[:] = [1, 2, 3, 4]
    assert records["value"].tolist() == [1, 2, 3, 4]
    assert records["flag"].tolist() == [0, 0, 0, 0]


def test_copy_that_is_only_read_is_not_written_back() -> None:
    """A read-only array may need a copy, and is never stored to."""
    raw = np.zeros(9, np.uint8)
    odd = raw[1:].view(np.float32)
    odd.flags.writeable = False
    with bound_regions(FakeDriver(record()), arrange([odd], ["x"]), [odd], {0}, set()) as [memory]:
        memory[:] = 255
    assert raw.tolist() == [0] * 9


def test_overlap_with_an_unaligned_array_is_refused() -> None:
    """Two views of one memory cannot both be copies."""
    raw = np.zeros(41, np.uint8)
    with pytest.raises(InvalidArgument) as error:
        arrange([raw, raw[1:].view(np.float32)], ["bytes", "floats"])
    assert str(error.value) == (
        "argument 'floats' is not aligned to its elements and overlaps 'bytes'\n"
        "  hint: pass a copy of it, as numpy.ascontiguousarray makes one"
    )


def test_fields_of_packed_records_are_apart() -> None:
    """Their extents overlap and their elements do not: each has a copy, and both are kept."""
    records = np.zeros(4, np.dtype([("flag", "u1"), ("value", "<f4")]))
    arrays = [records["flag"], records["value"]]
    arrangement = arrange(arrays, ["flag", "value"])
    with bound_regions(FakeDriver(record()), arrangement, arrays, set(), {0, 1}) as [flags, values]:
        flags[:] = [5, 6, 7, 8]
        values.view(np.float32)[:] = [1, 2, 3, 4]
    assert records["flag"].tolist() == [5, 6, 7, 8]
    assert records["value"].tolist() == [1, 2, 3, 4]


def test_unaligned_array_passed_twice_has_one_copy() -> None:
    """Both arguments see it; a read-only view of it may come first."""
    odd = np.zeros(9, np.uint8)[1:].view(np.float32)
    fixed = odd.view()
    fixed.flags.writeable = False
    arrays = [fixed, odd]
    arrangement = arrange(arrays, ["x", "out"])
    assert [p.region for p in arrangement.placements] == [0, 0]
    with bound_regions(FakeDriver(record()), arrangement, arrays, {0}, {1}) as [memory]:
        memory.view(np.float32)[:] = [1, 2]
    assert odd.tolist() == [1, 2]


def test_mixed_elements_that_start_between_elements_go_through_one_copy() -> None:
    """Bytes from an odd address on and floats among them keep sharing memory in the copy."""
    raw = np.zeros(64, np.uint8)
    tail, floats = raw[3:], raw[8:48].view(np.float32)
    arrays = [tail, floats]
    arrangement = arrange(arrays, ["tail", "floats"])
    at_tail, at_floats = arrangement.placements
    with bound_regions(FakeDriver(record()), arrangement, arrays, {0, 1}, {0, 1}) as [memory]:
        memory.view(np.uint8)[at_tail.offset] = 7
        memory[: memory.size // 4 * 4].view(np.float32)[at_floats.offset] = 2.5
    assert raw[3] == 7
    assert floats[0] == 2.5
    assert raw[:3].tolist() == [0, 0, 0]


def test_read_only_view_of_written_array_is_bound_writable() -> None:
    """The region is written if one of its arrays is, whichever comes first."""
    array = np.zeros(4, np.float32)
    view = array[:]
    view.flags.writeable = False
    arrangement = arrange([view, array], "ab")
    with bound_regions(FakeDriver(record()), arrangement, [view, array], {0}, {1}) as [memory]:
        memory.view(np.float32)[2] = 5
    assert array.tolist() == [0, 0, 5, 0]


def test_memory_that_is_only_read_is_bound_read_only() -> None:
    """A backend cannot write by accident what the kernel does not write."""
    driver = FakeDriver(record())
    with bound_regions(driver, arrange([BASE], "a"), [BASE], {0}, set()) as [memory]:
        assert not memory.flags.writeable
    assert driver.events == [("bind", 240, True, False), ("unbind", 240)]


def test_everything_is_unbound_when_a_launch_fails() -> None:
    """A launch that raises leaves no buffer behind, and copies still come back."""
    driver = FakeDriver(record())
    raw = np.zeros(9, np.uint8)
    odd = raw[1:].view(np.float32)
    arrays = [BASE, odd]

    def fail() -> None:
        with bound_regions(driver, arrange(arrays, "ab"), arrays, {0}, {1}) as buffers:
            next(b for b in buffers if b.size == 8)[:] = 1
            raise RuntimeError("launch")

    with pytest.raises(RuntimeError, match="launch"):
        fail()
    assert sum(event[0] == "unbind" for event in driver.events) == 2
    assert raw.tolist() == [0] + [1] * 8


def test_repeated_elements_are_seen() -> None:
    """A stride of 0 repeats elements only along an axis that is longer than one."""
    assert repeats_elements(np.broadcast_to(BASE[:5], (4, 5)))
    assert not repeats_elements(as_strided(BASE, (1, 5), (0, 4)))
    assert not repeats_elements(np.broadcast_to(BASE[:0], (4, 0)))
