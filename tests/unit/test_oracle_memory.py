"""Memory of the oracle: values of every element type, atomics, aliases, and what is reported."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

from sarek_interp.views import View
from sarek_numba.errors import BarrierDivergence, DataRace, OutOfBounds
from sarek_numba.ir import build as b
from sarek_numba.ir.nodes import ArrayLen, Assert, Barrier, Return
from sarek_numba.ir.types import FLOAT32, INT32, INT64, OffsetOf, Scalar
from sarek_numba.span import Span
from tests.unit.oracle_kit import Builder, errors, gid, int32, run, tid

SCALARS = [s for s in Scalar if s not in (Scalar.FLOAT16, Scalar.BFLOAT16)]


@pytest.mark.parametrize("type", SCALARS, ids=lambda t: t.value)
def test_every_element_type_goes_through_every_space(type: Scalar) -> None:
    """Global to shared to local and back, reversed, bit for bit."""
    k = Builder()
    out, src = k.array("out", type), k.array("src", type)
    s, a = k.shared("s", 8, type), k.local("a", 3, type)
    kernel = k.kernel(
        b.store(s, tid(), b.read(src, gid())),
        Barrier(),
        b.store(a, 2, b.read(s, b.sub(7, tid()))),
        b.store(out, gid(), b.read(a, 2)),
    )
    random = np.random.default_rng(1)
    bits = random.integers(0, 2 if type is Scalar.BOOL else 256, 80 * type.bits // 8, np.uint8)
    source = bits.view(type.value)
    result = np.zeros_like(source)
    assert run(kernel, 10, 8, result, source).findings == ()
    expected = source.reshape(10, 8)[:, ::-1].ravel()
    assert result.tobytes() == np.ascontiguousarray(expected).tobytes()


def test_a_bool_is_any_byte_that_is_not_zero() -> None:
    k = Builder()
    out, src = k.array("out", Scalar.BOOL), k.array("src", Scalar.BOOL)
    memory = np.array([0, 1, 2, 255], np.uint8)
    result = np.full(4, 9, np.uint8)
    kernel = k.kernel(b.store(out, gid(), b.read(src, gid())))
    assert run(kernel, 1, 4, result, memory).findings == ()
    assert result.tolist() == [0, 1, 1, 1]


def test_gathers_scatters_and_uniform_elements() -> None:
    k = Builder()
    out, src = k.array("out", INT64), k.array("src", INT64)
    spread = b.floormod(b.mul(gid(), b.const_int(7)), b.const_int(100))
    value = b.add(b.read(src, spread), b.read(src, 3))
    guarded = b.if_(b.ne(b.floormod(gid(), b.const_int(3)), 0), [b.store(out, spread, value)])
    source = np.random.default_rng(0).integers(0, 10**6, 100)
    result = np.full(100, -1)
    assert run(k.kernel(guarded), 10, 10, result, source).findings == ()
    expected = np.full(100, -1)
    for i in range(100):
        if i % 3:
            expected[i * 7 % 100] = source[i * 7 % 100] + source[3]
    assert result.tolist() == expected.tolist()


def test_constant_arrays_and_lengths() -> None:
    k = Builder()
    out = k.array("out", INT64)
    c = k.const("c", [5, 7, 11], INT64)
    kernel = k.kernel(b.store(out, gid(), b.add(b.read(c, tid()), ArrayLen(out))))
    data = np.zeros(3, np.int64)
    assert run(kernel, 1, 3, data).findings == ()
    assert data.tolist() == [8, 10, 14]


def test_views_of_the_dynamic_region_share_bytes() -> None:
    k = Builder()
    out = k.array("out", Scalar.UINT32)
    words = k.shared("words", None, Scalar.UINT32)
    octets = k.shared("octets", None, Scalar.UINT8, offset=4)
    kernel = k.kernel(
        b.store(octets, tid(), b.cast(Scalar.UINT8, b.add(tid(), b.const_int(1)))),
        Barrier(),
        b.if_(b.eq(tid(), 0), [b.store(out, b.coordinate("block_idx"), b.read(words, 1))]),
    )
    data = np.zeros(3, np.uint32)
    assert run(kernel, 3, 4, data, shared_bytes=8).findings == ()
    assert data.tolist() == [0x04030201] * 3


# --- atomics --------------------------------------------------------------------------------------


def _atomic(op: str, values: np.ndarray, start: int | float, seed: int = 0) -> tuple[list, object]:
    """Old values by thread, and the final one, of one operation on one element."""
    k = Builder()
    type = Scalar(values.dtype.name)
    out, src, cell = k.array("out", type), k.array("src", type), k.array("cell", type)
    old = k.var("old", type)
    kernel = k.kernel(
        b.atomic(op, cell, 0, b.read(src, gid()), result=old), b.store(out, gid(), old)
    )
    result, target = np.zeros_like(values), np.array([start], values.dtype)
    report = run(kernel, values.size // 4, 4, result, values, target, seed=seed)
    assert report.findings == ()
    return result.tolist(), target[0].item()


def test_atomic_counter_gives_each_slot_once() -> None:
    """Case 121, across many chunks of blocks."""
    k = Builder()
    cell, seen = k.array("cell"), k.array("seen")
    old = k.var("old", INT32)
    kernel = k.kernel(b.atomic("add", cell, 0, 1, result=old), b.store(seen, old, int32(gid())))
    n = 400 * 256
    order = np.full(n, -1, np.int32)
    target = np.zeros(1, np.int32)
    assert run(kernel, 400, 256, target, order).findings == ()
    assert target.tolist() == [n]
    assert sorted(order.tolist()) == list(range(n))
    blocks = order.reshape(400, 256) // 256
    assert (blocks == blocks[:, :1]).all(), "the threads of a block come one after another"
    assert (np.diff(order.reshape(400, 256)) == 1).all(), "in the order of their numbers"
    assert blocks[:, 0].tolist() != list(range(400)), "and blocks as the seed permutes them"


def test_the_seed_decides_the_order_of_blocks() -> None:
    values = np.arange(64, dtype=np.int32)
    first, _ = _atomic("exch", values, -1, seed=0)
    again, _ = _atomic("exch", values, -1, seed=0)
    other, _ = _atomic("exch", values, -1, seed=1)
    assert first == again
    assert first != other


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.float32])
@pytest.mark.parametrize("op", ["add", "min", "max", "exch"])
def test_old_values_are_a_history(op: str, dtype: type) -> None:
    """Some order of the threads explains every old value and the last one."""
    values = np.random.default_rng(5).integers(0, 1000, 64).astype(dtype)
    old, last = _atomic(op, values, 500)
    order, _ = _atomic("exch", np.arange(64, dtype=np.int32), -1)
    place = {before: thread for thread, before in enumerate(order)}
    thread, current = place[-1], 500
    for _ in range(64):
        assert old[thread] == current
        value = values[thread].item()
        current = {
            "add": current + value,
            "min": min(current, value),
            "max": max(current, value),
            "exch": value,
        }[op]
        thread = place.get(thread, -1)
    assert last == current


def test_float_sums_round_at_each_step() -> None:
    """2^24 + 1 is lost when added alone, as on a device: not one sum rounded once."""
    values = np.ones(64, np.float32)
    _, last = _atomic("add", values, 2.0**24)
    assert last == 2.0**24
    k = Builder()
    cells, src = k.array("cells", FLOAT32), k.array("src", FLOAT32)
    bin_ = b.floormod(gid(), b.const_int(5))
    kernel = k.kernel(b.atomic("add", cells, bin_, b.read(src, gid())))
    values = np.random.default_rng(2).random(512).astype(np.float32)
    bins = np.zeros(5, np.float32)
    assert run(kernel, 1, 512, bins, values).findings == ()
    expected = np.zeros(5, np.float32)
    for i, value in enumerate(values):
        expected[i % 5] += value
    assert bins.tolist() == expected.tolist()


def test_float_minimum_ignores_nan() -> None:
    """Atomic min and max are fmin and fmax (case 31)."""
    values = np.array([np.nan, 3.0, np.nan, 2.0] * 2, np.float32)
    assert _atomic("min", values, 5.0)[1] == 2.0
    assert _atomic("max", values, np.nan)[1] == 3.0


@pytest.mark.parametrize("op", ["add", "inc", "max", "cas"])
def test_an_atomic_out_of_bounds_in_every_thread_is_a_finding(op: str) -> None:
    k = Builder()
    cell, old = k.array("cell"), k.var("old", INT32)
    given = {"compare": 0} if op == "cas" else {}
    kernel = k.kernel(
        b.atomic(op, cell, b.subscript(cell, 0, gid(), b.const_int(0)), 1, result=old, **given)
    )
    report = run(kernel, 1, 8, np.zeros(0, np.int32))
    assert {finding.error.__name__ for finding in report.findings} == {"OutOfBounds"}


def test_compare_and_swap_claims_once_and_chains() -> None:
    k = Builder()
    out, cell = k.array("out"), k.array("cell")
    old = k.var("old", INT32)
    claim = b.atomic("cas", cell, 0, 1, compare=0, result=old)
    kernel = k.kernel(claim, b.store(out, gid(), old))
    result, target = np.zeros(64, np.int32), np.zeros(1, np.int32)
    assert run(kernel, 8, 8, result, target).findings == ()
    assert (sorted(result.tolist()), target.tolist()) == ([0] + [1] * 63, [1])
    k = Builder()
    cell = k.array("cell")
    step = b.atomic(
        "cas", cell, b.floordiv(tid(), b.const_int(8)),
        int32(b.add(b.floormod(tid(), b.const_int(8)), b.const_int(1))),
        compare=int32(b.floormod(tid(), b.const_int(8))),
    )  # fmt: skip
    target = np.zeros(2, np.int32)
    assert run(k.kernel(step), 1, 16, target).findings == ()
    assert target.tolist() == [8, 8]


def test_a_compare_and_swap_loop_of_all_threads() -> None:
    k = Builder()
    cell = k.array("cell")
    seen, done = k.var("seen", INT32, mutable=True), k.var("done", INT32, mutable=True)
    now, was = k.var("now", INT32), k.var("was", INT32)
    kernel = k.kernel(
        b.let_mut(done, 0),
        b.let_mut(seen, 0),
        b.while_(
            b.eq(done, 0),
            b.atomic("load", cell, 0, result=now),
            b.atomic("cas", cell, 0, b.add(now, 2), compare=now, result=was),
            b.if_(b.eq(was, now), [b.assign(done, 1)]),
        ),
    )
    target = np.zeros(1, np.int32)
    assert run(kernel, 4, 64, target).findings == ()
    assert target.tolist() == [512]


# --- reports --------------------------------------------------------------------------------------

SOURCE = """\
def blur(out, src):
    i = sarek.global_idx.x
    s[i] = src[i + 1]
    out[i] = s[7 - i]
