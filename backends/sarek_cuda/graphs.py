"""CUDA graphs: a node for each launch, copy and fill, with the edges that dependencies ask for.

A replay is one call. Nodes whose parameters are others are told so before; where the driver does
not take that (another kind of node, a kernel of another context), another graph is made.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sarek_cuda.graph_calls import GraphCalls
from sarek_numba.runtime.cudalike.access import Access, check
from sarek_numba.runtime.cudalike.api import ApiError
from sarek_numba.runtime.cudalike.device import BuiltProgram
from sarek_numba.runtime.cudalike.memory import Packed, packed
from sarek_numba.runtime.cudalike.queues import Mark, Stream
from sarek_numba.runtime.nodes import CopyNode, FillNode, LaunchNode, Node

if TYPE_CHECKING:
    from sarek_cuda.runtime import CudaDriver


class CudaGraphs:
    """See `sarek_numba.runtime.nodes.Graphs`."""

    widths: tuple[int, ...] | None = (4, 2, 1)  # CUDA_MEMSET_NODE_PARAMS.elementSize

    def __init__(self, owner: CudaDriver) -> None:
        self._owner = owner

    def build(self, nodes: Sequence[Node], behind: Sequence[frozenset[int]]) -> CudaGraph:
        """See `sarek_numba.runtime.nodes.Graphs`."""
        return CudaGraph(self._owner, nodes, behind)


class CudaGraph:
    """See `sarek_numba.runtime.nodes.Graph`."""

    def __init__(
        self, owner: CudaDriver, nodes: Sequence[Node], behind: Sequence[frozenset[int]]
    ) -> None:
        """Raises BackendError."""
        self._owner = owner
        self._access = owner.access
        self._calls = calls = owner.cuda.graph_calls()
        self._told: list[tuple[Any, ...]] = []  # of each node, its kind first
        self._nodes: list[Any] = []
        self._kept = list(nodes)
        self._programs = _programs(nodes)  # a replay that was begun may still run an earlier one
        with check("recording a graph", self._access):
            graph = calls.create()
            made: list[Any] = [graph, None]  # what is instantiated comes behind
            weakref.finalize(self, _destroy, self._access, calls, made)
            for node, others in zip(nodes, behind, strict=True):
                self._add(graph, node, [self._nodes[k] for k in sorted(others)])
            made[1] = self._ready = calls.instantiate(graph)
        self._launch, self._launched = calls.launch, owner.streams.launched

    def _add(self, graph: Any, node: Node, behind: Sequence[Any]) -> None:
        calls, context = self._calls, self._access.context
        words, given = self._words(node)
        params = self._params(words, given)
        match node:
            case LaunchNode():
                made = calls.add_launch(graph, behind, params)
            case CopyNode():
                made = calls.add_copy(graph, behind, params, context)
            case FillNode():
                made = calls.add_fill(graph, behind, params, context)
        self._nodes.append(made)
        self._told.append(words)

    def _words(self, node: Node) -> tuple[tuple[Any, ...], Packed | None]:
        """All that the driver is told of a node: equal if there is nothing new to tell.

        And the arguments of a launch as the driver reads them.
        """
        match node:
            case LaunchNode(program, grid, block, shared_bytes, arguments):
                assert isinstance(program, BuiltProgram), "the driver's own"
                program.check(block)
                size = program.region_bytes + shared_bytes
                program.function.allow_shared(size)
                given = packed(arguments)
                raw, words = program.function.raw, given.words.tobytes()
                return (LaunchNode, raw, grid, block, size, words), given
            case CopyNode(destination, source, size):
                return (CopyNode, destination.address, source.address, size), None
            case FillNode(destination, word, count):
                value = int.from_bytes(word, "little")
                return (FillNode, destination.address, value, len(word), count), None

    def _params(self, words: tuple[Any, ...], given: Packed | None) -> Any:
        """Parameters as the driver has them."""
        kind, *rest = words
        if given is not None:
            raw, grid, block, size, _ = rest
            return self._calls.launch_of(raw, grid, block, size, given.address)
        return (self._calls.copy_of if kind is CopyNode else self._calls.fill_of)(*rest)

    def update(self, changed: Mapping[int, Node]) -> bool:
        """See `sarek_numba.runtime.nodes.Graph`: launches that were begun keep what they had."""
        sticky = self._access.api.framework.sticky
        self._programs |= _programs(changed.values())
        with check("changing a graph", self._access):
            for k, node in changed.items():
                words, given = self._words(node)
                if words == self._told[k]:
                    continue
                if words[0] is not self._told[k][0]:
                    return False
                try:
                    self._set(k, words, given)
                except ApiError as error:
                    if error.code in sticky:
                        raise
                    return False  # as a graph that is made anew need not fail
                self._told[k], self._kept[k] = words, node
        return True

    def _set(self, k: int, words: tuple[Any, ...], given: Packed | None) -> None:
        calls = self._calls
        change = {
            LaunchNode: calls.set_launch,
            CopyNode: calls.set_copy,
            FillNode: calls.set_fill,
        }[words[0]]
        params = self._params(words, given)
        change(self._ready, self._nodes[k], params, self._access.context)

    def start(self, handle: Stream) -> Mark:
        """See `sarek_numba.runtime.nodes.Graph`."""
        with check("a launch of a graph", self._access):
            result = self._launch(self._ready, handle.raw)
            if result[0]:
                self._owner.cuda.check(result)
            return self._launched(handle)


def _destroy(access: Access, calls: GraphCalls, made: Sequence[Any]) -> None:
    """Finalizers raise nothing; a device that is lost has nothing left."""
    if access.is_lost:
        return
    with suppress(ApiError):
        pushed = access.enter()
        try:
            calls.destroy(made[0], made[1])
        finally:
            if pushed:
                access.leave()


def _programs(nodes: Iterable[Node]) -> set[Any]:
    return {node.program for node in nodes if isinstance(node, LaunchNode)}
