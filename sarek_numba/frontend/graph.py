"""Control-flow graph of Numba IR in SSA form: nodes, orders, dominators, natural loops."""

from __future__ import annotations

from numba.core import ir

from sarek_numba.frontend.regions import Node, Phi


def nodes_of(function_ir: ir.FunctionIR) -> dict[int, Node]:
    """The reachable blocks as nodes, the entry first; phis are taken out of the statements."""
    blocks = function_ir.blocks
    entry = min(blocks)
    nodes = {label: _node(label, blocks[label]) for label in sorted(blocks)}
    reached = set(reverse_postorder(nodes, entry))
    nodes = {label: node for label, node in nodes.items() if label in reached}
    for node in nodes.values():
        for phi in node.phis:
            phi.incoming = {p: value for p, value in phi.incoming.items() if p in reached}
    return nodes


def _node(label: int, block: ir.Block) -> Node:
    node = Node(label, [], [], block.body[-1])
    for statement in block.body[:-1]:
        if isinstance(statement, ir.Del):
            continue
        value = statement.value if isinstance(statement, ir.Assign) else None
        if isinstance(value, ir.Expr) and value.op == "phi":
            incoming = {
                source: None if var is ir.UNDEFINED else var
                for source, var in zip(value.incoming_blocks, value.incoming_values, strict=True)
            }
            node.phis.append(Phi(statement.target, incoming, statement.loc))
        else:
            node.statements.append(statement)
    return node


def successors(node: Node) -> tuple[int, ...]:
    """Where a node may go, the branch taken first."""
    terminator = node.terminator
    if isinstance(terminator, ir.Jump):
        return (terminator.target,)
    if isinstance(terminator, ir.Branch):
        return (terminator.truebr, terminator.falsebr)
    return ()


def reachable_blocks(blocks: dict[int, ir.Block]) -> set[int]:
    """The labels of the blocks that the first one leads to, itself included."""
    pending = [min(blocks)]
    reached = set(pending)
    while pending:
        new = set(blocks[pending.pop()].body[-1].get_targets()) - reached
        reached |= new
        pending += new
    return reached


def predecessors(nodes: dict[int, Node]) -> dict[int, list[int]]:
    """Where each node may come from; the entry has none."""
    result: dict[int, list[int]] = {label: [] for label in nodes}
    for label, node in nodes.items():
        for target in dict.fromkeys(successors(node)):
            result[target].append(label)
    return result


def reverse_postorder(nodes: dict[int, Node], entry: int) -> list[int]:
    """Depth-first order reversed: each node after those that lead to it, but for loops.

    The branch not taken is walked first, so that what a test guards comes before what follows.
    """
    order: list[int] = []
    seen = {entry}
    stack = [(entry, list(successors(nodes[entry])))]
    while stack:
        label, targets = stack[-1]
        while targets:
            target = targets.pop()
            if target not in seen:
                seen.add(target)
                stack.append((target, list(successors(nodes[target]))))
                break
        else:
            order.append(label)
            stack.pop()
    order.reverse()
    return order


def immediate_dominators(order: list[int], before: dict[int, list[int]]) -> dict[int, int]:
    """Immediate dominator of every node; the entry is its own.

    Cooper, Harvey and Kennedy, 'A Simple, Fast Dominance Algorithm', 2001.
    """
    position = {label: k for k, label in enumerate(order)}
    entry = order[0]
    idom = {entry: entry}

    def meet(left: int, right: int) -> int:
        while left != right:
            while position[left] > position[right]:
                left = idom[left]
            while position[right] > position[left]:
                right = idom[right]
        return left

    changed = True
    while changed:
        changed = False
        for label in order[1:]:
            known = [p for p in before[label] if p in idom]
            new = known[0]
            for other in known[1:]:
                new = meet(new, other)
            if idom.get(label) != new:
                idom[label] = new
                changed = True
    return idom


def is_reducible(nodes: dict[int, Node], entry: int) -> bool:
    """Whether every loop has one way in: each edge back leads to a node that dominates its source.

    Nodes need no more than a terminator.
    """
    order = reverse_postorder(nodes, entry)
    position = {label: k for k, label in enumerate(order)}
    back = [
        (label, target)
        for label in order
        for target in successors(nodes[label])
        if position[target] <= position[label]
    ]
    if not back:
        return True
    before: dict[int, list[int]] = {label: [] for label in order}
    for label in order:
        for target in dict.fromkeys(successors(nodes[label])):
            before[target].append(label)
    idom = immediate_dominators(order, before)
    for source, header in back:
        label = source
        while position[label] > position[header]:
            label = idom[label]
        if label != header:
            return False
    return True


def natural_loops(
    order: list[int], before: dict[int, list[int]], position: dict[int, int]
) -> dict[int, set[int]]:
    """The nodes of each natural loop by its header; loops with one header are one loop."""
    loops: dict[int, set[int]] = {}
    for header in order:
        latches = [p for p in before[header] if position[p] >= position[header]]
        if not latches:
            continue
        body = {header}
        pending = latches
        while pending:
            label = pending.pop()
            if label not in body:
                body.add(label)
                pending += before[label]
        loops[header] = body
    return loops
