"""Host memory of array arguments: which bytes each spans, who shares them, what a device is given.

`arrange(arrays, names)` sorts the arrays of one launch into regions. A region is a stretch of bytes
that is bound once: of one array, or of several whose extents overlap, so that what a kernel writes
through one argument it sees through another. Each array is then a placement in a region. Arrays
that no device can address as they lie (strides that are no multiple of the element, addresses that
are not aligned to it) go through an aligned copy, which is written back after the launch.
`bound_regions` binds the regions to a device for the duration of a launch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from sarek_numba.errors import InvalidArgument
from sarek_numba.ir.records import bases, record_of, unit_alignment
from sarek_numba.runtime.columns import Columns, Placement, lowered_starts
from sarek_numba.runtime.device import Bytes, DeviceMemory, Driver
from sarek_numba.runtime.storage import Storage

AnyArray = npt.NDArray[Any]

_ALIGNMENT = 16  # what malloc gives; the widest element has as many
_MOST_WORK = 100_000  # of deciding whether two strided arrays share an element; some milliseconds


@dataclass(frozen=True, slots=True)
class Region:
    """Bytes [start, end) of host memory, and the positions of the arrays in it.

    `staging` is None for memory used as it lies; "elements" for one array, passed once or several
    times, whose elements are copied to a C-contiguous one; "bytes" for overlapping arrays of mixed
    elements whose common start is not aligned for all of them. The copy of a "bytes" region has
    `phase` unused bytes before the extent.
    """

    start: int
    end: int
    members: tuple[int, ...]
    staging: str | None = None
    phase: int = 0

    @property
    def size(self) -> int:
        return self.end - self.start + self.phase


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The regions of a launch, and a placement for each array in the order given.

    `reach` is the largest number of scalars that one array's region spans: of elements, and of a
    complex array twice as many.
    """

    regions: tuple[Region, ...]
    placements: tuple[Placement, ...]
    reach: int


def address(array: AnyArray) -> int:
    """Address of element (0, …, 0)."""
    start: int = array.__array_interface__["data"][0]
    return start


def extent(array: AnyArray, origin: int) -> tuple[int, int]:
    """First and past-the-end byte address of an array at an address; equal if it is empty."""
    if array.flags.forc or array.size == 0:
        return origin, origin + array.nbytes
    start, end = origin, origin + array.itemsize
    for count, stride in zip(array.shape, array.strides, strict=True):
        if stride > 0:
            end += stride * (count - 1)
        else:
            start += stride * (count - 1)
    return start, end


def alignment_of(array: AnyArray) -> int:
    """What the address of an element must be a multiple of; a packed record asks for little."""
    if array.dtype.names is None:
        return array.itemsize
    return unit_alignment(record_of(array.dtype))


def is_addressable(array: AnyArray, origin: int) -> bool:
    """Whether each element is a whole number of elements from an aligned address."""
    itemsize = array.itemsize
    if array.size == 0 or itemsize == 1:
        return True
    if origin % alignment_of(array):
        return False
    return array.flags.forc or not any(
        stride % itemsize
        for count, stride in zip(array.shape, array.strides, strict=True)
        if count > 1
    )


def repeats_elements(array: AnyArray) -> bool:
    """Whether one element stands at several indices, as in the result of numpy.broadcast_to."""
    return array.size > 0 and any(
        stride == 0 and count > 1 for count, stride in zip(array.shape, array.strides, strict=True)
    )


# --- arranging ------------------------------------------------------------------------------------


