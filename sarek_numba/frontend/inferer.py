"""The types of all variables of one function: Numba's inferer under the rules of this package.

Variables are in SSA form, so each type is computed from its one definition and may be recomputed
freely; only phis accumulate: a phi's type is the join of all that ever reached it. That makes the
fixed point finite, and lets a value that was typed while a loop variable was still weak be typed
again once it is strong.
"""

from __future__ import annotations

import dataclasses
import inspect
import operator
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from numba.core import ir, typeinfer, types
from numba.core.errors import NumbaWarning, WarningsFixer

from sarek_numba.errors import CompileError, Diagnostic, UnsupportedConstruct
from sarek_numba.frontend import matching
from sarek_numba.frontend.captures import captured
from sarek_numba.frontend.complexes import ConjugateMethod
from sarek_numba.frontend.context import (
    MISSING,
    Context,
    attribute,
    device_function,
    find_rule,
    operation_of_value,
    type_of_value,
    undefined,
    unknown_name,
)
from sarek_numba.frontend.extensions import CompileTime, SliceType
from sarek_numba.frontend.functions import DeviceFunction
from sarek_numba.frontend.language import RecordConstructor
from sarek_numba.frontend.names import user_name
from sarek_numba.frontend.reads import read_by_statement
from sarek_numba.frontend.records import RecordMethod, passed
from sarek_numba.frontend.registered import registered
from sarek_numba.frontend.rules import records, texts, variants
from sarek_numba.frontend.rules.calls import (
    bound_arguments,
    bound_fields,
    check_passed,
    is_named_tuple,
)
from sarek_numba.frontend.rules.complexes import conjugate_takes, conjugated
from sarek_numba.frontend.rules.printing import printing
from sarek_numba.frontend.rules.registry import bind, bind_to, name_of
from sarek_numba.frontend.source import Source
from sarek_numba.frontend.texts import InlineSource
from sarek_numba.frontend.typed import (
    Argument,
    Call,
    Captured,
    Constant,
    Default,
    MakeTuple,
    Operation,
    SetField,
    TupleItem,
    Type,
)
from sarek_numba.frontend.variants import CaseType, Variant
from sarek_numba.frontend.weak import Refusal, describe, generalise, join, tuple_of
from sarek_numba.span import Span

Compute = Callable[[], None]


class _Step:
    """A constraint of this package: compute a type, an operation, or both."""

    __slots__ = ("compute", "loc", "reads_partly")

    def __init__(self, compute: Compute, loc: ir.Loc, reads_partly: bool) -> None:
        self.compute = compute
        self.loc = loc
        self.reads_partly = reads_partly

    def __call__(self, _: Any) -> None:
        self.compute()


