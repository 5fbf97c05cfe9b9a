"""Records from around a kernel: what counts is what they hold at the launch."""

from __future__ import annotations

import numpy as np
import pytest

import sarek_numba as sarek

Point = sarek.record([("x", np.float32), ("y", np.float32)])
Move = sarek.variant("Move", Stay=None, By=Point)
origin = Point(1, 2)
move = Move.array([Move.Stay(), Move.By(origin)])[1]


@sarek.kernel
def put(out):
    out[sarek.global_idx.x] = origin


def launched(kernel):
    out = np.zeros(1, Point)
    kernel[1, 1](out)
    again = np.zeros(1, Point)
    sarek.emulate(kernel)[1, 1](again)
    assert again == out
    return out[0].tolist()


def test_a_change_or_another_record_counts_at_the_next_launch(monkeypatch):
    """The record may be changed in place, too."""
    monkeypatch.setitem(globals(), "origin", Point(3, 4))
    assert launched(put) == (3, 4)
    origin.y = 5
    assert launched(put) == (3, 5)
    monkeypatch.setitem(globals(), "origin", Point(6, 7))
    assert launched(put) == (6, 7)


def test_an_element_of_an_array_of_a_variant_is_its_value():
    @sarek.kernel
    def shifted(out):
        match move:
            case Move.By(by):
                out[0] = by
            case Move.Stay():
                pass

    assert launched(shifted) == (1, 2)


def test_the_host_is_not_changed_by_a_device_function():
    @sarek.function
    def reset(point):
        point.x = 0
        return point

    @sarek.kernel
    def clear(out):
        out[0] = reset(origin)

    assert launched(clear) == (0, 2)
    assert origin.x == 1


def test_a_change_of_an_alias_is_refused():
    @sarek.kernel
    def clear(out):
        mine = origin
        mine.x = 0
        out[0] = mine

    with pytest.raises(sarek.ReadOnlyWrite, match="from around the kernel"):
        launched(clear)
    assert origin.x == 1
