"""What a function is made of, as a digest that another process can compute too.

The front end's result depends on a function's code and text, on what it takes from its surroundings
and on all functions that it calls. `content_of` digests exactly that: values by their bits,
functions by their own content, what Python, NumPy and this package define by its name. It looks for
names in the syntax tree and in the bytecode, for inference reads both. A name that is read may turn
out to be of no use, so equal digests mean equal results, and different ones need not mean
different results.

What has no content that could be told from another's, an object of a user's class for one, raises
`Undigestable`: then nothing is kept of the kernel.
"""

from __future__ import annotations

import ast
import builtins
import dis
import enum
import hashlib
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, EllipsisType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from sarek_numba.frontend import language, mathematics, matrices
from sarek_numba.frontend.functions import DeviceFunction
from sarek_numba.frontend.intrinsics import RegisteredIntrinsic
from sarek_numba.frontend.language import RecordConstructor
from sarek_numba.frontend.matrices import Config
from sarek_numba.frontend.registered import registered
from sarek_numba.frontend.texts import InlineSource
from sarek_numba.frontend.tree import children, parse_with_text
from sarek_numba.frontend.variants import CaseType, VariantValue

Paths = dict[str, set[tuple[str, ...]]]

# What these define is known by its name and by their versions, which are in the key beside this.
_FIXED = frozenset(
    {"math", "cmath", "numpy", "builtins", "operator", "_operator", "sarek_numba"}
)  # fmt: skip
_BARE = frozenset({"math", "cmath", "numpy", "builtins", "operator"})  # modules held by a variable
_LARGEST_ARRAY = 1 << 24  # bytes: reading more takes longer than compiling


class Undigestable(Exception):
    """What has no content that another process could know again, and why."""


