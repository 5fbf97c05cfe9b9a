"""What halves do not do. Each is refused with what to write instead."""

import numpy as np

import sarek_numba as sarek

TABLE = np.arange(4, dtype=np.float16)


def atomic_on_halves(x, n):
    tile = sarek.shared.array(16, np.float16)
    sarek.atomic.add(tile, 0, 1.0)


def atomic_load_of_bfloat16(x, n):
    tile = sarek.shared.array(16, sarek.bfloat16)
    x[0] = sarek.atomic.load(tile, 0)


def write_to_constant_halves(x, n):
    table = sarek.const.array_like(TABLE)
    table[0] = 1.0


def half_of_an_array(x, n):
    x[0] = np.float16(x)


def half_stored_as_array(x, n):
    tile = sarek.shared.array(16, np.float16)
    tile[0] = x


def bits_of_an_array(x, n):
    x[0] = sarek.half_bits(x)


def bits_of_no_half(x, n):
    x[0] = sarek.half_bits(x[0], sarek.float32)


def half_from_bits_of_a_float(x, n):
    x[0] = sarek.half_from_bits(x[1])


def half_from_bits_beyond(x, n):
    x[0] = sarek.half_from_bits(0x10000)


def reinterpreted_as_half(x, n, small):
    x[0] = sarek.math.reinterpret(sarek.uint16(3), np.float16)


def half_is_an_index(x, n):
    tile = sarek.shared.array(16, np.float16)
    x[0] = x[tile[0]]
