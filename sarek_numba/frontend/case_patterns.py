"""Class patterns, `case Shape.Circle(r):`: which case of which variant they name, and what is wrong
with them.

The syntax tree alone does not know the cases of a variant. `resolve` asks the function's scope what
the names stand for and leaves that with the patterns; `case_of` reads it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from sarek_numba.errors import CompileError, Diagnostic, TypingError, UnknownName
from sarek_numba.frontend.variants import CaseType, Variant, variant_of
from sarek_numba.span import Span

_NAMED = "named"  # the attribute of a pattern that `resolve` leaves
Place = Callable[[ast.AST], Span | None]


def resolve(nodes: Iterable[ast.AST], evaluate: Callable[[ast.expr], Any]) -> None:
    """Leave with each pattern that names an object of the function's scope what it is."""
    for node in nodes:
        match node:
            case ast.MatchClass(cls=name) | ast.MatchValue(value=name):
                setattr(node, _NAMED, _named(name, evaluate))


def _named(name: ast.expr, evaluate: Callable[[ast.expr], Any]) -> Any:
    """A case, a variant, or a variant and the name of a case that it has not."""
    found = evaluate(name)
    if isinstance(found, CaseType | Variant):
        return found
    if isinstance(name, ast.Attribute):
        owner = evaluate(name.value)
        if isinstance(owner, Variant) and not hasattr(owner, name.attr):
            return owner, name.attr
    return None


def case_of(pattern: ast.AST) -> CaseType | None:
    """The case that a class pattern names, if it names one."""
    found = getattr(pattern, _NAMED, None)
    return found if isinstance(found, CaseType) and isinstance(pattern, ast.MatchClass) else None


def has_cases(node: ast.AST) -> bool:
    """Whether a match has a pattern of a variant."""
    cases = node.cases if isinstance(node, ast.Match) else ()
    return any(case_of(each) is not None for case in cases for each in ast.walk(case.pattern))


# --- findings -------------------------------------------------------------------------------------

Finding = tuple[type[CompileError], str, str]


def refusal(pattern: ast.AST) -> Finding | None:
    """Why a class pattern, or a value that is a case, is none; None if it may stand."""
    match pattern, getattr(pattern, _NAMED, None):
        case ast.MatchValue(), CaseType() as case:
            message = f"`{case!r}` is a case, and its pattern has brackets"
            return TypingError, message, f"write `{_written(case)}`"
        case ast.MatchClass(), CaseType() as case:
            return _wrong_parts(pattern, case)
        case ((ast.MatchClass() | ast.MatchValue()), Variant() as variant):
            message = f"`{variant!r}` is a variant, and a pattern names one of its cases"
            return TypingError, message, f"write `{_written(variant.cases[0])}`, or `_`"
        case ((ast.MatchClass() | ast.MatchValue()), (Variant() as variant, str(name))):
            from sarek_numba.frontend.context import hint_of_case  # which knows of patterns

            hint = hint_of_case(name, variant)
            return UnknownName, f"{variant!r} has no case {name!r}", hint
        case _:
            return None


def _wrong_parts(pattern: ast.MatchClass, case: CaseType) -> Finding | None:
    if pattern.kwd_attrs:
        message = f"the parts of {case!r} have no names"
        return TypingError, message, f"write `{_written(case)}`"
    if len(pattern.patterns) != len(case.parts):
        given = len(pattern.patterns) or "none"
        message = f"{case!r} has {case.takes}, and this pattern has {given}"
        return TypingError, message, f"write `{_written(case)}`, with a name or a pattern for `_`"
    return None


def _written(case: CaseType) -> str:
    return f"{case!r}({', '.join('_' for _ in case.parts)})"


def mismatches(node: ast.Match, place: Place) -> Iterator[Diagnostic]:
    """Patterns of another variant than the value that they are for, as far as patterns tell."""
    first: list[Any] = [None]
    for case in node.cases:
        yield from _mismatched(case.pattern, first, place)


def _mismatched(pattern: ast.pattern, known: list[Any], place: Place) -> Iterator[Diagnostic]:
    """`known` holds the variant or the dtype of what is matched; the first pattern tells it."""
    match pattern:
        case ast.MatchOr(patterns=alternatives):
            for each in alternatives:
                yield from _mismatched(each, known, place)
        case ast.MatchAs(pattern=ast.pattern() as inner):
            yield from _mismatched(inner, known, place)
        case ast.MatchClass(patterns=parts):
            case = case_of(pattern)
            assert case is not None
            if known[0] is None:
                known[0] = case.variant
            if not (isinstance(known[0], Variant) and known[0].is_like(case.variant)):
                yield _of_another(pattern, case, known[0], place)
                return
            for part, kind in zip(parts, case.parts, strict=True):
                yield from _mismatched(part, [variant_of(kind) or kind], place)
        case ast.MatchAs():
            return
        case _ if isinstance(known[0], Variant):
            yield Diagnostic(
                TypingError,
                f"`{ast.unparse(pattern)}` is no pattern of {known[0]!r}",
                place(pattern),
                f"name a case, as in `{_written(known[0].cases[0])}`",
            )
        case _ if isinstance(known[0], np.dtype) and known[0].names is not None:
            yield Diagnostic(
                TypingError,
                f"`{ast.unparse(pattern)}` is no pattern of a record",
                place(pattern),
                "give it a name, and test its fields in a guard",
            )


def _of_another(
    pattern: ast.pattern, case: CaseType, known: Variant | np.dtype[Any], place: Place
) -> Diagnostic:
    if isinstance(known, Variant):
        meant = f"what is matched here is of {known!r}"
        hint = f"name a case of it, as in `{_written(known.cases[0])}`"
    else:
        meant = f"this part is {'a record' if known.names else known.name}"
        hint = "write a name or `_`" if known.names else "write a number, a name or `_`"
    message = f"`{case!r}` is a case of {case.variant!r}, and {meant}"
    return Diagnostic(TypingError, message, place(pattern), hint)
