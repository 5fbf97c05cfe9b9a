"""Loops that add up products: what is added, to what, and from where.

A pass takes what the last one left, `carry`, and leaves `carry + factor * a * b`. Several products
in a pass are one sum if they are the next elements of the same two (an unrolled loop), and a sum
that goes on where another ended is one with it (what is left over of an unrolled loop).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sarek_numba.ir.nodes import (
    ArrayRead,
    Binary,
    BinOp,
    Cast,
    Expr,
    IfExpr,
    Intrinsic,
    Unary,
    UnOp,
    Var,
    VarRef,
    constant,
)
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.typing import type_of
from sarek_numba.ir.walk import map_expr, walk_exprs
from sarek_numba.matrix.conditions import conjuncts, narrow, variables
from sarek_numba.matrix.indices import Space
from sarek_numba.matrix.polynomial import ZERO, Polynomial, number, symbol
from sarek_numba.matrix.product import Case
from sarek_numba.matrix.reasons import Reason, Refusal
from sarek_numba.span import Span

ACCUMULATORS = (Scalar.INT32, Scalar.UINT32, Scalar.FLOAT32)
_BYTES = {Scalar.INT8, Scalar.UINT8}
_FLOAT_CASES = {
    Scalar.FLOAT16: Case.FLOAT16,
    Scalar.BFLOAT16: Case.BFLOAT16,
    Scalar.FLOAT32: Case.FLOAT32,
}


@dataclass(frozen=True, slots=True)
class Element:
    """An operand of the products: an element of an array."""

    array: Var
    type: Scalar
    index: Polynomial
    span: Span | None

    def at(self, axis: int, value: Polynomial) -> Element:
        return replace(self, index=self.index.replaced(axis, value))


@dataclass(frozen=True, slots=True)
class Term:
    """One product of a pass; `factor` does not depend on the pass."""

    a: Element
    b: Element
    factor: Expr | None


@dataclass(frozen=True, slots=True)
class Sum:
    """start + the sum of a term over an axis, as the variable `var`."""

    var: Var
    start: Expr
    term: Term
    axis: int
    guards: tuple[Expr, ...]
    in_place: bool
    span: Span | None

    @property
    def type(self) -> Scalar:
        assert isinstance(self.var.type, Scalar)
        return self.var.type

    def renamed(self, var: Var, start: Expr, names: dict[int, int], space: Space) -> Sum:
        """The sum with other axes for its elements."""
        a, b, factor = self.term.a, self.term.b, self.term.factor
        for old, new in names.items():
            a, b = a.at(old, symbol(new)), b.at(old, symbol(new))
        if factor is not None:
            factor = map_expr(factor, lambda node: _renamed(node, names, space))
        return replace(self, var=var, start=start, term=Term(a, b, factor))


def _renamed(node: Expr, names: dict[int, int], space: Space) -> Expr:
    for old, new in names.items():
        if node == VarRef(space.symbols[old].var):
            return VarRef(space.symbols[new].var)
    return node


@dataclass(frozen=True, slots=True)
class Summing:
    """A loop that may be a sum: its axis, what it carries and from what that starts."""

    axis: int
    carry: Var
    entry: Expr
    guards: tuple[Expr, ...]
    span: Span | None
    in_place: bool


def summed(
    space: Space,
    sums: dict[int, Sum],
    loop: Summing,
    new: Expr,
    fresh: Callable[[str, Scalar], Var],
) -> Sum:
    """The sum that a loop is, whose pass leaves `new`. Raises Refusal."""
    kind = loop.carry.type
    assert isinstance(kind, Scalar)
    inner = space.symbols[loop.axis].consumes
    if inner is not None and space.symbols[inner].coordinate is not None:
        raise Refusal(Reason.RACE, space.name(inner), span=loop.span)  # each has a part of the sum
    new = _unconditional(space, loop, new)
    var = fresh(loop.carry.name, kind)
    tiles = _previous(sums, new)
    if tiles is not None and tiles.start == VarRef(loop.carry):
        if space.symbols[tiles.axis].consumes != loop.axis:
            raise Refusal(Reason.NESTED_SUM, span=loop.span)
        return replace(tiles, var=var, start=loop.entry, guards=loop.guards)
    added = _addends(new, loop)
    joined = _inner(space, sums, loop, added)
    if joined is not None:
        return replace(joined, var=var, start=loop.entry, guards=loop.guards)
    if kind not in ACCUMULATORS:
        double = kind is Scalar.FLOAT64
        raise Refusal(
            Reason.FLOAT64 if double else Reason.ACCUMULATOR,
            *(() if double else (kind.value,)),
            span=new.span or loop.span,
        )
    terms = [_term(space, loop, expr, minus, kind) for expr, minus in added]
    term, axis = _joined(space, loop, terms)
    made = Sum(var, loop.entry, term, axis, loop.guards, loop.in_place, loop.span)
    previous = _previous(sums, loop.entry)
    return made if previous is None else _chained(space, previous, made)


def _unconditional(space: Space, loop: Summing, new: Expr) -> Expr:
    """A pass without the condition that bounds the loop's index, which is taken in."""
    match new:
        case IfExpr(condition=condition, then=then, orelse=VarRef(var=var)) if var == loop.carry:
            own = space.symbols[loop.axis].var
            for part in conjuncts(condition):
                if space.is_uniform(part) or any(
                    isinstance(n, ArrayRead) for n in walk_exprs(part)
                ):
                    raise Refusal(Reason.CONDITIONAL_SUM, span=part.span or loop.span)
                count = space.iterations(space.normal(_sides(space, part)))
                if count != {loop.axis} or own not in variables(part):
                    raise Refusal(Reason.CONDITIONAL_SUM, span=part.span or loop.span)
                narrow(space, part)
            return then
        case IfExpr():
            raise Refusal(Reason.CONDITIONAL_SUM, span=new.condition.span or loop.span)
    return new


