"""Declare the variables of a lowered body: where, and whether they change.

In: statements in which variables are only assigned. Out: the same with a `Let` or `LetMut` for each
variable, in the smallest body that holds all its uses; a variable that carries a value from one
pass of a loop to the next is declared outside of the loop. A variable assigned once, before all
reads, becomes a `Let`; one that is read where not every path has assigned it is a `LetMut`
without a value. So is one that nothing assigns any more: the branch that did was never taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sarek_numba.frontend.lower.emitter import Ids
from sarek_numba.ir.nodes import (
    Assign,
    Atomic,
    Body,
    Break,
    Call,
    Continue,
    Expr,
    For,
    If,
    Let,
    LetMut,
    LVar,
    Return,
    Stmt,
    Var,
    VarRef,
    Warp,
    While,
)
from sarek_numba.ir.shape import expressions_of
from sarek_numba.ir.walk import (
    bound_within,
    declared_by,
    map_body,
    map_variables,
    walk_exprs,
)


def declare(body: Body, ids: Ids, is_own: Callable[[Var], bool]) -> Body:
    """The body with its variables declared: those that are its own, and no parameters."""
    declarer = _Declarer(body, is_own)
    if declarer.escaping:
        body = _separate_results(body, declarer.escaping, ids)
        declarer = _Declarer(body, is_own)
    return declarer.run()


@dataclass(slots=True)
class _Scope:
    """A body: where it stands, what it reads before it assigns it, and what it declares."""

    parent: _Scope | None
    depth: int
    in_loop: bool
    exposed: set[int] = field(default_factory=set)
    declares: dict[int, Var] = field(default_factory=dict)


class _Declarer:
    def __init__(self, body: Body, is_own: Callable[[Var], bool]) -> None:
        self.body = body
        self.is_own = is_own
        self.scopes: dict[int, _Scope] = {}
        self.home: dict[int, _Scope] = {}
        self.assigned: dict[int, int] = {}
        self.vars: dict[int, Var] = {}
        self.results: dict[int, _Scope] = {}
        self.bound: set[int] = set()
        self.collect(body, None, False)

    @property
    def escaping(self) -> set[int]:
        """The results of calls and atomics that are read outside of the body they stand in."""
        return {
            key
            for key, scope in self.results.items()
            if self.home[key] is not scope or (scope.in_loop and key in scope.exposed)
        }

    def run(self) -> Body:
        for key in (*self.assigned, *self.unassigned()):
            self.lift(key, self.home[key]).declares[key] = self.vars[key]
        return self.rewrite(self.body)

    def unassigned(self) -> list[int]:
        """The body's own variables that are read and nowhere assigned."""
        introduced = self.assigned.keys() | self.results.keys() | self.bound
        return [key for key in self.vars if key not in introduced and self.is_own(self.vars[key])]

    # --- collecting -------------------------------------------------------------------------------

    def collect(self, body: Body, parent: _Scope | None, in_loop: bool) -> set[int] | None:
        """Visit a body: what it surely assigns, or None if control never gets behind it."""
        scope = _Scope(parent, 0 if parent is None else parent.depth + 1, in_loop)
        self.scopes[id(body)] = scope
        assigned: set[int] = set()
        ends = False
        for statement in body:
            for expr in expressions_of(statement):
                self.read(expr, scope, assigned)
            match statement:
                case Assign(target=LVar(var=var)):
                    self.mention(var, scope)
                    self.assigned[var.id] = self.assigned.get(var.id, 0) + 1
                    assigned.add(var.id)
                case Call() | Atomic() | Warp():
                    for var in declared_by(statement):
                        self.mention(var, scope)
                        self.results[var.id] = scope
                        assigned.add(var.id)
                case If(then=then, orelse=orelse):
                    arms = [self.nested(arm, scope, assigned, in_loop) for arm in (then, orelse)]
                    known = [arm for arm in arms if arm is not None]
                    ends = ends or not known
                    assigned |= set.intersection(*known) if known else set()
                case While(body=inner) | For(body=inner):
                    self.bound.update(var.id for var in bound_within(statement))
                    self.nested(inner, scope, assigned, True)
                case Break() | Continue() | Return():
                    ends = True
                case _:
                    pass
        return None if ends else assigned

    def nested(
        self, body: Body, scope: _Scope, assigned: set[int], in_loop: bool
    ) -> set[int] | None:
        if not body:
            return set()
        result = self.collect(body, scope, in_loop)
        scope.exposed |= self.scopes[id(body)].exposed - assigned
        return result

    def read(self, expr: Expr, scope: _Scope, assigned: set[int]) -> None:
        for node in walk_exprs(expr):
            if isinstance(node, VarRef):
                if node.var.id not in assigned:
                    scope.exposed.add(node.var.id)
                self.mention(node.var, scope)

    def mention(self, var: Var, scope: _Scope) -> None:
        self.vars[var.id] = var
        known = self.home.get(var.id)
        self.home[var.id] = scope if known is None else _common(known, scope)

    def lift(self, key: int, scope: _Scope) -> _Scope:
        """The scope to declare in: outwards while the body reads what an earlier pass assigned."""
        while scope.parent is not None and key in scope.exposed and scope.in_loop:
            scope = scope.parent
        return scope

    # --- rewriting --------------------------------------------------------------------------------

    def rewrite(self, body: Body) -> Body:
        scope = self.scopes.get(id(body))
        if scope is None:
            return body
        waiting = dict(scope.declares)
        result: list[Stmt] = []
        for statement in body:
            started = None
            for key in dict.fromkeys(_mentioned(statement)) if waiting else ():
                if key not in waiting:
                    continue
                var = waiting.pop(key)
                if self.starts(statement, var):
                    started = var
                else:
                    result.append(LetMut(self.as_mutable(var), span=statement.span))
            if started is not None:
                result.append(self.first(statement, started))
            else:
                result.append(self.inner(statement))
        return tuple(result)

    def starts(self, statement: Stmt, var: Var) -> bool:
        """Whether a statement assigns a variable first thing in the scope that declares it."""
        match statement:
            case Assign(target=LVar(var=target), value=value) if target.id == var.id:
                return not any(
                    isinstance(node, VarRef) and node.var.id == var.id for node in walk_exprs(value)
                )
        return False

    def first(self, statement: Stmt, var: Var) -> Stmt:
        assert isinstance(statement, Assign)
        if self.assigned[var.id] == 1:
            return Let(self.as_immutable(var), statement.value, span=statement.span)
        return LetMut(self.as_mutable(var), statement.value, span=statement.span)

    def as_mutable(self, var: Var) -> Var:
        return var if var.mutable else replace(var, mutable=True)

    def as_immutable(self, var: Var) -> Var:
        return replace(var, mutable=False) if var.mutable else var

    def inner(self, statement: Stmt) -> Stmt:
        match statement:
            case If(then=then, orelse=orelse):
                return replace(statement, then=self.rewrite(then), orelse=self.rewrite(orelse))
            case While(body=body) | For(body=body):
                return replace(statement, body=self.rewrite(body))
            case _:
                return statement


