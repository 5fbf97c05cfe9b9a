"""Texts that the user has given for a helper, as the body of a C function."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence

from sarek_numba.ir.nodes import HelperFunction, Kernel, Var
from sarek_numba.ir.texts import filled, text_of
from sarek_numba.ir.types import Array, ElementType, Unit, Vec

_WORD = re.compile(r"[A-Za-z_]\w*")


def words(kernel: Kernel) -> Iterable[str]:
    """The identifiers in the texts of a kernel: nothing else may have their names."""
    for helper in kernel.functions:
        text = text_of(helper)
        if text is not None:
            yield from _WORD.findall(text)


def lines(
    text: str,
    helper: HelperFunction,
    names: Sequence[str],
    spelled: Callable[[ElementType], str],
) -> list[str]:
    """The statements of a text; `names` are those of the helper's parameters.

    A text without a semicolon is an expression: the result.
    """

    def type_at(place: int | None) -> str:
        return spelled(helper.result if place is None else _number(helper.params[place]))

    body = filled(
        textwrap.dedent(text).strip("\n"),
        lambda place: names[place],
        lambda base, offset: f"({names[base]} + {names[offset]})",
        type_at,
    )
    if ";" not in body:
        body = f"{body.strip()};" if isinstance(helper.result, Unit) else f"return {body.strip()};"
    return body.splitlines()


def _number(param: Var) -> ElementType:
    match param.type:
        case Vec(element=element) | Array(element=element):
            return element
        case _:
            return param.type
