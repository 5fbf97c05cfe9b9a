"""The types of a launch's arguments, and annotations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba.core import types

from sarek_numba.errors import ArgumentTypeError
from sarek_numba.frontend import language as sarek
from sarek_numba.frontend.arguments import typeof_argument
from sarek_numba.frontend.complexes import WEAK_COMPLEX
from sarek_numba.frontend.weak import WEAK_FLOAT, WEAK_INT


def test_python_numbers_are_weak_and_numpy_scalars_strong() -> None:
    assert typeof_argument(3) == WEAK_INT
    assert typeof_argument(2.5) == WEAK_FLOAT
    assert typeof_argument(True) == types.boolean
    assert typeof_argument(1j) == WEAK_COMPLEX
    assert typeof_argument(np.complex64(1)) == types.complex64
    assert typeof_argument(None) == types.none
    assert typeof_argument(np.uint8(3)) == types.uint8
    assert typeof_argument(np.bool_(True)) == types.boolean


def test_arrays_by_layout_and_access() -> None:
    a = np.zeros((3, 4), np.float32)
    assert typeof_argument(a) == types.Array(types.float32, 2, "C")
    assert typeof_argument(a.T) == types.Array(types.float32, 2, "F")
    assert typeof_argument(a[:, ::2]) == types.Array(types.float32, 2, "A")
    broadcast = typeof_argument(np.broadcast_to(a[0], (5, 4)))
    assert not broadcast.mutable
    unaligned = np.zeros(9, np.uint8)[1:].view(np.float32)
    assert not typeof_argument(unaligned).aligned


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (np.zeros(2, object), "object"),
        (np.zeros(2, "U3"), "str"),
        (np.zeros(2, np.longdouble), "float64"),
        (np.zeros(2, ">f4"), "byte order"),
        (np.zeros(2, np.clongdouble), "complex128"),
        (np.zeros(2, [("x", "S4")]), "use numbers"),
        ("text", "str cannot be passed"),
        ([1, 2], "list cannot be passed"),
        (2**63, "does not fit int64"),
    ],
)
def test_what_a_kernel_cannot_take_names_the_parameter(value: Any, says: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"(?s)^out: .*{says}"):
        typeof_argument(value, None, "out")


def test_a_stated_scalar_takes_python_numbers_that_fit() -> None:
    assert typeof_argument(3, sarek.int32) == types.int32
    assert typeof_argument(3, sarek.float32) == types.float32
    assert typeof_argument(np.int32(3), sarek.int32) == types.int32
    for value, stated in ((300, sarek.uint8), (2.5, sarek.int32), (True, sarek.int32)):
        with pytest.raises(ArgumentTypeError):
            typeof_argument(value, stated, "n")


def test_a_stated_scalar_takes_numpy_scalars_of_that_type_alone() -> None:
    with pytest.raises(ArgumentTypeError, match="n is stated as int64, and is a int32"):
        typeof_argument(np.int32(3), sarek.int64, "n")


def test_case_13_a_stated_array_takes_that_element_type_alone() -> None:
    typeof_argument(np.zeros(3, np.int64), sarek.int64[:])
    with pytest.raises(ArgumentTypeError, match="array of int32"):
        typeof_argument(np.zeros(3, np.int32), sarek.int64[:], "a")
    with pytest.raises(ArgumentTypeError, match="2 axes"):
        typeof_argument(np.zeros((3, 2), np.int64), sarek.int64[:], "a")
    with pytest.raises(ArgumentTypeError, match="ascontiguousarray"):
        typeof_argument(np.zeros((3, 2), np.int64).T, sarek.int64[:, ::1], "a")
    with pytest.raises(ArgumentTypeError, match="no array"):
        typeof_argument(3, sarek.int64[:], "a")
