"""Undo the code duplication of CPython's compiler, on Numba IR before SSA.

In: the IR of one function as Numba's interpreter gives it. Out: the same IR, changed in place,
where the test of a `while` stands once (CPython puts it before and at the end of the loop), the
statement after a conditional expression stands once (3.12 copies it into both arms where a
return follows), and equal returns of one source line are one block. Each is a common tail of
blocks: blocks that end alike, instruction for instruction and from the same place of the source,
share one copy of that end. Operands in which the copies differ become one temporary that each
block assigns. So the rest of the front end sees nearly the same graph whatever the Python
version.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from numba.core import ir

from sarek_numba.frontend.graph import is_reducible
from sarek_numba.frontend.jump_threading import forward_jumps
from sarek_numba.frontend.reads import read_by_statement

Position = Callable[[Any], Any]

_TRUTH = re.compile(r"\$\d+pred")  # as Numba's interpreter names them


def merge_tails(function_ir: ir.FunctionIR, position: Position) -> None:
    """Merge common tails until none are left.

    `position` gives the place in the source of an instruction, as exactly as is known: only
    instructions with equal places are copies of each other.

    Two copies of a test may agree in parts only. One copy of such a part would be a second way into
    the loop, which no statement gives: then equal returns alone are merged.
    """
    blocks = function_ir.blocks
    before = {label: (block, list(block.body)) for label, block in blocks.items()}
    _Merger(blocks, position).run()
    if is_reducible(blocks, min(blocks)):
        return
    blocks.clear()
    for label, (block, body) in before.items():
        block.body = body
        blocks[label] = block
    _Merger(blocks, position, only_returns=True).run()


class _Merger:
    def __init__(
        self, blocks: dict[int, ir.Block], position: Position, only_returns: bool = False
    ) -> None:
        self.only_returns = only_returns
        self.blocks = blocks
        self.position = position
        self.next_label = max(blocks) + 1
        self.temporaries = 0
        self.reads = _reads_of_settled(blocks)

    def run(self) -> None:
        """Alternate between removing blocks that only jump and merging, until nothing changes."""
        forward_jumps(self.blocks)
        # a copy of a whole test first: what is left of it may look like an arm of that test
        while self.merge_once(choices=False) or self.merge_once(choices=True):
            _hoist_copies(self.blocks)
            forward_jumps(self.blocks)

    def merge_once(self, choices: bool) -> bool:
        """Merge what has a common tail; with `choices`, branches of values that choose alike."""
        groups: dict[Any, list[int]] = {}
        for label, block in self.blocks.items():
            key = self.key_of(block)
            if key is not None:
                groups.setdefault(key, []).append(label)
        crossing = _crossing(self.blocks)
        changed = False
        for labels in groups.values():
            while len(labels) > 1:
                first, *rest = labels
                labels = rest
                for second in rest:
                    if self.merge(first, second, crossing, choices):
                        changed = True
                        labels = [label for label in rest if label != second]
                        break
        return changed

    def place_of(self, statement: ir.Stmt) -> Any:
        """Where a statement is written: exactly if it computes something, else its line.

        CPython 3.11 may give a jump, and so its test for truth, the place of an earlier operand.
        """
        value = statement.value if isinstance(statement, ir.Assign) else None
        if isinstance(value, ir.Expr) and value.op != "cast" and not _is_truth(statement):
            return self.position(statement), statement.loc.line
        return statement.loc.line

    def key_of(self, block: ir.Block) -> Any:
        """What blocks with a common tail agree in, or None where there can be none."""
        terminator = block.body[-1]
        if self.only_returns and not isinstance(terminator, ir.Return):
            return None
        if isinstance(terminator, ir.Jump):
            effect = next((s for s in reversed(block.body[:-1]) if not _is_copy(s)), None)
            return None if effect is None else ("jump", terminator.target, self.place_of(effect))
        if isinstance(terminator, ir.Branch):
            targets = (terminator.truebr, terminator.falsebr)
            return ("branch", *targets, terminator.loc.line)
        if isinstance(terminator, ir.Return):
            return ("return", terminator.loc.line)
        return None

    def merge(self, first: int, second: int, crossing: set[str], choices: bool) -> bool:
        """Give two blocks one copy of their common tail, if they have one."""
        left, right = self.blocks[first], self.blocks[second]
        tail = _common_tail(left.body, right.body, self.place_of, _Match(crossing))
        if tail is not None and _tests_different(tail, left.body):
            # values of any two types are tested: all that they share is the branch
            ends = left.body[-1], right.body[-1]
            branches = choices and isinstance(ends[0], ir.Branch)
            tail = _Tail(1, [(ends[0].cond, ends[1].cond)]) if branches else None
        if tail is None:
            return False
        scope, loc = left.scope, left.body[-1].loc
        shared = ir.Block(scope, loc)
        body = left.body[len(left.body) - tail.length :]
        renamed = {}
        copies: tuple[list[ir.Stmt], list[ir.Stmt]] = ([], [])
        for ours, theirs in tail.differing:
            settled = self.reads.get(ours.name)
            if settled is not None and settled is self.reads.get(theirs.name):
                renamed[ours.name] = settled
                continue
            merged = self.temporary(scope, loc)
            renamed[ours.name] = merged
            copies[0].append(ir.Assign(ours, merged, loc))
            copies[1].append(ir.Assign(theirs, merged, loc))
        shared.body = [_renamed(statement, renamed) for statement in body]
        stored = _split_store(left, right, tail)
        if stored is not None:
            chosen = self.temporary(scope, loc)
            shared.body.insert(0, ir.Assign(chosen, stored[0].target, stored[0].loc))
            for own, store in zip(copies, stored, strict=True):
                own.insert(0, ir.Assign(store.value, chosen, store.loc))
        label = self.next_label
        self.next_label += 1
        self.blocks[label] = shared
        for block, added in zip((left, right), copies, strict=True):
            kept = block.body[: len(block.body) - tail.length - (stored is not None)]
            block.body = [*kept, *added, ir.Jump(label, loc)]
        return True

    def temporary(self, scope: ir.Scope, loc: ir.Loc) -> ir.Var:
        while True:
            name = f"$merged.{self.temporaries}"
            self.temporaries += 1
            if name not in scope.localvars:
                return scope.define(name, loc)


def _reads_of_settled(blocks: dict[int, ir.Block]) -> dict[str, ir.Var]:
    """The variable, assigned once in the function, that a temporary is a read of.

    So an array that waits on CPython's stack in two copies of a test is one array still. What a
    temporary holds stays as it is until the expression is done, of which it is a part.
    """
    assigned: Counter[str] = Counter()
    reads: list[ir.Assign] = []
    variables: dict[str, ir.Var] = {}
    for block in blocks.values():
        for statement in block.body:
            if not isinstance(statement, ir.Assign):
                continue
            target = statement.target.name
            assigned[target] += 1
            variables.setdefault(target, statement.target)
            if target.startswith("$") and isinstance(statement.value, ir.Var):
                reads.append(statement)
    return {
        statement.target.name: variables[statement.value.name]
        for statement in reads
        if assigned[statement.target.name] == 1 and assigned[statement.value.name] == 1
    }


# --- copies of operands ---------------------------------------------------------------------------


def _hoist_copies(blocks: dict[int, ir.Block]) -> None:
    """Move what a block copies to merged temporaries before the branch that leads to it alone.

    Such a temporary is read behind that block only, so assigning it earlier changes nothing; and
    the branches of two copies of a test come to lead to the same block.
    """
    sources: dict[int, list[int]] = {}
    for label, block in blocks.items():
        for target in block.terminator.get_targets():
            sources.setdefault(target, []).append(label)
    for label, block in blocks.items():
        copies = block.body[:-1]
        before = sources.get(label, [])
        if len(before) != 1 or not copies or not isinstance(block.body[-1], ir.Jump):
            continue
        if all(_is_merging(copy) for copy in copies):
            source = blocks[before[0]]
            source.body[-1:] = [*copies, source.body[-1]]
            block.body = block.body[-1:]


def _is_merging(statement: ir.Stmt) -> bool:
    return (
        isinstance(statement, ir.Assign)
        and statement.target.name.startswith("$merged")
        and isinstance(statement.value, ir.Var)
        and statement.value.is_temp
    )


def _crossing(blocks: dict[int, ir.Block]) -> set[str]:
    """The temporaries that a block reads and another one assigns."""
    crossing = set()
    for block in blocks.values():
        assigned = set()
        for statement in block.body:
            for name in read_by_statement(statement):
                if name.startswith("$") and name not in assigned:
                    crossing.add(name)
            if isinstance(statement, ir.Assign):
                assigned.add(statement.target.name)
    return crossing


# --- common tails ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Tail:
    """How many instructions the tails have, and the operands in which they differ."""

    length: int
    differing: list[tuple[ir.Var, ir.Var]]


@dataclass(slots=True)
class _Match:
    """Pairs of variables that must stand for each other; those met, but not yet defined, are open.

    `crossing` are temporaries that other blocks read: they have one name, or do not match.
    """

    crossing: set[str]
    left: dict[str, ir.Var] = field(default_factory=dict)
    right: dict[str, ir.Var] = field(default_factory=dict)
    open: dict[str, tuple[ir.Var, ir.Var]] = field(default_factory=dict)

    def copy(self) -> _Match:
        return _Match(self.crossing, dict(self.left), dict(self.right), dict(self.open))

    def use(self, ours: ir.Var, theirs: ir.Var) -> bool:
        known = self.left.get(ours.name)
        if known is not None or theirs.name in self.right:
            return known is not None and known.name == theirs.name
        self.left[ours.name] = theirs
        self.right[theirs.name] = ours
        self.open[ours.name] = (ours, theirs)
        return True

    def define(self, ours: ir.Var, theirs: ir.Var) -> bool:
        """A definition, met walking backwards: closes the pair."""
        if ours.is_temp != theirs.is_temp:
            return False
        named = not ours.is_temp or ours.name in self.crossing or theirs.name in self.crossing
        if named and ours.name != theirs.name:
            return False
        known = self.left.get(ours.name)
        if known is None and theirs.name not in self.right:
            return True
        if known is None or known.name != theirs.name:
            return False
        self.open.pop(ours.name, None)
        return True


def _common_tail(
    left: list[ir.Stmt], right: list[ir.Stmt], position: Position, match: _Match
) -> _Tail | None:
    if not _same_statement(left[-1], right[-1], match):
        return None
    length, worth = 1, isinstance(left[-1], ir.Return)
    best = _Tail(1, list(match.open.values())) if worth else None
    for ours, theirs in zip(reversed(left[:-1]), reversed(right[:-1]), strict=False):
        trial = match.copy() if len(match.left) < 64 else match
        if _is_argument(ours) or position(ours) != position(theirs):
            break
        if not _same_statement(ours, theirs, trial):
            break
        match = trial
        length += 1
        worth = worth or not _is_copy(ours)
        if worth:
            best = _Tail(length, _differing(match))
    if best is None:
        return None
    return best if _saves(best, left, right) else None


def _split_store(
    left: ir.Block, right: ir.Block, tail: _Tail
) -> tuple[ir.Assign, ir.Assign] | None:
    """The stores of two values in one local just before a tail that returns, from one line.

    CPython 3.12 copies the store of a conditional expression into both arms with what follows it.
    """
    before = -1 - tail.length
    if not isinstance(left.body[-1], ir.Return) or -before > min(len(left.body), len(right.body)):
        return None
    ours, theirs = left.body[before], right.body[before]
    if not (isinstance(ours, ir.Assign) and isinstance(theirs, ir.Assign)):
        return None
    same = ours.target.name == theirs.target.name and not ours.target.is_temp
    if not same or ours.loc.line != theirs.loc.line or _is_argument(ours):
        return None
    return ours, theirs


def _tests_different(tail: _Tail, body: list[ir.Stmt]) -> bool:
    """Whether a tail tests a value for truth in whose making the blocks differ."""
    differing = {ours.name for ours, _ in tail.differing}
    return any(
        _is_truth(statement) and not differing.isdisjoint(read_by_statement(statement))
        for statement in body[len(body) - tail.length :]
    )


def _is_truth(statement: ir.Stmt) -> bool:
    """Whether a statement is the test for truth that Numba puts before a branch."""
    return isinstance(statement, ir.Assign) and _TRUTH.fullmatch(statement.target.name) is not None


def _differing(match: _Match) -> list[tuple[ir.Var, ir.Var]]:
    return [(ours, theirs) for ours, theirs in match.open.values() if ours.name != theirs.name]


def _saves(tail: _Tail, left: list[ir.Stmt], right: list[ir.Stmt]) -> bool:
    """Whether merging makes progress: both blocks are not already a copy and the tail's start."""
    return tail.length > 1 or not tail.differing or isinstance(left[-1], ir.Return)


