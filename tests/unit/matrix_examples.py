"""Examples of kernels that are products of matrices: how they are kept, their arguments.

`arguments` makes what a word stands for: `c` is the result (m by n), `a` is m by k, `b` is k by n;
with `t` they are transposed, with `f` flat, with `s` parts of larger matrices, with `3` batches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes  # noqa: F401  # NumPy knows bfloat16 by it
import numpy as np

import sarek_numba as sarek

f32 = np.float32
BATCH = 3


@dataclass(frozen=True)
class Example:
    """A kernel, the words for its arguments, the grid's word, the types of operands and result."""

    kernel: Any
    words: tuple[str, ...]
    grid: str
    operand: str
    result: str

    @property
    def name(self) -> str:
        return str(self.kernel.__name__)


EXAMPLES: list[Example] = []


def kernel(name: str) -> Any:
    """The example of a name."""
    return next(one.kernel for one in EXAMPLES if one.name == name)


def product(
    words: str, grid: str = "m n", operand: str = "float32", result: str = ""
) -> Callable[[Any], Any]:
    def keep(function: Any) -> Any:
        made = Example(
            sarek.kernel(function), tuple(words.split()), grid, operand, result or operand
        )
        EXAMPLES.append(made)
        return made.kernel

    return keep


def arguments(example: Example, m: int, n: int, k: int, seed: int) -> list[Any]:
    """Arguments of small whole numbers; what is not given to the kernel around them is theirs."""
    source = np.random.default_rng(seed)
    shapes = {"c": (m, n), "a": (m, k), "b": (k, n)}

    def made(word: str) -> Any:
        if word.startswith("np."):
            return np.int32(made(word[3:]))
        if word[0] in shapes and word not in ("beta", "bias", "alpha"):
            return matrix(word[0], word[1:])
        vectors = {"bias": (n,), "rows": (m,), "residual": (m, n)}
        if word in vectors:
            return source.integers(-4, 5, vectors[word]).astype(example.result)
        numbers: dict[str, Any] = {
            "m": m, "n": n, "k": k, "alpha": f32(2), "beta": f32(-3), "lda": k + 3, "ldb": n + 3
        }  # fmt: skip
        return numbers[word]

    def matrix(which: str, how: str) -> Any:
        shape: tuple[int, ...] = (m, m) if how == "q" else shapes[which]
        kind = example.result if which == "c" else example.operand
        low = 0 if kind.startswith("u") else -3
        if how.startswith("3"):
            shape = (BATCH, *shape)
        if "t" in how:
            shape = shape[::-1]
        room = tuple(size + 3 for size in shape) if how == "s" else shape
        values = source.integers(low, 4, room).astype(kind)
        if "f" in how:
            return values.ravel()
        if how == "F":
            return np.asfortranarray(values)
        return values[1 : shape[0] + 1, 2 : shape[1] + 2] if how == "s" else values

    return [made(word) for word in example.words]


def dimensions(example: Example, m: int, n: int, k: int) -> tuple[Any, Any]:
    """Grid and block for the word of an example."""
    words = example.grid.split()
    sizes = {"m": m, "n": n, "mn": m * n, "bmn": BATCH * m * n, "b": BATCH, "m/4": -(-m // 4)}
    block = [4, 2, 2][: max(2, len(words))]
    if words[-1] == "one":
        return (1, 1), (1, 1)
    if words[-1] == "16":
        words, block = words[:-1], [16, 2]
    grid = []
    for at, word in enumerate(words):
        if word.isupper():  # as many threads as elements
            block[at] = 1
            grid.append(sizes[word.lower()])
        elif word.isdigit():
            block[at] = block[at] if int(word) > 1 else 1
            grid.append(int(word))
        else:
            grid.append(-(-sizes[word] // block[at]))
    return tuple(grid), tuple(block[: len(grid)])
