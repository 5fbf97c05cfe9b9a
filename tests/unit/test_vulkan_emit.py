"""SPIR-V from Sarek IR: modules of small kernels, valid and as they should be."""

from __future__ import annotations

import struct

import pytest

from sarek_numba import passes
from sarek_numba.ir.parse import parse
from sarek_numba.ir.types import Scalar
from sarek_vulkan.abilities import Abilities
from sarek_vulkan.emit import TARGET, emit
from sarek_vulkan.layout import Argument
from sarek_vulkan.opcodes import OPERATIONS
from sarek_vulkan.spirv import disassemble, instructions
from tests.unit.spirv_tools import validate

SAXPY = """
kernel saxpy index 32 {
  param x: vec<f32> = argument 0 array(f32, global, 1, C, readonly)
  param y: vec<f32> = argument 1 array(f32, global, 1, C)
  param a: f32 = argument 2
  param n: i32 = length 1
  let i: i64 = global_idx.x
  let count: i64 = i64(n)
  if i < count {
    y[at(y, 0, i, count)] = a * x[at(x, 0, i, count)] + y[at(y, 0, i, count)]
  }
}
"""


PLAIN = Abilities()


def _emitted(text, abilities=PLAIN, push_limit=128):
    return emit(passes.optimise(parse(text), TARGET), abilities, push_limit)


def test_saxpy(tmp_path):
    """A simple kernel takes its arguments from the push constants and needs no more than these."""
    module = _emitted(SAXPY)
    assert validate([module.words], tmp_path) == [""]
    assert module.arguments == (
        Argument(0, None),
        Argument(8, None),
        Argument(16, Scalar.FLOAT32),
        Argument(20, Scalar.INT32),
    )
    assert module.argument_bytes == 24
    assert not module.spilled
    assert module.capabilities == ("Shader", "PhysicalStorageBufferAddresses")
    assert module.extensions == ()


def test_spilled_arguments(tmp_path):
    """Arguments that do not fit the push constants come from a buffer that these point to."""
    module = _emitted(SAXPY, push_limit=16)
    assert module.spilled
    assert module.argument_bytes == 24
    assert validate([module.words], tmp_path) == [""]


def test_validator_finds_a_planted_error(tmp_path):
    """A module whose sum takes a pointer for a number is refused by the validator."""
    words = bytearray(_emitted(SAXPY).words)
    place = 20
    for operation, operands in instructions(bytes(words)):
        if operation is OPERATIONS["OpFAdd"]:
            struct.pack_into("<I", words, place + 12, operands[1] + 1)
        place += 4 * (1 + len(operands))
    (found,) = validate([bytes(words)], tmp_path)
    assert "FAdd" in found


@pytest.mark.parametrize("name", ["OpFMul", "OpFAdd"])
def test_no_contraction(name):
    """No sum or product of floats may become part of another operation."""
    text = disassemble(_emitted(SAXPY).words)
    (line,) = (line for line in text.splitlines() if name in line)
    result = line.split()[0]
    assert f"OpDecorate {result} NoContraction" in text
