"""Records in columns on every device: the same records to a kernel and to the host."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import execute
from sarek_numba.errors import (
    ArgumentTypeError,
    CompileError,
    InvalidArgument,
    OutOfBounds,
    ReadOnlyWrite,
)
from sarek_numba.execute import Language
from sarek_numba.ir.parse import parse
from sarek_numba.ir.text import text
from sarek_numba.ir.verify import InvalidIR, verify
from sarek_numba.runtime.cache import counters
from tests.executors import EMULATION, SEED, compare, run
from tests.kernels.case import Launch
from tests.kernels.corpus import CASES

DEVICES = [device.name for device in sarek.devices()]
APART = [name for name in DEVICES if sarek.device(name).driver.memory is not None]
on_devices = pytest.mark.parametrize("device", DEVICES)
on_devices_with_memory = pytest.mark.parametrize("device", APART)

BODY = np.dtype(
    [
        ("id", np.uint8),
        ("pos", [("x", np.float32), ("y", np.float64)]),
        ("grid", np.int16, (2, 3)),
        ("z", np.complex64),
        ("ends", [("low", np.int32), ("high", np.int32)], (2,)),
    ]
)
Point = np.dtype([("x", np.float32), ("y", np.float32)])
PointRecord = sarek.record(Point)


def bodies(count=20):
    made = np.zeros(count, BODY)
    made["id"] = np.arange(count)
    made["pos"]["x"], made["pos"]["y"] = np.arange(count), -np.arange(count)
    made["grid"] = np.arange(count * 6).reshape(count, 2, 3)
    made["z"] = np.arange(count) + 1j
    made["ends"]["low"] = np.arange(2 * count).reshape(count, 2)
    return made


@sarek.kernel
def move(p, n):
    i = sarek.global_idx.x
    if i < len(p):
        p[i].pos.x += n
        p[i].grid[1, 2] = p[i].id
        p[i].ends[1].high = p[i].ends[0].low + 1
        p[i].z = p[i].z * 2


def moved(model, n):
    model["pos"]["x"] += n
    model["grid"][..., 1, 2] = model["id"]
    model["ends"]["high"][..., 1] = model["ends"]["low"][..., 0] + 1
    model["z"] *= 2


# --- the kernel's side ----------------------------------------------------------------------------


def has_records(case):
    arguments = case.launch(np.random.default_rng(SEED)).arguments
    return any(is_alone(arguments, k) for k in range(len(arguments)))


def is_alone(arguments, position):
    """Whether an argument is an array of records that shares no memory with another one."""
    array = arguments[position]
    if not isinstance(array, np.ndarray) or array.dtype.names is None or not array.ndim:
        return False
    others = (a for k, a in enumerate(arguments) if k != position and isinstance(a, np.ndarray))
    return not any(np.shares_memory(array, other) for other in others)


RECORD_CASES = [case for case in CASES if has_records(case)]


@pytest.mark.parametrize("executor", DEVICES)
@pytest.mark.parametrize("case", RECORD_CASES, ids=lambda case: case.name)
def test_the_corpus_in_columns(case, executor):
    """Each kernel of the corpus gives the same where its records are in columns."""
    made = case.launch(np.random.default_rng(SEED))
    arguments = [
        sarek.soa(a) if is_alone(made.arguments, k) else a for k, a in enumerate(made.arguments)
    ]
    run(executor, case.kernel, Launch(made.grid, made.block, arguments, (), made.shared_bytes))
    for position, (given, expected) in enumerate(zip(arguments, made.expected, strict=True)):
        if expected is not None:
            compare(executor, case, position, np.array(given), expected)


def test_emulation():
    """It reads and writes records in columns as it does others."""
    v, model = sarek.soa(bodies()), bodies()
    run(EMULATION, move, Launch(1, 32, (v, 1.5), ()))
    moved(model, 1.5)
    assert (v == model).all()


def test_the_corpus_has_records():
    assert len(RECORD_CASES) > 30


@on_devices
@pytest.mark.parametrize(
    "part", [slice(None), slice(3, 15), slice(None, None, 2), slice(None, None, -3), slice(7, 7)]
)
def test_parts_are_the_same_memory(device, part):
    """A launch on a part is seen through the whole, and what is between is untouched."""
    whole, model = sarek.soa(bodies()), bodies()
    move.launch(whole[part], 1.5, grid=1, block=32, device=device)
    moved(model[part], 1.5)
    assert (whole == model).all()
    move.launch(whole, -1.0, grid=1, block=32, device=device)
    moved(model, -1.0)
    assert (whole[part] == model[part]).all()


@sarek.kernel
def mix(p, q, x):
    i = sarek.global_idx.x
    if i < len(q):
        p[i].pos.y = q[i].pos.x + x[i]


@on_devices
def test_overlapping_parts_and_a_field_in_one_launch(device):
    """Columns that other arguments share begin at one record all the same."""
    whole, model = sarek.soa(bodies()), bodies()
    mix.launch(whole[4:], whole[9:19], whole["pos"]["x"][1:], grid=1, block=16, device=device)
    model["pos"]["y"][4:14] = model["pos"]["x"][9:19] + model["pos"]["x"][1:11]
    assert (whole == model).all()


@sarek.kernel
def rows(grid, p):
    i = sarek.global_idx.x
    if i < len(p):
        p[i].grid[0, 0] = grid[i, 1]


@on_devices
def test_a_column_that_another_argument_enters_in_the_middle(device):
    """The other argument begins within a record: all columns still begin at a whole one."""
    whole, model = sarek.soa(bodies()), bodies()
    rows.launch(whole["grid"][:5, 1, 1:], whole[10:15], grid=1, block=8, device=device)
    model["grid"][10:15, 0, 0] = model["grid"][:5, 1, 2]
    assert (whole == model).all()


@sarek.kernel
def transpose(out, p):
    i, j = sarek.global_idx.y, sarek.global_idx.x
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = p[j, i]


@on_devices
@pytest.mark.parametrize("turned", [False, True])
def test_two_axes(device, turned):
    """Records have shapes and orders, as elements do; `T` and `reshape` take no copy."""
    model = bodies(12).reshape(3, 4)
    p, out = sarek.soa(bodies(12)).reshape(3, 4), sarek.soa(np.zeros((4, 3), BODY))
    if turned:
        p, out, model = p.T, out.T, model.T
    transpose.launch(out, p, grid=1, block=(4, 4), device=device)
    assert (out == model.T).all()
    assert (out[1] == model.T[1]).all()


@sarek.kernel
def count_up(p):
    sarek.atomic.add(p["low"], 0, 1)
    sarek.atomic.max(p["low"], 1, sarek.int32(sarek.global_idx.x))


@on_devices
def test_atomics_on_fields(device):
    records = np.zeros(2, [("pad", np.uint8), ("low", np.int32)])
    p = sarek.soa(records)
    count_up.launch(p, grid=4, block=32, device=device)
    assert p["low"].tolist() == [128, 127]
    assert p["pad"].tolist() == [0, 0]


@sarek.function
def length(point):
    return point.x * point.x + point.y * point.y


@sarek.function
def second(points):
    return points[1].y


@sarek.kernel
def lengths(out, points):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = length(points[i]) + second(points)


@on_devices
def test_device_functions(device):
    """One takes a record, another the whole array."""
    records = np.array([(1, 2), (3, 4), (5, 6)], Point)
    out = sarek.zeros(3, np.float32)
    lengths.launch(out, sarek.soa(records), grid=1, block=4, device=device)
    assert out.tolist() == [9, 29, 65]


@on_devices_with_memory
def test_only_what_is_used_moves(device):
    """Columns that the kernel does not touch stay where they are; only written ones go stale."""

    @sarek.kernel
    def shift(p):
        i = sarek.global_idx.x
        if i < len(p):
            p[i].pos.x = p[i].id

    p = sarek.soa(bodies())
    counters.reset()
    for _ in range(5):
        shift.launch(p, grid=1, block=32, device=device)
    assert (counters.uploads, counters.downloads) == (2, 0)
    assert counters.uploaded_bytes == 20 * (1 + 4)
    assert not p["pos"]["x"].is_current()
    assert p["pos"]["y"].is_current()
    assert p["id"].is_current()
    assert p[3]["pos"]["x"] == 3
    assert (counters.downloads, counters.downloaded_bytes) == (1, 4)
    assert not p["pos"]["y"].is_current(device)


def test_layout_is_part_of_what_is_compiled():
    """Records in columns and records in rows are two specialisations with sources of their own."""
    counters.reset()
    records = np.zeros(4, Point)
    sources = {str(lengths.source("native", np.zeros(3, np.float32), each))
               for each in (records, sarek.soa(records))}  # fmt: skip
    assert len(sources) == 2
    again = lengths.source("native", np.zeros(3, np.float32), sarek.soa(records))
    assert again is lengths.source("native", np.zeros(3, np.float32), sarek.soa(records[:2]))


# --- IR -------------------------------------------------------------------------------------------


def test_columns_in_ir():
    """The text says which column a parameter is, and reads back."""
    kernel = lengths.ir(sarek.float32[:], sarek.soa(np.zeros(3, Point)))
    shown = text(kernel)
    assert "= column 1 0 array(f32, global, 1, C, in columns record " in shown
    assert text(parse(shown)) == shown
    verify(parse(shown))
    with pytest.raises(InvalidIR, match="no column 2 of its records"):
        verify(parse(shown.replace("column 1 1", "column 1 2")))
    with pytest.raises(InvalidIR, match="but not both"):
        verify(parse(shown.replace("column 1 1", "argument 1")))
    with pytest.raises(InvalidIR, match="but not both"):
        verify(parse(shown.replace("in columns", "in")))


@on_devices
def test_ir_made_by_hand(device):
    """`run_vectors` takes columns where the IR has them, and nowhere else."""
    records = np.array([(1, 2), (3, 4), (5, 6)], Point)
    kernel = lengths.ir(sarek.float32[:], sarek.soa(records))
    out = sarek.zeros(3, np.float32)
    execute.run_vectors(device, kernel, [out, sarek.soa(records)], 4, 1)
    assert out.tolist() == [9, 29, 65]
    with pytest.raises(
        ArgumentTypeError, match=r"its IR declares a 1-D array of records .* in columns"
    ):
        execute.run_vectors(device, kernel, [out, records], 4, 1)


def test_the_oracle_names_the_number():
    """An index out of bounds and its element are told as the user writes them."""

    @sarek.kernel
    def beyond(p, n):
        p[n].grid[1, 1] = 3

    with pytest.raises(OutOfBounds, match=r"p\[n\].grid|index 7"):
        beyond.launch(sarek.soa(bodies(5)), 7, grid=1, block=1, device="interpreter")

    @sarek.kernel
    def race(p):
        p[2].grid[1, 0] = sarek.global_idx.x

    with pytest.raises(sarek.DataRace, match=r"'p\[2\]\.grid\[3\]'"):
        race.launch(sarek.soa(bodies(5)), grid=1, block=2, device="interpreter")


# --- the host's side ------------------------------------------------------------------------------


def test_reading():
    """Records, fields, parts, iteration, comparison, as of the array that it was made of."""
    v, model = sarek.soa(bodies()), bodies()
    assert v.dtype == BODY
    assert (v.shape, v.ndim, v.size, len(v)) == ((20,), 1, 20, 20)
    assert v.nbytes == 20 * (1 + 4 + 8 + 12 + 8 + 16)
    assert v[3] == model[3]
    assert v[-1] == model[-1]
    assert v[3].dtype == BODY
    assert (v["pos"]["y"] == model["pos"]["y"]).all()
    assert (v["z"] == model["z"]).all()
    assert v["z"][4] == model["z"][4]
    assert v["grid"].shape == (20, 2, 3)
    assert (v["ends"]["low"] == model["ends"]["low"]).all()
    assert (v["ends"][2:4] == model["ends"][2:4]).all()
    assert (v[...] == model).all()
    assert v[..., None].shape == (20, 1)
    assert [record.tobytes() for record in v] == [record.tobytes() for record in model]
    assert sarek.soa(np.ones(2, Point)).tolist() == [(1, 1), (1, 1)]
    assert (pickle.loads(pickle.dumps(v)) == model).all()
    assert (v.copy() == model).all()
    assert repr(v[:1]).startswith("soa([(0, (0., 0.)")
    assert np.asarray(v).flags.writeable is False
    assert np.array(v).flags.writeable


def test_a_record_that_was_read_cannot_be_written_by_mistake():
    """It is a copy, and says so; of a vector in rows too."""
    for v in (sarek.soa(bodies()), sarek.vector(bodies())):
        with pytest.raises(ValueError, match="read-only"):
            v[3]["id"] = 1
        v["id"][3] = 77
        assert v[3]["id"] == 77


@on_devices
def test_writing(device):
    """Records, fields, parts and index arrays; the device sees each of them."""
    v, model = sarek.soa(bodies()), bodies()
    for target in (v, model):
        target[3] = model[7].copy()
        target["pos"]["x"][:4] = 9
        target["z"] = 3j
        target[5:7] = bodies(2)
        target[[1, 2]] = bodies(2)
        target[-1] = (1, (2, 3), 4, 5j, (6, 7))
        target["ends"][0] = (8, 9)
    v.to(device)
    move.launch(v, 1.0, grid=1, block=32, device=device)
    moved(model, 1.0)
    assert (v == model).all()
    with v.host() as array:
        array["id"] += 1
    model["id"] += 1
    move.launch(v, 2.0, grid=1, block=32, device=device)
    moved(model, 2.0)
    v.free(device)
    assert (v == model).all()
    v.fill(model[2])
    assert (v == np.full(20, model[2], BODY)).all()


@on_devices
def test_moving_by_hand(device):
    v = sarek.soa(bodies())
    assert v.to(device) is v
    assert v.is_current(device)
    move.launch(v, 1.0, grid=1, block=32, device=device)
    v.free()
    assert v.is_current()


# --- refusals -------------------------------------------------------------------------------------


def test_what_has_no_records():
    """It is refused by name, with what to do."""
    with pytest.raises(TypeError, match=r"takes an array of records: it has float32\n.*vector"):
        sarek.soa(np.zeros(3, np.float32))
    with pytest.raises(TypeError, match="field 'o' is object"):
        sarek.soa(np.zeros(3, [("o", object)]))
    with pytest.raises(TypeError, match="byte order"):
        sarek.soa(np.zeros(3, [("o", ">f4")]))


def test_indices_that_are_refused():
    v = sarek.soa(bodies())
    with pytest.raises(ValueError, match="one field name as its index"):
        v[[1, 2]]
    with pytest.raises(ValueError, match="one field name as its index"):
        v[["id", "z"]]
    with pytest.raises(ValueError, match="no field 'mass'"):
        v["mass"]
    with pytest.raises(IndexError):
        v[20]
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(v, copy=False)


@on_devices
def test_arguments_that_are_refused(device):
    """Nothing moves, and nothing changes."""
    v, model = sarek.soa(bodies()), bodies()
    counters.reset()
    with pytest.raises(ArgumentTypeError, match="'p' is a field of complex numbers of records"):
        move.launch(v["z"], 1.0, grid=1, block=32, device=device)
    with pytest.raises(CompileError):
        move.launch(v["pos"], 1.0, grid=1, block=32, device=device)
    shared = v["grid"].view(np.uint8)[:, 0, 1:5].view(np.int16)
    with pytest.raises(InvalidArgument, match="not aligned to its elements and overlaps"):
        rows.launch(shared, v, grid=1, block=8, device=device)
    if execute.supports_language(device, Language.OPENCL):
        source = "kernel void f(global float *x, int n) {}"
        with pytest.raises(ArgumentTypeError, match="records in columns, and an external"):
            execute.run_source(device, source, Language.OPENCL, "f", [v], 1, 1)
    assert (counters.launches, counters.uploads, counters.downloads) == (0, 0, 0)
    assert (v == model).all()


@on_devices
def test_restrict_knows_columns(device):
    """A written column and a field of the same records overlap; two columns do not."""

    @sarek.kernel(restrict=True)
    def scale(p, x):
        i = sarek.global_idx.x
        if i < len(p):
            p[i].pos.x = 2 * x[i]

    v, model = sarek.soa(bodies()), bodies()
    with pytest.raises(InvalidArgument, match="'p', which it writes, overlaps 'x' in 80 bytes"):
        scale.launch(v, v["pos"]["x"], grid=1, block=32, device=device)
    x = sarek.arange(20, dtype=np.float32)
    scale.launch(v, x, grid=1, block=32, device=device)
    model["pos"]["x"] = 2 * np.arange(20)
    assert (v == model).all()


@on_devices
def test_a_stated_record(device):
    """An annotation of records takes them in columns too, and refuses others."""

    @sarek.kernel
    def first(out, p: PointRecord[:]):
        out[0] = p[1].y

    out = sarek.zeros(1, np.float32)
    first.launch(out, sarek.soa(np.array([(1, 2), (3, 4)], Point)), grid=1, block=1, device=device)
    assert out[0] == 4
    with pytest.raises(ArgumentTypeError, match="pass an array of this dtype"):
        first.launch(out, sarek.soa(bodies()), grid=1, block=1, device=device)


Maybe = sarek.variant("Maybe", Some=sarek.int32, Two=(sarek.int16, sarek.float32), Nothing=None)


@sarek.kernel
def turn(q, p):
    i = sarek.global_idx.x
    if i < len(p):
        match p[i].maybe:
            case Maybe.Some(n):
                q[i].maybe = Maybe.Two(n, 0.5)
            case Maybe.Two(n, _):
                q[i].maybe = Maybe.Some(n + 1)
            case _:
                q[i].maybe = Maybe.Nothing()


@on_devices
def test_variants_in_columns(device):
    """Only the case that a value is of is read and put together."""
    kind = np.dtype([("id", np.int8), ("maybe", Maybe.dtype)])
    records, expected = np.zeros(3, kind), np.zeros(3, kind)
    values = Maybe.Some(7), Maybe.Two(3, 1.5), Maybe.Nothing()
    turned = Maybe.Two(7, 0.5), Maybe.Some(4), Maybe.Nothing()
    for k in range(3):
        records[k]["maybe"], expected[k]["maybe"] = np.asarray(values[k]), np.asarray(turned[k])
    p, q = sarek.soa(records), sarek.soa(np.zeros(3, kind))
    assert np.asarray(p).tobytes() == records.tobytes()
    turn.launch(q, p, grid=1, block=4, device=device)
    assert np.asarray(q).tobytes() == expected.tobytes()


def test_a_vector_that_can_be_read_only():
    v = sarek.soa(bodies(3))
    column = v.columns[0]._like(np.broadcast_to(v.columns[0]._array, 3))
    fixed = sarek.SoAVector(v.dtype, v.shape, (column, *v.columns[1:]))
    assert fixed.readonly
    with pytest.raises(ReadOnlyWrite):
        fixed[0] = v[0]
    with pytest.raises(CompileError):
        move.launch(fixed, 1.0, grid=1, block=4, device="native")
