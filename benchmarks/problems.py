"""The kernels: inputs, reference in float64 (or exact integers), tolerance, operations, bytes.
bytes.

Nothing here knows a peer or a device. `bytes` is the least traffic (each input read once, each
output written once), `flops` the arithmetic of the textbook algorithm. `library` names peers
that call a tuned library with another algorithm (BLAS, np.sort): shown, but not the peer to
beat.
"""

import math
import zlib

import numpy as np

KERNELS = {}
f32, i32, u32 = np.float32, np.int32, np.uint32


def kernel(
    name, sizes, outputs, flops, bytes, rtol=1e-6, atol=0.0, frac=0.0, inplace=(), library=()
):
    """Register `make`, a function of the size number and a generator."""

    def register(make):
        def make_inputs(size):
            return make(sizes.get(size, size), np.random.default_rng(zlib.crc32(name.encode())))

        KERNELS[name] = {
            "make_inputs": make_inputs,
            "reference": None,
            "outputs": outputs,
            "flops": flops,
            "bytes": bytes,
            "tolerance": {"rtol": rtol, "atol": atol, "frac": frac},
            "inplace": list(inplace),
            "library": list(library),
            "sizes": sizes,
            "contenders": {},
        }
        return make

    return register


def reference(*names):
    def register(f):
        for name in names:
            KERNELS[name]["reference"] = f
        return f

    return register


def d(a):
    return a.astype(np.float64)


def sizes(small, medium, large):
    return {"small": small, "medium": medium, "large": large}


N = sizes(1 << 16, 1 << 22, 1 << 25)


# --- streaming ---
@kernel("vector_add", N, {"c": "float32"}, lambda i, r: i["a"].size, lambda i, r: 12 * i["a"].size)
def _(n, rng):
    return {"a": rng.random(n, f32), "b": rng.random(n, f32)}


@reference("vector_add")
def _(i):
    return {"c": d(i["a"]) + d(i["b"])}


@kernel("triad", N, {"c": "float32"}, lambda i, r: 2 * i["a"].size, lambda i, r: 12 * i["a"].size)
def _(n, rng):
    return {"a": rng.random(n, f32), "b": rng.random(n, f32), "s": 1.5}


@reference("triad")
def _(i):
    return {"c": d(i["a"]) + i["s"] * d(i["b"])}


@kernel(
    "saxpy",
    N,
    {"y": "float32"},
    lambda i, r: 2 * i["x"].size,
    lambda i, r: 12 * i["x"].size,
    rtol=1e-4,
    inplace=["y"],
)
def _(n, rng):
    return {"x": rng.random(n, f32), "y": rng.random(n, f32), "a": 0.5}


@reference("saxpy")
def _(i):
    return {"y": i["a"] * d(i["x"]) + d(i["y"])}


@kernel(
    "dot",
    N,
    {"s": "float32"},
    lambda i, r: 2 * i["x"].size,
    lambda i, r: 8 * i["x"].size,
    rtol=2e-4,
    library=["numpy"],
)
def _(n, rng):
    return {"x": rng.random(n, f32), "y": rng.random(n, f32)}


@reference("dot")
def _(i):
    return {"s": np.array([d(i["x"]) @ d(i["y"])])}


@kernel(
    "reduction_sum",
    N,
    {"s": "float32"},
    lambda i, r: i["x"].size,
    lambda i, r: 4 * i["x"].size,
    rtol=2e-4,
)
def _(n, rng):
    return {"x": rng.random(n, f32)}


@reference("reduction_sum")
def _(i):
    return {"s": np.array([d(i["x"]).sum()])}


@kernel(
    "reduction_max",
    N,
    {"s": "float32"},
    lambda i, r: i["x"].size,
    lambda i, r: 4 * i["x"].size,
    rtol=0,
)
def _(n, rng):
    return {"x": rng.standard_normal(n, f32)}


@reference("reduction_max")
def _(i):
    return {"s": np.array([d(i["x"]).max()])}


