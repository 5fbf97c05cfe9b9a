"""Vectors of host functions are reached only by the identity of their type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sarek_numba.ir.native import (
    NUMPY_ARRAY,
    SCALAR_IDS,
    NativeInt32,
    NativeVec,
    TypeId,
    numpy_vec,
    vec_as_vector,
    vec_get_custom,
    vec_length,
    vec_set_custom,
)
from sarek_numba.ir.types import FLOAT32, INT32, Scalar

F32 = SCALAR_IDS[FLOAT32]


def vector() -> NativeVec:
    return numpy_vec(np.array([1.0, 2.0, 3.0], dtype=np.float32), FLOAT32)


def test_read_write_and_share() -> None:
    vec = vector()
    vec_set_custom(F32, vec, 1, np.float32(7.5))
    assert vec_get_custom(F32, vec, 1) == 7.5
    assert vec_length(vec) == 3
    assert vec_as_vector(NUMPY_ARRAY, vec) is vec.underlying
    assert (vec.item_bytes, vec.type_name) == (4, "float32")


def test_another_identity_of_the_same_name_is_refused() -> None:
    impostor: TypeId[Any] = TypeId("float32")
    with pytest.raises(TypeError, match="the elements are float32"):
        vec_get_custom(impostor, vector(), 0)
    with pytest.raises(TypeError, match="the elements are float32, not int32"):
        vec_set_custom(SCALAR_IDS[INT32], vector(), 0, 1)
    with pytest.raises(TypeError, match=r"the vector is a numpy.ndarray"):
        vec_as_vector(TypeId("numpy.ndarray"), vector())


@pytest.mark.parametrize("index", [-1, 3])
def test_outside(index: int) -> None:
    with pytest.raises(IndexError, match=f"index {index} of a vector of 3"):
        vec_get_custom(F32, vector(), index)


def test_a_scalar_is_no_vector() -> None:
    with pytest.raises(TypeError, match="NativeInt32 is no vector"):
        vec_length(NativeInt32(np.int32(3)))


def test_array_of_another_type_or_shape_is_refused() -> None:
    with pytest.raises(TypeError, match="an array of int64 is no vector of int32"):
        numpy_vec(np.zeros(3, np.int64), Scalar.INT32)
    with pytest.raises(TypeError, match="one dimension, not 2"):
        numpy_vec(np.zeros((3, 3), np.int32), Scalar.INT32)


def test_custom_elements() -> None:
    """An accessor of one's own gives elements that are no scalars."""
    pair: TypeId[tuple[float, float]] = TypeId("pair")

    class Pairs:
        def get(self, underlying: Any, index: int) -> tuple[float, float]:
            return underlying[2 * index], underlying[2 * index + 1]

        def set(self, underlying: Any, index: int, value: Any) -> None:
            underlying[2 * index : 2 * index + 2] = value

    vec = replace(
        numpy_vec(np.zeros(4, np.float32), FLOAT32),
        length=2,
        item_bytes=8,
        type_id=pair,
        accessor=Pairs(),
    )
    vec_set_custom(pair, vec, 1, (3.0, 4.0))
    assert vec_get_custom(pair, vec, 1) == (3.0, 4.0)
