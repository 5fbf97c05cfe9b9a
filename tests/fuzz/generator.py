"""Random kernels of structured control flow, and the differential test over them.

`generate(seed)` gives a `Program`: a kernel as a tree of statements, whose text is plain Python
over arrays of int32, uint8 and float32 and two Python ints. Its meaning under CPython with NumPy
scalars is the reference: every thread reads and writes its own elements, and shares elements of
a shared array only across barriers that all threads reach. Loops are bounded by fuel. `define`
compiles many programs as one module, `differences` runs them on executors, `shrink` deletes
statements while a difference stays.

Types are chosen so that the reference is exact: Python ints are kept small, strong ints wrap,
floats use exactly rounded operations only.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FunctionType, ModuleType

import numpy as np

import sarek_numba.frontend.language as sarek

# Elements that each thread owns in every array, and threads of a launch.
OWN = 8
GRID, BLOCK = 2, 4
THREADS = GRID * BLOCK
DEPTH = 5

Arguments = tuple[np.ndarray, np.ndarray, np.ndarray, int, int]
Executor = Callable[[FunctionType, Arguments], None]


# --- programs -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Statement:
    """A line, or a compound statement: heads with their bodies."""

    line: str = ""
    parts: list[tuple[str, list[Statement]]] = field(default_factory=list)

    def lines(self, indent: int) -> Iterator[str]:
        space = "    " * indent
        if not self.parts:
            yield space + self.line
        for head, body in self.parts:
            yield f"{space}{head}:"
            if not body:
                yield f"{space}    pass"
            for statement in body:
                yield from statement.lines(indent + 1)


@dataclass(slots=True)
class Program:
    """A kernel: its name, the seed it was made from and the statements after the prologue."""

    name: str
    seed: int
    body: list[Statement]

    @property
    def text(self) -> str:
        lines = [f"def {self.name}(x, u, f, n, m):"]
        lines += [f"    {line}" for line in _PROLOGUE]
        for statement in self.body:
            lines += statement.lines(1)
        lines += [f"    {line}" for line in _EPILOGUE]
        return "\n".join(lines) + "\n"


_PROLOGUE = (
    "t = sarek.thread_idx.x",
    f"o = sarek.global_idx.x * {OWN}",
    f"s = sarek.shared.array({BLOCK}, np.int32)",
    "a = n + t",
    "b = 1",
    "c = 0",
    "fuel = 0",
    "p = x[o]",
    "q = u[o]",
    "r = f[o]",
)
_EPILOGUE = (
    "x[o + 6] = a % 1000",
    "x[o + 7] = b * 3 + c * 7",
    "x[o + 5] = p",
    "u[o + 7] = q",
    "f[o + 7] = r",
)


# --- generation -----------------------------------------------------------------------------------


def generate(seed: int) -> Program:
    """The program of a seed."""
    maker = _Maker(random.Random(seed))
    return Program(f"kernel_{seed}", seed, maker.top())


class _Maker:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        # a barrier needs all threads of its block, so a kernel has barriers or early returns
        self.has_barriers = rng.random() < 0.4

    def top(self) -> list[Statement]:
        """Statements at the top, where flow is uniform: some are barriers with a hand-over."""
        body: list[Statement] = []
        for _ in range(self.rng.choice((3, 3, 4))):
            body += self.statement(0, False)
            if self.has_barriers and self.rng.random() < 0.6:
                body += self.hand_over()
        return body

    def hand_over(self) -> list[Statement]:
        value = self.rng.choice(("p", "x[o + 1]", "np.int32(c)"))
        lines = (f"s[t] = {value}", "sarek.barrier()", f"p = s[{BLOCK - 1} - t]", "sarek.barrier()")
        return [Statement(line) for line in lines]

    def block(self, depth: int, in_loop: bool) -> list[Statement]:
        body: list[Statement] = []
        for _ in range(self.rng.choice((1, 1, 1, 2))):
            body += self.statement(depth, in_loop)
        return body

    def statement(self, depth: int, in_loop: bool) -> list[Statement]:
        kind = self.rng.randrange(14)
        if depth >= DEPTH:
            kind = self.rng.choice((0, 2, 3, 4))
        if kind < 5:
            return [Statement(self.simple(kind))]
        if kind in (5, 6, 7):
            return [self.branch(depth, in_loop)]
        if kind in (8, 9):
            return [self.for_loop(depth, in_loop)]
        if kind == 10:
            return [self.while_loop(depth, in_loop)]
        if kind == 11:
            return [self.endless(depth)]
        if kind == 12 and in_loop:
            return [Statement(parts=[(f"if {self.test()}", [self.jump()])])]
        if not self.has_barriers and self.rng.random() < 0.4:
            return [Statement(parts=[(f"if {self.test()}", [Statement("return")])])]
        return [Statement("c = (c + 1) % 100")]

    def jump(self) -> Statement:
        return Statement(self.rng.choice(("break", "continue")))

    def simple(self, kind: int) -> str:
        choice = self.rng.choice
        match kind:
            case 0 | 1:
                return f"{choice('abc')} = ({self.whole()}) % {choice((7, 50, 100))}"
            case 2:
                return choice(
                    (
                        f"x[o + {self.place()}] += {self.whole()}",
                        f"x[o + ({choice('abc')} % 6)] = {self.int32()}",
                        f"x[o + 1], x[o + 2] = x[o + 2], {self.int32()}",
                        f"u[o + {self.place()}] = {self.uint8()}",
                        f"f[o + {self.place()}] = {self.float32()}",
                    )
                )
            case 3:
                return choice(("a, b = b, a", "a, b, c = c, a, b", "p = " + self.int32()))
            case _:
                return choice((f"q = {self.uint8()}", f"r = {self.float32()}", "p = -p"))

    def place(self) -> int:
        return self.rng.randrange(6)

    def branch(self, depth: int, in_loop: bool) -> Statement:
        parts = [(f"if {self.test()}", self.block(depth + 1, in_loop))]
        if self.rng.random() < 0.3:
            parts.append((f"elif {self.test()}", self.block(depth + 1, in_loop)))
        if self.rng.random() < 0.5:
            parts.append(("else", self.block(depth + 1, in_loop)))
        return Statement(parts=parts)

    def for_loop(self, depth: int, in_loop: bool) -> Statement:
        variable = f"{'ijkl'[depth % 4]}{depth}"
        bounds = self.rng.choice(("n", "3", "m", "1, n", "n, 0, -1", "0", "0, 9, m + 2", "t"))
        source = f"range({bounds})" if self.rng.random() < 0.9 else "(1, 2, 5)"
        body = self.block(depth + 1, True)
        if self.rng.random() < 0.5:
            use = self.rng.choice((f"c = (c + {variable}) % 100", f"a = (a - {variable}) % 50"))
            body.append(Statement(use))
        if self.rng.random() < 0.1:
            body.insert(0, Statement(f"{variable} = {variable} + 1"))
        parts = [(f"for {variable} in {source}", body)]
        if self.rng.random() < 0.3:
            parts.append(("else", self.block(depth + 1, in_loop)))
        return Statement(parts=parts)

    def while_loop(self, depth: int, in_loop: bool) -> Statement:
        body = [Statement("fuel += 1"), *self.block(depth + 1, True)]
        head = f"while fuel < {self.rng.randrange(5, 40)} and {self.test()}"
        parts = [(head, body)]
        if self.rng.random() < 0.3:
            parts.append(("else", self.block(depth + 1, in_loop)))
        return Statement(parts=parts)

    def endless(self, depth: int) -> Statement:
        ways = ("break",) if self.has_barriers else ("break", "break", "return")
        out = Statement(self.rng.choice(ways))
        guard = Statement(parts=[(f"if fuel > {self.rng.randrange(3, 30)}", [out])])
        return Statement(
            parts=[("while True", [Statement("fuel += 1"), guard, *self.block(depth + 1, True)])]
        )

    # --- expressions ------------------------------------------------------------------------------

    def test(self, depth: int = 0) -> str:
        kind = self.rng.randrange(9)
        choice = self.rng.choice
        if kind < 3 or depth > 2:
            relation = choice(("<", ">", "==", "!=", "<=", ">="))
            return f"{choice('abcnmt')} {relation} {choice('abc25')}"
        match kind:
            case 3:
                return f"({self.test(depth + 1)} and {self.test(depth + 1)})"
            case 4:
                return f"({self.test(depth + 1)} or {self.test(depth + 1)})"
            case 5:
                return f"not ({self.test(depth + 1)})"
            case 6:
                return f"{choice('abc')} < {choice('abc')} <= {choice('nm')}"
            case 7:
                return choice(("p > x[o + 1]", "p == 3", "q < 300", "q > 7", "1 < x[o + 2] <= 5"))
            case _:
                return choice(("r > 0.5", "r < f[o + 1]", "a in (1, 2, 5)", "u[o + 1] == q"))

    def whole(self, depth: int = 0) -> str:
        kind = self.rng.randrange(7)
        choice = self.rng.choice
        if kind < 3 or depth > 1:
            return choice(
                ("a", "b", "c", "1", "3", "t", "(a - b)", "(b + c)", "(a * b)", "a // 3", "-a % 5")
            )
        match kind:
            case 3:
                return f"({self.whole(depth + 1)} if {self.test()} else {self.whole(depth + 1)})"
            case 4:
                return f"({self.whole(depth + 1)} and {self.whole(depth + 1)})"
            case 5:
                return f"({self.whole(depth + 1)} or {self.whole(depth + 1)})"
            case _:
                return choice(("min(a, b)", "max(b, c)", "abs(a - b)", "(a << 2)", "(b & 6)"))

    def int32(self) -> str:
        index = self.place()
        return self.rng.choice(
            (
                "p",
                f"x[o + {index}]",
                f"x[o + {index}] * 3",
                f"p + x[o + {index}]",
                "p - 7",
                f"(p if {self.test()} else x[o + {index}])",
                f"x[o + {index}] // 5",
                "p % 7",
                f"p ^ x[o + {index}]",
                "p >> 1",
            )
        )

    def uint8(self) -> str:
        return self.rng.choice(
            ("q", f"u[o + {self.place()}]", "q + 1", "q * 3", "q >> 1", "q ^ 255", "q // 3")
        )

    def float32(self) -> str:
        index = self.place()
        return self.rng.choice(
            (
                "r",
                f"f[o + {index}] * 0.5",
                "r + 1.25",
                f"r - f[o + {index}]",
                "r / 3.0",
                f"(r if {self.test()} else f[o + {index}])",
                "min(r, 2.0)",
                "abs(r)",
            )
        )


# --- running --------------------------------------------------------------------------------------


def define(programs: list[Program]) -> dict[str, FunctionType]:
    """The functions of many programs, made as one module with its text in `linecache`."""
    text = "\n\n".join(program.text for program in programs)
    name = f"<fuzz {programs[0].seed}–{programs[-1].seed}>"
    module = ModuleType("fuzz")
    module.__dict__.update(sarek=sarek, np=np)
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), module.__dict__)
    return {program.name: getattr(module, program.name) for program in programs}


def arguments(seed: int, round: int) -> Arguments:
    """Arguments of one launch: x, u, f, n, m."""
    rng = np.random.default_rng((seed, round))
    size = THREADS * OWN
    return (
        rng.integers(-3, 9, size, dtype=np.int32),
        rng.integers(0, 256, size, dtype=np.uint8),
        rng.integers(-8, 9, size).astype(np.float32) / np.float32(4),
        int(rng.integers(-1, 6)),
        int(rng.integers(-1, 6)),
    )


@dataclass(frozen=True, slots=True)
class Difference:
    """A program on which an executor differs from the reference."""

    program: Program
    executor: str
    round: int
    what: str

    def __str__(self) -> str:
        return (
            f"seed {self.program.seed}, arguments {self.round}: {self.executor} {self.what}\n"
            f"{self.program.text}"
        )


def differences(
    programs: list[Program],
    reference: Executor,
    executors: dict[str, Executor],
    rounds: int = 3,
) -> list[Difference]:
    """Run programs on all executors. An executor changes the arguments as the launch does.

    A program that the reference does not run to its end with these arguments is left out.
    """
    found = []
    functions = define(programs)
    for program in programs:
        function = functions[program.name]
        for round in range(rounds):
            expected = _run(reference, function, arguments(program.seed, round))
            if isinstance(expected, str):
                continue
            for name, executor in executors.items():
                actual = _run(executor, function, arguments(program.seed, round))
                what = _compare(expected, actual)
                if what is not None:
                    found.append(Difference(program, name, round, what))
    return found


def _run(executor: Executor, function: FunctionType, given: Arguments) -> Arguments | str:
    try:
        with np.errstate(all="ignore"):
            executor(function, given)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return given


def _compare(expected: Arguments, actual: Arguments | str) -> str | None:
    if isinstance(actual, str):
        return f"raised {actual}"
    for name, ours, theirs in zip("xuf", expected, actual, strict=False):
        same = (ours == theirs) | ((ours != ours) & (theirs != theirs))
        if not same.all():
            index = int(np.flatnonzero(~same)[0])
            return f"has {name}[{index}] = {theirs[index]!r}, expected {ours[index]!r}"
    return None


# --- shrinking ------------------------------------------------------------------------------------


def shrink(program: Program, differs: Callable[[Program], bool]) -> Program:
    """A smaller program on which `differs` still holds: delete statements, or unwrap them."""
    changed = True
    while changed:
        changed = False
        for body in _smaller(program.body):
            candidate = Program(program.name, program.seed, body)
            if differs(candidate):
                program, changed = candidate, True
                break
    return program


def _smaller(body: list[Statement]) -> Iterator[list[Statement]]:
    for k, statement in enumerate(body):
        before, behind = body[:k], body[k + 1 :]
        yield [*before, *behind]
        for j, (head, inner) in enumerate(statement.parts):
            yield [*before, *inner, *behind]
            if j:
                yield [*before, Statement(parts=statement.parts[:j]), *behind]
            for less in _smaller(inner):
                parts = [*statement.parts[:j], (head, less), *statement.parts[j + 1 :]]
                yield [*before, Statement(parts=parts), *behind]
