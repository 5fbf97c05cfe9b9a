"""Vectors of records in columns: each number of a record has a vector of its own.

A kernel sees the same records as in an array of them. What it does not use is not moved, and
neighbouring threads read neighbouring numbers. On the host, too, it is a vector of records; what is
asked for is put together out of the columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sarek_numba.errors import ReadOnlyWrite
from sarek_numba.ir.pairs import PAIR_RECORDS
from sarek_numba.ir.records import InvalidRecord, leaves, record_of
from sarek_numba.ir.types import FixedArray, Record
from sarek_numba.ir.variants import guards
from sarek_numba.runtime.columns import described_records
from sarek_numba.runtime.memory import AnyArray
from sarek_numba.runtime.partition import partition
from sarek_numba.runtime.pinning import Pinned
from sarek_numba.runtime.reading import Readable
from sarek_numba.runtime.registry import Device
from sarek_numba.runtime.vector import Vector, as_tuple, empty_vector, is_advanced, keeps_axes


class SoAVector(Readable):
    """Records for launches on any device, in columns; see `sarek.soa`.

    `columns` are in the order of `ir.records.leaves`. The axes of each are those of the records,
    then those of the fixed arrays on its way.
    """

    __slots__ = ("__weakref__", "columns", "dtype", "shape")

    def __init__(
        self, dtype: np.dtype[Any], shape: tuple[int, ...], columns: tuple[Vector, ...]
    ) -> None:
        self.dtype = dtype
        self.shape = shape
        self.columns = columns

    # --- what it is -------------------------------------------------------------------------------

    @property
    def record(self) -> Record:
        """The record as kernels know it; of a field of complex numbers, that of their parts."""
        return _record(self.dtype)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many numbers of each column one record has."""
        return tuple(leaf.count for leaf in leaves(self.record))

    @property
    def ndim(self) -> int:
        """How many axes the records have."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many records there are."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all columns; padding of the records is in none."""
        return sum(column.nbytes for column in self.columns)

    @property
    def readonly(self) -> bool:
        """Whether it can be read only."""
        return any(column.readonly for column in self.columns)

    @property
    def pinned(self) -> str | None:
        """The device that the host memory of the columns is page-locked for, if it is."""
        return self.columns[0].pinned

    @property
    def described(self) -> AnyArray:
        """Shape and order of the records, as an array that nobody reads or writes."""
        return described_records(self.shape, self.columns[0]._array, self.counts[0])

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a vector without axes has no length")
        return self.shape[0]

    # --- the same memory --------------------------------------------------------------------------

    @property
    def T(self) -> SoAVector:  # noqa: N802 # as NumPy has it
        """The axes in reverse order; the same memory."""
        outer = tuple(reversed(range(self.ndim)))
        turned = tuple(
            column._like(column._array.transpose(*outer, *range(self.ndim, column.ndim)))
            for column in self.columns
        )
        return SoAVector(self.dtype, self.shape[::-1], turned)

    def reshape(self, *shape: Any) -> SoAVector:
        """Another shape of the same memory. ValueError where that takes a copy, as in `copy()`."""
        (given,) = shape if len(shape) == 1 else (shape,)
        made = np.broadcast_to(np.False_, self.shape).reshape(given).shape
        columns = tuple(
            column.reshape(*made, *column.shape[self.ndim :]) for column in self.columns
        )
        return SoAVector(self.dtype, made, columns)

    def __getitem__(self, index: Any) -> Any:
        """A field, one record, or records of the same memory for slices.

        A field is a vector, or again records in columns. ValueError for index arrays and lists.
        """
        if isinstance(index, str):
            return self._field(index)
        if is_advanced(index):
            raise ValueError(
                "a vector of records takes numbers, slices, `...` or one field name as its index\n"
                "  hint: index a copy on the host, np.asarray(v)[...]"
            )
        part = self._part(index)
        if part.ndim or keeps_axes(index):
            return part
        return np.asarray(part)[()]

    def _part(self, index: Any) -> SoAVector:
        whole, shape = self._over_records(index)
        columns = tuple(column[(*whole, ...)] for column in self.columns)
        return SoAVector(self.dtype, shape, columns)

    def _over_records(self, index: Any) -> tuple[tuple[Any, ...], tuple[int, ...]]:
        """An index without `...`, which a column would take for its own axes, and its result's
        shape.
        """
        parts = as_tuple(index)
        shape = np.broadcast_to(np.False_, self.shape)[index].shape
        if not keeps_axes(index):
            return parts, shape
        at = next(k for k, part in enumerate(parts) if part is Ellipsis)
        taken = sum(part is not None and part is not Ellipsis for part in parts)
        rest = (slice(None),) * (self.ndim - taken)
        return (*parts[:at], *rest, *parts[at + 1 :]), shape

    def _field(self, name: str) -> Vector | SoAVector:
        fields: Any = self.dtype.fields
        if fields is None or name not in fields:
            known = ", ".join(self.dtype.names or ())
            raise ValueError(f"records of ({known}) have no field '{name}'")
        kind: np.dtype[Any] = fields[name][0]
        inner = kind.shape
        kind = kind.base
        found = zip(leaves(self.record), self.columns, strict=True)
        columns = tuple(column for leaf, column in found if leaf.path[0] == name)
        if kind.names is None and kind.kind != "c":
            return columns[0]
        return SoAVector(kind, self.shape + inner, columns)

    # --- the host ---------------------------------------------------------------------------------

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, str):
            self._field(index)[...] = value
            return
        self._check_writable()
        whole, shape = self._over_records(index)
        given = np.zeros(shape, self.dtype)
        with self._locked():
            given[...] = np.asarray(value) if isinstance(value, Readable) else value
            self._scatter(given, whole)

    @contextmanager
    def host(self) -> Iterator[AnyArray]:
        """The records as a writable array of NumPy. Afterwards the host's are the newest.

        The array is for the body of `with` alone.
        """
        self._check_writable()
        with self._locked():
            array = self._gathered()
            try:
                yield array
            finally:
                self._scatter(array, ())

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        """What the records are now, read only; a copy, for they lie in columns."""
        if copy is False:
            raise ValueError("records in columns are no array of records without a copy")
        with self._locked():
            array = self._gathered()
        if dtype is not None and np.dtype(dtype) != self.dtype:
            return array.astype(dtype)
        array.flags.writeable = bool(copy)
        return array

    def _check_writable(self) -> None:
        if self.readonly:
            raise ReadOnlyWrite("this vector can be read only\n  hint: write to v.copy()")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with ExitStack() as stack:
            for storage in sorted({column._storage for column in self.columns}, key=id):
                stack.enter_context(storage.lock)
            yield

    def _gathered(self) -> AnyArray:
        array = np.zeros(self.shape, self.dtype)
        parts = [np.asarray(column) for column in self.columns]
        for number, part in enumerate(parts):
            place = _numbers(array, leaves(self.record)[number].path)
            np.copyto(place, part, where=_present(self.record, number, parts))
        return array

    def _scatter(self, array: AnyArray, index: tuple[Any, ...]) -> None:
        """Write records into columns; a number of a case that a variant does not have is zero."""
        parts = [_numbers(array, leaf.path) for leaf in leaves(self.record)]
        for number, (column, part) in enumerate(zip(self.columns, parts, strict=True)):
            present = _present(self.record, number, parts)
            column[index] = part if present is True else np.where(present, part, part.dtype.type(0))

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("a vector without axes has no items\n  hint: v[()]")
        return iter(np.asarray(self)) if self.ndim == 1 else (self[k] for k in range(len(self)))

    def copy(self) -> SoAVector:
        """Records in columns of their own, C-contiguous."""
        columns = tuple(column.copy() for column in self.columns)
        return SoAVector(self.dtype, self.shape, columns)

    def fill(self, value: Any) -> None:
        """Set every record."""
        self[...] = value

    def __repr__(self) -> str:
        text = np.array2string(np.asarray(self), separator=", ", prefix="soa(")
        return f"soa({text}, dtype={self.dtype})"

    # --- devices ----------------------------------------------------------------------------------

    def to(self, which: str | Device | None = None) -> SoAVector:
        """Bring all columns to a device now, before a launch needs them; gives the vector."""
        for column in self.columns:
            column.to(which)
        return self

    def partition(self, devices: Sequence[str | Device]) -> list[SoAVector]:
        """A part along axis 0 for each device, of the same memory and current there.

        The parts are as equal as they can be, the first ones larger; they may be empty. Raises
        UnknownDevice, and ValueError without devices or axes, before anything moves.
        """
        return partition(self, devices)

    def gather(self) -> SoAVector:
        """Bring all elements to the host, whichever devices have them; gives the vector."""
        for column in self.columns:
            column.gather()
        return self

    def free(self, which: str | Device | None = None) -> None:
        """Give up the memory on a device, or on all. Nothing is lost: it comes to the host."""
        for column in self.columns:
            column.free(which)

    def is_current(self, which: str | Device | None = None) -> bool:
        """Whether the newest records are on a device, or, of None, on the host."""
        return all(column.is_current(which) for column in self.columns)

    def __reduce__(self) -> Any:
        return soa_of, (np.array(self),)


