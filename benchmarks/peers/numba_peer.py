"""Numba @njit(parallel=True) with prange, as its documentation teaches; fastmath off."""

import math
import os

import numba
import numpy as np
from numba import njit, prange

f32, i32, u32 = np.float32, np.int32, np.uint32
parallel = njit(parallel=True)


@parallel
def _touch(a):
    for i in prange(a.size):
        a[i] = 0


numba.set_num_threads(int(os.environ.get("BENCH_THREADS", "2")))
_touch(np.zeros(2))  # only now is the threading layer known
_SVML = "on" if numba.config.USING_SVML else "off"
VERSION = f"numba {numba.__version__}, {numba.threading_layer()}, SVML {_SVML}"


@parallel
def _vector_add(a, b, c):
    for i in prange(a.size):
        c[i] = a[i] + b[i]


def vector_add(i, o):
    return lambda: _vector_add(i["a"], i["b"], o["c"])


@parallel
def _triad(a, b, s, c):
    for i in prange(a.size):
        c[i] = a[i] + s * b[i]


def triad(i, o):
    s = f32(i["s"])
    return lambda: _triad(i["a"], i["b"], s, o["c"])


@parallel
def _saxpy(a, x, y):
    for i in prange(x.size):
        y[i] = a * x[i] + y[i]


def saxpy(i, o):
    a = f32(i["a"])
    return lambda: _saxpy(a, i["x"], o["y"])


@parallel
def _dot(x, y):
    s = 0.0
    for i in prange(x.size):
        s += x[i] * y[i]
    return s


def dot(i, o):
    def run():
        o["s"][0] = _dot(i["x"], i["y"])

    return run


@parallel
def _sum(x):
    s = 0.0
    for i in prange(x.size):
        s += x[i]
    return s


def reduction_sum(i, o):
    def run():
        o["s"][0] = _sum(i["x"])

    return run


@parallel
def _max(x):
    s = x[0]
    for i in prange(x.size):
        s = max(s, x[i])
    return s


def reduction_max(i, o):
    def run():
        o["s"][0] = _max(i["x"])

    return run


@parallel
def _scan(x, y, parts):
    size = (x.size + parts - 1) // parts
    total = np.zeros(parts + 1, np.int64)
    for p in prange(parts):
        total[p + 1] = x[p * size : (p + 1) * size].sum()
    total = np.cumsum(total)
    for p in prange(parts):
        src, dst = (
            x[p * size : (p + 1) * size],
            y[p * size : (p + 1) * size],
        )  # slices: no negative-index checks
        s = total[p]
        for i in range(src.size):
            s += src[i]
            dst[i] = s


def scan(i, o):
    return lambda: _scan(i["x"], o["y"], numba.get_num_threads())


@parallel
def _transpose(a, b):
    n, m = a.shape
    for i in prange(n):
        for j in range(m):
            b[j, i] = a[i, j]


def transpose_naive(i, o):
    return lambda: _transpose(i["a"], o["b"])


