"""The body of a device function that is given by texts."""

from __future__ import annotations

from collections.abc import Mapping

from sarek_numba.frontend.lower.values import Value, View
from sarek_numba.frontend.texts import InlineSource, by_position
from sarek_numba.ir.nodes import Body, Native, Var, VarRef


def given(source: InlineSource, fallback: Body, places: Mapping[str, str]) -> Body:
    """The texts, with parameters by position, and the fallback; see `ir.texts`."""
    texts = tuple((framework, by_position(text, places)) for framework, text in source.texts)
    return (Native(texts, fallback, span=source.span),)


def place_of(value: Value, params: list[Var], first: int) -> str:
    """How a text names an argument whose parameters begin at `first`."""
    if isinstance(value, View) and isinstance(value.offset.expr, VarRef):
        return f"${{{first}+{params.index(value.offset.expr.var)}}}"
    return f"${first}"
