"""Arguments of a launch: what each is, whether it is what the kernel states, what a program is
given.

`describe` looks at values and gives `Arguments`: a kind for each, which is all that compiling needs
to know, and the arrangement of the arrays in memory. `fillers` turns the parameters of a program
into functions that give the value of each, by `ParamDecl.role` alone. Everything wrong with an
argument raises ArgumentTypeError and names it.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple, assert_never

import numpy as np

from sarek_numba.errors import ArgumentTypeError
from sarek_numba.frontend.registered import RegisteredType, registered
from sarek_numba.frontend.variants import VariantValue
from sarek_numba.ir.nodes import ParamDecl
from sarek_numba.ir.records import InvalidRecord, alike, numbers_of, record_of
from sarek_numba.ir.semantics import dtype_of, half_of
from sarek_numba.ir.types import (
    HALVES,
    ArrayInfo,
    DynamicSharedLength,
    LengthOf,
    NumberOf,
    OffsetOf,
    Pair,
    PartOf,
    Record,
    ReportBuffer,
    Role,
    Scalar,
    ShapeOf,
    StrideOf,
    Threads,
    UserArgument,
)
from sarek_numba.ir.variants import is_variant, other_declaration, variant_name
from sarek_numba.runtime.columns import Columns, Placement
from sarek_numba.runtime.foreign import Foreign, adopted
from sarek_numba.runtime.memory import AnyArray, Arrangement, arrange
from sarek_numba.runtime.soa import SoAVector
from sarek_numba.runtime.storage import Storage
from sarek_numba.runtime.vector import Vector


class PythonNumber(Enum):
    """The kind of a Python number that nothing states a type for: it is weak (NEP 50).

    An int that fits int32 travels as one, and is known to be in its range.
    """

    INT = "int"
    WIDE_INT = "int beyond int32"
    FLOAT = "float"
    COMPLEX = "complex"


@dataclass(frozen=True, slots=True)
class StatedArray:
    """What an annotation says of an array; None where it leaves something open."""

    element: Scalar | Pair | Record | None = None
    ndim: int | None = None
    layout: str | None = None


Kind = ArrayInfo | Record | Scalar | Pair | PythonNumber | None
"""What an argument is. None is the kind of None; a Python bool has the kind of numpy.bool."""

Stated = StatedArray | Record | Scalar | Pair | PythonNumber | None
"""What an annotation says of a parameter; None where there is none."""

ELEMENTS: dict[np.dtype[Any], Scalar | Pair] = {dtype_of(scalar): scalar for scalar in Scalar}
ELEMENTS |= {np.dtype(pair.value): pair for pair in map(Pair, (Scalar.FLOAT32, Scalar.FLOAT64))}

_REFUSED_ELEMENTS = {
    "c": ("complex numbers of this width", "convert it, as in x.astype(numpy.complex128)"),
    "O": ("Python objects", "convert it to a number type, as in x.astype(numpy.float64)"),
    "U": ("strings", "pass numbers"),
    "S": ("byte strings", "pass its bytes, x.view(numpy.uint8)"),
    "T": ("strings", "pass numbers"),
    "V": ("raw bytes", "pass them as numbers, numpy.frombuffer(x, numpy.uint8)"),
    "M": ("dates", "pass their counts, x.view(numpy.int64)"),
    "m": ("time differences", "pass their counts, x.view(numpy.int64)"),
}
_INT32, _INT64 = Scalar.INT32, Scalar.INT64
_OVERFLOW = {  # the first that rounds to infinity
    Scalar.FLOAT32: 2.0**128 - 2.0**103,
    Scalar.FLOAT16: 2.0**16 - 2.0**4,
    Scalar.BFLOAT16: 2.0**128 - 2.0**119,
}
_REGISTERED = 2  # `isbuiltin` of the types of another library, as ml_dtypes
_REFUSED_FLOATS = "convert it, as in x.astype(numpy.float32)"


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one launch. Arrays are of class ndarray itself, without copying.

    `arrays` are the positions of the arrays among the values; the arrangement has them in that
    order. A record is a tuple of its numbers. Of a vector the array describes the elements, and
    `storages` has the memory, by its place among the arrays. Behind the arguments' own values stand
    the columns of those that are records in columns; `columns` says where.
    """

    kinds: tuple[Kind, ...]
    values: tuple[Any, ...]
    arrays: tuple[int, ...]
    arrangement: Arrangement
    storages: Mapping[int, Storage] = field(default_factory=dict)
    columns: Mapping[int, Columns] = field(default_factory=dict)
    foreign: Mapping[int, Foreign] = field(default_factory=dict)  # by position among the values
    given: tuple[Any, ...] = ()  # by the user

    def placement(self, position: int) -> Placement:
        """The placement of the array at a position among the values; that of records in columns
        counts records.
        """
        split = self.columns.get(position)
        if split is not None:
            return split.placement(self.placement(split.first))
        return self.arrangement.placements[self.arrays.index(position)]

    def owner(self, position: int) -> int:
        """The argument that the array at a position among the values belongs to."""
        if position < len(self.kinds):
            return position
        return next(p for p, split in self.columns.items() if position in split.positions)

    def among(self, whole: Set[int], columns: Set[tuple[int, int]]) -> set[int]:
        """The places among the arrays of some arguments, and of some of their columns."""
        found = {place for place, position in enumerate(self.arrays) if position in whole}
        for argument, column in columns:
            found.add(self.arrays.index(self.columns[argument].first + column))
        return found


