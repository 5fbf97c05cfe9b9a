"""The source of a function: its text, its syntax tree, and the places of instructions in it.

`read(function)` gives a `Source`. Its `function` is the one to compile: the user's own, or, where
the tree has `with sarek.superstep():`, `match`, `assert` or a `for` over a constant tuple, one
compiled anew from the tree with the same globals, closure cells and defaults, on the same lines and
columns (a superstep becomes its body and a call of `barrier`, a `match` what `matching` says, a
`for` what `unrolling` says; assertions lose what a test runner wrote into them; while lines are
counted, statements get the marks of `covering`). Where the text is missing (`exec`, a REPL) `tree`
is None and only that rewriting and exact columns are lost.

Places come from `co_positions`: every instruction of Numba's IR made by `infer` carries the offset
of its bytecode as the column of its `Loc`.
"""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType
from typing import Any

from numba.core import ir

from sarek_numba.frontend import case_patterns, covering, language, matching, patterns, unrolling
from sarek_numba.frontend.tree import FunctionNode, all_nodes, parse
from sarek_numba.span import Span


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A function to compile, the user's own, its tree, and a position for each bytecode."""

    function: FunctionType
    original: FunctionType
    tree: FunctionNode | ast.Lambda | None
    positions: tuple[tuple[int | None, int | None, int | None, int | None], ...]
    tests: dict[tuple[int, int], ast.expr]
    choices: dict[int, list[ast.expr]]

    @property
    def file(self) -> str:
        return self.function.__code__.co_filename

    def span_of(self, node: Any) -> Span:
        """Where an instruction, a value or a `Loc` of Numba's IR is written."""
        loc = node if isinstance(node, ir.Loc) else node.loc
        if loc.col is None or not 0 <= loc.col // 2 < len(self.positions):
            return Span(self.file, unrolling.written_line(loc.line))
        line, end_line, column, end_column = self.positions[loc.col // 2]
        if line is None or column is None:
            return Span(self.file, unrolling.written_line(loc.line))
        line = unrolling.written_line(line)
        end_line = None if end_line is None else unrolling.written_line(end_line)
        test = self.tests.get((line, column))
        if test is not None:
            return self.span_of_tree(test)
        return Span(self.file, line, column, end_line, end_column)

    def span_of_operand(self, whole: Span, operand: tuple[int | str, ...]) -> Span:
        """Where one operand of what stands at `whole` is written; `whole` if that is not known.

        A position counts the arguments of a call, or (array, index, value) of a subscript; a name
        is a keyword, or a bound of a slice. What follows counts the items of a tuple.
        """
        node = self._expression_at(whole)
        for step in operand:
            inner = _operand_of(node, step, self.tree)
            node = inner if inner is not None else node if isinstance(node, ast.expr) else None
            if inner is None:
                break
        return whole if node is None or not operand else self.span_of_tree(node)

    def span_of_choice(self, whole: Span, parts: list[Span]) -> Span:
        """Where the innermost `and`, `or`, conditional expression or chain of comparisons is
        written that holds all parts; `whole` if there is none.
        """
        for node in reversed(self.choices.get(whole.line, [])):  # inner ones come later
            span = self.span_of_tree(node)
            if all(_holds(span, part) for part in (whole, *parts)):
                return span
        return whole

    def span_of_name(self, name: str, near: Span) -> Span:
        """Where the statement at `near` reads a name; `near` if that is not known."""
        nodes = [] if self.tree is None else list(ast.walk(self.tree))
        around = [n for n in nodes if isinstance(n, ast.stmt) and _contains(n, near)]
        if not around:
            return near
        statement = max(around, key=lambda n: (n.lineno, n.col_offset))
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                return self.span_of_tree(node)
        return near

    def _expression_at(self, span: Span) -> ast.expr | None:
        """The innermost expression that is written exactly there."""
        found = None
        for node in ast.walk(self.tree) if self.tree is not None else ():
            if isinstance(node, ast.expr) and self.span_of_tree(node) == span:
                found = node
        return found

    def span_of_definition(self) -> Span:
        """The `def` line."""
        if self.tree is None:
            return Span(self.file, self.function.__code__.co_firstlineno)
        return self.span_of_tree(self.tree)

    def span_of_tree(self, node: ast.AST) -> Span:
        """Where a node of the syntax tree is written; a compound statement is its first line."""
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        end_line, end_column = node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        if end_line != line and hasattr(node, "body"):
            return Span(self.file, line, column, line, None)
        return Span(self.file, line, column, end_line, end_column)


def _contains(node: ast.stmt, span: Span) -> bool:
    start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    place = (span.line, node.col_offset if span.column is None else span.column)
    return start <= place and (end[0] is None or place <= (end[0], end[1] or 0))


def _operand_of(node: ast.AST | None, step: int | str, tree: ast.AST | None) -> ast.expr | None:
    match node, step:
        case ast.Call(keywords=keywords), str():
            return next((k.value for k in keywords if k.arg == step), None)
        case ast.Call(args=args), int() if step < len(args):
            return args[step]
        case ((ast.Subscript(slice=ast.Slice() as part) | (ast.Slice() as part)), str()):
            bound: ast.expr | None = getattr(part, step)
            return bound
        case ast.Subscript(), 0:
            return node.value
        case ast.Subscript(), 1:
            return node.slice
        case ast.Subscript(), 2:
            return _value_stored(node, tree)
        case ast.Tuple(elts=items), int() if step < len(items):
            return items[step]
        case _:
            return None


def _value_stored(target: ast.Subscript, tree: ast.AST | None) -> ast.expr | None:
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Assign) and any(each is target for each in node.targets):
            return node.value
    return None


