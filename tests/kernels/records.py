"""Records: fields, nesting, fixed arrays, packing, values, shared, local and constant memory."""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()

VECTOR = np.dtype([("x", np.float32), ("y", np.float32)])
PARTS = [("a", np.float64), ("b", np.uint8)]
FIELDS = [
    ("kind", np.uint8),
    ("pos", VECTOR),
    ("id", np.int64),
    ("cells", np.int16, (2, 3)),
    ("parts", PARTS, (2,)),
    ("ok", np.bool_),
]
ALIGNED = np.dtype(
    [
        ("kind", np.uint8),
        ("pos", np.dtype(VECTOR.descr, align=True)),
        ("id", np.int64),
        ("cells", np.int16, (2, 3)),
        ("parts", np.dtype(PARTS, align=True), (2,)),
        ("ok", np.bool_),
    ],
    align=True,
)
PACKED = np.dtype(FIELDS)
Vector = sarek.record(VECTOR)


def filled(rng, dtype, count):
    """Records with every number at random; the bytes between them are zeros."""
    made = np.zeros(count, dtype)
    _fill(rng, made)
    return made


def _fill(rng, array):
    if array.dtype.names:
        for name in array.dtype.names:
            _fill(rng, array[name])
    elif array.dtype.kind == "f":
        array[...] = rng.normal(size=array.shape) * 100
    elif array.dtype.kind == "b":
        array[...] = rng.integers(0, 2, array.shape)
    else:
        info = np.iinfo(array.dtype)
        array[...] = rng.integers(info.min >> 1, info.max >> 1, array.shape)


@sarek.kernel
def change(p, out):
    i = sarek.global_idx.x
    if i < len(p):
        p[i].pos.x = p[i].pos.x * 2 + p[i]["pos"]["y"]
        p[i]["pos"].y += 1
        r = p[i]
        r.id = r.id * 3 - 1
        r.cells[1, i % 3] = 7
        total = r.cells[0, 0] + r.cells[-1, -1]
        for j in range(2):
            r.parts[j].a = r.parts[j].a + j
            total += r.parts[j].b
        r.ok = not r.ok
        out[i] = r.pos.x + total


def _changed(p):
    x = p.copy()
    x["pos"]["x"] = x["pos"]["x"] * np.float32(2) + x["pos"]["y"]
    x["pos"]["y"] += np.float32(1)
    x["id"] = x["id"] * 3 - 1
    x["cells"][np.arange(len(x)), 1, np.arange(len(x)) % 3] = 7
    total = x["cells"][:, 0, 0] + x["cells"][:, 1, 2]
    x["parts"]["a"] += np.arange(2)
    total = total + x["parts"]["b"][:, 0] + x["parts"]["b"][:, 1]
    x["ok"] = ~x["ok"]
    return x, (x["pos"]["x"] + total).astype(np.float64)


@corpus.add(change)
def fields_of_aligned_records(rng):
    p = filled(rng, ALIGNED, 45)
    expected, out = _changed(p)
    return Launch(3, 16, (p, poison(45, np.float64)), (expected, out))


@corpus.add(change)
def fields_of_packed_records(rng):
    p = filled(rng, PACKED, 45)
    expected, out = _changed(p)
    return Launch(3, 16, (p, poison(45, np.float64)), (expected, out))


@corpus.add(change)
def fields_of_every_other_record_backwards(rng):
    p = filled(rng, ALIGNED, 90)[::-2]
    expected, out = _changed(p)
    return Launch(3, 16, (p, poison(45, np.float64)), (expected, out))


@corpus.add(change)
def fields_of_records_at_an_odd_address(rng):
    memory = np.zeros(20 * PACKED.itemsize + 1, np.uint8)[1:]
    p = memory.view(PACKED)
    p[...] = filled(rng, PACKED, 20)
    expected, out = _changed(p)
    return Launch(2, 16, (p, poison(20, np.float64)), (expected, out))


@sarek.kernel
def whole(q, p):
    i = sarek.global_idx.x
    if i < len(p):
        q[i] = p[-i - 1]
        c = q[i].copy()
        c.pos.x = 5.0
        c.cells[0, 1] = i
        if i % 3 == 0:
            q[i].pos = c.pos
        elif i % 3 == 1:
            q[i] = c


