"""Structuring: no function of random branches, loops and jumps is refused.

Each runs as CPython does. Loops without an end are among them.
"""

from __future__ import annotations

import ast
import linecache
import random
from typing import Any

import pytest

from tests.unit.region_runner import OutOfFuel, Runner, structured

_READS = 300
_STATEMENTS = ("if", "while", "while True", "for", "match", "jump", "assign", "assign")


class _Stop(Exception):
    """A list was read more often than any function needs that ends soon."""


class _Counted(list[int]):
    """A list that ends whoever reads it for ever."""

    left = _READS

    def __getitem__(self, index: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise _Stop
        return super().__getitem__(index)


class _Writer:
    """Writes the text of a function `f(x, n, m)`."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines = ["def f(x, n, m):"]
        self.left = self.random.randrange(4, 16)
        self.loops = 0
        self.ends = True  # whether each endless loop reads the list

    def text(self) -> str:
        self.body(1, in_loop=False)
        self.put(1, "x[0] += n")
        return "\n".join(self.lines) + "\n"

    def put(self, depth: int, line: str) -> None:
        self.lines.append(" " * depth + line)

    def condition(self, depth: int = 0) -> str:
        order, bound = self.random.choice("<>"), self.random.choice("nm12")
        first = f"x[{self.random.randrange(4)}] {order} {bound}"
        match self.random.randrange(8 if depth < 2 else 2):
            case 2:
                return f"{first} and {self.condition(depth + 1)}"
            case 3:
                return f"({first} or {self.condition(depth + 1)})"
            case 4:
                arms = (self.condition(depth + 1) for _ in range(2))
                return f"({' if {} else '.join(arms)})".format(first)
            case _:
                return first

    def body(self, depth: int, in_loop: bool) -> None:
        for _ in range(self.random.randrange(1, 4)):
            self.left -= 1
            if self.left < 0 or depth > 7:
                self.put(depth, self.random.choice(("pass", "n = m")))
                return
            self.statement(depth, self.random.choice(_STATEMENTS), in_loop)

    def statement(self, depth: int, kind: str, in_loop: bool) -> None:
        match kind:
            case "if":
                self.put(depth, f"if {self.condition()}:")
                self.body(depth + 1, in_loop)
                if self.random.random() < 0.3:
                    self.put(depth, f"elif {self.condition()}:")
                    self.body(depth + 1, in_loop)
                if self.random.random() < 0.4:
                    self.put(depth, "else:")
                    self.body(depth + 1, in_loop)
            case "match":
                self.matching(depth, in_loop)
            case "while" | "while True" | "for":
                self.loop(depth, kind)
            case "jump":
                jumps = ("break", "continue", "return n") if in_loop else ("return m",)
                self.put(depth, self.random.choice(jumps))
            case _:
                place = f"x[{self.random.randrange(4)}]"
                lines = (f"n = {place} - 1", f"m = {place}", f"{place} += 1", f"{place} -= n")
                self.put(depth, self.random.choice(lines))

    def loop(self, depth: int, kind: str) -> None:
        self.loops += 1
        head = kind
        if kind == "while":
            head += f" {self.condition()}"
        elif kind == "for":
            head += f" i{self.loops} in range(x[{self.random.randrange(4)}] % 4)"
        self.put(depth, f"{head}:")
        if kind == "while True" and self.random.random() < 0.5:
            self.put(depth + 1, "x[3] += 1")
        elif kind == "while True":
            self.ends = False
        self.body(depth + 1, in_loop=True)
        if self.random.random() < 0.3:
            self.put(depth, "else:")
            self.body(depth + 1, in_loop=depth > 1 and self.is_in_loop(depth))

    def is_in_loop(self, depth: int) -> bool:
        """Whether a line of this depth that follows now stands within a loop."""
        for line in reversed(self.lines):
            indent = len(line) - len(line.lstrip())
            if indent < depth:
                depth = indent
                if line.lstrip().startswith(("for ", "while ")):
                    return True
        return False

    def matching(self, depth: int, in_loop: bool) -> None:
        self.put(depth, f"match x[{self.random.randrange(4)}]:")
        for number in range(self.random.randrange(1, 4)):
            pattern = self.random.choice(
                (f"{number}", f"{number} | {number + 5}", f"_ if n > {number}")
            )
            self.put(depth + 1, f"case {pattern}:")
            self.body(depth + 2, in_loop)
        if self.random.random() < 0.5:
            self.put(depth + 1, "case _:")
            self.body(depth + 2, in_loop)


def _function(text: str, seed: int) -> Any:
    file = f"<structure {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace: dict[str, Any] = {}
    exec(compile(text, file, "exec"), namespace)
    return namespace["f"]


def compare(seed: int) -> int:
    """Structure a random function and run it; on how many arguments it ended and was compared."""
    writer = _Writer(seed)
    text = writer.text()
    function = _function(text, seed)
    result = structured(function, ast.parse(text))
    rng = random.Random(seed)
    compared = 0
    for _ in range(8 if writer.ends else 0):
        given = [rng.randrange(-1, 4) for _ in range(4)]
        numbers = rng.randrange(-1, 5), rng.randrange(-1, 5)
        ours, theirs = _Counted(given), _Counted(given)
        try:
            expected = function(theirs, *numbers)
        except _Stop:
            continue
        try:
            actual = Runner(result).run(ours, *numbers)
        except (OutOfFuel, _Stop):
            actual = "no end"
        assert (actual, list(ours)) == (expected, list(theirs)), f"{text}of {given}, {numbers}"
        compared += 1
    return compared


@pytest.mark.parametrize("first", [0, 100, 400, 2800])
def test_random_structures(first):
    """A hundred functions are structured; those that end have CPython's result."""
    assert sum(compare(seed) for seed in range(first, first + 100)) > 100
