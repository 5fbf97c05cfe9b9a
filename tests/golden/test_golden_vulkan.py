"""The SPIR-V of a few kernels, exactly, as our disassembler shows it."""

from __future__ import annotations

import pytest

from sarek_numba.passes import optimise
from sarek_vulkan.abilities import Abilities
from sarek_vulkan.emit import TARGET, disassemble, emit
from tests.golden.test_golden import CORPUS

NAMES = """
    saxpy two_dimensions_strided nested_exits range_ends superstep_scan local_sort histogram helpers
    floor_division shifts
""".split()


@pytest.mark.parametrize("name", NAMES)
def test_spirv(name, golden):
    """The module of a device of which nothing is known beyond what every module may use."""
    kernel, arguments = CORPUS[name]
    module = emit(optimise(kernel.ir(*arguments), TARGET), Abilities(), 128)
    golden(disassemble(module.words), f"{name}.spirv")