def _whole(p):
    q = p[::-1].copy()
    c = q.copy()
    c["pos"]["x"] = 5
    c["cells"][:, 0, 1] = np.arange(len(p))
    q["pos"][::3] = c["pos"][::3]
    q[1::3] = c[1::3]
    return q


@corpus.add(whole)
def whole_aligned_records(rng):
    p = filled(rng, ALIGNED, 40)
    return Launch(3, 16, (np.zeros_like(p), p), (_whole(p), None))


@corpus.add(whole)
def whole_packed_records(rng):
    p = filled(rng, PACKED, 40)
    return Launch(3, 16, (np.zeros_like(p), p), (_whole(p), None))


@corpus.add(whole)
def packed_records_into_aligned_ones(rng):
    p = filled(rng, PACKED, 40)
    expected = _whole(p)
    made = np.zeros(40, ALIGNED)
    _assign(made, expected)
    return Launch(3, 16, (np.zeros(40, ALIGNED), p), (made, None))


def _assign(target, source):
    for name in target.dtype.names:
        if target.dtype[name].names:
            _assign(target[name], source[name])
        else:
            target[name] = source[name]


@sarek.function
def length2(v):
    v.x = v.x * v.x
    v.y *= v.y
    return v.x + v.y


@sarek.function
def scaled(v, factor):
    return Vector(x=v.x * factor, y=v.y * factor)


@sarek.function
def longer(a, b):
    if length2(a) > length2(b):
        return a, length2(a)
    return b, length2(b)


@sarek.function
def first_of(p, i):
    return p[i]


@sarek.kernel
def vectors(out, norms, p, q):
    i = sarek.global_idx.x
    if i < len(p):
        best, norm = longer(p[i], scaled(q[i], 0.5))
        norms[i] = norm
        out[i] = best
        out[i].y += length2(first_of(q, i)) - length2(q[i])


@corpus.add(vectors)
def records_through_functions(rng):
    p, q = filled(rng, VECTOR, 50), filled(rng, VECTOR, 50)
    half = q.copy()
    half["x"] *= np.float32(0.5)
    half["y"] *= np.float32(0.5)
    norm = [v["x"] * v["x"] + v["y"] * v["y"] for v in (p, half)]
    expected = np.where(norm[0] > norm[1], p, half)
    return Launch(
        4,
        16,
        (np.zeros_like(p), poison(50, np.float32), p, q),
        (expected, np.where(norm[0] > norm[1], *norm), None, None),
    )


@sarek.kernel
def largest(out, p, count):
    t = sarek.global_idx.x
    best = p[t].copy()
    previous = p[t].copy()
    for k in range(count):
        candidate = p[t + 16 * k].copy()
        if candidate.x > best.x:
            previous = best
            best = candidate
        elif candidate.y > 50.0:
            previous, best = best, previous
    out[t, 0] = best
    out[t, 1] = previous


@corpus.add(largest)
def records_carried_round_a_loop(rng):
    p = filled(rng, VECTOR, 160)
    out = np.zeros((16, 2), VECTOR)
    for t in range(16):
        best = previous = p[t]
        for k in range(10):
            candidate = p[t + 16 * k]
            if candidate["x"] > best["x"]:
                previous, best = best, candidate
            elif candidate["y"] > 50:
                previous, best = best, previous
        out[t, 0], out[t, 1] = best, previous
    return Launch(2, 8, (np.zeros_like(out), p, 10), (out, None, None))


@sarek.kernel
def shared_records(out, p):
    tile = sarek.shared.array(32, ALIGNED)
    mine = sarek.local.array((2, 2), Vector)
    t = sarek.thread_idx.x
    tile[t] = p[t]
    tile[t].id += 1
    sarek.barrier()
    other = tile[31 - t]
    mine[0, 0] = other.pos
    mine[0, 1] = Vector(1.0, y=other.pos.x)
    mine[1, 1] = Vector(y=2)
    mine[1, 0] = mine[0, 0]
    mine[1, 0].x += mine[0, 1].x + mine[1, 1].x + mine[1, 1].y
    out[t] = other
    out[t].pos = mine[1, 0]
    for j in range(3):
        out[t].cells[0, j] = tile["cells"][t, 1, j]
    out[t].parts[0].a = other.parts[1].a


