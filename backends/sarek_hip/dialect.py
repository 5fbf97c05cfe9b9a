"""HIP C++ as a table for `codegen.cfamily`: CUDA's with replacements.

- Contraction is off by a pragma, which clang's default for HIP honours.
- A conversion of a float outside of an integer type has no meaning in LLVM: values are compared
  with the ends of every type.
- Clang makes use of types where accesses may overlap, so some elements have a spelling that may
  alias others.
- A warp has 32 or 64 threads. Its shuffles take no mask, and what `__syncwarp` does is a fence
  between the threads of a wavefront.
"""

from __future__ import annotations

from dataclasses import replace

from sarek_numba.codegen.cudalike import CUDALIKE, DEFINITIONS, HEAD
from sarek_numba.codegen.dialect import Dialect, WarpSpelling
from sarek_numba.codegen.target import Target

_EXACT, _CONTRACTED = "#pragma clang fp contract(off)", "#pragma clang fp contract(on)"
_MEETING = f"""\
{HEAD} void warp_meeting() {{
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
    __builtin_amdgcn_wave_barrier();
}}"""
_DEFINITIONS = {
    "same_bits": DEFINITIONS["same_bits"].replace("memcpy", "__builtin_memcpy"),
    "warp_lane": DEFINITIONS["warp_lane"].replace("32", "warpSize"),
    "warp_size": DEFINITIONS["warp_size"].replace("32", "warpSize"),
    "warp_meeting": _MEETING,
}

DIALECT = replace(
    CUDALIKE,
    name="HIP C++",
    framework="hip",
    prologue=(_EXACT,),
    aliasing="typedef {type} {name} __attribute__((may_alias));",
    word_prologue={name: (text,) for name, text in _DEFINITIONS.items()},
    reserved=CUDALIKE.reserved | frozenset(_DEFINITIONS),
    warp=WarpSpelling(
        lane="warp_lane()",
        shuffle="__shfl({0}, {1})",
        size="warp_size()",
        barrier="warp_meeting()",
        kernel_head="",
    ),
)

TARGET = Target("hip", address_bits=32, shuffles_only=True, framework=DIALECT.framework)


def contracting(dialect: Dialect) -> Dialect:
    """The dialect in which a product and a sum may become one operation: see `accept.fastmath`."""
    lines = tuple(_CONTRACTED if line == _EXACT else line for line in dialect.prologue)
    return replace(dialect, prologue=lines)
