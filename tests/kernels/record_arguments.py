"""Single records as arguments: structured scalars, registered classes, variants, by value."""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison
from tests.kernels.records import ALIGNED, PACKED, VECTOR, Vector, filled
from tests.kernels.registered import SPAN, Ball, Place, Span
from tests.kernels.variants import Shape

corpus = Corpus()


@sarek.function
def doubled(v):
    v.x *= 2
    return Vector(x=v.x, y=v.y + v.x)


@sarek.kernel
def spread(p, out, r, scale=2):
    """Fields, sub-arrays, the whole record, a device function, a change that stays here."""
    i = sarek.global_idx.x
    if i < len(p):
        p[i] = r
        p[i].pos = doubled(r.pos)
        out[i] = r.cells[1, i % 3] + r.parts[i % 2].a * scale
        r.id += i
        r.cells[0, 1] = i
        if r.ok:
            p[i].id = r["id"]
            p[i].cells[0, 2] = r.cells[0, 1]


def _spread(r, scale):
    p = np.zeros(20, r.dtype)
    i = np.arange(20)
    p[...] = r
    x = r["pos"]["x"] * np.float32(2)
    p["pos"]["x"], p["pos"]["y"] = x, r["pos"]["y"] + x
    out = r["cells"][1, i % 3] + r["parts"]["a"][i % 2] * np.float64(scale)
    if r["ok"]:
        p["id"] = r["id"] + i
        p["cells"][:, 0, 2] = i
    return p, out


@corpus.add(spread)
def a_packed_record_as_an_argument(rng):
    r = filled(rng, PACKED, 3)[1]
    r["ok"] = True
    p, out = _spread(r, 2)
    return Launch(2, 16, (np.zeros_like(p), poison(20, np.float64), r), (p, out, None))


@corpus.add(spread)
def an_aligned_record_without_axes_as_an_argument(rng):
    r = filled(rng, ALIGNED, 1).reshape(())
    r["ok"] = False
    r.flags.writeable = False
    p, out = _spread(r, 3)
    arguments = (np.zeros_like(p), poison(20, np.float64), r, 3)
    return Launch(2, 16, arguments, (p, out, None, None))


ORIGIN = np.array((1.5, -0.0), VECTOR)[()]


@sarek.kernel
def nearest(out, p, best: VECTOR = ORIGIN, *, least: Vector = ORIGIN):
    """Stated, with defaults, carried round a loop, together with values of arrays."""
    t = sarek.global_idx.x
    for k in range(len(p) // 16):
        candidate = p[t + 16 * k].copy()
        if candidate.x > best.x:
            best = candidate
        elif candidate.y < least.y:
            least = candidate
    out[t, 0] = best
    out[t, 1] = least


@corpus.add(nearest)
def a_record_that_a_loop_carries_on(rng):
    p = filled(rng, VECTOR, 160)
    out = np.zeros((16, 2), VECTOR)
    for t in range(16):
        best = least = ORIGIN
        for candidate in p[t::16]:
            if candidate["x"] > best["x"]:
                best = candidate
            elif candidate["y"] < least["y"]:
                least = candidate
        out[t, 0], out[t, 1] = best, least
    return Launch(2, 8, (np.zeros_like(out), p), (out, None))


@sarek.kernel
def put(balls, spans, ball: Ball, span: Span):
    i = sarek.global_idx.x
    ball.bounces += sarek.int16(i)
    balls[i] = ball
    balls[i].place = Place(ball.place.y, ball.place.x)
    spans[i] = span
    spans[i].middle += ball.place.x


@corpus.add(put)
def instances_of_registered_classes(rng):
    x, y = rng.normal(size=2).astype(np.float32)
    balls, spans = np.zeros(8, Ball.dtype), np.zeros(8, SPAN.dtype)
    balls["place"]["x"], balls["place"]["y"] = y, x
    balls["bounces"] = np.arange(8) + 5
    spans["length"], spans["middle"] = 4, np.float64(10) + x
    arguments = (np.zeros_like(balls), np.zeros_like(spans), Ball(Place(x, y), 5), Span(8, 12))
    return Launch(2, 4, arguments, (balls, spans, None, None))


@sarek.kernel
def areas(out, shapes, shape: Shape):
    i = sarek.global_idx.x
    match shape:
        case Shape.Rect(width, height):
            out[i] = width * height
        case Shape.Circle(radius):
            out[i] = radius * radius
        case Shape.Point():
            out[i] = -1
    shapes[i] = shape


def _areas(shape, area):
    shapes = Shape.array([shape] * 4)
    arguments = (poison(4, np.float32), Shape.array([Shape.Point()] * 4), shape)
    return Launch(1, 4, arguments, (np.full(4, area, np.float32), shapes, None))


@corpus.add(areas)
def a_variant_as_an_argument(rng):
    return _areas(Shape.Rect(2.5, 4), 10)


@corpus.add(areas)
def an_empty_case_as_an_argument(rng):
    return _areas(Shape.Point(), -1)


@corpus.add(areas)
def an_element_of_variants_as_an_argument(rng):
    launch = _areas(Shape.Circle(3), 9)
    element = Shape.array([Shape.Rect(7, 7), Shape.Circle(3)])
    element["Rect"]["f1"][1] = 5  # of another case: no part of the value
    return Launch(1, 4, (*launch.arguments[:2], element[1]), launch.expected)
