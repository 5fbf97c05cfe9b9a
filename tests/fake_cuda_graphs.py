"""Graphs of the CUDA driver for tests: `FakeGraphs` has the calls of `sarek_cuda.graph_calls`.

Nodes are done in an order in which none comes before those that it is behind, and else as late as
can be: a dependency that is missing is found out. `log` has what was called, with nodes by their
numbers in the graph.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sarek_cuda.driver import CudaError


@dataclass(eq=False)
class Parameters:
    """Of a node: the kind, what may not change, and what to do."""

    kind: str
    do: Callable[[], object]
    told: tuple[Any, ...] = ()


@dataclass(eq=False)
class FakeNode:
    """A node, by its number in the graph."""

    graph: FakeGraph
    number: int
    behind: tuple[int, ...]
    params: Parameters


@dataclass(eq=False)
class FakeGraph:
    """Nodes; what was instantiated of it has copies of their parameters."""

    nodes: list[FakeNode] = field(default_factory=list)
    alive: bool = True


@dataclass(eq=False)
class FakeReady:
    """What is launched."""

    graph: FakeGraph
    params: list[Parameters]
    alive: bool = True


class FakeGraphs:
    """The calls. `api` is the fake driver, which counts them too."""

    def __init__(self, api: Any) -> None:
        self._api = api
        self.log: list[tuple[Any, ...]] = []
        self.alive = 0  # graphs, and what was instantiated

    # --- parameters ---

    def launch_of(
        self, function: Any, grid: Any, block: Any, size: int, addresses: int
    ) -> Parameters:
        assert function.is_loaded
        assert size <= function.shared
        do = self._api.launch_of(function, (*grid, *block), addresses)
        return Parameters("launch", do, (function.name, grid, block, size))

    def copy_of(self, to: int, of: int, size: int) -> Parameters:
        assert abs(to - of) >= size, "the driver copies nothing over itself"
        self._api.memory_around(to)
        self._api.memory_around(of + size - 1)
        return Parameters("copy", lambda: ctypes.memmove(to, of, size), (to, of, size))

    def fill_of(self, to: int, value: int, width: int, count: int) -> Parameters:
        assert width in (1, 2, 4)
        assert to % width == 0
        self._api.memory_around(to + width * count - 1)
        word = value.to_bytes(width, "little")
        return Parameters("fill", lambda: ctypes.memmove(to, word * count, width * count))

    # --- graphs ---

    def create(self) -> FakeGraph:
        self._call("create")
        self.alive += 1
        return FakeGraph()

    def _add(self, kind: str, graph: FakeGraph, behind: Sequence[FakeNode], params: Any) -> Any:
        assert graph.alive
        assert params.kind == kind
        assert all(other.graph is graph for other in behind)
        numbers = tuple(other.number for other in behind)
        node = FakeNode(graph, len(graph.nodes), numbers, params)
        graph.nodes.append(node)
        self._call("add", kind, node.number, numbers)
        return node

    def add_launch(self, graph: FakeGraph, behind: Any, params: Any) -> FakeNode:
        return self._add("launch", graph, behind, params)

    def add_copy(self, graph: FakeGraph, behind: Any, params: Any, context: int) -> FakeNode:
        assert context
        return self._add("copy", graph, behind, params)

    def add_fill(self, graph: FakeGraph, behind: Any, params: Any, context: int) -> FakeNode:
        assert context
        return self._add("fill", graph, behind, params)

    def instantiate(self, graph: FakeGraph) -> FakeReady:
        self._call("instantiate")
        self.alive += 1
        return FakeReady(graph, [node.params for node in graph.nodes])

    def _set(self, kind: str, ready: FakeReady, node: FakeNode, params: Parameters) -> None:
        assert ready.alive
        assert ready.graph is node.graph
        assert params.kind == kind == node.params.kind
        self._call("set", kind, node.number)
        ready.params = [*ready.params]  # launches that were begun keep what they had
        ready.params[node.number] = params

    def set_launch(self, ready: FakeReady, node: Any, params: Any, context: int) -> None:
        self._set("launch", ready, node, params)

    def set_copy(self, ready: FakeReady, node: Any, params: Any, context: int) -> None:
        self._set("copy", ready, node, params)

    def set_fill(self, ready: FakeReady, node: Any, params: Any, context: int) -> None:
        self._set("fill", ready, node, params)

    @property
    def launch(self) -> Any:
        return self._launch

    def _launch(self, ready: FakeReady, stream: Any) -> tuple[int]:
        assert ready.alive
        try:
            self._call("launch")
        except CudaError as error:  # this call gives its status
            self._api._last = error
            return (error.code,)
        params = ready.params
        behind = [node.behind for node in ready.graph.nodes]

        def run() -> None:
            left = set(range(len(params)))
            while left:
                number = max(k for k in left if left.isdisjoint(behind[k]))
                params[number].do()
                left.discard(number)

        self._api._add(stream, run)
        return (0,)

    def destroy(self, graph: FakeGraph, ready: FakeReady | None) -> None:
        self._call("destroy")
        graph.alive = False
        self.alive -= 1
        if ready is not None:
            ready.alive = False
            self.alive -= 1

    def _call(self, *what: Any) -> None:
        self.log.append(what)
        self._api._call(f"graph {what[0]}")
