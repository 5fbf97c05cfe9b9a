"""What kernels' operators and conversions mean, written with Python ints and NumPy floats alone.

A kind is a dtype's name, or `weak_int` or `weak_float` for a Python number at run time. Results of
whole kinds are kept as int64 modulo 2^64, those of real kinds as float64, which holds them exactly.
Where CPython or NumPy raises, or the oracle reports a fault, the language still gives devices a
value; a `Column` says so row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
STRONG = ("bool", *INTEGERS, *FLOATS)
KINDS = (*STRONG, "weak_int", "weak_float")

DTYPES = {kind: np.dtype(kind) for kind in STRONG} | {
    "weak_int": np.dtype(np.int64),
    "weak_float": np.dtype(np.float64),
}

ARITHMETIC = ("+", "-", "*", "//", "%", "**")
BITWISE = ("&", "|", "^")
SHIFTS = ("<<", ">>")
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
}
EXTREMES = ("min", "max")
IN_PLACE = (*ARITHMETIC, "/", *SHIFTS, *BITWISE)
OPERATORS = (*IN_PLACE, *COMPARISONS, *EXTREMES, "divmod 0", "divmod 1")

EXACT_UP_TO = 2**53
# The language's powers are inexact; no device here is further from the exact one than this.
POWER_ULP = 16


def is_whole(kind: str) -> bool:
    return kind in INTEGERS or kind == "weak_int"


def is_real(kind: str) -> bool:
    return kind in FLOATS or kind == "weak_float"


def is_weak(kind: str) -> bool:
    return kind.startswith("weak")


def ends(kind: str) -> tuple[int, int]:
    """The least and the greatest value of a whole kind or a bool."""
    if kind == "bool":
        return 0, 1
    info = np.iinfo(DTYPES[kind])
    return int(info.min), int(info.max)


def fits(value: int, kind: str) -> bool:
    low, high = ends(kind)
    return low <= value <= high


def wrap(value: int, kind: str) -> int:
    """Modulo 2^n into the range of a whole kind; a bool is whether it is not zero."""
    if kind == "bool":
        return int(value != 0)
    low, high = ends(kind)
    return (value - low) % (high - low + 1) + low


# --- types ----------------------------------------------------------------------------------------


def common(left: str, right: str) -> str | None:
    """The kind in which two operands meet; None where a Python int may not fit."""
    if not is_weak(left) and not is_weak(right):
        return np.result_type(left, right).name
    if is_weak(left) and is_weak(right):
        return "weak_float" if "weak_float" in (left, right) else "weak_int"
    weak, strong = (left, right) if is_weak(left) else (right, left)
    if weak == "weak_float":
        return strong if strong in FLOATS else "float64"
    if strong == "bool":
        return "weak_int"
    return None if strong in ("int8", "int16", "uint8", "uint16") else strong


def joined(left: str, right: str) -> str | None:
    """The kind of `min` and `max`: that of a variable which holds both."""
    kind = common(left, right)
    if kind is None or (left == "bool") != (right == "bool"):
        return None
    weak = is_weak(left) and is_weak(right)
    if not weak and is_real(kind):
        for operand in (left, right):
            if operand in INTEGERS:
                return None
    return kind


def result(operator: str, left: str, right: str) -> str | None:
    """The kind of a binary operation; None where the language refuses it."""
    if operator in COMPARISONS:
        return "bool"
    if operator in EXTREMES:
        return joined(left, right)
    if operator in BITWISE:
        kind = common(left, right)
        return None if kind is None or is_real(kind) or is_real(left) or is_real(right) else kind
    if left == right == "bool":
        return None
    if operator in SHIFTS:
        return _shifted(left, right)
    kind = common(left, right)
    if operator == "/" and kind is not None and not is_real(kind):
        return "weak_float" if kind == "weak_int" else "float64"
    return kind


def _shifted(value: str, count: str) -> str | None:
    if is_real(value) or is_real(count):
        return None
    if count == "weak_int":
        return value if value in INTEGERS else "weak_int"
    kind = common(value, count)
    return value if kind is not None and is_real(kind) else kind


# --- values ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """One operation on every row: its text, kind, results, and who can be asked about which row."""

    text: str
    kind: str
    values: np.ndarray
    emulated: np.ndarray
    reported: np.ndarray  # rows at which the oracle reports a fault
    ulp: int = 0

    @property
    def guarded(self) -> bool:
        """Whether some executor must not compute some row."""
        return not self.emulated.all() or bool(self.reported.any())


def whole_power(x: int, y: int) -> int:
    """Exact modulo 2^64; a negative exponent gives 0, or ±1 for ±1."""
    if y >= 0:
        return pow(x, y, 2**64)
    return {1: 1, -1: -1 if y % 2 else 1}.get(x, 0)


def power_fits(x: int, y: int) -> bool:
    if y < 0:
        return False
    return abs(x) <= 1 or (y < 64 and fits(x**y, "int64"))


def shift(operator: str, x: int, count: int, width: int) -> int:
    if 0 <= count < width:
        return x << count if operator == "<<" else x >> count
    return -1 if operator == ">>" and x < 0 else 0


def shift_fits(operator: str, x: int, count: int) -> bool:
    if operator == ">>":
        return True
    return count >= 0 and (x == 0 or (count < 64 and fits(x << count, "int64")))


_WHOLE: dict[str, Callable[[int, int], int]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "//": lambda x, y: x // y if y else 0,
    "%": lambda x, y: x % y if y else 0,
    "&": lambda x, y: x & y,
    "|": lambda x, y: x | y,
    "^": lambda x, y: x ^ y,
    "min": lambda x, y: y if y < x else x,
    "max": lambda x, y: y if y > x else x,
}

_REAL: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "//": lambda x, y: x // y,
    "%": lambda x, y: x % y,
    "min": lambda x, y: np.where(y < x, y, x),
    "max": lambda x, y: np.where(y > x, y, x),
}


def binary(text: str, operator: str, left: str, right: str, a: Any, b: Any) -> Column | None:
    """The column of `a operator b`, arrays of the kinds' dtypes; None where it is refused."""
    kind = result(operator, left, right)
    if kind is None:
        return None
    operator = {"divmod 0": "//", "divmod 1": "%"}.get(operator, operator)
    xs, ys = a.tolist(), b.tolist()
    with np.errstate(all="ignore"):
        values = _values(operator, kind, left, right, a, b)
    emulated = np.array(
        [_python_has(operator, kind, left, right, x, y) for x, y in zip(xs, ys, strict=True)]
    )
    reported = np.array(
        [_oracle_reports(operator, kind, left, right, x, y) for x, y in zip(xs, ys, strict=True)]
    )
    ulp = POWER_ULP if operator == "**" and is_real(kind) else 0
    return Column(text, kind, values, emulated & ~reported, reported, ulp)