def describe(
    kernel: str, names: Sequence[str], values: Sequence[Any], stated: Sequence[Stated]
) -> Arguments:
    """Classify the values of a launch, check them against what the kernel states, arrange arrays.

    Raises ArgumentTypeError, InvalidArgument, MixedDevices.
    """
    kinds: list[Kind] = []
    plain: list[Any] = []
    positions: list[int] = []
    storages: dict[int, Storage] = {}
    split: dict[int, SoAVector] = {}
    foreign: dict[int, Foreign] = {}
    floors: dict[int, int] = {}
    for position, value in enumerate(adopted(kernel, names, values)):
        kind: Kind
        if isinstance(value, SoAVector) and value.ndim:
            split[position] = value
            value = value.described
        elif isinstance(value, SoAVector):
            value = np.asarray(value)
        elif isinstance(value, Vector):
            storages[len(positions)] = value._storage
            value = value._array
        elif isinstance(value, Foreign):
            foreign[position] = value
            floors[len(positions)] = value.floor
            storages[len(positions)] = value.storage
            value = value.array
        record = None if position in foreign else record_argument(value)
        if position in split:
            kind = _columns_kind(kernel, names[position], split[position])
        elif record is not None:
            kind = _record(kernel, names[position], record.dtype, "is a record")
            value = numbers_of(kind, record)
        elif isinstance(value, np.ndarray):
            kind = _array_kind(kernel, names[position], value)
            if type(value) is not np.ndarray:
                value = value.view(np.ndarray)
            positions.append(position)
        else:
            kind = _scalar_kind(kernel, names[position], value)
        wanted = stated[position]
        if wanted is not None:
            kind = _stated_kind(kernel, names[position], value, kind, wanted)
            if kind in HALVES and not isinstance(value, np.generic):
                value = half_of(value, kind)
        kinds.append(kind)
        plain.append(value)
    columns: dict[int, Columns] = {}
    labels = [names[p] for p in positions]
    for position, whole in split.items():
        columns[position] = Columns(len(plain), whole.counts, whole.ndim, len(positions))
        for column in whole.columns:
            storages[len(positions)] = column._storage
            labels.append(names[position])
            positions.append(len(plain))
            plain.append(column._array)
    arrangement = arrange([plain[p] for p in positions], labels, tuple(columns.values()), floors)
    placed = dict(zip(positions, arrangement.placements, strict=True))
    for position, info in enumerate(kinds):
        if position in columns:
            placement = columns[position].placement(placed[columns[position].first])
        elif position in placed:
            placement = placed[position]
        else:
            continue
        assert isinstance(info, ArrayInfo)
        if placement.layout != info.layout:
            kinds[position] = replace(info, layout=placement.layout)
    return Arguments(
        tuple(kinds), tuple(plain), tuple(positions), arrangement, storages, columns, foreign,
        tuple(values),
    )  # fmt: skip


