"""Rules of warp operations."""

from __future__ import annotations

from collections.abc import Callable

from numba.core import types

from sarek_numba.frontend import language, warps
from sarek_numba.frontend.rules.registry import rule
from sarek_numba.frontend.typed import Constant, Operation, Type, Warp, WarpBarrier, WarpLane
from sarek_numba.frontend.weak import (
    WEAK_FLOAT,
    WEAK_INT,
    Refusal,
    WeakFloat,
    WeakInt,
    constant_of,
    describe,
    is_whole,
    operand,
)
from sarek_numba.ir.nodes import REDUCTIONS, SHUFFLES, VOTES, WarpOp
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.warps import mask_type

_NUMBERS = (types.Number, WeakInt, WeakFloat)


def attribute(name: str) -> Operation:
    """`warp.size`, a constant, and `warp.lane`."""
    width = warps.width()
    if name == "size":
        return Operation(Constant(width), (), WeakInt.of(width))
    return Operation(WarpLane(width), (), WEAK_INT)


@rule(language.warp_barrier)
def warp_barrier() -> Operation:
    warps.width()
    return Operation(WarpBarrier(), (), types.none)


def _exchanged(name: str, value: Type, bools: bool) -> Type:
    """The type of a value that a collective exchanges or combines; no constant any more."""
    if isinstance(value, types.Boolean) and bools:
        return value
    if not isinstance(value, _NUMBERS) or isinstance(value, types.Complex):
        hint = (
            "pass a number"
            if not isinstance(value, types.Boolean)
            else ("count with int(condition), or use sarek.warp.any, all or ballot")
        )
        with operand(0):
            raise Refusal(f"sarek.warp.{name}() takes a number, not {describe(value)}", hint)
    if isinstance(value, WeakInt):
        return WEAK_INT
    return WEAK_FLOAT if isinstance(value, WeakFloat) else value


def _segment(name: str, width: Type | None) -> int:
    whole = warps.width()
    if width is None or isinstance(width, types.NoneType):
        return whole
    with operand(2):
        given = constant_of(width)
        if not isinstance(width, WeakInt) or not isinstance(given, int):
            raise Refusal(
                f"the width of sarek.warp.{name}() is a constant, not {describe(width)}",
                "write a power of two, or sarek.warp.size",
            )
        if given < 1 or given & (given - 1):
            raise Refusal(
                f"the width of sarek.warp.{name}() is a power of two, not {given}",
                "write 1, 2, 4, 8, 16 or 32",
            )
        if given > whole:
            raise Refusal(
                f"a width of {given} is more than the {whole} threads of a warp of this device",
                "write a width of at most sarek.warp.size",
            )
    return int(given)


def _shuffled(op: WarpOp, value: Type, lane: Type, width: Type | None) -> Operation:
    name = op.value
    result = _exchanged(name, value, bools=True)
    if not is_whole(lane):
        what = {WarpOp.SHUFFLE: "lane", WarpOp.SHUFFLE_XOR: "mask"}.get(op, "distance")
        with operand(1):
            raise Refusal(
                f"the {what} of sarek.warp.{name}() is an integer, not {describe(lane)}",
                "cast it, as in int(x)",
            )
    return Operation(Warp(op, _segment(name, width)), (result, types.int64), result)


@rule(language.warp.shuffle)
def shuffle(value: Type, lane: Type, width: Type | None = None) -> Operation:
    return _shuffled(WarpOp.SHUFFLE, value, lane, width)


@rule(language.warp.shuffle_up)
def shuffle_up(value: Type, delta: Type, width: Type | None = None) -> Operation:
    return _shuffled(WarpOp.SHUFFLE_UP, value, delta, width)


@rule(language.warp.shuffle_down)
def shuffle_down(value: Type, delta: Type, width: Type | None = None) -> Operation:
    return _shuffled(WarpOp.SHUFFLE_DOWN, value, delta, width)


@rule(language.warp.shuffle_xor)
def shuffle_xor(value: Type, mask: Type, width: Type | None = None) -> Operation:
    return _shuffled(WarpOp.SHUFFLE_XOR, value, mask, width)


def _vote(op: WarpOp) -> Callable[[Type], Operation]:
    def resolve(condition: Type) -> Operation:
        _exchanged(op.value, condition, bools=True)
        ballot = op is WarpOp.BALLOT
        result = _mask() if ballot else types.boolean
        return Operation(Warp(op, warps.width()), (types.boolean,), result)

    return resolve


def _reduction(op: WarpOp) -> Callable[[Type], Operation]:
    def resolve(value: Type) -> Operation:
        result = _exchanged(op.value, value, bools=False)
        return Operation(Warp(op, warps.width()), (result,), result)

    return resolve


def _mask() -> Type:
    return types.uint32 if mask_type(warps.width()) is Scalar.UINT32 else types.uint64


for _op in VOTES:
    rule(getattr(language.warp, _op.value))(_vote(_op))
for _op in REDUCTIONS:
    rule(getattr(language.warp, _op.value))(_reduction(_op))
assert VOTES | REDUCTIONS | SHUFFLES | {WarpOp.ACTIVE_MASK} == set(WarpOp)


@rule(language.warp.active_mask)
def active_mask() -> Operation:
    return Operation(Warp(WarpOp.ACTIVE_MASK, warps.width()), (), _mask())
