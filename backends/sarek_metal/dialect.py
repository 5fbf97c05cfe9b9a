"""The Metal Shading Language as a table for `codegen.cfamily`.

Nothing here depends on a device. What the language leaves inexact (`fmod` is x - y * trunc(x / y),
`nextafter` came late) is computed on the bits by `passes.exact`; atomic operations that are not
exact everywhere (sums of floats may flush subnormal numbers) are compare-and-swap loops. Sections
are those of the Metal Shading Language Specification, version 3.2.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sarek_metal.matrices import MATRICES
from sarek_metal.matrices import NAMES as MATRIX_NAMES
from sarek_numba.codegen import warps, words
from sarek_numba.codegen.aliasing import aliasing_name
from sarek_numba.codegen.cudalike import clamped, function_names
from sarek_numba.codegen.dialect import Dialect, Entry, WarpSpelling
from sarek_numba.codegen.prelude import NAMES
from sarek_numba.codegen.target import Target
from sarek_numba.ir.nodes import AtomicOp, Coordinate, FenceScope
from sarek_numba.ir.types import MemSpace, Scalar

BUFFERS = 31  # of a kernel: Metal Feature Set Tables, "Maximum number of entries in the buffer …"

_TYPES = {
    Scalar.BOOL: "bool",
    Scalar.INT8: "char",
    Scalar.INT16: "short",
    Scalar.INT32: "int",
    Scalar.INT64: "long",
    Scalar.UINT8: "uchar",
    Scalar.UINT16: "ushort",
    Scalar.UINT32: "uint",
    Scalar.UINT64: "ulong",
    Scalar.FLOAT32: "float",
}
_SUFFIXES = {
    Scalar.INT32: "",
    Scalar.INT64: "L",
    Scalar.UINT32: "u",
    Scalar.UINT64: "UL",
    Scalar.FLOAT32: "f",
}
_INTEGERS = tuple(scalar for scalar in _TYPES if scalar.is_integer)

# --- functions ---

_PRECISE = """
    exp exp2 log log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh rsqrt pow
    atan2 sqrt floor ceil trunc rint
