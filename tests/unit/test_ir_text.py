"""The text of IR says everything: what is read back is what was printed, and its hash is stable."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from sarek_numba.ir import build as b
from sarek_numba.ir.hash import content_hash
from sarek_numba.ir.native import Dimensions, NativeArg, NativeFunction
from sarek_numba.ir.nodes import (
    Barrier,
    Binary,
    BinOp,
    Const,
    Expr,
    Kernel,
    Stmt,
    Unary,
    UnOp,
    constant,
    make_kernel,
)
from sarek_numba.ir.parse import parse
from sarek_numba.ir.spelling import expr_text
from sarek_numba.ir.text import text
from sarek_numba.ir.types import BOOL, FLOAT32, FLOAT64, INT32, INT64, Scalar
from sarek_numba.ir.walk import deep_recursion
from sarek_numba.span import Span
from tests.unit.ir_strategies import kernels


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(kernels())
def test_round_trip(kernel: Kernel) -> None:
    shown = text(kernel)
    assert parse(shown) == kernel
    assert text(parse(shown)) == shown


def saxpy(first_id: int = 0, name: str = "saxpy", index: str = "i") -> Kernel:
    fresh = b.Fresh(first_id)
    x, y = (b.array_param(fresh, n, FLOAT32, k) for k, n in enumerate("xy"))
    a, n = b.scalar_param(fresh, "a", FLOAT32, 2), b.length_param(fresh, "n", 0)
    i = fresh(index, INT32)
    value = b.add(b.mul(a.var, b.read(x.var, i)), b.read(y.var, i))
    body = (
        b.let(i, b.coordinate("global_idx", 0, INT32)),
        b.if_(b.lt(i, n.var), [b.store(y.var, i, value)]),
    )
    return make_kernel(name, body, params=(x, y, a, n))


def test_text_of_saxpy() -> None:
    assert text(saxpy()) == (
        "kernel saxpy index 32 {\n"
        "  param x: vec<f32> = argument 0 array(f32, global, 1, C)\n"
        "  param y: vec<f32> = argument 1 array(f32, global, 1, C)\n"
        "  param a: f32 = argument 2\n"
        "  param n: i32 = length 0\n"
        "  let i: i32 = global_idx.x.i32\n"
        "  if i < n {\n"
        "    y[i] = a * x[i] + y[i]\n"
        "  }\n"
        "}\n"
    )


def test_equal_names_are_told_apart() -> None:
    first, second = b.Fresh(4)("i", INT64), b.Fresh(9)("i", INT64)
    kernel = make_kernel("k", (b.let(first, 1), b.let(second, first)))
    assert text(kernel) == ("kernel k index 32 {\n  let i#4: i64 = 1\n  let i#9: i64 = i#4\n}\n")
    assert parse(text(kernel)) == kernel


x, y, z = (b.expr(b.Fresh(k)(name, INT64)) for k, name in enumerate("xyz"))


@pytest.mark.parametrize(
    ("expr", "shown"),
    [
        (constant(INT64, -3), "-3"),
        (constant(INT32, 7), "7i32"),
        (constant(FLOAT64, 0.1), "0.1"),
        (constant(FLOAT32, 0.1), "0.1f32"),
        (constant(FLOAT32, -0.0), "-0.0f32"),
        (constant(FLOAT64, 1e300), "1e+300"),
        (constant(FLOAT32, float("-inf")), "-inf.f32"),
        (Const(FLOAT64, 0x7FF8 << 48), "nan.f64(0x7ff8000000000000)"),
        (constant(BOOL, True), "true"),
        (b.mul(b.add(x, y), z), "(x + y) * z"),
        (b.sub(b.sub(x, y), z), "x - y - z"),
        (b.sub(x, b.sub(y, z)), "x - (y - z)"),
        (b.eq(b.lt(x, y), b.lt(y, z)), "(x < y) == (y < z)"),
        (Unary(UnOp.NEG, constant(INT64, 3)), "-(3)"),
        (b.sub(x, constant(INT64, -3)), "x - -3"),
        (b.not_(b.lt(x, y)), "not (x < y)"),
        (Binary(BinOp.FLOORDIV, x, y, weak=True, unguarded=True), "x //.wu y"),
        (b.select(b.lt(x, y), x, y), "(x < y ? x : y)"),
        (b.cast(FLOAT32, x, weak=True), "f32.w(x)"),
        (b.intrinsic("min", x, y), "min.i64(x, y)"),
    ],
)
def test_text_of_an_expression(expr: Expr, shown: str) -> None:
    assert expr_text(expr) == shown


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("kernel k index 32 {\n  let i: i64 = j\n}", "line 2: j is not declared"),
        ("kernel k index 32 {\n  let i: i64 = \n}", "line 3: an expression is wanted, not '}'"),
        ("kernel k index 32 {\n  jump\n}", "line 2: jump is not declared"),
        ("kernel k index 32 {\n  else\n}", "line 2: a statement is wanted, not 'else'"),
        ("kernel k index 32 {\n", "a word is wanted, not 'the end'"),
        ("kernel k index 32 {}}", "the end is wanted"),
        ("kernel k index 32 { § }", "is no word of IR text"),
    ],
)
def test_what_is_not_understood(source: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(source)


def test_deep_and_long() -> None:
    fresh = b.Fresh()
    deep: Expr = constant(INT64, 0)
    for _ in range(1000):
        deep = b.add(constant(INT64, 1), deep)
    nest: Stmt = b.let(fresh("deep", INT64), deep)
    for _ in range(60):
        nest = b.for_(fresh("i", INT64), 0, 9, nest)
    long = (b.let(fresh("v", INT64), 1) for _ in range(2000))
    kernel = make_kernel("k", (nest, *long))
    with deep_recursion():  # the `==` of CPython 3.12 recurses in C, under a limit of its own
        again = parse(text(kernel))
        assert text(again) == text(kernel)
        assert content_hash(again) == content_hash(kernel)


# --- hash -----------------------------------------------------------------------------------------


def test_rebuilding_gives_the_same_hash() -> None:
    """Ids, spans and the kernel's name are tags; so is the order in which ids were given."""
    again = saxpy(first_id=40, name="other")
    body = tuple(_with_span(stmt) for stmt in again.body)
    assert content_hash(make_kernel("o", body, params=again.params)) == content_hash(saxpy())


