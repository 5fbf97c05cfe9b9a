"""HIP C++ as a table for `codegen.cfamily`: CUDA's with replacements.

- Contraction is off by a pragma, which clang's default for HIP honours.
- A conversion of a float outside of an integer type has no meaning in LLVM: values are compared
  with the ends of every type.
- Clang makes use of types where accesses may overlap, so some elements have a spelling that may
  alias others.
- `sqrtf` is not exact with every compiler: that of ROCm 5.2 makes the one instruction of it, which
  may be off by one place, whatever its options say (seen in its machine code for gfx90a). A root of
  float32 is put right here by what is left over of the products with its neighbours.
- A warp has 32 or 64 threads. Its shuffles take no mask, and what `__syncwarp` does is a fence
  between the threads of a wavefront.
"""

from __future__ import annotations

from dataclasses import replace

from sarek_hip.matrices import DEFINITIONS_BY_WORD, MATRICES
from sarek_numba.codegen.cudalike import CUDALIKE, DEFINITIONS, HEAD
from sarek_numba.codegen.dialect import Dialect, WarpSpelling
from sarek_numba.codegen.target import GPU_COARSENING, Target
from sarek_numba.ir.types import Scalar

_EXACT, _CONTRACTED = "#pragma clang fp contract(off)", "#pragma clang fp contract(on)"
_MEETING = f"""\
{HEAD} void warp_meeting() {{
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
    __builtin_amdgcn_wave_barrier();
}}"""
# In a power of two at which no product with a neighbour is a subnormal number.
_ROOT = f"""\
{HEAD} float exact_root(float x) {{
    bool is_small = x < 0x1p-96f;
    float y = is_small ? x * 0x1p+32f : x;
    float root = __builtin_amdgcn_sqrtf(y);
    unsigned int bits = __builtin_bit_cast(unsigned int, root);
    float below = __builtin_bit_cast(float, bits - 1u);
    float above = __builtin_bit_cast(float, bits + 1u);
    float nearest = root;
    if (__builtin_fmaf(-below, root, y) <= 0.0f) nearest = below;
    if (__builtin_fmaf(-above, root, y) > 0.0f) nearest = above;
    return is_small ? nearest * 0x1p-16f : nearest;
}}"""
_DEFINITIONS = {
    "exact_root": _ROOT,
    "same_bits": DEFINITIONS["same_bits"].replace("memcpy", "__builtin_memcpy"),
    "warp_lane": DEFINITIONS["warp_lane"].replace("32", "warpSize"),
    "warp_size": DEFINITIONS["warp_size"].replace("32", "warpSize"),
    "warp_meeting": _MEETING,
}

_SQUARE_ROOT = ("sqrt", Scalar.FLOAT32)

DIALECT = replace(
    CUDALIKE,
    name="HIP C++",
    framework="hip",
    prologue=(_EXACT,),
    functions={**CUDALIKE.functions, _SQUARE_ROOT: "exact_root({0})"},
    aliasing="typedef {type} {name} __attribute__((may_alias));",
    word_prologue={**{name: (text,) for name, text in _DEFINITIONS.items()}, **DEFINITIONS_BY_WORD},
    reserved=CUDALIKE.reserved | frozenset(_DEFINITIONS) | frozenset(DEFINITIONS_BY_WORD),
    matrices=MATRICES,
    warp=WarpSpelling(
        lane="warp_lane()",
        shuffle="__shfl({0}, {1})",
        size="warp_size()",
        barrier="warp_meeting()",
        kernel_head="",
    ),
)

TARGET = Target(
    "hip",
    address_bits=32,
    shuffles_only=True,
    framework=DIALECT.framework,
    coarsening=GPU_COARSENING,
)


def contracting(dialect: Dialect) -> Dialect:
    """The dialect in which a product and a sum may become one operation, and roots are those of the
    compiler: see `accept.fastmath`.
    """
    lines = tuple(_CONTRACTED if line == _EXACT else line for line in dialect.prologue)
    functions = {**dialect.functions, _SQUARE_ROOT: CUDALIKE.functions[_SQUARE_ROOT]}
    return replace(dialect, prologue=lines, functions=functions)
