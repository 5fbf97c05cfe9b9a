"""What the emitter must know of a device: a value that the runtime fills from what it enabled."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from sarek_numba.ir.nodes import AtomicOp
from sarek_numba.ir.types import MemSpace, Scalar

NativeAtomic = tuple[AtomicOp, Scalar, MemSpace]


@dataclass(frozen=True, slots=True)
class Abilities:
    """A device's abilities beyond what every module may use.

    `int64`, `float64`: the features shaderInt64 and shaderFloat64; a kernel that needs what is not
    there is refused before it is emitted, and emulations avoid it.
    `memory_model`: vulkanMemoryModel; without it modules have GLSL450's.
    `atomics`: floating-point and 64-bit operations that the device has by an extension, enabled;
    32-bit integers need none, and the rest are loops of compare-and-swap.
    `exact_division`, `exact_square_root`, `exact_fma`: types in which OpFDiv, Sqrt and Fma round
    correctly, as measured; Vulkan promises none of the three. Elsewhere they are emulated.
    `float_controls`: execution modes that the device supports, with the width of the floats, such
    as ("DenormPreserve", 32); those that a kernel's floats want are requested.
    `explicit_shared`: VK_KHR_workgroup_memory_explicit_layout with 8- and 16-bit access.
    `lanes_run_along`: in the last subgroup of a row, lanes of no thread run along, and round loops.
    `gives_up_loops`: it ends loops after many passes, so modules are watched (`watch`).
    `narrows_wrongly`: its compiler looks wrongly into integers made narrower (`hidden`).
    `flushes`: types of which the device takes subnormal numbers for zeros here and there
    (`subnormals`).
    `native`: inexact functions of the extended instruction set GLSL.std.450 that keep the bounds of
    the documentation on this device, as measured.
    """

    int64: bool = True
    float64: bool = True
    memory_model: bool = True
    atomics: Set[NativeAtomic] = frozenset()
    exact_division: Set[Scalar] = frozenset()
    exact_square_root: Set[Scalar] = frozenset()
    exact_fma: Set[Scalar] = frozenset()
    float_controls: Set[tuple[str, int]] = frozenset()
    explicit_shared: bool = False
    lanes_run_along: bool = False
    gives_up_loops: bool = False
    narrows_wrongly: bool = False
    flushes: Set[Scalar] = frozenset()
    native: Set[tuple[str, Scalar]] = frozenset()
