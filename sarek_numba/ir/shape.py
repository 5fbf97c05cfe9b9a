"""The shape of every IR node: what is directly within it, and how to rebuild it.

`operands` and `rebuild` are for expressions, `expressions_of`, `bodies_of` and their counterparts
for statements. A rebuilt node is the same object where nothing changed; a new one keeps the span of
the old. `ir.walk` is written with these alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from sarek_numba.ir.nodes import (
    App,
    ArrayCreate,
    ArrayLen,
    ArrayRead,
    ArrayReadExpr,
    Assert,
    Assign,
    Atomic,
    Barrier,
    Binary,
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
    Continue,
    Coopmat,
    CoopmatOp,
    Empty,
    Expr,
    ExprStmt,
    Field,
    For,
    If,
    IfExpr,
    Index,
    Intrinsic,
    LElement,
    LElementExpr,
    Let,
    LetMut,
    LField,
    LValue,
    LVar,
    Match,
    MatchExpr,
    MemFence,
    Native,
    Pragma,
    Print,
    RecordExpr,
    Return,
    Seq,
    Stmt,
    Subscript,
    TupleExpr,
    Unary,
    Var,
    VariantExpr,
    VarRef,
    Warp,
    WarpBarrier,
    While,
)

# --- expressions ----------------------------------------------------------------------------------


def operands(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly within `expr`, in the order of evaluation."""
    match expr:
        case Const() | VarRef() | Index() | ArrayLen():
            return ()
        case Binary(left=left, right=right):
            return (left, right)
        case ArrayRead(index=index):
            return (index,)
        case Cast(operand=operand) | Unary(operand=operand):
            return (operand,)
        case Subscript(index=index, extent=extent):
            return (index, extent)
        case Intrinsic(args=args) | App(args=args) | VariantExpr(args=args):
            return args
        case IfExpr(condition=condition, then=then, orelse=orelse):
            return (condition, then, orelse)
        case ArrayReadExpr(base=base, index=index):
            return (base, index)
        case Field(record=record):
            return (record,)
        case TupleExpr(items=items):
            return items
        case RecordExpr(fields=fields):
            return tuple(value for _, value in fields)
        case ArrayCreate(size=size):
            return (size,)
        case MatchExpr(scrutinee=scrutinee, cases=cases):
            return (scrutinee, *(value for _, value in cases))
        case _:
            assert_never(expr)


def rebuild(expr: Expr, new: Sequence[Expr]) -> Expr:
    """`expr` with other operands, one for each of `operands(expr)`; itself if they are the same."""
    if all(ours is theirs for ours, theirs in zip(operands(expr), new, strict=True)):
        return expr
    span = expr.span
    match expr:
        case Const() | VarRef() | Index() | ArrayLen():
            return expr
        case Binary(op=op, weak=weak, unguarded=unguarded):
            return Binary(op, new[0], new[1], weak, unguarded, span=span)
        case ArrayRead(array=array):
            return ArrayRead(array, new[0], span=span)
        case Cast(type=type, weak=weak):
            return Cast(type, new[0], weak, span=span)
        case Unary(op=op, weak=weak, unguarded=unguarded):
            return Unary(op, new[0], weak, unguarded, span=span)
        case Subscript(array=array, axis=axis, wrap=wrap, part=part):
            return Subscript(array, axis, new[0], new[1], wrap, part, span=span)
        case Intrinsic(path=path, name=name, type=type):
            return Intrinsic(path, name, tuple(new), type, span=span)
        case App(function=function, type=result):
            return App(function, tuple(new), result, span=span)
        case VariantExpr(type=name, constructor=constructor):
            return VariantExpr(name, constructor, tuple(new), span=span)
        case IfExpr():
            return IfExpr(new[0], new[1], new[2], span=span)
        case ArrayReadExpr():
            return ArrayReadExpr(new[0], new[1], span=span)
        case Field(name=name):
            return Field(new[0], name, span=span)
        case TupleExpr():
            return TupleExpr(tuple(new), span=span)
        case RecordExpr(name=name, fields=fields):
            named = tuple((key, value) for (key, _), value in zip(fields, new, strict=True))
            return RecordExpr(name, named, span=span)
        case ArrayCreate(element=element, space=space):
            return ArrayCreate(element, new[0], space, span=span)
        case MatchExpr(cases=cases):
            arms = tuple(
                (pattern, value) for (pattern, _), value in zip(cases, new[1:], strict=True)
            )
            return MatchExpr(new[0], arms, span=span)
        case _:
            assert_never(expr)


# --- l-values and cooperative matrices ------------------------------------------------------------


def lvalue_expressions(target: LValue) -> tuple[Expr, ...]:
    """The expressions within an l-value, in the order of evaluation."""
    match target:
        case LVar():
            return ()
        case LElement(index=index):
            return (index,)
        case LElementExpr(base=base, index=index):
            return (base, index)
        case LField(record=record):
            return lvalue_expressions(record)
        case _:
            assert_never(target)


def rebuild_lvalue(target: LValue, new: Sequence[Expr]) -> LValue:
    """`target` with other expressions, one for each of `lvalue_expressions(target)`."""
    match target:
        case LVar():
            return target
        case LElement(array=array, index=index):
            return target if new[0] is index else LElement(array, new[0], span=target.span)
        case LElementExpr(base=base, index=index):
            if new[0] is base and new[1] is index:
                return target
            return LElementExpr(new[0], new[1], span=target.span)
        case LField(record=record, name=name):
            inner = rebuild_lvalue(record, new)
            return target if inner is record else LField(inner, name, span=target.span)
        case _:
            assert_never(target)


