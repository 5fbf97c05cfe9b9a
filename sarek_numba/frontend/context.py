"""The typing context: types of values, of attributes and of calls, and who calls whom.

It is a Numba context without Numba's own rules: what `rules` does not know has no meaning.
"""

from __future__ import annotations

import builtins
import difflib
import enum
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core import ir, types
from numba.core.dispatcher import Dispatcher
from numba.core.typing.context import BaseContext

from sarek_numba.errors import UnknownName, UnsupportedConstruct
from sarek_numba.frontend import language, mathematics, matrices, rules
from sarek_numba.frontend.complexes import WEAK_COMPLEX, is_complex
from sarek_numba.frontend.extensions import CompileTime
from sarek_numba.frontend.functions import DeviceFunction
from sarek_numba.frontend.halves import value_type
from sarek_numba.frontend.intrinsics import register_intrinsic
from sarek_numba.frontend.records import RecordType, is_record_array
from sarek_numba.frontend.recursion import Specialisations
from sarek_numba.frontend.registered import register_type
from sarek_numba.frontend.rules.arrays import array_attribute, is_captured_array
from sarek_numba.frontend.rules.builtins import refused_builtin
from sarek_numba.frontend.rules.complexes import complex_attribute
from sarek_numba.frontend.rules.registry import name_of
from sarek_numba.frontend.rules.types import constructor, numba_type
from sarek_numba.frontend.texts import inline_source
from sarek_numba.frontend.typed import Constant, Operation, TupleItem, Type
from sarek_numba.frontend.variants import Variant, VariantValue, variant
from sarek_numba.frontend.weak import (
    Refusal,
    Weak,
    WeakFloat,
    WeakInt,
    describe,
    dtype_of,
    is_number,
    tuple_of,
)


class Context(BaseContext):  # type: ignore[misc] # Numba ships no types
    """One compilation, with the device functions that it meets."""

    def __init__(self, functions: Specialisations) -> None:
        super().__init__()
        self.functions = functions

    def _load_builtins(self) -> None:
        """None of Numba's own: they would answer where the rules here refuse."""

    # --- what Numba's inferer asks for ------------------------------------------------------------

    def resolve_value_type(self, value: Any) -> Type:
        return type_of_value(value)

    def resolve_value_type_prefer_literal(self, value: Any) -> Type:
        return type_of_value(value)

    def unify_pairs(self, first: Type, second: Type) -> Type:
        raise AssertionError("variables are joined by phis alone")

    def can_convert(self, fromty: Type, toty: Type) -> Any:
        raise AssertionError("no type variable is locked")


# --- values ---------------------------------------------------------------------------------------


def type_of_value(value: Any) -> Type:
    """The type of a Python value that the kernel's text or surroundings hold."""
    if value is None:
        return types.none
    if isinstance(value, (bool, np.bool_)):
        return types.boolean
    if isinstance(value, np.void) and value.dtype.names is not None:
        return rules.captured.type_of_record(value)
    if isinstance(value, np.generic):
        return value_type(numba_type(value.dtype))
    if isinstance(value, int):
        return WeakInt.of(int(value))
    if isinstance(value, float):
        return WeakFloat(float(value))
    if isinstance(value, complex):
        return WEAK_COMPLEX
    if isinstance(value, language.GlobalThreadId):
        return WeakInt()
    if isinstance(value, tuple):
        items = tuple(map(type_of_value, value))
        if not hasattr(type(value), "_fields"):
            return tuple_of(items)
        return tuple_of(items, type(value))
    if isinstance(value, (list, dict, set, frozenset, bytes)):
        raise Refusal(
            f"a {type(value).__name__} cannot be used in a kernel",
            "use a tuple of constants, or pass an array as an argument",
            UnsupportedConstruct,
        )
    if any(value is each for each in _CALLED_OUTSIDE):
        raise Refusal(
            f"sarek.{value.__name__}() is called outside of kernels",
            "give what it makes a name around the kernel, and use that",
            UnsupportedConstruct,
        )
    if isinstance(value, VariantValue):
        return rules.variants.type_of_constant(value)
    return CompileTime(value)


_CALLED_OUTSIDE = (inline_source, register_intrinsic, register_type)


def operation_of_value(value: Any) -> Operation | None:
    """The operation that makes a captured value; None for what exists only while compiling."""
    if isinstance(value, language.GlobalThreadId):
        return rules.kernel.global_thread_id()
    kind = type_of_value(value)
    if isinstance(kind, (CompileTime, types.NoneType)):
        return None
    return Operation(Constant(_plain(value)), (), kind)


