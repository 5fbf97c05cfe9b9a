"""Kernels of many expressions over two inputs, and what NumPy says that they give."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from sarek_numba.codegen import cfamily
from sarek_numba.ir import semantics
from sarek_numba.ir.intrinsics import INTRINSICS
from sarek_numba.ir.nodes import (
    ArrayRead,
    Assign,
    Binary,
    BinOp,
    Cast,
    Const,
    Coordinate,
    Expr,
    If,
    IfExpr,
    Index,
    Intrinsic,
    Kernel,
    LElement,
    Let,
    ParamDecl,
    Unary,
    UnOp,
    Var,
    VarRef,
    make_kernel,
)
from sarek_numba.ir.types import (
    INT64,
    ArrayInfo,
    LengthOf,
    Scalar,
    UserArgument,
    Vec,
)
from sarek_numba.ir.typing import scalar_of
from sarek_opencl import backend, nvidia
from sarek_opencl.dialect import DIALECT
from sarek_opencl.runtime import OpenCLDriver, OpenCLProgram

SCALARS = tuple(s for s in Scalar if s not in (Scalar.FLOAT16, Scalar.BFLOAT16))
INTEGERS = tuple(s for s in SCALARS if s.is_integer)
FLOATS = (Scalar.FLOAT32, Scalar.FLOAT64)
BLOCK = 32


@functools.cache
def drivers() -> dict[str, OpenCLDriver]:
    """The OpenCL devices by name; none where OpenCL is absent."""
    try:
        return {driver.record.name: driver for driver in backend.drivers()}
    except Exception:
        return {}


def boundary_values(scalar: Scalar) -> np.ndarray:
    """Values at and around the edges of a type."""
    dtype = semantics.dtype_of(scalar)
    if scalar is Scalar.BOOL:
        return np.array([False, True])
    if scalar.is_integer:
        near = (0, 1, 2, 3, 5, 7, 8, 31, 32, 63, 64, 65, 100)
        ends = (scalar.minimum, scalar.minimum + 1, scalar.maximum - 1, scalar.maximum)
        whole = {*near, *(-n for n in near), *ends, scalar.maximum // 3, scalar.maximum // 2 + 1}
        inside = sorted(n for n in whole if scalar.minimum <= n <= scalar.maximum)
        return np.array(inside, dtype)
    tiny, info = np.finfo(dtype).smallest_subnormal, np.finfo(dtype)
    values = [0.0, 0.1, 0.5, 1.0, 1.5, 2.5, 3.0, 6.0, 7.7, 1e10, 2.0**31, 2.0**63, 2.0**24 + 1]
    values += [float(x) for x in (tiny, 3 * tiny, info.tiny, info.max, info.eps, np.inf)]
    values += [np.nextafter(dtype.type(1), dtype.type(2)), 127.5, 128.0, 255.9, 65535.5, 2.0**32]
    return np.array([*values, *(-np.array(values)), np.nan], dtype)


def pairs(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of the values, as two arrays."""
    a, b = np.meshgrid(left, right, indexing="ij")
    return np.ascontiguousarray(a.ravel()), np.ascontiguousarray(b.ravel())


