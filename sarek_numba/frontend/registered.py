"""`sarek.register_type`: a Python class as the elements of arrays of records. Imports no Numba.

A kernel sees records. On the host, a `TypedArray` gives and takes instances of the class: its
accessors make an instance of a record, and say what a record holds of an instance.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sarek_numba.frontend.language import DType, RecordConstructor
from sarek_numba.frontend.texts import place, refused
from sarek_numba.span import Span

Records: TypeAlias = npt.NDArray[Any]
Get = Callable[[Any], Any]  # a record to an instance
Parts: TypeAlias = "dict[str, RegisteredType]"  # fields that are registered themselves
Set = Callable[[Any], Any]  # an instance to a record: a tuple, or a dict of its fields


class RegisteredType(RecordConstructor):
    """A class with the dtype of its records; called in Python, it is the class."""

    def __init__(
        self,
        python_class: type,
        dtype: np.dtype[Any],
        parts: Parts,
        get: Get | None,
        set: Set | None,
    ) -> None:
        super().__init__(dtype)
        self.python_class = python_class
        self.parts = parts
        self.get = get
        self.set = set
        self.__doc__ = python_class.__doc__

    def __call__(self, *values: Any, **named: Any) -> Any:
        """An instance of the class; in a kernel, a record of the fields."""
        return self.python_class(*values, **named)

    def given(self, values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """What a call in a kernel gives each field: all but arrays, whose elements are stored."""
        fields = super().given(values, named)
        for name in self.dtype.names or ():
            if name not in fields and self.dtype[name].subdtype is None:
                raise TypeError(f"{self!r} lacks its field {name!r}")
        return fields

    # --- the host ---------------------------------------------------------------------------------

    def array(self, items: int | Iterable[Any]) -> TypedArray:
        """A new array of so many records that are zero, or of the instances given."""
        if isinstance(items, int):
            return self.view(np.zeros(items, self.dtype))
        instances = list(items)
        made = self.view(np.zeros(len(instances), self.dtype))
        for index, instance in enumerate(instances):
            made[index] = instance
        return made

    def view(self, records: Records) -> TypedArray:
        """An array of records as one of instances, in the same memory."""
        if not isinstance(records, np.ndarray) or records.dtype != self.dtype:
            given = records.dtype if isinstance(records, np.ndarray) else type(records).__name__
            raise TypeError(f"{self!r} views arrays of {self.dtype}, not {given}")
        made = records.view(TypedArray)
        made.registered = self
        return made

    def instance_of(self, record: Any) -> Any:
        """The instance that a record stands for."""
        if self.get is not None:
            return self.get(record)
        fields = {name: record[name] for name in self.dtype.names or ()}
        for name, part in self.parts.items():
            fields[name] = part.instance_of(fields[name])
        return self.python_class(**fields)

    def record_from(self, instance: Any) -> Any:
        """The record that stands for an instance."""
        if not isinstance(instance, self.python_class):
            raise TypeError(f"an element is a {self.name}, not {instance!r}")
        held = self.set(instance) if self.set is not None else self._fields_of(instance)
        if isinstance(held, dict):
            held = tuple(held[name] for name in self.dtype.names or ())
        record = np.zeros((), self.dtype)
        record[()] = held
        return record[()]

    def _fields_of(self, instance: Any) -> dict[str, Any]:
        fields = {name: getattr(instance, name) for name in self.dtype.names or ()}
        for name, part in self.parts.items():
            fields[name] = part.record_from(fields[name])
        return fields

    @property
    def name(self) -> str:
        return self.python_class.__name__

    def __repr__(self) -> str:
        return self.name


class TypedArray(np.ndarray[Any, Any]):
    """An array of records whose elements are instances of a class; kernels take it as it is."""

    registered: RegisteredType | None = None

    def __array_finalize__(self, base: Any) -> None:
        self.registered = getattr(base, "registered", None)

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        kind = self.registered
        if kind is None or found.dtype != kind.dtype:  # a field of the records
            return np.asarray(found) if isinstance(found, np.ndarray) else found
        return kind.instance_of(found) if isinstance(found, np.void) else found

    def __setitem__(self, index: Any, value: Any) -> None:
        kind = self.registered
        if kind is not None and np.asarray(self)[index].dtype == kind.dtype:
            if isinstance(value, list):
                value = kind.array(value)
            elif not isinstance(value, np.ndarray | np.void | tuple):
                value = kind.record_from(value)
        super().__setitem__(index, value)

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"{self.registered!r}.view({np.asarray(self)!r})"

    __str__ = __repr__


_registered: dict[type, RegisteredType] = {}


def registered(value: Any) -> RecordConstructor | None:
    """The record type that an object is in a kernel, if it is one."""
    if isinstance(value, RecordConstructor):
        return value
    return _registered.get(value) if isinstance(value, type) else None


def register_type(
    python_class: Any, dtype: Any = None, *, get: Get | None = None, set: Set | None = None
) -> RegisteredType:
    """Make a class the type of records: `Ball = sarek.register_type(Ball, dtype)`.

    Without a dtype the class's annotations state the fields, so that it can stand as a decorator.
    `get` makes an instance of a record, `set` gives the record of an instance as a tuple or a dict;
    without them the class is called with the fields as keywords, and its attributes are read.
    """
    span = place("register_type")
    if not isinstance(python_class, type):
        raise refused(
            f"sarek.register_type takes a class, not {python_class!r}", span, "define it with class"
        )
    name = python_class.__name__
    stated = {} if dtype is not None else _stated(python_class, span)
    parts = {field: k for field, k in stated.items() if isinstance(k, RegisteredType)}
    kind = _checked(name, _dtype_of(name, stated, span) if dtype is None else dtype, span)
    for role, accessor in (("get", get), ("set", set)):
        if accessor is not None and not callable(accessor):
            hint = f"give {role}=f, or leave it out"
            raise refused(f"{role}={accessor!r} is no function", span, hint)
    if get is None:
        _check_constructor(python_class, kind, span)
    known = _registered.get(python_class)
    if known is not None:
        if (known.dtype, known.get, known.set) == (kind, get, set):
            return known
        raise refused(f"{name} is registered already", span, "register a class once")
    made = _registered[python_class] = RegisteredType(python_class, kind, parts, get, set)
    return made


def _stated(python_class: type, span: Span | None) -> dict[str, Any]:
    """The annotations of a class."""
    try:
        return inspect.get_annotations(python_class, eval_str=True)
    except (NameError, AttributeError, SyntaxError) as error:
        message = f"an annotation of {python_class.__name__} cannot be read: {error}"
        raise refused(message, span, "give a dtype") from None


def _dtype_of(name: str, stated: dict[str, Any], span: Span | None) -> np.dtype[Any]:
    """The dtype of the fields that a class states."""
    if not stated:
        raise refused(f"{name} states no fields", span, "annotate them, or give a dtype")
    fields = [(field, _field_type(name, field, kind, span)) for field, kind in stated.items()]
    return np.dtype(fields, align=True)


def _checked(name: str, dtype: Any, span: Span | None) -> np.dtype[Any]:
    """A dtype that arrays of records can have."""
    from sarek_numba.ir.records import InvalidRecord, record_of

    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        raise refused(f"{dtype!r} is no dtype", span, "write numpy.dtype([...])") from None
    if found.names is None:
        raise refused(f"{found} is no structured dtype", span, "write numpy.dtype([...])")
    try:
        record_of(found)
    except InvalidRecord as error:
        raise refused(f"{name}: {error.message}", span, error.hint) from None
    return found


def _field_type(name: str, field: str, kind: Any, span: Span | None) -> Any:
    """The dtype that an annotation of a field states."""
    own = registered(kind)
    if own is not None:
        return own.dtype
    if isinstance(kind, DType):
        return kind.dtype
    if isinstance(kind, np.dtype) or (isinstance(kind, type) and issubclass(kind, np.generic)):
        return np.dtype(kind)
    raise refused(
        f"the field {field!r} of {name} is annotated with {kind!r}, no type of a kernel",
        span,
        "write it as sarek.float32, or give a dtype",
    )


def _check_constructor(python_class: type, dtype: np.dtype[Any], span: Span | None) -> None:
    """The class takes the fields as keywords, and in the same order where it takes positions."""
    names = dtype.names or ()
    shown = f"{python_class.__name__}({', '.join(names)})"
    try:
        signature = inspect.signature(python_class)
        bound = signature.bind(**dict.fromkeys(names))
    except (TypeError, ValueError):
        raise refused(
            f"the class cannot be called as {shown}, by the fields of its records",
            span,
            "give get=f, a function of a record that makes an instance",
        ) from None
    order = [name for name in bound.arguments if name in names]
    if order and order != list(names):
        raise refused(
            f"the class takes its arguments in another order than {shown}",
            span,
            "write the fields of the dtype in the order of the class",
        )