def read(function: FunctionType) -> Source:
    """The source of a function, rewritten where its tree asks for it."""
    tree = parse(function)
    original = function
    nodes = all_nodes(tree)
    case_patterns.resolve(nodes, lambda node: evaluate(node, original))
    if isinstance(tree, ast.FunctionDef) and _needs_rewriting(function, nodes):
        consumed = parse(function)  # rewriting changes the tree that it is given
        assert isinstance(consumed, ast.FunctionDef)
        case_patterns.resolve(all_nodes(consumed), lambda node: evaluate(node, original))
        function = recompile(function, consumed)
    positions = tuple(function.__code__.co_positions())
    return Source(function, original, tree, positions, _tests(tree), _choices(nodes))


def _tests(tree: ast.AST | None) -> dict[tuple[int, int], ast.expr]:
    """What an `if` or `while` tests and a `for` runs over, by the place of the statement.

    Some Python versions give the bytecode of it the place of the whole statement.
    """
    found: dict[tuple[int, int], ast.expr] = {}
    pending = list(getattr(tree, "body", ())) if isinstance(tree, ast.FunctionDef) else []
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.If, ast.While)):
            found[node.lineno, node.col_offset] = node.test
        elif isinstance(node, ast.For):
            found[node.lineno, node.col_offset] = node.iter
        pending += statements_in(node)
    return found


def _choices(nodes: list[ast.AST]) -> dict[int, list[ast.expr]]:
    """Expressions that evaluate a part of themselves, by each line that they cover."""
    found: dict[int, list[ast.expr]] = {}
    for node in nodes:
        if not isinstance(node, (ast.BoolOp, ast.IfExp, ast.Compare)):
            continue
        if not isinstance(node, ast.Compare) or len(node.ops) > 1:
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                found.setdefault(line, []).append(node)
    return found


def _holds(outer: Span, inner: Span) -> bool:
    """Whether a place lies within another; one without columns is its whole line."""
    if inner.column is None or inner.end_line is None or outer.end_line is None:
        return False
    starts = (outer.line, outer.column or 0) <= (inner.line, inner.column)
    return starts and (inner.end_line, inner.end_column or 0) <= (
        outer.end_line,
        outer.end_column or 0,
    )


# --- rewriting ------------------------------------------------------------------------------------


def is_superstep(node: ast.With, function: FunctionType) -> bool:
    """Whether a `with` is `with sarek.superstep():`, by the object that the name stands for."""
    if len(node.items) != 1 or node.items[0].optional_vars is not None:
        return False
    call = node.items[0].context_expr
    if not isinstance(call, ast.Call) or call.args or call.keywords:
        return False
    return evaluate(call.func, function) is language.superstep


def evaluate(node: ast.expr, function: FunctionType) -> Any:
    """The object that a dotted name stands for in the function's scope, or None."""
    if isinstance(node, ast.Attribute):
        return getattr(evaluate(node.value, function), node.attr, None)
    if not isinstance(node, ast.Name):
        return None
    names = function.__code__.co_freevars
    if node.id in names:
        try:
            return (function.__closure__ or ())[names.index(node.id)].cell_contents
        except ValueError:
            return None
    return function.__globals__.get(node.id)


def _needs_rewriting(function: FunctionType, nodes: list[ast.AST]) -> bool:
    return covering.covering() or any(
        isinstance(node, (ast.Assert, ast.Match))
        or (isinstance(node, ast.With) and is_superstep(node, function))
        or _constant_items(node, function) is not None
        for node in nodes
    )


