"""Fission: a kernel with barriers as regions without barriers, and the uniform control around them.

Every thread of a block finishes a region before any starts the next, which is what a barrier asks.
`plan` splits a body; a loop or branch that holds a barrier (or a uniform jump out of such a loop)
becomes control of the block, which the convergence check has proven uniform. Variables used in more
than one region cross barriers: they are kept for each thread in memory, except immutable ones that
are cheap to compute again from coordinates and parameters.
(R. Karrenberg and S. Hack, "Improving performance of OpenCL on CPUs", 2012, has the idea.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sarek_numba.ir.nodes import (
    ArrayCreate,
    Assign,
    Barrier,
    Binary,
    Block,
    Body,
    Break,
    Cast,
    Const,
    Continue,
    Expr,
    For,
    If,
    Index,
    Let,
    LVar,
    Pragma,
    Return,
    Seq,
    Stmt,
    Subscript,
    Unary,
    Var,
    VarRef,
    While,
)
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.uniformity import BLOCK, Uniformity
from sarek_numba.ir.walk import (
    bodies_of,
    declared_by,
    expressions_of,
    walk_exprs,
    walk_stmts,
)

_RECOMPUTED = 24  # nodes of an expression that is computed again rather than kept


@dataclass(slots=True)
class Use:
    """What a region, or an expression of the block's control, has to do with variables."""

    used: dict[int, Var] = field(default_factory=dict)
    assigned: set[int] = field(default_factory=set)
    declared: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Region:
    """Statements without a barrier; `leaves` are the kinds of jumps out of the region."""

    body: Body
    use: Use
    leaves: frozenset[type]


@dataclass(slots=True)
class Branch:
    condition: Expr
    use: Use
    then: list[Node]
    orelse: list[Node]


@dataclass(slots=True)
class Loop:
    stmt: For | While
    use: Use
    nodes: list[Node]
    leaves: frozenset[type] = frozenset()  # breaks and continues within its regions


@dataclass(slots=True)
class Jump:
    stmt: Break | Continue | Return


Node = Region | Branch | Loop | Jump


@dataclass(slots=True)
class Plan:
    """`crossing` are the scalars that several parts share; `recomputed` gives how, in order."""

    nodes: list[Node]
    crossing: dict[int, Var]
    recomputed: dict[int, tuple[Var, Expr]]
    returns: bool  # does a region that is not the last one return?


def has_barrier(body: Body) -> bool:
    return any(isinstance(stmt, Barrier) for stmt in walk_stmts(body))


def plan(body: Body, params: frozenset[int], uniformity: Uniformity) -> Plan:
    """Split the body of a kernel; one without barriers is one region.

    `params` are the ids of its scalar parameters.
    """
    planner = _Planner(uniformity)
    nodes: list[Node] = planner.split(body) if has_barrier(body) else [_region(body)]
    uses = _uses(nodes)
    counts: dict[int, int] = {}
    variables: dict[int, Var] = {}
    for use in uses:
        variables.update(use.used)
        for id in {*use.used, *use.declared, *use.assigned}:
            counts[id] = counts.get(id, 0) + 1
    recomputed = _recomputed(body, params | planner.loop_vars)
    crossing = {
        id: var
        for id, var in variables.items()
        if counts[id] > 1 and id not in params and id not in planner.loop_vars
        if id not in recomputed
    }
    regions = [node for node in _flat(nodes) if isinstance(node, Region)]
    last = nodes[-1] if nodes else None
    returns = any(Return in region.leaves for region in regions if region is not last)
    return Plan(nodes, crossing, recomputed, returns)