@kernel("scan", N, {"y": "int32"}, lambda i, r: i["x"].size, lambda i, r: 8 * i["x"].size)
def _(n, rng):
    return {"x": rng.integers(0, 50, n, i32)}


@reference("scan")
def _(i):
    return {"y": np.cumsum(i["x"], dtype=np.int64)}


# --- transpose, matmul ---
def _square(n, rng):
    return {"a": rng.random((n, n), f32)}


for _name in "transpose_naive", "transpose_tiled":
    kernel(
        _name,
        sizes(256, 2048, 4096),
        {"b": "float32"},
        lambda i, r: 0,
        lambda i, r: 8 * i["a"].size,
        rtol=0,
    )(_square)


@reference("transpose_naive", "transpose_tiled")
def _(i):
    return {"b": d(i["a"]).T.copy()}


def _two_squares(n, rng):
    return {"a": rng.random((n, n), f32), "b": rng.random((n, n), f32)}


for _name in "matmul_naive", "matmul_tiled":
    kernel(
        _name,
        sizes(128, 512, 1024),
        {"c": "float32"},
        lambda i, r: 2 * len(i["a"]) ** 3,
        lambda i, r: 12 * i["a"].size,
        rtol=1e-5,
        library=["numpy"],
    )(_two_squares)


@reference("matmul_naive", "matmul_tiled")
def _(i):
    return {"c": d(i["a"]) @ d(i["b"])}


# --- arithmetic ---
@kernel(
    "mandelbrot",
    sizes(256, 1024, 2048),
    {"it": "int32"},
    lambda i, r: 8 * float(r["it"].sum()),
    lambda i, r: 4 * r["it"].size,
    frac=5e-3,
)
def _(n, rng):
    return {"n": n, "x0": -2.0, "y0": -1.25, "step": float(f32(2.5 / n)), "limit": 256}


@reference("mandelbrot")
def _(i):
    n, limit = i["n"], i["limit"]
    ci, cr = np.meshgrid(
        i["y0"] + i["step"] * np.arange(n), i["x0"] + i["step"] * np.arange(n), indexing="ij"
    )
    zr, zi, it = np.zeros_like(cr), np.zeros_like(cr), np.zeros(cr.shape, np.int64)
    live = np.ones(cr.shape, bool)
    for _ in range(limit):
        live[live] = zr[live] ** 2 + zi[live] ** 2 <= 4.0
        a, b = zr[live], zi[live]
        zr[live], zi[live] = a * a - b * b + cr[live], 2 * a * b + ci[live]
        it[live] += 1
    return {"it": it}


@kernel(
    "nbody",
    sizes(1024, 4096, 16384),
    {"acc": "float32"},
    lambda i, r: 20 * len(i["pos"]) ** 2,
    lambda i, r: 32 * len(i["pos"]),
    rtol=1e-3,
    atol=1e-3,
)
def _(n, rng):
    pos = rng.standard_normal((n, 4), f32)  # x, y, z, mass
    pos[:, 3] = rng.random(n, f32)
    return {"pos": pos, "eps2": 0.01}


@reference("nbody")
def _(i):
    p = d(i["pos"])
    acc = np.zeros_like(p)  # fourth component stays 0
    for a in range(0, len(p), 256):
        dx = p[None, :, :3] - p[a : a + 256, None, :3]
        r2 = (dx * dx).sum(2) + i["eps2"]
        acc[a : a + 256, :3] = ((p[None, :, 3] * r2**-1.5)[..., None] * dx).sum(1)
    return {"acc": acc}


@kernel(
    "black_scholes",
    sizes(1 << 16, 1 << 20, 1 << 24),
    {"call": "float32", "put": "float32"},
    lambda i, r: 60 * i["spot"].size,
    lambda i, r: 20 * i["spot"].size,
    rtol=1e-4,
    atol=2e-4,
)
def _(n, rng):
    return {
        "spot": rng.uniform(5, 30, n).astype(f32),
        "strike": rng.uniform(5, 30, n).astype(f32),
        "years": rng.uniform(0.25, 10, n).astype(f32),
        "rate": 0.02,
        "vol": 0.30,
    }