def root_variable(target: LValue) -> Var | None:
    """The variable or array that assigning to `target` changes; None for an array expression."""
    match target:
        case LVar(var=var):
            return var
        case LElement(array=array):
            return array
        case LField(record=record):
            return root_variable(record)
        case LElementExpr():
            return None
        case _:
            assert_never(target)


def _coopmat_expressions(op: CoopmatOp) -> tuple[Expr, ...]:
    match op:
        case CMLoad(index=index, stride=stride) | CMStore(index=index, stride=stride):
            return (index, stride)
        case CMFill(value=value):
            return (value,)
        case CMDecl() | CMMulAdd():
            return ()
        case _:
            assert_never(op)


def _rebuild_coopmat(op: CoopmatOp, new: Sequence[Expr]) -> CoopmatOp:
    match op:
        case CMLoad() | CMStore():
            return replace(op, index=new[0], stride=new[1])
        case CMFill():
            return replace(op, value=new[0])
        case CMDecl() | CMMulAdd():
            return op
        case _:
            assert_never(op)


# --- statements -----------------------------------------------------------------------------------


def expressions_of(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions of a statement itself, in the order of evaluation, nested bodies aside."""
    match stmt:
        case Let(value=value) | ExprStmt(value=value):
            return (value,)
        case LetMut(value=optional) | Return(value=optional):
            return () if optional is None else (optional,)
        case Assign(target=target, value=value):
            return (value, *lvalue_expressions(target))
        case If(condition=condition) | While(condition=condition) | Assert(condition=condition):
            return (condition,)
        case For(first=first, stop=stop, step=step):
            return (first, stop, step)
        case Call(args=args):
            return args
        case Atomic(index=index, value=optional, compare=compare):
            return (index, *(given for given in (compare, optional) if given is not None))
        case Warp(value=optional, lane=lane):
            return tuple(given for given in (optional, lane) if given is not None)
        case Match(scrutinee=scrutinee):
            return (scrutinee,)
        case Print():
            return stmt.values
        case Coopmat(op=op):
            return _coopmat_expressions(op)
        case Seq() | Empty() | Block() | Break() | Continue() | Pragma() | Native():
            return ()
        case Barrier() | WarpBarrier() | MemFence():
            return ()
        case _:
            assert_never(stmt)


def with_expressions(stmt: Stmt, new: Sequence[Expr]) -> Stmt:
    """`stmt` with other expressions, one for each of `expressions_of(stmt)`."""
    if all(ours is theirs for ours, theirs in zip(expressions_of(stmt), new, strict=True)):
        return stmt
    match stmt:
        case Let() | ExprStmt() | LetMut() | Return():
            return replace(stmt, value=new[0])
        case Assign(target=target):
            return Assign(rebuild_lvalue(target, new[1:]), new[0], span=stmt.span)
        case If() | While() | Assert():
            return replace(stmt, condition=new[0])
        case For():
            return replace(stmt, first=new[0], stop=new[1], step=new[2])
        case Call():
            return replace(stmt, args=tuple(new))
        case Atomic(value=value, compare=compare):
            rest = iter(new[1:])
            compare = None if compare is None else next(rest)
            value = None if value is None else next(rest)
            return replace(stmt, index=new[0], compare=compare, value=value)
        case Warp(value=value, lane=lane):
            rest = iter(new)
            value = None if value is None else next(rest)
            return replace(stmt, value=value, lane=None if lane is None else next(rest))
        case Match():
            return replace(stmt, scrutinee=new[0])
        case Print(parts=parts):
            values = iter(new)
            return replace(
                stmt, parts=tuple(p if isinstance(p, str) else next(values) for p in parts)
            )
        case Coopmat(op=op):
            return Coopmat(_rebuild_coopmat(op, new), span=stmt.span)
        case Seq() | Empty() | Block() | Break() | Continue() | Pragma() | Native():
            return stmt
        case Barrier() | WarpBarrier() | MemFence():
            return stmt
        case _:
            assert_never(stmt)


def bodies_of(stmt: Stmt) -> tuple[Body, ...]:
    """The bodies directly within a statement."""
    match stmt:
        case If(then=then, orelse=orelse):
            return (then, orelse)
        case While(body=body) | For(body=body) | Seq(body=body) | Block(body=body):
            return (body,)
        case Pragma(body=body) | Native(fallback=body):
            return (body,)
        case Match(cases=cases):
            return tuple(body for _, body in cases)
        case _:
            return ()


def with_bodies(stmt: Stmt, new: Sequence[Body]) -> Stmt:
    """`stmt` with other bodies, one for each of `bodies_of(stmt)`."""
    if all(ours is theirs for ours, theirs in zip(bodies_of(stmt), new, strict=True)):
        return stmt
    match stmt:
        case If():
            return replace(stmt, then=new[0], orelse=new[1])
        case While() | For() | Seq() | Block() | Pragma():
            return replace(stmt, body=new[0])
        case Native():
            return replace(stmt, fallback=new[0])
        case Match(cases=cases):
            arms = tuple((pattern, body) for (pattern, _), body in zip(cases, new, strict=True))
            return replace(stmt, cases=arms)
        case _:
            return stmt
