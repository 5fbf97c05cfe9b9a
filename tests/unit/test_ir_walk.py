"""Walks see everything, maps keep what does not change, types follow from operands."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from sarek_numba.ir import build as b
from sarek_numba.ir.effects import arguments, atomics, effects_of, reads, writes
from sarek_numba.ir.nodes import (
    App,
    ArrayLen,
    ArrayRead,
    Body,
    Call,
    Expr,
    Field,
    IfExpr,
    Kernel,
    Let,
    RecordExpr,
    Return,
    Stmt,
    Subscript,
    Var,
    VariantExpr,
    VarRef,
    make_kernel,
)
from sarek_numba.ir.types import (
    BOOL,
    FLOAT32,
    INT32,
    INT64,
    UNIT,
    ElementType,
    Record,
    TupleType,
    Variant,
    Vec,
)
from sarek_numba.ir.typing import type_of, variants_of
from sarek_numba.ir.walk import (
    bodies_of,
    deep_recursion,
    expressions_of,
    free_vars,
    map_body,
    map_body_expressions,
    map_expr,
    operands,
    rebuild,
    substitute,
    substitute_body,
    walk_body_exprs,
    walk_exprs,
    walk_stmts,
    with_bodies,
    with_expressions,
)
from sarek_numba.span import Span
from tests.unit.ir_strategies import kernels

fresh = b.Fresh()
x, y = fresh("x", Vec(FLOAT32)), fresh("y", Vec(FLOAT32))
i, j, n = (fresh(name, INT32) for name in "ijn")
one, two = b.lit(INT32, 1), b.lit(INT32, 2)

few = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


@few
@given(kernels())
def test_a_map_that_changes_nothing_gives_the_same_object(kernel: Kernel) -> None:
    body = kernel.body
    assert map_body(body, lambda stmt: stmt) is body
    assert map_body_expressions(body, lambda expr: map_expr(expr, lambda node: node)) is body
    assert substitute_body(body, {}) is body


@few
@given(kernels())
def test_rebuilding_from_the_parts_gives_an_equal_node(kernel: Kernel) -> None:
    """Every expression is made anew, from copies of its operands."""
    rebuilt = map_body_expressions(kernel.body, lambda expr: map_expr(expr, replace))
    assert rebuilt == kernel.body


def test_a_new_node_keeps_the_span() -> None:
    span = Span("k.py", 3)
    old = Let(i, IfExpr(b.lt(one, two), one, two, span=span), span=span)
    (new,) = map_body((old,), lambda s: with_expressions(s, [rebuild(old.value, [one, one, one])]))
    assert isinstance(new, Let)
    assert (new.span, new.value.span) == (span, span)


def test_order_of_walks() -> None:
    expr = b.add(b.mul(i, j), b.read(x, n))
    assert [type(node).__name__ for node in walk_exprs(expr)] == [
        "Binary",
        "Binary",
        "VarRef",
        "VarRef",
        "ArrayRead",
        "VarRef",
    ]
    inner = b.store(x, i, b.read(y, i))
    body: Body = (b.for_(i, 0, n, b.if_(b.lt(i, j), [inner], [b.let(j, i)])), Return())
    kinds = [type(stmt).__name__ for stmt in walk_stmts(body)]
    assert kinds == ["For", "If", "Assign", "Let", "Return"]
    assert expressions_of(inner) == (b.read(y, i), VarRef(i))
    assert sum(isinstance(expr, ArrayRead) for expr in walk_body_exprs(body)) == 1


def test_parts_match_their_rebuilders() -> None:
    branch = b.if_(b.lt(i, j), [Return()], [])
    assert with_bodies(branch, bodies_of(branch)) is branch
    assert with_bodies(branch, [(), (Return(),)]) == b.if_(b.lt(i, j), [], [Return()])
    total = b.add(i, j)
    assert rebuild(total, operands(total)) is total
    assert rebuild(total, [one, two]) == b.add(one, two)


def test_splicing_statements() -> None:
    body: Body = (b.let(i, 1), b.if_(b.lt(i, 2), [Return()]))
    doubled = map_body(body, lambda stmt: (stmt, stmt) if isinstance(stmt, Return) else stmt)
    assert doubled == (body[0], b.if_(b.lt(i, 2), [Return(), Return()]))
    assert map_body(body, lambda stmt: () if isinstance(stmt, Return) else stmt) == (
        body[0],
        b.if_(b.lt(i, 2), []),
    )


def test_free_variables() -> None:
    body: Body = (b.for_(i, 0, n, b.store(x, i, b.read(y, j))), b.let(j, 1))
    assert list(free_vars(body).values()) == [n, y, x]
    assert list(free_vars(b.add(i, b.read(x, i))).values()) == [i, x]


def test_substitution() -> None:
    array = VarRef(y)
    values: dict[int, Expr] = {i.id: one, x.id: array}
    expr = b.add(i, b.read(x, Subscript(x, 0, VarRef(i), VarRef(n), True)))
    assert substitute(expr, values) == b.add(one, b.read(y, Subscript(y, 0, one, VarRef(n), True)))
    body: Body = (b.let(i, n), b.atomic("add", x, i, 1.0), b.store(x, i, 2.0))
    renamed = {i.id: VarRef(j), x.id: array}
    assert substitute_body(body, renamed) == (
        b.let(j, n),
        b.atomic("add", y, j, 1.0),
        b.store(y, j, 2.0),
    )


def test_depth() -> None:
    expr: Expr = b.expr(i)
    for _ in range(1000):
        expr = b.add(expr, 1)
    assert type_of(expr) is INT32
    with deep_recursion():
        assert substitute(expr, {}) is expr


# --- types ----------------------------------------------------------------------------------------

POINT = Record("Point", (("x", FLOAT32), ("id", INT32)))
SHAPE = Variant("Shape", (("Circle", (FLOAT32,)),))
point = fresh("point", POINT)


@pytest.mark.parametrize(
    ("expr", "type"),
    [
        (b.add(i, 1), INT32),
        (b.lt(i, j), BOOL),
        (b.and_(b.lt(i, j), b.lt(i, j)), BOOL),
        (b.shl(i, b.lit(INT64, 1)), INT32),
        (b.not_(b.lt(i, j)), BOOL),
        (b.neg(i), INT32),
        (b.read(x, i), FLOAT32),
        (b.cast(INT64, i), INT64),
        (b.coordinate("thread_idx"), INT64),
        (b.subscript(x, 0, i, n), INT32),
        (b.select(b.lt(i, j), i, j), INT32),
        (b.intrinsic("isnan", b.read(x, i)), BOOL),
        (ArrayLen(x), INT64),
        (App("f", (), FLOAT32), FLOAT32),
        (b.tuple_(i, b.read(x, i)), TupleType((INT32, FLOAT32))),
        (Field(VarRef(point), "id"), INT32),
        (RecordExpr("Point", (("x", b.read(x, i)), ("id", one))), POINT),
    ],
)
def test_type(expr: Expr, type: ElementType) -> None:
    assert type_of(expr) == type


def test_type_of_a_variant() -> None:
    kernel = make_kernel("k", (), variants=((SHAPE.name, SHAPE.constructors),))
    expr = VariantExpr("Shape", "Circle", (b.read(x, i),))
    assert type_of(expr, variants_of(kernel)) == SHAPE


# --- effects --------------------------------------------------------------------------------------


def call(function: str, *args: Var) -> Stmt:
    return Call((), function, tuple(map(VarRef, args)))


def test_effects_through_helpers() -> None:
    params = [b.array_param(fresh, name, FLOAT32, k) for k, name in enumerate("abc")]
    a, c, d = (param.var for param in params)
    p, q = fresh("p", Vec(FLOAT32)), fresh("q", Vec(FLOAT32))
    copy = b.helper("copy", [p, q], UNIT, b.store(q, 0, b.read(p, 0)))
    r, s = fresh("r", Vec(FLOAT32)), fresh("s", Vec(FLOAT32))
    outer = b.helper("outer", [r, s], UNIT, call("copy", s, r))
    body = (call("outer", a, c), b.atomic("add", d, 0, 1.0))
    kernel = make_kernel("k", body, params=tuple(params), functions=(copy, outer))
    assert list(map(sorted, (reads(kernel), writes(kernel), atomics(kernel)))) == [
        [1, 2],
        [0, 2],
        [2],
    ]
    assert effects_of(kernel).reads == {c.id, d.id}
    assert arguments(kernel, [a.id, fresh("t", INT32).id]) == {0}


def test_atomic_load_and_store() -> None:
    array = b.array_param(fresh, "a", FLOAT32, 0)
    load = make_kernel("k", (b.atomic("load", array.var, 0),), params=(array,))
    store = make_kernel("k", (b.atomic("store", array.var, 0, 1.0),), params=(array,))
    assert (sorted(reads(load)), sorted(writes(load))) == ([0], [])
    assert (sorted(reads(store)), sorted(writes(store))) == ([], [0])
