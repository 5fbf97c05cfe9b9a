"""Warp operations in generated programs, in flow that is the same for all threads of a warp.

Such flow hangs on votes, reductions, shuffles from one lane, and on `wa`, `wy` and `wf`, which are
assigned in it alone. Values go through shared and global memory between warp barriers.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.fuzz.expressions import BOOL, FLOAT, INT, Expressions, Scope
from tests.fuzz.modes import WARP
from tests.fuzz.programs import Helper, Statement
from tests.fuzz.statements import OWN, Maker

_DEEPEST = 3


@dataclass(slots=True)
class Flow:
    """Statements that a whole warp reaches, in one function."""

    rng: random.Random
    make: Expressions
    targets: list[tuple[str, str]]  # strong variables with their types
    maker: Maker | None = None  # for statements between, whose threads part and meet again
    may_return: bool = False
    function: str | None = None
    function_kind: str = ""
    has_memory: bool = False

    def _pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def statements(self, depth: int = 0) -> list[Statement]:
        """One operation, or some under flow of the warp."""
        kind = self.rng.randrange(12) if depth < _DEEPEST else self.rng.randrange(7)
        if kind < 7:
            return self._operation()
        if kind < 9:
            return [self._branch(depth)]
        if kind < 11:
            return [self._loop(depth)]
        return [*self._between(), *self._operation()]

    def _between(self) -> list[Statement]:
        return [] if self.maker is None else self.maker.statement(_DEEPEST, False)

    # --- operations -------------------------------------------------------------------------------

    def _operation(self) -> list[Statement]:
        kind = self.rng.randrange(10)
        if kind == 0 and self.has_memory:
            return self._through_memory()
        if kind == 1 and self.function is not None:
            given = f"{self.make.of(self.function_kind, 1)}, {self.make.variable(INT)} % 20"
            name = next(n for n, k in self.targets if k == self.function_kind)
            return [Statement(f"{name}, a = {self.function}({given})")]
        return [Statement(self._assignment())]

    def _assignment(self) -> str:
        name, kind = self.rng.choice(self.targets)
        match self.rng.randrange(11):
            case 0 | 1 | 2:
                return f"{name} {self._pick('=', '=', '+=')} {self.shuffle(self.make.of(kind, 1))}"
            case 3 | 4:
                return f"{name} = {self.reduction(self.make.of(kind, 1))}"
            case 5:
                return f"a = {self.shuffle(self.make.of(INT, 1))} % 50"
            case 6:
                return f"{self._pick('a', 'wa')} = {self.reduction(self.make.of(INT, 1))} % 30"
            case 7:
                whole = f"{self._pick('any', 'all')}({self.make.condition()})"
                return f"{self._pick('y', 'wy')} = sarek.warp.{whole}"
            case 8:
                return f"y = {self.shuffle(self.make.of(BOOL, 1))}"
            case 9:
                mask = self._pick(f"sarek.warp.ballot({self.make.of(BOOL, 1)})",
                                  f"sarek.warp.ballot({self.make.of(BOOL, 1)})",
                                  "sarek.warp.active_mask()")  # fmt: skip
                return self._pick(
                    f"wa = int({mask} % 31)",
                    f"{name} = np.{kind}({mask} % 101)",
                    f"a = int(sarek.math.popcount({mask}))",
                    f"b = int({mask} >> {self._pick('lane', '3', '<i> % 32')} & 1)".replace(
                        "<i>", self.make.variable(INT)
                    ),
                )
            case _:
                whole = self._pick(self.shuffle("w"), f"sarek.warp.{self._pick('min', 'max')}(w)")
                return f"w = {whole}"

    def reduction(self, value: str) -> str:
        return f"sarek.warp.{self._pick('sum', 'min', 'max')}({value})"

    def shuffle(self, value: str) -> str:
        """A value of another lane, of a segment at times."""
        width = self._pick("", "", "", *(f", width={w}" for w in (1, 2, 4, 8, 16, 32)), ", 8")
        lane = self.make.variable(INT)
        name, by = self.rng.choice(
            (
                ("shuffle", self._pick("0", "7", "31", f"{lane} % {WARP}", f"{lane} - 3", "lane")),
                ("shuffle_up", self._pick("1", "2", f"{lane} % 40", "lane")),
                ("shuffle_down", self._pick("1", "16", f"{lane} % 33", "lane // 2")),
                ("shuffle_xor", self._pick("1", "5", "31", f"{lane} % {WARP}", "lane")),
            )
        )
        return f"sarek.warp.{name}({value}, {by}{width})"

    def _through_memory(self) -> list[Statement]:
        """Elements of other threads of the warp, between warp barriers."""
        name, kind = self.targets[0]
        distance = self.rng.choice((1, 2, 5, 16, 31))
        if self.rng.random() < 0.6:
            other = self._pick(
                f"ws[t ^ {distance}]", f"ws[t // {WARP} * {WARP} + (lane + {distance}) % {WARP}]"
            )
            lines = [
                f"ws[t] = {self.make.of(kind, 1)}",
                "sarek.warp_barrier()",
                f"{name} = {other}",
            ]
            if self.rng.random() < 0.3:
                lines += ["sarek.warp_barrier()", f"ws[t ^ 1] = {name}", "sarek.warp_barrier()"]
                lines += [f"{name} += ws[t]"]
        else:
            place = f"(h ^ {distance}) * {OWN} + {self.rng.randrange(OWN)}"
            lines = ["sarek.warp_barrier()", f"{name} = x[{place}]"]
        return [Statement(line) for line in (*lines, "sarek.warp_barrier()")]

    # --- flow -------------------------------------------------------------------------------------

    def test(self) -> str:
        """A condition that is the same for a warp."""
        whole, own = self.make.of(BOOL, 1), self.make.variable(INT)
        vote = self._pick(f"sarek.warp.any({whole})", f"sarek.warp.all({whole})")
        return self._pick(
            vote,
            vote,
            f"not {vote}",
            f"wa {self._pick('<', '>', '!=')} {self._pick('2', '5', 'wf')}",
            f"wy and {vote}",
            f"({vote} or wa % 2 == 1)",
            f"sarek.warp.{self._pick('max', 'min', 'sum')}({own}) % 3 == 1",
            f"sarek.warp.shuffle({own}, {self._pick('0', '9', '31')}) > 1",
        )

    def _body(self, depth: int) -> list[Statement]:
        body = [] if self.rng.random() < 0.6 else self._between()
        return [*body, *self.statements(depth + 1)]

    def _branch(self, depth: int) -> Statement:
        parts = [(f"if {self.test()}", self._body(depth))]
        if self.rng.random() < 0.4:
            parts.append(("else", self._body(depth)))
        elif self.may_return and self.rng.random() < 0.3:
            parts[0][1].append(Statement("return"))
        return Statement(parts=parts)

    def _loop(self, depth: int) -> Statement:
        bound = f"wf < {self.rng.randrange(3, 9)}"
        head = self._pick(
            f"while {bound} and {self.test()}",
            f"while {bound}",
            f"for j{depth} in range({self._pick('2', '3, 0, -1', 'wa % 3')})",
            f"for j{depth} in range(sarek.warp.max({self.make.variable(INT)}) % 4)",
            f"for j{depth} in (1, 0, 3)",
        )
        body = [Statement("wf += 1"), *self._body(depth)]
        if self.rng.random() < 0.3:
            jump = Statement(self._pick("break", "continue"))
            body.append(Statement(parts=[(f"if {self.test()}", [jump])]))
            body += self._operation()
        parts = [(head, body)]
        if self.rng.random() < 0.3:
            parts.append(("else", self._body(depth)))
        return Statement(parts=parts)


class Warps:
    """Warp operations of one program."""

    def __init__(
        self, rng: random.Random, scope: Scope, elements: tuple[str, str, str], blocks: bool
    ) -> None:
        self.rng = rng
        self.elements = elements
        self.has_barriers = blocks
        scope.variables[INT] = [*scope.variables[INT], "lane", "wa"]
        scope.variables[BOOL] = [*scope.variables[BOOL], "wy"]
        named = list(zip("pqr", elements, strict=True))
        self.flow = Flow(rng, Expressions(rng, scope), named, has_memory=True)
        self.flow.may_return = not blocks

    @property
    def arrays(self) -> list[tuple[str, str]]:
        return []

    def prologue(self) -> tuple[str, ...]:
        return (
            f"ws = sarek.shared.array({2 * WARP}, np.{self.elements[0]})",
            "lane = sarek.warp.lane",
            "wf = 0",
            "wa = m",
            "wy = n > 1",
        )

    def epilogue(self) -> tuple[str, ...]:
        return ("d[h, 2] += wf * 5 + wa + int(wy)",)

    def attach(self, maker: Maker) -> None:
        """Let the statements of a program that stand in uniform flow use warps."""
        self.flow.maker = maker
        maker.hand_overs += [self.flow.statements] * 8
        maker.most = 5
        maker.only_hand_overs = not self.has_barriers

    def helper(self, seed: int) -> Helper:
        """A device function that a warp calls together."""
        kind = self.rng.choice(self.elements)
        variables = {INT: ["a", "lane", "wa"], FLOAT: ["w"], BOOL: ["y", "wy"], kind: ["p"]}
        flow = Flow(self.rng, Expressions(self.rng, Scope(variables)), [("p", kind)])
        setup = ("lane = sarek.warp.lane", "wf = 0", "wa = 1", "wy = wa > 3", "b = a")
        body = [Statement(line) for line in (*setup, "w = 0.5", "y = a > 3")]
        for _ in range(self.rng.randrange(1, 3)):
            body += flow.statements(1)
        self.flow.function, self.flow.function_kind = f"warped_{seed}", kind
        return Helper(self.flow.function, "p, a", body, "(p, a % 50 + wa)")
