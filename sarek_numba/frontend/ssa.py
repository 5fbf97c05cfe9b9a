"""Numba's IR in static single assignment form.

Comes in: blocks in which a name may have several assignments. Goes out: the same blocks, changed in
place, where each name has one; where several reach a read, a phi stands first in its block, and
takes `ir.UNDEFINED` from a path without one. A read that none reaches is of a name that the entry
defines by an `undef`. The form is minimal, and has a phi only where it is
read. Each variable costs what its own statements and the blocks between them cost, so that a long
kernel takes time in proportion to its length. (Numba's own pass goes through the whole function
for each variable.)

After R. Cytron et al., "Efficiently computing static single assignment form and the control
dependence graph", TOPLAS 13(4), 1991, with phis made on demand.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from copy import copy
from typing import Any

from numba.core import ir, ir_utils
from numba.core.analysis import compute_cfg_from_blocks

from sarek_numba.frontend.reads import read_by_statement


def construct_ssa(function_ir: ir.FunctionIR) -> None:
    """Give each assignment that needs it a name of its own."""
    graph = _Graph(function_ir.blocks)
    occurrences = _Occurrences(function_ir.blocks)
    phis: dict[int, list[ir.Assign]] = defaultdict(list)
    undefined: list[ir.Var] = []
    for name in occurrences.violating(graph):
        variable = _Variable(name, function_ir.blocks, graph, occurrences)
        for label, phi in variable.rewrite().items():
            phis[label].append(phi)
        if variable.nothing is not None:
            undefined.append(variable.nothing)
    for label, made in phis.items():
        block = function_ir.blocks[label]
        block.body = [*made, *block.body]
    define_nothing(function_ir, undefined)


def define_nothing(function_ir: ir.FunctionIR, variables: list[ir.Var]) -> None:
    """Let the entry define these as holding nothing."""
    entry = function_ir.blocks[min(function_ir.blocks)]
    made = [ir.Assign(ir.Expr.undef(each.loc), each, each.loc) for each in variables]
    entry.body = [*made, *entry.body]


class _Graph:
    """Predecessors, immediate dominators and dominance frontiers of blocks, by label."""

    def __init__(self, blocks: dict[int, ir.Block]) -> None:
        graph = compute_cfg_from_blocks(blocks)
        self.before = {label: [p for p, _ in graph.predecessors(label)] for label in blocks}
        self.dominator: dict[int, int] = graph.immediate_dominators()
        self.frontier: dict[int, set[int]] = graph.dominance_frontier()
        self.interval = self._intervals()

    def _intervals(self) -> dict[int, tuple[int, int]]:
        """For each block the first and last number of what it dominates, in the order of a walk."""
        below: dict[int, list[int]] = defaultdict(list)
        roots: list[int] = []
        for label, parent in self.dominator.items():
            (roots if label == parent else below[parent]).append(label)
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        stack = [(label, False) for label in roots]
        while stack:
            label, is_done = stack.pop()
            if is_done:
                last[label] = len(first) - 1
                continue
            first[label] = len(first)
            stack.append((label, True))
            stack += [(child, False) for child in below[label]]
        return {label: (first[label], last[label]) for label in first}

    def dominates(self, upper: int, lower: int) -> bool:
        """Whether every path to `lower` passes `upper`."""
        first, last = self.interval[upper]
        return first <= self.interval[lower][0] <= last

    def joins(self, labels: set[int]) -> set[int]:
        """Blocks where definitions in these blocks may meet others: the iterated frontier."""
        found: set[int] = set()
        pending = list(labels)
        while pending:
            new = self.frontier[pending.pop()] - found
            found |= new
            pending += new
        return found


class _Occurrences:
    """Where each name is assigned and read: positions of statements, by name and block."""

    def __init__(self, blocks: dict[int, ir.Block]) -> None:
        self.assigned: dict[str, dict[int, list[int]]] = {}
        self.read: dict[str, dict[int, list[int]]] = {}
        self.reads_apart: dict[str, set[int]] = defaultdict(set)
        for label, block in blocks.items():
            for position, statement in enumerate(block.body):
                target = statement.target.name if isinstance(statement, ir.Assign) else None
                if target is not None:
                    _note(self.assigned, target, label, position)
                for name in set(read_by_statement(statement)):
                    _note(self.read, name, label, position)
                    if name != target:
                        self.reads_apart[name].add(label)

    def violating(self, graph: _Graph) -> list[str]:
        """Names with several assignments, or with a read that their one does not dominate."""
        found = [name for name, places in self.assigned.items() if _count(places) > 1]
        found += [
            name
            for name, labels in self.reads_apart.items()
            if _count(self.assigned.get(name, {})) == 1
            and not all(graph.dominates(min(self.assigned[name]), label) for label in labels)
        ]
        return found


def _note(table: dict[str, dict[int, list[int]]], name: str, label: int, position: int) -> None:
    table.setdefault(name, {}).setdefault(label, []).append(position)


def _count(places: dict[int, list[int]]) -> int:
    return sum(map(len, places.values()))


class _Variable:
    """The rewriting of one name. A definition is a `Var`, or `ir.UNDEFINED` where there is none."""

    def __init__(
        self, name: str, blocks: dict[int, ir.Block], graph: _Graph, occurrences: _Occurrences
    ) -> None:
        self.name = name
        self.blocks = blocks
        self.graph = graph
        self.assigned = occurrences.assigned[name]
        self.read = occurrences.read.get(name, {})
        self.scope = next(iter(blocks.values())).scope
        self.joins = graph.joins(set(self.assigned))
        self.at_top: dict[int, Any] = {}
        self.at_bottom: dict[int, Any] = {}
        self.phis: dict[int, ir.Assign] = {}
        self.unfilled: list[tuple[ir.Assign, Iterator[int]]] = []
        self.nothing: ir.Var | None = None

    def rewrite(self) -> dict[int, ir.Assign]:
        """Change assignments and reads. Gives the phis by block, to be put first there."""
        versions = self._name_assignments()
        for label, positions in self.read.items():
            body = self.blocks[label].body
            assigned = self.assigned.get(label, [])
            for position in positions:
                count = bisect_left(assigned, position)  # of assignments before the read
                here = versions[label, assigned[count - 1]] if count else None
                found = self._reaching(label) if here is None else here
                if found is ir.UNDEFINED:
                    found = self._nothing()
                if found.name != self.name:
                    here = ir.Var(found.scope, found.name, body[position].loc)
                    body[position] = _reading(body[position], self.name, here)
        return self.phis

    def _nothing(self) -> ir.Var:
        """The name that stands for the variable before all assignments."""
        if self.nothing is None:
            loc = self.blocks[min(self.blocks)].loc
            self.nothing = self.scope.redefine(self.name, loc=loc)
        return self.nothing

    def _name_assignments(self) -> dict[tuple[int, int], ir.Var]:
        """A name for each assignment by block and position; the first keeps the variable's."""
        versions: dict[tuple[int, int], ir.Var] = {}
        for label, positions in self.assigned.items():
            body = self.blocks[label].body
            for position in positions:
                old = body[position]
                if versions:
                    target = self.scope.redefine(self.name, loc=old.loc)
                    body[position] = ir.Assign(old.value, target, old.loc)
                else:
                    target = old.target
                self.at_bottom[label] = versions[label, position] = target
        return versions

    def _reaching(self, label: int) -> Any:
        """The definition that reaches the start of a block, after what phis it takes are whole."""
        found = self._top(label)
        while self.unfilled:
            phi, pending = self.unfilled[-1]
            before = next(pending, None)
            if before is None:
                self.unfilled.pop()
                continue
            phi.value.incoming_blocks.append(before)
            phi.value.incoming_values.append(self._bottom(before))
        return found

    def _bottom(self, label: int) -> Any:
        """The definition at the end of a block."""
        return self.at_bottom[label] if label in self.at_bottom else self._top(label)

    def _top(self, label: int) -> Any:
        """The definition at the start of a block; a new phi may still be without values."""
        passed: list[int] = []
        while label not in self.at_top:
            passed.append(label)
            parent = self.graph.dominator[label]
            if label in self.joins:
                self.at_top[label] = self._new_phi(label)
            elif parent == label:
                self.at_top[label] = ir.UNDEFINED
            elif parent in self.at_bottom:
                self.at_top[label] = self.at_bottom[parent]
            else:
                label = parent
        found = self.at_top[label]
        self.at_top.update(dict.fromkeys(passed, found))
        return found

    def _new_phi(self, label: int) -> ir.Var:
        loc = self.blocks[label].loc
        target: ir.Var = self.scope.redefine(self.name, loc=loc)
        phi = ir.Assign(ir.Expr.phi(loc=loc), target, loc)
        self.phis[label] = phi
        self.unfilled.append((phi, iter(self.graph.before[label])))
        return target


def _reading(statement: Any, name: str, found: ir.Var) -> Any:
    """A statement that reads another variable; what it was is left as it is."""
    if not isinstance(statement, ir.Assign):
        statement = copy(statement)
        ir_utils.replace_vars_stmt(statement, {name: found})
        return statement
    if isinstance(statement.value, ir.Var):
        return ir.Assign(found, statement.target, statement.loc)
    value = copy(statement.value)
    ir_utils.replace_vars_inner(value, {name: found})
    return ir.Assign(value, statement.target, statement.loc)