# --- kinds ----------------------------------------------------------------------------------------


def _array_kind(kernel: str, name: str, value: AnyArray) -> ArrayInfo:
    element: Scalar | Pair | Record | None = ELEMENTS.get(value.dtype)
    if element is None and value.dtype.names is not None:
        element = _record(kernel, name, value.dtype)
    if element is None:
        raise ArgumentTypeError(_refused_element(kernel, name, "is an array of", value.dtype))
    if _is_masked(value):
        raise ArgumentTypeError(
            f"kernel '{kernel}': argument '{name}' is a masked array, and a kernel sees no mask\n"
            f"  hint: pass {name}.data and {name}.mask as two arrays, or {name}.filled(value)"
        )
    return array_kind(element, value.ndim, writable=value.flags.writeable)


def _columns_kind(kernel: str, name: str, value: SoAVector) -> ArrayInfo:
    if value.dtype.names is None:
        raise ArgumentTypeError(
            f"kernel '{kernel}': argument '{name}' is a field of complex numbers of records in "
            f"columns, whose parts lie apart\n  hint: pass the records, or numpy.array({name})"
        )
    info = array_kind(_record(kernel, name, value.dtype), value.ndim, writable=not value.readonly)
    return replace(info, columns=True)


def _is_masked(value: AnyArray) -> bool:
    """Whether an array has a mask; asking for `numpy.ma` would import it, which takes long."""
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(value, masked.MaskedArray)


def array_kind(
    element: Scalar | Pair | Record, ndim: int, layout: str = "C", writable: bool = True
) -> ArrayInfo:
    """The kind of an array, whose elements may be complex."""
    pairs = isinstance(element, Pair)
    part = element.part if isinstance(element, Pair) else element
    return ArrayInfo(part, ndim=ndim, layout=layout, writable=writable, pairs=pairs)


def element_of(kind: ArrayInfo) -> Scalar | Pair | Record:
    """What the user takes for one element of an array."""
    if isinstance(kind.element, Record):
        return kind.element
    assert isinstance(kind.element, Scalar), "arrays of arguments have scalars or records"
    return Pair(kind.element) if kind.pairs else kind.element


def _record(
    kernel: str, name: str, dtype: np.dtype[Any], relation: str = "is an array of records"
) -> Record:
    try:
        return record_of(dtype)
    except InvalidRecord as error:
        raise ArgumentTypeError(
            f"kernel '{kernel}': argument '{name}' {relation}: {error.message}\n"
            f"  hint: {error.hint}"
        ) from None


def record_argument(value: Any) -> AnyArray | None:
    """One record, as an array without axes; None if a value is none.

    It is a scalar or an array without axes of a structured dtype, the value of a variant, or an
    instance of a registered class.
    """
    if isinstance(value, np.void | np.ndarray):
        is_one = value.ndim == 0 and value.dtype.names is not None
        return np.asarray(value) if is_one else None
    if isinstance(value, VariantValue):
        return np.asarray(value)
    if isinstance(value, int | float | complex | np.generic | None):
        return None
    kind = registered(type(value))
    return np.asarray(kind.record_from(value)) if isinstance(kind, RegisteredType) else None


def _scalar_kind(kernel: str, name: str, value: Any) -> Kind:
    match value:
        case bool():
            return Scalar.BOOL
        case np.generic():
            element = ELEMENTS.get(value.dtype)
            if element is None:
                raise ArgumentTypeError(_refused_element(kernel, name, "is of", value.dtype))
            return element
        case int():
            if _INT32.minimum <= value <= _INT32.maximum:
                return PythonNumber.INT
            if _INT64.minimum <= value <= _INT64.maximum:
                return PythonNumber.WIDE_INT
            raise ArgumentTypeError(
                f"kernel '{kernel}': argument '{name}' is {value}, a Python int beyond int64\n"
                f"  hint: a value from 0 to 2**64 - 1 can be passed as numpy.uint64({name})"
            )
        case float():
            return PythonNumber.FLOAT
        case complex():
            return PythonNumber.COMPLEX
        case None:
            return None
    raise ArgumentTypeError(_refused_value(kernel, name, value))


