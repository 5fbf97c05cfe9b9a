"""Rules of complex numbers: `+ - * / **`, `==` and `!=`, parts, and the functions that take them.

Each rule here is asked where an argument is complex, in place of the rule for other numbers; what
has none here is refused there. Real operands become complex, as NumPy and CPython convert them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

import sarek_numba.frontend.rules.functions  # noqa: F401 - has the rules that are extended
from sarek_numba.errors import UnknownName
from sarek_numba.frontend.complexes import (
    WEAK_COMPLEX,
    ConjugateMethod,
    default_complex,
    is_complex,
    part_of,
    promote_complex,
)
from sarek_numba.frontend.rules.operators import require_numbers
from sarek_numba.frontend.rules.registry import extend, rule
from sarek_numba.frontend.typed import Complex, Operation, PartView, Type
from sarek_numba.frontend.weak import (
    Refusal,
    WeakInt,
    describe,
    is_number,
)

_ZERO = WeakInt.of(0)  # complex() without an argument


def _require(function: Any, *operands: Type) -> None:
    """Refuse what is neither real nor complex."""
    require_numbers(function, *(x for x in operands if not is_complex(x)))


def _apply(name: str, function: Any, is_ufunc: bool) -> Callable[..., Operation]:
    """An operation on complex numbers of one type, which its result has too."""

    def resolve(*args: Type) -> Operation:
        common = _common(function, args, is_ufunc)
        return Operation(Complex(name), (common,) * len(args), common)

    return resolve


def _common(function: Any, args: tuple[Type, ...], is_ufunc: bool) -> Type:
    """The complex type of some operands; NumPy makes a complex128 of what is weak alone."""
    _require(function, *args)
    common = args[0]
    for other in args[1:]:
        common = promote_complex(common, other)
    return default_complex(common) if is_ufunc else common


_OPERATORS = {
    "add": (operator.add, operator.iadd),
    "subtract": (operator.sub, operator.isub),
    "multiply": (operator.mul, operator.imul),
    "divide": (operator.truediv, operator.itruediv),
    "power": (operator.pow, operator.ipow, pow),
    "negate": (operator.neg,),
    "convert": (operator.pos,),
}
_UFUNCS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.true_divide,
    "power": np.power,
    "negate": np.negative,
    "convert": np.positive,
    "exp": np.exp,
    "sqrt": np.sqrt,
}
for _name, _functions in _OPERATORS.items():
    for _function in _functions:
        extend(_function)(_apply(_name, _function, False))
for _name, _function in _UFUNCS.items():
    extend(_function)(_apply(_name, _function, True))


def _compare(name: str, function: Any) -> Callable[[Type, Type], Operation]:
    def resolve(left: Type, right: Type) -> Operation:
        common = _common(function, (left, right), False)
        return Operation(Complex(name), (common, common), types.boolean)

    return resolve


for _function in (operator.eq, np.equal):
    extend(_function)(_compare("equal", _function))
for _function in (operator.ne, np.not_equal):
    extend(_function)(_compare("differ", _function))


# --- of one complex number ------------------------------------------------------------------------


def _real_valued(name: str, is_ufunc: bool) -> Callable[[Type], Operation]:
    """A function whose result is a float of the parts' type."""

    def resolve(z: Type) -> Operation:
        given = default_complex(z) if is_ufunc else z
        return Operation(Complex(name), (given,), part_of(given))

    return resolve


extend(abs)(_real_valued("absolute", False))
extend(np.absolute)(_real_valued("absolute", True))


def _test(name: str) -> Callable[[Type], Operation]:
    def resolve(z: Type) -> Operation:
        return Operation(Complex(name), (z,), types.boolean)

    return resolve


for _name in ("isnan", "isinf", "isfinite"):
    extend(getattr(np, _name))(_test(_name))
extend(bool)(_test("truth"))
extend(operator.not_, np.logical_not)(_test("falsehood"))


def _of_complex(name: str, function: Any, given_as: Any, result: Callable[[Type], Type]) -> None:
    """A function of NumPy that this module alone has: of a complex number, given as some type."""

    def resolve(z: Type, /) -> Operation:
        if not is_complex(z):
            _require(function, z)
            raise Refusal(
                f"np.{function.__name__}() takes a complex number, not {describe(z)}",
                "leave it out: a real number has no imaginary part",
            )
        given = given_as(z)
        return Operation(Complex(name), (given,), result(given))

    rule(function)(resolve)