def _is_argument(statement: ir.Stmt) -> bool:
    return isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Arg)


def _is_copy(statement: ir.Stmt) -> bool:
    return isinstance(statement, ir.Assign) and isinstance(
        statement.value, (ir.Var, ir.Const, ir.Global, ir.FreeVar)
    )


def _same_statement(left: ir.Stmt, right: ir.Stmt, match: _Match) -> bool:
    """Whether two statements are copies; records which variables stand for each other."""
    if type(left) is not type(right):
        return False
    if isinstance(left, ir.Assign):
        return match.define(left.target, right.target) and _same_value(
            left.value, right.value, match
        )
    if isinstance(left, (ir.Jump, ir.Branch)) and left.get_targets() != right.get_targets():
        return False
    ours, theirs = _variables(left), _variables(right)
    return len(ours) == len(theirs) and all(map(match.use, ours, theirs))


def _same_value(left: Any, right: Any, match: _Match) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, ir.Var):
        return match.use(left, right)
    if isinstance(left, ir.Const):
        return type(left.value) is type(right.value) and repr(left.value) == repr(right.value)
    if isinstance(left, (ir.Global, ir.FreeVar)):
        return left.name == right.name and left.value is right.value
    if not isinstance(left, ir.Expr) or left.op != right.op:
        return False
    ours, theirs = _parts(left), _parts(right)
    return (
        ours[0] == theirs[0]
        and len(ours[1]) == len(theirs[1])
        and all(map(match.use, ours[1], theirs[1]))
    )


