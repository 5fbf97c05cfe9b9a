"""Cooperative matrices as AMD's matrix instructions: WMMA of gfx11 and gfx12, MFMA of gfx9.

One text for all of them. A product is of 16 by 16 sums: of both operands a lane has one line, a row
of A or a column of B, `lane % 16`, and of its inner dimension one part of those that `lane / 16`
counts: all of it (gfx11, whose lanes beyond the 16th repeat it), a half (gfx12), a quarter (gfx9,
whose waves have 64 lanes). Which part is of no matter to a product, as long as it is the same of
both. Of the sums a lane has a part of the column `lane % 16`. So what a lane holds depends on the
architecture, and is counted by the compiler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from sarek_numba.codegen.cudalike import DEFINITIONS, HEAD, TYPES
from sarek_numba.codegen.matrices import saturating_definition
from sarek_numba.errors import InvalidIR
from sarek_numba.ir.matrices import ACCUMULATORS
from sarek_numba.ir.nodes import CoopmatConfig, Fragment
from sarek_numba.ir.types import Scalar

EDGE = 16
SOURCE = (
    "AMD RDNA3 and RDNA4 ISA, wave matrix multiply accumulate; AMD CDNA2 and CDNA3 ISA, matrix "
    "fused multiply-add: shapes, types and layouts"
)
_SHORT = {
    Scalar.FLOAT16: "f16",
    Scalar.BFLOAT16: "bf16",
    Scalar.FLOAT32: "f32",
    Scalar.INT8: "s8",
    Scalar.UINT8: "u8",
    Scalar.INT32: "s32",
}
_BYTES = (Scalar.INT8, Scalar.UINT8)


@dataclass(frozen=True, slots=True)
class Product:
    """16 by 16 sums over `k` products each; `families` are the architectures that have it."""

    k: int
    a: Scalar
    b: Scalar
    sums: Scalar
    families: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"mma_{self.k}_{_SHORT[self.a]}_{_SHORT[self.b]}_{_SHORT[self.sums]}"


# By how their names begin; gfx1250 has other instructions than gfx1200. On gfx90a those of halves
# take subnormal numbers for zeros, which no bound on the error holds for.
_WAVE32, _WAVE64 = ("gfx110", "gfx115", "gfx120"), ("gfx90a", "gfx94", "gfx95")
_HALVES = (*_WAVE32, "gfx94", "gfx95")
PRODUCTS = (
    *(
        Product(16, half, half, Scalar.FLOAT32, _HALVES)
        for half in (Scalar.FLOAT16, Scalar.BFLOAT16)
    ),
    *(Product(16, a, b, Scalar.INT32, _WAVE32) for a, b in product(_BYTES, repeat=2)),
    *(
        Product(32, a, b, Scalar.INT32, _WAVE32 + _WAVE64 if a is b is Scalar.INT8 else _WAVE32)
        for a, b in product(_BYTES, repeat=2)
    ),
    Product(4, Scalar.FLOAT32, Scalar.FLOAT32, Scalar.FLOAT32, _WAVE64),
)
_LARGER = ((1, 1, 1), (2, 1, 1), (2, 2, 1), (1, 1, 2))  # in pieces


def configurations(architecture: str) -> tuple[CoopmatConfig, ...]:
    """What a device of an architecture, as gfx1100, has. Sums of bytes are int32 or uint32."""
    found = []
    for each in PRODUCTS:
        if not architecture.startswith(each.families):
            continue
        whole = each.sums is Scalar.INT32
        results = (Scalar.INT32, Scalar.UINT32) if whole else (each.sums,)
        ways = (True, False) if whole else (False,)
        for saturating, (m, n, k), result in product(ways, _LARGER, results):
            shape = (EDGE * m, EDGE * n, each.k * k)
            found.append(CoopmatConfig(*shape, each.a, each.b, result, result, saturating))
    return tuple(dict.fromkeys(found))


def product_for(config: CoopmatConfig) -> Product:
    """What a multiply-add is made of. Raises InvalidIR without it."""
    sums = Scalar.INT32 if config.result is Scalar.UINT32 else config.result
    fitting = [
        each
        for each in PRODUCTS
        if (each.a, each.b, each.sums) == (config.a, config.b, sums)
        and config.m % EDGE == config.n % EDGE == config.k % each.k == 0
    ]
    saturates = config.saturating and sums is not Scalar.INT32
    if not fitting or saturates or config.scope != "subgroup" or config.c != config.result:
        raise InvalidIR(f"HIP C++ has no multiply-add {config}")
    return max(fitting, key=lambda each: each.k)


# --- text ---

_LAYOUT = """\
#if defined(__GFX12__)
enum { matrix_parts = 2, matrix_sums = 8, matrix_row = 1, matrix_rows = 8 };
#elif defined(__GFX11__)
enum { matrix_parts = 1, matrix_sums = 8, matrix_row = 2, matrix_rows = 1 };
#elif defined(__GFX9__)
enum { matrix_parts = 4, matrix_sums = 4, matrix_row = 1, matrix_rows = 4 };
#elif !defined(__AMDGCN__)
enum { matrix_parts = machine::parts, matrix_sums = machine::sums,
       matrix_row = machine::row, matrix_rows = machine::rows };