def _itself(type: Type) -> Type:
    return type


_of_complex("conjugate", np.conjugate, default_complex, _itself)  # np.conj is the same object
_of_complex("angle", np.angle, default_complex, part_of)
_of_complex("real", np.real, _itself, part_of)
_of_complex("imag", np.imag, _itself, part_of)


@extend(np.where)
def where(condition: Type, x: Type, y: Type) -> Operation:
    _require(np.where, condition, x, y)
    if is_complex(condition):
        raise Refusal("the condition of np.where is complex", "compare it, as in z != 0")
    common = default_complex(promote_complex(x, y))
    return Operation(Complex("select"), (types.boolean, common, common), common)


# --- construction ---------------------------------------------------------------------------------


@rule(complex)
def to_complex(real: Type = _ZERO, imag: Type = types.none) -> Operation:
    """`complex(z)`, `complex(real, imag)`: a Python complex."""
    return constructed(WEAK_COMPLEX, complex, real, imag)


def constructed(target: Type, function: Any, real: Type, imag: Type) -> Operation:
    """A complex number of its parts, or converted from another number."""
    _require(function, real)
    if isinstance(imag, types.NoneType):
        given = real if is_complex(real) else part_of(target)
        return Operation(Complex("convert"), (given,), target)
    _require(function, imag)
    if is_complex(real) or is_complex(imag):
        raise Refusal(
            f"the parts of a complex number are real: {describe(real)} and {describe(imag)}",
            "write a + b * 1j",
        )
    return Operation(Complex("make"), (part_of(target),) * 2, target)


def constructor_of(target: Type, function: Any) -> Callable[..., Operation]:
    """The rule of `np.complex64` or `np.complex128`."""

    def convert(real: Type = _ZERO, imag: Type = types.none, /) -> Operation:
        return constructed(target, function, real, imag)

    return convert


# --- attributes -----------------------------------------------------------------------------------

_PARTS = ("real", "imag")


def complex_attribute(owner: Type, name: str) -> tuple[Type, Operation]:
    """`z.real`, `z.imag` and `z.conjugate`, of which the last is called."""
    if name in _PARTS:
        part = part_of(owner)
        return part, Operation(Complex(name), (owner,), part)
    if name in ("conjugate", "conj") and not (name == "conj" and owner == WEAK_COMPLEX):
        method = ConjugateMethod(owner)
        return method, Operation(Complex("method"), (owner,), method)
    raise Refusal(
        f"{describe(owner)} has no attribute {name!r} in a kernel",
        "it has real, imag and conjugate()",
        UnknownName,
    )


def conjugate_takes() -> Operation:
    """The arguments of `z.conjugate`: none."""
    raise AssertionError("only its signature is of use")


def conjugated(method: ConjugateMethod) -> Operation:
    """The call of `z.conjugate`."""
    return Operation(Complex("conjugate"), (method.owner,), method.owner)


def part_view(array: Type, name: str) -> Operation | None:
    """`a.real` or `a.imag`, a view of a complex array; None for anything else."""
    if name not in _PARTS or not is_complex(array.dtype):
        return None
    view = array.copy(dtype=part_of(array.dtype), layout="A")
    return Operation(PartView(_PARTS.index(name)), (array,), view)


def refused_element(name: str, element: Type) -> Refusal | None:
    """Why an atomic operation does not take complex elements."""
    if not is_complex(element):
        return None
    return Refusal(
        f"sarek.atomic.{name}() does not take elements of {element}",
        "act on a.real and a.imag, each by itself",
    )


def storable(value: Type, element: Type) -> bool:
    """Whether a store takes a value because one of the two is complex. Raises a `Refusal`."""
    if not is_complex(value):
        return is_complex(element) and is_number(value)
    if is_complex(element):
        return True
    raise Refusal(
        f"{describe(value)} cannot be stored in an array of {element}",
        "store one of its parts, as in z.real, or its abs",
    )
