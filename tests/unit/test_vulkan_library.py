"""The functions that Vulkan's modules have of their own, run by the oracle, against the meaning."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sarek_numba.ir import build as b
from sarek_numba.ir import semantics
from sarek_numba.ir.nodes import App, ArrayRead, Assign, BinOp, Kernel, LElement, make_kernel
from sarek_numba.ir.parse import parse
from sarek_numba.ir.semantics import dtype_of
from sarek_numba.ir.text import text
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.verify import verify
from sarek_numba.passes import library
from tests.unit.oracle_kit import gid, run

FLOATS = (Scalar.FLOAT32, Scalar.FLOAT64)
HALVES = (Scalar.FLOAT16, Scalar.BFLOAT16)
BLOCK = 64


def _call(name: str, *arguments: np.ndarray) -> np.ndarray:
    """A function of the library on each element."""
    function = library.function(name)
    fresh = b.Fresh(1000)
    types = [param.type for param in function.params]
    params = [b.array_param(fresh, f"a{i}", type, i) for i, type in enumerate(types)]
    result = b.array_param(fresh, "out", function.result, len(types))
    reads = tuple(ArrayRead(param.var, gid()) for param in params)
    body = (Assign(LElement(result.var, gid()), App(name, reads, function.result)),)
    functions = library.functions_of(name)
    kernel = make_kernel("k", body, params=(*params, result), functions=functions)
    verify(kernel)
    count = -(-len(arguments[0]) // BLOCK) * BLOCK
    padded = [np.resize(argument, count) for argument in arguments]
    out = np.zeros(count, dtype_of(function.result))
    run(kernel, count // BLOCK, BLOCK, *padded, out)
    return out[: len(arguments[0])]


_EDGES = {
    Scalar.FLOAT32: (23, 127),
    Scalar.FLOAT64: (52, 1023),
    Scalar.FLOAT16: (10, 15),
    Scalar.BFLOAT16: (7, 127),
}


def _floats(type: Scalar) -> np.ndarray:
    """Zeros, infinities, NaN, and the neighbourhoods of where something changes, of both signs."""
    fraction, bias = _EDGES[type]
    top = (2 * bias + 1) << fraction
    anchors = [1, 2, 3, 1 << (fraction - 1), 1 << fraction, 2 << fraction, top]
    anchors += [(bias + e) << fraction for e in (-25, -24, -14, -1, 0, 1, 2, 10, 15, 16)]
    anchors += [((2 * bias) << fraction) | ((1 << fraction) - 1), 0x5A5A5A5A % top]
    near = {(anchor + d) for anchor in anchors for d in (-1, 0, 1)} | {
        0,
        top + (1 << fraction) // 2,
    }
    unsigned = np.dtype(f"u{type.bits // 8}")
    bits = np.array(sorted(bit for bit in near if bit >= 0), unsigned)
    values = np.concatenate([bits, bits | unsigned.type(1 << (type.bits - 1))])
    return values.view(dtype_of(type))


def _random(type: Scalar, count: int, seed: int = 5) -> np.ndarray:
    """Any bits, and numbers of a like size."""
    generator = np.random.default_rng(seed)
    any_bits = np.frombuffer(generator.bytes(count // 2 * (type.bits // 8)), dtype_of(type))
    near = generator.uniform(-8, 8, count - len(any_bits)).astype(dtype_of(type))
    return np.concatenate([any_bits, near])


def _tuples(type: Scalar, arity: int) -> list[np.ndarray]:
    """Edges with edges, then random ones with random ones."""
    edges = _floats(type)
    if arity == 3:
        edges = edges[:: max(1, len(edges) // 14)]
    made = list(zip(*itertools.product(edges, repeat=arity), strict=True))
    return [
        np.concatenate([np.array(part, dtype_of(type)), _random(type, 2000, seed)])
        for seed, part in enumerate(made)
    ]


def _same(actual: np.ndarray, expected: np.ndarray) -> None:
    """Equal bits; any NaN for a NaN."""
    both = (actual != actual) & (expected != expected)
    unsigned = f"u{actual.dtype.itemsize}"
    differs = (actual.view(unsigned) != expected.view(unsigned)) & ~both
    wrong = np.flatnonzero(differs)[:3]
    assert not len(wrong), (wrong, actual[wrong], expected[wrong])


@pytest.mark.parametrize("type", FLOATS)
@pytest.mark.parametrize(
    ("name", "arity"),
    [("divide", 2), ("sqrt", 1), ("fmod", 2), ("nextafter", 2), ("fma", 3)],
)
def test_exact_functions(name, arity, type):
    """Division, roots, rests, neighbours and fused sums are rounded once, at every edge."""
    arguments = _tuples(type, arity)
    if name == "divide":
        meaning = semantics.binary(BinOp.DIV, type)
    else:
        meaning = semantics.intrinsic(name, type)
    _same(_call(f"{name}_{type.value}", *arguments), meaning(*arguments))


@pytest.mark.parametrize("half", HALVES)
def test_halves_are_read(half):
    """All patterns of a half are the float32 that they name."""
    values = np.arange(1 << 16, dtype=np.uint16)
    _same(_call(f"from_{half.value}", values), values.view(dtype_of(half)).astype(np.float32))


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("half", HALVES)
def test_halves_are_rounded_once(half, source):
    """A float becomes the nearest half, directly, subnormal and overflowing ones too."""
    patterns = np.arange(1 << 16, dtype=np.uint16).view(dtype_of(half))
    with np.errstate(all="ignore"):
        middle = patterns.astype(dtype_of(source))
        middle = (middle[1::17] + middle[:-1:17]) / 2
        values = np.concatenate([_floats(source), _random(source, 4000), middle])
        values = np.concatenate([values, np.nextafter(values, dtype_of(source).type(0))])
    expected = semantics.cast(source, half)(values)
    _same(_call(f"{half.value}_from_{source.value}", values).view(dtype_of(half)), expected)


@pytest.mark.parametrize("type", [s for s in Scalar if s.is_integer and s.bits >= 32])
def test_integers_to_bfloat16(type):
    """An integer becomes the nearest bfloat16, though it goes through a float32."""
    generator = np.random.default_rng(7)
    powers = [1 << shift for shift in range(type.bits)]
    exact = {p * k // 512 + d for p in powers for k in (512, 513, 515, 1023) for d in (-1, 0, 1)}
    values = [v for v in exact | {-v for v in exact} if type.minimum <= v <= type.maximum]
    given = np.array([*values, type.minimum, type.maximum], dtype_of(type))
    given = np.concatenate([given, np.frombuffer(generator.bytes(4096), dtype_of(type))])
    odd = _call(f"odd_{type.value}", given)
    expected = semantics.cast(type, Scalar.BFLOAT16)(given)
    _same(_call("bfloat16_from_float32", odd).view(dtype_of(Scalar.BFLOAT16)), expected)


@pytest.mark.parametrize("type", [s for s in Scalar if s.is_integer])
def test_powers_of_integers(type):
    """Powers are exact modulo 2^n; a negative exponent keeps 1 and -1 alone."""
    small = [v for v in (-130, -3, -2, -1, 0, 1, 2, 3, 7, 11, 64, 100, 127) if v >= type.minimum]
    values = np.array([*(v for v in small if v <= type.maximum), type.maximum], dtype_of(type))
    base, exponent = np.repeat(values, len(values)), np.tile(values, len(values))
    expected = semantics.intrinsic("ipow", type)(base, exponent)
    _same(_call(f"ipow_{type.value}", base, exponent), expected)


def test_names_are_those_of_the_texts():
    """Each function has the name under which it is asked for, and its text reads back."""
    for name in library.TEXTS:
        assert library.function(name).name == name
        kernel = Kernel("k", (), functions=library.functions_of(name))
        assert parse(text(kernel)).functions == kernel.functions
