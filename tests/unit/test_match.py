"""The rewriting of `match` against CPython's own; what cases leave out against all values."""

from __future__ import annotations

import ast
import itertools
import linecache
import random

import pytest

from sarek_numba.frontend import patterns
from sarek_numba.frontend.source import read

BOOLS = (True, False)
VALUES = [(n, flag, pair) for n in range(5) for flag in BOOLS for pair in ((0, 1), (2, 0), (3, 3))]


class Maker:
    """Random match statements over a subject `(n, flag, (a, b))`."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = itertools.count()

    def number(self, bound: list[str]) -> str:
        match self.random.randrange(6):
            case 0:
                return "_"
            case 1:
                return self.capture(bound)
            case 2:
                return f"{self.random.randrange(4)} | {self.random.randrange(4)}"
            case 3 if len(bound) < 3:
                inner = f"({self.random.randrange(4)} | {self.random.randrange(4)})"
                return f"{inner} as {self.capture(bound)}"
            case _:
                return str(self.random.randrange(4))

    def capture(self, bound: list[str]) -> str:
        free = [name for name in ("n", "x", "y", "z", "w") if name not in bound]
        bound.append(self.random.choice(free))
        return bound[-1]

    def flag(self, bound: list[str]) -> str:
        return self.random.choice(["True", "False", "_", "True | False"])

    def pair(self, bound: list[str]) -> str:
        if self.random.random() < 0.3:
            return "_"
        return f"({self.number(bound)}, {self.number(bound)})"

    def pattern(self, bound: list[str]) -> str:
        if self.random.random() < 0.25:
            chosen = [f"({self.random.randrange(4)}, {self.flag([])}, _)" for _ in range(2)]
            return " | ".join(chosen)
        return f"({self.number(bound)}, {self.flag(bound)}, {self.pair(bound)})"

    def function(self) -> str:
        lines = ["def f(n, flag, pair):", "    x = y = z = w = -1", "    found = 0"]
        lines.append("    for step in range(2):")
        lines.append(
            f"        match {self.random.choice(['n, flag, pair', '(n + step, flag, pair)'])}:"
        )
        for number in range(self.random.randrange(1, 5)):
            bound: list[str] = []
            pattern = self.pattern(bound)
            guard = ""
            if self.random.random() < 0.5:
                name = self.random.choice(bound or ["n"])
                guard = f" if {name} % 2 == {self.random.randrange(2)}"
            lines.append(f"            case {pattern}{guard}:")
            lines.append(f"                found = found * 10 + {number + 1}")
            if self.random.random() < 0.2:
                lines.append(
                    f"                {self.random.choice(['break', 'continue', 'n += 1'])}"
                )
        result = "found, n, x, y, z, w" if self.random.random() < 0.5 else "found, n"
        lines.append(f"    return {result}")
        return "\n".join(lines) + "\n"


def made(text: str, name: str):
    file = f"<match {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict = {}
    exec(compile(text, file, "exec"), scope)
    return scope["f"]


def _kept(text: str) -> bool:
    """Whether nothing in a function is refused."""
    node = next(n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Match))
    return not patterns.findings(node, lambda _: None)


def test_rewriting_means_the_same():
    """400 random matches give, rewritten, what CPython gives for the statement itself."""
    checked = 0
    for seed in range(1200):
        text = Maker(seed).function()
        if not _kept(text):
            continue
        original = made(text, str(seed))
        rewritten = read(original).function
        assert rewritten is not original
        assert not any(isinstance(c, str) and "MATCH" in c for c in rewritten.__code__.co_names)
        for values in VALUES:
            assert rewritten(*values) == original(*values), f"{text}\n{values}"
        checked += 1
    assert checked >= 400


def test_places_are_the_users():
    """Each line of the rewritten function is one of the original's."""
    text = Maker(3).function()
    function = read(made(text, "places")).function
    lines = {line for line, *_ in function.__code__.co_positions() if line is not None}
    assert lines <= set(range(1, len(text.splitlines()) + 1))


def taken(case: ast.match_case, value: object) -> bool:
    """Whether CPython takes a case for a value."""
    text = f"match value:\n    case {ast.unparse(case.pattern)}:\n        taken = True\n"
    scope = {"value": value, "taken": False}
    exec(text, scope)
    return bool(scope["taken"])


@pytest.mark.parametrize("seed", range(60))
def test_what_is_left_out(seed):
    """`missing` and `is_useful` say of bools and tuples of bools what trying all values says."""
    chooser = random.Random(seed)

    def pattern(depth: int) -> str:
        if chooser.random() < 0.25:
            return "_"
        if depth == 0:
            return chooser.choice(["True", "False"])
        if chooser.random() < 0.2:
            return f"({pattern(depth)}) | ({pattern(0)}, {pattern(0)})" if depth == 1 else "_"
        return f"({pattern(depth - 1)}, {pattern(depth - 1)})"

    cases = "".join(
        f"    case {pattern(2)}:\n        pass\n" for _ in range(chooser.randrange(1, 7))
    )
    try:
        node = ast.parse(f"match s:\n{cases}").body[0]
        compile(ast.Module([node], []), "", "exec")
    except SyntaxError:
        return  # CPython itself refuses what stands behind a wildcard
    assert isinstance(node, ast.Match)
    pairs = list(itertools.product(BOOLS, BOOLS))
    values = list(itertools.product(pairs, pairs))
    left = [v for v in values if not any(taken(case, v) for case in node.cases)]
    assert bool(patterns.missing(node)) == bool(left)
    rows: list = []
    for position, case in enumerate(node.cases):
        row = (patterns.shape_of(case.pattern),)
        new = [
            v
            for v in values
            if taken(case, v) and not any(taken(c, v) for c in node.cases[:position])
        ]
        assert patterns.is_useful(rows, row) == bool(new), ast.unparse(case.pattern)
        rows.append(row)


def test_a_guard_takes_nothing_away():
    """A case behind one with a guard is reached, and the match is not complete by it."""
    node = ast.parse(
        "match s:\n    case True if f:\n        pass\n    case True:\n        pass"
    ).body[0]
    assert isinstance(node, ast.Match)
    assert patterns.findings(node, lambda _: None) == []
    assert [shape.head.name for shape in patterns.missing(node)] == ["False"]
