"""Cooperative matrices as `mma.sync` of PTX, which a warp does together.

All of these instructions lay their operands out alike (PTX ISA, "matrix fragments" of each shape):
four neighbouring lanes have one line, a row of A or a column of B, and of 16 bytes of it each lane
has four; so 8 lines of 16 bytes make a word of 32 bits for each lane. A result of 8 by 8 components
gives each lane two neighbours of one row. A fragment is a grid of such pieces, whatever instruction
takes them: `lane / 4` is the line, `lane % 4` the part of it. Components of 64 bits, and sums, are
held one by one instead of in words.

Pieces are loaded and stored by the lanes themselves. Where a lane's bytes lie together and on a
boundary of 4 bytes that is one access, else one for each component, so any place will do.

A fragment may be any whole number of pieces; a multiply-add is the largest instructions of which it
is made. Compute capability 7.5 has the smaller ones alone, of which the function of a larger one is
made there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from sarek_numba.codegen.cudalike import DEFINITIONS, HEAD, TYPES
from sarek_numba.codegen.matrices import saturating_definition
from sarek_numba.errors import InvalidIR
from sarek_numba.ir.matrices import ACCUMULATORS, in_memory
from sarek_numba.ir.nodes import CoopmatConfig, Fragment
from sarek_numba.ir.types import HALVES, Scalar

LINES = 8  # of a piece
SOURCE = "PTX ISA, warp-level matrix instructions, mma.sync: shapes, types and target notes"

# --- instructions ---


@dataclass(frozen=True, slots=True)
class Instruction:
    """One `mma.sync`. `since` is the compute capability that has it, `smaller` the rows and the
    inner dimension of those that make the same before, from 7.5 on.
    """

    m: int
    k: int
    a: Scalar
    b: Scalar
    sums: Scalar
    since: int
    smaller: tuple[int, int] | None = None

    n = 8

    @property
    def name(self) -> str:
        parts = (_SHORT[self.a], _SHORT[self.b], _SHORT[self.sums])
        return f"mma_m{self.m}n8k{self.k}_{'_'.join(parts)}"

    @property
    def least(self) -> int:
        """The compute capability from which on its function compiles."""
        return self.since if self.smaller is None else 75


_SHORT = {
    Scalar.FLOAT16: "f16",
    Scalar.BFLOAT16: "bf16",
    Scalar.FLOAT32: "f32",
    Scalar.FLOAT64: "f64",
    Scalar.INT8: "s8",
    Scalar.UINT8: "u8",
    Scalar.INT32: "s32",
}
_BYTES = (Scalar.INT8, Scalar.UINT8)


def _instructions() -> tuple[Instruction, ...]:
    made = []
    for sums in (Scalar.FLOAT32, Scalar.FLOAT16):
        half = Scalar.FLOAT16
        made.append(Instruction(16, 8, half, half, sums, 75))
        made.append(Instruction(16, 16, half, half, sums, 80, (16, 8)))
    for k in (8, 16):
        made.append(Instruction(16, k, Scalar.BFLOAT16, Scalar.BFLOAT16, Scalar.FLOAT32, 80))
    for a, b in product(_BYTES, repeat=2):
        made.append(Instruction(8, 16, a, b, Scalar.INT32, 75))
        made.append(Instruction(16, 16, a, b, Scalar.INT32, 80, (8, 16)))
        made.append(Instruction(16, 32, a, b, Scalar.INT32, 80, (8, 16)))
    made.append(Instruction(8, 4, *(Scalar.FLOAT64,) * 3, 80))
    return tuple(made)


INSTRUCTIONS = _instructions()
_BY_NAME = {each.name: each for each in INSTRUCTIONS}

# --- configurations ---

_SHAPES: Mapping[Scalar, tuple[tuple[int, int, int], ...]] = {
    **dict.fromkeys(
        HALVES, ((16, 8, 8), (16, 8, 16), (16, 16, 8), (16, 16, 16), (32, 8, 16), (32, 32, 16))
    ),
    **dict.fromkeys(
        _BYTES,
        (
            *((8, 8, 16), (16, 8, 16), (16, 8, 32), (16, 16, 16), (16, 16, 32)),
            *((32, 8, 16), (8, 32, 16), (32, 32, 32)),
        ),
    ),
    Scalar.FLOAT64: ((8, 8, 4), (16, 8, 8), (16, 16, 8)),
}


def configurations(capability: int) -> tuple[CoopmatConfig, ...]:
    """What a device of a compute capability, as 90, has; its preferred shapes last.

    Sums of bytes are those of int32, so uint32 has the same bits. Those that saturate do so by
    construction: whether the instruction does once for all of its products is not stated.
    """
    found = []
    for a, b, sums in dict.fromkeys((i.a, i.b, i.sums) for i in INSTRUCTIONS):
        whole = sums is Scalar.INT32
        results = (Scalar.INT32, Scalar.UINT32) if whole else (sums,)
        ways = (True, False) if whole else (False,)
        for saturating, (m, n, k), result in product(ways, _SHAPES[a], results):
            config = CoopmatConfig(m, n, k, a, b, result, result, saturating)
            if instruction_for(config).least <= capability:
                found.append(config)
    return tuple(found)


def instruction_for(config: CoopmatConfig) -> Instruction:
    """The largest instruction of which a multiply-add is made. Raises InvalidIR without one."""
    sums = Scalar.INT32 if config.result is Scalar.UINT32 else config.result
    fitting = [
        each
        for each in INSTRUCTIONS
        if (each.a, each.b, each.sums) == (config.a, config.b, sums)
        and config.m % each.m == config.n % each.n == config.k % each.k == 0
    ]
    saturates = config.saturating and sums is not Scalar.INT32
    if not fitting or saturates or config.scope != "subgroup" or config.c != config.result:
        raise InvalidIR(f"CUDA C++ has no multiply-add {config}")
    return max(fitting, key=lambda each: each.m * each.k)


# --- text ---

_WALK = """\
    int lane = warp_lane();
    #pragma unroll
    for (int line = 0; line < lines / 8; line++) {
        #pragma unroll
        for (int step = 0; step < length / (4 * parts); step++) {"""
_PLACE = "first + 8 * line * across + 4 * parts * step * along"
_WORDS = f"""\
template <int lines, int length, typename Component>
{HEAD} void matrix_load_words(
    unsigned int *held, const Component *memory, long long across, long long along) {{
    const int parts = 4 / sizeof(Component);
{_WALK}
            const Component *first = memory + lane / 4 * across + lane % 4 * parts * along;
            const Component *place = {_PLACE};
            unsigned int word = 0;
            if (along == 1 && ((size_t)first | (size_t)(across * sizeof(Component))) % 4 == 0) {{
                word = *(const unsigned int *)place;
            }} else {{
                #pragma unroll
                for (int part = 0; part < parts; part++)
                    word |= (unsigned int)place[part * along] << 8 * sizeof(Component) * part;
            }}
            held[line * (length / (4 * parts)) + step] = word;
        }}
    }}
}}

