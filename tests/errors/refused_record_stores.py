"""Kernels that store into records what does not fit there."""
# ruff: noqa: F841

import numpy as np

import sarek_numba as sarek

LONG = np.dtype([("cells", np.float32, (100,))])


def record_array_of_another_shape(parts, n):
    parts[0].cells = parts[1].cells[:, :2]


def record_array_of_other_axes(parts, n):
    parts[0].cells = parts[1].cells[0]


def record_array_from_record(points, parts, n):
    parts[0].cells = points[0]


def record_array_from_short_tuple(parts, n):
    parts[0].cells = ((1, 2, 3),)


def record_array_from_ragged_tuple(parts, n):
    parts[0].cells = ((1, 2, 3), (4, 5))


def record_array_from_flat_tuple(parts, n):
    parts[0].cells = (1, 2)


def record_array_from_tuple_that_does_not_fit(parts, n):
    parts[0].cells = ((1, 2, 3), (4, 5, 70000))


def record_array_from_complex(points, n):
    tile = sarek.local.array(2, LONG)
    tile[0].cells = 1j


def record_array_of_records_from_number(parts, n):
    parts[0].inner = 1


def record_array_of_records_backwards(parts, n):
    parts[0].inner = parts[1].inner[::-1]


def record_array_of_other_records(parts, points, n):
    parts[0].inner = points[0:2]


def record_element_from_short_tuple(points, n):
    points[0] = (1.0,)


def record_element_from_wrong_tuple(parts, n):
    parts[0].pos = (1.0, (2.0, 3.0))


def record_made_of_another_shape(points, parts, n):
    r = sarek.record(LONG)(cells=parts[0].cells[0])


def record_all_of_an_array(parts, n):
    parts[0].cells[:] = 1
