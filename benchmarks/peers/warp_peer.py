"""NVIDIA Warp on its CPU device: one element a thread as on the GPU, library functions where
Warp has them.

Warp runs a CPU launch on one thread; its arrays wrap the harness's memory.
"""

import numpy as np
import warp as wp

wp.config.quiet = True
wp.set_module_options({"enable_backward": False})
wp.init()
VERSION = f"warp {wp.config.version}"
f1, f2, i1, i2, u1, b1, v1 = (
    wp.array(dtype=t, ndim=d)
    for t, d in (
        (wp.float32, 1),
        (wp.float32, 2),
        (wp.int32, 1),
        (wp.int32, 2),
        (wp.uint32, 1),
        (wp.uint8, 1),
        (wp.vec4, 1),
    )
)
TILE = 32


def wrap(a, dtype=None):
    return wp.array(a, dtype=dtype or wp.dtype_from_numpy(a.dtype), device="cpu", copy=False)


def launch(kernel, args, dim):
    """`args`: names of inputs and outputs, or functions of i giving a scalar; `dim`: function of
    the outputs.
    """

    def factory(i, o):
        values = [wrap(o[a] if a in o else i[a]) if isinstance(a, str) else a(i) for a in args]
        shape = dim(o)
        return lambda: wp.launch(kernel, shape, values, device="cpu")

    return factory


def of(name):
    return lambda o: o[name].shape


def scalar(name):
    return lambda i: i[name]


@wp.kernel
def _vector_add(a: f1, b: f1, c: f1):
    i = wp.tid()
    c[i] = a[i] + b[i]


@wp.kernel
def _triad(a: f1, b: f1, s: float, c: f1):
    i = wp.tid()
    c[i] = a[i] + s * b[i]


@wp.kernel
def _saxpy(a: float, x: f1, y: f1):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


def dot(i, o):
    x, y, s = wrap(i["x"]), wrap(i["y"]), wrap(o["s"])
    return lambda: wp.utils.array_inner(x, y, out=s)


def reduction_sum(i, o):
    x, s = wrap(i["x"]), wrap(o["s"])
    return lambda: wp.utils.array_sum(x, out=s)


@wp.kernel
def _max(x: f1, s: f1):
    wp.atomic_max(s, 0, x[wp.tid()])


def reduction_max(i, o):
    x, s = wrap(i["x"]), wrap(o["s"])

    def run():
        s.fill_(-np.inf)
        wp.launch(_max, x.size, [x, s], device="cpu")

    return run


def scan(i, o):
    x, y = wrap(i["x"]), wrap(o["y"])
    return lambda: wp.utils.array_scan(x, y, inclusive=True)


@wp.kernel
def _transpose(a: f2, b: f2):
    i, j = wp.tid()
    b[j, i] = a[i, j]


@wp.kernel
def _transpose_tiled(a: f2, b: f2):
    i, j = wp.tid()
    t = wp.tile_load(a, shape=(TILE, TILE), offset=(i * TILE, j * TILE))
    wp.tile_store(b, wp.tile_transpose(t), offset=(j * TILE, i * TILE))


def tiled(kernel, args):
    def factory(i, o):
        values = [wrap(o[a] if a in o else i[a]) for a in args]
        n = values[-1].shape[0] // TILE
        return lambda: wp.launch_tiled(kernel, dim=[n, n], inputs=values, block_dim=1, device="cpu")

    return factory


@wp.kernel
def _matmul(a: f2, b: f2, c: f2):
    i, j = wp.tid()
    s = 0.0
    for k in range(a.shape[1]):
        s += a[i, k] * b[k, j]
    c[i, j] = s


@wp.kernel
def _matmul_tiled(a: f2, b: f2, c: f2):
    i, j = wp.tid()
    s = wp.tile_zeros(shape=(TILE, TILE), dtype=wp.float32)
    for k in range(a.shape[1] / TILE):
        ta = wp.tile_load(a, shape=(TILE, TILE), offset=(i * TILE, k * TILE))
        tb = wp.tile_load(b, shape=(TILE, TILE), offset=(k * TILE, j * TILE))
        wp.tile_matmul(ta, tb, s)
    wp.tile_store(c, s, offset=(i * TILE, j * TILE))


