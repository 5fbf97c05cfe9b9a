"""Rules of `sarek.atomic`: which elements and values an atomic operation takes."""

from __future__ import annotations

from collections.abc import Callable

from numba.core import types

from sarek_numba.errors import UnsupportedConstruct
from sarek_numba.frontend import language
from sarek_numba.frontend.records import RecordType
from sarek_numba.frontend.rules.arrays import (
    check_stored,
    indexed,
    is_captured_array,
    require_writable,
)
from sarek_numba.frontend.rules.complexes import refused_element
from sarek_numba.frontend.rules.registry import rule
from sarek_numba.frontend.typed import Atomic, Operation, Type
from sarek_numba.frontend.weak import Refusal, describe, operand, scalar_of
from sarek_numba.ir.nodes import AtomicOp
from sarek_numba.ir.types import FLOAT32, FLOAT64, INT32, INT64, MemSpace, Scalar

TYPES = (INT32, Scalar.UINT32, INT64, Scalar.UINT64, FLOAT32, FLOAT64)
_AS_INTEGERS = "pass its bits, as in x.view(np.int{bits})"
_OF_INTEGERS = {
    AtomicOp.AND: _AS_INTEGERS,
    AtomicOp.OR: _AS_INTEGERS,
    AtomicOp.XOR: _AS_INTEGERS,
    AtomicOp.INC: "use sarek.atomic.add(array, index, 1)",
    AtomicOp.DEC: "use sarek.atomic.sub(array, index, 1)",
}
_WORDS = {AtomicOp.AND: "and_", AtomicOp.OR: "or_"}  # where the name is a word of Python


def _name(op: AtomicOp) -> str:
    return _WORDS.get(op, op.value)


def _element(op: AtomicOp, array: Type, index: Type) -> Type:
    """The element that an atomic operation acts on."""
    name = _name(op)
    if not isinstance(array, types.Array):
        hint = "write the array and the index as two arguments, as in (a, i, value)"
        if is_captured_array(array):
            hint = "pass the array as an argument"
        with operand(0):
            raise Refusal(f"sarek.atomic.{name}() takes an array, not {describe(array)}", hint)
    with operand(1):
        target = indexed(array, index)
        if isinstance(target, types.Array):
            raise Refusal(
                f"sarek.atomic.{name}() takes one element, not {describe(target)}",
                "give an index for each axis, as a tuple of ints",
            )
    _check_record(op, array, target)
    refusal = refused_element(name, target)
    if refusal is not None:
        with operand(0):
            raise refusal
    _check_type(op, target)
    _check_space(op, array)
    return target


def _check_record(op: AtomicOp, array: Type, target: Type) -> None:
    with operand(0):
        if isinstance(target, RecordType):
            raise Refusal(
                f"sarek.atomic.{_name(op)}() takes numbers, and the elements are records",
                f"name a field of them, as in p[{target.names[0]!r}]",
            )
        if not array.aligned:
            raise Refusal(
                "an atomic operation needs aligned elements, and this field is packed",
                "align the records, as in numpy.dtype([...], align=True)",
                UnsupportedConstruct,
            )


def _check_type(op: AtomicOp, target: Type) -> None:
    scalar = scalar_of(target)
    with operand(0):
        if scalar not in TYPES:
            raise Refusal(
                f"there are no atomics on {target}",
                "use int32, uint32, int64, uint64, float32 or float64",
            )
        if op in _OF_INTEGERS and scalar.is_float:
            raise Refusal(
                f"sarek.atomic.{_name(op)}() takes integer elements, not {target}",
                _OF_INTEGERS[op].format(bits=scalar.bits),
            )


def _check_space(op: AtomicOp, array: Type) -> None:
    space = getattr(array, "space", MemSpace.GLOBAL)
    if op is AtomicOp.LOAD or space in (MemSpace.GLOBAL, MemSpace.SHARED):
        return
    if space is MemSpace.CONSTANT:
        _require_writable(array)
    with operand(0):
        raise Refusal(
            f"sarek.atomic.{_name(op)}() takes an array that threads share, not {describe(array)}",
            "only its own thread sees it: read and write it plainly",
        )


def _require_writable(array: Type) -> None:
    with operand(0):
        require_writable(array)


@rule(language.atomic.load)
def atomic_load(array: Type, index: Type) -> Operation:
    element = _element(AtomicOp.LOAD, array, index)
    return Operation(Atomic(AtomicOp.LOAD), (array, index), element)


def _update(op: AtomicOp) -> Callable[[Type, Type, Type], Operation]:
    def resolve(array: Type, index: Type, value: Type) -> Operation:
        element = _element(op, array, index)
        _require_writable(array)
        with operand(2):
            check_stored(value, element)
        result = types.none if op is AtomicOp.STORE else element
        return Operation(Atomic(op), (array, index, element), result)

    return resolve


for _op in (
    AtomicOp.STORE,
    AtomicOp.ADD,
    AtomicOp.SUB,
    AtomicOp.MIN,
    AtomicOp.MAX,
    AtomicOp.AND,
    AtomicOp.OR,
    AtomicOp.XOR,
    AtomicOp.EXCH,
):
    rule(getattr(language.atomic, _name(_op)))(_update(_op))


def _count(op: AtomicOp) -> Callable[..., Operation]:
    """`inc` and `dec`: without a value by one, for which lowering writes an addition."""

    def resolve(array: Type, index: Type, value: Type | None = None) -> Operation:
        element = _element(op, array, index)
        _require_writable(array)
        if value is None:
            return Operation(Atomic(op), (array, index), element)
        with operand(2):
            check_stored(value, element)
        return Operation(Atomic(op), (array, index, element), element)

    return resolve


for _op in (AtomicOp.INC, AtomicOp.DEC):
    rule(getattr(language.atomic, _op.value))(_count(_op))


@rule(language.atomic.cas)
def atomic_cas(array: Type, index: Type, old: Type, new: Type) -> Operation:
    element = _element(AtomicOp.CAS, array, index)
    _require_writable(array)
    with operand(2):
        check_stored(old, element)
    with operand(3):
        check_stored(new, element)
    return Operation(Atomic(AtomicOp.CAS), (array, index, element, element), element)
