"""Products by cooperative matrices as a user writes them, and what they must give."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product as pairs
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.capability import Capability, Verdict, fact_of
from sarek_numba.errors import CapabilityError
from sarek_numba.execute import simulated_warp_width
from sarek_numba.ir.nodes import CoopmatConfig
from sarek_numba.ir.semantics import half_of
from sarek_numba.ir.types import Scalar
from tests.executors import EMULATION, device_of, executors

Config = sarek.coopmat.Config
_WITHOUT: set[str] = set()  # executors seen to refuse every kernel of cooperative matrices
LAYOUTS = ("row_major", "column_major")


def as_written(config: CoopmatConfig) -> Config:
    """A configuration of the IR as a user gives it."""
    types = (each.value for each in (config.a, config.b, config.c, config.result))
    return Config(config.m, config.n, config.k, *types, config.saturating, config.scope)


def products(config: Config, a_layout: str = LAYOUTS[0], b_layout: str = LAYOUTS[0]) -> Any:
    """out = a @ b + c of whole tiles; the operands lie as their layouts say, a warp for a tile."""
    m, n, k = config.m, config.n, config.k
    a_by_rows, b_by_rows = a_layout == LAYOUTS[0], b_layout == LAYOUTS[0]

    @sarek.kernel
    def product(a, b, c, out, inner):
        warps = sarek.block_dim.x // sarek.warp.size
        tile = sarek.block_idx.x * warps + sarek.thread_idx.x // sarek.warp.size
        columns = out.shape[1]
        row = tile // (columns // n) * m
        column = tile % (columns // n) * n
        left = sarek.coopmat.fragment(config, "a")
        right = sarek.coopmat.fragment(config, "b")
        total = sarek.coopmat.fragment(config, "c")
        sarek.coopmat.load(total, c, (row, column), columns)
        for step in range(0, inner, k):
            if a_by_rows:
                sarek.coopmat.load(left, a, (row, step), inner)
            else:
                sarek.coopmat.load(left, a, (step, row), a.shape[1], layout=a_layout)
            if b_by_rows:
                sarek.coopmat.load(right, b, (step, column), columns)
            else:
                sarek.coopmat.load(right, b, (column, step), inner, layout=b_layout)
            sarek.coopmat.muladd(total, left, right, total)
        sarek.coopmat.store(total, out, (row, column), columns)

    return product


def once(config: Config) -> Any:
    """out = a @ b + c of one tile, whose result may have another type than c."""

    @sarek.kernel
    def product(a, b, c, out):
        left = sarek.coopmat.fragment(config, "a")
        right = sarek.coopmat.fragment(config, "b")
        added = sarek.coopmat.fragment(config, "c")
        result = sarek.coopmat.fragment(config, "result")
        sarek.coopmat.load(left, a, (0, 0), a.shape[1])
        sarek.coopmat.load(right, b, (0, 0), b.shape[1])
        sarek.coopmat.load(added, c, (0, 0), c.shape[1])
        sarek.coopmat.muladd(result, left, right, added)
        sarek.coopmat.store(result, out, (0, 0), out.shape[1])

    return product


def staged(config: Config) -> Any:
    """out = a @ b of one tile, whose operands go through shared memory; zeros to begin with."""
    m, n, k = config.m, config.n, config.k
    left_type, right_type = np.dtype(config.a), np.dtype(config.b)

    @sarek.kernel
    def product(a, b, out):
        left_tile = sarek.shared.array((m, k), left_type)
        right_tile = sarek.shared.array(k * n, right_type)
        for i in range(sarek.thread_idx.x, m * k, sarek.block_dim.x):
            left_tile[i // k, i % k] = a[i // k, i % k]
        for i in range(sarek.thread_idx.x, k * n, sarek.block_dim.x):
            right_tile[i] = b[i // n, i % n]
        sarek.barrier()
        left = sarek.coopmat.fragment(config, "a")
        right = sarek.coopmat.fragment(config, "b")
        total = sarek.coopmat.fragment(config, "result")
        sarek.coopmat.load(left, left_tile, (0, 0), k)
        sarek.coopmat.load(right, right_tile, 0, n)
        sarek.coopmat.muladd(total, left, right, total)
        sarek.barrier()
        sarek.coopmat.store(total, out, (0, 0), n)

    return product


@dataclass(frozen=True)
class Place:
    """An executor, and the width of its warps."""

    executor: str
    width: int

    def __str__(self) -> str:
        return f"{self.executor}-{self.width}"

    def lists(self, config: Config) -> bool:
        """Whether the executor has a configuration."""
        if self.executor == EMULATION:
            return True
        need = Capability("coopmat", configuration=config.configuration)
        return fact_of(need, device_of(self.executor).record).verdict is Verdict.AVAILABLE

    def lists_any(self) -> bool:
        """Whether the executor has any."""
        fact = fact_of(Capability("coopmat"), device_of(self.executor).record)
        return fact.verdict is Verdict.AVAILABLE

    def run(self, kernel: Any, grid: Any, block: int, *arguments: Any) -> None:
        """One launch; `block` counts warps."""
        threads = block * self.width
        with simulated_warp_width(self.width):
            if self.executor == EMULATION:
                sarek.emulate(kernel)[grid, threads](*arguments)
            else:
                device = device_of(self.executor)
                kernel.launch(*arguments, grid=grid, block=threads, device=device)


def places(*widths: int) -> list[Place]:
    """Every executor, at each of the widths that it has, else at its own."""
    found = [Place(EMULATION, width) for width in widths[:1]]
    for executor in executors():
        if executor == EMULATION:
            continue
        limits = device_of(executor).record.limits
        own = {limits.warp_width_for(width) for width in widths}
        found += [Place(executor, width) for width in sorted(own)]
    return found


def has_none(place: Place, config: Config) -> bool:
    """Whether the executor lacks a configuration, and so refuses a kernel with it by name."""
    if place.lists(config):
        return False
    if place.executor in _WITHOUT:
        return True
    shapes = ((config.a, config.m, config.k), (config.b, config.k, config.n))
    a, b = (np.zeros((rows, columns), name) for name, rows, columns in shapes)
    c, out = (np.ones((config.m, config.n), name) for name in (config.c, config.result))
    with pytest.raises(CapabilityError, match="cooperative matrices"):
        place.run(once(config), 1, 1, a, b, c, out)
    assert (out == 1).all()
    if not place.lists_any():
        _WITHOUT.add(place.executor)
    return True


# --- operands and reference -----------------------------------------------------------------------


def operands(config: Config, tiles: tuple[int, int, int], kind: str, seed: int = 1) -> Any:
    """a, b and c of whole tiles: "random", or "edges", the ends of their types."""
    rng = np.random.default_rng(seed)
    rows, columns, inner = tiles[0] * config.m, tiles[1] * config.n, tiles[2] * config.k
    shapes = ((config.a, (rows, inner)), (config.b, (inner, columns)), (config.c, (rows, columns)))
    return tuple(_elements(rng, np.dtype(name), shape, kind) for name, shape in shapes)


def _elements(rng: np.random.Generator, dtype: Any, shape: tuple[int, int], kind: str) -> Any:
    if dtype.kind not in "iu":
        values = rng.standard_normal(shape)
        reach = 20 if dtype.itemsize > 2 else 6
        edges = values * 2.0 ** rng.integers(-reach, reach, shape)
        return (edges if kind == "edges" else values).astype(dtype)
    ends = np.iinfo(dtype)
    if kind == "edges":
        few = np.array([ends.min, ends.max, 0, 1, ends.max - 1, ends.max // 2 + 1], dtype)
        return rng.choice(few, shape)
    return rng.integers(ends.min, ends.max, shape, dtype, endpoint=True)


def reference(config: Config, a: Any, b: Any, c: Any) -> Any:
    """a @ b + c by multiply-adds of the configuration, in Python's numbers."""
    result = np.dtype(config.result)
    total = _numbers(c)
    for step in range(0, a.shape[1], config.k):
        left = _numbers(a[:, step : step + config.k])
        right = _numbers(b[step : step + config.k])
        if result.kind not in "iu":
            for k in range(config.k):
                total = total + left[:, k, None] * right[None, k, :]
            total = _numbers(_rounded(total.astype(np.float64), result))
            continue
        total = total + left @ right
        ends = np.iinfo(result)
        if config.saturating:
            total = np.minimum(np.maximum(total, int(ends.min)), int(ends.max))
        total = (total - int(ends.min)) % (1 << ends.bits) + int(ends.min)
    return total.astype(result) if result.kind in "iu" else _rounded(total, result)


