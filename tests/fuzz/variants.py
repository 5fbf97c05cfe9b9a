"""Variants in generated programs: values, matches over them, every memory, device functions.

Each thread has `VALUES` variants of its own in `vs`, and a record with three in `vh`. A match takes
every value: each case has a pattern without guard or literal behind those that have one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.fuzz.expressions import BOOL, FLOAT, INT, REALS, Scope
from tests.fuzz.modes import Mode
from tests.fuzz.programs import Helper, Statement
from tests.fuzz.statements import Maker
from tests.fuzz.unions import UNIONS, Part, Piece, Union

VALUES = 3
_DEEPEST = 3  # a match that stands deeper has short arms


@dataclass(slots=True)
class Bound:
    """What a pattern binds: names of numbers by type, of records, of variants."""

    numbers: list[tuple[str, str]] = field(default_factory=list)
    pieces: list[tuple[Piece, str]] = field(default_factory=list)
    unions: list[tuple[Union, str]] = field(default_factory=list)


class Matches:
    """Values of variants, and matches over them, in one function."""

    def __init__(self, maker: Maker, union: Union, places: list[str]) -> None:
        self.rng = maker.rng
        self.maker = maker
        self.make = maker.make
        self.union = union
        self.places = places
        self.known: list[tuple[Union, str]] = []  # bound by the patterns around
        self.turner: str | None = None
        self.ends: list[str] = []  # statements that end an arm at times
        self.count = 0

    # --- values -----------------------------------------------------------------------------------

    def value(self, union: Union | None = None, depth: int = 0) -> str:
        """An expression of a variant."""
        union = self.union if union is None else union
        kind = self.rng.randrange(10)
        if kind < 3 or depth > 1:
            return self._constructed(union, depth)
        if kind < 4:
            test = self.make.of(BOOL, 1)
            return f"({self.value(union, depth + 1)} if {test} else {self.value(union, depth + 1)})"
        if kind < 6 and self.turner is not None and union is self.union and depth == 0:
            return f"{self.turner}({self.place()}, ({self.make.of(INT, 1)}) % 9)"
        known = [name for one, name in self.known if one is union]
        if union is self.union:
            known += [self.place(), self.place()]
        return self.rng.choice(known) if known else self._constructed(union, depth)

    def place(self) -> str:
        return self.rng.choice(self.places)

    def _constructed(self, union: Union, depth: int) -> str:
        name, parts = self.rng.choice(union.cases)
        given = ", ".join(self._part(part, depth) for part in parts)
        return f"{union.name}.{name}({given})"

    def _part(self, part: Part, depth: int) -> str:
        match part:
            case str():
                return self.number(part)
            case Piece():
                return self._piece(part, depth)
            case Union():
                return self.value(part, depth + 1)

    def _piece(self, piece: Piece, depth: int) -> str:
        chosen = [pair for pair in piece.fields if self.rng.random() < 0.8]
        given = [
            f"{n}={self.number(k) if isinstance(k, str) else self.value(k, depth + 1)}"
            for n, k in chosen
        ]
        return f"{piece.name}({', '.join(given)})"

    def number(self, kind: str) -> str:
        """A number of a type, or one that is converted to it."""
        if kind != BOOL and not self.maker.mode.strict and self.rng.random() < 0.2:
            return self.make.expand("<small>")
        if kind != BOOL and kind not in self.make.scope.strong:
            return f"np.{kind}({self.make.expand('<small>')})"
        return self.make.of(kind, 1)

    # --- matches ----------------------------------------------------------------------------------

    def match(self, depth: int, in_loop: bool) -> Statement:
        """A match over a variant."""
        known = [pair for pair in self.known if self.rng.random() < 0.5]
        union, subject = self.rng.choice(known) if known else (self.union, "")
        return self.over(union, subject or self.value(), depth, in_loop)

    def over(self, union: Union, subject: str, depth: int, in_loop: bool) -> Statement:
        """The match of a subject, whose arms have random statements."""
        arms = [
            Statement(parts=[(head, self._arm(bound, depth, in_loop))])
            for head, bound in self._heads(union)
        ]
        parts = [part for arm in arms for part in arm.parts]
        return Statement(parts=[(f"match {subject}", [Statement(parts=parts)])])

    def _heads(self, union: Union) -> Iterator[tuple[str, Bound]]:
        """The cases: special ones of a case first, later one that takes every value of it."""
        cases = self.rng.sample(range(len(union.cases)), len(union.cases))
        for case in cases:
            if self.rng.random() < 0.35:
                bound = Bound()
                pattern = self._special(union, case, bound)
                if pattern is not None:
                    yield f"case {pattern}", bound
            if self.rng.random() < 0.25:
                bound = Bound()
                pattern = self._whole(union, case, bound)
                yield f"case {pattern} if {self._guard(bound)}", bound
        rest = self.rng.randrange(len(cases)) if self.rng.random() < 0.5 else 0
        yield from self._rest(union, cases[:rest])
        if rest or self.rng.random() < 0.5:
            yield from self._last(union, cases[rest:])
        else:
            yield from self._rest(union, cases)

    def _rest(self, union: Union, cases: list[int]) -> Iterator[tuple[str, Bound]]:
        for case in cases:
            bound = Bound()
            yield f"case {self._whole(union, case, bound)}", bound

    def _last(self, union: Union, cases: list[int]) -> Iterator[tuple[str, Bound]]:
        """One arm for several cases."""
        bound = Bound()
        kind = self.rng.randrange(3)
        if kind == 0:
            yield "case _", bound
        elif kind == 1:
            name = self._name("v")
            bound.unions.append((union, name))
            yield f"case {name}", bound
        else:
            blank = [self._pattern(union, case, ["_"] * self._arity(union, case)) for case in cases]
            name = self._name("v")
            bound.unions.append((union, name))
            text = " | ".join(blank)
            yield f"case {f'({text})' if len(blank) > 1 else text} as {name}", bound

    def _arity(self, union: Union, case: int) -> int:
        return len(union.cases[case][1])

    def _pattern(self, union: Union, case: int, parts: list[str]) -> str:
        return f"{union.name}.{union.cases[case][0]}({', '.join(parts)})"

    def _whole(self, union: Union, case: int, bound: Bound) -> str:
        """A pattern that takes every value of a case."""
        parts = [self._capture(part, bound) for part in union.cases[case][1]]
        text = self._pattern(union, case, parts)
        if self.rng.random() < 0.15:
            name = self._name("v")
            bound.unions.append((union, name))
            text += f" as {name}"
        return text

    def _special(self, union: Union, case: int, bound: Bound) -> str | None:
        """A pattern that takes some values of a case; None if it holds nothing to tell apart."""
        parts = union.cases[case][1]
        places = [
            k for k, part in enumerate(parts)
            if isinstance(part, str) or (isinstance(part, Union) and len(part.cases) > 1)
        ]  # fmt: skip
        if not places:
            return None
        where = self.rng.choice(places)
        texts = [
            self._narrow(part, bound) if k == where else self._capture(part, bound)
            for k, part in enumerate(parts)
        ]
        return self._pattern(union, case, texts)

    def _narrow(self, part: Part, bound: Bound) -> str:
        if isinstance(part, Union):
            case = self.rng.randrange(len(part.cases))
            if self.rng.random() < 0.3:
                return self._special(part, case, bound) or self._whole(part, case, bound)
            return self._whole(part, case, bound)
        if part == BOOL:
            return self.rng.choice(("True", "False"))
        literals = ("0.0", "0.5", "2.0 | 3") if part in REALS else ("0", "1 | 3", "2", "5")
        return self.rng.choice(literals)

    def _capture(self, part: Part, bound: Bound) -> str:
        if self.rng.random() < 0.25:
            return "_"
        match part:
            case str():
                name = self._name("n")
                bound.numbers.append((part, name))
            case Piece():
                name = self._name("r")
                bound.pieces.append((part, name))
            case Union():
                name = self._name("v")
                bound.unions.append((part, name))
        return name

    def _name(self, first: str) -> str:
        self.count += 1
        return f"{first}_{self.count}"

    def _guard(self, bound: Bound) -> str:
        if bound.numbers and self.rng.random() < 0.6:
            kind, name = self.rng.choice(bound.numbers)
            return name if kind == BOOL else f"{name} {self.rng.choice(('>', '<=', '=='))} 2"
        return self.make.of(BOOL, 1)

    def _arm(self, bound: Bound, depth: int, in_loop: bool) -> list[Statement]:
        """The statements of an arm, which see what its pattern binds."""
        scope = self.maker.scope
        variables, elements, known = dict(scope.variables), scope.elements, self.known
        for kind, name in bound.numbers:
            scope.variables[kind] = [*scope.variables.get(kind, []), name, name]
        scope.elements = [*elements, *(each for p, n in bound.pieces for each in _fields(p, n))]
        inner = [(k, f"{n}.{f}") for p, n in bound.pieces for f, k in p.fields]
        self.known = [*known, *bound.unions]
        self.known += [(k, place) for k, place in inner if isinstance(k, Union)]
        depth = max(depth, _DEEPEST)
        body = self.maker.block(depth + 1, in_loop)
        if self.ends and self.rng.random() < 0.5:
            body.append(Statement(self.end()))
        scope.variables.clear()
        scope.variables.update(variables)
        scope.elements, self.known = elements, known
        return body

    def end(self) -> str:
        return f"return {self.value()}"


def _fields(piece: Piece, name: str) -> list[tuple[str, str, int]]:
    return [(kind, f"{name}.{f}", 1) for f, kind in piece.fields if isinstance(kind, str)]


class Variants:
    """Variants of one program: its arrays, its variable `va`, its device functions."""

    def __init__(self, rng: random.Random, scope: Scope, mode: Mode) -> None:
        self.rng = rng
        self.scope = scope
        self.mode = mode
        self.union = rng.choice(UNIONS)
        self.has_local = rng.random() < 0.5
        self.has_holder = rng.random() < 0.5
        self.places = ["vs[h * 3]", "vs[h * 3 + b % 3]", "vv[1]", "vv[a % 3]", "va", "va", "va"]
        if self.has_local:
            self.places += ["vl[0]", "vl[c % 2]"]
        if self.has_holder:
            self.places += ["vh[h].v", "vr.v", "vr.v", "vr.w[b % 2]", "vh[h].w[1]"]
            scope.elements += [("int16", "vh[h].n", 1), ("int16", "vr.n", 1)]
        self.helpers: list[Helper] = []
        self.matches: Matches | None = None
        self.turner: str | None = None

    @property
    def arrays(self) -> list[tuple[str, str]]:
        """Parameters and their arrays."""
        holder = [("vh", f"holders_{self.union.name}")] if self.has_holder else []
        return [("vs", f"variants_{self.union.name}"), *holder]

    def attach(self, maker: Maker) -> None:
        """Let a program's statements use variants."""
        self.matches = Matches(maker, self.union, self.places)
        self.matches.turner = self.turner
        maker.compounds += [self.matches.match] * 2
        maker.simples += [self.simple, self.simple]
        if not self.mode.warps:
            maker.hand_overs.append(self.hand_over)

    def prologue(self) -> tuple[str, ...]:
        name = self.union.name
        local = (
            f"vl = sarek.local.array(2, {name})",
            "for k in range(2): vl[k] = vs[h * 3 + k]",
        )
        return (
            "vv = vs[h * 3 : h * 3 + 3]",
            "va = vs[h * 3 + 1]",
            *((f"vt = sarek.shared.array(4, {name})",) if not self.mode.warps else ()),
            *(local if self.has_local else ()),
            *(("vr = vh[h].copy()",) if self.has_holder else ()),
        )

    def epilogue(self) -> tuple[str, ...]:
        local = (f"vs[h * 3 + 1] = vl[{self.rng.randrange(2)}]",) if self.has_local else ()
        return (*local, "vs[h * 3 + 2] = va", *(("vh[h] = vr",) if self.has_holder else ()))

    def simple(self) -> str:
        """An assignment of a variant, or of a record around some."""
        assert self.matches is not None
        kind = self.rng.randrange(10)
        if kind == 0:
            return "vv[0], vv[2] = vv[2], vv[0]"
        if kind == 1 and self.has_holder:
            return self.rng.choice(("vr = vh[h].copy()", "vh[h] = vr", self._held()))
        target = self.rng.choice(("va", "va", self.matches.place()))
        return f"{target} = {self.matches.value()}"

    def _held(self) -> str:
        assert self.matches is not None
        number = self.matches.number("int16")
        return f"vr = {self.union.holder}(n={number}, v={self.matches.value()})"

    def hand_over(self) -> list[Statement]:
        """Variants through shared memory."""
        assert self.matches is not None
        other = self.rng.choice(("vt[3 - t]", "vt[(t + 1) % 4]", "vt[t ^ 1]"))
        lines = (f"vt[t] = {self.matches.value()}", "sarek.barrier()", f"va = {other}")
        return [Statement(line) for line in (*lines, "sarek.barrier()")]

    # --- device functions -------------------------------------------------------------------------

    def make_helpers(
        self, seed: int, elements: tuple[str, str, str], calls: list[tuple[str, str]]
    ) -> None:
        """Functions that take variants: one gives a number, one gives a variant."""
        kind = self.rng.choice(elements)
        score = f"score_{seed}"
        self.helpers.append(self._score(score, kind, calls))
        for _ in range(3):
            place = self.rng.choice(self.places)
            self.scope.calls.append((kind, f"{score}({place}, (<int>) % 9)"))
        self.turner = f"turned_{seed}"
        self.helpers.append(self._turned(self.turner, kind, calls))

    def _maker(self, kind: str, calls: list[tuple[str, str]]) -> tuple[Maker, list[Statement]]:
        scope = Scope({INT: ["a", "b", "k"], FLOAT: ["w"], BOOL: ["y"], kind: ["r"]})
        scope.calls = [pair for pair in calls if self.rng.random() < 0.5]
        maker = Maker(self.rng, scope, (kind, kind, kind), self.mode)
        maker.has_barriers = False
        setup = ("a = k", "b = 3", "fuel = 0", "w = 0.75", "y = k > 4", f"r = np.{kind}(k)")
        return maker, [Statement(line) for line in setup]

    def _score(self, name: str, kind: str, calls: list[tuple[str, str]]) -> Helper:
        maker, body = self._maker(kind, calls)
        maker.result = "r"
        matches = Matches(maker, self.union, ["v"])
        body.append(matches.over(self.union, "v", 1, False))
        return Helper(name, "v, k", body, "r", self._decorator())

    def _turned(self, name: str, kind: str, calls: list[tuple[str, str]]) -> Helper:
        maker, body = self._maker(kind, calls)
        maker.result = "v"
        matches = Matches(maker, self.union, ["v"])
        matches.ends = ["return"]
        maker.simples.append(lambda: f"v = {matches.value()}")
        body.append(matches.over(self.union, "v", 1, False))
        return Helper(name, "v, k", body, "v", self._decorator())

    def _decorator(self) -> str:
        return self.rng.choice(
            ("@sarek.function", "@sarek.function", "@sarek.function(inline=True)")
        )
