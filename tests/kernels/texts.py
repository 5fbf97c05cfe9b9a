"""Functions that are given by texts, with the Python function that each stands for."""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()


def scaled(a, b):
    return a * b + a


scale = sarek.inline_source(
    {
        "opencl": "$a.type product = $a * $b;\nreturn product + $a;",
        "native": """
            %product = fmul $a.type $a, $b
            %sum = fadd $a.type %product, $a
            ret $return.type %sum
        """,
        "vulkan": """
            %product = OpFMul $a.type $a $b
            %sum = OpFAdd $a.type %product $a
            OpDecorate %product NoContraction  ; else they may become one operation
            OpReturnValue %sum
        """,
    },
    fallback=scaled,
)
# of the same fallback; other devices run that
only_opencl = sarek.inline_source({"opencl": "$a * $b + $a"}, fallback=scaled)


@sarek.kernel
def scale_all(out, x, y):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = scale(x[i], y[i]) + only_opencl(y[i], x[0]) + scaled_here(x[i], 2)


@sarek.function
def scaled_here(a, b):
    return scale(b=a, a=a) * b


def _scaled(x, y):
    return (x * y + x) + (y * x[0] + y) + (x * x + x) * 2


@corpus.add(scale_all)
def text_of_floats(rng):
    x, y = rng.uniform(-9, 9, (2, 100)).astype(np.float32)
    return Launch(4, 32, (poison(100, np.float32), x, y), (_scaled(x, y), None, None))


@corpus.add(scale_all)
def text_of_doubles(rng):
    x, y = rng.uniform(-9, 9, (2, 100))
    return Launch(4, 32, (poison(100, np.float64), x, y), (_scaled(x, y), None, None))


def swapped(word):
    low = (word & 0x00FF00FF) << 8 | (word >> 8) & 0x00FF00FF
    return low << 16 | low >> 16


def _swapping(framework):
    """The source as a function of the framework's name."""
    return {
        "opencl": "as_uint(as_uchar4($word).wzyx)",
        "native": """
            declare i32 @llvm.bswap.i32(i32)
            call i32 @llvm.bswap.i32(i32 $word)
        """,
        "cuda": "__byte_perm($word, 0, 0x0123)",
        "vulkan": """
            %low = OpConstant $word.type 0x00FF00FF
            %eight = OpConstant $word.type 8
            %half = OpConstant $word.type 16
            %first = OpBitwiseAnd $word.type $word %low
            %moved = OpShiftLeftLogical $word.type %first %eight
            %other = OpShiftRightLogical $word.type $word %eight
            %second = OpBitwiseAnd $word.type %other %low
            %pairs = OpBitwiseOr $word.type %moved %second
            %left = OpShiftLeftLogical $word.type %pairs %half
            %right = OpShiftRightLogical $word.type %pairs %half
            %swapped = OpBitwiseOr $return.type %left %right
        """,
    }.get(framework)


swap_bytes = sarek.inline_source(_swapping, fallback=sarek.function(swapped))


@sarek.function
def apply(function, value):
    return function(value)


@sarek.kernel
def swap_some(out, words, wanted):
    """Called by some threads of a warp only, and as an argument."""
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = words[i]
        if wanted[i]:
            out[i] = swap_bytes(words[i])
        elif words[i] % 3 == 0:
            out[i] = apply(swap_bytes, words[i] + 1)


@corpus.add(swap_some)
def text_by_framework(rng):
    words = rng.integers(0, 2**32, 70, np.uint32)
    wanted = rng.integers(0, 2, 70).astype(bool)
    other = np.where(words % 3 == 0, (words + np.uint32(1)).byteswap(), words)
    expected = np.where(wanted, words.byteswap(), other)
    return Launch(3, 32, (poison(70, np.uint32), words, wanted), (expected, None, None))


def gathered(row, start, count):
    total = row[0] * 0
    for k in range(count):
        total += row[start + k]
    return total


gather = sarek.inline_source(
    {
        "cuda": """
            $row.type total = 0;
            for (long long k = 0; k < $count; k++)
                total += $row[$start + k];
            return total;
        """,
        "opencl": """
            $row.type total = 0;
            for (long k = 0; k < $count; k++)
                total += $row[$start + k];
            return total;
        """,
        "native": """
                br label %head
            head:
                %k = phi i64 [ 0, %entry ], [ %next, %body ]
                %total = phi $row.type [ 0, %entry ], [ %sum, %body ]
                %more = icmp slt i64 %k, $count
                br i1 %more, label %body, label %end
            body:
                %at = add i64 $start, %k
                %place = getelementptr $row.type, ptr $row, i64 %at
                %value = load $row.type, ptr %place
                %sum = add $row.type %total, %value
                %next = add i64 %k, 1
                br label %head
            end:
                ret $return.type %total
        """,
    },
    fallback=gathered,
)


