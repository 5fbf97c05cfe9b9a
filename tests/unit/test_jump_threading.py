"""Jumps past tests whose outcome is known: `and` and `or` as CPython 3.11 compiles them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from numba.core import ir, types

from sarek_numba.frontend import bytecode
from sarek_numba.frontend.jump_threading import drop_unread_copies, thread_jumps
from sarek_numba.frontend.source import read
from tests.unit.region_runner import Runner, structured


def or_after_and(a, b, c):
    return (a > 1 and b) or c


def or_after_chain(a, b, c):
    return (a < b < 3 and c) or (b and a) or c


def nested(a, b, c):
    return ((a > 1 and (b or c == 2)) or (not (b and c) and 4)) and (a or b > 1 or 7)


def of_constants(a, b, c):
    return (a > 1 and 0) or (b > 1 and 5) or (c or 0) or 2.5


def in_conditions(a, b, c):
    if not ((a > 1 and b) or c) and (b or not (a and c > 1)):
        return 1
    return 2 if ((a and b > 1) or c) == 1 else 3


def in_a_while(a, b, c):
    n = 0
    while ((a > n and b) or (c > n and 3) or n == 1) != 0 and n < 5:
        n += 1
    return n


FUNCTIONS = [or_after_and, or_after_chain, nested, of_constants, in_conditions, in_a_while]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_runs_as_cpython(function: Any) -> None:
    """The same value of the same type, for all small arguments."""
    runner = Runner(structured(function))
    for arguments in itertools.product(range(-1, 4), repeat=3):
        actual, expected = runner.run(*arguments), function(*arguments)
        assert (actual, type(actual)) == (expected, type(expected))


def interpreted(function: Any) -> dict[int, ir.Block]:
    blocks: dict[int, ir.Block] = bytecode.interpret(
        read(function), (types.int64,) * 3, kernel=False
    ).blocks
    return blocks


def statements(blocks: dict[int, ir.Block]) -> list[ir.Stmt]:
    return [statement for block in blocks.values() for statement in block.body]


def test_only_values_that_are_given_meet() -> None:
    """What was only tested reaches no phi, and no copy of it is left."""
    found = statements(interpreted(or_after_and))
    compared = next(s.target.name for s in found if "compare_op" in s.target.name)
    reading = [s for s in found if compared in (v.name for v in s.list_vars())][1:]
    assert [s.value.op for s in reading] == ["call"]  # of bool
    assert len([s for s in found if bytecode._is_phi(s)]) == 1


# --- graphs made by hand, the same on every CPython -----------------------------------------------

LOC = ir.Loc("made.py", 1)


class Made:
    """Blocks whose variables are temporaries."""

    def __init__(self) -> None:
        self.scope = ir.Scope(None, LOC)
        self.blocks: dict[int, ir.Block] = {}

    def var(self, name: str) -> ir.Var:
        return self.scope.get_or_define(f"${name}", loc=LOC)

    def block(self, label: int, *body: ir.Stmt) -> None:
        self.blocks[label] = ir.Block(self.scope, LOC)
        self.blocks[label].body = list(body)

    def assign(self, name: str, value: Any) -> ir.Assign:
        if not isinstance(value, str):
            return ir.Assign(ir.Const(value, LOC), self.var(name), LOC)
        return ir.Assign(self.var(value), self.var(name), LOC)

    def argument(self, name: str, index: int) -> ir.Assign:
        return ir.Assign(ir.Arg(name, index, LOC), self.var(name), LOC)

    def test(self, label: int, name: str, then: int, orelse: int) -> tuple[ir.Stmt, ...]:
        function, tested = self.var(f"bool{label}"), self.var(f"{label}pred")
        call = ir.Expr.call(function, (self.var(name),), (), LOC)
        return (
            ir.Assign(ir.Global("bool", bool, LOC), function, LOC),
            ir.Assign(call, tested, LOC),
            ir.Branch(tested, then, orelse, LOC),
        )

    def jump(self, target: int) -> ir.Jump:
        return ir.Jump(target, LOC)

    def targets(self, label: int) -> tuple[int, ...]:
        return tuple(self.blocks[label].body[-1].get_targets())

    def ends(self) -> None:
        for label, value in ((30, 1), (40, 2)):
            result = self.var(f"result{label}")
            self.block(label, self.assign(f"result{label}", value), ir.Return(result, LOC))


def joined(held: Any = "a", changed: tuple[str, Any] | None = None) -> Made:
    """`a` is tested; where it is false `held` is tested again, where it is true `b` is."""
    made = Made()
    function, tested, branch = made.test(0, "a", 10, 20)
    after = () if changed is None else (made.assign(*changed),)
    start = (made.argument("a", 0), made.argument("b", 1))
    made.block(0, *start, function, tested, *after, made.assign("phi", held), branch)
    made.block(10, made.assign("phi", "b"), made.jump(20))
    made.block(20, *made.test(20, "phi", 30, 40))
    made.ends()
    return made


def test_a_known_outcome_is_led_to() -> None:
    """And the test that is left stands where its value is made."""
    made = joined()
    assert thread_jumps(made.blocks)
    assert made.targets(0) == (10, 40)
    assert made.targets(10) == (30, 40)
    assert 20 not in made.blocks


@pytest.mark.parametrize("held", ["b", 0])
def test_the_test_of_another_value_stays(held: Any) -> None:
    """Where not what was tested is tested again, nothing is known."""
    made = joined(held)
    assert not thread_jumps(made.blocks)
    assert made.targets(0) == (10, 20)


def test_a_value_assigned_since_stays() -> None:
    """The variable that was tested has another value by the time it is copied."""
    made = joined("a", changed=("a", "b"))
    assert not thread_jumps(made.blocks)
    assert made.targets(0) == (10, 20)


def test_a_test_that_computes_more_stays() -> None:
    """What stands before the second test must happen."""
    made = joined()
    made.blocks[20].body.insert(0, made.assign("count", 1))
    assert not thread_jumps(made.blocks)
    assert made.targets(0) == (10, 20)


@pytest.mark.parametrize(("constant", "target"), [(0, 40), (3, 30), (0.5, 30), (None, 40)])
def test_a_constant_is_not_tested(constant: Any, target: int) -> None:
    """Its jump goes where the test would."""
    made = joined("b")
    made.blocks[10].body[0] = made.assign("phi", constant)
    assert thread_jumps(made.blocks)
    assert made.targets(10) == (target,)
    assert made.targets(0) == (10, 20)


@pytest.mark.parametrize("same", [True, False], ids=["one value", "two values"])
def test_values_that_met_before(same: bool) -> None:
    """Two variables are one value if they are on every way there."""
    made = joined("b")
    for label, other in ((0, "b"), (10, "b" if same else "a")):
        made.blocks[label].body.insert(-1, made.assign("again", other))
    made.blocks[20].body[-1] = ir.Branch(made.var("20pred"), 25, 40, LOC)
    made.block(25, *made.test(25, "again", 30, 40))
    made.blocks[10].body.insert(0, made.assign("effect", 1))
    assert thread_jumps(made.blocks) is same
    assert made.targets(20) == ((30, 40) if same else (25, 40))


def test_unread_copies_are_dropped() -> None:
    """A chain of copies that ends nowhere, and no other assignment."""
    made = Made()
    made.block(
        0,
        made.argument("a", 0),
        made.assign("b", "a"),
        made.assign("c", "b"),
        made.assign("kept", "a"),
        made.assign("constant", 1),
        ir.Return(made.var("kept"), LOC),
    )
    drop_unread_copies(made.blocks)
    names = [s.target.name for s in made.blocks[0].body if isinstance(s, ir.Assign)]
    assert names == ["$a", "$kept", "$constant"]
