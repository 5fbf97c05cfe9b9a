"""What is known of variables at one point of a program, for `passes.ranges`.

A state is a stack of layers, each holding what was learnt since a branch was entered: entering
costs nothing, joining costs what the branches changed, whatever else there is. A key is the id
of a variable, a number below zero for a coordinate of the launch, or a pair: their difference.
"""

from __future__ import annotations

from collections.abc import Sequence

from sarek_numba.ir.nodes import Coordinate, Index
from sarek_numba.passes.interval import Interval, hull

Term = tuple[int, int]  # a variable or coordinate, and how often it was bound
Key = int | tuple[Term, Term]  # a variable or coordinate, or the difference of two
Layer = dict[Key, Interval]

_ORDER = {coordinate: number for number, coordinate in enumerate(Coordinate)}


def coordinate_key(index: Index) -> int:
    """The key of a coordinate in a `State`."""
    return -1 - (3 * _ORDER[index.coordinate] + index.axis)


class State:
    """`version` names the present contents: equal versions mean equal knowledge."""

    def __init__(self) -> None:
        self.version = 0
        self._newest = 0
        self._layers: list[Layer] = [{}]
        self._versions: list[int] = []

    @property
    def depth(self) -> int:
        return len(self._layers)

    def get(self, key: Key) -> Interval | None:
        for layer in reversed(self._layers):
            known = layer.get(key)
            if known is not None:
                return known
        return None

    def set(self, key: Key, value: Interval) -> None:
        self._layers[-1][key] = value
        self.touch()

    def touch(self) -> None:
        """Note that something outside the layers has changed."""
        self._newest += 1
        self.version = self._newest

    def push(self, layer: Layer | None = None) -> None:
        self._versions.append(self.version)
        self._layers.append({} if layer is None else layer)
        if layer:
            self.touch()

    def pop(self) -> Layer:
        self.version = self._versions.pop()
        return self._layers.pop()

    def above(self, depth: int) -> Layer:
        """Everything learnt in the layers above the first `depth`."""
        learnt: Layer = {}
        for layer in self._layers[depth:]:
            learnt.update(layer)
        return learnt

    def join(self, branches: Sequence[Layer]) -> None:
        """Go on with what all of the branches agree on; they started at this state."""
        joined = branches[0] if len(branches) == 1 else self._agreed(branches)
        if joined:
            self._layers[-1].update(joined)
            self.touch()

    def _agreed(self, branches: Sequence[Layer]) -> Layer:
        joined: Layer = {}
        for key in dict.fromkeys(key for branch in branches for key in branch):
            before = self.get(key)
            found = [branch.get(key, before) for branch in branches]
            known = [interval for interval in found if interval is not None]
            if len(known) == len(found):
                joined[key] = _hull_of(known)
        return joined


def _hull_of(intervals: Sequence[Interval]) -> Interval:
    result = intervals[0]
    for interval in intervals[1:]:
        result = hull(result, interval)
    return result
