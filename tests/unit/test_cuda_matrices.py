"""Cooperative matrices of CUDA: what is listed, and how instructions are put together."""

from __future__ import annotations

import re

import pytest

from sarek_cuda.dialect import DIALECT
from sarek_cuda.matrices import (
    INSTRUCTIONS,
    MATRICES,
    configurations,
    definition,
    instruction_for,
    piece,
)
from sarek_numba.errors import InvalidIR
from sarek_numba.ir.matrices import fragments_of
from sarek_numba.ir.nodes import CoopmatConfig, Fragment
from sarek_numba.ir.types import Scalar

F16, BF16, F32, F64 = Scalar.FLOAT16, Scalar.BFLOAT16, Scalar.FLOAT32, Scalar.FLOAT64
S8, U8, S32, U32 = Scalar.INT8, Scalar.UINT8, Scalar.INT32, Scalar.UINT32


def config(m, n, k, a, b, c, **rest):
    return CoopmatConfig(m, n, k, a, b, c, c, **rest)


def operands(capability: int) -> set[Scalar]:
    return {each.a for each in configurations(capability)}


def test_what_each_architecture_has():
    """By compute capability, as the target notes of the instructions say."""
    assert configurations(70) == ()
    assert operands(75) == {F16, S8, U8}
    assert operands(80) == operands(90) == operands(100) == {F16, BF16, S8, U8, F64}
    assert set(configurations(75)) < set(configurations(80))
    for wanted in (
        config(16, 8, 16, F16, F16, F32),
        config(16, 16, 16, F16, F16, F16),
        config(16, 8, 32, S8, U8, S32),
        config(8, 8, 16, U8, U8, U32),
    ):
        assert wanted in configurations(75)
    for wanted in (config(16, 8, 16, BF16, BF16, F32), config(8, 8, 4, F64, F64, F64)):
        assert wanted in configurations(80)
        assert wanted not in configurations(75)


def test_everything_listed_can_be_printed():
    """Each has an instruction, fragments of whole pieces, and each is listed once."""
    every = configurations(100)
    assert len(set(every)) == len(every)
    assert {instruction_for(each) for each in every} == set(INSTRUCTIONS)
    for each in every:
        for fragment in fragments_of(each).values():
            assert MATRICES.declare("f", fragment).startswith(("unsigned", "float", "int", "doub"))
        assert "mma_m" in MATRICES.multiply_add(each, "d", "a", "b", "c")


def test_the_largest_instruction_is_taken():
    assert instruction_for(config(16, 16, 16, F16, F16, F32)).name == "mma_m16n8k16_f16_f16_f32"
    assert instruction_for(config(16, 16, 8, F16, F16, F32)).name == "mma_m16n8k8_f16_f16_f32"
    assert instruction_for(config(32, 8, 32, S8, U8, U32)).name == "mma_m16n8k32_s8_u8_s32"
    assert instruction_for(config(8, 32, 32, S8, S8, S32)).name == "mma_m8n8k16_s8_s8_s32"


@pytest.mark.parametrize(
    "missing",
    [
        config(8, 8, 8, S8, S8, S32),
        config(8, 8, 16, F16, F16, F32),
        config(16, 8, 16, F16, BF16, F32),
        config(16, 8, 16, F16, F16, F32, saturating=True),
        config(16, 8, 16, F16, F16, F32, scope="workgroup"),
        CoopmatConfig(16, 8, 16, F16, F16, F32, F16),
        config(16, 8, 8, F32, F32, F32),
    ],
    ids=str,
)
def test_what_there_is_not(missing):
    assert missing not in configurations(100)
    with pytest.raises(InvalidIR):
        MATRICES.multiply_add(missing, "d", "a", "b", "c")


def test_a_fragment_is_of_whole_pieces():
    with pytest.raises(InvalidIR, match="4 lines of 16"):
        MATRICES.declare("f", Fragment("a", F16, 4, 16))


def test_operands_of_the_instruction():
    """The text of PTX names as many registers as its shape has components for a lane."""
    for each in INSTRUCTIONS:
        text = definition(each)
        found = re.search(r'"mma\.sync\.aligned\.(\S+) (.*);"', text)
        assert found is not None
        assert found[1].startswith(f"m{each.m}n8k{each.k}.row.col.")
        counts = [len(group.split(",")) for group in re.findall(r"\{([^}]*)\}", found[2])]
        bits = max(32, each.a.bits)
        sums = each.m * 8 * each.sums.bits // 32 // max(32, each.sums.bits)
        wanted = [sums, each.m * each.k * each.a.bits // 32 // bits]
        wanted += [8 * each.k * each.b.bits // 32 // bits, sums]
        assert counts == wanted
        assert text.count('"+') == sums


def test_words_of_the_dialect():
    """Whatever a kernel's text names is defined and reserved."""
    for word in (*(each.name for each in INSTRUCTIONS), "matrix_load_words", "matrix_fill"):
        assert word in DIALECT.word_prologue
        assert word in DIALECT.reserved
        assert any(word in text for text in DIALECT.word_prologue[word])


def test_fills_are_spread_over_words():
    """Four bytes, two halves, or one component."""
    assert "0x1010101u * (unsigned char)(v)" in MATRICES.fill("f", Fragment("a", S8, 8, 16), "v")
    assert "0x10001u * (unsigned short)(v)" in MATRICES.fill("f", Fragment("c", F16, 16, 8), "v")
    assert MATRICES.fill("f", Fragment("c", F32, 16, 8), "v") == "matrix_fill<4, float>(f, v)"


def test_pieces():
    assert {each: piece(each) for each in (S8, F16, F64)} == {S8: 16, F16: 8, F64: 4}