def _refused_element(kernel: str, name: str, relation: str, dtype: np.dtype[Any]) -> str:
    start = f"kernel '{kernel}': argument '{name}' {relation} {dtype}"
    if not dtype.isnative:
        return (
            f"{start}, whose bytes are in the order of another machine\n"
            f"  hint: convert it before the launch: {name} = "
            f"{name}.astype({name}.dtype.newbyteorder('='))"
        )
    if dtype.kind == "f" or dtype.isbuiltin == _REGISTERED:
        return f"{start}, which this version does not take\n  hint: {_named(_REFUSED_FLOATS, name)}"
    what, hint = _REFUSED_ELEMENTS.get(dtype.kind, ("of this type", "pass numbers"))
    return f"{start}: {what} are not taken\n  hint: {_named(hint, name)}"


def _constructor(type: Scalar | Pair) -> str:
    """How the host writes a type."""
    return f"{'ml_dtypes' if type is Scalar.BFLOAT16 else 'numpy'}.{type.value}"


def _named(hint: str, name: str) -> str:
    """A hint about `x`, told of the parameter."""
    return re.sub(r"\bx\b", name, hint)


def _refused_value(kernel: str, name: str, value: Any) -> str:
    start = f"kernel '{kernel}': argument '{name}' is a {type(value).__name__}"
    hint = "pass a NumPy array or a number"
    is_array = hasattr(value, "__array__") and not isinstance(value, type)
    if is_array or isinstance(value, list | tuple | memoryview | bytearray):
        hint = f"pass a NumPy array, as in numpy.asarray({name})"
    elif callable(value) and not isinstance(value, type):
        hint = "a kernel uses functions by their names, and takes none as arguments"
    return f"{start}; a kernel takes NumPy arrays and numbers\n  hint: {hint}"


# --- stated kinds ---------------------------------------------------------------------------------


def _stated_kind(
    kernel: str,
    name: str,
    value: Any,
    kind: Kind,
    stated: StatedArray | Record | Scalar | Pair | PythonNumber,
) -> Kind:
    """The kind that the argument takes; ArgumentTypeError if it is not what is stated."""
    match stated, kind:
        case StatedArray(), ArrayInfo() if _is_stated(value, kind, stated):
            return kind
        case Record(), Record() if alike(stated, kind):
            return kind
        case ((Scalar() | Pair()), (Scalar() | Pair())) if stated == kind:
            return kind
        case Pair(), PythonNumber() if _fits(value, stated.part):
            return stated
        case PythonNumber.COMPLEX, PythonNumber():
            return stated
        case PythonNumber.COMPLEX, Pair():
            return kind
        case Scalar(), PythonNumber() if kind is not PythonNumber.COMPLEX and _fits(value, stated):
            return stated
        case PythonNumber.FLOAT, PythonNumber() if kind is not PythonNumber.COMPLEX:
            return stated
        case PythonNumber.INT, PythonNumber.INT | PythonNumber.WIDE_INT:
            return kind
        case PythonNumber.FLOAT, Scalar() if kind.is_float:
            return kind
        case PythonNumber.INT, Scalar() if kind.is_integer:
            return kind
    raise ArgumentTypeError(
        f"kernel '{kernel}': argument '{name}' is {_given(value, kind)}, "
        f"and the kernel states {in_words(stated)}\n  hint: {_as_stated(name, kind, stated)}"
    )


