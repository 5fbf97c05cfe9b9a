"""What a `match` may say, from the syntax tree: patterns of the kernel language, cases that are
never reached, and cases that are missing.

The question whether some values escape a list of patterns is answered as in Maranget, "Warnings for
pattern matching" (2007): column by column, by the heads that patterns have there. A guard may fail,
so a case with one takes nothing away from those behind it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sarek_numba.errors import Diagnostic, TypingError, UnsupportedConstruct
from sarek_numba.frontend import case_patterns
from sarek_numba.frontend.variants import CaseType
from sarek_numba.span import Span


@dataclass(frozen=True, slots=True)
class Wild:
    """Anything."""


@dataclass(frozen=True, slots=True)
class Head:
    """A value of one kind with parts: `key` tells it from others.

    `siblings` are the heads that together with it are all values; None if they cannot be listed.
    """

    key: Any
    arity: int
    name: str
    siblings: Callable[[], tuple[Head, ...]] | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """A head and the patterns of its parts."""

    head: Head
    parts: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of several."""

    alternatives: tuple[Shape, ...]


Shape = Wild | Made | Either
Row = tuple[Shape, ...]
Place = Callable[[ast.AST], Span | None]
WILD = Wild()
_MOST_SHOWN = 4


# --- from the tree --------------------------------------------------------------------------------


def shape_of(pattern: ast.pattern) -> Shape:
    """What a pattern takes, whatever it binds."""
    match pattern:
        case ast.MatchAs(pattern=None):
            return WILD
        case ast.MatchAs(pattern=ast.pattern() as inner):
            return shape_of(inner)
        case ast.MatchSingleton(bool() as value):
            return Made(_BOOLS[value], ())
        case ast.MatchSingleton():
            return Made(Head(None, 0, "None"), ())
        case ast.MatchValue(value):
            return Made(_head_of_value(value), ())
        case ast.MatchSequence(items):
            return Made(_tuple_of(len(items)), tuple(map(shape_of, items)))
        case ast.MatchOr(alternatives):
            return Either(tuple(map(shape_of, alternatives)))
        case ast.MatchClass(patterns=parts) if (case := case_patterns.case_of(pattern)) is not None:
            return Made(_head_of_case(case), tuple(map(shape_of, parts)))
        case _:
            return Made(Head(object(), 0, "?"), ())


def _head_of_value(value: ast.expr) -> Head:
    """A literal by its value; a dotted name is a value of its own, unknown here."""
    try:
        literal = ast.literal_eval(value)
    except ValueError:
        return Head(object(), 0, ast.unparse(value))
    return Head(("value", literal), 0, repr(literal))


def _bools() -> tuple[Head, ...]:
    return (_BOOLS[True], _BOOLS[False])


_BOOLS = {value: Head(("bool", str(value)), 0, str(value), _bools) for value in (True, False)}


def _head_of_case(case: CaseType) -> Head:
    def siblings() -> tuple[Head, ...]:
        return tuple(map(_head_of_case, case.variant.cases))

    return Head(("case", case), len(case.parts), repr(case), siblings)


def _tuple_of(count: int) -> Head:
    return Head(("tuple", count), count, "", lambda: (_tuple_of(count),))


# --- what is left ---------------------------------------------------------------------------------


def is_useful(rows: list[Row], row: Row) -> bool:
    """Whether a row takes some values that none of the rows takes."""
    if not row:
        return not rows
    first, rest = row[0], row[1:]
    match first:
        case Either(alternatives):
            return any(is_useful(rows, (each, *rest)) for each in alternatives)
        case Made(head, parts):
            return is_useful(_specialised(rows, head), (*parts, *rest))
    heads = _complete(rows)
    if heads is None:
        return is_useful(_default(rows), rest)
    return any(is_useful(_specialised(rows, h), (*(WILD,) * h.arity, *rest)) for h in heads)


def _escaping(rows: list[Row], width: int) -> list[Row]:
    """Patterns of values that no row takes, one for each kind; empty if there are none."""
    if width == 0:
        return [] if rows else [()]
    heads = _complete(rows)
    if heads is None:
        return [(WILD, *rest) for rest in _escaping(_default(rows), width - 1)]
    found: list[Row] = []
    for head in heads:
        for row in _escaping(_specialised(rows, head), head.arity + width - 1):
            found.append((Made(head, row[: head.arity]), *row[head.arity :]))
    return found


def _complete(rows: list[Row]) -> tuple[Head, ...] | None:
    """All heads that the first column may have, if the patterns there say which these are."""
    for row in rows:
        for head in _heads(row[0]):
            if head.siblings is not None:
                return head.siblings()
    return None


def _heads(shape: Shape) -> Iterator[Head]:
    match shape:
        case Made(head):
            yield head
        case Either(alternatives):
            for each in alternatives:
                yield from _heads(each)


def _specialised(rows: list[Row], head: Head) -> list[Row]:
    """The rows for values with a head, its parts as columns of their own."""
    found: list[Row] = []
    for first, *rest in rows:
        match first:
            case Wild():
                found.append((*(WILD,) * head.arity, *rest))
            case Made(own, parts) if own.key == head.key:
                found.append((*parts, *rest))
            case Either(alternatives):
                found += _specialised([(each, *rest) for each in alternatives], head)
    return found


def _default(rows: list[Row]) -> list[Row]:
    """The rows for values whose head no row names."""
    found: list[Row] = []
    for first, *rest in rows:
        match first:
            case Wild():
                found.append(tuple(rest))
            case Either(alternatives):
                found += _default([(each, *rest) for each in alternatives])
    return found


