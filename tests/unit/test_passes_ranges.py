"""Range analysis: what it finds, that it is sound, and that it ends soon."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from passes_evaluator import OutOfFuel, lane, run
from passes_programs import Generator

from sarek_numba.ir import build as b
from sarek_numba.ir import nodes as ir
from sarek_numba.ir.types import FLOAT32, INT32, INT64, Scalar
from sarek_numba.passes.interval import Interval
from sarek_numba.passes.ranges import Ranges, ranges_of

MOST = 2**31 - 1


class Kit:
    """An array `a` of n elements, an int32 argument `n`, and a place to look at a value."""

    def __init__(self) -> None:
        self.fresh = b.Fresh()
        self.a = b.array_param(self.fresh, "a", INT64, 0)
        self.length = b.length_param(self.fresh, "a_length", 0)
        self.n = b.scalar_param(self.fresh, "n", INT32, 1)
        self.m = b.scalar_param(self.fresh, "m", INT64, 2)
        self.wide_n = b.cast(INT64, self.n.var)
        self.extent = b.cast(INT64, self.length.var)

    def kernel(self, *body: ir.Stmt, **fields: Any) -> ir.Kernel:
        params = (self.a, self.length, self.n, self.m)
        return ir.make_kernel("k", body, params=params, **fields)

    def ranges(self, *body: ir.Stmt, **fields: Any) -> Ranges:
        return ranges_of(self.kernel(*body, **fields))

    def var(self, name: str, type: Scalar = INT64, mutable: bool = False) -> ir.Var:
        return self.fresh(name, type, mutable)

    def store(self, value: b.Operand) -> ir.Stmt:
        return b.store(self.a.var, 0, value)


def test_random_kernels_stay_within_their_ranges() -> None:
    """Every value that a random kernel computes is within what was found for its node."""
    ran = 0
    for seed in range(1000, 1030):
        generator = Generator(seed)
        kernel = generator.kernel()
        ranges = ranges_of(kernel)
        outside: list[tuple[ir.Expr, int, Interval | None]] = []

        def observe(expr: ir.Expr, value: Any, ranges=ranges, outside=outside) -> None:
            if value.dtype.kind in "iub":
                found = ranges.of(expr)
                if found is None or not found[0] <= int(value[0]) <= found[1]:
                    outside.append((expr, int(value[0]), found))

        try:
            run(kernel, generator.arguments(), grid=1, observe=observe)
            ran += 1
        except OutOfFuel:
            continue
        assert not outside, (seed, outside[0])
    assert ran > 20


def test_coordinates() -> None:
    """Coordinates have the bounds of a launch: with 32-bit indices all are below 2^31."""
    kit = Kit()
    i, t = b.coordinate("global_idx"), b.coordinate("thread_idx", 1)
    dim, size = b.coordinate("block_dim"), b.coordinate("grid_size")
    body = [kit.store(e) for e in (i, t, dim, size)]
    ranges = kit.ranges(*body)
    assert [ranges.of(e) for e in (i, t, dim, size)] == [
        (0, MOST - 1),
        (0, MOST - 1),
        (1, MOST),
        (1, MOST),
    ]
    assert kit.ranges(*body, index_bits=64).of(i) == (0, 2**62 - 1)


def test_products_of_coordinates() -> None:
    """block_idx * block_dim + thread_idx is a global index, also by way of variables."""
    kit = Kit()
    start, i = kit.var("start"), kit.var("i")
    first = b.mul(b.coordinate("block_dim"), b.coordinate("block_idx"))
    total = b.add(start, b.coordinate("thread_idx"))
    mixed = b.mul(b.coordinate("block_dim"), b.coordinate("block_idx", 1))
    ranges = kit.ranges(b.let(start, first), b.let(i, total), kit.store(i), kit.store(mixed))
    assert ranges.of_variable(i) == (0, MOST - 1)
    assert ranges.avoids_edge(total)
    assert ranges.of(mixed) == (0, (MOST - 1) * MOST)


def test_parameters_of_the_launch() -> None:
    """Lengths are not negative; the user's numbers are anything."""
    kit = Kit()
    n, length = ir.VarRef(kit.n.var), ir.VarRef(kit.length.var)
    ranges = kit.ranges(kit.store(b.cast(INT64, n)), kit.store(b.cast(INT64, length)))
    assert ranges.of(length) == (0, MOST)
    assert ranges.of(n) == (-MOST - 1, MOST)


def test_conditions_narrow_both_sides() -> None:
    """A comparison holds in one branch, and its negation in the other."""
    kit = Kit()
    m = kit.m.var
    inside, outside = ir.VarRef(m), ir.VarRef(m)
    guard = b.and_(b.ge(m, 0), b.lt(b.add(b.cast(INT64, kit.n.var), 3), 10))
    n = ir.VarRef(kit.n.var)
    ranges = kit.ranges(
        b.if_(b.gt(m, 5), [kit.store(inside)], [kit.store(outside)]),
        b.if_(guard, [kit.store(b.cast(INT64, n))]),
    )
    assert ranges.of(inside) == (6, 2**63 - 1)
    assert ranges.of(outside) == (-(2**63), 5)
    assert ranges.of(n) == (-MOST - 1, 6)


