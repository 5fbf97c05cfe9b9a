"""Vectors: arrays whose elements live on the host and on devices, and move when they must."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sarek_numba.errors import ReadOnlyWrite
from sarek_numba.runtime import recorders
from sarek_numba.runtime.dlpack.driver import exported
from sarek_numba.runtime.interchange import cuda_array_interface
from sarek_numba.runtime.memory import AnyArray, address, extent
from sarek_numba.runtime.partition import partition
from sarek_numba.runtime.pinning import Pinned, storage_of_size
from sarek_numba.runtime.reading import Readable
from sarek_numba.runtime.registry import Device, device
from sarek_numba.runtime.storage import Storage


class Vector(Readable):
    """An n-dimensional array for launches on any device; see `sarek.vector`.

    A launch brings to its device what it needs and is not there yet; reading on the host brings
    back what is not there. A basic index gives a vector of the same memory, as a view of NumPy:
    what is written to one is seen through the other, on every device.
    """

    __slots__ = ("__weakref__", "_array", "_storage")
    _type_for_numba: ClassVar[Callable[[AnyArray], Any] | None] = None  # set where Numba may load

    def __init__(self, storage: Storage, array: AnyArray) -> None:
        self._storage = storage
        self._array = array  # what describes the elements; its bytes may be stale

    # --- what it is -------------------------------------------------------------------------------

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of an element."""
        return self._array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self._array.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
        return self._array.strides

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """How many elements there are."""
        return self._array.size

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self._array.nbytes

    @property
    def readonly(self) -> bool:
        """Whether it can be read only."""
        return not self._array.flags.writeable

    @property
    def pinned(self) -> str | None:
        """The device that the host memory is page-locked for, if it is."""
        return self._storage.pinned_for

    def __len__(self) -> int:
        return len(self._array)

    # --- the same memory --------------------------------------------------------------------------

    @property
    def T(self) -> Vector:  # noqa: N802 # as NumPy has it
        """The axes in reverse order; the same memory."""
        return self._like(self._array.T)

    def reshape(self, *shape: Any) -> Vector:
        """Another shape of the same memory. ValueError where that takes a copy, as in `copy()`."""
        (given,) = shape if len(shape) == 1 else (shape,)
        view = self._array.view()
        view.shape = tuple(np.empty(self.size, np.bool_).reshape(given).shape)
        return self._like(view)

    def view(self, dtype: npt.DTypeLike) -> Vector:
        """The same bytes as elements of another type."""
        return self._like(self._array.view(dtype))

    def __getitem__(self, index: Any) -> Any:
        """One element, or a vector of the same memory for slices; ValueError for index arrays."""
        if is_advanced(index):
            raise ValueError(
                "a vector takes numbers, slices, `...` and field names as its index, not arrays\n"
                "  hint: index a copy on the host, np.asarray(v)[...]"
            )
        found = self._array[index]
        if isinstance(found, np.ndarray) and (found.ndim or keeps_axes(index)):
            return self._like(found)
        self._fetch(self._array[as_part(index)])
        if self.dtype.names is not None:  # a record of NumPy is a view, which would be written to
            return self[as_part(index)].__array__()[()]
        return self._array[index]

    def _like(self, array: AnyArray) -> Vector:
        return Vector(self._storage, array)

    # --- the host ---------------------------------------------------------------------------------

    def _span(self, array: AnyArray) -> tuple[int, int]:
        start, end = extent(array, address(array))
        return start - self._storage.start, end - self._storage.start

    def _fetch(self, array: AnyArray) -> AnyArray:
        """Elements, current on the host."""
        self._storage.fetch(*self._span(array))
        return array

    def __setitem__(self, index: Any, value: Any) -> None:
        self._check_writable()
        recorder = recorders.current.get()
        if recorder is not None:
            self._record_write(recorder, index, value)
            return
        target = self._array[index] if is_advanced(index) else self._array[as_part(index)]
        changed = self._array if is_advanced(index) else target
        with self._storage.lock:
            given = np.array(value) if isinstance(value, Vector) else value  # it may be this memory
            if changed is self._array or not changed.flags.forc:
                self._fetch(changed)  # bytes between those that are written stay as they are
            self._storage.claim(*self._span(changed))
            self._array[index] = given
            self._storage.wrote(*self._span(changed))

    def _record_write(self, recorder: recorders.Recorder, index: Any, value: Any) -> None:
        """Have a write to elements take place later. Raises GraphError."""
        if is_advanced(index):
            recorders.refuse("an index array says where a vector is written", "write to a slice")
        target = self._like(self._array[as_part(index)])
        if not isinstance(value, Vector):
            if np.ndim(value) == 0:
                recorder.filled(target, value)
            else:
                recorder.copied(target, np.array(np.broadcast_to(value, target.shape), self.dtype))
        elif (value.shape, value.dtype) == (target.shape, target.dtype):
            recorder.copied(target, value)
        else:
            what = f"{target.dtype}{list(target.shape)} is set to {value.dtype}{list(value.shape)}"
            recorders.refuse(what, "copy elements of one type and shape, or launch a kernel")

    @contextmanager
    def host(self) -> Iterator[AnyArray]:
        """The elements as a writable array of NumPy. Afterwards the host's are the newest.

        The array is for the body of `with` alone.
        """
        self._check_writable()
        recorders.refuse_host_read()
        with self._storage.lock:
            self._storage.claim(*self._span(self._array))
            try:
                yield self._fetch(self._array)
            finally:
                self._storage.wrote(*self._span(self._array))

    def _check_writable(self) -> None:
        if self.readonly:
            raise ReadOnlyWrite("this vector can be read only\n  hint: write to v.copy()")

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        """What the elements are now, read only; a copy if another type is asked for."""
        view = self._fetch(self._array).view()
        view.flags.writeable = False
        if copy or (dtype is not None and np.dtype(dtype) != view.dtype):
            if copy is False:
                raise ValueError(f"a vector of {view.dtype} is no array of {dtype} without a copy")
            return np.array(view, dtype)
        return view

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("a vector without axes has no items\n  hint: v[()]")
        return iter(np.asarray(self)) if self.ndim == 1 else (self[k] for k in range(len(self)))

    def __float__(self) -> float:
        return float(np.asarray(self))

    def __int__(self) -> int:
        return int(np.asarray(self))

    def copy(self) -> Vector:
        """A vector of its own memory, of the same elements, C-contiguous."""
        made = empty_vector(self.shape, self.dtype)
        recorder = recorders.current.get()
        if recorder is not None:
            recorder.copied(made, self)
        else:
            made._array[...] = self._fetch(self._array)
        return made

    def fill(self, value: Any) -> None:
        """Set every element."""
        self[...] = value

    def __repr__(self) -> str:
        text = np.array2string(np.asarray(self), separator=", ", prefix="vector(")
        return f"vector({text}, dtype={self.dtype})"

    # --- devices ----------------------------------------------------------------------------------

    def to(self, which: str | Device | None = None) -> Vector:
        """Bring the elements to a device now, before a launch needs them; gives the vector."""
        memory = device(which).driver.memory
        if recorders.current.get() is not None:
            return self  # a replay brings what it needs
        if memory is None:
            self._fetch(self._array)
        else:
            self._storage.send(memory, *self._span(self._array))
        return self

    def partition(self, devices: Sequence[str | Device]) -> list[Vector]:
        """A part along axis 0 for each device, of the same memory and current there.

        The parts are as equal as they can be, the first ones larger; they may be empty. Raises
        UnknownDevice, and ValueError without devices or axes, before anything moves.
        """
        return partition(self, devices)

    def gather(self) -> Vector:
        """Bring all elements to the host, whichever devices have them; gives the vector."""
        self._fetch(self._array)
        return self

    def free(self, which: str | Device | None = None) -> None:
        """Give up the memory on a device, or on all. Nothing is lost: it comes to the host."""
        if which is None:
            self._storage.free()
            return
        memory = device(which).driver.memory
        if memory is not None:
            self._storage.free(memory)

    def is_current(self, which: str | Device | None = None) -> bool:
        """Whether the newest elements are on a device, or, of None, on the host."""
        memory = None if which is None else device(which).driver.memory
        return self._storage.is_current(memory, *self._span(self._array))

    # --- protocols --------------------------------------------------------------------------------

    def __dlpack__(self, **options: Any) -> Any:
        """The elements on the host, for a consumer that may write them."""
        array = self._fetch(self._array)
        if not self.readonly:
            self._storage.claim(*self._span(self._array))
            self._storage.wrote(*self._span(self._array))
        return exported(array, options)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The elements on the host as they are now, to be read only, for libraries without DLPack.

        AttributeError for elements that the protocol has no name for, as records.
        """
        if np.dtype(self.dtype.str) != self.dtype:
            raise AttributeError("__array_interface__")
        found: dict[str, Any] = self.__array__().__array_interface__
        return found

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The elements on a CUDA device, for a consumer that may write them.

        AttributeError where there is none, or for elements that the protocol has no name for.
        """
        return cuda_array_interface(self)

    @property
    def _numba_type_(self) -> Any:
        """What `numba.njit` takes it for: an array on the host."""
        make = Vector._type_for_numba
        if make is None:
            raise AttributeError("_numba_type_")
        return make(self._array)

    def _elements_on_host(self) -> AnyArray:
        """The elements on the host, for a function of Numba that may write them during its call."""
        self._fetch(self._array)
        if not self.readonly:
            with self._storage.lock:
                self._storage.claim(*self._span(self._array))
                self._storage.wrote(*self._span(self._array))
        return self._array

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __reduce__(self) -> Any:
        return vector_of, (np.array(self),)


