"""Every kernel of the corpus as a module that the Khronos validator takes."""

from __future__ import annotations

import numpy as np
import pytest

from sarek_numba import passes
from sarek_numba.ir.nodes import AtomicOp
from sarek_numba.ir.types import MemSpace, Scalar
from sarek_vulkan.abilities import Abilities
from sarek_vulkan.emit import TARGET, emit
from sarek_vulkan.spirv import instructions
from tests.executors import SEED
from tests.kernels.corpus import CASES
from tests.unit.spirv_tools import validate

_FLOATS = frozenset({Scalar.FLOAT32, Scalar.FLOAT64})
MODES = ("DenormPreserve", "SignedZeroInfNanPreserve", "RoundingModeRTE")
# a device that has everything, with room for few arguments, and one that has little
RICH = Abilities(
    atomics=frozenset((AtomicOp.ADD, scalar, space) for scalar in _FLOATS for space in MemSpace),
    exact_division=_FLOATS,
    exact_square_root=_FLOATS,
    exact_fma=_FLOATS,
    float_controls=frozenset((mode, width) for mode in MODES for width in (32, 64)),
    explicit_shared=True,
)
PLAIN = Abilities(memory_model=False)


@pytest.mark.filterwarnings("ignore::sarek_numba.errors.CompileWarning")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_valid(case, tmp_path):
    """The modules of a device that has everything and of one that has little are valid."""
    made = case.launch(np.random.default_rng(SEED))
    kernel = passes.optimise(case.kernel.ir(*made.arguments), TARGET)
    modules = [emit(kernel, RICH, 8).words, emit(kernel, PLAIN, 256).words]
    assert validate(modules, tmp_path) == ["", ""]
    for words in modules:
        assert list(instructions(words))
