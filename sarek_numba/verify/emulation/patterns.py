"""`case True` and `case False` for NumPy's bools, in an emulated function.

CPython compares the subject of these patterns with `is`, and what an array of bools holds, or a
comparison of NumPy scalars gives, is never the object True. So they become patterns of two classes
that know either kind of bool.
"""

from __future__ import annotations

import ast
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from sarek_numba.frontend.tree import parse


class _BoolPattern(type):
    wanted: bool

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, (bool, np.bool_)) and bool(value) == cls.wanted


class IsTrue(metaclass=_BoolPattern):
    """What `case True` takes."""

    wanted = True


class IsFalse(metaclass=_BoolPattern):
    """What `case False` takes."""

    wanted = False


CLASSES: dict[str, Any] = {"<is_true>": IsTrue, "<is_false>": IsFalse}


def code_of(function: FunctionType) -> CodeType:
    """The function's code, compiled anew where it has such patterns and its text is known.

    The new code reads the globals `CLASSES`. It is kept, since each emulated launch asks for it.
    """
    key = function.__code__, function.__code__.co_filename
    known = _KNOWN.get(key)
    if known is None:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        known = _KNOWN[key] = _code_of(function)
    return known


_KNOWN: dict[tuple[CodeType, str], CodeType] = {}
_MOST_KNOWN = 1024


def _code_of(function: FunctionType) -> CodeType:
    """The function's code, compiled anew where it has such patterns."""
    tree = parse(function)
    if not isinstance(tree, ast.FunctionDef):
        return function.__code__
    if not any(_is_bool(node) for node in ast.walk(tree)):
        return function.__code__
    code = function.__code__
    tree.decorator_list = []
    tree.args.defaults = [
        ast.copy_location(ast.Constant(None), each) for each in tree.args.defaults
    ]
    tree.args.kw_defaults = [
        each and ast.copy_location(ast.Constant(None), each) for each in tree.args.kw_defaults
    ]
    outer = ast.parse("def outer():\n    pass\n")
    holder = outer.body[0]
    assert isinstance(holder, ast.FunctionDef)
    free = [ast.parse(f"{name} = None").body[0] for name in code.co_freevars]
    holder.body = [*free, _Patterns().visit(tree)]
    module = compile(outer, code.co_filename, "exec", dont_inherit=True)
    return _inner(_inner(module, "outer"), code.co_name)


def _is_bool(node: ast.AST) -> bool:
    return isinstance(node, ast.MatchSingleton) and node.value is not None


class _Patterns(ast.NodeTransformer):
    def visit_MatchSingleton(self, node: ast.MatchSingleton) -> ast.pattern:
        if node.value is None:
            return node
        name = "<is_true>" if node.value else "<is_false>"
        of_class = ast.copy_location(ast.Name(name, ast.Load()), node)
        return ast.copy_location(ast.MatchClass(of_class, [], [], []), node)


def _inner(code: CodeType, name: str) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)
