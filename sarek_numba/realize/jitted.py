"""`@sarek.jit`: a function of launches that is captured, and replayed in later calls.

The first call with arguments of some types, shapes and layouts, on a device, runs the function; the
second captures it; later ones replay the graph. Vectors are inputs of the graph, numbers named as
variables may be others in each call, all else is static: another value is another graph. So are the
global names and closure cells of the function.
"""

from __future__ import annotations

import inspect
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import update_wrapper
from types import CodeType, FunctionType, MethodType
from typing import Any, overload

from sarek_numba import settings
from sarek_numba.errors import ArgumentCountError, GraphError
from sarek_numba.frontend.shipped import reduced
from sarek_numba.realize.arguments import Leaves, leaves_of, number_range, rebuilt, static_key
from sarek_numba.realize.buffers import laid_out
from sarek_numba.realize.captures import CapturedGraph
from sarek_numba.realize.data import Layout
from sarek_numba.realize.inputs import array_of, span
from sarek_numba.runtime import recorders
from sarek_numba.runtime.memory import address
from sarek_numba.runtime.registry import device
from sarek_numba.runtime.sharded import ShardedVector
from sarek_numba.runtime.vector import Vector, empty_vector

_MOST_GRAPHS = 64  # of one function; the one that was not called for longest is dropped


@overload
def jit(function: Callable[..., Any]) -> Jitted: ...
@overload
def jit(*, variables: Sequence[str] = ()) -> Callable[[Callable[..., Any]], Jitted]: ...
def jit(function: Any = None, *, variables: Sequence[str] = ()) -> Any:
    """Have a function of launches captured and replayed: `@sarek.jit`.

    Its arguments are vectors, arrays of NumPy, tuples, lists and dicts of these, and plain values;
    it gives vectors, or nothing. Parameters named in `variables` are ints or floats that may be
    others in each call of one graph; what Python decides by them is decided once. Raises GraphError
    for a name that is no parameter.
    """
    if function is None:
        return lambda decorated: Jitted(decorated, variables)
    return Jitted(function, variables)


@dataclass(frozen=True, slots=True)
class _Part:
    """A result in memory of an input: which bytes, and how the elements lie."""

    name: str
    offset: int  # in bytes, from the input's first one
    layout: Layout


@dataclass(slots=True)
class _Entry:
    """What is known of calls with one key; `kept` has what the key names by identity."""

    kept: tuple[Any, ...]
    graph: CapturedGraph | None = None
    shape: Any = None  # of the results, with a place in `results` for each vector
    results: tuple[_Part | Any, ...] = ()
    made: tuple[tuple[str, int], ...] = ()  # inputs that a call makes anew, and their bytes