def stored(row, at, value):
    row[at] = value


store = sarek.inline_source(
    {
        "opencl": "$row[$at] = $value;",
        "native": """
            %place = getelementptr $row.type, ptr $row, i64 $at
            store $row.type $value, ptr %place
            ret void
        """,
    },
    fallback=stored,
)


@sarek.kernel
def gather_rows(out, matrix, counts):
    """Rows, shared memory and results; a different number of passes in each thread."""
    tile = sarek.shared.array((2, 32), sarek.int32)
    i = sarek.thread_idx.x
    store(tile[1], i, np.int32(counts[i] * 3))
    sarek.barrier()
    store(out, i, gather(matrix[i], 1, int(counts[i])) + gather(tile[1], i // 2, 2))


@corpus.add(gather_rows)
def text_of_arrays(rng):
    matrix = rng.integers(-(2**20), 2**20, (32, 9), np.int32)
    counts = rng.integers(0, 9, 32, np.int32)
    tile = counts * 3
    i = np.arange(32)
    expected = tile[i // 2] + tile[i // 2 + 1]
    expected += [matrix[k, 1 : 1 + counts[k]].sum(dtype=np.int32) for k in i]
    arguments = (poison(32, np.int32), matrix, counts)
    return Launch(1, 32, arguments, (expected.astype(np.int32), None, None))


def ordered(a, b, either):
    return a < b or either


order = sarek.inline_source(
    {
        "opencl": "$a < $b || $either",
        "native": "%less = icmp slt i16 $a, $b\nor i1 %less, $either",
        "vulkan": "%l = OpSLessThan $return.type $a $b\n%o = OpLogicalOr $return.type %l $either",
    },
    fallback=ordered,
)


@sarek.kernel
def order_all(out, a, b, either):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = order(a[i], b[i], either[i]) and not order(b[i], a[0], i == 3)


@corpus.add(order_all)
def text_of_bools(rng):
    a, b = rng.integers(-5, 5, (2, 40), np.int16)
    either = rng.integers(0, 2, 40).astype(bool)
    expected = ((a < b) | either) & ~((b < a[0]) | (np.arange(40) == 3))
    return Launch(2, 32, (poison(40, bool), a, b, either), (expected, None, None, None))


def high_product(a, b):
    return np.int32((np.int64(a) * np.int64(b)) >> 32)


sarek.register_intrinsic(
    "test_high_product",
    "int32(int32, int32)",
    {
        "opencl": "mul_hi($a, $b)",
        "native": """
            %a = sext i32 $a to i64
            %b = sext i32 $b to i64
            %product = mul i64 %a, %b
            %high = ashr i64 %product, 32
            trunc i64 %high to i32
        """,
    },
    python=high_product,
)


def inverse(x):
    return 1 / x


invert = sarek.register_intrinsic(
    "test_inverse",
    ["float32(float32)", "float64(float64)"],
    {"opencl": "1 / $x", "native": "fdiv $x.type 1.0, $x"},
    python=inverse,
)


@sarek.kernel
def use_intrinsics(out, inverses, small, words):
    """Weak, narrower and equal arguments, by both names, in a condition."""
    i = sarek.global_idx.x
    if i < len(out) and sarek.math.test_high_product(words[i], small[i]) != 12345:
        high = sarek.math.test_high_product(b=words[i], a=words[0])
        out[i] = high + sarek.math.test_high_product(small[i], 1 << 30)
        inverses[i] = sarek.math.test_inverse(words[i]) + invert(inverses[i]) + invert(4)


@corpus.add(use_intrinsics)
def registered_intrinsics(rng):
    words = rng.integers(-(2**31), 2**31, 60, np.int32)
    words[words == 0] = 1
    small = rng.integers(-(2**15), 2**15, 60, np.int16)
    inverses = rng.uniform(1, 2, 60).astype(np.float32)
    expected = (words.astype(np.int64) * words[0]) >> 32
    expected += (small.astype(np.int64) << 30) >> 32
    sums = (1 / words.astype(np.float64) + 1 / inverses + np.float32(0.25)).astype(np.float32)
    arguments = (poison(60, np.int32), inverses, small, words)
    return Launch(2, 32, arguments, (expected.astype(np.int32), sums, None, None))
