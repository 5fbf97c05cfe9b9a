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


# --- findings -------------------------------------------------------------------------------------

_REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.MatchMapping: ("a mapping pattern", "a kernel has no dicts"),
    ast.MatchStar: ("`*` in a pattern", "name the items one by one, or write `_` for each"),
    ast.MatchClass: ("a class pattern", "compare with values"),
}


def findings(node: ast.Match, place: Place) -> list[Diagnostic]:
    """All that is wrong with a match; `place` says where a node of the tree is written."""
    refused = [
        Diagnostic(
            UnsupportedConstruct, f"{name} is not part of the kernel language", place(each), hint
        )
        for each in _outermost(node)
        for name, hint in [_REFUSED[type(each)]]
    ]
    return refused or [*_wrong_lengths(node, place), *_unreached(node, place)]


def _outermost(node: ast.Match) -> Iterator[ast.AST]:
    """Patterns that the language does not have, but those inside of such."""
    pending: list[ast.AST] = [case.pattern for case in reversed(node.cases)]
    while pending:
        pattern = pending.pop()
        if type(pattern) in _REFUSED:
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