def _plain(value: Any) -> Any:
    """Enumeration members as their numbers, and so on into tuples."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, enum.Enum) and isinstance(value, (int, float)):
        return int(value) if isinstance(value, int) else float(value)
    return value


# --- attributes -----------------------------------------------------------------------------------


def attribute(owner: Type, name: str) -> tuple[Type, Operation | None, Any]:
    """What `owner.name` is: its type, its operation if it computes something, its Python value.

    The value is `MISSING` unless the attribute is one of a compile-time object.
    """
    if isinstance(owner, types.Array):
        return (*_array_attribute(owner, name), MISSING)
    if isinstance(owner, RecordType):
        operation = rules.records.attribute(owner, name)
        return operation.result, operation, MISSING
    if isinstance(owner, types.BaseTuple):
        return (*_field(owner, name), MISSING)
    if is_complex(owner):
        return (*complex_attribute(owner, name), MISSING)
    if isinstance(owner, CompileTime):
        return _object_attribute(owner.value, name)
    if name == "dtype" and is_number(owner):
        return _dtype(owner), None, MISSING
    raise Refusal(
        f"{describe(owner)} has no attribute {name!r} in a kernel",
        "use operators and the functions of math, numpy and sarek.math",
        UnknownName,
    )


MISSING = object()

_ARRAY_NAMES = ("shape", "size", "ndim", "T", "dtype")


def _array_attribute(array: Type, name: str) -> tuple[Type, Operation | None]:
    if name == "dtype":
        element = array.dtype
        found = element.dtype if isinstance(element, RecordType) else np.dtype(element.name)
        return CompileTime(found), None
    operation = array_attribute(array, name)
    if operation is not None:
        return operation.result, operation
    if hasattr(np.ndarray, name):
        raise Refusal(
            f"an array has no .{name} in a kernel",
            "work on its elements, or do it before the launch",
            UnsupportedConstruct,
        )
    raise Refusal(
        f"an array has no attribute {name!r}",
        _hint_of_field(array, name)
        or closest(name, _ARRAY_NAMES)
        or "an array has shape, size, ndim, T and dtype",
        UnknownName,
    )


def _dtype(number: Type) -> Type:
    """The element type of a strong number, as NumPy's scalars have one."""
    if isinstance(number, Weak):
        raise Refusal(
            f"{describe(number)} has no dtype, as in Python",
            "convert it first, as in sarek.int32(x)",
            UnknownName,
        )
    return CompileTime(dtype_of(number))


def _hint_of_field(array: Type, name: str) -> str | None:
    """What to write for `p.x` of an array of records."""
    if is_record_array(array) and name in array.dtype.names:
        return f"write p[i].{name}, or p[{name!r}] for the field of all elements"
    return None


def _field(items: Type, name: str) -> tuple[Type, Operation]:
    fields = getattr(items, "fields", ())
    if name not in fields:
        hint = f"its fields are {', '.join(fields)}" if fields else "name its items, as in t[0]"
        message = f"a tuple has no attribute {name!r}"
        raise Refusal(message, closest(name, fields) or hint, UnknownName)
    index = fields.index(name)
    return items.types[index], Operation(TupleItem(index), (items,), items.types[index])


def _object_attribute(value: Any, name: str) -> tuple[Type, Operation | None, Any]:
    if isinstance(value, language.Axes):
        operation = rules.kernel.coordinate(value, name)
        if operation is None:
            raise Refusal(
                f"{value!r} has no attribute {name!r}", "its axes are x, y and z", UnknownName
            )
        return operation.result, operation, MISSING
    if isinstance(value, language.Warps) and name in ("size", "lane"):
        operation = rules.warps.attribute(name)
        return operation.result, operation, MISSING
    if isinstance(value, Variant) and not hasattr(value, name):
        raise Refusal(f"{value!r} has no case {name!r}", hint_of_case(name, value), UnknownName)
    if not _is_open(value):
        hint = None
        if is_captured_array(CompileTime(value)):
            hint = "write sarek.const.array_like(a) in the kernel, or pass the array as an argument"
        owner = f"a {type(value).__name__}"
        if hint is not None:
            owner = describe(CompileTime(value))
        raise Refusal(
            f"attributes of {owner} cannot be used in a kernel",
            hint or "give the number itself a name around the kernel, and use that",
            UnsupportedConstruct,
        )
    try:
        member = getattr(value, name)
    except AttributeError:
        shown = getattr(value, "__name__", None) or repr(value)
        shown = {"sarek_numba": "sarek", mathematics.__name__: "sarek.math"}.get(shown, shown)
        hint = closest(name, dir(value)) or f"look at dir({shown}) for what there is"
        if type(value).__module__ in _LANGUAGE:
            hint = f"it has {', '.join(each for each in dir(value) if each[0] != '_')}"
        raise Refusal(f"{shown} has no attribute {name!r}", hint, UnknownName) from None
    return type_of_value(member), operation_of_value(member), member


def _is_open(value: Any) -> bool:
    """Whether a kernel may read the attributes of an object: modules, types, the language's own."""
    if isinstance(value, (ModuleType, type, np.dtype, enum.Enum)):
        return True
    return type(value).__module__ in _OPEN


