"""Control flow under masks: random kernels against the same program as plain Python, and cases.

The generator writes each random program twice at once, as IR and as the text of a Python function
of one thread. The IR runs as lanes in frames large enough to be compacted; the function runs thread
by thread.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sarek_numba.errors import UnsupportedConstruct
from sarek_numba.ir import build as b
from sarek_numba.ir.nodes import (
    App,
    Break,
    Call,
    Continue,
    Expr,
    If,
    LetMut,
    Return,
    Seq,
    Stmt,
    TupleExpr,
    Var,
)
from sarek_numba.ir.statements import Match
from sarek_numba.ir.types import INT32, INT64, UNIT, Scalar, TupleType
from tests.unit.oracle_kit import Builder, errors, gid, int32, run, tid

THREADS = 1200
LIMIT = 2**63


def wrap(value: int) -> int:
    return (value + LIMIT) % (2 * LIMIT) - LIMIT


class Generator:
    """One random kernel: `out[gid] = …`, and the same as a function of the thread's number."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.k = Builder("random")
        self.out = self.k.array("out", INT64)
        self.variables = [self.k.var(f"v{i}", INT64, mutable=True) for i in range(3)]
        self.loops = 0
        self.budget = 40

    def expr(self, depth: int = 2) -> tuple[Expr, str]:
        choice = self.random.randrange(6) if depth else self.random.randrange(3)
        if choice == 0:
            value = self.random.randrange(-3, 6)
            return b.const_int(value), str(value)
        if choice < 3:
            var = self.random.choice(self.variables)
            return b.expr(var), var.name
        if choice == 3:
            (test, test_text), (x, x_text) = self.condition(depth - 1), self.expr(depth - 1)
            y, y_text = self.expr(depth - 1)
            return b.select(test, x, y), f"({x_text} if {test_text} else {y_text})"
        (x, x_text), (y, y_text) = self.expr(depth - 1), self.expr(depth - 1)
        make, text = self.random.choice([(b.add, "+"), (b.sub, "-"), (b.mul, "*"), (b.bitxor, "^")])
        return make(x, y), f"wrap({x_text} {text} {y_text})"

    def condition(self, depth: int = 1) -> tuple[Expr, str]:
        if depth and self.random.random() < 0.3:
            (x, x_text), (y, y_text) = self.condition(0), self.condition(0)
            make, text = self.random.choice([(b.and_, "and"), (b.or_, "or")])
            return make(x, y), f"({x_text} {text} {y_text})"
        (x, x_text) = self.expr(1)
        modulus = self.random.randrange(2, 12)
        rest = b.floormod(x, b.const_int(modulus))
        limit = self.random.randrange(modulus)
        return b.le(rest, b.const_int(limit)), f"{x_text} % {modulus} <= {limit}"

    def body(self, depth: int, in_loop: bool) -> tuple[list[Stmt], list[str]]:
        stmts: list[Stmt] = []
        lines: list[str] = []
        for _ in range(self.random.randrange(1, 4)):
            made, text = self.stmt(depth, in_loop)
            stmts += made
            lines += text
        return stmts, [f"    {line}" for line in lines]

    def stmt(self, depth: int, in_loop: bool) -> tuple[list[Stmt], list[str]]:
        self.budget -= 1
        choice = self.random.random()
        if depth == 0 or self.budget < 0 or choice < 0.35:
            return self.assignment()
        if choice < 0.62:
            test, text = self.condition()
            then, then_lines = self.body(depth - 1, in_loop)
            orelse, else_lines = self.body(depth - 1, in_loop)
            return [b.if_(test, then, orelse)], [f"if {text}:", *then_lines, "else:", *else_lines]
        if choice < 0.72 and in_loop:
            test, text = self.condition()
            word = self.random.choice(["break", "continue"])
            leave = Break() if word == "break" else Continue()
            return [b.if_(test, [leave])], [f"if {text}:", f"    {word}"]
        if choice < 0.75:
            test, text = self.condition()
            var = self.variables[0]
            store = b.store(self.out, gid(), var)
            return [b.if_(test, [store, Return()])], [f"if {text}:", f"    return {var.name}"]
        return self.while_loop(depth) if choice < 0.86 else self.for_loop(depth)

    def assignment(self) -> tuple[list[Stmt], list[str]]:
        var = self.random.choice(self.variables)
        value, text = self.expr()
        return [b.assign(var, value)], [f"{var.name} = {text}"]

    def passes(self) -> tuple[Expr, str]:
        """A number of passes that differs from thread to thread."""
        var = self.random.choice(self.variables)
        most = self.random.randrange(1, 6)
        return b.floormod(var, b.const_int(most)), f"{var.name} % {most}"

    def while_loop(self, depth: int) -> tuple[list[Stmt], list[str]]:
        self.loops += 1
        left = self.k.var(f"left{self.loops}", INT64, mutable=True)
        passes, text = self.passes()
        test, test_text = self.condition()
        body, lines = self.body(depth - 1, True)
        one = b.const_int(1)
        loop = b.while_(b.and_(b.gt(left, 0), test), b.assign(left, b.sub(left, one)), *body)
        return [b.let_mut(left, passes), loop], [
            f"{left.name} = {text}",
            f"while {left.name} > 0 and {test_text}:",
            f"    {left.name} -= 1",
            *lines,
        ]

    def for_loop(self, depth: int) -> tuple[list[Stmt], list[str]]:
        self.loops += 1
        j = self.k.var(f"j{self.loops}", INT64)
        stop, text = self.passes()
        step = self.random.choice([1, 1, 2, -1])
        first = self.random.randrange(3)
        body, lines = self.body(depth - 1, True)
        use = b.assign(self.variables[1], b.add(self.variables[1], j))
        loop = b.for_(j, b.const_int(first), stop, use, *body, step=b.const_int(step))
        return [loop], [
            f"for {j.name} in range({first}, {text}, {step}):",
            f"    v1 = wrap(v1 + {j.name})",
            *lines,
        ]

    def make(self) -> tuple[object, Callable[[int], int]]:
        body, lines = self.body(4, False)
        start = [
            b.let_mut(var, b.mul(gid(), b.const_int(i * 7 + 1)))
            for i, var in enumerate(self.variables)
        ]
        source = ["def thread(t):"]
        source += [f"    v{i} = t * {i * 7 + 1}" for i in range(3)]
        source += [*lines, "    return v0"]
        space = {"wrap": wrap}
        exec("\n".join(source), space)
        kernel = self.k.kernel(*start, *body, b.store(self.out, gid(), self.variables[0]))
        return kernel, space["thread"]