def _sides(space: Space, condition: Expr) -> Polynomial:
    match condition:
        case Binary(left=left, right=right):
            return space.polynomial(left) - space.polynomial(right)
    raise Refusal(Reason.CONDITIONAL_SUM, span=condition.span)


def _addends(new: Expr, loop: Summing) -> list[tuple[Expr, bool]]:
    """What is added to the carry, each with whether it is taken away. Raises Refusal."""
    carried = 0
    found: list[tuple[Expr, bool]] = []
    stack = [(new, False)]
    while stack:
        expr, minus = stack.pop()
        match expr:
            case VarRef(var=var) if var == loop.carry and not minus:
                carried += 1
            case Binary(op=BinOp.ADD, left=left, right=right):
                stack += [(right, minus), (left, minus)]
            case Binary(op=BinOp.SUB, left=left, right=right):
                stack += [(right, not minus), (left, minus)]
            case Unary(op=UnOp.NEG, operand=operand):
                stack.append((operand, not minus))
            case Intrinsic(name="fma", args=(left, right, rest)):
                product = Binary(BinOp.MUL, left, right, span=expr.span)
                stack += [(rest, minus), (product, minus)]
            case _ if loop.carry in variables(expr) and expr is not new:
                raise Refusal(Reason.STATE, loop.carry.name, span=expr.span or loop.span)
            case _:
                found.append((expr, minus))
    if carried != 1 and loop.carry.type not in ACCUMULATORS and isinstance(new, Cast):
        raise Refusal(Reason.ACCUMULATOR, new.type.value, span=new.span or loop.span)
    if carried != 1:
        raise Refusal(Reason.OPERATOR, _operator(new), span=new.span or loop.span)
    return found


def _operator(new: Expr) -> str:
    match new:
        case Binary(op=op):
            return f"'{op.value}'"
        case Intrinsic(name=name):
            return f"{name}()"
        case Cast(type=kind):
            return f"a conversion to {kind.value}"
        case _:
            return "another operation"


def _inner(
    space: Space,
    sums: dict[int, Sum],
    loop: Summing,
    added: list[tuple[Expr, bool]],
) -> Sum | None:
    """The sum of the tiles of this loop, if that is what it adds up."""
    found = [var for expr, _ in added for var in variables(expr) if var.id in sums]
    if not found:
        return None
    inner = sums[found[0].id]
    if len(added) != 1 or added[0] != (VarRef(inner.var), False):
        raise Refusal(Reason.MORE_PRODUCTS, span=loop.span)
    if space.symbols[inner.axis].consumes != loop.axis or not _is_zero(inner.start):
        raise Refusal(Reason.NESTED_SUM, span=loop.span)
    return inner


def _is_zero(expr: Expr) -> bool:
    return any(expr == constant(kind, 0) for kind in ACCUMULATORS)


# --- one product ----------------------------------------------------------------------------------


def _term(space: Space, loop: Summing, expr: Expr, minus: bool, kind: Scalar) -> Term:
    elements: list[Element] = []
    factors: list[Expr] = []
    stack = [expr]
    while stack:
        part = stack.pop()
        match part:
            case Binary(op=BinOp.MUL, left=left, right=right):
                stack += [right, left]
            case Unary(op=UnOp.NEG, operand=operand):
                minus = not minus
                stack.append(operand)
            case _ if not _depends(space, loop, part):
                factors.append(part)
            case _:
                elements.append(_element(space, part, kind, loop))
    if len(elements) != 2:
        reason = Reason.ONE_ARRAY if len(elements) < 2 else Reason.MANY_FACTORS
        raise Refusal(reason, span=expr.span or loop.span)
    if minus:
        factors.append(constant(kind, -1) if kind.kind.value != "unsigned" else _all_ones(kind))
    factor: Expr | None = None
    for one in factors:
        factor = one if factor is None else Binary(BinOp.MUL, factor, one)
    return Term(elements[0], elements[1], factor)


def _all_ones(kind: Scalar) -> Expr:
    return constant(kind, kind.maximum)  # -1 modulo 2^n


def _depends(space: Space, loop: Summing, expr: Expr) -> bool:
    own = {space.symbols[loop.axis].var}
    for var in variables(expr):
        if var in own:
            return True
        if var.id in space.elements and var != loop.carry:
            raise Refusal(Reason.SAME_ARRAY, var.name, span=expr.span or loop.span)
        if var.id in space.opaque and var != loop.carry:
            raise Refusal(Reason.STATE, var.name, span=expr.span or loop.span)
    return False


