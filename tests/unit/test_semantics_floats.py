"""Float operators and functions: bit for bit against NumPy, CPython and exact rationals."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

from sarek_numba.ir import semantics
from sarek_numba.ir.intrinsics import INTRINSICS
from sarek_numba.ir.nodes import BinOp
from sarek_numba.ir.types import Kind, Scalar

FLOATS = [Scalar.FLOAT32, Scalar.FLOAT64]


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def special(type: Scalar) -> np.ndarray:
    dtype = semantics.dtype_of(type)
    info = np.finfo(dtype)
    positive = [
        0.0, 0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 6.0, 7.25, 1e10, math.inf, info.max, info.tiny,
        info.smallest_subnormal, 3 * info.smallest_subnormal, 1 + info.eps, 1 - info.epsneg,
    ]  # fmt: skip
    values = np.array(positive, dtype)
    return np.concatenate([values, -values, np.array([np.nan], dtype)])


def pairs(type: Scalar) -> tuple[np.ndarray, np.ndarray]:
    values = special(type)
    random = np.random.default_rng(7)
    bits = random.integers(0, 2**type.bits, (2, 4000), f"u{type.bits // 8}")
    more = bits.view(values.dtype)
    both = np.array(list(itertools.product(values, repeat=2)), values.dtype)
    small = random.integers(-50, 50, (2, 2000)).astype(values.dtype) / values.dtype.type(10)
    return (
        np.concatenate([both[:, 0], more[0], small[0]]),
        np.concatenate([both[:, 1], more[1], small[1]]),
    )


def same_bits(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Equal bit for bit, any NaN being equal to any other."""
    assert ours.dtype == theirs.dtype
    unsigned = f"u{ours.dtype.itemsize}"
    equal = ours.view(unsigned) == theirs.view(unsigned)
    return bool((equal | (np.isnan(ours) & np.isnan(theirs))).all())


@pytest.mark.parametrize("type", FLOATS, ids=lambda t: t.value)
@pytest.mark.parametrize(
    ("op", "numpy"),
    [
        (BinOp.ADD, np.add),
        (BinOp.SUB, np.subtract),
        (BinOp.MUL, np.multiply),
        (BinOp.DIV, np.divide),
        (BinOp.MOD, np.fmod),
        (BinOp.FLOORDIV, np.floor_divide),
        (BinOp.FLOORMOD, np.remainder),
    ],
    ids=lambda v: getattr(v, "name", ""),
)
def test_binary_is_numpys(op: BinOp, numpy: np.ufunc, type: Scalar) -> None:
    """`//` and `%` included, with infinities, NaN and signed zeros (case 23)."""
    a, b = pairs(type)
    with np.errstate(all="ignore"):
        expected = numpy(a, b)
    assert same_bits(semantics.binary(op, type)(a, b), expected)