@pytest.mark.parametrize("seed", range(60))
def test_random_control_flow_is_pythons(seed: int) -> None:
    kernel, thread = Generator(seed).make()
    out = np.zeros(THREADS, np.int64)
    report = run(kernel, 10, 120, out)
    assert report.findings == ()
    assert out.tolist() == [thread(t) for t in range(THREADS)]


def one_output(make: Callable[[Builder, Var], list[Stmt]], threads: int = 8) -> list[int]:
    k = Builder()
    out = k.array("out")
    data = np.full(threads, -1, np.int32)
    report = run(k.kernel(*make(k, out)), 1, threads, data)
    assert report.findings == (), str(report)
    return data.tolist()


@pytest.mark.parametrize(
    ("type", "first", "stop", "step"),
    [
        (INT32, 5, 2, 1),
        (INT32, 0, -3, 1),
        (INT32, 2**31 - 3, 2**31 - 1, 1),
        (INT32, 2**31 - 7, 2**31 - 1, 2),
        (INT32, 2**31 - 7, 2**31 - 1, 5),
        (INT32, -(2**31) + 3, -(2**31), -1),
        (INT64, 2**63 - 3, 2**63 - 1, 2),
        (INT64, -(2**63), 2**63 - 1, 2**62),
        (INT64, 2**63 - 1, -(2**63), -(2**62)),
        (Scalar.UINT64, 2**64 - 5, 2**64 - 1, 3),
        (Scalar.UINT8, 250, 255, 2),
        (Scalar.INT8, 100, -100, -50),
    ],
)
def test_ranges_are_exact_at_the_ends_of_their_type(
    type: Scalar, first: int, stop: int, step: int
) -> None:
    """The number of passes and the value in each (cases 67, 68)."""
    k = Builder()
    out, count = k.array("out", type), k.array("count")
    j = k.var("j", type)
    seen = k.var("seen", INT32, mutable=True)
    kernel = k.kernel(
        b.let_mut(seen, 0),
        b.for_(
            j,
            b.lit(type, first),
            b.lit(type, stop),
            b.store(out, seen, j),
            b.assign(seen, b.add(seen, 1)),
            step=b.lit(type, step),
        ),
        b.store(count, 0, seen),
    )
    values, passes = np.zeros(16, type.value), np.zeros(1, np.int32)
    report = run(kernel, 1, 1, values, passes)
    expected = list(range(first, stop, step))
    assert report.findings == ()
    assert values[: passes[0]].tolist() == expected


