"""OpenCL C 1.2 as a table for `codegen.cfamily`.

Nothing here depends on a device: what one driver gets wrong is spelled otherwise for all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sarek_numba.codegen import warps
from sarek_numba.codegen.aliasing import aliasing_name
from sarek_numba.codegen.dialect import Dialect, WarpSpelling
from sarek_numba.codegen.prelude import NAMES
from sarek_numba.ir.nodes import AtomicOp, Coordinate, FenceScope
from sarek_numba.ir.types import MemSpace, Scalar

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
    Scalar.FLOAT64: "double",
}
_INTEGERS = tuple(s for s in _TYPES if s.is_integer)
_FLOATS = (Scalar.FLOAT32, Scalar.FLOAT64)
_ATOMIC_INTEGERS = (Scalar.INT32, Scalar.UINT32)
_LONG_INTEGERS = (Scalar.INT64, Scalar.UINT64)

# intrinsic -> OpenCL function, where the names differ
_FLOAT_FUNCTIONS = {
    name: name
    for name in """
        exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh
        atanh erf erfc lgamma cbrt rsqrt pow atan2 hypot sqrt floor ceil trunc rint fma
        fmod copysign nextafter isnan isinf isfinite signbit
    """.split()
} | {"gamma": "tgamma", "abs": "fabs"}
_INTEGER_FUNCTIONS = {"popcount": "popcount", "clz": "clz"} | {
    name: name[:3] for name in ("min", "max", "minimum", "maximum")
}
_INTEGER_FUNCTIONS |= {"fmin": "min", "fmax": "max"}
_TWO = "pow atan2 hypot fmod copysign nextafter min max minimum maximum fmin fmax".split()
_ARITY = dict.fromkeys(_TWO, 2) | {"fma": 3}
# drivers' double functions of these names are wrong near the threshold of overflow
_BY_PRELUDE = frozenset((name, Scalar.FLOAT64) for name in ("exp", "sinh", "cosh"))


def _call(function: str, arity: int) -> str:
    return f"{function}({', '.join(f'{{{i}}}' for i in range(arity))})"


_FUNCTIONS = {
    (name, scalar): _call(function, _ARITY.get(name, 1))
    for functions, scalars in ((_FLOAT_FUNCTIONS, _FLOATS), (_INTEGER_FUNCTIONS, _INTEGERS))
    for name, function in functions.items()
    for scalar in scalars
    if (name, scalar) not in _BY_PRELUDE
}

_ATOMIC_FUNCTIONS = {
    AtomicOp.ADD: "atomic_add({0}, {1})",
    AtomicOp.SUB: "atomic_sub({0}, {1})",
    AtomicOp.MIN: "atomic_min({0}, {1})",
    AtomicOp.MAX: "atomic_max({0}, {1})",
    AtomicOp.AND: "atomic_and({0}, {1})",
    AtomicOp.OR: "atomic_or({0}, {1})",
    AtomicOp.XOR: "atomic_xor({0}, {1})",
    AtomicOp.EXCH: "atomic_xchg({0}, {1})",
    AtomicOp.STORE: "atomic_xchg({0}, {1})",
    AtomicOp.CAS: "atomic_cmpxchg({0}, {1}, {2})",
}
# The functions of 64-bit integers have names of their own and stand in two extensions.
INT64_BASE = "cl_khr_int64_base_atomics"
INT64_EXTENDED = "cl_khr_int64_extended_atomics"
EXTENDED_OPS = frozenset({AtomicOp.MIN, AtomicOp.MAX, AtomicOp.AND, AtomicOp.OR, AtomicOp.XOR})
_LONG_FUNCTIONS = {op: text.replace("atomic_", "atom_") for op, text in _ATOMIC_FUNCTIONS.items()}
_ATOMICS = (
    {(op, scalar): text for op, text in _ATOMIC_FUNCTIONS.items() for scalar in _ATOMIC_INTEGERS}
    | {(op, Scalar.FLOAT32): _ATOMIC_FUNCTIONS[op] for op in (AtomicOp.EXCH, AtomicOp.STORE)}
    | {(op, scalar): text for op, text in _LONG_FUNCTIONS.items() for scalar in _LONG_INTEGERS}
)

_AXES = ("0", "1", "2")
_COORDINATE_FUNCTIONS = {
    Coordinate.THREAD_IDX: "get_local_id",
    Coordinate.BLOCK_IDX: "get_group_id",
    Coordinate.BLOCK_DIM: "get_local_size",
    Coordinate.GRID_DIM: "get_num_groups",
    Coordinate.GLOBAL_IDX: "get_global_id",
    Coordinate.GRID_SIZE: "get_global_size",
}

_SPACES = {
    MemSpace.GLOBAL: "global",
    MemSpace.SHARED: "local",
    MemSpace.LOCAL: "",
    MemSpace.CONSTANT: "constant",
}
_FENCE = "CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE"

_KEYWORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while asm typeof kernel global local constant private generic read_only
    write_only read_write uniform pipe complex imaginary bool true false uchar ushort uint ulong
    half quad size_t ptrdiff_t intptr_t uintptr_t event_t sampler_t queue_t ndrange_t clk_event_t
    reserve_id_t image1d_t image1d_buffer_t image1d_array_t image2d_t image2d_array_t
    image2d_depth_t image2d_array_depth_t image3d_t sarek_kernel dynamic_shared
    vec_step
""".split()
_MACROS = """
    NULL INFINITY NAN HUGE_VAL HUGE_VALF MAXFLOAT CHAR_BIT CHAR_MAX CHAR_MIN SCHAR_MAX SCHAR_MIN
    UCHAR_MAX SHRT_MAX SHRT_MIN USHRT_MAX INT_MAX INT_MIN UINT_MAX LONG_MAX LONG_MIN ULONG_MAX
    FLT_DIG FLT_MANT_DIG FLT_MAX_10_EXP FLT_MAX_EXP FLT_MIN_10_EXP FLT_MIN_EXP FLT_RADIX FLT_MAX
    FLT_MIN FLT_EPSILON DBL_DIG DBL_MANT_DIG DBL_MAX DBL_MIN DBL_EPSILON HALF_MAX HALF_MIN FP_ILOGB0
    FP_ILOGBNAN FP_FAST_FMA FP_FAST_FMAF CLK_LOCAL_MEM_FENCE CLK_GLOBAL_MEM_FENCE
    MAX_WORK_DIM INTTYPE kernel_exec linux unix i386
""".split()
_MACROS += [
    f"M_{name}{suffix}"
    for name in "E LOG2E LOG10E LN2 LN10 PI PI_2 PI_4 1_PI 2_PI 2_SQRTPI SQRT2 SQRT1_2".split()
    for suffix in ("", "_F", "_H")
]
# Built-in functions that no program here calls: a variable may hide them, a helper's name may not
# overload them.
_BUILTINS = """
    main sinpi cospi
    acospi add_sat all any as_char as_double as_float as_int as_long as_short as_uchar as_uint
    as_ulong as_ushort asinpi async_work_group_copy async_work_group_strided_copy atan2pi atanpi
    barrier bitselect clamp cross ctz degrees distance dot exp10 fast_distance fast_length
    fast_normalize fdim fmax fmin fract frexp get_global_offset get_work_dim hadd ilogb isequal
    isgreater isgreaterequal isless islessequal islessgreater isnormal isnotequal isordered
    isunordered ldexp length lgamma_r logb mad mad24 mad_hi mad_sat maxmag mem_fence minmag mix modf
    mul24 mul_hi nan normalize pown powr prefetch printf radians read_mem_fence remainder remquo
    rhadd rootn rotate round select shuffle shuffle2 sign sincos smoothstep step sub_sat tanpi
    upsample vec_step vload_half vstore_half wait_group_events write_mem_fence atom_add atom_sub
    atom_xchg atom_inc atom_dec atom_cmpxchg atom_min atom_max atom_and atom_or atom_xor atomic_inc
    atomic_dec atomic_init atomic_load atomic_store atomic_exchange atomic_fetch_add atomic_flag
    atomic_work_item_fence memory_order memory_scope work_group_barrier
""".split()
_BUILTINS += [
    f"{prefix}_{name}"
    for prefix in ("half", "native")
    for name in ("cos divide exp exp2 exp10 log log2 log10 powr recip rsqrt sin sqrt tan".split())
]
_VECTORS = [
    f"{name}{width}" for name in (*_TYPES.values(), "half", "quad") for width in (2, 3, 4, 8, 16)
]


