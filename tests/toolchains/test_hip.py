"""Every kernel of the corpus as HIP C++: clang makes code of it for each target."""

from __future__ import annotations

import pytest

from sarek_hip.dialect import DIALECT, TARGET, contracting
from tests.kernels import elementwise
from tests.kernels.corpus import MODULES
from tests.toolchains import amd
from tests.toolchains.corpus import program, text_of

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
