"""Where statements go, and when the expressions of temporaries are bound.

A temporary's expression is placed where it is used. Until then it is pending: before a statement
that changes what it reads, an `Assign` of a variable in it or a store, call, barrier or atomic
while it reads memory, it is bound to a variable of its own. So evaluation order is kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from sarek_numba.frontend.lower.values import (
    Cell,
    Value,
    cells_of,
    is_trivial,
    reads_memory,
    reads_variable,
)
from sarek_numba.ir.nodes import (
    ArrayRead,
    Assign,
    Body,
    Const,
    Expr,
    LVar,
    Stmt,
    Var,
    VarRef,
)
from sarek_numba.ir.types import ElementType
from sarek_numba.ir.typing import type_of
from sarek_numba.ir.walk import walk_exprs
from sarek_numba.span import Span


class Ids:
    """Variables with ids that are unique in a kernel."""

    def __init__(self) -> None:
        self.next = 0
        self.temporaries: set[int] = set()  # bound by the emitter, under no name of the user

    def var(self, name: str, type: ElementType, mutable: bool = False) -> Var:
        self.next += 1
        return Var(name, self.next - 1, type, mutable)


class Pending:
    """Values by name that are not yet placed, and which of them read a variable, or memory.

    What a value reads is found when it is first asked for. Binding a cell only takes reads away, so
    it stays an upper bound.
    """

    def __init__(self) -> None:
        self._values: dict[str, Value] = {}
        self._new: dict[str, None] = {}
        self._readers: defaultdict[int, dict[str, None]] = defaultdict(dict)
        self._memory_readers: dict[str, None] = {}

    def put(self, name: str, value: Value) -> None:
        self._values[name] = value
        self._new[name] = None

    def remove(self, name: str) -> Value | None:
        return self._values.pop(name, None)

    def clear(self) -> None:
        self._values.clear()
        self._new.clear()
        self._readers.clear()
        self._memory_readers.clear()

    def items(self) -> Iterable[tuple[str, Value]]:
        return self._values.items()

    def all(self) -> list[Value]:
        return list(self._values.values())

    def readers_of(self, var: Var) -> list[Value]:
        """What may read a variable."""
        self._index()
        return self._known(self._readers.get(var.id, {}))

    def memory_readers(self) -> list[Value]:
        """What may read memory."""
        self._index()
        return self._known(self._memory_readers)

    def _known(self, names: dict[str, None]) -> list[Value]:
        for name in [name for name in names if name not in self._values]:
            del names[name]
        return [self._values[name] for name in names]

    def _index(self) -> None:
        for name in self._new:
            for cell in cells_of(self._values[name]) if name in self._values else ():
                for expr in walk_exprs(cell.expr):
                    if isinstance(expr, VarRef):
                        self._readers[expr.var.id][name] = None
                    elif isinstance(expr, ArrayRead):
                        self._memory_readers[name] = None
        self._new.clear()


class Emitter:
    """The statements of one function as they grow. Declarations are settled afterwards."""

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.out: list[Stmt] = []
        self.pending = Pending()
        self.guarded = 0

    # --- statements -------------------------------------------------------------------------------

    def emit(self, statement: Stmt) -> None:
        self.out.append(statement)

    @contextmanager
    def body(self) -> Iterator[list[Stmt]]:
        """Collect what is emitted within."""
        outer, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = outer

    def take(self, collected: list[Stmt]) -> Body:
        return tuple(collected)

    @contextmanager
    def expression(self) -> Iterator[None]:
        """Within, nothing may be bound: what is lowered is evaluated only where it is needed."""
        self.guarded += 1
        try:
            yield
        finally:
            self.guarded -= 1

    # --- binding ----------------------------------------------------------------------------------

    def assign(self, var: Var, value: Expr, span: Span | None = None) -> None:
        """Assign a variable; what still reads its old value is bound before."""
        self.settle_variable(var)
        self.emit(Assign(LVar(var), value, span=span))

    def bind(self, expr: Expr, name: str = "t") -> Expr:
        """The expression as one that may be used often: itself, or a variable that holds it."""
        if self.guarded or is_trivial(expr):
            return expr
        return self.store(expr, name)

    def store(self, expr: Expr, name: str = "t") -> Expr:
        """A variable that holds the expression's value from here on."""
        assert not self.guarded
        if isinstance(expr, Const):
            return expr
        var = self.ids.var(name, type_of(expr))
        self.ids.temporaries.add(var.id)
        self.emit(Assign(LVar(var), expr, span=expr.span))
        return VarRef(var, span=expr.span)

    def bind_cell(self, cell: Cell, name: str = "t") -> None:
        cell.expr = self.bind(cell.expr, name)

    def settle_memory(self) -> None:
        """Bind all that reads memory, before a statement that may write it."""
        self._settle(self.pending.memory_readers(), reads_memory)

    def settle_variable(self, var: Var) -> None:
        """Bind all that reads a variable, before it is assigned."""
        self._settle(self.pending.readers_of(var), lambda expr: reads_variable(expr, var))

    def settle_block(self) -> None:
        """Bind all that is used in other blocks, before this one ends."""
        self._settle(self.pending.all(), _is_changeable)

    def _settle(self, values: list[Value], affected: Callable[[Expr], bool]) -> None:
        for value in values:
            for cell in cells_of(value):
                if affected(cell.expr):
                    cell.expr = self.store(cell.expr)


def _is_changeable(expr: Expr) -> bool:
    if isinstance(expr, VarRef):
        return expr.var.mutable
    return not is_trivial(expr) or _names_mutable(expr)


def _names_mutable(expr: Expr) -> bool:
    operand = getattr(expr, "operand", expr)
    return isinstance(operand, VarRef) and operand.var.mutable
