"""Graphs of one device: steps bound to memory as nodes, which a device's own mechanism replays.

What is the same for all devices is here: which bytes the steps use, that they are where the device
needs them, and that others wait for a replay as for any launch. Where nothing changed since the
last replay, and nobody else had the memory, one number of each vector is looked at and no more.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from sarek_numba.runtime.binding import Binder, Bound, Unrecordable
from sarek_numba.runtime.cache import count
from sarek_numba.runtime.device import Driver
from sarek_numba.runtime.graphs import Step, Use, dependencies_of, pattern_of
from sarek_numba.runtime.nodes import Graph, Graphs, LaunchNode, Node, RecordsGraphs
from sarek_numba.runtime.residence import Residence, Span
from sarek_numba.runtime.storage import Storage


def record(driver: Driver, groups: Sequence[Sequence[Step]]) -> RecordedGraph | None:
    """A graph of groups of independent steps, of which nothing is done yet.

    None where the device has no mechanism, or none for one of the steps. Raises BackendError.
    """
    if not isinstance(driver, RecordsGraphs):
        return None
    try:
        return RecordedGraph(driver, driver.graphs, groups)
    except Unrecordable:
        return None


class RecordedGraph:
    """Steps that a device does again and again. Safe to use from any thread."""

    def __init__(self, driver: Driver, graphs: Graphs, groups: Sequence[Sequence[Step]]) -> None:
        """Raises Unrecordable, BackendError."""
        self._driver = driver
        self._graphs = graphs
        self._binder = Binder(driver, graphs.widths)
        self._lock = threading.Lock()
        self._bound = [self._bind(group) for group in groups]
        self._uses = [_uses(bound) for bound in self._bound]
        self._pattern = pattern_of(self._uses)
        self._graph: Graph | None = None
        self._stale: set[int] = set()  # groups whose nodes are others than in the graph
        self._firsts: list[int] = []  # the place of the first node of each group
        self._launches = 0
        self._residence: Residence | None = None
        self._settle()

    def _bind(self, steps: Sequence[Step]) -> tuple[Bound, ...]:
        found = map(self._binder.bind, steps)
        return tuple(bound for bound in found if bound is not None)

    def _settle(self) -> None:
        """Note what memory all groups use together."""
        bound = [each for group in self._bound for each in group]
        self._mirrors = [mirror for each in bound for mirror in each.mirrors]
        spans = [
            Span(span.storage, span.first, span.last, span.used, span.written)
            for each in bound
            for span in each.spans
            if span.storage is not None
        ]
        self._residence = Residence(self._driver, spans, self._residence)

    def replay(self, changed: Mapping[int, Sequence[Step]], wait: bool) -> bool:
        """Do all steps; of the groups named in `changed`, these ones from now on.

        A group that changes has as many steps of the same kinds, kernels and devices as before; it
        may have none, if a grid became empty, and have them again later. With `wait` all are done
        when this returns; otherwise when somebody looks. False, with nothing done or changed, where
        the mechanism cannot do them. Raises BackendError.
        """
        with self._lock:
            if changed:
                try:
                    fresh = {number: self._bind(steps) for number, steps in changed.items()}
                except Unrecordable:
                    return False
                self._change(fresh)
            for mirror in self._mirrors:
                mirror.refresh()
            assert self._residence is not None, "it was settled"
            work = self._residence.run(self._moved, self._start)
        count("launches", self._launches)
        if wait and work is not None:
            work.wait("graph")
        return True

    def _change(self, fresh: Mapping[int, tuple[Bound, ...]]) -> None:
        """Have some groups be others from now on; what is behind what may be another thing then."""
        uses = {number: _uses(bound) for number, bound in fresh.items()}
        alike = all(len(self._bound[number]) == len(bound) for number, bound in fresh.items())
        same = alike and all(self._uses[number] == used for number, used in uses.items())
        stays = all(
            _memory(self._bound[number]) == _memory(bound) for number, bound in fresh.items()
        )
        for number, bound in fresh.items():
            self._bound[number], self._uses[number] = bound, uses[number]
        self._stale.update(fresh)
        if not stays:
            self._settle()
        if not same:
            pattern = pattern_of(self._uses)
            if not alike or pattern != self._pattern:
                self._pattern, self._graph = pattern, None

    def _moved(self, storages: set[Storage]) -> None:
        """Nodes with these have other addresses now."""
        for number, group in enumerate(self._bound):
            if any(span.storage in storages for bound in group for span in bound.spans):
                self._stale.add(number)

    def _nodes(self, number: int) -> list[Node]:
        part = self._binder.part
        return [bound.make([part(span) for span in bound.spans]) for bound in self._bound[number]]

    def _start(self, handle: Any) -> tuple[Any, Any]:
        """See `residence.Start`."""
        if self._stale or self._graph is None:
            self._renew()
        graph = self._graph
        assert graph is not None
        return graph.start(handle), (graph, self._residence)

    def _renew(self) -> None:
        """Bring the graph up to date, by another one where that cannot be."""
        graph, self._graph = self._graph, None
        if graph is not None:
            changed = {
                self._firsts[number] + k: node
                for number in self._stale
                for k, node in enumerate(self._nodes(number))
            }
            if not graph.update(changed):
                graph = None
        if graph is None:
            graph = self._built()
        self._stale.clear()
        self._graph = graph

    def _built(self) -> Graph:
        nodes: list[Node] = []
        behind: list[frozenset[int]] = []
        self._firsts = []
        groups: list[range] = []
        for number, of in enumerate(dependencies_of(self._uses)):
            own = self._nodes(number)
            self._firsts.append(len(nodes))
            groups.append(range(len(nodes), len(nodes) + len(own)))
            nodes += own
            behind += [frozenset(k for each in of for k in groups[each])] * len(own)
        self._launches = sum(isinstance(node, LaunchNode) for node in nodes)
        return self._graphs.build(nodes, behind)


def _memory(bound: Sequence[Bound]) -> list[tuple[Any, ...]]:
    """The bytes of storages that steps use."""
    return [
        (id(span.storage), span.first, span.last, span.used, span.written)
        for each in bound
        for span in each.spans
    ]


def _uses(bound: Sequence[Bound]) -> list[Use]:
    return [use for each in bound for use in each.uses]