def _shared(p):
    out = p[::-1].copy()
    out["id"] += 1
    out["pos"]["x"] += np.float32(3)
    out["cells"][:, 0] = p["cells"][:, 1]
    out["parts"]["a"][:, 0] = out["parts"]["a"][:, 1]
    return out


@corpus.add(shared_records)
def records_in_shared_and_local_memory(rng):
    p = filled(rng, ALIGNED, 32)
    return Launch(1, 32, (np.zeros_like(p), p), (_shared(p), None))


@sarek.kernel
def dynamic_records(out, p):
    tile = sarek.shared.array(0, p.dtype)
    t = sarek.thread_idx.x
    tile[t] = p[t]
    sarek.barrier()
    out[t] = tile[len(tile) - 1 - t]
    sarek.barrier()
    tile["pos"][t].x = t
    sarek.barrier()
    out[t].pos.y = tile["pos"]["x"][31 - t] + tile["cells"][t, 1, 2]


def _dynamic(rng, dtype):
    p = filled(rng, dtype, 32)
    out = p[::-1].copy()
    out["pos"]["y"] = np.arange(32)[::-1].astype(np.float32) + p["cells"][:, 1, 2]
    arguments = (np.zeros_like(p), p)
    return Launch(1, 32, arguments, (out, None), shared_bytes=32 * dtype.itemsize)


@corpus.add(dynamic_records)
def aligned_records_in_the_dynamic_region(rng):
    return _dynamic(rng, ALIGNED)


@corpus.add(dynamic_records)
def packed_records_in_the_dynamic_region(rng):
    return _dynamic(rng, PACKED)


TABLE = np.array([(1.5, -2.0), (0.25, 8.0), (-0.0, 3.0)], VECTOR)


@sarek.kernel
def looked_up(out, keys):
    table = sarek.const.array_like(TABLE)
    i = sarek.global_idx.x
    if i < len(keys):
        entry = table[keys[i]]
        out[i] = entry
        out[i].x += table["y"][keys[i]]


@corpus.add(looked_up)
def constant_records(rng):
    keys = rng.integers(0, 3, 20).astype(np.int32)
    expected = TABLE[keys]
    expected["x"] += expected["y"]
    return Launch(2, 16, (np.zeros(20, VECTOR), keys), (expected, None))


@sarek.kernel
def count_kinds(counters, kinds):
    i = sarek.global_idx.x
    if i < len(kinds):
        sarek.atomic.add(counters["count"], kinds[i], 1)
        sarek.atomic.max(counters["last"], kinds[i], i)


@corpus.add(count_kinds)
def atomics_on_fields(rng):
    dtype = np.dtype([("count", np.int32), ("last", np.int32)])
    kinds = rng.integers(0, 4, 100).astype(np.int32)
    expected = np.zeros(4, dtype)
    expected["count"] = np.bincount(kinds, minlength=4)
    expected["last"] = [np.flatnonzero(kinds == k)[-1] for k in range(4)]
    return Launch(4, 32, (np.zeros(4, dtype), kinds), (expected, None))


@sarek.function
def weighted(values, cells, k):
    return values[k] * cells[k % 2, k % 3]


@sarek.function
def move_up(values, cells, i):
    cells[0, i % 3] += 1
    values[i] *= 2


@sarek.kernel
def field_arrays(out, p):
    xs = p["pos"]["x"]
    i = sarek.global_idx.x
    if i < len(p):
        row = p[i]
        out[i] = weighted(p["pos"]["y"][::-1], row.cells, i) + weighted(xs, p["cells"][i], i)
        move_up(p["pos"]["x"], row.cells, i)


def _field_arrays(rng, dtype):
    p = filled(rng, dtype, 20)
    i = np.arange(20)
    cells = p["cells"][i, i % 2, i % 3]
    out = (p["pos"]["y"][::-1] * cells + p["pos"]["x"] * cells).astype(np.float32)
    expected = p.copy()
    expected["cells"][i, 0, i % 3] += 1
    expected["pos"]["x"] *= np.float32(2)
    return Launch(2, 16, (poison(20, np.float32), p), (out, expected))


