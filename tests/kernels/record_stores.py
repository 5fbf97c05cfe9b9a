"""Stores of several numbers at once: sub-arrays, tuples, a number into all of an array."""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch
from tests.kernels.records import filled

corpus = Corpus()

PART = [("a", np.float64), ("b", np.uint8)]
FIELDS = [
    ("kind", np.uint8),
    ("v", np.float32, (3,)),
    ("w", np.int32, (6,)),
    ("m", np.int16, (2, 3)),
    ("pos", [("x", np.float32), ("y", np.float32)]),
    ("parts", PART, (2,)),
]
PACKED = np.dtype(FIELDS)
ALIGNED = np.dtype([*FIELDS[:5], ("parts", np.dtype(PART, align=True), (2,))], align=True)
Body = sarek.record(ALIGNED)


@sarek.kernel
def exchange(p, q, rows, table):
    i = sarek.global_idx.x
    if i < len(p):
        p[i].v = q[i].v
        p[i]["w"] = q[i]["w"][::-1]
        p[i].m = q[i].m[::-1, ::-1]
        q[i].v = (1, p[i].v[0], 2.5)
        q[i].v = (q[i].v[2], q[i].v[0], q[i].v[1])
        q[i].w = q[i].w[::-1]
        q[i].m = ((1, 2, 3), p[i].m[0])
        q[i].pos = (q[i].pos.y, q[i].pos.x)
        if i % 2:
            p[i].w = table[:, i % 2]
            p[i].v = rows[i]
        elif i % 4:
            p[i].w, p[i].v = 7, -0.5
        q[i].parts = p[i].parts
        p[i].parts = ((1.5, 3), q[i].parts[0])
        p[i].parts[1] = (p[i].parts[0].a + 1, i)
        q[i].kind = len(q[i].v)


def _exchanged(p, q, rows, table):
    p, q = p.copy(), q.copy()
    for i in range(len(p)):
        old = q[i].copy()
        p[i]["v"], p[i]["w"], p[i]["m"] = old["v"], old["w"][::-1], old["m"][::-1, ::-1]
        q[i]["v"] = (2.5, 1, old["v"][0])
        q[i]["w"] = old["w"][::-1].copy()
        q[i]["m"] = ((1, 2, 3), p[i]["m"][0])
        q[i]["pos"] = (old["pos"]["y"], old["pos"]["x"])
        if i % 2:
            p[i]["w"], p[i]["v"] = table[:, i % 2], rows[i]
        elif i % 4:
            p[i]["w"], p[i]["v"] = 7, -0.5
        q[i]["parts"] = p[i]["parts"]
        p[i]["parts"]["a"], p[i]["parts"]["b"] = (1.5, 2.5), (3, i)
        q[i]["kind"] = 3
    return p, q


def _exchange(rng, dtype):
    p, q = filled(rng, dtype, 18), filled(rng, dtype, 18)
    rows, table = rng.normal(size=(18, 3)), rng.integers(0, 99, (6, 2))
    rest = rows[:, ::-1], table.astype(np.int64)
    return Launch(2, 16, (p, q, *rest), (*_exchanged(p, q, *rest), None, None))


@corpus.add(exchange)
def whole_sub_arrays_of_aligned_records(rng):
    return _exchange(rng, ALIGNED)


@corpus.add(exchange)
def whole_sub_arrays_of_packed_records(rng):
    return _exchange(rng, PACKED)


@sarek.function
def made(row, k):
    return Body(v=(k, row[1], 0.5), m=(row, row[::-1]), w=3, pos=(k, row[0]))


@sarek.kernel
def construct(out, p, r):
    """Values: constructed, changed, passed, carried on; in shared and in local memory."""
    tile = sarek.shared.array(16, ALIGNED)
    mine = sarek.local.array(2, Body)
    t = sarek.thread_idx.x
    tile[t].w = p[t].w
    tile[t].v = tile["w"][t, 2:5]
    tile[t].m = 1
    mine[1] = (t, tile[t].v, r.w, ((1, 2, 3), (4, 5, 6)), r.pos, r.parts)
    mine[0].v = mine[1].v[::-1]
    sarek.barrier()
    held = made(p[t].m[1], t)
    for k in range(3):
        held.v = (held.v[1], held.v[2], held.v[0])
        held.pos = (held.pos.y, held.pos.x)
        held.w[k] = k
    held.w = held.w[::-1]
    held.parts = r.parts
    out[t, 0] = held
    out[t, 1] = mine[1]
    out[t, 1].w = tile[15 - t].w
    out[t, 1].m[0, 0] = mine[0].v[0]


def _constructed(p, r):
    out = np.zeros((16, 2), ALIGNED)
    for t in range(16):
        row = p[t]["m"][1]
        first = out[t, 0]
        first["v"], first["m"] = (t, row[1], 0.5), (row, row[::-1])
        first["pos"] = (row[0], t)
        first["w"], first["parts"] = (3, 3, 3, 2, 1, 0), r["parts"]
        v = p[t]["w"][2:5]
        out[t, 1] = (t, v, p[15 - t]["w"], ((1, 2, 3), (4, 5, 6)), r["pos"], r["parts"])
        out[t, 1]["m"][0, 0] = np.float32(v[2])
    return out


@corpus.add(construct)
def records_of_tuples_and_sub_arrays(rng):
    p, r = filled(rng, ALIGNED, 16), filled(rng, ALIGNED, 1)[0]
    p["w"] %= 100
    return Launch(1, 16, (np.zeros((16, 2), ALIGNED), p, r), (_constructed(p, r), None, None))


WAVE = [
    ("n", np.uint8),
    ("z", np.complex64, (2,)),
    ("zs", np.complex128, (5,)),
    ("f", np.float32, (5,)),
]


@sarek.kernel
def waves(p, q, rows):
    i = sarek.global_idx.x
    if i < len(p):
        p[i].z = q[i].z[::-1]
        p[i].zs = q[i].f
        q[i].zs = q[i].zs[::-1]
        q[i].z = (1j, q[i].z[0])
        if i % 3 == 0:
            p[i].zs = rows[i]
            q[i].f = rows.real[i]
        elif i % 3 == 1:
            p[i].zs, q[i].f = 2 - 1j, p[i].zs.imag


def _waves(rng, dtype):
    p, q = np.zeros(12, dtype), np.zeros(12, dtype)
    rows = (rng.normal(size=(12, 5)) + 1j * rng.normal(size=(12, 5))).astype(np.complex64)
    for name in ("z", "zs"):
        q[name] = rng.normal(size=q[name].shape) + 1j * rng.normal(size=q[name].shape)
    q["f"] = rng.normal(size=(12, 5))
    first, second = p.copy(), q.copy()
    first["z"], first["zs"] = q["z"][:, ::-1], q["f"]
    second["zs"] = q["zs"][:, ::-1]
    second["z"][:, 0], second["z"][:, 1] = 1j, q["z"][:, 0]
    first["zs"][::3], second["f"][::3] = rows[::3], rows.real[::3]
    first["zs"][1::3], second["f"][1::3] = 2 - 1j, -1
    return Launch(1, 16, (p, q, rows), (first, second, None))


@corpus.add(waves)
def whole_complex_sub_arrays(rng):
    return _waves(rng, np.dtype(WAVE, align=True))


@corpus.add(waves)
def whole_packed_complex_sub_arrays(rng):
    return _waves(rng, np.dtype(WAVE))
