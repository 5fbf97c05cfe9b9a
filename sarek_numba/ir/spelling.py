"""How names, types, constants and expressions are written in the text of IR: see `ir.text`."""

from __future__ import annotations

import json
import math
import re
from typing import assert_never

from sarek_numba.ir.nodes import (
    App,
    ArrayCreate,
    ArrayLen,
    ArrayRead,
    ArrayReadExpr,
    Binary,
    BinOp,
    Cast,
    Const,
    Coordinate,
    Expr,
    Field,
    IfExpr,
    Index,
    Intrinsic,
    LElement,
    LElementExpr,
    LField,
    LValue,
    LVar,
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
    constant,
)
from sarek_numba.ir.types import (
    FLOAT32,
    FLOAT64,
    INT64,
    PART_NAMES,
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
from sarek_numba.ir.walk import deep_recursion

SCALAR_NAMES = {
    Scalar.BOOL: "bool",
    Scalar.INT8: "i8",
    Scalar.INT16: "i16",
    Scalar.INT32: "i32",
    Scalar.INT64: "i64",
    Scalar.UINT8: "u8",
    Scalar.UINT16: "u16",
    Scalar.UINT32: "u32",
    Scalar.UINT64: "u64",
    Scalar.FLOAT16: "f16",
    Scalar.BFLOAT16: "bf16",
    Scalar.FLOAT32: "f32",
    Scalar.FLOAT64: "f64",
}

# How tightly operators bind; equal ones associate to the left, comparisons not at all.
PRECEDENCE = {
    BinOp.OR: 1,
    BinOp.AND: 2,
    BinOp.EQ: 4,
    BinOp.NE: 4,
    BinOp.LT: 4,
    BinOp.LE: 4,
    BinOp.GT: 4,
    BinOp.GE: 4,
    BinOp.BITOR: 5,
    BinOp.BITXOR: 6,
    BinOp.BITAND: 7,
    BinOp.SHL: 8,
    BinOp.SHR: 8,
    BinOp.ADD: 9,
    BinOp.SUB: 9,
    BinOp.MUL: 10,
    BinOp.DIV: 10,
    BinOp.MOD: 10,
    BinOp.FLOORDIV: 10,
    BinOp.FLOORMOD: 10,
}
COMPARISON_PRECEDENCE = 4
UNARY_PRECEDENCE = 11

AXES = "xyz"

# Words that can stand where a name can; the others need no quoting as names.
KEYWORDS = frozenset(
    """
    and array assert at atomic barrier bits block break call case compare const continue coopmat
    dynamic else expr false fence for function if inf len let local match nan native new not or
    param pass pragma print record return seq set shared true tuple var variant warp
    warp_barrier while wrap _
    """.split()
)
RESERVED = KEYWORDS | set(SCALAR_NAMES.values()) | {place.value for place in Coordinate}

BARE_NAME = r"[^\W\d]\w*"
_BARE = re.compile(BARE_NAME)

# Stand around a marked node until its line is complete; both are private-use characters.
MARK, MARK_END = "\ue000", "\ue001"


def name_text(name: str) -> str:
    """A name as it stands in the text: quoted where it is a word of the language."""
    if _BARE.fullmatch(name) and name not in RESERVED:
        return name
    return "`" + json.dumps(name)[1:-1].replace("`", "\\u0060") + "`"


def type_text(type: ElementType) -> str:
    match type:
        case Scalar():
            return SCALAR_NAMES[type]
        case Unit():
            return "unit"
        case Vec(element=element):
            return f"vec<{type_text(element)}>"
        case Array(element=element, space=space):
            return f"array<{type_text(element)}, {space.value}>"
        case TupleType(items=items):
            return f"tuple<{', '.join(map(type_text, items))}>"
        case Record(name=name, fields=fields, offsets=None):
            return f"record {fields_text(name, fields)}"
        case Record():
            return f"record {_placed_text(type)}"
        case FixedArray(element=element, shape=shape):
            return f"fixed<{', '.join([type_text(element), *map(str, shape)])}>"
        case Variant(name=name, constructors=constructors):
            return f"variant {constructors_text(name, constructors)}"
        case _:
            assert_never(type)


def _placed_text(record: Record) -> str:
    """A record that states where its fields are, and its size."""
    assert record.offsets is not None
    inner = ", ".join(
        f"{name_text(field)} at {offset}: {type_text(type)}"
        for (field, type), offset in zip(record.fields, record.offsets, strict=True)
    )
    return f"{name_text(record.name)}({inner}) @ {record.size}"


def fields_text(name: str, fields: tuple[tuple[str, ElementType], ...]) -> str:
    inner = ", ".join(f"{name_text(field)}: {type_text(type)}" for field, type in fields)
    return f"{name_text(name)}({inner})"


def constructors_text(
    name: str, constructors: tuple[tuple[str, tuple[ElementType, ...]], ...]
) -> str:
    inner = ", ".join(
        f"{name_text(constructor)}({', '.join(map(type_text, payload))})"
        for constructor, payload in constructors
    )
    return f"{name_text(name)}({inner})"


def constant_text(const: Const) -> str:
    """A constant, exact: decimal digits that give its bits, or the bits of a NaN."""
    type = const.type
    name = SCALAR_NAMES[type]
    if type is Scalar.BOOL:
        return "true" if const.bits else "false"
    if not type.is_float:
        return f"{const.value}" if type is INT64 else f"{const.value}{name}"
    if type not in (FLOAT32, FLOAT64):
        return f"bits.{name}({const.bits:#x})"
    value = float(const.value)
    if math.isnan(value):
        return f"nan.{name}({const.bits:#x})"
    if math.isinf(value):
        return f"inf.{name}" if value > 0 else f"-inf.{name}"
    return _digits(const, value) + (name if type is FLOAT32 else "")


def _digits(const: Const, value: float) -> str:
    """The fewest decimal digits that round to the constant's bits."""
    digits = repr(value)
    if const.type is FLOAT32:
        shorter = (f"{value:.{count}g}" for count in range(6, 10))
        digits = next(d for d in shorter if constant(FLOAT32, float(d)).bits == const.bits)
    return digits if any(mark in digits for mark in ".e") else digits + ".0"


class ExprPrinter:
    """Prints expressions; `Printer` adds statements, declarations and numbers of variables."""

    def __init__(self, mark: object = None) -> None:
        self.mark = mark

    def use(self, var: Var) -> str:
        return name_text(var.name)

    def declare(self, var: Var, mutable: bool = False) -> str:
        return f"{name_text(var.name)}: {type_text(var.type)}"

    def expr(self, expr: Expr, floor: int = 0) -> str:
        """`expr`, in parentheses where it binds less tightly than `floor`."""
        shown = self._expr(expr, floor)
        return f"{MARK}{shown}{MARK_END}" if expr is self.mark else shown

    def _expr(self, expr: Expr, floor: int) -> str:
        match expr:
            case Const():
                return constant_text(expr)
            case VarRef(var=var):
                return self.use(var)
            case Binary():
                return self._binary(expr, floor)
            case Unary():
                return self._unary(expr, floor)
            case ArrayRead(array=array, index=index):
                return f"{self.use(array)}[{self.expr(index)}]"
            case Cast(type=type, operand=operand, weak=weak):
                return f"{SCALAR_NAMES[type]}{'.w' * weak}({self.expr(operand)})"
            case Index(coordinate=coordinate, axis=axis, type=type):
                width = "" if type is INT64 else f".{SCALAR_NAMES[type]}"
                letter = AXES[axis] if axis in range(3) else str(axis)
                return f"{coordinate.value}.{letter}{width}"
            case Subscript(array=array, axis=axis, index=index, extent=extent):
                word = "wrap" if expr.wrap else "at"
                word += "" if expr.part is None else f".{PART_NAMES[expr.part]}"
                place = f"{self.use(array)}, {axis}"
                return f"{word}({place}, {self.expr(index)}, {self.expr(extent)})"
            case Intrinsic(path=path, name=name, args=args, type=type):
                name = ".".join(map(name_text, (*path, name)))
                return f"{name}.{SCALAR_NAMES[type]}({self.list(args)})"
            case IfExpr(condition=condition, then=then, orelse=orelse):
                arms = f"{self.expr(then)} : {self.expr(orelse)}"
                return f"({self.expr(condition)} ? {arms})"
            case App(function=function, args=args, type=result):
                return f"@{name_text(function)}:{type_text(result)}({self.list(args)})"
            case ArrayLen(array=array):
                return f"len({self.use(array)})"
            case _:
                return self._compound(expr)

    def _compound(
        self,
        expr: ArrayReadExpr
        | Field
        | TupleExpr
        | RecordExpr
        | VariantExpr
        | ArrayCreate
        | MatchExpr,
    ) -> str:
        match expr:
            case ArrayReadExpr(base=base, index=index):
                return f"({self.expr(base)})[{self.expr(index)}]"
            case Field(record=record, name=name):
                bare = isinstance(record, VarRef | Field | ArrayRead)
                shown = self.expr(record) if bare else f"({self.expr(record)})"
                return f"{shown}.{name_text(name)}"
            case TupleExpr(items=items):
                return f"tuple({self.list(items)})"
            case RecordExpr(name=name, fields=fields):
                inner = (f"{name_text(field)}={self.expr(value)}" for field, value in fields)
                return f"record {name_text(name)}({', '.join(inner)})"
            case VariantExpr(type=type, constructor=constructor, args=args):
                full = f"{name_text(type)}.{name_text(constructor)}"
                return f"variant {full}({self.list(args)})"
            case ArrayCreate(element=element, size=size, space=space):
                return f"new {space.value} {type_text(element)}[{self.expr(size)}]"
            case MatchExpr(scrutinee=scrutinee, cases=cases):
                arms = [f"case {self.pattern(p)} {{ {self.expr(value)} }}" for p, value in cases]
                return f"match {self.expr(scrutinee)} {{ {' '.join(arms)} }}"
            case _:
                assert_never(expr)

    def _binary(self, expr: Binary, floor: int) -> str:
        level = PRECEDENCE[expr.op]
        left = self.expr(expr.left, level + (level == COMPARISON_PRECEDENCE))
        right = self.expr(expr.right, level + 1)
        shown = f"{left} {expr.op.value}{_flags(expr)} {right}"
        return f"({shown})" if level < floor else shown

    def _unary(self, expr: Unary, floor: int) -> str:
        # a minus before digits would be read as a negative constant
        bare = isinstance(expr.operand, VarRef | ArrayRead)
        operand = self.expr(expr.operand) if bare else f"({self.expr(expr.operand)})"
        space = " " if expr.op is UnOp.NOT or expr.weak or expr.unguarded else ""
        shown = f"{expr.op.value}{_flags(expr)}{space}{operand}"
        return f"({shown})" if floor > UNARY_PRECEDENCE else shown

    def list(self, exprs: tuple[Expr, ...]) -> str:
        return ", ".join(map(self.expr, exprs))

    def pattern(self, pattern: Pattern) -> str:
        if not isinstance(pattern, PConstr):
            return "_"
        return f"{name_text(pattern.constructor)}({', '.join(map(self.declare, pattern.bound))})"

    def lvalue(self, target: LValue) -> str:
        match target:
            case LVar(var=var):
                return self.use(var)
            case LElement(array=array, index=index):
                return f"{self.use(array)}[{self.expr(index)}]"
            case LElementExpr(base=base, index=index):
                return f"({self.expr(base)})[{self.expr(index)}]"
            case LField(record=record, name=name):
                return f"{self.lvalue(record)}.{name_text(name)}"
            case _:
                assert_never(target)


def _flags(expr: Binary | Unary) -> str:
    if not (expr.weak or expr.unguarded):
        return ""
    return "." + "w" * expr.weak + "u" * expr.unguarded


def expr_text(expr: Expr) -> str:
    """The text of one expression, variables by name alone."""
    with deep_recursion():
        return ExprPrinter().expr(expr)
