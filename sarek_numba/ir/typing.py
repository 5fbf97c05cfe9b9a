"""The type of an expression, derived from its operands.

`type_of` is total over `Expr` for verified IR. It follows one operand at a time, so a deep tree
costs no recursion. It checks nothing; `ir.verify` does.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    Cast,
    Const,
    Expr,
    Field,
    IfExpr,
    Index,
    Intrinsic,
    Kernel,
    MatchExpr,
    RecordExpr,
    Subscript,
    TupleExpr,
    Unary,
    UnOp,
    VariantExpr,
    VarRef,
)
from sarek_numba.ir.types import (
    BOOL,
    INT64,
    Array,
    ElementType,
    FixedArray,
    Record,
    Scalar,
    TupleType,
    Unit,
    Variant,
    Vec,
)

_GIVES_BOOL = COMPARISONS | LOGICAL
_NO_VARIANTS: Mapping[str, Variant] = {}


def type_of(expr: Expr, variants: Mapping[str, Variant] = _NO_VARIANTS) -> ElementType:
    """The type of `expr`. `variants` (see `variants_of`) is needed below a `VariantExpr` only."""
    while True:
        match expr:
            case Const(type=known) | Cast(type=known) | Index(type=known):
                return known
            case VarRef(var=var):
                return var.type
            case Binary(op=op, left=left, right=right):
                if op in _GIVES_BOOL:
                    return BOOL
                # a long sum leans to the left: its right operand is the short way down
                expr = left if op in SHIFTS or isinstance(right, Binary) else right
            case ArrayRead(array=array):
                return element_of(array.type)
            case Subscript(index=index):
                expr = index
            case Intrinsic(type=known):
                return known
            case App(type=result):
                return result
            case Unary(op=op, operand=operand):
                if op is UnOp.NOT:
                    return BOOL
                expr = operand
            case IfExpr(then=then):
                expr = then
            case ArrayLen():
                return INT64
            case MatchExpr(cases=cases):
                expr = cases[0][1]
            case ArrayCreate(element=element, space=space):
                return Array(element, space)
            case ArrayReadExpr(base=base):
                return element_of(type_of(base, variants))
            case Field(record=record, name=name):
                return field_type(type_of(record, variants), name)
            case TupleExpr(items=items):
                return TupleType(tuple(type_of(item, variants) for item in items))
            case RecordExpr(name=name, fields=fields):
                return Record(name, tuple((n, type_of(value, variants)) for n, value in fields))
            case VariantExpr(type=name):
                return variants[name]


def scalar_of(expr: Expr) -> Scalar:
    """The type of an expression that verified IR promises to be scalar."""
    result = type_of(expr)
    assert isinstance(result, Scalar)
    return result


def element_of(type: ElementType) -> ElementType:
    """The element type of a `Vec` or an `Array`."""
    assert isinstance(type, Vec | Array)
    return type.element


def field_type(type: ElementType, name: str) -> ElementType:
    """The type of a field of a `Record`; raises KeyError for an unknown field."""
    assert isinstance(type, Record)
    return dict(type.fields)[name]


def record_names(type: ElementType) -> set[str]:
    """The names of the records in a type."""
    match type:
        case Record(name=name, fields=fields):
            return {name}.union(*(record_names(part) for _, part in fields))
        case FixedArray(element=element) | Vec(element=element) | Array(element=element):
            return record_names(element)
        case TupleType(items=items):
            return set[str]().union(*map(record_names, items))
        case Variant(constructors=constructors):
            parts = (part for _, payload in constructors for part in payload)
            return set[str]().union(*map(record_names, parts))
        case Scalar() | Unit():
            return set()


def variants_of(kernel: Kernel) -> dict[str, Variant]:
    """The variant types that a kernel defines, by name."""
    return {name: Variant(name, constructors) for name, constructors in kernel.variants}
