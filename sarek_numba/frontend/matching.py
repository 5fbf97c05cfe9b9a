"""`match` as `if`, `elif` and `else`, on the places of its patterns.

Numba knows none of CPython's instructions for patterns, so a function that has a `match` is
compiled anew from its tree (`source.recompile`), where each is a chain of tests that mean the same:

- the subject is evaluated once; what is no plain name gets one;
- a pattern is a test of the subject and of its parts, and the names that it binds;
- what only types can tell (whether the subject is a bool, or a tuple of as many items) is asked
  before the first test by a call of `check_pattern`, which computes nothing;
- in a guard a bound name is what it stands for; where the name is read outside of its case, it is
  bound before the guard, as CPython does, whether or not the guard holds;
- the last case of a match that leaves nothing out needs no test.

`patterns` has refused by then what cannot be rewritten. The functions that the tests call are free
variables of the new function, under names that no program can write.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import Any

from sarek_numba.frontend.patterns import missing
from sarek_numba.frontend.tree import located

HIDDEN = "<"  # what the names of the functions below start with

Bindings = list[tuple[str, ast.expr]]


def check_pattern(subject: Any, wanted: str, count: int = 0) -> None:
    """Refuse, while compiling, a subject of another type than its pattern is for."""


def check_case(subject: Any, case: Any) -> None:
    """Refuse, while compiling, a subject that is not of the variant of a case."""


def is_case(subject: Any, case: Any) -> bool:
    """Whether a value of a variant is of a case."""
    return isinstance(subject, case)


def part(subject: Any, case: Any, number: int) -> Any:
    """A part of a value that is of a case; of another it is of no use."""


def own(value: Any) -> Any:
    """A part as a name gets it: a record is copied."""


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "<check_pattern>": check_pattern,
    "<check_case>": check_case,
    "<is_case>": is_case,
    "<part>": part,
    "<own>": own,
}


class Rewriter:
    """Rewrites the matches of one function; `taken` are the names that it already uses."""

    def __init__(self, tree: ast.FunctionDef, taken: set[str]) -> None:
        self._taken = set(taken)
        self._outliving = set(_outliving(tree))

    def statements(self, match: ast.Match) -> list[ast.stmt]:
        """The statements that stand for a match, whose bodies are rewritten already."""
        bound = {name for case in match.cases for name in bound_by(case.pattern)}
        subject, before = self._subject(match.subject, bound)
        checks: list[ast.stmt] = []
        chain: list[ast.stmt] = []
        last = len(match.cases) - 1
        is_exhaustive = not missing(match)
        for number in reversed(range(len(match.cases))):
            case = match.cases[number]
            reader = _Reader(case.pattern)
            test, bindings = reader.read(case.pattern, subject)
            checks[:0] = reader.checks
            if is_exhaustive and number == last > 0 and case.guard is None:
                test = None
            chain = self._case(case, test, bindings, chain)
        return [*before, *checks, *chain]

    def _subject(self, subject: ast.expr, bound: set[str]) -> tuple[ast.expr, list[ast.stmt]]:
        """The subject as an expression that can be repeated, and what gives it a name.

        A name that the patterns bind anew is not the subject's for long.
        """
        if isinstance(subject, ast.Constant):
            return subject, []
        if isinstance(subject, ast.Name) and subject.id not in bound:
            return subject, []
        if isinstance(subject, ast.Tuple):
            parts = [self._subject(item, bound) for item in subject.elts]
            items = ast.Tuple([part for part, _ in parts], ast.Load())
            named = [statement for _, before in parts for statement in before]
            return ast.copy_location(items, subject), named
        name = self.fresh("subject")
        store = ast.copy_location(ast.Name(name, ast.Store()), subject)
        assign = ast.copy_location(ast.Assign([store], subject), subject)
        return ast.copy_location(ast.Name(name, ast.Load()), subject), [assign]

    def fresh(self, word: str) -> str:
        """A name that the function does not use."""
        name, number = word, 1
        while name in self._taken:
            number += 1
            name = f"{word}{number}"
        self._taken.add(name)
        return name

    def _case(
        self,
        case: ast.match_case,
        test: ast.expr | None,
        bindings: Bindings,
        otherwise: list[ast.stmt],
    ) -> list[ast.stmt]:
        place = case.pattern
        bound = [_binding(name, value, place) for name, value in bindings]
        if case.guard is None:
            body = [*bound, *case.body]
            return body if test is None else [_if(test, body, otherwise, place)]
        if id(case) not in self._outliving:
            guard = _Substitution(dict(bindings)).visit(copy.deepcopy(case.guard))
            condition = guard if test is None else _all_of([test, guard], place)
            return [_if(condition, [*bound, *case.body], otherwise, place)]
        if test is None:
            return [*bound, _if(case.guard, case.body, otherwise, place)]
        condition = _all_of([test, case.guard], place)
        return [_if(test, bound, [], place), _if(condition, case.body, otherwise, place)]


def bound_by(pattern: ast.pattern) -> set[str]:
    """The names that a pattern binds."""
    return {
        node.name
        for node in ast.walk(pattern)
        if isinstance(node, ast.MatchAs) and node.name is not None
    }


def _outliving(tree: ast.FunctionDef) -> Iterator[int]:
    """The ids of cases with a guard that bind a name which may be read after the guard failed.

    That is a name that is read outside of the cases that bind it.
    """
    nodes = [node for statement in tree.body for node in ast.walk(statement)]
    cases = [node for node in nodes if isinstance(node, ast.match_case)]
    if not any(case.guard is not None and bound_by(case.pattern) for case in cases):
        return
    own: set[int] = set()
    for case in cases:
        own |= {id(each) for each in _reads(case) if each.id in bound_by(case.pattern)}
    read = {
        node.id
        for node in nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in own
    }
    for case in cases:
        if case.guard is not None and bound_by(case.pattern) & read:
            yield id(case)


def _reads(case: ast.match_case) -> Iterator[ast.Name]:
    for part in (*case.body, case.guard):
        for node in ast.walk(part) if part is not None else ():
            if isinstance(node, ast.Name):
                yield node


class _Substitution(ast.NodeTransformer):
    """Bound names replaced by what they stand for."""

    def __init__(self, values: dict[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._values.get(node.id)
        return node if value is None else _bound(value, node)


# --- patterns -------------------------------------------------------------------------------------


class _Reader:
    """Takes one pattern apart; `checks` are the calls that its types need."""

    def __init__(self, whole: ast.pattern) -> None:
        self.whole = whole
        self.checks: list[ast.stmt] = []

    def read(self, pattern: ast.pattern, subject: ast.expr) -> tuple[ast.expr | None, Bindings]:
        """The test of a subject, None if it always holds, and the names bound."""
        match pattern:
            case ast.MatchValue(value):
                test = ast.Compare(_placed(subject, pattern), [ast.Eq()], [value])
                return ast.copy_location(test, pattern), []
            case ast.MatchSingleton(None):
                nothing = ast.copy_location(ast.Constant(None), pattern)
                test = ast.Compare(_placed(subject, pattern), [ast.Is()], [nothing])
                return ast.copy_location(test, pattern), []
            case ast.MatchSingleton(value):
                self._check(pattern, subject, "bool")
                here = _placed(subject, pattern)
                negated = ast.copy_location(ast.UnaryOp(ast.Not(), here), pattern)
                return here if value else negated, []
            case ast.MatchAs(inner, name):
                tested, bindings = (None, []) if inner is None else self.read(inner, subject)
                return tested, bindings if name is None else [*bindings, (name, subject)]
            case ast.MatchSequence(items):
                return self._sequence(pattern, items, subject)
            case ast.MatchOr(alternatives):
                return self._alternatives(pattern, alternatives, subject)
            case ast.MatchClass(cls, parts):
                return self._of_case(pattern, cls, parts, subject)
            case _:
                raise AssertionError(f"{type(pattern).__name__} has been refused before")

    def _sequence(
        self, pattern: ast.pattern, items: list[ast.pattern], subject: ast.expr
    ) -> tuple[ast.expr | None, Bindings]:
        if isinstance(subject, ast.Tuple):
            parts: list[ast.expr] = subject.elts
        else:
            self._check(pattern, subject, "tuple", len(items))
            parts = [_item(subject, number, pattern) for number in range(len(items))]
        tests: list[ast.expr] = []
        bindings: Bindings = []
        for item, part in zip(items, parts, strict=True):
            test, bound = self.read(item, part)
            tests += [] if test is None else [test]
            bindings += bound
        return (_all_of(tests, pattern) if tests else None), bindings

    def _of_case(
        self, pattern: ast.pattern, case: ast.expr, parts: list[ast.pattern], subject: ast.expr
    ) -> tuple[ast.expr | None, Bindings]:
        """The tag comes first: a part of another case has no meaning, and no test behind it has."""
        arguments = [_placed(subject, pattern), _placed(case, pattern)]
        if not _is_part(subject):  # of parts `case_patterns` has told
            check = ast.Expr(_placed(_call("<check_case>", arguments), pattern))
            self.checks.append(ast.copy_location(check, pattern))
        tests: list[ast.expr] = [_placed(_call("<is_case>", arguments), pattern)]
        bindings: Bindings = []
        for number, part in enumerate(parts):
            item = _placed(_call("<part>", [*arguments, ast.Constant(number)]), part)
            test, bound = self.read(part, item)
            tests += [] if test is None else [test]
            bindings += bound
        return _all_of(tests, pattern), bindings

    def _alternatives(
        self, pattern: ast.pattern, alternatives: list[ast.pattern], subject: ast.expr
    ) -> tuple[ast.expr | None, Bindings]:
        """The first alternative that holds binds the names; all bind the same."""
        found = [self.read(each, subject) for each in alternatives]
        values = dict(found[-1][1])
        for test, bindings in reversed(found[:-1]):
            for name, value in bindings:
                if test is None or ast.dump(value) == ast.dump(values[name]):
                    values[name] = value
                else:
                    chosen = ast.IfExp(test, value, values[name])
                    values[name] = ast.copy_location(chosen, pattern)
        tests = [test for test, _ in found if test is not None]
        if len(tests) < len(found):
            return None, list(values.items())
        return ast.copy_location(ast.BoolOp(ast.Or(), tests), pattern), list(values.items())

    def _check(self, pattern: ast.pattern, subject: ast.expr, wanted: str, count: int = 0) -> None:
        arguments = [_placed(subject, pattern), ast.Constant(wanted), ast.Constant(count)]
        self.checks.append(located(ast.Expr(_call("<check_pattern>", arguments)), pattern))


# --- nodes ----------------------------------------------------------------------------------------


def _call(name: str, arguments: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), arguments, [])


def _item(subject: ast.expr, number: int, place: ast.pattern) -> ast.expr:
    item: ast.expr = ast.Subscript(copy.deepcopy(subject), ast.Constant(number), ast.Load())
    return located(item, place)


def _all_of(tests: list[ast.expr], place: ast.pattern) -> ast.expr:
    if len(tests) == 1:
        return tests[0]
    return ast.copy_location(ast.BoolOp(ast.And(), tests), place)


def _if(
    test: ast.expr, body: list[ast.stmt], otherwise: list[ast.stmt], place: ast.pattern
) -> ast.stmt:
    return ast.copy_location(ast.If(test, body, otherwise), place)


def _is_part(value: ast.AST) -> bool:
    return isinstance(value, ast.Call) and getattr(value.func, "id", None) == "<part>"


def _binding(name: str, value: ast.expr, place: ast.pattern) -> ast.stmt:
    store = ast.copy_location(ast.Name(name, ast.Store()), place)
    value = _bound(value, place)
    if _is_part(value):
        value = ast.copy_location(_call("<own>", [value]), value)
        value.func = ast.copy_location(value.func, value)
    return ast.copy_location(ast.Assign([store], value), place)


def _bound(value: ast.expr, place: ast.AST) -> ast.expr:
    """A copy of what a name is bound to, at the place of a node.

    Parts of variants stay where their patterns are: at one place, parts of two cases would pass for
    one instruction that both arms of a choice have in common.
    """
    if any(_is_part(each) for each in ast.walk(value)):
        return copy.deepcopy(value)
    return _placed(value, place)


def _placed(value: ast.expr, place: ast.AST) -> ast.expr:
    """A copy of an expression, all of it at the place of a node."""
    return located(copy.deepcopy(value), place)
