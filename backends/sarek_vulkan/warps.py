"""Collectives of a warp: shuffles, of which the passes make all others (`Target.shuffles_only`).

A lane is the thread's linear index in the block modulo the width, which is how Vulkan numbers the
invocations of full subgroups; the runtime vouches for it (SPIR-V's own number is not asked for, so
that lanes are those of every other device). A type goes through the shuffle in words of 32 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sarek_numba.ir.nodes import Coordinate, Warp, WarpOp
from sarek_numba.ir.types import BOOL, Scalar
from sarek_vulkan.code import Code, Value
from sarek_vulkan.opcodes import SCOPE
from sarek_vulkan.synchronisation import word

if TYPE_CHECKING:
    from sarek_vulkan.statements import Statements


def leave_if_no_thread(emitter: Statements) -> None:
    """Return in the lanes beyond the end of a row of the block, if the device runs such.

    llvmpipe masks what they write, but they go round a loop until it ends for them too: where its
    end depends on memory, of which they see zeros, it may never come. The lane's own number is
    asked as well because compilers take the only place of a row of one for 0.
    """
    code, place = emitter.code, emitter.program.coordinates
    row = place.word(code, Coordinate.BLOCK_DIM, 0)
    outside = code.either(
        code.compare("ge", place.word(code, Coordinate.THREAD_IDX, 0), row),
        code.compare("ge", _own(emitter), row),
    )
    leaves, stays = code.label(), code.label()
    code.effect("OpSelectionMerge", stays, "None")
    code.end("OpBranchConditional", outside.id, leaves, stays)
    code.start(leaves)
    code.end("OpReturn")
    code.start(stays)


def _own(emitter: Statements) -> Value:
    """The number of the thread in its subgroup."""
    code, type = emitter.code, emitter.code.types.integer(32)
    code.assembler.capability("GroupNonUniform")
    builtin = emitter.program.coordinates.built_in("SubgroupLocalInvocationId", type)
    return code.value("OpLoad", Scalar.UINT32, builtin)


def collective(emitter: Statements, stmt: Warp) -> None:
    """One collective; declares the variable of its result."""
    code, type = emitter.code, stmt.result.type
    assert isinstance(type, Scalar)
    if stmt.op is WarpOp.ACTIVE_MASK:
        emitter.bind(stmt.result, _existing(emitter, stmt.width, type))
        return
    assert stmt.value is not None
    assert stmt.lane is not None
    value, lane = emitter.expression(stmt.value), emitter.expression(stmt.lane)
    source = _source(emitter, stmt, lane)
    emitter.bind(stmt.result, _exchanged(code, value, source))


def _existing(emitter: Statements, width: int, type: Scalar) -> Value:
    """The lanes of a warp, all of which take part; fewer in the last one of a block."""
    code, place = emitter.code, emitter.program.coordinates

    def thread(axis: int) -> Value:
        return place.word(code, Coordinate.THREAD_IDX, axis)

    sizes = [place.word(code, Coordinate.BLOCK_DIM, axis) for axis in range(3)]
    row = code.add(code.mul(thread(2), sizes[1]), thread(1))
    linear = code.add(code.mul(row, sizes[0]), thread(0))
    first = code.both(linear, code.constant(Scalar.UINT32, -width))
    threads = code.mul(code.mul(sizes[0], sizes[1]), sizes[2])
    left, one = code.sub(threads, first), code.constant(type, 1)
    is_whole = code.compare("ge", left, code.constant(Scalar.UINT32, width))
    count = code.both(left, code.constant(Scalar.UINT32, width - 1))
    part = code.sub(code.shifted("left", one, count), one)
    whole = code.constant(type, (1 << width) - 1)
    return code.select(is_whole, whole, part)


def _source(emitter: Statements, stmt: Warp, lane: Value) -> Value:
    """The subgroup's invocation whose value a lane gets."""
    code, own = emitter.code, _own(emitter)
    place = code.both(own, code.constant(Scalar.UINT32, stmt.width - 1))
    # `lane` is of 32 or 64 bits; what leaves the segment, as an unsigned number, gives the own
    wide = code.bits_of(lane)
    here = code.resized(place, wide.type)
    match stmt.op:
        case WarpOp.SHUFFLE:
            target = wide
        case WarpOp.SHUFFLE_UP:
            target = code.sub(here, wide)
        case WarpOp.SHUFFLE_DOWN:
            target = code.add(here, wide)
        case _:
            target = code.bitwise("xor", here, wide)
    inside = code.compare("lt", target, code.constant(target.type, stmt.width))
    first = code.sub(own, place)
    other = code.add(first, code.resized(target, Scalar.UINT32))
    return code.select(inside, other, own)


def _exchanged(code: Code, value: Value, source: Value) -> Value:
    type = value.type
    if type is BOOL:
        one, zero = code.constant(Scalar.UINT32, 1), code.constant(Scalar.UINT32, 0)
        return code.compare("ne", _shuffle(code, code.select(value, one, zero), source), zero)
    bits = code.bits_of(value)
    if type.bits < 64:
        moved = _shuffle(code, code.resized(bits, Scalar.UINT32), source)
        return code.reinterpreted(code.resized(moved, bits.type), type)
    half = code.constant(Scalar.UINT32, 32)
    low = _shuffle(code, code.resized(bits, Scalar.UINT32), source)
    top = code.resized(code.shifted("right", bits, half), Scalar.UINT32)
    high = code.resized(_shuffle(code, top, source), Scalar.UINT64)
    whole = code.either(code.shifted("left", high, half), code.resized(low, Scalar.UINT64))
    return code.reinterpreted(whole, type)


def _shuffle(code: Code, value: Value, source: Value) -> Value:
    code.assembler.capability("GroupNonUniformShuffle")
    scope = word(code, SCOPE["Subgroup"])
    return code.value("OpGroupNonUniformShuffle", value.type, scope, value.id, source.id)