#endif
typedef unsigned int matrix_word __attribute__((may_alias));
typedef unsigned short matrix_half __attribute__((may_alias));
"""
# A lane has `run` components of a line that follow each other, in words; so for each piece.
_WALK = """\
    const int run = k / matrix_parts, each = 4 / sizeof(Component), words = run / each;
    int lane = warp_lane(), part = lane / 16 % matrix_parts;
    #pragma unroll
    for (int piece = 0; piece < lines / 16 * (length / k); piece++) {"""
_PLACE = """\
memory + (lane % 16 + 16 * (piece / (length / k))) * across +
            (piece % (length / k) * k + part * run) * along;"""
_OPERANDS = f"""\
template <int lines, int length, int k, typename Component>
{HEAD} void matrix_load_operand(
    unsigned int *held, const Component *memory, long long across, long long along) {{
{_WALK}
        const Component *place = {_PLACE}
        bool whole = along == 1 && ((size_t)memory | (size_t)(across * sizeof(Component))) % 4 == 0;
        #pragma unroll
        for (int i = 0; i < words; i++) {{
            unsigned int word = 0;
            if (whole) {{
                word = ((const matrix_word *)place)[i];
            }} else {{
                #pragma unroll
                for (int j = 0; j < each; j++)
                    word |= matrix_bits(place + (i * each + j) * along) << 32 / each * j;
            }}
            held[piece * words + i] = word;
        }}
    }}
}}

template <int lines, int length, int k, typename Component>
{HEAD} void matrix_store_operand(
    const unsigned int *held, Component *memory, long long across, long long along) {{
{_WALK}
        Component *place = {_PLACE}
        #pragma unroll
        for (int i = 0; i < run; i++)
            matrix_put(place + i * along, held[piece * words + i / each] >> 32 / each * (i % each));
    }}
}}"""
_BITS = f"""\
typedef unsigned int matrix_word __attribute__((may_alias));
typedef unsigned short matrix_half __attribute__((may_alias));
{HEAD} unsigned int matrix_bits(const unsigned char *place) {{ return *place; }}
{HEAD} unsigned int matrix_bits(const unsigned short *place) {{
    return *(const matrix_half *)place;
}}
{HEAD} unsigned int matrix_bits(const void *place) {{ return *(const matrix_word *)place; }}
{HEAD} void matrix_put(unsigned char *place, unsigned int bits) {{ *place = bits; }}
{HEAD} void matrix_put(unsigned short *place, unsigned int bits) {{ *(matrix_half *)place = bits; }}
{HEAD} void matrix_put(void *place, unsigned int bits) {{ *(matrix_word *)place = bits; }}"""
_SUMS = f"""\
template <int lines, int length, typename Sum, typename Component>
{HEAD} void matrix_load_sums(
    Sum *held, const Component *memory, long long across, long long along) {{
    int lane = warp_lane();
    #pragma unroll
    for (int i = 0; i < lines / 16 * (length / 16) * matrix_sums; i++) {{
        int piece = i / matrix_sums, row = i % matrix_sums * matrix_row + lane / 16 * matrix_rows;
        const Component *place = memory + (piece / (length / 16) * 16 + row) * across +
            (piece % (length / 16) * 16 + lane % 16) * along;
        held[i] = __builtin_bit_cast(Sum, matrix_bits(place));
    }}
}}

