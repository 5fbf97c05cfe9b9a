"""Warp collectives: a warp is one lane group, whose width is that of the warp.

A collective stands where all lanes of the group run, so it asks no mask. A warp wider than the
machine's vectors is several registers, which LLVM makes of one value.
"""

from __future__ import annotations

from sarek_native import masks
from sarek_native.builder import Code
from sarek_native.expressions import emit
from sarek_native.operators import cast
from sarek_native.state import State
from sarek_native.values import REGISTER, Value, memory_type
from sarek_numba.ir.nodes import REDUCTIONS, SHUFFLES, Const, Kernel, Warp, WarpOp
from sarek_numba.ir.types import BOOL, INT64, Kind, Scalar
from sarek_numba.ir.warps import has_meetings, mask_type


def lanes_for(kernel: Kernel, lanes: int) -> int:
    """The width of a lane group: that of the machine, unless warps work together."""
    return (kernel.warp_width or lanes) if has_meetings(kernel) else lanes


def emit_warp(state: State, stmt: Warp) -> None:
    """Bind the result of a collective."""
    value = _collective(state, stmt)
    if state.varies(stmt.result):
        state.bind(stmt.result, state.code.as_lanes(value))
    else:
        state.bind(stmt.result, state.scalar(value))


def _collective(state: State, stmt: Warp) -> Value:
    code, op = state.code, stmt.op
    if stmt.value is None:
        return _mask(code, masks.text(code, state.mask))
    value = emit(state, stmt.value)
    if op in SHUFFLES:
        assert stmt.lane is not None
        return _shuffle(state, stmt, value)
    if op in REDUCTIONS:
        return _reduced(code, op, value)
    flags = code.spread(value)
    match op:
        case WarpOp.ALL:
            return Value(BOOL, masks.every_lane(code, flags))
        case WarpOp.ANY:
            return Value(BOOL, masks.any_lane(code, flags))
        case _:
            return _mask(code, flags)


def _mask(code: Code, flags: str) -> Value:
    type = mask_type(code.width)
    bits = masks.bits(code, flags)
    if type.bits == code.width:
        return Value(type, bits)
    return Value(type, code.define(f"zext i{code.width} {bits} to i{type.bits}"))


# --- shuffles -------------------------------------------------------------------------------------


def _shuffle(state: State, stmt: Warp, value: Value) -> Value:
    code = state.code
    assert stmt.lane is not None
    if value.uniform:
        return value
    if isinstance(stmt.lane, Const):
        return _permuted(
            code, value, sources(stmt.op, int(stmt.lane.value), stmt.width, code.width)
        )
    lane = code.spread(cast(code, emit(state, stmt.lane), INT64))
    return _gathered(code, value, _source_lanes(code, stmt.op, lane, stmt.width))


def sources(op: WarpOp, lane: int, width: int, lanes: int) -> list[int]:
    """The lane from which each lane takes its value."""
    found = []
    for own in range(lanes):
        place = own % width
        match op:
            case WarpOp.SHUFFLE:
                source = lane
            case WarpOp.SHUFFLE_UP:
                source = place - lane
            case WarpOp.SHUFFLE_DOWN:
                source = place + lane
            case _:
                source = place ^ lane
        found.append(own - place + source if 0 <= source < width else own)
    return found


def _permuted(code: Code, value: Value, order: list[int]) -> Value:
    vector = code.vector(REGISTER[value.type])
    lanes = ", ".join(f"i32 {lane}" for lane in order)
    text = code.define(
        f"shufflevector {vector} {code.spread(value)}, {vector} poison, "
        f"<{code.width} x i32> <{lanes}>"
    )
    return Value(value.type, text, lanes=True)


def _source_lanes(code: Code, op: WarpOp, lane: str, width: int) -> str:
    """As `sources`, for lanes known at run time: a vector of i64."""
    i64, own = code.vector("i64"), code.iota("i64")
    place = code.define(f"and {i64} {own}, {code.splat('i64', str(width - 1))}")
    source = lane
    if op is not WarpOp.SHUFFLE:
        word = {WarpOp.SHUFFLE_UP: "sub", WarpOp.SHUFFLE_DOWN: "add"}.get(op, "xor")
        source = code.define(f"{word} {i64} {place}, {lane}")
    inside = code.define(f"icmp ult {i64} {source}, {code.splat('i64', str(width))}")
    start = code.define(f"sub {i64} {own}, {place}")
    other = code.define(f"add {i64} {start}, {source}")
    return code.define(f"select {code.vector('i1')} {inside}, {i64} {other}, {i64} {own}")


def _gathered(code: Code, value: Value, order: str) -> Value:
    element, vector = memory_type(value.type), code.memory(value.type, True)
    buffer = code.alloca(vector)
    code.effect(f"store {vector} {code.to_memory(value, True)}, ptr {buffer}")
    pointers = code.define(f"getelementptr {element}, ptr {buffer}, {code.vector('i64')} {order}")
    align = max(1, value.type.bits // 8)
    found = code.define(
        f"call {vector} @llvm.masked.gather({code.vector('ptr')} align {align} {pointers}, "
        f"{code.vector('i1')} splat (i1 true), {vector} poison)"
    )
    return code.from_memory(value.type, found, True)


# --- reductions -----------------------------------------------------------------------------------


def _reduced(code: Code, op: WarpOp, value: Value) -> Value:
    """The upper half joins the lower one, until one lane is left."""
    register = REGISTER[value.type]
    text, lanes = code.spread(value), code.width
    while lanes > 1:
        half = lanes // 2
        parts = [_part(code, text, register, lanes, first) for first in (0, half)]
        text = _joined(code, op, value.type, f"<{half} x {register}>", f"<{half} x i1>", *parts)
        lanes = half
    return Value(value.type, code.define(f"extractelement <1 x {register}> {text}, i64 0"))


def _part(code: Code, text: str, register: str, lanes: int, first: int) -> str:
    half = lanes // 2
    order = ", ".join(f"i32 {lane}" for lane in range(first, first + half))
    vector = f"<{lanes} x {register}>"
    return code.define(f"shufflevector {vector} {text}, {vector} poison, <{half} x i32> <{order}>")


def _joined(
    code: Code, op: WarpOp, type: Scalar, vector: str, flags: str, left: str, right: str
) -> str:
    if op is WarpOp.SUM:
        word = "fadd" if type.is_float else "add"
        return code.define(f"{word} {vector} {left}, {right}")
    order = "le" if op is WarpOp.MIN else "ge"
    if not type.is_float:
        sign = "s" if type.kind is Kind.SIGNED else "u"
        first = code.define(f"icmp {sign}{order} {vector} {left}, {right}")
    else:  # fmin and fmax: the left one where it is not worse or the right one is no number
        better = code.define(f"fcmp o{order} {vector} {left}, {right}")
        alone = code.define(f"fcmp uno {vector} {right}, {right}")
        first = code.define(f"or {flags} {better}, {alone}")
    return code.define(f"select {flags} {first}, {vector} {left}, {vector} {right}")
