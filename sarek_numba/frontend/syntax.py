"""Refusals from the syntax tree, before Numba sees the function; all of them at once.

Numba mishandles some of these constructs, and where it refuses one it can name neither the
construct nor the column.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sarek_numba.errors import Diagnostic, UnsupportedConstruct
from sarek_numba.frontend import patterns
from sarek_numba.frontend.source import Source, is_superstep
from sarek_numba.frontend.tree import children
from sarek_numba.span import Span


class _DoubleStar(ast.keyword):
    """The kind of `**` in a call, which the tree has as a keyword without a name."""


_REFUSED: dict[type[ast.AST], tuple[str, str | None]] = {
    ast.NamedExpr: ("the walrus `:=`", "assign on a line of its own"),
    ast.JoinedStr: ("an f-string", "print(a, b) takes values one by one, beside constant strings"),
    ast.ListComp: ("a list comprehension", "write a loop"),
    ast.SetComp: ("a set comprehension", "write a loop"),
    ast.DictComp: ("a dict comprehension", "write a loop"),
    ast.GeneratorExp: ("a generator expression", "write a loop"),
    ast.List: ("a list", "use a tuple, or sarek.local.array for an array per thread"),
    ast.Set: ("a set", "use a tuple"),
    ast.Dict: ("a dict", "use arrays"),
    ast.Lambda: ("a lambda", "define a @sarek.function outside"),
    ast.FunctionDef: ("a function inside a kernel", "define a @sarek.function outside"),
    ast.AsyncFunctionDef: ("a function inside a kernel", "define a @sarek.function outside"),
    ast.ClassDef: ("a class inside a kernel", "use numbers, tuples and arrays"),
    ast.Try: ("`try`", "test the condition with `if`"),
    ast.TryStar: ("`try`", "test the condition with `if`"),
    ast.Raise: ("`raise`", "write an `assert`, which the oracle checks"),
    ast.Yield: ("`yield`", "store results in an array"),
    ast.YieldFrom: ("`yield from`", "store results in an array"),
    ast.Await: ("`await`", "a kernel runs from its start to its end"),
    ast.AsyncFor: ("`async for`", "write a plain `for`"),
    ast.AsyncWith: ("`async with`", "only `with sarek.superstep():` is allowed"),
    ast.Global: ("`global`", "store into an array; a captured value is a constant"),
    ast.Nonlocal: ("`nonlocal`", "store into an array; a captured value is a constant"),
    ast.Import: ("`import`", "import outside of the kernel"),
    ast.ImportFrom: ("`import`", "import outside of the kernel"),
    ast.Delete: ("`del`", "leave the name alone, or store zero into the element"),
    ast.Starred: ("`*` before an expression", "write the items one by one"),
    _DoubleStar: ("`**` in a call", "write the arguments one by one"),
    ast.MatMult: ("the operator `@`", "write the loops"),
}


def check(source: Source) -> list[Diagnostic]:
    """Everything in the tree that is outside the kernel language; the source must have one."""
    tree = source.tree
    assert tree is not None
    if not isinstance(tree, ast.FunctionDef):
        return [no_definition(source, isinstance(tree, ast.AsyncFunctionDef))]
    found = [*_parameters(source, tree)]
    for node in _walk(tree.body):
        if _kind(node) in _REFUSED or (isinstance(node, ast.With) and not _allowed(node, source)):
            found.append(_refusal(source, node))
        elif isinstance(node, ast.With):
            found += _jumps_out(source, node)
        elif isinstance(node, ast.Match):
            found += patterns.findings(node, source.span_of_tree)
        elif isinstance(node, ast.Assert) and not _has_plain_message(node):
            found.append(_computed_message(source, node))
    unique = {(d.message, d.span): d for d in found}  # a jump may leave several supersteps
    return sorted(unique.values(), key=place)


def place(diagnostic: Diagnostic) -> tuple[int, int]:
    """Where a finding stands, to sort by."""
    span = diagnostic.span
    return (0, 0) if span is None else (span.line, span.column or 0)


def _walk(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """All nodes but those inside of a refused one."""
    pending: list[ast.AST] = list(reversed(body))
    while pending:
        node = pending.pop()
        yield node
        if _kind(node) not in _REFUSED:
            pending.extend(reversed(list(children(node))))


def _kind(node: ast.AST) -> type[ast.AST]:
    """What decides about a node: for arithmetic its operator, which itself has no place."""
    if isinstance(node, ast.keyword):
        return _DoubleStar if node.arg is None else ast.keyword
    return type(node.op) if isinstance(node, (ast.BinOp, ast.AugAssign)) else type(node)


def _refusal(source: Source, node: ast.AST) -> Diagnostic:
    span = source.span_of_tree(node)
    if not isinstance(node, ast.With):
        return refusal(_kind(node), span)
    hint = "only `with sarek.superstep():` is allowed"
    if node.items[0].optional_vars is not None:
        hint = "write `with sarek.superstep():` without `as`"
    return _outside("this `with`", span, hint)


def refusal(kind: type[ast.AST], span: Span) -> Diagnostic:
    """The finding that a kind of node stands at a place."""
    name, hint = _REFUSED[kind]
    return _outside(name, span, hint)


def _outside(name: str, span: Span, hint: str | None) -> Diagnostic:
    message = f"{name} is not part of the kernel language"
    return Diagnostic(UnsupportedConstruct, message, span, hint)


def no_definition(source: Source, asynchronous: bool) -> Diagnostic:
    """The finding that the function was not made by a plain `def`."""
    return Diagnostic(
        UnsupportedConstruct,
        f"{'an `async def`' if asynchronous else 'a lambda'} cannot be a kernel",
        source.span_of_definition(),
        "write a plain `def`",
    )


def _has_plain_message(node: ast.Assert) -> bool:
    message = node.msg
    return message is None or (
        isinstance(message, (ast.Constant, ast.JoinedStr))
        and (isinstance(message, ast.JoinedStr) or isinstance(message.value, str))
    )


def _computed_message(source: Source, node: ast.Assert) -> Diagnostic:
    assert node.msg is not None
    return Diagnostic(
        UnsupportedConstruct,
        "the message of an `assert` is a constant string",
        source.span_of_tree(node.msg),
        "write it in quotes; the oracle names the thread that failed",
    )


def _allowed(node: ast.With, source: Source) -> bool:
    return is_superstep(node, source.original)


def _jumps_out(source: Source, superstep: ast.With) -> list[Diagnostic]:
    """`return`, and `break` or `continue` of an outer loop, would pass over the barrier."""
    return [
        Diagnostic(
            UnsupportedConstruct,
            f"`{type(node).__name__.lower()}` leaves a superstep before its barrier",
            source.span_of_tree(node),
            "put it after the superstep, or call sarek.barrier() yourself",
        )
        for node in _leaving(superstep.body, False)
    ]


def _leaving(body: list[ast.stmt], in_loop: bool) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.Return) or (
            isinstance(node, (ast.Break, ast.Continue)) and not in_loop
        ):
            yield node
        looping = in_loop or isinstance(node, (ast.For, ast.While))
        yield from _leaving(getattr(node, "body", []), looping)
        yield from _leaving(getattr(node, "orelse", []), in_loop)
        for case in getattr(node, "cases", ()):
            yield from _leaving(case.body, in_loop)


def _parameters(source: Source, tree: ast.FunctionDef) -> Iterator[Diagnostic]:
    for parameter, star in ((tree.args.vararg, "*"), (tree.args.kwarg, "**")):
        if parameter is not None:
            yield Diagnostic(
                UnsupportedConstruct,
                f"`{star}{parameter.arg}` is not part of the kernel language",
                source.span_of_tree(parameter),
                "name each parameter",
            )
