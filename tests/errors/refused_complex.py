"""What complex numbers have no meaning for. `z` is an array of complex64."""
# ruff: noqa: F841, B007, B018, RUF059, RUF100

import math

import numpy as np

import sarek_numba as sarek


def complex_order(x, z):
    if z[0] < z[1]:
        x[0] = 1


def complex_order_with_a_number(x, z):
    x[0] = 1 if z[0] >= 2 else 0


def complex_minimum(x, z):
    z[0] = min(z[0], z[1])


def complex_numpy_maximum(x, z):
    z[0] = np.maximum(z[0], 1.0)


def complex_floor_division(x, z):
    z[0] = z[1] // 2


def complex_remainder(x, z):
    z[0] %= z[1]


def complex_divmod(x, z):
    quotient, rest = divmod(z[0], 2)


def complex_and(x, z):
    z[0] = z[0] & 1


def complex_shift(x, z):
    z[0] = z[0] << 1


def complex_invert(x, z):
    z[0] = ~z[0]


def complex_to_int(x, z):
    x[0] = int(z[0])


def complex_to_float(x, z):
    x[0] = float(z[0])


def complex_to_float32(x, z):
    x[0] = np.float32(z[0])


def complex_rounded(x, z):
    z[0] = round(z[0])


def complex_floor(x, z):
    z[0] = np.floor(z[0])


def complex_in_math(x, z):
    z[0] = math.sqrt(z[0])


def complex_logarithm(x, z):
    z[0] = np.log(z[0])


def complex_stored_as_float(x, z):
    x[0] = z[0] * 2


def complex_literal_stored_as_float(x, z):
    x[0] = 2j


def complex_index(x, z):
    x[0] = x[z[0]]


def complex_range(x, z):
    for k in range(z[0]):
        x[0] += 1


def complex_attribute(x, z):
    x[0] = z[0].phase


def complex_conj_of_python(x, z):
    z[0] = (1 + 2j).conj()


def complex_conjugate_argument(x, z):
    z[0] = z[1].conjugate(1)


def complex_conjugate_of_real(x, z):
    x[0] = np.conj(x[1])


def complex_conjugate_stored(x, z):
    z[0] = z[1].conjugate


def complex_of_complex_parts(x, z):
    z[0] = complex(z[0], 1)


def complex_of_an_array(x, z):
    z[0] = complex(x)


def complex_of_three(x, z):
    z[0] = complex(1, 2, 3)


def complex64_of_three(x, z):
    z[0] = np.complex64(1, 2, 3)


def complex_joined_with_float(x, z, n):
    value = x[0]
    if n > 2:
        value = z[0]
    z[1] = value


def complex_in_tuple(x, z):
    x[0] = 1 if z[0] in (1, 2) else 0


def complex_atomic(x, z):
    sarek.atomic.add(z, 0, 1)


def complex_condition(x, z):
    z[0] = np.where(z[0], 1, 2)


def complex_longdouble(x, z):
    tile = sarek.local.array(4, np.clongdouble)


def complex_real_of_a_real_array(x, z):
    x.real[0] = 1


def complex_angle_missing(x, z):
    x[0] = np.sign(z[0])


def read_only_parts(x, fixed_z):
    fixed_z.imag[0] = 1
