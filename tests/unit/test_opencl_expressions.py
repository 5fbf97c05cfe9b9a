"""Random expressions of mixed types: what the printer writes means what `ir.semantics` says."""

from __future__ import annotations

import random

import pytest
from opencl_kernels import (
    FLOATS,
    INTEGERS,
    SCALARS,
    Pair,
    boundary_values,
    check,
    drivers,
    pairs,
)

from sarek_numba.ir.nodes import (
    COMPARISONS,
    SHIFTS,
    Binary,
    BinOp,
    Cast,
    Expr,
    IfExpr,
    Intrinsic,
    Unary,
    UnOp,
    Var,
    VarRef,
    constant,
)
from sarek_numba.ir.types import BOOL, Scalar

pytestmark = [
    pytest.mark.skipif(not drivers(), reason="no OpenCL device"),
    pytest.mark.parametrize("device", sorted(drivers())),
]

_LOGIC = (BinOp.AND, BinOp.OR)
_BITS = (BinOp.BITAND, BinOp.BITOR, BinOp.BITXOR)
_ARITHMETIC = tuple(op for op in BinOp if op not in (*COMPARISONS, *_LOGIC, *_BITS, *SHIFTS))


class _Generator:
    def __init__(self, seed: int, variables: tuple[Var, Var]) -> None:
        self.random = random.Random(seed)
        self.variables = variables

    def expression(self, type: Scalar, depth: int) -> Expr:
        if depth == 0 or self.random.random() < 0.1:
            return self.leaf(type)
        below = depth - 1
        if type is BOOL:
            return self.boolean(below)
        choice = self.random.random()
        if choice < 0.12:
            parts = (BOOL, type, type)
            return IfExpr(*(self.expression(part, below) for part in parts))
        if choice < 0.3:
            return Cast(type, self.expression(self.random.choice(SCALARS), below))
        if choice < 0.38:
            return Unary(UnOp.NEG, self.expression(type, below))
        if choice < 0.44:
            name = self.random.choice(("abs", "min", "maximum"))
            args = [self.expression(type, below) for _ in range(1 if name == "abs" else 2)]
            return Intrinsic(("math",), name, tuple(args), type)
        if type.is_integer and choice < 0.48:
            return Unary(UnOp.BITNOT, self.expression(type, below))
        if type.is_integer and choice < 0.6:
            count = self.expression(self.random.choice(INTEGERS), below)
            shift = self.random.choice((BinOp.SHL, BinOp.SHR))
            return Binary(shift, self.expression(type, below), count)
        ops = (*_ARITHMETIC[:3], *_ARITHMETIC, *(_BITS if type.is_integer else ()))
        return self.binary(self.random.choice(ops), type, below)

    def boolean(self, depth: int) -> Expr:
        choice = self.random.random()
        if choice < 0.6:
            return self.binary(
                self.random.choice(tuple(COMPARISONS)), self.random.choice(SCALARS), depth
            )
        if choice < 0.8:
            return self.binary(self.random.choice((*_LOGIC, *_BITS)), BOOL, depth)
        if choice < 0.9:
            return Unary(UnOp.NOT, self.expression(BOOL, depth))
        return Cast(BOOL, self.expression(self.random.choice(SCALARS), depth))

    def binary(self, op: BinOp, type: Scalar, depth: int) -> Expr:
        return Binary(op, self.expression(type, depth), self.expression(type, depth))

    def leaf(self, type: Scalar) -> Expr:
        same = [v for v in self.variables if v.type is type]
        choice = self.random.random()
        if same and choice < 0.8:
            return VarRef(self.random.choice(same))
        if choice < 0.5:
            return Cast(type, VarRef(self.random.choice(self.variables)))
        if type in FLOATS and choice < 0.7:
            return constant(type, self.random.choice((0.1, -1.5, 2.0, -0.0)))
        return constant(type, self.random.choice(boundary_values(type)).item())


# COMPARISONS is a set: its order must not depend on the process
COMPARISONS = tuple(sorted(COMPARISONS, key=lambda op: op.name))  # type: ignore[assignment]


@pytest.mark.parametrize("seed", range(6))
def test_random_expressions(device: str, seed: int, request: pytest.FixtureRequest) -> None:
    """Trees of five levels over all types and operators, on boundary values."""
    if device.startswith("opencl:nvidia") and seed == 0:
        reason = "driver 580: -int16(-int16(uint16 32768)) is 32768 in 32 bits (docs/devices.md)"
        request.applymarker(pytest.mark.xfail(strict=True, reason=reason))
    generator = random.Random(seed)
    left, right = generator.choice(SCALARS), generator.choice(INTEGERS)
    pair = Pair(left, right)
    trees = _Generator(seed, (pair.a, pair.b))
    named = {f"expression {k}": trees.expression(generator.choice(SCALARS), 5) for k in range(24)}
    inputs = pairs(boundary_values(left), boundary_values(right)[::3])
    check(drivers()[device], pair, named, *inputs)
