"""Loads, stores and atomics of array elements.

A uniform index is one scalar access, a linear one with stride 1 a vector access, and any other a
gather or scatter. Lanes that do not run touch no memory. Scatters and atomics go in lane order.
"""

from __future__ import annotations

from sarek_native.builder import Code
from sarek_native.masks import Mask, last_lane, text
from sarek_native.operators import binary, cast
from sarek_native.support import LaneLoop
from sarek_native.values import REGISTER, Place, Value, memory_type
from sarek_native.vecmath import intrinsic
from sarek_numba.ir.nodes import AtomicOp, BinOp
from sarek_numba.ir.types import INT64, Scalar


def load(code: Code, place: Place, index: Value, mask: Mask) -> Value:
    """The elements of an array at `index`; at least one lane of the mask runs."""
    element = place.element
    index = _address_index(code, place, index)
    if index.uniform:
        pointer = _pointer(code, place, index)
        type = memory_type(element)
        return code.from_memory(element, code.define(f"load {type}, ptr {pointer}"), False)
    vector = code.memory(element, True)
    align = element.bits // 8
    if index.stride == 1 and not index.lanes:
        pointer = _pointer(code, place, index)
        if mask is None:
            found = code.define(f"load {vector}, ptr {pointer}, align {align}")
        else:
            found = code.define(
                f"call {vector} @llvm.masked.load(ptr align {align} {pointer}, "
                f"{code.vector('i1')} {mask}, {vector} zeroinitializer)"
            )
        return code.from_memory(element, found, True)
    pointers = _pointers(code, place, index)
    found = code.define(
        f"call {vector} @llvm.masked.gather({code.vector('ptr')} align {align} {pointers}, "
        f"{code.vector('i1')} {text(code, mask)}, {vector} zeroinitializer)"
    )
    return code.from_memory(element, found, True)


def store(code: Code, place: Place, index: Value, value: Value, mask: Mask) -> None:
    """Write the elements of an array at `index`; of lanes that share an element the last wins."""
    element = place.element
    index = _address_index(code, place, index)
    type = memory_type(element)
    if index.uniform:
        pointer = _pointer(code, place, index)
        code.effect(f"store {type} {_last(code, value, mask)}, ptr {pointer}")
        return
    vector = code.memory(element, True)
    typed = f"{vector} {code.to_memory(value, True)}"
    align = element.bits // 8
    if index.stride == 1 and not index.lanes:
        pointer = _pointer(code, place, index)
        if mask is None:
            code.effect(f"store {typed}, ptr {pointer}, align {align}")
        else:
            flags = f"{code.vector('i1')} {mask}"
            code.effect(
                f"call void @llvm.masked.store({typed}, ptr align {align} {pointer}, {flags})"
            )
        return
    pointers = _pointers(code, place, index)
    code.effect(
        f"call void @llvm.masked.scatter({typed}, {code.vector('ptr')} align {align} {pointers}, "
        f"{code.vector('i1')} {text(code, mask)})"
    )


def _last(code: Code, value: Value, mask: Mask) -> str:
    """The memory text of the value in the last lane that runs."""
    if value.uniform:
        return code.to_memory(value, False)
    lane = last_lane(code, mask)
    vector = code.vector(REGISTER[value.type])
    chosen = code.define(f"extractelement {vector} {code.spread(value)}, i64 {lane}")
    return code.to_memory(Value(value.type, chosen), False)


def _address_index(code: Code, place: Place, index: Value) -> Value:
    """The index as int64, within the storage of this lane for arrays of one thread each."""
    index = cast(code, index, INT64)
    if not place.interleaved:
        return index
    scaled = binary(code, BinOp.MUL, index, Value(INT64, str(code.width)))
    return binary(code, BinOp.ADD, scaled, Value(INT64, "0", stride=1))


def _pointer(code: Code, place: Place, index: Value) -> str:
    type = memory_type(place.element)
    return code.define(f"getelementptr {type}, ptr {place.pointer}, i64 {index.text}")


def _pointers(code: Code, place: Place, index: Value) -> str:
    type = memory_type(place.element)
    indices = f"{code.vector('i64')} {code.spread(index)}"
    return code.define(f"getelementptr {type}, ptr {place.pointer}, {indices}")


# --- atomics --------------------------------------------------------------------------------------

_FORMULA = {AtomicOp.MIN: "fmin", AtomicOp.MAX: "fmax"}
_RMW_INTEGER = {
    AtomicOp.ADD: "add",
    AtomicOp.SUB: "sub",
    AtomicOp.AND: "and",
    AtomicOp.OR: "or",
    AtomicOp.XOR: "xor",
    AtomicOp.EXCH: "xchg",
    AtomicOp.INC: "uinc_wrap",
    AtomicOp.DEC: "udec_wrap",
}
_RMW_FLOAT = {AtomicOp.ADD: "fadd", AtomicOp.SUB: "fsub", AtomicOp.EXCH: "xchg"}

INTEGER_ATOMICS = frozenset(
    {*_RMW_INTEGER, AtomicOp.MIN, AtomicOp.MAX, AtomicOp.LOAD, AtomicOp.STORE, AtomicOp.CAS}
)
FLOAT_ATOMICS = INTEGER_ATOMICS - (_RMW_INTEGER.keys() - _RMW_FLOAT.keys())