template <int lines, int length, typename Component>
{HEAD} void matrix_store_words(
    const unsigned int *held, Component *memory, long long across, long long along) {{
    const int parts = 4 / sizeof(Component);
{_WALK}
            Component *first = memory + lane / 4 * across + lane % 4 * parts * along;
            Component *place = {_PLACE};
            unsigned int word = held[line * (length / (4 * parts)) + step];
            if (along == 1 && ((size_t)first | (size_t)(across * sizeof(Component))) % 4 == 0) {{
                *(unsigned int *)place = word;
            }} else {{
                #pragma unroll
                for (int part = 0; part < parts; part++)
                    place[part * along] = (Component)(word >> 8 * sizeof(Component) * part);
            }}
        }}
    }}
}}"""
_VALUES = f"""\
template <int lines, int length, int parts, typename Component>
{HEAD} void matrix_load_values(
    Component *held, const Component *memory, long long across, long long along) {{
{_WALK}
            const Component *first = memory + lane / 4 * across + lane % 4 * parts * along;
            const Component *place = {_PLACE};
            #pragma unroll
            for (int part = 0; part < parts; part++)
                held[(line * (length / (4 * parts)) + step) * parts + part] = place[part * along];
        }}
    }}
}}

template <int lines, int length, int parts, typename Component>
{HEAD} void matrix_store_values(
    const Component *held, Component *memory, long long across, long long along) {{
{_WALK}
            Component *first = memory + lane / 4 * across + lane % 4 * parts * along;
            Component *place = {_PLACE};
            #pragma unroll
            for (int part = 0; part < parts; part++)
                place[part * along] = held[(line * (length / (4 * parts)) + step) * parts + part];
        }}
    }}
}}"""
_FILL = f"""\
template <int count, typename Held>
{HEAD} void matrix_fill(Held *held, Held value) {{
    #pragma unroll
    for (int i = 0; i < count; i++) held[i] = value;
}}"""
_MULTIPLY_ADD = f"""\
template <typename Instruction, int m, int n, int k, typename Sum, typename Held>
{HEAD} void matrix_multiply_add(Sum *d, const Held *a, const Held *b, const Sum *c) {{
    const int lines = Instruction::lines, steps = Instruction::steps, held = Instruction::held;
    const int length = k / Instruction::piece;
    #pragma unroll
    for (int i = 0; i < m / 8; i += lines) {{
        #pragma unroll
        for (int j = 0; j < n / 8; j++) {{
            Sum sums[lines * held];
            #pragma unroll
            for (int line = 0; line < lines; line++)
                #pragma unroll
                for (int part = 0; part < held; part++)
                    sums[line * held + part] = c[((i + line) * (n / 8) + j) * held + part];
            #pragma unroll
            for (int step = 0; step < length; step += steps) {{
                Held left[lines * steps], right[steps];
                #pragma unroll
                for (int s = 0; s < steps; s++) {{
                    right[s] = b[j * length + step + s];
                    #pragma unroll
                    for (int line = 0; line < lines; line++)
                        left[s * lines + line] = a[(i + line) * length + step + s];
                }}
                Instruction::run(sums, left, right);
            }}
            #pragma unroll
            for (int line = 0; line < lines; line++)
                #pragma unroll
                for (int part = 0; part < held; part++)
                    d[((i + line) * (n / 8) + j) * held + part] = sums[line * held + part];
        }}
    }}
}}"""
_SATURATING = saturating_definition(HEAD, "m / 8 * (n / 8) * Product::held")
_LANE = DEFINITIONS["warp_lane"]


def piece(component: Scalar) -> int:
    """How many components of a line four lanes have of a piece."""
    return 4 * max(1, 32 // component.bits)


def _held_sums(sums: Scalar) -> tuple[str, str, int]:
    """C type, letter of inline PTX, and how many of a piece a lane has."""
    match sums:
        case Scalar.FLOAT16:
            return "unsigned int", "r", 1
        case Scalar.FLOAT32:
            return "float", "f", 2
        case Scalar.FLOAT64:
            return "double", "d", 2
        case _:
            return "int", "r", 2


def definition(instruction: Instruction) -> str:
    """The function of an instruction, in a structure with its sizes."""
    type, letter, held = _held_sums(instruction.sums)
    operand, word = ("double", "d") if instruction.a is Scalar.FLOAT64 else ("unsigned int", "r")
    lines, steps = instruction.m // LINES, instruction.k // piece(instruction.a)
    code = _assembly(instruction, letter, word, (lines * held, lines * steps, steps))
    if instruction.smaller is None:
        parts = ["#if defined(__CUDA_ARCH__)", code]
    else:
        parts = [f"#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= {10 * instruction.since}", code]
        parts += ["#elif defined(__CUDA_ARCH__)", _composed(instruction, lines, steps, held)]
    names = (_SHORT[each] for each in (instruction.a, instruction.b, instruction.sums))
    tags = ", ".join(f"machine::{each}" for each in names)
    run = f"machine::multiply_add<{instruction.m}, {instruction.k}, {tags}>(d, a, b);"
    parts += ["#elif !defined(__CUDA_ARCH__)", f"        {run}", "#endif"]
    body = "\n".join(parts)
    return f"""\
