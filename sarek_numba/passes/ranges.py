"""Range analysis: the integers that every expression and variable of a kernel can have.

`ranges_of(kernel)` interprets the kernel over intervals (P. Cousot and R. Cousot, "Abstract
interpretation", POPL 1977). The result is sound for every launch that the kernel was specialised
for and that indexes within its arrays: an index out of range has no meaning on a device, so a
`Subscript` is taken to be within its extent.

Loops run to a fixed point, bounds that keep moving are widened, and what was found for a loop is
where its next visit starts: nested loops cost the sum of their rounds, not the product. A helper is
interpreted for the ranges of its arguments at each call, and for any arguments after some calls.

Facts are kept by node, joined over all visits; `passes.guards` and `passes.narrow` act on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sarek_numba.ir.nodes import (
    Assign,
    Atomic,
    Block,
    Body,
    Break,
    Call,
    Const,
    Continue,
    Direction,
    Expr,
    For,
    HelperFunction,
    If,
    Kernel,
    Let,
    LetMut,
    LVar,
    Match,
    Native,
    ParamDecl,
    Pragma,
    Return,
    Seq,
    Stmt,
    Var,
    Warp,
    While,
)
from sarek_numba.ir.texts import is_given
from sarek_numba.ir.types import BOOL, LengthOf, OffsetOf, ShapeOf, StrideOf, UserArgument
from sarek_numba.ir.walk import assigned_by, bodies_of, deep_recursion, expressions_of
from sarek_numba.passes.common import Types
from sarek_numba.passes.evaluate import Evaluator
from sarek_numba.passes.interval import Interval, hull, widen
from sarek_numba.passes.refine import Refiner, is_stable, type_interval
from sarek_numba.passes.state import Layer, State

# Rounds of a loop before bounds that move are widened, and before its variables may be anything:
# fewer within other loops, which each visit it anew.
_ROUNDS = ((2, 10), (2, 10), (1, 6))
_INNER_ROUNDS = (1, 2)
_MOST_CONTEXTS = 6  # calls of a helper that are told apart


@dataclass(slots=True)
class Ranges:
    """What was found. Nodes are told apart by identity, so the kernel analysed is kept."""

    kernel: Kernel
    facts: dict[int, Interval] = field(default_factory=dict)
    edges: set[int] = field(default_factory=set)
    values: dict[int, Interval] = field(default_factory=dict)

    def of(self, expr: Expr) -> Interval | None:
        """Every value of an integer or bool expression; None for others and in dead code."""
        if isinstance(expr, Const):
            return None if expr.type.is_float else (int(expr.value), int(expr.value))
        return self.facts.get(id(expr))

    def of_variable(self, var: Var) -> Interval | None:
        """Every value that an integer or bool variable ever holds; None if it is never bound."""
        return self.values.get(var.id)

    def avoids_edge(self, expr: Expr) -> bool:
        """Whether an integer operator is evaluated, and never meets its edge."""
        return id(expr) in self.facts and id(expr) not in self.edges


def ranges_of(kernel: Kernel) -> Ranges:
    """The ranges of a kernel and of its helpers as the kernel calls them."""
    with deep_recursion():
        ranges = Ranges(kernel)
        _Analysis(ranges).run()
    return ranges


def _param_range(param: ParamDecl) -> Interval | None:
    known = type_interval(param.var.type)
    if known is None or isinstance(param.role, UserArgument):
        return known
    match param.role:
        case StrideOf():
            return (-known[1], known[1])
        case LengthOf() | OffsetOf() | ShapeOf() | _:
            return (0, known[1])


@dataclass(slots=True)
class _Frame:
    """A loop being interpreted: what holds wherever it is left or begun again."""

    depth: int
    breaks: list[Layer] = field(default_factory=list)
    continues: list[Layer] = field(default_factory=list)


@dataclass(slots=True)
class _Loop:
    """What is known of a loop from its visits so far."""

    assigned: tuple[Var, ...]
    invariant: Layer = field(default_factory=dict)
    rounds: int = 0


class _Analysis:
    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self.kernel = ranges.kernel
        self.helpers = {function.name: function for function in self.kernel.functions}
        self.contexts: dict[str, dict[tuple[Interval | None, ...], Interval | None]] = {}
        self.loops: dict[int, _Loop] = {}
        self.definitions: dict[int, Expr] = {}
        self.types = Types()
        self._enter()

    def run(self) -> None:
        for param in self.kernel.params:
            self._bind(param.var, _param_range(param))
        for decl in self.kernel.locals:
            self._bind(decl.var, type_interval(decl.var.type))
        self._body(self.kernel.body)

    def _enter(self) -> None:
        """Start a body that knows nothing: the kernel's or a helper's."""
        self.state = State()
        self.frames: list[_Frame] = []
        self.returned: Interval | None = None
        self.evaluator = Evaluator(self.state, self.ranges, self._assume, self._call, self.types)
        self.evaluate = self.evaluator.evaluate
        self.differences = self.evaluator.differences
        self.refiner = Refiner(
            self.state, self.evaluate, self.types, self.definitions, self.differences
        )

    def _assume(self, condition: Expr, truth: bool) -> bool:
        return self.refiner.assume(condition, truth)

    # --- variables ---

    def _record(self, var: Var, value: Interval) -> None:
        known = self.ranges.values.get(var.id)
        new = value if known is None else hull(known, value)
        if new != known:
            self.ranges.values[var.id] = new
            self.state.touch()

    def _bind(self, var: Var, value: Interval | None) -> None:
        """`var` now holds a value; None is any value of its type."""
        self.differences.forget(var)
        whole = type_interval(var.type)
        if whole is None:
            return
        value = value or whole
        self._record(var, value)
        if var.mutable:
            self.state.set(var.id, value)

    # --- statements ---

    def _body(self, body: Body) -> bool:
        """Interpret a body; False if its end is never reached."""
        return all(self._statement(stmt) for stmt in body)

    def _statement(self, stmt: Stmt) -> bool:
        match stmt:
            case Let(var=var, value=value):
                self._bind(var, self.evaluate(value))
                self.evaluator.name_place(var, value)
                if var.type is BOOL and is_stable(value):
                    self.definitions[var.id] = value
            case LetMut(var=var, value=None):
                self._bind(var, (0, 0))  # what a device reads before the first assignment
            case LetMut(var=var, value=value) | Assign(target=LVar(var=var), value=value):
                assert value is not None
                self._bind(var, self.evaluate(value))
            case If():
                return self._branch(stmt)
            case While():
                return self._while(stmt)
            case For():
                return self._for(stmt)
            case Break():
                frame = self.frames[-1]
                frame.breaks.append(self.state.above(frame.depth))
                return False
            case Continue():
                frame = self.frames[-1]
                frame.continues.append(self.state.above(frame.depth))
                return False
            case Return(value=value):
                self._return(value)
                return False
            case Seq(body=body) | Block(body=body) | Pragma(body=body) | Native(fallback=body):
                return self._body(body)
            case Match():
                return self._match(stmt)
            case Call(results=results, function=function, args=args):
                result = self._call(function, args)
                for var in results:
                    self._bind(var, result if len(results) == 1 else None)
            case _:
                for expr in expressions_of(stmt):
                    self.evaluate(expr)
                if isinstance(stmt, Atomic | Warp) and stmt.result is not None:
                    self._bind(stmt.result, None)
        return True

    def _return(self, value: Expr | None) -> None:
        result = None if value is None else self.evaluate(value)
        if result is not None:
            self.returned = result if self.returned is None else hull(self.returned, result)

    def _branch(self, stmt: If) -> bool:
        self.evaluate(stmt.condition)
        ends = []
        for truth, body in ((True, stmt.then), (False, stmt.orelse)):
            self.state.push()
            reached = self._assume(stmt.condition, truth) and self._body(body)
            layer = self.state.pop()
            if reached:
                ends.append(layer)
        if ends:
            self.state.join(ends)
        return bool(ends)

    def _match(self, stmt: Match) -> bool:
        self.evaluate(stmt.scrutinee)
        ends = []
        for body in bodies_of(stmt):
            self.state.push()
            reached = self._body(body)
            layer = self.state.pop()
            if reached:
                ends.append(layer)
        if ends:
            self.state.join(ends)
        return bool(ends)

    # --- loops ---

    def _loop_of(self, stmt: For | While) -> _Loop:
        known = self.loops.get(id(stmt))
        if known is None:
            _find_loops((stmt,), self.loops)
            known = self.loops[id(stmt)]
        return known

    def _repeat(self, stmt: For | While, once: Callable[[Layer, _Frame], list[Layer]]) -> bool:
        """Run `once` on what holds at the head of the loop until that stays as it is.

        `once` interprets a pass and gives what holds where the loop ends by itself.
        """
        loop = self._loop_of(stmt)
        inner = dict(loop.invariant)
        for var in loop.assigned:
            entry = self.state.get(var.id)
            if entry is None:  # declared within the loop, or nothing known
                inner.pop(var.id, None)
            else:
                inner[var.id] = hull(entry, inner.get(var.id, entry))
        while True:
            frame = _Frame(self.state.depth)
            self.frames.append(frame)
            for var in loop.assigned:
                self.differences.forget(var)
            ends = once(dict(inner), frame)
            self.frames.pop()
            if not self._grow(loop, inner, frame.continues):
                break
        loop.invariant = inner
        ends += frame.breaks
        if ends:
            self.state.join(ends)
        return bool(ends)

    def _grow(self, loop: _Loop, inner: Layer, backs: list[Layer]) -> bool:
        """Take what holds at the ends of a pass into what holds at the head; whether it was new."""
        grown = False
        depth = len(self.frames)
        exact, most = _ROUNDS[depth] if depth < len(_ROUNDS) else _INNER_ROUNDS
        for var in loop.assigned:
            old = inner.get(var.id)
            whole = type_interval(var.type)
            if old is None or whole is None:
                continue
            new = old
            for back in backs:
                new = hull(new, back.get(var.id, whole))
            if new == old:
                continue
            grown = True
            if loop.rounds >= most:
                new = whole
            elif loop.rounds >= exact:
                new = widen(old, new, whole)
            inner[var.id] = new
        loop.rounds += grown
        return grown

    def _while(self, stmt: While) -> bool:
        def once(head: Layer, frame: _Frame) -> list[Layer]:
            ends = []
            self.state.push(head)
            self.evaluate(stmt.condition)
            self.state.push()
            if self._assume(stmt.condition, False):
                ends.append(self.state.above(frame.depth))
            self.state.pop()
            if self._assume(stmt.condition, True) and self._body(stmt.body):
                frame.continues.append(self.state.above(frame.depth))
            self.state.pop()
            return ends

        return self._repeat(stmt, once)

    def _for(self, stmt: For) -> bool:
        first, stop, step = (self.evaluate(e) for e in (stmt.first, stmt.stop, stmt.step))
        assert first is not None
        assert stop is not None
        assert step is not None
        values = loop_values(stmt.direction, first, stop, step)

        def once(head: Layer, frame: _Frame) -> list[Layer]:
            self.state.push(head)
            ends = [self.state.above(frame.depth)]
            if values is not None:
                self._bind(stmt.var, values)
                if self._body(stmt.body):
                    frame.continues.append(self.state.above(frame.depth))
            self.state.pop()
            return ends

        return self._repeat(stmt, once)

    # --- helpers ---

    def _call(self, name: str, args: tuple[Expr, ...]) -> Interval | None:
        """The values that a helper gives for these arguments, if it is one integer or bool."""
        given = tuple(self.evaluate(arg) for arg in args)
        contexts = self.contexts.setdefault(name, {})
        function = self.helpers[name]
        if given not in contexts and len(contexts) >= _MOST_CONTEXTS:
            given = tuple(type_interval(param.type) for param in function.params)
        if given not in contexts:
            contexts[given] = None
            contexts[given] = self._interpret(function, given)
        return contexts[given]

    def _interpret(
        self, function: HelperFunction, given: tuple[Interval | None, ...]
    ) -> Interval | None:
        outer = (self.state, self.frames, self.returned, self.evaluator, self.refiner)
        self._enter()
        for param, value in zip(function.params, given, strict=True):
            self._bind(param, value)
            if value is not None:
                self.state.set(param.id, value)
        for decl in function.locals:
            self._bind(decl.var, None)
        falls_off = self._body(function.body)
        result = self.returned
        self.state, self.frames, self.returned, self.evaluator, self.refiner = outer
        self.evaluate = self.evaluator.evaluate
        self.differences = self.evaluator.differences
        if type_interval(function.result) is None or result is None or is_given(function):
            return None  # a text need not keep what its fallback does
        return hull(result, (0, 0)) if falls_off else result


def loop_values(
    direction: Direction, first: Interval, stop: Interval, step: Interval
) -> Interval | None:
    """The values of a loop's variable; None if the body never runs."""
    up = (first[0], stop[1] - 1) if first[0] < stop[1] else None
    down = (stop[0] + 1, first[1]) if stop[0] < first[1] else None
    if direction is Direction.UPTO or step[0] > 0:
        return up
    if direction is Direction.DOWNTO or step[1] < 0:
        return down
    return hull(up, down) if up and down else up or down


def _find_loops(body: Body, found: dict[int, _Loop]) -> dict[int, Var]:
    """Note every loop within a body; the integer variables assigned in the body."""
    assigned: dict[int, Var] = {}
    for stmt in body:
        within: dict[int, Var] = {}
        for inner in bodies_of(stmt):
            within.update(_find_loops(inner, found))
        if isinstance(stmt, For | While):
            found[id(stmt)] = _Loop(tuple(within.values()))
        assigned.update(within)
        var = assigned_by(stmt)
        if var is not None and type_interval(var.type) is not None:
            assigned[var.id] = var
    return assigned
