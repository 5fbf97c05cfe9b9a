"""An assembler and a disassembler of SPIR-V, driven by the tables of `opcodes`.

`Assembler` collects the instructions of a module by section, hands out ids, and keeps one of each
type, constant and capability. `Assembler.words` gives the module, its sections in the order that
SPIR-V asks for. `instructions` reads a module back and checks the length of each instruction.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from enum import Enum

from sarek_vulkan.opcodes import BY_NUMBER, ENUMERANTS, EXTENDED, GLSL, MASKS, OPERATIONS, Operation

MAGIC = 0x07230203
VERSION = 0x00010500  # 1.5, that of Vulkan 1.2
_HEADER_WORDS = 5

Operand = int | str
Instruction = tuple[str, tuple[Operand, ...]]


class Section(Enum):
    """The sections of a module in their order."""

    CAPABILITIES = 0
    EXTENSIONS = 1
    IMPORTS = 2
    MODEL = 3
    ENTRY = 4
    MODES = 5
    NAMES = 6
    DECORATIONS = 7
    GLOBALS = 8
    FUNCTIONS = 9


class MalformedModule(Exception):
    """Words that are no SPIR-V module; the text says what is wrong and at which word."""


class Assembler:
    """A module in the making."""

    def __init__(self) -> None:
        self._next = 1
        self._sections: dict[Section, list[Instruction]] = {section: [] for section in Section}
        self._known: dict[tuple[object, ...], int] = {}
        self._once: set[Instruction] = set()

    def id(self) -> int:
        """A new id."""
        self._next += 1
        return self._next - 1

    def add(self, section: Section, name: str, *operands: Operand) -> None:
        """Append an instruction to a section."""
        self._sections[section].append((name, operands))

    def once(self, section: Section, name: str, *operands: Operand) -> None:
        """Append an instruction unless the module has an equal one."""
        if (name, operands) not in self._once:
            self._once.add((name, operands))
            self.add(section, name, *operands)

    def extend(self, instructions: Sequence[Instruction]) -> None:
        """Append a function."""
        self._sections[Section.FUNCTIONS] += instructions

    def type(self, name: str, *operands: Operand, key: object = None) -> int:
        """The id of a type. Equal types are one, unless `key`, which names decorations, differs."""
        return self._one((name, operands, key), Section.GLOBALS, name, *operands)

    def constant(self, name: str, type: int, *operands: Operand) -> int:
        """The id of a constant, one for equal ones."""
        found = self._known.get((name, type, operands))
        if found is None:
            found = self._known[name, type, operands] = self.id()
            self.add(Section.GLOBALS, name, type, found, *operands)
        return found

    def unique(self, name: str, type: int, *operands: Operand) -> int:
        """The id of a constant or variable of its own."""
        new = self.id()
        self.add(Section.GLOBALS, name, type, new, *operands)
        return new

    def imported(self, instruction_set: str) -> int:
        """The id of an extended instruction set."""
        name = "OpExtInstImport"
        return self._one((name, instruction_set), Section.IMPORTS, name, instruction_set)

    def _one(self, key: tuple[object, ...], section: Section, name: str, *operands: Operand) -> int:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self.id()
            self.add(section, name, found, *operands)
        return found

    def capability(self, name: str) -> None:
        """Declare a capability."""
        self.once(Section.CAPABILITIES, "OpCapability", name)

    def extension(self, name: str) -> None:
        """Declare an extension."""
        self.once(Section.EXTENSIONS, "OpExtension", name)

    def declared(self, section: Section) -> tuple[str, ...]:
        """The capabilities or the extensions declared so far, in order."""
        return tuple(str(operands[0]) for _, operands in self._sections[section])

    def words(self) -> bytes:
        """The module, in words of the byte order of this machine's files: little-endian."""
        body: list[int] = []
        for section in Section:
            for name, operands in self._sections[section]:
                body += encoded(name, operands)
        header = (MAGIC, VERSION, 0, self._next, 0)
        return struct.pack(f"<{len(header) + len(body)}I", *header, *body)


def encoded(name: str, operands: Sequence[Operand]) -> list[int]:
    """An instruction as words. Raises MalformedModule for operands that it does not take."""
    operation = OPERATIONS[name]
    words: list[int] = []
    for place, operand in enumerate(operands):
        if place >= len(operation.operands) and operation.operands[-1:] == ():
            raise MalformedModule(f"{name} takes no operands")
        kind = operation.operands[min(place, len(operation.operands) - 1)].rstrip("?*")
        if isinstance(operand, int):
            words.append(operand)
        elif kind == "string":
            words += _characters(operand)
        else:
            words.append(_enumerant(name, kind, operand))
    _check_length(operation, 1 + len(words), None)
    return [(1 + len(words)) << 16 | operation.number, *words]


def _enumerant(name: str, kind: str, operand: str) -> int:
    table = ENUMERANTS.get(kind) or ENUMERANTS["BuiltIn"]
    value = 0
    for part in operand.split("|"):
        if part not in table:
            raise MalformedModule(f"{name} has no {kind} named {part}")
        value |= table[part]
    return value


