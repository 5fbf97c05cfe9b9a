"""Loops that a driver gives up: every launch finds out, and none gives wrong results.

llvmpipe of Mesa 22.3 (gallivm, `lp_exec_endloop`) ends each loop when the loops of a subgroup have
made 65535 passes together (LP_MAX_TGSI_LOOP_ITERATIONS), and goes on behind it as if its condition
had failed. So a thread that leaves a loop says so in an element of an array, at an index that no
compiler knows, for else they all take it for said; behind the loop, a thread that has not said so
sets the word whose address is the launch's last argument, and returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sarek_numba.ir.nodes import Coordinate
from sarek_numba.ir.types import Scalar
from sarek_vulkan.code import Value

if TYPE_CHECKING:
    from sarek_vulkan.statements import Statements

_STORAGE = "PhysicalStorageBuffer"


def place(emitter: Statements) -> int | None:
    """Where threads say that they have left a loop which begins here; None if nothing is watched.

    A launch has one group at least, so the index is 0.
    """
    if emitter.program.watch is None:
        return None
    code, types = emitter.code, emitter.code.types
    array = code.variable(types.array(types.integer(32), 2))
    zero, one = (code.constant(Scalar.UINT32, n) for n in (0, 1))
    groups = emitter.program.coordinates.word(code, Coordinate.GRID_DIM, 0)
    index = code.select(code.is_zero(groups), one, zero)
    pointer = types.pointer("Function", types.integer(32))
    found = code.do("OpAccessChain", pointer, array, index.id)
    code.effect("OpStore", found, zero.id)
    return found


def leaves(emitter: Statements, place: int | None, condition: Value | None = None) -> None:
    """The thread leaves the loop here, if a condition holds."""
    if place is None:
        return
    code = emitter.code
    said = code.constant(Scalar.UINT32, 1) if condition is None else code.counted(condition)
    code.effect("OpStore", place, said.id)


def behind(emitter: Statements, place: int | None) -> None:
    """Return in a thread that has not left the loop, and have the launch know."""
    if place is None:
        return
    code, types = emitter.code, emitter.code.types
    is_lost = code.is_zero(code.value("OpLoad", Scalar.UINT32, place))
    lost, stays = code.label(), code.label()
    code.effect("OpSelectionMerge", stays, "None")
    code.end("OpBranchConditional", is_lost.id, lost, stays)
    code.start(lost)
    assert emitter.program.watch is not None
    address = code.value("OpLoad", Scalar.UINT64, emitter.program.watch)
    pointer = types.pointer(_STORAGE, types.integer(32))
    word = code.do("OpConvertUToPtr", pointer, address.id)
    code.effect("OpStore", word, code.constant(Scalar.UINT32, 1).id, "Aligned", 4)
    if emitter.result in (0, types.void):
        code.end("OpReturn")
    else:
        code.end("OpReturnValue", types.zero(emitter.result))
    code.start(stays)


def keep(emitter: Statements, address: Value) -> None:
    """At the head of the entry point: where all functions find the word's address."""
    assert emitter.program.watch is not None
    emitter.code.effect("OpStore", emitter.program.watch, address.id)
