"""Barriers and fences.

Under the Vulkan memory model a barrier makes what was written available and visible; under that of
GLSL450 the storage classes alone say what it orders. The widest scope is QueueFamily with the
first, as a launch is work of one queue, and Device with the second, which has no other.
"""

from __future__ import annotations

from dataclasses import dataclass

from sarek_numba.ir.nodes import FenceScope
from sarek_numba.ir.types import Scalar
from sarek_vulkan.code import Code
from sarek_vulkan.opcodes import SCOPE, SEMANTICS

_ORDER = ("AcquireRelease", "UniformMemory", "WorkgroupMemory")
_VISIBLE = ("MakeAvailable", "MakeVisible")


@dataclass(frozen=True, slots=True)
class Model:
    """The memory model of a module: Vulkan's or GLSL450's."""

    vulkan: bool

    @property
    def device(self) -> int:
        """The scope of all threads of a launch."""
        return SCOPE["QueueFamily" if self.vulkan else "Device"]

    @property
    def semantics(self) -> int:
        return sum(SEMANTICS[name] for name in _ORDER + (_VISIBLE if self.vulkan else ()))


def word(code: Code, number: int) -> int:
    """A scope or semantics, which SPIR-V takes as a constant."""
    return code.types.number(Scalar.UINT32, number)


def barrier(code: Code, model: Model) -> None:
    """All threads of a block."""
    block = word(code, SCOPE["Workgroup"])
    code.effect("OpControlBarrier", block, block, word(code, model.semantics))


def warp_barrier(code: Code, model: Model) -> None:
    """All threads of a warp."""
    warp = word(code, SCOPE["Subgroup"])
    code.effect("OpControlBarrier", warp, warp, word(code, model.semantics))


def fence(code: Code, model: Model, scope: FenceScope) -> None:
    reach = SCOPE["Workgroup"] if scope is FenceScope.BLOCK else model.device
    code.effect("OpMemoryBarrier", word(code, reach), word(code, model.semantics))