template <int lines, int length, typename Sum, typename Component>
{HEAD} void matrix_store_sums(
    const Sum *held, Component *memory, long long across, long long along) {{
    int lane = warp_lane();
    #pragma unroll
    for (int i = 0; i < lines / 16 * (length / 16) * matrix_sums; i++) {{
        int piece = i / matrix_sums, row = i % matrix_sums * matrix_row + lane / 16 * matrix_rows;
        Component *place = memory + (piece / (length / 16) * 16 + row) * across +
            (piece % (length / 16) * 16 + lane % 16) * along;
        matrix_put(place, __builtin_bit_cast(unsigned int, held[i]));
    }}
}}"""
_FILL = f"""\
template <int count, typename Held>
{HEAD} void matrix_fill(Held *held, Held value) {{
    #pragma unroll
    for (int i = 0; i < count; i++) held[i] = value;
}}"""
_MULTIPLY_ADD = f"""\
template <typename Product, int m, int n, int k, typename Sum>
{HEAD} void matrix_multiply_add(
    Sum *d, const unsigned int *a, const unsigned int *b, const Sum *c) {{
    const int words = Product::words, length = k / Product::inner;
    #pragma unroll
    for (int i = 0; i < m / 16; i++) {{
        #pragma unroll
        for (int j = 0; j < n / 16; j++) {{
            const int first = (i * (n / 16) + j) * matrix_sums;
            Sum sums[matrix_sums];
            #pragma unroll
            for (int part = 0; part < matrix_sums; part++) sums[part] = c[first + part];
            #pragma unroll
            for (int step = 0; step < length; step++)
                Product::run(
                    sums, a + (i * length + step) * words, b + (j * length + step) * words);
            #pragma unroll
            for (int part = 0; part < matrix_sums; part++) d[first + part] = sums[part];
        }}
    }}
}}"""
_SATURATING = saturating_definition(HEAD, "m / 16 * (n / 16) * matrix_sums")
_LANE = DEFINITIONS["warp_lane"].replace("32", "warpSize")
_HELD = {Scalar.FLOAT32: "float", Scalar.INT32: "int"}


def _call(function: str, operand: str, count: int, sums: str, arguments: str) -> str:
    """Vectors of what a lane holds, and the instruction. `operand` is a type of LLVM's."""
    type = f"typedef {operand} Operand __attribute__((ext_vector_type({count})));"
    if count == 1:
        type = f"typedef {operand} Operand;"
    return f"""\
        typedef {sums} Sums __attribute__((ext_vector_type(matrix_sums)));
        {type}
        Operand left, right;
        Sums total;
        __builtin_memcpy(&left, a, sizeof left);
        __builtin_memcpy(&right, b, sizeof right);
        __builtin_memcpy(&total, d, sizeof total);
        total = {function}({arguments});
        __builtin_memcpy(d, &total, sizeof total);"""


_PLAIN, _MATRIX = "left, right, total", "left, right, total, 0, 0, 0"


