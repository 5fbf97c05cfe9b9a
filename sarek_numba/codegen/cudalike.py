"""What CUDA C++ and HIP C++ share, as a `Dialect` from which each makes its own by replacements.

Both are C++ with functions of the device. Types are spelled in full, because the short names of
headers differ; what has no name in both languages is a function that a program defines for itself
if it uses it (`word_prologue`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sarek_numba.codegen import warps, words
from sarek_numba.codegen.aliasing import aliasing_name
from sarek_numba.codegen.dialect import Dialect, WarpSpelling
from sarek_numba.codegen.prelude import NAMES
from sarek_numba.ir.nodes import AtomicOp, Coordinate, FenceScope
from sarek_numba.ir.types import Kind, MemSpace, Scalar

HEAD = "static __device__"  # of a function

TYPES = {
    Scalar.BOOL: "bool",
    Scalar.INT8: "signed char",
    Scalar.INT16: "short",
    Scalar.INT32: "int",
    Scalar.INT64: "long long",
    Scalar.UINT8: "unsigned char",
    Scalar.UINT16: "unsigned short",
    Scalar.UINT32: "unsigned int",
    Scalar.UINT64: "unsigned long long",
    Scalar.FLOAT32: "float",
    Scalar.FLOAT64: "double",
}
_INTEGERS = tuple(scalar for scalar in TYPES if scalar.is_integer)
_FLOATS = (Scalar.FLOAT32, Scalar.FLOAT64)
_ENDS = {Scalar.FLOAT32: "f", Scalar.FLOAT64: ""}
_SUFFIXES = {
    Scalar.INT32: "",
    Scalar.INT64: "LL",
    Scalar.UINT32: "u",
    Scalar.UINT64: "ULL",
    **_ENDS,
}

# --- functions ---

# intrinsic -> function of doubles; that of floats has an f at its end
_FLOAT_FUNCTIONS = {
    name: name
    for name in """
        exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh
        atanh erf erfc lgamma cbrt rsqrt pow atan2 hypot sqrt floor ceil trunc rint fma fmod
        copysign nextafter
    """.split()
} | {"gamma": "tgamma", "abs": "fabs"}
_OVERLOADED = ("isnan", "isinf", "isfinite", "signbit")
_ARITY = dict.fromkeys("pow atan2 hypot fmod copysign nextafter".split(), 2) | {"fma": 3}


def _call(function: str, arity: int) -> str:
    return f"{function}({', '.join(f'{{{i}}}' for i in range(arity))})"


def _bit_functions() -> dict[tuple[str, Scalar], str]:
    """Bits that are set, and zeros in front, of integers of each width."""
    found = {}
    for scalar in _INTEGERS:
        end = "ll" if scalar.bits == 64 else ""
        # a narrow value is one of 32 bits with zeros in front
        narrow = f"(unsigned {'char' if scalar.bits == 8 else 'short'})" if scalar.bits < 32 else ""
        found["popcount", scalar] = (
            f"__popc{end}({narrow}({{0}}))" if narrow else f"__popc{end}({{0}})"
        )
        found["clz", scalar] = (
            f"(__clz({narrow}({{0}})) - {32 - scalar.bits})" if narrow else f"__clz{end}({{0}})"
        )
    return found


FUNCTIONS = (
    {
        (name, scalar): _call(function + _ENDS[scalar], _ARITY.get(name, 1))
        for name, function in _FLOAT_FUNCTIONS.items()
        for scalar in _FLOATS
    }
    | {(name, scalar): f"{name}({{0}})" for name in _OVERLOADED for scalar in _FLOATS}
    | _bit_functions()
)

# --- conversions ---


def clamped(
    source: Scalar,
    target: Scalar,
    types: Mapping[Scalar, str] = TYPES,
    suffixes: Mapping[Scalar, str] = _SUFFIXES,
) -> str:
    """A float that is not a NaN as an integer of a type, by comparison with the type's ends."""
    end = suffixes[source]
    above = 2.0 ** (target.bits - (target.kind is Kind.SIGNED))
    below = f"-{above:.1f}{end}" if target.minimum else f"0.0{end}"
    type = types[target]
    lowest, highest = (_literal(target, end, suffixes) for end in (target.minimum, target.maximum))
    return f"({{0}} <= {below} ? {lowest} : {{0}} >= {above:.1f}{end} ? {highest} : ({type}){{0}})"


