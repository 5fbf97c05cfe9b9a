"""float16 and bfloat16 in generated programs: elements in every memory, conversions, arithmetic.

A half that is read is a float32, so expressions of float32 see them; what is stored in one is
rounded once from its own type.
"""

from __future__ import annotations

import random

from tests.fuzz.expressions import Expressions, Scope
from tests.fuzz.modes import Mode
from tests.fuzz.programs import Statement
from tests.fuzz.statements import Maker

NARROW = ("float16", "bfloat16")
HALVES = 4  # elements of each thread
_READ = "float32"
_CASTS = ("np.float16", "sarek.float16", "sarek.bfloat16")
_SOURCES = ("<float32>", "<float32>", "<float64>", "<int>", "<w>", "<int32>", "<int64>", "<uint16>")


class Halves:
    """Halves of one program: `HALVES` elements of each thread, and arrays of its own."""

    def __init__(self, rng: random.Random, scope: Scope, mode: Mode, has_barriers: bool) -> None:
        self.rng = rng
        self.mode = mode
        self.kind = rng.choice(NARROW)
        self.own = rng.choice(NARROW)  # of the arrays in local and shared memory
        self.has_local = rng.random() < 0.6
        self.has_shared = has_barriers and rng.random() < 0.7
        self.view = rng.choice(
            ("hs[h * 4 : h * 4 + 4]", "hs[h * 4 : h * 4 + 4][::-1]", "hs[h * 4 : h * 4 + 4 : 2]")
        )
        self.make = Expressions(rng, scope)
        scope.variables.setdefault(_READ, []).append("hv")
        extent = 2 if self.view.endswith("2]") else HALVES
        places = [("hs[h * 4 + {}]", HALVES), ("hw[{}]", extent)]
        places += [("hl[{}]", HALVES)] if self.has_local else []
        if mode.strict:  # such a store has a cast, which those of other features do not write
            scope.calls += [(_READ, place.format(f"<i> % {n}")) for place, n in places]
        else:
            scope.elements += [(_READ, place, n) for place, n in places]
        self._places = places
        other = rng.choice(("", ", sarek.bfloat16"))
        scope.calls += [
            (_READ, f"{rng.choice(_CASTS)}({rng.choice(_SOURCES)})"),
            (_READ, f"{rng.choice(_CASTS)}(<strong>)"),
            (_READ, f"sarek.half_from_bits(np.uint16(<i> % 9 * 3977){other})"),
            ("uint16", f"sarek.half_bits(<float32>{other})"),
        ]

    @property
    def arrays(self) -> list[tuple[str, str]]:
        """Parameters and their arrays."""
        return [("hs", f"halves_{self.kind}")]

    def attach(self, maker: Maker) -> None:
        """Let a program's statements use them."""
        maker.simples.append(self.simple)
        if self.has_shared:
            maker.hand_overs.append(self.hand_over)

    def prologue(self) -> tuple[str, ...]:
        lines = [f"hw = {self.view}", "hv = hs[h * 4]"]
        if self.has_local:
            lines += [
                f"hl = sarek.local.array({HALVES}, sarek.{self.own})",
                f"for k in range({HALVES}): hl[k] = {self._cast(self.own, 'hs[h * 4 + k]')}",
            ]
        if self.has_shared:
            lines.append(f"ht = sarek.shared.array({self.mode.block}, sarek.{self.own})")
        return tuple(lines)

    def epilogue(self) -> tuple[str, ...]:
        kept = [f"hs[h * 4 + 3] = {self._cast(self.kind, 'hv')}"]
        if self.has_local:
            kept.append(f"hs[h * 4 + 2] = {self._cast(self.kind, 'hl[1] + hl[2]')}")
        return tuple(kept)

    def _cast(self, kind: str, value: str) -> str:
        """A value as a store to a half takes it."""
        return f"sarek.{kind}({value})" if self.mode.strict else value

    def _value(self) -> str:
        """A float32 mostly; any other number too."""
        if self.rng.random() < 0.6:
            return self.make.of(_READ)
        return self.make.expand(self.rng.choice((*_SOURCES, "<strong>")), _READ, 1)

    def simple(self) -> str:
        """A store to a half, plain or augmented; a half made; one kept in a variable."""
        choice = self.rng.random()
        if choice < 0.3:
            cast = self.rng.choice(_CASTS)
            value = self._value()
            return self.rng.choice((f"hv = {cast}({value})", f"hv = {self.make.of(_READ)}"))
        place, extent = self.rng.choice(self._places)
        index = self.rng.choice(
            (str(self.rng.randrange(extent)), self.make.expand(f"<i> % {extent}"))
        )
        target = place.format(index)
        kind = self.own if place.startswith("hl") else self.kind
        if choice < 0.7 or self.mode.strict:
            return f"{target} = {self._cast(kind, self._value())}"
        sign = self.rng.choice(("+=", "-=", "*=", "/="))
        return f"{target} {sign} {self._value()}"

    def hand_over(self) -> list[Statement]:
        """A half given to another thread of the block."""
        block = self.mode.block
        other = self.rng.choice((f"ht[{block - 1} - t]", f"ht[(t + 1) % {block}]", "ht[t ^ 1]"))
        lines = (
            f"ht[t] = {self._cast(self.own, self._value())}",
            "sarek.barrier()",
            f"hv = {other}",
            "sarek.barrier()",
        )
        return [Statement(line) for line in lines]
