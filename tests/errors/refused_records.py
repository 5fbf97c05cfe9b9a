"""Kernels that use records as none may be used. Each is refused with what to write instead."""
# ruff: noqa: F841, B018, B007, RUF059, RUF100

import numpy as np

import sarek_numba as sarek

POINT = np.dtype([("x", np.float32), ("y", np.float32)])
OTHER = sarek.record(np.dtype([("x", np.float64), ("y", np.float32)]))
METHODS = sarek.record(np.dtype([("copy", np.float32), ("dtype", np.int32)]))
SWAPPED = np.dtype([("x", np.float32), ("y", np.dtype(np.float32).newbyteorder())])
UNION = np.dtype({"names": ["a", "b"], "formats": ["f4", "i4"], "offsets": [0, 2], "itemsize": 8})
DURATIONS = np.dtype([("pos", [("x", np.float32), ("h", "m8[s]")])])
EMPTY = np.dtype([])
Point = sarek.record(POINT)


def record_unknown_field(points, n):
    points[0].z = 1.0


def record_unknown_item(points, n):
    points[0]["xx"] = points[0].x


def record_unknown_field_of_all(points, n):
    points["z"][0] = 1.0


def record_field_of_array(points, n):
    points.x[0] = 1.0


def record_item_by_number(points, n):
    points[0][1] = 1.0


def record_field_from_record(points, n):
    points[0].x = points[1]


def record_field_from_array(points, n):
    points[0].x = points["x"]


def record_field_constant(parts, n):
    parts[0].kind = 300


def record_field_of_records(parts, n):
    parts[0].pos = 1.0


def record_field_of_all_arrays(parts, n):
    parts["inner"][0] = parts["inner"][1]


def record_element_from_number(points, n):
    points[0] = 1.0


def record_element_of_other_fields(points, n):
    points[0] = OTHER(x=1.0)


def record_in_a_number(points, x, n):
    x[0] = points[0]


def record_arithmetic(points, x, n):
    x[0] = points[0] + 1


def record_read_only(fixed_points, n):
    fixed_points[0].x = 1.0


def record_read_only_element(fixed_points, n):
    fixed_points[0] = fixed_points[1]


def record_read_only_constant(points, n):
    table = sarek.const.array_like(TABLE)
    table[0].x = 1.0


TABLE = np.zeros(3, POINT)


def record_named_as_method(n):
    r = METHODS(1.0, dtype=2)
    r.copy = 2.0


def record_method_not_called(x, n):
    r = METHODS(1.0)
    x[0] = r.copy


def record_copy_with_argument(points, n):
    r = points[0].copy("C")


def record_unknown_constructor_field(n):
    r = Point(x=1.0, z=2.0)


def record_too_many_values(n):
    r = Point(1.0, 2.0, 3.0)


def record_value_given_twice(n):
    r = Point(1.0, x=2.0)


def record_of_a_number(n):
    r = sarek.record(np.float32)(1.0)


def record_swapped(n):
    tile = sarek.local.array(4, SWAPPED)


def record_overlapping(n):
    tile = sarek.local.array(4, UNION)


def record_of_durations(n):
    tile = sarek.local.array(4, DURATIONS)


def record_without_fields(n):
    tile = sarek.local.array(4, EMPTY)


def record_reference_or_value(points, n):
    r = points[0]
    if n > 1:
        r = points[1].copy()
    points[2].x = r.x


def record_of_one_array_or_another(points, fixed_points, n):
    r = points[0]
    if n > 1:
        r = fixed_points[1]
    points[2].x = r.x


def record_with_two_names_changed(points, n):
    best = points[0].copy()
    for k in range(n):
        other = points[k].copy()
        if other.x > best.x:
            best = other
        other.x = 0.0
    points[0] = best


def record_with_an_array_chosen(parts, n):
    a = parts[0].copy()
    b = parts[1].copy()
    parts[2].id = (a if n > 2 else b).id


def record_atomic(points, n):
    sarek.atomic.add(points, 0, 1)


def record_atomic_packed(parts, n):
    sarek.atomic.add(parts["id"], 0, 1)


def record_dynamic_offset(n):
    tile = sarek.shared.dynamic(2, POINT)


@sarek.function
def total(cells):
    return cells[0].cells[0, 0]


def record_inner_array_as_argument(points, parts, n):
    points[0].x = total(parts[0].inner)


@sarek.function
def head(r):
    return r.cells[0]


LONG = np.dtype([("cells", np.float32, (100,))])


def record_too_long_as_argument(points, n):
    tile = sarek.local.array(2, LONG)
    tile[0].cells[0] = 1.0
    points[0].x = head(tile[0])


def record_unpacked(points, n):
    x, y = points[0]


def record_loop(points, n):
    for value in points[0]:
        pass


def record_compared(points, n):
    if points[0] == points[1]:
        points[0].x = 1.0


COMPLEX = np.dtype([("z", np.complex64), ("x", np.float32)])


def record_complex_in_a_real_field(n):
    tile = sarek.local.array(2, COMPLEX)
    tile[0].x = tile[1].z


def record_complex_from_record(points, n):
    tile = sarek.local.array(2, COMPLEX)
    tile[0].z = points[0]


def record_complex_atomic(n):
    tile = sarek.shared.array(2, COMPLEX)
    sarek.atomic.add(tile["z"], 0, 1)


def record_complex_unknown_part(n):
    tile = sarek.local.array(2, COMPLEX)
    tile[0].x = tile[1].z.size


ORIGIN = sarek.record(POINT)(1, 2)
LINE = np.zeros(1, [("cells", np.int16, (2,))])[0]


def captured_record_changed(points, n):
    origin = ORIGIN
    origin.x = 3


def captured_record_with_an_array(ints, n):
    ints[0] = LINE["cells"][0]


def captured_record_joined(points, n):
    p = ORIGIN
    if n > 3:
        p = sarek.record(POINT)(3, 4)
    points[0] = p


Ends = sarek.record([("a", POINT), ("b", POINT)])


def record_chosen_and_changed(parts, n):
    pair = Ends(parts[0].pos, parts[1].pos)
    (pair.a if n > 2 else pair.b).x = 3
