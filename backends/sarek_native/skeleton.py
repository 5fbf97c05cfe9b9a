"""Emission of a fission plan: regions as loops over lane groups, the block's control around them.

The block's control is scalar code. A variable that crosses regions has a home: a stack slot where
it is uniform for the block, else a place in the frame of each lane group. A region works on
copies of the homes it uses. A uniform variable assigned in a region is written to a second slot,
so that every group starts from the value before the region.
"""

from __future__ import annotations

from dataclasses import dataclass

from sarek_native import masks
from sarek_native.expressions import emit
from sarek_native.fission import Branch, Jump, Loop, Node, Plan, Region
from sarek_native.groups import Frame
from sarek_native.homes import FrameHome, Homes, UniformHome
from sarek_native.loops import trip_count
from sarek_native.masks import Live, Mask
from sarek_native.operators import binary, compare
from sarek_native.state import FunctionContext, LoopContext, State
from sarek_native.statements import emit_body, returns_apart
from sarek_native.values import Slot, Value
from sarek_numba.ir.nodes import BinOp, Break, For, Return
from sarek_numba.ir.types import Scalar


@dataclass(slots=True)
class _KeptMask:
    """A live mask that outlives regions: in the frame of each group, as bits."""

    offset: int


@dataclass(slots=True)
class _Around:
    """A loop of the block's control: its labels, and the masks of lanes that left regions early."""

    loop: Loop
    exit: str
    latch: str
    passing: _KeptMask | None
    looping: _KeptMask | None


