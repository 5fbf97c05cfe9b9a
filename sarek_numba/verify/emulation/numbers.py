"""The functions that an emulated kernel calls in place of Python's and NumPy's.

`math`, the builtins and NumPy's type constructors mean, in a kernel, the NumPy function at the
type of the operand, without exceptions (the language's documented meaning). Each entry here is
written with NumPy scalars and Python numbers alone; none uses the compiler or the oracle.

A Python number is a weak value and stays one: `math.sqrt(2.0)` gives a Python float.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from sarek_numba.frontend import language, mathematics

Function = Callable[..., Any]

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_HALVES = (np.float16, ml_dtypes.bfloat16)
_WHOLE = (builtins.int, np.integer, np.bool_)

_INT64 = np.iinfo(np.int64)


def _is_python_number(value: Any) -> bool:
    return type(value) in (int, float, bool, complex)


def saturating_int(value: Any, low: int = int(_INT64.min), high: int = int(_INT64.max)) -> int:
    """Truncate to an integer in low…high; NaN gives 0, infinities the ends."""
    if isinstance(value, (bool, int, np.integer, np.bool_)):
        return builtins.int(value)
    number = builtins.float(value)
    if math.isnan(number):
        return 0
    if math.isinf(number):
        return high if number > 0 else low
    return builtins.max(low, builtins.min(high, math.trunc(number)))


def _float_type(value: Any) -> Any:
    """The type in which a float function of a strong value computes; halves widen to float32."""
    dtype = np.asarray(value).dtype
    if dtype.kind == "f":
        return dtype.type if dtype.itemsize > 2 else np.float32
    return np.float32 if dtype.itemsize <= 2 else np.float64


def _elementwise(function: Function, *values: Any) -> Any:
    """`function` of NumPy at the common float type of its strong operands."""
    if any(map(np.iscomplexobj, values)):
        return function(*(np.asarray(value)[()] for value in values))
    strong = [value for value in values if not _is_python_number(value)]
    if not strong:
        return function(*(np.float64(value) for value in values))
    dtype = np.result_type(*(_float_type(value) for value in strong))
    if any(np.asarray(value).dtype.kind != "f" for value in strong):
        weak_floats = any(type(value) is float for value in values)
        dtype = np.dtype(np.float64) if weak_floats else dtype
    return function(*(dtype.type(value) for value in values))


def _math(function: Function) -> Function:
    """A `math` function: of weak values alone it gives a Python float."""

    def call(*values: Any) -> Any:
        result = _elementwise(function, *values)
        return builtins.float(result) if all(map(_is_python_number, values)) else result

    return call


def _numpy(function: Function) -> Function:
    """A NumPy float function: of weak values alone it gives a strong float64."""

    def call(*values: Any) -> Any:
        return _elementwise(function, *values)

    return call


def _predicate(function: Function) -> Function:
    def call(value: Any) -> Any:
        if type(value) is complex:
            return builtins.bool(function(np.complex128(value)))
        return builtins.bool(function(np.float64(value) if _is_python_number(value) else value))

    return call


def _by_python(function: Callable[..., float], edges: Function) -> Function:
    """A function that NumPy lacks, computed in float64 by `math` and rounded to the operand's
    type.
    """

    def one(value: Any) -> Any:
        number = builtins.float(value)
        try:
            result = function(number)
        except (ValueError, OverflowError):
            result = edges(number)
        return type(value)(result)

    return one


def _join(values: tuple[Any, ...], chosen: Any) -> Any:
    """`min` and `max` have the type that their operands join to; weak alone stays weak."""
    strong = [np.asarray(value).dtype for value in values if not _is_python_number(value)]
    if not strong:
        return builtins.float(chosen) if any(type(v) is float for v in values) else chosen
    weak = [value for value in values if type(value) is complex]
    return np.result_type(*strong, *weak).type(chosen)


def _numpy_extreme(function: Function) -> Function:
    """`np.minimum` and its kin; of equal numbers, such as 0.0 and -0.0, the first."""

    def call(a: Any, b: Any) -> Any:
        chosen = function(a, b)
        return np.asarray(a).astype(chosen.dtype)[()] if a == b else chosen

    return call


def _minimum_of(*values: Any) -> Any:
    return _join(values, builtins.min(*values))


def _maximum_of(*values: Any) -> Any:
    return _join(values, builtins.max(*values))


def _round(value: Any, digits: Any = None) -> Any:
    if digits is None:
        whole = isinstance(value, (builtins.int, np.integer))
        return saturating_int(value if whole else np.rint(value))
    if _is_python_number(value):
        return builtins.float(np.round(np.float64(value), digits))
    return np.round(value, digits)


def _abs(value: Any) -> Any:
    return builtins.abs(value)


def _pow(base: Any, exponent: Any) -> Any:
    return base**exponent


def _divmod(a: Any, b: Any) -> Any:
    return a // b, a % b


def _to_int(value: Any = 0) -> int:
    return saturating_int(value)


def _to_float(value: Any = 0.0) -> float:
    return builtins.float(value)


def _where(condition: Any, then: Any, otherwise: Any) -> Any:
    return _join((then, otherwise), then if condition else otherwise)


def _print(*values: Any, sep: str | None = " ", end: str | None = "\n") -> None:
    """`print`: what all threads have printed appears in thread order."""
    shown = (int(v) if isinstance(v, language.GlobalThreadId) else v for v in values)
    text = (" " if sep is None else sep).join(map(str, shown)) + ("\n" if end is None else end)
    language.current("print").print(text)


def widened(value: Any) -> Any:
    """What a kernel sees of a number in memory: of a half the float32 of the same value."""
    return np.float32(value) if isinstance(value, _HALVES) else value


def _half_bits(x: Any, dtype: Any = np.float16) -> Any:
    return convert(x, np.dtype(dtype)).view(np.uint16)


def _half_from_bits(bits: Any, dtype: Any = np.float16) -> Any:
    return np.float32(convert(bits, np.dtype(np.uint16)).view(np.dtype(dtype)))


class TypeConstructor:
    """`np.int32` and its kin: a conversion as the language defines it, and still a dtype.

    That of a half gives a float32 which holds one.
    """

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.dtype = np.dtype(kind)

    def __call__(self, value: Any = 0, imag: Any = None) -> Any:
        if imag is None:
            return widened(convert(value, self.dtype))
        made = self.dtype.type(0)
        part = made.real.dtype
        return np.array([convert(value, part), convert(imag, part)]).view(self.dtype)[0]

    def __repr__(self) -> str:
        return repr(self.kind)


def convert(value: Any, dtype: np.dtype[Any]) -> Any:
    """A value to a type as a cast does; a Python int that does not fit raises, as in NumPy."""
    if dtype.kind in "iu" and isinstance(value, (float, np.floating)):
        info = np.iinfo(dtype)
        return dtype.type(saturating_int(value, builtins.int(info.min), builtins.int(info.max)))
    if dtype == _BFLOAT16:
        return _to_bfloat16(value)
    if dtype.kind in "fc" and type(value) is builtins.int and value == saturating_int(value):
        value = np.int64(value)  # NumPy would round twice, to float64 first
    if isinstance(value, np.generic):
        return value.astype(dtype)[()]
    return dtype.type(value)


def _to_bfloat16(value: Any) -> Any:
    """Rounded once, by whole units of the last place; the package of the type rounds twice."""
    if isinstance(value, (float, np.floating, ml_dtypes.bfloat16)):
        number = builtins.float(value)
        if number == 0 or not math.isfinite(number):
            return ml_dtypes.bfloat16(number)
    exact = Fraction(builtins.int(value) if isinstance(value, _WHOLE) else builtins.float(value))
    if not exact:
        return ml_dtypes.bfloat16(0)
    size = builtins.abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** builtins.max(exponent - 7, -133)
    nearest = builtins.round(exact / unit) * unit  # ties to even
    if builtins.abs(nearest) >= 2**128:
        return ml_dtypes.bfloat16(math.copysign(math.inf, exact))
    return ml_dtypes.bfloat16(math.copysign(nearest, exact))


_UNARY_MATH = """
    sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh cbrt fabs