@reference("black_scholes")
def _(i):
    from scipy.special import ndtr

    s, k, t, r, v = d(i["spot"]), d(i["strike"]), d(i["years"]), i["rate"], i["vol"]
    d1 = (np.log(s / k) + (r + 0.5 * v * v) * t) / (v * np.sqrt(t))
    d2 = d1 - v * np.sqrt(t)
    call = s * ndtr(d1) - k * np.exp(-r * t) * ndtr(d2)
    return {"call": call, "put": call - s + k * np.exp(-r * t)}


@kernel(
    "monte_carlo",
    sizes(1 << 10, 1 << 14, 1 << 17),
    {"hits": "int32"},
    lambda i, r: 3 * i["seed"].size * i["draws"],
    lambda i, r: 8 * i["seed"].size,
    atol=1,
)
def _(n, rng):
    return {"seed": rng.integers(1, 1 << 32, n, u32), "draws": 256}


def _xorshift(x):
    x = x ^ (x << u32(13))
    x = x ^ (x >> u32(17))
    return x ^ (x << u32(5))


@reference("monte_carlo")
def _(i):
    x, hits = i["seed"].copy(), np.zeros(i["seed"].size, np.int64)
    for _ in range(i["draws"]):
        x = _xorshift(x)
        a = d(x >> u32(8)) * 2.0**-24
        x = _xorshift(x)
        b = d(x >> u32(8)) * 2.0**-24
        hits += a * a + b * b <= 1.0
    return {"hits": hits}


@kernel(
    "collatz",
    sizes(1 << 14, 1 << 19, 1 << 22),
    {"steps": "int32"},
    lambda i, r: 3 * float(r["steps"].sum()),
    lambda i, r: 4 * r["steps"].size,
)
def _(n, rng):
    return {"n": n}


@reference("collatz")
def _(i):
    x = np.arange(1, i["n"] + 1, dtype=np.int64)
    steps, live = np.zeros(x.size, np.int64), np.arange(x.size)
    while live.size:
        live = live[x[live] != 1]
        v = x[live]
        x[live] = np.where(v & 1, 3 * v + 1, v >> 1)
        steps[live] += 1
    return {"steps": steps}


@kernel(
    "sha_mix",
    sizes(1 << 13, 1 << 18, 1 << 22),
    {"h": "uint32"},
    lambda i, r: 64 * 38 * i["x"].size,
    lambda i, r: 8 * i["x"].size,
)
def _(n, rng):
    return {"x": rng.integers(0, 1 << 32, n, u32)}


@reference("sha_mix")
def _(i):
    def rotr(v, s):
        return (v >> u32(s)) | (v << u32(32 - s))

    x = i["x"]
    a, b, c, dd, e, f, g, h = (x ^ u32(k * 0x9E3779B9 & 0xFFFFFFFF) for k in range(1, 9))
    w = x.copy()
    for r in range(64):
        t1 = (
            h
            + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25))
            + ((e & f) ^ (~e & g))
            + u32(r * 0x9E3779B9 & 0xFFFFFFFF)
            + w
        )
        t2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
        h, g, f, e, dd, c, b, a = g, f, e, dd + t1, c, b, a, t1 + t2
        w = rotr(w, 25) + u32(r)
    return {"h": a ^ e}


# --- grids ---
def _padded(n, rng):
    return {"u": rng.random((n + 2, n + 2), f32), "k": rng.random((3, 3), f32)}


def _inner(i):
    return (len(i["u"]) - 2) ** 2