class Skeleton:
    """Emits the body of one block."""

    def __init__(self, state: State, frame: Frame, plan: Plan) -> None:
        self.state = state
        self.code = state.code
        self.frame = frame
        self.plan = plan
        self.homes = Homes(state, frame, plan)
        self.around: list[_Around] = []
        self.staying: _KeptMask | None = None

    def emit(self) -> None:
        """All nodes; control arrives at the label `next.block`, which the caller sets."""
        if self.plan.returns:
            self.staying = self._new_mask()
            self._fill(self.staying, None)
        self._nodes(self.plan.nodes, top=True)

    # --- the block's control ----------------------------------------------------------------------

    def _nodes(self, nodes: list[Node], top: bool = False) -> None:
        for node in nodes:
            match node:
                case Region():
                    self._region(node, last=top and node is nodes[-1])
                case Branch():
                    self._branch(node)
                case Loop():
                    self._loop(node)
                case Jump(stmt=stmt):
                    self.code.jump(self._target(type(stmt)))
            if self.code.closed:
                return

    def _target(self, kind: type) -> str:
        if kind is Return:
            return "next.block"
        loop = self.around[-1]
        return loop.exit if kind is Break else loop.latch

    def _branch(self, node: Branch) -> None:
        code = self.code
        self.homes.bind_control(node.use)
        condition = self.state.scalar(emit(self.state, node.condition))
        then, orelse, join = (code.fresh(stem) for stem in ("then", "else", "join"))
        code.branch(condition.text, then, orelse)
        reached = False
        for label, nodes in ((then, node.then), (orelse, node.orelse)):
            code.label(label)
            self._nodes(nodes)
            if not code.closed:
                reached = True
                code.jump(join)
        if reached:
            code.label(join)

    def _loop(self, node: Loop) -> None:
        code = self.code
        passing = self._new_mask() if node.leaves else None
        looping = self._new_mask() if Break in node.leaves else None
        around = _Around(node, code.fresh("exit"), code.fresh("latch"), passing, looping)
        if looping is not None:
            self._fill(looping, self._kept())
        outer = self._kept()
        self.around.append(around)
        self.homes.bind_control(node.use)
        if isinstance(node.stmt, For):
            self._for(node, node.stmt, around, outer)
        else:
            head, inside = code.fresh("head"), code.fresh("body")
            code.label(head)
            self.homes.bind_control(node.use)
            condition = self.state.scalar(emit(self.state, node.stmt.condition))
            code.branch(condition.text, inside, around.exit)
            code.label(inside)
            self._pass(node, around, outer)
            code.jump(head)
        self.around.pop()
        code.label(around.exit)

    def _for(self, node: Loop, stmt: For, around: _Around, outer: _KeptMask | None) -> None:
        code, state = self.code, self.state
        bounds = [state.scalar(emit(state, e)) for e in (stmt.first, stmt.stop, stmt.step)]
        first, stop, step = bounds
        passes = trip_count(state, stmt.direction, first, stop, step)
        variable, remaining = code.slot(first.type, False), code.slot(passes.type, False)
        code.write(variable, first)
        code.write(remaining, passes)
        head, inside = code.fresh("head"), code.fresh("body")
        code.label(head)
        left = code.read(remaining)
        more = compare(code, BinOp.NE, left, Value(left.type, "0"))
        code.branch(more.text, inside, around.exit)
        code.label(inside)
        state.bindings[stmt.var.id] = code.read(variable)
        self._pass(node, around, outer)
        code.write(variable, binary(code, BinOp.ADD, code.read(variable), step))
        code.write(remaining, binary(code, BinOp.SUB, left, Value(left.type, "1")))
        code.jump(head)

    def _pass(self, node: Loop, around: _Around, outer: _KeptMask | None) -> None:
        code = self.code
        if around.passing is not None:
            self._fill(around.passing, around.looping or outer)
        self._nodes(node.nodes)
        code.label(around.latch)
        if around.looping is not None:
            going = code.fresh("going")
            code.branch(self._any_thread(around.looping), going, around.exit)
            code.label(going)

    # --- masks that outlive regions ---------------------------------------------------------------

    def _new_mask(self) -> _KeptMask:
        return _KeptMask(self.frame.allocate(-(-self.code.width // 8)))

    def _kept(self) -> _KeptMask | None:
        """The mask that every departure at this place has removed lanes from."""
        for around in reversed(self.around):
            if around.passing is not None:
                return around.passing
        return self.staying

    def _load_mask(self, kept: _KeptMask) -> str:
        code = self.code
        bits = code.define(f"load i{code.width}, ptr {self.frame.at(kept.offset)}")
        return code.define(f"bitcast i{code.width} {bits} to {code.vector('i1')}")

    def _store_mask(self, kept: _KeptMask, mask: Mask) -> None:
        code = self.code
        bits = masks.bits(code, mask)
        code.effect(f"store i{code.width} {bits}, ptr {self.frame.at(kept.offset)}")

    def _fill(self, kept: _KeptMask, source: _KeptMask | None) -> None:
        """Set a mask in every group: a copy of another one, or all threads."""
        mask = self.frame.begin_groups()
        self._store_mask(kept, mask if source is None else self._load_mask(source))
        self.frame.end_groups()

    def _any_thread(self, kept: _KeptMask) -> str:
        """An i1: is any thread of the block in the mask?"""
        code = self.code
        found = code.slot(Scalar.BOOL, False)
        code.write(found, Value(Scalar.BOOL, "false"))
        self.frame.begin_groups()
        self._gather_any(found, self._load_mask(kept))
        self.frame.end_groups()
        return code.read(found).text

    def _gather_any(self, found: Slot, mask: Mask) -> None:
        code = self.code
        some = code.define(f"or i1 {code.read(found).text}, {masks.any_lane(code, mask)}")
        code.write(found, Value(Scalar.BOOL, some))

    # --- regions ----------------------------------------------------------------------------------

    def _region(self, region: Region, last: bool) -> None:
        code, state, frame = self.code, self.state, self.frame
        alone = last and self.staying is None  # nothing runs after it that a departure concerns
        leaving = [] if alone else sorted(region.leaves, key=lambda kind: kind.__name__)
        alive = {kind: code.slot(Scalar.BOOL, False) for kind in leaving}
        for slot in alive.values():
            code.write(slot, Value(Scalar.BOOL, "false"))
        state.mask = frame.begin_groups()
        end = code.fresh("end.region")
        kept = self._enter(region, end, alone)
        mask = self._kept_lanes(kept, end)
        copies = self.homes.bind_region(region.use)
        if mask is not None:
            going = code.fresh("going")
            code.branch(masks.any_lane(code, mask), going, end)
            code.label(going)
        emit_body(state, region.body)
        code.label(end)
        self._leave(region, kept, alive, copies)
        frame.end_groups()
        for id in copies:
            home = self.homes.found[id]
            if isinstance(home, UniformHome):
                code.write(home.slot, code.read(home.next))
        for kind, slot in alive.items():
            going = code.fresh("going")
            code.branch(code.read(slot).text, going, self._nobody(kind))
            code.label(going)

    def _nobody(self, kind: type) -> str:
        """Where the block goes on if a departure left no thread here."""
        return "next.block" if kind is Return else self.around[-1].latch

    def _enter(self, region: Region, end: str, alone: bool) -> list[tuple[_KeptMask, Live]]:
        """Set the contexts of a region; gives the live masks that are kept, outermost first."""
        state, code = self.state, self.code
        function = FunctionContext(end, state.mask, direct=alone)
        state.function = function
        kept: list[tuple[_KeptMask, Live]] = []

        def live(mask: _KeptMask | None) -> Live | None:
            if mask is None:
                return None
            found = Live(code)
            found.set(self._load_mask(mask))
            kept.append((mask, found))
            return found

        function.staying = live(self.staying)
        if alone and returns_apart(state, region.body):
            function.staying = Live(code)
            function.staying.set(state.mask)
        for around in self.around:
            looping, passing = live(around.looping), live(around.passing)
            loop = LoopContext(around.exit, around.latch, None, passing, looping, direct=False)
            function.loops.append(loop)
        return kept

    def _kept_lanes(self, kept: list[tuple[_KeptMask, Live]], end: str) -> Mask:
        """The lanes that run in the region by the innermost kept mask; None if none is kept."""
        if not kept:
            return None
        state = self.state
        innermost = state.function.innermost()
        assert innermost is not None
        state.mask = masks.narrow(self.code, state.mask, innermost.get())
        return state.mask

    def _leave(
        self,
        region: Region,
        kept: list[tuple[_KeptMask, Live]],
        alive: dict[type, Slot],
        copies: dict[int, Slot],
    ) -> None:
        """The end of a region in one group: store copies and masks."""
        code, function = self.code, self.state.function
        for mask, live in kept:
            self._store_mask(mask, live.get())
        for kind, slot in alive.items():
            live_here = function.staying if kind is Return else function.innermost()
            assert live_here is not None
            self._gather_any(slot, live_here.get())
        for id, slot in copies.items():
            home = self.homes.found[id]
            if isinstance(home, FrameHome):
                self.homes.store(home, code.read(slot))
        uniform = [id for id in copies if isinstance(self.homes.found[id], UniformHome)]
        if not uniform:
            return
        done = code.fresh("done")
        innermost = function.innermost()
        if innermost is not None:  # a group that left early has not computed them
            some = code.fresh("some")
            code.branch(masks.any_lane(code, innermost.get()), some, done)
            code.label(some)
        for id in uniform:
            home = self.homes.found[id]
            assert isinstance(home, UniformHome)
            code.write(home.next, code.read(copies[id]))
        code.label(done)