def _characters(text: str) -> list[int]:
    data = text.encode() + b"\0"
    data += b"\0" * (-len(data) % 4)
    return list(struct.unpack(f"<{len(data) // 4}I", data))


def _check_length(operation: Operation, count: int, place: int | None) -> None:
    most = operation.most
    if operation.least <= count and (most is None or count <= most):
        return
    wanted = f"{operation.least}" if most == operation.least else f"{operation.least} or more"
    if most is not None and most != operation.least:
        wanted = f"{operation.least} to {most}"
    where = "" if place is None else f" at word {place}"
    raise MalformedModule(f"{operation.name}{where} has {count} words and takes {wanted}")


# --- reading --------------------------------------------------------------------------------------


def instructions(words: bytes) -> Iterator[tuple[Operation, tuple[int, ...]]]:
    """The instructions of a module and their operands, checked as they are read.

    Raises MalformedModule for a wrong header, an instruction that is not in the table or has too
    few or too many words, and an id that is not below the bound.
    """
    if len(words) % 4 or len(words) < 4 * _HEADER_WORDS:
        raise MalformedModule(f"{len(words)} bytes are no module: it is whole words, 5 at least")
    code = struct.unpack(f"<{len(words) // 4}I", words)
    if code[0] != MAGIC:
        raise MalformedModule(f"the first word is {code[0]:#010x} and not {MAGIC:#010x}")
    bound, place = code[3], _HEADER_WORDS
    while place < len(code):
        count, number = code[place] >> 16, code[place] & 0xFFFF
        operation = BY_NUMBER.get(number)
        if operation is None:
            raise MalformedModule(f"opcode {number} at word {place} is not in the table")
        if count == 0 or place + count > len(code):
            raise MalformedModule(f"{operation.name} at word {place} has {count} words")
        _check_length(operation, count, place)
        operands = code[place + 1 : place + count]
        _check_ids(operation, operands, bound, place)
        yield operation, operands
        place += count


def _check_ids(operation: Operation, operands: tuple[int, ...], bound: int, place: int) -> None:
    for kind, value in _kinds(operation, operands):
        if kind in ("type", "result", "id") and not 0 < value < bound:
            raise MalformedModule(f"{operation.name} at word {place}: id {value} of {bound}")


def _kinds(operation: Operation, operands: tuple[int, ...]) -> Iterator[tuple[str, int]]:
    """Each operand word with its kind, as far as no string moves the words."""
    kinds = operation.operands
    for position, value in enumerate(operands):
        if not kinds:
            return
        kind = kinds[min(position, len(kinds) - 1)].rstrip("?*")
        if kind == "string":
            return
        yield kind, value


def disassemble(words: bytes) -> str:
    """A module as text, one instruction a line, `%name` where the module names an id."""
    found = list(instructions(words))
    names = {
        operands[0]: f"%{_string(operands[1:])[0]}"
        for operation, operands in found
        if operation.name == "OpName"
    }
    texts = [_line(operation, operands, names) for operation, operands in found]
    return "".join(f"{text}\n" for text in texts if text)


def _line(operation: Operation, operands: tuple[int, ...], names: dict[int, str]) -> str:
    if operation.name == "OpName":
        return ""
    parts, result = [], ""
    rest = list(operands)
    kinds = list(operation.operands)
    while rest:
        kind = kinds[0].rstrip("?*")
        if not kinds[0].endswith("*"):
            kinds.pop(0)
        if kind == "string":
            text, used = _string(rest)
            parts.append(f'"{text}"')
            del rest[:used]
            continue
        value = rest.pop(0)
        if kind == "result":
            result = names.get(value, f"%{value}")
        elif kind in ("type", "id"):
            parts.append(names.get(value, f"%{value}"))
        elif kind == "word":
            parts.append(_literal(operation, parts, value))
        else:
            parts.append(_enumerant_name(kind, value))
    text = " ".join((operation.name, *parts))
    return f"{result:>14} = {text}" if result else f"{'':>17}{text}"


def _literal(operation: Operation, parts: list[str], value: int) -> str:
    if operation.name == "OpExtInst" and len(parts) == 2:
        return next((name for name, number in EXTENDED.items() if number == value), str(value))
    if parts and parts[-1] == "BuiltIn":
        return _enumerant_name("BuiltIn", value)
    return str(value)


def _enumerant_name(kind: str, value: int) -> str:
    table = ENUMERANTS[kind]
    for name, number in table.items():
        if number == value:
            return name
    if kind in MASKS:
        return "|".join(name for name, number in table.items() if number & value)
    return str(value)


def _string(words: Sequence[int]) -> tuple[str, int]:
    """The string at the start of some words, and how many words it takes."""
    for used, word in enumerate(words, 1):
        if word >> 24 == 0:
            data = struct.pack(f"<{used}I", *words[:used])
            return data.split(b"\0")[0].decode(), used
    raise MalformedModule("a string without an end")


__all__ = [
    "GLSL",
    "Assembler",
    "Instruction",
    "MalformedModule",
    "Section",
    "disassemble",
    "encoded",
    "instructions",
]
