"""Device functions of generated programs: of numbers, functions as arguments, recursion."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.fuzz.expressions import BOOL, FLOAT, INT, REALS, Expressions, Scope
from tests.fuzz.modes import PLAIN, Mode
from tests.fuzz.programs import Helper, Statement
from tests.fuzz.statements import Maker

Elements = tuple[str, str, str]


class Functions:
    """Device functions of one program. Later ones call earlier ones; a scope gets their calls."""

    def __init__(
        self,
        rng: random.Random,
        seed: int,
        elements: Elements,
        mode: Mode = PLAIN,
        more: bool = False,
    ) -> None:
        self.rng = rng
        self.seed = seed
        self.elements = elements
        self.mode = mode
        self.more = more  # call earlier functions, and be called, often
        self.made: list[Helper] = []
        self.calls: list[tuple[str, str]] = []
        self.unary: dict[str, list[str]] = {}  # functions of one number, by its type

    def make(self, count: int) -> None:
        """Make some functions, each of a kind of its own."""
        kinds: list[Callable[[str, str], Helper]] = [
            self._of_numbers, self._of_a_function, self._bounded, self._tail, self._of_numbers,
        ]  # fmt: skip
        for k, make in enumerate(self.rng.sample(kinds, count)):
            kind = self.rng.choice((self.elements[0],) * 3 * self.more + self.elements)
            self.made.append(make(kind, f"f{k}_{self.seed}"))

    def _maker(self, kind: str, ints: list[str], result: str) -> Maker:
        """Statements over the parameter p of a type, Python ints and earlier functions."""
        scope = Scope({INT: ints, FLOAT: ["w"], BOOL: ["y"], kind: ["p"]})
        scope.calls = list(self.calls)
        maker = Maker(self.rng, scope, (kind, kind, kind), self.mode)
        maker.has_barriers = False
        maker.result = result
        return maker

    def _of_numbers(self, kind: str, name: str) -> Helper:
        """f(p, a, c=2): statements with early returns, called with keywords and without."""
        result = self.rng.choice(("p", "p if y else +p"))
        maker = self._maker(kind, ["a", "c"], result)
        setup = ("b = 1", "fuel = 0", "w = 0.75", "y = a > c")
        maker.scope.variables[INT].append("b")
        body = [Statement(line) for line in setup] + maker.block(3, False)
        body += [Statement(f"p = {call}") for call in self._earlier(maker.make, kind)]
        one, two, three = f"{name}(<same>, ", f"{name}(<same>, ", f"{name}(a=<i> % 30, "
        self.calls += [
            (kind, f"{one}(<int>) % 50)"),
            (kind, f"{two}<i> % 20, <digit>)"),
            (kind, f"{three}p=<same>)"),
        ]
        return Helper(name, "p, a, c=2", body, result, self._decorator())

    def _of_a_function(self, kind: str, name: str) -> Helper:
        """f(g, p, *more): what a function gives of a number, or of what it gives."""
        function = f"u_{name}"
        self.unary.setdefault(kind, []).append(function)
        make = self._maker(kind, ["a"], "p").make
        make.scope.variables[BOOL] = []
        make.scope.variables[FLOAT] = ["(a * 0.5)"]
        inner = f"@sarek.function\ndef {function}(p, a=4):\n    return {self._value(make)}\n"
        known = ["abs", f"np.{kind}", function, function]
        if kind in REALS:
            known += ["np.floor", "np.sqrt", "math.trunc"][:2]
        for each in sorted(set(known)):
            self.calls.append((kind, f"{name}({each}, <same>)"))
        self.calls.append((kind, f"{name}(p=<same>, g={function}, k=<i> % 3)"))
        body = [
            Statement(parts=[("if k > 1", [Statement("return g(g(p))")])]),
            Statement(parts=[("for _ in range(k)", [Statement("p = g(p)")])]),
        ]
        return Helper(name, "g, p, k=1", body, "g(p)", self._decorator(), inner)

    def _earlier(self, make: Expressions, kind: str) -> list[str]:
        """A call of an earlier function, where more of them are wanted."""
        known = [template for k, template in self.calls if k == kind] if self.more else []
        if not known or self.rng.random() < 0.3:
            return []
        return [make.expand(self.rng.choice(known), kind, 1)]

    def attach(self, maker: Maker) -> None:
        """Let a program's simple statements call functions, each as often as others."""

        def call() -> str:
            names = sorted({each for k, each in self.calls if k in self.elements})
            helper = self.rng.choice(self.made).name
            known = [each for each in names if f"{helper}(" in each]
            template = self.rng.choice(known or names)
            kind = next(k for k, each in self.calls if each == template)
            target = "pqr"[self.elements.index(kind)]
            return f"{target} = {maker.make.expand(template, kind, 1)}"

        if self.calls:
            maker.simples.append(call)

    def _value(self, make: Expressions) -> str:
        (kind,) = [k for k in make.scope.variables if k not in (INT, FLOAT, BOOL)]
        return make.of(kind, 1)

    def _bounded(self, kind: str, name: str) -> Helper:
        """f(p, k): recursion to a depth that is known, with one or two calls in a call."""
        depth = self.rng.randrange(2, 5)
        maker = self._maker(kind, ["k"], "p")
        maker.scope.variables[FLOAT] = ["(k * 0.25)"]
        maker.scope.variables[BOOL] = ["(k > 1)"]
        start = Statement(parts=[("if k <= 0", [Statement(f"return {self._value(maker.make)}")])])
        again = f"{name}({self._value(maker.make)}, k - 1)"
        twice = f"{name}(p, k - 2)"
        sign = "+" if kind in REALS else self.rng.choice(("+", "-", "^"))
        results = (again, f"{again} {sign} p", f"{again} {sign} {twice}", f"-{again}")
        self.calls.append((kind, f"{name}(<same>, (<int>) % {depth})"))
        decorator = f"@sarek.function(inline_depth={depth + 1})"
        return Helper(name, "p, k", [start], self.rng.choice(results), decorator)

    def _tail(self, kind: str, name: str) -> Helper:
        """f(p, k, total): a call as the last thing, which becomes a loop."""
        maker = self._maker(kind, ["k"], "total")
        maker.scope.variables[FLOAT] = ["(k * 0.25)"]
        maker.scope.variables[BOOL] = ["(k > 2)"]
        maker.scope.variables[kind] = ["p", "total"]
        start = Statement(parts=[("if k <= 0", [Statement("return total")])])
        first, second = self._value(maker.make), self._value(maker.make)
        other = f"return {name}({second}, k - 2, total)"
        branch = Statement(parts=[(f"if {maker.make.condition()}", [Statement(other)])])
        result = f"{name}(total={first}, k=k - 1, p={self.rng.choice(['total', 'p'])})"
        self.calls.append((kind, f"{name}(<same>, (<int>) % 9, <same>)"))
        return Helper(name, "p, k, total", [start, branch], result)

    def _decorator(self) -> str:
        return self.rng.choice(
            ("@sarek.function", "@sarek.function", "@sarek.function(inline=True)")
        )
