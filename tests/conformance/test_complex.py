"""Complex numbers: functions within their bounds, faults found on the user's element, captures."""

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.ir.parse import parse
from sarek_numba.ir.text import text
from sarek_numba.ir.types import FLOAT32, FLOAT64
from tests.conformance.everywhere import everywhere
from tests.executors import run
from tests.kernels.case import Launch

# --- functions made of real ones ------------------------------------------------------------------

BOUND = 16  # units in the last place of the magnitude


@sarek.kernel
def functions(out, z, w, k):
    i = sarek.global_idx.x
    if i < len(z):
        out[i, 0] = np.exp(z[i])
        out[i, 1] = np.sqrt(z[i])
        out[i, 2] = z[i] ** w[i]
        out[i, 3] = z[i] ** k
        out[i, 4] = abs(z[i])
        out[i, 5] = np.angle(z[i])


def _close(actual, expected, dtype):
    """Within the bound, relative to the magnitude; special values part by part."""
    size = np.abs(expected)
    unit = np.spacing(size.astype(dtype(0).real.dtype)).astype(np.float64)
    finite = np.isfinite(size)
    distance = np.abs(actual - expected)
    return np.where(finite, distance <= BOUND * unit, True)


@everywhere
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_functions_are_within_their_bounds(executor, dtype):
    """exp, sqrt, powers, abs and angle of ordinary numbers, against float64 or long double."""
    rng = np.random.default_rng(7)
    z = (rng.standard_normal(64) * 3 + 3j * rng.standard_normal(64)).astype(dtype)
    w = (rng.standard_normal(64) + 1j * rng.standard_normal(64)).astype(dtype)
    out = np.full((64, 6), 91, dtype)
    run(executor, functions, Launch(2, 32, (out, z, w, dtype(2.5)), ()))
    exact, power = z.astype(np.clongdouble), w.astype(np.clongdouble)
    columns = (
        np.exp(exact), np.sqrt(exact), exact**power, exact ** np.clongdouble(2.5), np.abs(exact),
        np.angle(exact),
    )  # fmt: skip
    for column, expected in enumerate(columns):
        assert _close(out[:, column], expected, dtype).all(), column


@sarek.kernel
def roots(exponentials, square_roots, z):
    i = sarek.global_idx.x
    if i < len(z):
        exponentials[i] = np.exp(z[i])
        square_roots[i] = np.sqrt(z[i])


SPECIAL = (0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan)


@everywhere
def test_special_values_of_exp_and_sqrt(executor):
    """Where a part is an infinity, a zero or a NaN both parts are NumPy's, but for open signs."""
    z = np.array([complex(x, y) for x in SPECIAL for y in SPECIAL], np.complex64)
    outs = np.full(len(z), 91, z.dtype), np.full(len(z), 91, z.dtype)
    run(executor, roots, Launch(2, 32, (*outs, z), ()))
    with np.errstate(all="ignore"):
        expected = np.exp(z), np.sqrt(z)
    for actual, wanted in zip(outs, expected, strict=True):
        for ours, theirs in ((actual.real, wanted.real), (actual.imag, wanted.imag)):
            same = np.isclose(ours, theirs, rtol=1e-5, equal_nan=True)
            open_sign = (
                np.isinf(ours) & np.isinf(theirs) & (np.isnan(wanted.real) | np.isnan(wanted.imag))
            )
            assert (same | open_sign).all(), z[~(same | open_sign)]


@everywhere
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_roots_of_huge_and_tiny_numbers(executor, dtype):
    """The sum in a square root neither overflows nor loses bits; exp of a large number neither."""
    info = np.finfo(dtype)
    top, tiny = float(info.max), float(info.smallest_subnormal)
    small = float(info.tiny)
    z = np.array(
        [complex(top, top), complex(-top, top / 3), complex(tiny, 0), complex(-tiny, tiny),
         complex(small, -small / 8), complex(np.log(top) + 0.25, 1.5)], dtype
    )  # fmt: skip
    outs = np.full(len(z), 91, dtype), np.full(len(z), 91, dtype)
    run(executor, roots, Launch(1, 8, (*outs, z), ()))
    exact = z.astype(np.clongdouble)
    assert _close(outs[1], np.sqrt(exact), dtype).all()
    assert np.isfinite(outs[0][-1].real)
    relative = abs(outs[0][-1].real / np.exp(exact[-1]).real - 1)
    assert relative < 1e-4  # the spacing of the numbers near the exponent decides


# --- control --------------------------------------------------------------------------------------


