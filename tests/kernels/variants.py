"""Variants: construction, matching, every memory, records within variants within records."""

from __future__ import annotations

import numpy as np

import sarek_numba as sarek
from tests.kernels.case import Corpus, Launch, poison

corpus = Corpus()

Shape = sarek.variant(
    "Shape", Circle=sarek.float32, Rect=(sarek.float32, sarek.float32), Point=None
)
LOOSE = np.concatenate([np.zeros(1, Shape.dtype)] * 2).dtype  # one case behind the other


def shapes(rng, count):
    """Each case in turn, with random parts."""
    r, w, h = rng.normal(size=(3, count)).astype(np.float32)
    made = [Shape.Circle, lambda _: Shape.Point(), None]
    return Shape.array(
        [made[k % 3](r[k]) if k % 3 < 2 else Shape.Rect(w[k], h[k]) for k in range(count)]
    )


# --- matching -------------------------------------------------------------------------------------


@sarek.function
def area(shape):
    match shape:
        case Shape.Circle(r):
            return np.float32(3.140625) * r * r
        case Shape.Rect(w, h) if w > h:
            return w * h
        case Shape.Rect(w, h):
            return -(w * h)
        case Shape.Point():
            return np.float32(0)


@sarek.kernel
def areas(out, shapes):
    i = sarek.global_idx.x
    if i < len(shapes):
        out[i] = area(shapes[i])


def _area(shape):
    match shape:
        case Shape.Circle(r):
            return np.float32(3.140625) * r * r
        case Shape.Rect(w, h):
            return w * h if w > h else -(w * h)
        case _:
            return np.float32(0)


def _areas(given):
    expected = np.array([_area(shape) for shape in Shape.values(given)], np.float32)
    return Launch(3, 16, (poison(len(given), np.float32), given), (expected, None))


@corpus.add(areas)
def areas_of_shapes(rng):
    return _areas(shapes(rng, 40))


@corpus.add(areas)
def areas_of_every_other_shape_backwards(rng):
    return _areas(shapes(rng, 80)[::-2])


@corpus.add(areas)
def areas_of_shapes_laid_out_in_a_row(rng):
    return _areas(np.concatenate([shapes(rng, 20), shapes(rng, 23)]))


@corpus.add(areas)
def areas_of_shapes_at_an_odd_address(rng):
    given = shapes(rng, 20)
    memory = np.zeros(given.nbytes + 1, np.uint8)[1:].view(Shape.dtype)
    memory.view(np.uint8)[:] = given.view(np.uint8)
    return _areas(memory)


Number = sarek.variant("Number", Whole=sarek.int32, Real=sarek.float32, Flag=sarek.bool_)
Pair = sarek.variant("Pair", Two=(Number, Number), One=Number, Empty=None)


@sarek.kernel
def classify(out, pairs):
    i = sarek.global_idx.x
    if i < len(pairs):
        match pairs[i]:
            case Pair.Two(Number.Whole(a), Number.Whole(b)) if a == b:
                out[i] = 1
            case Pair.Two(Number.Whole(a) as n, Number.Real(_)) | Pair.One(Number.Whole(a) as n):
                match n:
                    case Number.Whole(7):
                        out[i] = 1000
                    case _:
                        out[i] = a
            case Pair.Two(Number.Flag(True), _) | Pair.Two(_, Number.Flag(False)):
                out[i] = 3
            case Pair.One(Number.Real(x)):
                out[i] = 100 if x > 0 else 200
            case Pair.One(Number.Flag(f)):
                out[i] = 5 + f
            case Pair.Two(a, Number.Whole(3 | 4)):
                match a:
                    case Number.Real(x) if x > 0:
                        out[i] = 60
                    case Number.Real(_):
                        out[i] = 70
                    case other:
                        out[i] = code(other)
            case _:
                out[i] = 9


@sarek.function
def code(number):
    match number:
        case Number.Whole(value):
            return value
        case Number.Real(_):
            return np.int32(-1)
        case Number.Flag(flag):
            return np.int32(flag)