@wp.kernel
def _mandelbrot(x0: float, y0: float, step: float, limit: int, it: i2):
    py, px = wp.tid()
    cr = x0 + step * float(px)
    ci = y0 + step * float(py)
    zr = 0.0
    zi = 0.0
    k = 0
    while k < limit and zr * zr + zi * zi <= 4.0:
        t = zr * zr - zi * zi + cr
        zi = 2.0 * zr * zi + ci
        zr = t
        k += 1
    it[py, px] = k


@wp.kernel
def _nbody(pos: v1, eps2: float, acc: v1):
    i = wp.tid()
    me = pos[i]
    s = wp.vec3(0.0, 0.0, 0.0)
    for j in range(pos.shape[0]):
        q = pos[j]
        d = wp.vec3(q[0] - me[0], q[1] - me[1], q[2] - me[2])
        r2 = wp.dot(d, d) + eps2
        s += q[3] / (r2 * wp.sqrt(r2)) * d
    acc[i] = wp.vec4(s[0], s[1], s[2], 0.0)


def nbody(i, o):
    pos, acc = wrap(i["pos"], wp.vec4), wrap(o["acc"], wp.vec4)
    return lambda: wp.launch(_nbody, pos.shape, [pos, i["eps2"], acc], device="cpu")


@wp.func
def _cnd(x: float):
    return 0.5 * (1.0 + wp.erf(x * 0.70710678))


@wp.kernel
def _black_scholes(spot: f1, strike: f1, years: f1, r: float, v: float, call: f1, put: f1):
    i = wp.tid()
    s = spot[i]
    k = strike[i]
    t = years[i]
    vt = v * wp.sqrt(t)
    d1 = (wp.log(s / k) + (r + 0.5 * v * v) * t) / vt
    disc = k * wp.exp(-r * t)
    c = s * _cnd(d1) - disc * _cnd(d1 - vt)
    call[i] = c
    put[i] = c - s + disc


@wp.func
def _xorshift(x: wp.uint32):
    y = x ^ (x << wp.uint32(13))
    y = y ^ (y >> wp.uint32(17))
    return y ^ (y << wp.uint32(5))


@wp.kernel
def _monte_carlo(seed: u1, draws: int, hits: i1):
    i = wp.tid()
    x = seed[i]
    n = 0
    for _k in range(draws):
        x = _xorshift(x)
        a = float(x >> wp.uint32(8)) * 5.9604644775390625e-8
        x = _xorshift(x)
        b = float(x >> wp.uint32(8)) * 5.9604644775390625e-8
        if a * a + b * b <= 1.0:
            n += 1
    hits[i] = n


@wp.kernel
def _collatz(steps: i1):
    i = wp.tid()
    x = wp.int64(i) + wp.int64(1)
    n = 0
    while x != wp.int64(1):
        x = wp.int64(3) * x + wp.int64(1) if x & wp.int64(1) == wp.int64(1) else x >> wp.int64(1)
        n += 1
    steps[i] = n


@wp.func
def _rotr(x: wp.uint32, s: int):
    return (x >> wp.uint32(s)) | (x << wp.uint32(32 - s))


