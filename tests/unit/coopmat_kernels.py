"""Products by cooperative matrices, as kernels in IR, with operands and an exact reference."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sarek_numba.ir.nodes import CoopmatConfig, Kernel
from sarek_numba.ir.parse import parse
from sarek_numba.ir.spelling import SCALAR_NAMES
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.verify import check_convergence, verify

WARPS = 2  # of a block, side by side along the columns
TILES = (2, 2, 3)  # along rows, columns in warps of a block, and the inner dimension


@dataclass(frozen=True)
class Product:
    """out = a @ b + c of whole tiles; `columns` names the matrices that lie column by column.

    `memory` is where the operands' fragments come from: "global", "shared" (an array for each), or
    "dynamic" (views of one region, of which the first is of bytes).
    """

    config: CoopmatConfig
    width: int
    columns: str = ""
    memory: str = "global"

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns and inner dimension of the whole product."""
        down, across, inner = TILES
        c = self.config
        return down * c.m, across * WARPS * c.n, inner * c.k

    @property
    def block(self) -> int:
        return WARPS * self.width

    @property
    def grid(self) -> tuple[int, int]:
        """Of blocks, along columns and rows."""
        return TILES[1], TILES[0]

    def kernel(self) -> Kernel:
        """The verified kernel `product(a, b, c, out)`."""
        kernel = parse(self.text())
        verify(kernel)
        assert check_convergence(kernel) == []
        return kernel

    def text(self) -> str:
        c = self.config
        rows, columns, inner = self.shape
        types = {"a": c.a, "b": c.b, "c": c.c, "out": c.result}
        params = "".join(
            f"  param {name}: vec<{SCALAR_NAMES[type]}> = argument {number} "
            f"array({SCALAR_NAMES[type]}, global, 1, C{'' if name == 'out' else ', readonly'})\n"
            for number, (name, type) in enumerate(types.items())
        )
        staging = "" if self.memory == "global" else self._staging()
        return (
            f"kernel product index 32 warp {self.width} {{\n{params}{self._arrays()}"
            f"  coopmat declare({self._fragment('a')})\n"
            f"  coopmat declare({self._fragment('b')})\n"
            f"  coopmat declare({self._fragment('acc')})\n"
            f"  let warp_idx: i64 = thread_idx.x //.wu {self.width}\n"
            f"  let row: i64 = block_idx.y *.w {c.m}\n"
            f"  let first: i64 = block_idx.x *.w {WARPS * c.n}\n"
            f"  let column: i64 = first +.w warp_idx *.w {c.n}\n"
            f"  coopmat load({self._fragment('acc')}, "
            f"{self._tile('c', 'c', 'row', 'column', rows, columns)})\n"
            f"  for t: i64 in range(0, {TILES[2]}, 1) {{\n"
            f"    let step: i64 = t *.w {c.k}\n{staging}"
            f"    coopmat load({self._fragment('a')}, {self._operand('a', rows, inner)})\n"
            f"    coopmat load({self._fragment('b')}, {self._operand('b', inner, columns)})\n"
            f'    coopmat muladd("acc", "a", "b", "acc", {self._config()})\n'
            f"{'    barrier' if staging else ''}\n"
            f"  }}\n"
            f"  coopmat store({self._fragment('acc')}, "
            f"{self._tile('out', 'out', 'row', 'column', rows, columns)})\n}}\n"
        )

    def _fragment(self, name: str) -> str:
        c = self.config
        use, type, rows, columns = {
            "a": ("a", c.a, c.m, c.k),
            "b": ("b", c.b, c.k, c.n),
            "acc": ("result", c.result, c.m, c.n),
        }[name]
        return f'"{name}", fragment("{use}", {SCALAR_NAMES[type]}, {rows}, {columns}, "subgroup")'

    def _config(self) -> str:
        c = self.config
        types = ", ".join(SCALAR_NAMES[type] for type in (c.a, c.b, c.c, c.result))
        return f'config({c.m}, {c.n}, {c.k}, {types}, {str(c.saturating).lower()}, "subgroup")'

    def _tile(self, name: str, array: str, row: str, column: str, rows: int, columns: int) -> str:
        """Place, stride and order of a tile of a matrix of so many rows and columns."""
        if name in self.columns.split():
            return f"{array}[{column} *.w {rows} +.w {row}], {rows}, column_major"
        return f"{array}[{row} *.w {columns} +.w {column}], {columns}, row_major"

    def _operand(self, name: str, rows: int, columns: int) -> str:
        c = self.config
        if self.memory == "global":
            row, column = ("row", "step") if name == "a" else ("step", "column")
            return self._tile(name, name, row, column, rows, columns)
        shape = (c.m, c.k) if name == "a" else (c.k, WARPS * c.n)
        column = "0" if name == "a" else f"warp_idx *.w {c.n}"
        return self._tile(name, f"{name}_tile", "0", column, *shape)

    def _arrays(self) -> str:
        c = self.config
        counts = {"a": c.m * c.k, "b": c.k * WARPS * c.n}
        types = {"a": SCALAR_NAMES[c.a], "b": SCALAR_NAMES[c.b]}
        if self.memory == "shared":
            return "".join(
                f"  shared {name}_tile: array<{types[name]}, shared> = "
                f"{types[name]}[{counts[name]}]\n"
                for name in "ab"
            )
        if self.memory == "dynamic":
            second = counts["a"] * c.a.bits // 8
            return (
                f"  shared bytes: array<u8, shared> = u8[dynamic]\n"
                f"  shared a_tile: array<{types['a']}, shared> = {types['a']}[dynamic]\n"
                f"  shared b_tile: array<{types['b']}, shared> = {types['b']}[dynamic] "
                f"at {second}\n"
            )
        return ""

    @property
    def shared_bytes(self) -> int:
        """Of the dynamic region."""
        c = self.config
        count = c.m * c.k * c.a.bits // 8 + c.k * WARPS * c.n * c.b.bits // 8
        return count if self.memory == "dynamic" else 0

    def _staging(self) -> str:
        """Every thread brings some elements of both operands to the block."""
        c = self.config
        rows, columns, inner = self.shape
        made = ""
        for name, (height, width), whole, origin in (
            ("a", (c.m, c.k), (rows, inner), ("row", "step")),
            ("b", (c.k, WARPS * c.n), (inner, columns), ("step", "first")),
        ):
            by_columns = name in self.columns.split()
            tall = height if by_columns else width
            r, q = (
                (f"{name}_low", f"{name}_high") if by_columns else (f"{name}_high", f"{name}_low")
            )
            line = whole[0] if by_columns else whole[1]
            high = f"({origin[1]} +.w {q})" if by_columns else f"({origin[0]} +.w {r})"
            low = f"({origin[0]} +.w {r})" if by_columns else f"({origin[1]} +.w {q})"
            made += (
                f"    for {name}_i: i64 in range(thread_idx.x, {height * width}, {self.block}) {{\n"
                f"      let {name}_high: i64 = {name}_i //.wu {tall}\n"
                f"      let {name}_low: i64 = {name}_i %.wu {tall}\n"
                f"      {name}_tile[{name}_i] = {name}[{high} *.w {line} +.w {low}]\n    }}\n"
            )
        return f"{made}    barrier\n"

    # --- operands and reference ---

    def stored(self, name: str, matrix: np.ndarray) -> np.ndarray:
        """A matrix as its elements lie in memory."""
        return np.ravel(matrix, order="F" if name in self.columns.split() else "C")

    def matrix(self, name: str, stored: np.ndarray) -> np.ndarray:
        """The other way round, of `out`."""
        rows, columns, _ = self.shape
        order = "F" if name in self.columns.split() else "C"
        return stored.reshape((rows, columns), order=order)