def _values(operator: str, kind: str, left: str, right: str, a: Any, b: Any) -> np.ndarray:
    if operator in COMPARISONS:
        x, y = _comparable(left, right, a, b)
        compare = COMPARISONS[operator]
        return np.array([compare(p, q) for p, q in zip(x, y, strict=True)], np.int64)
    if is_real(kind):
        x, y = a.astype(DTYPES[kind]), b.astype(DTYPES[kind])
        if operator == "**":
            power = np.power(x.astype(np.float64), y.astype(np.float64))
            return power.astype(DTYPES[kind]).astype(np.float64)
        return np.asarray(_REAL[operator](x, y)).astype(np.float64)
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    return as_int64([_whole(operator, kind, int(x), int(y)) for x, y in pairs], kind)


def _whole(operator: str, kind: str, x: int, y: int) -> int:
    x = wrap(x, kind)
    if operator in SHIFTS:
        return shift(operator, x, y, DTYPES[kind].itemsize * 8)
    y = wrap(y, kind)
    return whole_power(x, y) if operator == "**" else _WHOLE[operator](x, y)


def _comparable(left: str, right: str, a: Any, b: Any) -> tuple[list[Any], list[Any]]:
    """Integers by mathematical value; with a float, both in the promoted float type."""
    if not is_real(left) and not is_real(right):
        return a.tolist(), b.tolist()
    dtype = DTYPES[common(left, right) or ""]
    return a.astype(dtype).tolist(), b.astype(dtype).tolist()


def as_int64(values: list[int], kind: str) -> np.ndarray:
    """Values wrapped to a kind, as int64 modulo 2^64."""
    return np.array([wrap(wrap(value, kind), "int64") for value in values], np.int64)


def from_int64(values: np.ndarray, kind: str) -> list[int]:
    """The mathematical values that `as_int64` kept."""
    return [wrap(int(value), kind) for value in values]


def _converted_weak(operator: str, kind: str, left: str, right: str) -> tuple[bool, bool]:
    """Which operand is a weak int that is converted to a strong integer kind."""
    if operator in COMPARISONS or kind not in INTEGERS:
        return False, False
    return left == "weak_int", right == "weak_int" and operator not in SHIFTS


