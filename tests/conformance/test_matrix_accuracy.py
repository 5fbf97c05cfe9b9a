"""What one multiply-add of halves may be wrong by, on every executor; fills, and every half."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes  # noqa: F401 - tells NumPy of bfloat16
import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.ir.semantics import half_of
from sarek_numba.ir.types import Scalar
from tests.executors import EMULATION, device_of
from tests.unit.fragment_kernels import Config, Place, as_written, has_none, once, places

HALVES = ("float16", "bfloat16")
SHAPES = ((8, 8, 8), (16, 8, 8), (16, 8, 16), (16, 16, 16))
CONFIGS = [
    *(Config(*shape, half, half, "float32", "float32") for half in HALVES for shape in SHAPES),
    *(Config(*shape, "float16", "float16", "float16", "float16") for shape in SHAPES),
    *(Config(8, 8, 8, half, half, "float32", half) for half in HALVES),
]
EVERYWHERE = places(32)
ORACLE = Place("interpreter", 32)
DIGITS = {"float16": 11, "bfloat16": 8, "float64": 53}
everywhere = pytest.mark.parametrize("place", EVERYWHERE, ids=str)


def operands(config: Config, seed: int):
    """Numbers of many sizes, whose sums stay below the end of float16, some nearly cancelling."""
    rng = np.random.default_rng(seed)
    shapes = ((config.a, (config.m, config.k)), (config.b, (config.k, config.n)))
    a, b = (
        (rng.standard_normal(shape) * 2.0 ** rng.integers(-5, 5, shape)).astype(name)
        for name, shape in shapes
    )
    c = -(a.astype(np.float64) @ b.astype(np.float64))
    c[::2] = rng.standard_normal(c.shape)[::2] * 64
    return a, b, c.astype(config.c)


def run(place: Place, config: Config, a, b, c):
    out = np.zeros((config.m, config.n), config.result)
    place.run(once(config), 1, 1, a, b, c, out)
    return out


def exceeds(config: Config, a, b, c, found, sums: str = "float32") -> float:
    """The largest error as a multiple of what `docs/language.md` allows, against the exact sum.

    k * 2^-24 * (sum of |a b| + |c|), for k = 16 so 9.5368e-07 of it; and of a result that alone
    is a half, half a unit of its last place besides. Where `sums` are halves or float64,
    (k + 1) * 2^-11, 2^-8 or 2^-53 of it, and nothing else.
    """
    factor = Fraction(config.k, 1 << 24)
    if sums != "float32":
        factor = Fraction(config.k + 1, 1 << DIGITS[sums])
    largest = 0.0
    for i, j in np.ndindex(*found.shape):
        terms = [
            Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a[i], b[:, j], strict=True)
        ]
        terms.append(Fraction(float(c[i, j])))
        exactly = sum(terms)
        allowed = factor * sum(map(abs, terms))
        if config.result in HALVES and sums not in HALVES:
            allowed += half_unit(config.result, exactly, allowed)
        error = abs(Fraction(float(found[i, j])) - exactly)
        largest = max(largest, float(error / allowed) if allowed else float(error > 0))
    return largest


def half_unit(half: str, exactly: Fraction, wrong: Fraction) -> Fraction:
    """Half a unit of the last place of a half, next to a number that may be wrong by so much."""
    size = float(abs(exactly) + wrong)
    least = {"float16": -14, "bfloat16": -126}[half]
    exponent = max(int(np.frexp(size)[1]) - 1, least)
    return Fraction(2) ** (exponent - DIGITS[half])


def floats_of(place: Place) -> list[Config]:
    """The configurations of floats that an executor enumerates; none of one that goes by a rule."""
    if place.executor == EMULATION:
        return []
    listed = device_of(place.executor).record.coopmat
    found = map(as_written, listed if isinstance(listed, tuple) else ())
    return [config for config in found if "float" in config.result]


EACH = [(p, config) for p in EVERYWHERE for config in dict.fromkeys([*CONFIGS, *floats_of(p)])]
LISTED = [(p, config) for p in EVERYWHERE for config in floats_of(p)]


@pytest.mark.parametrize(("place", "config"), EACH, ids=str)
def test_the_contract(place, config):
    """One multiply-add is within the bound of the exact sum."""
    if has_none(place, config):
        return
    for seed in range(2):
        a, b, c = operands(config, seed)
        found = run(place, config, a, b, c)
        computed = place.executor in ("emulation", "interpreter", "native")
        sums = "float32" if computed else sums_of(config)
        assert exceeds(config, a, b, c, found, sums) <= 1


@pytest.mark.parametrize(("place", "config"), LISTED, ids=str)
def test_the_contract_minds_on_a_device(place, config):
    """The device's own product without c is outside of the bound, and so is one with sums in
    float16, its own where it has such, for which float32 sums are asked.
    """
    a, b, c = operands(config, 1)
    sums = sums_of(config)
    assert exceeds(config, a, b, c, run(place, config, a, b, np.zeros_like(c)), sums) > 1
    if config.result != "float32":
        return
    narrow = Config(config.m, config.n, config.k, *("float16",) * 4)
    if config.a == "float16" and place.lists(narrow):
        found = run(place, narrow, a, b, c.astype(np.float16)).astype(np.float32)
    else:
        found = in_half(config, a, b, c)
    assert exceeds(config, a, b, c, found, sums) > 1


def sums_of(config: Config) -> str:
    """In which type a device may add up: in a half where nothing else is asked for."""
    if config.result == "float64":
        return "float64"
    return config.c if config.c == config.result else "float32"


def in_half(config: Config, a, b, c):
    """The products added up in float16, one after the other."""
    total = c.astype(np.float16)
    for k in range(config.k):
        product = np.outer(a[:, k].astype(np.float32), b[k].astype(np.float32))
        total = (total.astype(np.float32) + product).astype(np.float16)
    return total.astype(config.result)


@pytest.mark.parametrize("config", [c for c in CONFIGS if c.k == 16 or c.result in HALVES], ids=str)
def test_the_contract_minds(config):
    """A reference that adds up in float16, and one that drops c, fail the same check."""
    a, b, c = operands(config, 1)
    assert exceeds(config, a, b, c, run(ORACLE, config, a, b, c)) <= 1
    without = run(ORACLE, config, a, b, np.zeros_like(c))
    assert exceeds(config, a, b, c, without) > 1
    assert exceeds(config, a, b, c, without, sums_of(config)) > 1
    assert exceeds(config, a, b, c, in_half(config, a, b, c)) > 1


# --- every half ---


def wide(halves):
    with np.errstate(invalid="ignore"):  # of NaNs
        return halves.astype(np.float64)


SIDE = 64
computed = pytest.mark.parametrize(
    "place", [p for p in EVERYWHERE if p.executor in ("interpreter", "native")], ids=str
)


@computed
@pytest.mark.parametrize("half", HALVES)
def test_every_half_is_widened(place, half):
    """All 65,536 of them, as c and as a: subnormal numbers, infinities, NaNs."""
    of_c = Config(SIDE, SIDE, 1, half, half, half, "float64")
    of_a = Config(SIDE * SIDE, 1, 1, half, half, "float32", "float64")
    bits = np.arange(1 << 16).astype(np.uint16).reshape(-1, SIDE, SIDE)
    for part in bits:
        given = part.view(half)
        zeros = np.zeros((SIDE, 1), half)
        found = run(place, of_c, zeros, zeros.T, given)
        np.testing.assert_array_equal(found, wide(given))
    flat = bits[::5].reshape(-1, SIDE * SIDE, 1).view(half)
    for given in flat:
        found = run(place, of_a, given, np.ones((1, 1), half), np.zeros(given.shape, np.float32))
        np.testing.assert_array_equal(found, wide(given))


@computed
@pytest.mark.parametrize("half", HALVES)
def test_results_are_rounded_once(place, half):
    """Halves, the middles between them, and the float64 next to either on both sides."""
    values = wide(np.arange(1 << 15).astype(np.uint16).view(half))
    values = values[np.isfinite(values)]
    middles = np.append((values[1:] + values[:-1]) / 2, 2.0 ** (16 if half == "float16" else 128))
    near = [np.nextafter(middles, toward) for toward in (0, np.inf)]
    every = np.concatenate([values, middles, *near, [np.inf, np.nan, 1e300, 5e-324]])
    every = np.concatenate([every, -every])[::3]
    every = np.concatenate([every, np.zeros(-len(every) % SIDE**2)]).reshape(-1, SIDE, SIDE)
    config = Config(SIDE, SIDE, 1, "float64", "float64", "float64", half)
    zeros = np.zeros((SIDE, 1))
    for given in every:
        found = run(place, config, zeros, zeros.T, given)
        expected = half_of(given, Scalar(half))
        np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


# --- fills ---


FILLED = {half: Config(8, 8, 8, half, half, "float32", "float32") for half in HALVES}


@everywhere
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("given", ["float64", "float32"])
@pytest.mark.parametrize("m", [8, 16])
def test_fills(place, half, given, m):
    """A fill rounds to the half once, of a constant, a float and an integer."""
    shapes = ((m, 8, 8), (m, m, 16))
    configs = (Config(*shape, half, half, "float32", "float32") for shape in shapes)
    config = next((each for each in configs if not has_none(place, each)), None)
    if config is None:
        return
    size, stride = config.m * config.k, config.k

    @sarek.kernel
    def filled(values, counts, out):
        f = sarek.coopmat.fragment(config, "a")
        sarek.coopmat.fill(f, values[0])
        sarek.coopmat.store(f, out, 0, stride)
        sarek.coopmat.fill(f, counts[0])
        sarek.coopmat.store(f, out, size, stride)
        sarek.coopmat.fill(f, 0.1)
        sarek.coopmat.store(f, out, 2 * size, stride)

    # rounds up; that of float64 would not by way of float32
    value = 1 + 2.0 ** -DIGITS[half] + 2.0 ** (-40 if given == "float64" else -20)
    counts = np.array([1025], np.int32)
    out = np.zeros(3 * size, half)
    place.run(filled, 1, 1, np.array([value], given), counts, out)
    expected = [half_of(x, Scalar(half)) for x in (value, 1025.0, 0.1)]
    wanted = np.repeat(np.array(expected, half).astype(np.float32), size)
    np.testing.assert_array_equal(out.astype(np.float32), wanted)


def test_components_are_named_alike():
    """A half is named as sarek's, as NumPy's, and by its name."""
    for half in HALVES:
        first = FILLED[half]
        for given in (getattr(sarek, half), np.dtype(half)):
            assert Config(8, 8, 8, given, given, "float32", "float32") == first
