"""Kernels that use variants as none may be used. Each is refused with what to write instead."""
# ruff: noqa: F841, B018, RUF100, F823, N806

import numpy as np

import sarek_numba as sarek

VECTOR = np.dtype([("x", np.float32), ("y", np.float32)])
Shape = sarek.variant(
    "Shape", Circle=sarek.float32, Rect=(sarek.float32, sarek.float32), Point=None
)
Color = sarek.variant("Color", Gray=sarek.uint8, Named=(sarek.int32, Shape), Sized=VECTOR)


def variant_left_out(shapes, n):
    match shapes[0]:
        case Shape.Circle(r):
            n = 1
        case Shape.Rect(w, h) if w > h:
            n = 2


def variant_left_out_within(colors, n):
    match colors[0]:
        case Color.Named(_, Shape.Circle(_) | Shape.Point()):
            n = 1
        case Color.Gray(_):
            n = 2
        case Color.Sized(_):
            n = 3


def variant_left_out_of_a_pair(shapes, colors):
    match shapes[0], colors[0]:
        case (Shape.Circle(_), Color.Gray(_)):
            pass
        case (_, Color.Named(3, _)):
            pass


def variant_never_reached(shapes, n):
    match shapes[0]:
        case Shape.Circle(r):
            n = 1
        case Shape.Rect(_, _) | Shape.Point():
            n = 2
        case Shape.Circle(0.0):
            n = 3
        case _:
            n = 4


def variant_unknown_case(shapes, n):
    match shapes[0]:
        case Shape.Circl(r):
            n = 1
        case Shape.Triangle():
            n = 2
        case _:
            n = 3


def variant_wrong_arity(shapes, n):
    match shapes[0]:
        case Shape.Circle(r, s):
            n = 1
        case Shape.Rect():
            n = 2
        case Shape.Point(f0=n):
            n = 3


def variant_of_another(shapes, n):
    match shapes[0]:
        case Shape.Circle(_):
            n = 1
        case Color.Gray(_):
            n = 2


def variant_subject_of_another(shapes, n):
    match shapes[0]:
        case Color.Gray(_):
            n = 1
        case _:
            n = 2


def variant_subject_is_no_variant(x, n):
    match x[0]:
        case Shape.Circle(_):
            n = 1
        case _:
            n = 2


def variant_inner_pattern(colors, n):
    match colors[0]:
        case Color.Gray(Shape.Circle(_)):
            n = 1
        case Color.Named(_, Color.Gray(_)):
            n = 2
        case Color.Named(_, 3):
            n = 3
        case Color.Sized((x, y)):
            n = 4
        case _:
            n = 5


def variant_without_brackets(shapes, n):
    match shapes[0]:
        case Shape.Point:
            n = 1
        case Shape:
            n = 2


def variant_itself_in_a_pattern(shapes, n):
    match shapes[0]:
        case Shape():
            n = 1


def variant_store_of_another(shapes, n):
    shapes[0] = Color.Gray(1)


def variant_store_of_a_number(shapes, n):
    shapes[0] = 1.0


def variant_store_of_a_case(shapes, n):
    shapes[0] = Shape.Point


def variant_field_of_another(things, n):
    things[0].shape = Color.Gray(1)


def variant_stored_as_a_number(x, shapes):
    x[0] = shapes[0]


def variant_constructor_arity(shapes, n):
    shapes[0] = Shape.Rect(1.0)


def variant_constructor_keyword(shapes, n):
    shapes[0] = Shape.Circle(r=1.0)


def variant_constructor_type(colors, shapes):
    colors[0] = Color.Named(1, Color.Gray(2))


def variant_constructor_number(shapes, n):
    shapes[0] = Shape.Rect(1.0, shapes)


def variant_constructor_constant(colors, n):
    colors[0] = Color.Gray(300)


def variant_constructor_unknown(shapes, n):
    shapes[0] = Shape.Cirlce(1.0)


def variant_called(shapes, n):
    shapes[0] = Shape(1.0)


def variant_field_read(x, shapes):
    x[0] = shapes[0].Circle


def variant_tag_of_all(x, shapes):
    x[0] = shapes["tag"][0]


def variant_field_written(shapes, n):
    shapes[0].Circle = 1.0


def variant_compared(shapes, n):
    if shapes[0] == shapes[1]:
        n = 1


def variant_joined(x, shapes):
    s = shapes[0]
    if x[0] > 0:
        s = Color.Gray(1)
    shapes[1] = s


def variant_parts_joined(colors, n):
    match colors[0]:
        case Color.Gray(part) | Color.Sized(part):
            n = part
        case _:
            n = 0


def variant_read_only(fixed_shapes, n):
    fixed_shapes[0] = Shape.Point()


def variant_declared_in_a_kernel(x, n):
    shape = sarek.variant("Shape", Circle=sarek.float32)


Later = sarek.variant("Shape", Circle=sarek.float32, Square=sarek.float32)
Exact = sarek.variant(
    "Shape", Circle=sarek.float64, Rect=(sarek.float32, sarek.float32), Point=None
)


def variant_subject_of_an_earlier_declaration(shapes, x):
    match shapes[0]:
        case Later.Circle(radius):
            x[0] = radius
        case Later.Square(side):
            x[0] = side


def variant_store_of_another_declaration(shapes, n):
    shapes[0] = Exact.Circle(1.0)
