"""Arrays of others as arguments: nothing is copied that would not be of an array of NumPy.

What has host memory becomes an array of NumPy: objects with the buffer protocol, with
`__array_interface__`, and with DLPack on the host. Memory of a device is recognised by DLPack,
`__cuda_array_interface__` and PyOpenCL's classes. Its backend, if it is here, says how to work on
it: the launch then takes place where the memory is. Otherwise it is refused by name.

To the launch core an array on a device is a `ForeignStorage` and an array of NumPy that describes
it, at an address where nothing is.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sarek_numba.errors import ArgumentTypeError, MixedDevices
from sarek_numba.frontend.variants import VariantValue
from sarek_numba.runtime.adopted import DeviceArray, NotAdopted
from sarek_numba.runtime.device import DeviceMemory, Driver
from sarek_numba.runtime.dlpack.driver import array_on_host
from sarek_numba.runtime.memory import is_addressable
from sarek_numba.runtime.nowhere import Nowhere
from sarek_numba.runtime.places import adopter_of, place_of
from sarek_numba.runtime.reading import Readable
from sarek_numba.runtime.registry import Device, device, device_of
from sarek_numba.runtime.storage import Storage
from sarek_numba.runtime.work import AT_ONCE, Work, WorkQueue

_OWN = (np.ndarray, np.generic, int, float, complex, type(None), Readable, VariantValue, type)


class ForeignStorage(Storage):
    """A buffer of another library during one launch, as if it were of vectors; `arrays` are in it.

    It is on one device, and moves nowhere. What the library does with it is done before the launch
    and after it.
    """

    def __init__(self, start: int) -> None:
        super().__init__(np.empty(0, np.uint8))
        self._start = start
        self.arrays: list[DeviceArray] = []

    @property
    def start(self) -> int:
        """The address of the first byte, where nothing is."""
        return self._start

    def fetch(self, first: int, last: int) -> None:
        """Never: a launch takes place where the memory is."""
        raise AssertionError("memory of a device is not brought to the host")

    def send(
        self, memory: DeviceMemory, first: int, last: int, queue: WorkQueue | None = None
    ) -> Any:
        """The buffer. A launch that is waited for waits for the library's work first."""
        if queue is None:
            for array in self.arrays:
                array.order.wait()
        return self.arrays[0].buffer

    def put_behind(self, queue: WorkQueue, first: int, last: int, *, written: bool) -> None:
        """Have a queue go on after what the library gave."""
        for array in self.arrays:
            array.order.precede(queue.handle)

    def used_by(self, work: Work, first: int, last: int, *, written: bool) -> None:
        """Have the library go on after a launch; where it cannot be told to, wait."""
        for array in self.arrays:
            array.order.follow(work.queue.handle, work.mark)
        if not all(array.order.is_known for array in self.arrays):
            work.wait("argument")

    def written_on(self, memory: DeviceMemory, first: int, last: int) -> None:
        """Nothing: no other place has it."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """An argument in a device's memory: its description, and where its buffer should begin.

    `floor` is an address at or below its first element, from which elements can be counted.
    """

    array: npt.NDArray[Any]
    floor: int
    storage: ForeignStorage
    described: DeviceArray


# --- recognising ----------------------------------------------------------------------------------


def adopted(kernel: str, names: Sequence[str], values: Sequence[Any]) -> Sequence[Any]:
    """The values of a launch with arrays in place of what others have as arrays on the host.

    What others have on a device is a `Foreign`. Raises ArgumentTypeError for memory of a device
    that cannot be worked on, MixedDevices for memory of several.
    """
    if all(isinstance(value, _OWN) for value in values):
        return values
    places = [None if isinstance(value, _OWN) else place_of(value) for value in values]
    apart = [k for k, place in enumerate(places) if place is not None]
    _check_one_place(kernel, names, places, apart)
    described = {k: _described(kernel, names[k], values[k], str(places[k])) for k in apart}
    _check_one_driver(kernel, names, described)
    foreign = _foreign(kernel, names, described)
    return [
        value if isinstance(value, _OWN) else foreign.get(k) or _on_host(value)
        for k, value in enumerate(values)
    ]


def _described(kernel: str, name: str, value: Any, place: str) -> DeviceArray:
    """What its backend says of an array on a device. Raises ArgumentTypeError."""
    start = f"kernel '{kernel}': argument '{name}'"
    try:
        adopter = adopter_of(value)
        found = None if adopter is None else adopter.adopt(value)
    except NotAdopted as error:
        hint = error.hint.replace("x.", f"{name}.")
        raise ArgumentTypeError(f"{start} {error.what}\n  hint: {hint}") from error
    if found is None:
        raise ArgumentTypeError(
            f"{start} is memory of {place}, which no device here works on\n"
            f"  hint: copy it to the host, as in {name}.get(), and pass that as sarek.vector(...)"
        )
    if found.dtype.hasobject:
        raise ArgumentTypeError(f"{start} is an array of Python objects")
    return found


def _on_host(value: Any) -> Any:
    """An array of the same memory; the value itself where it is no array."""
    if hasattr(value, "__array_interface__"):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return array_on_host(value)
    try:
        return np.asarray(memoryview(value))
    except (TypeError, ValueError):
        return value


# --- describing -----------------------------------------------------------------------------------


def _foreign(
    kernel: str, names: Sequence[str], described: Mapping[int, DeviceArray]
) -> dict[int, Foreign]:
    """Arrays on a device as the launch core takes them. Raises ArgumentTypeError."""
    if not described:
        return {}
    buffers = {given.key: given.size for given in described.values()}
    space = Nowhere(list(buffers.values()))
    storages = {
        key: ForeignStorage(start) for key, start in zip(buffers, space.starts, strict=True)
    }
    made: dict[int, Foreign] = {}
    for position, given in described.items():
        storage = storages[given.key]
        storage.arrays.append(given)
        lowest, end = _extent(given)
        if lowest < 0 or end > given.size:
            raise ArgumentTypeError(
                f"kernel '{kernel}': argument '{names[position]}' spans the bytes {lowest} to "
                f"{end} of a buffer of {given.size}"
            )
        array = space.array(
            storage.start + given.offset, given.dtype, given.shape, given.strides, given.writable
        )
        if not is_addressable(array, storage.start + given.offset):
            raise ArgumentTypeError(
                f"kernel '{kernel}': argument '{names[position]}' is not aligned to its elements, "
                f"which device '{given.home}' cannot work on\n"
                f"  hint: pass a copy of it, as {names[position]}.copy()"
            )
        floor = storage.start + lowest
        if lowest % given.alignment and given.offset % array.itemsize == 0:
            floor = storage.start
        made[position] = Foreign(array, floor, storage, given)
    return made


def _extent(given: DeviceArray) -> tuple[int, int]:
    """The first byte of an array in its buffer, and the one past its last."""
    if 0 in given.shape:
        return given.offset, given.offset
    reach = [(n - 1) * step for n, step in zip(given.shape, given.strides, strict=True)]
    lowest = given.offset + sum(step for step in reach if step < 0)
    return lowest, given.offset + sum(s for s in reach if s > 0) + given.dtype.itemsize


# --- one device -----------------------------------------------------------------------------------


def _check_one_place(
    kernel: str, names: Sequence[str], places: Sequence[str | None], apart: Sequence[int]
) -> None:
    for k in apart:
        if _differ(str(places[apart[0]]), str(places[k])):
            raise _mixed(kernel, names, {j: str(places[j]) for j in (apart[0], k)})


def _differ(place: str, other: str) -> bool:
    """Whether two places are not one; "CUDA" may be any device of it."""
    shorter, longer = sorted((f"{place} ", f"{other} "), key=len)
    return not longer.startswith(shorter)


def _mixed(kernel: str, names: Sequence[str], places: Mapping[int, str]) -> MixedDevices:
    (first, place), (other, elsewhere) = places.items()
    return MixedDevices(
        f"kernel '{kernel}': argument '{names[first]}' is memory of {place}, and "
        f"'{names[other]}' of {elsewhere}\n  hint: bring both to one place"
    )


def _check_one_driver(
    kernel: str, names: Sequence[str], described: Mapping[int, DeviceArray]
) -> None:
    """Refuse arrays of several devices, and of several contexts of one."""
    first = next(iter(described), None)
    for k, given in described.items():
        assert first is not None
        other = described[first]
        if given.driver is other.driver:
            continue
        if given.home != other.home:
            raise _mixed(kernel, names, {first: other.home, k: given.home})
        raise MixedDevices(
            f"kernel '{kernel}': arguments '{names[first]}' and '{names[k]}' are of two contexts "
            f"of {given.home}, and no kernel works in both\n"
            f"  hint: make both on queues of one context, or copy one through the host"
        )


def placed(
    kernel: str, names: Sequence[str], foreign: Mapping[int, Foreign], where: str | Device | None
) -> Device:
    """The device of a launch: where its arrays of other libraries are, or else the one named.

    `foreign` are those arrays by their positions among the arguments. Raises MixedDevices where
    another device is named, UnknownDevice.
    """
    named = None if where is None and foreign else device(where)
    for position, each in foreign.items():
        given = each.described
        if named is not None and named.driver is not given.driver and named.name != given.home:
            raise MixedDevices(
                f"kernel '{kernel}': argument '{names[position]}' is memory of {given.home}, and "
                f"the launch is on '{named.name}'\n"
                f"  hint: leave the device out, or pass a copy, as {names[position]}.get()"
            )
        return device_of(given.driver)
    assert named is not None
    return named


def chosen(where: str | Device | None, values: Iterable[Any]) -> Device:
    """The device of a launch before its arguments are described; see `placed`."""
    named = None if where is None else device(where)
    for value in values:
        found = None if isinstance(value, _OWN) else _adopted_now(value)
        if found is not None and (named is None or named.name == found.home):
            return device_of(found.driver)
    return device() if named is None else named


def _adopted_now(value: Any) -> DeviceArray | None:
    """An array on a device; None for what is refused when it is described."""
    try:
        adopter = None if place_of(value) is None else adopter_of(value)
        return None if adopter is None else adopter.adopt(value)
    except NotAdopted:
        return None


# --- queues ---------------------------------------------------------------------------------------

_queues: weakref.WeakValueDictionary[Any, WorkQueue] = weakref.WeakValueDictionary()


def queue_of(driver: Driver, storages: Iterable[Storage]) -> WorkQueue | None:
    """The queue of a launch on arrays of others: theirs, or the device's first one.

    None where there are none, and where launches of the device have no queues.
    """
    arrays = [
        array
        for storage in storages
        if isinstance(storage, ForeignStorage)
        for array in storage.arrays
    ]
    queues = driver.queues
    if not arrays or queues is None or queues is AT_ONCE:
        return None
    handles = (array.order.handle for array in arrays)
    handle = next((h for h in handles if h is not None), None)
    if handle is None:
        handle = queues.default()
    key = (queues, handle)
    found = _queues.get(key)
    if found is None:
        found = _queues[key] = WorkQueue(queues, handle)
    return found