def _calls(each: Product) -> dict[str, str]:
    """The instruction of each condition on the architecture under which there is one."""
    sums = _HELD[each.sums]
    wide, narrow, old = "defined(__GFX11__)", "defined(__GFX12__)", "defined(__GFX9__)"
    wmma, mfma = "__builtin_amdgcn_wmma_", "__builtin_amdgcn_mfma_"
    match each.a:
        case Scalar.FLOAT16 | Scalar.BFLOAT16:
            short = _SHORT[each.a]
            name = f"{wmma}f32_16x16x16_{short}_w32"
            type = "_Float16" if each.a is Scalar.FLOAT16 else "short"
            old_name = "16x16x16f16" if each.a is Scalar.FLOAT16 else "16x16x16bf16_1k"
            return {
                narrow: _call(f"{name}_gfx12", type, 8, sums, _PLAIN),
                wide: _call(name, type, 16, sums, _PLAIN),
                old: _call(f"{mfma}f32_{old_name}", type, 4, sums, _MATRIX),
            }
        case Scalar.FLOAT32:
            return {old: _call(f"{mfma}f32_16x16x4f32", "float", 1, sums, _MATRIX)}
        case _ if each.k == 16:
            name = f"{wmma}i32_16x16x16_iu8_w32"
            signs = ("true" if part is Scalar.INT8 else "false" for part in (each.a, each.b))
            arguments = "{}, left, {}, right, total, false".format(*signs)
            return {
                narrow: _call(f"{name}_gfx12", "int", 2, sums, arguments),
                wide: _call(name, "int", 4, sums, arguments),
            }
        case _ if each.b is Scalar.UINT8 or each.a is Scalar.UINT8:
            return _two_smaller(each)
        case _:
            twice = _call(
                f"{mfma}i32_16x16x16i8", "int", 2, sums, "left.x, right.x, total, 0, 0, 0"
            )
            again = f"{mfma}i32_16x16x16i8(left.y, right.y, total, 0, 0, 0);"
            last = "        __builtin_memcpy(d, &total"
            return _two_smaller(each) | {
                "defined(__gfx90a__)": twice.replace(last, f"        total = {again}\n{last}"),
                old: _call(f"{mfma}i32_16x16x32_i8", "long", 1, sums, _MATRIX),
            }


def _two_smaller(each: Product) -> dict[str, str]:
    """Two products of half the inner dimension; which half a lane's words are of is no matter."""
    name = f"mma_{each.k // 2}_{_SHORT[each.a]}_{_SHORT[each.b]}_{_SHORT[each.sums]}"
    calls = (
        f"        {name}::run(d, a, b);\n"
        f"        {name}::run(d, a + {name}::words, b + {name}::words);"
    )
    return {"defined(__GFX11__) || defined(__GFX12__)": calls}


def definition(each: Product) -> str:
    """A structure with the sizes of a product, and its function on architectures that have it."""
    size = each.a.bits // 8
    tags = ", ".join(f"machine::{_SHORT[part]}" for part in (each.a, each.b, each.sums))
    calls = _calls(each)
    calls["!defined(__AMDGCN__)"] = f"        machine::multiply_add_16<{each.k}, {tags}>(d, a, b);"
    body = "\n#el".join(f"if {condition}\n{text}" for condition, text in calls.items())
    return f"""\
struct {each.name} {{
    enum {{ inner = {each.k}, words = {each.k * size} / (4 * matrix_parts) }};
#if {" || ".join(calls)}
    {HEAD} void run({_HELD[each.sums]} *d, const unsigned int *a, const unsigned int *b) {{
#{body}
#endif
    }}
#endif
}};"""


def _is_half(small: Product, each: Product) -> bool:
    return (2 * small.k, small.a, small.b) == (each.k, each.a, each.b)


# what is used by the type of a fragment alone needs the sizes too
_WORDS = {
    "matrix_load_operand": (_LAYOUT, _LANE, _BITS, _OPERANDS),
    "matrix_store_operand": (_LAYOUT, _LANE, _BITS, _OPERANDS),
    "matrix_load_sums": (_LAYOUT, _LANE, _BITS, _SUMS),
    "matrix_store_sums": (_LAYOUT, _LANE, _BITS, _SUMS),
    "matrix_parts": (_LAYOUT,),
    "matrix_sums": (_LAYOUT,),
    "matrix_fill": (_FILL,),
    "matrix_multiply_add": (_LAYOUT, _MULTIPLY_ADD),
    "matrix_multiply_add_saturating": (_LAYOUT, _MULTIPLY_ADD, _SATURATING),
}
DEFINITIONS_BY_WORD: Mapping[str, tuple[str, ...]] = {
    **_WORDS,
    **{
        each.name: (
            _LAYOUT,
            *(definition(small) for small in PRODUCTS if each.k == 32 and _is_half(small, each)),
            definition(each),
        )
        for each in PRODUCTS
    },
}

# --- spelling ---

