"""Classes as the elements of arrays: `sarek.register_type`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch

corpus = Corpus()


@sarek.register_type
@dataclass
class Place:
    x: sarek.float32
    y: sarek.float32


@sarek.register_type
@dataclass
class Ball:
    place: Place
    bounces: sarek.int16


class Span:
    """Held as its middle and its length, packed; on the host it has two ends."""

    def __init__(self, low, high):
        self.low, self.high = low, high


SPAN = sarek.register_type(
    Span,
    [("length", np.uint8), ("middle", np.float64)],
    get=lambda r: Span(r["middle"] - r["length"] / 2, r["middle"] + r["length"] / 2),
    set=lambda s: {"middle": (s.low + s.high) / 2, "length": s.high - s.low},
)


@sarek.function
def mirrored(place):
    return Place(y=place.x, x=place.y)


@sarek.kernel
def bounce(balls: Ball[:], spans: SPAN[:]):
    """Constructed by both names, copied, in shared memory, through functions."""
    held = sarek.shared.array(32, Span)
    i = sarek.thread_idx.x
    if i < len(balls):
        held[i] = Span(middle=balls[i].place.x, length=balls[i].bounces)
        last = balls[i].copy()
        balls[i] = Ball(mirrored(last.place), last.bounces + 1)
        balls[i].place.x += Place(1, 2).y
        spans[i] = held[i]


@corpus.add(bounce)
def registered_classes(rng):
    balls = Ball.array([Ball(Place(k, -k), k % 5) for k in range(20)])
    spans = SPAN.array([Span(0, 2)] * 20)
    expected = np.zeros(20, Ball.dtype)
    expected["place"]["x"] = 2 - np.arange(20)
    expected["place"]["y"] = np.arange(20)
    expected["bounces"] = np.arange(20) % 5 + 1
    made = np.zeros(20, SPAN.dtype)
    made["middle"] = np.arange(20)
    made["length"] = np.arange(20) % 5
    return Launch(1, 32, (balls, spans), (expected, made))