class Inferer(typeinfer.TypeInferer):  # type: ignore[misc] # Numba ships no types
    """`solve()` fills `operations`, `captures` and `failures`; `type_of` reads the types.

    `too_deep` has the calls that no level of a bounded recursion is left for.
    """

    def __init__(self, context: Context, function_ir: ir.FunctionIR, source: Source) -> None:
        super().__init__(context, function_ir, WarningsFixer(NumbaWarning))
        self.source = source
        self.operations: dict[Any, Operation] = {}
        self.captures: dict[tuple[str, tuple[str, ...]], Captured] = {}
        self.failures: dict[int, tuple[Any, Exception]] = {}
        self.too_deep: dict[Any, str] = {}
        self._inputs: list[tuple[str, ...]] = []
        self._changed: dict[str, None] = {}
        self._paths: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._returned = _returned(self.blocks)
        self.definitions = {
            inst.target.name: inst
            for block in self.blocks.values()
            for inst in block.body
            if isinstance(inst, ir.Assign)
        }

    # --- the fixed point --------------------------------------------------------------------------

    def solve(self, argument_types: tuple[Type, ...]) -> None:
        names = self.func_ir.arg_names
        for index, (name, type) in enumerate(zip(names, argument_types, strict=True)):
            self.seed_argument(name, index, type)
        self.build_constraint()
        self.propagate()

    def constrain_statement(self, inst: Any) -> None:
        before = len(self.constraints.constraints)
        if isinstance(inst, ir.StaticRaise):
            return
        super().constrain_statement(inst)
        added = len(self.constraints.constraints) - before
        if added:
            target = inst.target.name if isinstance(inst, ir.Assign) else None
            names = tuple(name for name in read_by_statement(inst) if name != target)
            self._inputs += [names] * added

    def propagate(self, raise_errors: bool = False) -> None:
        """Run each constraint whenever a type that it reads has changed, until none has.

        They run in the order of the text; what an earlier one needs again waits for the next round.
        """
        constraints = self.constraints.constraints
        readers: dict[str, list[int]] = {}
        for index, names in enumerate(self._inputs):
            for name in dict.fromkeys(names):
                readers.setdefault(name, []).append(index)
        self._changed.clear()
        pending = list(range(len(constraints)))  # sorted, so a heap
        later: set[int] = set()
        queued = set(pending)
        while pending:
            index = heappop(pending)
            queued.discard(index)
            constraint = constraints[index]
            inputs = self._inputs[index]
            if _reads_partly(constraint) or not any(self.type_of(name) is None for name in inputs):
                self._run(index, constraint)
            for name in self._changed:
                for reader in readers.get(name, ()):
                    if reader <= index:
                        later.add(reader)
                    elif reader not in queued:
                        queued.add(reader)
                        heappush(pending, reader)
            self._changed.clear()
            if not pending:
                pending, queued, later = sorted(later), later, set()

    def _run(self, index: int, constraint: Any) -> None:
        self.failures.pop(index, None)
        try:
            constraint(self)
        except (Refusal, CompileError) as error:
            self.failures[index] = (constraint.loc, error)

    def add_type(self, var: str, tp: Type, loc: Any, unless_locked: bool = False) -> None:
        """Replace the type of a variable by what its definition now gives."""
        known = self.typevars[var]
        if known.type is None or known.type != tp:
            known.type = tp
            self._changed[var] = None

    def lock_type(self, var: str, tp: Type, loc: Any, literal_value: Any = None) -> None:
        self.add_type(var, tp, loc)

    def copy_type(self, src_var: str, dest_var: str, loc: Any) -> None:
        self.add_type(dest_var, self.typevars[src_var].type, loc)

    def type_of(self, name: str) -> Type | None:
        """The type found for a variable; None if no value reaches it."""
        known = self.typevars.get(name)
        return None if known is None else known.type

    def _step(self, compute: Compute, loc: ir.Loc, reads_partly: bool = False) -> None:
        self.constraints.append(_Step(compute, loc, reads_partly))

    def _types(self, variables: Any) -> tuple[Type, ...]:
        return tuple(self.typevars[v.name].type for v in variables)

    def _settle(
        self, key: Any, target: str | None, operation: Operation, arguments: tuple[Argument, ...]
    ) -> None:
        """Record an operation and the type of what it gives."""
        taken = arguments[: len(operation.operands)]
        self.operations[key] = dataclasses.replace(operation, arguments=taken)
        if target is not None:
            self.add_type(target, operation.result, None)

    # --- values -----------------------------------------------------------------------------------

    def typeof_const(self, inst: Any, target: ir.Var, const: Any) -> None:
        def compute() -> None:
            if isinstance(const, slice):
                parts = (type_of_value(p) for p in (const.start, const.stop, const.step))
                self._settle(
                    inst.value, target.name, Operation(Constant(const), (), SliceType(*parts)), ()
                )
            else:
                self._value(inst.value, target, const)

        self._step(compute, inst.loc)

    def _value(self, key: Any, target: ir.Var, value: Any) -> None:
        operation = operation_of_value(value)
        if operation is None:
            self.add_type(target.name, type_of_value(value), None)
        else:
            self._settle(key, target.name, operation, ())

    def typeof_global(self, inst: Any, target: ir.Var, gvar: Any) -> None:
        self._step(lambda: self._global(inst, target, gvar), inst.loc)

    def _global(self, inst: Any, target: ir.Var, gvar: Any) -> None:
        if undefined(gvar.value):
            raise unknown_name(gvar.name, self.source.function)
        self._paths[target.name] = (gvar.name, ())
        if not target.name.startswith("$bool") and not (
            gvar.name.startswith(matching.HIDDEN) or (gvar.value is slice and gvar.name == "slice")
        ):
            self._capture(gvar.name, (), gvar.value)
        self._value(inst.value, target, gvar.value)

    def _capture(self, name: str, path: tuple[str, ...], value: Any) -> None:
        self.captures[name, path] = captured(self.source.original, name, path, value)

    def typeof_arg(self, inst: Any, target: ir.Var, arg: Any) -> None:
        source = self._mangle_arg_name(arg.name)
        self._step(lambda: self.copy_type(source, target.name, None), inst.loc)

    # --- expressions ------------------------------------------------------------------------------

    def typeof_expr(self, inst: Any, target: ir.Var, expr: Any) -> None:
        steps: dict[str, Callable[[Any, ir.Var, Any], None]] = {
            "phi": self._phi,
            "getattr": self._attribute,
            "exhaust_iter": self._unpack,
            "static_getitem": self._static_item,
            "build_tuple": self._tuple,
            "call": self._call,
        }
        refused = _REFUSED_EXPRESSIONS.get(expr.op)
        if refused is not None:
            self._step(lambda: _raise(Refusal(*refused, UnsupportedConstruct)), inst.loc)
        elif expr.op in steps:
            compute = steps[expr.op]
            self._step(lambda: compute(inst, target, expr), inst.loc, expr.op == "phi")
        elif expr.op != "undef":
            super().typeof_expr(inst, target, expr)

    def typeof_intrinsic_call(self, inst: Any, target: ir.Var, func: Any, *args: ir.Var) -> None:
        def compute() -> None:
            operation = find_rule(func)(*self._types(args))
            self._settle(inst.value, target.name, operation, args)

        self._step(compute, inst.loc)

    def _phi(self, inst: Any, target: ir.Var, expr: Any) -> None:
        joined = self.type_of(target.name)
        first: ir.Var | None = None
        for variable in expr.incoming_values:
            kind = None if variable is ir.UNDEFINED else self.type_of(variable.name)
            if kind is None:
                continue
            if joined is None:
                joined = kind
            elif kind != joined:
                joined = self._join(target, joined, kind, first, variable)
            first = first or variable
        if joined is not None:
            self.add_type(target.name, joined, None)

    def _join(
        self, target: ir.Var, known: Type, new: Type, first: ir.Var | None, variable: ir.Var
    ) -> Type:
        try:
            joined = join(known, new)
        except Refusal as refusal:
            refusal.variables = (variable,)
            raise
        if joined is not None:
            return joined
        if first is None:  # the clash is with what the loop brought round before
            first = target
        before = self.type_of(first.name)
        types_met = (known if before is None else before, new)
        if all(isinstance(each, types.Array) for each in types_met):
            clash = different(target, "arrays")
        else:
            clash = self._no_join(target, *map(describe, types_met))
        clash.variables = (first, variable)
        raise clash

    def _no_join(self, target: ir.Var, first: str, second: str) -> Refusal:
        both = f"{first} or {second}, which have no common type"
        if not target.is_temp:
            name = user_name(target.name)
            hint = "convert one of them, or use two names"
            if any(each.startswith("a reference to a") for each in (first, second)):
                hint = "take a copy of the element, as in p[i].copy()"
            elif "a record from around the kernel" in (first, second):
                hint = "take a copy, as in r.copy()"
            if "None" in (first, second):
                hint = "give it a number on every path"
            elif first.startswith("the function "):
                hint = "call each in a branch of its own"
            return Refusal(f"{name!r} holds {both}", hint)
        if target.name in self._returned:
            name = self.source.original.__name__
            return Refusal(f"{name}() returns {both}", "return one type on all paths")
        hint = "convert one of them"
        if first.startswith("the function "):
            hint = "call each in a branch of its own"
        return Refusal(f"this expression gives {both}", hint)

    def _attribute(self, inst: Any, target: ir.Var, expr: Any) -> None:
        (owner,) = self._types((expr.value,))
        kind, operation, value = attribute(owner, expr.attr)
        path = self._paths.get(expr.value.name)
        if value is not MISSING and path is not None:
            name, attributes = path
            self._paths[target.name] = (name, (*attributes, expr.attr))
            if not _is_fixed(owner) or isinstance(value, InlineSource):
                self._capture(*self._paths[target.name], value)
        if operation is None:
            self.add_type(target.name, kind, None)
        else:
            self._settle(expr, target.name, operation, (expr.value,))

    def _tuple(self, inst: Any, target: ir.Var, expr: Any) -> None:
        self.add_type(target.name, tuple_of(self._types(expr.items)), None)

    def _unpack(self, inst: Any, target: ir.Var, expr: Any) -> None:
        (kind,) = self._types((expr.value,))
        if not isinstance(kind, types.BaseTuple):
            hint = "name its elements, as in a[0]" if isinstance(kind, types.Array) else None
            raise Refusal(f"{describe(kind)} cannot be unpacked", hint or "unpack a tuple")
        if len(kind) != expr.count:
            raise Refusal(
                f"a tuple of {len(kind)} items is unpacked into {expr.count} names",
                "give each item a name",
            )
        self.add_type(target.name, kind, None)

    def _static_item(self, inst: Any, target: ir.Var, expr: Any) -> None:
        (items,) = self._types((expr.value,))
        operation = Operation(TupleItem(expr.index), (items,), items.types[expr.index])
        self._settle(expr, target.name, operation, (expr.value,))

    def _call(self, inst: Any, target: ir.Var, expr: Any) -> None:
        if expr.vararg is not None or expr.varkwarg is not None:
            raise Refusal(
                "`*` in a call is not part of the kernel language",
                "write the arguments one by one",
                UnsupportedConstruct,
            )
        (callee,) = self._types((expr.func,))
        if isinstance(callee, ConjugateMethod):
            bind("conjugate", conjugate_takes, tuple(expr.args), dict(expr.kws))
            self._settle(expr, target.name, conjugated(callee), (expr.func,))
            return
        if isinstance(callee, RecordMethod):
            bind_to("copy", _NO_ARGUMENTS, tuple(expr.args), dict(expr.kws))
            self._settle(expr, target.name, records.copy(callee), (expr.func,))
            return
        if not isinstance(callee, CompileTime):
            hint = "index it with [ ]" if isinstance(callee, types.Array) else None
            raise Refusal(
                f"{describe(callee)} cannot be called", hint or "call a @sarek.function by its name"
            )
        function = device_function(callee.value)
        if function is not None:
            self._call_device_function(inst, expr, function)
            return
        if is_named_tuple(callee.value):
            self._call_named_tuple(target, expr, callee.value)
            return
        if isinstance(callee.value, Variant):
            raise variants.refused_call(callee.value)
        if isinstance(callee.value, CaseType):
            self._make_variant(target, expr, callee.value)
            return
        constructor = registered(callee.value)
        if constructor is not None:
            self._make_record(target, expr, constructor)
            return
        keywords = dict(expr.kws)
        named = {name: self.typevars[v.name].type for name, v in keywords.items()}
        if callee.value is print:
            operation = printing(self._types(expr.args), named)
            self._settle(expr, target.name, operation, tuple(expr.args))
            return
        name = self._written(expr.func, callee.value)
        rule = find_rule(callee.value, name)
        variables = bind(name, rule, tuple(expr.args), keywords)
        try:
            operation = rule(*bind(name, rule, self._types(expr.args), named))
        except Refusal as refusal:
            refusal.operand = _as_written(refusal.operand, expr, variables)
            raise
        self._settle(expr, target.name, operation, variables)

    def _make_record(self, target: ir.Var, expr: Any, constructor: RecordConstructor) -> None:
        given = records.constructed(constructor, tuple(expr.args), dict(expr.kws))
        kinds = {name: self.typevars[v.name].type for name, v in given.items()}
        operation = records.make(constructor, kinds)
        self._settle(expr, target.name, operation, tuple(given.values()))

    def _make_variant(self, target: ir.Var, expr: Any, case: CaseType) -> None:
        operation = variants.make(case, self._types(expr.args), expr.kws)
        self._settle(expr, target.name, operation, tuple(expr.args))

    def _written(self, variable: ir.Var, callee: Any) -> str:
        """A callee as the kernel writes it."""
        path = self._paths.get(variable.name)
        return name_of(callee) if path is None else ".".join((path[0], *path[1]))

    def _call_named_tuple(self, target: ir.Var, expr: Any, named: Any) -> None:
        arguments = bound_fields(named, tuple(expr.args), dict(expr.kws))
        kinds = tuple(a.type if isinstance(a, Default) else self.type_of(a.name) for a in arguments)
        operation = Operation(MakeTuple(), kinds, tuple_of(kinds, named))
        self._settle(expr, target.name, operation, arguments)

    def _call_device_function(self, inst: Any, expr: Any, callee: DeviceFunction) -> None:
        arguments = bound_arguments(callee.function, tuple(expr.args), dict(expr.kws), callee.name)
        operands = tuple(self._operand(argument) for argument in arguments)
        check_passed(operands, callee.function.__name__)
        if isinstance(callee, InlineSource):
            try:
                operands = texts.operands_of(callee, operands)
            except Refusal as refusal:
                refusal.operand = _as_written(refusal.operand, expr, arguments)
                raise
        typed = self.context.functions.typed(callee, operands)
        if typed is None:
            self.too_deep[inst] = (
                f"{callee.function.__name__}() calls itself deeper than its inline_depth"
            )
            return
        if isinstance(callee, InlineSource):
            texts.check_result(callee, typed)
        operation = Operation(Call(typed), operands, typed.result)
        self._settle(expr, inst.target.name, operation, arguments)

    def _operand(self, argument: Argument) -> Type:
        """The type of an argument as the callee sees it."""
        if isinstance(argument, Default):
            return generalise(argument.type)
        return passed(generalise(self.typevars[argument.name].type))

    # --- statements -------------------------------------------------------------------------------

    def typeof_setitem(self, inst: Any) -> None:
        variables = (inst.target, inst.index, inst.value)

        def compute() -> None:
            operation = find_rule(operator.setitem)(*self._types(variables))
            of_field = isinstance(operation.what, SetField)
            self._settle(inst, None, operation, variables[::2] if of_field else variables)

        self._step(compute, inst.loc)

    def typeof_setattr(self, inst: Any) -> None:
        variables = (inst.target, inst.value)

        def compute() -> None:
            owner, value = self._types(variables)
            operation = records.set_attribute(owner, inst.attr, value)
            self._settle(inst, None, operation, variables)

        self._step(compute, inst.loc)

    def typeof_delitem(self, inst: Any) -> None:
        self._refuse(inst, "`del`", "leave the name alone, or store zero into the element")

    def typeof_print(self, inst: Any) -> None:
        self._refuse(inst, "print()", "write values into an array and print that")

    def typeof_storemap(self, inst: Any) -> None:
        self._refuse(inst, "a dict", "use arrays")

    def _refuse(self, inst: Any, what: str, hint: str | None) -> None:
        refusal = Refusal(f"{what} is not part of the kernel language", hint, UnsupportedConstruct)
        self._step(lambda: _raise(refusal), inst.loc)


