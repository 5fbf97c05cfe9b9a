"""`generate(seed)`: the program of a seed.

A program has arrays of two integer types and a real one, rows, and some of the features: records,
atomics, complex numbers, device functions. Every thread reads and writes its own elements, and
shares elements of shared memory only across barriers that all threads of its block reach.
"""

from __future__ import annotations

import random

from tests.fuzz.atomics import Atomics
from tests.fuzz.complexes import Complexes
from tests.fuzz.expressions import BOOL, FLOAT, INT, INTEGERS, REALS, Scope
from tests.fuzz.functions import Functions
from tests.fuzz.programs import Helper, Program, Statement
from tests.fuzz.records import Records
from tests.fuzz.statements import BLOCK, COLUMNS, GRID, OWN, Maker

_LOCAL = 4


def generate(seed: int) -> Program:
    """The program of a seed."""
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
    body = maker.top()
    return Program(
        seed,
        elements,
        tuple((names[type(part)], part.array) for part in used),
        (*shapes.prologue(), *(line for part in used for line in part.prologue())),
        body,
        (*shapes.epilogue(), *(line for part in used for line in part.epilogue())),
        tuple(helpers),
        has_barriers,
    )


class _Shapes:
    """How a program reaches its elements: by index, by a view, by a view in reverse."""

    def __init__(self, rng: random.Random, elements: tuple[str, str, str]) -> None:
        self.elements = elements
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
            ["n", "m", "g", f"sarek.block_idx.x % {GRID}"],
        )
        for name, kind in zip("pqr", self.elements, strict=True):
            scope.variables.setdefault(kind, []).append(name)
        if self.has_local:
            scope.elements.append((a, "l[{}]", _LOCAL))
        return scope

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
            f"s = sarek.shared.array({BLOCK}, np.{a})",
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
        own = ("d[h, 0] = a % 1000", "d[h, 1] = b * 3 + c * 7", "d[h, 2] += g + fuel")
        kept = ("x[o + 7] = p", "u[o + 7] = q", "f[o + 7] = r", "z[o + 7] = y", "e[h, 2] = w")
        local = (f"x[o + 6] ^= l[{_LOCAL - 1}]",) if self.has_local else ()
        return (*own, *kept, *local)


def _helper(
    rng: random.Random, seed: int, elements: tuple[str, str, str], calls: list[tuple[str, str]]
) -> Helper:
    """A device function of a strong integer, a Python int and a view, with a tuple as result."""
    a, _, f = elements
    scope = Scope(
        {INT: ["a", "b", "k"], FLOAT: ["w"], BOOL: ["y"], a: ["p"], f: ["r"]},
        [(a, "v[{}]", 4)],
        calls=list(calls),
    )
    maker = Maker(rng, scope, elements)
    maker.has_barriers = False
    maker.result = "(p, a % 100)"
    setup = ["b = 2", "c = 0", "fuel = 0", "w = 1.5", "y = a > k", f"r = np.{f}(p)"]
    body = [Statement(line) for line in setup] + maker.block(2, False)
    return Helper(f"helper_{seed}", "p, a, v, k=3", body, maker.result)
