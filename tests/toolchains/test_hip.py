"""Every kernel of the corpus as HIP C++: clang makes code of it for each target."""

from __future__ import annotations

import re

import pytest

from sarek_hip.dialect import DIALECT, TARGET, contracting
from sarek_hip.matrices import configurations, product_for
from sarek_numba.codegen import cfamily
from sarek_numba.ir.nodes import CoopmatConfig
from sarek_numba.passes import optimise
from tests.kernels import elementwise
from tests.kernels.corpus import MODULES
from tests.toolchains import amd
from tests.toolchains.corpus import program, text_of
from tests.unit.fragment_kernels import LAYOUTS, as_written, operands, products

pytestmark = pytest.mark.skipif(bool(amd.why_not()), reason=amd.why_not() or "present")
_SAXPY = next(case for case in elementwise.corpus if case.name == "saxpy_float32")


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_corpus(module, everything):
    """For the oldest and the newest target; `--everything`: for those between too."""
    whole = program(text_of(case, DIALECT, TARGET) for case in module.corpus)
    for target in amd.TARGETS if everything else amd.ENDS:
        assert amd.assembly(whole, target)[0] == ""


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_coarsened_corpus(module):
    """The texts of large launches, where they are others."""
    pairs = [[text_of(case, DIALECT, TARGET, coarse=c) for c in (False, True)]
             for case in module.corpus]  # fmt: skip
    texts = [coarse for plain, coarse in pairs if coarse != plain]
    if texts:
        assert amd.assembly(program(texts), "gfx942")[0] == ""


def test_a_wrong_text_is_refused():
    """The compiler is asked: a name that no header has is an error, and so is a missing word."""
    text = text_of(_SAXPY, DIALECT, TARGET)
    for wrong in (text.replace("threadIdx", "thread_idx"), text.replace("float *", "flaot *")):
        assert "error" in amd.assembly(program([text, wrong]), "gfx942")[0]


def test_products_and_sums_stay_apart():
    """`a * x + y` is two operations, each rounded; one only where that is granted."""

    def fused(dialect):
        log, code = amd.assembly(text_of(_SAXPY, dialect, TARGET), "gfx942")
        assert log == ""
        return "v_fma" in code or "v_pk_fma" in code

    assert not fused(DIALECT)
    assert fused(contracting(DIALECT))


_OVERLAP = """
{alias}
extern "C" __global__ void sarek_kernel(int *a, {other} *b, int *out) {{
    a[0] = 1;
    b[0] = 2;
    out[0] = a[0];
}}
"""


def test_accesses_of_other_types_may_overlap():
    """Clang reads again what a store through the aliasing spelling may have changed, only then."""

    def reads(other):
        alias = DIALECT.aliasing.format(type="float", name="aliasing_float")
        log, code = amd.assembly(_OVERLAP.format(alias=alias, other=other), "gfx942")
        assert log == ""
        return code.count("global_load_dword")

    assert reads("aliasing_float") == 1
    assert reads("float") == 0


def _product(config: CoopmatConfig) -> str:
    """A kernel that loads, fills, multiplies and stores, with operands in both layouts."""
    given = as_written(config)
    a, b, c = operands(given, (1, 1, 1), "random")
    kernel = products(given, *LAYOUTS).ir(a, b, c, c, config.k)
    return cfamily.emit(optimise(kernel, TARGET), DIALECT).text


# What a target's instructions are called in its assembly.
_INSTRUCTIONS = {
    "gfx90a": {"v_mfma_i32_16x16x16i8", "v_mfma_f32_16x16x4f32"},
    "gfx942": {
        "v_mfma_f32_16x16x16_f16",
        "v_mfma_f32_16x16x16_bf16",
        "v_mfma_i32_16x16x32_i8",
        "v_mfma_f32_16x16x4_f32",
    },
    "gfx1100": {
        "v_wmma_f32_16x16x16_f16",
        "v_wmma_f32_16x16x16_bf16",
        "v_wmma_i32_16x16x16_iu8",
    },
}
_INSTRUCTIONS["gfx1201"] = _INSTRUCTIONS["gfx1100"]


@pytest.mark.parametrize("target", amd.TARGETS)
def test_matrices(target, everything):
    """Every product of matrices compiles where it is listed, to matrix instructions."""
    listed = configurations(target)
    if not everything:
        listed = tuple({product_for(config): config for config in listed}.values())
    log, code = amd.assembly(program(map(_product, listed)), target)
    assert log == ""
    found = set(re.findall(r"v_(?:wmma|mfma)_\w+", code))
    assert {re.sub(r"_e\d\d$", "", name) for name in found} == _INSTRUCTIONS[target]
    assert "scratch_store" not in code
    assert "buffer_store" not in code


def test_matrices_that_a_target_has_not():
    """What one target lists and another does not, the other's compiler refuses."""
    for target, other in (("gfx1100", "gfx942"), ("gfx942", "gfx1100")):
        missing = set(configurations(target)) - set(configurations(other))
        by_product = {product_for(config): config for config in missing}
        assert by_product
        for config in by_product.values():
            assert amd.assembly(_product(config), target)[0] == ""
            assert amd.assembly(_product(config), other)[0] != "", (str(config), other)
