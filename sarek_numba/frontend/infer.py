"""Inference: a Python function and the types of its arguments become a `Typed`.

`infer` refuses what is outside the kernel language, and everything whose types have no meaning, all
findings of a stage at once as one `CompileError`: first those of the syntax tree, then those of the
bytecode, then those of the types.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from types import FunctionType
from typing import Any

from numba.core import ir, types

from sarek_numba.errors import (
    CompileError,
    Diagnostic,
    TypingError,
    raise_diagnostics,
)
from sarek_numba.frontend import opcodes, syntax
from sarek_numba.frontend.aliases import check_aliases
from sarek_numba.frontend.bytecode import interpret, unbound
from sarek_numba.frontend.context import Context
from sarek_numba.frontend.extensions import CompileTime, SliceType
from sarek_numba.frontend.fragments import check_fragments
from sarek_numba.frontend.functions import DeviceFunction
from sarek_numba.frontend.inferer import Inferer, different, findings
from sarek_numba.frontend.names import user_name
from sarek_numba.frontend.notes import notes_on
from sarek_numba.frontend.records import passed
from sarek_numba.frontend.recursion import Specialisations, cut
from sarek_numba.frontend.source import Source, read
from sarek_numba.frontend.typed import Call, Captured, Parameter, Type, Typed
from sarek_numba.frontend.unbound import drop_undefined, holding_nothing, is_phi, phis_of
from sarek_numba.frontend.weak import Refusal, describe, join
from sarek_numba.span import Span


def infer(function: FunctionType, argument_types: tuple[Type, ...]) -> Typed:
    """Type a kernel, and all device functions that it calls, for arguments of these types.

    The types are those of `arguments.typeof_argument`. Raises a `CompileError`.
    """

    def instantiate(callee: DeviceFunction, args: tuple[Type, ...]) -> Typed:
        return _Stage(callee.function, args, context, kernel=False).run()

    context = Context(Specialisations(instantiate))
    return _Stage(function, argument_types, context, kernel=True).run()


class _Stage:
    """The typing of one function."""

    def __init__(
        self, function: FunctionType, args: tuple[Type, ...], context: Context, kernel: bool
    ) -> None:
        self.args = args
        self.context = context
        self.kernel = kernel
        self.source: Source = read(function)
        self.diagnostics: list[Diagnostic] = []

    def run(self) -> Typed:
        try:
            return self._run()
        except CompileError as error:
            raise type(error)(tuple(map(self._placed, error.diagnostics))) from None

    def _placed(self, diagnostic: Diagnostic) -> Diagnostic:
        if diagnostic.function is not None:
            return diagnostic
        return dataclasses.replace(diagnostic, function=self.source.original.__name__)

    def _run(self) -> Typed:
        check = opcodes.check if self.source.tree is None else syntax.check
        raise_diagnostics(check(self.source))
        function_ir = interpret(self.source, self.args, self.kernel)
        inferer = Inferer(self.context, function_ir, self.source)
        inferer.solve(self.args)
        self._collect(inferer)
        cut(inferer.func_ir, inferer.too_deep)
        self._check_unbound(inferer)
        result = self._result(inferer)
        self._check_array_joins(inferer)
        self.diagnostics += check_aliases(inferer)
        if not self.diagnostics:  # what has no type is told of already
            self.diagnostics += check_fragments(inferer, self.kernel)
        raise_diagnostics(_ordered(self.diagnostics))
        drop_undefined(inferer.blocks)
        return self._typed(inferer, result)

    def _typed(self, inferer: Inferer, result: Type) -> Typed:
        names = {name: known.type for name, known in inferer.typevars.items() if known.type}
        captures = list(inferer.captures.values())
        callees: dict[Typed, None] = {}
        for operation in inferer.operations.values():
            if isinstance(operation.what, Call):
                for each in (*operation.what.callee.callees, operation.what.callee):
                    callees.setdefault(each)
        for callee in callees:
            captures += callee.captures
        function = self.source.original
        return Typed(
            name=function.__name__,
            function=function,
            function_ir=inferer.func_ir,
            parameters=tuple(
                Parameter(name, index, type)
                for index, (name, type) in enumerate(
                    zip(inferer.func_ir.arg_names, self.args, strict=True)
                )
            ),
            types=names,
            operations=inferer.operations,
            result=result,
            source=self.source,
            captures=_distinct(captures),
            callees=tuple(callees),
            notes=notes_on(inferer),
        )

    # --- findings ---------------------------------------------------------------------------------

    def _collect(self, inferer: Inferer) -> None:
        for loc, error in inferer.failures.values():
            self.diagnostics += findings(loc, error, inferer)

    def _refuse(self, node: Any, message: str, hint: str | None, error: Any = TypingError) -> None:
        self.diagnostics.append(Diagnostic(error, message, self.source.span_of(node), hint))

    def _check_unbound(self, inferer: Inferer) -> None:
        """Reads of locals that no path assigns."""
        nothing = holding_nothing(inferer.blocks)
        if not nothing:
            return
        for block in inferer.blocks.values():
            for inst in block.body:
                if is_phi(inst):
                    continue
                target = inst.target.name if isinstance(inst, ir.Assign) else None
                for variable in inst.list_vars():
                    if variable.name in nothing and variable.name != target:
                        name, near = user_name(variable.name), self.source.span_of(inst)
                        span = self.source.span_of_name(name, near)
                        self.diagnostics.append(unbound(name, span))

    def _check_array_joins(self, inferer: Inferer) -> None:
        """A variable names one array: lowering knows each view's base."""
        for inst in phis_of(inferer.blocks):
            kind = inferer.type_of(inst.target.name)
            if not isinstance(kind, (types.Array, SliceType)):
                continue
            sources = {
                v.name: v
                for v in inst.value.incoming_values
                if v is not ir.UNDEFINED and v.name != inst.target.name
            }
            if len(sources) > 1:
                what = "arrays" if isinstance(kind, types.Array) else "slices"
                refusal = different(inst.target, what)
                refusal.variables = tuple(sources.values())
                self.diagnostics += findings(inst.loc, refusal, inferer)

    def _result(self, inferer: Inferer) -> Type:
        returns = [
            (block.body[-1], inferer.type_of(block.body[-1].value.name))
            for block in inferer.blocks.values()
            if isinstance(block.body[-1], ir.Return)
        ]
        known = [(inst, kind) for inst, kind in returns if kind is not None]
        if self.kernel:
            for inst, kind in known:
                if not isinstance(kind, types.NoneType):
                    self._refuse(inst, "a kernel returns nothing", "store it in an array argument")
            return types.none
        return self._joined_result(known)

    def _joined_result(self, returns: list[tuple[Any, Type]]) -> Type:
        result: Type | None = None
        first: Any = None
        for inst, kind in returns:
            if isinstance(kind, (types.Array, CompileTime, SliceType)):
                self._refuse(
                    inst,
                    f"a device function returns numbers, not {describe(kind)}",
                    "call the function here, or pass it as an argument"
                    if isinstance(kind, CompileTime) and callable(kind.value)
                    else "pass the array as an argument and store into it",
                )
                continue
            kind = passed(kind)
            try:
                joined = kind if result is None else join(result, kind)
            except Refusal as refusal:
                self._refuse(inst, refusal.message, refusal.hint, refusal.error)
                continue
            if joined is None:
                self._refuse_results(first, result, inst, kind)
            else:
                result = joined
            first = first or inst
        return types.none if result is None else result

    def _refuse_results(self, first: Any, result: Type, inst: Any, kind: Type) -> None:
        name = self.source.original.__name__
        self.diagnostics.append(
            Diagnostic(
                TypingError,
                f"{name}() returns {describe(result)} or {describe(kind)}",
                self.source.span_of(inst),
                "return one type on all paths",
                ((self.source.span_of(first), f"{describe(result)} here"),),
            )
        )


def _ordered(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """By place, each once: a copied instruction reports the same finding again.

    So does a part of a pattern what the pattern was refused for.
    """
    unique = {(d.message, d.span): d for d in reversed(diagnostics)}
    spans: defaultdict[str, list[Span]] = defaultdict(list)
    for diagnostic in unique.values():
        if diagnostic.span is not None:
            spans[diagnostic.message].append(diagnostic.span)
    outermost = [
        d
        for d in unique.values()
        if d.span is None or not any(other.surrounds(d.span) for other in spans[d.message])
    ]
    return sorted(outermost, key=lambda d: (d.span.line, d.span.column or 0) if d.span else (0, 0))


def _distinct(captures: list[Captured]) -> tuple[Captured, ...]:
    seen = {(c.function, c.name, c.path): c for c in captures}
    return tuple(seen.values())


__all__ = ["CompileError", "infer"]
