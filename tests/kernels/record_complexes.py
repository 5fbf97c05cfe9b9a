"""Complex fields of records: alone, in sub-arrays, nested, packed, in every memory, in variants."""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()

INNER = [("w", np.complex128), ("n", np.uint8)]
FIELDS = [
    ("k", np.uint8),
    ("z", np.complex64),
    ("zs", np.complex64, (2, 3)),
    ("inner", INNER, (2,)),
    ("g", INNER),
]
PACKED = np.dtype(FIELDS)
ALIGNED = np.dtype(
    [
        *FIELDS[:3],
        ("inner", np.dtype(INNER, align=True), (2,)),
        ("g", np.dtype(INNER, align=True)),
    ],
    align=True,
)
Inner = sarek.record(np.dtype(INNER))


def filled(rng, dtype, count):
    """Records whose numbers are random; the bytes between them are zeros."""
    made = np.zeros(count, dtype)
    made["k"] = rng.integers(0, 100, count)
    for name in ("z", "zs"):
        shape = made[name].shape
        made[name].real, made[name].imag = rng.normal(size=shape), rng.normal(size=shape)
    for field in (made["inner"], made["g"]):
        field["w"] = rng.normal(size=field.shape) + 1j * rng.normal(size=field.shape)
        field["n"] = rng.integers(0, 100, field.shape)
    return made


@sarek.function
def total(row, start):
    for k in range(len(row)):
        start += row[k]
    row[-1] = start
    return start


@sarek.function
def swapped(g):
    return Inner(w=sarek.complex128(g.w.imag, g.w.real), n=g.n + 1)


@sarek.kernel
def turn(p, q, sums):
    tile = sarek.shared.array(16, q.dtype)
    own = sarek.local.array((2, 2), q.dtype)
    t, i = sarek.thread_idx.x, sarek.global_idx.x
    tile[t] = q[i]
    sarek.barrier()
    p[i] = tile[15 - t]
    sarek.barrier()
    p[i].z = p[i].z.conjugate() + tile["z"][t]
    p["z"][i] += 2j
    p["zs"].real[i, 0, 1] = 3
    tile[t].zs[1, t % 3] = p[i]["zs"][0, -1] - 1
    sums[i, 0] = total(p[i].zs[0], 0.5) + total(tile[t].zs[1, ::-1], p["z"][i])
    sums[i, 1] = p["zs"][i, 1, 2] - tile["zs"].imag[t, 0, 0] + p[i].inner["w"][1]
    p[i].g = swapped(p[i].inner[1])
    copy = p[i].copy()
    if copy.g.w != 0:
        copy.z = 1j - copy.z
    own[1, t % 2] = copy
    p[i].inner[0] = Inner(own[1, t % 2].z, n=3)
    p[i].zs[1, 2] = own["zs"][1, t % 2, 0, 0]


def _turned(q):
    p = q.reshape(2, 16)[:, ::-1].reshape(32).copy()
    tile = q.copy()
    p["z"] = p["z"].conj() + tile["z"]
    p["z"] += np.complex64(2j)
    p["zs"].real[:, 0, 1] = 3
    i = np.arange(32)
    tile["zs"][i, 1, (i % 16) % 3] = p["zs"][:, 0, 2] - np.complex64(1)
    sums = np.zeros((32, 2), np.complex128)
    first = np.complex64(0.5) + p["zs"][:, 0, 0] + p["zs"][:, 0, 1] + p["zs"][:, 0, 2]
    p["zs"][:, 0, 2] = first
    second = p["z"] + tile["zs"][:, 1, 2] + tile["zs"][:, 1, 1] + tile["zs"][:, 1, 0]
    tile["zs"][:, 1, 0] = second
    sums[:, 0] = first + second
    sums[:, 1] = p["zs"][:, 1, 2] - tile["zs"].imag[:, 0, 0] + p["inner"]["w"][:, 1]
    w = p["inner"]["w"][:, 1]
    p["g"]["w"].real, p["g"]["w"].imag = w.imag, w.real
    p["g"]["n"] = p["inner"]["n"][:, 1] + 1
    z = np.where(p["g"]["w"] != 0, np.complex64(1j) - p["z"], p["z"])
    p["inner"]["w"][:, 0], p["inner"]["n"][:, 0] = z, 3
    p["zs"][:, 1, 2] = p["zs"][:, 0, 0]
    return p, sums