""".split()
_PLAIN = "isnan isinf isfinite signbit".split()
_TWO = ("pow", "atan2")


def _functions() -> dict[tuple[str, Scalar], str]:
    """Section 6.5: the functions of `precise` keep their bounds whatever the mode of the rest."""
    single = Scalar.FLOAT32
    found = {
        (name, single): f"precise::{name}({{0}}, {{1}})"
        if name in _TWO
        else f"precise::{name}({{0}})"
        for name in _PRECISE
    }
    found |= {(name, single): f"{name}({{0}})" for name in _PLAIN}
    found["abs", single] = "fabs({0})"
    found["copysign", single] = "copysign({0}, {1})"
    found["fma", single] = "fma({0}, {1}, {2})"
    for scalar in _INTEGERS:
        # a narrow value is one of 32 bits with zeros in front
        wide = "" if scalar.bits >= 32 else "(uint)"
        value = f"{wide}({'uchar' if scalar.bits == 8 else 'ushort'})({{0}})" if wide else "{0}"
        found["popcount", scalar] = f"popcount({value})"
        zeros = f"clz({value})"
        found["clz", scalar] = f"({zeros} - {32 - scalar.bits})" if wide else zeros
    return found


_FUNCTIONS = _functions()

# --- atomics ---

_RELAXED = "memory_order_relaxed"
_WORDS = {Scalar.INT32: "int", Scalar.UINT32: "uint"}
_FETCHES = {
    AtomicOp.ADD: "add",
    AtomicOp.SUB: "sub",
    AtomicOp.MIN: "min",
    AtomicOp.MAX: "max",
    AtomicOp.AND: "and",
    AtomicOp.OR: "or",
    AtomicOp.XOR: "xor",
}


def _place(word: str) -> str:
    return f"(volatile {{space}} atomic_{word} *){{0}}"


def _atomics() -> dict[tuple[AtomicOp, Scalar], str]:
    """Section 6.15: 32-bit integers. Bits of floats go through those; sums do in loops."""
    found: dict[tuple[AtomicOp, Scalar], str] = {}
    for scalar, word in _WORDS.items():
        for op, name in _FETCHES.items():
            found[op, scalar] = f"atomic_fetch_{name}_explicit({_place(word)}, {{1}}, {_RELAXED})"
        found[AtomicOp.EXCH, scalar] = (
            f"atomic_exchange_explicit({_place(word)}, {{1}}, {_RELAXED})"
        )
        found[AtomicOp.STORE, scalar] = f"atomic_store_explicit({_place(word)}, {{1}}, {_RELAXED})"
        found[AtomicOp.LOAD, scalar] = f"atomic_load_explicit({_place(word)}, {_RELAXED})"
    swap = f"compare_and_swap_{{space}}({_place('uint')}, {{1}}, {{2}})"
    found[AtomicOp.CAS, Scalar.UINT32] = swap
    found[AtomicOp.CAS, Scalar.INT32] = (
        f"(int)compare_and_swap_{{space}}({_place('uint')}, (uint)({{1}}), (uint)({{2}}))"
    )
    found[AtomicOp.LOAD, Scalar.FLOAT32] = (
        f"as_type<float>(atomic_load_explicit({_place('uint')}, {_RELAXED}))"
    )
    found[AtomicOp.STORE, Scalar.FLOAT32] = (
        f"atomic_store_explicit({_place('uint')}, as_type<uint>({{1}}), {_RELAXED})"
    )
    return found


def _compare_and_swap(space: str) -> str:
    """The value that was there; the language's own exchange may fail for no reason."""
    return f"""\
static uint compare_and_swap_{space}(
    volatile {space} atomic_uint *place, uint compare, uint value
) {{
    uint seen;
    bool done;
    do {{
        seen = compare;
        done = atomic_compare_exchange_weak_explicit(
            place, &seen, value, {_RELAXED}, {_RELAXED}
        );
    }} while (!done && seen == compare);
    return seen;
}}"""


# --- coordinates ---


def _axes(text: str) -> tuple[str, str, str]:
    x, y, z = (text.replace("#", axis) for axis in "xyz")
    return x, y, z


_BUILTINS = {
    "thread_index": ("uint3", "thread_position_in_threadgroup"),
    "group_index": ("uint3", "threadgroup_position_in_grid"),
    "group_size": ("uint3", "threads_per_threadgroup"),
    "group_count": ("uint3", "threadgroups_per_grid"),
    "lane_index": ("uint", "thread_index_in_simdgroup"),
    "warp_index": ("uint", "simdgroup_index_in_threadgroup"),
    "warp_width": ("uint", "threads_per_simdgroup"),
}
_GLOBAL = "group_index.# * group_size.# + thread_index.#"
_GRID = "group_count.# * group_size.#"
_WIDE = "(ulong)"
_COORDINATES = {
    Coordinate.THREAD_IDX: _axes("thread_index.#"),
    Coordinate.BLOCK_IDX: _axes("group_index.#"),
    Coordinate.BLOCK_DIM: _axes("group_size.#"),
    Coordinate.GRID_DIM: _axes("group_count.#"),
    Coordinate.GLOBAL_IDX: _axes(_WIDE + _GLOBAL),
    Coordinate.GRID_SIZE: _axes(_WIDE + _GRID),
}
_NARROW = {
    Coordinate.GLOBAL_IDX: _axes(_GLOBAL),
    Coordinate.GRID_SIZE: _axes(_GRID),
}

# --- functions that a program defines for itself ---

_WARP_SIZE = """\
static uint warp_size(uint3 block, uint warp, uint width) {
    uint left = block.x * block.y * block.z - warp * width;
    return left < width ? left : width;
}"""
_DEFINITIONS = {
    "warp_size": _WARP_SIZE,
    "compare_and_swap_device": _compare_and_swap("device"),
    "compare_and_swap_threadgroup": _compare_and_swap("threadgroup"),
}

