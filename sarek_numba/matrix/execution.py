"""A kernel run once with symbols for its indices: what it stores, as an expression of its inputs.

Statements are followed in order. A variable has the expression that it was given, a branch merges
into an `IfExpr`, a loop is run once for all of its passes: what one pass hands to the next is a
variable of its own, `carry`, and a loop whose carry only has products added to it is a `Sum`
(`matrix.sums`). Every loop that is not one is an axis. What is left is one `Cell`: the store.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sarek_numba.ir.build import Fresh
from sarek_numba.ir.nodes import (
    ArrayRead,
    Assert,
    Assign,
    Block,
    Body,
    Break,
    Cast,
    Const,
    Continue,
    Empty,
    Expr,
    ExprStmt,
    For,
    If,
    IfExpr,
    Kernel,
    LElement,
    Let,
    LetMut,
    LocalDecl,
    LVar,
    Pragma,
    Return,
    Seq,
    Stmt,
    Var,
    VarRef,
    While,
)
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.walk import declared_by, map_expr, walk_exprs, walk_stmts
from sarek_numba.matrix.conditions import conjuncts, negated, variables
from sarek_numba.matrix.indices import Space
from sarek_numba.matrix.loops import Passes, induction, passes_of, while_passes
from sarek_numba.matrix.polynomial import Polynomial, symbol
from sarek_numba.matrix.reasons import Reason, Refusal
from sarek_numba.matrix.sums import Sum, Summing, summed
from sarek_numba.span import Span

_MOST_NODES = 20_000


@dataclass(frozen=True, slots=True)
class Cell:
    """What one element of an array holds, `axes` being the loops that have ended around it."""

    array: Var
    index: Polynomial
    value: Expr
    guards: tuple[Expr, ...]
    axes: tuple[int, ...]
    span: Span | None


@dataclass(slots=True)
class Frame:
    """A loop that is being run: its axis, and the variables that stand for what it carries."""

    axis: int
    writes: frozenset[int]
    carried: dict[int, tuple[Var, Expr]]
    carried_cells: list[tuple[Var, Polynomial, Var]] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)


class Execution:
    """Runs a kernel; then `cells` are its stores and `sums` its sums, by the id of a variable."""

    def __init__(self, kernel: Kernel) -> None:
        self.fresh = Fresh.beyond(kernel)
        self.space = Space(self.fresh)
        self.environment: dict[int, Expr] = {}
        self.guards: list[Expr] = []
        self.frames: list[Frame] = []
        self.root: list[Cell] = []
        self.sums: dict[int, Sum] = {}
        self.befores: dict[int, tuple[Var, Polynomial]] = {}
        self.asserted: list[tuple[Expr, str, Span | None]] = []
        self.stale: dict[int, str] = {}
        self.written = _written(kernel.body)
        self.nodes = 0
        for decl in kernel.locals:
            if isinstance(decl, LocalDecl) and isinstance(decl.var.type, Scalar):
                given = decl.value
                self.environment[decl.var.id] = (
                    VarRef(self._stale(decl.var)) if given is None else self.value(given)
                )
        self._body(kernel.body)

    @property
    def cells(self) -> list[Cell]:
        """The cells that the innermost loop has stored so far."""
        return self.frames[-1].cells if self.frames else self.root

    @cells.setter
    def cells(self, cells: list[Cell]) -> None:
        if self.frames:
            self.frames[-1].cells = cells
        else:
            self.root = cells

    # --- values -----------------------------------------------------------------------------------

    def value(self, expr: Expr) -> Expr:
        """An expression in terms of inputs and symbols."""

        def known(node: Expr) -> Expr:
            self.nodes += 1
            if self.nodes > _MOST_NODES:
                raise Refusal(Reason.TOO_LARGE)
            match node:
                case VarRef(var=var):
                    found = self.environment.get(var.id, node)
                    return replace(found, span=node.span) if _is_leaf(found) else found
                case ArrayRead(array=array, index=index) if array.id in self.written:
                    polynomial = self.space.polynomial(index)
                    return self._load(array, polynomial, len(self.frames), node.span)
                case IfExpr(condition=condition, then=then, orelse=orelse):
                    return self._chosen(condition, then, orelse, node)
                case _:
                    return node

        return map_expr(expr, known)

    def _chosen(self, condition: Expr, then: Expr, orelse: Expr, node: Expr) -> Expr:
        if condition in self.guards:
            return then
        return orelse if negated(condition) in self.guards else node

    def _load(self, array: Var, index: Polynomial, level: int, span: Span | None) -> Expr:
        """What an element of an array that the kernel writes holds now, `level` loops deep."""
        cells = self.frames[level - 1].cells if level else self.root
        others = False
        for cell in reversed(cells):
            if cell.array.id != array.id:
                continue
            renamed = self._matched(cell, index)
            if renamed is not None:
                if set(cell.guards) - set(self.guards):
                    raise Refusal(Reason.READS_OTHER, array.name, span=span)
                return self._renamed(cell.value, renamed)
            others = True
        if others:
            raise Refusal(Reason.READS_OTHER, array.name, span=span)
        if level and array.id in self.frames[level - 1].writes:
            return VarRef(self._carry_of(array, index, self.frames[level - 1]), span=span)
        return self._load(array, index, level - 1, span) if level else self._before(array, index)

    def _carry_of(self, array: Var, index: Polynomial, frame: Frame) -> Var:
        for known, at, carry in frame.carried_cells:
            if known.id == array.id and at == index:
                return carry
        carry = self._opaque(array.name, _element(array))
        self.space.elements.add(carry.id)
        frame.carried_cells.append((array, index, carry))
        return carry

    def _before(self, array: Var, index: Polynomial) -> Expr:
        for var_id, (known, at) in self.befores.items():
            if known.id == array.id and at == index:
                return VarRef(Var(array.name, var_id, _element(array)))
        var = self._opaque(array.name, _element(array))
        self.befores[var.id] = array, index
        self.space.elements.add(var.id)
        return VarRef(var)

    def _opaque(self, name: str, kind: Scalar) -> Var:
        var = self.fresh(name, kind)
        self.space.opaque.add(var.id)
        return var

    def _matched(self, cell: Cell, index: Polynomial) -> dict[int, int] | None:
        """How the ended loops of a cell are called now, if it is the one at `index`."""
        symbols = self.space.symbols
        shared = cell.index.symbols & index.symbols
        ended = [axis for axis in sorted(cell.axes) if axis in cell.index.symbols - shared]
        opened = [
            axis
            for axis in sorted(self.space.iterations(index) - shared)
            if symbols[axis].coordinate is None
        ]
        if len(opened) != len(ended):
            return None
        renamed = dict(zip(ended, opened, strict=True))
        for old, new in renamed.items():
            if (symbols[old].extent, symbols[old].uppers) != (
                symbols[new].extent,
                symbols[new].uppers,
            ):
                return None
        at = cell.index
        for old, new in renamed.items():
            at = at.replaced(old, symbol(new))
        return renamed if at == index else None

    def _renamed(self, value: Expr, renamed: dict[int, int]) -> Expr:
        symbols = self.space.symbols
        named: dict[int, Expr] = {
            symbols[a].var.id: VarRef(symbols[b].var) for a, b in renamed.items()
        }
        if named and any(var.id in self.sums for var in variables(value)):
            value = self._renamed_sums(value, renamed)
        return _replaced(value, named)

    def _renamed_sums(self, value: Expr, renamed: dict[int, int]) -> Expr:
        """Sums over elements of another loop are those of the loop that runs now."""
        for var in variables(value):
            found = self.sums.get(var.id)
            if found is not None:
                made = self._opaque(var.name, found.type)
                start = self._renamed(found.start, renamed)
                self.sums[made.id] = found.renamed(made, start, renamed, self.space)
                value = _replaced(value, {var.id: VarRef(made)})
        return value

    # --- statements -------------------------------------------------------------------------------

    def _body(self, body: Body, last: bool = True) -> None:
        """Run a body; `last` says that nothing follows it in the kernel or in the loop's pass."""
        for number, stmt in enumerate(body):
            rest = body[number + 1 :]
            if isinstance(stmt, If) and rest and _leaves(stmt.then):
                condition = self.value(stmt.condition)
                self._branches(condition, stmt.then[:-1], (*stmt.orelse, *rest), last, stmt.span)
                return
            self._statement(stmt, last and not rest)

    def _statement(self, stmt: Stmt, last: bool) -> None:
        match stmt:
            case Return() | Continue() | Break() if not last or isinstance(stmt, Break):
                word = type(stmt).__name__.lower()
                raise Refusal(Reason.EARLY_EXIT, word, span=stmt.span)
            case Let(var=var, value=value) | Assign(target=LVar(var=var), value=value):
                self.environment[var.id] = self.value(value)
            case LetMut(var=var, value=value):
                unset = VarRef(self._stale(var))
                self.environment[var.id] = unset if value is None else self.value(value)
            case Assign(target=LElement(array=array, index=index), value=value):
                at = self.space.polynomial(self.value(index))
                self._store(array, at, self.value(value), stmt.span)
            case Seq(body=body) | Block(body=body) | Pragma(body=body):
                self._body(body, last)
            case If(condition=condition, then=then, orelse=orelse):
                self._branches(self.value(condition), then, orelse, last, stmt.span)
            case For():
                span = stmt.span or stmt.first.span
                first, stop, step = map(self.value, (stmt.first, stmt.stop, stmt.step))
                passes = passes_of(self.space, stmt.var.name, first, stop, step, span)
                self._loop(passes, stmt.body, span, stmt.var)
            case While():
                self._while(stmt)
            case Assert(condition=condition, message=message):
                self.asserted.append((self.value(condition), message, stmt.span))
            case Return() | Continue() | Empty() | ExprStmt():
                pass
            case _:
                raise Refusal(Reason.STATEMENT, type(stmt).__name__, span=stmt.span)

    def _store(self, array: Var, index: Polynomial, value: Expr, span: Span | None) -> None:
        guards = tuple(self.guards)
        kept: list[Cell] = []
        for cell in self.cells:
            if cell.array.id == array.id and self._matched(cell, index) is not None:
                if len(cell.guards) < len(guards):
                    guards = cell.guards
            else:
                kept.append(cell)
        self.cells = [*kept, Cell(array, index, value, guards, (), span)]

    # --- branches ---------------------------------------------------------------------------------

    def _branches(
        self, condition: Expr, then: Body, orelse: Body, last: bool, span: Span | None
    ) -> None:
        base, cells = self.environment, self.cells
        outcomes = []
        for guard, body in ((condition, then), (negated(condition), orelse)):
            self.environment, self.cells = dict(base), list(cells)
            count = len(self.guards)
            self.guards += conjuncts(guard)
            self._body(body, last)
            del self.guards[count:]
            outcomes.append((self.environment, self.cells))
        (env1, cells1), (env2, cells2) = outcomes
        self.environment = {
            key: env1[key] if env1[key] == env2[key] else IfExpr(condition, env1[key], env2[key])
            for key in base
        }
        self.cells = self._merged(condition, cells1, cells2, span)

    def _merged(
        self, condition: Expr, ours: list[Cell], theirs: list[Cell], span: Span | None
    ) -> list[Cell]:
        merged: list[Cell] = []
        places = {(cell.array.id, cell.index, cell.axes): cell for cell in theirs}
        for cell in ours:
            other = places.pop((cell.array.id, cell.index, cell.axes), None)
            if other is None:
                self._check_guard(condition, cell)
                merged.append(cell)
            elif other == cell:
                merged.append(cell)
            else:
                guards = tuple(g for g in cell.guards if g in other.guards)
                value = IfExpr(condition, cell.value, other.value)
                merged.append(replace(cell, value=value, guards=guards))
        for cell in places.values():
            self._check_guard(condition, cell)
            merged.append(cell)
        return merged

    def _check_guard(self, condition: Expr, cell: Cell) -> None:
        opaque = any(var.id in self.space.opaque for var in variables(condition))
        if opaque or any(isinstance(node, ArrayRead) for node in walk_exprs(condition)):
            raise Refusal(Reason.DATA_STORE, span=cell.span)

    # --- loops ------------------------------------------------------------------------------------

    def _while(self, stmt: While) -> None:
        steps = induction(stmt.body, self.environment, self.value)
        passes, counter = while_passes(self.space, stmt, steps, self.environment, self.value)
        self._loop(passes, stmt.body, stmt.condition.span or stmt.span, counter)

    def _loop(self, passes: Passes, body: Body, span: Span | None, var: Var) -> None:
        _check_exits(body)
        axis = symbol(passes.axis)
        base = dict(self.environment)
        steps = induction(body, base, self.value, var)
        if not passes.counted:
            steps = {key: step for key, step in steps.items() if key == var.id}
        frame = Frame(passes.axis, _written(body), {})
        for changed in _assigned(body):
            if changed.id not in base:
                continue
            if changed.id in steps:
                entry = self.space.polynomial(base[changed.id])
                moved = entry + self.space.polynomial(steps[changed.id]) * axis
                self.environment[changed.id] = _typed(self.space.expr(moved), changed)
            else:
                kind = changed.type
                if not isinstance(kind, Scalar):
                    raise Refusal(Reason.ELEMENTS, changed.name, span=span)
                carry = self._opaque(changed.name, kind)
                frame.carried[changed.id] = carry, base[changed.id]
                self.environment[changed.id] = VarRef(carry)
        self.environment[var.id] = _typed(passes.value, var)
        self.frames.append(frame)
        self._body(body)
        self._end(frame, base, steps, span)

    def _end(
        self, frame: Frame, base: dict[int, Expr], steps: dict[int, Expr], span: Span | None
    ) -> None:
        """The loop's end: what it carried is a sum, or what it stored is stored along its axis."""
        after, stored, frame.cells = self.environment, frame.cells, []
        entries = {}
        frame.writes, level = frozenset(), len(self.frames) - 1
        for array, index, carry in frame.carried_cells:
            entries[carry.id] = self._load(array, index, level, span)
        self.environment = base
        sums: dict[Expr, Expr] = {}
        for key, (carry, entry) in frame.carried.items():
            new = after[key]
            if self._mentions(new, carry) and new != VarRef(carry):
                sums[new] = base[key] = self._sum(frame, carry, entry, new, span)
            elif new != VarRef(carry):
                base[key] = VarRef(self._stale(carry))
        for key in steps:
            base[key] = self._ended(frame, base[key], steps[key], span)
        self.frames.pop()
        for cell in stored:
            self._end_cell(frame, cell, entries, sums, span)

    def _mentions(self, expr: Expr, carry: Var) -> bool:
        """Whether an expression depends on what a loop carries, by sums that start with it too."""
        for var in variables(expr):
            if var == carry or (
                var.id in self.sums and self._mentions(self.sums[var.id].start, carry)
            ):
                return True
        return False

    def _ended(self, frame: Frame, entry: Expr, step: Expr, span: Span | None) -> Expr:
        """What a variable that moves with the loop is after it."""
        extent = self.space.symbols[frame.axis].extent
        self.space.need_count(extent, span)
        moved = self.space.polynomial(entry) + self.space.polynomial(step) * extent
        return self.space.expr(moved)

    def _end_cell(
        self,
        frame: Frame,
        cell: Cell,
        entries: dict[int, Expr],
        sums: dict[Expr, Expr],
        span: Span | None,
    ) -> None:
        own = [c for a, at, c in frame.carried_cells if a.id == cell.array.id and at == cell.index]
        index, joined = self.space.normal(cell.index), self._is_joined(frame, cell)
        if not joined and frame.axis not in index.symbols:
            own_var = self.space.symbols[frame.axis].var
            chosen = any(own_var in variables(guard) for guard in cell.guards)
            if cell.value in sums and not chosen:
                value = sums[cell.value]
            elif own and self._mentions(cell.value, own[0]):
                value = self._sum(frame, own[0], entries[own[0].id], cell.value, span, cell)
            else:
                raise Refusal(Reason.LAST_VALUE, cell.array.name, span=cell.span)
            axes, guards = cell.axes, cell.guards
        else:
            value = _replaced(cell.value, entries)
            self._enter_sums(value, entries)
            if any(carry in variables(value) for carry, _ in frame.carried.values()):
                name = next(c.name for c, _ in frame.carried.values() if c in variables(value))
                raise Refusal(Reason.STATE, name, span=cell.span)
            axes, guards = cell.axes if joined else (*cell.axes, frame.axis), cell.guards
        self.cells = [c for c in self.cells if not self._same_family(c, cell)]
        self.cells.append(Cell(cell.array, cell.index, value, guards, axes, cell.span))

    def _is_joined(self, frame: Frame, cell: Cell) -> bool:
        """Whether a loop within this one has the passes of both for its index."""
        return any(self.space.symbols[axis].consumes == frame.axis for axis in cell.axes)

    def _enter_sums(self, value: Expr, entries: dict[int, Expr]) -> None:
        """Sums that begin with what an element held before this loop."""
        for var in variables(value):
            if var.id in self.sums:
                found = self.sums[var.id]
                self.sums[var.id] = replace(found, start=_replaced(found.start, entries))
                self._enter_sums(self.sums[var.id].start, entries)

    def _same_family(self, old: Cell, new: Cell) -> bool:
        """Whether what a loop stored takes the place of what was stored before it."""
        return old.array.id == new.array.id and self._matched(old, new.index) is not None

    def _sum(
        self,
        frame: Frame,
        carry: Var,
        entry: Expr,
        new: Expr,
        span: Span | None,
        cell: Cell | None = None,
    ) -> Expr:
        guards = tuple(self.guards) if cell is None else cell.guards
        place = Summing(frame.axis, carry, entry, guards, span, cell is not None)
        made = summed(self.space, self.sums, place, new, self._opaque)
        self.sums[made.var.id] = made
        return VarRef(made.var)

    def _stale(self, var: Var) -> Var:
        kind = var.type
        made = self._opaque(var.name, kind if isinstance(kind, Scalar) else Scalar.INT64)
        self.stale[made.id] = var.name
        return made