def soa_of(array: AnyArray, pinned: Pinned = False) -> SoAVector:
    """A vector of the records of an array, in columns of its own. TypeError for what has none."""
    try:
        if array.dtype.names is None:
            raise InvalidRecord(f"it has {array.dtype}", "use sarek.vector(...)")
        record = record_of(array.dtype)
    except InvalidRecord as error:
        raise TypeError(
            f"sarek.soa takes an array of records: {error.message}\n  hint: {error.hint}"
        ) from None
    columns = tuple(
        empty_vector(array.shape + _extents(record, leaf.path), leaf.scalar.value, pinned)
        for leaf in leaves(record)
    )
    made = SoAVector(array.dtype, array.shape, columns)
    made._scatter(array, ())
    return made


@lru_cache(maxsize=1024)
def _record(dtype: np.dtype[Any]) -> Record:
    return PAIR_RECORDS[dtype] if dtype.names is None else record_of(dtype)


def _extents(record: Record, path: tuple[str, ...]) -> tuple[int, ...]:
    """The extents of all fixed arrays on the way to a number."""
    kind: Any = record
    found: tuple[int, ...] = ()
    for name in path:
        kind = dict(kind.fields)[name]
        while isinstance(kind, FixedArray):
            found += kind.shape
            kind = kind.element
    return found


def _numbers(array: AnyArray, path: tuple[str, ...]) -> AnyArray:
    """The numbers at a path in an array of records, or a part of complex numbers, as a view."""
    for name in path:
        array = getattr(array, name) if array.dtype.names is None else array[name]
    return array


def _present(record: Record, number: int, parts: list[AnyArray]) -> Any:
    """Where the variants on the way to a number are of its case: True, or an array."""
    path = leaves(record)[number].path
    present: Any = True
    for tag, case in guards(record, path):
        at = next(k for k, leaf in enumerate(leaves(record)) if leaf.path == tag)
        told = parts[at] == case
        told = told.reshape(told.shape + (1,) * (parts[number].ndim - told.ndim))
        present = told if present is True else present & told
    return present