def _classified(pair):
    match pair:
        case Pair.Two(Number.Whole(a), Number.Whole(b)) if a == b:
            return 1
        case Pair.Two(Number.Whole(a), Number.Real(_)) | Pair.One(Number.Whole(a)):
            return 1000 if a == 7 else a
        case Pair.Two(Number.Flag(f), _) if f:
            return 3
        case Pair.Two(_, Number.Flag(f)) if not f:
            return 3
        case Pair.One(Number.Real(x)):
            return 100 if x > 0 else 200
        case Pair.One(Number.Flag(f)):
            return 5 + f
        case Pair.Two(Number.Real(x), Number.Whole(3 | 4)):
            return 60 if x > 0 else 70
        case Pair.Two(Number.Whole(v) | Number.Flag(v), Number.Whole(3 | 4)):
            return v
        case _:
            return 9


def number(rng):
    """One of few numbers, so that equal ones meet."""
    kind = rng.integers(3)
    if kind == 0:
        return Number.Whole(rng.choice([3, 4, 7, 12]))
    return Number.Real(rng.choice([-1.5, 2.0])) if kind == 1 else Number.Flag(bool(rng.integers(2)))


@corpus.add(classify)
def nested_patterns(rng):
    made = [Pair.Empty()]
    made += [Pair.Two(number(rng), number(rng)) for _ in range(120)]
    made += [Pair.One(number(rng)) for _ in range(20)]
    expected = np.array([_classified(pair) for pair in made], np.int32)
    assert len(set(expected.tolist())) > 8, "the case reaches most branches"
    return Launch(5, 32, (poison(len(made), np.int32), Pair.array(made)), (expected, None))


Node = sarek.variant(
    "Node",
    Number=sarek.float64,
    Argument=None,
    Negated=sarek.int32,
    Sum=(sarek.int32, sarek.int32),
    Product=(sarek.int32, sarek.int32),
    Choice=(sarek.int32, sarek.int32, sarek.int32),
)


@sarek.function
def evaluated(nodes, values, k, x):
    match nodes[k]:
        case Node.Number(value):
            return value
        case Node.Argument():
            return x
        case Node.Negated(a):
            return -values[a]
        case Node.Sum(a, b):
            return values[a] + values[b]
        case Node.Product(a, b):
            return values[a] * values[b]
        case Node.Choice(test, then, orelse):
            chosen = then if values[test] > 0 else orelse
            return values[chosen]


@sarek.kernel
def evaluate(values, nodes, arguments):
    i = sarek.global_idx.x
    if i < len(arguments):
        for k in range(len(nodes)):
            values[i, k] = evaluated(nodes, values[i], k, arguments[i])


def nodes_and_values(rng):
    """Nodes, arguments, and the value of each node for each argument."""
    nodes = Node.array(
        [
            Node.Argument(),
            Node.Number(0.25),
            Node.Product(0, 0),
            Node.Sum(2, 1),
            Node.Negated(3),
            Node.Choice(0, 3, 4),
        ]
    )
    x = rng.normal(size=30)
    square = x * x + 0.25
    chosen = np.where(x > 0, square, -square)
    columns = [x, np.full(30, 0.25), x * x, square, -square, chosen]
    return nodes, x, np.stack(columns, 1)


@corpus.add(evaluate)
def an_expression_of_nodes(rng):
    nodes, x, values = nodes_and_values(rng)
    return Launch(2, 16, (poison((30, 6), np.float64), nodes, x), (values, None, None))


# --- records in variants in records ---------------------------------------------------------------

VECTOR = np.dtype([("x", np.float32), ("y", np.float32), ("z", np.float32)])
Vector = sarek.record(VECTOR)
Surface = sarek.variant("Surface", Sphere=(VECTOR, sarek.float32), Plane=(VECTOR, sarek.float32))
Paint = sarek.variant("Paint", Gray=sarek.uint8, Mixed=(sarek.uint8, sarek.uint8, sarek.uint8))
THING = np.dtype([("surface", Surface.dtype), ("paint", Paint.dtype), ("id", np.int16)])
HIT = np.dtype([("thing", THING), ("at", np.float32)])
Found = sarek.record(HIT)
Hit = sarek.variant("Hit", Miss=None, At=Found)


@sarek.function
def dot(a, b):
    return a.x * b.x + a.y * b.y + a.z * b.z


