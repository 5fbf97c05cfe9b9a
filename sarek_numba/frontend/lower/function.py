"""Lowering of one function: its state, and its straight-line statements."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from numba.core import ir, types

from sarek_numba.errors import Diagnostic, TypingError, UnboundLocal, UnsupportedConstruct
from sarek_numba.frontend import typed as t
from sarek_numba.frontend.complexes import is_complex
from sarek_numba.frontend.halves import Half
from sarek_numba.frontend.hints import current
from sarek_numba.frontend.lower.complexes import as_complex
from sarek_numba.frontend.lower.convert import cast, constant_as, convert
from sarek_numba.frontend.lower.emitter import Emitter
from sarek_numba.frontend.lower.operators import choose
from sarek_numba.frontend.lower.program import Program, Scope
from sarek_numba.frontend.lower.values import (
    NOTHING,
    Cell,
    ComplexValue,
    IteratorValue,
    Nothing,
    RecordRef,
    SliceValue,
    TupleValue,
    Value,
    View,
    cells_of,
    reads_memory,
)
from sarek_numba.frontend.lower.variables import Homes, read_by
from sarek_numba.frontend.names import is_temporary, user_name
from sarek_numba.frontend.regions import Arm, Choose, Node, Statement, Structured
from sarek_numba.frontend.rules import exact
from sarek_numba.frontend.structure import is_for
from sarek_numba.frontend.weak import constant_of, is_number, scalar_of
from sarek_numba.ir.nodes import Expr, ExprStmt, Var, VarRef, constant
from sarek_numba.ir.records import type_at
from sarek_numba.ir.types import BOOL, PART_NAMES, UNIT, ElementType
from sarek_numba.ir.variants import is_variant
from sarek_numba.span import Span


class FunctionLowering:
    """What is known while one function is lowered.

    `environment` holds the values of names that are not stored in a variable. `arguments` are the
    values of the function's parameters. `items` holds the item that each `iternext` of a `For`
    being lowered gives. Within a node, `later` counts the reads of user variables that are still to
    come, and `held` has, by the id of each variable, the versions in it that have such reads.
    """

    def __init__(
        self,
        typed: t.Typed,
        structured: Structured,
        program: Program,
        scope: Scope,
        arguments: list[Value],
    ) -> None:
        self.typed = typed
        self.structured = structured
        self.program = program
        self.scope = scope
        self.arguments = arguments
        self.ids = program.ids
        self.emitter = Emitter(program.ids)
        self.homes = Homes(structured.nodes, typed.types, program.ids)
        self.remaining = Counter(self.homes.reads)
        self.unpacked = _unpacked(typed, structured)
        self.environment: dict[str, Value] = {}
        self.saved: dict[str, Value] = {}
        self.later: Counter[str] = Counter()
        self.held: defaultdict[int, dict[str, None]] = defaultdict(dict)
        self.items: dict[str, tuple[Value, Expr]] = {}
        self.loop_items: dict[str, Value] = {}
        self.flags: dict[int, Var] = {}
        self.result: ElementType = UNIT
        self.current: Statement | None = None

    def span(self, node: Any) -> Span:
        return self.typed.source.span_of(node)

    def refuse(self, message: str, node: Any, hint: str | None = None) -> UnsupportedConstruct:
        return UnsupportedConstruct(
            Diagnostic(UnsupportedConstruct, message, self.span(node), hint)
        )

    # --- reading ----------------------------------------------------------------------------------

    def type_of(self, variable: ir.Var) -> types.Type:
        return self.homes.type_of(variable.name)

    def read(self, variable: ir.Var) -> Value:
        """The value of a name where it is read."""
        name = variable.name
        type = self.type_of(variable)
        known = constant_of(type)
        if known is not None:
            return Cell(constant_as(scalar_of(type), known))
        if name in self.saved:
            return self.saved[name]
        found = self.environment.get(name)
        if found is not None:
            return found
        home = self.homes.get(name)
        if home is not None:
            return Cell(VarRef(home, span=self.span(variable)))
        if is_number(type) or not is_temporary(name):
            message = f"{user_name(name)!r} is read before it is assigned"
            raise UnboundLocal(Diagnostic(UnboundLocal, message, self.span(variable)))
        return NOTHING

    def number(self, argument: t.Argument, target: types.Type | None = None) -> Expr:
        """A number as a type, its own by default."""
        if isinstance(argument, t.Default):
            return constant_as(scalar_of(target or argument.type), argument.value)
        source = self.type_of(argument)
        value = self.read(argument)
        assert isinstance(value, Cell), f"{argument} is no number"
        return self._convert(value.expr, source, target or source)

    def _convert(self, expr: Expr, source: types.Type, target: types.Type) -> Expr:
        """A conversion; where the value has no place of its own, it is at the statement's."""
        span = expr.span
        if span is None and source != target and self.current is not None:
            span = self.span(self.current)
        if isinstance(target, Half) and source == types.float32 and current().strict:
            self._check_half(expr, target)
        return convert(expr, source, target, span)

    def _check_half(self, expr: Expr, half: Half) -> None:
        """Refuse a store that may round a float32, where the kernel states that none does."""
        if exact.may_round(expr, half.scalar):
            message, hint = exact.words("float32", half)
            place = expr.span or self.span(self.current)
            raise TypingError(Diagnostic(TypingError, message, place, hint))

    def converted(self, value: Value, source: types.Type, target: types.Type) -> Value:
        """A value as another type: numbers by a cast, tuples item by item."""
        if is_complex(target):
            return as_complex(self, value, source, target)
        if isinstance(value, Cell):
            return Cell(self._convert(value.expr, source, target))
        if isinstance(value, TupleValue) and isinstance(target, types.BaseTuple):
            parts = zip(value.items, source.types, target.types, strict=True)
            return TupleValue(tuple(self.converted(*part) for part in parts))
        return value

    def consume(self, names: list[str]) -> None:
        """Count reads; what is read for the last time is pending no more."""
        for name in names:
            self.remaining[name] -= 1
            if self.remaining[name] <= 0:
                self.emitter.pending.remove(name)
            if name in self.later:
                self.later[name] -= 1
                home = self.homes.get(name)
                if self.later[name] == 0 and home is not None:
                    self.held[home.id].pop(name, None)

    # --- nodes ------------------------------------------------------------------------------------

    def node(self, node: Node) -> None:
        """The statements of a node, and the reads of its terminator."""
        self.later = Counter()
        for statement in node.statements:
            for name in read_by(statement):
                if not is_temporary(name):
                    self.later[name] += 1
        self.held.clear()
        assigned = {s.target.name for s in node.statements if isinstance(s, ir.Assign)}
        for name in self.later:
            if name not in assigned:
                self.hold(name)
        for statement in node.statements:
            self.statement(statement)
        self.consume(read_by(node.terminator))
        if isinstance(node.terminator, ir.Jump):
            target = self.structured.nodes.get(node.terminator.target)
            for phi in target.phis if target else ():
                value = phi.incoming.get(node.label)
                if value is not None:
                    self.consume([value.name])
        bounds = self.bounds_of_next(node)
        self.emitter.settle_block()
        self.emitter.pending.clear()
        for name, value in bounds.items():
            self.emitter.pending.put(name, value)
        self.saved.clear()

    def bounds_of_next(self, node: Node) -> dict[str, Value]:
        """Take out of what is pending the iterator of a `for` that starts behind the node.

        Its bounds are placed in the `For`, so they need no variables.
        """
        if not isinstance(node.terminator, ir.Jump):
            return {}
        target = self.structured.nodes.get(node.terminator.target)
        if target is None or not is_for(target):
            return {}
        pending = self.emitter.pending
        found = [pair for pair in pending.items() if isinstance(pair[1], IteratorValue)][-1:]
        for name, _ in found:
            pending.remove(name)
        return dict(found)

    def statement(self, statement: Statement) -> None:
        self.current = statement
        self.consume(read_by(statement))
        if isinstance(statement, Choose):
            self.define(statement.target, self.choose(statement), statement)
        elif isinstance(statement, ir.Assign):
            self.assign(statement)
        elif isinstance(statement, (ir.SetItem, ir.SetAttr)):
            self.operation(self.typed.operations[statement], statement)
        else:
            raise self.refuse(f"{type(statement).__name__} in a kernel", statement)

    def assign(self, statement: ir.Assign) -> None:
        source = statement.value
        if isinstance(source, ir.Arg):
            value: Value = self.argument(source.index, statement.target.name)
            home = self.homes.get(statement.target.name)
            if home is not None and not home.mutable:
                self.environment[statement.target.name] = value
                return
        elif isinstance(source, ir.Var):
            value = self.converted(
                self.read(source), self.type_of(source), self.type_of(statement.target)
            )
        elif source in self.typed.operations:
            operation = self.typed.operations[source]
            value = self.operation(operation, statement)
            if is_number(operation.result):
                target = self.type_of(statement.target)
                value = self.converted(value, operation.result, target)
        else:
            value = self.protocol(source, statement)
        self.define(statement.target, value, statement)

    def argument(self, index: int, name: str) -> Value:
        """The value of a parameter; a record gets variables of its own, where that is needed."""
        from sarek_numba.frontend.lower import records

        type = self.typed.parameters[index].type
        return records.owned(self, self.arguments[index], type, user_name(name))

    def protocol(self, source: Any, statement: ir.Assign) -> Value:
        """Expressions that compute nothing: tuples, casts, items of an iteration."""
        if not isinstance(source, ir.Expr):
            return NOTHING
        match source.op:
            case "cast" | "exhaust_iter":
                value = self.read(source.value)
                return self.converted(
                    value, self.type_of(source.value), self.type_of(statement.target)
                )
            case "build_tuple":
                return TupleValue(tuple(map(self.read, source.items)))
            case "pair_first":
                return self.items[source.value.name][0]
            case "pair_second":
                return Cell(self.items[source.value.name][1])
            case _:
                return NOTHING

    def operation(self, operation: t.Operation, statement: Statement) -> Value:
        from sarek_numba.frontend.lower.operations import lower_operation

        return lower_operation(self, operation, statement)

    # --- defining ---------------------------------------------------------------------------------

    def define(self, target: ir.Var, value: Value, statement: Statement) -> None:
        """Give a name its value: store it, or keep it until it is read."""
        name = target.name
        self.hold(name)
        if isinstance(value, Nothing):
            self.environment[name] = value
            return
        if name in self.loop_items:
            self.environment[name] = self.loop_items[name]
            return
        home = self.homes.get(name)
        if home is not None and isinstance(value, Cell):
            self.store(home, name, value.expr, statement)
            return
        if constant_of(self.type_of(target)) is not None:
            return
        if not is_temporary(name):
            self.keep(name, value, user_name(name))
        elif self.homes.reads[name] > 1 and not isinstance(value, (IteratorValue, SliceValue)):
            self.keep(name, value, self.name_of(name))
        elif self.homes.reads[name] == 0:
            self.drop(value, statement)
        else:
            self.environment[name] = value
            if not self.emitter.guarded:
                self.emitter.pending.put(name, value)

    def keep(self, name: str, value: Value, word: str) -> None:
        """Keep a value that may be read often: its parts become variables."""
        words = {id(value.offset): f"{word}_offset"} if isinstance(value, View) else {}
        if isinstance(value, ComplexValue):
            pairs = zip(value.items, PART_NAMES, strict=True)
            words = {id(cell): f"{word}_{part}" for cell, part in pairs}
        if isinstance(value, View):
            words |= {id(cell): f"{word}_shape{k}" for k, cell in enumerate(value.shape)}
            words |= {id(cell): f"{word}_stride{k}" for k, cell in enumerate(value.strides)}
        if isinstance(value, RecordRef):
            words |= {id(cell): ".".join((word, *p)) for p, cell in value.store.cells.items()}
        for cell in cells_of(value):
            self.emitter.bind_cell(cell, words.get(id(cell), word))
        self.environment[name] = value
        if not self.emitter.guarded:
            self.emitter.pending.put(name, value)

    def name_of(self, temporary: str) -> str:
        """A word for the variable that holds a value: the user's that it is copied to, or "t"."""
        if not is_temporary(temporary):
            return user_name(temporary)
        copied = self.homes.copies.get(temporary, "$")
        return "t" if is_temporary(copied) else user_name(copied)

    def drop(self, value: Value, statement: Statement) -> None:
        """A value that nothing reads: an expression statement is still evaluated."""
        if self.emitter.guarded or not isinstance(value, Cell):
            return
        if not reads_memory(value.expr):
            return
        self.emitter.emit(ExprStmt(value.expr, span=self.span(statement)))

    def store(self, home: Var, name: str, expr: Expr, statement: Statement) -> None:
        assert not self.emitter.guarded, "an assignment within an expression"
        if isinstance(expr, VarRef) and expr.var is home:
            return
        self.save_versions(home, name)
        span = self.span(statement)
        scalar = home.type
        self.emitter.assign(home, cast(expr, scalar, span=span), span)  # type: ignore[arg-type]

    def save_versions(self, home: Var, name: str) -> None:
        """Keep other versions of a variable that are still read in this node.

        Numba refers to a variable where CPython keeps its value on the stack: in `i, j = j, i` the
        old `i` is read after the new one is assigned.
        """
        held = self.held[home.id]
        for other in [other for other in held if other != name]:
            self.saved[other] = Cell(self.emitter.store(VarRef(home), home.name))
            del held[other]

    def hold(self, name: str) -> None:
        """Note that a variable now holds a version that is read later in this node."""
        home = self.homes.get(name)
        if home is not None and self.later[name] > 0 and name not in self.saved:
            self.held[home.id][name] = None

    # --- conditional expressions ------------------------------------------------------------------

    def choose(self, statement: Choose) -> Value:
        condition = self.number(statement.condition, types.boolean)
        target = self.homes.type_of(statement.target.name)
        then, orelse = (self.arm(arm, target) for arm in (statement.then, statement.orelse))
        if isinstance(then, Cell) and isinstance(orelse, Cell):
            parts = [part.span for part in (condition, then.expr, orelse.expr) if part.span]
            span = self.typed.source.span_of_choice(self.span(statement), parts)
            return Cell(choose(condition, then.expr, orelse.expr, span))
        return self.choose_parts(condition, then, orelse, statement)

    def choose_parts(self, condition: Expr, then: Value, orelse: Value, statement: Choose) -> Value:
        span = self.span(statement)
        if isinstance(then, TupleValue) and isinstance(orelse, TupleValue):
            condition = self.emitter.bind(condition)
            parts: list[Value] = []
            for ours, theirs in zip(then.items, orelse.items, strict=True):
                if isinstance(ours, Cell) and isinstance(theirs, Cell):
                    parts.append(Cell(choose(condition, ours.expr, theirs.expr, span)))
                else:
                    parts.append(self.choose_parts(condition, ours, theirs, statement))
            return type(then)(tuple(parts))
        if isinstance(then, Nothing) and isinstance(orelse, Nothing):
            return NOTHING
        if isinstance(then, RecordRef) and isinstance(orelse, RecordRef):
            return self.choose_record(condition, then, orelse, statement)
        raise self.refuse(
            "a conditional expression that chooses between arrays",
            statement,
            "choose an index, or use an if statement around the accesses",
        )

    def choose_record(
        self, condition: Expr, then: RecordRef, orelse: RecordRef, statement: Choose
    ) -> RecordRef:
        from sarek_numba.frontend.lower import records, variants

        is_one = then.store is orelse.store and then.path == orelse.path
        if is_variant(type_at(then.store.record, then.path)) or (
            not is_one and all(map(records.is_in_variables, (then, orelse)))
        ):
            condition = self.emitter.bind(condition)
            return variants.choose(self, condition, then, orelse, self.span(statement))
        if not is_one:
            raise self.refuse(
                "a conditional expression that chooses between records",
                statement,
                "use an if statement",
            )
        condition = self.emitter.bind(condition)
        span = self.span(statement)
        pairs = zip(then.indices, orelse.indices, strict=True)
        indices = tuple(Cell(choose(condition, a.expr, b.expr, span)) for a, b in pairs)
        return RecordRef(then.store, then.path, indices)

    def arm(self, arm: Arm, target: types.Type) -> Value:
        if isinstance(arm.value, bool):
            return Cell(constant(BOOL, arm.value))
        with self.emitter.expression():
            for statement in arm.statements:
                self.statement(statement)
            value = self.read(arm.value)
        return self.converted(value, self.type_of(arm.value), target)


def _unpacked(typed: t.Typed, structured: Structured) -> dict[str, dict[int, str]]:
    """For each tuple by name, the names that its items are taken to."""
    taken: dict[str, dict[int, str]] = {}
    origin: dict[str, str] = {}
    for node in structured.nodes.values():
        for statement in node.statements:
            if not isinstance(statement, ir.Assign):
                continue
            value = statement.value
            if isinstance(value, ir.Expr) and value.op == "exhaust_iter":
                origin[statement.target.name] = value.value.name
            operation = typed.operations.get(value)
            if operation is not None and isinstance(operation.what, t.TupleItem):
                (source,) = operation.arguments
                if isinstance(source, ir.Var):
                    name = origin.get(source.name, source.name)
                    items = taken.setdefault(name, {})
                    items[operation.what.index] = statement.target.name
    return taken
