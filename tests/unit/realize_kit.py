"""Kernels and schedules for the tests of `sarek_numba.realize`."""

from __future__ import annotations

from typing import Any

import numpy as np

import sarek_numba as sarek
from sarek_numba import realize
from sarek_numba.realize import Buffer, CustomCall, KernelCall, LaunchInfo, Linear, Variable

N = 64


@sarek.kernel
def scale(out: Any, x: Any, n: Any, a: Any) -> None:
    i = sarek.global_idx.x
    if i < n:
        out[i] = a * x[i]


@sarek.kernel
def rename(target: Any, given: Any, count: Any, factor: Any) -> None:
    """`scale` under other names."""
    k = sarek.global_idx.x
    if k < count:
        target[k] = factor * given[k]


@sarek.kernel
def number(out: Any, position: Any) -> None:
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = position


SCALE = scale.ir(sarek.float32[:], sarek.float32[:], int, sarek.float32)
RENAMED = rename.ir(sarek.float32[:], sarek.float32[:], int, sarek.float32)
NUMBER = number.ir(sarek.float32[:], int)
SIZE = Variable("n", 0, N)
INFO = LaunchInfo(realize.ceiling(SIZE, 16), 16)


def buffer(size: int = N, device: Any = None) -> Buffer:
    """A node of float32."""
    return Buffer(size, np.dtype(np.float32), device)


def scaled(out: Any, x: Any, factor: Any = 2.0, n: Any = SIZE) -> KernelCall:
    """out[:n] = factor * x[:n]"""
    return KernelCall(SCALE, (out, x, n, factor), INFO)


def graph(*calls: Any) -> Linear:
    """A schedule of one graph."""
    return Linear((CustomCall("graph", linear=Linear(calls)),))


def floats(start: int = 0, size: int = N) -> Any:
    """A vector of numbers from `start` on."""
    return sarek.arange(start, start + size, dtype=np.float32)