class _Planner:
    def __init__(self, uniformity: Uniformity) -> None:
        self.uniformity = uniformity
        self.loop_vars: set[int] = set()
        self.barriers: dict[int, bool] = {}

    def split(self, body: Body) -> list[Node]:
        nodes: list[Node] = []
        run: list[Stmt] = []

        def flush() -> None:
            if run:
                nodes.append(_region(tuple(run)))
                run.clear()

        for stmt in _flattened(body):
            if isinstance(stmt, Barrier):
                flush()
            elif isinstance(stmt, Break | Continue | Return):
                flush()
                nodes.append(Jump(stmt))
                return nodes
            elif self.controls(stmt):
                flush()
                nodes.append(self.control(stmt))
            else:
                run.append(stmt)
        flush()
        return nodes

    def controls(self, stmt: Stmt) -> bool:
        """Is the statement control of the block rather than part of a region?"""
        if self.holds_barrier(stmt):
            return True
        if not isinstance(stmt, If) or self.uniformity.of_expr(stmt.condition) > BLOCK:
            return False
        return any(_jumps(arm) for arm in (stmt.then, stmt.orelse))

    def holds_barrier(self, stmt: Stmt) -> bool:
        known = self.barriers.get(id(stmt))
        if known is None:
            known = self.barriers[id(stmt)] = any(has_barrier(body) for body in bodies_of(stmt))
        return known

    def control(self, stmt: Stmt) -> Node:
        if isinstance(stmt, If):
            use = _use_of((stmt.condition,))
            return Branch(stmt.condition, use, self.split(stmt.then), self.split(stmt.orelse))
        assert isinstance(stmt, For | While), "a barrier within a statement of no kind of control"
        if isinstance(stmt, For):
            self.loop_vars.add(stmt.var.id)
        loop = Loop(stmt, _use_of(expressions_of(stmt)), self.split(stmt.body))
        inner = _leaves_of(loop.nodes)
        loop.leaves = inner & {Break, Continue}
        return loop


def _flattened(body: Body) -> list[Stmt]:
    flat: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Seq | Block | Pragma):
            flat += _flattened(stmt.body)
        else:
            flat.append(stmt)
    return flat


def _jumps(body: Body) -> bool:
    """Does the body leave what is around it, other than by inner loops?"""
    return bool(_departures(body))


def _departures(body: Body) -> frozenset[type]:
    """The kinds of jumps that leave the body."""
    found: set[type] = set()
    for stmt in body:
        if isinstance(stmt, Break | Continue | Return):
            found.add(type(stmt))
        elif isinstance(stmt, For | While):
            if Return in _departures(stmt.body):
                found.add(Return)
        else:
            for inner in bodies_of(stmt):
                found |= _departures(inner)
    return frozenset(found)


def _leaves_of(nodes: list[Node]) -> frozenset[type]:
    """The kinds of jumps within regions that leave these nodes."""
    found: frozenset[type] = frozenset()
    for node in nodes:
        match node:
            case Region(leaves=leaves):
                found |= leaves
            case Branch(then=then, orelse=orelse):
                found |= _leaves_of(then) | _leaves_of(orelse)
            case Loop(nodes=inner):
                found |= _leaves_of(inner) & {Return}
            case Jump():
                pass
    return found


def _flat(nodes: list[Node]) -> list[Node]:
    found: list[Node] = []
    for node in nodes:
        found.append(node)
        if isinstance(node, Branch):
            found += _flat(node.then) + _flat(node.orelse)
        elif isinstance(node, Loop):
            found += _flat(node.nodes)
    return found


def _uses(nodes: list[Node]) -> list[Use]:
    return [node.use for node in _flat(nodes) if not isinstance(node, Jump)]


def _region(body: Body) -> Region:
    use = Use()
    for stmt in walk_stmts(body):
        _note(use, expressions_of(stmt))
        use.declared.update(var.id for var in declared_by(stmt))
        if isinstance(stmt, Assign) and isinstance(stmt.target, LVar):
            var = stmt.target.var
            use.used[var.id] = var
            use.assigned.add(var.id)
    return Region(body, use, _departures(body))


def _use_of(exprs: tuple[Expr, ...]) -> Use:
    use = Use()
    _note(use, exprs)
    return use


def _note(use: Use, exprs: tuple[Expr, ...]) -> None:
    for expr in walk_exprs(*exprs):
        if isinstance(expr, VarRef) and isinstance(expr.var.type, Scalar):
            use.used[expr.var.id] = expr.var


def _recomputed(body: Body, params: frozenset[int]) -> dict[int, tuple[Var, Expr]]:
    """Immutable variables that are cheap functions of coordinates, parameters and each other."""
    found: dict[int, tuple[Var, Expr]] = {}
    for stmt in walk_stmts(body):
        if not isinstance(stmt, Let) or isinstance(stmt.value, ArrayCreate):
            continue
        nodes = list(walk_exprs(stmt.value))
        if len(nodes) <= _RECOMPUTED and all(_cheap(node, params, found) for node in nodes):
            found[stmt.var.id] = (stmt.var, stmt.value)
    return found


def _cheap(node: Expr, params: frozenset[int], known: dict[int, tuple[Var, Expr]]) -> bool:
    match node:
        case VarRef(var=var):
            return var.id in params or var.id in known
        case Const() | Index() | Binary() | Unary() | Cast() | Subscript():
            return True
        case _:
            return False
