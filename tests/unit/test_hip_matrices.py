"""Cooperative matrices of HIP: what is listed for each architecture, and their words."""

from __future__ import annotations

import pytest

from sarek_hip.dialect import DIALECT
from sarek_hip.matrices import MATRICES, PRODUCTS, configurations, definition, product_for
from sarek_numba.errors import InvalidIR
from sarek_numba.ir.matrices import fragments_of
from sarek_numba.ir.nodes import CoopmatConfig, Fragment
from sarek_numba.ir.types import Scalar

F16, BF16, F32, F64 = Scalar.FLOAT16, Scalar.BFLOAT16, Scalar.FLOAT32, Scalar.FLOAT64
S8, U8, S32, U32 = Scalar.INT8, Scalar.UINT8, Scalar.INT32, Scalar.UINT32
ARCHITECTURES = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1151", "gfx1201")


def config(m, n, k, a, b, c, **rest):
    return CoopmatConfig(m, n, k, a, b, c, c, **rest)


def operands(architecture: str) -> set[tuple[Scalar, Scalar]]:
    return {(each.a, each.b) for each in configurations(architecture)}


def test_what_each_architecture_has():
    halves, bytes_of = {(F16, F16), (BF16, BF16)}, {(a, b) for a in (S8, U8) for b in (S8, U8)}
    for wave32 in ("gfx1100", "gfx1103", "gfx1151", "gfx1200", "gfx1201"):
        assert operands(wave32) == halves | bytes_of
        assert config(16, 16, 16, U8, S8, S32) in configurations(wave32)
    for wave64 in ("gfx942", "gfx950"):
        assert operands(wave64) == halves | {(S8, S8), (F32, F32)}
        assert config(16, 16, 16, S8, S8, S32) not in configurations(wave64)
    for none in ("gfx900", "gfx906", "gfx908", "gfx1030", "gfx1250"):
        assert configurations(none) == ()


def test_subnormal_halves():
    """The instructions of gfx90a take them for zeros, so it lists none of halves."""
    assert operands("gfx90a") == {(S8, S8), (F32, F32)}


def test_everything_listed_can_be_printed():
    """Each has a product and fragments, is listed once; sums of bytes alone saturate."""
    seen = set()
    for architecture in ARCHITECTURES:
        every = configurations(architecture)
        assert len(set(every)) == len(every)
        assert {each.saturating for each in every if each.a in (S8, U8)} == {True, False}
        assert not any(each.saturating for each in every if each.a not in (S8, U8))
        for each in every:
            seen.add(product_for(each))
            for fragment in fragments_of(each).values():
                assert "matrix_" in MATRICES.declare("f", fragment)
            assert "mma_" in MATRICES.multiply_add(each, "d", "a", "b", "c")
    assert seen == set(PRODUCTS)


@pytest.mark.parametrize(
    "missing",
    [
        config(8, 8, 16, S8, S8, S32),
        config(16, 16, 8, F16, F16, F32),
        config(16, 16, 16, F16, BF16, F32),
        config(16, 16, 16, F16, F16, F16),
        config(16, 16, 16, F16, F16, F32, saturating=True),
        config(16, 16, 16, F16, F16, F32, scope="workgroup"),
        CoopmatConfig(16, 16, 16, F16, F16, F32, F16),
        config(16, 16, 4, F64, F64, F64),
    ],
    ids=str,
)
def test_what_there_is_not(missing):
    assert not any(missing in configurations(each) for each in ARCHITECTURES)
    with pytest.raises(InvalidIR):
        MATRICES.multiply_add(missing, "d", "a", "b", "c")


@pytest.mark.parametrize(
    ("fragment", "sizes"),
    [
        (Fragment("a", F16, 8, 16), "8 lines of 16"),
        (Fragment("b", F16, 8, 16), "16 lines of 8"),
        (Fragment("c", F32, 16, 8), "16 by 8 sums"),
    ],
    ids=str,
)
def test_a_fragment_is_of_whole_pieces(fragment, sizes):
    with pytest.raises(InvalidIR, match=sizes):
        MATRICES.declare("f", fragment)


def test_words_of_the_dialect():
    """Whatever a kernel's text names is defined and reserved."""
    for word in (*(each.name for each in PRODUCTS), "matrix_load_sums", "matrix_parts"):
        assert word in DIALECT.word_prologue
        assert word in DIALECT.reserved
        assert any(word in text for text in DIALECT.word_prologue[word])


def test_every_architecture_that_lists_a_product_has_a_text_of_it():
    """A condition of the preprocessor for each family; without one nothing would be added up."""
    families = {"gfx90a": "__GFX9__", "gfx94": "__GFX9__", "gfx95": "__GFX9__"}
    families |= {"gfx110": "__GFX11__", "gfx115": "__GFX11__", "gfx120": "__GFX12__"}
    for each in PRODUCTS:
        text = definition(each)
        assert all(families[family] in text for family in each.families)


def test_fills_are_spread_over_words():
    """Four bytes, two halves, or the bits of a float; sums are one for each component."""
    assert "0x1010101u * (unsigned char)(v)" in MATRICES.fill("f", Fragment("a", S8, 16, 16), "v")
    assert "0x10001u * (unsigned short)(v)" in MATRICES.fill("f", Fragment("b", F16, 16, 16), "v")
    assert "__builtin_bit_cast" in MATRICES.fill("f", Fragment("a", F32, 16, 4), "v")
    assert MATRICES.fill("f", Fragment("c", F32, 16, 16), "v").endswith("float>(f, v)")
