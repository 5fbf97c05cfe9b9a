"""Native: every operator, conversion and exact function on boundary values, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sarek_native.values import REGISTER
from sarek_native.vecmath import INTRINSICS_EMITTED
from sarek_numba.ir import semantics
from sarek_numba.ir.intrinsics import INTRINSICS
from sarek_numba.ir.nodes import LOGICAL, SHIFTS, Binary, BinOp, Cast, Expr, Intrinsic, Unary, UnOp
from sarek_numba.ir.types import BOOL, FLOAT32, FLOAT64, Scalar
from tests.unit.native_kit import Operation, mapped, same

TYPES = tuple(REGISTER)


def boundaries(type: Scalar) -> np.ndarray[Any, Any]:
    """Values at which operators have edges."""
    if type is BOOL:
        return np.array([False, True])
    if type.is_float:
        info = np.finfo(type.value)
        ends = [info.max, info.min, info.tiny, -info.tiny, info.smallest_subnormal]
        powers = [2.0**k for k in (7, 8, 15, 16, 31, 32, 63, 64)]
        plain = [0.0, 1.0, 2.0, 3.0, 0.5, 0.1, 6.0, 2.5, 127.5, 255.9, 1e10, np.inf]
        values = [*plain, *powers, *ends]
        return np.array([*values, *(-v for v in values), np.nan], type.value)
    near = {0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 100, type.maximum // 2}
    near |= {-v for v in near} | {type.minimum, type.minimum + 1, type.maximum, type.maximum - 1}
    return np.array(sorted(v for v in near if type.minimum <= v <= type.maximum), type.value)


def pairs(left: Scalar, right: Scalar) -> list[np.ndarray[Any, Any]]:
    a, b = np.meshgrid(boundaries(left), boundaries(right))
    return [np.ascontiguousarray(a).ravel(), np.ascontiguousarray(b).ravel()]


def _binary(op: BinOp) -> Operation:
    return lambda a, b: Binary(op, a, b)


def _unary(op: UnOp) -> Operation:
    return lambda a, b: Unary(op, a)


def _cast(type: Scalar) -> Operation:
    return lambda a, b: Cast(type, a)


def _intrinsic(name: str, result: Scalar) -> Operation:
    def make(*operands: Expr) -> Expr:
        return Intrinsic((), name, operands[: INTRINSICS[name].arity], result)

    return make


def cases(type: Scalar) -> list[tuple[str, Operation, Any]]:
    """Name, operation and meaning of all that takes two operands of a type, or the first of two."""
    found: list[tuple[str, Operation, Any]] = []
    for op in BinOp:
        if op in SHIFTS or (op in LOGICAL and type is not BOOL):
            continue
        try:
            found.append((op.name, _binary(op), semantics.binary(op, type)))
        except KeyError:
            continue
    for unary in UnOp:
        if unary is UnOp.NOT and type is not BOOL:
            continue
        try:
            meaning = semantics.unary(unary, type)
        except KeyError:
            continue
        found.append((unary.name, _unary(unary), lambda a, b, f=meaning: f(a)))
    for target in TYPES:
        convert = semantics.cast(type, target)
        found.append((f"to {target.value}", _cast(target), lambda a, b, f=convert: f(a)))
    for name, info in INTRINSICS.items():
        if (
            type.kind not in info.kinds
            or not info.exact
            or info.arity > 2
            or info.result == "given"
        ):
            continue
        function = semantics.intrinsic(name, type)
        result = BOOL if info.result == "bool" else type
        arity = info.arity
        found.append((name, _intrinsic(name, result), lambda *v, f=function, n=arity: f(*v[:n])))
    return found


@pytest.mark.parametrize("type", TYPES, ids=lambda type: type.value)
def test_operators_agree_with_their_meaning(type: Scalar) -> None:
    """Every operator, conversion and exact function of a type gives the oracle's bits."""
    inputs = pairs(type, type)
    table = cases(type)
    expected = [np.asarray(meaning(*inputs)) for _, _, meaning in table]
    operations = [
        (operation, Scalar(e.dtype.name))
        for (_, operation, _), e in zip(table, expected, strict=True)
    ]
    for (name, _, _), want, got in zip(table, expected, mapped(inputs, operations), strict=True):
        agree = same(got, want)
        where = int(np.argmin(agree))
        assert agree.all(), (
            f"{name} of {[v[where] for v in inputs]}: {got[where]}, not {want[where]}"
        )


