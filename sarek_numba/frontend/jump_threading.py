"""Lead jumps past what they need not pass, on Numba IR before SSA.

In: the IR of one function as Numba's interpreter gives it. Out: the same IR, changed in place, in
which no jump leads to a block that does nothing but jump, and none to a block that does nothing but
test a value whose truth the branch before has just found, or that is a constant.

Such a block is where the values of `a and b` meet in `a and b or c`: where `a` is false the whole
is `c`, and nothing reads what `a` was. CPython 3.11 leads the jump there itself; 3.12 and 3.13 keep
the value on their stack, and test it again. Without the second test that value never meets that of
`b`, which may be of another type.

After F. Mueller and D. Whalley, "Avoiding conditional branches by code replication", PLDI 1995,
for branches whose outcome follows from the one before and which need no code replicated.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from numba.core import ir

from sarek_numba.frontend.graph import reachable_blocks
from sarek_numba.frontend.reads import read_by_statement


def thread_jumps(blocks: dict[int, ir.Block]) -> bool:
    """Lead all jumps past blocks that only jump, and past tests whose outcome is known.

    Gives whether there was such a test: then copies of values may be left that nothing reads.
    """
    forward_jumps(blocks)
    tests = _tests_alone(blocks)
    changed = bool(tests) and _Threader(blocks, tests).run()
    if changed:
        forward_jumps(blocks)
    return changed


def drop_unread_copies(blocks: dict[int, ir.Block]) -> None:
    """Leave out the copies to temporaries that nothing reads, in SSA form."""
    reads = Counter(
        name
        for block in blocks.values()
        for statement in block.body
        for name in read_by_statement(statement)
    )
    copied = {
        statement.target.name: statement.value.name
        for block in blocks.values()
        for statement in block.body
        if isinstance(statement, ir.Assign)
        and isinstance(statement.value, ir.Var)
        and statement.target.is_temp
    }
    unread: set[str] = set()
    pending = [name for name in copied if not reads[name]]
    while pending:
        name = pending.pop()
        unread.add(name)
        reads[copied[name]] -= 1
        if copied[name] in copied and not reads[copied[name]]:
            pending.append(copied[name])
    for block in blocks.values():
        block.body = [
            statement
            for statement in block.body
            if not (isinstance(statement, ir.Assign) and statement.target.name in unread)
        ]


# --- blocks that only jump ------------------------------------------------------------------------


def forward_jumps(blocks: dict[int, ir.Block]) -> None:
    """Lead every jump past the blocks that do nothing but jump, and drop those."""

    def final(label: int) -> int:
        seen = set()
        while label not in seen:
            seen.add(label)
            body = blocks[label].body
            if len(body) != 1 or not isinstance(body[0], ir.Jump):
                break
            label = body[0].target
        return label

    for block in blocks.values():
        terminator = block.body[-1]
        if isinstance(terminator, ir.Jump):
            block.body[-1] = ir.Jump(final(terminator.target), terminator.loc)
        elif isinstance(terminator, ir.Branch):
            then, orelse = final(terminator.truebr), final(terminator.falsebr)
            block.body[-1] = _branch(terminator, then, orelse)
    reached = reachable_blocks(blocks)
    for label in [label for label in blocks if label not in reached]:
        del blocks[label]


def _branch(old: ir.Branch, then: int, orelse: int) -> ir.Stmt:
    """A branch to other blocks; a jump where they are one."""
    if then == orelse:
        return ir.Jump(then, old.loc)
    return ir.Branch(old.cond, then, orelse, old.loc)


# --- tests whose outcome is known -----------------------------------------------------------------


class _Test(NamedTuple):
    """The variable whose truth a branch asks for, and where in its block that is computed."""

    value: str
    position: int


def _test_of(block: ir.Block) -> _Test | None:
    """What the branch at the end of a block tests: Numba computes `bool(value)` before it."""
    body = block.body
    if not isinstance(body[-1], ir.Branch):
        return None
    position = _assignment(body, body[-1].cond.name, len(body))
    if position is None:
        return None
    call = body[position].value
    if not isinstance(call, ir.Expr) or call.op != "call" or len(call.args) != 1:
        return None
    made = _assignment(body, call.func.name, position)
    function = None if made is None else body[made].value
    if not isinstance(function, ir.Global) or function.value is not bool:
        return None
    return _Test(call.args[0].name, position)


def _assignment(body: list[ir.Stmt], name: str, end: int) -> int | None:
    """The position of the last assignment of a variable before `end`."""
    for position in range(end - 1, -1, -1):
        statement = body[position]
        if isinstance(statement, ir.Assign) and statement.target.name == name:
            return position
    return None


def _assigned_from(body: list[ir.Stmt], name: str, start: int) -> bool:
    """Whether a variable is assigned at a position or behind it."""
    position = _assignment(body, name, len(body))
    return position is not None and position >= start


def _tests_alone(blocks: dict[int, ir.Block]) -> dict[int, _Test]:
    """The blocks that do nothing but test a value on CPython's stack.

    They are no heads of loops: those have no values on the stack but iterators, which none tests.
    """
    found = {label: _test_of(block) for label, block in blocks.items() if len(block.body) == 3}
    return {
        label: test
        for label, test in found.items()
        if test is not None and test.position == 1 and test.value.startswith("$")
    }


class _Threader:
    """Leads branches past the tests that stand alone in a block."""

    def __init__(self, blocks: dict[int, ir.Block], alone: dict[int, _Test]) -> None:
        self.blocks = blocks
        self.entry = min(blocks)
        self.alone = alone
        self.sources: dict[int, set[int]] = defaultdict(set)
        for label, block in blocks.items():
            for target in block.body[-1].get_targets():
                self.sources[target].add(label)

    def run(self) -> bool:
        """Lead branches on, and join what then has one way in; whether any was led on."""
        changed = False
        pending = list({source for label in self.alone for source in self.sources[label]})
        while pending:
            label = pending.pop()
            test = _test_of(self.blocks[label])
            led_on = self._lead_jump_on(label) if test is None else self._lead_on(label, test)
            if led_on:
                changed = True
                pending.append(label)
        for label in self.alone:
            if len(self.sources[label]) == 1:
                (source,) = self.sources[label]
                self._join(source, label)
        return changed

    def _join(self, source: int, label: int) -> None:
        """Append a test that one block alone jumps to, of the variable that had the value there."""
        before = self.blocks[source].body
        if not isinstance(before[-1], ir.Jump):
            return
        function, tested, branch = self.blocks[label].body
        value = tested.value.args[0]
        while (position := _assignment(before, value.name, len(before))) is not None:
            origin = before[position].value
            if not isinstance(origin, ir.Var) or _assigned_from(before, origin.name, position):
                break
            value = origin
        call = ir.Expr.call(tested.value.func, (value,), (), tested.value.loc)
        before[-1:] = [function, ir.Assign(call, tested.target, tested.loc), branch]
        self.sources[label].clear()
        for target in branch.get_targets():
            self.sources[target].discard(label)
            self.sources[target].add(source)

    def _lead_jump_on(self, label: int) -> bool:
        """Lead a jump past the test of a constant."""
        body = self.blocks[label].body
        jump = body[-1]
        again = self.alone.get(jump.target) if isinstance(jump, ir.Jump) else None
        origin = None if again is None else self._origin(label, again.value)
        constant = body[origin].value if isinstance(origin, int) else None
        if not isinstance(constant, ir.Const):
            return False
        branch = self.blocks[jump.target].body[-1]
        target = branch.truebr if constant.value else branch.falsebr
        self.sources[jump.target].discard(label)
        self.sources[target].add(label)
        body[-1] = ir.Jump(target, jump.loc)
        return True

    def _lead_on(self, label: int, test: _Test) -> bool:
        """Lead the ways out of a block past the tests that they lead to and decide."""
        branch = self.blocks[label].body[-1]
        then, orelse = branch.truebr, branch.falsebr
        if self._is_known(label, test, then):
            then = self.blocks[then].body[-1].truebr
        if self._is_known(label, test, orelse):
            orelse = self.blocks[orelse].body[-1].falsebr
        if (then, orelse) == (branch.truebr, branch.falsebr):
            return False
        for target in (branch.truebr, branch.falsebr):
            self.sources[target].discard(label)
        for target in (then, orelse):
            self.sources[target].add(label)
        self.blocks[label].body[-1] = _branch(branch, then, orelse)
        return True

    def _is_known(self, label: int, test: _Test, target: int) -> bool:
        """Whether a block tests once more what the block before has tested."""
        again = self.alone.get(target)
        if again is None or label == target:
            return False
        tested = self._origin(label, test.value, test.position)
        return self._equal(label, tested, self._origin(label, again.value))

    def _equal(self, label: int, first: str | int, second: str | int) -> bool:
        """Whether two origins in a block are one value, whatever led there.

        What is assumed of a block that is met again holds if it does on the way in.
        """
        pending = [(label, first, second)]
        met = set(pending)
        while pending:
            label, first, second = pending.pop()
            if first == second:
                continue
            if label == self.entry or not (isinstance(first, str) and isinstance(second, str)):
                return False
            for source in self.sources[label]:
                pair = source, self._origin(source, first), self._origin(source, second)
                if pair not in met:
                    met.add(pair)
                    pending.append(pair)
        return True

    def _origin(self, label: int, name: str, end: int | None = None) -> str | int:
        """Where in a block the value that a variable has at its end, or at another position, is
        computed; if before the block, the name of the variable that has it on entry.
        """
        body = self.blocks[label].body
        position = _assignment(body, name, len(body) if end is None else end)
        while position is not None and isinstance(body[position].value, ir.Var):
            name = body[position].value.name
            position = _assignment(body, name, position)
        return name if position is None else position