@wp.kernel
def _sha_mix(x: u1, out: u1):
    i = wp.tid()
    m = wp.uint32(0x9E3779B9)
    w = x[i]
    a = w ^ m
    b = w ^ (wp.uint32(2) * m)
    c = w ^ (wp.uint32(3) * m)
    d = w ^ (wp.uint32(4) * m)
    e = w ^ (wp.uint32(5) * m)
    f = w ^ (wp.uint32(6) * m)
    g = w ^ (wp.uint32(7) * m)
    h = w ^ (wp.uint32(8) * m)
    for r in range(64):
        t1 = (
            h
            + (_rotr(e, 6) ^ _rotr(e, 11) ^ _rotr(e, 25))
            + ((e & f) ^ (~e & g))
            + wp.uint32(r) * m
            + w
        )
        t2 = (_rotr(a, 2) ^ _rotr(a, 13) ^ _rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
        h = g
        g = f
        f = e
        e = d + t1
        d = c
        c = b
        b = a
        a = t1 + t2
        w = _rotr(w, 25) + wp.uint32(r)
    out[i] = a ^ e


@wp.kernel
def _conv2d(u: f2, k: f2, v: f2):
    y, x = wp.tid()
    s = 0.0
    for dy in range(3):
        for dx in range(3):
            s += k[dy, dx] * u[y + dy, x + dx]
    v[y, x] = s


@wp.kernel
def _stencil2d(u: f2, c0: float, c1: float, v: f2):
    y, x = wp.tid()
    v[y, x] = c0 * u[y + 1, x + 1] + c1 * (
        u[y, x + 1] + u[y + 2, x + 1] + u[y + 1, x] + u[y + 1, x + 2]
    )


@wp.kernel
def _histogram(x: b1, bins: i1):
    wp.atomic_add(bins, int(x[wp.tid()]), 1)


def histogram(i, o):
    x, bins = wrap(i["x"]), wrap(o["bins"])

    def run():
        bins.zero_()
        wp.launch(_histogram, x.size, [x, bins], device="cpu")

    return run


@wp.kernel
def _gather(x: f1, idx: i1, y: f1):
    i = wp.tid()
    y[i] = x[idx[i]]


@wp.kernel
def _scatter(x: f1, idx: i1, y: f1):
    i = wp.tid()
    y[idx[i]] = x[i]


@wp.kernel
def _bitonic(y: i1, k: int, j: int):
    g = wp.tid()
    i = 2 * g - (g & (j - 1))
    a = y[i]
    b = y[i + j]
    if (a > b) == ((i & k) == 0):
        y[i] = b
        y[i + j] = a


def bitonic_sort(i, o):
    x, y, n = wrap(i["x"]), wrap(o["y"]), i["x"].size

    def run():
        wp.copy(y, x)
        k = 2
        while k <= n:
            j = k // 2
            while j > 0:
                wp.launch(_bitonic, n // 2, [y, k, j], device="cpu")
                j //= 2
            k *= 2

    return run


@wp.kernel
def _spmv(ptr: i1, col: i1, val: f1, x: f1, y: f1):
    r = wp.tid()
    s = 0.0
    for e in range(ptr[r], ptr[r + 1]):
        s += val[e] * x[col[e]]
    y[r] = s


@wp.kernel
def _kmeans(p: f2, cent: f2, label: i1):
    i = wp.tid()
    best = 1.0e30
    where = 0
    for k in range(cent.shape[0]):
        s = 0.0
        for c in range(cent.shape[1]):
            diff = p[c, i] - cent[k, c]
            s += diff * diff
        if s < best:
            best = s
            where = k
    label[i] = where


CONTENDERS = {
    "vector_add": launch(_vector_add, "abc", of("c")),
    "triad": launch(_triad, ("a", "b", scalar("s"), "c"), of("c")),
    "saxpy": launch(_saxpy, (scalar("a"), "x", "y"), of("y")),
    "dot": dot,
    "reduction_sum": reduction_sum,
    "reduction_max": reduction_max,
    "scan": scan,
    "transpose_naive": launch(_transpose, "ab", of("b")),
    "transpose_tiled": tiled(_transpose_tiled, "ab"),
    "matmul_naive": launch(_matmul, "abc", of("c")),
    "matmul_tiled": tiled(_matmul_tiled, "abc"),
    "mandelbrot": launch(
        _mandelbrot, (scalar("x0"), scalar("y0"), scalar("step"), scalar("limit"), "it"), of("it")
    ),
    "nbody": nbody,
    "black_scholes": launch(
        _black_scholes,
        ("spot", "strike", "years", scalar("rate"), scalar("vol"), "call", "put"),
        of("call"),
    ),
    "monte_carlo": launch(_monte_carlo, ("seed", scalar("draws"), "hits"), of("hits")),
    "collatz": launch(_collatz, ("steps",), of("steps")),
    "sha_mix": launch(_sha_mix, "xh", of("h")),
    "conv2d": launch(_conv2d, "ukv", of("v")),
    "stencil2d": launch(_stencil2d, ("u", scalar("c0"), scalar("c1"), "v"), of("v")),
    "histogram": histogram,
    "gather": launch(_gather, ("x", "idx", "y"), of("y")),
    "scatter": launch(_scatter, ("x", "idx", "y"), of("y")),
    "bitonic_sort": bitonic_sort,
    "spmv": launch(_spmv, ("ptr", "col", "val", "x", "y"), of("y")),
    "kmeans": launch(_kmeans, ("p", "cent", "label"), of("label")),
}
