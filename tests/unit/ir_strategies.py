"""Hypothesis strategies for IR: every kind of node, in shapes that need not pass the verifier."""

from __future__ import annotations

import math
import struct

from hypothesis import strategies as st

from sarek_numba.ir.nodes import (
    App,
    ArrayCreate,
    ArrayLen,
    ArrayRead,
    ArrayReadExpr,
    Assert,
    Assign,
    Atomic,
    AtomicOp,
    Barrier,
    Binary,
    BinOp,
    Block,
    Body,
    Break,
    Call,
    Cast,
    CMDecl,
    CMFill,
    CMLoad,
    CMMulAdd,
    CMStore,
    Const,
    ConstDecl,
    Continue,
    Coopmat,
    CoopmatConfig,
    Coordinate,
    Direction,
    Empty,
    Expr,
    ExprStmt,
    FenceScope,
    Field,
    For,
    Fragment,
    HelperFunction,
    If,
    IfExpr,
    Index,
    Intrinsic,
    Kernel,
    LElement,
    LElementExpr,
    Let,
    LetMut,
    LField,
    LocalDecl,
    LVar,
    Match,
    MatchExpr,
    MemFence,
    Native,
    ParamDecl,
    PConstr,
    Pragma,
    Print,
    PWild,
    RecordExpr,
    Return,
    Seq,
    SharedDecl,
    Stmt,
    Subscript,
    TupleExpr,
    Unary,
    UnOp,
    Var,
    VariantExpr,
    VarRef,
    WarpBarrier,
    While,
)
from sarek_numba.ir.types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    UNIT,
    Array,
    ArrayInfo,
    DynamicSharedLength,
    ElementType,
    LengthOf,
    MemSpace,
    NumberOf,
    OffsetOf,
    PartOf,
    Record,
    Scalar,
    ShapeOf,
    StrideOf,
    Threads,
    TupleType,
    UserArgument,
    Variant,
    Vec,
)

# Plain names, words of the IR text, of other languages, and what is no identifier at all.
NAMES = [
    *["i", "x", "é", "if", "let", "f32", "thread_idx", "kernel", "_", "$t.1", "a`b", 'q"\n', ""],
    *[
        "offset",
        "range",
        "index",
        "readonly",
        "restrict",
        "in",
        "at",
        "else",
        "compare",
        "downto",
        "inf",
        "nan",
    ],
    *["record", "local", "param", "function", "dynamic", "array", "length", "case", "not", "and"],
]

names = st.sampled_from(NAMES) | st.text(max_size=4)
scalars = st.sampled_from(list(Scalar))
spaces = st.sampled_from(list(MemSpace))
flags = st.booleans()
small = st.integers(0, 9)


def _types() -> st.SearchStrategy[ElementType]:
    def extend(inner: st.SearchStrategy[ElementType]) -> st.SearchStrategy[ElementType]:
        payloads = st.lists(inner, max_size=2).map(tuple)
        fields = st.lists(st.tuples(names, inner), max_size=2).map(tuple)
        constructors = st.lists(st.tuples(names, payloads), max_size=2).map(tuple)
        return (
            st.builds(Array, inner, spaces)
            | st.builds(Vec, inner)
            | st.builds(TupleType, payloads)
            | st.builds(Record, names, fields)
            | st.builds(Variant, names, constructors)
        )

    return st.recursive(scalars | st.just(UNIT), extend, max_leaves=4)


types = _types()


def _number(type: Scalar) -> st.SearchStrategy[Const]:
    return st.integers(0, (1 << type.bits) - 1 if type is not BOOL else 1).map(
        lambda bits: Const(type, bits)
    )


def _float(type: Scalar, value: float) -> Const:
    formats = ("<f", "<I") if type is FLOAT32 else ("<d", "<Q")
    return Const(type, struct.unpack(formats[1], struct.pack(formats[0], value))[0])


FLOATS = [0.0, -0.0, 0.1, 1.0, -1.5, 1e20, 2.0**-149, math.inf, -math.inf, math.nan]
constants = scalars.flatmap(_number) | st.builds(
    _float, st.sampled_from([FLOAT32, FLOAT64]), st.sampled_from(FLOATS)
)


PLAIN: list[Stmt] = [Empty(), Break(), Continue(), Barrier(), WarpBarrier()]


