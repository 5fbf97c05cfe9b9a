"""Lower a typed function to Sarek IR.

In: `Typed`, from `frontend.infer`. Out: an `ir.Kernel` as `ir.verify` wants it, its statements
in the order in which CPython runs the function. Names are the user's; temporaries are folded
into expression trees, bound to variables only where a value is used twice or would be read too
late.

`lower` is the entry; `function` lowers statements and `operations`, `arrays`, `calls` what they
compute; `control` lowers regions; `declare` places the declarations.
"""

from __future__ import annotations

from numba.core import ir, types

from sarek_numba.errors import Diagnostic, UnsupportedConstruct
from sarek_numba.frontend import typed as t
from sarek_numba.frontend.complexes import WeakComplex, is_complex
from sarek_numba.frontend.hints import current
from sarek_numba.frontend.lower import complexes, records, texts
from sarek_numba.frontend.lower.calls import leaves
from sarek_numba.frontend.lower.control import lower_regions
from sarek_numba.frontend.lower.convert import cast
from sarek_numba.frontend.lower.declare import declare
from sarek_numba.frontend.lower.function import FunctionLowering
from sarek_numba.frontend.lower.hinted import hinted, with_pragmas
from sarek_numba.frontend.lower.matrices import check_scopes
from sarek_numba.frontend.lower.parameters import array_info, array_parameter
from sarek_numba.frontend.lower.program import Helper, Program, Scope
from sarek_numba.frontend.lower.renumber import renumbered
from sarek_numba.frontend.lower.temporaries import fold_temporaries
from sarek_numba.frontend.lower.values import NOTHING, Cell, ComplexValue, TupleValue, Value
from sarek_numba.frontend.reads import read_by_statement
from sarek_numba.frontend.records import RecordType
from sarek_numba.frontend.records import numbers as record_numbers
from sarek_numba.frontend.structure import structure
from sarek_numba.frontend.weak import WeakFloat, WeakInt, constant_of, is_number, scalar_of
from sarek_numba.ir.depth import deep_recursion
from sarek_numba.ir.nodes import Body, HelperFunction, Kernel, ParamDecl, Return, Var, VarRef
from sarek_numba.ir.types import (
    INT32,
    INT64,
    PART_NAMES,
    UNIT,
    DynamicSharedLength,
    ElementType,
    NumberOf,
    PartOf,
    Scalar,
    TupleType,
    UserArgument,
)

# What may be part of an expression, evaluated only where it is needed.
_PURE = (
    t.Constant,
    t.Binary,
    t.Unary,
    t.Convert,
    t.RoundToHalf,
    t.HalfBits,
    t.HalfFromBits,
    t.Intrinsic,
    t.DivMod,
    t.RoundToInt,
    t.RoundDigits,
    t.Select,
    t.Contains,
    t.Index,
    t.IndexTuple,
    t.MakeSlice,
    t.GetItem,
    t.MakeTuple,
    t.TupleItem,
    t.TupleSlice,
    t.TuplePick,
    t.Shape,
    t.Extent,
    t.Size,
    t.Transpose,
    t.PartView,
    t.GetField,
    t.FieldView,
    t.BindMethod,
)


def lower(
    typed: t.Typed,
    *,
    name: str | None = None,
    index_bits: int = 32,
    int32_arguments: frozenset[int] = frozenset(),
) -> Kernel:
    """The kernel of a typed function.

    `index_bits` is the width of length, offset, shape and stride parameters. `int32_arguments` are
    the positions of Python ints that travel as int32. Raises `CompileError`s.
    """
    index = INT32 if index_bits == 32 else INT64
    program = Program(index, _lower_helper)
    scope = Scope()
    with deep_recursion():
        params, arguments = _kernel_parameters(typed, program, int32_arguments)
        _, body = _lower_function(typed, program, scope, arguments)
        check_scopes(body)
        if scope.dynamic_length is not None:
            params.append(ParamDecl(scope.dynamic_length, None, DynamicSharedLength()))
        kernel = Kernel(
            name or typed.name,
            body,
            tuple(params),
            locals=(*program.declared, *scope.locals),
            functions=tuple(program.functions),
            index_bits=index_bits,
            span=typed.source.span_of_definition(),
        )
        kernel = fold_temporaries(kernel, program.ids.temporaries)
        return hinted(renumbered(with_pragmas(kernel, program.loop_hints)), current())


