"""Does a Vulkan driver's own division, square root and fma round correctly?

    python tools/measure_rounding.py [DEVICE]

The driver's instructions are used whatever its record says, on random bits and on arguments that
are hard, and compared bit by bit with the native device. What is found belongs into the tables of
`sarek_vulkan.record`. Takes ten seconds on a GPU.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import sarek_numba as sarek
from sarek_numba.ir.types import FLOAT32, FLOAT64
from sarek_numba.runtime.registry import Device
from sarek_vulkan.runtime import VulkanDriver

COUNT, SEEDS, BLOCK = 1 << 21, range(1, 5), 256
_BITS: dict[type, type] = {np.float32: np.uint32, np.float64: np.uint64}


@sarek.kernel
def quotients(out, a, b, c):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = a[i] / b[i]


@sarek.kernel
def roots(out, a, b, c):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = math.sqrt(a[i])


@sarek.kernel
def fused(out, a, b, c):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = sarek.math.fma(a[i], b[i], c[i])


def numbers(dtype: type, random: np.random.Generator) -> Any:
    """A half of random bits; near each other, whole, around the subnormal numbers."""
    bits = _BITS[dtype]
    top = np.iinfo(bits).max
    found = random.integers(0, top, COUNT, dtype=bits, endpoint=True).view(dtype).copy()
    part = COUNT // 8
    found[: 2 * part] = random.uniform(-4, 4, 2 * part)
    found[2 * part : 3 * part] = random.integers(-1000, 1000, part)
    found[3 * part : 4 * part] = random.uniform(0, 8, part) * np.finfo(dtype).tiny
    return found


def operands(kernel: Any, dtype: type) -> Iterator[tuple[Any, Any, Any]]:
    """Sets of three, made hard for the operation."""
    for seed in SEEDS:
        random = np.random.default_rng(seed)
        a, b, c = (numbers(dtype, random) for _ in range(3))
        if kernel is fused:  # what is left is the error of the product
            with np.errstate(all="ignore"):
                c[COUNT // 2 : 3 * COUNT // 4] = -(a * b)[COUNT // 2 : 3 * COUNT // 4]
        else:
            b = random.permutation(b)
        if kernel is roots:
            a = np.abs(a)
            a[:1000] = np.arange(1000) ** 2
        yield a, b, c


def trusted(name: str) -> Device:
    """The device, whose own instructions are used for everything."""
    found: Any = sarek.device(name).driver
    driver = VulkanDriver(found.physical, f"{name}-own")
    both = frozenset({FLOAT32, FLOAT64})
    driver.abilities = replace(
        driver.abilities, exact_division=both, exact_square_root=both, exact_fma=both
    )
    return Device(driver)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("device", nargs="?", default="vulkan:0")
    device = trusted(parser.parse_args().device)
    print(device.record.description)
    for dtype in _BITS:
        for kernel in (quotients, roots, fused):
            wrong, of = np.zeros(2, int), np.zeros(2, int)
            for given in operands(kernel, dtype):
                found, exact = (np.full(COUNT, 7.25, dtype) for _ in range(2))
                for out, where in ((found, device), (exact, sarek.device("native"))):
                    kernel.launch(out, *given, grid=COUNT // BLOCK, block=BLOCK, device=where)
                bits = _BITS[dtype]
                bad = found.view(bits) != exact.view(bits)
                bad &= ~(np.isnan(found) & np.isnan(exact))
                tiny = np.zeros(COUNT, bool)
                for each in (exact, *given[: {quotients: 2, roots: 1, fused: 3}[kernel]]):
                    tiny |= (np.abs(each) < np.finfo(dtype).tiny) & (each != 0)
                wrong += [np.count_nonzero(bad & ~tiny), np.count_nonzero(bad & tiny)]
                of += [np.count_nonzero(~tiny), np.count_nonzero(tiny)]
            print(
                f"{kernel.__name__} of {dtype.__name__}: {wrong[0]} of {of[0]} wrong, "
                f"{wrong[1]} of {of[1]} with subnormal numbers"
            )


if __name__ == "__main__":
    main()
