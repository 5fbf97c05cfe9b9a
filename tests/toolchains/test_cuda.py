"""Every kernel of the corpus as CUDA C++: NVIDIA's compiler makes code of it for each target."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace

import pytest

from sarek_cuda.dialect import DIALECT, TARGET
from sarek_cuda.matrices import configurations, instruction_for
from sarek_numba.codegen import cfamily
from sarek_numba.ir.nodes import CoopmatConfig
from sarek_numba.ir.types import Scalar
from sarek_numba.passes import optimise
from tests.kernels import elementwise
from tests.kernels.corpus import MODULES
from tests.toolchains import nvidia
from tests.toolchains.corpus import program, text_of
from tests.unit.fragment_kernels import LAYOUTS, as_written, operands, products

pytestmark = pytest.mark.skipif(bool(nvidia.why_not()), reason=nvidia.why_not() or "present")
needs_nvrtc = pytest.mark.skipif(nvidia.nvrtc() is None, reason="there is no NVRTC")
_SAXPY = next(case for case in elementwise.corpus if case.name == "saxpy_float32")


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_corpus(module, everything):
    """For the oldest and the newest target; `--everything`: for those between too."""
    whole = program(text_of(case, DIALECT, TARGET) for case in module.corpus)
    for target in nvidia.TARGETS if everything else nvidia.ENDS:
        assert nvidia.refusal(whole, target) == ""


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_coarsened_corpus(module):
    """The texts of large launches, where they are others."""
    pairs = [[text_of(case, DIALECT, TARGET, coarse=c) for c in (False, True)]
             for case in module.corpus]  # fmt: skip
    texts = [coarse for plain, coarse in pairs if coarse != plain]
    if texts:
        assert nvidia.refusal(program(texts), "sm_90a") == ""


def _product(config: CoopmatConfig) -> str:
    """A kernel that loads, fills, multiplies and stores, with operands in both layouts."""
    given = as_written(config)
    a, b, c = operands(given, (1, 1, 1), "random")
    kernel = products(given, *LAYOUTS).ir(a, b, c, c, config.k)
    return cfamily.emit(optimise(kernel, TARGET), DIALECT).text


def _matrices(capability: int, everything: bool) -> list[str]:
    """Texts of all configurations, or of one for each instruction."""
    listed = configurations(capability)
    if not everything:
        listed = tuple({instruction_for(config): config for config in listed}.values())
    return [_product(config) for config in listed]


@pytest.mark.parametrize("target", nvidia.TARGETS)
def test_matrices(target, everything):
    """Every instruction compiles where it is listed."""
    capability = int(re.sub(r"\D", "", target))
    assert nvidia.refusal(program(_matrices(capability, everything)), target) == ""


def test_matrices_that_a_target_has_not():
    """What is listed from 8.0 on, the compiler refuses for 7.5; a wrong shape it refuses always."""
    older = {(each.a, each.b, each.result) for each in configurations(75)}
    newer = [each for each in configurations(80) if (each.a, each.b, each.result) not in older]
    assert {each.a for each in newer} == {Scalar.BFLOAT16, Scalar.FLOAT64}
    for config in {instruction_for(each): each for each in newer}.values():
        text = _product(config)
        assert nvidia.refusal(text, "sm_80") == ""
        assert "sm_80 or higher" in nvidia.refusal(text, "sm_75")
        wrong = text.replace(f"n8k{instruction_for(config).k}.row", "n8k15.row")
        assert nvidia.refusal(wrong, "sm_80") != ""


@needs_nvrtc
def test_fragments_are_registers():
    """No fragment lies in memory, and there is an instruction for each 16 by 8 of the result."""
    config = CoopmatConfig(32, 32, 16, *(Scalar.FLOAT16,) * 2, *(Scalar.FLOAT32,) * 2)
    code = nvidia.ptx(_product(config))
    assert code.count("mma.sync.aligned.m16n8k16") == 8
    assert ".local" not in code


def test_a_wrong_text_is_refused():
    """The compiler is asked: a name that no header has is an error, and so is a missing word."""
    text = text_of(_SAXPY, DIALECT, TARGET)
    for wrong in (text.replace("threadIdx", "thread_idx"), text.replace("float *", "flaot *")):
        assert "error" in nvidia.refusal(program([text, wrong]), "sm_90a")


@pytest.mark.skipif(not shutil.which("nvcc"), reason="there is no nvcc")
def test_nvcc():
    """nvcc takes the texts of kernels too, and refuses a wrong one."""
    texts = [text_of(case, DIALECT, TARGET) for case in list(elementwise.corpus)[:12]]
    assert nvidia.by_nvcc(program(texts), "sm_90a") == ""
    heads = replace(DIALECT, kernel_head="__kernel__ void")
    assert "__kernel__" in nvidia.by_nvcc(text_of(_SAXPY, heads, TARGET), "sm_90a")


_OVERLAP = """
extern "C" __global__ void sarek_kernel(int *a, {other} *b, int *out) {{
    a[0] = 1;
    b[0] = 2;
    out[0] = a[0];
}}
"""


@needs_nvrtc
def test_accesses_of_other_types_may_overlap():
    """NVRTC reads again what a store of another type may have changed, and only then."""

    def reads(text):
        return nvidia.ptx(text).count("ld.global")

    assert reads(_OVERLAP.format(other="float")) == 1
    assert reads(_OVERLAP.format(other="float").replace("*b", "*__restrict__ b")) == 0


@needs_nvrtc
def test_products_and_sums_stay_apart():
    """With the options of a launch `a * x + y` is two operations, each rounded."""
    code = nvidia.ptx(text_of(_SAXPY, DIALECT, TARGET))
    assert "mul.rn.f32" in code
    assert "add.rn.f32" in code
    assert "fma.rn" not in code
