"""Homes of the variables that cross regions: see `fission` and `skeleton`.

A variable that crosses has a stack slot where it is uniform for the block, else a place in the
frame of each lane group. A region, or an expression of the block's control, is given copies of what
it uses.
"""

from __future__ import annotations

from dataclasses import dataclass

from sarek_native.expressions import emit
from sarek_native.fission import Plan, Use
from sarek_native.groups import Frame
from sarek_native.state import State
from sarek_native.values import Slot, Value, memory_type
from sarek_numba.ir.nodes import Var, VarRef
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.walk import walk_exprs


@dataclass(frozen=True, slots=True)
class FrameHome:
    """A value of each thread, at an offset in the frame of its group."""

    type: Scalar
    offset: int


@dataclass(slots=True)
class UniformHome:
    """A value of the block. `next` takes what a region assigns until all groups have run it."""

    slot: Slot
    next: Slot


class Homes:
    """The homes of one kernel, each made when it is first needed."""

    def __init__(self, state: State, frame: Frame, plan: Plan) -> None:
        self.state = state
        self.code = state.code
        self.frame = frame
        self.plan = plan
        self.found: dict[int, FrameHome | UniformHome] = {}
        state.defined = self._defined

    def _of(self, var: Var, uniform: bool) -> FrameHome | UniformHome:
        home = self.found.get(var.id)
        if home is None:
            assert isinstance(var.type, Scalar)
            if uniform:
                slots = [self.code.slot(var.type, False) for _ in range(2)]
                home = UniformHome(*slots)
            else:
                size = self.code.width * var.type.bits // 8
                home = FrameHome(var.type, self.frame.allocate(size))
            self.found[var.id] = home
        return home

    def _defined(self, var: Var, value: Value) -> None:
        """Called for each immutable variable: one that crosses regions is put into its home."""
        if var.id not in self.plan.crossing:
            return
        home = self._of(var, value.uniform)
        if isinstance(home, UniformHome):
            assert value.uniform, f"{var.name} is uniform in one copy of its definition only"
            self.code.write(home.next, value)
            self.code.write(home.slot, value)
        else:
            self.store(home, value)

    def store(self, home: FrameHome, value: Value) -> None:
        code = self.code
        text = code.to_memory(value, True)
        pointer = self.frame.at(home.offset)
        code.effect(f"store {code.vector(memory_type(home.type))} {text}, ptr {pointer}, align 64")

    def _load(self, home: FrameHome) -> Value:
        code = self.code
        pointer = self.frame.at(home.offset)
        vector = code.vector(memory_type(home.type))
        found = code.define(f"load {vector}, ptr {pointer}, align 64")
        return code.from_memory(home.type, found, True)

    def bind_region(self, use: Use) -> dict[int, Slot]:
        """Bind what crosses into a region; gives the copies that it has to put back."""
        code, bindings = self.code, self.state.bindings
        for id, (element, offset) in self.frame.arrays.items():
            bindings[id] = self.frame.array_at(element, offset)
        copies: dict[int, Slot] = {}
        for id, var in use.used.items():
            if id not in self.plan.crossing or id in use.declared:
                continue
            home = self._of(var, not self.state.varies(var))
            if isinstance(home, FrameHome):
                value = self._load(home)
                if not var.mutable:
                    bindings[id] = value
                    continue
            elif id not in use.assigned:
                bindings[id] = code.read(home.slot)
                if var.mutable:
                    bindings[id] = home.slot
                continue
            else:
                value = code.read(home.slot)
            copy = code.slot(value.type, value.lanes)
            code.write(copy, value)
            bindings[id] = copy
            if id in use.assigned:
                copies[id] = copy
        self._declare(use, copies)
        self._recompute(use)
        return copies

    def _declare(self, use: Use, copies: dict[int, Slot]) -> None:
        """Mutable variables that the region declares and later parts use."""
        for id in use.declared:
            var = self.plan.crossing.get(id)
            if var is None or not var.mutable:
                continue
            self._of(var, not self.state.varies(var))
            assert isinstance(var.type, Scalar)
            copy = self.code.slot(var.type, self.state.varies(var))
            self.state.reserved[id] = copies[id] = copy

    def bind_control(self, use: Use) -> None:
        """Bind what crosses into an expression of the block's control."""
        for id, var in use.used.items():
            if id not in self.plan.crossing:
                continue
            home = self.found[id]
            assert isinstance(home, UniformHome), f"{var.name} decides control but is not uniform"
            self.state.bindings[id] = home.slot if var.mutable else self.code.read(home.slot)
        self.state.mask = None
        self._recompute(use)

    def _recompute(self, use: Use) -> None:
        """Compute the cheap immutable variables that are used but not declared here."""
        wanted = set(use.used) - use.declared
        for id, (_, expr) in reversed(self.plan.recomputed.items()):
            if id in wanted:
                wanted.update(n.var.id for n in walk_exprs(expr) if isinstance(n, VarRef))
        for id, (_, expr) in self.plan.recomputed.items():
            if id in wanted and id not in use.declared:
                self.state.bindings[id] = emit(self.state, expr)