def _with_span(stmt: Stmt) -> Stmt:
    return replace(stmt, span=Span("k.py", 3))


def _run(
    parallel: bool, block: Dimensions, grid: Dimensions, args: Sequence[NativeArg]
) -> None: ...


def _variants() -> Iterator[tuple[str, Kernel]]:
    kernel = saxpy()
    yield "name of a variable", saxpy(index="j")
    yield "index width", replace(kernel, index_bits=64)
    yield "unused parameter", replace(kernel, params=kernel.params[:-1])
    yield "native function", replace(kernel, native_function=NativeFunction(_run))
    yield "empty body", replace(kernel, body=())
    yield "statement", replace(kernel, body=(*kernel.body, Barrier()))


@pytest.mark.parametrize("change", [name for name, _ in _variants()])
def test_what_matters_changes_the_hash(change: str) -> None:
    assert content_hash(dict(_variants())[change]) != content_hash(saxpy())


def test_constants_that_compare_equal_have_different_hashes() -> None:
    def returning(value: Const) -> Kernel:
        return make_kernel("k", (b.let(b.Fresh()("v", value.type), value),))

    zeros = [constant(FLOAT32, 0.0), constant(FLOAT32, -0.0)]
    ones = [constant(scalar, 1) for scalar in (BOOL, INT32, Scalar.UINT32, INT64, FLOAT64)]
    hashes = {content_hash(returning(value)) for value in zeros + ones}
    assert len(hashes) == 7


def test_hash_of_a_kernel_of_30_lines_is_fast() -> None:
    fresh = b.Fresh()
    v = fresh("v", FLOAT32, mutable=True)
    line = b.assign(v, b.add(b.mul(v, 2.0), b.div(v, b.add(v, 1.0))))
    kernel = make_kernel("k", (b.let_mut(v, 1.0), *[line] * 30))
    assert min(_seconds_of_hash(kernel) for _ in range(10)) < 0.005


def _seconds_of_hash(kernel: Kernel) -> float:
    start = time.process_time()
    content_hash(kernel)
    return time.process_time() - start
