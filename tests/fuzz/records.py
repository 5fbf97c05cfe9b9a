"""Records in generated programs: a table of dtypes, the ways to reach and change what they hold.

A program's array of records gives each thread `RECORDS` of its own. Expressions read and write
single numbers of them, by an index, through a view, through a name of an element, in a value, in a
local array; statements here copy, construct, exchange and hand over whole records.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import sarek_numba as sarek
from tests.fuzz.expressions import Expressions, Scope
from tests.fuzz.modes import PLAIN, Mode
from tests.fuzz.programs import Helper, Statement
from tests.fuzz.statements import Maker
from tests.record_shapes import random_dtype

RECORDS = 3
_MOST_NUMBERS = 9
_READ = 10  # numbers of records that a program's expressions know


@dataclass(frozen=True, slots=True)
class Leaf:
    """A number of a record: its type, and a template whose `{}` takes one of `extent` places."""

    kind: str
    path: str
    extent: int


@dataclass(frozen=True, slots=True)
class Shape:
    """A dtype, the name of its constructor in programs, and its numbers."""

    name: str
    dtype: np.dtype[Any]
    leaves: tuple[Leaf, ...]

    @property
    def is_aligned(self) -> bool:
        return self.dtype.isalignedstruct

    @property
    def nested(self) -> list[str]:
        """Fields that are records."""
        return [name for name in self.dtype.names or () if self.dtype[name].names]

    @property
    def scalars(self) -> list[tuple[str, str]]:
        """Fields that are numbers, with their types."""
        names = self.dtype.names or ()
        return [(n, self.dtype[n].name) for n in names if self.dtype[n].kind in "biuf"]


def _shapes() -> tuple[Shape, ...]:
    """Dtypes with few numbers, half of them packed; each has a number that is a field itself."""
    rng, shapes = random.Random(20261130), []
    while len(shapes) < 16:
        dtype = random_dtype(rng, align=len(shapes) % 2 == 0, depth=2)
        shape = Shape(f"R{len(shapes)}", dtype, tuple(_leaves(dtype)))
        numbers = sum(leaf.extent for leaf in shape.leaves)
        kinds = {kind for _, kind in shape.scalars}
        wants_nested = len(shapes) % 4 < 2
        if numbers <= _MOST_NUMBERS and kinds and bool(shape.nested) >= wants_nested:
            shapes.append(shape)
    return tuple(shapes)


def _leaves(dtype: np.dtype[Any], path: str = "") -> Iterator[Leaf]:
    for name in dtype.names or ():
        field = dtype[name]
        at = f'{path}["{name}"]' if len(name) % 2 and name.endswith("1") else f"{path}.{name}"
        base, extents = field.subdtype or (field, ())
        for index, extent in _indices(extents):
            if base.names is None:
                yield Leaf(base.name, at + index, extent)
            elif extent == 1:
                yield from _leaves(base, at + index)
            else:
                yield from _leaves(base, at + index.format(extent - 1))


def _indices(extents: tuple[int, ...]) -> list[tuple[str, int]]:
    match extents:
        case ():
            return [("", 1)]
        case (n,):
            return [("[{}]", n)]
        case (n, m):
            return [("[{}, 0]", n), (f"[{n - 1}, {{}}]", m)]
    raise ValueError(f"a sub-array of shape {extents}")


SHAPES = _shapes()
GLOBALS: dict[str, Any] = {}
for _shape in SHAPES:
    GLOBALS[_shape.name] = sarek.record(_shape.dtype)
    for _field in _shape.nested:
        GLOBALS[f"{_shape.name}_{_field}"] = sarek.record(_shape.dtype[_field])


class Records:
    """Records of one program."""

    def __init__(self, rng: random.Random, scope: Scope, mode: Mode = PLAIN) -> None:
        self.rng = rng
        self.mode = mode
        self.shape = rng.choice(SHAPES)
        self.make = Expressions(rng, scope)
        self.has_local = rng.random() < 0.5
        self.field, self.field_kind = rng.choice(self.shape.scalars)
        self.array = f"records_{self.shape.name}"
        self.changer: str | None = None
        scope.elements += self._elements()

    def _elements(self) -> list[tuple[str, str, int]]:
        """Some of the numbers, each reached in some way."""
        bases = ["recs[h * 3 + 1]", "recs[h * 3]", "rs[2]", "rs[-3]", "ra", "ra", "rv", "rv"]
        if self.has_local:
            bases += ["rl[0]", "rl[1]"]
        known = [(self.field_kind, "rx[h * 3 + {}]", RECORDS)]
        for _ in range(_READ):
            leaf = self.rng.choice(self.shape.leaves)
            known.append((leaf.kind, self.rng.choice(bases) + leaf.path, leaf.extent))
        return known

    @property
    def arrays(self) -> list[tuple[str, str]]:
        """Parameters and their arrays."""
        return [("recs", self.array)]

    def attach(self, maker: Maker) -> None:
        """Let a program's statements use them."""
        maker.simples.append(self.simple)
        if not self.mode.warps:  # its shared array is of four records
            maker.hand_overs.append(self.hand_over)

    def prologue(self) -> tuple[str, ...]:
        local = (
            f"rl = sarek.local.array(2, {self.shape.name})",
            "for k in range(2): rl[k] = recs[h * 3 + k]",
        )
        return (
            f"rs = recs[h * {RECORDS} : h * {RECORDS} + {RECORDS}]",
            f"rt = sarek.shared.array(4, {self.shape.name})",
            f'rx = recs["{self.field}"]',
            f"ra = recs[h * {RECORDS} + 1]",
            "rv = recs[h * 3 + 2].copy()",
            *(local if self.has_local else ()),
        )

    def epilogue(self) -> tuple[str, ...]:
        return (f"rs[{self.rng.randrange(RECORDS)}] = {self.rng.choice(['rv', 'rv', 'ra'])}",)

    def simple(self) -> str:
        """An assignment of a whole record."""
        target = self._place()
        target = "rs[1]" if target == "ra" else target  # assigning to the name would rebind it
        kind = self.rng.randrange(8)
        if kind == 0:
            return "rs[0], rs[2] = rs[2], rs[0]"
        if kind == 1:
            return f"rv = {self._place()}.copy()"
        if kind == 2:
            return f"rv = {self._made()}"
        if kind == 3 and self.shape.nested:
            field = self.rng.choice(self.shape.nested)
            return f"{target}.{field} = {self._place()}.{field}"
        if kind == 4 and self.shape.nested:
            field = self.rng.choice(self.shape.nested)
            return f"{target}.{field} = {self._made(field)}"
        if kind in (5, 6, 7) and self.changer is not None:
            given = self._place()
            return f"rv, a = {self.changer}({given}, {self.make.of('int', 1)})"
        return f"{target} = {self._place()}{'.copy()' * (target == 'rv')}"

    def _place(self) -> str:
        local = ("rl[0]", "rl[a % 2]") if self.has_local else ()
        return self.rng.choice(("rs[0]", "rs[b % 3]", "recs[h * 3 + 1]", "ra", "rv", "rv", *local))

    def _made(self, field: str | None = None) -> str:
        """A constructed record, some of its numbers given."""
        dtype = self.shape.dtype if field is None else self.shape.dtype[field]
        name = self.shape.name if field is None else f"{self.shape.name}_{field}"
        scalars = [(n, dtype[n].name) for n in dtype.names or () if dtype[n].kind in "biuf"]
        chosen = [pair for pair in scalars if self.rng.random() < 0.7]
        return f"{name}({', '.join(f'{n}={self._number(kind)}' for n, kind in chosen)})"

    def _number(self, kind: str) -> str:
        if kind != "bool" and kind not in self.make.scope.strong:
            return f"np.{kind}({self.make.expand('<small>')})"
        return self.make.of(kind, 1)

    def hand_over(self) -> list[Statement]:
        """Records through shared memory."""
        leaf = self.rng.choice(self.shape.leaves)
        others = ["rt[3 - t]", "rt[(t + 1) % 4]", "rt[t ^ 1]"]
        if self.mode.wraparound:
            others.append("rt[-1 - t]")
        other = self.rng.choice(others)
        place = leaf.path.format(self.rng.randrange(leaf.extent))
        take = self.rng.choice(
            (f"rv = {other}.copy()", f"rs[1] = {other}", f"rs[2]{place} = {other}{place}")
        )
        lines = (f"rt[t] = {self._place()}", "sarek.barrier()", take, "sarek.barrier()")
        return [Statement(line) for line in lines]

    def helper(self, seed: int) -> Helper:
        """A device function that changes its record, a value of its own, and returns it."""
        scope = Scope({"int": ["k"], "float": ["w"], "bool": ["y"]})
        scope.elements = [(leaf.kind, f"r{leaf.path}", leaf.extent) for leaf in self.shape.leaves]
        make = Expressions(self.rng, scope)
        body = [Statement("w = 0.25"), Statement("y = k > 2")]
        for _ in range(self.rng.randrange(1, 4)):
            leaf = self.rng.choice(self.shape.leaves)
            place = f"r{leaf.path.format(self.rng.randrange(leaf.extent))}"
            change = Statement(f"{place} = {make.of(leaf.kind)}")
            if self.rng.random() < 0.4:
                change = Statement(parts=[(f"if {make.condition()}", [change])])
            body.append(change)
        if self.rng.random() < 0.4:
            early = Statement("return r, k % 7")
            body.insert(2, Statement(parts=[(f"if {make.condition()}", [early])]))
        self.changer = f"changed_{seed}"
        return Helper(self.changer, "r, k", body, "r, k % 50")