def test_early_return_narrows_the_rest() -> None:
    """After `if i >= n or i < 2: return` i is in range; before, it is not."""
    kit = Kit()
    i = kit.var("i")
    before, after = ir.VarRef(i), ir.VarRef(i)
    ranges = kit.ranges(
        b.let(i, kit.m.var),
        kit.store(before),
        b.if_(b.or_(b.ge(i, kit.wide_n), b.lt(i, 2)), [ir.Return()]),
        kit.store(after),
    )
    assert ranges.of(after) == (2, MOST - 1)
    assert ranges.of(before) == (-(2**63), 2**63 - 1)


def test_short_circuits_and_conditional_expressions_narrow() -> None:
    """The operand that a condition guards is evaluated under it."""
    kit = Kit()
    m = kit.m.var
    right, then, orelse = ir.VarRef(m), ir.VarRef(m), ir.VarRef(m)
    ranges = kit.ranges(
        b.if_(b.and_(b.gt(m, 0), b.lt(right, 9)), []),
        kit.store(b.select(b.lt(m, 7), then, orelse)),
    )
    assert ranges.of(right) == (1, 2**63 - 1)
    assert ranges.of(then) == (-(2**63), 6)
    assert ranges.of(orelse) == (7, 2**63 - 1)


def test_bool_variables_carry_their_condition() -> None:
    """`inside = i < 4` narrows i where inside is true; not if i may have changed since."""
    kit = Kit()
    fixed, moving = kit.var("fixed"), kit.var("moving", mutable=True)
    one, two = kit.var("one", Scalar.BOOL), kit.var("two", Scalar.BOOL)
    seen, moved = ir.VarRef(fixed), ir.VarRef(moving)
    ranges = kit.ranges(
        b.let(fixed, kit.m.var),
        b.let_mut(moving, 1),
        b.let(one, b.lt(fixed, 4)),
        b.let(two, b.lt(moving, 4)),
        b.assign(moving, 100),
        b.if_(one, [kit.store(seen)]),
        b.if_(two, [kit.store(moved)]),
    )
    assert ranges.of(seen) == (-(2**63), 3)
    assert ranges.of(moved) == (100, 100)


def test_for_loops() -> None:
    """The variable of a loop is between its bounds, whichever way it goes."""
    kit = Kit()
    up, down, any_way = kit.var("up"), kit.var("down"), kit.var("any_way")
    step = b.cast(INT64, kit.n.var)
    ranges = kit.ranges(
        b.for_(up, 2, kit.wide_n, kit.store(up)),
        b.for_(down, 10, -1, kit.store(down), step=-2),
        b.for_(any_way, 3, 9, kit.store(any_way), step=step),
    )
    assert ranges.of_variable(up) == (2, MOST - 1)
    assert ranges.of_variable(down) == (0, 10)
    assert ranges.of_variable(any_way) == (3, 8)


def test_halving_loop_keeps_its_bounds() -> None:
    """`while s > 0: … s //= 2` never leaves 1 … start within the body."""
    kit = Kit()
    s = kit.var("s", mutable=True)
    seen, after = ir.VarRef(s), ir.VarRef(s)
    ranges = kit.ranges(
        b.let_mut(s, 128),
        b.while_(b.gt(s, 0), kit.store(seen), b.assign(s, b.floordiv(s, 2))),
        kit.store(after),
    )
    assert ranges.of(seen) == (1, 128)
    assert ranges.of(after) == (0, 0)


def test_counting_loop_is_widened_to_its_condition() -> None:
    """`while i < n: i += 1` stays within int32, and a step of the grid within int64."""
    kit = Kit()
    i, j = kit.var("i", mutable=True), kit.var("j", mutable=True)
    stride = b.add(j, b.coordinate("grid_size"))
    seen = ir.VarRef(i)
    ranges = kit.ranges(
        b.let_mut(i, 0),
        b.while_(b.lt(i, kit.wide_n), kit.store(seen), b.assign(i, b.add(i, 1))),
        b.let_mut(j, b.coordinate("global_idx")),
        b.while_(b.lt(j, kit.wide_n), b.assign(j, stride)),
    )
    assert ranges.of(seen) == (0, MOST - 1)
    assert ranges.avoids_edge(stride)


def test_break_and_continue_carry_their_state() -> None:
    """What holds after a loop includes what held at each break."""
    kit = Kit()
    x, k = kit.var("x", mutable=True), kit.var("k")
    after = ir.VarRef(x)
    ranges = kit.ranges(
        b.let_mut(x, 0),
        b.for_(
            k,
            0,
            10,
            b.if_(b.eq(kit.m.var, 3), [b.assign(x, 77), ir.Break()]),
            b.if_(b.eq(kit.m.var, 4), [b.assign(x, -5), ir.Continue()]),
            b.assign(x, 1),
        ),
        kit.store(after),
    )
    assert ranges.of(after) == (-5, 77)