_NO_ARGUMENTS = inspect.Signature()

_REFUSED_EXPRESSIONS: dict[str, tuple[str, str | None]] = {
    "build_list": ("a list cannot be used in a kernel", "use sarek.local.array, or a tuple"),
    "build_set": ("a set cannot be used in a kernel", "use a tuple"),
    "build_map": ("a dict cannot be used in a kernel", "use arrays"),
    "make_function": (
        "a function inside a kernel is not part of the kernel language",
        "define a @sarek.function outside",
    ),
}


def _returned(blocks: Any) -> set[str]:
    """The variables whose value a `return` gives, casts followed."""
    casts = {
        inst.target.name: inst.value.value.name
        for block in blocks.values()
        for inst in block.body
        if isinstance(inst, ir.Assign)
        and isinstance(inst.value, ir.Expr)
        and inst.value.op == "cast"
    }
    names = {b.body[-1].value.name for b in blocks.values() if isinstance(b.body[-1], ir.Return)}
    return names | {casts[name] for name in names if name in casts}


def different(target: ir.Var, what: str) -> Refusal:
    """The refusal of a variable that names one array here and another there."""
    name = user_name(target.name)
    shown = "this expression gives" if target.is_temp else f"{name!r} names"
    hint = "choose the index instead, or use each in a branch of its own"
    return Refusal(f"{shown} different {what}", hint)