def _function_names(templates: Iterable[str]) -> frozenset[str]:
    return frozenset(text.partition("(")[0] for text in templates)


_EXACT, _CONTRACTED = "#pragma OPENCL FP_CONTRACT OFF", "#pragma OPENCL FP_CONTRACT ON"

DIALECT = Dialect(
    name="OpenCL C",
    types=_TYPES,
    memory_types={Scalar.BOOL: "uchar"},
    suffixes={
        Scalar.INT32: "",
        Scalar.INT64: "L",
        Scalar.UINT32: "u",
        Scalar.UINT64: "UL",
        Scalar.FLOAT32: "f",
        Scalar.FLOAT64: "",
    },
    infinity={Scalar.FLOAT32: "INFINITY", Scalar.FLOAT64: "(double)INFINITY"},
    # NAN is no constant expression, as the initial values of an array must be
    nan={Scalar.FLOAT32: "(0.0f / 0.0f)", Scalar.FLOAT64: "(0.0 / 0.0)"},
    pointer_space=_SPACES,
    declare_space=_SPACES,
    constant_array="constant",
    kernel_head="kernel void",
    coordinates={
        coordinate: (f"{name}(0)", f"{name}(1)", f"{name}(2)")
        for coordinate, name in _COORDINATE_FUNCTIONS.items()
    },
    coordinate_type=Scalar.UINT64,
    barrier=f"barrier({_FENCE})",
    fences=dict.fromkeys(FenceScope, f"mem_fence({_FENCE})"),
    functions=_FUNCTIONS,
    reinterpret={scalar: f"as_{name}({{0}})" for scalar, name in _TYPES.items()},
    saturate={
        (source, target): f"convert_{_TYPES[target]}_sat({{0}})"
        for source in _FLOATS
        for target in _INTEGERS
    },
    atomics=_ATOMICS,
    volatile="*(volatile {space}{type} *){0}",
    structure="({type}){{{items}}}",
    prologue=(_EXACT,),
    type_prologue={Scalar.FLOAT64: ("#pragma OPENCL EXTENSION cl_khr_fp64 : enable",)},
    word_prologue={
        text.partition("(")[0]: (f"#pragma OPENCL EXTENSION {extension} : enable",)
        for extension, ops in (
            (INT64_BASE, _LONG_FUNCTIONS.keys() - EXTENDED_OPS),
            (INT64_EXTENDED, EXTENDED_OPS),
        )
        for text in sorted(_LONG_FUNCTIONS[op] for op in ops)
    },
    aliasing="typedef {type} {name} __attribute__((may_alias));",
    reserved=frozenset((*_KEYWORDS, *_MACROS, *_VECTORS, *_COORDINATE_FUNCTIONS.values()))
    | _function_names(_FUNCTIONS.values())
    | _function_names(_ATOMIC_FUNCTIONS.values())
    | _function_names(_LONG_FUNCTIONS.values())
    | frozenset(f"convert_{name}_sat" for name in _TYPES.values())
    | frozenset(f"as_{name}" for name in _TYPES.values())
    | frozenset(aliasing_name(name) for name in _TYPES.values())
    | {"barrier", "mem_fence"}
    | {"get_sub_group_local_id", "get_sub_group_size", "sub_group_shuffle", "sub_group_barrier"}
    | warps.NAMES
    | NAMES,
    reserved_functions=frozenset(_BUILTINS),
    reserved_leads=("CL_", "CLK_", "cl_", "DBL_", "FLT_", "HALF_", "ATOMIC_"),
    framework="opencl",
    warp=WarpSpelling(
        lane="get_sub_group_local_id()",
        shuffle="sub_group_shuffle({0}, {1})",
        size="get_sub_group_size()",
        barrier=f"sub_group_barrier({_FENCE})",
        kernel_head="__attribute__((intel_reqd_sub_group_size({0}))) ",
    ),
    restrict="restrict",
    unroll="#pragma unroll{count}",
)


def without_extended_atomics(dialect: Dialect) -> Dialect:
    """The dialect of a device that has 64-bit exchanges alone: the rest are loops of them."""
    kept = {
        (op, scalar): text
        for (op, scalar), text in dialect.atomics.items()
        if scalar not in _LONG_INTEGERS or op not in EXTENDED_OPS
    }
    return replace(dialect, atomics=kept)


def contracting(dialect: Dialect) -> Dialect:
    """The dialect in which a product and a sum may become one operation: see `accept.fastmath`."""
    lines = tuple(_CONTRACTED if line == _EXACT else line for line in dialect.prologue)
    return replace(dialect, prologue=lines)