def empty_vector(shape: Any, dtype: npt.DTypeLike, pinned: Pinned = False) -> Vector:
    """A vector whose elements are undefined, C-contiguous."""
    kind = np.dtype(dtype)
    count = int(np.prod(shape, dtype=object)) if np.ndim(shape) else int(shape)
    storage = storage_of_size(count * kind.itemsize, pinned)
    array = storage.host.view(kind).reshape(shape) if count else np.empty(shape, kind)
    made = Vector(storage, array)
    recorder = recorders.current.get()
    if recorder is not None:
        recorder.allocated(made, shape)
    return made


def vector_of(array: AnyArray, pinned: Pinned = False) -> Vector:
    """A vector of the elements of an array, in memory of its own; the layout is kept."""
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    shape = array.shape[::-1] if order == "F" else array.shape
    made = empty_vector(shape, array.dtype, pinned)
    if order == "F":
        made = made.T
    made._array[...] = array
    recorder = recorders.current.get()
    if recorder is not None:
        recorder.copied(made, np.array(array))
    return made


def as_tuple(index: Any) -> tuple[Any, ...]:
    """An index as a tuple of its parts."""
    return index if isinstance(index, tuple) else (index,)


def as_part(index: Any) -> Any:
    """A basic index that gives an array even where no axis is left."""
    return index if keeps_axes(index) else (*as_tuple(index), ...)


def is_advanced(index: Any) -> bool:
    """Whether an index gives a copy in NumPy, not a view."""
    return any(
        isinstance(part, list | np.ndarray | Vector | bool | np.bool_) for part in as_tuple(index)
    )


def keeps_axes(index: Any) -> bool:
    """Whether an index gives an array even where no axis is left."""
    return any(part is Ellipsis for part in as_tuple(index))