def _common(left: _Scope, right: _Scope) -> _Scope:
    while left is not right:
        if left.depth >= right.depth:
            assert left.parent is not None
            left = left.parent
        else:
            assert right.parent is not None
            right = right.parent
    return left


def _mentioned(statement: Stmt) -> Iterator[int]:
    """The ids of the variables in a statement, nested bodies included."""
    pending: list[Stmt] = [statement]
    while pending:
        inner = pending.pop()
        for expr in expressions_of(inner):
            for node in walk_exprs(expr):
                if isinstance(node, VarRef):
                    yield node.var.id
        match inner:
            case Assign(target=LVar(var=var)):
                yield var.id
            case If(then=then, orelse=orelse):
                pending += [*then, *orelse]
            case While(body=body) | For(body=body):
                pending += body
            case _:
                pass


# --- results of calls and atomics -----------------------------------------------------------------


def _separate_results(body: Body, escaping: set[int], ids: Ids) -> Body:
    """Give such results a variable of their own, and assign the wanted one from it."""

    def statement(stmt: Stmt) -> Stmt | Body:
        wanted = [var for var in declared_by(stmt) if var.id in escaping]
        if not wanted or not isinstance(stmt, (Call, Atomic, Warp)):
            return stmt
        fresh = {var.id: ids.var(var.name, var.type) for var in wanted}
        copies = [Assign(LVar(var), VarRef(fresh[var.id]), span=stmt.span) for var in wanted]
        return (map_variables(stmt, lambda var: fresh.get(var.id, var)), *copies)

    return map_body(body, statement)
