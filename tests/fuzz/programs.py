"""Generated programs as data: trees of statements, their text, and smaller ones.

A `Program` is one function of arrays and two Python ints. Its text is either a device function, so
that one kernel may hold many programs, or a kernel of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from tests.fuzz.modes import PLAIN, Mode


class Form(Enum):
    """What the text of a program is."""

    FUNCTION = "function"  # a device function, called by the kernel of its batch
    KERNEL = "kernel"  # a kernel that is launched by itself


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


@dataclass(frozen=True, slots=True)
class Helper:
    """A device function that programs call: head, body and the returns at its end.

    `before` is the text of functions that it, or its callers, name.
    """

    name: str
    parameters: str
    body: list[Statement]
    result: str
    decorator: str = "@sarek.function"
    before: str = ""

    @property
    def lines(self) -> list[str]:
        body = [line for statement in self.body for line in statement.lines(1)]
        return [
            *self.before.splitlines(),
            self.decorator,
            f"def {self.name}({self.parameters}):",
            *body,
            f"    return {self.result}",
            "",
        ]


@dataclass(frozen=True, slots=True)
class Program:
    """One function.

    `elements` are the element types of the arrays x, u and f, of which every thread owns `OWN`
    elements. The arrays z (bools), d (int32, rows) and e (float32, rows in reverse) come with them.
    `mode` is that of its kernel.
    `extras` are the parameters of further arrays and the arrays that they get.
    """

    seed: int
    elements: tuple[str, str, str]
    extras: tuple[tuple[str, str], ...]
    prologue: tuple[str, ...]
    body: list[Statement]
    epilogue: tuple[str, ...]
    helpers: tuple[Helper, ...]
    has_barriers: bool
    mode: Mode = PLAIN

    @property
    def name(self) -> str:
        return f"program_{self.seed}"

    def reached(self) -> list[Helper]:
        """The device functions that the program calls, or that they call."""
        text, reached = self.text(Form.KERNEL, ()), []
        for helper in reversed(self.helpers):  # each calls those before it
            if re.search(rf"\b(u_)?{helper.name}\b", text):
                reached.append(helper)
                text += "\n".join(helper.lines)
        return reached[::-1]

    def text(self, form: Form = Form.KERNEL, helpers: Sequence[Helper] | None = None) -> str:
        used = self.helpers if helpers is None else helpers
        lines = [line for helper in used for line in helper.lines]
        if form is Form.FUNCTION:
            lines = [*lines, "@sarek.function"]
        more = "".join(f"{parameter}, " for parameter, _ in self.extras)
        lines = [*lines, f"def {self.name}(x, u, f, z, d, e, {more}n, m):"]
        lines += [f"    {line}" for line in self.prologue]
        for statement in self.body:
            lines += statement.lines(1)
        lines += [f"    {line}" for line in self.epilogue]
        return "\n".join(lines) + "\n"


def smaller(program: Program) -> Iterator[Program]:
    """The program with one statement deleted or unwrapped, outermost and last first."""
    for body in _smaller(program.body):
        yield replace(program, body=body)
    for k in reversed(range(len(program.epilogue))):
        rest = program.epilogue[:k] + program.epilogue[k + 1 :]
        yield replace(program, epilogue=rest)
    for k in reversed(range(len(program.prologue))):
        yield replace(program, prologue=program.prologue[:k] + program.prologue[k + 1 :])
    helpers = program.helpers
    for k, helper in reversed(list(enumerate(helpers))):
        before, behind = helpers[:k], helpers[k + 1 :]
        yield replace(program, helpers=(*before, *behind))
        for body in _smaller(helper.body):
            yield replace(program, helpers=(*before, replace(helper, body=body), *behind))


def _smaller(body: list[Statement]) -> Iterator[list[Statement]]:
    for k in reversed(range(len(body))):
        yield [*body[:k], *body[k + 1 :]]
    for k in reversed(range(len(body))):
        before, statement, behind = body[:k], body[k], body[k + 1 :]
        for j, (head, inner) in enumerate(statement.parts):
            yield [*before, *inner, *behind]
            if j:
                yield [*before, Statement(parts=statement.parts[:j]), *behind]
            for less in _smaller(inner):
                parts = [*statement.parts[:j], (head, less), *statement.parts[j + 1 :]]
                yield [*before, Statement(parts=parts), *behind]
