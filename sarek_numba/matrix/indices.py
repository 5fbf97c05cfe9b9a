"""Index expressions as polynomials: symbols, their ranges, and what flat indices are made of.

A symbol is a variable of iteration (a coordinate of the thread, the count of a loop's passes, a
quotient or a remainder of another symbol) or an atom: an expression that is the same for the whole
launch. `i = g // n` and `j = g % n` make two symbols of g = i * n + j, so that flat kernels read
like the others; a block's number times its size plus the thread's number is the global index.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sarek_numba.ir.build import Fresh, const_int
from sarek_numba.ir.nodes import (
    ArrayRead,
    Binary,
    BinOp,
    Cast,
    Const,
    Coordinate,
    Expr,
    Index,
    Intrinsic,
    Subscript,
    Unary,
    UnOp,
    Var,
    VarRef,
)
from sarek_numba.ir.types import INT64, Scalar
from sarek_numba.ir.typing import type_of
from sarek_numba.ir.walk import map_expr, walk_exprs
from sarek_numba.matrix.polynomial import ONE, ZERO, Polynomial, number, symbol
from sarek_numba.matrix.reasons import Reason, Refusal
from sarek_numba.span import Span

_EXTENTS = {
    Coordinate.GLOBAL_IDX: (Coordinate.BLOCK_DIM, Coordinate.GRID_DIM),
    Coordinate.THREAD_IDX: (Coordinate.BLOCK_DIM,),
    Coordinate.BLOCK_IDX: (Coordinate.GRID_DIM,),
}
_RING = {BinOp.ADD, BinOp.SUB, BinOp.MUL}
_NAMES = "xyz"


@dataclass(slots=True)
class Symbol:
    """A variable of iteration: 0 <= var < `extent`, narrowed by guards.

    `parts` are the quotient, the remainder and the divisor that stand for it, once it is split;
    `whole` is the symbol and the divisor that a quotient came from. `reversed` says that the
    user's index goes down.
    """

    var: Var
    extent: Polynomial
    coordinate: tuple[Coordinate, int] | None = None
    lowers: list[Polynomial] = field(default_factory=list)
    uppers: list[Polynomial] = field(default_factory=list)
    parts: tuple[int, int, Polynomial] | None = None
    whole: tuple[int, Polynomial] | None = None
    consumes: int | None = None  # another whose passes this one's passes are made of
    reversed: bool = False


@dataclass(frozen=True, slots=True)
class Need:
    """That a polynomial stays in a range; `array` is that of a subscript, else a type's range.

    With `wide` it holds for all threads, those included that a guard turns away.
    """

    index: Polynomial
    low: Polynomial
    stop: Polynomial
    array: Var | None
    wide: bool
    span: Span | None


class Space:
    """The symbols of one kernel."""

    def __init__(self, fresh: Fresh) -> None:
        self.fresh = fresh
        self.symbols: dict[int, Symbol] = {}
        self.atoms: dict[int, Expr] = {}
        self.needs: list[Need] = []
        self.equalities: list[tuple[Polynomial, Polynomial, Span | None]] = []
        self.consumed: set[int] = set()
        self.opaque: set[int] = set()  # variables that stand for values of passes, not for indices
        self.wide = False
        self.elements: set[int] = set()  # those of `opaque` that stand for an element of an array
        self._numbers: dict[Expr, int] = {}
        self._coordinates: dict[tuple[Coordinate, int], int] = {}
        self._of_variable: dict[int, int] = {}

    # --- symbols ----------------------------------------------------------------------------------

    def iteration(self, name: str, extent: Polynomial) -> int:
        """A new variable of iteration."""
        made = len(self.symbols) + len(self.atoms)
        var = self.fresh(name, INT64)
        self.symbols[made] = Symbol(var, extent)
        self._of_variable[var.id] = made
        return made

    def coordinate(self, which: Coordinate, axis: int) -> int:
        key = (which, axis)
        if key not in self._coordinates:
            extent = ONE
            for part in _EXTENTS[which]:
                extent = extent * self.atom(Index(part, axis))
            made = self.iteration(f"{which.value}_{_NAMES[axis]}", extent)
            self.symbols[made].coordinate = key
            self._coordinates[key] = made
        return self._coordinates[key]

    def atom(self, expr: Expr) -> Polynomial:
        """An expression that is the same for the whole launch, as a symbol."""
        if expr not in self._numbers:
            made = len(self.symbols) + len(self.atoms)
            self._numbers[expr] = made
            self.atoms[made] = expr
        return symbol(self._numbers[expr])

    def is_uniform(self, expr: Expr) -> bool:
        """Whether an expression is the same for the whole launch: of parameters and extents."""
        for node in walk_exprs(expr):
            match node:
                case ArrayRead():
                    return False
                case Index(coordinate=which) if which in _EXTENTS:
                    return False
                case VarRef(var=var) if var.id in self._of_variable or var.id in self.opaque:
                    return False
        return True

    def iterations(self, of: Polynomial) -> frozenset[int]:
        """The variables of iteration in a polynomial."""
        return of.symbols & self.symbols.keys()

    def name(self, of: int) -> str:
        """An index as the user writes it."""
        found = self.symbols[of].coordinate
        return (
            self.symbols[of].var.name if found is None else f"{found[0].value}.{_NAMES[found[1]]}"
        )

    def uniform(self, of: Polynomial) -> bool:
        return not self.iterations(of)

    # --- expressions ------------------------------------------------------------------------------

    def polynomial(self, expr: Expr) -> Polynomial:
        """An integer expression as a polynomial. Raises Refusal."""
        match expr:
            case Const(value=value):
                return number(int(value))
            case VarRef(var=var) if var.id in self._of_variable:
                return symbol(self._of_variable[var.id])
            case VarRef(var=var) if var.id in self.opaque:
                raise Refusal(Reason.INDEX, f"'{var.name}' changes in a loop", span=expr.span)
            case VarRef():
                return self.atom(_wide(expr))
            case Index(coordinate=which, axis=axis) if which in _EXTENTS:
                return symbol(self.coordinate(which, axis))
            case Index(coordinate=Coordinate.GRID_SIZE, axis=axis):
                first, second = _EXTENTS[Coordinate.GLOBAL_IDX]
                return self.atom(Index(first, axis)) * self.atom(Index(second, axis))
            case Index():
                return self.atom(expr)
            case Subscript(array=array, index=index, extent=extent):
                inner = self.polynomial(index)
                self._need(inner, ZERO, self.polynomial(extent), array, expr.span)
                return inner
            case Cast(operand=operand):
                return self._cast(expr, operand)
            case Unary(op=UnOp.NEG, operand=operand):
                return -self.polynomial(operand)
            case Binary():
                return self._binary(expr)
            case _:
                return self._other(expr)

    def _cast(self, expr: Cast, operand: Expr) -> Polynomial:
        source = type_of(operand)
        assert isinstance(source, Scalar)
        if not (source.is_integer and expr.type.is_integer):
            return self._other(expr)
        inner = self.polynomial(operand)
        if not (expr.type.minimum <= source.minimum and source.maximum <= expr.type.maximum):
            self._fits(inner, expr.type, expr.span)
        return inner

    def _binary(self, expr: Binary) -> Polynomial:
        kind = type_of(expr)
        assert isinstance(kind, Scalar)
        if not kind.is_integer or expr.op not in _RING | {BinOp.FLOORDIV, BinOp.FLOORMOD}:
            return self._other(expr)
        left, right = self.polynomial(expr.left), self.polynomial(expr.right)
        match expr.op:
            case BinOp.ADD:
                made = self._composed(left + right, expr.span)
            case BinOp.SUB:
                made = left - right
            case BinOp.MUL:
                made = left * right
            case BinOp.FLOORDIV:
                made = self._quotient(left, right, expr)
            case _:
                made = self._remainder(left, right, expr)
        if made.degree(frozenset(self.symbols)) > 1:
            raise Refusal(Reason.INDEX, "indices are multiplied", span=expr.span)
        if kind is not INT64:
            self._fits(made, kind, expr.span)
        return made

    def _other(self, expr: Expr) -> Polynomial:
        if self.is_uniform(expr):
            return self.atom(_wide(expr))
        if any(isinstance(node, ArrayRead) for node in walk_exprs(expr)):
            raise Refusal(Reason.DATA_INDEX, "an element of an array", span=expr.span)
        raise Refusal(Reason.INDEX, _named(expr), span=expr.span)

    def _need(
        self,
        index: Polynomial,
        low: Polynomial,
        stop: Polynomial,
        array: Var | None,
        span: Span | None,
    ) -> None:
        self.needs.append(Need(index, low, stop, array, self.wide, span))

    def need_count(self, count: Polynomial, span: Span | None) -> None:
        """That a loop has no less than no passes."""
        if count.constant is None:
            self.needs.append(Need(count, ZERO, number(1 << 62), None, True, span))

    def _fits(self, index: Polynomial, kind: Scalar, span: Span | None) -> None:
        self._need(index, number(kind.minimum), number(kind.maximum + 1), None, span)

    # --- coordinates and flat indices -------------------------------------------------------------

    def _composed(self, of: Polynomial, span: Span | None) -> Polynomial:
        """Blocks times their size plus threads is the global index."""
        for axis in range(3):
            thread = self._coordinates.get((Coordinate.THREAD_IDX, axis))
            block = self._coordinates.get((Coordinate.BLOCK_IDX, axis))
            if thread is None or block is None or not {thread, block} <= of.symbols:
                continue
            factor, stretch = of.coefficient(thread), of.coefficient(block)
            size = self.atom(Index(Coordinate.BLOCK_DIM, axis))
            whole, rest = stretch.divided(factor)
            if not rest and whole.constant is not None:
                self.equalities.append((size, whole, span))
            elif stretch != factor * size:
                continue
            rest = of - factor * symbol(thread) - stretch * symbol(block)
            of = rest + factor * symbol(self.coordinate(Coordinate.GLOBAL_IDX, axis))
        return of

    def normal(self, of: Polynomial) -> Polynomial:
        """The polynomial with quotients and remainders in place of what was split into them."""
        while True:
            split = [s for s in self.iterations(of) if self.symbols[s].parts is not None]
            if not split:
                return of
            parts = self.symbols[split[0]].parts
            assert parts is not None
            quotient, remainder, divisor = parts
            of = of.replaced(split[0], symbol(quotient) * divisor + symbol(remainder))

    def _quotient(self, left: Polynomial, by: Polynomial, expr: Binary) -> Polynomial:
        if self.uniform(left) and self.uniform(by):
            return self._exact_or_atom(left, by, expr)
        whole, rest = self._divided(left, by, expr)
        return whole + (self._split(rest, by, expr)[0] if rest else ZERO)

    def _remainder(self, left: Polynomial, by: Polynomial, expr: Binary) -> Polynomial:
        if self.uniform(left) and self.uniform(by):
            return left - by * self._exact_or_atom(left, by, replace(expr, op=BinOp.FLOORDIV))
        _, rest = self._divided(left, by, expr)
        return self._split(rest, by, expr)[1] if rest else ZERO

    def _exact_or_atom(self, left: Polynomial, by: Polynomial, expr: Binary) -> Polynomial:
        whole, rest = left.divided(by)
        return self.atom(_wide(expr)) if rest else whole

    def _divided(
        self, left: Polynomial, by: Polynomial, expr: Binary
    ) -> tuple[Polynomial, Polynomial]:
        if not self.uniform(by):
            raise Refusal(Reason.INDEX, "it is divided by an index", span=expr.span)
        return self.normal(left).divided(by)

    def _split(
        self, rest: Polynomial, by: Polynomial, expr: Binary
    ) -> tuple[Polynomial, Polynomial]:
        """Quotient and remainder of a polynomial of which no term is divisible."""
        if self._below(rest, by):
            return ZERO, rest
        for candidate in sorted(self.iterations(rest)):
            if rest == symbol(candidate):
                return self._parts(candidate, by)
            # (q * d + r) // (d * e), where r < d, is q // e
            stretch = rest.coefficient(candidate)
            outer, left = by.divided(stretch)
            inner = rest - stretch * symbol(candidate)
            if not left and self._below(inner, stretch):
                quotient, remainder = self._split(symbol(candidate), outer, expr)
                return quotient, remainder * stretch + inner
        raise Refusal(Reason.INDEX, "a part of it is divided", span=expr.span)

    def _below(self, rest: Polynomial, by: Polynomial) -> bool:
        """Whether a polynomial is known to be from 0 to before another."""
        found = sorted(self.iterations(rest))
        if not rest:
            return True
        if len(found) == 1 and rest == symbol(found[0]):
            return self.symbols[found[0]].extent == by
        if len(found) == 2:  # q * d + r below e * d, where r < d and q < e
            for outer, inner in (found, found[::-1]):
                stretch = self.symbols[inner].extent
                if rest == symbol(outer) * stretch + symbol(inner):
                    return self.symbols[outer].extent * stretch == by
        return False

    def _parts(self, of: int, by: Polynomial) -> tuple[Polynomial, Polynomial]:
        """A symbol split into quotient and remainder: i and j of a flat index."""
        whole = self.symbols[of]
        assert whole.parts is None
        extent, rest = whole.extent.divided(by)
        if rest:
            extent = self.floor_divided(whole.extent, by)
        quotient = self.iteration(f"{whole.var.name}_quotient", extent)
        remainder = self.iteration(f"{whole.var.name}_remainder", by)
        whole.parts = quotient, remainder, by
        self.symbols[quotient].whole = of, by
        return symbol(quotient), symbol(remainder)

    # --- back to expressions ----------------------------------------------------------------------

    def floor_divided(self, left: Polynomial, by: Polynomial) -> Polynomial:
        whole, rest = left.divided(by)
        if by.constant is not None and by.constant > 0 and rest.constant is not None:
            return whole + number(rest.constant // by.constant)
        if not rest:
            return whole
        return self.atom(Binary(BinOp.FLOORDIV, self.expr(left), self.expr(by)))

    def least(self, of: list[Polynomial]) -> Polynomial:
        return self._extreme("min", of)

    def greatest(self, of: list[Polynomial]) -> Polynomial:
        return self._extreme("max", of)

    def _extreme(self, name: str, of: list[Polynomial]) -> Polynomial:
        distinct = list(dict.fromkeys(of))
        made = distinct[0]
        for other in distinct[1:]:
            args = (self.expr(made), self.expr(other))
            made = self.atom(Intrinsic((), name, args, INT64))
        return made

    def expr(self, of: Polynomial) -> Expr:
        """The polynomial as an int64 expression."""
        result: Expr | None = None
        for monomial, factor in sorted(of.terms, key=lambda term: (-len(term[0]), term)):
            part: Expr | None = None if factor == 1 and monomial else const_int(factor)
            for one in monomial:
                leaf = VarRef(self.symbols[one].var) if one in self.symbols else self.atoms[one]
                part = leaf if part is None else Binary(BinOp.MUL, part, leaf, weak=True)
            assert part is not None
            result = part if result is None else Binary(BinOp.ADD, result, part, weak=True)
        return const_int(0) if result is None else result


def _wide(expr: Expr) -> Expr:
    """An integer expression as an int64."""
    plain = map_expr(expr, lambda node: node.index if isinstance(node, Subscript) else node)
    return plain if type_of(plain) is INT64 else Cast(INT64, plain)


def _named(expr: Expr) -> str:
    match expr:
        case Binary(op=op):
            return f"it has '{op.value}'"
        case Intrinsic(name=name):
            return f"it has {name}()"
        case _:
            return f"it has a {type(expr).__name__}"
