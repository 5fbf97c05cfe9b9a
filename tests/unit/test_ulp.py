"""Distances in units in the last place."""

from __future__ import annotations

import numpy as np
import pytest

from sarek_numba.verify.ulp import ulp_distance, worst_ulp


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_neighbours_are_one_apart(kind):
    """nextafter is one away, on both sides of zero and into infinity."""
    values = np.array([1, -1, 0.1, -0.1, np.finfo(kind).max / 2, np.finfo(kind).tiny], kind)
    assert ulp_distance(values, np.nextafter(values, kind(np.inf))).tolist() == [1] * len(values)
    assert ulp_distance(kind([0.0]), kind([-0.0])).tolist() == [1]
    smallest = np.nextafter(kind(0), kind(1))
    assert ulp_distance(np.array([smallest]), np.array([-smallest])).tolist() == [3]


def test_nans():
    """NaN against NaN is equal, whatever the payload; against a number it is infinitely far."""
    other = np.array([0xFFC00001], np.uint32).view(np.float32)
    nan, one = np.float32([np.nan]), np.float32([1])
    assert ulp_distance(nan, other).tolist() == [0]
    assert ulp_distance(nan, one).tolist() == [np.inf]


def test_integers_and_bools():
    """The difference, exact at the ends of the range."""
    low, high = np.int64([-(2**63)]), np.int64([2**63 - 1])
    assert ulp_distance(low, high).tolist() == [2.0**64]
    assert ulp_distance(np.array([True, False]), np.array([True, True])).tolist() == [0, 1]
    assert ulp_distance(np.uint8([0, 255]), np.uint8([255, 255])).tolist() == [255, 0]


def test_worst():
    """The largest distance; zero for nothing at all."""
    assert worst_ulp(np.float32([1, 2]), np.float32([1, 2.0000005])) == 2
    assert worst_ulp(np.empty(0), np.empty(0)) == 0
    with pytest.raises(TypeError):
        worst_ulp(np.float32([1]), np.float64([1]))
