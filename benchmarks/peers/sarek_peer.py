"""This package on the device that BENCH_SAREK names; the kernels as a user would write them."""

import os
from importlib.metadata import version

import numpy as np

import sarek_numba as sarek

DEVICE = sarek.device(os.environ.get("BENCH_SAREK", "native"))
VERSION = f"sarek_numba {version('sarek-numba')} on {DEVICE.name}"
LINE, SQUARE, TILE = 256, (16, 16), 16


@sarek.kernel
def vector_add(a, b, c):
    i = sarek.global_idx.x
    if i < len(c):
        c[i] = a[i] + b[i]


@sarek.kernel
def saxpy(a, x, y):
    i = sarek.global_idx.x
    if i < len(y):
        y[i] = a * x[i] + y[i]


@sarek.kernel
def transpose_tiled(a, b):
    tile = sarek.shared.array((TILE, TILE + 1), sarek.float32)
    tx, ty = sarek.thread_idx.x, sarek.thread_idx.y
    tile[ty, tx] = a[sarek.block_idx.y * TILE + ty, sarek.block_idx.x * TILE + tx]
    sarek.barrier()
    b[sarek.block_idx.x * TILE + ty, sarek.block_idx.y * TILE + tx] = tile[tx, ty]


@sarek.kernel
def matmul_tiled(a, b, c):
    tile_a = sarek.shared.array((TILE, TILE), sarek.float32)
    tile_b = sarek.shared.array((TILE, TILE), sarek.float32)
    tx, ty = sarek.thread_idx.x, sarek.thread_idx.y
    column, row = sarek.grid(2)
    total = 0.0
    for start in range(0, a.shape[1], TILE):
        tile_a[ty, tx] = a[row, start + tx]
        tile_b[ty, tx] = b[start + ty, column]
        sarek.barrier()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        sarek.barrier()
    c[row, column] = total


@sarek.kernel
def matmul_naive(a, b, c):
    column, row = sarek.grid(2)
    total = 0.0
    for k in range(a.shape[1]):
        total += a[row, k] * b[k, column]
    c[row, column] = total


@sarek.kernel
def mandelbrot(x0: sarek.float32, y0: sarek.float32, step: sarek.float32, limit, steps):
    x, y = sarek.grid(2)
    cr = x0 + step * x
    ci = y0 + step * y
    zr = np.float32(0)
    zi = np.float32(0)
    count = 0
    while count < limit and zr * zr + zi * zi <= 4:
        zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
        count += 1
    steps[y, x] = count


@sarek.kernel
def nbody(position, softening: sarek.float32, acceleration):
    i = sarek.global_idx.x
    x, y, z = position[i, 0], position[i, 1], position[i, 2]
    ax = ay = az = np.float32(0)
    for j in range(len(position)):
        dx = position[j, 0] - x
        dy = position[j, 1] - y
        dz = position[j, 2] - z
        square = dx * dx + dy * dy + dz * dz + softening
        pull = position[j, 3] / (square * np.sqrt(square))
        ax += pull * dx
        ay += pull * dy
        az += pull * dz
    acceleration[i, 0] = ax
    acceleration[i, 1] = ay
    acceleration[i, 2] = az
    acceleration[i, 3] = 0


@sarek.kernel
def stencil2d(u, c0: sarek.float32, c1: sarek.float32, v):
    x, y = sarek.grid(2)
    around = u[y, x + 1] + u[y + 2, x + 1] + u[y + 1, x] + u[y + 1, x + 2]
    v[y, x] = c0 * u[y + 1, x + 1] + c1 * around


@sarek.kernel
def clear(bins):
    bins[sarek.thread_idx.x] = 0


@sarek.kernel
def histogram(x, bins):
    local = sarek.shared.array(256, sarek.int32)
    t = sarek.thread_idx.x
    local[t] = 0
    sarek.barrier()
    for i in range(sarek.global_idx.x, len(x), sarek.gridsize(1)):
        sarek.atomic.add(local, x[i], 1)
    sarek.barrier()
    sarek.atomic.add(bins, t, local[t])


def launch(kernel, names, grid, block):
    """`names`: of inputs and outputs in order; `grid`: a function of the outputs."""

    def factory(inputs, outputs):
        arguments = [outputs[n] if n in outputs else inputs[n] for n in names]
        configured = kernel[grid(outputs), block]

        def run():
            with sarek.use_device(DEVICE):
                configured(*arguments)

        return run

    return factory


def line(name):
    return lambda outputs: -(-len(outputs[name]) // LINE)


def square(name):
    return lambda outputs: tuple(extent // TILE for extent in outputs[name].shape[::-1])


def _histogram(inputs, outputs):
    x, bins = inputs["x"], outputs["bins"]

    def run():
        with sarek.use_device(DEVICE):
            clear[1, LINE](bins)
            histogram[64, LINE](x, bins)

    return run


CONTENDERS = {
    "vector_add": launch(vector_add, "abc", line("c"), LINE),
    "saxpy": launch(saxpy, "axy", line("y"), LINE),
    "transpose_tiled": launch(transpose_tiled, "ab", square("b"), SQUARE),
    "matmul_naive": launch(matmul_naive, "abc", square("c"), SQUARE),
    "matmul_tiled": launch(matmul_tiled, "abc", square("c"), SQUARE),
    "mandelbrot": launch(mandelbrot, ("x0", "y0", "step", "limit", "it"), square("it"), SQUARE),
    "nbody": launch(nbody, ("pos", "eps2", "acc"), line("acc"), LINE),
    "stencil2d": launch(stencil2d, ("u", "c0", "c1", "v"), square("v"), SQUARE),
    "histogram": _histogram,
}