def hint_of_case(name: str, variant: Variant) -> str:
    """A hint that names the case which was probably meant, or all."""
    cases = [each.__name__.rpartition(".")[2] for each in variant.cases]
    return closest(name, cases) or f"its cases are {', '.join(cases)}"


_LANGUAGE = (language.__name__, matrices.__name__)
_OPEN = (*_LANGUAGE, "sarek_numba.frontend.functions", "sarek_numba.frontend.variants")


def closest(name: str, names: Any) -> str | None:
    """A hint that names what was probably meant."""
    public = [str(each) for each in names if name.startswith("_") or not str(each).startswith("_")]
    found = [each for each in public if len(each) >= _LEAST_PREFIX and name.startswith(each)]
    found = sorted(found, key=len)[-1:] or difflib.get_close_matches(name, public, 1, _CLOSE)
    return f"did you mean {found[0]!r}?" if found else None


_LEAST_PREFIX = 3
_CLOSE = 0.7


# --- calls ----------------------------------------------------------------------------------------


def find_rule(callee: Any, name: str | None = None) -> rules.Rule:
    """The rule of a Python object that is called; a `Refusal` where there is none.

    `name` is how the kernel writes it.
    """
    found = rules.lookup(callee) or constructor(callee)
    if found is None:
        raise not_callable(callee, name or name_of(callee))
    return found


def device_function(callee: Any) -> DeviceFunction | None:
    """What a kernel calls as a device function: one of `@sarek.function` or of `numba.njit`."""
    if isinstance(callee, DeviceFunction):
        return callee
    if isinstance(callee, Dispatcher):
        return of_numba(callee)
    return None


def of_numba(compiled: Any) -> DeviceFunction:
    """A function of `numba.njit`, which is compiled here from its Python text."""
    name = compiled.py_func.__name__
    if compiled.nopython_signatures and not compiled._can_compile:
        raise Refusal(
            f"{name}() is compiled by Numba for signatures of its own",
            "write @numba.njit without a signature: the types are those of the call",
            UnsupportedConstruct,
        )
    for option in ("parallel", "fastmath", "forceobj"):
        if compiled.targetoptions.get(option):
            raise Refusal(
                f"@numba.njit({option}=...) has no meaning in a kernel",
                f"leave {option} out, or decorate the function with @sarek.function",
                UnsupportedConstruct,
            )
    return DeviceFunction(compiled.py_func, compiled.targetoptions.get("inline") == "always")


def not_callable(callee: Any, name: str) -> Refusal:
    """Why an object cannot be called in a kernel."""
    if callee is variant:
        return rules.variants.refused_declaration()
    builtin = refused_builtin(callee)
    if builtin is not None:
        return builtin
    if isinstance(callee, FunctionType):
        library = name_of(callee) != callee.__name__
        return Refusal(
            f"{name}() is an ordinary Python function, not a device function",
            _hint_for(callee) if library else "decorate it with @sarek.function",
            UnsupportedConstruct,
        )
    if isinstance(callee, language.Axes):
        return Refusal(f"{callee!r} is no function", f"name an axis, as in {callee!r}.x")
    if is_captured_array(CompileTime(callee)):
        return Refusal("an array cannot be called", "index it with [ ]")
    if hasattr(callee, "py_func") or isinstance(callee, type) or not callable(callee):
        return Refusal(
            f"{describe(CompileTime(callee))} cannot be called in a kernel",
            "call a @sarek.function, or a function of math, numpy or sarek",
            UnsupportedConstruct,
        )
    return Refusal(f"{name}() has no meaning in a kernel", _hint_for(callee), UnsupportedConstruct)


_MAKERS = ("array", "empty", "full", "linspace", "ones", "zeros")


def _hint_for(callee: Any) -> str:
    name = getattr(callee, "__name__", None)
    owner = type(getattr(callee, "__self__", None)).__name__
    if name in _MAKERS:
        return (
            "sarek.local.array(shape, dtype) makes an array for a thread, "
            "sarek.shared.array one for a block"
        )
    if name == "arange":
        return "write range(...)"
    if owner in ("Random", "RandomState"):
        return "pass random numbers in an array"
    return "write it as a @sarek.function, or compute it before the launch"


# --- names ----------------------------------------------------------------------------------------


def unknown_name(name: str, function: FunctionType) -> Refusal:
    """The refusal of a name that nothing defines."""
    names = [*function.__globals__, *dir(builtins), *function.__code__.co_varnames]
    hint = closest(name, names) or "assign it in the kernel, or define it before the launch"
    return Refusal(f"name {name!r} is not defined", hint, UnknownName)


def undefined(value: Any) -> bool:
    """Whether Numba found no value for a global or a free variable."""
    return value is ir.UNDEFINED
