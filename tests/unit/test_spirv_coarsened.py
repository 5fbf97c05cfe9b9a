"""Coarsened kernels of the corpus as SPIR-V: Khronos' validator takes each."""

from __future__ import annotations

from dataclasses import replace

from sarek_numba.codegen.target import GPU_COARSENING
from sarek_numba.passes import optimise
from sarek_numba.passes.coarsen import asked, each_of
from sarek_vulkan.abilities import Abilities
from sarek_vulkan.emit import TARGET, emit
from tests.kernels import elementwise
from tests.toolchains.corpus import ir_of
from tests.unit.spirv_tools import validate

_WIDE = replace(TARGET, coarsening=GPU_COARSENING)


def test_modules_are_valid(tmp_path):
    """Each has one argument more, with the number of the user's threads."""
    modules = []
    for case in elementwise.corpus:
        kernel = ir_of(case)
        with asked() as decision:
            made = optimise(kernel, _WIDE)
        assert decision.outcome is not None
        if each_of(made.params) > 1:
            plain = emit(optimise(kernel, _WIDE), Abilities(), 128)
            module = emit(made, Abilities(), 128)
            assert len(module.arguments) == len(plain.arguments) + 1
            modules.append(module.words)
    assert len(modules) > 5
    assert validate(modules, tmp_path) == [""] * len(modules)