def arrange(
    arrays: Sequence[AnyArray],
    names: Sequence[str],
    split: Sequence[Columns] = (),
    floors: Mapping[int, int] = MappingProxyType({}),
) -> Arrangement:
    """Sort arrays into regions; the columns of `split` begin at one record, each in its own.

    `floors` are addresses, by array, from which regions begin that would else begin later.

    Raises InvalidArgument for an array that cannot be addressed as it lies and shares elements with
    another one.
    """
    origins = [address(array) for array in arrays]
    regions: list[Region] = []
    placements: dict[int, Placement] = {}
    reach = 0
    lowered = dict(floors)
    if split:
        lowered |= lowered_starts(
            lambda known: _merged_extents(arrays, origins, known), arrays, origins, split
        )
    for start, end, members, staging in _staged_extents(arrays, origins, names, lowered):
        if staging and any(member in each.members for each in split for member in members):
            raise _refused_overlap(names, members, members[0])
        phase = start % _ALIGNMENT if staging == "bytes" else 0
        region = Region(start, end, members, staging, phase)
        for member in members:
            array = arrays[member]
            placements[member] = _place(array, origins[member], len(regions), region)
            reach = max(reach, region.size // least_unit(array))
        regions.append(region)
    return Arrangement(tuple(regions), tuple(placements[i] for i in range(len(arrays))), reach)


def least_unit(array: AnyArray) -> int:
    """The bytes of the smallest number that an index of the array's buffer may count."""
    if array.dtype.names is None:
        return array.itemsize // (2 if array.dtype.kind == "c" else 1)
    return min(scalar.bits // 8 for scalar in bases(record_of(array.dtype)))


def _is_counted(array: AnyArray, distance: int) -> bool:
    """Whether an array begins a whole number of elements behind the start of its buffer."""
    return array.size == 0 or array.dtype.names is None or distance % array.itemsize == 0


def _merged_extents(
    arrays: Sequence[AnyArray], origins: Sequence[int], lowered: Mapping[int, int]
) -> list[tuple[int, int, tuple[int, ...]]]:
    """Extents, merged where they overlap, each with the arrays in it; empty arrays stay alone.

    Some begin lower than their arrays do.
    """
    extents: list[tuple[int, int, tuple[int, ...]]] = []
    for position, (array, origin) in enumerate(zip(arrays, origins, strict=True)):
        start, end = extent(array, origin)
        extents.append((lowered.get(position, start), end, (position,)))
    merged = [item for item in extents if item[0] == item[1]]
    furthest = 0
    for start, end, members in sorted(item for item in extents if item[0] < item[1]):
        if start < furthest:
            first, _, earlier = merged.pop()
            furthest = max(furthest, end)
            merged.append((first, furthest, earlier + members))
        else:
            furthest = end
            merged.append((start, end, members))
    return merged


def _staged_extents(
    arrays: Sequence[AnyArray],
    origins: Sequence[int],
    names: Sequence[str],
    lowered: Mapping[int, int],
) -> Iterator[tuple[int, int, tuple[int, ...], str | None]]:
    """Merged extents with their staging; fields of packed records come apart again."""
    for start, end, members in _merged_extents(arrays, origins, lowered):
        widest = max(alignment_of(arrays[m]) for m in members)
        mixed = len(members) > 1 and start % widest
        phase = start % _ALIGNMENT if mixed else 0
        awkward = [
            m
            for m in members
            if not is_addressable(arrays[m], origins[m])
            or not _is_counted(arrays[m], origins[m] - start + phase)
        ]
        if not awkward:
            yield start, end, members, "bytes" if mixed else None
            continue
        groups = _equal_arrays(arrays, origins, members)
        for group, other in combinations(groups, 2):
            if _share_elements(arrays[group[0]], arrays[other[0]]):
                raise _refused_overlap(names, members, awkward[0])
        for group in groups:
            yield (*extent(arrays[group[0]], origins[group[0]]), group, "elements")


def _equal_arrays(
    arrays: Sequence[AnyArray], origins: Sequence[int], members: Sequence[int]
) -> list[tuple[int, ...]]:
    """Members grouped so that those of a group are one array passed several times."""
    groups: dict[Any, tuple[int, ...]] = {}
    for m in members:
        key = origins[m], arrays[m].dtype, arrays[m].shape, arrays[m].strides
        groups[key] = (*groups.get(key, ()), m)
    return list(groups.values())


def _share_elements(left: AnyArray, right: AnyArray) -> bool:
    try:
        # NumPy's stubs know two named limits of the work alone
        return np.shares_memory(left, right, max_work=_MOST_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _refused_overlap(names: Sequence[str], members: Sequence[int], awkward: int) -> InvalidArgument:
    others = ", ".join(f"'{names[m]}'" for m in members if m != awkward)
    return InvalidArgument(
        f"argument '{names[awkward]}' is not aligned to its elements and overlaps {others}\n"
        "  hint: pass a copy of it, as numpy.ascontiguousarray makes one"
    )


def _place(array: AnyArray, origin: int, region_index: int, region: Region) -> Placement:
    size = array.size
    if region.staging == "elements":
        return Placement(region_index, 0, "C", array.shape, (), size)
    itemsize = array.itemsize
    offset = (origin - region.start + region.phase) // itemsize if size else 0
    flags = array.flags
    layout = "A"
    if offset == 0 and flags.forc:
        layout = "C" if flags.c_contiguous else "F"
    strides = tuple(
        [
            stride // itemsize if count > 1 else 0
            for count, stride in zip(array.shape, array.strides, strict=True)
        ]
    )
    return Placement(region_index, offset, layout, array.shape, strides, size)


# --- binding --------------------------------------------------------------------------------------


class _HostBytes:
    """Hands an address range to NumPy; the arrays that own the memory live as long as this does."""

    __slots__ = ("__array_interface__", "owners")

    def __init__(self, start: int, size: int, read_only: bool, owners: Sequence[AnyArray]) -> None:
        self.owners = owners
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "shape": (size,),
            "data": (start, read_only),
        }


Hold = Callable[[DeviceMemory, Storage, int, int, bool, ExitStack], Any]
"""Gives what stands for bytes of a storage, first to last, in a launch that may write them."""


@contextmanager
def bound_regions(
    driver: Driver,
    arrangement: Arrangement,
    arrays: Sequence[AnyArray],
    read: Set[int],
    written: Set[int],
    storages: Mapping[int, Storage] = MappingProxyType({}),
    hold: Hold | None = None,
) -> Iterator[list[Any]]:
    """Bind every region to the device; on leaving, what was written is in the arrays.

    `read` and `written` are the positions of the arrays that the kernel reads and writes;
    `storages` has the memory of those that are vectors, which stays on the device. Gives one buffer
    for each region. Launches that share a vector wait for each other. `hold` gives the buffer of a
    vector where the device keeps it.
    """
    hold = hold or _held
    with ExitStack() as stack:
        for storage in sorted(set(storages.values()), key=id):
            stack.enter_context(storage.lock)
        buffers: list[Any] = []
        for region in arrangement.regions:
            is_read = not read.isdisjoint(region.members)
            is_written = not written.isdisjoint(region.members)
            vector = _vector_bytes(region, storages)
            if vector is not None:
                storage, first, last = vector
                if driver.memory is not None and region.staging is None:
                    end = last if is_read or is_written else first  # what is unused stays away
                    buffers.append(hold(driver.memory, storage, first, end, is_written, stack))
                    continue
                storage.fetch(first, last)
                if is_written:
                    storage.claim(first, last)
                    stack.callback(storage.wrote, first, last)
            memory = _memory(region, arrays, is_written)
            if region.staging and is_written:
                stack.callback(_write_back, region, arrays, memory)
            buffer = driver.bind(memory, read=is_read, written=is_written)
            stack.callback(driver.unbind, buffer)
            buffers.append(buffer)
        yield buffers


def _vector_bytes(
    region: Region, storages: Mapping[int, Storage]
) -> tuple[Storage, int, int] | None:
    """The storage of a region's vectors, and which of its bytes they are."""
    for member in region.members:
        storage = storages.get(member)
        if storage is not None:
            return storage, region.start - storage.start, region.end - storage.start
    return None


def _held(
    memory: DeviceMemory, storage: Storage, first: int, last: int, written: bool, stack: ExitStack
) -> Any:
    """Bytes of a storage where the device keeps them."""
    if first == last:
        first = last = 0
    part = memory.part(storage.send(memory, first, last), first, last, written=written)
    memory.begin_part(part)
    if written:
        stack.callback(storage.written_on, memory, first, last)
    stack.callback(memory.end_part, part)
    return part


def _memory(region: Region, arrays: Sequence[AnyArray], is_written: bool) -> Bytes:
    """The bytes that a region is bound as: the arrays' own, or a filled copy."""
    if region.staging == "elements":
        copy = np.array(arrays[region.members[0]], order="C", copy=True, subok=False)
        return copy.reshape(-1).view(np.uint8)
    own = own_bytes(region, arrays, is_written)
    if region.staging is None:
        return own
    room: Bytes = np.empty(region.size + _ALIGNMENT, np.uint8)
    shift = -address(room) % _ALIGNMENT
    copy_bytes = room[shift : shift + region.size]
    copy_bytes[: region.phase] = 0
    copy_bytes[region.phase :] = own
    return copy_bytes


def host_bytes(start: int, size: int, read_only: bool, owners: Sequence[AnyArray]) -> Bytes:
    """Bytes of host memory from an address on, which keep arrays alive."""
    if not size:
        return np.empty(0, np.uint8)
    return np.asarray(_HostBytes(start, size, read_only, owners))


def own_bytes(region: Region, arrays: Sequence[AnyArray], writable: bool) -> Bytes:
    """The host memory of a region itself, as bytes that keep the arrays alive."""
    owners = [arrays[member] for member in region.members]
    return host_bytes(region.start, region.end - region.start, not writable, owners)


def _write_back(region: Region, arrays: Sequence[AnyArray], memory: Bytes) -> None:
    if region.staging == "bytes":
        own_bytes(region, arrays, writable=True)[:] = memory[region.phase :]
        return
    array = next(arrays[m] for m in region.members if arrays[m].flags.writeable)
    np.copyto(array, memory.view(array.dtype).reshape(array.shape))