"""


@pytest.fixture
def source_lines() -> str:
    name = "<kernel of a test>"
    linecache.cache[name] = (len(SOURCE), None, SOURCE.splitlines(True), name)
    return name


def test_a_finding_shows_place_thread_index_and_values(source_lines: str) -> None:
    k = Builder("blur")
    out, src, s = k.array("out"), k.array("src"), k.shared("s", 8)
    there = Span(source_lines, 3, 11, 3, 21)
    index = b.subscript(src, 0, b.add(tid(), b.const_int(1)), b.const_int(8))
    at = type(index)(src, 0, index.index, index.extent, False, span=there)
    value = type(b.read(src, at))(src, at, span=there)
    target = type(b.store(s, tid(), value))(
        b.store(s, tid(), value).target, value, span=Span(source_lines, 3, 4, 3, 21)
    )
    read = type(value)(s, b.sub(7, tid()), span=Span(source_lines, 4, 13, 4, 21))
    kernel = k.kernel(target, b.store(out, gid(), read))
    report = run(kernel, 1, 8, np.zeros(8, np.int32), np.arange(8, dtype=np.int32) * 10)
    assert errors(report) == ["OutOfBounds", "DataRace"]
    with pytest.raises(OutOfBounds) as raised:
        report.raise_first()
    assert str(raised.value) == (
        "<kernel of a test>:3:12: index 8 is out of range for axis 0 of 'src', whose extent is 8\n"
        "  3 |     s[i] = src[i + 1]\n"
        "    |            ^^^^^^^^^^\n"
        "  kernel 'blur', block (0, 0, 0), thread (7, 0, 0)\n"
        "(1 more finding in .findings)"
    )
    assert str(report.findings[1]) == (
        "<kernel of a test>:4:14: data race: this thread reads 's[7]', and thread (7, 0, 0) of "
        "block (0, 0, 0) writes it; nothing orders the two\n"
        "  4 |     out[i] = s[7 - i]\n"
        "    |              ^^^^^^^^\n"
        "  kernel 'blur', block (0, 0, 0), thread (0, 0, 0) and 7 other threads\n"
        "  value = 0\n"
        "  note: <kernel of a test>:3:5: the other access\n"
        "  3 |     s[i] = src[i + 1]\n"
        "    |     ^^^^^^^^^^^^^^^^^\n"
        "  hint: put a barrier between the two, or use sarek.atomic where threads must share an "
        "element"
    )
    finding = report.findings[1]
    assert (finding.array, finding.index, finding.threads) == ("s", 7, 8)


def test_divergence_shows_where_the_others_went() -> None:
    k = Builder()
    here, there = Span("k.py", 5, 4), Span("k.py", 3, 8)
    kernel = k.kernel(b.if_(b.gt(tid(), 5), [Return(span=there)]), Barrier(span=here))
    report = run(kernel, 2, 8)
    (finding,) = report.findings
    assert finding.error is BarrierDivergence
    assert finding.span == here
    assert finding.note == (there, "thread (6, 0, 0) has returned here")
    assert finding.message == "2 of the 8 threads of this block do not reach this barrier"
    assert finding.threads == 12


def test_findings_are_in_program_order_once_each() -> None:
    k = Builder()
    out = k.array("out")
    loop = b.for_(
        k.var("j"), 0, 50, Assert(b.lt(tid(), 2), "second", span=Span("k.py", 2)),
        Assert(b.lt(tid(), 3), "third", span=Span("k.py", 3)),
    )  # fmt: skip
    kernel = k.kernel(
        b.if_(b.gt(tid(), 100), [Assert(b.lt(tid(), 0), "never")]),
        loop,
        b.store(out, 9, 1),
    )
    report = run(kernel, 1, 4, np.zeros(4, np.int32))
    assert [f.message for f in report.findings] == [
        "assertion failed: second",
        "assertion failed: third",
        "element 9 is outside 'out', which has 4 elements",
    ]
    assert [f.threads for f in report.findings] == [100, 50, 4]


def test_a_report_is_a_table() -> None:
    k = Builder("copy")
    out = k.array("out")
    kernel = k.kernel(b.store(out, gid(), 1))
    good = run(kernel, 1, 4, np.zeros(4, np.int32), seed=3)
    assert good
    assert str(good).startswith("kernel 'copy', grid (1, 1, 1), block (4, 1, 1): 4 threads in ")
    assert str(good).endswith(" s, seed 3: nothing found")
    good.raise_first()
    bad = run(kernel, 1, 4, np.zeros(3, np.int32))
    assert not bad
    lines = str(bad).splitlines()
    assert lines[0].endswith("1 finding")
    assert lines[1].split() == ["error", "place", "block", "thread", "what"]
    assert lines[3].startswith("OutOfBounds")
    assert "<td>OutOfBounds</td>" in bad._repr_html_()
    assert "&#x27;copy&#x27;" in good._repr_html_()


def test_the_number_of_findings_is_bounded() -> None:
    k = Builder()
    out = k.array("out")
    kernel = k.kernel(*(b.store(out, 4 + i, 1) for i in range(300)))
    report = run(kernel, 1, 1, np.zeros(1, np.int32))
    assert len(report.findings) == 200
    assert report.dropped == 100
    assert "300 findings" in str(report)


def test_a_race_names_both_sides_and_both_lines() -> None:
    k = Builder()
    out = k.array("out")
    store = b.store(out, 0, int32(gid()))
    again = type(store)(store.target, store.value, span=Span("k.py", 7))
    report = run(k.kernel(again), 3, 1, np.zeros(1, np.int32))
    with pytest.raises(DataRace, match="of block") as raised:
        report.raise_first()
    assert raised.value.findings[0].note[0] == Span("k.py", 7)


def test_elements_are_named_as_the_user_writes_them() -> None:
    """Offset, shape and strides of the view count, not the place in the bound buffer."""
    plain = View(0, (3, 4), (4, 1))
    assert [plain.subscripts(i) for i in (0, 5, 11, 12)] == [(0, 0), (1, 1), (2, 3), 12]
    backwards = View(9, (5,), (-2,))
    assert [backwards.subscripts(i) for i in (9, 7, 1, 8, 11)] == [0, 1, 4, 8, 11]
    fortran = View(2, (3, 4), (1, 3))
    assert fortran.subscripts(2 + 2 + 3 * 3) == (2, 3)
    array = np.arange(60).reshape(5, 12)[::-2, 2:9:3].T
    base = View(4 * 12 + 2, array.shape, tuple(s // 8 for s in array.strides))
    for index in np.ndindex(array.shape):
        assert base.subscripts(int(array[index])) == index


def test_a_race_names_the_element_of_the_view() -> None:
    k = Builder()
    out = k.array("out")
    offset = b.scalar_param(k.fresh, "offset", INT32, OffsetOf(0))
    k.params.append(offset)
    place = b.cast(INT64, offset.var)
    report = run(
        k.kernel(b.store(out, place, int32(gid()))), 1, 4, np.zeros(9, np.int32), np.int32(5)
    )
    (finding,) = report.findings
    assert finding.index == 0
    assert "'out[0]'" in finding.message


def test_unknown_checks_are_refused() -> None:
    kernel = Builder().kernel()
    with pytest.raises(ValueError, match="the optional checks are: division"):
        run(kernel, 1, 1, checks={"speed"})
    with pytest.raises(ValueError, match="default or strict"):
        run(kernel, 1, 1, races="none")


def test_a_million_threads_take_well_under_a_second() -> None:
    """Saxpy with all checks on."""
    k = Builder("saxpy")
    y, x, a = k.array("y", FLOAT32), k.array("x", FLOAT32), k.scalar("a", FLOAT32)
    n = k.scalar("n", INT32)
    size = b.cast(INT64, n)
    sum_ = b.add(
        b.mul(a, b.read(x, b.subscript(x, 0, gid(), size))),
        b.read(y, b.subscript(y, 0, gid(), size)),
    )
    store = b.store(y, b.subscript(y, 0, gid(), size), sum_)
    kernel = k.kernel(b.if_(b.lt(gid(), size), [store]))
    count = 1_000_000
    random = np.random.default_rng(0)
    ys, xs = (random.random(count).astype(np.float32) for _ in range(2))
    expected = np.float32(2) * xs + ys
    report = run(kernel, -(-count // 256), 256, ys, xs, np.float32(2), np.int32(count))
    assert report.findings == ()
    assert (ys == expected).all()
    assert report.seconds < 1.0
