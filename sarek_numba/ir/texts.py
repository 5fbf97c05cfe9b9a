"""Helpers that the user has written as text for some frameworks: `Native` as their whole body.

A text names the helper's parameters by their positions: `$0` is the first one, `${0+2}` the pointer
in parameter 0 moved on by parameter 2, `$0.type` the framework's name of the type of a number, or
of an array's elements, `$return.type` that of the result, and `$$` a dollar sign. It is the body of
a function, or one expression, its result.

The meaning of such a helper is its fallback: the oracle runs that, and all analyses look at it.
`picked(kernel, framework)` says what a device runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from sarek_numba.ir.nodes import App, Body, Call, HelperFunction, Kernel, Native, Stmt
from sarek_numba.ir.walk import map_body, walk_body_exprs, walk_stmts

_REFERENCE = re.compile(
    r"\$(?:(?P<dollar>\$)|\{(?P<base>\d+)\+(?P<offset>\d+)\}|(?P<place>\d+|return))"
    r"(?P<type>\.type\b)?"
)


def text_of(helper: HelperFunction) -> str | None:
    """The text of a helper of a kernel that has been picked; None if it has a body of its own."""
    match helper.body:
        case (Native(texts=((_, text),)),):
            return text
        case _:
            return None


def is_given(helper: HelperFunction) -> bool:
    """Whether a helper is given by texts."""
    match helper.body:
        case (Native(texts=texts),):
            return bool(texts)
        case _:
            return False


def has_texts(kernel: Kernel) -> bool:
    """Whether a helper of a kernel is given by texts."""
    return any(map(is_given, kernel.functions))


def picked(kernel: Kernel, framework: str) -> Kernel:
    """The kernel with the text of the framework alone, or the fallback where there is none."""

    def chosen(stmt: Stmt) -> Stmt | Body:
        if not isinstance(stmt, Native):
            return stmt
        text = dict(stmt.texts).get(framework)
        if text is None:
            return stmt.fallback
        return stmt if len(stmt.texts) == 1 else replace(stmt, texts=((framework, text),))

    functions = tuple(
        replace(helper, body=map_body(helper.body, chosen)) for helper in kernel.functions
    )
    body = map_body(kernel.body, chosen)
    pairs = zip(functions, kernel.functions, strict=True)
    if body is kernel.body and all(new.body is old.body for new, old in pairs):
        return kernel
    return replace(kernel, body=body, functions=functions)


def without_fallbacks(kernel: Kernel) -> Kernel:
    """What is left to print of a picked kernel: no fallbacks, nor helpers that they alone call."""
    if not has_texts(kernel):
        return kernel
    bare = [
        replace(helper, body=(replace(native, fallback=()),), locals=())
        if is_given(helper) and isinstance(native := helper.body[0], Native)
        else helper
        for helper in kernel.functions
    ]
    called = _called(kernel.body)
    for helper in reversed(bare):  # callers come behind their callees
        if helper.name in called:
            called |= _called(helper.body)
    return replace(kernel, functions=tuple(each for each in bare if each.name in called))


def _called(body: Body) -> set[str]:
    calls = {stmt.function for stmt in walk_stmts(body) if isinstance(stmt, Call)}
    return calls | {expr.function for expr in walk_body_exprs(body) if isinstance(expr, App)}


def filled(
    text: str,
    value: Callable[[int], str],
    moved: Callable[[int, int], str],
    type: Callable[[int | None], str],
) -> str:
    """A text with its references replaced.

    `value` spells a parameter, `moved` a pointer with an offset, `type` the type of a parameter or,
    for None, of the result.
    """

    def spelled(match: re.Match[str]) -> str:
        if match["dollar"]:
            return "$" + (match["type"] or "")
        place = match["base"] or match["place"]
        if match["type"]:
            return type(None if place == "return" else int(place))
        if match["base"]:
            return moved(int(match["base"]), int(match["offset"]))
        return value(int(place))

    return _REFERENCE.sub(spelled, text)