def _parts(expr: ir.Expr) -> tuple[list[Any], list[ir.Var]]:
    """The fixed parts of an expression, and the variables in it in order."""
    fixed: list[Any] = []
    variables: list[ir.Var] = []

    def visit(value: Any) -> None:
        if isinstance(value, ir.Var):
            variables.append(value)
        elif isinstance(value, (list, tuple)):
            fixed.append(len(value))
            for item in value:
                visit(item)
        else:
            fixed.append(repr(value))

    for key in sorted(expr._kws):
        fixed.append(key)
        visit(expr._kws[key])
    return fixed, variables


def _variables(statement: ir.Stmt) -> list[ir.Var]:
    """The variables of a statement that is no assignment, in a fixed order."""
    found: list[ir.Var] = []
    for key in sorted(vars(statement)):
        value = vars(statement)[key]
        if isinstance(value, ir.Var):
            found.append(value)
    return found


def _renamed(statement: ir.Stmt, names: dict[str, ir.Var]) -> ir.Stmt:
    """The statement with the variables of `names` replaced where they are read."""
    if not names:
        return statement
    renamed = copy(statement)
    for key, value in vars(statement).items():
        if isinstance(statement, ir.Assign) and key == "target":
            continue
        if isinstance(value, ir.Var) and value.name in names:
            setattr(renamed, key, names[value.name])
        elif isinstance(value, ir.Expr):
            expr = copy(value)
            expr._kws = {key: _replaced(part, names) for key, part in value._kws.items()}
            setattr(renamed, key, expr)
    return renamed


def _replaced(part: Any, names: dict[str, ir.Var]) -> Any:
    if isinstance(part, ir.Var):
        return names.get(part.name, part)
    if isinstance(part, tuple):
        return tuple(_replaced(item, names) for item in part)
    if isinstance(part, list):
        return [_replaced(item, names) for item in part]
    return part
