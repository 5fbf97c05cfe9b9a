"""SPIR-V from Sarek IR: the emitter's two functions.

In: a verified kernel that `passes.optimise` has made legal for a target with `shuffles_only`, and
what is known of the device. Out: a `layout.Module`.
"""

from __future__ import annotations

from sarek_numba.codegen.target import Target
from sarek_numba.ir.depth import deep_recursion
from sarek_numba.ir.nodes import Kernel
from sarek_vulkan.abilities import Abilities
from sarek_vulkan.layout import Module
from sarek_vulkan.program import Program
from sarek_vulkan.spirv import disassemble

TARGET = Target(name="vulkan", address_bits=32, shuffles_only=True, framework="vulkan")

__all__ = ["TARGET", "disassemble", "emit"]


def emit(kernel: Kernel, abilities: Abilities, push_limit: int) -> Module:
    """A legal kernel as a module; `push_limit` is the device's maxPushConstantsSize, in bytes.

    Raises InvalidIR for what SPIR-V cannot say.
    """
    with deep_recursion():
        return Program(kernel, abilities, push_limit).emit()
