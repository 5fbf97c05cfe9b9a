"""Cases from the field: names (section K). Each word stands in every place where a name can."""

from __future__ import annotations

import importlib.util
import keyword

import numpy as np
import pytest

import sarek_numba as sarek
from tests.conformance.everywhere import everywhere, gives
from tests.conformance.made import made
from tests.executors import device_of

WORDS = """
    kernel local global constant private __kernel __global __local __private half float double int
    long short char unsigned signed void bool size_t uchar uint ulong ptrdiff_t float4 int2 double8
    image2d_t sampler_t event_t input output in_ inline static extern register volatile const
    restrict struct union enum typedef sizeof switch case default do goto auto while_ if_ main
    printf get_global_id get_local_id barrier mem_fence convert_int as_float select sign clamp mix
    step dot cross mad fma sqrt exp log pow fmin fmax abs min max floor isnan popcount rotate hypot
    M_PI M_PI_F NAN INFINITY MAXFLOAT FLT_MAX INT_MAX CLK_LOCAL_MEM_FENCE true false NULL
    sarek_kernel sarek_floor_div sarek i0 t0 arg0 len_x x_length block_idx thread_idx grid_dim
    entry return_value mask lane memset memcpy malloc free llvm declare define alloca phi br ret
    or_ and_ not_ xor bitor and_eq new delete class_ this template typename namespace operator
    asm volatile_ uniform varying pipe __attribute__ kernel_exec vec_step atomic_add OPENCL
    __OPENCL_VERSION__ __LINE__ defined pragma linux unix
    CL_VERSION_1_2 CLK_R CLK_GLOBAL_MEM_FENCE cl_khr_fp64 DBL_MAX_EXP HALF_EPSILON ATOMIC_VAR_INIT
    __constant __private __read_only read_only __write_only read_write generic __generic intptr_t
    uintptr_t char3 uchar16 short2 ushort8 long4 ulong2 float16 half4 double2 bool2 quad complex
    imaginary image1d_t image2d_array_t queue_t ndrange_t clk_event_t reserve_id_t packed aligned
    endian work_group_size_hint reqd_work_group_size bitand compl not_eq or_eq xor_eq alignas
    alignof constexpr decltype nullptr noexcept static_assert thread_local typeid typename_ wchar_t
    signbit isnan isinf frexp ldexp remquo native_sin half_sin mul24 mad_hi upsample clz ctz
    shuffle shuffle2 vload4 vstore_half async_work_group_copy prefetch wait_group_events work_dim
    get_group_id get_num_groups sub_group_all atom_add atomic_inc read_mem_fence as_int
    convert_uchar
""".split()
NAMES = [word for word in dict.fromkeys(WORDS) if not keyword.iskeyword(word) and word != "sarek"]


def kernels(words):
    """Kernels with these words as parameters, locals and loop variables, helpers, and arrays."""
    first, *_, last = words
    parameters = ", ".join(words)
    total = " + ".join(f"{n + 1} * {word}" for n, word in enumerate(words))
    yield (
        made(
            f"@sarek.kernel\ndef k(o_, {parameters}):\n    o_[sarek.thread_idx.x] = {total}\n",
            "k",
        ),
        [sum((n + 1) * n for n in range(len(words)))] * 2,
        range(len(words)),
    )
    body = [f"    {word} = t_ + {n}" for n, word in enumerate(words)]
    body += [f"    for {last} in range(3):", f"        {first} = {first} + {last}"]
    yield (
        made(
            f"@sarek.kernel\ndef {last}(o_):\n    t_ = sarek.thread_idx.x\n"
            + "\n".join(body)
            + f"\n    o_[t_] = {total} - {len(words)} * {last}\n",
            last,
        ),
        [_locals(t, len(words)) for t in range(2)],
        (),
    )
    helpers = [
        f"@sarek.function\ndef {word}({other}, y_):\n"
        f"    {other} = {other} * 2 + y_\n    return {other}\n"
        for word, other in zip(words, (last, *words), strict=False)
    ]
    calls = "".join(f"    v_ = {word}(v_, {n % 3})\n" for n, word in enumerate(words))
    value = 1
    for n in range(len(words)):
        value = value * 2 + n % 3
    yield (
        made(
            "\n".join(helpers)
            + f"@sarek.kernel\ndef k_(o_, x_):\n    v_ = x_[0]\n{calls}    o_[0] = v_\n",
            "k_",
        ),
        [value],
        (np.ones(1, np.int64),),
    )
    arrays = "".join(
        f"    {word} = sarek.{space}.array(2, sarek.int32)\n    {word}[t_] = t_ + {n}\n"
        for n, (word, space) in enumerate(zip(words, ("shared", "local") * 99, strict=False))
    )
    reads = " + ".join(f"{word}[t_]" for word in words)
    yield (
        made(
            "@sarek.kernel\ndef k_(o_):\n    t_ = sarek.thread_idx.x\n"
            f"{arrays}    o_[t_] = {reads}\n",
            "k_",
        ),
        [sum(t + n for n in range(len(words))) for t in range(2)],
        (),
    )


def _locals(t, count):
    values = [t + n for n in range(count)]
    values[0] += 3
    values[-1] = 0
    return sum((n + 1) * value for n, value in enumerate(values))


