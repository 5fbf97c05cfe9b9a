"""The assembler of SPIR-V: words, sections, ids, and reading modules back."""

from __future__ import annotations

import struct

import pytest

from sarek_vulkan.opcodes import BY_NUMBER, ENUMERANTS, OPERATIONS
from sarek_vulkan.spirv import (
    Assembler,
    MalformedModule,
    Section,
    disassemble,
    encoded,
    instructions,
)
from tests.unit.spirv_tools import disassembly, validate


def _module() -> bytes:
    """A kernel that does nothing, its parts given in a wrong order."""
    asm = Assembler()
    void = asm.type("OpTypeVoid")
    type = asm.type("OpTypeFunction", void)
    function, label = asm.id(), asm.id()
    asm.extend(
        [
            ("OpFunction", (void, function, "None", type)),
            ("OpLabel", (label,)),
            ("OpReturn", ()),
            ("OpFunctionEnd", ()),
        ]
    )
    asm.add(Section.MODES, "OpExecutionMode", function, "LocalSize", 1, 1, 1)
    asm.add(Section.ENTRY, "OpEntryPoint", "GLCompute", function, "main")
    asm.add(Section.MODEL, "OpMemoryModel", "Logical", "GLSL450")
    asm.capability("Shader")
    return asm.words()


def test_sections_are_in_order(tmp_path):
    """Instructions stand in the order of SPIR-V's sections, whatever order they came in."""
    assert validate([_module()], tmp_path) == [""]


def test_first_word():
    """An instruction begins with its length and its number; the header has version and bound."""
    words = struct.unpack("<5I", _module()[:20])
    assert words == (0x07230203, 0x00010500, 0, 5, 0)
    assert encoded("OpTypeInt", (7, 32, 0)) == [4 << 16 | 21, 7, 32, 0]
    assert encoded("OpExtension", ("abcd",)) == [3 << 16 | 10, 0x64636261, 0]


def test_one_of_each():
    """Equal types, constants and capabilities are one; a key keeps types apart."""
    asm = Assembler()
    word = asm.type("OpTypeInt", 32, 0)
    assert asm.type("OpTypeInt", 32, 0) == word
    assert asm.type("OpTypeInt", 64, 0) != word
    assert asm.constant("OpConstant", word, 1) == asm.constant("OpConstant", word, 1)
    assert asm.type("OpTypeStruct", word, key="a") != asm.type("OpTypeStruct", word, key="b")
    asm.capability("Shader")
    asm.capability("Shader")
    assert asm.declared(Section.CAPABILITIES) == ("Shader",)


@pytest.mark.parametrize(
    ("name", "operands", "message"),
    [
        ("OpTypeInt", (1, 32), "OpTypeInt has 3 words and takes 4"),
        ("OpReturn", (1,), "OpReturn takes no operands"),
        ("OpLoad", (1, 2), "OpLoad has 3 words and takes 4 or more"),
        ("OpVariable", (1, 2), "OpVariable has 3 words and takes 4 to 5"),
        ("OpCapability", ("Flying",), "OpCapability has no Capability named Flying"),
    ],
)
def test_refused_operands(name, operands, message):
    """An instruction with too few or too many words, or an unknown enumerant, is not encoded."""
    with pytest.raises(MalformedModule, match=message):
        encoded(name, operands)


def _spoiled(place: int, word: int) -> bytes:
    words = list(struct.unpack(f"<{len(_module()) // 4}I", _module()))
    words[place] = word
    return struct.pack(f"<{len(words)}I", *words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (b"abc", "3 bytes are no module"),
        (_spoiled(0, 1), "the first word is 0x00000001"),
        (_spoiled(5, 2 << 16 | 9999), "opcode 9999 at word 5 is not in the table"),
        (_spoiled(5, 3 << 16 | 17), "OpCapability at word 5 has 3 words and takes 2"),
        (_spoiled(5, 17), "OpCapability at word 5 has 0 words"),
        (_spoiled(3, 2), "OpEntryPoint at word 10: id 3 of 2"),
    ],
)
def test_refused_modules(words, message):
    """What is no module is refused, with the word at which it fails."""
    with pytest.raises(MalformedModule, match=message):
        list(instructions(words))


def test_disassembly_by_another(tmp_path):
    """Our names of instructions and enumerants are those of Khronos' disassembler."""
    ours = [line.split() for line in disassemble(_module()).splitlines()]
    theirs = [line.split() for line in disassembly(_module(), tmp_path).splitlines()]
    assert ours == theirs


def test_tables_are_consistent():
    """No number names two instructions; every kind of operand is known."""
    assert len(BY_NUMBER) == len(OPERATIONS)
    simple = {"type", "result", "id", "word", "string"}
    kinds = {kind.rstrip("?*") for o in OPERATIONS.values() for kind in o.operands}
    assert kinds - simple <= set(ENUMERANTS)
