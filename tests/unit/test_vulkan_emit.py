"""SPIR-V from Sarek IR: modules of small kernels, valid and as they should be."""

from __future__ import annotations

import struct

import pytest

from sarek_numba import passes
from sarek_numba.errors import CapabilityError
from sarek_numba.ir.parse import parse
from sarek_numba.ir.types import Scalar
from sarek_vulkan.abilities import Abilities
from sarek_vulkan.emit import TARGET, emit, target_for
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


VIEWS = """
kernel views index 32 {
  param out: vec<i32> = argument 0 array(i32, global, 1, C)
  shared wide: array<f64, shared> = f64[dynamic]
  shared narrow: array<u8, shared> = u8[dynamic] at 3
  let t: i32 = thread_idx.x.i32
  wide[t] = f64(t)
  barrier
  narrow[t] = 7u8
  barrier
  out[t] = i32(wide[t]) + i32(narrow[t])
}
"""


def test_views_of_different_widths(tmp_path):
    """The dynamic region is an array of the narrowest view; a wider element is several of these."""
    module = _emitted(VIEWS)
    assert module.dynamic_shared
    assert validate([module.words], tmp_path) == [""]
    text = disassemble(module.words)
    assert "SpecId 3" in text
    assert text.count("NonPrivatePointer") >= 8 + 8 + 1 + 1


def test_refused_atomics_of_mixed_views():
    """An atomic element must be whole in the region's array; the refusal names both types."""
    text = VIEWS.replace("f64", "i32").replace("wide[t] = i32(t)", "atomic add(wide[t], t)")
    with pytest.raises(CapabilityError, match=r"no atomics on int32 .* elements of 8 bits"):
        _emitted(text)


def test_refused_function():
    """A function that the device lacks, and that needs float64, is refused by its name."""
    abilities = Abilities(float64=False)

    def emitted(function):
        text = SAXPY.replace("a * x[", f"{function}.f32(x[").replace(
            "count)] + y[", "count)]) + y["
        )
        emit(passes.optimise(parse(text), target_for(abilities)), abilities, 128)

    with pytest.raises(CapabilityError, match="no sin of float32"):
        emitted("sin")
    emitted("exp")  # computed in float32


@pytest.mark.parametrize("helper", ["shared", "local"])
def test_arrays_of_helpers(helper, tmp_path):
    """A helper is one function for each array of the block, and for each length of a thread's."""
    text = f"""
kernel calls index 32 {{
  param out: vec<i32> = argument 0 array(i32, global, 1, C)
  {helper} a: array<i32, {helper}> = {"i32[8]" if helper == "shared" else "new local i32[8]"}
  {helper} b: array<i32, {helper}> = {"i32[8]" if helper == "shared" else "new local i32[8]"}
  function sum(x: array<i32, {helper}>, y: vec<i32>) -> i32 {{
    return x[1i32] + y[0i32]
  }}
  a[1i32] = 1i32
  b[1i32] = 2i32
  let first: i32 = call sum(a, out)
  let second: i32 = call sum(b, out)
  let third: i32 = call sum(b, out)
  out[0i32] = first + second + third
}}
"""
    module = _emitted(text)
    assert validate([module.words], tmp_path) == [""]
    functions = disassemble(module.words).count("OpFunction ")
    assert functions == (3 if helper == "shared" else 2)
