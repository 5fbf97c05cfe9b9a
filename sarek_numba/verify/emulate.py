"""`sarek.emulate`: the original Python function, thread by thread, in CPython.

The function that runs is a copy whose globals and closure bind Python's and NumPy's functions to
the table of `emulation.numbers`, and arrays to `EmulatedArray`s. Nothing of the compiler takes
part, so the oracle itself can be compared with the result.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from sarek_numba.frontend import language
from sarek_numba.frontend.functions import DeviceFunction
from sarek_numba.frontend.hints import NONE, Hints
from sarek_numba.frontend.registered import registered
from sarek_numba.frontend.variants import CaseType, Variant
from sarek_numba.ir.types import Pair, Scalar
from sarek_numba.runtime.annotations import stated_of
from sarek_numba.runtime.arguments import record_argument
from sarek_numba.runtime.hosted import on_host
from sarek_numba.verify.emulation import patterns
from sarek_numba.verify.emulation.arrays import EmulatedArray, made_record, own, structured
from sarek_numba.verify.emulation.machine import BlockState, Dimensions, places, run_block
from sarek_numba.verify.emulation.numbers import REPLACEMENTS, TypeConstructor, convert, widened


def emulate(kernel: Any) -> Emulation:
    """Emulate a kernel: `sarek.emulate(k)[grid, block](*arguments)`.

    `kernel` is a `@sarek.kernel` or the plain Python function. Dimensions are those of a launch;
    `emulate(k)[grid, block, None, shared_bytes]` gives a dynamic shared region. Results are in the
    NumPy arrays afterwards. Where CPython raises (division of Python ints by zero, an index out of
    range, a Python int that does not fit the element it is stored to), so does emulation.
    """
    return Emulation(_python_function(kernel), getattr(kernel, "hints", NONE))


@dataclass(frozen=True)
class Emulation:
    """A kernel that is to be emulated; index it with grid and block to launch it."""

    function: FunctionType
    hints: Hints = NONE

    def __getitem__(self, configuration: tuple[Any, ...]) -> Callable[..., None]:
        grid, block, _stream, shared_bytes = (*configuration, None, 0)[:4]

        def launch(*arguments: Any, **named: Any) -> None:
            self.launch(_dimensions(grid), _dimensions(block), int(shared_bytes), arguments, named)

        return launch

    def launch(
        self, grid: Dimensions, block: Dimensions, shared_bytes: int, arguments: tuple[Any, ...],
        named: dict[str, Any],
    ) -> None:  # fmt: skip
        """Run every block, one after another."""
        bound = inspect.signature(self.function).bind(*arguments, **named)
        bound.apply_defaults()
        with on_host(list(bound.arguments.values())) as values:
            bound.arguments.update(zip(list(bound.arguments), values, strict=True))
            self._run(grid, block, shared_bytes, bound)

    def _run(
        self, grid: Dimensions, block: Dimensions, shared_bytes: int, bound: inspect.BoundArguments
    ) -> None:
        stated = stated_of(self.function, tuple(bound.arguments))
        for (name, value), kind in zip(list(bound.arguments.items()), stated, strict=True):
            bound.arguments[name] = _argument(value, kind, self.hints)
        function = partial(_passing_values(_Substitution().function(self.function)), **bound.kwargs)
        for place in places(grid):
            state = BlockState(grid, block, place, shared_bytes, self.hints)
            try:
                run_block(state, function, bound.args)
            finally:
                sys.stdout.write(state.text())


def _python_function(kernel: Any) -> FunctionType:
    function = getattr(kernel, "py_func", kernel)
    if not isinstance(function, FunctionType):
        raise TypeError(
            f"emulate() takes a kernel or a Python function, not {type(kernel).__name__}"
        )
    return function


def _dimensions(given: Any) -> Dimensions:
    values = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    x, y, z = (*(int(v) for v in values), 1, 1)[:3]
    return x, y, z


def _argument(value: Any, stated: Any, hints: Hints) -> Any:
    """An argument as the kernel sees it: a number has the type that its annotation states."""
    record = record_argument(value)
    if record is not None:
        return structured(record, hints)
    if isinstance(value, np.ndarray):
        return EmulatedArray(np.asarray(value), hints)
    if isinstance(stated, Scalar | Pair) and value is not None:
        return widened(convert(value, np.dtype(stated.value)))
    return widened(value)


class _Proxy:
    """A module or a class whose functions are replaced as the table says."""

    def __init__(self, module: ModuleType | type, substitution: _Substitution) -> None:
        self._module = module
        self._substitution = substitution

    def __getattr__(self, name: str) -> Any:
        value = self._substitution.value(getattr(self._module, name))
        setattr(self, name, value)
        return value


class _Substitution:
    """Copies functions with their global and captured values replaced; each value once."""

    def __init__(self) -> None:
        self._functions: dict[FunctionType, FunctionType] = {}

    def function(self, function: FunctionType) -> FunctionType:
        if function in self._functions:
            return self._functions[function]
        names: dict[str, Any] = {}
        code = patterns.code_of(function)
        cells = {name: CellType() for name in function.__code__.co_freevars}
        closure = tuple(cells[name] for name in code.co_freevars)
        copy = FunctionType(code, names, function.__name__, None, closure or None)
        self._functions[function] = copy
        if function.__defaults__ is not None:
            copy.__defaults__ = tuple(map(self.value, function.__defaults__))
        copy.__kwdefaults__ = {
            name: self.value(value) for name, value in (function.__kwdefaults__ or {}).items()
        }
        for cell, original in zip(cells.values(), function.__closure__ or (), strict=True):
            if original != CellType():  # else it has no value yet: CPython raises where it is read
                cell.cell_contents = self.value(original.cell_contents)
        names.update(patterns.CLASSES)
        visible = {**vars(__import__("builtins")), **function.__globals__}
        used = set(_names_of(function.__code__))
        names.update({name: self.value(visible[name]) for name in used if name in visible})
        names["__builtins__"] = __import__("builtins")
        return copy

    def value(self, value: Any) -> Any:
        """What an emulated function sees in place of a value of its surroundings."""
        if isinstance(value, Variant | CaseType):
            return value
        record = registered(value)
        if record is not None:
            return made_record(record)
        if isinstance(value, ModuleType) or _is_namespace(value):
            return _Proxy(value, self)
        if isinstance(value, DeviceFunction):
            return _passing_values(value.emulated(self.function(value.function)))
        if _is_compiled_by_numba(value):
            return _passing_values(self.function(value.py_func))
        if isinstance(value, np.void) and value.dtype.names is not None:
            return structured(np.asarray(value).copy())
        if isinstance(value, tuple):
            items = map(self.value, value)
            return type(value)._make(items) if hasattr(value, "_make") else tuple(items)
        if value is language.record:
            return lambda dtype: made_record(language.record(dtype))
        if isinstance(value, language.DType):
            return TypeConstructor(value.dtype.type)
        if isinstance(value, np.generic):
            return widened(value)
        try:
            return REPLACEMENTS.get(value, value)
        except TypeError:  # unhashable: a constant array, a list
            return value


def _is_namespace(value: Any) -> bool:
    """Whether an object is a class that only holds functions and constants for kernels."""
    if not isinstance(value, type) or value.__module__ in ("builtins", "numpy"):
        return False
    return type(value) is type and not issubclass(value, (tuple, np.generic, BaseException))


def _is_compiled_by_numba(value: Any) -> bool:
    return type(value).__module__.startswith("numba.") and hasattr(value, "py_func")


def _passing_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose arguments and results are values: it gets copies of records."""

    def call(*arguments: Any, **named: Any) -> Any:
        given = {name: own(value) for name, value in named.items()}
        return own(function(*map(own, arguments), **given))

    return call


def _names_of(code: Any) -> tuple[str, ...]:
    inner = tuple(n for c in code.co_consts if hasattr(c, "co_names") for n in _names_of(c))
    return (*code.co_names, *inner)
