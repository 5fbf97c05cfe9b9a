"""Weak types, and the two ways in which types meet: promotion of operands and joins of variables.

A value that is a Python int or float in CPython is weak (NEP 50): it takes the type of the strong
operand that it meets. Weakness is typing alone: a weak int computes as int64, a weak float as
float64. Everything else in a kernel has one of Numba's own scalar types.

`promote` gives the type in which an operation on two numbers is done. `join` gives the type of a
variable that holds both. Either raises a `Refusal` subclass that says why there is none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numba.core import ir, types
from numba.core.errors import TypingError as NumbaTypingError
from numba.np.numpy_support import from_dtype

from sarek_numba import errors
from sarek_numba.frontend.halves import HALF_TYPES
from sarek_numba.ir.types import Scalar

Type: TypeAlias = types.Type

# More alternatives than this make a weak int a run-time value.
_MOST_ALTERNATIVES = 8


class Refusal(NumbaTypingError):  # type: ignore[misc] # Numba ships no types
    """Why an operation has no type: becomes one `Diagnostic` at the operation's place.

    It derives from Numba's error, so that Numba's inferer collects it and goes on.
    """

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        error: type[errors.CompileError] = errors.TypingError,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.error = error
        self.variables: tuple[ir.Var, ...] = ()  # whose origins are to be shown
        self.operand: tuple[int | str, ...] = ()  # which operand is at fault, and which item of it


@contextlib.contextmanager
def operand(position: int | str) -> Iterator[None]:
    """A refusal in here is about one operand, or one item of a tuple: carets go under it alone."""
    try:
        yield
    except Refusal as refusal:
        refusal.operand = (position, *refusal.operand)
        raise


class Weak(types.Hashable):  # type: ignore[misc] # Numba ships no types
    """A Python number. Not a `types.Number`: Numba would unify those by its own rules."""


class WeakInt(Weak):
    """A Python int.

    `alternatives` holds the constants that it may be, while those are few: `x if c else y` of two
    literals is one of two constants. It is None for a run-time value.
    """

    def __init__(self, alternatives: frozenset[int] | None = None) -> None:
        self.alternatives = alternatives
        shown = "" if alternatives is None else f" {'|'.join(map(str, sorted(alternatives)))}"
        super().__init__(f"Python int{shown}")

    @classmethod
    def of(cls, value: int) -> WeakInt:
        """The type of one constant."""
        return cls(frozenset((value,)))

    @property
    def value(self) -> int | None:
        """The constant, if there is exactly one."""
        if self.alternatives is None or len(self.alternatives) != 1:
            return None
        return next(iter(self.alternatives))


class WeakFloat(Weak):
    """A Python float; `value` is the constant, or None for a run-time value."""

    def __init__(self, value: float | None = None) -> None:
        self.value = value
        # repr keeps 0.0 and -0.0 apart and makes NaN equal to itself, as keys need
        super().__init__("Python float" if value is None else f"Python float {value!r}")


WEAK_INT = WeakInt()
WEAK_FLOAT = WeakFloat()


def constant_of(type: Type) -> int | float | None:
    """The one constant that a weak type stands for, or None."""
    if isinstance(type, (WeakInt, WeakFloat)):
        return type.value
    return None


def generalise(type: Type) -> Type:
    """The type without its constants, as a call boundary sees it; tuples item by item."""
    if isinstance(type, WeakInt):
        return WEAK_INT
    if isinstance(type, WeakFloat):
        return WEAK_FLOAT
    if isinstance(type, types.BaseTuple):
        return tuple_of(tuple(generalise(item) for item in type.types), class_of(type))
    return type


def tuple_of(items: tuple[Type, ...], named: type[tuple[object, ...]] | None = None) -> Type:
    """The tuple type of these items, of a named tuple's class if there is one."""
    return types.BaseTuple.from_types(items, named)


def class_of(items: Type) -> type[tuple[object, ...]] | None:
    """The class of a named tuple's type; None for a plain tuple's."""
    return items.instance_class if isinstance(items, types.BaseNamedTuple) else None


# --- families -------------------------------------------------------------------------------------


def is_integer(type: Type) -> bool:
    """A strong integer; a bool is none."""
    return isinstance(type, types.Integer)


def is_float(type: Type) -> bool:
    """A strong float."""
    return isinstance(type, types.Float)


def is_bool(type: Type) -> bool:
    return isinstance(type, types.Boolean)


def is_whole(type: Type) -> bool:
    """An integer, strong or weak."""
    return is_integer(type) or isinstance(type, WeakInt)


def is_real(type: Type) -> bool:
    """A float, strong or weak."""
    return is_float(type) or isinstance(type, WeakFloat)


def is_number(type: Type) -> bool:
    """What a value may be; a half is none."""
    return isinstance(type, (types.Integer, types.Float, types.Boolean, Weak))


_SCALARS = {scalar.value: scalar for scalar in Scalar}


def scalar_of(type: Type) -> Scalar:
    """The IR type that a number is computed and kept in."""
    if isinstance(type, WeakInt):
        return Scalar.INT64
    if isinstance(type, WeakFloat):
        return Scalar.FLOAT64
    return _SCALARS[type.name]


def type_of(scalar: Scalar) -> Type:
    """The Numba type of an IR scalar, as an element of memory has it."""
    if scalar in HALF_TYPES:
        return HALF_TYPES[scalar]
    return types.boolean if scalar is Scalar.BOOL else getattr(types, scalar.value)