@sarek.function
def distance(surface, origin, direction):
    match surface:
        case Surface.Sphere(center, radius):
            center.x = origin.x - center.x
            center.y = origin.y - center.y
            center.z = origin.z - center.z
            b = dot(center, direction)
            c = dot(center, center) - radius * radius
            return -b - np.sqrt(b * b - c) if b * b >= c else np.float32(-1)
        case Surface.Plane(normal, offset):
            slope = dot(normal, direction)
            return (offset - dot(normal, origin)) / slope if slope != 0 else np.float32(-1)


@sarek.function
def nearest(things, origin, direction):
    hit = Hit.Miss()
    best = np.float32(1e30)
    for k in range(len(things)):
        d = distance(things[k].surface, origin, direction)
        if d > 0 and d < best:
            best = d
            hit = Hit.At(Found(thing=things[k], at=d))
    return hit


@sarek.kernel
def trace(hits, colors, things, rays):
    i = sarek.global_idx.x
    if i < len(rays):
        origin = Vector(0.0, 0.0, -3.0)
        hits[i] = nearest(things, origin, rays[i])
        match hits[i]:
            case Hit.Miss():
                colors[i] = -1
            case Hit.At(found):
                match found.thing.paint:
                    case Paint.Gray(level):
                        colors[i] = 3 * int(level)
                    case Paint.Mixed(r, g, b):
                        colors[i] = 256 * int(r) + 16 * int(g) + int(b)


def _vector(*parts):
    return np.array(tuple(parts), VECTOR)


def _dot(a, b):
    return a["x"] * b["x"] + a["y"] * b["y"] + a["z"] * b["z"]


def _traced(things, ray):
    origin, best, hit = _vector(0, 0, -3), np.float32(1e30), Hit.Miss()
    for k in range(len(things)):
        [surface] = Surface.values(things["surface"][k, ...])
        match surface:
            case Surface.Sphere(center, radius):
                to = _vector(*(origin[n] - center[n] for n in "xyz"))
                b, c = _dot(to, ray), _dot(to, to) - radius * radius
                d = -b - np.sqrt(b * b - c) if b * b >= c else np.float32(-1)
            case Surface.Plane(normal, offset):
                slope = _dot(normal, ray)
                d = (offset - _dot(normal, origin)) / slope if slope != 0 else np.float32(-1)
        if 0 < d < best:
            best = d
            made = np.zeros((), HIT)
            made["thing"], made["at"] = things[k], d
            hit = Hit.At(made)
    match hit:
        case Hit.Miss():
            return hit, -1
        case Hit.At(found):
            [paint] = Paint.values(found["thing"]["paint"])
            match paint:
                case Paint.Gray(level):
                    return hit, 3 * int(level)
                case Paint.Mixed(r, g, b):
                    return hit, 256 * int(r) + 16 * int(g) + int(b)


@corpus.add(trace)
def rays_and_surfaces(rng):
    things = np.zeros(3, THING)
    things["id"] = [1, 2, 3]
    things["surface"][:] = Surface.array(
        [
            Surface.Sphere(_vector(0, 0, 0), 1),
            Surface.Sphere(_vector(0.5, 0.25, -1), 0.5),
            Surface.Plane(_vector(0, 1, 0), -1),
        ]
    )
    things["paint"][:] = Paint.array([Paint.Gray(9), Paint.Mixed(1, 2, 3), Paint.Gray(80)])
    rays = np.zeros(40, VECTOR)
    x, y = rng.uniform(-0.6, 0.6, (2, 40))
    length = np.sqrt(x * x + y * y + 1)
    rays["x"], rays["y"], rays["z"] = x / length, y / length, 1 / length
    with np.errstate(all="ignore"):
        expected = [_traced(things, ray) for ray in rays]
    colors = np.array([color for _, color in expected], np.int32)
    assert set(colors.tolist()) == {-1, 27, 240, 291}, "each thing is hit, and some ray misses"
    arguments = (Hit.array([Hit.Miss()] * 40), poison(40, np.int32), things, rays)
    return Launch(3, 16, arguments, (Hit.array([hit for hit, _ in expected]), colors, None, None))


BOX = np.dtype([("name", np.int8), ("slots", Pair.dtype, (2,)), ("spare", Shape.dtype)])
Held = sarek.variant("Held", Box=BOX, Other=Shape)


