"""Grid, block and shared bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sarek_numba.errors import InvalidDimensions
from sarek_numba.runtime.dimensions import (
    check_limits,
    check_local_bytes,
    check_shared,
    dimensions,
    needs_wide_indices,
    parts_of,
    problem_size,
    shared_size,
)
from tests.unit.fake_backend import record


def refused(function: Any, *args: Any) -> str:
    with pytest.raises(InvalidDimensions) as error:
        function("k", *args)
    assert isinstance(error.value, ValueError)
    return str(error.value)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (5, (5, 1, 1)),
        (np.int32(5), (5, 1, 1)),
        ((4,), (4, 1, 1)),
        ((4, np.uint8(3)), (4, 3, 1)),
        ([4, 3, 2], (4, 3, 2)),
    ],
)
def test_dimensions_are_ints_or_tuples(given: Any, expected: Any) -> None:
    """Python's and NumPy's integers; the result holds Python ints."""
    sizes = dimensions("k", "grid", given)
    assert sizes == expected
    assert all(type(size) is int for size in sizes)


HINT = "\n  hint: give an int, or a tuple of one to three ints"
MALFORMED: list[tuple[Any, str]] = [
    (0, "kernel 'k': grid 0 has an axis of 0; each must be at least 1"),
    ((4, 0), "kernel 'k': grid (4, 0) has an axis of 0; each must be at least 1"),
    (-3, "kernel 'k': grid -3 has an axis of -3; each must be at least 1"),
    (True, f"kernel 'k': grid True holds a bool{HINT}"),
    (4.0, f"kernel 'k': grid 4.0 holds a float{HINT}"),
    ((4, None), f"kernel 'k': grid (4, None) holds a NoneType{HINT}"),
    ("4", f"kernel 'k': grid '4' holds a str{HINT}"),
    ((), f"kernel 'k': grid () has 0 axes{HINT}"),
    ((1, 1, 1, 1), f"kernel 'k': grid (1, 1, 1, 1) has 4 axes{HINT}"),
]


@pytest.mark.parametrize(("given", "text"), MALFORMED)
def test_malformed_dimensions(given: Any, text: str) -> None:
    """Each says what is wrong with what was given."""
    assert refused(dimensions, "grid", given) == text


def test_numpy_bool_is_no_dimension() -> None:
    """Nor is a NumPy float."""
    assert "holds a bool" in refused(dimensions, "block", np.True_)
    assert "holds a float64" in refused(dimensions, "block", np.float64(2))


def test_block_beyond_the_device() -> None:
    """The product first, then each axis."""
    check_limits("k", (1, 1, 1), (256, 1, 1), record())
    assert refused(check_limits, (1, 1, 1), (16, 17, 1), record()) == (
        "kernel 'k': block (16, 17, 1) is 272 threads; device 'fake:0' takes at most 256"
    )
    assert refused(check_limits, (1, 1, 1), (1, 129, 1), record()) == (
        "kernel 'k': block (1, 129, 1) is 129 along y; device 'fake:0' takes at most 128"
    )


def test_grid_beyond_the_device() -> None:
    """Along the axis that is too long."""
    check_limits("k", (1000, 500, 50), (1, 1, 1), record())
    assert refused(check_limits, (1, 1, 51), (1, 1, 1), record()) == (
        "kernel 'k': grid (1, 1, 51) is 51 along z; device 'fake:0' takes at most 50"
    )


def test_shared_bytes() -> None:
    """Static and dynamic together, with what was asked and what there is."""
    check_shared("k", 1000, 24, record())
    assert refused(check_shared, 1000, 25, record()) == (
        "kernel 'k' asks for 1025 bytes of shared memory a block (1000 static and 25 dynamic); "
        "device 'fake:0' has 1024"
    )
    assert shared_size("k", np.int64(8)) == 8
    for given in (-1, 2.0, True, None, "8"):
        assert "it must be an int of at least 0" in refused(shared_size, given)


def test_local_bytes() -> None:
    """Of all threads of a block, where the device has a limit; the hint is what would fit."""
    check_local_bytes("k", 10**9, 999, record())
    few = replace(record(), limits=replace(record().limits, local_bytes=4096))
    check_local_bytes("k", 64, 64, few)
    assert refused(check_local_bytes, 64, 65, few) == (
        "kernel 'k' asks for 4160 bytes of local arrays a block (64 for each of 65 threads); "
        "device 'fake:0' has 4096\n  hint: launch blocks of at most 64 threads"
    )
    assert "hint: keep such an array in global memory" in refused(check_local_bytes, 5000, 1, few)


def test_wide_indices() -> None:
    """From 2^31 threads along one axis on; the axes do not multiply."""
    assert not needs_wide_indices((2**23 - 1, 2**20, 1), (256, 256, 1))
    assert needs_wide_indices((2**23, 1, 1), (256, 1, 1))
    assert needs_wide_indices((1, 2**30, 1), (1, 2, 1))


def test_what_stands_in_brackets() -> None:
    """Two to four parts; anything else shows the right form."""
    assert parts_of("k", (1, 2)) == (1, 2)
    assert parts_of("k", (1, 2, None, 0)) == (1, 2, None, 0)
    assert refused(parts_of, 5) == (
        "kernel 'k' is launched as k[grid, block](...), not as k[5]\n"
        "  hint: or as k[grid, block, stream, shared_bytes](...) or k.forall(n)(...)"
    )
    assert "not as k[(1, 2, 3, 4, 5)]" in refused(parts_of, (1, 2, 3, 4, 5))


def test_size_of_a_problem() -> None:
    """Zero is a size."""
    assert problem_size("k", 0) == 0
    assert problem_size("k", np.int32(7)) == 7
    for given in (-1, 1.0, True, None):
        text = f"kernel 'k': forall takes an int of at least 0, not {given!r}"
        assert refused(problem_size, given) == text
