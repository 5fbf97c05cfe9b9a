"""NumPy (and scipy.special for erf): what a user writes without a compiler; one thread except in
BLAS.
"""

import numpy as np
from scipy.special import erf

f32, u32 = np.float32, np.uint32
VERSION = f"numpy {np.__version__}"


def vector_add(i, o):
    return lambda: np.add(i["a"], i["b"], out=o["c"])


def triad(i, o):
    def run():
        np.multiply(i["b"], f32(i["s"]), out=o["c"])
        np.add(i["a"], o["c"], out=o["c"])

    return run


def saxpy(i, o):
    def run():
        o["y"] += f32(i["a"]) * i["x"]

    return run


def dot(i, o):
    return lambda: np.dot(i["x"], i["y"], out=o["s"][0:1].reshape(()))


def reduction_sum(i, o):
    return lambda: np.sum(i["x"], out=o["s"].reshape(()))


def reduction_max(i, o):
    return lambda: np.max(i["x"], out=o["s"].reshape(()))


def scan(i, o):
    return lambda: np.cumsum(i["x"], dtype=np.int32, out=o["y"])


def transpose(i, o):
    return lambda: np.copyto(o["b"], i["a"].T)


def matmul(i, o):
    return lambda: np.matmul(i["a"], i["b"], out=o["c"])


def mandelbrot(i, o):
    n, limit, axis = i["n"], i["limit"], np.arange(i["n"], dtype=f32)
    cr = np.broadcast_to(f32(i["x0"]) + f32(i["step"]) * axis, (n, n)).ravel()
    ci = np.repeat(f32(i["y0"]) + f32(i["step"]) * axis, n)

    def run():
        it = o["it"].reshape(-1)
        it[:] = limit
        live, zr, zi, a, b = np.arange(n * n), np.zeros(n * n, f32), np.zeros(n * n, f32), cr, ci
        for k in range(limit):
            r2, i2 = zr * zr, zi * zi
            stay = r2 + i2 <= 4
            it[live[~stay]] = k
            live, zr, zi, r2, i2, a, b = (v[stay] for v in (live, zr, zi, r2, i2, a, b))
            zr, zi = r2 - i2 + a, 2 * zr * zi + b

    return run


def nbody(i, o):
    x, y, z, m = (np.ascontiguousarray(c) for c in i["pos"].T)

    def run():
        o["acc"][:, 3] = 0
        for s in range(0, len(x), 128):
            e = s + 128
            dx, dy, dz = x - x[s:e, None], y - y[s:e, None], z - z[s:e, None]
            r2 = dx * dx + dy * dy + dz * dz + f32(i["eps2"])
            w = m / (r2 * np.sqrt(r2))
            o["acc"][s:e, 0], o["acc"][s:e, 1], o["acc"][s:e, 2] = (
                (w * dx).sum(1),
                (w * dy).sum(1),
                (w * dz).sum(1),
            )

    return run


def black_scholes(i, o):
    def cnd(x):
        return f32(0.5) * (1 + erf(x * f32(0.5**0.5)))

    def run():
        s, k, t, r, v = i["spot"], i["strike"], i["years"], f32(i["rate"]), f32(i["vol"])
        vt = v * np.sqrt(t)
        d1 = (np.log(s / k) + (r + f32(0.5) * v * v) * t) / vt
        disc = k * np.exp(-r * t)
        o["call"][:] = s * cnd(d1) - disc * cnd(d1 - vt)
        o["put"][:] = o["call"] - s + disc

    return run


def _xorshift(x):
    x ^= x << u32(13)
    x ^= x >> u32(17)
    x ^= x << u32(5)


def monte_carlo(i, o):
    def run():
        x, hits, scale = i["seed"].copy(), o["hits"], f32(2.0**-24)
        hits[:] = 0
        for _ in range(i["draws"]):
            _xorshift(x)
            a = (x >> u32(8)).astype(f32) * scale
            _xorshift(x)
            b = (x >> u32(8)).astype(f32) * scale
            hits += a * a + b * b <= 1

    return run


def collatz(i, o):
    def run():
        x, live, steps = np.arange(1, i["n"] + 1), np.arange(i["n"]), o["steps"]
        steps[:] = 0
        while live.size:
            stay = x != 1
            live, x = live[stay], x[stay]
            x = np.where(x & 1, 3 * x + 1, x >> 1)
            steps[live] += 1

    return run


def sha_mix(i, o):
    def rotr(v, s):
        return (v >> u32(s)) | (v << u32(32 - s))

    def run():
        w = i["x"].copy()
        a, b, c, d, e, f, g, h = (w ^ u32(k * 0x9E3779B9 & 0xFFFFFFFF) for k in range(1, 9))
        for r in range(64):
            t1 = (
                h
                + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25))
                + ((e & f) ^ (~e & g))
                + u32(r * 0x9E3779B9 & 0xFFFFFFFF)
                + w
            )
            t2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
            h, g, f, e, d, c, b, a = g, f, e, d + t1, c, b, a, t1 + t2
            w = rotr(w, 25) + u32(r)
        np.bitwise_xor(a, e, out=o["h"])

    return run


def conv2d(i, o):
    def run():
        u, k, v = i["u"], i["k"], o["v"]
        n = len(v)
        np.multiply(u[:n, :n], k[0, 0], out=v)
        for y in range(3):
            for x in range(3):
                if x or y:
                    v += k[y, x] * u[y : y + n, x : x + n]

    return run


def stencil2d(i, o):
    def run():
        u, v = i["u"], o["v"]
        np.add(u[:-2, 1:-1], u[2:, 1:-1], out=v)
        v += u[1:-1, :-2]
        v += u[1:-1, 2:]
        v *= f32(i["c1"])
        v += f32(i["c0"]) * u[1:-1, 1:-1]

    return run


def histogram(i, o):
    def run():
        o["bins"][:] = np.bincount(i["x"], minlength=256)

    return run


def gather(i, o):
    return lambda: np.take(i["x"], i["idx"], out=o["y"], mode="clip")  # "clip": no buffering of out


def scatter(i, o):
    def run():
        o["y"][i["idx"]] = i["x"]

    return run


def bitonic_sort(i, o):
    def run():
        o["y"][:] = i["x"]
        o["y"].sort()

    return run


def spmv(i, o):
    return lambda: np.add.reduceat(i["val"] * i["x"][i["col"]], i["ptr"][:-1], out=o["y"])


def kmeans(i, o):
    def run():
        p, best, label = i["p"], np.full(i["p"].shape[1], np.inf, f32), o["label"]
        for k, c in enumerate(i["cent"]):
            dist = ((p - c[:, None]) ** 2).sum(0)
            closer = dist < best
            label[closer] = k
            np.minimum(best, dist, out=best)

    return run


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
CONTENDERS.update(transpose_naive=transpose, matmul_naive=matmul)
