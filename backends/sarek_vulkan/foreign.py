"""What a SPIR-V module of others says of itself: entry points, block, parameters, needs.

Read from the words alone (SPIR-V 1.6, sections 2.3 and 3); nothing of it is believed further than
that a driver may be given it: `spirv-val`, where it is installed, has looked at it before.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from sarek_numba.errors import ArgumentTypeError, InvalidArgument, SourceCompilationError

MAGIC = 0x07230203
_COMPUTE = 5  # the execution model GLCompute
_LOCAL_SIZE, _LOCAL_SIZE_ID = 17, 38
_SPEC_ID, _BUFFER_BLOCK, _BUILT_IN, _BINDING, _SET, _OFFSET = 1, 3, 11, 33, 34, 35
_WORKGROUP_SIZE = 25
_UNIFORM_CONSTANT, _UNIFORM, _PUSH_CONSTANT, _STORAGE_BUFFER = 0, 2, 9, 12
_PHYSICAL = 5349

CAPABILITIES = {  # of compute modules; numbers of SPIR-V's grammar
    0: "Matrix",
    1: "Shader",
    4: "Addresses",
    5: "Linkage",
    6: "Kernel",
    9: "Float16",
    10: "Float64",
    11: "Int64",
    12: "Int64Atomics",
    22: "Int16",
    39: "Int8",
    61: "GroupNonUniform",
    62: "GroupNonUniformVote",
    63: "GroupNonUniformArithmetic",
    64: "GroupNonUniformBallot",
    65: "GroupNonUniformShuffle",
    66: "GroupNonUniformShuffleRelative",
    67: "GroupNonUniformClustered",
    68: "GroupNonUniformQuad",
    4428: "WorkgroupMemoryExplicitLayoutKHR",
    4429: "WorkgroupMemoryExplicitLayout8BitAccessKHR",
    4430: "WorkgroupMemoryExplicitLayout16BitAccessKHR",
    4433: "StorageBuffer16BitAccess",
    4434: "UniformAndStorageBuffer16BitAccess",
    4435: "StoragePushConstant16",
    4441: "VariablePointersStorageBuffer",
    4442: "VariablePointers",
    4448: "StorageBuffer8BitAccess",
    4449: "UniformAndStorageBuffer8BitAccess",
    4450: "StoragePushConstant8",
    4464: "DenormPreserve",
    4465: "DenormFlushToZero",
    4466: "SignedZeroInfNanPreserve",
    4467: "RoundingModeRTE",
    4468: "RoundingModeRTZ",
    5345: "VulkanMemoryModel",
    5346: "VulkanMemoryModelDeviceScope",
    5347: "PhysicalStorageBufferAddresses",
    5612: "AtomicFloat32MinMaxEXT",
    6033: "AtomicFloat32AddEXT",
    6022: "CooperativeMatrixKHR",
    6034: "AtomicFloat64AddEXT",
}
ALWAYS = frozenset({"Matrix"})  # implied by Shader


@dataclass(frozen=True, slots=True)
class Member:
    """A member of the push constants at a byte offset; `type` is None for an address."""

    offset: int
    type: np.dtype[np.generic] | None

    @property
    def size(self) -> int:
        """In bytes."""
        return 8 if self.type is None else self.type.itemsize


@dataclass(slots=True)
class Foreign:
    """A module. `bindings` are (set, binding) of its storage buffers, in order.

    `block` has for each dimension a number, or the number of a specialisation constant as a
    negative: -1 - id. `constants` are the numbers of all specialisation constants.
    """

    version: tuple[int, int]
    capabilities: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    bindings: tuple[tuple[int, int], ...] = ()
    members: tuple[Member, ...] = ()
    block: tuple[int, ...] = ()
    constants: frozenset[int] = frozenset()

    @property
    def push_bytes(self) -> int:
        """Of the push constants, a multiple of 4."""
        end = max((member.offset + member.size for member in self.members), default=0)
        return -(-end // 4) * 4

    @property
    def numbers(self) -> tuple[np.dtype[np.generic], ...]:
        """The types of its scalar parameters, in order."""
        return tuple(member.type for member in self.members if member.type is not None)

    @property
    def memory(self) -> int:
        """How many arrays it takes."""
        return len(self.bindings) + sum(member.type is None for member in self.members)


@dataclass(slots=True)
class _Reader:
    """What the instructions say, by id."""

    decorations: dict[int, dict[int, tuple[int, ...]]] = field(default_factory=dict)
    offsets: dict[int, dict[int, int]] = field(default_factory=dict)
    types: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    constants: dict[int, int] = field(default_factory=dict)
    composites: dict[int, tuple[int, ...]] = field(default_factory=dict)
    variables: list[tuple[int, int, int]] = field(default_factory=list)  # id, pointer, class
    entries: dict[str, int] = field(default_factory=dict)
    sizes: dict[int, tuple[bool, tuple[int, ...]]] = field(default_factory=dict)
    capabilities: list[str] = field(default_factory=list)


def read(words: bytes, name: str) -> Foreign:
    """A module's own account, for its kernel `name`.

    Raises SourceCompilationError for what is no module, InvalidArgument where it has no such kernel
    or parameters that no argument of ours fills.
    """
    version, instructions = _instructions(words)
    reader = _Reader()
    for opcode, operands in instructions:
        _note(reader, opcode, operands)
    if name not in reader.entries:
        names = ", ".join(sorted(reader.entries)) or "none at all"
        raise InvalidArgument(f"the module has no kernel '{name}'\n  hint: it has {names}")
    return Foreign(
        version=version,
        capabilities=tuple(reader.capabilities),
        entries=tuple(reader.entries),
        bindings=_bindings(reader, name),
        members=_members(reader, name),
        block=_block(reader, name),
        constants=frozenset(
            found[_SPEC_ID][0] for found in reader.decorations.values() if _SPEC_ID in found
        ),
    )


def invalid(why: str, log: str = "") -> SourceCompilationError:
    """The refusal of what is no SPIR-V module."""
    return SourceCompilationError(f"this is no SPIR-V module that runs here: {why}", "", log)


def _instructions(
    words: bytes,
) -> tuple[tuple[int, int], Iterator[tuple[int, tuple[int, ...]]]]:
    if len(words) < 20 or len(words) % 4:
        raise invalid(f"{len(words)} bytes are no whole words with a header of five")
    if struct.unpack_from(">I", words)[0] == MAGIC:
        raise invalid("its words are in big-endian order")
    numbers = struct.unpack(f"<{len(words) // 4}I", words)
    if numbers[0] != MAGIC:
        raise invalid(f"it begins with {numbers[0]:#010x}, not with {MAGIC:#010x}")
    version = numbers[1] >> 16 & 0xFF, numbers[1] >> 8 & 0xFF
    return version, _each(numbers)


def _each(numbers: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
    at = 5
    while at < len(numbers):
        count, opcode = numbers[at] >> 16, numbers[at] & 0xFFFF
        if count == 0 or at + count > len(numbers):
            raise invalid(f"the instruction at word {at} has {count} words")
        yield opcode, numbers[at + 1 : at + count]
        at += count


def _string(operands: tuple[int, ...]) -> str:
    raw = struct.pack(f"<{len(operands)}I", *operands)
    return raw.partition(b"\0")[0].decode("utf-8", "replace")


def _note(reader: _Reader, opcode: int, operands: tuple[int, ...]) -> None:
    try:
        _noted(reader, opcode, operands)
    except (IndexError, ValueError) as error:
        raise invalid(f"an instruction of opcode {opcode} is too short") from error


def _noted(reader: _Reader, opcode: int, operands: tuple[int, ...]) -> None:
    match opcode:
        case 17:  # OpCapability
            number = operands[0]
            reader.capabilities.append(CAPABILITIES.get(number, f"capability {number}"))
        case 15 if operands[0] == _COMPUTE:  # OpEntryPoint
            reader.entries[_string(operands[2:])] = operands[1]
        case 16 if operands[1] == _LOCAL_SIZE:  # OpExecutionMode
            reader.sizes[operands[0]] = False, operands[2:5]
        case 331 if operands[1] == _LOCAL_SIZE_ID:  # OpExecutionModeId
            reader.sizes[operands[0]] = True, operands[2:5]
        case 71:  # OpDecorate
            reader.decorations.setdefault(operands[0], {})[operands[1]] = operands[2:]
        case 72 if operands[2] == _OFFSET:  # OpMemberDecorate
            reader.offsets.setdefault(operands[0], {})[operands[1]] = operands[3]
        case 20 | 21 | 22 | 23 | 28 | 29 | 30 | 32:  # OpTypeBool … OpTypePointer
            reader.types[operands[0]] = opcode, operands[1:]
        case 39:  # OpTypeForwardPointer
            reader.types[operands[0]] = 32, (operands[1], 0)
        case 43 | 50:  # OpConstant, OpSpecConstant
            reader.constants[operands[1]] = operands[2]
        case 44 | 51:  # OpConstantComposite, OpSpecConstantComposite
            reader.composites[operands[1]] = operands[2:]
        case 59:  # OpVariable
            reader.variables.append((operands[1], operands[0], operands[2]))
        case _:
            pass


def _pointee(reader: _Reader, pointer: int) -> int:
    kind, operands = reader.types.get(pointer, (0, ()))
    if kind != 32:
        raise invalid(f"%{pointer} is no pointer")
    return operands[1]


def _bindings(reader: _Reader, name: str) -> tuple[tuple[int, int], ...]:
    found = []
    for id, pointer, storage in reader.variables:
        if storage not in (_UNIFORM_CONSTANT, _UNIFORM, _STORAGE_BUFFER):
            continue
        decorations = reader.decorations.get(id, {})
        is_block = _BUFFER_BLOCK in reader.decorations.get(_pointee(reader, pointer), {})
        if storage != _STORAGE_BUFFER and not (storage == _UNIFORM and is_block):
            raise InvalidArgument(
                f"kernel '{name}' has images, samplers or uniform buffers, and none of these is an "
                "argument\n"
                "  hint: storage buffers take arrays, push constants numbers"
            )
        if _BINDING not in decorations:
            raise invalid("a storage buffer has no binding")
        found.append((decorations.get(_SET, (0,))[0], decorations[_BINDING][0]))
    return tuple(sorted(set(found)))


def _members(reader: _Reader, name: str) -> tuple[Member, ...]:
    members: list[Member] = []
    for _, pointer, storage in reader.variables:
        if storage != _PUSH_CONSTANT:
            continue
        block = _pointee(reader, pointer)
        _, fields = reader.types.get(block, (0, ()))
        for k, type in enumerate(fields):
            offset = reader.offsets.get(block, {}).get(k)
            if offset is None:
                raise invalid(f"member {k} of its push constants has no offset")
            members.append(Member(offset, _member_type(reader, type, k, name)))
    return tuple(members)


def _member_type(reader: _Reader, type: int, k: int, name: str) -> np.dtype[np.generic] | None:
    match reader.types.get(type, (0, ())):
        case 32, (storage, *_) if storage == _PHYSICAL:
            return None
        case 21, (bits, signed):
            return np.dtype(f"{'i' if signed else 'u'}{bits // 8}")
        case 22, (bits, *_):
            return np.dtype(f"f{bits // 8}")
        case _:
            raise ArgumentTypeError(
                f"kernel '{name}': member {k} of its push constants is a vector, an array or a "
                "structure\n  hint: numbers and buffer references are what arguments fill"
            )


def _block(reader: _Reader, name: str) -> tuple[int, ...]:
    """Numbers, or ids of specialisation constants as negatives; the built-in goes first."""
    for id, decorations in reader.decorations.items():
        if decorations.get(_BUILT_IN) == (_WORKGROUP_SIZE,) and id in reader.composites:
            return tuple(_dimension(reader, part) for part in reader.composites[id])
    by_id, size = reader.sizes.get(reader.entries[name], (False, ()))
    if len(size) != 3:
        raise invalid("nothing states the size of a block")
    return tuple(_dimension(reader, part) for part in size) if by_id else size


def _dimension(reader: _Reader, id: int) -> int:
    special = reader.decorations.get(id, {}).get(_SPEC_ID)
    return -1 - special[0] if special is not None else reader.constants.get(id, 1)