# --- small parts ----------------------------------------------------------------------------------


def _is_leaf(expr: Expr) -> bool:
    return isinstance(expr, VarRef | Const)


def _replaced(expr: Expr, values: dict[int, Expr]) -> Expr:
    if not values:
        return expr

    def replaced(node: Expr) -> Expr:
        return values.get(node.var.id, node) if isinstance(node, VarRef) else node

    return map_expr(expr, replaced)


def _typed(expr: Expr, var: Var) -> Expr:
    """An int64 expression at the type of a variable that it is the value of."""
    assert isinstance(var.type, Scalar)
    return expr if var.type is Scalar.INT64 else Cast(var.type, expr)


def _element(array: Var) -> Scalar:
    element = getattr(array.type, "element", None)
    if not isinstance(element, Scalar):
        raise Refusal(Reason.ELEMENTS, array.name)
    return element


def _written(body: Body) -> frozenset[int]:
    """Ids of the arrays that a body stores to."""
    found = set()
    for stmt in walk_stmts(body):
        match stmt:
            case Assign(target=LElement(array=array)):
                found.add(array.id)
    return frozenset(found)


def _assigned(body: Body) -> list[Var]:
    """Variables that a body assigns and does not declare."""
    found: dict[int, Var] = {}
    own = {var.id for stmt in walk_stmts(body) for var in declared_by(stmt)}
    for stmt in walk_stmts(body):
        match stmt:
            case Assign(target=LVar(var=var)) if var.id not in own:
                found[var.id] = var
    return list(found.values())


def _leaves(body: Body) -> bool:
    return bool(body) and isinstance(body[-1], Return | Continue)


def _check_exits(body: Body) -> None:
    for stmt in walk_stmts(body):
        if isinstance(stmt, Break | Return):
            word = type(stmt).__name__.lower()
            raise Refusal(Reason.EARLY_EXIT, word, span=stmt.span)