def test_empty_loops_and_break_in_nested_loops() -> None:
    """Cases 61, 62, 166."""

    def make(k: Builder, out: Var) -> list[Stmt]:
        total, i, j = k.var("total", INT32, mutable=True), k.var("i"), k.var("j")
        add = b.assign(total, b.add(total, 1))
        empty = b.for_(k.var("e"), 0, 0, b.for_(k.var("f"), 0, 0, add))
        return [
            b.let_mut(total, 0),
            empty,
            b.for_(i, 0, 10, b.for_(j, 0, 5, Break(), add), add),
            b.store(out, gid(), total),
        ]

    assert one_output(make) == [10] * 8


def test_helper_returns_early_and_only_itself() -> None:
    """A return within a helper's loop ends the helper for that thread alone (case 58)."""
    k = Builder()
    out = k.array("out", INT64)
    n, j = k.var("n"), k.var("j")
    k.functions.append(
        b.helper(
            "first",
            [n],
            INT64,
            b.for_(j, 0, 100, b.if_(b.ge(b.mul(j, j), n), [Return(b.expr(j))])),
            Return(b.const_int(-1)),
        )
    )
    root = k.var("root")
    kernel = k.kernel(Call((root,), "first", (gid(),)), b.store(out, gid(), root))
    data = np.zeros(1000, np.int64)
    assert run(kernel, 10, 100, data).findings == ()
    assert data.tolist() == [next(j for j in range(100) if j * j >= n) for n in range(1000)]


