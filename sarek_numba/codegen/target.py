"""What the passes and printers need to know of a device: a value, not a global.

`passes.optimise(kernel, target)` gives legal IR for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from sarek_numba.ir.types import Scalar

GPU_COARSENING = 16  # bytes: 4 elements of 32 bits a thread; see `Target.coarsening`


@dataclass(frozen=True, slots=True)
class Target:
    """`address_bits`: the width in which the device computes addresses best. 64 keeps weak ints and
    indices in int64 (CPUs: a narrower index costs contiguous accesses), 32 narrows them where
    proven.
    `calls`: helpers stay functions; without it every call is inlined.
    `inline_barriers`: helpers that hold a barrier are inlined (a target that splits at barriers).
    `shuffles_only`: votes and reductions of a warp are made of shuffles.
    `coarsening`: bytes of the widest element that one thread is to work on at once, where
    `passes.coarsen` may give a thread the work of several; 0 where it may not. What is launched
    then is said by the role `Threads` of a parameter.
    `framework`: whose texts it runs where the user gives some (`ir.texts`).
    `own_functions`: inexact functions that `passes.functions` computes, as the device cannot.
    `own_operations`: operations (`passes.exact.OPERATIONS`) that are computed on the bits, as the
    device has them too inexactly.
    `emulates`: promises about numbers (`capability.PROMISES`) that generated code keeps exactly
    where the device does not: the backend asks `capability.to_emulate` which those are.
    """

    name: str
    address_bits: int = 64
    calls: bool = True
    inline_barriers: bool = False
    shuffles_only: bool = False
    coarsening: int = 0
    framework: str = ""
    own_functions: frozenset[tuple[str, Scalar]] = frozenset()
    own_operations: frozenset[tuple[str, Scalar]] = frozenset()
    emulates: frozenset[str] = frozenset()