def is_pure(typed: t.Typed, statement: ir.Assign) -> bool:
    """Whether an assignment to a temporary may be part of an expression."""
    operation = typed.operations.get(statement.value)
    if operation is not None and isinstance(operation.what, t.Complex):
        return operation.what.name in complexes.PURE
    if operation is not None:
        return isinstance(operation.what, _PURE)
    value = statement.value
    return not isinstance(value, ir.Expr) or value.op in ("cast", "build_tuple", "getattr", "call")


def _lower_function(
    typed: t.Typed,
    program: Program,
    scope: Scope,
    arguments: list[Value],
    result: ElementType = UNIT,
) -> tuple[FunctionLowering, Body]:
    structured = structure(
        typed.function_ir, lambda statement: is_pure(typed, statement), typed.source.tree
    )
    first = program.ids.next
    lowering = FunctionLowering(typed, structured, program, scope, arguments)
    lowering.result = result
    with lowering.emitter.body() as collected:
        lower_regions(lowering, structured.regions)

    def is_own(var: Var) -> bool:
        given = (*(hoisted.param for hoisted in scope.hoisted), scope.dynamic_length)
        return var.id >= first and isinstance(var.type, Scalar) and var not in given

    return lowering, declare(_without_last_return(tuple(collected)), program.ids, is_own)


def _without_last_return(body: Body) -> Body:
    """A body that ends anyway needs no return without a value there."""
    while body and isinstance(body[-1], Return) and body[-1].value is None:
        body = body[:-1]
    return body


# --- parameters -----------------------------------------------------------------------------------


def _kernel_parameters(
    typed: t.Typed, program: Program, int32_arguments: frozenset[int]
) -> tuple[list[ParamDecl], list[Value]]:
    params: list[ParamDecl] = []
    arguments: list[Value] = []
    for parameter in typed.parameters:
        type = parameter.type
        if isinstance(type, types.Array):
            made = array_parameter(
                program.ids, parameter.name, type, parameter.index, program.index, False
            )
            params += [
                ParamDecl(var, array_info(type, var) if var in made.bases else None, role)
                for var, role in made.params
            ]
            arguments.append(made.view)
        elif is_number(type) and constant_of(type) is None:
            scalar = _scalar_parameter(typed, parameter, int32_arguments)
            var = program.ids.var(parameter.name, scalar)
            params.append(ParamDecl(var, None, UserArgument(parameter.index)))
            arguments.append(Cell(cast(VarRef(var), scalar_of(type))))
        elif is_complex(type):
            params += _complex_parameters(typed, parameter, program)
            made_parts = (Cell(VarRef(param.var)) for param in params[-2:])
            arguments.append(ComplexValue(tuple(made_parts)))
        elif isinstance(type, RecordType):
            params += _record_parameters(typed, parameter, program)
            numbers = params[len(params) - len(record_numbers(type.root)) :]
            arguments.append(TupleValue(tuple(Cell(VarRef(param.var)) for param in numbers)))
        elif isinstance(type, types.BaseTuple):
            raise UnsupportedConstruct(
                f"the argument {parameter.name!r} of a kernel is a tuple: pass its items"
            )
        else:
            arguments.append(NOTHING)
    return params, arguments


def _scalar_parameter(
    typed: t.Typed, parameter: t.Parameter, int32_arguments: frozenset[int]
) -> Scalar:
    """The type a scalar argument travels as; a Python float is float32 where nothing needs more."""
    type = parameter.type
    if isinstance(type, WeakInt) and parameter.index in int32_arguments:
        return INT32
    if isinstance(type, WeakFloat) and _meets_only(typed, parameter.index, types.float32):
        return Scalar.FLOAT32
    return scalar_of(type)


def _complex_parameters(
    typed: t.Typed, parameter: t.Parameter, program: Program
) -> list[ParamDecl]:
    """The parameters of the two parts; of a Python complex, float32 where nothing needs more."""
    scalar = complexes.complex_parts(parameter.type)[0]
    if isinstance(parameter.type, WeakComplex) and _meets_only(
        typed, parameter.index, types.complex64
    ):
        scalar = Scalar.FLOAT32
    names = (f"{parameter.name}_{name}" for name in PART_NAMES)
    return [
        ParamDecl(program.ids.var(name, scalar), None, PartOf(parameter.index, part))
        for part, name in enumerate(names)
    ]


