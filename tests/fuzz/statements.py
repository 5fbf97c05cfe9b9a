"""Random statements of structured control flow.

They mix `if`, `for`, `while` with their `else`, `break`, `continue` and early `return` to
depth 5, with assignments and stores of random expressions between. Loops are bounded, by small
ranges or by fuel. Barriers stand in flow
that is known to be uniform, uniform branches and loops included.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.fuzz.expressions import BOOL, COMPLEX, FLOAT, INT, REALS, Expressions, Scope
from tests.fuzz.modes import PLAIN, Mode
from tests.fuzz.programs import Statement

# Elements that each thread owns in x, u, f and z, and columns of d and e.
OWN, COLUMNS = 8, 3
DEPTH = 5
_COMPOUND = 0.15  # how often a statement is a compound one of some feature
# Deeper loops than this run a few times each.
_DEEP_LOOPS = 2


class Maker:
    """Statements over a scope."""

    def __init__(
        self,
        rng: random.Random,
        scope: Scope,
        elements: tuple[str, str, str],
        mode: Mode = PLAIN,
    ) -> None:
        self.rng = rng
        self.mode = mode
        self.scope = scope
        self.elements = elements
        self.make = Expressions(rng, scope)
        self.has_barriers = False
        self.tuple_helper: str | None = None
        # what features add: simple statements, compound ones of a depth (in a loop or not), heads
        # of loops in uniform flow, and statements with barriers for it, which may be the only ones
        self.simples: list[Callable[[], str]] = []
        self.compounds: list[Callable[[int, bool], Statement]] = []
        self.uniform_heads: list[str] = []
        self.hand_overs: list[Callable[[], list[Statement]]] = []
        self.only_hand_overs = False
        self.most = 2  # statements at the top
        self.result: str | None = None
        self.loops = 0

    def _pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    # --- uniform flow -----------------------------------------------------------------------------

    def top(self) -> list[Statement]:
        """Statements at the top, where flow is uniform."""
        return [
            s for _ in range(self.rng.choice((1, self.most, self.most))) for s in self.uniform(0)
        ]

    def uniform(self, depth: int) -> list[Statement]:
        """Statements that all threads of a block reach together."""
        if not self.has_barriers:
            return self.statement(depth, False)
        body = [] if self.rng.random() < 0.3 else self.statement(depth, False)
        kind = self.rng.randrange(6) if depth < 3 else 0
        if kind < 3:
            return body + self.hand_over()
        if kind == 3:
            parts = [(f"if {self.uniform_test()}", self.uniform(depth + 1))]
            if self.rng.random() < 0.5:
                parts.append(("else", self.uniform(depth + 1)))
            return [*body, Statement(parts=parts)]
        if kind == 4:
            return [*body, self.uniform_loop(depth)]
        jump = Statement(parts=[(f"if {self.uniform_test()}", [Statement("return")])])
        return [*body, jump] if self.rng.random() < 0.3 else body + self.hand_over()

    def uniform_test(self) -> str:
        one, two = (self.rng.choice(self.scope.uniform) for _ in range(2))
        simple = f"{one} {self._pick('<', '==', '>=')} {self._pick(two, '2', '0')}"
        return self._pick(simple, simple, f"{simple} and {two} < 4", f"{one} % 2 or {two} > 1")

    def uniform_loop(self, depth: int) -> Statement:
        name = f"k{depth}"
        head = self._pick(
            f"for {name} in range({self._pick('n', '2', 'm + 1', 'n, -1, -2', '3, 0, m - 6')})",
            f"while g < {self.rng.randrange(1, 5)}",
            *(each.format(name) for each in self.uniform_heads),
        )
        self.loops += 1
        body = self.uniform(depth + 1)
        self.loops -= 1
        if self.rng.random() < 0.3:
            jump = Statement(self._pick("break", "continue"))
            body.append(Statement(parts=[(f"if {self.uniform_test()}", [jump])]))
            body += self.hand_over()
        parts = [(head, [Statement("g += 1"), *body])]
        if self.rng.random() < 0.2:
            parts.append(("else", self.uniform(depth + 1)))
        return Statement(parts=parts)

    def hand_over(self) -> list[Statement]:
        if self.hand_overs and (self.only_hand_overs or self.rng.random() < 0.4):
            return self.rng.choice(self.hand_overs)()
        kind, block = self.elements[0], self.mode.block
        others = [f"s[{block - 1} - t]", f"s[(t + 1) % {block}]", "s[t ^ 1]"]
        if self.mode.wraparound:
            others.append("s[-1 - t]")
        other = self._pick(*others)
        if self.rng.random() < 0.3:
            step = Statement(
                parts=[("with sarek.superstep()", [Statement(f"s[t] = {self.make.of(kind)}")])]
            )
            return [step, Statement(f"p = {other}"), Statement("sarek.barrier()")]
        lines = [f"s[t] = {self.make.of(kind)}", "sarek.barrier()", f"p = {other}"]
        if self.rng.random() < 0.3:
            lines.append("p += s[0]")
        return [Statement(line) for line in (*lines, "sarek.barrier()")]

    # --- any flow ---------------------------------------------------------------------------------

    def block(self, depth: int, in_loop: bool) -> list[Statement]:
        body: list[Statement] = []
        for _ in range(self.rng.choice((1, 1, 1, 2))):
            body += self.statement(depth, in_loop)
        return body

    def statement(self, depth: int, in_loop: bool) -> list[Statement]:
        if self.compounds and depth < DEPTH and self.rng.random() < _COMPOUND:
            return [self.rng.choice(self.compounds)(depth, in_loop)]
        kind = self.rng.randrange(16)
        if depth >= DEPTH or kind < 5:
            return [Statement(self.simple())]
        if kind in (5, 6, 7):
            return [self.branch(depth, in_loop)]
        if kind in (8, 9):
            return [self.for_loop(depth, in_loop)]
        if kind == 10:
            return [self.while_loop(depth, in_loop)]
        if kind == 11:
            return [self.endless(depth, in_loop)]
        if kind == 15:
            return [self.match(depth, in_loop)]
        if kind in (12, 13) and in_loop:
            jump = Statement(self._pick("break", "continue"))
            return [Statement(parts=[(f"if {self.make.condition()}", [jump])])]
        if not self.has_barriers and self.rng.random() < 0.4:
            return [Statement(parts=[(f"if {self.make.condition()}", [self.leave()])])]
        return [Statement(self.simple())]

    def leave(self) -> Statement:
        return Statement("return" if self.result is None else f"return {self.result}")

    def simple(self) -> str:
        kind = self.rng.randrange(8)
        if self.tuple_helper is not None and self.rng.random() < 0.2:
            return self.call()
        if self.simples and self.rng.random() < 0.4:
            return self.rng.choice(self.simples)()
        if kind < 2:
            name = self._pick(*(v for v in "abc" if v in self.scope.variables[INT]))
            return f"{name} = ({self.make.of(INT)}) % {self._pick('7', '50', '100', '-20')}"
        if kind == 2:
            return self.counting()
        if kind == 3:
            return f"y = {self.make.of(BOOL)}"
        if kind == 4:
            return f"w = {self.make.of(FLOAT)}"
        if kind == 5:
            return self.scalar()
        return self.store() if self.scope.elements else self.scalar()

    def counting(self) -> str:
        if "c" not in self.scope.variables[INT]:
            return "a, b = b, a"
        return self._pick(
            "a, b = b, a", "a, b, c = c, a, b", "c += 1", "b -= 2", "a = b = c",
            "a, w = b, float(c)",
            "b ^= 3", "c = -c", "a, c = divmod(a, 7)",
        )  # fmt: skip

    def call(self) -> str:
        kind = self.elements[0]
        given = f"{self.make.of(kind, 2)}, {self.make.of(INT, 1)}"
        view = self._pick("v", "v[:4]", "v[::-1]")
        more = self._pick("", f", {self.make.of(INT, 1)}", f", k={self.make.variable(INT)}")
        return f"p, a = {self.tuple_helper}({given}, {view}{more})"

    def scalar(self) -> str:
        """An assignment to a strong variable."""
        named = [(k, v) for k, names in self.scope.variables.items() for v in names if v in "pqr"]
        kind, name = self.rng.choice(sorted(named))
        calls = [template for k, template in self.scope.calls if k == kind]
        if calls and self.rng.random() < 0.5:
            return f"{name} = {self.make.expand(self.rng.choice(calls), kind)}"
        value = self.make.of(kind)
        if self.rng.random() < 0.7:
            return f"{name} = {value}"
        if kind in REALS:
            return f"{name} {self._pick('+=', '-=', '*=', '/=', '//=', '%=')} {value}"
        return f"{name} {self._pick('+=', '-=', '*=', '//=', '%=', '^=', '<<=', '>>=')} {value}"

    def store(self) -> str:
        """A store to an element, plain, augmented, or of two at once."""
        kind = self.rng.choice(sorted({kind for kind, _, _ in self.scope.elements}))
        target = str(self.make.element(kind))
        value = self.make.of(kind)
        choice = self.rng.random()
        if choice < 0.5 or kind == BOOL:
            return f"{target} = {value}"
        if choice < 0.6:
            return f"{target}, {self.make.element(kind)} = {self.make.leaf(kind)}, {value}"
        if kind in COMPLEX:
            return f"{target} {self._pick('+=', '-=', '*=', '/=')} {value}"
        if choice < 0.75:
            other = self.make.of(self.rng.choice(self.scope.strong), 2)
            other = f"np.{kind}({other})" if self.mode.strict else other
            return f"{target} {self._pick('+=', '-=', '*=')} {other}"
        signs = ("+=", "-=", "*=", "//=", "%=")
        more = ("/=",) if kind in REALS else ("&=", "|=", "^=", "<<=", ">>=")
        return f"{target} {self._pick(*signs, *more)} {value}"

    # --- compound statements ----------------------------------------------------------------------

    def branch(self, depth: int, in_loop: bool) -> Statement:
        parts = [(f"if {self.make.condition()}", self.block(depth + 1, in_loop))]
        while self.rng.random() < 0.25:
            parts.append((f"elif {self.make.condition()}", self.block(depth + 1, in_loop)))
        if self.rng.random() < 0.5:
            parts.append(("else", self.block(depth + 1, in_loop)))
        return Statement(parts=parts)

    def match(self, depth: int, in_loop: bool) -> Statement:
        """A match over a Python int, a bool with it, or a strong integer."""
        kind = self.rng.randrange(3)
        outer, name = self.scope.variables[INT], f"cap{depth}"
        guarded = f"{self.variable_test(name)}"
        match kind:
            case 0:
                subject = f"({self.make.of(INT, 1)}) % 5"
                heads = ["0", "1 | 3", f"{name} if {guarded}", "2 | 4 as " + name, "_"]
            case 1:
                subject = f"({self.make.of(INT, 1)}) % 4, {self.make.of(BOOL, 1)}"
                heads = ["0, True", f"1 | 2, {self._pick('True', 'False', '_')}"]
                heads += [f"{name}, False if {guarded}", f"(3 as {name}), _", "_, True", "_"]
            case _:
                strong = [k for k in self.scope.strong if k not in REALS]
                subject = self.make.of(self.rng.choice(strong), 1) if strong else "a"
                heads = ["0", "1 | 2 | 7", "3", f"_ if {self.make.of(BOOL, 1)}", "100", "_"]
        keep = [head for head in heads[:-1] if self.rng.random() < 0.7] or heads[:1]
        cases = []
        for head in keep + heads[-1:] * (self.rng.random() < 0.6):
            self.scope.variables[INT] = [*outer, name] if name in head else outer
            cases.append((f"case {head}", self.block(depth + 1, in_loop)))
        self.scope.variables[INT] = outer
        return Statement(parts=[(f"match {subject}", [Statement(parts=cases)])])

    def variable_test(self, name: str) -> str:
        return f"{name} {self._pick('<', '>', '!=')} {self.make.variable(INT)}"

    def for_loop(self, depth: int, in_loop: bool) -> Statement:
        name = f"{'ijkl'[depth % 4]}{depth}"
        source = self.bounds()
        if source.startswith("range") and self.rng.random() < 0.15:
            source = f"sarek.unroll({source}{self._pick('', '', ', 2', ', 3')})"
        outer = self.scope.variables[INT]
        self.scope.variables[INT] = [*outer, name]
        self.loops += 1
        body = self.block(depth + 1, True)
        if self.rng.random() < 0.4:
            body.append(Statement(f"{self._pick('a', 'b')} = (b - {name}) % 50"))
        if self.rng.random() < 0.1:
            body.insert(0, Statement(f"{name} = {name} + 1"))
        self.loops -= 1
        self.scope.variables[INT] = outer
        parts = [(f"for {name} in {source}", body)]
        if self.rng.random() < 0.3:
            parts.append(("else", self.block(depth + 1, in_loop)))
        return Statement(parts=parts)

    def bounds(self) -> str:
        if self.loops > _DEEP_LOOPS:
            return self._pick("range(2)", "(3, 1)", "range(a % 3)")
        if self.rng.random() < 0.1:
            return "(1, 2, 5)"
        small = f"({self.make.of(INT, 1)}) % 5"
        if "n" in self.scope.variables[INT]:
            known = ("n", "m", "1, n", "n, 0, -1", "0, 9, m + 2", "5, -2, m - 7", "t", "n, m")
        else:
            known = ("a % 4", f"{self.make.variable(INT)} % 6, 0, -2", "7, a % 5, -2")
            if any("v[" in template for _, template, _ in self.scope.elements):
                known = (*known, "len(v) - 2")
        return f"range({self._pick(*known, '3', '0', '4, -1, -1', small, f'{small}, -1, -1')})"

    def while_loop(self, depth: int, in_loop: bool) -> Statement:
        self.loops += 1
        body = [Statement("fuel += 1"), *self.block(depth + 1, True)]
        self.loops -= 1
        bound = f"fuel < {self.rng.randrange(5, 40)}"
        test = self.make.of(BOOL)
        head = self._pick(f"{bound} and {test}", f"{test} and {bound}", f"not ({bound}) == {test}")
        if head.startswith("not"):
            stop = Statement(parts=[(f"if not {bound}", [Statement("break")])])
            head, body = test, [body[0], stop, *body[1:]]
        parts = [(f"while {head}", body)]
        if self.rng.random() < 0.3:
            parts.append(("else", self.block(depth + 1, in_loop)))
        return Statement(parts=parts)

    def endless(self, depth: int, in_loop: bool) -> Statement:
        out = self.leave() if not self.has_barriers and self.rng.random() < 0.3 else None
        guard = Statement(
            parts=[(f"if fuel > {self.rng.randrange(3, 30)}", [out or Statement("break")])]
        )
        self.loops += 1
        body = [Statement("fuel += 1"), guard, *self.block(depth + 1, True)]
        self.loops -= 1
        parts = [(self._pick("while True", "while 1"), body)]
        if self.rng.random() < 0.15:
            parts.append(("else", self.block(depth + 1, in_loop)))
        return Statement(parts=parts)