@pytest.mark.parametrize("count", [t for t in TYPES if t.is_integer], ids=lambda t: t.value)
def test_shifts_take_counts_of_any_integer_type(count: Scalar) -> None:
    """Counts outside 0…w-1, negative ones too, give 0, or the sign of a value shifted right."""
    for type in (Scalar.INT8, Scalar.UINT16, Scalar.INT32, Scalar.INT64, Scalar.UINT64):
        inputs = pairs(type, count)
        ops = [(_binary(op), type) for op in (BinOp.SHL, BinOp.SHR)]
        for op, got in zip((BinOp.SHL, BinOp.SHR), mapped(inputs, ops), strict=True):
            assert same(got, semantics.binary(op, type)(*inputs)).all(), (op, type)


def test_uniform_operands_take_the_same_edges() -> None:
    """Division by a zero that is the same for all lanes is scalar code, and does not trap."""
    for type in (Scalar.INT32, Scalar.INT64, Scalar.UINT8):
        values = [np.array([v], type.value) for v in (type.minimum, type.maximum)]
        for value in values:
            for divisor in (0, 1, -1):
                if divisor < type.minimum:
                    continue
                inputs = [value, np.array([divisor], type.value)]
                ops = [BinOp.DIV, BinOp.MOD, BinOp.FLOORDIV, BinOp.FLOORMOD]
                got = mapped(inputs, [(_binary(op), type) for op in ops])
                for op, result in zip(ops, got, strict=True):
                    assert result == semantics.binary(op, type)(*inputs), (op, value, divisor)


@pytest.mark.parametrize("type", [FLOAT32, FLOAT64], ids=lambda type: type.value)
def test_fma_rounds_once(type: Scalar) -> None:
    a, b = pairs(type, type)
    c = np.random.default_rng(1).permutation(a)
    operation: Operation = lambda x, y, z: Intrinsic((), "fma", (x, y, z), type)  # noqa: E731
    (got,) = mapped([a, b, c], [(operation, type)])
    assert same(got, semantics.intrinsic("fma", type)(a, b, c)).all()


def test_products_and_sums_are_not_contracted() -> None:
    """a * b + c rounds twice, on a machine with fused multiply-add."""
    a, b = (np.random.default_rng(k).uniform(-2, 2, 4096).astype(np.float32) for k in (1, 2))
    c = -(a * b)
    operation: Operation = lambda x, y, z: Binary(BinOp.ADD, Binary(BinOp.MUL, x, y), z)  # noqa: E731
    (got,) = mapped([a, b, c], [(operation, FLOAT32)])
    assert (got == 0).all()


def test_reinterpret_keeps_bits() -> None:
    values = boundaries(FLOAT32)
    operation: Operation = lambda x: Intrinsic((), "reinterpret", (x,), Scalar.INT32)  # noqa: E731
    (got,) = mapped([values], [(operation, Scalar.INT32)])
    assert (got == values.view(np.int32)).all()


def test_every_intrinsic_is_emitted() -> None:
    assert set(INTRINSICS_EMITTED) == set(INTRINSICS)


ULPS = {"tanh": 4, "gamma": 16, "lgamma": 16}  # where oracle and C library differ by more than 2


@pytest.mark.parametrize("type", [FLOAT32, FLOAT64], ids=lambda type: type.value)
def test_transcendental_functions(type: Scalar) -> None:
    """float32 within one place of the oracle, float64 within few; special cases alike."""
    rng = np.random.default_rng(3)
    a = np.concatenate([boundaries(type), rng.uniform(-8, 8, 200).astype(type.value)])
    b = rng.permutation(a)
    names = [n for n, info in INTRINSICS.items() if not info.exact]
    got = mapped([a, b], [(_intrinsic(name, type), type) for name in names])
    for name, result in zip(names, got, strict=True):
        arity = INTRINSICS[name].arity
        want = semantics.intrinsic(name, type)(*(a, b)[:arity])
        finite = np.isfinite(want)
        assert same(result[~finite], want[~finite]).all(), name
        size = np.minimum(np.abs(want[finite]), np.finfo(type.value).max / 2)
        if name == "lgamma":  # near its zeros only the absolute error is bounded
            size = np.maximum(size, 1)
        places = np.abs(result[finite] - want[finite]) / np.spacing(size)
        allowed = 1 if type is FLOAT32 else ULPS.get(name, 2)
        assert places.max() <= allowed, (name, places.max())