def _as_stated(
    name: str, kind: Kind, stated: StatedArray | Record | Scalar | Pair | PythonNumber
) -> str:
    """What to pass instead."""
    match stated, kind:
        case StatedArray(element=Scalar()), ArrayInfo(pairs=True):
            return f"pass {name}.real"
        case StatedArray(element=Record() as record), ArrayInfo() if not _is_element(kind, stated):
            variant = variant_name(record)
            given = element_of(kind)
            anew = other_declaration(given, record) if isinstance(given, Record) else None
            if variant is not None:
                return anew or f"pass an array of {variant}.dtype, as {variant}.array makes one"
            return "pass an array of this dtype, offsets included"
        case StatedArray(element=Scalar() | Pair() as element), ArrayInfo() if not _is_element(
            kind, stated
        ):
            return f"convert it before the launch: {name} = {name}.astype({_constructor(element)})"
        case StatedArray(ndim=int() as ndim), ArrayInfo() if ndim != kind.ndim:
            return f"pass an array of {ndim} ax{'i' if ndim == 1 else 'e'}s"
        case StatedArray(layout="F"), ArrayInfo():
            return f"pass numpy.asfortranarray({name})"
        case StatedArray(), ArrayInfo():
            return f"pass numpy.ascontiguousarray({name})"
        case StatedArray(element=Record()), Record():
            return f"pass an array of one record, as in numpy.array([{name}])"
        case StatedArray(), _:
            return "pass an array"
        case Record(), ArrayInfo(record=None, element=Record() as element) if alike(
            stated, element
        ):
            return f"pass one element, as in {name}[0]"
        case Record(), _ if is_variant(stated):
            return f"pass a value of {variant_name(stated)}"
        case Record(), _:
            return "pass a record of these fields and types, as in numpy.zeros((), dtype)"
        case ((Scalar() | PythonNumber()), PythonNumber.COMPLEX | Pair()):
            return f"pass {name}.real"
        case Scalar(), PythonNumber.INT | PythonNumber.WIDE_INT if stated.is_integer:
            return f"{stated.value} takes {stated.minimum} to {stated.maximum}"
        case ((Scalar() | Pair()), (Scalar() | Pair() | PythonNumber())):
            return f"convert it, as in {_constructor(stated)}({name})"
        case ((Scalar() | Pair()), _):
            return f"pass a number, as in {_constructor(stated)}(1)"
        case PythonNumber(), _:
            return f"pass a Python {stated.value}"
        case _:
            assert_never(stated)


def _is_stated(value: AnyArray, kind: ArrayInfo, stated: StatedArray) -> bool:
    layouts = {"C": value.flags.c_contiguous, "F": value.flags.f_contiguous, None: True}
    return _is_element(kind, stated) and stated.ndim in (None, kind.ndim) and layouts[stated.layout]


def _is_element(kind: ArrayInfo, stated: StatedArray) -> bool:
    return stated.element in (None, element_of(kind))


def _fits(value: Any, scalar: Scalar) -> bool:
    """Whether a Python number can be given as a scalar type, or as a complex one of its parts."""
    if isinstance(value, complex):
        return scalar.is_float and _fits(value.real, scalar) and _fits(value.imag, scalar)
    if scalar.is_float:  # an int here is within int64, see `_scalar_kind`
        within = abs(value) < _OVERFLOW.get(scalar, math.inf)
        return within or math.isnan(value) or math.isinf(value)
    if isinstance(value, float) or scalar is Scalar.BOOL:
        return False
    fits: bool = scalar.minimum <= value <= scalar.maximum
    return fits


def _given(value: Any, kind: Kind) -> str:
    if isinstance(kind, PythonNumber):
        return f"the Python {type(value).__name__} {value!r}"
    return in_words(kind)


