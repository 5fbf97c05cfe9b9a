"""Atomic operations, relaxed: the device's own where it has one, else a loop of compare-and-swap.

Floating-point operations that are loops work on the bits. A minimum or maximum of floats is `fmin`
or `fmax` of the IR, whose zeros and NaNs no device is asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sarek_numba.errors import CapabilityError, InvalidIR
from sarek_numba.ir.nodes import Atomic, AtomicOp, Coordinate
from sarek_numba.ir.types import MemSpace, Scalar
from sarek_vulkan import functions, watch
from sarek_vulkan.arrays import Buffer, View, from_memory, to_memory
from sarek_vulkan.code import Code, Value, signed
from sarek_vulkan.opcodes import SCOPE
from sarek_vulkan.synchronisation import word

if TYPE_CHECKING:
    from sarek_vulkan.statements import Statements

_INTEGER: Mapping[AtomicOp, str] = {
    AtomicOp.ADD: "OpAtomicIAdd",
    AtomicOp.SUB: "OpAtomicISub",
    AtomicOp.AND: "OpAtomicAnd",
    AtomicOp.OR: "OpAtomicOr",
    AtomicOp.XOR: "OpAtomicXor",
}
_ORDERED: Mapping[AtomicOp, str] = {AtomicOp.MIN: "Min", AtomicOp.MAX: "Max"}
_FLOAT: Mapping[AtomicOp, tuple[str, str, str]] = {
    AtomicOp.ADD: ("OpAtomicFAddEXT", "AddEXT", "SPV_EXT_shader_atomic_float_add"),
}


class _Place:
    """The element that an operation changes: its bits, and in which scope."""

    def __init__(self, emitter: Statements, stmt: Atomic) -> None:
        code, program = emitter.code, emitter.program
        array = emitter.array(stmt.array)
        if isinstance(array, View) and array.word.bits != array.element.bits:
            raise CapabilityError(
                f"Vulkan has no atomics on {array.element.value} in dynamic shared memory that is "
                f"also viewed as elements of {array.word.bits} bits\n"
                "  hint: use a static array for one of the two"
            )
        self.code = code
        self.coordinates = program.coordinates
        self.element = array.element
        self.space = MemSpace.GLOBAL if isinstance(array, Buffer) else MemSpace.SHARED
        self.bits = Scalar.UINT64 if array.element.bits == 64 else Scalar.UINT32
        if array.element.bits == 64:
            code.assembler.capability("Int64Atomics")
        index = emitter.expression(stmt.index)
        self.pointer = program.memory.atomic_pointer(code, array, index)
        shared = self.space is MemSpace.SHARED
        self.scope = word(code, SCOPE["Workgroup"] if shared else program.model.device)
        self.relaxed = word(code, 0)

    def load(self) -> Value:
        return self.code.value("OpAtomicLoad", self.bits, *self.operands)

    @property
    def operands(self) -> tuple[int, int, int]:
        return self.pointer, self.scope, self.relaxed

    def exchange(self, new: Value) -> Value:
        """Store `new`; the bits found.

        Mesa 22.3 with LLVM 15 ends the process ("Cannot select … trunc to f64") where 64 bits that
        are a float64 are exchanged. A launch has one group at least, so what is added to them here
        is 0, which no compiler knows.
        """
        code = self.code
        if self.bits.bits == 64:
            one, none = code.constant(self.bits, 1), code.constant(self.bits, 0)
            empty = code.is_zero(self.coordinates.word(code, Coordinate.GRID_DIM, 0))
            new = code.bitwise("xor", new, code.select(empty, one, none))
        return code.value("OpAtomicExchange", self.bits, *self.operands, new.id)

    def swap(self, expected: Value, new: Value) -> Value:
        """Store `new` if the bits are those expected; the bits found."""
        given = (self.relaxed, new.id, expected.id)
        return self.code.value("OpAtomicCompareExchange", self.bits, *self.operands, *given)


def atomic(emitter: Statements, stmt: Atomic) -> None:
    """One atomic operation; declares the variable of its result."""
    value = None if stmt.value is None else emitter.expression(stmt.value)
    compare = None if stmt.compare is None else emitter.expression(stmt.compare)
    place = _Place(emitter, stmt)
    if place.element.bits not in (32, 64):
        raise InvalidIR(f"no atomic operations on {place.element.value}")
    old = _operation(emitter, place, stmt.op, value, compare)
    if stmt.result is not None and old is not None:
        emitter.bind(stmt.result, old)


def _operation(
    emitter: Statements, place: _Place, op: AtomicOp, value: Value | None, compare: Value | None
) -> Value | None:
    code, element = emitter.code, place.element
    if op is AtomicOp.LOAD:
        return from_memory(code, place.load(), element)
    assert value is not None
    bits = to_memory(code, value, place.bits)
    if op is AtomicOp.STORE:
        code.effect("OpAtomicStore", *place.operands, bits.id)
        return None
    if op is AtomicOp.EXCH:
        return from_memory(code, place.exchange(bits), element)
    if op is AtomicOp.CAS:
        assert compare is not None
        return _compare_and_swap(emitter, place, compare, bits)
    native = _native(emitter, place, op)
    if native is not None:
        type = element if element.is_float else place.bits
        pointer = place.pointer
        if element.is_float:
            pointer = _float_pointer(code, place)
        given = value if element.is_float else bits
        old = code.value(native, type, pointer, place.scope, place.relaxed, given.id)
        return code.reinterpreted(old, element)
    return _looped(emitter, place, lambda old: _changed(emitter, op, old, value))


def _native(emitter: Statements, place: _Place, op: AtomicOp) -> str | None:
    """The instruction that the device has for an operation."""
    element, assembler = place.element, emitter.code.assembler
    if element.is_integer:
        if op in _ORDERED:
            return f"OpAtomic{'S' if signed(element) else 'U'}{_ORDERED[op]}"
        return _INTEGER.get(op)
    in_abilities = (op, element, place.space) in emitter.program.abilities.atomics
    if op not in _FLOAT or not in_abilities or place.space is MemSpace.SHARED:
        return None  # shared memory holds integers
    name, suffix, extension = _FLOAT[op]
    assembler.extension(extension)
    assembler.capability(f"AtomicFloat{element.bits}{suffix}")
    return name


def _float_pointer(code: Code, place: _Place) -> int:
    type = code.types.pointer("PhysicalStorageBuffer", code.types.scalar(place.element))
    return code.do("OpBitcast", type, place.pointer)


def _changed(emitter: Statements, op: AtomicOp, old: Value, value: Value) -> Value:
    """What an operation makes of the old value."""
    code = emitter.code
    match op:
        case AtomicOp.ADD:
            return code.add(old, value)
        case AtomicOp.SUB:
            return code.sub(old, value)
        case AtomicOp.MIN | AtomicOp.MAX:
            name = "fmin" if op is AtomicOp.MIN else "fmax"
            return functions.intrinsic(emitter, name, [old, value], old.type)
        case AtomicOp.INC:
            a, limit = code.bits_of(old), code.bits_of(value)
            full = code.compare("ge", a, limit)
            more = code.add(a, code.constant(a.type, 1))
            return Value(code.select(full, code.constant(a.type, 0), more).id, old.type)
        case AtomicOp.DEC:
            a, limit = code.bits_of(old), code.bits_of(value)
            outside = code.either(code.is_zero(a), code.compare("gt", a, limit))
            less = code.sub(a, code.constant(a.type, 1))
            return Value(code.select(outside, limit, less).id, old.type)
        case _:
            raise InvalidIR(f"no atomic {op.value} on {old.type.value}")


def _looped(emitter: Statements, place: _Place, change: Callable[[Value], Value]) -> Value:
    """A compare-and-swap of the bits until no other thread came between; the old value."""
    code = emitter.code
    seen = code.variable(code.types.scalar(place.bits))
    code.effect("OpStore", seen, place.load().id)
    left = watch.place(emitter)
    header, inside, following, merge = (code.label() for _ in range(4))
    code.branch(header)
    code.start(header)
    code.effect("OpLoopMerge", merge, following, "None")
    code.branch(inside)
    code.start(inside)
    expected = code.value("OpLoad", place.bits, seen)
    new = change(from_memory(code, expected, place.element))
    found = place.swap(expected, to_memory(code, new, place.bits))
    code.effect("OpStore", seen, found.id)
    done = code.compare("eq", found, expected)
    watch.leaves(emitter, left, done)
    code.end("OpBranchConditional", done.id, merge, following)
    code.start(following)
    code.branch(header)
    code.start(merge)
    watch.behind(emitter, left)
    return from_memory(code, code.value("OpLoad", place.bits, seen), place.element)


def _compare_and_swap(emitter: Statements, place: _Place, compare: Value, new: Value) -> Value:
    """The old value. A float compares by its bits, but every NaN is as good as another."""
    code = emitter.code
    expected = to_memory(code, compare, place.bits)
    if not place.element.is_float:
        return from_memory(code, place.swap(expected, new), place.element)
    wanted = code.variable(code.types.scalar(place.bits))
    code.effect("OpStore", wanted, expected.id)
    left = watch.place(emitter)
    header, inside, following, merge = (code.label() for _ in range(4))
    code.branch(header)
    code.start(header)
    code.effect("OpLoopMerge", merge, following, "None")
    code.branch(inside)
    code.start(inside)
    tried = code.value("OpLoad", place.bits, wanted)
    found = place.swap(tried, new)
    seen = from_memory(code, found, place.element)
    code.effect("OpStore", wanted, found.id)
    both_nan = code.both(code.compare("ne", compare, compare), code.compare("ne", seen, seen))
    again = code.both(both_nan, code.compare("ne", found, tried))
    watch.leaves(emitter, left, code.complement(again))
    code.end("OpBranchConditional", again.id, following, merge)
    code.start(following)
    code.branch(header)
    code.start(merge)
    watch.behind(emitter, left)
    return from_memory(code, code.value("OpLoad", place.bits, wanted), place.element)