def _raise(refusal: Refusal) -> None:
    raise refusal


def _reads_partly(constraint: Any) -> bool:
    """Whether a constraint may run before all that it reads is known."""
    return getattr(constraint, "reads_partly", False)


def _is_fixed(owner: Type) -> bool:
    """Whether the attributes of an object are taken never to change: Python's and NumPy's own."""
    name = getattr(owner.value, "__name__", "") or ""
    module = getattr(owner.value, "__module__", "") or ""
    roots = {name.partition(".")[0], module.partition(".")[0]}
    return bool(roots & {"math", "numpy", "sarek_numba", "builtins", "operator"})


def _as_written(
    operand: tuple[int | str, ...], expr: Any, variables: tuple[Any, ...]
) -> tuple[int | str, ...]:
    """An operand of a rule by its place in the call: a position, or a keyword."""
    if not operand or isinstance(operand[0], str) or operand[0] < len(expr.args):
        return operand
    given = variables[operand[0]]
    return (next(name for name, variable in expr.kws if variable is given), *operand[1:])


def findings(loc: ir.Loc, error: Exception, inferer: Inferer) -> list[Diagnostic]:
    """The findings that an exception of a constraint stands for."""
    if isinstance(error, CompileError):
        here = (inferer.source.span_of(loc), "called here")
        return [dataclasses.replace(d, notes=(*d.notes, here)) for d in error.diagnostics]
    assert isinstance(error, Refusal)
    span = inferer.source.span_of_operand(inferer.source.span_of(loc), error.operand)
    notes: tuple[tuple[Span, str], ...] = ()
    if error.variables:
        origins = [_origin(variable, inferer) for variable in error.variables]
        origins.sort(key=lambda each: (each[0].line, each[0].column or 0))
        notes = tuple(origins)
        span = notes[-1][0]
    shown = notes if len(notes) > 1 else ()
    return [Diagnostic(error.error, error.message, span, error.hint, shown)]


def _origin(variable: ir.Var, inferer: Inferer) -> tuple[Span, str]:
    """Where a variable gets its value, and of which type; phis and copies of temporaries are
    followed to where it is computed.
    """
    name, met = variable.name, {variable.name}
    while True:
        inst = inferer.definitions.get(name)
        value = getattr(inst, "value", None)
        sources: list[str] = []
        if isinstance(value, ir.Expr) and value.op == "phi":
            sources = [v.name for v in value.incoming_values if v is not ir.UNDEFINED]
        elif isinstance(value, ir.Var) and value.is_temp:
            sources = [value.name]
        sources = [each for each in sources if each not in met]
        if not sources:
            break
        name = sources[0]
        met.add(name)
    loc = variable.loc if inst is None else inst.loc
    kind = inferer.type_of(name)
    return inferer.source.span_of(loc), "unknown" if kind is None else f"{describe(kind)} here"
