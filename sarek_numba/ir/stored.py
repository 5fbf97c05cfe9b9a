"""IR as plain data for JSON, with spans: what the cache on disk keeps of a kernel.

The text form has no spans, which findings need. In: nodes, as tuples of them if need be. Out: a
list of rows, inner nodes first, the last one the whole. A row is the name of a class and the
values of its fields in order, that of an enumeration and the name of a member, or "" and the items
of a tuple. A value is None, a bool, an int or a str as it is, and [n] for row n. A node that is met
twice is one row, so that one object stays one. Files of spans are numbers: places in a list that
reader and writer have, so that a program may move.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any

from sarek_numba.ir import expressions, kernels, operators, statements, types, values
from sarek_numba.ir.depth import deep_recursion
from sarek_numba.span import Span

Row = list[Any]

_MODULES = (expressions, kernels, operators, statements, types, values)


class NotStorable(Exception):
    """Something that is no plain data, such as a native function, or a span of a foreign file."""


class NotReadable(Exception):
    """Rows that this version does not understand."""


def _classes() -> dict[str, type]:
    found: dict[str, type] = {}
    for module in _MODULES:
        for name, value in vars(module).items():
            plain = isinstance(value, type) and value.__module__ == module.__name__
            if plain and (dataclasses.is_dataclass(value) or issubclass(value, enum.Enum)):
                found[name] = value
    return found


_CLASSES = _classes()
_FIELDS = {
    name: tuple(field.name for field in dataclasses.fields(kind))
    for name, kind in _CLASSES.items()
    if dataclasses.is_dataclass(kind)
}


def encode(whole: object, files: Sequence[str]) -> list[Row]:
    """The rows of a node or a tuple of nodes. Raises NotStorable."""
    writer = _Writer(files)
    with deep_recursion():
        writer.value(whole)
    return writer.rows


class _Writer:
    def __init__(self, files: Sequence[str]) -> None:
        self.rows: list[Row] = []
        self._files = {file: number for number, file in enumerate(files)}
        self._known: dict[int, list[int]] = {}
        self._spans: dict[Span, list[int]] = {}

    def value(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, str):
            return value
        known = self._known.get(id(value))
        if known is not None:
            return known
        if isinstance(value, Span):
            return self._span(value)
        row = self._row(value)
        reference = self._known[id(value)] = [len(self.rows)]
        self.rows.append(row)
        return reference

    def _row(self, value: Any) -> Row:
        name = type(value).__name__
        if type(value) is tuple:
            return ["", *map(self.value, value)]
        if _CLASSES.get(name) is not type(value):
            raise NotStorable(f"a {name}")
        if isinstance(value, enum.Enum):
            return [name, value.name]
        return [name, *(self.value(getattr(value, field)) for field in _FIELDS[name])]

    def _span(self, span: Span) -> list[int]:
        known = self._spans.get(span)
        if known is None:
            if span.file not in self._files:
                raise NotStorable(f"a span of {span.file}")
            known = self._spans[span] = [len(self.rows)]
            place = (span.line, span.column, span.end_line, span.end_column)
            self.rows.append(["Span", self._files[span.file], *place])
        return known


def decode(rows: Sequence[Row], files: Sequence[str]) -> Any:
    """What `encode` was given. Raises NotReadable."""
    made: list[Any] = []
    try:
        for name, *held in rows:
            given = [made[each[0]] if type(each) is list else each for each in held]
            made.append(_made(name, given, files))
        return made[-1]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise NotReadable(str(error)) from error


def _made(name: str, given: list[Any], files: Sequence[str]) -> Any:
    if name == "":
        return tuple(given)
    if name == "Span":
        file, *place = given
        return Span(files[file], *place)
    kind = _CLASSES[name]
    if issubclass(kind, enum.Enum):
        return kind[given[0]]
    return kind(**dict(zip(_FIELDS[name], given, strict=True)))
