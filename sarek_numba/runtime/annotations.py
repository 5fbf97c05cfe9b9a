"""What the annotations of a kernel state of its parameters.

Taken are Sarek's types (`sarek.float32`, `sarek.float32[:, ::1]`), NumPy's scalar types, dtypes
and arrays (`numpy.ndarray`, `numpy.typing.NDArray[numpy.float32]`), and `bool`, `int`, `float`,
`complex`. Python's `int`, `float` and `complex` leave a number weak and also take NumPy scalars of
their kind; `Any` says nothing. Anything else is refused: no annotation is ignored. A kernel
returns nothing, so a result may be stated as `None` alone.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Sequence
from types import FunctionType, GenericAlias
from typing import Any

import numpy as np

from sarek_numba.errors import Diagnostic, UnknownName, UnsupportedConstruct
from sarek_numba.frontend.language import ArrayAnnotation, DType, RecordConstructor
from sarek_numba.frontend.registered import registered
from sarek_numba.ir.records import InvalidRecord, record_of
from sarek_numba.ir.types import Pair, Record, Scalar
from sarek_numba.runtime.arguments import ELEMENTS, PythonNumber, Stated, StatedArray
from sarek_numba.runtime.signature import place_of

_PYTHON: dict[type, Stated] = {
    bool: Scalar.BOOL,
    int: PythonNumber.INT,
    float: PythonNumber.FLOAT,
    complex: PythonNumber.COMPLEX,
}


def stated_of(function: FunctionType, names: Sequence[str]) -> tuple[Stated, ...]:
    """What is stated of each parameter. Raises UnsupportedConstruct, UnknownName."""
    try:
        found = inspect.get_annotations(function, eval_str=True)
    except (NameError, AttributeError, SyntaxError) as error:
        raise UnknownName(
            Diagnostic(
                UnknownName,
                f"an annotation of kernel '{function.__name__}' cannot be read: {error}",
                place_of(function),
            )
        ) from None
    _check_result(function, found.get("return"))
    return tuple(
        None if found.get(name, Any) is Any else read_annotation(function, name, found[name])
        for name in names
    )


def _check_result(function: FunctionType, annotation: Any) -> None:
    if annotation is None or annotation is Any:
        return
    raise UnsupportedConstruct(
        Diagnostic(
            UnsupportedConstruct,
            f"kernel '{function.__name__}' states the result {_name(annotation)}; a kernel returns "
            "nothing",
            place_of(function),
            hint="store results in an array that is an argument, and write -> None or nothing",
        )
    )


def _name(annotation: Any) -> str:
    return annotation.__name__ if type(annotation) is type else repr(annotation)


def read_annotation(function: FunctionType, name: str, annotation: Any) -> Stated:
    """What one annotation states, or what a type given to `k.ir(...)` stands for."""
    stated = _read(annotation)
    if stated is None:
        raise UnsupportedConstruct(
            Diagnostic(
                UnsupportedConstruct,
                f"the type {annotation!r} of parameter '{name}' of kernel "
                f"'{function.__name__}' is no type of an argument",
                place_of(function),
                hint="write it as sarek.float32 or sarek.float32[:]",
            )
        )
    return stated


def _read(annotation: Any) -> Stated:
    annotation = _without_aliases(annotation)
    match annotation:
        case ArrayAnnotation(element=element, ndim=ndim, layout=layout):
            whole = element.scalar if isinstance(element, RecordConstructor) else None
            known = whole or ELEMENTS.get(element.dtype)
            return StatedArray(known, ndim, None if layout == "A" else layout)
        case RecordConstructor():
            record: Record = annotation.scalar
            return record
        case DType(dtype=dtype):
            return ELEMENTS.get(dtype)
        case np.dtype():
            return _record(annotation) if annotation.names else ELEMENTS.get(annotation)
        case GenericAlias() if typing.get_origin(annotation) is np.ndarray:
            return _read_ndarray(annotation)
        case type() if (record_type := registered(annotation)) is not None:
            return _read(record_type)
        case type() if annotation in _PYTHON:
            return _PYTHON[annotation]
        case type() if issubclass(annotation, np.generic):
            return _read_numpy_scalar(annotation)
        case type() if annotation is np.ndarray:
            return StatedArray()
    return None


# What `type X = …` makes, from CPython 3.12; `numpy.typing.NDArray` is one there.
_ALIAS: Any = getattr(typing, "TypeAliasType", None)


def _without_aliases(annotation: Any) -> Any:
    """What the name of a type, or such a name with parameters, stands for."""
    while True:
        origin: Any = typing.get_origin(annotation)
        if type(annotation) is _ALIAS:
            annotation = annotation.__value__
        elif type(origin) is _ALIAS:
            given = dict(zip(origin.__type_params__, typing.get_args(annotation), strict=True))
            value = origin.__value__
            annotation = value[tuple(given[each] for each in value.__parameters__)]
        else:
            return annotation


def _record(dtype: np.dtype[Any]) -> Record | None:
    try:
        return record_of(dtype)
    except InvalidRecord:
        return None


def _read_numpy_scalar(scalar: type[np.generic]) -> Stated:
    try:
        return ELEMENTS.get(np.dtype(scalar))
    except TypeError:  # an abstract one, such as numpy.floating
        return None


def _read_ndarray(annotation: Any) -> Stated:
    """`numpy.typing.NDArray[T]` is `numpy.ndarray[tuple[Any, ...], numpy.dtype[T]]`."""
    inner = typing.get_args(typing.get_args(annotation)[-1])
    element = inner[0] if inner else Any
    if isinstance(element, type) and issubclass(element, np.generic):
        scalar = _read_numpy_scalar(element)
        return StatedArray(scalar) if isinstance(scalar, Scalar | Pair) else None
    return StatedArray()