def _record_parameters(typed: t.Typed, parameter: t.Parameter, program: Program) -> list[ParamDecl]:
    """A parameter for every number of a record."""
    words = records.words(parameter.name, parameter.type.root)
    if len(words) > records.MOST_PASSED:
        message = (
            f"a record of {len(words)} numbers as the argument {parameter.name!r} "
            f"(at most {records.MOST_PASSED})"
        )
        hint = f"pass an array of one record, as in numpy.array([{parameter.name}])"
        place = typed.source.span_of_definition()
        raise UnsupportedConstruct(Diagnostic(UnsupportedConstruct, message, place, hint))
    return [
        ParamDecl(program.ids.var(word, scalar), None, NumberOf(parameter.index, number))
        for number, (word, scalar) in enumerate(words)
    ]


def _meets_only(typed: t.Typed, argument: int, wanted: types.Type) -> bool:
    """Whether every use of an argument is as an operand of one type."""
    statements = [s for block in typed.function_ir.blocks.values() for s in block.body]
    names = {
        s.target.name
        for s in statements
        if isinstance(s, ir.Assign) and isinstance(s.value, ir.Arg) and s.value.index == argument
    }
    met = False
    for statement in statements:
        if not names.intersection(read_by_statement(statement)):
            continue
        key = statement.value if isinstance(statement, ir.Assign) else statement
        operation = typed.operations.get(key)
        if operation is None or isinstance(operation.what, t.Convert):
            return False
        for used, type in zip(operation.arguments, operation.operands, strict=False):
            if isinstance(used, ir.Var) and used.name in names:
                if type != wanted:
                    return False
                met = True
    return met


# --- helpers --------------------------------------------------------------------------------------


def _lower_helper(program: Program, callee: t.Typed, offsets: tuple[bool, ...]) -> Helper:
    """Lower a device function; `offsets` says which arrays get an offset whatever their layout."""
    name = program.unique(callee.name if callee.given is None else callee.given.name)
    params: list[Var] = []
    arguments: list[Value] = []
    places: dict[str, str] = {}
    for parameter, with_offset in zip(callee.parameters, offsets, strict=True):
        first = len(params)
        made = _helper_argument(program, parameter.name, parameter.type, params, with_offset)
        places[parameter.name] = texts.place_of(made, params, first)
        arguments.append(made)
    scope = Scope(is_kernel=False)
    results = leaves(callee.result)
    result: ElementType = UNIT
    if results:
        result = results[0] if is_number(callee.result) else TupleType(results)
    _, body = _lower_function(callee, program, scope, arguments, result)
    if callee.given is not None:
        body = texts.given(callee.given, body, places)
    params += [hoisted.param for hoisted in scope.hoisted]
    if scope.dynamic_length is not None:
        params.append(scope.dynamic_length)
    span = callee.source.span_of_definition()
    program.functions.append(
        HelperFunction(
            name, tuple(params), result, body, tuple(scope.locals), callee.inline, span=span
        )
    )
    return Helper(name, results, scope.hoisted, scope.dynamic_length is not None)


def _helper_argument(
    program: Program, name: str, type: types.Type, params: list[Var], with_offset: bool
) -> Value:
    """Append the parameters that an argument becomes; the value that stands for it."""
    if isinstance(type, types.Array):
        made = array_parameter(program.ids, name, type, 0, INT64, with_offset)
        params += [var for var, _ in made.params]
        return made.view
    if isinstance(type, types.BaseTuple):
        return TupleValue(
            tuple(
                _helper_argument(program, f"{name}{k}", item, params, False)
                for k, item in enumerate(type.types)
            )
        )
    if isinstance(type, RecordType):
        numbers = [program.ids.var(word, part) for word, part in records.words(name, type.root)]
        params += numbers
        return TupleValue(tuple(Cell(VarRef(var)) for var in numbers))
    if is_number(type) and constant_of(type) is None:
        var = program.ids.var(name, scalar_of(type))
        params.append(var)
        return Cell(VarRef(var))
    if is_complex(type):
        pairs = zip(PART_NAMES, complexes.complex_parts(type), strict=True)
        params += [program.ids.var(f"{name}_{part}", scalar) for part, scalar in pairs]
        return ComplexValue(tuple(Cell(VarRef(var)) for var in params[-2:]))
    return NOTHING


__all__ = ["is_pure", "lower"]
