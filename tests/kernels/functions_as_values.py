"""Functions as arguments, in closures, tuples and classes; functions of Numba; named tuples."""

from __future__ import annotations

import enum
import math
import typing
from collections import namedtuple

import numba
import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()
N = 70


@sarek.function
def square(v):
    return v * v


@sarek.function
def halve(v):
    return v * 0.5


@numba.njit
def third(v, offset=1):
    if v > 3:
        return halve(v) + offset
    return math.sqrt(v) / 3 + offset


@sarek.function
def apply(f, v, g=math.sqrt):
    return f(g(v))


@sarek.function
def twice(f, v):
    return apply(f, apply(f, v, abs), g=abs)


@sarek.function
def chain(functions, v):
    return functions[0](functions[1](v))


def floats(rng):
    return rng.uniform(0.5, 9, N).astype(np.float32)


def columns(x, *parts):
    """The launch of a kernel that stores one column for each part."""
    expected = np.stack([np.asarray(part, np.float32) for part in parts], 1)
    return Launch(2, 64, (poison((N, len(parts)), np.float32), x), (expected, None))


@sarek.kernel
def functions_as_arguments(out, x):
    i = sarek.global_idx.x
    if i < len(x):
        out[i, 0] = apply(square, x[i])
        out[i, 1] = apply(g=halve, f=third, v=x[i])
        out[i, 2] = apply(np.float32, x[i], math.floor)
        out[i, 3] = twice(square, x[i])
        out[i, 4] = twice(f=halve, v=x[i])
        out[i, 5] = chain((square, halve), x[i])


def third_of(v, offset=1):
    half = v * np.float32(0.5) + np.float32(offset)
    return np.where(v > 3, half, np.sqrt(v) / np.float32(3) + np.float32(offset))


@corpus.add(functions_as_arguments)
def functions_resolved_at_compile_time(rng):
    x = floats(rng)
    half = np.float32(0.5)
    root = np.sqrt(x)
    return columns(
        x,
        root * root,
        third_of(x * half),
        np.floor(x),
        (x * x) * (x * x),
        x * half * half,
        x * half * (x * half),
    )


@sarek.kernel
def compiled_by_numba(out, x):
    i = sarek.global_idx.x
    if i < len(x):
        out[i, 0] = third(x[i])
        out[i, 1] = third(x[i], offset=2)


@corpus.add(compiled_by_numba)
def functions_of_njit(rng):
    x = floats(rng)
    return columns(x, third_of(x), third_of(x, 2))


class Unit(enum.Enum):
    METRE = 1
    YARD = 0.9144


class Way(enum.IntEnum):
    UP = 1
    DOWN = -1


def measuring(function, unit, way, weights, after=None):
    @sarek.function
    def weigh(v):
        return function(v) * weights[0] + weights[1][1]

    @sarek.kernel
    def measure(out, x):
        i = sarek.global_idx.x
        if i < len(x):
            value = weigh(x[i])
            if unit is Unit.YARD:
                value = value * unit.value
            if after is not None:
                value = after(value)
            out[i, 0] = value * way
            out[i, 1] = 1 if unit == Unit.METRE else 2

    return measure


yards = measuring(square, Unit.YARD, Way.DOWN, (2, (5, 0.25)))
metres = measuring(halve, Unit.METRE, Way.UP, (3.0, (1, 2)), after=third)


@corpus.add(yards)
def closure_over_function_enum_and_tuple(rng):
    x = floats(rng)
    value = (x * x * np.float32(2) + np.float32(0.25)) * np.float32(0.9144)
    return columns(x, -value, np.full(N, 2))


@corpus.add(metres)
def closure_over_two_functions(rng):
    x = floats(rng)
    value = x * np.float32(0.5) * np.float32(3) + np.float32(2)
    return columns(x, third_of(value), np.full(N, 1))


def polynomial(*coefficients):
    """A factory of device functions: each holds the one before it."""
    first, *others = coefficients
    if not others:

        @sarek.function
        def constant(v):
            return v * 0 + first

        return constant
    inner = polynomial(*others)

    @sarek.function
    def horner(v):
        return inner(v) * v + first

    return horner


cubic = polynomial(1, -2, 3, 4)


@sarek.kernel
def of_a_factory(out, x):
    i = sarek.global_idx.x
    if i < len(x):
        out[i, 0] = cubic(x[i])


@corpus.add(of_a_factory)
def nested_closures_of_a_factory(rng):
    x = floats(rng)
    value = x * np.float32(0) + np.float32(4)
    for coefficient in (3, -2, 1):
        value = value * x + np.float32(coefficient)
    return columns(x, value)


class Shop:
    """A class as a place for kernels, functions and constants."""

    RATE = 1.5
    STEPS = (square, halve)

    @staticmethod
    @sarek.function
    def priced(v):
        return math.sqrt(v) * Shop.RATE

    @sarek.function
    @staticmethod
    def taxed(v, rate=RATE):
        return v + rate

    @sarek.kernel
    def attribute(out, x):  # noqa: N805 # a kernel has no self
        i = sarek.global_idx.x
        if i < len(x):
            out[i, 0] = Shop.priced(x[i])
            out[i, 1] = Shop.STEPS[0](Shop.taxed(x[i]))

    @staticmethod
    @sarek.kernel
    def static(out, x):
        i = sarek.global_idx.x
        if i < len(x):
            out[i, 0] = Shop.RATE - x[i]


@corpus.add(Shop.static)
def kernel_as_a_static_attribute(rng):
    x = floats(rng)
    return columns(x, np.float32(1.5) - x)


@corpus.add(Shop.attribute)
def kernel_and_functions_in_a_class(rng):
    x = floats(rng)
    rate = np.float32(1.5)
    return columns(x, np.sqrt(x) * rate, (x + rate) * (x + rate))


Span = namedtuple("Span", "low high", defaults=(8,))


class Weighted(typing.NamedTuple):
    span: Span
    weight: float = 0.5

    @property
    def host_only(self):
        return self.weight


@sarek.function
def around(v, width):
    return Weighted(Span(v - width, high=v + width), weight=2.0)


@sarek.function
def widened(item, by=Span(1, 2)):  # noqa: B008 # a named tuple is never changed
    if item.span.low > 3:
        return item
    return Weighted(Span(item.span.low * by.low, item.span[1] * by.high), item.weight + 1)


@sarek.kernel
def named_tuples(out, x):
    i = sarek.global_idx.x
    if i < len(x):
        item = around(x[i], 2)
        if i % 2:
            item = Weighted(Span(x[i]), 3.0)
        other = widened(item)
        (low, high), weight = widened(other)
        out[i, 0] = other.span.low * other.weight
        out[i, 1] = low + high
        out[i, 2] = weight + len(other.span)


@corpus.add(named_tuples)
def named_tuples_as_values_and_results(rng):
    x = floats(rng)
    odd = np.arange(N) % 2 == 1
    two = np.float32(2)
    low = np.where(odd, x, x - two)
    high = np.where(odd, np.float32(8), x + two)
    weight = np.where(odd, np.float32(3), two)
    first = low
    for step in range(2):
        done = low > 3
        low, high = low, np.where(done, high, high * two)
        weight = np.where(done, weight, weight + np.float32(1))
        if step == 0:
            first = low * weight
    return columns(x, first, low + high, weight + two)