kernel(
    "conv2d",
    sizes(256, 2048, 4096),
    {"v": "float32"},
    lambda i, r: 17 * _inner(i),
    lambda i, r: 8 * _inner(i),
    rtol=1e-5,
)(_padded)
kernel(
    "stencil2d",
    sizes(256, 2048, 4096),
    {"v": "float32"},
    lambda i, r: 6 * _inner(i),
    lambda i, r: 8 * _inner(i),
    rtol=1e-5,
)(lambda n, rng: {"u": rng.random((n + 2, n + 2), f32), "c0": 0.6, "c1": 0.1})


@reference("conv2d")
def _(i):
    u, n = d(i["u"]), len(i["u"]) - 2
    return {
        "v": sum(float(i["k"][y, x]) * u[y : y + n, x : x + n] for y in range(3) for x in range(3))
    }


@reference("stencil2d")
def _(i):
    u = d(i["u"])
    return {
        "v": i["c0"] * u[1:-1, 1:-1]
        + i["c1"] * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    }


# --- irregular ---
@kernel(
    "histogram",
    sizes(1 << 18, 1 << 23, 1 << 26),
    {"bins": "int32"},
    lambda i, r: i["x"].size,
    lambda i, r: i["x"].size,
)
def _(n, rng):
    return {"x": np.clip(rng.normal(128, 40, n), 0, 255).astype(np.uint8)}


@reference("histogram")
def _(i):
    return {"bins": np.bincount(i["x"], minlength=256)}


def _indexed(n, rng):
    return {"x": rng.random(n, f32), "idx": rng.permutation(n).astype(i32)}


for _name in "gather", "scatter":
    kernel(_name, N, {"y": "float32"}, lambda i, r: 0, lambda i, r: 12 * i["x"].size, rtol=0)(
        _indexed
    )


@reference("gather")
def _(i):
    return {"y": d(i["x"])[i["idx"]]}


@reference("scatter")
def _(i):
    y = np.empty(i["x"].size)
    y[i["idx"]] = i["x"]
    return {"y": y}


@kernel(
    "bitonic_sort",
    sizes(1 << 14, 1 << 18, 1 << 20),
    {"y": "int32"},
    lambda i, r: i["x"].size / 2 * math.log2(i["x"].size) * (math.log2(i["x"].size) + 1) / 2,
    lambda i, r: 8 * i["x"].size,
    library=["numpy"],
)
def _(n, rng):
    return {"x": rng.integers(-(1 << 31), 1 << 31, n, np.int64).astype(i32)}


@reference("bitonic_sort")
def _(i):
    return {"y": np.sort(i["x"])}


@kernel(
    "spmv",
    sizes(1 << 13, 1 << 17, 1 << 20),
    {"y": "float32"},
    lambda i, r: 2 * i["val"].size,
    lambda i, r: 8 * i["val"].size + 12 * i["x"].size,
    rtol=1e-4,
)
def _(n, rng):
    ptr = np.zeros(n + 1, i32)
    np.cumsum(rng.integers(1, 32, n), out=ptr[1:])
    nnz = int(ptr[-1])
    return {
        "ptr": ptr,
        "col": rng.integers(0, n, nnz, i32),
        "val": rng.random(nnz, f32),
        "x": rng.random(n, f32),
    }


@reference("spmv")
def _(i):
    return {"y": np.add.reduceat(d(i["val"]) * d(i["x"])[i["col"]], i["ptr"][:-1])}


@kernel(
    "kmeans",
    sizes(1 << 13, 1 << 18, 1 << 21),
    {"label": "int32"},
    lambda i, r: 3 * i["p"].size * len(i["cent"]),
    lambda i, r: 4 * i["p"].size + 4 * i["p"].shape[1],
    frac=1e-4,
)
def _(n, rng):
    return {
        "p": rng.standard_normal((8, n), f32),
        "cent": rng.standard_normal((16, 8), f32),
    }  # points by component


@reference("kmeans")
def _(i):
    p, cent = d(i["p"]), d(i["cent"])
    return {"label": np.argmin([((p - c[:, None]) ** 2).sum(0) for c in cent], axis=0)}