@sarek.kernel
def chosen(out, z, k):
    t = sarek.thread_idx.x
    pair = (z[t], 1j, 2)
    acc = 0
    for item in pair:
        acc = acc * 2 + item
    w = z[t] if abs(z[t]) > 1 and z[t].real > 0 else -z[t]
    if t > 2:
        extra = w * w
    elif t == 0:
        extra = w
    else:
        extra = np.where(z[t] == 5, w, 3)
    out[t, 0] = acc
    out[t, 1] = pair[k]
    out[t, 2] = extra
    out[t, 3] = 1 if not z[t] or z[t] != z[t].conjugate() else 2


def _chosen(z, t, k):
    w = z if abs(z) > 1 and z.real > 0 else -z
    extra = w * w if t > 2 else w if t == 0 else 3
    flag = 1 if not z or z != z.conjugate() else 2
    return [(z * 2 + 1j) * 2 + 2, (z, 1j, 2)[k], extra, flag]


@everywhere
@pytest.mark.parametrize("k", [0, 1, -1])
def test_branches_tuples_and_loops(executor, k):
    """Complex numbers as items, chosen by conditions, joined from branches."""
    z = np.array([0, 0.5, 2 + 1j, -3, 4j, 5 - 2j], np.complex64)
    out = np.full((6, 4), 91, np.complex64)
    run(executor, chosen, Launch(1, 6, (out, z, k), ()))
    assert out.tolist() == [[complex(v) for v in _chosen(x, t, k)] for t, x in enumerate(z)]


SHIFT = 1 + 2j


@sarek.kernel
def captured(z):
    z[sarek.thread_idx.x] += SHIFT


def test_a_captured_complex_number_counts_at_the_launch(monkeypatch):
    """Equal ones share a specialisation; a rebound one, -0.0 included, makes another."""
    z = np.zeros(4, np.complex64)
    monkeypatch.setitem(globals(), "SHIFT", complex(0.0, 1.0))
    before = len(captured._specialisations)
    captured[1, 4](z)
    captured[1, 4](z)
    assert z.tolist() == [2j] * 4
    [(made, *older)] = captured._specialisations.values()
    assert len(captured._specialisations) == before + 1
    assert not older
    monkeypatch.setitem(globals(), "SHIFT", complex(-0.0, 1.0))
    captured[1, 4](z)
    [(newer, *_)] = captured._specialisations.values()
    assert newer is not made


# --- the oracle -----------------------------------------------------------------------------------


def findings(kernel, *arguments, grid=1, block=8):
    """The findings of a launch on the oracle."""
    with sarek.use_device("interpreter"), pytest.raises(sarek.OracleError) as caught:
        kernel[grid, block](*arguments)
    return caught.value.findings


@sarek.kernel
def beyond(out, z):
    t = sarek.thread_idx.x
    out[t] = z[t + 5, 1] * 2


def test_an_index_out_of_bounds_is_told_once_with_the_users_index():
    """One finding for both parts; the threads are counted once."""
    [found] = findings(beyond, np.zeros(8, np.complex64), np.zeros((8, 2), np.complex128))
    assert found.error is sarek.OutOfBounds
    assert (found.array, found.index, found.threads) == ("z", 8, 5)
    assert "axis 0 of 'z', whose extent is 8" in found.message


