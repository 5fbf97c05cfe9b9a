"""What `@sarek.kernel(...)` says of a kernel beside its text: the hints, checked where it is made.

One kernel is compiled at a time (`compile` holds a lock); while it is, its hints are `current()`.
They hold for the device functions that it calls too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, fields
from types import FunctionType
from typing import Any

from sarek_numba.errors import Diagnostic, UnsupportedConstruct


@dataclass(frozen=True, slots=True)
class Hints:
    """The hints of one kernel.

    Without `wraparound` no index counts from the end. `bounds="clamp"` moves an index that is out
    of range to the nearest that is in it. `strict` refuses a store that can lose information. No
    launch has more than `max_threads` threads a block. With `restrict` no array that the kernel
    writes overlaps another argument.
    """

    wraparound: bool = True
    bounds: str | None = None
    strict: bool = False
    max_threads: int | None = None
    restrict: bool = False


NONE = Hints()
NAMES = tuple(field.name for field in fields(Hints))
_current: ContextVar[Hints] = ContextVar("sarek_hints", default=NONE)


def current() -> Hints:
    """The hints of the kernel that is being compiled."""
    return _current.get()


@contextlib.contextmanager
def compiling(hints: Hints) -> Iterator[None]:
    """Let `hints` be those of the kernel that is compiled within."""
    token = _current.set(hints)
    try:
        yield
    finally:
        _current.reset(token)


def read_hints(options: Mapping[str, Any]) -> Hints:
    """The hints that options of `@sarek.kernel` give. Raises UnsupportedConstruct."""
    for name, value in options.items():
        if name in ("wraparound", "strict", "restrict") and not isinstance(value, bool):
            raise _refused(name, "True or False", value, f"write {name}={_changed(name)}")
        if name == "bounds" and value not in (None, "clamp"):
            hint = 'write bounds="clamp", or leave it out'
            raise _refused(name, "'clamp' or None", value, hint)
        if name == "max_threads" and value is not None and not _is_count(value):
            hint = "write the most threads of a block that any launch has"
            raise _refused(name, "a positive int or None", value, hint)
    return Hints(**options)


def refuse_options(options: Mapping[str, Any]) -> None:
    """Refuse what is left of the options. Raises UnsupportedConstruct."""
    for option in options:
        message, hint = f"@sarek.kernel has no option '{option}'", "write @sarek.kernel"
        raise UnsupportedConstruct(Diagnostic(UnsupportedConstruct, message, None, hint))


def python_function(given: Any) -> FunctionType:
    """The function that `@sarek.kernel` decorates. Raises UnsupportedConstruct."""
    plain = given.__func__ if isinstance(given, staticmethod) else given
    if isinstance(plain, FunctionType):
        return plain
    raise UnsupportedConstruct(
        Diagnostic(
            UnsupportedConstruct,
            f"@sarek.kernel takes a Python function, not a {type(given).__name__}",
            None,
            "define it with def",
        )
    )


def _changed(name: str) -> bool:
    """The value of a bool hint that is not its default."""
    return not getattr(NONE, name)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _refused(name: str, wanted: str, value: Any, hint: str) -> UnsupportedConstruct:
    message = f"@sarek.kernel({name}=...) is {wanted}, not {value!r}"
    return UnsupportedConstruct(Diagnostic(UnsupportedConstruct, message, None, hint))
