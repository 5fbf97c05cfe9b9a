"""Masks: which lanes run. None stands for all of them, known while emitting.

Two masks with the same text are the same set of lanes, so `mask == loop.mask` says, without any
code, that every lane of the loop is here. A conjunction is a select and not an `and`: a condition
may be poison in a lane that does not run, and must not spread.
"""

from __future__ import annotations

from sarek_native.builder import Code
from sarek_native.values import Value
from sarek_numba.ir.types import Scalar

Mask = str | None


def text(code: Code, mask: Mask) -> str:
    return "splat (i1 true)" if mask is None else mask


def narrow(code: Code, mask: Mask, condition: str) -> str:
    """The lanes of `mask` where `condition` (a vector) holds."""
    if mask is None:
        return condition
    type = code.vector("i1")
    return code.define(f"select {type} {mask}, {type} {condition}, {type} zeroinitializer")


def exclude(code: Code, mask: Mask, condition: str) -> str:
    """The lanes of `mask` where `condition` (a vector) does not hold."""
    opposite = code.define(f"xor {code.vector('i1')} {condition}, splat (i1 true)")
    return narrow(code, mask, opposite)


def bits(code: Code, mask: Mask) -> str:
    """The mask as an integer of `width` bits, lane 0 lowest."""
    type = code.vector("i1")
    return code.define(f"bitcast {type} {text(code, mask)} to i{code.width}")


def as_i64(code: Code, bits: str) -> str:
    """An integer of `width` bits as i64."""
    return bits if code.width == 64 else code.define(f"zext i{code.width} {bits} to i64")


def any_lane(code: Code, mask: Mask) -> str:
    """An i1: does any lane run?"""
    if mask is None:
        return "true"
    return code.define(f"icmp ne i{code.width} {bits(code, mask)}, 0")


def every_lane(code: Code, mask: str) -> str:
    """An i1: do all lanes run?"""
    return code.define(f"icmp eq i{code.width} {bits(code, mask)}, -1")


def no_lane(code: Code, mask: str) -> str:
    """An i1: does no lane run?"""
    return code.define(f"icmp eq i{code.width} {bits(code, mask)}, 0")


def first_lane(code: Code, mask: Mask) -> str:
    """The number (i64) of the first lane that runs; at least one does."""
    if mask is None:
        return "0"
    integer = f"i{code.width}"
    lane = code.define(f"call {integer} @llvm.cttz({integer} {bits(code, mask)}, i1 true)")
    return as_i64(code, lane)


def last_lane(code: Code, mask: Mask) -> str:
    """The number (i64) of the last lane that runs; at least one does."""
    if mask is None:
        return str(code.width - 1)
    integer = f"i{code.width}"
    zeros = code.define(f"call {integer} @llvm.ctlz({integer} {bits(code, mask)}, i1 true)")
    lane = code.define(f"sub {integer} {code.width - 1}, {zeros}")
    return as_i64(code, lane)


class Live:
    """The lanes that are still in a loop, an iteration or a function: a mask in a slot."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.pointer = code.alloca(code.vector("i1"))

    def set(self, mask: Mask) -> None:
        code = self.code
        code.effect(f"store {code.vector('i1')} {text(code, mask)}, ptr {self.pointer}")

    def get(self) -> str:
        return self.code.define(f"load {self.code.vector('i1')}, ptr {self.pointer}")

    def remove(self, mask: Mask) -> None:
        if mask is None:
            type = self.code.vector("i1")
            self.code.effect(f"store {type} zeroinitializer, ptr {self.pointer}")
        else:
            self.set(exclude(self.code, self.get(), mask))


def condition_lanes(code: Code, condition: Value) -> str:
    assert condition.type is Scalar.BOOL
    return code.spread(condition)
