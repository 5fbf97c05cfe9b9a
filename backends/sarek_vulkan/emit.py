"""SPIR-V from Sarek IR: the emitter's two functions.

In: a verified kernel that `passes.optimise` has made legal for a target with `shuffles_only`, and
what is known of the device. Out: a `layout.Module`.
"""

from __future__ import annotations

from dataclasses import replace

from sarek_numba.codegen.target import Target
from sarek_numba.ir.depth import deep_recursion
from sarek_numba.ir.nodes import Kernel
from sarek_numba.ir.types import FLOAT32
from sarek_numba.passes.functions import functions_stored, singles_stored
from sarek_vulkan.abilities import Abilities
from sarek_vulkan.layout import Module
from sarek_vulkan.program import Program
from sarek_vulkan.spirv import disassemble

# Vulkan bounds no function of float64, and those of float32 too loosely: all are the project's own.
TARGET = Target(
    name="vulkan",
    address_bits=32,
    shuffles_only=True,
    framework="vulkan",
    own_functions=functions_stored(),
)

__all__ = ["TARGET", "disassemble", "emit", "target_for"]


def target_for(abilities: Abilities) -> Target:
    """The target of a device, whose own functions serve where they are known to keep their bounds.

    A device without float64 has only those made in float32: another is refused when it is emitted.
    """
    if not abilities.float64:
        singles = frozenset((name, FLOAT32) for name in singles_stored())
        return replace(TARGET, own_functions=singles - abilities.native)
    return replace(TARGET, own_functions=TARGET.own_functions - abilities.native)


def emit(kernel: Kernel, abilities: Abilities, push_limit: int) -> Module:
    """A legal kernel as a module; `push_limit` is the device's maxPushConstantsSize, in bytes.

    Raises InvalidIR for what SPIR-V cannot say.
    """
    with deep_recursion():
        return Program(kernel, abilities, push_limit).emit()