def _literal(scalar: Scalar, value: int, suffixes: Mapping[Scalar, str]) -> str:
    suffix = suffixes.get(scalar, "")
    return (
        f"({value + 1}{suffix} - 1)" if value == -(2 ** (scalar.bits - 1)) else f"{value}{suffix}"
    )


# --- atomics ---

_WORDS = (Scalar.INT32, Scalar.UINT32)
_LONG = "(unsigned long long *){0}"


def _atomics() -> dict[tuple[AtomicOp, Scalar], str]:
    """Native operations, each exact. Those of 64 bits are of unsigned integers, but the extremes.

    Sums of float32 are none: the machine takes subnormal numbers for zeros there.
    """
    found: dict[tuple[AtomicOp, Scalar], str] = {}
    named = {
        AtomicOp.ADD: "Add",
        AtomicOp.SUB: "Sub",
        AtomicOp.MIN: "Min",
        AtomicOp.MAX: "Max",
        AtomicOp.AND: "And",
        AtomicOp.OR: "Or",
        AtomicOp.XOR: "Xor",
        AtomicOp.EXCH: "Exch",
        AtomicOp.STORE: "Exch",
    }
    for op, name in named.items():
        for scalar in _WORDS:
            found[op, scalar] = f"atomic{name}({{0}}, {{1}})"
        found[op, Scalar.UINT64] = f"atomic{name}({{0}}, {{1}})"
        found[op, Scalar.INT64] = f"(long long)atomic{name}({_LONG}, (unsigned long long)({{1}}))"
    for op in (AtomicOp.MIN, AtomicOp.MAX):
        found[op, Scalar.INT64] = f"atomic{named[op]}({{0}}, {{1}})"
    found[AtomicOp.SUB, Scalar.UINT64] = "atomicAdd({0}, 0ULL - ({1}))"
    found[AtomicOp.SUB, Scalar.INT64] = (
        f"(long long)atomicAdd({_LONG}, 0ULL - (unsigned long long)({{1}}))"
    )
    # Prelude functions exchange bits through pointers to volatile memory, which have no overload.
    for op, name, values in (
        (AtomicOp.EXCH, "Exch", "{1}"),
        (AtomicOp.CAS, "CAS", "{1}, {2}"),
    ):
        found[op, Scalar.UINT32] = f"atomic{name}((unsigned int *){{0}}, {values})"
        found[op, Scalar.UINT64] = f"atomic{name}({_LONG}, {values})"
    found[AtomicOp.CAS, Scalar.INT32] = "atomicCAS({0}, {1}, {2})"
    found[AtomicOp.CAS, Scalar.INT64] = (
        f"(long long)atomicCAS({_LONG}, (unsigned long long)({{1}}), (unsigned long long)({{2}}))"
    )
    found[AtomicOp.INC, Scalar.UINT32] = "atomicInc({0}, {1})"
    found[AtomicOp.DEC, Scalar.UINT32] = "atomicDec({0}, {1})"
    found[AtomicOp.ADD, Scalar.FLOAT64] = "atomicAdd({0}, {1})"
    found[AtomicOp.SUB, Scalar.FLOAT64] = "atomicAdd({0}, -({1}))"
    for op in (AtomicOp.EXCH, AtomicOp.STORE):
        found[op, Scalar.FLOAT32] = "atomicExch({0}, {1})"
    return found


ATOMICS = _atomics()

# --- coordinates ---


def _axes(text: str) -> tuple[str, str, str]:
    x, y, z = (text.replace("#", axis) for axis in "xyz")
    return x, y, z


