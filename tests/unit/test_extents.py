"""Sets of bytes as stretches against sets of numbers."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sarek_numba.runtime.extents import Extents

SPANS = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted).map(tuple)


@given(st.lists(st.tuples(st.booleans(), SPANS), max_size=12), SPANS)
def test_stretches_are_a_set(steps: list, asked: tuple[int, int]) -> None:
    """Adding and removing stretches is adding and removing bytes; stretches stay apart."""
    extents, expected = Extents(), set()
    for adds, (first, last) in steps:
        if adds:
            extents.add(first, last)
            expected |= set(range(first, last))
        else:
            extents.remove(first, last)
            expected -= set(range(first, last))
        spans = list(extents)
        assert {k for a, b in spans for k in range(a, b)} == expected
        assert all(a < b for a, b in spans)
        assert all(left[1] < right[0] for left, right in pairwise(spans))
    wanted = set(range(*asked))
    assert {k for a, b in extents.within(*asked) for k in range(a, b)} == wanted & expected
    assert {k for a, b in extents.missing(*asked) for k in range(a, b)} == wanted - expected
    assert extents.covers(*asked) == (wanted <= expected)
    assert bool(extents) == bool(expected)
