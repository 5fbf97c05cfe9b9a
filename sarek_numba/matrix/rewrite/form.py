"""What a rewritten kernel is made for: launches of one form share a kernel.

A block computes a tile of the result. Its warps stand in rows and columns, each has a part of
`fragments` rows and columns of fragments, and goes through the inner dimension by steps of `depth`
fragments.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from sarek_numba.ir.nodes import CoopmatConfig, For, Pragma, Stmt
from sarek_numba.ir.types import Scalar
from sarek_numba.matrix.lowering import Lowering


@dataclass(frozen=True, slots=True)
class Staged:
    """Tiles of both operands go through shared memory: any size, any strides."""


@dataclass(frozen=True, slots=True)
class Direct:
    """Fragments come from global memory, which whole tiles and aligned rows allow; a block has
    `warps` warps.
    """

    warps: int


@dataclass(frozen=True, slots=True)
class Own:
    """The device has a kernel of its own for it, of this name."""

    name: str


Variant: TypeAlias = Staged | Direct | Own


def variant_name(variant: Variant) -> str:
    """A variant as reports write it."""
    match variant:
        case Staged():
            return "Staged"
        case Direct(warps=warps):
            return f"Direct({warps})"
        case Own(name=name):
            return name


@dataclass(frozen=True, slots=True)
class Tiling:
    """How a block shares out its work; see the module."""

    warps: tuple[int, int]
    fragments: tuple[int, int]
    depth: int

    @property
    def count(self) -> int:
        """The warps of a block."""
        return self.warps[0] * self.warps[1]

    def shape(self, config: CoopmatConfig) -> tuple[int, int, int]:
        """Rows and columns of the tile of a block, and the inner elements of a step."""
        return (
            self.warps[0] * self.fragments[0] * config.m,
            self.warps[1] * self.fragments[1] * config.n,
            self.depth * config.k,
        )


class Lines(Enum):
    """What of a matrix lies side by side in memory."""

    ROWS = "rows"  # the elements of a row
    COLUMNS = "columns"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Form:
    """`width` is that of a warp, `index` the type that places are computed in; `a`, `b` and `c` say
    how the matrices lie. With `unrolled` short loops are (CPUs share a thread's loops among lanes).
    """

    lowering: Lowering
    variant: Variant
    tiling: Tiling
    config: CoopmatConfig
    width: int
    index: Scalar
    a: Lines
    b: Lines
    c: Lines
    unrolled: bool = True

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.tiling.count * self.width

    def short(self, loop: For) -> Stmt:
        """A loop of a few passes."""
        return Pragma(("unroll",), (loop,)) if self.unrolled else loop
