"""Syntax trees: the one of a function, and walks.

`parse` takes a function and gives its definition with the lines and columns of its file; None where
there is no text (`exec`, a REPL), or it is not the text of this function: a file may have changed
since it was imported. The text is what `linecache` has under the name in the code object, where
notebooks put theirs too. `inspect.getsource` finds the same, but asks every module of the process
for its file and takes the text apart word by word.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import TypeVar

_Node = TypeVar("_Node", bound=ast.AST)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

# --- walks ----------------------------------------------------------------------------------------

# Fields without statements, expressions, or what holds them.
_LEAVES = frozenset(("attr", "ctx", "id", "kind", "name", "names", "op", "ops", "type_comment"))


_inner_fields: dict[type[ast.AST], tuple[str, ...]] = {ast.Constant: ()}


def _fields_of(kind: type[ast.AST]) -> tuple[str, ...]:
    fields = _inner_fields.get(kind)
    if fields is None:
        fields = tuple(field for field in kind._fields if field not in _LEAVES)
        _inner_fields[kind] = fields
    return fields


def children(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes directly within one, in the order of the text, but operators and contexts."""
    for field in _fields_of(type(node)):
        value = getattr(node, field, None)
        if isinstance(value, list):
            for item in value:
                if isinstance(item, ast.AST):
                    yield item
        elif isinstance(value, ast.AST):
            yield value


def all_nodes(tree: ast.AST | None) -> list[ast.AST]:
    """The tree's nodes, but operators and contexts; outer ones before inner ones."""
    found = [] if tree is None else [tree]
    for node in found:
        found.extend(children(node))
    return found


# --- text -----------------------------------------------------------------------------------------


def parse(function: FunctionType) -> FunctionNode | ast.Lambda | None:
    """The syntax tree of a function with the lines and columns of its file, or None."""
    return parse_with_text(function)[0]


def parse_with_text(function: FunctionType) -> tuple[FunctionNode | ast.Lambda | None, str]:
    """The tree that `parse` gives, and the text that it depends on."""
    code = function.__code__
    lines = _lines(function)
    first = code.co_firstlineno
    if not 0 < first <= len(lines):
        return None, ""
    if code.co_name != "<lambda>":
        text = "".join(lines[first - 1 : _end(lines, code)])
        tree = _parse_text(text, first)
        if tree is not None:
            return _find(tree, code), text
    rest = "".join(lines[first - 1 :])
    try:
        block = inspect.getblock(lines[first - 1 :])
    except (IndexError, SyntaxError):
        return None, rest
    tree = _parse_text("".join(block), first)
    return (None if tree is None else _find(tree, code)), rest


def _lines(function: FunctionType) -> list[str]:
    """The lines of the file that a function is written in; none where there is no such text."""
    file = function.__code__.co_filename
    linecache.checkcache(file)
    scope = function.__globals__
    lines = linecache.getlines(file, scope if scope.get("__file__") == file else None)
    if lines:
        return lines
    try:
        return inspect.findsource(function.__code__)[0]
    except (OSError, TypeError, IndexError):
        return []


def _end(lines: list[str], code: CodeType) -> int:
    """How many lines there are up to the end of a definition.

    That is before the first line behind all of its code that is indented no deeper. Within brackets
    or a string such a line may come too early; then what is before it cannot be parsed.
    """
    indent = _indent(lines[code.co_firstlineno - 1])
    for number in range(_last_line(code), len(lines)):
        line = lines[number]
        if _indent(line) <= indent and line.strip() and not line.lstrip().startswith("#"):
            return number
    return len(lines)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _last_line(code: CodeType) -> int:
    """The last line that a code object, or one within it, was compiled from."""
    lines = [end for _, end, _, _ in code.co_positions() if end is not None]
    inner = [_last_line(each) for each in code.co_consts if isinstance(each, CodeType)]
    return max([code.co_firstlineno, *lines, *inner])


def _parse_text(text: str, first: int) -> ast.Module | None:
    """Parse lines, the first of which has this number, without moving their columns."""
    indented = text[:1] in (" ", "\t")
    before = "if 1:\n" if indented else ""
    missing = first - 1 - len(before.splitlines())
    try:
        tree = ast.parse("\n" * missing + before + text)
    except SyntaxError:
        return None
    return tree if missing >= 0 else ast.increment_lineno(tree, missing)


def _find(tree: ast.Module, code: CodeType) -> FunctionNode | ast.Lambda | None:
    """The definition that the code object comes from."""
    wanted = (
        (ast.Lambda,) if code.co_name == "<lambda>" else (ast.FunctionDef, ast.AsyncFunctionDef)
    )
    for node in ast.walk(tree):
        if isinstance(node, wanted) and getattr(node, "name", "<lambda>") == code.co_name:
            return node if _argument_names(node) == _names_of(code) else None
    return None


def _argument_names(node: FunctionNode | ast.Lambda) -> list[str]:
    arguments = node.args
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _names_of(code: CodeType) -> list[str]:
    return list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def located(node: _Node, place: ast.AST) -> _Node:
    """A node, it and all within it at the place of another."""
    for each in ast.walk(node):
        if "lineno" in each._attributes:
            ast.copy_location(each, place)
    return node
