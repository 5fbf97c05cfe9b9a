"""Cases from the field: names (section K). Each word stands in every place where a name can."""

from __future__ import annotations

import importlib.util
import keyword

import numpy as np
import pytest

import sarek_numba as sarek
from tests.conformance.everywhere import everywhere, gives
from tests.conformance.made import made

WORDS = """
    kernel local global constant private __kernel __global __local __private half float double int
    long short char unsigned signed void bool size_t uchar uint ulong ptrdiff_t float4 int2 double8
    image2d_t sampler_t event_t input output in_ out_ inline static extern register volatile const
    restrict struct union enum typedef sizeof switch case default do goto auto while_ if_ main
    printf get_global_id get_local_id barrier mem_fence convert_int as_float select sign clamp mix
    step dot cross mad fma sqrt exp log pow fmin fmax abs min max floor isnan popcount rotate hypot
    M_PI M_PI_F NAN INFINITY MAXFLOAT FLT_MAX INT_MAX CLK_LOCAL_MEM_FENCE true false NULL
    sarek_kernel sarek_floor_div sarek i0 t0 arg0 len_x x_length block_idx thread_idx grid_dim
    entry return_value mask lane memset memcpy malloc free llvm declare define alloca phi br ret
    or_ and_ not_ xor bitor and_eq new delete class_ this template typename namespace operator
    asm volatile_ uniform varying pipe __attribute__ kernel_exec vec_step atomic_add OPENCL
    __OPENCL_VERSION__ __LINE__ defined pragma linux unix
""".split()
NAMES = [word for word in dict.fromkeys(WORDS) if not keyword.iskeyword(word) and word != "sarek"]

PARAMETERS = """
@sarek.kernel
def k({0}, x_, {1}):
    t_ = sarek.thread_idx.x
    {0}[t_] = x_[t_] * {1} + t_
"""
LOCALS = """
@sarek.function
def {1}({0}, y_):
    {0} = {0} + y_
    return {0}

@sarek.kernel
def k(out_, x_):
    t_ = sarek.thread_idx.x
    {0} = x_[t_]
    for n_ in range(3):
        {0} = {0} + n_
    out_[t_] = {1}({0}, 1)
"""
SHARED = """
@sarek.kernel
def {0}(out_, x_):
    t_ = sarek.thread_idx.x
    {1} = sarek.shared.array(4, sarek.int32)
    {1}[t_] = x_[t_]
    sarek.barrier()
    for {0} in range(2):
        out_[t_] = {1}[3 - t_] + {0}
"""
PAIRS = list(zip(NAMES, NAMES[1:] + NAMES[:1], strict=True))


def chunks(size):
    return [PAIRS[start : start + size] for start in range(0, len(PAIRS), size)]


@everywhere
@pytest.mark.parametrize("pairs", chunks(24), ids=lambda pairs: pairs[0][0])
def test_case_148_words(executor, pairs):
    """Parameters, locals, loop variables, shared arrays, helpers and kernels of any name."""
    x = np.array([5, 6, 7, 8], np.int32)
    for first, second in pairs:
        gives(executor, made(PARAMETERS.format(first, second), "k"), x * 2 + range(4), x, 2)
        gives(executor, made(LOCALS.format(first, second), "k"), x + 4, x)
        gives(executor, made(SHARED.format(first, second), first), x[::-1] + 1, x)


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
        with pytest.raises(sarek.CompileError) as raised, sarek.use_device(executor):
            module.bad[1, 1](np.zeros(1, np.int32))
        assert f"{file}:7" in str(raised.value)
