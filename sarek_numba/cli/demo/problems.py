"""The problems of the demonstration: inputs, the launches that solve them, and what to look at.

Each problem gives the same arrays on every device; the oracle's are the reference. Sizes are chosen
so that the oracle, which checks every access, takes a few seconds for all of them together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sarek_numba.cli.demo import kernels

Image = npt.NDArray[Any]
BLOCK = (16, 16)


@dataclass(frozen=True)
class Problem:
    """`solve` launches on the device in use and returns the results; `picture` shows them."""

    name: str
    what: str
    prepare: Callable[[], tuple[Any, ...]]
    solve: Callable[..., Image]
    picture: Callable[[Image], Image] | None = None


def _grid(height: int, width: int) -> tuple[int, int]:
    return -(-width // BLOCK[0]), -(-height // BLOCK[1])


def photograph() -> tuple[Image]:
    """A photograph of a cat, 300 × 451 pixels, that scikit-image ships (CC0)."""
    from skimage import data

    return (np.ascontiguousarray(data.chelsea()),)


def _grey(image: Image) -> Image:
    height, width, _ = image.shape
    grey = np.empty((height, width), np.float32)
    kernels.to_grey[_grid(height, width), BLOCK](grey, image)
    return grey


def blur(image: Image) -> Image:
    grey = _grey(image)
    out = np.empty_like(grey)
    for _ in range(3):
        kernels.blur[_grid(*grey.shape), BLOCK](out, grey)
        grey, out = out, grey
    return grey


def edges(image: Image) -> Image:
    grey = blur(image)
    out = np.empty_like(grey)
    kernels.edges[_grid(*grey.shape), BLOCK](out, grey)
    return out


def mandelbrot(width: int, height: int, limit: int) -> Image:
    steps = np.empty((height, width), np.int32)
    scale = 3.0 / width
    kernels.mandelbrot[_grid(height, width), BLOCK](steps, -2.25, -scale * height / 2, scale, limit)
    return steps


def matrices() -> tuple[Image, Image]:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 200, 200)).astype(np.float32)
    return a, b


def matmul_naive(a: Image, b: Image) -> Image:
    c = np.empty((len(a), b.shape[1]), np.float32)
    kernels.matmul_naive[_grid(*c.shape), BLOCK](c, a, b)
    return c


def matmul_tiled(a: Image, b: Image) -> Image:
    c = np.empty((len(a), b.shape[1]), np.float32)
    kernels.matmul_tiled[_grid(*c.shape), BLOCK](c, a, b)
    return c


def million() -> tuple[Image]:
    return (np.random.default_rng(2).integers(-1000, 1000, 1_000_000).astype(np.int32),)


def scan(values: Image) -> Image:
    """Inclusive sum of any length: scan blocks, scan their totals, add what came before."""
    blocks = -(-len(values) // kernels.SCAN_BLOCK)
    out = np.empty_like(values)
    totals = np.empty(blocks, np.int32)
    kernels.scan_blocks[blocks, kernels.SCAN_BLOCK](out, totals, values)
    if blocks > 1:
        kernels.add_offsets[blocks, kernels.SCAN_BLOCK](out, scan(totals))
    return out


def million_bytes() -> tuple[Image]:
    normal = np.random.default_rng(3).normal(128, 40, 1_000_000)
    return (np.clip(normal, 0, 255).astype(np.uint8),)


def histogram(values: Image) -> Image:
    counts = np.zeros(kernels.BINS, np.uint32)
    kernels.histogram[64, 256](counts, values)
    return counts


def galaxy() -> tuple[Image, Image, Image]:
    """A rotating disc: positions, velocities, masses."""
    rng = np.random.default_rng(4)
    n = 512
    radius, angle = np.sqrt(rng.uniform(0.01, 1, n)), rng.uniform(0, 2 * np.pi, n)
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    position = np.stack([x, y, rng.normal(0, 0.02, n)], 1).astype(np.float32)
    velocity = (np.stack([-y, x, np.zeros(n)], 1) * 0.6).astype(np.float32)
    return position, velocity, np.full(n, 1 / n, np.float32)


def nbody(position: Image, velocity: Image, mass: Image) -> Image:
    position, velocity = position.copy(), velocity.copy()
    out = np.empty_like(position)
    for _ in range(10):
        kernels.nbody_step[-(-len(mass) // 128), 128](out, velocity, position, mass, 0.01)
        position, out = out, position
    return position


def hot_plate() -> tuple[Image]:
    """A cold square plate with two hot sides and a hot spot."""
    field = np.zeros((192, 192), np.float32)
    field[0] = 1
    field[:, 0] = 0.5
    field[90:110, 120:140] = 1
    return (field,)


def heat(field: Image) -> Image:
    field, out = field.copy(), np.empty_like(field)
    for _ in range(60):
        kernels.heat_step[_grid(*field.shape), BLOCK](out, field, 0.2)
        field, out = out, field
    return field


def _heat_picture(field: Image) -> Image:
    return _scaled(np.sqrt(field))


def _scaled(values: Image) -> Image:
    low, high = float(values.min()), float(values.max())
    return ((values - low) / max(high - low, 1e-30) * 255).astype(np.uint8)


def _mandelbrot_picture(steps: Image) -> Image:
    return _scaled(np.where(steps == steps.max(), 0, np.log1p(steps)))


def _histogram_picture(counts: Image) -> Image:
    heights = (counts / counts.max() * 200).astype(int)
    rows = np.arange(200)[::-1, None]
    return np.repeat(np.where(rows < heights, 40, 240).astype(np.uint8), 2, axis=1)


def _nbody_picture(position: Image) -> Image:
    count, _, _ = np.histogram2d(
        position[:, 1], position[:, 0], bins=256, range=[[-1.2, 1.2], [-1.2, 1.2]]
    )
    return _scaled(np.minimum(count, 2))


def _mandelbrot_size() -> tuple[int, int, int]:
    return 360, 240, 200


PROBLEMS = (
    Problem("blur", "photograph, 5 × 5 Gaussian", photograph, blur, _scaled),
    Problem("edges", "Sobel gradient of the blurred photograph", photograph, edges, _scaled),
    Problem(
        "mandelbrot", "360 × 240, 200 iterations", _mandelbrot_size, mandelbrot, _mandelbrot_picture
    ),
    Problem("matmul_naive", "200 × 200, float32", matrices, matmul_naive),
    Problem("matmul_tiled", "200 × 200, through shared memory", matrices, matmul_tiled),
    Problem("scan", "sum of a million int32", million, scan),
    Problem("histogram", "a million bytes", million_bytes, histogram, _histogram_picture),
    Problem("nbody", "512 bodies, 10 steps", galaxy, nbody, _nbody_picture),
    Problem("heat", "192 × 192 plate, 60 steps", hot_plate, heat, _heat_picture),
)