@sarek.kernel
def repack(out, held):
    i = sarek.global_idx.x
    if i < len(held):
        match held[i]:
            case Held.Box(box):
                box.name += 1
                first = box.slots[0]
                box.slots[0] = box.slots[1]
                box.slots[1] = first
                match box.spare:
                    case Shape.Rect(w, h):
                        box.spare = Shape.Rect(h, w)
                    case Shape.Circle(r):
                        held[i] = Held.Other(Shape.Circle(-r))
                    case _:
                        pass
                out[i] = Held.Box(box)
            case Held.Other(_):
                out[i] = held[i] if i % 2 == 0 else Held.Other(Shape.Point())


@corpus.add(repack)
def arrays_of_variants_in_a_record_of_a_variant(rng):
    boxes = np.zeros(24, BOX)
    given, expected, after = [], [], []
    spare = Shape.values(shapes(rng, 24))
    for k in range(len(boxes)):
        box = boxes[k, ...]
        if k % 4 == 3:
            given.append(Held.Other(spare[k]))
            expected.append(given[-1] if k % 2 == 0 else Held.Other(Shape.Point()))
            after.append(given[-1])
            continue
        slots = [Pair.Two(number(rng), number(rng)), Pair.One(number(rng))]
        box["name"] = k
        box["slots"][:] = Pair.array(slots)
        box["spare"][...] = spare[k]
        given.append(Held.Box(box))
        after.append(given[-1])
        box["name"] = k + 1
        box["slots"][:] = Pair.array(slots[::-1])
        match spare[k]:
            case Shape.Rect(w, h):
                box["spare"][...] = Shape.Rect(h, w)
            case Shape.Circle(r):
                after[-1] = Held.Other(Shape.Circle(-r))
        expected.append(Held.Box(box))
    arguments = (Held.array([Held.Other(Shape.Point())] * 24), Held.array(given))
    return Launch(2, 16, arguments, (Held.array(expected), Held.array(after)))


# --- memory ---------------------------------------------------------------------------------------

Light = sarek.variant(
    "Light", Red=sarek.int32, Green=(sarek.int32, sarek.bool_), Blinking=sarek.int64
)


@sarek.function
def switched(light, asked):
    """The next state: red and green count down, green is left early if asked."""
    match light:
        case Light.Red(0):
            return Light.Green(3, False)
        case Light.Red(left):
            return Light.Red(left - 1)
        case Light.Green(_, True) | Light.Green(0, _):
            return Light.Blinking(2)
        case Light.Green(left, _):
            return Light.Green(left - 1, asked)
        case Light.Blinking(left) if left > 0:
            return Light.Blinking(left - 1)
        case Light.Blinking(_):
            return Light.Red(4)


@sarek.kernel
def crossing(out, lights, asked, steps):
    state = sarek.shared.array(32, Light)
    t = sarek.thread_idx.x
    state[t] = lights[t]
    sarek.barrier()
    for k in range(steps):
        neighbour = state[(t + 1) % 32]
        sarek.barrier()
        match neighbour:
            case Light.Blinking(_):
                state[t] = switched(state[t], True)
            case _:
                state[t] = switched(state[t], asked[t, k])
        sarek.barrier()
    out[t] = state[t]


def _switched(light, asked):
    match light:
        case Light.Red(left):
            return Light.Red(left - 1) if left else Light.Green(3, False)
        case Light.Green(left, early):
            return Light.Blinking(2) if early or not left else Light.Green(left - 1, bool(asked))
        case Light.Blinking(left):
            return Light.Blinking(left - 1) if left > 0 else Light.Red(4)


@corpus.add(crossing)
def a_state_machine_in_shared_memory(rng):
    made = [Light.Red, lambda left: Light.Green(left, left == 2), Light.Blinking]
    given = [made[rng.integers(3)](int(rng.integers(4))) for _ in range(32)]
    asked = rng.integers(0, 2, (32, 20)).astype(np.bool_)
    state = given
    for k in range(20):
        state = [
            _switched(state[t], isinstance(state[(t + 1) % 32], Light.Blinking) or asked[t, k])
            for t in range(32)
        ]
    arguments = (Light.array([Light.Red(77)] * 32), Light.array(given), asked, 20)
    return Launch(1, 32, arguments, (Light.array(state), None, None, None))