def _oracle_reports(operator: str, kind: str, left: str, right: str, x: Any, y: Any) -> bool:
    """A weak int that leaves int64 or does not fit what it meets, or a negative exponent."""
    if operator == "**" and not is_real(kind) and y < 0:
        return True
    of_left, of_right = _converted_weak(operator, kind, left, right)
    if (of_left and not fits(x, kind)) or (of_right and not fits(y, kind)):
        return True
    if kind != "weak_int":
        return False
    x, y = int(x), int(y)
    if operator == "**":
        return not power_fits(x, y)
    if operator in SHIFTS:
        return not shift_fits(operator, x, y)
    return not fits(_WHOLE[operator](x, y), "int64")


def _python_has(operator: str, kind: str, left: str, right: str, x: Any, y: Any) -> bool:
    """Whether CPython with NumPy computes this row and gives the value of the language."""
    if operator in SHIFTS:
        if "uint64" in (left, right) and common(left, right) == "float64":
            return False  # NumPy has no such shift
        if right == "weak_int" and left in INTEGERS and not fits(y, left):
            return False  # NumPy converts the count to the value's type
    if not (is_weak(left) and is_weak(right)):
        return True
    if operator in SHIFTS and (y < 0 or y > EXACT_UP_TO):
        return False
    if operator in ("/", "//", "%") and y == 0:
        return False
    if operator == "**":
        return not is_real(kind) or _python_power(x, y)
    mixed = operator == "/" or (operator in COMPARISONS and left != right)
    return not mixed or not any(type(v) is int and abs(v) > EXACT_UP_TO for v in (x, y))


def _python_power(x: Any, y: Any) -> bool:
    try:
        return isinstance(float(x) ** float(y), float)
    except (OverflowError, ZeroDivisionError):
        return False


# --- conversions ----------------------------------------------------------------------------------


def to_int(value: float, kind: str) -> int:
    """Truncate and saturate; NaN gives 0."""
    if value != value:
        return 0
    low, high = ends(kind)
    if abs(value) == float("inf"):
        return high if value > 0 else low
    return max(low, min(high, int(value)))


def converted(values: Any, source: str, target: str) -> np.ndarray:
    """An array of the source's dtype to a target kind, as stores and casts do."""
    listed = values.tolist()
    if target == "bool":
        return np.array([value != 0 for value in listed])
    dtype = DTYPES[target]
    if is_real(target):
        with np.errstate(all="ignore"):
            return np.asarray(values.astype(dtype))
    if is_real(source):
        return np.array([to_int(value, target) for value in listed], dtype)
    return np.array([wrap(int(value), target) for value in listed], dtype)


def stored(column: Column, target: str) -> np.ndarray:
    """What a store of a column into an array of a strong kind leaves there."""
    if is_real(column.kind):
        return converted(column.values, "float64", target)
    exact = from_int64(column.values, column.kind)
    if is_real(target):
        return np.array(exact, DTYPES[column.kind]).astype(DTYPES[target])
    return np.array([wrap(value, target) for value in exact], DTYPES[target])


# --- operands -------------------------------------------------------------------------------------

ROWS = 14


@lru_cache
def boundary(kind: str) -> np.ndarray:
    """Fourteen values of a kind: its ends, zero, ones, counts around its width."""
    if kind == "bool":
        return np.array([False, True] * (ROWS // 2))
    if kind == "weak_int":
        low, high = ends("int64")
        values = [low, -(2**31) - 1, -(2**31), -7, -2, -1, 0, 1, 2, 3, 31, 64, 2**31, high]
        return np.array(values, np.int64)
    dtype = DTYPES[kind]
    if is_real(kind):
        info = np.finfo(dtype)
        whole = 2.0**info.nmant - 1
        values = [0.0, -0.0, 1.0, -1.0, 0.1, 6.0, -7.5, np.inf, -np.inf, np.nan,
                  float(info.smallest_subnormal), float(info.max), whole, 2.0**63]  # fmt: skip
        return np.array(values, dtype)
    low, high = ends(kind)
    width = dtype.itemsize * 8
    if low:
        values = [low, low + 1, -7, -2, -1, 0, 1, 2, 3, width - 1, width, width + 1, high - 1, high]
    else:
        half = high // 2
        values = [0, 1, 2, 3, 7, 10, width - 1, width, width + 1, half, half + 1, half + 2,
                  high - 1, high]  # fmt: skip
    return np.array(values, dtype)


def operands(left: str, right: str) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of their boundary values."""
    return np.repeat(boundary(left), ROWS), np.tile(boundary(right), ROWS)