def _numbers(matrix: Any) -> Any:
    """Python's numbers of a matrix: integers, or floats of 64 bits."""
    return (matrix if matrix.dtype.kind in "iu" else matrix.astype(np.float64)).astype(object)


def _rounded(total: Any, result: Any) -> Any:
    """Floats of 64 bits as a type, rounded once; the package of bfloat16 rounds twice."""
    wide = total.astype(np.float64)
    with np.errstate(over="ignore"):
        return half_of(wide, Scalar.BFLOAT16) if result.name == "bfloat16" else wide.astype(result)


def bytes_of(saturating: bool, k: int = 8, edge: int = 8) -> list[Config]:
    """Configurations of every pair of 8-bit operands."""
    made = []
    for a, b in pairs(("int8", "uint8"), repeat=2):
        result = "uint32" if a == b == "uint8" else "int32"
        made.append(Config(edge, edge, k, a, b, result, result, saturating))
    return made


# Shapes of devices whose fragments are larger: one of each instruction, and composed ones.
LARGER_INTEGERS = [
    *bytes_of(False, 16),
    Config(16, 8, 16, "int8", "uint8", "int32", "int32"),
    Config(16, 8, 32, "uint8", "int8", "int32", "int32"),
    Config(32, 32, 32, "int8", "int8", "int32", "int32"),
    *bytes_of(True, 16, 16),
    Config(16, 8, 32, "uint8", "int8", "uint32", "uint32", True),
    Config(32, 32, 32, "int8", "int8", "int32", "int32", True),
]
LARGER_FLOATS = [
    Config(16, 8, 8, "float16", "float16", "float32", "float32"),
    Config(16, 16, 16, "float16", "float16", "float32", "float32"),
    Config(16, 16, 16, "float16", "float16", "float16", "float16"),
    Config(32, 8, 16, "bfloat16", "bfloat16", "float32", "float32"),
    Config(16, 8, 8, "float64", "float64", "float64", "float64"),
]
