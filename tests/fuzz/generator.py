"""Random programs of structured control flow: `generate(seed)`.

A program mixes `if`, `for`, `while` with their `else`, `break`, `continue` and early `return` to
depth 5, with assignments and stores of random expressions between. Loops are bounded, by small
ranges or by fuel. Every thread reads and writes its own elements, and shares elements of a shared
array only across barriers that all threads of its block reach: those stand in flow that the
generator knows to be uniform, uniform branches and loops included.
"""

from __future__ import annotations

import random

from tests.fuzz.expressions import BOOL, FLOAT, INT, INTEGERS, REALS, Expressions, Scope
from tests.fuzz.programs import Helper, Program, Statement

# Elements that each thread owns in x, u, f and z, columns of d and e, and threads of a launch.
OWN, COLUMNS = 8, 3
GRID, BLOCK = 2, 4
THREADS = GRID * BLOCK
DEPTH = 5
_LOCAL = 4
# Deeper loops than this run a few times each.
_DEEP_LOOPS = 2


def generate(seed: int) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    elements = (rng.choice(INTEGERS), rng.choice(INTEGERS), rng.choice(REALS))
    shapes = _Shapes(rng, elements)
    helper = _helper(rng, seed, elements) if rng.random() < 0.5 else None
    maker = _Maker(rng, shapes.scope(), elements, helper)
    body = maker.top()
    return Program(
        seed, elements, shapes.prologue(), body, shapes.epilogue(), helper, maker.has_barriers
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


def _helper(rng: random.Random, seed: int, elements: tuple[str, str, str]) -> Helper:
    """A device function of a strong integer, a Python int and a view, with a tuple as result."""
    a, _, f = elements
    scope = Scope(
        {INT: ["a", "b", "k"], FLOAT: ["w"], BOOL: ["y"], a: ["p"], f: ["r"]},
        [(a, "v[{}]", 4)],
        [],
    )
    maker = _Maker(rng, scope, elements, None)
    maker.has_barriers = False
    maker.result = "(p, a % 100)"
    setup = ["b = 2", "c = 0", "fuel = 0", "w = 1.5", "y = a > k", f"r = np.{f}(p)"]
    body = [Statement(line) for line in setup] + maker.block(2, False)
    return Helper(f"helper_{seed}", "p, a, v, k=3", body, maker.result)


class _Maker:
    """Statements over a scope."""

    def __init__(
        self,
        rng: random.Random,
        scope: Scope,
        elements: tuple[str, str, str],
        helper: Helper | None,
    ) -> None:
        self.rng = rng
        self.scope = scope
        self.elements = elements
        self.helper = helper
        self.make = Expressions(rng, scope)
        # a barrier needs all threads of its block, so a kernel has barriers or early returns
        self.has_barriers = rng.random() < 0.4
        self.result: str | None = None
        self.loops = 0

    def _pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    # --- uniform flow -----------------------------------------------------------------------------

    def top(self) -> list[Statement]:
        """Statements at the top, where flow is uniform."""
        return [s for _ in range(self.rng.choice((1, 2, 2))) for s in self.uniform(0)]

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
        kind = self.elements[0]
        other = self._pick(f"s[{BLOCK - 1} - t]", f"s[(t + 1) % {BLOCK}]", "s[t ^ 1]", "s[-1 - t]")
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
        kind = self.rng.randrange(15)
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
        if self.helper is not None and self.rng.random() < 0.2:
            return self.call()
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
        return self.store()

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
        return f"p, a = {self.helper.name}({given}, {view}{more})"  # type: ignore[union-attr]

    def scalar(self) -> str:
        """An assignment to a strong variable."""
        named = [(k, v) for k, names in self.scope.variables.items() for v in names if v in "pqr"]
        kind, name = self.rng.choice(sorted(named))
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
        if choice < 0.75:
            other = self.make.of(self.rng.choice(self.scope.strong), 2)
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

    def for_loop(self, depth: int, in_loop: bool) -> Statement:
        name = f"{'ijkl'[depth % 4]}{depth}"
        source = self.bounds()
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
            known = ("a % 4", "k % 6, 0, -2", "len(v) - 2")
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
