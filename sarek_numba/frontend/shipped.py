"""Kernels and functions as pickles, for other processes.

What a module of this package's user has is found there by its name. What it has not (definitions in
functions, in notebooks, in the program's own file) is sent whole: its bytecode, what it reads
outside of itself, and the text that it was written in, since the compiler reads that too.
"""

from __future__ import annotations

import io
import linecache
import marshal
import sys
from contextvars import ContextVar
from functools import cache, reduce
from hashlib import sha256
from importlib import import_module
from types import CodeType
from typing import Any

_is_inside: ContextVar[bool] = ContextVar("sarek_is_shipping", default=False)
_PROGRAMS = ("__main__", "__mp_main__")  # another process has another one


def reduced(value: Any, remade: Any) -> Any:
    """What `value.__reduce__` gives: a name, or all of it, made anew as `remade` says.

    `value` has a module and a qualified name; `remade` is as of `object.__reduce__`.
    """
    if _is_named(value):
        return _named, (value.__module__, value.__qualname__)
    if _is_inside.get():  # one pickle has functions that know each other
        return remade
    return loads, (dumps(value),)


def _is_named(value: Any) -> bool:
    """Whether a module has it by its name."""
    module = sys.modules.get(value.__module__)
    if module is None or value.__module__ in _PROGRAMS:
        return False
    try:
        return reduce(getattr, value.__qualname__.split("."), module) is value
    except AttributeError:
        return False


def _named(module: str, name: str) -> Any:
    return reduce(getattr, name.split("."), import_module(module))


def dumps(value: Any) -> bytes:
    """A pickle of it with the functions that it needs, where these are in no module."""
    file = io.BytesIO()
    token = _is_inside.set(True)
    try:
        _pickler()(file).dump(value)
    finally:
        _is_inside.reset(token)
    return file.getvalue()


def loads(data: bytes) -> Any:
    """What `dumps` was given."""
    import pickle

    return pickle.loads(data)


@cache
def _pickler() -> Any:
    from numba import cloudpickle  # loads Numba

    class Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]  # it has no types
        """Has code remember its text."""

        def __init__(self, file: Any) -> None:
            super().__init__(file)
            self._texts: dict[str, str] = {}

        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, CodeType):
                file = value.co_filename
                text = self._texts.setdefault(file, "".join(linecache.getlines(file)))
                return _code, (marshal.dumps(value), text)
            return super().reducer_override(value)

    return Pickler


def _code(data: bytes, text: str) -> CodeType:
    """Code, whose text is under the name of its file, or, if another is there, under another."""
    code: CodeType = marshal.loads(data)
    if not text:
        return code
    file = code.co_filename
    there = "".join(linecache.getlines(file))
    if there != text and there:
        file = f"{file} ({sha256(text.encode()).hexdigest()[:8]})"
        code = _moved(code, file)
        there = "".join(linecache.getlines(file))
    if not there:
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    return code


def _moved(code: CodeType, file: str) -> CodeType:
    inner = (_moved(c, file) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_filename=file, co_consts=tuple(inner))
