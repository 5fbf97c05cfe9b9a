"""Sub-arrays of records that are stored at once: shapes that are known at run time only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import errors

DTYPE = np.dtype([("n", np.int8), ("v", np.float32, (5,)), ("m", np.int16, (2, 3))], align=True)


def put(p, rows, tables):  # type: ignore[no-untyped-def] # a kernel
    i = sarek.global_idx.x
    p[i].v = rows[i]
    p[i].m = tables[i]


kernel = sarek.kernel(put)
checked = sarek.kernel(debug=True)(put)


def arguments(width: int, height: int = 2) -> Any:
    rows = np.arange(2 * width, dtype=np.float64).reshape(2, width)
    return np.zeros(2, DTYPE), rows, np.ones((2, height, 3), np.int64)


@pytest.mark.parametrize("width", [4, 6, 1])
def test_another_length_is_found(width: int) -> None:
    """By the oracle, by each device in a debug build, and by emulation."""
    for launched, device in ((kernel, "interpreter"), (checked, "native")):
        with pytest.raises(errors.AssertionFailed) as caught, sarek.use_device(device):
            launched[1, 2](*arguments(width))
        assert "the array that is stored has the shape of the field, 5" in str(caught.value)
    with pytest.raises(ValueError, match="is stored in one of"):
        sarek.emulate(kernel)[1, 2](*arguments(width))


def test_another_height_is_found() -> None:
    with pytest.raises(errors.AssertionFailed, match="the shape of the field, 2 x 3"):
        kernel.launch(*arguments(5, 3), grid=1, block=2, device="interpreter")


def test_the_same_shape_is_stored() -> None:
    for launch in (kernel[1, 2], checked[1, 2], sarek.emulate(kernel)[1, 2]):
        given = arguments(5)
        launch(*given)
        assert given[0]["v"].tolist() == given[1].tolist()
        assert (given[0]["m"] == 1).all()
