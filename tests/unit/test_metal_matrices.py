"""Cooperative matrices of Metal: what is listed, and the text."""

from __future__ import annotations

import pytest

from sarek_metal.dialect import DIALECT, TARGET
from sarek_metal.driver import Framework
from sarek_metal.matrices import MATRICES, NAMES, configurations
from sarek_metal.record import Abilities, abilities_of, facts, record_of
from sarek_numba.capability import Capability, Verdict, fact_of
from sarek_numba.codegen import cfamily
from sarek_numba.errors import InvalidIR
from sarek_numba.ir.nodes import CoopmatConfig, Fragment
from sarek_numba.ir.types import Scalar
from sarek_numba.passes import optimise
from tests.fake_metal import framework
from tests.unit.fragment_kernels import LAYOUTS, as_written, operands, products

F16, BF16, F32, S8, S32 = (
    Scalar(name) for name in ("float16", "bfloat16", "float32", "int8", "int32")
)


def config(m, n, k, a, b, c, **rest):
    return CoopmatConfig(m, n, k, a, b, c, c, **rest)


def text(wanted: CoopmatConfig) -> str:
    given = as_written(wanted)
    a, b, c = operands(given, (1, 1, 1), "random")
    kernel = products(given, *LAYOUTS).ir(a, b, c, c, wanted.k)
    return cfamily.emit(optimise(kernel, TARGET), DIALECT).text


def test_what_there_is():
    """Floats of 8 by 8; bfloat by the language's version."""
    old, new = configurations(has_bfloat=False), configurations(has_bfloat=True)
    assert {(each.a, each.result) for each in old} == {(F16, F16), (F16, F32), (F32, F32)}
    assert set(new) - set(old) == {config(8, 8, 8, BF16, BF16, F32)}
    for each in new:
        assert (each.m, each.n, each.k, each.saturating) == (8, 8, 8, False)
        assert "simdgroup_multiply_accumulate" in text(each)


@pytest.mark.parametrize(
    "missing",
    [
        config(8, 8, 8, S8, S8, S32),
        config(16, 16, 16, F16, F16, F32),
        config(8, 8, 8, F16, BF16, F32),
        config(8, 8, 8, BF16, BF16, BF16),
        config(8, 8, 8, F16, F16, F32, scope="workgroup"),
        CoopmatConfig(8, 8, 8, F16, F16, F32, F16),
    ],
    ids=str,
)
def test_what_there_is_not(missing):
    assert missing not in configurations(has_bfloat=True)
    with pytest.raises(InvalidIR, match="has no multiply-add"):
        MATRICES.multiply_add(missing, "d", "a", "b", "c")


def test_fragments_that_there_are_not():
    for fragment in (Fragment("a", S8, 8, 8), Fragment("c", F32, 16, 8)):
        with pytest.raises(InvalidIR, match="has no fragment of"):
            MATRICES.declare("f", fragment)


def test_text():
    """Halves are so named where they are loaded from their bits, in the memory that they lie in."""
    found = text(config(8, 8, 8, F16, F16, F32))
    assert "= make_filled_simdgroup_matrix<float, 8>(float(0));" in found
    assert "(const device half *)(" in found
    assert "ulong2(0), true);" in found  # the second operand lies by columns
    fragment = Fragment("a", F16, 8, 8)
    stored = MATRICES.store("f", fragment, "threadgroup", "tile + 8", "16", False)
    assert (
        stored
        == "simdgroup_store(f, (threadgroup half *)(tile + 8), (ulong)(16), ulong2(0), false)"
    )
    filled = MATRICES.fill("f", fragment, "x")
    assert filled == "f = make_filled_simdgroup_matrix<half, 8>(as_type<half>((ushort)(x)))"
    assert set(NAMES) <= DIALECT.reserved


def test_by_device():
    """Apple's own GPUs have them; another is refused with the reason."""
    made: Framework = framework()
    device = made.metal.devices[0]
    record = record_of(made, device, "metal:0")
    assert record.coopmat == configurations(has_bfloat=abilities_of(made, device).has_scoped_fences)
    wanted = Capability("coopmat", configuration=config(8, 8, 8, F16, F16, F32))
    assert fact_of(wanted, record).verdict is Verdict.AVAILABLE
    of_bytes = Capability("coopmat", configuration=config(8, 8, 8, S8, S8, S32))
    refused = fact_of(of_bytes, record)
    assert refused.verdict is Verdict.UNAVAILABLE
    assert "it has float16 * float16, bfloat16" in refused.evidence
    device.is_apple = False
    record = record_of(made, device, "metal:0")
    refused = fact_of(wanted, record)
    assert refused.verdict is Verdict.UNAVAILABLE
    assert "family Apple7" in refused.evidence
    assert facts(Abilities(False, True))[Capability("coopmat")].evidence == refused.evidence