def atomic(
    code: Code,
    op: AtomicOp,
    place: Place,
    index: Value,
    operands: tuple[Value, ...],
    mask: Mask,
) -> Value:
    """One atomic operation for each lane that runs, in lane order; gives the old values.

    `operands` are the value, if any, and the value compared with before it for CAS.
    """
    element = place.element
    index = _address_index(code, place, index)
    name = f"atomic.{op.value}.{element.value}"
    code.require(name, lambda: _atomic_function(code, name, op, element, len(operands)))
    vector = code.vector(REGISTER[element])
    pointers = code.as_lanes(index)
    typed = [f"{code.vector('ptr')} {_pointers(code, place, pointers)}"]
    typed += [f"{vector} {code.spread(operand)}" for operand in operands]
    typed.append(f"{code.vector('i1')} {text(code, mask)}")
    return Value(element, code.define(f"call {vector} @{name}({', '.join(typed)})"), lanes=True)


def _atomic_function(outer: Code, name: str, op: AtomicOp, element: Scalar, arity: int) -> str:
    code = Code(outer.width)
    register = REGISTER[element]
    loop = LaneLoop(code, element, ["ptr", *[register] * arity])
    loop.finish(_atomic_scalar(code, op, element, loop.operands))
    vector = outer.vector(register)
    parameters = [f"{outer.vector('ptr')} %a0"]
    parameters += [f"{vector} %a{k + 1}" for k in range(arity)]
    parameters.append(f"{outer.vector('i1')} %mask")
    body = "\n".join(code.allocas + code.lines)
    header = f"define internal {vector} @{name}({', '.join(parameters)}) noinline #0"
    return f"{header} {{\nentry:\n{body}\n}}\n"


def _atomic_scalar(code: Code, op: AtomicOp, element: Scalar, operands: list[str]) -> str:
    """The operation of one lane; gives the old value. Relaxed throughout."""
    pointer, register = operands[0], REGISTER[element]
    align = element.bits // 8
    if op is AtomicOp.LOAD:
        return code.define(f"load atomic {register}, ptr {pointer} monotonic, align {align}")
    if op is AtomicOp.STORE:
        code.effect(
            f"store atomic {register} {operands[1]}, ptr {pointer} monotonic, align {align}"
        )
        return operands[1]
    if op is AtomicOp.CAS:
        return _exchange(code, element, pointer, operands[1], operands[2])
    if op in (AtomicOp.MIN, AtomicOp.MAX):
        if element.is_float:
            return _float_extreme(code, op, element, pointer, operands[1])
        letter = "" if element.kind.value == "signed" else "u"
        word = f"{letter}{op.value}"
    else:
        word = (_RMW_FLOAT if element.is_float else _RMW_INTEGER)[op]
    return code.define(f"atomicrmw {word} ptr {pointer}, {register} {operands[1]} monotonic")


def _exchange(code: Code, element: Scalar, pointer: str, expected: str, new: str) -> str:
    """Compare and exchange by bits; gives the old value."""
    if element.is_float:
        return _float_exchange(code, element, pointer, expected, new)
    pair = _compare_exchange(code, element, pointer, expected, new)
    return code.define(f"extractvalue {{ i{element.bits}, i1 }} {pair}, 0")


def _compare_exchange(code: Code, element: Scalar, pointer: str, expected: str, new: str) -> str:
    integer = f"i{element.bits}"
    return code.define(
        f"cmpxchg ptr {pointer}, {integer} {expected}, {integer} {new} monotonic monotonic"
    )


def _float_exchange(code: Code, element: Scalar, pointer: str, expected: str, new: str) -> str:
    """By bits, except that every NaN is the same; retried where one NaN took another's place."""
    register, integer = REGISTER[element], f"i{element.bits}"
    wanted = code.define(f"bitcast {register} {expected} to {integer}")
    given = code.define(f"bitcast {register} {new} to {integer}")
    code.label("retry")
    align = element.bits // 8
    bits = code.define(f"load atomic {integer}, ptr {pointer} monotonic, align {align}")
    same = _both_nan(code, register, integer, bits, expected)
    chosen = code.define(f"select i1 {same}, {integer} {bits}, {integer} {wanted}")
    pair = _compare_exchange(code, element, pointer, chosen, given)
    old = code.define(f"extractvalue {{ {integer}, i1 }} {pair}, 0")
    swapped = code.define(f"extractvalue {{ {integer}, i1 }} {pair}, 1")
    missed = _both_nan(code, register, integer, old, expected)
    again = code.define(f"select i1 {swapped}, i1 false, i1 {missed}")
    code.branch(again, "retry", "settled")
    code.label("settled")
    return code.define(f"bitcast {integer} {old} to {register}")


def _both_nan(code: Code, register: str, integer: str, bits: str, other: str) -> str:
    value = code.define(f"bitcast {integer} {bits} to {register}")
    first = code.define(f"fcmp uno {register} {value}, {value}")
    second = code.define(f"fcmp uno {register} {other}, {other}")
    return code.define(f"and i1 {first}, {second}")


def _float_extreme(code: Code, op: AtomicOp, element: Scalar, pointer: str, value: str) -> str:
    """Minimum or maximum of floats by NumPy's formula, retried until nobody came between."""
    register, integer = REGISTER[element], f"i{element.bits}"
    code.label("retry")
    align = element.bits // 8
    bits = code.define(f"load atomic {integer}, ptr {pointer} monotonic, align {align}")
    old = code.define(f"bitcast {integer} {bits} to {register}")
    operands = [Value(element, old), Value(element, value)]
    new = intrinsic(code, _FORMULA[op], operands, element, None).text
    new_bits = code.define(f"bitcast {register} {new} to {integer}")
    pair = code.define(
        f"cmpxchg ptr {pointer}, {integer} {bits}, {integer} {new_bits} monotonic monotonic"
    )
    done = code.define(f"extractvalue {{ {integer}, i1 }} {pair}, 1")
    code.branch(done, "settled", "retry")
    code.label("settled")
    return old