def test_floor_division_is_cpythons() -> None:
    a, b = pairs(Scalar.FLOAT64)
    keep = b != 0
    a, b = a[keep], b[keep]
    expected = [divmod(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    quotient = semantics.binary(BinOp.FLOORDIV, Scalar.FLOAT64)(a, b)
    rest = semantics.binary(BinOp.FLOORMOD, Scalar.FLOAT64)(a, b)
    assert same_bits(quotient, np.array([q for q, _ in expected]))
    assert same_bits(rest, np.array([r for _, r in expected]))


def test_floor_division_is_not_the_floor_of_the_quotient() -> None:
    result = semantics.binary(BinOp.FLOORDIV, Scalar.FLOAT64)(np.array([6.0]), np.array([0.1]))
    assert result.tolist() == [59.0]


@pytest.mark.parametrize("type", FLOATS, ids=lambda t: t.value)
def test_minima_and_maxima(type: Scalar) -> None:
    """One rule for each function over NaN and signed zeros (case 31)."""
    a, b = pairs(type)
    for name, python in (("min", min), ("max", max)):
        expected = np.array([python(x, y) for x, y in zip(a, b, strict=True)], a.dtype)
        assert same_bits(semantics.intrinsic(name, type)(a, b), expected), name
    for name in ("minimum", "maximum", "fmin", "fmax"):
        ours = semantics.intrinsic(name, type)(a, b)
        theirs = getattr(np, name)(a, b)
        zeros = (a == 0) & (b == 0)  # NumPy's own vector loops disagree about signed zeros
        assert same_bits(ours[~zeros], theirs[~zeros]), name
        assert same_bits(ours[zeros], a[zeros]), name


@pytest.mark.parametrize("type", FLOATS, ids=lambda t: t.value)
@pytest.mark.parametrize(
    "name", ["sqrt", "floor", "ceil", "trunc", "rint", "isnan", "isinf", "isfinite", "signbit"]
)
def test_exact_unary_functions_are_numpys(name: str, type: Scalar) -> None:
    a, _ = pairs(type)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(a)
    result = semantics.intrinsic(name, type)(a)
    if expected.dtype == np.bool_:
        assert result.tolist() == expected.tolist()
    else:
        assert same_bits(result, expected)


@pytest.mark.parametrize("type", FLOATS, ids=lambda t: t.value)
@pytest.mark.parametrize("name", ["fmod", "copysign", "nextafter"])
def test_exact_binary_functions_are_numpys(name: str, type: Scalar) -> None:
    a, b = pairs(type)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(a, b)
    assert same_bits(semantics.intrinsic(name, type)(a, b), expected)


def exact_fma(type: Scalar, a: float, b: float, c: float) -> float:
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        if math.isfinite(a) and math.isfinite(b):
            return c
        return a * b + c
    total = Fraction(a) * Fraction(b) + Fraction(c)
    if total == 0:
        return a * b + c if a == 0 or b == 0 else 0.0
    return round_fraction(total, type)


def round_fraction(value: Fraction, type: Scalar) -> float:
    """The nearest number of the type, ties to even, by integer arithmetic alone."""
    digits, least, most = (24, -149, 128) if type is Scalar.FLOAT32 else (53, -1074, 1024)
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    unit = max(exponent - digits + 1, least)
    steps = round(magnitude / Fraction(2) ** unit)  # halves to even
    sign = -1.0 if value < 0 else 1.0
    if steps * Fraction(2) ** unit >= Fraction(2) ** most:
        return sign * math.inf
    return sign * math.ldexp(steps, unit)


@pytest.mark.parametrize("type", FLOATS, ids=lambda t: t.value)
def test_fma_rounds_once(type: Scalar) -> None:
    """Random bits, near cancellation, subnormal results and double-rounding traps."""
    random = np.random.default_rng(3)
    dtype = semantics.dtype_of(type)
    a, b = pairs(type)
    c = random.permutation(np.concatenate([b, a]))[: a.size]
    near = random.standard_normal((2, 1500)).astype(dtype)
    with np.errstate(all="ignore"):
        cancel = -(near[0] * near[1])
        tiny = near * np.sqrt(np.finfo(dtype).tiny)
    # 1 + 2^-23-like products beside an addend that makes a half of the last place
    eps = np.finfo(dtype).eps
    trap = np.array([[1 + eps, 1 + eps, eps / 4], [1 + eps, 1 - eps / 2, 1 / eps]], dtype).T
    a = np.concatenate([a, near[0], tiny[0], near[0], trap[0]])
    b = np.concatenate([b, near[1], tiny[1], near[1], trap[1]])
    c = np.concatenate([c, cancel, tiny[0] * tiny[1], near[0] * dtype.type(1e-9), trap[2]])
    result = semantics.intrinsic("fma", type)(a, b, c)
    expected = [
        exact_fma(type, *operands)
        for operands in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    ]
    with np.errstate(over="ignore"):
        assert same_bits(result, np.array(expected).astype(dtype))


def test_fma_float32_is_not_double_rounding() -> None:
    """1 + 2^-23 + 2^-24 - 2^-54 is below a tie; float64 makes it one, which goes to even."""
    a = np.array([2.0**-12 * (1 + 2.0**-15)], np.float32)
    b = np.array([2.0**-12 * (1 - 2.0**-15)], np.float32)
    c = np.array([1 + 2.0**-23], np.float32)
    through_float64 = (a.astype(np.float64) * b + c).astype(np.float32)
    assert through_float64.item() == 1 + 2.0**-22
    assert semantics.intrinsic("fma", Scalar.FLOAT32)(a, b, c).item() == 1 + 2.0**-23


@pytest.mark.parametrize("type", FLOATS, ids=lambda t: t.value)
def test_every_function_is_total(type: Scalar) -> None:
    """Each function of the table answers for every special value, in its type, without a word."""
    values = special(type)
    for info in INTRINSICS.values():
        if Kind.FLOAT not in info.kinds or info.name == "reinterpret":
            continue
        operands = np.array(list(itertools.product(values, repeat=info.arity)), values.dtype).T
        result = semantics.intrinsic(info.name, type)(*operands)
        assert result.dtype == (np.bool_ if info.result == "bool" else values.dtype), info.name
        assert result.shape == operands[0].shape, info.name


REFERENCES = {
    "exp": math.exp, "expm1": math.expm1, "log": math.log, "log2": math.log2,
    "log10": math.log10, "log1p": math.log1p, "sin": math.sin, "cos": math.cos, "tan": math.tan,
    "asin": math.asin, "acos": math.acos, "atan": math.atan, "sinh": math.sinh, "cosh": math.cosh,
    "tanh": math.tanh, "asinh": math.asinh, "atanh": math.atanh, "erf": math.erf,
    "erfc": math.erfc, "gamma": math.gamma, "lgamma": math.lgamma,
}  # fmt: skip


@pytest.mark.parametrize("name", REFERENCES)
def test_float32_functions_are_rounded_once_from_float64(name: str) -> None:
    """Within 1 in the last place of a float64 computation by another library."""
    a = np.linspace(0.01, 0.99, 257).astype(np.float32)
    expected = np.array([REFERENCES[name](x) for x in a.tolist()])
    wide = semantics.intrinsic(name, Scalar.FLOAT64)(a.astype(np.float64))
    assert (np.abs(wide - expected) <= 4 * np.spacing(np.abs(expected))).all()
    narrow = semantics.intrinsic(name, Scalar.FLOAT32)(a)
    assert (narrow == wide.astype(np.float32)).all()


def test_domain_and_poles() -> None:
    def at(name: str, *values: float) -> list[float]:
        return semantics.intrinsic(name, Scalar.FLOAT64)(np.array(values)).tolist()

    nan = math.isnan
    assert at("gamma", 0.0, -0.0, 5.0, 171.0, 172.0)[:3] == [math.inf, -math.inf, 24.0]
    assert at("gamma", 200.0, math.inf) == [math.inf, math.inf]
    assert at("gamma", -1e-310, -1.5)[0] == -math.inf
    assert all(map(nan, at("gamma", -1.0, -math.inf, math.nan)))
    assert at("lgamma", 0.0, -3.0, math.inf, -math.inf, 1e308) == [math.inf] * 5
    assert nan(at("lgamma", math.nan)[0])
    assert at("log", 0.0, 1.0) == [-math.inf, 0.0]
    assert all(map(nan, at("log", -1.0) + at("asin", 2.0) + at("sin", math.inf)))
    assert at("rsqrt", 4.0, 0.0, math.inf) == [0.5, math.inf, 0.0]
    assert at("cbrt", -0.0, -math.inf) == [0.0, -math.inf]
    assert abs(at("cbrt", -27.0)[0] + 3.0) <= math.ulp(3.0)


def test_sinpi_and_cospi_reduce_exactly() -> None:
    sinpi = semantics.intrinsic("sinpi", Scalar.FLOAT64)
    cospi = semantics.intrinsic("cospi", Scalar.FLOAT64)
    turns = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, -0.5, -1.0, 1e15 + 0.5, 2.0**60])
    assert sinpi(turns).tolist() == [0, 1, 0, -1, 0, 1, -1, 0, 1, 0]
    assert np.signbit(sinpi(np.array([-1.0, -0.0, 1.0]))).tolist() == [True, True, False]
    assert cospi(turns).tolist() == [1, 0, -1, 0, 1, 0, 0, -1, 0, 1]
    assert np.isnan(sinpi(np.array([np.inf, np.nan]))).all()
    assert np.isnan(cospi(np.array([np.inf, np.nan]))).all()
    x = np.linspace(-2, 2, 1001)
    assert np.abs(sinpi(x) - np.sin(np.pi * x)).max() < 1e-15
    assert np.abs(cospi(x) - np.cos(np.pi * x)).max() < 1e-15


