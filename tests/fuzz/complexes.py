"""Complex numbers in generated programs: elements, a variable, and what real expressions see."""

from __future__ import annotations

import random

from tests.fuzz.expressions import BOOL, COMPLEX, Expressions, Scope
from tests.fuzz.statements import Maker

POINTS = 2


class Complexes:
    """Complex numbers of one program: `POINTS` elements of each thread and a variable."""

    def __init__(self, rng: random.Random, scope: Scope) -> None:
        self.rng = rng
        self.kind = rng.choice(COMPLEX)
        self.array = self.kind
        self.make = Expressions(rng, scope)
        real = "float32" if self.kind == "complex64" else "float64"
        scope.variables[self.kind] = ["zv"]
        scope.elements += [
            (self.kind, "zs[h * 2 + {}]", POINTS),
            (real, "zr[h * 2 + {}]", POINTS),
        ]
        number = f"<{self.kind}>"
        scope.calls += [
            (BOOL, f"({number} {rng.choice(['==', '!='])} {number})"),
            (BOOL, f"bool({number})"),
            (real, f"({number}).{rng.choice(['real', 'imag'])}"),
        ]

    @property
    def arrays(self) -> list[tuple[str, str]]:
        """Parameters and their arrays."""
        return [("zs", self.array)]

    def attach(self, maker: Maker) -> None:
        """Let a program's statements use them."""
        maker.simples.append(self.simple)

    def prologue(self) -> tuple[str, ...]:
        return (f"zr = zs.{self.rng.choice(['real', 'imag'])}", "zv = zs[h * 2]")

    def epilogue(self) -> tuple[str, ...]:
        return ("zs[h * 2 + 1] = zv",)

    def simple(self) -> str:
        """An assignment of a complex number."""
        target = self.rng.choice(("zv", "zv", "zs[h * 2]", "zs[h * 2 + b % 2]"))
        sign = self.rng.choice(("=", "=", "=", "+=", "-=", "*=", "/="))
        return f"{target} {sign} {self.make.of(self.kind)}"