CHUNKS = [NAMES[start : start + 24] for start in range(0, len(NAMES), 24)]


@everywhere
@pytest.mark.parametrize("words", CHUNKS, ids=lambda words: words[0])
def test_case_148_words(executor, words):
    """Parameters, locals, loop variables, arrays, helpers and kernels may have any name."""
    for kernel, expected, arguments in kernels(words):
        gives(executor, kernel, expected, *arguments, dtype=np.int64)


# Besides C's and OpenCL's words, Python's own and what no language takes for a name: fields may
# have any. "copy" and "dtype" are methods of records.
FIELDS = (
    *NAMES[:48],
    "or",
    "and",
    "not",
    "xor",
    "compl",
    "bitand",
    "not_eq",
    "or_eq",
    "for",
    "class",
    "lambda",
    "None",
    "two words",
    "1st",
    "a-b",
    "é",
    "核",
    "'",
    "copy",
    "dtype",
)
NAMED = np.dtype([(word, "<i4") for word in FIELDS])


@everywhere
@pytest.mark.parametrize("inner", [False, True], ids=["own", "nested"])
def test_case_148_fields(executor, inner):
    """Fields of records may have any name, in arrays, values, and one structure in another."""
    path = "['kernel']" if inner else ""
    reads = " + ".join(f"{n + 1} * r{path}[{word!r}]" for n, word in enumerate(FIELDS))
    stores = "".join(f"    r{path}[{word!r}] += {n}\n" for n, word in enumerate(FIELDS))
    kernel = made(
        "@sarek.kernel\ndef k(out, p):\n    t = sarek.thread_idx.x\n"
        f"    r = p[t].copy()\n    out[t] = {reads}\n{stores}    p[t] = r\n",
        "k",
    )
    dtype = np.dtype([("local", "u1"), ("kernel", NAMED)]) if inner else NAMED
    p = np.zeros(2, dtype)
    fields = p["kernel"] if inner else p
    for n, word in enumerate(FIELDS):
        fields[word] = [n, 3]
    count = len(FIELDS)
    expected = [sum((n + 1) * v for n, v in enumerate(row)) for row in (range(count), [3] * count)]
    gives(executor, kernel, expected, p)
    assert [fields[word].tolist() for word in FIELDS] == [[2 * n, 3 + n] for n in range(count)]


@sarek.function
def scaled(x, i, total):
    out = x * 3
    for k in range(2):
        out = out + k
        total = total + out
    return total


@sarek.kernel
def same_names(out, x):
    i = sarek.thread_idx.x
    total = x[i]
    for k in range(2):
        total = scaled(total, k, i) + k
    out[i] = total


@everywhere
def test_case_148_same(executor):
    """A kernel and its helper use the same names apart."""

    def scale(x, total):
        return total + 2 * (x * 3) + 1

    x = np.arange(4, dtype=np.int32)
    i = np.arange(4)
    gives(executor, same_names, scale(scale(x, i), i) + 1, x)


ACCENTED = """
@sarek.function
def 核(é, č):
    μ = é * 2
    return μ + č

@sarek.kernel
def ядро(сума, μ, ﬁ=4):
    é = sarek.thread_idx.x
    č = sarek.shared.array(4, sarek.int32)
    č[é] = μ[é]
    sarek.barrier()
    сума[é] = 核(č[3 - é], é) + fi
"""


@everywhere
def test_case_149_letters(executor):
    """Identifiers beyond ASCII; two spellings that Python takes as one name are one (ﬁ, fi)."""
    x = np.array([5, 6, 7, 8], np.int32)
    gives(executor, made(ACCENTED, "ядро"), x[::-1] * 2 + range(4) + 4, x)


DISTINCT = """
@sarek.kernel
def k(out, é, e, ê, _, __, ___, é_, a1, á1):
    t = sarek.thread_idx.x
    out[t] = é + 2 * e + 4 * ê + 8 * _ + 16 * __ + 32 * ___ + 64 * é_ + 128 * a1 + 256 * á1
"""


@everywhere
def test_case_149_distinct(executor):
    """Names that fall together when stripped to ASCII stay apart."""
    gives(executor, made(DISTINCT, "k"), [511], *[1] * 9)
    gives(executor, made(DISTINCT, "k"), [4 + 32 + 256], 0, 0, 1, 0, 0, 1, 0, 0, 1)


@everywhere
def test_case_149_path(executor, tmp_path):
    """A kernel in a file whose path is not ASCII runs, and its errors name the file."""
    folder = tmp_path / "für größe 核"
    folder.mkdir()
    file = folder / "müll.py"
    file.write_text(
        "import sarek_numba as sarek\n"
        "@sarek.kernel\n"
        "def good(out):\n"
        "    out[sarek.thread_idx.x] = 3\n"
        "@sarek.kernel\n"
        "def bad(out):\n"
        "    out[0] = 'é' + größe\n",
        encoding="utf-8",
    )
    spec = importlib.util.spec_from_file_location("muell", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    gives(executor, module.good, [3, 3])
    if executor != "emulation":
        with pytest.raises(sarek.CompileError) as raised, sarek.use_device(device_of(executor)):
            module.bad[1, 1](np.zeros(1, np.int32))
        assert f"{file}:7" in str(raised.value)
