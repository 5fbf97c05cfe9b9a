"""Loops over constant tuples in generated programs: numbers, functions, arrays, pairs of them.

Each pass is a copy of the body, typed for itself, so such loops are short and not deeply nested.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz.expressions import INT, REALS
from tests.fuzz.programs import Statement
from tests.fuzz.statements import Maker

_DEEPEST = 3

GLOBALS: dict[str, Any] = {
    "NUMBERS": (1, 2.5, np.int8(3)),
    "STEPS": ((1, abs), (2, np.negative), (0, np.int16)),
    "FACTORS": ((2, 0.5), (4, 3)),
    "NOTHING": (),
}


class TupleLoops:
    """Loops over constant tuples of one program. `unary` are functions of one number, by type."""

    def __init__(self, maker: Maker, arrays: list[str], unary: dict[str, list[str]]) -> None:
        self.rng = maker.rng
        self.maker = maker
        self.arrays = arrays
        self.unary = unary
        self.count = 0

    def _pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def loop(self, depth: int, in_loop: bool) -> Statement:
        """A loop over a constant tuple."""
        if depth > _DEEPEST or self.maker.loops > 1:
            return Statement(self.maker.simple())
        self.count += 1
        name, kind = self.rng.choice(list(zip("pqr", self.maker.elements, strict=True)))
        head, first = self._head(name, kind)
        self.maker.loops += 1
        body = [Statement(first)]
        if self.rng.random() < 0.4:
            body += self.maker.block(depth + 2, True)
        self.maker.loops -= 1
        if self.rng.random() < 0.5:
            jump = Statement(self._pick("break", "continue"))
            body.insert(
                self.rng.randrange(len(body) + 1),
                Statement(parts=[(f"if {self.maker.make.condition()}", [jump])]),
            )
        parts = [(head, body)]
        if self.rng.random() < 0.3:
            parts.append(("else", self.maker.block(depth + 1, in_loop)))
        return Statement(parts=parts)

    def _head(self, name: str, kind: str) -> tuple[str, str]:
        """The head of a loop and the first statement of its body."""
        n, item = self.count, f"it{self.count}"
        match self.rng.randrange(7):
            case 0 | 1:
                chosen = self.rng.sample(self._functions(kind), self.rng.choice((2, 3)))
                return f"for g{n} in ({', '.join(chosen)})", f"{name} = np.{kind}(g{n}({name}))"
            case 2 | 3:
                return self._of_arrays(name, kind)
            case 4:
                source = self._pick("NUMBERS", "(0.5, 2)", "(a, w)", "(b, 1.5, True)")
                return f"for {item} in {source}", f"w = float({item}) * 0.5 + w"
            case 5:
                heads = (
                    f"for k{n}, g{n} in STEPS",
                    f"for k{n}, g{n} in ((3, abs), (a % 5, np.int8))",
                )
                return self._pick(*heads), f"{name} = np.{kind}(g{n}({name})) + np.{kind}(k{n})"
            case _:
                heads = (f"for (k{n}, l{n}) in FACTORS", f"for k{n}, l{n} in NOTHING")
                return self._pick(*heads), f"w = w * l{n} + k{n}"

    def _functions(self, kind: str) -> list[str]:
        known = ["abs", f"np.{kind}", "np.int8", "np.float32", *self.unary.get(kind, ())]
        return known + (["np.floor", "np.rint"] if kind in REALS else ["np.uint16"])

    def _of_arrays(self, name: str, kind: str) -> tuple[str, str]:
        count = self.rng.randint(2, min(3, len(self.arrays)))
        array = f"w{self.count}"
        head = f"for {array} in ({', '.join(self.rng.sample(self.arrays, count))})"
        index = self._pick("0", "1", "2", f"{self.maker.make.variable(INT)} % 3")
        first = self._pick(
            f"{name} = np.{kind}({array}[{index}])",
            f"{array}[{index}] = {array}[1]",
            f"{array}[0], {array}[2] = {array}[2], {array}[{index}]",
            f"{array}[{index}] += {array}[len({array}) - 2]",
        )
        return head, first
