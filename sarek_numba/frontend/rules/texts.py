"""Calls of functions that are given by texts: what they take, what they give.

A text takes numbers and contiguous arrays in global or shared memory, whose elements are numbers,
and gives a number or nothing. It waits for no other thread: a device may call it thread by thread.
"""

from __future__ import annotations

from typing import Any

from numba.core import types

from sarek_numba.frontend import typed as t
from sarek_numba.frontend.extensions import space_of
from sarek_numba.frontend.intrinsics import RegisteredIntrinsic
from sarek_numba.frontend.rules.types import numba_type
from sarek_numba.frontend.texts import InlineSource
from sarek_numba.frontend.typed import Type, Typed
from sarek_numba.frontend.weak import (
    Refusal,
    WeakFloat,
    WeakInt,
    describe,
    dtype_of,
    is_number,
    operand,
)
from sarek_numba.ir.types import MemSpace


def operands_of(callee: InlineSource, operands: tuple[Type, ...]) -> tuple[Type, ...]:
    """The types that the arguments of a call are converted to. Raises Refusal."""
    if isinstance(callee, RegisteredIntrinsic):
        return _stated(callee, operands)
    for position, kind in enumerate(operands):
        with operand(position):
            _check_operand(callee.name, kind)
    return operands


def _stated(callee: RegisteredIntrinsic, operands: tuple[Type, ...]) -> tuple[Type, ...]:
    for position, kind in enumerate(operands):
        if not is_number(kind):
            with operand(position):
                raise Refusal(
                    f"{callee.name}() takes {callee.shown()}, not {describe(kind)}",
                    "pass a number, such as an element",
                )
    signature = callee.signature_for(tuple(map(_kind_of, operands)))
    if signature is None:
        given = ", ".join(map(describe, operands))
        raise Refusal(
            f"{callee.name}() takes {callee.shown()}, not ({given})", "cast the arguments"
        )
    return tuple(map(numba_type, signature.arguments))


def _kind_of(kind: Type) -> Any:
    if isinstance(kind, WeakInt):
        return int
    return float if isinstance(kind, WeakFloat) else dtype_of(kind)


def _check_operand(name: str, kind: Type) -> None:
    if is_number(kind):
        return
    if not isinstance(kind, types.Array):
        raise Refusal(
            f"{name}() is given by a text, and takes numbers and arrays, not {describe(kind)}",
            _HINT,
        )
    if not is_number(kind.dtype) or not kind.aligned:
        raise Refusal(
            f"{name}() is given by a text, and takes arrays of numbers, not {describe(kind)}", _HINT
        )
    if space_of(kind) not in (MemSpace.GLOBAL, MemSpace.SHARED):
        raise Refusal(
            f"{name}() is given by a text, and takes no array in {space_of(kind).value} memory",
            "pass an argument of the kernel, or a shared array",
        )
    if kind.layout != "C" and not (kind.ndim == 1 and kind.layout == "F"):
        raise Refusal(
            f"{name}() is given by a text, and takes arrays whose elements lie side by side",
            "launch with a C-contiguous array, as numpy.ascontiguousarray makes one",
        )


_HINT = "pass numbers, or arrays of numbers"


def _check_stated_result(callee: RegisteredIntrinsic, typed: Typed) -> None:
    given = tuple(parameter.type for parameter in typed.parameters)
    signature = callee.signature_for(tuple(map(_kind_of, given)))
    assert signature is not None
    wanted = numba_type(signature.result)
    if typed.result != wanted:
        raise Refusal(
            f"{callee.name}() is {signature}, and its reference returns {describe(typed.result)}",
            f"let the reference return np.{signature.result.name}(...)",
        )


def check_result(callee: InlineSource, typed: Typed) -> None:
    """Refuse a fallback that a text cannot stand for."""
    name = callee.name
    if isinstance(callee, RegisteredIntrinsic):
        _check_stated_result(callee, typed)
    if not is_number(typed.result) and not isinstance(typed.result, types.NoneType):
        raise Refusal(
            f"{name}() is given by a text, and its fallback returns {describe(typed.result)}",
            "return one number, or store into an array",
        )
    for each in (typed, *typed.callees):
        for operation in each.operations.values():
            if isinstance(operation.what, t.Barrier | t.WarpBarrier | t.Warp):
                raise Refusal(
                    f"{name}() is given by a text, and its fallback waits for other threads",
                    "let the kernel do that before or after the call",
                )
