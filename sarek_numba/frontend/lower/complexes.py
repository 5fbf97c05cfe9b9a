"""Lowering of complex numbers: a value is two floats, an element two elements of its array.

`+ - * /` and constant integer powers of strong types are NumPy's formulas, those of Python's own
complex type are CPython's: the two differ in division and in how a power starts. `exp`, `sqrt` and
other powers are made of real functions. No operation here stands in an expression that is evaluated
conditionally unless it is in `PURE`, so operands may be bound to variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from numba.core import types

from sarek_numba.frontend import typed as t
from sarek_numba.frontend.complexes import WeakComplex, part_of
from sarek_numba.frontend.lower import pairs, roots, views
from sarek_numba.frontend.lower.arithmetic import Arithmetic, Parts, both
from sarek_numba.frontend.lower.convert import constant_as, int64
from sarek_numba.frontend.lower.operators import add, multiply
from sarek_numba.frontend.lower.values import Cell, ComplexValue, Value, View, reads_memory
from sarek_numba.frontend.weak import constant_of, is_number, scalar_of
from sarek_numba.ir.nodes import ArrayRead, Assign, Expr, LElement, Subscript, constant
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.walk import map_expr
from sarek_numba.span import Span

if TYPE_CHECKING:
    from sarek_numba.frontend.lower.function import FunctionLowering
    from sarek_numba.frontend.regions import Statement

# What uses each part of an operand once.
PURE = frozenset(
    "real imag method conjugate convert make add subtract negate equal differ absolute".split()
)
_MOST_POWER = {True: 100, False: 99}  # of Python's complex, of NumPy's, by multiplications


def lower_complex(
    lowering: FunctionLowering, operation: t.Operation, statement: Statement
) -> Value:
    """The value of an operation on complex numbers."""
    assert isinstance(operation.what, t.Complex)
    span = lowering.span(statement)
    name = operation.what.name
    if name == "make":
        pairs = zip(operation.arguments, operation.operands, strict=True)
        return ComplexValue(tuple(Cell(lowering.number(*pair)) for pair in pairs))
    if name == "convert":
        (argument,) = operation.arguments
        return _number(lowering, argument, operation.operands[0], operation.result)
    weak = isinstance(operation.operands[-1], WeakComplex)
    arithmetic = Arithmetic(lowering.emitter.bind, weak, span)
    if name == "select":
        return _select(lowering, operation, arithmetic)
    if name == "power":
        return _value(_power(lowering, operation, arithmetic))
    pairs = zip(operation.arguments, operation.operands, strict=True)
    operands = [_operand(lowering, *pair) for pair in pairs]
    result = _COMPUTE[name](arithmetic, *operands)
    return _value(result) if isinstance(result, tuple) else Cell(result)


_COMPUTE: dict[str, Callable[..., Parts | Expr]] = {
    "real": lambda arithmetic, z: z[0],
    "imag": lambda arithmetic, z: z[1],
    "method": lambda arithmetic, z: z,
    "conjugate": lambda arithmetic, z: (z[0], arithmetic.negative(z[1])),
    "negate": lambda arithmetic, z: both(arithmetic.negative, z),
    "add": lambda arithmetic, a, b: both(arithmetic.plus, a, b),
    "subtract": lambda arithmetic, a, b: both(arithmetic.minus, a, b),
    "multiply": Arithmetic.product,
    "divide": Arithmetic.quotient,
    "equal": Arithmetic.equal,
    "differ": Arithmetic.differ,
    "truth": Arithmetic.truth,
    "falsehood": Arithmetic.falsehood,
    "absolute": lambda arithmetic, z: arithmetic.call("hypot", *z),
    "angle": lambda arithmetic, z: arithmetic.call("atan2", z[1], z[0]),
    "isnan": lambda arithmetic, z: arithmetic.either("isnan", z),
    "isinf": lambda arithmetic, z: arithmetic.either("isinf", z),
    "isfinite": Arithmetic.finite,
    "exp": roots.exponential,
    "sqrt": roots.square_root,
}


def _value(parts: Parts) -> ComplexValue:
    return ComplexValue(tuple(map(Cell, parts)))


def operand(lowering: FunctionLowering, operation: t.Operation, position: int) -> ComplexValue:
    """An operand of an operation, in the complex type that it is converted to."""
    return _number(lowering, operation.arguments[position], None, operation.operands[position])


def _operand(lowering: FunctionLowering, argument: t.Argument, type: types.Type) -> Parts:
    value = _number(lowering, argument, None, type)
    real, imag = value.items
    assert isinstance(real, Cell)
    assert isinstance(imag, Cell)
    return real.expr, imag.expr


def _number(
    lowering: FunctionLowering, argument: t.Argument, via: types.Type | None, target: types.Type
) -> ComplexValue:
    """An argument as a complex number, converted to `via` before, if that is given."""
    if isinstance(argument, t.Default):
        return complex_constant(argument.value, target, None)
    source = lowering.type_of(argument)
    value = lowering.read(argument)
    if via is not None:
        value, source = lowering.converted(value, source, via), via
    return as_complex(lowering, value, source, target)


def as_complex(
    lowering: FunctionLowering, value: Value, source: types.Type, target: types.Type
) -> ComplexValue:
    """A number of any type as a complex one."""
    part = part_of(target)
    if isinstance(value, ComplexValue):
        source = getattr(source, "owner", source)
        cells = (lowering.converted(item, part_of(source), part) for item in value.items)
        return ComplexValue(tuple(cells))
    assert is_number(source)
    zero = constant(scalar_of(part), 0)
    return ComplexValue((lowering.converted(value, source, part), Cell(zero)))


def complex_constant(value: complex, target: types.Type, span: Span | None) -> ComplexValue:
    """A constant as a complex number."""
    scalar = scalar_of(part_of(target))
    number = complex(value)
    return ComplexValue(
        tuple(Cell(constant_as(scalar, part, span)) for part in (number.real, number.imag))
    )


def complex_parts(type: types.Type) -> tuple[Scalar, Scalar]:
    """The types of the two variables that hold a number of a complex type."""
    scalar = scalar_of(part_of(type))
    return scalar, scalar


def _select(
    lowering: FunctionLowering, operation: t.Operation, arithmetic: Arithmetic
) -> ComplexValue:
    condition = lowering.number(operation.arguments[0], types.boolean)
    condition = lowering.emitter.bind(condition)
    then, orelse = (
        _operand(lowering, argument, operation.result) for argument in operation.arguments[1:]
    )
    return _value(both(lambda a, b: arithmetic.choose(condition, a, b), then, orelse))


def _power(lowering: FunctionLowering, operation: t.Operation, arithmetic: Arithmetic) -> Parts:
    base, exponent = operation.arguments
    type = exponent.type if isinstance(exponent, t.Default) else lowering.type_of(exponent)
    z = arithmetic.bound(_operand(lowering, base, operation.operands[0]))
    known = constant_of(type)
    most = _MOST_POWER[arithmetic.weak]
    if known is not None and known == int(known) and abs(known) <= most:
        return arithmetic.whole_power(z, int(known))
    w = _operand(lowering, exponent, operation.operands[1])
    return roots.power(arithmetic, z, arithmetic.bound(w))


# --- elements -------------------------------------------------------------------------------------


def read_element(view: View, indices: list[Expr], span: Span) -> ComplexValue:
    """An element of a complex array."""
    return ComplexValue(
        tuple(Cell(ArrayRead(view.base, flat, span=span)) for flat in _flat(view, indices, span))
    )


def store_element(
    lowering: FunctionLowering, view: View, indices: list[Expr], value: ComplexValue, span: Span
) -> None:
    """Store both parts; neither is computed from memory after the first store."""
    cells = [cell for cell in value.items if isinstance(cell, Cell)]
    if any(reads_memory(cell.expr) for cell in cells):
        for cell in cells:
            lowering.emitter.bind_cell(cell)
    if any(map(reads_memory, indices)):
        indices = [lowering.emitter.bind(index) for index in indices]
    lowering.emitter.settle_memory()
    for flat, cell in zip(_flat(view, indices, span), cells, strict=True):
        target = LElement(view.base, flat, span=span)
        lowering.emitter.emit(Assign(target, cell.expr, span=span))


def _flat(view: View, indices: list[Expr], span: Span) -> Iterator[Expr]:
    """The places of the real and of the imaginary part."""

    def marked(part: int) -> Callable[[Expr], Expr]:
        return lambda expr: replace(expr, part=part) if isinstance(expr, Subscript) else expr

    for part in (0, 1):
        offset = Cell(map_expr(view.offset.expr, marked(part)))
        flat = views.flat_index(replace(view, part=part, offset=offset), indices, span)
        yield add(multiply(flat, int64(2)), int64(part))


def part_view(lowering: FunctionLowering, view: View, part: int) -> View:
    """The real or the imaginary parts of a complex array, as a view of its floats."""
    if view.twin is not None:
        return pairs.part_of(view, part)
    whole = views.select(view, (), lowering.emitter.bind, None)
    return View(
        whole.base,
        whole.shape,
        Cell(add(multiply(whole.offset.expr, int64(2)), int64(part))),
        tuple(Cell(multiply(stride.expr, int64(2))) for stride in whole.strides),
        None,
        part=part,
    )
