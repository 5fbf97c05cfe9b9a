"""A C-like language as data: what `codegen.cfamily` has to know to print it.

Types are keyed by `Scalar`, so a missing entry means that the language lacks the type. Templates
are `str.format` strings; `{0}`, `{1}`, … are arguments, `{type}` is the name of the result type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sarek_numba.codegen.matrices import Matrices
from sarek_numba.ir.nodes import AtomicOp, Coordinate, FenceScope
from sarek_numba.ir.types import MemSpace, Scalar


@dataclass(frozen=True, slots=True)
class WarpSpelling:
    """Warp operations: this thread's lane, a shuffle of a 32-bit word {0} from the lane {1}."""

    lane: str
    shuffle: str
    size: str  # threads that this warp has
    barrier: str
    kernel_head: str  # before that of the kernel; {0} is the width
    parameter: str = ""  # a built-in value that functions of shuffles are given: its type and name


@dataclass(frozen=True, slots=True)
class Entry:
    """How a kernel takes what it is given, where parameters of the plain types are not enough.

    Memory comes first, each buffer at a place of its own, then one structure with all numbers.
    `builtins` are the values that a kernel declares in order to have: type and attribute by name. A
    helper that uses one is given it.
    """

    buffer: str  # {0} the declaration of a pointer, {1} its place
    numbers: str  # {type} the structure, {name}, {place}
    structure: str  # the name of that structure
    name: str  # what its value is called
    region: str  # dynamic shared memory: {0} the declaration of a pointer
    builtins: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Dialect:
    """Spellings of one language.

    `functions` maps (intrinsic, type) to a call of a built-in that has the meaning of
    `ir.semantics`; an intrinsic without an entry comes from `codegen.prelude`. So do the atomic
    operations.
    """

    name: str
    types: Mapping[Scalar, str]
    memory_types: Mapping[Scalar, str]  # where an element is stored otherwise than computed
    suffixes: Mapping[Scalar, str]  # of literals
    infinity: Mapping[Scalar, str]
    nan: Mapping[Scalar, str]
    pointer_space: Mapping[MemSpace, str]
    declare_space: Mapping[MemSpace, str]
    constant_array: str  # qualifier of an array of constants at program scope
    kernel_head: str
    coordinates: Mapping[Coordinate, tuple[str, str, str]]
    coordinate_type: Scalar
    barrier: str
    fences: Mapping[FenceScope, str]
    functions: Mapping[tuple[str, Scalar], str]
    reinterpret: Mapping[Scalar, str]  # by target type
    saturate: Mapping[tuple[Scalar, Scalar], str]  # (float source, integer target), not of a NaN
    # {0} pointer, {1} value or compare, {2} value, {space} that of the pointer
    atomics: Mapping[tuple[AtomicOp, Scalar], str]
    volatile: str  # dereference that the compiler must not cache: {space}, {type}, {0} pointer
    structure: str  # value of a structure: {type}, {items}
    prologue: tuple[str, ...]  # first lines of every program
    type_prologue: Mapping[Scalar, tuple[str, ...]]  # lines that a program with the type needs
    word_prologue: Mapping[str, tuple[str, ...]]  # lines that a program with the word needs
    reserved: frozenset[str]  # keywords, types, macros, built-in functions that programs call
    reserved_functions: frozenset[str]  # further built-in functions, which variables may hide
    framework: str  # key of `Native.texts`
    function_head: str = ""  # before the result type of a helper
    reserved_leads: tuple[str, ...] = ()  # beginnings of names that the language keeps to itself
    aliasing: str = ""  # definition of the type {name}, which is {type} and aliases all others
    accumulating_loop: str = ""  # line before a loop that hands a float on from pass to pass
    # lines that declare an array of the thread, one of the block in the memory {space}; {holder} is
    # a further name for them to use
    thread_array: str = "{type} {name}[{length}];"
    shared_array: str = "{space} {type} {name}[{length}];"
    restrict: str = ""  # qualifier of a pointer whose memory no other parameter reaches
    unroll: str = ""  # line before a loop to be unrolled; {count} passes, or nothing for all
    # around a loop that threads leave apart: a statement for each variable {0} that it assigns
    keep_apart: Mapping[Scalar, str] = field(default_factory=dict)
    # functions that make of an integer of the first type one of the second, where a cast is not to
    # be trusted
    narrowings: Mapping[tuple[Scalar, Scalar], str] = field(default_factory=dict)
    # quotients of floats {0} and {1}, where `/` is not to be trusted
    quotients: Mapping[Scalar, str] = field(default_factory=dict)
    # coordinates computed in 32 bits, for those that are wanted in 32
    narrow_coordinates: Mapping[Coordinate, tuple[str, str, str]] = field(default_factory=dict)
    narrow_coordinate_type: Scalar = Scalar.INT32
    wide_coordinates: frozenset[Coordinate] = frozenset()  # those that are uint64 whatever the rest
    exact_items: bool = False  # the items of a structure's value must have exactly its types
    dynamic_shared: str = ""  # declares the region {name} of {type}; without it, it is a parameter
    most_static_shared: int | None = None  # bytes; more than that become parts of that region
    float_functions: Mapping[Scalar, str] = field(default_factory=dict)  # ends of functions' names
    warp: WarpSpelling | None = None
    entry: Entry | None = None
    matrices: Matrices | None = None  # cooperative ones
