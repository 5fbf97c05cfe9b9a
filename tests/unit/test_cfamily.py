"""The C-family printer: text that a person would have written, names, and tables without holes."""

from __future__ import annotations

import pytest

from sarek_numba.codegen import cfamily
from sarek_numba.codegen.expressions import _OPERATORS
from sarek_numba.codegen.namer import Namer, identifier
from sarek_numba.codegen.prelude import has_prelude
from sarek_numba.errors import InvalidIR
from sarek_numba.ir import build as b
from sarek_numba.ir.intrinsics import INTRINSICS
from sarek_numba.ir.nodes import (
    AtomicOp,
    Barrier,
    Binary,
    BinOp,
    Coordinate,
    Direction,
    Expr,
    FenceScope,
    For,
    Kernel,
    Return,
    make_kernel,
)
from sarek_numba.ir.types import FLOAT32, FLOAT64, INT32, INT64, Scalar, ShapeOf
from sarek_numba.span import Span
from sarek_opencl.dialect import DIALECT

_MATMUL = """\
// matmul_tiled, matmul.py:7
#pragma OPENCL FP_CONTRACT OFF

kernel void matmul_tiled(global const float *a, global const float *b, global float *c, long n) {
    local float ta[256];
    local float tb[256];
    long x = get_global_id(0);
    long y = get_global_id(1);
    long tx = get_local_id(0);
    long ty = get_local_id(1);
    float acc = 0.0f;
    for (long k = 0; k < n; k += 16) {
        ta[ty * 16 + tx] = a[y * n + (k + tx)];
        tb[ty * 16 + tx] = b[(k + ty) * n + x];
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (long i = 0; i < 16; i++) {
            acc += ta[ty * 16 + i] * tb[i * 16 + tx];
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
    c[y * n + x] = acc;
}
"""


def _plain(op: BinOp, left: b.Operand, right: b.Operand | int) -> Expr:
    made = b.binary(op, left, right)
    return Binary(op, made.left, made.right, unguarded=True)


def _matmul() -> Kernel:
    fresh = b.Fresh()
    arrays = [b.array_param(fresh, name, FLOAT32, k, ndim=2) for k, name in enumerate("abc")]
    left, right, out = (decl.var for decl in arrays)
    n = b.scalar_param(fresh, "n", INT64, ShapeOf(0, 0))
    tiles = [b.shared_decl(fresh, name, FLOAT32, 256) for name in ("ta", "tb")]
    ta, tb = (decl.var for decl in tiles)
    x, y, tx, ty = (fresh(name, INT64) for name in ("x", "y", "tx", "ty"))
    acc, k, i = fresh("acc", FLOAT32, True), fresh("k", INT64), fresh("i", INT64)

    def at(row: b.Operand, width: b.Operand | int, column: b.Operand) -> Expr:
        return _plain(BinOp.ADD, _plain(BinOp.MUL, row, width), column)

    product = b.mul(b.read(ta, at(ty, 16, i)), b.read(tb, at(i, 16, tx)))
    body = (
        b.let(x, b.coordinate("global_idx")),
        b.let(y, b.coordinate("global_idx", 1)),
        b.let(tx, b.coordinate("thread_idx")),
        b.let(ty, b.coordinate("thread_idx", 1)),
        b.let_mut(acc, 0.0),
        For(
            k,
            b.const_int(0),
            b.expr(n.var),
            b.const_int(16),
            Direction.UPTO,
            (
                b.store(ta, at(ty, 16, tx), b.read(left, at(y, n.var, _plain(BinOp.ADD, k, tx)))),
                b.store(tb, at(ty, 16, tx), b.read(right, at(_plain(BinOp.ADD, k, ty), n.var, x))),
                Barrier(),
                b.for_(i, 0, 16, b.assign(acc, b.add(acc, product))),
                Barrier(),
            ),
            unguarded=True,
        ),
        b.store(out, at(y, n.var, x), acc),
    )
    return make_kernel(
        "matmul_tiled",
        body,
        params=(*arrays, n),
        locals=tuple(tiles),
        span=Span("matmul.py", 7),
    )


def test_tiled_matmul_reads_like_a_hand_written_kernel() -> None:
    """Names kept, plain `for` loops, no temporaries, no needless parentheses or casts."""
    kernel = _matmul()
    shown = cfamily.emit(kernel, DIALECT, entry=kernel.name).text
    assert cfamily.header(kernel) + shown == _MATMUL


def test_compiled_text_carries_neither_name_nor_place() -> None:
    """Equal kernels of different names and places give equal programs, with a fixed entry."""
    kernel = _matmul()
    other = make_kernel("other", kernel.body, params=kernel.params, locals=kernel.locals)
    emitted = cfamily.emit(kernel, DIALECT)
    assert emitted == cfamily.emit(other, DIALECT)
    assert f"kernel void {cfamily.ENTRY}(" in emitted.text
    assert "matmul" not in emitted.text
    assert emitted.static_shared_bytes == 2048
    assert not emitted.dynamic_shared