struct {instruction.name} {{
    enum {{ lines = {lines}, steps = {steps}, held = {held}, piece = {piece(instruction.a)} }};
    {HEAD} void run({type} *d, const {operand} *a, const {operand} *b) {{
{body}
    }}
}};"""


def _assembly(
    instruction: Instruction, letter: str, word: str, counts: tuple[int, int, int]
) -> str:
    sums, left, right = counts
    groups, number = [], 0
    for count in (sums, left, right):
        groups.append(", ".join(f"%{number + i}" for i in range(count)))
        number += count
    types = (instruction.sums, instruction.a, instruction.b, instruction.sums)
    ends = ".".join(_SHORT[each] for each in types)
    shape = f"m{instruction.m}n8k{instruction.k}"
    braces = [f"{{{group}}}" for group in (*groups, groups[0])]
    text = f"mma.sync.aligned.{shape}.row.col.{ends} {', '.join(braces)};"
    outputs = ", ".join(f'"+{letter}"(d[{i}])' for i in range(sums))
    inputs = [f'"{word}"(a[{i}])' for i in range(left)]
    inputs += [f'"{word}"(b[{i}])' for i in range(right)]
    return (
        f'        asm volatile("{text}"\n'
        f"                     : {outputs}\n"
        f"                     : {', '.join(inputs)});"
    )


def _composed(instruction: Instruction, lines: int, steps: int, held: int) -> str:
    """Calls of the smaller instruction, for each of its rows and along the inner dimension."""
    small = _smaller(instruction)
    rows, deep = small.m // LINES, small.k // piece(small.a)
    calls = [
        f"        {small.name}::run(d + {line * held}, a + {step * lines + line}, b + {step});"
        for step in range(0, steps, deep)
        for line in range(0, lines, rows)
    ]
    return "\n".join(calls)


def _smaller(instruction: Instruction) -> Instruction:
    assert instruction.smaller is not None
    m, k = instruction.smaller
    wanted = (m, k, instruction.a, instruction.b, instruction.sums)
    return next(i for i in INSTRUCTIONS if (i.m, i.k, i.a, i.b, i.sums) == wanted)


def _needed(instruction: Instruction) -> tuple[str, ...]:
    own = (definition(instruction),)
    return own if instruction.smaller is None else (definition(_smaller(instruction)), *own)


DEFINITIONS_BY_WORD: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("matrix_load_words", "matrix_store_words"), (_LANE, _WORDS)),
    **dict.fromkeys(("matrix_load_values", "matrix_store_values"), (_LANE, _VALUES)),
    "matrix_fill": (_FILL,),
    "matrix_multiply_add": (_MULTIPLY_ADD,),
    "matrix_multiply_add_saturating": (_MULTIPLY_ADD, _SATURATING),
    **{each.name: _needed(each) for each in INSTRUCTIONS},
}

# --- spelling ---

_WORD_TYPES = {8: "unsigned char", 16: "unsigned short"}


@dataclass(frozen=True, slots=True)
class CudaMatrices:
    """See `codegen.matrices.Matrices`."""

    def declare(self, name: str, fragment: Fragment) -> str:
        return f"{_held_type(fragment)} {name}[{_count(fragment)}] = {{}}"

    def fill(self, name: str, fragment: Fragment, value: str) -> str:
        count, type = _count(fragment), _held_type(fragment)
        if _in_words(fragment):
            bits = fragment.component.bits
            spread = sum(1 << place for place in range(0, 32, bits))
            value = f"{hex(spread)}u * ({_WORD_TYPES[bits]})({value})"
        return f"matrix_fill<{count}, {type}>({name}, {value})"

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
        instruction = instruction_for(config)
        given = f"{instruction.name}, {config.m}, {config.n}, {config.k}"
        function = "matrix_multiply_add"
        if config.saturating:
            function, given = f"{function}_saturating", f"{TYPES[config.result]}, {given}"
        return f"{function}<{given}>({result}, {a}, {b}, {c})"


def _is_sums(fragment: Fragment) -> bool:
    return fragment.use in ACCUMULATORS


def _in_words(fragment: Fragment) -> bool:
    return fragment.component.bits < 32


def _lines(fragment: Fragment) -> tuple[int, int]:
    """How many lines there are, and their length."""
    rows, columns = fragment.rows, fragment.columns
    return (columns, rows) if fragment.use == "b" else (rows, columns)


def _parts(fragment: Fragment) -> int:
    """Components of a piece that a lane has."""
    return 2 if _is_sums(fragment) else piece(fragment.component) // 4


def _count(fragment: Fragment) -> int:
    """What a lane holds: words, or components."""
    lines, length = _lines(fragment)
    parts = _parts(fragment)
    pieces, rest = divmod(lines * length, LINES * 4 * parts)
    if rest or lines % LINES or length % (4 * parts):
        raise InvalidIR(f"CUDA C++ has no fragment of {lines} lines of {length} components")
    return pieces * (1 if _in_words(fragment) else parts)


def _held_type(fragment: Fragment) -> str:
    if _in_words(fragment):
        return "unsigned int"
    # sums are those of int32, whatever their bits are taken for
    component = fragment.component
    return TYPES[Scalar.INT32 if component is Scalar.UINT32 else component]


def _steps(fragment: Fragment, stride: str, column_major: bool) -> str:
    """From a line to the next, and along a line."""
    lines_are_rows = fragment.use != "b"
    return f"{stride}, 1" if lines_are_rows != column_major else f"1, {stride}"


def _move(word: str, const: str, name: str, fragment: Fragment, place: str, steps: str) -> str:
    lines, length = _lines(fragment)
    if _in_words(fragment):
        type, shape = _WORD_TYPES[fragment.component.bits], f"{lines}, {length}"
        function = f"matrix_{word}_words<{shape}>"
    else:
        type, shape = _held_type(fragment), f"{lines}, {length}, {_parts(fragment)}"
        function = f"matrix_{word}_values<{shape}>"
    assert in_memory(fragment.component).bits == fragment.component.bits
    return f"{function}({name}, ({const}{type} *)({place}), {steps})"


MATRICES = CudaMatrices()
