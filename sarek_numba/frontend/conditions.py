"""Fold short circuits of the control-flow graph back into expressions.

`and`, `or`, chained comparisons and conditional expressions are branches in bytecode. Where what
they guard is pure, they become a `Choose`: as a condition (two tests that share a target become
one test) or as a value (a diamond that only chooses a temporary). Statements of the user stay as
they are: an
`if` that assigns a variable is not folded. Nodes in a line are joined on the way.

Changes the nodes in place; every name is still assigned once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from numba.core import ir

from sarek_numba.frontend.graph import predecessors, reverse_postorder, successors
from sarek_numba.frontend.reads import read_by_statement
from sarek_numba.frontend.regions import Arm, Choose, Node, Phi, Statement

# A guarded value may be written out twice, as the middle of a chained comparison is.
_MOST_USES = 2


def fold_conditions(
    nodes: dict[int, Node],
    is_pure: Callable[[ir.Assign], bool],
    statement_line: Callable[[int], int],
) -> None:
    """Fold until nothing changes.

    `is_pure` says that an assignment may be part of an expression. `statement_line` gives the first
    line of the statement that a line belongs to: tests of two statements stay two.
    """
    _merge_phis(nodes)
    _Folder(nodes, is_pure, statement_line).run()


def _merge_phis(nodes: dict[int, Node]) -> None:
    """Make one phi of those temporaries of a node that always hold the same value.

    A value that `and` or `or` both tests and yields stands on CPython's stack twice.
    """
    copied: dict[str, str] = {}
    for node in nodes.values():
        for statement in node.statements:
            if not isinstance(statement, ir.Assign) or not statement.target.is_temp:
                continue
            if isinstance(statement.value, ir.Var):
                copied[statement.target.name] = statement.value.name

    def origin(variable: ir.Var | None) -> str | None:
        name = None if variable is None else variable.name
        while name in copied:
            name = copied[name]
        return name

    for node in nodes.values():
        first: dict[object, Phi] = {}
        kept, copies = [], []
        for phi in node.phis:
            key = tuple((source, origin(value)) for source, value in phi.incoming.items())
            same = first.setdefault(key, phi)
            if same is phi or not (phi.target.is_temp and same.target.is_temp):
                kept.append(phi)
            else:
                copies.append(ir.Assign(same.target, phi.target, phi.loc))
        node.phis = kept
        node.statements[:0] = copies


class _Folder:
    def __init__(
        self,
        nodes: dict[int, Node],
        is_pure: Callable[[ir.Assign], bool],
        statement_line: Callable[[int], int],
    ) -> None:
        self.nodes = nodes
        self.is_pure = is_pure
        self.statement_line = statement_line
        self.entry = min(nodes)
        self.before = {k: set(v) for k, v in predecessors(nodes).items()}
        self.uses = _count_uses(nodes)
        self.reads_of_choices: dict[str, Counter[str]] = {}
        self.made = 0

    def run(self) -> None:
        pending = reverse_postorder(self.nodes, self.entry)
        queued = set(pending)
        while pending:
            label = pending.pop()
            queued.discard(label)
            if label not in self.nodes:
                continue
            if self.fold_once(label):
                for again in (label, *self.before[label]):
                    if again not in queued:
                        queued.add(again)
                        pending.append(again)

    def fold_once(self, label: int) -> bool:
        node = self.nodes[label]
        if isinstance(node.terminator, ir.Jump):
            return self.join(node)
        if isinstance(node.terminator, ir.Branch):
            return self.fold_test(node) or self.fold_value(node)
        return False

    # --- nodes in a line --------------------------------------------------------------------------

    def join(self, node: Node) -> bool:
        """Append a node's only successor to it, if that has no other way in."""
        target = node.terminator.target
        if self.before[target] != {node.label} or target == self.entry or target == node.label:
            return False
        follower = self.nodes.pop(target)
        for phi in follower.phis:
            value = phi.incoming[node.label]
            if value is not None:
                node.statements.append(ir.Assign(value, phi.target, phi.loc))
        node.statements += follower.statements
        node.terminator = follower.terminator
        self.move_edges(follower, node)
        return True

    def move_edges(self, old: Node, new: Node) -> None:
        for target in dict.fromkeys(successors(old)):
            self.before[target].discard(old.label)
            self.before[target].add(new.label)
            for phi in self.nodes[target].phis if target in self.nodes else ():
                if old.label in phi.incoming:
                    phi.incoming[new.label] = phi.incoming.pop(old.label)

    # --- conditions -------------------------------------------------------------------------------

    def fold_test(self, node: Node) -> bool:
        """Two tests with a shared target are one."""
        first = node.terminator
        for label, shared in (
            (first.truebr, first.falsebr),
            (first.falsebr, first.truebr),
        ):
            inner = self.nodes[label]
            second = inner.terminator
            if (
                not isinstance(second, ir.Branch)
                or label == shared
                or shared not in successors(inner)
                or label in successors(inner)
                or not self.same_statement(first, second)
                or not self.is_arm(inner, node.label, {second.cond.name})
                or not self.same_on_edges(shared, node.label, label)
            ):
                continue
            test = self.temporary(node, second)
            rest, constant = Arm(tuple(inner.statements), second.cond), shared == second.truebr
            then, orelse = rest, Arm((), constant)
            if label == first.falsebr:
                then, orelse = orelse, then
            node.statements.append(Choose(test, first.cond, then, orelse, first.loc, None))
            node.terminator = ir.Branch(test, second.truebr, second.falsebr, first.loc)
            self.uses[test.name] = 1
            self.remove(inner, node)
            return True
        return False

    def same_statement(self, left: ir.Stmt, right: ir.Stmt) -> bool:
        return self.statement_line(left.loc.line) == self.statement_line(right.loc.line)

    def remove(self, inner: Node, node: Node) -> None:
        """Take out a node that became an arm of `node`; its edges become those of `node`."""
        del self.nodes[inner.label]
        for target in dict.fromkeys(successors(inner)):
            had_edge = node.label in self.before[target]
            self.before[target].discard(inner.label)
            self.before[target].add(node.label)
            for phi in self.nodes[target].phis:
                value = phi.incoming.pop(inner.label)
                if not had_edge:
                    phi.incoming[node.label] = value

    def same_on_edges(self, target: int, left: int, right: int) -> bool:
        return all(
            _same(phi.incoming[left], phi.incoming[right]) for phi in self.nodes[target].phis
        )

    def temporary(self, node: Node, branch: ir.Branch) -> ir.Var:
        self.made += 1
        return ir.Var(branch.cond.scope, f"$test.{node.label}.{self.made}", branch.loc)

    # --- values -----------------------------------------------------------------------------------

    def fold_value(self, node: Node) -> bool:
        """A diamond or triangle that chooses one temporary is a conditional expression."""
        branch = node.terminator
        follow = self.follow_of(node)
        if follow is None:
            return False
        sources = [
            label if label != follow else node.label for label in (branch.truebr, branch.falsebr)
        ]
        phis = self.nodes[follow].phis
        differing = [
            phi for phi in phis if not _same(phi.incoming[sources[0]], phi.incoming[sources[1]])
        ]
        if len(differing) > 1:
            return False
        chosen = differing[0] if differing else None
        values = [chosen.incoming[source] if chosen else None for source in sources]
        if chosen and (not chosen.target.is_temp or None in values):
            return False
        arms = []
        for source, value in zip(sources, values, strict=True):
            inner = self.nodes[source]
            own = source != node.label
            if own and not self.is_arm(inner, node.label, {value.name} if value else set()):
                return False
            arms.append(Arm(tuple(inner.statements) if own else (), value or False))
        self.choose(node, follow, chosen, arms)
        return True

    def choose(self, node: Node, follow: int, chosen: Phi | None, arms: list[Arm]) -> None:
        branch = node.terminator
        for label in (branch.truebr, branch.falsebr):
            if label != follow:
                inner = self.nodes.pop(label)
                self.before[follow].discard(label)
                for phi in self.nodes[follow].phis:
                    phi.incoming.setdefault(node.label, phi.incoming[inner.label])
                    del phi.incoming[inner.label]
        self.before[follow].add(node.label)
        node.terminator = ir.Jump(follow, branch.loc)
        if chosen is None:
            return
        target = ir.Var(chosen.target.scope, f"{chosen.target.name}.{node.label}", branch.loc)
        like = chosen.target
        chosen.incoming[node.label] = target
        self.uses[target.name] = 1
        then, orelse = arms
        node.statements.append(Choose(target, branch.cond, then, orelse, branch.loc, like))

    def follow_of(self, node: Node) -> int | None:
        """Where both ways of a branch meet directly, or None."""
        ways = []
        for label in (node.terminator.truebr, node.terminator.falsebr):
            target = self.nodes[label].terminator
            single = self.before[label] == {node.label} and isinstance(target, ir.Jump)
            ways.append({label, target.target} if single else {label})
        meeting = ways[0] & ways[1]
        return min(meeting) if meeting else None

    # --- arms -------------------------------------------------------------------------------------

    def is_arm(self, inner: Node, source: int, results: set[str]) -> bool:
        """Whether a node is reached from `source` only and computes nothing but `results`."""
        if self.before[inner.label] != {source} or inner.phis:
            return False
        inside = Counter[str](results)
        defined = []
        for statement in inner.statements:
            if isinstance(statement, Choose):
                inside.update(self.reads_of(statement))
            elif (
                not isinstance(statement, ir.Assign)
                or not statement.target.is_temp
                or not self.is_pure(statement)
            ):
                return False
            else:
                _count_statement(statement, inside)
            defined.append(statement)
        for statement in defined:
            name = statement.target.name
            if inside[name] != self.uses[name]:
                return False
            if inside[name] > _MOST_USES and not _is_trivial(statement):
                return False
        return True

    def reads_of(self, choose: Choose) -> Counter[str]:
        """How often a `Choose` reads each temporary that it does not make itself."""
        known = self.reads_of_choices.get(choose.target.name)
        if known is not None:
            return known
        reads = Counter[str]((choose.condition.name,))
        for arm in (choose.then, choose.orelse):
            if isinstance(arm.value, ir.Var):
                reads[arm.value.name] += 1
            for statement in arm.statements:
                if isinstance(statement, Choose):
                    reads.update(self.reads_of(statement))
                else:
                    _count_statement(statement, reads)
        made = {
            inner.target.name for arm in (choose.then, choose.orelse) for inner in arm.statements
        }
        kept = {n: count for n, count in reads.items() if n.startswith("$") and n not in made}
        self.reads_of_choices[choose.target.name] = Counter(kept)
        return self.reads_of_choices[choose.target.name]


def _is_trivial(statement: Statement) -> bool:
    return isinstance(statement, ir.Assign) and isinstance(
        statement.value, (ir.Var, ir.Const, ir.Global, ir.FreeVar)
    )


def _same(left: ir.Var | None, right: ir.Var | None) -> bool:
    if left is None or right is None:
        return left is right
    return bool(left.name == right.name)


# --- uses -----------------------------------------------------------------------------------------


def _count_uses(nodes: dict[int, Node]) -> Counter[str]:
    """How often each variable is read, by statements, terminators and phis."""
    uses: Counter[str] = Counter()
    for node in nodes.values():
        for phi in node.phis:
            uses.update(value.name for value in phi.incoming.values() if value is not None)
        for statement in node.statements:
            _count_statement(statement, uses)
        _count_statement(node.terminator, uses)
    return uses


def _count_statement(statement: ir.Stmt, uses: Counter[str]) -> None:
    uses.update(read_by_statement(statement))
