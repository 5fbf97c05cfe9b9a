"""Cases from the field about integers, division and powers (sections A and B), on every executor.

The operator and cast matrices cover cases 7, 17, 25 and 26 at every boundary; here each is a
kernel as it was reported.
"""

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba as sarek
from tests.conformance.cases import launch, same
from tests.conformance.generated import kernel
from tests.executors import EMULATION, executors, run
from tests.kernels.case import Launch, poison

pytestmark = [
    pytest.mark.parametrize("executor", executors()),
    pytest.mark.filterwarnings("ignore::sarek_numba.errors.CompileWarning"),
]
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SIGNED = INTEGERS[:4]


# --- A: integers, bools, promotion ----------------------------------------------------------------


@sarek.kernel
def reduced_mersenne(out, a):
    i = sarek.global_idx.x
    if i < len(a):
        v = a[i]
        while v >= 2305843009213693951:
            v = v - 2305843009213693951
        out[i] = v


def test_case_01_modulo(executor):
    """A uint64 that is assigned anew from itself and a literal stays exact."""
    a = np.array([0, 2**61 - 2, 2**61 - 1, 2**63 - 1, 2**63, 2**63 + 12345, 2**64 - 1], np.uint64)
    out = poison(len(a), np.uint64)
    launch(executor, reduced_mersenne, out, a)
    assert out.tolist() == [v % (2**61 - 1) for v in a.tolist()]


@sarek.kernel
def accumulated(out, a):
    acc = 0
    for j in range(len(a)):
        acc ^= a[j]
        acc <<= 1
    out[0] = acc


@pytest.mark.parametrize("dtype", ["uint32", "uint64", "int32", "int64"])
def test_case_02_accumulator(dtype, executor):
    """An accumulator that starts at a literal takes the type of what it gathers."""
    a = (np.arange(1, 33, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)).astype(dtype)
    out = poison(1, dtype)
    launch(executor, accumulated, out, a, threads=1)
    bits, acc = a.itemsize * 8, 0
    for value in a.tolist():
        acc = ((acc ^ value) << 1) % 2**bits
    assert int(out[0]) % 2**bits == acc


@sarek.kernel
def shifted(narrow, wide, a, strong, weak):
    i = sarek.global_idx.x
    if i < len(a):
        narrow[i, 0] = a[i] << strong
        narrow[i, 1] = a[i] << 1
        narrow[i, 2] = a[i] << weak
        wide[i, 0] = a[i] << strong
        wide[i, 1] = a[i] << 1
        wide[i, 2] = a[i] << weak


def test_case_04_shift(executor):
    """A uint8 that is shifted stays uint8, whatever the count and where it is stored."""
    a = np.array([255, 128, 1], np.uint8)
    narrow, wide = poison((3, 3), np.uint8), poison((3, 3), np.int64)
    launch(executor, shifted, narrow, wide, a, np.uint8(1), 1)
    assert narrow.tolist() == wide.tolist() == [[254] * 3, [0] * 3, [2] * 3]


@sarek.kernel
def halved(out, a):
    i = sarek.global_idx.x
    if i < len(a):
        out[i] = a[i] >> 1


