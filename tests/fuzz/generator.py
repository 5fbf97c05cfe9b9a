"""`generate(seed)`: the program of a seed.

A program has arrays of two integer types and a real one, rows, and some of the features: records,
atomics, complex numbers, device functions, variants, warps, hints, halves. The generator has
versions, so that what is known of a seed stays true: each gives its own programs. Every thread
reads and writes its own elements, and shares others only across barriers that all threads of its
block or warp reach.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

from tests.fuzz.atomics import Atomics
from tests.fuzz.complexes import Complexes
from tests.fuzz.expressions import BOOL, FLOAT, INT, INTEGERS, REALS, Scope
from tests.fuzz.functions import Functions
from tests.fuzz.halves import Halves
from tests.fuzz.modes import PLAIN, Mode, mode_of
from tests.fuzz.programs import Helper, Program, Statement
from tests.fuzz.records import Records
from tests.fuzz.statements import COLUMNS, OWN, Maker
from tests.fuzz.tuple_loops import TupleLoops
from tests.fuzz.variants import Variants
from tests.fuzz.warps import Warps

GENERATOR = 3  # the newest version of the generator

_LOCAL = 4


class _Feature(Protocol):
    """What a feature adds to a program, beside what it did to the scope."""

    @property
    def arrays(self) -> Sequence[tuple[str, str]]:
        """Parameters and the arrays that they get."""

    def prologue(self) -> tuple[str, ...]: ...

    def epilogue(self) -> tuple[str, ...]: ...

    def attach(self, maker: Maker) -> None:
        """Give statements to a maker."""


def generate(seed: int, generator: int = GENERATOR) -> Program:
    """The program of a seed, as a version of the generator makes it."""
    if generator == 1:
        return _first(seed)
    if generator not in (2, GENERATOR):
        raise ValueError(f"generators are 1 to {GENERATOR}, not {generator}")
    return _later(seed, generator)


def _first(seed: int) -> Program:
    """Records, atomics, complex numbers and device functions; no hints, no warps."""
    rng = random.Random(seed)
    elements = (rng.choice(INTEGERS), rng.choice(INTEGERS), rng.choice(REALS))
    shapes = _Shapes(rng, elements)
    scope = shapes.scope()
    functions = Functions(rng, seed, elements)
    if rng.random() < 0.6:
        functions.make(rng.randrange(1, 4))
    helpers = functions.made
    scope.calls += functions.calls
    # a barrier needs all threads of its block, so a kernel has barriers or early returns
    has_barriers = rng.random() < 0.4
    records = Records(rng, scope) if rng.random() < 0.4 else None
    complexes = Complexes(rng, scope) if rng.random() < 0.25 else None
    atomics = Atomics(rng, scope, elements, has_barriers) if rng.random() < 0.4 else None
    if rng.random() < 0.5:
        helpers = [*helpers, _helper(rng, seed, elements, functions.calls)]
    if records is not None and rng.random() < 0.6:
        helpers = [*helpers, records.helper(seed)]
    maker = Maker(rng, scope, elements)
    maker.has_barriers = has_barriers
    maker.tuple_helper = next((h.name for h in helpers if h.name.startswith("helper")), None)
    used = [part for part in (records, complexes, atomics) if part is not None]
    maker.simples += [part.simple for part in used]
    maker.hand_overs += [p.hand_over for p in (records, atomics) if p is not None]
    names = {Records: "recs", Complexes: "zs", Atomics: "cells"}
    extras = tuple((names[type(part)], part.array) for part in used)
    return _program(seed, shapes, extras, used, maker, helpers)


def _later(seed: int, generator: int) -> Program:
    """Variants, warps, hints and loops over tuples too; functions and atomics more often.

    From generator 3 on most programs have halves.
    """
    rng, mode = random.Random(f"{generator} {seed}"), mode_of(seed)
    elements = (rng.choice(INTEGERS), rng.choice(INTEGERS), rng.choice(REALS))
    shapes = _Shapes(rng, elements, mode)
    scope = shapes.scope()
    functions = Functions(rng, seed, elements, mode, more=True)
    if rng.random() < 0.7:
        functions.make(rng.randrange(1, 4))
    scope.calls += functions.calls
    # warps need their threads too: a kernel with them has no early returns of single threads
    has_barriers = rng.random() < (0.6 if mode.warps else 0.5)
    records = Records(rng, scope, mode) if rng.random() < 0.25 else None
    complexes = Complexes(rng, scope) if rng.random() < 0.15 else None
    atomics = None
    if rng.random() < (0.5 if has_barriers else 0.3):
        atomics = Atomics(rng, scope, elements, has_barriers, mode, shared=0.8)
    variants = Variants(rng, scope, mode) if rng.random() < 0.45 else None
    warps = Warps(rng, scope, elements, has_barriers) if mode.warps else None
    halves = None
    if generator > 2 and rng.random() < 0.8:
        halves = Halves(rng, scope, mode, has_barriers or mode.warps)
    helpers = functions.made
    if rng.random() < 0.4:
        helpers = [*helpers, _helper(rng, seed, elements, functions.calls, mode)]
    if records is not None and rng.random() < 0.6:
        helpers = [*helpers, records.helper(seed)]
    if variants is not None and rng.random() < 0.7:
        variants.make_helpers(seed, elements, functions.calls)
        helpers = [*helpers, *variants.helpers]
    if warps is not None and rng.random() < 0.5:
        helpers = [*helpers, warps.helper(seed)]
    shapes.prune(scope)
    maker = Maker(rng, scope, elements, mode)
    maker.has_barriers = has_barriers or mode.warps
    maker.uniform_heads += ["for {} in (1, 0, 3)", "for {} in (2, n)"]
    maker.tuple_helper = next((h.name for h in helpers if h.name.startswith("helper")), None)
    used: list[_Feature] = [
        each for each in (records, complexes, atomics, variants, warps, halves) if each is not None
    ]
    for feature in used:
        feature.attach(maker)
    functions.attach(maker)
    loops = TupleLoops(maker, ["v", "row", *["l"] * shapes.has_local], functions.unary)
    maker.compounds.append(loops.loop)
    extras = tuple(pair for feature in used for pair in feature.arrays)
    return _program(seed, shapes, extras, used, maker, helpers)


def _program(
    seed: int,
    shapes: _Shapes,
    extras: tuple[tuple[str, str], ...],
    used: Sequence[_Feature],
    maker: Maker,
    helpers: Sequence[Helper],
) -> Program:
    body = maker.top()
    return Program(
        seed,
        shapes.elements,
        extras,
        (*shapes.prologue(), *(line for part in used for line in part.prologue())),
        body,
        (*shapes.epilogue(), *(line for part in used for line in part.epilogue())),
        tuple(helpers),
        maker.has_barriers,
        shapes.mode,
    )


class _Shapes:
    """How a program reaches its elements: by index, by a view, by a view in reverse."""

    def __init__(
        self, rng: random.Random, elements: tuple[str, str, str], mode: Mode = PLAIN
    ) -> None:
        self.elements = elements
        self.mode = mode
        self.view = rng.choice(("x[o : o + 8]", "x[o : o + 8][::-1]", "x[o + 1 : o + 8 : 2]"))
        self.extent = 4 if self.view.endswith("2]") else 8
        self.row = rng.choice(("d[h]", "d[h, :]", "d[h, ::-1]"))
        self.has_local = rng.random() < 0.6

    def scope(self) -> Scope:
        a, b, f = self.elements
        scope = Scope(
            {INT: ["a", "b", "c", "n", "m", "t"], FLOAT: ["w"], BOOL: ["y"]},
            [
                (a, "x[o + {}]", OWN),
                (a, "v[{}]", self.extent),
                (a, "v[-1 - {}]", self.extent),
                (b, "u[o + {}]", OWN),
                (f, "f[o + {}]", OWN),
                (BOOL, "z[o + {}]", OWN),
                ("int32", "d[h, {}]", COLUMNS),
                ("int32", "row[{}]", COLUMNS),
                ("float32", "e[h, {}]", COLUMNS),
            ],
            ["n", "m", "g", f"sarek.block_idx.x % {self.mode.grid}"],
            outside=self.mode.outside,
        )
        for name, kind in zip("pqr", self.elements, strict=True):
            scope.variables.setdefault(kind, []).append(name)
        if self.has_local:
            scope.elements.append((a, "l[{}]", _LOCAL))
        return scope

    def prune(self, scope: Scope) -> None:
        """Leave out what counts from the end where no index does."""
        if not self.mode.wraparound:
            scope.elements = [each for each in scope.elements if "[-" not in each[1]]

    def _cast(self, kind: str, value: str) -> str:
        """A Python number as a store takes it."""
        return f"np.{kind}({value})" if self.mode.strict else value

    def prologue(self) -> tuple[str, ...]:
        a, _, _ = self.elements
        local = (
            f"l = sarek.local.array({_LOCAL}, np.{a})",
            f"for k in range({_LOCAL}): l[k] = x[o + k]",
        )
        return (
            "t = sarek.thread_idx.x",
            "h = sarek.global_idx.x",
            f"o = h * {OWN}",
            f"s = sarek.shared.array({self.mode.block}, np.{a})",
            f"v = {self.view}",
            f"row = {self.row}",
            *(local if self.has_local else ()),
            "a = n + t",
            "b = 1",
            "c = 0",
            "g = 0",
            "fuel = 0",
            "w = 0.5",
            "y = n > 2",
            "p = x[o]",
            "q = u[o]",
            "r = f[o]",
        )

    def epilogue(self) -> tuple[str, ...]:
        first = self._cast("int32", "a % 1000")
        second = self._cast("int32", "b * 3 + c * 7")
        own = (f"d[h, 0] = {first}", f"d[h, 1] = {second}", "d[h, 2] += g + fuel")
        wide = f"e[h, 2] = {self._cast('float32', 'w')}"
        kept = ("x[o + 7] = p", "u[o + 7] = q", "f[o + 7] = r", "z[o + 7] = y", wide)
        local = (f"x[o + 6] ^= l[{_LOCAL - 1}]",) if self.has_local else ()
        return (*own, *kept, *local)


def _helper(
    rng: random.Random,
    seed: int,
    elements: tuple[str, str, str],
    calls: list[tuple[str, str]],
    mode: Mode = PLAIN,
) -> Helper:
    """A device function of a strong integer, a Python int and a view, with a tuple as result."""
    a, _, f = elements
    scope = Scope(
        {INT: ["a", "b", "k"], FLOAT: ["w"], BOOL: ["y"], a: ["p"], f: ["r"]},
        [(a, "v[{}]", 4)],
        calls=list(calls),
        outside=mode.outside,
    )
    maker = Maker(rng, scope, elements, mode)
    maker.has_barriers = False
    maker.result = "(p, a % 100)"
    setup = ["b = 2", "c = 0", "fuel = 0", "w = 1.5", "y = a > k", f"r = np.{f}(p)"]
    body = [Statement(line) for line in setup] + maker.block(2, False)
    return Helper(f"helper_{seed}", "p, a, v, k=3", body, maker.result)