def test_powers_of_negative_bases() -> None:
    """IEEE special cases of pow (case 28)."""
    a = np.array([-1.0, -1.0, -2.0, -2.0, -0.0, -0.0, -1.0, np.nan, 1.0])
    b = np.array([3.0, 2.0, 3.0, -1.0, 3.0, -1.0, np.inf, 0.0, np.nan])
    expected = np.array([-1.0, 1.0, -8.0, -0.5, -0.0, -np.inf, 1.0, 1.0, 1.0])
    for type in FLOATS:
        dtype = semantics.dtype_of(type)
        result = semantics.intrinsic("pow", type)(a.astype(dtype), b.astype(dtype))
        assert same_bits(result, expected.astype(dtype))


def test_one_exponent_of_a_half_for_all_lanes() -> None:
    """pow is not the square root: (-inf) ** 0.5 is inf, (-0.0) ** 0.5 is 0.0."""
    for type in FLOATS:
        dtype = semantics.dtype_of(type)
        a = np.array([-np.inf, -0.0, 2.0, -1.0], dtype)
        half = np.broadcast_to(dtype.type(0.5), 4)
        result = semantics.intrinsic("pow", type)(a, half)
        assert same_bits(result, np.array([np.inf, 0.0, np.sqrt(dtype.type(2)), np.nan], dtype))


def test_what_has_no_meaning_is_refused() -> None:
    with pytest.raises(KeyError):
        semantics.binary(BinOp.SHL, Scalar.FLOAT32)
    with pytest.raises(KeyError):
        semantics.intrinsic("sin", Scalar.INT32)
    with pytest.raises(KeyError):
        semantics.binary(BinOp.ADD, Scalar.BOOL)
