"""Expressions to values.

Recursion follows nesting; the caller allows for depth. `and`, `or` and conditional expressions
evaluate what is not always needed only where lanes need it, unless it is cheap and cannot fail.
"""

from __future__ import annotations

from collections.abc import Callable

from sarek_native import masks, memory
from sarek_native.operators import binary, cast, unary
from sarek_native.state import State
from sarek_native.values import Value, literal
from sarek_native.vecmath import intrinsic
from sarek_numba.errors import UnsupportedConstruct
from sarek_numba.ir.nodes import (
    LOGICAL,
    App,
    ArrayRead,
    Binary,
    BinOp,
    Cast,
    Const,
    Expr,
    IfExpr,
    Index,
    Intrinsic,
    Subscript,
    Unary,
    VarRef,
)
from sarek_numba.ir.types import BOOL, INT64, Scalar
from sarek_numba.ir.walk import walk_exprs

_SPECULATED = 24  # nodes of an operand that is cheaper to compute than to branch around


def emit(state: State, expr: Expr) -> Value:
    """The value of an expression in the lanes of the mask."""
    code = state.code
    match expr:
        case Const():
            return Value(expr.type, literal(expr))
        case VarRef(var=var):
            return state.value_of(var)
        case Binary(op=op, left=left, right=right) if op in LOGICAL:
            return _logical(state, op, left, right)
        case Binary(op=op, left=left, right=right):
            a, b = emit(state, left), emit(state, right)
            return binary(code, op, a, b, expr.unguarded, state.mask)
        case Unary(op=op, operand=operand):
            return unary(code, op, emit(state, operand))
        case Cast(type=type, operand=operand):
            return cast(code, emit(state, operand), type)
        case ArrayRead(array=array, index=index):
            return memory.load(code, state.place_of(array), emit(state, index), state.mask)
        case Index():
            return cast(code, state.coordinate(expr), expr.type)
        case Subscript():
            return _subscript(state, expr)
        case Intrinsic(name=name, args=args, type=type):
            return intrinsic(code, name, [emit(state, a) for a in args], type, state.mask)
        case IfExpr(condition=condition, then=then, orelse=orelse):
            chosen = emit(state, condition)
            return _choose(state, chosen, lambda: emit(state, then), then, orelse)
        case App():
            assert state.inline is not None
            return state.inline(state, expr)[0]
        case _:
            raise UnsupportedConstruct(f"{type_name(expr)} is not supported by the native device")


def type_name(node: object) -> str:
    return type(node).__name__


def _subscript(state: State, expr: Subscript) -> Value:
    """The index; with `wrap` a negative one counts from the end."""
    index = emit(state, expr.index)
    if not expr.wrap:
        return index
    code = state.code
    if isinstance(expr.index, Const) and int(expr.index.value) >= 0:
        return index
    extent = emit(state, expr.extent)
    negative = binary(code, BinOp.LT, index, Value(index.type, "0"))
    return code.select(negative, binary(code, BinOp.ADD, index, extent), index)


def speculates(expr: Expr) -> bool:
    """May an expression be evaluated in lanes that do not need it, and is it cheap?"""
    for count, node in enumerate(walk_exprs(expr)):
        if count >= _SPECULATED or isinstance(node, ArrayRead | App | Intrinsic):
            return False
        if isinstance(node, Binary) and node.op in _COSTLY:
            return False
    return True


_COSTLY = frozenset({BinOp.DIV, BinOp.MOD, BinOp.FLOORDIV, BinOp.FLOORMOD})


def _logical(state: State, op: BinOp, left: Expr, right: Expr) -> Value:
    """`and`: right where left holds, else false. `or`: true where left holds, else right."""
    decided = emit(state, left)
    constant = Value(BOOL, "false" if op is BinOp.AND else "true")
    if op is BinOp.AND:
        return _choose(state, decided, lambda: emit(state, right), right, None, constant)
    return _choose(state, decided, lambda: constant, None, right)