def missing(node: ast.Match) -> list[Shape]:
    """Values that no case takes, one for each kind; empty if nothing is left out."""
    rows: list[Row] = [(shape_of(case.pattern),) for case in node.cases if case.guard is None]
    return [row[0] for row in _escaping(rows, 1)]


def text_of(shape: Shape) -> str:
    """A shape as a pattern that takes it."""
    match shape:
        case Wild():
            return "_"
        case Either(alternatives):
            return " | ".join(map(text_of, alternatives))
        case Made(head, parts):
            inner = ", ".join(map(text_of, parts))
            if head.key[0] == "tuple":
                return f"({inner}{',' if len(parts) == 1 else ''})"
            return f"{head.name}({inner})" if head.key[0] == "case" else head.name


# --- findings -------------------------------------------------------------------------------------

_REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.MatchMapping: ("a mapping pattern", "a kernel has no dicts"),
    ast.MatchStar: ("`*` in a pattern", "name the items one by one, or write `_` for each"),
    ast.MatchClass: ("a class pattern", "compare with values, or with cases of a sarek.variant"),
}


def findings(node: ast.Match, place: Place) -> list[Diagnostic]:
    """All that is wrong with a match; `place` says where a node of the tree is written."""
    refused = [_refused(each, place) for each in _outermost(node)]
    wrong = refused or [*_wrong_lengths(node, place), *case_patterns.mismatches(node, place)]
    return wrong or [*_unreached(node, place), *_left_out(node, place)]


def _refused(pattern: ast.AST, place: Place) -> Diagnostic:
    found = case_patterns.refusal(pattern)
    if found is not None:
        kind, message, hint = found
        return Diagnostic(kind, message, place(pattern), hint)
    name, hint = _REFUSED[type(pattern)]
    message = f"{name} is not part of the kernel language"
    return Diagnostic(UnsupportedConstruct, message, place(pattern), hint)


def _is_refused(pattern: ast.AST) -> bool:
    if case_patterns.refusal(pattern) is not None:
        return True
    return type(pattern) in _REFUSED and case_patterns.case_of(pattern) is None


def _left_out(node: ast.Match, place: Place) -> Iterator[Diagnostic]:
    """A match over variants takes every value."""
    left = missing(node) if case_patterns.has_cases(node) else []
    if not left:
        return
    shown = [f"`{text_of(each)}`" for each in left[:_MOST_SHOWN]]
    if len(left) > _MOST_SHOWN:
        shown.append(f"{len(left) - _MOST_SHOWN} more")
    listed = " and ".join([", ".join(shown[:-1]), shown[-1]] if shown[1:] else shown)
    hint = "add a case for each, or `case _:`" if left[1:] else "add it, or `case _:`"
    if any(case.guard is not None for case in node.cases):
        hint += "; a case with a guard may be passed over"
    yield Diagnostic(TypingError, f"this match leaves out {listed}", place(node), hint)


def _outermost(node: ast.Match) -> Iterator[ast.AST]:
    """Patterns that the language does not have, but those inside of such."""
    pending: list[ast.AST] = [case.pattern for case in reversed(node.cases)]
    while pending:
        pattern = pending.pop()
        if _is_refused(pattern):
            yield pattern
        else:
            inner = [
                each for each in ast.iter_child_nodes(pattern) if isinstance(each, ast.pattern)
            ]
            pending.extend(reversed(inner))


def _wrong_lengths(node: ast.Match, place: Place) -> Iterator[Diagnostic]:
    """Patterns of another length than the tuple that is written behind `match`."""
    pending: list[tuple[ast.pattern, ast.expr]] = [(c.pattern, node.subject) for c in node.cases]
    while pending:
        pattern, subject = pending.pop()
        match pattern, subject:
            case ast.MatchOr(alternatives), _:
                pending += [(each, subject) for each in alternatives]
            case ast.MatchAs(pattern=ast.pattern() as inner), _:
                pending.append((inner, subject))
            case ast.MatchSequence(items), ast.Tuple(elts=elements):
                if len(items) != len(elements):
                    message, hint = wrong_length(len(items), len(elements))
                    yield Diagnostic(TypingError, message, place(pattern), hint)
                else:
                    pending += zip(items, elements, strict=True)


def wrong_length(items: int, elements: int) -> tuple[str, str]:
    """What is wrong with a pattern that has not as many items as its subject, and a hint."""
    message = f"this pattern has {_items(items)}, and what it is matched with {_items(elements)}"
    return message, "write `_` for an item of any value"


def _items(count: int) -> str:
    return "1 item" if count == 1 else f"{count} items"


def _unreached(node: ast.Match, place: Place) -> Iterator[Diagnostic]:
    """Cases, and alternatives of them, whose values earlier ones take."""
    rows: list[Row] = []
    for case in node.cases:
        own = list(rows)
        for pattern in _alternatives(case.pattern):
            row = (shape_of(pattern),)
            if not is_useful(own, row):
                yield Diagnostic(
                    UnsupportedConstruct,
                    f"`{ast.unparse(pattern)}` is never reached: what is before it takes all of it",
                    place(pattern),
                    "leave it out, or put it first",
                )
            own.append(row)
        if case.guard is None:
            rows = own


def _alternatives(pattern: ast.pattern) -> list[ast.pattern]:
    return pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