def test_helpers_with_tuples_arrays_and_applications() -> None:
    k = Builder()
    out, src = k.array("out", INT64), k.array("src", INT64)
    a, i = k.fresh("a", src.type), k.var("i")
    k.functions.append(b.helper("load", [a, i], INT64, Return(b.read(a, i))))
    x, y = k.var("x"), k.var("y")
    both = TupleExpr((b.floordiv(x, y), b.floormod(x, y)))
    k.functions.append(b.helper("pair", [x, y], TupleType((INT64, INT64)), Return(both)))
    q, r = k.var("q"), k.var("r")
    loaded = App("load", (b.expr(src), App("load", (b.expr(src), gid()), INT64)), INT64)
    kernel = k.kernel(
        Call((q, r), "pair", (loaded, b.const_int(3))),
        b.store(out, gid(), b.add(b.mul(q, 100), r)),
    )
    data, source = np.zeros(8, np.int64), np.array([7, 6, 5, 4, 3, 2, 1, 0])
    assert run(kernel, 1, 8, data, source).findings == ()
    assert data.tolist() == [n // 3 * 100 + n % 3 for n in range(8)]


def test_helper_writes_through_its_array() -> None:
    k = Builder()
    s, out = k.shared("s", 8), k.array("out")
    a, v = k.fresh("a", s.type), k.var("v", INT32)
    k.functions.append(b.helper("put", [a, v], UNIT, b.store(a, tid(), v)))
    kernel = k.kernel(
        Call((), "put", (b.expr(s), int32(b.mul(tid(), b.const_int(3))))),
        b.store(out, gid(), b.read(s, tid())),
    )
    data = np.zeros(8, np.int32)
    assert run(kernel, 1, 8, data).findings == ()
    assert data.tolist() == [3 * t for t in range(8)]


def test_local_arrays_begin_anew_in_each_call() -> None:
    k = Builder()
    out = k.array("out")
    inner = Builder()
    inner.fresh = k.fresh
    scratch = inner.local("scratch", 2)
    n = k.var("n", INT32)
    body = [b.if_(b.eq(n, 0), [b.store(scratch, 0, 5)]), Return(b.read(scratch, 0))]
    helper = b.helper("use", [n], INT32, *body)
    k.functions.append(replace(helper, locals=tuple(inner.locals)))
    p, q = k.var("p", INT32), k.var("q", INT32)
    kernel = k.kernel(
        Call((p,), "use", (b.lit(INT32, 0),)),
        Call((q,), "use", (b.lit(INT32, 1),)),
        b.store(out, gid(), b.add(p, q)),
    )
    assert errors(run(kernel, 1, 4, np.zeros(4, np.int32))) == ["UninitialisedRead"]


def test_coordinates_in_three_dimensions() -> None:
    k = Builder()
    out = k.array("out", INT64)
    value: Expr = b.const_int(0)
    for name in ("thread_idx", "block_idx", "block_dim", "grid_dim", "global_idx", "grid_size"):
        for axis in range(3):
            value = b.add(b.mul(value, 13), b.coordinate(name, axis))
    place: Expr = b.const_int(0)
    for axis in (2, 1, 0):
        extent = b.coordinate("grid_size", axis)
        place = b.add(b.mul(place, extent), b.coordinate("global_idx", axis))
    kernel = k.kernel(b.store(out, place, value))
    grid, block = (3, 2, 2), (2, 3, 2)
    data = np.zeros(12 * 12, np.int64)
    assert run(kernel, grid, block, data).findings == ()
    expected = []
    size = [g * n for g, n in zip(grid, block, strict=True)]
    for z, y, x in np.ndindex(size[2], size[1], size[0]):
        at = (x, y, z)
        numbers = [at[i] % block[i] for i in range(3)] + [at[i] // block[i] for i in range(3)]
        total = 0
        for number in [*numbers, *block, *grid, *at, *size]:
            total = wrap(total * 13 + number)
        expected.append(total)
    assert data.tolist() == expected


def test_long_and_deep_kernels() -> None:
    """20,000 statements, 60 nested loops, expressions a thousand deep (case 163)."""
    k = Builder()
    out, v = k.array("out"), k.var("v", INT32, mutable=True)
    deep: Expr = b.expr(v)
    one = b.lit(INT32, 1)
    for _ in range(1000):
        deep = b.add(deep, one)
    nest: Stmt = b.assign(v, b.add(v, 1))
    for _ in range(60):
        nest = b.for_(k.var("j"), 0, 1, nest)
    many = [b.assign(v, b.add(v, one)) for _ in range(20_000)]
    kernel = k.kernel(b.let_mut(v, 0), *many, nest, b.store(out, gid(), deep))
    data = np.zeros(4, np.int32)
    assert run(kernel, 1, 4, data).findings == ()
    assert data.tolist() == [21_001] * 4


def test_what_it_does_not_run_is_refused_by_name() -> None:
    k = Builder()
    kernel = k.kernel(Match(int32(tid()), ()))
    with pytest.raises(UnsupportedConstruct, match="match"):
        run(kernel, 1, 1)


def test_nested_scopes_run_in_order() -> None:
    def make(k: Builder, out: Var) -> list[Stmt]:
        v = k.var("v", INT32, mutable=True)
        return [
            LetMut(v, int32(tid())),
            Seq((b.assign(v, b.mul(v, 2)), Seq((b.assign(v, b.add(v, 1)),)))),
            If(b.gt(v, 4), (Seq((b.assign(v, b.neg(v)),)),)),
            b.store(out, gid(), v),
        ]

    assert one_output(make) == [1, 3, -5, -7, -9, -11, -13, -15]