def operands(product: Product, kind: str, seed: int) -> tuple[np.ndarray, ...]:
    """a, b and c: "random", or "edges", the ends of their types and zero."""
    rng = np.random.default_rng(seed)
    rows, columns, inner = product.shape
    c = product.config
    shapes = ((c.a, (rows, inner)), (c.b, (inner, columns)), (c.c, (rows, columns)))
    return tuple(_elements(rng, type, shape, kind) for type, shape in shapes)


def _elements(rng: np.random.Generator, type: Scalar, shape: tuple[int, int], kind: str):
    dtype = np.dtype(type.value)
    if type.is_float:
        return rng.standard_normal(shape).astype(dtype)
    ends = np.iinfo(dtype)
    if kind == "edges":
        values = np.array([ends.min, ends.max, 0, 1, ends.max - 1, ends.max // 2 + 1], dtype)
        return rng.choice(values, shape)
    return rng.integers(ends.min, ends.max, shape, dtype, endpoint=True)


def exact(product: Product, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a @ b + c of integers, modulo 2^n or with each step's sums at the ends of the type."""
    result = np.dtype(product.config.result.value)
    total = c.astype(object)
    step = product.config.k
    for k in range(0, a.shape[1], step):
        total = total + a[:, k : k + step].astype(object) @ b[k : k + step].astype(object)
        if product.config.saturating:
            ends = np.iinfo(result)
            total = np.minimum(np.maximum(total, int(ends.min)), int(ends.max))
    bits = 8 * result.itemsize
    return (total % (1 << bits)).astype(f"u{result.itemsize}").view(result)


def float_errors(
    product: Product, a: np.ndarray, b: np.ndarray, c: np.ndarray, found: np.ndarray
) -> np.ndarray:
    """How many times the permitted error each result is off, against exact sums of fractions.

    Permitted is, of the sum of magnitudes, k * 2**-24 where sums are float32, k * 2**-11 where they
    are float16; k counts the products of all multiply-adds.
    """
    rows, columns, inner = product.shape
    exactly = [[Fraction(float(v)) for v in line] for line in c]
    errors = np.empty((rows, columns))
    bits = 11 if product.config.result is Scalar.FLOAT16 else 24
    for i in range(rows):
        for j in range(columns):
            products = [
                Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a[i], b[:, j], strict=True)
            ]
            magnitude = sum(map(abs, products), abs(exactly[i][j]))
            allowed = Fraction(inner, 1 << bits) * magnitude
            error = abs(Fraction(float(found[i, j])) - exactly[i][j] - sum(products))
            errors[i, j] = float(error / allowed) if allowed else float(error > 0)
    return errors