# --- words ---

_SPACES = {
    MemSpace.GLOBAL: "device",
    MemSpace.SHARED: "threadgroup",
    MemSpace.LOCAL: "thread",
    MemSpace.CONSTANT: "constant",
}
_FLAGS = "mem_flags::mem_device | mem_flags::mem_threadgroup"
_SCOPES = {
    FenceScope.BLOCK: "thread_scope_threadgroup",
    FenceScope.DEVICE: "thread_scope_device",
}
_KEYWORDS = """
    kernel vertex fragment device threadgroup thread constant threadgroup_imageblock object_data
    ray_data mesh object visible stitchable intersection metal simd precise fast half bfloat
    texture1d texture2d texture3d texturecube sampler array atomic vec matrix access address filter
    coord compare_func mem_flags as_type packed_float3 quad complex imaginary size_t ptrdiff_t uint3
    depth2d patch patch_control_point struct_type imageblock r8unorm command_buffer
    compute_command render_command function_constant sarek_kernel sarek_arguments arguments
    dynamic_shared raytracing tensor_ops mpp
""".split()
_MACROS = """
    MAXFLOAT MAXHALF INFINITY NAN HUGE_VALF HUGE_VALH M_E M_PI
""".split()
# Functions of the namespace `metal` that programs do not call: variables may hide them.
_FUNCTION_NAMES = """
    abs absdiff acos acosh addsat all any as_type asin asinh atan atan2 atan2pi atanh clamp
    copysign cos cosh cospi cross ctz degrees determinant dfdx dfdy discard_fragment distance
    distance_squared divide dot exp exp10 exp2 extract_bits fabs faceforward fdim fmax fmax3
    fmedian3 fmin fmin3 fmod fract frexp fwidth get_null_sampler hadd ilogb insert_bits
    is_null_texture isinf isnan isnormal isordered isunordered ldexp length length_squared log
    log10 log2 mad24 madhi madsat max max3 median3 min min3 mix mod modf mul24 mulhi nan nextafter
    normalize popcount pow powr quad_all quad_any quad_ballot quad_broadcast quad_max quad_min
    quad_product quad_shuffle quad_sum reflect refract reverse_bits rhadd rint rotate round rsqrt
    saturate select sign simd_all simd_any simd_ballot simd_broadcast simd_max simd_min
    simd_product simd_shuffle simd_shuffle_down simd_shuffle_rotate_down simd_shuffle_rotate_up
    simd_shuffle_up simd_shuffle_xor simd_sum sin sincos sinh sinpi smoothstep sqrt step subsat tan
    tanh tanpi transpose trunc unpack_half2x16_to_float wait main atomic_thread_fence
    threadgroup_barrier simdgroup_barrier
""".split()
_VECTORS = frozenset(
    f"{lead}{type}{width}"
    for lead in ("", "packed_")
    for type in (*_TYPES.values(), "half", "bfloat")
    for width in (2, 3, 4)
)


def _prologue(contract: str) -> tuple[str, ...]:
    """Pragmas say what options of the compiler cannot: section 1.6.3; before, Clang's own."""
    return (
        "#include <metal_stdlib>",
        "using namespace metal;",
        "#if __METAL_VERSION__ >= 320",
        "#pragma METAL fp math_mode(safe)",
        f"#pragma METAL fp contract({contract})",
        "#else",
        f"#pragma clang fp contract({contract})",
        "#endif",
    )