def _turn(rng, dtype):
    q = filled(rng, dtype, 32)
    p, sums = _turned(q)
    return Launch(2, 16, (np.zeros_like(q), q, poison((32, 2), np.complex128)), (p, None, sums))


@corpus.add(turn)
def complex_fields_of_aligned_records(rng):
    return _turn(rng, ALIGNED)


@corpus.add(turn)
def complex_fields_of_packed_records(rng):
    return _turn(rng, PACKED)


TABLE = np.zeros(3, ALIGNED)
TABLE["zs"] = np.arange(18).reshape(3, 2, 3) * (1 - 2j)
TABLE["g"]["w"] = [1j, -2, 0.5 + 0.25j]


@sarek.kernel
def looked_up(out, q, r):
    """Constant memory, the dynamic region, a record as an argument, a phi of values."""
    table = sarek.const.array_like(TABLE)
    tile = sarek.shared.array(0, q.dtype)
    t = sarek.thread_idx.x
    tile[t] = q[t]
    sarek.barrier()
    best = r
    for k in range(3):
        other = tile[(t + k) % len(tile)].copy()
        if other.z.real > best.z.real:
            best = other
    out[t] = best
    out[t].z = table[t % 3].zs[1, 2] * r.zs[0, t % 3] + table["g"]["w"][t % 3].imag
    out[t].g = r.g


def _looked_up(rng, dtype):
    q, r = filled(rng, dtype, 8), filled(rng, dtype, 2)[1]
    out = np.zeros_like(q)
    for t in range(8):
        best = r
        for k in range(3):
            if q[(t + k) % 8]["z"].real > best["z"].real:
                best = q[(t + k) % 8]
        out[t] = best
        a, b = TABLE["zs"][t % 3, 1, 2], r["zs"][0, t % 3]
        product = np.complex64(
            complex(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)
        )
        out["z"][t] = np.complex128(product) + TABLE["g"]["w"][t % 3].imag
    out["g"] = r["g"]
    return Launch(
        1, 8, (np.zeros_like(q), q, r), (out, None, None), shared_bytes=8 * dtype.itemsize
    )


@corpus.add(looked_up)
def complex_fields_in_every_memory(rng):
    return _looked_up(rng, ALIGNED)


@corpus.add(looked_up)
def packed_complex_fields_in_every_memory(rng):
    return _looked_up(rng, PACKED)


Root = sarek.variant(
    "Root",
    Real=(sarek.float32, sarek.float32),
    Complex=sarek.complex64,
    Field=np.dtype(INNER),
)


@sarek.function
def largest(root):
    match root:
        case Root.Real(a, b):
            return np.complex64(max(a, b))
        case Root.Complex(z):
            return z
        case Root.Field(g):
            return np.complex64(g.w)


@sarek.kernel
def solve(out, largests, b, c):
    """The roots of x * x + 2 * b * x + c."""
    i = sarek.global_idx.x
    if i < len(b):
        d = b[i] * b[i] - c[i]
        root = Root.Real(-b[i], 0) if d == 0 else Root.Complex(complex(-b[i], d))
        if d > 9:
            root = Root.Field(Inner(w=d * 1j, n=2))
        out[i] = root
        largests[i] = largest(out[i])


@corpus.add(solve)
def complex_numbers_in_variants(rng):
    b = rng.integers(-4, 4, 20).astype(np.float32)
    c = rng.integers(0, 6, 20).astype(np.float32)
    d = b * b - c
    values, largests = [], []
    for x, y in zip(b, d, strict=True):
        if y > 9:
            values.append(Root.Field(np.array((y * 1j, 2), INNER)))
            largests.append(y * 1j)
        elif y == 0:
            values.append(Root.Real(-x, 0))
            largests.append(max(-x, 0))
        else:
            values.append(Root.Complex(complex(-x, y)))
            largests.append(complex(-x, y))
    arguments = (Root.array([Root.Real(0, 0)] * 20), np.zeros(20, np.complex64), b, c)
    expected = (Root.array(values), np.array(largests, np.complex64), None, None)
    return Launch(2, 16, arguments, expected)
