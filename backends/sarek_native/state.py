"""What the emission of a kernel's body carries along: bindings, the mask, loops, coordinates.

A lane that leaves (break, continue, return) is removed from the live masks of what it leaves; the
code after that runs under what is left of them. Invariant: code runs only where at least one lane
of `mask` does, so scalar loads and scalar branches are right under any mask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sarek_native import masks
from sarek_native.builder import Code
from sarek_native.masks import Live, Mask
from sarek_native.values import Place, Slot, Value
from sarek_numba.ir.nodes import (
    App,
    Break,
    Call,
    Continue,
    Coordinate,
    For,
    HelperFunction,
    Index,
    Return,
    Stmt,
    Var,
    While,
)
from sarek_numba.ir.types import INT64, Scalar
from sarek_numba.ir.uniformity import BLOCK, Uniformity
from sarek_numba.ir.walk import bodies_of, walk_stmts

Binding = Value | Slot | Place


@dataclass(slots=True)
class LoopContext:
    """A loop around the current place. Its lives are None where lanes leave it only together.

    `entry` is the mask of a pass; a jump under that very mask takes every lane of the loop along.
    `direct` is False for a loop around a region, which other lane groups have still to run.
    """

    exit: str
    latch: str
    entry: Mask
    passing: Live | None = None  # lanes of this pass
    looping: Live | None = None  # lanes that stay for the next pass
    direct: bool = True


@dataclass(slots=True)
class FunctionContext:
    """The kernel or an inlined helper: where a return goes, and where its results go."""

    exit: str
    entry: Mask
    staying: Live | None = None  # lanes that have not returned
    results: tuple[Slot, ...] = ()
    loops: list[LoopContext] = field(default_factory=list)
    direct: bool = True

    def innermost(self) -> Live | None:
        """The live mask that every departure at the current place removes lanes from."""
        for loop in reversed(self.loops):
            live = loop.passing or loop.looping
            if live is not None:
                return live
        return self.staying


@dataclass(slots=True)
class Launch:
    """Coordinates of the current block and lane group; `thread` is None outside of lane groups."""

    block: tuple[Value, Value, Value]
    block_dim: tuple[Value, Value, Value]
    grid_dim: tuple[Value, Value, Value]
    thread: tuple[Value, Value, Value] | None = None


@dataclass(slots=True)
class State:
    code: Code
    functions: dict[str, HelperFunction]
    uniformity: Uniformity
    launch: Launch
    function: FunctionContext
    mask: Mask = None
    bindings: dict[int, Binding] = field(default_factory=dict)
    reserved: dict[int, Slot] = field(default_factory=dict)  # slots of variables yet to be declared
    local_array: Callable[[Var, int], Place] | None = None
    shared_array: Callable[[Var, int], Place] | None = None
    group_memory: Callable[[int], Callable[[], str]] | None = None  # bytes → where they lie
    fragments: dict[str, Callable[[], str]] = field(default_factory=dict)
    defined: Callable[[Var, Value], None] | None = None  # told of every immutable variable
    inline: Callable[[State, Call | App], list[Value]] | None = None
    departures: dict[int, bool] = field(default_factory=dict)
    outlined: frozenset[str] = frozenset()  # helpers that are functions of their own

    def bind(self, var: Var, value: Value) -> None:
        self.bindings[var.id] = value
        if self.defined is not None:
            self.defined(var, value)

    def value_of(self, var: Var) -> Value:
        found = self.bindings[var.id]
        if isinstance(found, Slot):
            return self.code.read(found)
        assert isinstance(found, Value), f"{var.name} is an array"
        return found

    def scalar(self, value: Value) -> Value:
        """The value as a scalar: that of the first lane that runs, where all are known to agree.

        The analysis follows each call of a helper apart, the variables within for all calls
        together, so what it knows to be uniform may come as a vector.
        """
        if value.uniform:
            return value
        code = self.code
        lane = masks.first_lane(code, self.mask)
        vector = code.type_of(value.type, True)
        text = code.define(f"extractelement {vector} {code.spread(value)}, i64 {lane}")
        return Value(value.type, text)

    def put(self, slot: Slot, value: Value) -> None:
        """Write a variable in the lanes of the mask; a scalar one is the same in all of them."""
        code = self.code
        if not slot.lanes:
            value = self.scalar(value)
        elif self.mask is not None:
            flags = Value(Scalar.BOOL, self.mask, lanes=True)
            value = code.select(flags, value, code.read(slot))
        code.write(slot, value)

    def place_of(self, var: Var) -> Place:
        found = self.bindings[var.id]
        assert isinstance(found, Place), f"{var.name} is no array"
        return found

    def varies(self, var: Var) -> bool:
        """May the variable differ between the threads of a block?"""
        return self.uniformity.of_var(var) > BLOCK

    def departs(self, stmt: Stmt) -> bool:
        """May lanes leave `stmt` for a place beyond its end?"""
        known = self.departures.get(id(stmt))
        if known is None:
            known = self.departures[id(stmt)] = departs(stmt)
        return known

    def coordinate(self, index: Index) -> Value:
        """The coordinate as int64."""
        launch, axis = self.launch, index.axis
        match index.coordinate:
            case Coordinate.BLOCK_IDX:
                return launch.block[axis]
            case Coordinate.BLOCK_DIM:
                return launch.block_dim[axis]
            case Coordinate.GRID_DIM:
                return launch.grid_dim[axis]
            case Coordinate.GRID_SIZE:
                return self._scaled(launch.grid_dim[axis], launch.block_dim[axis])
            case Coordinate.THREAD_IDX:
                assert launch.thread is not None, "a thread index outside of threads"
                return launch.thread[axis]
            case Coordinate.GLOBAL_IDX:
                assert launch.thread is not None, "a thread index outside of threads"
                first = self._scaled(launch.block[axis], launch.block_dim[axis])
                thread = launch.thread[axis]
                if thread.lanes:
                    i64 = self.code.vector("i64")
                    spread = self.code.spread(first)
                    text = self.code.define(f"add nsw {i64} {spread}, {thread.text}")
                    return Value(INT64, text, lanes=True)
                text = self.code.define(f"add nsw i64 {first.text}, {thread.text}")
                return Value(INT64, text, stride=thread.stride)

    def _scaled(self, left: Value, right: Value) -> Value:
        return Value(INT64, self.code.define(f"mul nsw i64 {left.text}, {right.text}"))

    # --- lanes that leave -------------------------------------------------------------------------

    def depart(self, stmt: Break | Continue | Return) -> None:
        """Take the lanes of the mask out of what the statement leaves, or jump if that is all."""
        function = self.function
        if isinstance(stmt, Return):
            if function.direct and self.mask == function.entry:
                self.code.jump(function.exit)
                return
            assert function.staying is not None, "a divergent return that nobody foresaw"
            function.staying.remove(self.mask)
            for loop in function.loops:
                self._remove(loop, both=True)
        else:
            loop = function.loops[-1]
            if loop.direct and self.mask == loop.entry:
                self.code.jump(loop.exit if isinstance(stmt, Break) else loop.latch)
                return
            self._remove(loop, both=isinstance(stmt, Break))
        # nobody is left here: the caller branches to where others may be
        self.mask = "zeroinitializer"

    def _remove(self, loop: LoopContext, both: bool) -> None:
        live = [loop.passing, loop.looping] if both else [loop.passing]
        for mask in live:
            if mask is not None:
                mask.remove(self.mask)

    def remain(self, before: Mask) -> None:
        """The mask after a statement that lanes may have left: those of `before` still here."""
        live = self.function.innermost()
        self.mask = before if live is None else masks.narrow(self.code, before, live.get())


def departs(stmt: Stmt) -> bool:
    """Does a departure within the statement leave the statement itself?"""
    if isinstance(stmt, Break | Continue | Return):
        return True
    if isinstance(stmt, For | While):
        return any(isinstance(inner, Return) for inner in walk_stmts(stmt.body))
    return any(departs(inner) for body in bodies_of(stmt) for inner in body)
