"""Findings that refuse nothing: float64 that nobody asked for, accumulators that are narrow."""

from __future__ import annotations

import operator
from typing import Any

from numba.core import ir, types

from sarek_numba.errors import Diagnostic, TypingError
from sarek_numba.frontend.complexes import WeakComplex
from sarek_numba.frontend.inferer import Inferer
from sarek_numba.frontend.names import user_name
from sarek_numba.frontend.typed import Binary, Complex, Intrinsic, Operation, Type, What
from sarek_numba.frontend.weak import Weak, describe, is_integer


def notes_on(inferer: Inferer) -> list[Diagnostic]:
    """All notes on one typed function, in the order of its text."""
    notes = [
        note
        for key, operation in inferer.operations.items()
        for note in _unasked_float64(inferer, key, operation)
    ]
    for block in inferer.blocks.values():
        for inst in block.body:
            notes += _narrow_accumulator(inferer, inst)
    unique = {(note.message, note.span): note for note in notes}
    return sorted(
        unique.values(), key=lambda d: (d.span.line, d.span.column or 0) if d.span else (0, 0)
    )


def _unasked_float64(inferer: Inferer, key: Any, operation: Operation) -> list[Diagnostic]:
    """A float64 result of operands of which none is one."""
    wide = (types.float64, types.complex128)
    if not _computes(operation.what) or operation.result not in wide:
        return []
    given = [_type_of(inferer, argument) for argument in operation.arguments]
    given = [getattr(kind, "owner", kind) for kind in given]  # of a method
    if any(kind in wide for kind in given):
        return []
    if all(isinstance(kind, (Weak, WeakComplex)) for kind in given):
        return []
    shown = " and ".join(describe(kind) for kind in given)
    return [
        Diagnostic(
            TypingError,
            f"the result of {shown} is {operation.result}",
            inferer.source.span_of(key.loc),
            f"write sarek.float32(...) around {_shown(given)}, if float32 is enough",
        )
    ]


def _computes(what: What) -> bool:
    """Whether an operation is arithmetic, and no conversion."""
    if isinstance(what, Complex):
        return what.name not in ("convert", "make", "method")
    return isinstance(what, (Binary, Intrinsic))


def _shown(given: list[Type]) -> str:
    """The operands that make it float64."""
    narrow = (types.float32, types.complex64)
    strong = [k for k in given if not isinstance(k, (Weak, WeakComplex)) and k not in narrow]
    if len(strong) == 1 or len(set(strong)) > 1:
        return " and ".join(f"the {kind}" for kind in strong)
    return f"each {strong[0]}"


def _type_of(inferer: Inferer, argument: Any) -> Type:
    return inferer.type_of(argument.name) if isinstance(argument, ir.Var) else argument.type


def _narrow_accumulator(inferer: Inferer, inst: Any) -> list[Diagnostic]:
    """A variable that starts as a Python int and sums up 8- or 16-bit integers in a loop."""
    if not (
        isinstance(inst, ir.Assign) and isinstance(inst.value, ir.Expr) and inst.value.op == "phi"
    ):
        return []
    kind = inferer.type_of(inst.target.name)
    if kind is None or not (is_integer(kind) and kind.bitwidth < 32) or inst.target.is_temp:
        return []
    sources = [v for v in inst.value.incoming_values if v is not ir.UNDEFINED]
    if not any(isinstance(inferer.type_of(v.name), Weak) for v in sources):
        return []
    if not _accumulates(inferer, inst.target):
        return []
    return [
        Diagnostic(
            TypingError,
            f"{user_name(inst.target.name)!r} is {kind}, as NumPy has it, and wraps at its limits",
            inferer.source.span_of(sources[0]),
            "start it as sarek.int64(0) for a wide sum",
        )
    ]


_GROWS = (operator.add, operator.sub, operator.mul, operator.lshift, operator.pow)
_GROWS_IN_PLACE = (
    operator.iadd, operator.isub, operator.imul, operator.ilshift, operator.ipow
)  # fmt: skip


def _accumulates(inferer: Inferer, target: ir.Var) -> bool:
    """Whether a value that reaches a phi is made of the variable itself by arithmetic."""
    pending, met = [target.name], set()
    while pending:
        name = pending.pop()
        if name in met:
            continue
        met.add(name)
        value = getattr(inferer.definitions.get(name), "value", None)
        if isinstance(value, ir.Var):
            pending.append(value.name)
        elif isinstance(value, ir.Expr) and value.op == "phi":
            pending += [v.name for v in value.incoming_values if v is not ir.UNDEFINED]
        elif isinstance(value, ir.Expr) and value.op in ("binop", "inplace_binop"):
            operands = (value.lhs, value.rhs)
            if value.fn in (*_GROWS, *_GROWS_IN_PLACE) and any(
                user_name(operand.name) == user_name(target.name) for operand in operands
            ):
                return True
    return False