@sarek.kernel
def racing(z):
    t = sarek.thread_idx.x
    z[1, t // 2] = t * 1j


@pytest.mark.parametrize("step", [1, -2])
def test_a_race_names_the_element(step):
    """By the user's subscripts, whatever the strides, once for both parts."""
    z = np.zeros((3, 8), np.complex64)[:, ::step]
    [found] = findings(racing, z)
    assert found.error is sarek.DataRace
    assert found.array == "z"
    assert found.index[0] == 1
    assert found.index[1] < 4


@sarek.kernel
def racing_between_parts(z):
    t = sarek.thread_idx.x
    z.imag[3] = t
    z[2 + t // 7] = 1


def test_a_race_between_a_part_and_the_whole():
    """A store to z.imag[k] conflicts with one to z[k], and is told of z[k]."""
    found = findings(racing_between_parts, np.zeros(9, np.complex64))
    assert {(each.error, each.array, each.index) for each in found} >= {(sarek.DataRace, "z", 3)}


@sarek.kernel
def parts_apart(z):
    t = sarek.thread_idx.x
    if t % 2 == 0:
        z.real[t // 2] = 1
    else:
        z.imag[t // 2] = 2


def test_parts_do_not_conflict_with_each_other():
    """Two threads may write the two parts of one element."""
    z = np.zeros(4, np.complex64)
    with sarek.use_device("interpreter"):
        parts_apart[1, 8](z)
    assert z.tolist() == [1 + 2j] * 4


@sarek.kernel
def unwritten(out):
    tile = sarek.shared.array((2, 8), np.complex64)
    own = sarek.local.array(4, np.complex128)
    t = sarek.thread_idx.x
    tile.real[1, t] = 1
    sarek.barrier()
    out[t] = tile[1, t]
    out[t] += own[3]


def test_an_uninitialised_read_names_the_element():
    """A half-written element is found too, by its flat place in the array."""
    shared, local = findings(unwritten, np.zeros(8, np.complex64))
    assert shared.error is local.error is sarek.UninitialisedRead
    assert (shared.array, shared.index, shared.threads) == ("tile", 8, 8)
    assert (local.array, local.index, local.threads) == ("own", 3, 8)


@sarek.kernel
def unbound(out):
    t = sarek.thread_idx.x
    if t != 3:
        z = t * 1j
    out[t] = z


def test_a_complex_local_that_a_thread_has_not_assigned():
    """The oracle reports the read; devices read zero."""
    found = findings(unbound, np.zeros(8, np.complex64))
    assert {(each.error, each.threads) for each in found} == {(sarek.UnboundRead, 1)}


# --- the IR, capabilities, notes ------------------------------------------------------------------


def test_the_text_of_complex_kernels_is_read_back():
    """Pairs, parts of arguments and of subscripts stand in the text."""
    kernel = functions.ir(
        np.zeros((4, 6), np.complex64), sarek.complex64[:], sarek.complex64[:], 1j
    )
    shown = text(kernel)
    for part in ("array(f32 pairs, global", "= real 3", "= imag 3", "wrap.real(", "wrap.imag("):
        assert part in shown
    assert parse(shown) == kernel
    changed = shown.replace("wrap.imag(", "wrap.real(", 1)
    assert parse(changed) != kernel


def _scalars(needs):
    return {need.scalar for need in needs}


def test_a_complex64_kernel_needs_no_float64():
    """Weak complex constants and arguments meet complex64; complex128 needs float64."""
    narrow = scaled.needs(sarek.complex64[:], 1j)
    assert FLOAT64 not in _scalars(narrow)
    assert FLOAT32 in _scalars(narrow)
    assert FLOAT64 in _scalars(scaled.needs(sarek.complex128[:], 1j))


@sarek.kernel
def scaled(z, s):
    z[sarek.thread_idx.x] *= s * np.complex64(1) - 2j


def test_a_double_that_nobody_asked_for_is_noted():
    """complex64 with an int32 is complex128, as in NumPy."""

    @sarek.kernel
    def widened(z, n: sarek.int32):
        z[0] = z[1] * n

    with pytest.warns(sarek.CompileWarning, match="complex64 and int32 is complex128"):
        widened[1, 1](np.zeros(2, np.complex64), 3)


@everywhere
def test_hints_hold_for_complex_elements(executor):
    """Clamped indices, of both parts alike."""

    @sarek.kernel(bounds="clamp", wraparound=False)
    def clamped(out, z, n):
        out[n] = z[n - 9] + z[n + 9] + z.real[n + 9] + z.imag[n - 9]

    z = np.array([1 + 2j, 3, 4 + 5j], np.complex64)
    out = np.zeros(2, np.complex64)
    run(executor, clamped, Launch(1, 1, (out, z, 5), ()))
    assert out.tolist() == [0, 1 + 2j + 4 + 5j + 4 + 2]


def test_strict_stores_of_complex_numbers():
    """complex128 into complex64 is refused, and so is an int64; a float32 or an int16 is not."""

    @sarek.kernel(strict=True)
    def stores(z, value):
        z[0] = value

    z = np.zeros(2, np.complex64)
    for value in (np.complex64(1j), np.float32(2), np.int16(3)):
        stores[1, 1](z, value)
        assert z[0] == value
    for value in (np.complex128(1), np.int64(1), 1j):
        with pytest.raises(sarek.TypingError, match="in an array of complex64 can lose"):
            stores[1, 1](z, value)


def test_a_stated_complex_type():
    """Annotations of arrays and scalars, given Python numbers and NumPy's."""

    @sarek.kernel
    def stated(z: sarek.complex64[:], s: sarek.complex64, w: complex):
        z[sarek.thread_idx.x] = s + w

    z = np.zeros(2, np.complex64)
    stated[1, 2](z, 1, np.complex64(2j))
    assert z.tolist() == [1 + 2j] * 2
    with pytest.raises(sarek.ArgumentTypeError, match="a 1-D array of complex128"):
        stated[1, 2](z.astype(np.complex128), 1, 2)
