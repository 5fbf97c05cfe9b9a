"""Graphs on the native device: one compiled loop over a table of launches (`list_ir`).

Launches run one after the other, each on as many threads as it is worth; a list of small ones is
one call, which holds no GIL. Dependencies are kept by the order.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_native.runtime import WORTH_WAKING, NativeProgram, Shaped, scratch
from sarek_numba.runtime.nodes import CopyNode, FillNode, LaunchNode, Node

if TYPE_CHECKING:
    from sarek_native.driver import NativeDriver, Routines

_RECORD = 8  # words


class NativeGraphs:
    """See `sarek_numba.runtime.nodes.Graphs`. The loop is compiled for the first graph."""

    widths: tuple[int, ...] | None = None

    def __init__(self, owner: NativeDriver) -> None:
        self._owner = owner
        self._lock = threading.Lock()

    @cached_property
    def _routines(self) -> Routines:
        return self._owner.compiler.routines()

    def build(self, nodes: Sequence[Node], behind: Sequence[frozenset[int]]) -> NativeList:
        """See `sarek_numba.runtime.nodes.Graphs`."""
        with self._lock:
            routines = self._routines
        return NativeList(routines, nodes)


class NativeList:
    """See `sarek_numba.runtime.nodes.Graph`."""

    def __init__(self, routines: Routines, nodes: Sequence[Node]) -> None:
        self._routines = routines
        self._table = np.zeros((len(nodes), _RECORD), np.int64)
        self._address = int(self._table.ctypes.data)
        self._kept: list[Any] = [None] * len(nodes)
        self._shaped: list[tuple[Shaped, bytes] | None] = [None] * len(nodes)
        self.update(dict(enumerate(nodes)))

    def update(self, changed: Mapping[int, Node]) -> bool:
        """See `sarek_numba.runtime.nodes.Graph`; nothing is under way."""
        for k, node in changed.items():
            match node:
                case LaunchNode():
                    self._put_launch(k, node)
                case CopyNode(destination, source, size):
                    moved = (destination.address, source.address, size)
                    self._put(k, self._routines.copy, moved, (node,))
                case FillNode(destination, word, count):
                    room = np.frombuffer(word, np.uint8)
                    size = len(word) * count
                    words = (destination.address, int(room.ctypes.data), size, len(word))
                    self._put(k, self._routines.fill, words, (node, room))
        self._size = max((s[0].size for s in self._shaped if s is not None), default=0)
        return True

    def _put(self, k: int, function: int, words: Sequence[int], kept: Any) -> None:
        arguments = np.array(words, np.int64)
        self._table[k] = (function, int(arguments.ctypes.data), 0, 1, 1, 0, 0, 0)
        self._kept[k] = arguments, kept

    def _put_launch(self, k: int, node: LaunchNode) -> None:
        program = node.program
        assert isinstance(program, NativeProgram), "the driver's own"
        shaped = program.ready_for(node.grid, node.block, node.shared_bytes)
        packed = program.packed(node.arguments)
        arguments = np.frombuffer(packed or bytes(8), np.uint8)
        launch = np.array(shaped.launch, np.int64)
        places = (int(each.ctypes.data) for each in (arguments, launch))
        self._table[k] = (shaped.address, *places, shaped.blocks, shaped.first, 0, 0, 0)
        self._kept[k] = arguments, launch, node
        self._shaped[k] = shaped, packed

    def start(self, handle: Any) -> None:
        """See `sarek_numba.runtime.nodes.Graph`: it is done when this returns."""
        room, count, at = scratch(self._size), len(self._kept), 0
        while True:
            at = self._routines.list(self._address, at, count, room, WORTH_WAKING)
            if at == count:
                return
            found = self._shaped[at]
            assert found is not None, "a copy is one block"
            shaped, packed = found
            shaped.share(packed)
            at += 1