_GLOBAL = "blockIdx.# * blockDim.# + threadIdx.#"
_GRID = "gridDim.# * blockDim.#"
_WIDE = "(unsigned long long)"
COORDINATES = {
    Coordinate.THREAD_IDX: _axes("threadIdx.#"),
    Coordinate.BLOCK_IDX: _axes("blockIdx.#"),
    Coordinate.BLOCK_DIM: _axes("blockDim.#"),
    Coordinate.GRID_DIM: _axes("gridDim.#"),
    Coordinate.GLOBAL_IDX: _axes(_WIDE + _GLOBAL),
    Coordinate.GRID_SIZE: _axes(_WIDE + _GRID),
}
NARROW_COORDINATES = {
    Coordinate.GLOBAL_IDX: _axes(_GLOBAL),
    Coordinate.GRID_SIZE: _axes(_GRID),
}

# --- functions that a program defines for itself ---

_SAME_BITS = f"""\
template <typename To, typename From>
{HEAD} To same_bits(From value) {{
    To result;
    memcpy(&result, &value, sizeof result);
    return result;
}}"""
_PLACE = "threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)"
_LANE = f"""\
{HEAD} unsigned int warp_lane() {{
    return ({_PLACE}) % 32;
}}"""
_SIZE = f"""\
{HEAD} unsigned int warp_size() {{
    unsigned int place = {_PLACE};
    unsigned int left = blockDim.x * blockDim.y * blockDim.z - place / 32 * 32;
    return left < 32 ? left : 32;
}}"""
DEFINITIONS = {"same_bits": _SAME_BITS, "warp_lane": _LANE, "warp_size": _SIZE}


def function_names(templates: Iterable[str]) -> frozenset[str]:
    """The names of the functions that templates call."""
    return frozenset(text.partition("(")[0] for text in templates)


_SPACES = dict.fromkeys(MemSpace, "")

CUDALIKE = Dialect(
    name="C++",
    types=TYPES,
    memory_types={Scalar.BOOL: "unsigned char"},
    suffixes=_SUFFIXES,
    # constant expressions, as the initial values of an array must be
    infinity={Scalar.FLOAT32: "(1.0f / 0.0f)", Scalar.FLOAT64: "(1.0 / 0.0)"},
    nan={Scalar.FLOAT32: "(0.0f / 0.0f)", Scalar.FLOAT64: "(0.0 / 0.0)"},
    pointer_space=_SPACES,
    declare_space={**_SPACES, MemSpace.SHARED: "__shared__"},
    constant_array="static __device__ const",
    kernel_head='extern "C" __global__ void',
    coordinates=COORDINATES,
    coordinate_type=Scalar.UINT32,
    wide_coordinates=frozenset(NARROW_COORDINATES),
    narrow_coordinates=NARROW_COORDINATES,
    narrow_coordinate_type=Scalar.UINT32,
    barrier="__syncthreads()",
    fences={
        FenceScope.BLOCK: "__threadfence_block()",
        FenceScope.DEVICE: "__threadfence()",
    },
    functions=FUNCTIONS,
    float_functions=_ENDS,
    reinterpret={scalar: f"same_bits<{name}>({{0}})" for scalar, name in TYPES.items()},
    saturate={
        (source, target): clamped(source, target) for source in _FLOATS for target in _INTEGERS
    },
    atomics=ATOMICS,
    volatile="*(volatile {space}{type} *){0}",
    structure="{{{items}}}",
    exact_items=True,
    prologue=(),
    type_prologue={},
    word_prologue={name: (text,) for name, text in DEFINITIONS.items()},
    reserved=words.KEYWORDS
    | words.MACROS
    | words.TYPES
    | function_names(FUNCTIONS.values())
    | frozenset(DEFINITIONS)
    | frozenset(aliasing_name(name) for name in TYPES.values())
    | {"sarek_kernel", "dynamic_shared", "sinpi", "cospi", "sinpif", "cospif", "memcpy"}
    | {"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"}
    | warps.NAMES
    | NAMES,
    reserved_functions=words.FUNCTIONS,
    reserved_leads=words.LEADS,
    framework="",
    function_head=HEAD,
    restrict="__restrict__",
    unroll="#pragma unroll{count}",
    dynamic_shared="extern __shared__ {type} {name}[];",
    warp=WarpSpelling(
        lane="warp_lane()",
        shuffle="__shfl_sync(0xffffffffu, {0}, {1})",
        size="warp_size()",
        barrier="__syncwarp()",
        kernel_head="",
    ),
)