def _constant_items(node: ast.AST, function: FunctionType) -> list[ast.expr] | None:
    return unrolling.items_of(node, function, evaluate, set(function.__code__.co_varnames))


def _rewritten(
    body: list[ast.stmt], function: FunctionType, matches: matching.Rewriter
) -> list[ast.stmt]:
    """A body in which each superstep is its own body followed by `superstep.barrier()`, each
    `match` a chain of tests, and each loop over a constant tuple its passes.

    Recurses over nested statements alone, since expressions may be very deep.
    """
    result: list[ast.stmt] = []
    for statement in body:
        for holder in (statement, *getattr(statement, "cases", ())):
            for name in _BODIES:
                inner = getattr(holder, name, None)
                if isinstance(inner, list) and inner and isinstance(inner[0], ast.stmt):
                    setattr(holder, name, _rewritten(inner, function, matches))
        result += covering.mark_of(statement)
        if isinstance(statement, ast.With) and is_superstep(statement, function):
            result += [*statement.body, _barrier_of(statement)]
        elif isinstance(statement, ast.Match):
            refused = patterns.findings(statement, lambda _: None)
            result += [statement] if refused else matches.statements(statement)
        elif (items := _constant_items(statement, function)) is not None:
            assert isinstance(statement, ast.For)
            names = set(function.__code__.co_varnames)
            result += unrolling.unrolled(statement, items, matches.fresh, names)
        else:
            result.append(statement)
    return result


_BODIES = ("body", "orelse", "finalbody")
# Free variables of what is rewritten.
_HIDDEN = {**matching.FUNCTIONS, **unrolling.FUNCTIONS, **covering.FUNCTIONS}


def statements_in(node: ast.stmt) -> Iterator[ast.stmt]:
    """The statements directly within one."""
    for holder in (node, *getattr(node, "cases", ())):
        for name in _BODIES:
            yield from getattr(holder, name, ())


def _barrier_of(superstep: ast.With) -> ast.stmt:
    call = superstep.items[0].context_expr
    assert isinstance(call, ast.Call)

    def on(node: Any) -> Any:
        return ast.copy_location(node, call)

    function = on(ast.Attribute(value=call.func, attr="barrier", ctx=ast.Load()))
    statement: ast.stmt = on(ast.Expr(on(ast.Call(func=function, args=[], keywords=[]))))
    return statement


def recompile(function: FunctionType, tree: ast.FunctionDef) -> FunctionType:
    """The function compiled again from its tree, supersteps rewritten, decorators left out.

    The free variables are made free again by an outer function; the cells are the original's. In
    there the function has a name that no program can write: its own may be a global that it calls.
    """
    code = function.__code__
    changed = {"name": _INNER, "decorator_list": []}
    rewritten = ast.copy_location(
        ast.FunctionDef(**{**dict(ast.iter_fields(tree)), **changed}), tree
    )
    matches = matching.Rewriter(tree, {*code.co_varnames, *code.co_freevars, *code.co_names})
    outer = ast.parse("def outer():\n    pass\n")
    outer_function = outer.body[0]
    assert isinstance(outer_function, ast.FunctionDef)
    outer_function.body = [*_free_variables(code), rewritten]
    with _deep_trees():
        rewritten.body = _rewritten(list(tree.body), function, matches)
        module = compile(outer, code.co_filename, "exec", dont_inherit=True)
    new = _nested_code(_nested_code(module, "outer"), _INNER).replace(co_name=code.co_name)
    cells = {name: CellType(value) for name, value in _HIDDEN.items()}
    cells |= zip(code.co_freevars, function.__closure__ or (), strict=True)
    closure = tuple(cells[name] for name in new.co_freevars)
    made = FunctionType(
        new, function.__globals__, function.__name__, function.__defaults__, closure
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    made.__module__ = function.__module__
    return made


_INNER = "<inner>"


def _free_variables(code: CodeType) -> list[ast.stmt]:
    made = ast.parse("".join(f"{name} = None\n" for name in code.co_freevars)).body
    hidden: list[ast.expr] = [ast.Name(name, ast.Store()) for name in _HIDDEN]
    return [*made, ast.fix_missing_locations(ast.Assign(hidden, ast.Constant(None)))]


@contextlib.contextmanager
def _deep_trees() -> Iterator[None]:
    """Room for trees of some thousand levels: CPython 3.11 converts them under Python's limit."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _DEEPEST_TREE))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


_DEEPEST_TREE = 20_000


def _nested_code(code: CodeType, name: str) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)
