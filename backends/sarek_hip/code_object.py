"""What a code object says of its kernels: their names, and the bytes of each parameter.

In comes what hiprtc makes: an ELF file of AMD's, or a bundle of clang's that has one. It has a note
of type NT_AMDGPU_METADATA, whose content is a map in MessagePack (LLVM, user guide for AMDGPU
backend, code object metadata V3 to V5). Of MessagePack those forms are read that LLVM writes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

_BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__"
_ELF64 = b"\x7fELF\x02\x01"  # 64 bits, the least byte first
_PT_NOTE, _SHT_NOTE = 4, 7
_METADATA = (b"AMDGPU\0", 32)


def kernels(image: bytes) -> dict[str, tuple[int, ...]]:
    """The parameters' bytes of each kernel; nothing of an image that has no such note."""
    found: dict[str, tuple[int, ...]] = {}
    try:
        for name, kind, content in _notes(_object(image)):
            if (name, kind) == _METADATA:
                for kernel in unpack(content).get("amdhsa.kernels", ()):
                    found[kernel[".name"]] = tuple(
                        part[".size"]
                        for part in kernel.get(".args", ())
                        if not part[".value_kind"].startswith("hidden_")
                    )
    except (struct.error, IndexError, KeyError, ValueError, AttributeError):
        return {}  # of another form than the documented one
    return found


def _object(image: bytes) -> bytes:
    """The ELF file in an image."""
    if not image.startswith(_BUNDLE):
        return image
    place = len(_BUNDLE)
    (count,) = struct.unpack_from("<Q", image, place)
    place += 8
    for _ in range(count):
        first, size, triple = struct.unpack_from("<QQQ", image, place)
        place += 24 + triple
        if image[first : first + 4] == _ELF64[:4]:
            return image[first : first + size]
    return b""


def _notes(image: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """Name, type and content of each note: in segments, or in sections of what is not linked."""
    if not image.startswith(_ELF64):
        return
    segments, sections = struct.unpack_from("<QQ", image, 32)
    _, segment_size, segment_count, section_size, section_count = struct.unpack_from(
        "<HHHHH", image, 52
    )
    for k in range(segment_count):
        kind, _, first, _, _, size = struct.unpack_from(
            "<IIQQQQ", image, segments + k * segment_size
        )
        if kind == _PT_NOTE:
            yield from _each(image[first : first + size])
    for k in range(section_count if not segment_count else 0):
        place = sections + k * section_size
        _, kind, _, _, first, size = struct.unpack_from("<IIQQQQ", image, place)
        if kind == _SHT_NOTE:
            yield from _each(image[first : first + size])


def _each(notes: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    place = 0
    while place + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from("<III", notes, place)
        name = place + 12
        content = name + -(-name_size // 4) * 4
        yield notes[name : name + name_size], kind, notes[content : content + size]
        place = content + -(-size // 4) * 4


def unpack(data: bytes) -> Any:
    """What MessagePack bytes say. Raises ValueError for a form that LLVM does not write."""
    return _value(data, 0)[0]


_NUMBERS = {  # by their first byte
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
    0xCB: ">d",
}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
# What has a length: the form of that, by the first byte.
_TEXTS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_ARRAYS = {0xDC: ">H", 0xDD: ">I"}
_MAPS = {0xDE: ">H", 0xDF: ">I"}


def _value(data: bytes, place: int) -> tuple[Any, int]:
    """The value at a place, and the place behind it."""
    lead, place = data[place], place + 1
    if lead < 0x80 or lead >= 0xE0:
        return (lead if lead < 0x80 else lead - 256), place
    if lead in _CONSTANTS:
        return _CONSTANTS[lead], place
    if lead in _NUMBERS:
        form = _NUMBERS[lead]
        return struct.unpack_from(form, data, place)[0], place + struct.calcsize(form)
    for forms, short, mask, read in (
        (_TEXTS, 0xA0, 0x1F, _text),
        (_ARRAYS, 0x90, 0x0F, _array),
        (_MAPS, 0x80, 0x0F, _map),
    ):
        if lead in forms:
            (length,) = struct.unpack_from(forms[lead], data, place)
            return read(data, place + struct.calcsize(forms[lead]), length)
        if lead & ~mask == short:
            return read(data, place, lead & mask)
    raise ValueError(f"MessagePack of the form {lead:#x}")


def _text(data: bytes, place: int, length: int) -> tuple[str, int]:
    return data[place : place + length].decode(), place + length


def _array(data: bytes, place: int, length: int) -> tuple[list[Any], int]:
    found = []
    for _ in range(length):
        value, place = _value(data, place)
        found.append(value)
    return found, place


def _map(data: bytes, place: int, length: int) -> tuple[dict[Any, Any], int]:
    both, place = _array(data, place, 2 * length)
    return dict(zip(both[::2], both[1::2], strict=True)), place