def dtype_of(type: Type) -> np.dtype[np.generic]:
    """NumPy's dtype of a strong number."""
    dtype: np.dtype[np.generic] = np.dtype(type.name)
    return dtype


def describe(type: Type) -> str:
    """A type in the words of an error message."""
    if isinstance(type, Weak):
        value = constant_of(type)
        kind = "int" if isinstance(type, WeakInt) else "float"
        return f"a Python {kind}" if value is None else f"the Python {kind} {value!r}"
    if isinstance(type, types.NoneType):
        return "None"
    if isinstance(type, types.Array):
        space = f"{type.space.value} " if hasattr(type, "space") else ""
        return f"a {type.ndim}-D {space}array of {type.dtype}"
    if isinstance(type, types.BaseTuple):
        named = class_of(type)
        return f"a tuple of {len(type)}" if named is None else f"a named tuple {named.__name__}"
    return str(getattr(type, "described", type))


# --- operands -------------------------------------------------------------------------------------


def fits(value: int, type: Type) -> bool:
    """Whether an integer is in the range of a strong integer type."""
    return bool(type.minval <= value <= type.maxval)


def check_fit(constant: Type, type: Type) -> None:
    """Refuse a constant weak int that does not fit the strong integer type that it meets."""
    if not (isinstance(constant, WeakInt) and constant.alternatives and is_integer(type)):
        return
    for value in sorted(constant.alternatives):
        if not fits(value, type):
            raise Refusal(
                f"the integer {value} does not fit {type}",
                _hint_to_fit(value, type),
                errors.ConstantOverflow,
            )


def _hint_to_fit(value: int, type: Type) -> str:
    if fits(value, types.uint64):
        wide = "write sarek.uint64(...) around it" if value >= 1 << 63 else "use a wider type"
    elif fits(value, types.int64):
        wide = "use a signed type" if value >= type.minval >> 1 else "use a wider type"
    else:
        return "no integer type is wider than 64 bits: use a float"
    wrapped = value % (1 << type.bitwidth)
    wrapped -= (1 << type.bitwidth) * (wrapped > type.maxval)
    return f"{wide}, or write sarek.{type}({wrapped}) if the wrapped value is meant"


def meet(weak: Type, strong: Type) -> Type:
    """The type of a weak number as operand beside a strong one."""
    if isinstance(weak, WeakFloat):
        return strong if is_float(strong) else types.float64
    if is_bool(strong):
        return WEAK_INT
    check_fit(weak, strong)
    if is_integer(strong) and strong.bitwidth < 32 and weak.alternatives is None:
        raise Refusal(
            f"a run-time Python int meets {strong}, which it may not fit",
            f"write sarek.{strong}(...) around the int, or sarek.int32(...) around the {strong}",
        )
    return strong


def promote(left: Type, right: Type) -> Type:
    """The type in which an operation on two numbers is done: NumPy 2's."""
    if isinstance(left, Weak) and isinstance(right, Weak):
        if not (isinstance(left, WeakInt) and isinstance(right, WeakInt)):
            return WEAK_FLOAT
        check_fit(left, types.int64)  # in which run-time Python ints compute
        check_fit(right, types.int64)
        return WEAK_INT
    if isinstance(left, Weak):
        return meet(left, right)
    if isinstance(right, Weak):
        return meet(right, left)
    return widened(from_dtype(np.promote_types(dtype_of(left), dtype_of(right))))


def widened(type: Type) -> Type:
    """float32 where NumPy would give float16, which no value has."""
    return types.float32 if type == types.float16 else type


# --- variables ------------------------------------------------------------------------------------


def join(left: Type, right: Type) -> Type | None:
    """The type of a variable that holds both, or None where there is none.

    Raises a `Refusal` for a Python int that does not, or may not, fit the integers it is joined
    with.
    """
    if left == right:
        return left
    if isinstance(left, types.BaseTuple) and isinstance(right, types.BaseTuple):
        return _join_tuples(left, right)
    from sarek_numba.frontend.complexes import is_complex, join_complex

    if is_complex(left) or is_complex(right):
        return join_complex(left, right)
    if not (is_number(left) and is_number(right)):
        return None
    if isinstance(left, Weak) and isinstance(right, Weak):
        return _join_weak(left, right)
    if isinstance(left, Weak):
        return _join_strong(left, right)
    if isinstance(right, Weak):
        return _join_strong(right, left)
    both_integers = is_integer(left) and is_integer(right)
    if both_integers or (is_float(left) and is_float(right)):
        common = from_dtype(np.promote_types(dtype_of(left), dtype_of(right)))
        return common if is_integer(common) == both_integers else None
    return None


def _join_weak(left: Weak, right: Weak) -> Type:
    if not (isinstance(left, WeakInt) and isinstance(right, WeakInt)):
        return WEAK_FLOAT
    if left.alternatives is None or right.alternatives is None:
        return WEAK_INT
    together = left.alternatives | right.alternatives
    return WeakInt(together) if len(together) <= _MOST_ALTERNATIVES else WEAK_INT


def _join_strong(weak: Weak, strong: Type) -> Type | None:
    if is_bool(strong) or (isinstance(weak, WeakFloat) and is_integer(strong)):
        return None
    return meet(weak, strong)


def _join_tuples(left: Type, right: Type) -> Type | None:
    named = class_of(left)
    if len(left) != len(right) or named is not class_of(right):
        return None
    items = tuple(join(a, b) for a, b in zip(left.types, right.types, strict=True))
    return None if None in items else tuple_of(items, named)
