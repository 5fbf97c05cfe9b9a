"""From what a kernel stores to a `Product`: roles and ranges of its indices, the epilogue."""

from __future__ import annotations

from sarek_numba.ir.build import const_int
from sarek_numba.ir.nodes import (
    ArrayRead,
    Binary,
    BinOp,
    Coordinate,
    Expr,
    Index,
    Kernel,
    Subscript,
    Var,
    VarRef,
)
from sarek_numba.ir.types import INT64, Scalar, UserArgument, Vec
from sarek_numba.ir.typing import type_of
from sarek_numba.ir.walk import operands, rebuild
from sarek_numba.matrix.conditions import conjuncts, narrow
from sarek_numba.matrix.execution import Cell, Execution
from sarek_numba.matrix.indices import Symbol
from sarek_numba.matrix.polynomial import ONE, ZERO, Polynomial, symbol
from sarek_numba.matrix.product import Axis, Condition, Linear, Operand, Product, Range
from sarek_numba.matrix.reasons import Reason, Refusal
from sarek_numba.matrix.scaling import scaling
from sarek_numba.matrix.sums import Element, Sum, case_of
from sarek_numba.span import Span


class Assembly:
    """Builds the product of an executed kernel. Raises Refusal."""

    def __init__(self, kernel: Kernel, done: Execution) -> None:
        self.done = done
        self.space = done.space
        self.arguments = {decl.var.id: decl.role for decl in kernel.params}
        self.conditions: list[Condition] = []
        self.others: dict[tuple[int, Polynomial], Operand] = {}
        self.bounds: dict[int, tuple[Polynomial, Polynomial]] = {}
        self.uses_before = False
        self.cell = self._one_cell()
        self.sum = self._one_sum()
        self.result = done.fresh("result", self.sum.type)
        self.before = done.fresh("before", _scalar(self.cell.array))

    def product(self) -> Product:
        cell, term = self.cell, self.sum.term
        self._take_guards()
        case = case_of(term, self.sum.type, self.sum.span)
        at = self.space.normal(cell.index)
        a, b = (self.space.normal(one.index) for one in (term.a, term.b))
        rows, columns, batch = self._roles(at, a, b)
        turned = at.coefficient(rows) == ONE and at.coefficient(columns) != ONE
        first, second = (term.b, term.a) if turned else (term.a, term.b)
        rows, columns = (columns, rows) if turned else (rows, columns)
        axes = {one: self._axis(one) for one in (rows, columns, self.sum.axis, *batch)}
        start = self._expression(self.sum.start)
        factor = None if term.factor is None else self._expression(term.factor)
        epilogue = self._expression(cell.value)
        alpha, beta = scaling(start, factor, epilogue, self.result, self.before)
        spare = self._spare(at)
        return Product(
            m=axes[rows],
            n=axes[columns],
            k=axes[self.sum.axis],
            batch=tuple(axes[one] for one in batch),
            a=self._operand(first),
            b=self._operand(second),
            c=self._operand(Element(cell.array, _scalar(cell.array), cell.index, cell.span)),
            accumulator=self.sum.type,
            case=case,
            start=start,
            factor=factor,
            epilogue=epilogue,
            result=self.result,
            before=self.before,
            others=tuple(self.others.values()),
            ranges=tuple(self._ranges()),
            conditions=tuple(dict.fromkeys(self.conditions)),
            spare=spare,
            uses_before=self.uses_before,
            in_place=self.sum.in_place,
            alpha=alpha,
            beta=beta,
            span=self.sum.span,
        )

    # --- the store and the sum --------------------------------------------------------------------

    def _one_cell(self) -> Cell:
        cells = self.done.root
        if not cells:
            raise Refusal(Reason.NO_SUM)
        summing = [cell for cell in cells if self._sums_in(cell.value)]
        if len(summing) > 1:
            raise Refusal(Reason.MORE_PRODUCTS, span=summing[1].span)
        if not summing:
            raise Refusal(Reason.NO_SUM, span=cells[0].span)
        for cell in cells:
            if cell is not summing[0]:
                raise Refusal(Reason.OTHER_STORE, cell.array.name, span=cell.span)
        return summing[0]

    def _sums_in(self, expr: Expr) -> set[int]:
        found: set[int] = set()
        stack = [expr]
        while stack:
            node = stack.pop()
            if isinstance(node, VarRef) and node.var.id in self.done.sums:
                found.add(node.var.id)
                stack.append(self.done.sums[node.var.id].start)
            stack.extend(operands(node))
        return found

    def _one_sum(self) -> Sum:
        found = self._sums_in(self.cell.value)
        if len(found) > 1:
            raise Refusal(Reason.MORE_PRODUCTS, span=self.done.sums[max(found)].span)
        one = self.done.sums[found.pop()]
        if set(one.guards) - set(self.cell.guards):
            raise Refusal(Reason.STORE_GUARD, span=one.span)
        return one

    # --- indices ----------------------------------------------------------------------------------

    def _take_guards(self) -> None:
        """Guards bound indices; those that are the same for all threads are conditions."""
        for guard in self.cell.guards:
            for part in conjuncts(guard):
                if not narrow(self.space, part):
                    self._require(part, "a guard", part.span)
        for condition, message, span in self.done.asserted:
            for part in conjuncts(condition):
                if not self.space.is_uniform(part):
                    raise Refusal(Reason.EFFECTS, "an assertion about single elements", span=span)
                self._require(part, message or "an assertion", span)
        for left, right, span in self.space.equalities:
            same = Binary(BinOp.EQ, self.space.expr(left), self.space.expr(right))
            self._require(same, "the number of threads that the kernel counts on", span)

    def _require(
        self, condition: Expr, text: str, span: Span | None, of_grid: bool = False
    ) -> None:
        self.conditions.append(Condition(_plain(condition), text, span, of_grid))

    def _roles(
        self, at: Polynomial, a: Polynomial, b: Polynomial
    ) -> tuple[int, int, tuple[int, ...]]:
        """The index of rows, that of columns, and those of the batch."""
        found, left, right = (self.space.iterations(one) for one in (at, a, b))
        axis = self.sum.axis
        if axis not in left or axis not in right:
            raise Refusal(Reason.WITHOUT_K, self._name(axis), span=self.sum.span)
        for one in sorted((left | right) - found - {axis}):
            thread = self.space.symbols[one].coordinate is not None
            reason = Reason.RACE if thread else Reason.UNUSED_INDEX
            raise Refusal(reason, self._name(one), span=self.sum.span)
        if found & self.space.consumed or (left | right) & self.space.consumed:
            raise Refusal(Reason.PARTS, span=self.cell.span)
        for each in self.space.symbols.values():
            leaves = self._leaves_of(each)
            if leaves & found and not leaves <= found:
                raise Refusal(Reason.PARTS, span=self.cell.span)
        rows, columns = self._ordered((found & left) - right), self._ordered((found & right) - left)
        if not rows or not columns:
            raise Refusal(Reason.VECTOR, span=self.sum.span)
        batch = self._ordered(found - {rows[-1], columns[-1]})
        return rows[-1], columns[-1], tuple(batch)

    def _leaves_of(self, of: Symbol) -> frozenset[int]:
        """The quotients and remainders that a symbol was split into."""
        if of.parts is None:
            return frozenset()
        quotient, remainder, _ = of.parts
        return self.space.iterations(self.space.normal(symbol(quotient) + symbol(remainder)))

    def _ordered(self, symbols: frozenset[int]) -> list[int]:
        """Symbols from the outermost: by the strides in the result as far as these tell, then
        coordinates z, y, x, then loops from outer to inner.
        """
        at = self.space.normal(self.cell.index)

        def place(one: int) -> tuple[int, int, int]:
            coordinate = self.space.symbols[one].coordinate
            factors = max(len(monomial) for monomial, _ in at.coefficient(one).terms)
            return (-factors, 1, one) if coordinate is None else (-factors, 0, -coordinate[1])

        return sorted(symbols, key=place)

    def _name(self, of: int) -> str:
        return self.space.name(of)

    def _axis(self, of: int) -> Axis:
        first, stop = self._bounds(of)
        return Axis(self.space.symbols[of].var, self.space.expr(first), self.space.expr(stop))

    def _bounds(self, of: int) -> tuple[Polynomial, Polynomial]:
        """From where to where a symbol runs, under all guards."""
        if of not in self.bounds:
            self.bounds[of] = ZERO, self.space.symbols[of].extent  # for what it may meet itself
            self.bounds[of] = self._found_bounds(of)
        return self.bounds[of]

    def _found_bounds(self, of: int) -> tuple[Polynomial, Polynomial]:
        one = self.space.symbols[of]
        if one.consumes is not None:
            inner = self.space.symbols[one.consumes]
            if inner.lowers or inner.uppers:
                raise Refusal(Reason.GUARD, f"'{self._name(one.consumes)}'", span=self.cell.span)
        first = self.space.greatest([ZERO, *one.lowers])
        uppers = self._uppers(of)
        if uppers and (one.coordinate or one.whole or one.consumes is not None):
            stop = self.space.least(uppers)
            self._covers(one.extent, stop)
            return first, stop
        return first, self.space.least([one.extent, *uppers])

    def _uppers(self, of: int) -> list[Polynomial]:
        """What guards bound a symbol by, those of the flat index that it is a quotient of too."""
        one = self.space.symbols[of]
        if one.whole is None:
            return list(one.uppers)
        whole, divisor = self.space.symbols[one.whole[0]], one.whole[1]
        if whole.lowers:
            raise Refusal(Reason.GUARD, f"'{self._name(one.whole[0])}'", span=self.cell.span)
        self._positive(divisor)
        uppers = self._uppers(one.whole[0])
        if not uppers:
            if not one.uppers:
                self._divisible(whole.extent, divisor)
            return list(one.uppers)
        bound = self.space.least(uppers)
        self._divisible(bound, divisor)
        self._covers(whole.extent, bound)
        return [self.space.floor_divided(bound, divisor), *one.uppers]

    def _covers(self, extent: Polynomial, stop: Polynomial) -> None:
        if extent != stop:
            enough = Binary(BinOp.GE, self.space.expr(extent), self.space.expr(stop))
            self._require(enough, "the grid covers the result", self.cell.span, of_grid=True)

    def _divisible(self, whole: Polynomial, by: Polynomial) -> None:
        if whole.divided(by)[1]:
            rest = Binary(BinOp.FLOORMOD, self.space.expr(whole), self.space.expr(by))
            zero = Binary(BinOp.EQ, rest, const_int(0))
            self._require(zero, "a flat index covers whole rows", self.cell.span)

    def _positive(self, divisor: Polynomial) -> None:
        if divisor.constant is None:
            positive = Binary(BinOp.GT, self.space.expr(divisor), const_int(0))
            self._require(positive, "an index is divided by a positive number", self.cell.span)

    def _spare(self, at: Polynomial) -> tuple[Expr, ...]:
        """Extents of the launch that choose no element of the result."""
        used: set[tuple[Coordinate, int]] = set()
        for one in self.space.iterations(at):
            found = self.space.symbols[one]
            while found.coordinate is None and (found.whole or found.consumes is not None):
                inner = found.whole[0] if found.whole else found.consumes
                assert inner is not None
                found = self.space.symbols[inner]
            if found.coordinate is not None:
                used.add(found.coordinate)
        spare: list[Polynomial] = []
        for axis in range(3):
            thread, block = (Coordinate.THREAD_IDX, axis), (Coordinate.BLOCK_IDX, axis)
            if (Coordinate.GLOBAL_IDX, axis) in used:
                if thread in used or block in used:
                    raise Refusal(Reason.PARTS, span=self.cell.span)
                continue
            parts = (thread, Coordinate.BLOCK_DIM), (block, Coordinate.GRID_DIM)
            spare += [
                self.space.atom(Index(extent, axis)) for which, extent in parts if which not in used
            ]
        return tuple(self.space.expr(one) for one in spare) + self._guarded(used)

    def _guarded(self, used: set[tuple[Coordinate, int]]) -> tuple[Expr, ...]:
        """Conditions on coordinates that choose no element: some thread must meet them."""
        for one in list(self.space.symbols.values()):
            if (one.uppers or one.lowers) and one.coordinate and one.coordinate not in used:
                which, axis = one.coordinate
                whole = (Coordinate.GLOBAL_IDX, axis) in used
                if whole or (which is Coordinate.GLOBAL_IDX and _parts(axis) & used):
                    raise Refusal(Reason.PARTS, span=self.cell.span)
                first = self.space.greatest([ZERO, *one.lowers])
                stop = self.space.least([one.extent, *one.uppers])
                some = Binary(BinOp.LT, self.space.expr(first), self.space.expr(stop))
                self._require(some, "some thread meets the guards", self.cell.span)
        return ()

    # --- operands and expressions -----------------------------------------------------------------

    def _operand(self, element: Element) -> Operand:
        role = self.arguments.get(element.array.id)
        if not isinstance(role, UserArgument):
            raise Refusal(Reason.CONSTANTS, element.array.name, span=element.span)
        linear = self._linear(self.space.normal(element.index))
        return Operand(element.array, role.argument, element.type, linear, element.span)

    def _linear(self, index: Polynomial) -> Linear:
        """An index with the passes of loops that go down counted from their ends."""
        found = sorted(self.space.iterations(index))
        for one in found:
            if self.space.symbols[one].reversed:
                first, stop = self._bounds(one)
                index = index.replaced(one, first + stop - ONE - symbol(one))
        expr = self.space.expr
        strides = tuple(
            (self.space.symbols[one].var, expr(index.coefficient(one))) for one in found
        )
        return Linear(expr(index.without(frozenset(found))), strides)

    def _ranges(self) -> list[Range]:
        """What has to stay in its range, as sums of independent parts."""
        made: dict[Range, None] = {}
        expr = self.space.expr
        for need in list(self.space.needs):
            index = need.index if need.wide else self.space.normal(need.index)
            parts = []
            for one in sorted(self.space.iterations(index)):
                first, stop = ZERO, self.space.symbols[one].extent
                if not need.wide:
                    first, stop = self._bounds(one)
                parts.append((expr(index.coefficient(one)), expr(first), expr(stop)))
            rest = index.without(self.space.iterations(index))
            made[
                Range(
                    expr(rest), tuple(parts), expr(need.low), expr(need.stop), need.array, need.span
                )
            ] = None
        return list(made)

    def _expression(self, expr: Expr) -> Expr:
        """An expression of the product: over its axes, `result` and `before`."""
        match expr:
            case VarRef(var=var) if var.id == self.sum.var.id:
                return VarRef(self.result)
            case VarRef(var=var) if var.id in self.done.befores:
                array, at = self.done.befores[var.id]
                same = self.space.normal(at) == self.space.normal(self.cell.index)
                if array.id != self.cell.array.id or not same:
                    raise Refusal(Reason.READS_OTHER, array.name, span=expr.span)
                self.uses_before = True
                return VarRef(self.before)
            case VarRef(var=var) if var.id in self.done.stale:
                raise Refusal(Reason.LAST_VALUE, var.name, span=expr.span)
            case VarRef(var=var) if var.id in self.space.opaque:
                raise Refusal(Reason.STATE, var.name, span=expr.span or self.sum.span)
            case ArrayRead(array=array, index=index):
                return self._read(array, index, expr.span)
        if type_of(expr) is INT64 and not self.space.is_uniform(expr):
            found = self._index(expr)
            if found is not None:
                return found
        old = operands(expr)
        return rebuild(expr, [self._expression(one) for one in old]) if old else expr

    def _index(self, expr: Expr) -> Expr | None:
        """An expression of indices over the axes; None if it is no polynomial of them."""
        try:
            index = self.space.normal(self.space.polynomial(expr))
        except Refusal:
            return None
        if self.space.iterations(index) - self.space.iterations(self.space.normal(self.cell.index)):
            raise Refusal(Reason.PARTS, span=expr.span or self.cell.span)
        for one in self.space.iterations(index):
            if self.space.symbols[one].reversed:
                first, stop = self._bounds(one)
                index = index.replaced(one, first + stop - ONE - symbol(one))
        return self.space.expr(index)

    def _read(self, array: Var, index: Expr, span: Span | None) -> Expr:
        at = self.space.normal(self.space.polynomial(index))
        if self.space.iterations(at) - self.space.iterations(self.space.normal(self.cell.index)):
            raise Refusal(Reason.PARTS, span=span or self.cell.span)
        operand = self._operand(Element(array, _scalar(array), at, span))
        self.others[(array.id, at)] = operand
        return ArrayRead(array, self._index(index) or self.space.expr(at), span=span)


def _parts(axis: int) -> set[tuple[Coordinate, int]]:
    return {(Coordinate.THREAD_IDX, axis), (Coordinate.BLOCK_IDX, axis)}


def _scalar(array: Var) -> Scalar:
    element = array.type.element if isinstance(array.type, Vec) else None
    if not isinstance(element, Scalar):
        raise Refusal(Reason.CONSTANTS, array.name)
    return element


def _plain(expr: Expr) -> Expr:
    """A condition without subscripts, which it has no need of."""
    old = operands(expr)
    if isinstance(expr, Subscript):
        return _plain(expr.index)
    return rebuild(expr, [_plain(one) for one in old]) if old else expr
