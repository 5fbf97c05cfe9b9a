"""Devices that compute wrongly in one way: the interpreter, with the IR of kernels changed.

They show that each check of numerics can fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sarek_interp.driver import InterpreterDriver, InterpreterProgram
from sarek_numba.codegen.target import Target
from sarek_numba.ir import build
from sarek_numba.ir.nodes import Binary, BinOp, Cast, Expr, Intrinsic, Kernel
from sarek_numba.ir.types import FLOAT32, FLOAT64, INT64, Scalar
from sarek_numba.ir.typing import type_of
from sarek_numba.ir.walk import map_body_expressions, map_expr
from sarek_numba.passes.common import map_bodies
from sarek_numba.runtime.registry import Device

Tamper = Callable[[Expr], Expr]


class TamperedDriver(InterpreterDriver):
    """`tamper` changes each node of each expression, operands first."""

    def __init__(self, tamper: Tamper, target: Target | None = None, **fields: Any) -> None:
        super().__init__()
        from dataclasses import replace

        self.record = replace(self.record, name="tampered:0", backend="tampered", **fields)
        self.tamper = tamper
        self.target = target

    def prepare(self, kernel: Kernel) -> InterpreterProgram:
        changed = map_bodies(
            kernel,
            lambda body: map_body_expressions(body, lambda root: map_expr(root, self.tamper)),
        )
        return super().prepare(changed)


def tampered(tamper: Tamper, **options: Any) -> Device:
    return Device(TamperedDriver(tamper, **options))


def unchanged(expr: Expr) -> Expr:
    return expr


# --- ways to be wrong -----------------------------------------------------------------------------


def _float(expr: Expr) -> Scalar | None:
    """The float type that an operation computes in, or None."""
    match expr:
        case Binary(op=BinOp.ADD | BinOp.SUB | BinOp.MUL | BinOp.DIV, left=operand):
            found = type_of(operand)
        case Intrinsic(name="sqrt" | "fma", type=type):
            found = type
        case _:
            return None
    return found if found in (FLOAT32, FLOAT64) else None  # type: ignore[return-value]


def reciprocal_division(expr: Expr) -> Expr:
    match expr:
        case Binary(op=BinOp.DIV, left=left, right=right) if _float(expr):
            return build.mul(left, build.div(build.lit(_float(expr), 1.0), right))  # type: ignore
    return expr


def root_by_reciprocal(expr: Expr) -> Expr:
    match expr:
        case Intrinsic(name="sqrt", args=(x,), type=type):
            return build.mul(x, build.div(build.lit(type, 1.0), expr))
    return expr


def contracting(expr: Expr) -> Expr:
    match expr:
        case Binary(op=BinOp.ADD, left=Binary(op=BinOp.MUL, left=a, right=b), right=c):
            return build.intrinsic("fma", a, b, c) if _float(expr) else expr
    return expr


def fma_of_two_roundings(expr: Expr) -> Expr:
    match expr:
        case Intrinsic(name="fma", args=(a, b, c)):
            return build.add(build.mul(a, b), c)
    return expr


def _flushed(x: Expr, type: Scalar) -> Expr:
    tiny = build.lit(type, float(np.finfo(type.value).tiny))
    small = build.lt(build.intrinsic("abs", x), tiny)
    return build.select(small, build.intrinsic("copysign", build.lit(type, 0.0), x), x)


def flushing_results(expr: Expr) -> Expr:
    type = _float(expr)
    return expr if type is None else _flushed(expr, type)


def flushing_operands(expr: Expr) -> Expr:
    type = _float(expr)
    match expr:
        case Binary(op=op, left=left, right=right) if type:
            return Binary(op, _flushed(left, type), _flushed(right, type))
        case Intrinsic(name=name, args=args) if type:
            return build.intrinsic(name, *(_flushed(one, type) for one in args))
    return expr


def rounding_to_zero(expr: Expr) -> Expr:
    match expr:
        case Binary(op=BinOp.MUL) if _float(expr):
            return build.intrinsic("nextafter", expr, build.lit(_float(expr), 0.0))  # type: ignore
    return expr


def losing_nan(expr: Expr) -> Expr:
    type = _float(expr)
    if type is None:
        return expr
    return build.select(build.intrinsic("isnan", expr), build.lit(type, 0.0), expr)


def losing_signs_of_zeros(expr: Expr) -> Expr:
    type = _float(expr)
    return expr if type is None else build.add(expr, build.lit(type, 0.0))


def wrapping_conversion(expr: Expr) -> Expr:
    match expr:
        case Cast(type=target, operand=operand) if target.is_integer and target.bits == 32:
            return build.cast(target, build.cast(INT64, operand))
    return expr


def rounding_twice(expr: Expr) -> Expr:
    match expr:
        case Cast(type=Scalar.FLOAT32, operand=operand):
            return build.cast(FLOAT32, build.cast(FLOAT64, operand))
    return expr


def truncating_division(expr: Expr) -> Expr:
    match expr:
        case Binary(op=BinOp.FLOORDIV, left=left, right=right):
            return build.div(left, right)
    return expr