DIALECT = Dialect(
    name="the Metal Shading Language",
    types=_TYPES,
    memory_types={Scalar.BOOL: "uchar"},
    suffixes=_SUFFIXES,
    infinity={Scalar.FLOAT32: "INFINITY"},
    nan={Scalar.FLOAT32: "NAN"},
    pointer_space=_SPACES,
    declare_space=_SPACES,
    constant_array="constant",
    kernel_head="kernel void",
    coordinates=_COORDINATES,
    coordinate_type=Scalar.UINT32,
    wide_coordinates=frozenset(_NARROW),
    narrow_coordinates=_NARROW,
    narrow_coordinate_type=Scalar.UINT32,
    barrier=f"threadgroup_barrier({_FLAGS})",
    fences={
        scope: f"atomic_thread_fence({_FLAGS}, memory_order_seq_cst, {word})"
        for scope, word in _SCOPES.items()
    },
    functions=_FUNCTIONS,
    reinterpret={scalar: f"as_type<{name}>({{0}})" for scalar, name in _TYPES.items()},
    saturate={
        (Scalar.FLOAT32, target): clamped(Scalar.FLOAT32, target, _TYPES, _SUFFIXES)
        for target in _INTEGERS
    },
    atomics=_atomics(),
    volatile="*(volatile {space}{type} *){0}",
    structure="{{{items}}}",
    exact_items=True,
    prologue=_prologue("off"),
    type_prologue={},
    word_prologue={name: ("", text) for name, text in _DEFINITIONS.items()},
    reserved=words.KEYWORDS
    | words.MACROS
    | words.TYPES
    | frozenset(_KEYWORDS)
    | frozenset(_MACROS)
    | frozenset(_TYPES.values())
    | _VECTORS
    | frozenset(_BUILTINS)
    | frozenset(_DEFINITIONS)
    | frozenset(MATRIX_NAMES)
    | frozenset(name.removeprefix("precise::") for name in function_names(_FUNCTIONS.values()))
    | frozenset(aliasing_name(name) for name in _TYPES.values())
    | {"sinpi", "cospi", "simd_shuffle", "threadgroup_barrier", "simdgroup_barrier"}
    | warps.NAMES
    | NAMES,
    reserved_functions=frozenset(_FUNCTION_NAMES),
    reserved_leads=("atomic_", "memory_order_", "thread_scope_", "FLT_", "HALF_", "M_", "MTL"),
    framework="metal",
    function_head="static",
    aliasing="typedef {type} {name} __attribute__((may_alias));",
    restrict="__restrict",
    unroll="#pragma unroll{count}",
    warp=WarpSpelling(
        lane="lane_index",
        shuffle="simd_shuffle({0}, (ushort)({1}))",
        size="warp_size(group_size, warp_index, warp_width)",
        barrier=f"simdgroup_barrier({_FLAGS})",
        kernel_head="",
        parameter="uint lane_index",
    ),
    matrices=MATRICES,
    entry=Entry(
        buffer="{0} [[buffer({1})]]",
        numbers="constant {type} &{name} [[buffer({place})]]",
        structure="sarek_arguments",
        name="arguments",
        region="{0} [[threadgroup(0)]]",
        builtins=_BUILTINS,
    ),
)


def contracting(dialect: Dialect) -> Dialect:
    """The dialect in which a product and a sum may become one operation: see `accept.fastmath`."""
    return replace(dialect, prologue=_prologue("on"))


MISSING = ("erf", "erfc", "gamma", "lgamma")
"""Functions that the language has not, and that nothing here computes in float32."""

EMULATED = {"division": "divide", "square_root": "sqrt", "fma": "fma"}
"""Promises that are kept by operations on the bits where a device is not known to keep them."""

_STRUCTURAL = frozenset({("fmod", Scalar.FLOAT32), ("nextafter", Scalar.FLOAT32)})

TARGET = Target(
    "metal",
    address_bits=32,
    shuffles_only=True,
    framework=DIALECT.framework,
    own_operations=_STRUCTURAL,
    emulates=frozenset(EMULATED),
)


def target_for(broken: Collection[str]) -> Target:
    """The target of a device that is not known to keep some promises of float32."""
    own = {(EMULATED[promise], Scalar.FLOAT32) for promise in broken if promise in EMULATED}
    return replace(TARGET, own_operations=_STRUCTURAL | own)