_NAMES = {
    Scalar.FLOAT16: ("unsigned short", 0x10001),
    Scalar.BFLOAT16: ("unsigned short", 0x10001),
    Scalar.INT8: ("unsigned char", 0x1010101),
    Scalar.UINT8: ("unsigned char", 0x1010101),
    Scalar.FLOAT32: ("float", 1),
    Scalar.INT32: ("int", 1),
    Scalar.UINT32: ("int", 1),
}


@dataclass(frozen=True, slots=True)
class HipMatrices:
    """See `codegen.matrices.Matrices`."""

    def declare(self, name: str, fragment: Fragment) -> str:
        return f"{_held_type(fragment)} {name}[{_count(fragment)}] = {{}}"

    def fill(self, name: str, fragment: Fragment, value: str) -> str:
        type = _held_type(fragment)
        if fragment.use not in ACCUMULATORS:
            word, spread = _NAMES[fragment.component]
            if fragment.component is Scalar.FLOAT32:
                value = f"__builtin_bit_cast(unsigned int, (float)({value}))"
            else:
                value = f"{hex(spread)}u * ({word})({value})"
        return f"matrix_fill<{_count(fragment)}, {type}>({name}, {value})"

    def load(
        self, name: str, fragment: Fragment, space: str, place: str, stride: str, column_major: bool
    ) -> str:
        return _move(
            "load", "const ", name, fragment, place, _steps(fragment, stride, column_major)
        )

    def store(
        self, name: str, fragment: Fragment, space: str, place: str, stride: str, column_major: bool
    ) -> str:
        return _move("store", "", name, fragment, place, _steps(fragment, stride, column_major))

    def multiply_add(self, config: CoopmatConfig, result: str, a: str, b: str, c: str) -> str:
        given = f"{product_for(config).name}, {config.m}, {config.n}, {config.k}"
        function = "matrix_multiply_add"
        if config.saturating:
            function, given = f"{function}_saturating", f"{TYPES[config.result]}, {given}"
        return f"{function}<{given}>({result}, {a}, {b}, {c})"


def _lines(fragment: Fragment) -> tuple[int, int]:
    rows, columns = fragment.rows, fragment.columns
    return (columns, rows) if fragment.use == "b" else (rows, columns)


def _inner(fragment: Fragment) -> int:
    """The inner dimension of the product that takes an operand."""
    lines, length = _lines(fragment)
    fitting = [p.k for p in PRODUCTS if fragment.component in (p.a, p.b) and length % p.k == 0]
    if not fitting or lines % EDGE:
        raise InvalidIR(f"HIP C++ has no fragment of {lines} lines of {length} components")
    return max(fitting)


def _count(fragment: Fragment) -> str:
    """What a lane holds: words of an operand, or sums."""
    lines, length = _lines(fragment)
    if fragment.use in ACCUMULATORS:
        if lines % EDGE or length % EDGE:
            raise InvalidIR(f"HIP C++ has no fragment of {lines} by {length} sums")
        return f"{lines * length // EDGE**2} * matrix_sums"
    _inner(fragment)
    return f"{lines * length * fragment.component.bits // (EDGE * 32)} / matrix_parts"


def _held_type(fragment: Fragment) -> str:
    if fragment.use not in ACCUMULATORS:
        return "unsigned int"
    component = fragment.component
    return TYPES[Scalar.INT32 if component is Scalar.UINT32 else component]


def _steps(fragment: Fragment, stride: str, column_major: bool) -> str:
    """From a line to the next, and along a line."""
    lines_are_rows = fragment.use != "b"
    return f"{stride}, 1" if lines_are_rows != column_major else f"1, {stride}"


def _move(word: str, const: str, name: str, fragment: Fragment, place: str, steps: str) -> str:
    lines, length = _lines(fragment)
    shape, function = f"{lines}, {length}", f"matrix_{word}_sums"
    if fragment.use not in ACCUMULATORS:
        shape, function = f"{shape}, {_inner(fragment)}", f"matrix_{word}_operand"
    type = _NAMES[fragment.component][0]
    return f"{function}<{shape}>({name}, ({const}{type} *)({place}), {steps})"


MATRICES = HipMatrices()