def test_unassigned_variable_reads_zero() -> None:
    """A variable declared without a value may still be zero after a branch."""
    kit = Kit()
    x = kit.var("x", mutable=True)
    after = ir.VarRef(x)
    ranges = kit.ranges(b.let_mut(x), b.if_(b.gt(kit.m.var, 0), [b.assign(x, 9)]), kit.store(after))
    assert ranges.of(after) == (0, 9)


def test_helpers_take_the_ranges_of_their_arguments() -> None:
    """A helper called with small numbers gives small numbers; any call counts for its nodes."""
    kit = Kit()
    p, r, s = kit.var("p"), kit.var("r"), kit.var("s")
    inside = b.add(p, 1)
    helper = b.helper("next", [p], INT64, ir.Return(inside))
    ranges = kit.ranges(
        ir.Call((r,), "next", (b.lit(INT64, 4),)),
        ir.Call((s,), "next", (b.bitand(kit.m.var, 15),)),
        kit.store(r),
        kit.store(s),
        functions=(helper,),
    )
    assert ranges.of_variable(r) == (5, 5)
    assert ranges.of_variable(s) == (1, 16)
    assert ranges.of(inside) == (1, 16)


def test_helper_called_often_is_taken_for_any_arguments() -> None:
    """Beyond some calls the arguments are no longer told apart, and the result stays right."""
    kit = Kit()
    p = kit.var("p")
    helper = b.helper("next", [p], INT64, ir.Return(b.add(p, 1)))
    results = [kit.var(f"r{number}") for number in range(12)]
    calls = [ir.Call((r,), "next", (b.lit(INT64, k),)) for k, r in enumerate(results)]
    ranges = kit.ranges(*calls, *map(kit.store, results), functions=(helper,))
    for number, result in enumerate(results):
        found = ranges.of_variable(result)
        assert found is not None
        assert found[0] <= number + 1 <= found[1]


def test_dead_code_has_no_facts() -> None:
    """What is never evaluated has no range."""
    kit = Kit()
    dead = b.add(kit.m.var, 1)
    body = b.if_(b.lt(b.coordinate("thread_idx"), 0), [kit.store(dead)])
    assert kit.ranges(body).of(dead) is None


def test_evaluator_runs_a_kernel() -> None:
    """The evaluator that other tests trust computes what a kernel means."""
    fresh = b.Fresh()
    x, n = b.array_param(fresh, "x", FLOAT32, 0), b.scalar_param(fresh, "n", INT32, 1)
    i = fresh("i", INT64)
    body = (
        b.let(i, b.coordinate("global_idx")),
        b.if_(b.ge(i, b.cast(INT64, n.var)), [ir.Return()]),
        b.store(x.var, i, b.add(b.mul(b.read(x.var, i), 2.0), 1.0)),
    )
    kernel = ir.make_kernel("scale", body, params=(x, n))
    data = np.arange(8, dtype=np.float32)
    result = run(kernel, {x.var.id: data, n.var.id: lane(INT32, 5)})
    assert result[x.var.id].tolist() == [1, 3, 5, 7, 9, 5, 6, 7]


# --- cost -----------------------------------------------------------------------------------------


def nested_loops(depth: int) -> ir.Kernel:
    """Loops within loops, each with a counter that the next one reads."""
    kit = Kit()
    counters = [kit.var(f"c{level}", mutable=True) for level in range(depth)]
    body: list[ir.Stmt] = [kit.store(counters[-1])]
    for level in reversed(range(depth)):
        outer = counters[level - 1]
        count = b.assign(counters[level], b.add(counters[level], outer))
        body = [b.for_(kit.var(f"k{level}"), 0, kit.wide_n, count, *body)]
    return kit.kernel(*[b.let_mut(counter, 1) for counter in counters], *body)


@pytest.mark.parametrize("depth", [15, 60])
def test_nested_loops_cost_a_sum_of_rounds(depth: int) -> None:
    """Sixty nested loops are analysed in seconds: their rounds add up and do not multiply."""
    kernel = nested_loops(depth)
    start = time.process_time()
    ranges_of(kernel)
    assert time.process_time() - start < 10


def test_deep_expressions() -> None:
    """An expression a thousand levels deep is analysed in time that is not quadratic."""
    kit = Kit()
    total: ir.Expr = b.bitand(kit.m.var, 1)
    for _ in range(1000):
        total = b.add(total, b.bitand(kit.m.var, 1))
    start = time.process_time()
    ranges = kit.ranges(kit.store(total))
    assert ranges.of(total) == (0, 1001)
    assert time.process_time() - start < 5