def _choose(
    state: State,
    condition: Value,
    then: Callable[[], Value],
    then_expr: Expr | None,
    else_expr: Expr | None,
    otherwise: Value | None = None,
) -> Value:
    """One of two values; a side that is no expression is a constant."""

    def orelse() -> Value:
        if else_expr is None:
            assert otherwise is not None
            return otherwise
        return emit(state, else_expr)

    if all(side is None or speculates(side) for side in (then_expr, else_expr)):
        a, b = then(), orelse()
        return state.code.select(condition, a, b)
    if condition.uniform:
        return _branch(state, condition, then, orelse)
    return _masked(state, condition, (then, then_expr), (orelse, else_expr))


def _branch(
    state: State, condition: Value, then: Callable[[], Value], orelse: Callable[[], Value]
) -> Value:
    """Both sides behind a real branch; joined as a vector if either is one."""
    code = state.code
    labels = [code.fresh(stem) for stem in ("then", "else", "join")]
    code.branch(condition.text, labels[0], labels[1])
    sides: list[tuple[Value, str]] = []
    marks: list[int] = []
    for label, side in zip(labels, (then, orelse), strict=False):
        code.label(label)
        value = side()
        marks.append(len(code.lines))
        sides.append((value, code.block))
        code.jump(labels[2])
    lanes = not all(value.uniform for value, _ in sides)
    texts: list[str] = []
    for (value, _), mark in reversed(list(zip(sides, marks, strict=True))):
        # a spread belongs into the side's own block, before its jump
        start = len(code.lines)
        text = code.spread(value) if lanes else value.text
        added = code.lines[start:]
        del code.lines[start:]
        code.lines[mark:mark] = added
        texts.insert(0, text)
    code.label(labels[2])
    type = sides[0][0].type
    incoming = ", ".join(
        f"[ {text}, %{block} ]" for text, (_, block) in zip(texts, sides, strict=True)
    )
    return Value(type, code.define(f"phi {code.type_of(type, lanes)} {incoming}"), lanes)


def _masked(
    state: State,
    condition: Value,
    then: tuple[Callable[[], Value], Expr | None],
    orelse: tuple[Callable[[], Value], Expr | None],
) -> Value:
    """Each side in the lanes that need it, behind a test that any does."""
    code = state.code
    before = state.mask
    flags = masks.condition_lanes(code, condition)
    needed = (masks.narrow(code, before, flags), masks.exclude(code, before, flags))
    values = []
    for (side, expr), mask in zip((then, orelse), needed, strict=True):
        if expr is None or speculates(expr):
            values.append(side())
            continue
        values.append(_in_lanes(state, side, mask))
    state.mask = before
    return code.select(condition, values[0], values[1])


def _in_lanes(state: State, side: Callable[[], Value], mask: str) -> Value:
    """A value for the lanes of `mask`, zero in the others if none of the mask runs."""
    code = state.code
    labels = [code.fresh(stem) for stem in ("need", "had")]
    origin = code.block
    code.branch(masks.any_lane(code, mask), labels[0], labels[1])
    code.label(labels[0])
    state.mask = mask
    value = side()
    text = code.spread(value)
    block = code.block
    code.label(labels[1])
    vector = code.type_of(value.type, True)
    incoming = f"[ {text}, %{block} ], [ zeroinitializer, %{origin} ]"
    return Value(value.type, code.define(f"phi {vector} {incoming}"), lanes=True)


def as_index(state: State, expr: Expr) -> Value:
    return cast(state.code, emit(state, expr), INT64)


def constant_size(expr: Expr) -> int:
    """The number of elements of a shared or local array, which is a constant once folded."""
    if not isinstance(expr, Const) or expr.type is Scalar.BOOL:
        raise UnsupportedConstruct("the size of a shared or local array must be a constant")
    return int(expr.value)
