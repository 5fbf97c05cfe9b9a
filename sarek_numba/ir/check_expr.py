"""The rules that expressions keep: the part of `ir.verify` that works without statements.

`ExprChecker.type` gives the type of an expression, or raises `Broken` with the guilty node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from sarek_numba.ir.intrinsics import INTRINSICS
from sarek_numba.ir.nodes import (
    COMPARISONS,
    LOGICAL,
    SHIFTS,
    App,
    ArrayCreate,
    ArrayLen,
    ArrayRead,
    ArrayReadExpr,
    Binary,
    BinOp,
    Cast,
    Const,
    Expr,
    Field,
    HelperFunction,
    IfExpr,
    Index,
    Intrinsic,
    Kernel,
    MatchExpr,
    Pattern,
    PConstr,
    RecordExpr,
    Subscript,
    TupleExpr,
    Unary,
    UnOp,
    Var,
    VariantExpr,
    VarRef,
)
from sarek_numba.ir.spelling import type_text
from sarek_numba.ir.types import (
    BOOL,
    HALVES,
    INT32,
    INT64,
    Array,
    ElementType,
    Kind,
    Record,
    Scalar,
    TupleType,
    Variant,
    Vec,
)
from sarek_numba.ir.typing import variants_of

_NUMBERS = frozenset({Kind.SIGNED, Kind.UNSIGNED, Kind.FLOAT})
_INTEGERS = frozenset({Kind.SIGNED, Kind.UNSIGNED})
_BITS = _INTEGERS | {Kind.BOOL}
_ALL = _NUMBERS | _BITS
_BITWISE = frozenset({BinOp.BITAND, BinOp.BITOR, BinOp.BITXOR})

BINARY_KINDS = {
    op: frozenset({Kind.BOOL})
    if op in LOGICAL
    else _INTEGERS
    if op in SHIFTS
    else _BITS
    if op in _BITWISE
    else _ALL
    if op in COMPARISONS
    else _NUMBERS
    for op in BinOp
}
UNARY_KINDS = {
    UnOp.NEG: _NUMBERS,
    UnOp.NOT: frozenset({Kind.BOOL}),
    UnOp.BITNOT: _BITS,
}


class Broken(Exception):
    """A rule is broken at `node`."""

    def __init__(self, node: object, message: str) -> None:
        self.node = node
        super().__init__(message)


class ExprChecker:
    """Checks expressions against the variables in scope and the helpers declared so far."""

    def __init__(self, kernel: Kernel) -> None:
        self.scope: dict[int, Var] = {}
        self.functions: dict[str, HelperFunction] = {}
        self.impure: set[str] = set()
        self.records = {name: Record(name, fields) for name, fields in kernel.types}
        self.variants = variants_of(kernel)
        self.ever_declared: set[int] = set()

    # --- variables ------------------------------------------------------------------------------

    def declare(self, var: Var, node: object) -> None:
        if var.id in self.ever_declared:
            raise Broken(node, f"variable id {var.id} ({var.name}) is declared twice")
        self.ever_declared.add(var.id)
        self.scope[var.id] = var

    def use(self, var: Var, node: object) -> ElementType:
        known = self.scope.get(var.id)
        if known is None:
            raise Broken(node, f"{var.name} is used outside its scope")
        if known is not var and known != var:
            raise Broken(node, f"{var.name} differs from its declaration")
        return var.type

    def use_array(self, array: Var, node: object) -> ElementType:
        """The element type of an array in scope."""
        type = self.use(array, node)
        if not isinstance(type, Vec | Array):
            raise Broken(node, f"{array.name} is no array")
        return type.element

    # --- types ----------------------------------------------------------------------------------

    def scalar(self, expr: Expr) -> Scalar:
        type = self.type(expr)
        if not isinstance(type, Scalar):
            raise Broken(expr, f"a scalar is wanted, not {type_text(type)}")
        return type

    def integer(self, expr: Expr) -> Scalar:
        type = self.scalar(expr)
        if not type.is_integer:
            raise Broken(expr, f"an integer is wanted, not {type.value}")
        return type

    def expect(self, expr: Expr, wanted: ElementType, what: str) -> None:
        type = self.type(expr)
        if type is not wanted and type != wanted:
            raise Broken(expr, f"{what} is {type_text(type)}, not {type_text(wanted)}")

    def type(self, expr: Expr) -> ElementType:
        match expr:
            case VarRef(var=var):
                return self.use(var, expr)
            case Const():
                return self.constant(expr)
            case Binary():
                return self.binary(expr)
            case ArrayRead(array=array, index=index):
                self.integer(index)
                return self.use_array(array, expr)
            case Cast(type=type, operand=operand, weak=weak):
                source = self.integer(operand) if weak else self.scalar(operand)
                assert isinstance(source, Scalar)
                return type
            case Unary():
                return self.unary(expr)
            case Index(axis=axis, type=type):
                if axis not in range(3) or type not in (INT32, INT64):
                    raise Broken(expr, "a coordinate has axis 0, 1 or 2 and type int32 or int64")
                return type
            case Subscript(array=array, index=index, extent=extent):
                self.use_array(array, expr)
                type = self.integer(index)
                self.expect(extent, type, "the extent of a subscript")
                return type
            case Intrinsic():
                return self.intrinsic(expr)
            case IfExpr(condition=condition, then=then, orelse=orelse):
                self.expect(condition, BOOL, "a condition")
                chosen = self.type(then)
                self.expect(orelse, chosen, "the other arm")
                return chosen
            case App(function=function, args=args, type=result):
                helper = self.call(expr, function, args)
                if helper.result != result or not isinstance(result, Scalar):
                    raise Broken(expr, f"{function} does not give the scalar that is stated")
                if function in self.impure:
                    raise Broken(expr, f"{function} has effects and cannot stand in an expression")
                return result
            case ArrayLen(array=array):
                self.use_array(array, expr)
                return INT64
            case _:
                return self.compound(expr)

    def constant(self, const: Const) -> Scalar:
        if const.type in HALVES:
            raise Broken(const, f"no constant has type {const.type.value}")
        limit = 2 if const.type is BOOL else 1 << const.type.bits
        if not 0 <= const.bits < limit:
            raise Broken(const, f"{const.bits} is no bit pattern of {const.type.value}")
        return const.type

    def binary(self, expr: Binary) -> Scalar:
        op = expr.op
        left, right = self.scalar(expr.left), self.scalar(expr.right)
        if op in SHIFTS:
            if not right.is_integer:
                raise Broken(expr, f"the count of a shift is {right.value}")
        elif left is not right:
            raise Broken(expr, f"operands of {op.value} are {left.value} and {right.value}")
        self.operand_kind(expr, op.value, left, BINARY_KINDS[op], expr.weak)
        return BOOL if op in COMPARISONS else left

    def unary(self, expr: Unary) -> Scalar:
        type = self.scalar(expr.operand)
        self.operand_kind(expr, expr.op.value, type, UNARY_KINDS[expr.op], expr.weak)
        return type

    def operand_kind(
        self, expr: Expr, op: str, type: Scalar, kinds: frozenset[Kind], weak: bool
    ) -> None:
        if type.kind not in kinds or type in HALVES:
            raise Broken(expr, f"{op} has no meaning for {type.value}")
        if weak and not type.is_integer:
            raise Broken(expr, f"{op} on {type.value} cannot be weak")

    def intrinsic(self, expr: Intrinsic) -> Scalar:
        info = INTRINSICS.get(expr.name)
        if info is None:
            raise Broken(expr, f"there is no function {expr.name}")
        if len(expr.args) != info.arity:
            raise Broken(expr, f"{expr.name} takes {info.arity} arguments, not {len(expr.args)}")
        first = self.scalar(expr.args[0])
        for arg in expr.args[1:]:
            self.expect(arg, first, f"an argument of {expr.name}")
        if first.kind not in info.kinds or (first in HALVES and expr.name != "reinterpret"):
            raise Broken(expr, f"{expr.name} has no meaning for {first.value}")
        wanted = {None: first, "bool": BOOL, "given": expr.type}[info.result]
        if expr.type is not wanted:
            raise Broken(expr, f"{expr.name} gives {wanted.value}, not {expr.type.value}")
        if info.name == "reinterpret" and expr.type.bits != first.bits:
            raise Broken(expr, f"{first.value} and {expr.type.value} differ in width")
        return expr.type

    def call(self, node: object, name: str, args: Sequence[Expr]) -> HelperFunction:
        helper = self.functions.get(name)
        if helper is None:
            raise Broken(node, f"function {name} is not declared before it is called")
        if len(args) != len(helper.params):
            raise Broken(node, f"{name} takes {len(helper.params)} arguments, not {len(args)}")
        for param, arg in zip(helper.params, args, strict=True):
            self.expect(arg, param.type, f"argument {param.name} of {name}")
            if isinstance(param.type, Vec | Array) and not isinstance(arg, VarRef):
                raise Broken(arg, f"argument {param.name} of {name} is no array variable")
        return helper

    # --- records and variants -------------------------------------------------------------------

    def compound(
        self,
        expr: ArrayReadExpr
        | Field
        | TupleExpr
        | RecordExpr
        | VariantExpr
        | ArrayCreate
        | MatchExpr,
    ) -> ElementType:
        match expr:
            case ArrayReadExpr(base=base, index=index):
                self.integer(index)
                type = self.type(base)
                if not isinstance(type, Vec | Array):
                    raise Broken(base, f"{type_text(type)} is no array")
                return type.element
            case Field(record=record, name=name):
                return self.field(expr, self.type(record), name)
            case TupleExpr(items=items):
                return TupleType(tuple(map(self.type, items)))
            case RecordExpr(name=name, fields=fields):
                known = self.records.get(name)
                made = Record(name, tuple((field, self.type(value)) for field, value in fields))
                if known != made:
                    raise Broken(expr, f"the fields are not those of record {name}")
                return made
            case VariantExpr(type=name, constructor=constructor, args=args):
                variant = self.variants.get(name)
                payload = None if variant is None else _payload(variant, constructor)
                if variant is None or payload != tuple(map(self.type, args)):
                    raise Broken(expr, f"{name} has no constructor {constructor} of this payload")
                return variant
            case ArrayCreate():
                raise Broken(expr, "an array is created only by a declaration or a let")
            case MatchExpr(scrutinee=scrutinee, cases=cases):
                matched = self.type(scrutinee)
                types: list[ElementType] = []
                for pattern, value in cases:
                    bound = self.pattern(expr, matched, pattern)
                    types.append(self.type(value))
                    self.leave(bound)
                if not types or any(type != types[0] for type in types):
                    raise Broken(expr, "the cases differ in type")
                return types[0]
            case _:
                assert_never(expr)

    def field(self, node: object, type: ElementType, name: str) -> ElementType:
        fields: Mapping[str, ElementType] = dict(type.fields) if isinstance(type, Record) else {}
        if name not in fields:
            raise Broken(node, f"{type_text(type)} has no field {name}")
        return fields[name]

    def pattern(self, node: object, type: ElementType, pattern: Pattern) -> tuple[Var, ...]:
        """The variables that a pattern binds, now in scope."""
        if not isinstance(type, Variant):
            raise Broken(node, f"{type_text(type)} cannot be matched")
        if not isinstance(pattern, PConstr):
            return ()
        if _payload(type, pattern.constructor) != tuple(var.type for var in pattern.bound):
            raise Broken(node, f"{type.name} has no constructor {pattern.constructor} of this form")
        for var in pattern.bound:
            self.declare(var, node)
        return pattern.bound

    def leave(self, declared: Sequence[Var]) -> None:
        for var in declared:
            del self.scope[var.id]


def _payload(variant: Variant, constructor: str) -> tuple[ElementType, ...] | None:
    return dict(variant.constructors).get(constructor)
