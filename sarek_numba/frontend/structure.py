"""Turn the control-flow graph of Numba IR into branches and loops.

In: the SSA form of any function that CPython compiles (its graph is reducible). Out: a `Structured`
that runs the same nodes in the same order. The tree follows the dominator tree, after Ramsey,
'Beyond Relooper: Recursive Translation of Unstructured Control Flow to Structured Control Flow',
ICFP 2022: a node with several ways in stands behind a labelled block around all that leads to
it, and a loop's header behind a loop. Unlike there, nodes that a loop leaves for stand behind
that loop, where the user wrote them; `frontend.jumps` then turns jumps to labels into falling
through, `break` and
`continue`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from numba.core import ir

from sarek_numba.errors import UnsupportedConstruct
from sarek_numba.frontend import unrolling
from sarek_numba.frontend.conditions import fold_conditions
from sarek_numba.frontend.graph import (
    immediate_dominators,
    natural_loops,
    nodes_of,
    predecessors,
    reverse_postorder,
    successors,
)
from sarek_numba.frontend.jumps import EXIT, Block, Goto, Labelled, LabelledLoop, resolve_jumps
from sarek_numba.frontend.regions import (
    Copies,
    Decide,
    Fail,
    Finish,
    Leave,
    Loop,
    Node,
    Region,
    Regions,
    Straight,
    Structured,
    TestFlag,
)
from sarek_numba.frontend.tree import all_nodes
from sarek_numba.ir.depth import deep_recursion


def structure(
    function_ir: ir.FunctionIR,
    is_pure: Callable[[ir.Assign], bool],
    tree: ast.AST | None = None,
) -> Structured:
    """Structure a function.

    `is_pure` says that an assignment to a temporary may be part of an expression, evaluated only
    where it is needed. `tree` is the syntax tree of the function, if known.
    """
    nodes = nodes_of(function_ir)
    fold_conditions(nodes, is_pure, _statement_lines(tree))
    split_exits(nodes, _exits_to_phis(nodes))
    with deep_recursion():
        regions, flags = resolve_jumps(_Builder(nodes).build())
        done: set[int] = set()
        while further := [head for head in _exits_further(nodes, regions) if head not in done]:
            done.update(further)  # a second node for one exit would change nothing
            split_exits(nodes, further)
            regions, flags = resolve_jumps(_Builder(nodes).build())
    return Structured(nodes, regions, flags)


def is_for(node: Node) -> bool:
    """Whether a node is the head of a `for`: it takes the next item of an iterator.

    One that makes the iterator too is no head of a loop over it: the `for` makes one pass at most.
    """
    values = [s.value for s in node.statements if isinstance(s, ir.Assign)]
    operations = {value.op for value in values if isinstance(value, ir.Expr)}
    return "iternext" in operations and "getiter" not in operations


def split_exits(nodes: dict[int, Node], heads: Iterable[int]) -> None:
    """Give the way out of each of these heads of a `for` a node of its own, behind the loop.

    The head's test is no statement of its own in a `For`: nothing can stand on its exit edge.
    """
    fresh = max(nodes) + 1
    for label in heads:
        node = nodes[label]
        branch = node.terminator
        target = nodes[branch.falsebr]
        nodes[fresh] = Node(fresh, [], [], ir.Jump(target.label, branch.loc))
        for phi in target.phis:
            phi.incoming[fresh] = phi.incoming.pop(label)
        node.terminator = ir.Branch(branch.cond, branch.truebr, fresh, branch.loc)
        fresh += 1


def only_leaves(head: Decide) -> bool:
    """Whether the test of the head of a `for` does nothing at the end but leave the loop."""
    rest = [region for region in head.orelse if not isinstance(region, Copies)]
    return len(rest) == 1 and isinstance(rest[0], Leave)


def all_regions(regions: Regions) -> Iterator[Region]:
    """Some regions and all within them."""
    pending = list(regions)
    while pending:
        region = pending.pop()
        yield region
        if isinstance(region, Decide):
            pending += [*region.then, *region.orelse]
        elif isinstance(region, (Loop, TestFlag)):
            pending += region.body


def _exits_to_phis(nodes: dict[int, Node]) -> list[int]:
    """The heads of a `for` from which phis take values where the loop ends."""
    return [
        label
        for label, node in nodes.items()
        if is_for(node)
        and isinstance(node.terminator, ir.Branch)
        and nodes[node.terminator.falsebr].phis
    ]


def _exits_further(nodes: dict[int, Node], regions: Regions) -> list[int]:
    """The heads of a `for` whose end is not just behind their loop, as in the `else` of another."""
    loops = [r for r in all_regions(regions) if isinstance(r, Loop) and is_for(nodes[r.label])]
    return [
        loop.label
        for loop in loops
        for head in loop.body
        if isinstance(head, Decide) and head.label == loop.label and not only_leaves(head)
    ]


def _statement_lines(tree: ast.AST | None) -> Callable[[int], int]:
    """First line of the statement (for a compound one: of its head) that a line belongs to."""
    first: dict[int, int] = {}
    for node in all_nodes(tree):
        if isinstance(node, ast.match_case):
            end = (node.guard or node.pattern).end_lineno
            for line in range(node.pattern.lineno, (end or 0) + 1):
                first[line] = node.pattern.lineno
        elif isinstance(node, ast.stmt):
            head = node.subject if isinstance(node, ast.Match) else getattr(node, "test", node)
            for line in range(node.lineno, (head.end_lineno or node.lineno) + 1):
                if not hasattr(node, "body") or head is not node:
                    first[line] = max(first.get(line, 0), node.lineno)

    def statement_line(line: int) -> int:
        written = unrolling.written_line(line)
        return line - written + first.get(written, written)

    return statement_line


class _Builder:
    """Builds the labelled tree."""

    def __init__(self, nodes: dict[int, Node]) -> None:
        self.nodes = nodes
        entry = min(nodes)
        order = reverse_postorder(nodes, entry)
        self.entry = entry
        self.position = {label: k for k, label in enumerate(order)}
        self.before = predecessors(nodes)
        self.idom = immediate_dominators(order, self.before)
        self.loops = natural_loops(order, self.before, self.position)
        self.children: dict[int, list[int]] = {label: [] for label in order}
        for label in order[1:]:
            self.children[self.idom[label]].append(label)
        self.check_reducible()
        self.behind, behind_any = self.exits()
        self.merges = {
            label for label in order if len(self.forward(label)) > 1 or label in behind_any
        }
        self.kept = {
            label: [
                child
                for child in self.children[label]
                if child in self.merges and child not in behind_any
            ]
            for label in order
        }

    def forward(self, label: int) -> list[int]:
        """The ways into a node that are no back edges."""
        return [p for p in self.before[label] if self.position[p] < self.position[label]]

    def check_reducible(self) -> None:
        for header, body in self.loops.items():
            if self.entry in body and header != self.entry:
                raise UnsupportedConstruct("control flow that no Python statement gives")

    # --- where the nodes stand that a loop leaves for ---------------------------------------------

    def exits(self) -> tuple[dict[int, list[int]], set[int]]:
        """For each loop the nodes to place behind it, in order, and all such nodes."""
        roots: dict[int, list[int]] = {header: [] for header in self.loops}
        nesting = self.nesting()
        for label in self.position:
            if label == self.entry:
                continue
            left = [h for h in nesting[self.idom[label]] if label not in self.loops[h]]
            owner = self.idom[label]
            if left and self.is_end_of_for(owner, label):
                roots[owner].append(label)  # whatever it goes on to
            elif left:
                roots[left[0]].append(label)
        regions = self.subtree_targets()
        behind = {h: self.placed_behind(h, roots[h], regions) for h in self.loops}
        return behind, {label for labels in behind.values() for label in labels}

    def is_end_of_for(self, head: int, label: int) -> bool:
        """Whether a `for` that comes back to its head goes to this node at its end."""
        node = self.nodes[head]
        return head in self.loops and is_for(node) and label == successors(node)[1]

    def nesting(self) -> dict[int, list[int]]:
        """The headers of the loops that each node is in, outermost first."""
        result: dict[int, list[int]] = {label: [] for label in self.position}
        for header in sorted(self.loops, key=self.position.__getitem__):
            for label in self.loops[header]:
                result[label].append(header)
        return result

    def subtree_targets(self) -> dict[int, set[int]]:
        """Where the nodes that a node dominates go, outside of themselves."""
        result: dict[int, set[int]] = {}
        for label in sorted(self.position, key=self.position.__getitem__, reverse=True):
            targets = set(successors(self.nodes[label]))
            for child in self.children[label]:
                targets |= result[child]
            # what a node dominates directly is inside; anything deeper was taken out below it
            result[label] = targets.difference(self.children[label], (label,))
        return result

    def placed_behind(
        self, header: int, roots: list[int], targets: dict[int, set[int]]
    ) -> list[int]:
        after = self.after(header, roots, targets)
        ended = successors(self.nodes[header])[1] if is_for(self.nodes[header]) else None
        result = [root for root in roots if root in (ended, after) or not targets[root] <= {after}]
        reached = set().union(*(targets[root] for root in result))
        while further := [root for root in roots if root in reached and root not in result]:
            result += further  # what stands behind the loop goes there: it cannot stay within
            reached = reached.union(*(targets[root] for root in further))
        # where a `for` ends comes first, as its test leaves the loop, unless others go on to it
        first = None if ended in reached else ended
        return sorted(result, key=lambda root: (root != first, self.position[root]))

    def after(self, header: int, roots: list[int], targets: dict[int, set[int]]) -> int | None:
        """The node where the statement after the loop begins, as well as can be told."""
        body = self.loops[header]
        left = [t for t in successors(self.nodes[header]) if t not in body]
        if len(left) == 1:
            ended = left[0]
            if ended not in roots or len(targets[ended]) != 1:
                return ended
            (meeting,) = targets[ended]
            others = {
                t
                for label in body
                for t in successors(self.nodes[label])
                if t not in body and (label, t) != (header, ended)
            }
            met = {t for other in others for t in (other, *targets[other])}
            return meeting if meeting in met and ended not in met else ended
        open_roots = [root for root in roots if targets[root]]
        if open_roots:
            return max(open_roots, key=self.position.__getitem__)
        outside = [t for label in body for t in successors(self.nodes[label]) if t not in body]
        outside = [t for t in outside if t not in roots] or roots
        return max(outside, key=lambda label: self.line(label), default=None)

    def line(self, label: int) -> int:
        node = self.nodes[label]
        first = node.statements[0] if node.statements else node.terminator
        return int(first.loc.line)

    # --- the tree ---------------------------------------------------------------------------------

    def build(self) -> list[Labelled]:
        return self.tree(self.entry)

    def tree(self, label: int | None) -> list[Labelled]:
        """A node and all that it dominates; what follows in a line is no recursion."""
        result: list[Labelled] = []
        while label is not None:
            behind = self.behind.get(label, [])
            if label in self.loops:
                inside: list[Labelled] = [LabelledLoop(label, self.within(label))]
                for target in behind[:-1]:
                    inside = [Block(target, inside), *self.tree(target)]
                if behind:
                    inside = [Block(behind[-1], inside)]
                result += inside
                label = behind[-1] if behind else None
                continue
            kept = self.kept[label]
            if kept:
                result.append(Block(kept[-1], self.blocks(label, kept[:-1])))
                label = kept[-1]
                continue
            label = self.line_up(label, result)
        return result

    def within(self, label: int) -> list[Labelled]:
        """The body of a loop: its header with all that stays within."""
        kept = self.kept[label]
        if kept:
            return [Block(kept[-1], self.blocks(label, kept[:-1])), *self.tree(kept[-1])]
        return self.blocks(label, [])

    def blocks(self, label: int, kept: list[int]) -> list[Labelled]:
        """A node inside labelled blocks for the nodes with several ways in that it dominates."""
        inside: list[Labelled] = []
        follow = self.line_up(label, inside)
        inside += self.tree(follow)
        for target in kept:
            inside = [Block(target, inside), *self.tree(target)]
        return inside

    def line_up(self, label: int, result: list[Labelled]) -> int | None:
        """Append a node; the node that follows in a line, if there is one."""
        node = self.nodes[label]
        result.append(Straight(label))
        terminator = node.terminator
        if isinstance(terminator, ir.Jump):
            result.append(Copies(label, terminator.target))
            if self.is_placed(label, terminator.target):
                result.append(Goto(terminator.target))
                return None
            return int(terminator.target)
        if isinstance(terminator, ir.Branch):
            then, orelse = (self.way(label, target) for target in successors(node))
            result.append(Decide(label, then, orelse))  # type: ignore[arg-type] # labelled still
        elif not isinstance(terminator, ir.Return):
            result.append(Fail(label))
        elif returns_none(node):
            result.append(Goto(EXIT))
        else:
            result.append(Finish(label))
        return None

    def way(self, source: int, target: int) -> list[Labelled]:
        copies = Copies(source, target)
        if self.is_placed(source, target):
            return [copies, Goto(target)]
        return [copies, *self.tree(target)]

    def is_placed(self, source: int, target: int) -> bool:
        """Whether a node stands elsewhere, behind a label."""
        return target in self.merges or self.position[target] <= self.position[source]


def returns_none(node: Node) -> bool:
    """Whether a node ends with `return None`, its value made on the spot."""
    name = node.terminator.value.name
    for statement in reversed(node.statements):
        if not isinstance(statement, ir.Assign) or statement.target.name != name:
            continue
        value = statement.value
        if isinstance(value, ir.Const):
            return value.value is None
        if isinstance(value, ir.Expr) and value.op == "cast":
            name = value.value.name
        elif isinstance(value, ir.Var):
            name = value.name
        else:
            return False
    return False