class Pair:
    """Two inputs, each a variable that the expressions of a kernel read."""

    def __init__(self, left: Scalar, right: Scalar) -> None:
        self.arrays = (Var("left", 0, Vec(left)), Var("right", 1, Vec(right)))
        self.a = Var("a", 2, left)
        self.b = Var("b", 3, right)

    def kernel(self, expressions: Sequence[Expr]) -> Kernel:
        """A kernel that stores each expression in an array of its own, one thread an element."""
        i, n = Var("i", 4, INT64), Var("n", 5, INT64)
        outputs = [Var(f"out{k}", 10 + k, Vec(scalar_of(e))) for k, e in enumerate(expressions)]
        reads = zip((self.a, self.b), self.arrays, strict=True)
        inner = (
            *(Let(var, ArrayRead(array, VarRef(i))) for var, array in reads),
            *(
                Assign(LElement(out, VarRef(i)), e)
                for out, e in zip(outputs, expressions, strict=True)
            ),
        )
        body = (
            Let(i, Index(Coordinate.GLOBAL_IDX, 0)),
            If(Binary(BinOp.LT, VarRef(i), VarRef(n)), inner),
        )
        params = [
            ParamDecl(v, ArrayInfo(v.type.element), UserArgument(k))
            for k, v in enumerate((*self.arrays, *outputs))
        ]
        return make_kernel(
            "matrix", body, params=(*params, ParamDecl(n, None, LengthOf(0))), index_bits=64
        )

    def expected(self, expr: Expr, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The values of an expression by `ir.semantics`."""
        values = {self.a.id: left, self.b.id: right}
        result = _evaluate(expr, values)
        return np.broadcast_to(result, left.shape)


def _evaluate(expr: Expr, values: dict[int, np.ndarray]) -> np.ndarray:
    match expr:
        case VarRef(var=var):
            return values[var.id]
        case Const():
            return semantics.as_lane(expr)
        case Binary(op=op, left=left, right=right):
            function = semantics.binary(op, scalar_of(left))
            return function(*np.broadcast_arrays(_evaluate(left, values), _evaluate(right, values)))
        case Unary(op=op, operand=operand):
            return semantics.unary(op, scalar_of(operand))(_evaluate(operand, values))
        case Cast(type=type, operand=operand):
            return semantics.cast(scalar_of(operand), type)(_evaluate(operand, values))
        case IfExpr(condition=condition, then=then, orelse=orelse):
            choices = (_evaluate(e, values) for e in (condition, then, orelse))
            return np.where(*choices)
        case Intrinsic(name=name, args=args, type=type):
            function = semantics.intrinsic(name, scalar_of(args[0]), type)
            return function(*np.broadcast_arrays(*(_evaluate(arg, values) for arg in args)))
        case _:
            raise AssertionError(expr)


def run(
    driver: OpenCLDriver, kernel: Kernel, inputs: Sequence[np.ndarray], outputs: Sequence[Scalar]
) -> list[np.ndarray]:
    """Launch a kernel of `Pair.kernel` as printed, without passes; its outputs."""
    is_nvidia = driver.device.platform.name == nvidia.PLATFORM  # whose exact quotients are its own
    dialect = nvidia.dialect_for(DIALECT) if is_nvidia else DIALECT
    program = OpenCLProgram(driver, kernel.params, cfamily.emit(kernel, dialect), driver.options)
    count = inputs[0].size
    results = [np.zeros(count, semantics.dtype_of(scalar)) for scalar in outputs]
    bound = [
        driver.bind(array.view(np.uint8), read=True, written=k >= len(inputs))
        for k, array in enumerate((*inputs, *results))
    ]
    blocks = -(-count // BLOCK)
    program.launch((blocks, 1, 1), (BLOCK, 1, 1), 0, [*bound, np.int64(count)])
    for buffer in bound:
        driver.unbind(buffer)
    return results


def same_bits(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Where two arrays agree bit for bit; all NaNs are alike."""
    if actual.dtype.kind == "f":
        bits = np.dtype(f"u{actual.dtype.itemsize}")
        equal = actual.view(bits) == np.ascontiguousarray(expected).view(bits)
        return equal | (np.isnan(actual) & np.isnan(expected))
    return actual == expected


def check(
    driver: OpenCLDriver,
    pair: Pair,
    named: dict[str, Expr],
    left: np.ndarray,
    right: np.ndarray,
) -> None:
    """Run all expressions as one kernel; fails with every one that differs, and where."""
    kernel = pair.kernel(list(named.values()))
    types = [scalar_of(e) for e in named.values()]
    results = run(driver, kernel, (left, right), types)
    wrong = []
    for (name, expr), actual in zip(named.items(), results, strict=True):
        expected = pair.expected(expr, left, right)
        bad = np.flatnonzero(~same_bits(actual, expected))
        for k in bad[:3]:
            wrong.append(
                f"{name}: a={left[k]!r} b={right[k]!r} gives {actual[k]!r}, not {expected[k]!r}"
                f" ({bad.size} of {left.size})"
            )
    assert not wrong, f"on {driver.record.name}:\n" + "\n".join(wrong)


def operators(scalar: Scalar, pair: Pair) -> dict[str, Expr]:
    """Every operator and exact intrinsic that takes one or two operands of the type."""
    a, b = VarRef(pair.a), VarRef(pair.b)
    result: dict[str, Expr] = {}
    for op in BinOp:
        if _has(semantics.binary, op, scalar):
            result[op.name] = Binary(op, a, b)
    for op in UnOp:
        if _has(semantics.unary, op, scalar):
            result[f"unary {op.name}"] = Unary(op, a)
    for info in INTRINSICS.values():
        if scalar.kind in info.kinds and info.exact and info.name != "reinterpret":
            args = (a, b, Binary(BinOp.MUL, a, b))[: info.arity]
            type = Scalar.BOOL if info.result == "bool" else scalar
            result[info.name] = Intrinsic(("math",), info.name, args, type)
    return result


def _has(table: object, op: BinOp | UnOp, scalar: Scalar) -> bool:
    if scalar.is_float and op is UnOp.NOT:
        return False
    try:
        function = table(op, scalar)  # type: ignore[operator]
        one = np.ones(1, semantics.dtype_of(scalar))
        if isinstance(op, UnOp):
            function(one)
    except (KeyError, TypeError):
        return False
    return not (isinstance(op, UnOp) and op is UnOp.NOT and scalar is not Scalar.BOOL)
