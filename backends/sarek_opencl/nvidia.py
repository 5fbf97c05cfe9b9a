"""NVIDIA's OpenCL: three faults of its compiler, and warps, which it has no OpenCL extension for.

Its assembler (driver 580, `sm_90`) takes the result of `neg.s16` for 32768 where it is -32768 when
the result is widened, so that

    out[i] = (long)(short)-x[i];            // 32768 for -32768

is wrong, however the negation is written: a subtraction from zero, a product with -1, an absolute
value. The compiler negates 16 bits where it sees that no more are needed; a conversion to 16 bits
that it cannot look into keeps it from that. An `int8` is not affected.

An index that becomes 32 bits and 64 again is shifted by its compiler, `((x * 66 << 32) + (k << 32))
>> 32`, and where many constants `k` meet, the assembler takes one for another: bytes go to the
place of their neighbours. That of CUDA 12.9 and 13.0 does so for `sm_90` and `sm_100`, that of 13.5
does not (`docs/fuzzing.md` has the text). So 64 bits become 32 by an instruction that the compiler
cannot look into, and the index in the grid is computed in 32 bits where it is wanted in 32.

Once a process has used CUDA, its compiler forgets the option that asks for correctly rounded
division and square root, from one program to the next (driver 580: PTX has `div.full.f32` in place
of `div.rn.f32`): quotients and roots of float32 are instructions of PTX.

Warps are those of the machine: 32 threads that follow the linear index in the block. Their
instructions are those of PTX (`shfl.sync`, `bar.warp.sync`). All threads of a warp take part,
because the language has collectives in uniform flow only, and blocks of whole warps.

Its `mem_fence` is one for the block: what another block wrote can still be read from the cache. The
fence of PTX for the device is `membar.gl`.

As CL_KERNEL_WORK_GROUP_SIZE it reports 256 of every kernel, and runs blocks of 1024 if there are
registers for them: the limit is the device's, and what a launch answers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sarek_numba.capability import Residency
from sarek_numba.codegen.dialect import Dialect, WarpSpelling
from sarek_numba.ir.nodes import Coordinate, FenceScope
from sarek_numba.ir.types import Scalar

PLATFORM = "NVIDIA CUDA"
WIDTH = 32
SAFE_BLOCK = 256  # threads that every kernel may have in a block
LOCAL_BYTES = 512 * 1024  # of a thread: CUDA C++ Programming Guide, technical specifications

_NARROW = """\
static inline short narrow_short(int x) {
    int result;
    asm("cvt.s32.s16 %0, %1;" : "=r"(result) : "r"(x));
    return (short)result;
}"""
_NARROW_INT = """\
static inline int narrow_int(long x) {
    uint result;
    asm("cvt.u32.u64 %0, %1;" : "=r"(result) : "l"(x));
    return (int)result;
}"""
_GLOBAL_INDEX = """\
static inline int global_index(uint axis) {
    uint first = (uint)get_group_id(axis) * (uint)get_local_size(axis);
    return (int)(first + (uint)get_local_id(axis));
}"""
_GRID_SIZE = """\
static inline int grid_size(uint axis) {
    return (int)((uint)get_num_groups(axis) * (uint)get_local_size(axis));
}"""
_QUOTIENT = """\
static inline float exact_quotient(float a, float b) {
    float result;
    asm("div.rn.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}"""
_ROOT = """\
static inline float exact_root(float x) {
    float result;
    asm("sqrt.rn.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}"""
_SHUFFLE = """\
static inline uint warp_word(uint value, uint lane) {
    uint result;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;"
                 : "=r"(result) : "r"(value), "r"(lane));
    return result;
}"""
_LANE = """\
static inline uint warp_lane(void) {
    uint result;
    asm("mov.u32 %0, %%laneid;" : "=r"(result));
    return result;
}"""
_BARRIER = """\
static inline void warp_meeting(void) {
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}"""
_SIZE = """\
static inline uint warp_size(void) {
    uint row = (uint)get_local_id(1) + (uint)get_local_size(1) * (uint)get_local_id(2);
    uint index = (uint)get_local_id(0) + (uint)get_local_size(0) * row;
    uint threads = (uint)get_local_size(0) * (uint)get_local_size(1) * (uint)get_local_size(2);
    return min(threads - index / 32 * 32, 32u);
}"""
_DEVICE_FENCE = """\
static inline void device_fence(void) {
    asm volatile("membar.gl;" ::: "memory");
}"""
_DEFINITIONS = {
    "narrow_short": _NARROW,
    "narrow_int": _NARROW_INT,
    "device_fence": _DEVICE_FENCE,
    "global_index": _GLOBAL_INDEX,
    "grid_size": _GRID_SIZE,
    "exact_quotient": _QUOTIENT,
    "exact_root": _ROOT,
    "warp_word": _SHUFFLE,
    "warp_lane": _LANE,
    "warp_meeting": _BARRIER,
    "warp_size": _SIZE,
}
_WARP = WarpSpelling(
    lane="warp_lane()",
    shuffle="warp_word({0}, {1})",
    size="warp_size()",
    barrier="warp_meeting()",
    kernel_head="",
)


_WIDE = (Scalar.INT64, Scalar.UINT64)
_NARROWINGS = {(source, Scalar.INT16): "narrow_short" for source in Scalar if source.is_integer} | {
    (source, target): code
    for source in _WIDE
    for target, code in ((Scalar.INT32, "narrow_int"), (Scalar.UINT32, "(uint)narrow_int"))
}


def is_nvidia(device: Any) -> bool:
    return bool(device.platform.name == PLATFORM)


# Threads that a multiprocessor holds, by compute capability: CUDA C++ Programming Guide, technical
# specifications.
_RESIDENT = {50: 2048, 52: 2048, 60: 2048, 61: 2048, 70: 2048, 75: 1024, 80: 2048, 86: 1536,
             87: 1536, 89: 1536, 90: 2048, 100: 2048, 103: 2048, 120: 1536}  # fmt: skip


def residency_of(device: Any) -> Residency | None:
    """How many threads run at a time; None for a compute capability that is not in the table."""
    major, minor = device.compute_capability_major_nv, device.compute_capability_minor_nv
    threads = _RESIDENT.get(10 * major + minor)
    if threads is None:
        return None
    evidence = (
        f"CL_DEVICE_MAX_COMPUTE_UNITS times {threads} threads, which the CUDA C++ Programming "
        f"Guide states for compute capability {major}.{minor}"
    )
    return Residency(int(device.max_compute_units) * threads, evidence)


def _axes(function: str) -> tuple[str, str, str]:
    return (f"{function}(0)", f"{function}(1)", f"{function}(2)")


def dialect_for(dialect: Dialect, *, fast: bool = False) -> Dialect:
    """The dialect with which NVIDIA's compiler keeps the meaning of a kernel, and has warps.

    A `fast` kernel, one with `accept.fastmath`, takes quotients and roots as the compiler has them.
    """
    if not fast:
        dialect = replace(
            dialect,
            quotients={Scalar.FLOAT32: "exact_quotient({0}, {1})"},
            functions={**dialect.functions, ("sqrt", Scalar.FLOAT32): "exact_root({0})"},
        )
    needed = {name: (text,) for name, text in _DEFINITIONS.items()}
    return replace(
        dialect,
        # as elements of constant arrays, where INFINITY is a call
        infinity={Scalar.FLOAT32: "(1.0f / 0.0f)", Scalar.FLOAT64: "(1.0 / 0.0)"},
        narrowings=_NARROWINGS,
        narrow_coordinates={
            Coordinate.GLOBAL_IDX: _axes("global_index"),
            Coordinate.GRID_SIZE: _axes("grid_size"),
        },
        fences={**dialect.fences, FenceScope.DEVICE: "device_fence()"},
        warp=_WARP,
        word_prologue={**dialect.word_prologue, **needed},
        reserved=dialect.reserved | frozenset(_DEFINITIONS),
    )