def in_words(kind: Kind | Stated) -> str:
    """A kind as a reader would say it: "a 2-D array of float32", "a scalar of int32"."""
    match kind:
        case ArrayInfo() | StatedArray():
            axes = "an" if kind.ndim is None else f"a {kind.ndim}-D"
            words = f"{axes} array"
            element = element_of(kind) if isinstance(kind, ArrayInfo) else kind.element
            variant = variant_name(element) if isinstance(element, Record) else None
            if variant is not None:
                words += f" of {variant}"
            elif isinstance(element, Record):
                words += f" of records ({', '.join(name for name, _ in element.fields)})"
                words += " in columns" if isinstance(kind, ArrayInfo) and kind.columns else ""
            elif element is not None:
                words += f" of {element.value}"
            layout = _LAYOUT_WORDS.get(kind.layout or "")
            return f"{words}, {layout}" if layout and isinstance(kind, StatedArray) else words
        case Record() if is_variant(kind):
            return f"a value of {variant_name(kind)}"
        case Record():
            return f"a record ({', '.join(name for name, _ in kind.fields)})"
        case Scalar() | Pair():
            return f"a scalar of {kind.value}"
        case PythonNumber():
            return f"a Python {kind.value}"
        case None:
            return "None"
        case _:
            assert_never(kind)


_LAYOUT_WORDS = {"C": "C-contiguous", "F": "Fortran-contiguous"}


# --- filling parameters ---------------------------------------------------------------------------


class Sizes(NamedTuple):
    """What a launch has beside its arguments: dynamic shared bytes, and threads along x."""

    shared_bytes: int
    threads: int


Filler = Callable[[Arguments, Sequence[Any], Sizes], Any]
"""Gives the value of a parameter from the arguments, the regions' buffers and the sizes."""


def fillers(params: Sequence[ParamDecl]) -> tuple[Filler, ...]:
    """For each parameter the function that gives its value at a launch."""
    return tuple(map(_filler, params))


def _filler(param: ParamDecl) -> Filler:
    role = param.role
    if isinstance(role, ReportBuffer):
        return lambda arguments, buffers, sizes: buffers[-1]  # behind those of the regions
    if param.array is not None:
        assert isinstance(role, UserArgument), "an array is filled by the user's argument"
        position = role.argument
        if role.column is not None:
            return _column(position, role.column)
        return lambda arguments, buffers, sizes: buffers[arguments.placement(position).region]
    assert isinstance(param.var.type, Scalar), "a parameter is an array or a scalar"
    convert = converter(param.var.type)
    read = _reader(role)
    return lambda arguments, buffers, sizes: convert(read(arguments, sizes))


def _column(position: int, column: int) -> Filler:
    def fill(arguments: Arguments, buffers: Sequence[Any], sizes: Sizes) -> Any:
        found = arguments.placement(arguments.columns[position].first + column)
        return buffers[found.region]

    return fill


def _reader(role: Role) -> Callable[[Arguments, Sizes], Any]:
    match role:
        case UserArgument(argument=position):
            return lambda arguments, sizes: arguments.values[position]
        case PartOf(argument=position, part=0):
            return lambda arguments, sizes: arguments.values[position].real
        case PartOf(argument=position):
            return lambda arguments, sizes: arguments.values[position].imag
        case NumberOf(argument=position, number=number):
            return lambda arguments, sizes: arguments.values[position][number]
        case LengthOf(argument=position):
            return lambda arguments, sizes: arguments.placement(position).length
        case OffsetOf(argument=position):
            return lambda arguments, sizes: arguments.placement(position).offset
        case ShapeOf(argument=position, axis=axis):
            return lambda arguments, sizes: arguments.placement(position).shape[axis]
        case StrideOf(argument=position, axis=axis):
            return lambda arguments, sizes: arguments.placement(position).strides[axis]
        case DynamicSharedLength():
            return lambda arguments, sizes: sizes.shared_bytes
        case Threads():
            return lambda arguments, sizes: sizes.threads
        case ReportBuffer():
            raise AssertionError("the report is a buffer")
        case _:
            assert_never(role)


def converter(scalar: Scalar) -> Callable[[Any], np.generic]:
    """From a number to the NumPy scalar of a type; a float beyond float32 becomes infinite."""
    make: Callable[[Any], np.generic] = dtype_of(scalar).type
    if scalar is not Scalar.FLOAT32:
        return make

    def rounded(value: Any) -> np.generic:
        with np.errstate(over="ignore"):
            return make(value)

    return rounded
