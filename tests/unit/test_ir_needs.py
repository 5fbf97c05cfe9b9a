"""A kernel needs what occurs in it, once, with the place of the first use."""

from __future__ import annotations

import pytest

from sarek_numba.ir import build as b
from sarek_numba.ir.needs import Need, needs, promises
from sarek_numba.ir.nodes import (
    Atomic,
    AtomicOp,
    Barrier,
    Binary,
    BinOp,
    Call,
    CMMulAdd,
    Coopmat,
    CoopmatConfig,
    Expr,
    FenceScope,
    Kernel,
    MemFence,
    Return,
    Stmt,
    VarRef,
    make_kernel,
)
from sarek_numba.ir.types import FLOAT64, INT32, INT64, UNIT, MemSpace, Scalar, Vec
from sarek_numba.span import Span

fresh = b.Fresh()
x = b.array_param(fresh, "x", FLOAT64, 0)
counts = b.array_param(fresh, "counts", INT32, 1)
tile = b.shared_decl(fresh, "tile", INT32, 64)
dynamic = b.shared_decl(fresh, "dynamic", Scalar.UINT8, None)
local = b.local_decl(fresh, "local", Scalar.INT16, 4)
i, v = fresh("i", INT32), fresh("v", FLOAT64)
HERE, THERE = Span("k.py", 3, 4), Span("k.py", 5, 4)


def kernel(*body: Stmt, **fields: object) -> Kernel:
    return make_kernel("k", body, **fields)


def test_copy_needs_storage_and_no_arithmetic() -> None:
    copy = b.store(x.var, b.lit(INT32, 0), b.read(x.var, b.lit(INT32, 1)))
    assert needs(kernel(copy, params=(x,))) == (Need("storage", FLOAT64),)


def test_arithmetic_with_the_first_place() -> None:
    value = b.read(x.var, b.lit(INT32, 0))
    first = Binary(BinOp.ADD, value, value, span=HERE)
    second = Binary(BinOp.MUL, value, value, span=THERE)
    found = needs(kernel(b.let(v, first), b.store(x.var, 0, second), params=(x,)))
    assert found == (Need("storage", FLOAT64), Need("arithmetic", FLOAT64))
    assert found[1].span == HERE


def test_conversion_needs_both_types() -> None:
    found = needs(kernel(b.let(v, b.cast(FLOAT64, b.lit(INT64, 1)))))
    assert found == (Need("arithmetic", FLOAT64), Need("arithmetic", INT64))


def test_loop_needs_arithmetic_of_its_counter() -> None:
    assert needs(kernel(b.for_(i, 0, 3))) == (Need("arithmetic", INT32),)


def test_logic_needs_nothing() -> None:
    assert needs(kernel(b.if_(b.not_(b.lit(Scalar.BOOL, True)), []))) == ()


def test_memory_and_synchronisation() -> None:
    found = needs(kernel(Barrier(span=HERE), locals=(tile, dynamic, local)))
    assert found == (
        Need("storage", INT32),
        Need("shared"),
        Need("storage", Scalar.UINT8),
        Need("dynamic_shared"),
        Need("storage", Scalar.INT16),
        Need("barrier"),
    )
    assert found[-1].span == HERE


def test_atomics_by_operation_type_and_space() -> None:
    one = b.lit(INT32, 1)
    shared = Atomic(AtomicOp.MAX, None, tile.var, one, one)
    array = fresh("a", Vec(INT32))
    helper = b.helper("f", [array], UNIT, b.atomic("add", array, one, 1), Return())
    call = Call((), "f", (VarRef(counts.var),))
    found = needs(kernel(shared, call, params=(counts,), locals=(tile,), functions=(helper,)))
    assert [need for need in found if need.feature == "atomic"] == [
        Need("atomic", INT32, AtomicOp.ADD, MemSpace.GLOBAL),
        Need("atomic", INT32, AtomicOp.MAX, MemSpace.SHARED),
    ]


def test_functions_fences_and_narrow_stores() -> None:
    """What a device may lack of an arithmetic that it has."""
    narrow = b.array_param(fresh, "narrow", Scalar.INT16, 2)
    made = kernel(
        b.let(v, b.intrinsic("exp", b.read(x.var, 0))),
        MemFence(FenceScope.DEVICE, span=HERE),
        b.store(narrow.var, 0, b.lit(Scalar.INT16, 1)),
        params=(x, narrow),
        index_bits=64,
    )
    found = needs(made)
    assert Need("function", FLOAT64, function="exp") in found
    assert Need("fence", function="device") in found
    assert Need("store", Scalar.INT16) in found
    assert Need("wide_index") in found
    assert Need("store", FLOAT64) not in found


def test_cooperative_matrices_by_their_configuration() -> None:
    """After the extension itself, so that a device without it says so first."""
    config = CoopmatConfig(16, 16, 16, Scalar.INT8, Scalar.INT8, INT32, INT32)
    made = kernel(Coopmat(CMMulAdd("d", "a", "b", "c", config), span=HERE))
    assert needs(made) == (Need("coopmat"), Need("coopmat", configuration=config))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b.add(v, v), {"rounding", "subnormal_results"}),
        (b.div(v, v), {"division", "subnormal_results"}),
        (b.intrinsic("sqrt", v), {"square_root"}),
        (b.intrinsic("fma", v, v, v), {"fma", "subnormal_results"}),
        (b.add(b.mul(v, v), v), {"rounding", "subnormal_results", "contraction"}),
    ],
    ids=["sum", "quotient", "root", "fma", "product and sum"],
)
def test_promises_of_floats(value: Expr, expected: set[str]) -> None:
    """Each operation has its own, and those of all floats."""
    found = promises(kernel(b.let(fresh("w", FLOAT64), value)))
    assert {need.feature for need in found} == expected | {
        "subnormal_inputs",
        "nan",
        "signed_zeros",
    }
    assert {need.scalar for need in found} == {FLOAT64}


def test_promises_of_conversions_and_integers() -> None:
    """Between integers nothing can go wrong; their division has edges."""
    assert promises(kernel(b.let(v, b.cast(FLOAT64, i)))) == (
        Need("conversion", INT32, target=FLOAT64),
    )
    assert promises(kernel(b.let(fresh("w", INT64), b.cast(INT64, i)))) == ()
    assert promises(kernel(b.let(fresh("w", INT32), b.floormod(i, i)))) == (
        Need("integer_division", INT32),
    )