def _element(space: Space, expr: Expr, kind: Scalar, loop: Summing) -> Element:
    match expr:
        case Cast(type=target, operand=ArrayRead() as read) if target is kind:
            pass
        case ArrayRead() as read:
            pass
        case Cast(operand=Binary(op=BinOp.MUL) as inner):
            narrow_type = type_of(inner)
            assert isinstance(narrow_type, Scalar)
            raise Refusal(Reason.NARROW_PRODUCT, narrow_type.value, span=expr.span or loop.span)
        case Cast(operand=Cast(type=middle)) if middle.is_float:
            raise Refusal(Reason.NARROW_PRODUCT, middle.value, span=expr.span or loop.span)
        case _:
            raise Refusal(Reason.COMPUTED_OPERAND, span=expr.span or loop.span)
    found = type_of(read)
    if not isinstance(found, Scalar):
        raise Refusal(Reason.ELEMENTS, read.array.name, span=read.span)
    return Element(read.array, found, space.polynomial(read.index), read.span)


def case_of(term: Term, kind: Scalar, span: Span | None) -> Case:
    """Which products these are. Raises Refusal."""
    types = {term.a.type, term.b.type}
    if kind.is_integer and all(one.is_integer and one.bits <= 32 for one in types):
        return Case.INT8 if types <= _BYTES else Case.INT32
    if kind is Scalar.FLOAT32 and len(types) == 1 and types <= _FLOAT_CASES.keys():
        return _FLOAT_CASES[term.a.type]
    raise Refusal(Reason.OPERANDS, term.a.type.value, term.b.type.value, span=span)


# --- several products -----------------------------------------------------------------------------


def _joined(space: Space, loop: Summing, terms: list[Term]) -> tuple[Term, int]:
    """The products of one pass as those of as many passes."""
    if len(terms) == 1:
        return terms[0], loop.axis
    count, axis = len(terms), space.symbols[loop.axis]
    more = Refusal(Reason.MORE_PRODUCTS, span=loop.span)
    if axis.uppers or axis.lowers:
        raise more
    terms = [_ordered(terms[0], term) for term in terms]
    steps = [_step(term.index, loop.axis, count) for term in (terms[0].a, terms[0].b)]
    if None in steps:
        raise more
    bases = {_bases(term) for term in terms}
    for first in terms:
        expected = [_moved(first, steps, turn) for turn in range(count)]
        if {_bases(term) for term in expected} == bases and len(bases) == count:
            made = space.iteration(axis.var.name, axis.extent * number(count))
            space.symbols[made].reversed = axis.reversed
            a, b = (
                replace(one, index=one.index.replaced(loop.axis, ZERO) + step * symbol(made))
                for one, step in zip((first.a, first.b), steps, strict=True)
                if step is not None
            )
            return Term(a, b, first.factor), made
    raise more


def _ordered(first: Term, term: Term) -> Term:
    same = term.a.array == first.a.array
    return term if same else Term(term.b, term.a, term.factor)


def _bases(term: Term) -> tuple[Var, Polynomial, Var, Polynomial, Expr | None]:
    return term.a.array, term.a.index, term.b.array, term.b.index, term.factor


def _step(index: Polynomial, axis: int, count: int) -> Polynomial | None:
    quotient, rest = index.coefficient(axis).divided(number(count))
    return None if rest else quotient


def _moved(term: Term, steps: list[Polynomial | None], turn: int) -> Term:
    a, b = (
        replace(one, index=one.index + (step or ZERO) * number(turn))
        for one, step in zip((term.a, term.b), steps, strict=True)
    )
    return Term(a, b, term.factor)


def _previous(sums: dict[int, Sum], entry: Expr) -> Sum | None:
    return sums.get(entry.var.id) if isinstance(entry, VarRef) else None


def _chained(space: Space, first: Sum, second: Sum) -> Sum:
    """Two sums as one, where the second goes on where the first ended."""
    more = Refusal(Reason.MORE_PRODUCTS, span=second.span)
    ours, theirs = space.symbols[first.axis], space.symbols[second.axis]
    term = _ordered(first.term, second.term)
    if ours.uppers or ours.lowers or theirs.uppers or theirs.lowers:
        raise more
    if term.factor != first.term.factor or second.guards != first.guards:
        raise more
    axis = space.iteration(ours.var.name, ours.extent + theirs.extent)
    for left, right in ((first.term.a, term.a), (first.term.b, term.b)):
        ended = left.at(first.axis, ours.extent + symbol(axis))
        if left.array != right.array or ended.index != right.at(second.axis, symbol(axis)).index:
            raise more
    space.need_count(ours.extent, first.span)
    space.need_count(theirs.extent, second.span)
    a, b = (one.at(first.axis, symbol(axis)) for one in (first.term.a, first.term.b))
    return replace(second, start=first.start, term=Term(a, b, term.factor), axis=axis)
