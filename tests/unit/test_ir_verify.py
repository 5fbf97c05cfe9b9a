"""Every rule of the verifier refuses what breaks it, naming the rule and marking the node."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from sarek_numba.errors import DivergentBarrier, InvalidIR
from sarek_numba.ir import build as b
from sarek_numba.ir.nodes import (
    App,
    ArrayCreate,
    Assign,
    Atomic,
    AtomicOp,
    Barrier,
    Binary,
    BinOp,
    Body,
    Break,
    Call,
    Cast,
    Const,
    Continue,
    Coordinate,
    Expr,
    For,
    IfExpr,
    Index,
    Intrinsic,
    Kernel,
    Let,
    LetMut,
    LVar,
    Return,
    Stmt,
    Subscript,
    Unary,
    UnOp,
    VarRef,
    While,
    make_kernel,
)
from sarek_numba.ir.types import (
    BOOL,
    FLOAT32,
    INT32,
    INT64,
    UNIT,
    FixedArray,
    LengthOf,
    MemSpace,
    Record,
    Scalar,
    TupleType,
    Vec,
)
from sarek_numba.ir.verify import check_convergence, verify
from sarek_numba.span import Span

fresh = b.Fresh()
x = b.array_param(fresh, "x", FLOAT32, 0)
frozen = b.array_param(fresh, "frozen", FLOAT32, 1, writable=False)
n = b.length_param(fresh, "n", 0)
shared = b.shared_decl(fresh, "tile", INT32, 64)
table = b.const_decl(fresh, "table", FLOAT32, [1.0, 2.0])
i, j, unbound = (fresh(name, INT32) for name in ("i", "j", "unbound"))
acc = fresh("acc", FLOAT32, mutable=True)
p, q, a = fresh("p", INT32), fresh("q", INT32), fresh("a", Vec(FLOAT32))
true, zero, zero64, half = (
    b.lit(BOOL, True),
    b.lit(INT32, 0),
    b.lit(INT64, 0),
    b.lit(FLOAT32, 0.5),
)
double = b.helper("double", [p], INT32, Return(b.mul(p, 2)))
store = b.helper("store", [a, q], INT32, b.store(a, q, 0.0), Return(b.expr(q)))


def kernel(*body: Stmt, **fields: object) -> Kernel:
    given = {
        "params": (x, frozen, n),
        "locals": (shared, table),
        "functions": (double, store),
        **fields,
    }
    return make_kernel("k", body, **given)


def in_store(value: Expr) -> Body:
    return (Let(j, value),)


GOOD: list[Body] = [
    (),
    (b.let(i, n.var), b.if_(b.lt(i, 3), [b.store(x.var, i, b.read(frozen.var, i))])),
    (b.let_mut(acc), b.while_(true, b.assign(acc, b.add(acc, 1.0)), Break())),
    (b.for_(i, 0, n.var, Continue()), b.for_(j, 9, 0, step=-1)),
    (Call((i,), "double", (zero,)), Call((), "double", (zero,))),
    (Call((), "store", (VarRef(x.var), zero)),),
    (b.atomic("cas", shared.var, 0, 1, compare=0, result=i),),
    (b.let(i, App("double", (zero,), INT32)),),
    (b.let(i, b.shl(zero, zero64)),),
    (Return(),),
]


@pytest.mark.parametrize("body", GOOD)
def test_accepted(body: Body) -> None:
    verify(kernel(*body))


BAD: list[tuple[str, Body]] = [
    ("unbound is used outside its scope", in_store(b.expr(unbound))),
    ("i is used outside its scope", (b.if_(true, [b.let(i, 1)]), *in_store(b.expr(i)))),
    ("i is used outside its scope", (b.for_(i, 0, n.var), *in_store(b.expr(i)))),
    ("i is used outside its scope", (*in_store(b.expr(i)), b.let(i, 1))),
    ("is declared twice", (b.let(i, 1), b.let(i, 1))),
    ("differs from its declaration", (b.let(i, 1), *in_store(VarRef(replace(i, name="o"))))),
    ("is not mutable", (b.let(i, 1), Assign(LVar(i), zero))),
    ("acc is mutable", (Let(acc, half),)),
    ("i is not mutable", (LetMut(i, zero),)),
    ("the value of j is i64, not i32", in_store(zero64)),
    ("operands of + are int32 and int64", in_store(Binary(BinOp.ADD, zero, zero64))),
    ("+ has no meaning for bool", in_store(Binary(BinOp.ADD, true, true))),
    ("and has no meaning for int32", in_store(Binary(BinOp.AND, zero, zero))),
    ("<< has no meaning for float32", in_store(Binary(BinOp.SHL, half, zero))),
    ("the count of a shift is float32", in_store(Binary(BinOp.SHL, zero, half))),
    ("& has no meaning for float32", in_store(Binary(BinOp.BITAND, half, half))),
    ("cannot be weak", in_store(Binary(BinOp.ADD, half, half, weak=True))),
    ("an integer is wanted", in_store(Cast(INT32, half, weak=True))),
    ("not has no meaning for int32", in_store(Unary(UnOp.NOT, zero))),
    ("- has no meaning for bool", in_store(Unary(UnOp.NEG, true))),
    ("no function nosuch", in_store(Intrinsic((), "nosuch", (zero,), INT32))),
    ("takes 2 arguments, not 1", in_store(Intrinsic((), "min", (zero,), INT32))),
    ("sqrt has no meaning for int32", in_store(Intrinsic((), "sqrt", (zero,), INT32))),
    ("gives bool, not int32", in_store(Intrinsic((), "isnan", (half,), INT32))),
    ("differ in width", in_store(Intrinsic((), "reinterpret", (zero64,), INT32))),
    ("a coordinate has axis", in_store(Index(Coordinate.THREAD_IDX, 3, INT32))),
    ("i is no array", (b.let(i, 1), *in_store(b.read(i, 0)))),
    ("an integer is wanted", (b.store(x.var, half, 1.0),)),
    ("the extent of a subscript", in_store(Subscript(x.var, 0, zero, zero64, True))),
    ("a condition is i32, not bool", (While(zero, ()),)),
    ("the other arm", in_store(IfExpr(true, zero, zero64))),
    ("is no bit pattern", in_store(Const(INT32, -1))),
    ("no constant has type float16", in_store(Const(Scalar.FLOAT16, 0))),
    ("outside a loop", (Break(),)),
    ("outside a loop", (b.for_(i, 0, 1), Continue())),
    ("a kernel returns no value", (Return(zero),)),
    ("a bound of i is i64", (replace(b.for_(i, 0, 1), stop=zero64),)),
    ("frozen is read-only", (b.store(frozen.var, 0, 1.0),)),
    ("frozen is read-only", (Call((), "store", (VarRef(frozen.var), zero)),)),
    ("table is constant", (b.store(table.var, 0, 1.0),)),
    ("not declared before it is called", (Call((), "nosuch", ()),)),
    ("takes 1 arguments, not 0", (Call((), "double", ()),)),
    ("argument p of double is f32", (Call((), "double", (half,)),)),
    ("the results are not those", (Call((acc,), "double", (zero,)),)),
    ("has effects", in_store(App("store", (VarRef(x.var), zero), INT32))),
    ("does not give the scalar", in_store(App("double", (zero,), INT64))),
    ("has other operands", (Atomic(AtomicOp.ADD, None, shared.var, zero),)),
    ("has other operands", (Atomic(AtomicOp.ADD, None, shared.var, zero, zero, zero),)),
    ("an operand of the atomic", (Atomic(AtomicOp.ADD, None, shared.var, zero, half),)),
    ("cannot hold the old value", (b.atomic("store", shared.var, 0, 1, result=i),)),
    ("created only by", in_store(b.add(ArrayCreate(INT32, zero, MemSpace.LOCAL), zero))),
]


@pytest.mark.parametrize(("message", "body"), BAD)
def test_refused(message: str, body: Body) -> None:
    with pytest.raises(InvalidIR, match=re.escape(message)):
        verify(kernel(*body))


def test_the_guilty_node_is_marked() -> None:
    with pytest.raises(InvalidIR) as caught:
        verify(make_kernel("k", (b.let(i, b.add(zero, b.mul(zero, unbound))),)))
    (note,) = caught.value.__notes__
    assert note == (
        "kernel k index 32 {\n"
        "  let i#5: i32 = 0i32 + 0i32 * unbound#7\n"
        "                               ^^^^^^^^^\n"
        "}\n"
    )


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        ("n is int32, not int64", {"index_bits": 64}),
        ("index_bits is 16", {"index_bits": 16}),
        ("is declared twice", {"params": (x, x)}),
        ("described as another array", {"params": (replace(x, array=None),)}),
        ("no argument", {"params": (replace(x, role=LengthOf(0)),)}),
        ("neither an array nor a scalar", {"params": (replace(n, array=x.array),)}),
        ("not what is declared", {"locals": (replace(shared, element=FLOAT32),)}),
        ("at least one element", {"locals": (replace(shared, size=zero),)}),
        ("declared twice", {"functions": (double, replace(double, params=()))}),
        ("not declared before", {"functions": (b.helper("f", [], UNIT, Call((), "g", ())),)}),
        ("is not returned", {"functions": (b.helper("f", [], INT32, Return()),)}),
        ("the value returned", {"functions": (b.helper("f", [], INT32, Return(half)),)}),
        ("x is used outside", {"functions": (b.helper("f", [], UNIT, b.store(x.var, 0, 1.0)),)}),
    ],
)
def test_declaration_refused(message: str, fields: dict[str, object]) -> None:
    with pytest.raises(InvalidIR, match=message):
        verify(kernel(**fields))


def test_tuple_results() -> None:
    pair = TupleType((INT32, FLOAT32))
    value = b.tuple_(zero, half)
    helper = b.helper("pair", [], pair, Return(value))
    first, second = fresh("first", INT32), fresh("second", FLOAT32)
    verify(kernel(Call((first, second), "pair", ()), functions=(helper,)))
    with pytest.raises(InvalidIR, match="the results are not those of pair"):
        verify(kernel(Call((second, first), "pair", ()), functions=(helper,)))


def test_long_bodies_and_deep_nesting() -> None:
    """20,000 statements, 60 nested loops and an expression of depth 1,000 are no trouble."""
    supply = b.Fresh(100)
    deep: Expr = zero
    for _ in range(1000):
        deep = b.add(zero, deep)
    nest: Stmt = b.let(supply("deep", INT32), deep)
    for _ in range(60):
        nest = b.for_(supply("i", INT32), 0, n.var, nest)
    verify(kernel(nest, *(b.let(supply("v", INT32), zero) for _ in range(20_000))))


# --- convergence ----------------------------------------------------------------------------------

SOURCE_SPAN = Span("kernel.py", 4, 8, 4, 14)
CONDITION_SPAN = Span("kernel.py", 3, 7, 3, 12)


def divergent_condition() -> Binary:
    left = Index(Coordinate.GLOBAL_IDX, 0, INT32)
    return Binary(BinOp.GE, left, VarRef(n.var), span=CONDITION_SPAN)


def test_early_return_is_told_in_the_users_terms() -> None:
    body = (b.if_(divergent_condition(), [Return()]), Barrier(span=SOURCE_SPAN))
    (found,) = check_convergence(kernel(*body))
    assert found.error is DivergentBarrier
    assert found.span == SOURCE_SPAN
    assert found.message == (
        "barrier() is reached only by threads for which `global_idx.x.i32 >= n` does not hold"
    )
    assert [span for span, _ in found.notes] == [CONDITION_SPAN]


@pytest.mark.parametrize(
    ("body", "way"),
    [
        ((b.if_(divergent_condition(), [Barrier()]),), "holds"),
        ((b.if_(divergent_condition(), [], [Barrier()]),), "does not hold"),
        (
            (
                For(
                    i,
                    Index(Coordinate.THREAD_IDX, 0, INT32),
                    VarRef(n.var),
                    b.lit(INT32, 1),
                    b.for_(i, 0, 1).direction,
                    (Barrier(),),
                ),
            ),
            "differs",
        ),
    ],
)
def test_way(body: Body, way: str) -> None:
    (found,) = check_convergence(kernel(*body))
    assert found.message.endswith(way)


def test_barrier_in_a_helper_is_told_at_the_call() -> None:
    wait = b.helper("wait", [], UNIT, Barrier(span=SOURCE_SPAN))
    call_span = Span("kernel.py", 9, 4)
    call = Call((), "wait", (), span=call_span)
    body = (b.if_(divergent_condition(), [call]),)
    (found,) = check_convergence(kernel(*body, functions=(wait,)))
    assert found.message.startswith("barrier() in wait() is reached only by threads")
    assert found.span == call_span
    assert [span for span, _ in found.notes] == [CONDITION_SPAN, SOURCE_SPAN]


def test_uniform_flow_has_no_diagnostics() -> None:
    body = (b.for_(i, 0, n.var, b.if_(b.lt(i, 5), [Barrier()])),)
    assert check_convergence(kernel(*body)) == []


def test_condition_is_quoted_from_the_source(tmp_path: object) -> None:
    path = f"{tmp_path}/kernel.py"
    with open(path, "w") as file:
        file.write("def k():\n    if é_index < n: barrier()\n")
    span = Span(path, 2, 7, 2, 19)  # columns count bytes
    condition = replace(divergent_condition(), span=span)
    (found,) = check_convergence(kernel(b.if_(condition, [Barrier()])))
    assert found.message.endswith("for which `é_index < n` holds")


POINT = Record("P", (("x", FLOAT32),))
TYPES = {
    "two types are named P": {"types": (("P", POINT.fields), ("P", POINT.fields))},
    "record N contains itself": {
        "types": (("N", (("next", FixedArray(Record("N", ()), (2,))),)),),
    },
    "record P has two fields named x": {"types": (("P", (*POINT.fields, *POINT.fields)),)},
}


@pytest.mark.parametrize("message", TYPES)
def test_bad_types(message: str) -> None:
    """Names of types are unique, and no record is in itself."""
    with pytest.raises(InvalidIR, match=message):
        verify(kernel(**TYPES[message]))
    verify(kernel(types=(("P", POINT.fields), ("Q", (("p", POINT),)))))