class Supply:
    """Draws kernels whose every variable is declared before its use, as the text demands."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.vars: list[Var] = []

    def declare(self, type: ElementType | None = None) -> Var:
        used = {var.id for var in self.vars}
        number = self.draw(st.integers(0, 50).filter(lambda n: n not in used))
        type = self.draw(types) if type is None else type
        var = Var(self.draw(names), number, type, self.draw(flags))
        self.vars.append(var)
        return var

    def var(self) -> Var:
        return self.draw(st.sampled_from(self.vars))

    def exprs(self, depth: int, most: int = 3) -> tuple[Expr, ...]:
        return tuple(self.expr(depth) for _ in range(self.draw(st.integers(0, most))))

    def expr(self, depth: int) -> Expr:
        draw, down = self.draw, depth - 1
        if depth <= 0 or draw(st.integers(0, 3)) == 0:
            return self.leaf()
        kind = draw(st.integers(0, 16))
        match kind:
            case 0 | 1 | 2:
                op = draw(st.sampled_from(list(BinOp)))
                return Binary(op, self.expr(down), self.expr(down), draw(flags), draw(flags))
            case 3 | 4:
                unary = draw(st.sampled_from(list(UnOp)))
                return Unary(unary, self.expr(down), draw(flags), draw(flags))
            case 5:
                return ArrayRead(self.var(), self.expr(down))
            case 6:
                return ArrayReadExpr(self.expr(down), self.expr(down))
            case 7:
                return Field(self.expr(down), draw(names))
            case 8:
                path = tuple(draw(st.lists(names, max_size=2)))
                return Intrinsic(path, draw(names), self.exprs(down), draw(scalars))
            case 9:
                view = self.var(), draw(small), self.expr(down), self.expr(down), draw(flags)
                return Subscript(*view, draw(st.sampled_from((None, 0, 1))))
            case 10:
                return Cast(draw(scalars), self.expr(down), draw(flags))
            case 11:
                return TupleExpr(self.exprs(down))
            case 12:
                return App(draw(names), self.exprs(down), draw(types))
            case 13:
                fields = tuple((draw(names), value) for value in self.exprs(down))
                return RecordExpr(draw(names), fields)
            case 14:
                return VariantExpr(draw(names), draw(names), self.exprs(down))
            case 15:
                return IfExpr(self.expr(down), self.expr(down), self.expr(down))
            case _:
                scrutinee = self.expr(down)
                cases = tuple((self.pattern(), self.expr(down)) for _ in range(draw(small) % 3))
                return MatchExpr(scrutinee, cases)

    def leaf(self) -> Expr:
        draw = self.draw
        match draw(st.integers(0, 5)):
            case 0:
                place = draw(st.sampled_from(list(Coordinate)))
                return Index(place, draw(st.integers(0, 4)), draw(scalars))
            case 1:
                return ArrayLen(self.var())
            case 2 | 3:
                return VarRef(self.var())
            case 4:
                return ArrayCreate(draw(types), draw(constants), draw(spaces))
            case _:
                return draw(constants)

    def pattern(self) -> PConstr | PWild:
        if self.draw(flags):
            return PWild()
        bound = tuple(self.declare() for _ in range(self.draw(small) % 3))
        return PConstr(self.draw(names), bound)

    def lvalue(self, depth: int) -> LVar | LElement | LElementExpr | LField:
        match self.draw(st.integers(0, 3)):
            case 0:
                return LElement(self.var(), self.expr(depth))
            case 1:
                return LElementExpr(self.expr(depth), self.expr(depth))
            case 2 if depth > 0:
                return LField(self.lvalue(depth - 1), self.draw(names))
            case _:
                return LVar(self.var())

    def body(self, depth: int) -> Body:
        return tuple(self.stmt(depth) for _ in range(self.draw(st.integers(0, 3))))

    def stmt(self, depth: int) -> Stmt:
        draw, down = self.draw, depth - 1
        if depth > 0 and draw(flags):
            return self.nested(down)
        match draw(st.integers(0, 14)):
            case 0:
                return Let(self.declare(), self.expr(2))
            case 1:
                return LetMut(self.declare(), self.expr(2) if draw(flags) else None)
            case 2 | 3:
                return Assign(self.lvalue(2), self.expr(3))
            case 4:
                return Return(self.expr(2) if draw(flags) else None)
            case 5:
                return Call(self.results(3), draw(names), self.exprs(2))
            case 6 | 7:
                return Atomic(
                    draw(st.sampled_from(list(AtomicOp))),
                    (*self.results(1), None)[0],
                    self.var(),
                    self.expr(1),
                    self.expr(1) if draw(flags) else None,
                    self.expr(1) if draw(flags) else None,
                )
            case 8:
                if draw(flags):
                    texts = st.sampled_from(("", "x = ", "\n", 'a "quote"', "é%"))
                    return Print((draw(texts), *self.exprs(2), draw(texts)))
                return Assert(self.expr(2), draw(names))
            case 9:
                return ExprStmt(self.expr(2))
            case 10:
                return MemFence(draw(st.sampled_from(list(FenceScope))))
            case 11 | 12:
                return Coopmat(self.coopmat())
            case _:
                return draw(st.sampled_from(PLAIN))

    def results(self, most: int) -> tuple[Var, ...]:
        return tuple(self.declare() for _ in range(self.draw(st.integers(0, most))))

    def nested(self, depth: int) -> Stmt:
        draw = self.draw
        match draw(st.integers(0, 8)):
            case 0 | 1:
                return If(self.expr(2), self.body(depth), self.body(depth))
            case 2:
                return While(self.expr(2), self.body(depth))
            case 3 | 4:
                var = self.declare()
                first, stop, step = (self.expr(1) for _ in range(3))
                direction = draw(st.sampled_from(list(Direction)))
                return For(var, first, stop, step, direction, self.body(depth), draw(flags))
            case 5:
                body = self.body(depth)
                return Seq(body) if draw(flags) else Block(body)
            case 6:
                return Pragma(tuple(draw(st.lists(names, max_size=2))), self.body(depth))
            case 7:
                texts = tuple(draw(st.lists(st.tuples(names, names), max_size=2)))
                return Native(texts, self.body(depth))
            case _:
                scrutinee = self.expr(1)
                cases = tuple((self.pattern(), self.body(depth)) for _ in range(draw(small) % 3))
                return Match(scrutinee, cases)

    def coopmat(self) -> CMDecl | CMLoad | CMStore | CMMulAdd | CMFill:
        draw = self.draw
        fragment = draw(st.builds(Fragment, names, scalars, small, small, names))
        match draw(st.integers(0, 4)):
            case 0:
                return CMDecl(draw(names), fragment)
            case 1 | 2:
                make = draw(st.sampled_from([CMLoad, CMStore]))
                place = (self.var(), self.expr(1), self.expr(1), draw(flags))
                if make is CMLoad:
                    return CMLoad(draw(names), fragment, *place)
                return CMStore(draw(names), fragment, *place)
            case 3:
                config = st.builds(
                    CoopmatConfig, *[small] * 3, *[scalars] * 4, saturating=flags, scope=names
                )
                target, a, b, c = (draw(names) for _ in range(4))
                return CMMulAdd(target, a, b, c, draw(config))
            case _:
                return CMFill(draw(names), fragment, self.expr(1))

    def decl(self) -> LocalDecl | SharedDecl | ConstDecl:
        draw = self.draw
        match draw(st.integers(0, 3)):
            case 0:
                return LocalDecl(self.declare(), self.expr(1) if draw(flags) else None)
            case 1:
                size = self.expr(1) if draw(flags) else None
                return SharedDecl(self.declare(), draw(types), size, draw(small))
            case _:
                element = draw(scalars)
                bits = tuple(draw(_number(element)).bits for _ in range(draw(small) % 4))
                return ConstDecl(self.declare(), element, bits)

    def param(self) -> ParamDecl:
        draw = self.draw
        info = st.builds(
            ArrayInfo, types, spaces, small, st.sampled_from("CFA"), flags, restrict=flags
        )
        role = (
            st.builds(UserArgument, small, st.none() | small)
            | st.builds(LengthOf, small)
            | st.builds(OffsetOf, small)
            | st.builds(ShapeOf, small, small)
            | st.builds(StrideOf, small, small)
            | st.builds(PartOf, small, st.sampled_from((0, 1)))
            | st.builds(NumberOf, small, small)
            | st.just(DynamicSharedLength())
            | st.builds(Threads, small)
        )
        return ParamDecl(self.declare(), draw(info) if draw(flags) else None, draw(role))

    def helper(self) -> HelperFunction:
        params = self.results(2)
        locals = tuple(LocalDecl(self.declare()) for _ in range(self.draw(small) % 2))
        inline = self.draw(st.booleans())
        return HelperFunction(
            self.draw(names), params, self.draw(types), self.body(1), locals, inline
        )

    def kernel(self) -> Kernel:
        draw = self.draw
        params = tuple(self.param() for _ in range(1 + draw(small) % 3))
        locals = tuple(self.decl() for _ in range(draw(small) % 4))
        fields = st.lists(st.tuples(names, types), max_size=2).map(tuple)
        payload = st.lists(types, max_size=2).map(tuple)
        constructors = st.lists(st.tuples(names, payload), max_size=2).map(tuple)
        return Kernel(
            draw(names),
            functions=tuple(self.helper() for _ in range(draw(small) % 2)),
            body=self.body(3),
            params=params,
            locals=locals,
            types=tuple(draw(st.lists(st.tuples(names, fields), max_size=1))),
            variants=tuple(draw(st.lists(st.tuples(names, constructors), max_size=1))),
            index_bits=draw(st.sampled_from([32, 64])),
        )


@st.composite
def kernels(draw: st.DrawFn) -> Kernel:
    """Kernels of every node, each variable declared in the text before it is used."""
    return Supply(draw).kernel()
