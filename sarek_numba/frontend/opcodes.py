"""Refusals from the bytecode, for functions whose source text is missing (`exec`, some REPLs).

What `syntax` finds in a tree is found here by the instructions that CPython makes of it, so that
nothing outside the language reaches Numba, which compiles some of it to something else. A `match`
over constants cannot be told from `if` and `elif`, and means the same.
"""

from __future__ import annotations

import ast
import dis
import inspect
from collections.abc import Iterator
from types import CodeType

from sarek_numba.errors import Diagnostic, UnsupportedConstruct
from sarek_numba.frontend.source import Source
from sarek_numba.frontend.syntax import no_definition, place, refusal
from sarek_numba.frontend.unrolling import written_line
from sarek_numba.span import Span

_REFUSED: dict[str, type[ast.AST]] = {
    "BUILD_CONST_KEY_MAP": ast.Dict,
    "BUILD_LIST": ast.List,
    "BUILD_MAP": ast.Dict,
    "BUILD_SET": ast.Set,
    "BUILD_STRING": ast.JoinedStr,
    "DELETE_FAST": ast.Delete,
    "DELETE_GLOBAL": ast.Delete,
    "DELETE_SUBSCR": ast.Delete,
    "FORMAT_SIMPLE": ast.JoinedStr,
    "FORMAT_VALUE": ast.JoinedStr,
    "FORMAT_WITH_SPEC": ast.JoinedStr,
    "IMPORT_NAME": ast.Import,
    "LOAD_BUILD_CLASS": ast.ClassDef,
    "LOAD_FAST_AND_CLEAR": ast.ListComp,
    "MATCH_CLASS": ast.Match,
    "MATCH_KEYS": ast.Match,
    "MATCH_MAPPING": ast.Match,
    "MATCH_SEQUENCE": ast.Match,
    "STORE_GLOBAL": ast.Global,
    "UNPACK_EX": ast.Starred,
    "YIELD_VALUE": ast.Yield,
}
_FUNCTIONS: dict[str, type[ast.AST]] = {
    "<dictcomp>": ast.DictComp,
    "<genexpr>": ast.GeneratorExp,
    "<lambda>": ast.Lambda,
    "<listcomp>": ast.ListComp,
    "<setcomp>": ast.SetComp,
}
_ENTERS_WITH = ("BEFORE_WITH", "BEFORE_ASYNC_WITH", "LOAD_SPECIAL")
_ASYNCHRONOUS = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def check(source: Source) -> list[Diagnostic]:
    """Everything in the bytecode that is outside the kernel language."""
    code = source.original.__code__
    if code.co_flags & _ASYNCHRONOUS:
        return [no_definition(source, asynchronous=True)]
    kept: list[Diagnostic] = []
    for each in sorted((*_found(source, code), *_walruses(source, code)), key=place):
        if not any(_is_same(each, other) for other in kept):
            kept.append(each)
    return kept


def _is_same(left: Diagnostic, right: Diagnostic) -> bool:
    """Whether two instructions stand for one construct."""
    assert left.span is not None
    assert right.span is not None
    same_line = left.message == right.message and left.span.line == right.span.line
    return same_line or left.span == right.span


def _found(source: Source, code: CodeType) -> Iterator[Diagnostic]:
    instructions = list(dis.get_instructions(code))
    has_with = any(each.opname in _ENTERS_WITH for each in instructions)
    made, class_body, last = None, False, ""
    for each in instructions:
        span = _span(source, each)
        if isinstance(each.argval, CodeType):
            made, class_body = each.argval.co_name, last == "LOAD_BUILD_CLASS"
        if each.opname not in ("CACHE", "PUSH_NULL"):
            last = each.opname
        if each.opname in _REFUSED:
            kind = _REFUSED[each.opname]
            yield (
                _without_text("this `match`", span, _WRITE_IFS)
                if kind is ast.Match
                else refusal(kind, span)
            )
        elif each.opname == "MAKE_FUNCTION" and not class_body:
            yield refusal(_FUNCTIONS.get(made or "", ast.FunctionDef), span)
        elif each.opname == "BINARY_OP" and each.argrepr in ("@", "@="):
            yield refusal(ast.MatMult, span)
        elif each.opname in _ENTERS_WITH:
            yield _without_text("a `with`", span, _WRITE_BARRIER)
        elif each.opname == "PUSH_EXC_INFO" and not has_with:
            yield refusal(ast.Try, _span(source, _start_of_try(code, instructions)))


_WRITE_BARRIER = "write the body and then sarek.barrier()"
_WRITE_IFS = "write if and elif"


def _without_text(name: str, span: Span, hint: str) -> Diagnostic:
    return Diagnostic(
        UnsupportedConstruct,
        f"{name} in a function without source text is not part of the kernel language",
        span,
        f"{hint}, or save the function in a file",
    )


def _start_of_try(code: CodeType, instructions: list[dis.Instruction]) -> dis.Instruction:
    """The first instruction that an exception handler covers."""
    covered = min(entry.start for entry in dis.Bytecode(code).exception_entries)  # type: ignore[attr-defined]
    return next(each for each in instructions if each.offset >= covered)


def _walruses(source: Source, code: CodeType) -> Iterator[Diagnostic]:
    """A stored copy of a value, where no later store of the same statement takes the original.

    `a = b = value` is such a statement; the stores that an unrolled loop repeats are at one place.
    """
    instructions = [each for each in dis.get_instructions(code) if each.opname != "CACHE"]
    for index, each in enumerate(instructions[:-1]):
        first = instructions[index + 1]
        if each.opname != "COPY" or not first.opname.startswith("STORE_"):
            continue
        if first.opname == "STORE_FAST_STORE_FAST":
            continue
        whole = _span(source, each)
        later = (
            _span(source, other)
            for other in instructions[index + 2 :]
            if other.opname.startswith(("STORE_", "UNPACK_"))
        )
        if not any(_within(whole, other) and other != _span(source, first) for other in later):
            yield refusal(ast.NamedExpr, whole)


def _within(outer: Span, inner: Span) -> bool:
    if None in (outer.column, outer.end_column, inner.column, inner.end_column):
        return outer.line == inner.line
    return (outer.line, outer.column) <= (inner.line, inner.column) and (
        inner.end_line,
        inner.end_column,
    ) <= (outer.end_line, outer.end_column)


def _span(source: Source, instruction: dis.Instruction) -> Span:
    places = instruction.positions
    if places is None or places.lineno is None:
        return source.span_of_definition()
    if places.col_offset is None:
        return Span(source.file, written_line(places.lineno))
    end = None if places.end_lineno is None else written_line(places.end_lineno)
    line = written_line(places.lineno)
    return Span(source.file, line, places.col_offset, end, places.end_col_offset)