@dataclass(frozen=True, slots=True)
class Content:
    """The digest of a function, and all functions it was made of, itself first."""

    digest: bytes
    functions: tuple[FunctionType, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the functions are written in, each once."""
        return tuple(dict.fromkeys(each.__code__.co_filename for each in self.functions))


def content_of(function: FunctionType) -> Content:
    """The content of a function and all that it reaches, as it is now. Raises Undigestable."""
    digester = _Digester()
    digester.function(function)
    return Content(digester.hash.digest(), tuple(digester.functions))


class _Digester:
    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.functions: list[FunctionType] = []
        self._numbers: dict[FunctionType, int] = {}
        self._words = _own_words()

    def _put(self, *parts: str | int | bytes | None) -> None:
        for part in parts:
            kind = type(part).__name__[0]
            raw = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
            self.hash.update(f"{kind}{len(raw)}:".encode())
            self.hash.update(raw)

    # --- functions --------------------------------------------------------------------------------

    def function(self, function: FunctionType) -> None:
        known = self._numbers.get(function)
        if known is not None:
            self._put("function again", known)
            return
        self._numbers[function] = len(self.functions)
        self.functions.append(function)
        tree, text = parse_with_text(function)
        self._put("function", function.__name__, text)
        self._code(function.__code__)
        self.value(function.__defaults__)
        self.value(tuple(sorted((function.__kwdefaults__ or {}).items())))
        paths = _names_read(function, tree)
        for name in sorted(paths):
            for path in sorted(paths[name]):
                self._put("name", name, len(path), *path)
                self._captured(function, name, path)

    def _code(self, code: CodeType) -> None:
        self._put("code", code.co_name, code.co_code, code.co_linetable, code.co_exceptiontable)
        self._put(code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        self._put(code.co_firstlineno)
        for names in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars):
            self._put(len(names), *names)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._code(constant)
            elif isinstance(constant, frozenset):
                self._put("set", *sorted(map(repr, constant)))
            else:
                self.value(constant)

    def _captured(self, function: FunctionType, name: str, path: tuple[str, ...]) -> None:
        code = function.__code__
        if name in code.co_freevars:
            cell = (function.__closure__ or ())[code.co_freevars.index(name)]
            try:
                value = cell.cell_contents
            except ValueError:
                self._put("nothing")
                return
        elif name in function.__globals__:
            value = function.__globals__[name]
        elif hasattr(builtins, name):
            value = getattr(builtins, name)
        else:
            self._put("nothing")
            return
        for number, attribute in enumerate(path):
            if id(value) in self._words or not _is_open(value):
                self._put("attributes", *path[number:])
                break  # they follow from the whole value
            try:
                value = getattr(value, attribute)
            except AttributeError:
                self._put("nothing")
                return
        self.value(value)

    # --- values -----------------------------------------------------------------------------------

    def value(self, value: Any) -> None:
        """Digest a value: its type and its bits. Raises Undigestable."""
        kind = type(value)
        match value:
            case _ if id(value) in self._words:
                self._put("word", self._words[id(value)])
            case enum.Enum():
                self._put("member", kind.__module__, kind.__qualname__, value.name)
                self.value(value.value)
            case None | EllipsisType() | bool() | int() | str() | bytes() if kind in _PLAIN:
                self._put(kind.__name__, value if isinstance(value, (str, bytes)) else repr(value))
            case float() if kind is float:
                self._put("float", np.float64(value).tobytes())
            case complex() if kind is complex:
                self._put("complex", np.complex128(value).tobytes())
            case slice():
                self._put("slice")
                self._values((value.start, value.stop, value.step))
            case tuple():
                self._tuple(value)
            case VariantValue():
                self._put("value of a variant", kind.index)
                self._array(np.asarray(value))
            case np.ndarray() | np.generic():
                self._put("array" if isinstance(value, np.ndarray) else "scalar")
                self._array(np.asarray(value))
            case np.dtype():
                self._put("dtype")
                self._dtype(value)
            case _:
                self._object(value)

    def _values(self, values: tuple[Any, ...]) -> None:
        self._put(len(values))
        for each in values:
            self.value(each)

    def _tuple(self, value: tuple[Any, ...]) -> None:
        if type(value) is not tuple:
            self._tuple_class(type(value))
        else:
            self._put("tuple")
        self._values(value)

    def _tuple_class(self, kind: Any) -> None:
        fields = getattr(kind, "_fields", None)
        if fields is None or kind.__bases__ != (tuple,):
            raise Undigestable(f"the class {kind.__qualname__}")
        self._put("named tuple", kind.__name__, len(fields), *fields)
        self.value(tuple(sorted(kind._field_defaults.items())))

    def _array(self, array: Any) -> None:
        self._dtype(array.dtype)
        self._put(*map(int, array.shape), array.flags.writeable)
        if array.nbytes > _LARGEST_ARRAY:
            raise Undigestable(f"an array of {array.nbytes} bytes")
        self._put(array.tobytes())

    def _dtype(self, dtype: np.dtype[Any]) -> None:
        if dtype.hasobject:
            raise Undigestable("an array of Python objects")
        if dtype.subdtype is not None:
            base, shape = dtype.subdtype
            self._put("several", len(shape), *shape)
            self._dtype(base)
        elif dtype.names is None:
            self._put(dtype.str, dtype.name, dtype.type.__module__)
        else:
            fields: Any = dtype.fields
            self._put("record", dtype.itemsize, dtype.isalignedstruct, len(dtype.names))
            for name in dtype.names:
                inner, offset, *title = fields[name]
                self._put(name, offset, *map(str, title))
                self._dtype(inner)

    # --- objects ----------------------------------------------------------------------------------

    def _object(self, value: Any) -> None:
        kind = type(value)
        own = kind.__module__.partition(".")[0] == "sarek_numba"
        if isinstance(value, DeviceFunction) and own:
            self._put("device function", kind.__qualname__, value.name)
            self._device_function(value)
        elif isinstance(value, RecordConstructor) and own:
            self._put("record type", kind.__qualname__, str(getattr(value, "name", None)))
            self._dtype(value.dtype)
        elif isinstance(value, Config):
            self._put("configuration", repr(value))
        elif isinstance(value, CaseType) and hasattr(value, "variant"):
            self._put("case", value.variant.name, value.index)
            self._dtype(value.variant.dtype)
        elif isinstance(value, type) and registered(value) is not None:
            self.value(registered(value))
        elif isinstance(value, type) and issubclass(value, tuple) and value is not tuple:
            self._tuple_class(value)
        elif isinstance(value, ModuleType) and value.__name__.partition(".")[0] in _BARE:
            self._put("module", value.__name__)
        elif isinstance(value, MethodType) and id(value.__self__) in self._words:
            self._put("method", self._words[id(value.__self__)], value.__name__)
        elif (found := _name_of(value)) is not None:
            self._put("named", *found)
        elif (options := _numba_options(value)) is not None:
            self._put("numba", options)
            self.function(value.py_func)
        else:
            raise Undigestable(f"an object of class {kind.__qualname__}")

    def _device_function(self, value: DeviceFunction) -> None:
        self._put(value.inline, value.inline_depth)
        if isinstance(value, InlineSource):
            span = value.span
            self._put(*(None,) if span is None else (span.line, span.column, span.end_column))
            self._put(len(value.texts), *(part for text in value.texts for part in text))
        if isinstance(value, RegisteredIntrinsic):
            self._put(len(value.signatures), *map(str, value.signatures))
        self.function(value.function)


_PLAIN = frozenset({type(None), EllipsisType, bool, int, str, bytes})


_LANGUAGE = (language.__name__, matrices.__name__)
_OF_USERS = (RecordConstructor, Config)


def _own_words() -> dict[int, str]:
    """The objects of the language that are known by name, but for what users added."""
    return {
        id(value): f"{module.__name__}.{name}"
        for module in (language, matrices, mathematics)
        for name, value in vars(module).items()
        if type(value).__module__ in _LANGUAGE and not isinstance(value, _OF_USERS)
    }


def _is_open(value: Any) -> bool:
    """Whether inference reads attributes of an object that are objects of their own."""
    return isinstance(value, (ModuleType, type, enum.Enum))


def _name_of(value: Any) -> tuple[str, str] | None:
    """Module and name of what Python, NumPy or this package defines."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if isinstance(value, ModuleType) or not isinstance(name, str):
        return None
    for module in (getattr(value, "__module__", None), "numpy"):
        if not isinstance(module, str) or module.partition(".")[0] not in _FIXED:
            continue
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is value:
            return module, name
    return None


def _numba_options(value: Any) -> str | None:
    """The options of a function of `numba.njit`; None if it is none."""
    module = sys.modules.get("numba.core.dispatcher")
    if module is None or not isinstance(value, module.Dispatcher):
        return None
    options = sorted(value.targetoptions.items())
    if any(type(held) not in _PLAIN for _, held in options):
        raise Undigestable(f"the options of {value}")
    signatures = bool(value.nopython_signatures and not value._can_compile)
    return repr((options, signatures))


# --- names ----------------------------------------------------------------------------------------


def _names_read(function: FunctionType, tree: Any) -> Paths:
    """The names that a function may read around itself, with the attributes read from each."""
    found: Paths = defaultdict(set)
    code = function.__code__
    own = {*code.co_varnames, *code.co_cellvars} - {*code.co_freevars}
    for name, path in (*_names_in_code(code), *_names_in_tree(tree)):
        if name.isidentifier() and name not in own:  # test runners put others into assertions
            found[name].add(path)
    return found


def _names_in_code(code: CodeType) -> Iterator[tuple[str, tuple[str, ...]]]:
    name: str | None = None
    path: list[str] = []
    for instruction in dis.get_instructions(code):
        operation = instruction.opname
        if operation == "EXTENDED_ARG":
            continue
        if name is not None and operation in ("LOAD_ATTR", "LOAD_METHOD"):
            path.append(str(instruction.argval))
            continue
        if name is not None:
            yield name, tuple(path)
            name = None
        is_free = operation.endswith("DEREF") and instruction.argval in code.co_freevars
        if operation in ("LOAD_GLOBAL", "LOAD_NAME") or is_free:
            name, path = str(instruction.argval), []
    if name is not None:
        yield name, tuple(path)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in_code(constant)


def _names_in_tree(tree: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Those of the body: decorators and the annotations of parameters make no difference."""
    body = getattr(tree, "body", [])
    pending: list[Any] = list(body) if isinstance(body, list) else [body]  # of a lambda
    while pending:
        node = pending.pop()
        path: list[str] = []
        inner = node
        while isinstance(inner, ast.Attribute):
            path.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            yield inner.id, tuple(reversed(path))
        elif path:
            pending.append(inner)
        else:
            pending += children(node)