@parallel
def _transpose_tiled(a, b):
    n, m = a.shape
    for bi in prange(n // 16):
        for bj in range(m // 16):
            for j in range(16):
                for i in range(16):  # writes run along b's rows
                    b[bj * 16 + j, bi * 16 + i] = a[bi * 16 + i, bj * 16 + j]


def transpose_tiled(i, o):
    return lambda: _transpose_tiled(i["a"], o["b"])


@parallel
def _matmul(a, b, c):
    for i in prange(a.shape[0]):
        for j in range(b.shape[1]):
            s = f32(0)
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s


def matmul_naive(i, o):
    return lambda: _matmul(i["a"], i["b"], o["c"])


@parallel
def _matmul_tiled(a, b, c):
    n, m, depth = a.shape[0], b.shape[1], a.shape[1]
    t = 64
    for bi in prange((n + t - 1) // t):
        i1 = min(bi * t + t, n)
        c[bi * t : i1, :] = 0
        for bk in range(0, depth, t):
            for i in range(bi * t, i1):
                for k in range(bk, min(bk + t, depth)):
                    f = a[i, k]
                    for j in range(m):
                        c[i, j] += f * b[k, j]


def matmul_tiled(i, o):
    return lambda: _matmul_tiled(i["a"], i["b"], o["c"])


@parallel
def _mandelbrot(x0, y0, step, limit, it):
    for py in prange(it.shape[0]):
        for px in range(it.shape[1]):
            cr, ci = x0 + step * f32(px), y0 + step * f32(py)
            zr = zi = f32(0)
            k = 0
            while k < limit and zr * zr + zi * zi <= f32(4):
                zr, zi = zr * zr - zi * zi + cr, f32(2) * zr * zi + ci
                k += 1
            it[py, px] = k


def mandelbrot(i, o):
    x0, y0, step = f32(i["x0"]), f32(i["y0"]), f32(i["step"])
    return lambda: _mandelbrot(x0, y0, step, i["limit"], o["it"])


@parallel
def _nbody(pos, eps2, acc):
    n = pos.shape[0]
    for i in prange(n):
        x, y, z = pos[i, 0], pos[i, 1], pos[i, 2]
        ax = ay = az = f32(0)
        for j in range(n):
            dx, dy, dz = pos[j, 0] - x, pos[j, 1] - y, pos[j, 2] - z
            r2 = dx * dx + dy * dy + dz * dz + eps2
            w = pos[j, 3] / (r2 * math.sqrt(r2))
            ax += w * dx
            ay += w * dy
            az += w * dz
        acc[i, 0], acc[i, 1], acc[i, 2], acc[i, 3] = ax, ay, az, f32(0)


def nbody(i, o):
    eps2 = f32(i["eps2"])
    return lambda: _nbody(i["pos"], eps2, o["acc"])


@njit
def _cnd(x):
    return f32(0.5) * (f32(1) + math.erf(x * f32(0.70710678)))


@parallel
def _black_scholes(spot, strike, years, r, v, call, put):
    for i in prange(spot.size):
        s, k, t = spot[i], strike[i], years[i]
        vt = v * math.sqrt(t)
        d1 = (math.log(s / k) + (r + f32(0.5) * v * v) * t) / vt
        disc = k * math.exp(-r * t)
        c = s * _cnd(d1) - disc * _cnd(d1 - vt)
        call[i] = c
        put[i] = c - s + disc


def black_scholes(i, o):
    r, v = f32(i["rate"]), f32(i["vol"])
    return lambda: _black_scholes(i["spot"], i["strike"], i["years"], r, v, o["call"], o["put"])


@njit
def _xorshift(x):
    x = u32(x ^ u32(x << u32(13)))
    x = u32(x ^ u32(x >> u32(17)))
    return u32(x ^ u32(x << u32(5)))


@parallel
def _monte_carlo(seed, draws, hits):
    for i in prange(seed.size):
        x = seed[i]
        n = 0
        for _ in range(draws):
            x = _xorshift(x)
            a = f32(x >> u32(8)) * f32(2.0**-24)
            x = _xorshift(x)
            b = f32(x >> u32(8)) * f32(2.0**-24)
            if a * a + b * b <= f32(1):
                n += 1
        hits[i] = n


def monte_carlo(i, o):
    return lambda: _monte_carlo(i["seed"], i["draws"], o["hits"])


@parallel
def _collatz(steps):
    for i in prange(steps.size):
        x = i + 1
        n = 0
        while x != 1:
            x = 3 * x + 1 if x & 1 else x >> 1
            n += 1
        steps[i] = n


def collatz(i, o):
    return lambda: _collatz(o["steps"])


@njit
def _rotr(x, s):
    return u32(u32(x >> u32(s)) | u32(x << u32(32 - s)))


@njit
def _sha_mix_one(x):
    k = u32(0x9E3779B9)
    a, b, c, d = (
        u32(x ^ k),
        u32(x ^ u32(k * u32(2))),
        u32(x ^ u32(k * u32(3))),
        u32(x ^ u32(k * u32(4))),
    )
    e, f, g, h = (
        u32(x ^ u32(k * u32(5))),
        u32(x ^ u32(k * u32(6))),
        u32(x ^ u32(k * u32(7))),
        u32(x ^ u32(k * u32(8))),
    )
    w = x
    for r in range(64):
        t1 = u32(
            h
            + (_rotr(e, 6) ^ _rotr(e, 11) ^ _rotr(e, 25))
            + ((e & f) ^ (u32(~e) & g))
            + u32(u32(r) * k)
            + w
        )
        t2 = u32((_rotr(a, 2) ^ _rotr(a, 13) ^ _rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c)))
        h, g, f, e, d, c, b, a = g, f, e, u32(d + t1), c, b, a, u32(t1 + t2)
        w = u32(_rotr(w, 25) + u32(r))
    return u32(a ^ e)


@parallel
def _sha_mix(x, h):
    for i in prange(x.size):
        h[i] = _sha_mix_one(x[i])


def sha_mix(i, o):
    return lambda: _sha_mix(i["x"], o["h"])


@parallel
def _conv2d(u, k, v):
    for y in prange(v.shape[0]):
        for x in range(v.shape[1]):
            s = f32(0)
            for dy in range(3):
                for dx in range(3):
                    s += k[dy, dx] * u[y + dy, x + dx]
            v[y, x] = s


def conv2d(i, o):
    return lambda: _conv2d(i["u"], i["k"], o["v"])


@parallel
def _stencil2d(u, c0, c1, v):
    for y in prange(v.shape[0]):
        for x in range(v.shape[1]):
            v[y, x] = c0 * u[y + 1, x + 1] + c1 * (
                u[y, x + 1] + u[y + 2, x + 1] + u[y + 1, x] + u[y + 1, x + 2]
            )


def stencil2d(i, o):
    c0, c1 = f32(i["c0"]), f32(i["c1"])
    return lambda: _stencil2d(i["u"], c0, c1, o["v"])


@parallel
def _histogram(x, bins, parts):
    size = (x.size + parts - 1) // parts
    own = np.zeros((parts, 256), i32)
    for p in prange(parts):
        mine = own[p]
        for v in x[p * size : (p + 1) * size]:
            mine[v] += 1
    bins[:] = own.sum(axis=0)


def histogram(i, o):
    return lambda: _histogram(i["x"], o["bins"], numba.get_num_threads())


@parallel
def _gather(x, idx, y):
    for i in prange(idx.size):
        y[i] = x[idx[i]]


def gather(i, o):
    return lambda: _gather(i["x"], i["idx"], o["y"])


@parallel
def _scatter(x, idx, y):
    for i in prange(idx.size):
        y[idx[i]] = x[i]


def scatter(i, o):
    return lambda: _scatter(i["x"], i["idx"], o["y"])


@parallel
def _bitonic(y):
    n = y.size
    k = 2
    while k <= n:
        j = k >> 1
        while j > 0:
            for i in prange(n):
                p = i ^ j
                if p > i and (y[i] > y[p]) == ((i & k) == 0):
                    y[i], y[p] = y[p], y[i]
            j >>= 1
        k <<= 1


def bitonic_sort(i, o):
    def run():
        o["y"][:] = i["x"]
        _bitonic(o["y"])

    return run


@parallel
def _spmv(ptr, col, val, x, y):
    for r in prange(y.size):
        s = f32(0)
        for e in range(ptr[r], ptr[r + 1]):
            s += val[e] * x[col[e]]
        y[r] = s


def spmv(i, o):
    return lambda: _spmv(i["ptr"], i["col"], i["val"], i["x"], o["y"])


@parallel
def _kmeans(p, cent, label):
    for i in prange(p.shape[1]):
        best, where = f32(np.inf), 0
        for k in range(cent.shape[0]):
            s = f32(0)
            for c in range(cent.shape[1]):
                diff = p[c, i] - cent[k, c]
                s += diff * diff
            if s < best:
                best, where = s, k
        label[i] = where


def kmeans(i, o):
    return lambda: _kmeans(i["p"], i["cent"], o["label"])


CONTENDERS = {
    f.__name__: f
    for f in (
        vector_add,
        triad,
        saxpy,
        dot,
        reduction_sum,
        reduction_max,
        scan,
        transpose_naive,
        transpose_tiled,
        matmul_naive,
        matmul_tiled,
        mandelbrot,
        nbody,
        black_scholes,
        monte_carlo,
        collatz,
        sha_mix,
        conv2d,
        stencil2d,
        histogram,
        gather,
        scatter,
        bitonic_sort,
        spmv,
        kmeans,
    )
}