@sarek.kernel
def carried(out, shapes, count):
    """A value that a loop and branches carry on, and two that change places."""
    i = sarek.global_idx.x
    best = Shape.Point()
    last = shapes[i]
    for k in range(count):
        candidate = shapes[i + 16 * k]
        chosen = candidate if area(candidate) > area(best) else best
        if k % 3 == 2:
            best, last = last, chosen
        else:
            best = chosen
    out[i, 0] = best
    out[i, 1] = last


@corpus.add(carried)
def variants_carried_round_a_loop(rng):
    given = shapes(rng, 16 * 8)
    values = Shape.values(given)
    out = []
    for i in range(16):
        best, last = Shape.Point(), values[i]
        for k in range(8):
            candidate = values[i + 16 * k]
            chosen = candidate if _area(candidate) > _area(best) else best
            best, last = (last, chosen) if k % 3 == 2 else (chosen, last)
        out += [best, last]
    expected = Shape.array(out).reshape(16, 2)
    return Launch(2, 8, (np.zeros_like(expected), given, 8), (expected, None, None))


TABLE = Shape.array([Shape.Rect(1.5, -2.0), Shape.Circle(0.25), Shape.Point()])


@sarek.kernel
def everywhere(out, given):
    table = sarek.const.array_like(TABLE)
    tile = sarek.shared.array(0, Shape)
    mine = sarek.local.array((2, 2), Shape)
    t = sarek.thread_idx.x
    tile[t] = given[t]
    sarek.barrier()
    mine[0, 0] = tile[len(tile) - 1 - t]
    mine[1, 1] = table[t % 3]
    mine[t % 2, 1 - t % 2] = mine[0, 0]
    match mine[t % 2, 1 - t % 2], mine[1, 1]:
        case (Shape.Circle(r), Shape.Circle(s)) | (Shape.Circle(r), Shape.Rect(s, _)):
            out[t] = Shape.Rect(r, s)
        case _, Shape.Point():
            out[t] = mine[0, 0]
        case _, other:
            out[t] = other


@corpus.add(everywhere)
def variants_in_constant_local_and_dynamic_memory(rng):
    given = shapes(rng, 32)
    values, table, out = Shape.values(given), Shape.values(TABLE), []
    for t in range(32):
        match values[31 - t], table[t % 3]:
            case (Shape.Circle(r), Shape.Circle(s)) | (Shape.Circle(r), Shape.Rect(s, _)):
                out.append(Shape.Rect(r, s))
            case shape, Shape.Point():
                out.append(shape)
            case _, other:
                out.append(other)
    size = 32 * Shape.dtype.itemsize
    arguments = (Shape.array([Shape.Point()] * 32), given)
    return Launch(1, 32, arguments, (Shape.array(out), None), shared_bytes=size)


@sarek.kernel
def annotated(shapes: Shape[:], radii: sarek.float32[:]):
    i = sarek.global_idx.x
    if i < len(shapes):
        shapes[-i - 1] = Shape.Circle(radii[i] * 2) if radii[i] > 0 else Shape.Point()


@corpus.add(annotated)
def variants_constructed(rng):
    radii = rng.normal(size=30).astype(np.float32)
    made = [Shape.Circle(2 * r) if r > 0 else Shape.Point() for r in radii[::-1]]
    return Launch(2, 16, (shapes(rng, 30), radii), (Shape.array(made), None))


USUAL = Shape.Rect(1.5, -2.25)
PAINTED = Surface.Sphere(_vector(1, 2, 3), 4)


@sarek.function
def larger(shape, other=USUAL):
    return shape if area(shape) > area(other) else other


@sarek.kernel
def compared(out, surfaces, shapes):
    i = sarek.global_idx.x
    if i < len(shapes):
        out[i] = larger(shapes[i])
        if i % 2 == 0:
            surfaces[i] = PAINTED


@corpus.add(compared)
def values_from_around_the_kernel(rng):
    given = shapes(rng, 30)
    larger_ones = [v if _area(v) > _area(USUAL) else USUAL for v in Shape.values(given)]
    plane = Surface.Plane(_vector(0, 0, 1), 0)
    surfaces = Surface.array([plane] * 30)
    expected = Surface.array([PAINTED if k % 2 == 0 else plane for k in range(30)])
    arguments = (Shape.array([Shape.Point()] * 30), surfaces, given)
    return Launch(2, 16, arguments, (Shape.array(larger_ones), expected, None))
