"""Arrays: in buffers by their device addresses, of a block, of a thread, and constant ones.

An element of shared memory is an unsigned integer of its width, because atomics want integers and a
pointer of SPIR-V's logical memory cannot change its type. Views of the dynamic region share one
array, of integers of the narrowest view: a wider element takes several of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from sarek_numba.ir.types import BOOL, Kind, Scalar
from sarek_vulkan.code import Code, Value
from sarek_vulkan.types import UNSIGNED, Types


@dataclass(frozen=True, slots=True)
class Buffer:
    """Global memory: `base` is the id of a pointer to `Types.buffer(element)`."""

    base: int
    element: Scalar


@dataclass(frozen=True, slots=True)
class Variable:
    """An array of its own, in the storage class `storage`.

    `stored` is the type of its elements, `type` the id of its own type.
    """

    base: int
    element: Scalar
    storage: str
    stored: Scalar
    type: int


@dataclass(frozen=True, slots=True)
class View:
    """A part of the dynamic region, which is an array of `word`; it begins at the word `first`."""

    base: int
    element: Scalar
    word: Scalar
    first: int


ArrayPlace = Buffer | Variable | View


def memory_scalar(element: Scalar) -> Scalar:
    """The scalar as which an element is loaded and stored."""
    return Scalar.UINT8 if element is BOOL else element


def stored_scalar(element: Scalar) -> Scalar:
    """The unsigned integer as which an element of shared memory is stored."""
    return UNSIGNED[element.bits]


def from_memory(code: Code, value: Value, element: Scalar) -> Value:
    """The value of an element whose stored form was loaded."""
    if element is BOOL:
        return code.compare("ne", value, code.constant(value.type, 0))
    return code.reinterpreted(value, element)


def to_memory(code: Code, value: Value, stored: Scalar) -> Value:
    """The stored form of a value."""
    if value.type is BOOL:
        return code.select(value, code.constant(stored, 1), code.constant(stored, 0))
    return code.reinterpreted(value, stored)


class Memory:
    """Loads and stores of one function.

    `shown` says that other threads of the launch may learn of them by barriers and fences: the
    Vulkan memory model then wants them marked. `wide` says that buffers may have 2^31 elements and
    more.
    """

    def __init__(self, types: Types, shown: bool, wide: bool) -> None:
        self.types = types
        self.shown = shown
        self.wide = wide

    def load(self, code: Code, array: ArrayPlace, index: Value) -> Value:
        """The element at an index."""
        if isinstance(array, View):
            return self._gathered(code, array, index)
        stored = self._stored(array)
        pointer = self.pointer(code, array, index)
        value = code.value("OpLoad", stored, pointer, *self.operands(array))
        return from_memory(code, value, array.element)

    def store(self, code: Code, array: ArrayPlace, index: Value, value: Value) -> None:
        """Replace the element at an index."""
        if isinstance(array, View):
            self._scatter(code, array, index, value)
            return
        pointer = self.pointer(code, array, index)
        stored = to_memory(code, value, self._stored(array))
        code.effect("OpStore", pointer, stored.id, *self.operands(array))

    def pointer(self, code: Code, array: ArrayPlace, index: Value) -> int:
        """A pointer to the element at an index, in the form in which it is stored."""
        place = self._index(code, array, index).id
        match array:
            case Buffer(base=base, element=element):
                type = self.types.pointer("PhysicalStorageBuffer", self.types.memory(element))
                first = self.types.number(Scalar.UINT32, 0)
                return code.do("OpAccessChain", type, base, first, place)
            case Variable(base=base, storage=storage, stored=stored):
                type = self.types.pointer(storage, self.types.scalar(stored))
                return code.do("OpAccessChain", type, base, place)
            case View(base=base, word=word, element=element):
                assert word.bits == element.bits
                return self._word(code, array, self._first_word(code, array, index))

    def atomic_pointer(self, code: Code, array: ArrayPlace, index: Value) -> int:
        """A pointer to the bits of the element at an index."""
        pointer = self.pointer(code, array, index)
        if not isinstance(array, Buffer) or array.element.kind is not Kind.FLOAT:
            return pointer
        bits = self.types.integer(array.element.bits)
        return code.do("OpBitcast", self.types.pointer("PhysicalStorageBuffer", bits), pointer)

    def tile_pointer(self, code: Code, array: ArrayPlace, index: Value) -> tuple[int, int]:
        """A pointer to the first word of the element at an index, and an element's words."""
        if isinstance(array, View):
            place = self._first_word(code, array, index)
            return self._word(code, array, place), array.element.bits // array.word.bits
        return self.pointer(code, array, index), 1

    def storage(self, array: ArrayPlace) -> str:
        match array:
            case Buffer():
                return "PhysicalStorageBuffer"
            case Variable(storage=storage):
                return storage
            case View():
                return "Workgroup"

    def _stored(self, array: Buffer | Variable) -> Scalar:
        return memory_scalar(array.element) if isinstance(array, Buffer) else array.stored

    def operands(self, array: ArrayPlace) -> tuple[int | str, ...]:
        """Operands of memory of a load or store."""
        match array:
            case Buffer(element=element):
                words = "Aligned|NonPrivatePointer" if self.shown else "Aligned"
                return words, element.bits // 8
            case Variable(storage="Workgroup") | View():
                return ("NonPrivatePointer",) if self.shown else ()
            case Variable():
                return ()

    def _index(self, code: Code, array: ArrayPlace, index: Value) -> Value:
        """An index as SPIR-V takes it: a signed integer of 32 or 64 bits."""
        if index.type.bits < 32:
            return code.resized(index, Scalar.INT32)
        if self.wide and isinstance(array, Buffer):
            return code.resized(index, Scalar.INT64)
        return index

    # --- views of the dynamic region ---

    def _first_word(self, code: Code, array: View, index: Value) -> Value:
        index = self._index(code, array, index)
        count = array.element.bits // array.word.bits
        if count > 1:
            index = code.mul(index, code.constant(index.type, count))
        if array.first:
            index = code.add(index, code.constant(index.type, array.first))
        return index

    def _word(self, code: Code, array: View, place: Value) -> int:
        type = self.types.pointer("Workgroup", self.types.scalar(array.word))
        return code.do("OpAccessChain", type, array.base, place.id)

    def _gathered(self, code: Code, array: View, index: Value) -> Value:
        stored, place = stored_scalar(array.element), self._first_word(code, array, index)
        result: Value | None = None
        for number in range(array.element.bits // array.word.bits):
            at = code.add(place, code.constant(place.type, number)) if number else place
            pointer = self._word(code, array, at)
            word = code.value("OpLoad", array.word, pointer, *self.operands(array))
            part = code.resized(word, stored)
            if number:
                shift = code.constant(Scalar.UINT32, number * array.word.bits)
                part = code.shifted("left", part, shift)
            result = part if result is None else code.either(result, part)
        assert result is not None
        return from_memory(code, result, array.element)

    def _scatter(self, code: Code, array: View, index: Value, value: Value) -> None:
        whole = to_memory(code, value, stored_scalar(array.element))
        place = self._first_word(code, array, index)
        for number in range(array.element.bits // array.word.bits):
            at = code.add(place, code.constant(place.type, number)) if number else place
            part = whole
            if number:
                shift = code.constant(Scalar.UINT32, number * array.word.bits)
                part = code.shifted("right", whole, shift)
            word = code.resized(part, array.word)
            pointer = self._word(code, array, at)
            code.effect("OpStore", pointer, word.id, *self.operands(array))