def test_case_05_shift(executor):
    """A uint64 shifts by a literal."""
    a = np.array([0, 1, 3, 2**63, 2**64 - 1], np.uint64)
    out = poison(5, np.uint64)
    launch(executor, halved, out, a)
    assert out.tolist() == [v // 2 for v in a.tolist()]


@sarek.kernel
def floated(single, double, a):
    i = sarek.global_idx.x
    if i < len(a):
        single[i] = np.float32(a[i])
        double[i] = a[i]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_case_07_float(dtype, executor):
    """An unsigned integer converts to a float as unsigned."""
    info = np.iinfo(dtype)
    a = np.array([info.min, info.max, info.max // 2, info.max // 2 + 1, 0, 1], dtype)
    single, double = poison(6, np.float32), poison(6, np.float64)
    launch(executor, floated, single, double, a)
    assert same(single, a.astype(np.float32))
    assert same(double, a.astype(np.float64))


@sarek.kernel
def counted(out, a):
    i = sarek.global_idx.x
    if i < len(a):
        flag = a[i]
        out[i, 0] = int(flag)
        out[i, 1] = np.int8(flag)
        out[i, 2] = np.int32(flag)
        out[i, 3] = np.int64(flag)
        out[i, 4] = flag + 0
        out[i, 5] = flag * 1
        out[i, 6] = 1 if flag else 0
        out[i, 7] = np.float32(flag)
        out[i, 8] = int(a[i] == a[0])


def test_case_08_true(executor):
    """True is 1 wherever it becomes a number."""
    out = poison((2, 9), np.int64)
    launch(executor, counted, out, np.array([True, False]))
    assert out.tolist() == [[1] * 9, [0] * 9]


@sarek.kernel
def compared(out, a, b, x, y):
    i = sarek.global_idx.x
    if i < len(a):
        out[i, 0] = a[i] < b[i]
        out[i, 1] = a[i] <= b[i]
        out[i, 2] = a[i] > b[i]
        out[i, 3] = a[i] >= b[i]
        out[i, 4] = a[i] == b[i]
        out[i, 5] = a[i] != b[i]
        p = x[i] > 0
        q = y[i] > 0
        out[i, 6] = p < q
        out[i, 7] = p <= q
        out[i, 8] = p > q
        out[i, 9] = p >= q
        out[i, 10] = p == q
        out[i, 11] = p != q


def test_case_10_bools(executor):
    """False is less than True, from arrays and from expressions."""
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    x, y = a.astype(np.float32) - 0.5, b.astype(np.int32)
    out = poison((4, 12), bool)
    launch(executor, compared, out, a, b, x.astype(np.float32), y)
    once = np.stack([a < b, a <= b, a > b, a >= b, a == b, a != b], 1)
    assert out.tolist() == np.concatenate([once, once], 1).tolist()


@sarek.kernel
def gathered(out, mask):
    i = sarek.global_idx.x
    if i < mask.shape[0]:
        flag = False
        for j in range(mask.shape[1]):
            flag |= mask[i, j]
        out[i, 0] = flag
        every = True
        for j in range(mask.shape[1]):
            every = every & mask[i, j]
        out[i, 1] = every


def test_case_11_loop(executor):
    """Bools are carried through a loop as bools."""
    mask = np.array([[0, 0, 0], [0, 1, 0], [1, 1, 1]], bool)
    out = poison((3, 2), bool)
    launch(executor, gathered, out, mask)
    assert out.tolist() == [[False, False], [True, False], [True, True]]


@sarek.kernel
def stated(out: sarek.int64[:]):
    out[0] = 1


def test_case_13_annotation(executor):
    """An int32 array where int64 is stated is a TypeError, and stays as it was."""
    out = np.full(4, 7, np.int32)
    if executor == EMULATION:
        pytest.skip("emulation does not type arrays")
    with pytest.raises(TypeError, match="int64"):
        launch(executor, stated, out)
    assert out.tolist() == [7] * 4


@sarek.kernel
def numbered(out):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = i


@pytest.mark.parametrize("dtype", INTEGERS)
def test_case_14_dimensions(dtype, executor):
    """NumPy integers are grid and block sizes, steps of slices and numbers of arguments."""
    base = np.zeros(40, np.int32)
    kind = np.dtype(dtype).type
    out = base[kind(1) : kind(31) : kind(3)]
    run(executor, numbered, Launch((kind(3), kind(1)), kind(4), (out,), ()))
    assert base[1:31:3].tolist() == list(range(10))
    assert np.count_nonzero(base) == 9


@sarek.kernel
def widened(out, a, b):
    i = sarek.global_idx.x
    if i < len(a):
        x = np.int64(a[i])
        out[i, 0] = x // b[i]
        out[i, 1] = x % b[i]
        out[i, 2] = a[i] // np.int64(b[i])


@pytest.mark.parametrize("dtype", SIGNED)
def test_case_16_widened(dtype, executor):
    """Negative numbers are extended by their sign before // and %."""
    low = np.iinfo(dtype).min
    a, b = (
        v.ravel().astype(dtype) for v in np.meshgrid([low, -100, -7, -1, 3], [-7, -3, 2, 5, 100])
    )
    out = poison((25, 3), np.int64)
    launch(executor, widened, out, a, b)
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    assert out.tolist() == [[x // y, x % y, x // y] for x, y in pairs]


# --- B: division, shifts, powers ------------------------------------------------------------------


@sarek.kernel
def halo(out, n):
    i = sarek.global_idx.x
    if i < n:
        out[i, 0] = (i - 3) // 4
        out[i, 1] = (i - 3) % 4
        out[i, 2] = (i - 9) // -4
        out[i, 3] = (i - 9) % -4


def test_case_17_floor(executor):
    """Division floors, of indices before the first element too."""
    out = poison((16, 4), np.int32)
    launch(executor, halo, out, 16)
    assert out.tolist() == [
        [(i - 3) // 4, (i - 3) % 4, (i - 9) // -4, (i - 9) % -4] for i in range(16)
    ]


@sarek.kernel
def quotient_and_remainder(q, r, a, b):
    i = sarek.global_idx.x
    if i < len(a):
        q[i] = a[i] // b[i]
        r[i] = a[i] % b[i]


@sarek.kernel
def remainder(r, a, b):
    i = sarek.global_idx.x
    if i < len(a):
        r[i] = a[i] % b[i]


@pytest.mark.parametrize("dtype", SIGNED)
def test_case_19_zero(dtype, executor):
    """x // 0 and x % 0 are 0, computed together or alone."""
    a, b = np.array([2, -2, 0, np.iinfo(dtype).min], dtype), np.zeros(4, dtype)
    q, both, alone = (poison(4, dtype) for _ in range(3))
    launch(executor, quotient_and_remainder, q, both, a, b)
    launch(executor, remainder, alone, a, b)
    assert q.tolist() == both.tolist() == alone.tolist() == [0] * 4


DIVISORS = (
    1,
    2,
    3,
    5,
    7,
    8,
    10,
    127,
    641,
    1000,
    4096,
    65536,
    1000003,
    2**31 - 1,
    -1,
    -2,
    -3,
    -8,
    -10,
)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_case_20_constants(dtype, executor):
    """Division by a constant is exact at both ends of the type."""
    info = np.iinfo(dtype)
    divisors = [d for d in DIVISORS if d >= info.min]
    body = ["i = sarek.global_idx.x", "if i < len(a):"]
    for k, d in enumerate(divisors):
        body += [f"    q[i, {k}] = a[i] // {d}", f"    r[i, {k}] = a[i] % {d}"]
    ends = [info.max - k for k in range(12)] + [info.min + k for k in range(12)]
    a = np.array(ends, dtype)
    q, r = poison((24, len(divisors)), dtype), poison((24, len(divisors)), dtype)
    launch(executor, kernel(f"constant_divisors_{dtype}", ["q", "r", "a"], body), q, r, a)
    wrapped = [[(int(x) // d - info.min) % 2**info.bits + info.min for d in divisors] for x in a]
    assert q.tolist() == wrapped
    assert r.tolist() == [[int(x) % d for d in divisors] for x in a]


@pytest.mark.parametrize("tile", [24, 40, 48, 96])
def test_case_22_tile(tile, executor):
    """Tiles in shared memory need not be powers of two."""
    body = [
        f"tile = sarek.shared.array({tile}, sarek.int32)",
        "t = sarek.thread_idx.x",
        "i = sarek.global_idx.x",
        "tile[t] = x[i]",
        "sarek.barrier()",
        f"out[i] = tile[{tile - 1} - t] + i // {tile} + i % {tile}",
    ]
    made = kernel(f"tile_of_{tile}", ["out", "x"], body)
    x = np.arange(3 * tile, dtype=np.int32) * 5
    out = poison(3 * tile, np.int32)
    run(executor, made, Launch(3, tile, (out, x), ()))
    i = np.arange(3 * tile)
    assert out.tolist() == (x.reshape(3, -1)[:, ::-1].ravel() + i // tile + i % tile).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_case_23_float(dtype, executor):
    """// and % of floats are NumPy's, bit for bit."""
    rng = np.random.default_rng(23)
    values = [
        0.0,
        -0.0,
        1,
        -1,
        0.1,
        -0.1,
        6,
        7.5,
        np.inf,
        -np.inf,
        np.nan,
        1e30,
        *rng.normal(size=4),
    ]
    a, b = (v.ravel().astype(dtype) for v in np.meshgrid(values, values))
    q, r = poison(256, dtype), poison(256, dtype)
    launch(executor, quotient_and_remainder, q, r, a, b, threads=256)
    with np.errstate(all="ignore"):
        assert same(q, a // b)
        assert same(r, a % b)


@sarek.kernel
def both_shifts(left, right, a, count):
    i = sarek.global_idx.x
    if i < len(a):
        left[i] = a[i] << count[i]
        right[i] = a[i] >> count[i]


@pytest.mark.parametrize("dtype", SIGNED)
def test_case_25_counts(dtype, executor):
    """Counts outside of the width give 0 or -1, and the operands stay as they were."""
    width = np.dtype(dtype).itemsize * 8
    counts = np.array([-1, 0, 1, width - 1, width, width + 1] * 2, dtype)
    a = np.array([5] * 6 + [-5] * 6, dtype)
    before = a.copy(), counts.copy()
    left, right = poison(12, dtype), poison(12, dtype)
    launch(executor, both_shifts, left, right, a, counts)
    top = int(np.iinfo(dtype).min)
    assert left.tolist() == [0, 5, 10, top, 0, 0, 0, -5, -10, top, 0, 0]
    assert right.tolist() == [0, 5, 2, 0, 0, 0, -1, -5, -3, -1, -1, -1]
    assert np.array_equal(a, before[0])
    assert np.array_equal(counts, before[1])


@sarek.kernel
def powers(out, base, exponent):
    i = sarek.global_idx.x
    if i < len(base):
        out[i] = base[i] ** exponent[i]


def test_case_26_negative(executor):
    """A negative exponent gives 0, or ±1 for ±1; NumPy raises, and the oracle reports it."""
    base = np.array([2, -1, -1, 1, 0, 3], np.int32)
    exponent = np.array([-1, -3, -2, -5, -1, -30], np.int32)
    out = poison(6, np.int32)
    if executor in (EMULATION, "interpreter"):
        with pytest.raises((ValueError, ArithmeticError), match="negative"):
            launch(executor, powers, out, base, exponent)
    else:
        launch(executor, powers, out, base, exponent)
        assert out.tolist() == [0, -1, 1, 1, 0, 0]


def test_case_26_exponents(executor):
    """3 ** k for k from an array."""
    exponent = np.arange(41, dtype=np.int64)
    out = poison(41, np.int64)
    launch(executor, powers, out, np.full(41, 3, np.int64), exponent)
    assert out.tolist() == [(3**k + 2**63) % 2**64 - 2**63 for k in range(41)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_case_28_alternating(dtype, executor):
    """(-1.0) ** i alternates, for integers and for floats that are integers."""
    base = np.repeat(np.array([-1, -2, -0.0, 0.0], dtype), 7)
    exponent = np.tile(np.array([0, 1, 2, 3, -1, -2, 5]), 4)
    for given in (exponent.astype(np.int16), exponent.astype(dtype)):
        out = poison(28, dtype)
        launch(executor, powers, out, base, given)
        with np.errstate(all="ignore"):
            assert same(out, np.power(base, exponent.astype(dtype)))


def test_case_29_overflow(executor):
    """A power of int32 wraps exactly, and is not computed in floats."""
    base = np.array([10, 3, -7, 2, 46341, 2147483647], np.int32)
    exponent = np.array([10, 40, 31, 31, 2, 3], np.int32)
    out = poison(6, np.int32)
    launch(executor, powers, out, base, exponent)
    pairs = zip(base.tolist(), exponent.tolist(), strict=True)
    assert out.tolist() == [(x**y + 2**31) % 2**32 - 2**31 for x, y in pairs]