@corpus.add(field_arrays)
def fields_as_arrays_of_functions(rng):
    return _field_arrays(rng, ALIGNED)


@corpus.add(field_arrays)
def packed_fields_as_arrays_of_functions(rng):
    return _field_arrays(rng, PACKED)


@sarek.kernel
def parts_of_values(out, p):
    """The first number of the value is no array, the records in it are."""
    i = sarek.global_idx.x
    if i < len(p):
        value = p[i].copy()
        value.parts[1].a = value.parts[i % 2].a * 2
        value.parts[0].b += value.parts[-1].b
        out[i, 0] = value.parts[i % 2].a
        out[i, 1] = value.parts[0].b


@corpus.add(parts_of_values)
def arrays_of_records_in_values(rng):
    p = filled(rng, PACKED, 20)
    a, b, i = p["parts"]["a"].copy(), p["parts"]["b"], np.arange(20)
    a[:, 1] = a[i, i % 2] * 2
    expected = np.stack([a[i, i % 2], (b[:, 0] + b[:, 1]).astype(np.float64)], 1)
    return Launch(2, 16, (poison((20, 2), np.float64), p), (expected, None))


@sarek.kernel
def chosen(out, n):
    """Records that are chosen in expressions, while a loop changes what they were chosen from."""
    i = sarek.global_idx.x
    if i < len(out):
        a, b, total = Vector(1, 2), Vector(i, 5), Vector(0, 0)
        for k in range(n):
            one = a if k % 2 == 0 else b
            a = Vector(a.x * 2, b.y)
            b = Vector(b.y, a.x)
            total = added(total, one)
            total = added(a if k > i else total, (b if i > 3 else a) if k == 1 else one)
        out[i] = total


@sarek.function
def added(v, w):
    return Vector(v.x + w.x, v.y + w.y)


@corpus.add(chosen)
def records_chosen_by_conditional_expressions(rng):
    out = np.zeros(12, VECTOR)
    for i in range(len(out)):
        a, b, total = (1, 2), (i, 5), (0, 0)
        for k in range(5):
            one = a if k % 2 == 0 else b
            a = (a[0] * 2, b[1])
            b = (b[1], a[0])
            total = (total[0] + one[0], total[1] + one[1])
            left, right = a if k > i else total, (b if i > 3 else a) if k == 1 else one
            total = (left[0] + right[0], left[1] + right[1])
        out[i] = total
    return Launch(1, 16, (np.zeros(12, VECTOR), 5), (out, None))


# --- records from around the kernel ---------------------------------------------------------------

UNIT = Vector(1, 0)
PAIR = sarek.record([("shape", VECTOR), ("id", np.int64)])(Vector(0.5, -2), 7)
ELEMENT = np.array([((3, -4), 2**40)], PAIR.dtype)[0]


@sarek.function
def turned(v, by=UNIT):
    v.x, v.y = v.x * by.x - v.y * by.y, v.x * by.y + v.y * by.x
    return v


@sarek.kernel
def around(out, ids, n):
    i = sarek.global_idx.x
    if i < len(out):
        mine = PAIR.shape.copy()
        for _ in range(n):
            mine = turned(mine, ELEMENT["shape"])
        mine.x += UNIT.x
        if i % 3 == 0:
            out[i] = turned(mine)
        elif i % 3 == 1:
            out[i] = mine
        else:
            out[i] = PAIR.shape
        for each in (PAIR, ELEMENT):
            ids[i] = ids[i] * 2 + each.id


@corpus.add(around)
def records_from_around_the_kernel(rng):
    out = np.zeros(20, VECTOR)
    v, by = complex(0.5, -2), complex(3, -4)
    v = v * by * by + 1
    out["x"], out["y"] = v.real, v.imag
    out[2::3] = (0.5, -2)
    ids = rng.integers(0, 100, 20)
    expected = (ids * 2 + 7) * 2 + 2**40
    return Launch(2, 16, (np.zeros(20, VECTOR), ids, 2), (out, expected, None))