class Jitted:
    """A function made by `@sarek.jit`; call it as the function."""

    __name__: str
    __wrapped__: Any

    def __init__(self, function: Callable[..., Any], variables: Sequence[str] = ()) -> None:
        if not isinstance(function, FunctionType):
            raise GraphError(f"@sarek.jit takes a Python function, not a {_kind(function)}")
        if isinstance(variables, str):
            variables = (variables,)
        self._signature = inspect.signature(function)
        for name in variables:
            if name not in self._signature.parameters:
                listed = ", ".join(self._signature.parameters)
                raise GraphError(
                    f"@sarek.jit: '{name}' is no parameter of '{function.__name__}'\n"
                    f"  note: its parameters are ({listed})"
                )
        update_wrapper(self, function)
        self.__wrapped__ = function
        self.variables = tuple(variables)
        self._names = tuple(sorted(_names_of(function.__code__)))
        self._entries: OrderedDict[Any, _Entry] = OrderedDict()
        self._lock = threading.RLock()

    @property
    def graphs(self) -> list[CapturedGraph]:
        """The graphs that were captured and not dropped, the newest call's last."""
        with self._lock:
            return [e.graph for e in self._entries.values() if e.graph is not None]

    def clear(self) -> None:
        """Forget all graphs, and that the function was called."""
        with self._lock:
            self._entries.clear()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run, capture or replay the function.

        Raises ArgumentCountError; GraphError for arguments and results that a graph cannot have, or
        that share memory, and as a capture does; what a replay raises.
        """
        try:
            bound = self._signature.bind(*arguments, **named)
        except TypeError as error:
            raise ArgumentCountError(f"function '{self.__name__}': {error}") from None
        bound.apply_defaults()
        if recorders.current.get() is not None or not settings.jit():
            return self._called(bound)
        leaves = leaves_of(self.__name__, bound.arguments, self.variables)
        self._check_apart(leaves)
        around, kept = self._surroundings()
        target = device()
        key = (target, leaves.key, around)
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
                if entry.graph is not None or self._capture(entry, leaves, bound):
                    return self._replay(entry, leaves)
                return self._called(bound)
        return self._run(key, (*kept, *leaves.kept, target), bound)

    # --- the three kinds of calls -----------------------------------------------------------------

    def _called(self, bound: inspect.BoundArguments) -> Any:
        """What the function gives, with vectors where it would be captured with vectors."""
        token = recorders.keeps_vectors.set(True)
        try:
            return self.__wrapped__(*bound.args, **bound.kwargs)
        finally:
            recorders.keeps_vectors.reset(token)

    def _run(self, key: Any, kept: tuple[Any, ...], bound: inspect.BoundArguments) -> Any:
        returned = self._called(bound)
        self._found(returned)
        with self._lock:
            self._entries.setdefault(key, _Entry(kept))
            while len(self._entries) > _MOST_GRAPHS:
                self._entries.popitem(last=False)
        return returned

    def _capture(self, entry: _Entry, leaves: Leaves, bound: inspect.BoundArguments) -> bool:
        """Capture the function, unless somebody else captures: they share the registry."""
        graph = CapturedGraph(leaves.buffers)
        if not graph.try_begin():
            return False
        error: BaseException | None = None
        try:
            known = {
                name: graph.variable(name, value, *number_range(value))
                for name, value in leaves.numbers.items()
            }
            bound.arguments.update(known)
            returned = self.__wrapped__(*bound.args, **bound.kwargs)
            vectors = self._found(returned)
            results, made = _placed(graph, leaves, vectors)
        except BaseException as raised:
            error = raised
            raise
        finally:
            graph.__exit__(type(error) if error else None, error, None)
        for name in leaves.buffers:
            if name not in graph.inputs:
                raise GraphError(
                    f"function '{self.__name__}': argument '{name}' shares memory with a vector "
                    "that the function has by another way\n"
                    "  hint: give it as an argument alone, or a copy"
                )
        entry.shape = returned
        entry.results, entry.made, entry.graph = results, made, graph
        return True

    def _replay(self, entry: _Entry, leaves: Leaves) -> Any:
        assert entry.graph is not None
        given: dict[str, Any] = {**leaves.buffers, **leaves.numbers}
        for name, size in entry.made:
            given[name] = empty_vector(size, "u1")
        entry.graph.replay_with(given)
        results = []
        for part in entry.results:
            if not isinstance(part, _Part):
                results.append(part)
                continue
            source = given[part.name]
            array = array_of(source)
            if part.offset == 0 and _layout(array) == part.layout:
                results.append(source)
            else:
                results.append(laid_out(source, part.offset, part.layout))
        return rebuilt(entry.shape, iter(results))

    # --- checks -----------------------------------------------------------------------------------

    def _found(self, returned: Any) -> list[Vector]:
        """The vectors among what the function gave. Raises GraphError for anything else."""
        found: list[Vector] = []
        _collect(self.__name__, returned, found)
        return found

    def _check_apart(self, leaves: Leaves) -> None:
        taken = sorted((*span(value), name) for name, value in leaves.buffers.items())
        furthest, owner = -1, ""
        for first, last, name in taken:
            if first < furthest and first < last:
                one, other = sorted((owner, name), key=list(leaves.buffers).index)
                raise GraphError(
                    f"function '{self.__name__}': argument '{other}' shares memory with argument "
                    f"'{one}'\n  hint: pass a copy, as in {other}.copy()"
                )
            if last > furthest:
                furthest, owner = last, name

    def _surroundings(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """What stands for the globals and the cells of the function as they are, and themselves."""
        function: Any = self.__wrapped__
        names = function.__globals__
        values = [names[name] for name in self._names if name in names]
        for cell in function.__closure__ or ():
            try:
                values.append(cell.cell_contents)
            except ValueError:  # not bound yet
                values.append(None)
        keys = []
        for value in values:
            key = static_key(value)
            keys.append(("object", id(value)) if key is None else key)
        return tuple(keys), tuple(values)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        """The function; graphs are captured anew."""
        return reduced(self, (Jitted, (self.__wrapped__, self.variables)))

    def __repr__(self) -> str:
        return f"<sarek jit {self.__name__}{self._signature}, {len(self.graphs)} graphs>"


def _kind(given: Any) -> str:
    return f"kernel '{given.__name__}'" if hasattr(given, "py_func") else type(given).__name__


def _names_of(code: CodeType) -> set[str]:
    """The names that a function, with those inside it, may take from its globals."""
    names = set(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names |= _names_of(inner)
    return names


def _collect(function: str, returned: Any, found: list[Vector]) -> None:
    match returned:
        case None:
            return
        case Vector():
            found.append(returned)
        case ShardedVector(parts=parts):
            found.extend(parts)
        case tuple() | list():
            for each in returned:
                _collect(function, each, found)
        case dict():
            for each in returned.values():
                _collect(function, each, found)
        case _:
            raise GraphError(
                f"function '{function}' gives a {type(returned).__name__}; a function of sarek.jit "
                "gives vectors, tuples, lists and dicts of these, or None\n"
                "  hint: read what it computes after the call"
            )


def _layout(array: Any) -> Layout:
    return Layout(array.dtype, array.shape, array.strides, bool(array.flags.writeable))


def _placed(
    graph: CapturedGraph, leaves: Leaves, vectors: Sequence[Vector]
) -> tuple[tuple[_Part | Vector, ...], tuple[tuple[str, int], ...]]:
    """Where each result lies: in an argument, in memory that the block made, or elsewhere."""
    spans = {name: span(value) for name, value in leaves.buffers.items()}
    results: list[_Part | Vector] = []
    made: dict[str, int] = {}
    for number, vector in enumerate(vectors):
        layout = _layout(vector._array)
        first, last = span(vector)
        at = address(vector._array)
        exposed = graph.expose(vector, f"result {number}")
        if exposed is not None:
            size, offset = exposed
            name = graph.exposed_name(vector)
            assert name is not None
            made[name] = size
            results.append(_Part(name, offset, layout))
            continue
        inside = (n for n, (a, b) in spans.items() if a <= first and last <= b)
        owner = next(inside, None)
        if owner is None or not isinstance(leaves.buffers[owner], Vector):
            results.append(vector)
        else:
            results.append(_Part(owner, at - spans[owner][0], layout))
    return tuple(results), tuple(made.items())