def _text_of(make: object, *types: Scalar) -> str:
    """What an expression of variables a, b, c of the given types is printed as."""
    fresh = b.Fresh()
    params = [
        b.scalar_param(fresh, name, type, k)
        for k, (name, type) in enumerate(zip("abc", types, strict=False))
    ]
    value = make(*(decl.var for decl in params))  # type: ignore[operator]
    out = b.array_param(fresh, "out", b.scalar_of(value), 3)
    kernel = make_kernel("k", (b.store(out.var, 0, value),), params=(*params, out))
    line = cfamily.emit(kernel, DIALECT).text.splitlines()[-2]
    return line.removeprefix("    out[0] = ").removesuffix(";")


_F3 = (FLOAT32,) * 3
_I3 = (INT32,) * 3
_L3 = (INT64,) * 3
_EXPRESSIONS = [
    ("a * b + c", _F3, lambda x, y, z: b.add(b.mul(x, y), z)),
    ("a * (b + c)", _F3, lambda x, y, z: b.mul(x, b.add(y, z))),
    ("a - (b - c)", _F3, lambda x, y, z: b.sub(x, b.sub(y, z))),
    ("a - b - c", _F3, lambda x, y, z: b.sub(b.sub(x, y), z)),
    ("-(-a)", _F3, lambda x, y, z: b.neg(b.neg(x))),
    ("a - -1.5f", _F3, lambda x, y, z: b.sub(x, -1.5)),
    ("(a & b) == c", _I3, lambda x, y, z: b.eq(b.bitand(x, y), z)),
    ("(a < b && b < c) || a == c", _I3,
     lambda x, y, z: b.or_(b.and_(b.lt(x, y), b.lt(y, z)), b.eq(x, z))),
    ("a < b && b < c && a < c", _I3,
     lambda x, y, z: b.and_(b.lt(x, y), b.and_(b.lt(y, z), b.lt(x, z)))),
    ("a < b ? a : b < c ? b : c", _F3,
     lambda x, y, z: b.select(b.lt(x, y), x, b.select(b.lt(y, z), y, z))),
    ("(uint)a + b", _I3, lambda x, y, z: b.add(x, y)),
    ("((uint)a + b) * c", _I3, lambda x, y, z: b.mul(b.add(x, y), z)),
    ("a + b * 3", _L3, lambda x, y, z: _plain(BinOp.ADD, x, _plain(BinOp.MUL, y, 3))),
    ("(long)((ulong)a + b) < c", _L3, lambda x, y, z: b.lt(b.add(x, y), z)),
    ("(float)a * 0.1f", _I3, lambda x, y, z: b.mul(b.cast(FLOAT32, x), 0.1)),
    ("floor_div_i32(a, b)", _I3, lambda x, y, z: b.floordiv(x, y)),
    ("min(a, 5L)", _L3, lambda x, y, z: b.intrinsic("min", x, b.lit(INT64, 5))),
    ("(-9223372036854775807L - 1)", _L3, lambda x, y, z: b.lit(INT64, -(2**63))),
    ("3000000000u", _I3, lambda x, y, z: b.lit(Scalar.UINT32, 3 * 10**9)),
    ("(uint)get_global_id(0)", _I3,
     lambda x, y, z: b.cast(Scalar.UINT32, b.coordinate("global_idx"))),
    ("a + b", (INT64, INT32), lambda x, y: _plain(BinOp.ADD, x, b.cast(INT64, y))),
    ("(long)a + b", (INT32, INT32),
     lambda x, y: _plain(BinOp.ADD, b.cast(INT64, x), b.cast(INT64, y))),
    ("a", (INT32,), lambda x: b.cast(INT64, x)),
    ("a % 8", _I3, lambda x, y, z: _plain(BinOp.MOD, x, 8)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "types", "make"), _EXPRESSIONS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_expressions(text: str, types: tuple[Scalar, ...], make: object) -> None:
    """Parentheses and casts stand only where the meaning or the reader needs them."""
    assert _text_of(make, *types) == text


def test_control() -> None:
    """Chains of conditions, loops down and up, `while`, compound assignment, early return."""
    fresh = b.Fresh()
    out = b.array_param(fresh, "out", INT32, 0)
    n = b.scalar_param(fresh, "n", INT32, 1)
    i, s = fresh("i", INT32), fresh("s", INT32, True)
    body = (
        b.let_mut(s),
        b.for_(i, n.var, 0, b.assign(s, b.bitxor(s, i)), step=-1),
        b.for_(fresh("i", INT32), 0, s, step=-2),
        b.if_(
            b.lt(s, 1),
            [b.assign(s, 1)],
            [b.if_(b.lt(s, 2), [Return()], [b.assign(s, b.sub(2, s))])],
        ),
        b.while_(b.gt(s, 0), b.assign(s, _plain(BinOp.SUB, s, 3))),
        b.store(out.var, 0, _plain(BinOp.MUL, b.read(out.var, 0), _plain(BinOp.ADD, s, 1))),
    )
    text = cfamily.emit(make_kernel("k", body, params=(out, n)), DIALECT).text
    assert (
        text[text.index("    int s") :]
        == """\
    int s = 0;
    for (int i = n; i > 0; i--) {
        s ^= i;
    }
    uint i_passes = passes_i32(0, s, -2);
    for (uint i_pass = 0; i_pass < i_passes; i_pass++) {
        int i = i_pass * -2;
    }
    if (s < 1) {
        s = 1;
    } else if (s < 2) {
        return;
    } else {
        s = (uint)2 - s;
    }
    while (s > 0) {
        s -= 3;
    }
    out[0] *= s + 1;
}
"""
    )


@pytest.mark.parametrize(
    ("wish", "text"),
    [
        ("x", "x"),
        ("é", "e"),
        ("č", "c"),
        ("μ", "mu"),
        ("µ", "mu"),
        ("核", "u6838"),
        ("ﬁ", "fi"),
        ("_x", "_x"),
        ("__x__y", "_x_y"),
        ("_X", "X"),
        ("_", "v"),
        ("2d", "v2d"),
        ("größe", "grose"),
    ],
)
def test_identifiers(wish: str, text: str) -> None:
    """ASCII, no double underscore, no name that C keeps for itself."""
    assert identifier(wish) == text


def test_names_are_unique_in_scope_and_free_after_it() -> None:
    """Sibling scopes share a name; a nested scope never hides one."""
    namer = Namer(["float"])
    assert [namer.name(w) for w in ("x", "x", "float", "x_1", "é", "e")] == [
        "x", "x_1", "float_1", "x_1_1", "e", "e_1",
    ]  # fmt: skip
    for _ in range(2):
        namer.enter()
        assert namer.name("k") == "k"
        assert namer.name("x") == "x_2"
        namer.leave()
    assert namer.name("dot", frozenset({"dot"})) == "dot_1"


def test_tables_are_total() -> None:
    """Every operator, function, coordinate, fence and atomic operation has a spelling."""
    assert set(_OPERATORS) == set(BinOp)
    assert set(DIALECT.coordinates) == set(Coordinate)
    assert set(DIALECT.fences) == set(FenceScope)
    scalars = set(Scalar) - {Scalar.FLOAT16, Scalar.BFLOAT16}
    assert set(DIALECT.types) == scalars
    missing = [
        (info.name, scalar.value)
        for info in INTRINSICS.values()
        for scalar in scalars
        if scalar.kind in info.kinds
        and info.name != "reinterpret"
        and (info.name, scalar) not in DIALECT.functions
        and not has_prelude(info.name, scalar)
    ]
    assert missing == []
    assert set(DIALECT.reinterpret) == scalars
    integers = (Scalar.INT32, Scalar.UINT32, Scalar.INT64, Scalar.UINT64)
    bitwise = {AtomicOp.AND, AtomicOp.OR, AtomicOp.XOR}
    counters = {AtomicOp.INC, AtomicOp.DEC}
    for op in set(AtomicOp) - {AtomicOp.LOAD}:
        family = AtomicOp.EXCH if op is AtomicOp.STORE else op
        for scalar in integers if op in bitwise | counters else (*integers, FLOAT32, FLOAT64):
            native = (op, scalar) in DIALECT.atomics
            assert native or has_prelude(f"atomic_{family.value}", scalar)
            assert native or scalar.is_float or op in counters


def test_float64_is_enabled_only_where_it_is_used() -> None:
    """The pragma of an extension stands in programs that name its type."""
    assert "cl_khr_fp64" not in cfamily.emit(_matmul(), DIALECT).text
    fresh = b.Fresh()
    out = b.array_param(fresh, "out", FLOAT64, 0)
    kernel = make_kernel("k", (b.store(out.var, 0, 0.1),), params=(out,))
    assert "cl_khr_fp64 : enable" in cfamily.emit(kernel, DIALECT).text


def test_what_has_no_spelling_is_named() -> None:
    """A type or node that the dialect lacks is a fault that names it."""
    fresh = b.Fresh()
    out = b.array_param(fresh, "out", Scalar.BFLOAT16, 0)
    with pytest.raises(InvalidIR, match=r"OpenCL C has no spelling for the type Scalar\.BFLOAT16"):
        cfamily.emit(make_kernel("k", (), params=(out,)), DIALECT)


def test_twenty_thousand_statements() -> None:
    """The length of a kernel costs no recursion and little time."""
    fresh = b.Fresh()
    out = b.array_param(fresh, "out", INT32, 0)
    x = fresh("x", INT32, True)
    body = [b.let_mut(x, 1), *(b.assign(x, b.add(b.mul(x, 3), k)) for k in range(20_000))]
    text = cfamily.emit(
        make_kernel("k", (*body, b.store(out.var, 0, x)), params=(out,)), DIALECT
    ).text
    assert text.count("\n") > 20_000
