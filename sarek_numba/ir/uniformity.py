"""Which values, and which control flow, are the same for all threads of a group.

The lattice is UNIFORM ≤ BLOCK ≤ WARP ≤ THREAD: the same for the whole launch, for each block, for
each warp, for nothing larger than a thread. `analyse(kernel)` gives a level to every variable,
expression and statement; `ir.verify` refuses barriers with it, and the native code generator keeps
in scalars what is uniform for a block.

Levels compare the threads that are *there*: the threads that evaluate an expression at one time,
going through the code in step. So a variable bound under `if i < n` to a uniform value is uniform,
while one that was bound outside and is assigned there is not. Threads that have returned do not
come back, so a `return` makes no value divergent; threads that break or continue do, so they make
divergent whatever the loop assigns and something outside it can read. A barrier asks for more:
that all threads of the block reach it. Control counts every earlier departure that has not ended
at a loop.

A load is as uniform as its index where the array is read-only in the kernel or constant; from
shared memory it is uniform for the block at best, and only if no store happened since the last
barrier. Shared memory is followed in the order of stores and barriers. Variables are followed
without regard to the order of assignments, unless `ordered` asks for it: who keeps a variable in
one place wants one level for it; who refuses a barrier wants the level where the barrier stands.
Each helper is analysed once for each combination of argument levels that it is called with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sarek_numba.ir.effects import array_arguments, effects_of
from sarek_numba.ir.nodes import (
    SHUFFLES,
    App,
    ArrayRead,
    Assign,
    Atomic,
    AtomicOp,
    Barrier,
    Body,
    Break,
    Call,
    CMDecl,
    Const,
    Continue,
    Coopmat,
    Expr,
    For,
    HelperFunction,
    If,
    Index,
    Kernel,
    Let,
    LetMut,
    LVar,
    Match,
    MatchExpr,
    PConstr,
    Return,
    SharedDecl,
    Stmt,
    TupleExpr,
    Var,
    VarRef,
    Warp,
    WarpBarrier,
    WarpOp,
    While,
)
from sarek_numba.ir.types import UNIT, Array, MemSpace, TupleType, Vec
from sarek_numba.ir.variance import (
    BLOCK,
    CLEAN,
    COORDINATE_VARIANCE,
    THREAD,
    TOGETHER,
    UNIFORM,
    WARP,
    Control,
    Frame,
    Function,
    Loop,
    State,
    Synchronisation,
    Uniformity,
    Variance,
    Way,
    join_states,
)
from sarek_numba.ir.walk import (
    assigned_by,
    bodies_of,
    deep_recursion,
    expressions_of,
    operands,
    root_variable,
)

__all__ = [
    "BLOCK",
    "THREAD",
    "UNIFORM",
    "WARP",
    "Control",
    "Function",
    "Synchronisation",
    "Uniformity",
    "Variance",
    "Way",
    "analyse",
]


def analyse(kernel: Kernel, *, ordered: bool = False) -> Uniformity:
    """The levels of everything in a verified kernel.

    `ordered` follows assignments in their order: a variable that is uniform here counts as uniform
    here, also where it is assigned something else later. Its own level is that of all its values.
    """
    with deep_recursion():
        program = _Program(kernel, ordered)
        return Uniformity(kernel, program.main(), program.uncalled())


class _Program:
    """What the analysis of every function of a kernel shares."""

    def __init__(self, kernel: Kernel, ordered: bool) -> None:
        self.kernel = kernel
        self.ordered = ordered
        self.helpers = {function.name: function for function in kernel.functions}
        self.written = effects_of(kernel).writes
        self.called: set[str] = set()
        self.memo: dict[object, Function] = {}
        self.spaces: dict[int, MemSpace] = {}
        self.roots: dict[int, int] = {}
        dynamic: int | None = None
        for decl in (*kernel.params, *kernel.locals):
            var = decl.var
            if not isinstance(var.type, Vec | Array):
                continue
            root = var.id
            if isinstance(decl, SharedDecl) and decl.size is None:
                dynamic = root = var.id if dynamic is None else dynamic  # all views overlap
            self.roots[var.id] = root
            self.spaces[root] = var.type.space if isinstance(var.type, Array) else MemSpace.GLOBAL

    def main(self) -> Function:
        decls = (*self.kernel.params, *self.kernel.locals)
        run = _Run(self, self.roots, {decl.var.id: UNIFORM for decl in decls}, CLEAN)
        return run.finish(self.kernel.body)

    def uncalled(self) -> list[Function]:
        """Helpers that the kernel does not reach, analysed for arguments that are not uniform."""
        found: list[Function] = []
        for helper in reversed(self.kernel.functions):  # a caller comes after what it calls
            if helper.name not in self.called:
                arrays = {p.id: -1 for p in helper.params if isinstance(p.type, Vec | Array)}
                found.append(self.call(helper, arrays, [THREAD] * len(helper.params), CLEAN))
        return found

    def call(
        self,
        helper: HelperFunction,
        arrays: dict[int, int],
        args: list[Variance],
        dirty: frozenset[int],
    ) -> Function:
        """The analysis of a helper for the arrays (parameter to root) and levels of one call."""
        self.called.add(helper.name)
        key = (helper.name, tuple(args), tuple(arrays.values()), dirty)
        known = self.memo.get(key)
        if known is None:
            levels = {param.id: arg for param, arg in zip(helper.params, args, strict=True)}
            levels.update((decl.var.id, UNIFORM) for decl in helper.locals)
            run = _Run(self, {**self.roots, **arrays}, levels, dirty)
            result = helper.result
            count = len(result.items) if isinstance(result, TupleType) else result != UNIT
            run.result.results = [UNIFORM] * count
            known = self.memo[key] = run.finish(helper.body)
        return known


class _Run:
    """The analysis of one function: passes over its body until no level rises."""

    def __init__(
        self,
        program: _Program,
        roots: Mapping[int, int],
        levels: dict[int, Variance],
        dirty: frozenset[int],
    ) -> None:
        self.program = program
        self.roots = roots
        self.levels = levels
        self.depths: dict[int, int] = {}
        self.entry = State(dirty)
        self.known: dict[int, Loop] = {}  # each loop as the last pass left it
        self.result = Function(levels)

    def finish(self, body: Body) -> Function:
        while True:
            self.changed = False
            self.result = Function(self.levels, self.result.results)
            self.frames: list[Frame] = []
            self.loops: list[Loop] = []
            self.returned = TOGETHER
            self.state: State | None = self.entry
            self.body(body)
            self.ended()
            if not self.changed:
                return self.result

    def ended(self) -> None:
        if self.state is not None:
            self.result.dirty = (self.result.dirty or CLEAN) | self.state.dirty

    # --- control --------------------------------------------------------------------------------

    def control(self, from_frame: int = 0, from_loop: int = 0) -> Control:
        """How far the threads here are together, counting frames and loops from the given ones."""
        joined = self.returned if from_frame == 0 else TOGETHER
        for frame in self.frames[from_frame:]:
            joined = joined.join(frame.control)
        for loop in self.loops[from_loop:]:
            joined = joined.join(loop.left)
        return joined

    def branch(self, body: Body, control: Control) -> None:
        self.frames.append(Frame(control, control))
        self.body(body)
        self.frames.pop()

    def branches(self, arms: Iterable[tuple[Body, Control]]) -> None:
        """Arms that start from one state; the states in which they end are joined."""
        loop = self.loops[-1] if self.loops else Loop(0)
        start = (self.returned, loop.left, self.state)
        returned, left, state = TOGETHER, TOGETHER, None
        for body, control in arms:
            self.returned, loop.left, self.state = start
            self.branch(body, control)
            returned, left = returned.join(self.returned), left.join(loop.left)
            state = join_states(state, self.state)
        self.returned, loop.left, self.state = returned, left, state

    def loop(self, stmt: For | While) -> None:
        last = self.known.get(id(stmt), Loop(0))
        entry_state, entry_returned = self.state, self.returned
        if isinstance(stmt, For):  # its bounds are evaluated once, before the loop
            trip = self.trip(stmt)
            self.bind(stmt.var, max(self.known_level(stmt.first), self.known_level(stmt.step)), 1)
        self.returned = entry_returned.join(last.returned)
        self.state = head = join_states(entry_state, last.next)
        if isinstance(stmt, While):
            trip = self.trip(stmt)
        control = trip.join(last.broken)
        value = control.join(last.continued)
        this = Loop(len(self.frames))
        self.frames.append(Frame(value, control))
        self.loops.append(this)
        self.body(stmt.body)
        self.loops.pop()
        self.frames.pop()
        this.next = join_states(this.next, self.state)
        self.result.loops[id(stmt)] = max(value.level, self.result.loops.get(id(stmt), UNIFORM))
        self.returned = entry_returned.join(this.returned)
        self.state = join_states(head, this.after)
        self.remember(stmt, last, this)

    def trip(self, stmt: For | While) -> Control:
        """What decides the number of passes."""
        bounds = (Control(self.level(e), e, Way.PASSES) for e in expressions_of(stmt))
        return max(bounds, key=_level)

    def remember(self, stmt: For | While, last: Loop, this: Loop) -> None:
        """Keep how a loop was left for the next pass, which is needed if anything grew."""
        kept = Loop(
            0,
            broken=last.broken.join(this.broken),
            continued=last.continued.join(this.continued),
            returned=last.returned.join(this.returned),
            next=join_states(last.next, this.next),
        )
        grew = (
            kept.broken.level > last.broken.level
            or kept.continued.level > last.continued.level
            or kept.returned.level > last.returned.level
            or kept.next != last.next
        )
        if grew or id(stmt) not in self.known:
            self.known[id(stmt)] = kept
            self.changed = self.changed or grew

    # --- statements -----------------------------------------------------------------------------

    def body(self, body: Body) -> None:
        for stmt in body:
            control = self.control()
            known = self.result.controls.get(id(stmt), TOGETHER)
            self.result.controls[id(stmt)] = known.join(control)
            self.statement(stmt, control)

    def statement(self, stmt: Stmt, control: Control) -> None:
        match stmt:
            case Let(var=var, value=value):
                self.bind(var, self.level(value))
            case LetMut(var=var, value=initial):
                level = UNIFORM if initial is None else self.level(initial)
                self.bind(var, level)
                self.assigned(var, level)
            case Assign():
                self.assignment(stmt)
            case If(condition=condition, then=then, orelse=orelse):
                here = Control(self.level(condition), condition)
                self.branches([(then, here), (orelse, here.others())])
            case Match(scrutinee=scrutinee, cases=cases):
                here = Control(self.level(scrutinee), scrutinee)
                for pattern, _ in cases:
                    if isinstance(pattern, PConstr):
                        self.bind_all(pattern.bound, [here.level] * len(pattern.bound), inside=1)
                self.branches([(body, here) for _, body in cases])
            case For() | While():
                self.loop(stmt)
            case Break() | Continue():
                self.departure(stmt)
            case Return(value=result):
                self.function_return(result, control)
            case Barrier() | WarpBarrier():
                self.result.synchronisations.append(Synchronisation(stmt, control))
                if isinstance(stmt, Barrier):
                    self.touched(CLEAN)
            case Warp(result=result):
                self.result.synchronisations.append(Synchronisation(stmt, control))
                self.bind(result, self.collective(stmt))
            case Call():
                self.call(stmt, control)
            case Atomic(op=op, result=result, array=array):
                self.evaluate(stmt)
                if op is not AtomicOp.LOAD:
                    self.stored(array)
                if result is not None:
                    self.bind(result, THREAD)
            case _:
                if isinstance(stmt, Coopmat) and not isinstance(stmt.op, CMDecl):
                    self.result.synchronisations.append(Synchronisation(stmt, control))
                self.evaluate(stmt)
                written = assigned_by(stmt)
                if written is not None:
                    self.stored(written)
                for inner in bodies_of(stmt):
                    self.body(inner)

    def evaluate(self, stmt: Stmt) -> None:
        for expr in expressions_of(stmt):
            self.level(expr)

    def assignment(self, stmt: Assign) -> None:
        levels = [self.level(expr) for expr in expressions_of(stmt)]
        target = root_variable(stmt.target)
        if target is None or isinstance(target.type, Vec | Array):
            if target is not None:
                self.stored(target)
            return
        # what a part of the variable is assigned from counts for all of it
        depth = self.depths.get(target.id, 0)
        frames = (frame.value.level for frame in self.frames[depth:])
        value = max(levels[0] if isinstance(stmt.target, LVar) else max(levels), *frames, UNIFORM)
        self.raise_level(target, value)
        if isinstance(stmt.target, LVar):
            self.assigned(target, value)
        else:
            self.assigned(target, max(value, self.of_variable(target)))

    def departure(self, stmt: Break | Continue) -> None:
        loop = self.loops[-1]
        gone = self.control(loop.frame + 1, len(self.loops) - 1).others()
        loop.left = loop.left.join(gone)
        if isinstance(stmt, Break):
            loop.broken = loop.broken.join(gone)
            loop.after = join_states(loop.after, self.state)
        else:
            loop.continued = loop.continued.join(gone)
            loop.next = join_states(loop.next, self.state)
        self.state = None

    def function_return(self, value: Expr | None, control: Control) -> None:
        gone = control.others()
        self.returned = self.returned.join(gone)
        for loop in self.loops:
            loop.returned = loop.returned.join(gone)
        self.ended()
        if value is not None:
            items = value.items if isinstance(value, TupleExpr) else (value,)
            levels = [max(self.level(item), control.level) for item in items]
            if isinstance(value, TupleExpr):
                pairs = zip(self.result.results, levels, strict=True)
                self.result.results = [max(pair) for pair in pairs]
            else:
                self.result.results = [max(known, *levels) for known in self.result.results]
        self.state = None

    def call(self, stmt: Call, control: Control) -> None:
        callee = self.callee(stmt.function, stmt.args)
        self.result.called.append((callee, control))
        if callee.synchronisations:
            self.result.synchronisations.append(Synchronisation(stmt, control, callee))
        self.touched(callee.dirty)
        if stmt.results:  # a result may be left alone
            self.bind_all(stmt.results, callee.results)

    def collective(self, stmt: Warp) -> Variance:
        """The level of a collective's result: lanes that agree give what they agree on."""
        value = UNIFORM if stmt.value is None else self.level(stmt.value)
        source = THREAD if stmt.lane is None else self.level(stmt.lane)
        if stmt.op not in SHUFFLES:
            return min(value, WARP)
        whole = stmt.width == self.program.kernel.warp_width
        if stmt.op is WarpOp.SHUFFLE and whole and source <= WARP:
            return value if value <= WARP else self.one_lane(stmt)
        return value

    def one_lane(self, stmt: Warp) -> Variance:
        """A source lane within the warp gives its value to all; one outside, each its own."""
        lane = stmt.lane
        known = isinstance(lane, Const) and 0 <= int(lane.value) < stmt.width
        return WARP if known else THREAD

    def callee(self, function: str, args: tuple[Expr, ...]) -> Function:
        helper = self.program.helpers[function]
        pairs = array_arguments(helper.params, args)
        arrays = {param.id: self.roots.get(array.id, -1) for param, array in pairs}
        levels = [self.level(arg) for arg in args]
        return self.program.call(helper, arrays, levels, self.dirty)

    def stored(self, array: Var) -> None:
        root = self.roots.get(array.id)
        if root is not None and self.program.spaces.get(root) is MemSpace.SHARED:
            self.touched(self.dirty | {root})

    @property
    def dirty(self) -> frozenset[int]:
        return CLEAN if self.state is None else self.state.dirty

    def touched(self, dirty: frozenset[int] | None) -> None:
        """From here on these shared arrays have been stored to; None where control ends."""
        if dirty is None or self.state is None:
            self.state = None
        else:
            self.state = State(dirty, self.state.levels)

    # --- values ---------------------------------------------------------------------------------

    def bind(self, var: Var, level: Variance, inside: int = 0) -> None:
        self.depths[var.id] = len(self.frames) + inside
        self.raise_level(var, level)

    def bind_all(self, variables: tuple[Var, ...], levels: list[Variance], inside: int = 0) -> None:
        for var, level in zip(variables, levels, strict=True):
            self.bind(var, level, inside)

    def raise_level(self, var: Var, level: Variance) -> None:
        known = self.levels.get(var.id)
        if known is None or level > known:
            self.levels[var.id] = level
            self.changed = self.changed or known is not None  # a binding precedes every use

    def assigned(self, var: Var, level: Variance) -> None:
        if self.program.ordered and self.state is not None:
            self.state = self.state.assigned(var, level)

    def of_variable(self, var: Var) -> Variance:
        here = None if self.state is None else self.state.levels.get(var.id)
        return self.levels.get(var.id, UNIFORM) if here is None else here

    def level(self, expr: Expr) -> Variance:
        match expr:
            case VarRef(var=var):
                found = self.of_variable(var)
            case ArrayRead(array=array, index=index):
                found = self.load(array, self.level(index))
            case Index(coordinate=coordinate):
                found = COORDINATE_VARIANCE[coordinate]
            case App(function=function, args=args):
                callee = self.callee(function, args)
                self.result.called.append((callee, self.control()))
                found = max(callee.results, default=UNIFORM)
            case MatchExpr(scrutinee=scrutinee, cases=cases):
                found = self.level(scrutinee)
                for pattern, value in cases:
                    if isinstance(pattern, PConstr):
                        self.bind_all(pattern.bound, [found] * len(pattern.bound))
                    found = max(found, self.level(value))
            case _:
                found = UNIFORM
                for operand in operands(expr):
                    found = max(found, self.level(operand))
        known = self.result.exprs.get(id(expr))
        if known is not None and known > found:
            return found
        self.result.exprs[id(expr)] = found
        return found

    def known_level(self, expr: Expr) -> Variance:
        return self.result.exprs[id(expr)]

    def load(self, array: Var, index: Variance) -> Variance:
        root = self.roots.get(array.id, -1)
        match self.program.spaces.get(root):
            case MemSpace.CONSTANT:
                return index
            case MemSpace.GLOBAL:
                return THREAD if root in self.program.written else index
            case MemSpace.SHARED:
                return THREAD if root in self.dirty else max(index, BLOCK)
            case _:
                return THREAD


def _level(control: Control) -> Variance:
    return control.level
