"""The kernels of the demonstration, written as a user would write them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import sarek_numba as sarek

Array = Any  # a kernel argument; its element type and layout come from the launch

TILE = 16
SCAN_BLOCK = 256
BINS = 256
GAUSS = np.array([1, 4, 6, 4, 1], np.float32) / np.float32(16)


@sarek.function
def clamp(i: int, n: int) -> int:
    """The index nearest to i inside 0 … n - 1: edges repeat their last pixel."""
    return min(max(i, 0), n - 1)


@sarek.kernel
def to_grey(grey: Array, image: Array) -> None:
    """Luminance (ITU-R BT.601) of an RGB image of uint8, in 0 … 1."""
    x, y = sarek.grid(2)
    if y < grey.shape[0] and x < grey.shape[1]:
        red = image[y, x, 0] * np.float32(0.299)
        green = image[y, x, 1] * np.float32(0.587)
        blue = image[y, x, 2] * np.float32(0.114)
        grey[y, x] = (red + green + blue) / 255


@sarek.kernel
def blur(out: Array, image: Array) -> None:
    """Gaussian blur, 5 × 5."""
    weight = sarek.const.array_like(GAUSS)
    x, y = sarek.grid(2)
    height, width = image.shape
    if y < height and x < width:
        total = 0.0
        for dy in range(5):
            for dx in range(5):
                pixel = image[clamp(y + dy - 2, height), clamp(x + dx - 2, width)]
                total += weight[dy] * weight[dx] * pixel
        out[y, x] = total


@sarek.kernel
def edges(out: Array, image: Array) -> None:
    """Length of the Sobel gradient; the border is zero."""
    x, y = sarek.grid(2)
    height, width = image.shape
    if y < height and x < width:
        if y == 0 or y == height - 1 or x == 0 or x == width - 1:
            out[y, x] = 0.0
            return
        north, here, south = image[y - 1], image[y], image[y + 1]
        east = north[x + 1] + 2 * here[x + 1] + south[x + 1]
        west = north[x - 1] + 2 * here[x - 1] + south[x - 1]
        below = south[x - 1] + 2 * south[x] + south[x + 1]
        above = north[x - 1] + 2 * north[x] + north[x + 1]
        gx, gy = east - west, below - above
        out[y, x] = math.sqrt(gx * gx + gy * gy)


@sarek.kernel
def mandelbrot(
    steps: Array, left: sarek.float32, top: sarek.float32, scale: sarek.float32, limit: int
) -> None:
    """Iterations of z² + c until |z| > 2."""
    x, y = sarek.grid(2)
    if y < steps.shape[0] and x < steps.shape[1]:
        cr = left + x * scale
        ci = top + y * scale
        zr = np.float32(0)
        zi = np.float32(0)
        count = 0
        while zr * zr + zi * zi <= 4 and count < limit:
            zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
            count += 1
        steps[y, x] = count


@sarek.kernel
def matmul_naive(c: Array, a: Array, b: Array) -> None:
    """C = A @ B, one thread an element."""
    column, row = sarek.grid(2)
    if row < c.shape[0] and column < c.shape[1]:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        c[row, column] = total


@sarek.kernel
def matmul_tiled(c: Array, a: Array, b: Array) -> None:
    """C = A @ B through tiles in shared memory; block (TILE, TILE)."""
    tile_a = sarek.shared.array((TILE, TILE), sarek.float32)
    tile_b = sarek.shared.array((TILE, TILE), sarek.float32)
    tx, ty = sarek.thread_idx.x, sarek.thread_idx.y
    column, row = sarek.grid(2)
    total = 0.0
    for start in range(0, a.shape[1], TILE):
        with sarek.superstep():
            in_a = row < a.shape[0] and start + tx < a.shape[1]
            in_b = start + ty < b.shape[0] and column < b.shape[1]
            tile_a[ty, tx] = a[row, start + tx] if in_a else 0.0
            tile_b[ty, tx] = b[start + ty, column] if in_b else 0.0
        with sarek.superstep():
            for k in range(TILE):
                total += tile_a[ty, k] * tile_b[k, tx]
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


@sarek.kernel
def scan_blocks(out: Array, totals: Array, values: Array) -> None:
    """Inclusive sum of each block of SCAN_BLOCK values (Hillis and Steele), and its total."""
    buffer = sarek.shared.array(SCAN_BLOCK, sarek.int32)
    t = sarek.thread_idx.x
    i = sarek.global_idx.x
    buffer[t] = values[i] if i < len(values) else 0
    sarek.barrier()
    distance = 1
    while distance < SCAN_BLOCK:
        with sarek.superstep():
            value = buffer[t] + (buffer[t - distance] if t >= distance else 0)
        with sarek.superstep():
            buffer[t] = value
        distance *= 2
    if i < len(values):
        out[i] = buffer[t]
    if t == SCAN_BLOCK - 1:
        totals[sarek.block_idx.x] = buffer[t]


@sarek.kernel
def add_offsets(out: Array, offsets: Array) -> None:
    """Add to each block the total of the blocks before it."""
    i = sarek.global_idx.x
    block = sarek.block_idx.x
    if block > 0 and i < len(out):
        out[i] += offsets[block - 1]


@sarek.kernel
def histogram(counts: Array, values: Array) -> None:
    """Occurrences of each byte, counted in shared memory first."""
    local = sarek.shared.array(BINS, sarek.uint32)
    t = sarek.thread_idx.x
    with sarek.superstep():
        for k in range(t, BINS, sarek.block_dim.x):
            local[k] = 0
    with sarek.superstep():
        for i in range(sarek.global_idx.x, len(values), sarek.gridsize(1)):
            sarek.atomic.add(local, values[i], 1)
    for k in range(t, BINS, sarek.block_dim.x):
        sarek.atomic.add(counts, k, local[k])


@sarek.kernel
def nbody_step(
    position_out: Array, velocity: Array, position: Array, mass: Array, dt: sarek.float32
) -> None:
    """One step of gravitation among all bodies (softened, symplectic Euler)."""
    i = sarek.global_idx.x
    if i >= len(mass):
        return
    x, y, z = position[i, 0], position[i, 1], position[i, 2]
    ax = ay = az = np.float32(0)
    for j in range(len(mass)):
        dx = position[j, 0] - x
        dy = position[j, 1] - y
        dz = position[j, 2] - z
        square = dx * dx + dy * dy + dz * dz + np.float32(1e-3)
        pull = mass[j] / (square * math.sqrt(square))
        ax += dx * pull
        ay += dy * pull
        az += dz * pull
    velocity[i, 0] += ax * dt
    velocity[i, 1] += ay * dt
    velocity[i, 2] += az * dt
    for axis in range(3):
        position_out[i, axis] = position[i, axis] + velocity[i, axis] * dt


@sarek.kernel
def heat_step(out: Array, field: Array, rate: sarek.float32) -> None:
    """One explicit step of the heat equation; the border keeps its temperature."""
    x, y = sarek.grid(2)
    height, width = field.shape
    if 0 < y < height - 1 and 0 < x < width - 1:
        around = field[y - 1, x] + field[y + 1, x] + field[y, x - 1] + field[y, x + 1]
        out[y, x] = field[y, x] + rate * (around - 4 * field[y, x])
    elif y < height and x < width:
        out[y, x] = field[y, x]
