"""What the emitter and the runtime of Vulkan agree on.

A module has one entry point, `ENTRY`, and no descriptor sets. Its arguments lie in a block of
`argument_bytes` bytes, which are the push constants; with `spilled` they lie in a buffer instead,
whose 64-bit device address is the one push constant. A buffer travels as its 64-bit device address,
a scalar little-endian at a multiple of its size, and one of less than 32 bits as 32 bits, which
carry its bits in the low ones (so that no device needs narrow push constants).

Specialisation constants are uint32: `BLOCK_CONSTANTS` the three dimensions of the block, and
`SHARED_CONSTANT` the bytes of dynamic shared memory, which the runtime rounds up by
`dynamic_shared_bytes`.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sarek_numba.ir.types import Kind, Scalar

ENTRY = "sarek_kernel"
BLOCK_CONSTANTS = (0, 1, 2)
SHARED_CONSTANT = 3
ADDRESS_BYTES = 8
_SHARED_GRAIN = 8  # dynamic shared memory is a whole number of the widest elements, at least one


@dataclass(frozen=True, slots=True)
class Argument:
    """Where an argument lies, in bytes from the start of the block; `type` is None for a buffer."""

    offset: int
    type: Scalar | None


@dataclass(frozen=True, slots=True)
class Module:
    """A SPIR-V module and what a launch must know of it.

    `words` is what vkCreateShaderModule takes. `static_shared_bytes` are those of the arrays that
    the module declares with constant lengths, `dynamic_shared` says whether it has the dynamic
    region besides. If `watched`, the last argument is of no parameter: it is the address of a
    word that the launch sets if the device gave up a loop. `local_bytes` are those of the arrays
    of one thread.
    """

    words: bytes
    arguments: tuple[Argument, ...]
    argument_bytes: int
    spilled: bool
    static_shared_bytes: int
    dynamic_shared: bool
    capabilities: tuple[str, ...]
    extensions: tuple[str, ...]
    watched: bool = False
    local_bytes: int = 0


def arguments_of(types: Sequence[Scalar | None]) -> tuple[tuple[Argument, ...], int]:
    """The places of arguments in their order, and the bytes of the block (a multiple of 8)."""
    placed: list[Argument] = []
    end = 0
    for type in types:
        size = argument_size(type)
        offset = -(-end // size) * size
        placed.append(Argument(offset, type))
        end = offset + size
    return tuple(placed), -(-end // ADDRESS_BYTES) * ADDRESS_BYTES


def argument_size(type: Scalar | None) -> int:
    """Bytes that an argument takes in the block."""
    return ADDRESS_BYTES if type is None else max(4, type.bits // 8)


def dynamic_shared_bytes(asked: int) -> int:
    """The value of `SHARED_CONSTANT` for a launch with so many bytes of dynamic shared memory."""
    return max(_SHARED_GRAIN, -(-asked // _SHARED_GRAIN) * _SHARED_GRAIN)


def pack(module: Module, values: Sequence[Any]) -> bytes:
    """The block of arguments: an address (int) for each buffer, a NumPy scalar for each scalar.

    The scalar has exactly the type of its parameter.
    """
    packed = [
        value if argument.type is None else packable(argument.type, value)
        for argument, value in zip(module.arguments, values, strict=True)
    ]
    return structure(module.arguments, module.argument_bytes).pack(*packed)


def packable(type: Scalar, value: Any) -> int | float:
    """A NumPy scalar as the number that `structure` packs for it."""
    if type.is_float:
        if type.bits == 16:
            return int.from_bytes(value.tobytes(), "little")
        return float(value)
    return int(value)


@functools.lru_cache(maxsize=1024)
def structure(arguments: tuple[Argument, ...], size: int) -> struct.Struct:
    """The format of a block, of one number for each argument."""
    text, end = "<", 0
    for argument in arguments:
        if argument.offset > end:
            text += f"{argument.offset - end}x"
        text += _format(argument.type)
        end = argument.offset + argument_size(argument.type)
    return struct.Struct(text + (f"{size - end}x" if size > end else ""))


def _format(type: Scalar | None) -> str:
    if type is None:
        return "Q"
    match type.kind:
        case Kind.FLOAT:
            return {16: "I", 32: "f", 64: "d"}[type.bits]
        case Kind.SIGNED:
            return "q" if type.bits == 64 else "i"
        case _:
            return "Q" if type.bits == 64 else "I"