""".split()
_RENAMED_MATH = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh",
    "acosh": "arccosh", "atanh": "arctanh", "hypot": "hypot", "copysign": "copysign",
    "fmod": "fmod", "pow": "power", "degrees": "degrees", "radians": "radians",
    "nextafter": "nextafter",
}  # fmt: skip
_NUMPY_FLOAT = """
    sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh cbrt arcsin arccos arctan
    arctan2 arcsinh arccosh arctanh hypot copysign fmod fabs floor ceil trunc rint nextafter
    degrees radians deg2rad rad2deg
""".split()
_BY_MATH = {
    "erf": _by_python(math.erf, lambda x: math.copysign(1.0, x)),
    "erfc": _by_python(math.erfc, lambda x: 0.0 if x > 0 else 2.0),
    "gamma": _by_python(math.gamma, mathematics.gamma_edges),
    "lgamma": _by_python(math.lgamma, lambda x: math.inf),
}


def _integer_of(function: Function) -> Function:
    return lambda value: saturating_int(function(np.float64(value)))


def _replacements() -> dict[Any, Function]:
    """From each function of Python and NumPy to what it means in a kernel, by identity."""
    table: dict[Any, Function] = {
        builtins.abs: _abs,
        builtins.print: _print,
        builtins.min: _minimum_of,
        builtins.max: _maximum_of,
        builtins.round: _round,
        builtins.pow: _pow,
        builtins.divmod: _divmod,
        builtins.int: _to_int,
        builtins.float: _to_float,
        math.floor: _integer_of(np.floor),
        math.ceil: _integer_of(np.ceil),
        math.trunc: _integer_of(np.trunc),
        np.where: _where,
        np.round: _round,
        np.power: _pow,
        math.pow: _math(np.power),
    }
    for name in _UNARY_MATH:
        if hasattr(math, name):
            table[getattr(math, name)] = _math(getattr(np, name))
    for name, renamed in _RENAMED_MATH.items():
        table[getattr(math, name)] = _math(getattr(np, renamed))
    for name, function in _BY_MATH.items():
        table[getattr(math, name)] = _math(function)
    for name in _NUMPY_FLOAT:
        table[getattr(np, name)] = _numpy(getattr(np, name))
    for name in ("minimum", "maximum", "fmin", "fmax"):
        table[getattr(np, name)] = _numpy_extreme(getattr(np, name))
    for name in ("isnan", "isinf", "isfinite"):
        table[getattr(math, name)] = _predicate(getattr(np, name))
        table[getattr(np, name)] = _predicate(getattr(np, name))
    if hasattr(math, "fma"):  # from CPython 3.13
        table[math.fma] = mathematics.fma
    for kind in (np.bool_, *np.sctypeDict.values()):
        if issubclass(kind, (np.bool_, np.number)):
            table[kind] = TypeConstructor(kind)
    table[ml_dtypes.bfloat16] = TypeConstructor(ml_dtypes.bfloat16)
    table[language.half_bits] = _half_bits
    table[language.half_from_bits] = _half_from_bits
    return table


REPLACEMENTS = _replacements()
