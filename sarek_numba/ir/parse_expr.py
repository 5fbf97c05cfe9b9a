"""Reads expressions: the part of `ir.parse` below statements."""

from __future__ import annotations

from sarek_numba.ir.lexer import SCALARS, Reader
from sarek_numba.ir.nodes import (
    App,
    ArrayCreate,
    ArrayLen,
    ArrayRead,
    ArrayReadExpr,
    Binary,
    BinOp,
    Cast,
    Coordinate,
    Expr,
    Field,
    IfExpr,
    Index,
    Intrinsic,
    MatchExpr,
    Pattern,
    PConstr,
    PWild,
    RecordExpr,
    Subscript,
    TupleExpr,
    Unary,
    UnOp,
    Var,
    VariantExpr,
    VarRef,
)
from sarek_numba.ir.spelling import AXES, PRECEDENCE
from sarek_numba.ir.types import (
    INT64,
    PART_NAMES,
    MemSpace,
)

BINARY = {op.value: op for op in BinOp}
UNARY = {op.value: op for op in UnOp}
COORDINATES = {place.value: place for place in Coordinate}


class ExprReader(Reader):
    """Reads expressions by precedence climbing."""

    def expr(self, floor: int = 1) -> Expr:
        left = self.prefix()
        while True:
            token = self.token
            op = BINARY.get(token.text) if token.kind in ("sign", "name") else None
            if op is None or PRECEDENCE[op] < floor:
                return left
            self.place += 1
            weak, unguarded = self.flags()
            right = self.expr(PRECEDENCE[op] + 1)
            left = Binary(op, left, right, weak, unguarded)

    def flags(self) -> tuple[bool, bool]:
        word = self.word() if self.take(".") else ""
        if word not in ("", "w", "u", "wu"):
            raise self.error("w, u or wu")
        return "w" in word, "u" in word

    def prefix(self) -> Expr:
        found = self.constant()
        if found is not None:
            return found
        token = self.token
        op = UNARY.get(token.text) if token.kind in ("sign", "name") else None
        if op is None:
            return self.postfix(self.primary())
        self.place += 1
        weak, unguarded = self.flags()
        return Unary(op, self.prefix(), weak, unguarded)

    def postfix(self, expr: Expr) -> Expr:
        while self.take("."):
            expr = Field(expr, self.name())
        return expr

    def primary(self) -> Expr:
        if self.take("("):
            return self.parenthesised()
        if self.is_name():
            return self.intrinsic() if self.is_intrinsic() else self.variable()
        if self.take("@"):
            function = self.name()
            self.want(":")
            result = self.type()
            return App(function, self.arguments(), result)
        token = self.token
        if token.kind == "name":
            if token.text in SCALARS:
                return self.cast()
            if token.text in COORDINATES:
                return self.coordinate()
        self.place += 1
        match token.text:
            case "at" | "wrap":
                return self.subscript(token.text == "wrap")
            case "len":
                self.want("(")
                array = self.use()
                self.want(")")
                return ArrayLen(array)
            case "tuple":
                return TupleExpr(self.arguments())
            case "record":
                return self.record()
            case "variant":
                name = self.name()
                self.want(".")
                return VariantExpr(name, self.name(), self.arguments())
            case "new":
                space = MemSpace(self.word())
                element = self.type()
                return ArrayCreate(element, self.index(), space)
            case "match":
                return self.match()
            case _:
                self.place -= 1
                raise self.error("an expression")

    def parenthesised(self) -> Expr:
        inner = self.expr()
        if self.take("?"):
            then = self.expr()
            self.want(":")
            inner = IfExpr(inner, then, self.expr())
        self.want(")")
        return ArrayReadExpr(inner, self.index()) if self.at("[") else inner

    def variable(self) -> Expr:
        var = self.use()
        return ArrayRead(var, self.index()) if self.at("[") else VarRef(var)

    def index(self) -> Expr:
        self.want("[")
        index = self.expr()
        self.want("]")
        return index

    def arguments(self) -> tuple[Expr, ...]:
        found: list[Expr] = []
        self.want("(")
        while not self.take(")"):
            if found:
                self.want(",")
            found.append(self.expr())
        return tuple(found)

    def is_intrinsic(self) -> bool:
        """Whether a dotted name with a type at its end stands here."""
        place = self.place + 1
        while self.tokens[place].text == "." and self.tokens[place].kind == "sign":
            word = self.tokens[place + 1]
            if word.kind == "name" and word.text in SCALARS:
                return True
            place += 2
        return False

    def intrinsic(self) -> Expr:
        path = [self.name()]
        self.want(".")
        while self.is_name():
            path.append(self.name())
            self.want(".")
        type = self.scalar()
        return Intrinsic(tuple(path[:-1]), path[-1], self.arguments(), type)

    def cast(self) -> Expr:
        type = self.scalar()
        weak, _ = self.flags()
        self.want("(")
        operand = self.expr()
        self.want(")")
        return Cast(type, operand, weak)

    def coordinate(self) -> Expr:
        place = COORDINATES[self.word()]
        self.want(".")
        axis = self.integer() if self.token.kind == "number" else AXES.index(self.word())
        return Index(place, axis, self.scalar() if self.take(".") else INT64)

    def subscript(self, wrap: bool) -> Expr:
        part = PART_NAMES.index(self.word()) if self.take(".") else None
        self.want("(")
        array = self.use()
        self.want(",")
        axis = self.integer()
        self.want(",")
        index = self.expr()
        self.want(",")
        extent = self.expr()
        self.want(")")
        return Subscript(array, axis, index, extent, wrap, part)

    def record(self) -> Expr:
        name = self.name()
        fields: list[tuple[str, Expr]] = []
        self.want("(")
        while not self.take(")"):
            if fields:
                self.want(",")
            field = self.name()
            self.want("=")
            fields.append((field, self.expr()))
        return RecordExpr(name, tuple(fields))

    def match(self) -> Expr:
        scrutinee = self.expr()
        cases: list[tuple[Pattern, Expr]] = []
        self.want("{")
        while self.take("case"):
            pattern = self.pattern(within_expr=True)
            self.want("{")
            cases.append((pattern, self.expr()))
            self.want("}")
        self.want("}")
        return MatchExpr(scrutinee, tuple(cases))

    def pattern(self, within_expr: bool = False) -> Pattern:
        if self.take("_"):
            return PWild()
        constructor = self.name()
        bound: list[Var] = []
        self.want("(")
        while not self.take(")"):
            if bound:
                self.want(",")
            bound.append(self.declare(by_id_alone=within_expr))
        return PConstr(constructor, tuple(bound))
