"""Breadth-first search, level by level.

One launch a level: every vertex of the level claims those of its neighbours that no level has yet,
by compare-and-swap. Graphs are adjacency lists in compressed sparse rows: the neighbours of vertex
v are targets[offsets[v] : offsets[v + 1]].
"""

from __future__ import annotations

from typing import Any

import numpy as np

import sarek_numba as sarek
from sarek_numba.errors import InvalidArgument
from sarek_numba.stdlib.arguments import (
    INTEGERS,
    Array,
    Where,
    check_array,
    check_integer,
    refuse_in_graphs,
)

THREADS = 128
_MOST = 2**31 - 1  # levels are int32


@sarek.kernel
def visit_level(levels: Any, found: Any, offsets: Any, targets: Any, level: Any) -> None:
    v = sarek.global_idx.x
    if v < len(levels) and sarek.atomic.load(levels, v) == level:
        claimed = 0
        for edge in range(offsets[v], offsets[v + 1]):
            if sarek.atomic.cas(levels, targets[edge], -1, level + 1) == -1:
                claimed += 1
        if claimed > 0:
            sarek.atomic.add(found, 0, claimed)


def bfs(offsets: Array, targets: Array, source: int, *, device: Where = None) -> Array:
    """The number of edges from `source` to each vertex, int32 of shape (n,); -1 without a path.

    `offsets`, of shape (n + 1,), and `targets`, of shape (m,), are integers: the compressed sparse
    rows of the graph.
    """
    refuse_in_graphs("bfs", "call it between graphs")
    starts, ends = _checked(offsets, targets)
    count = len(starts) - 1
    root = check_integer("bfs", "source", source, 0, count - 1)
    levels = np.full(count, -1, np.int32)
    levels[root] = 0
    found = np.zeros(1, np.int32)
    level = 0
    while True:
        found[0] = 0
        visit_level.launch(
            levels, found, starts, ends, level,
            grid=-(-count // THREADS), block=THREADS, device=device,
        )  # fmt: skip
        if found[0] == 0:
            return levels
        level += 1


def _checked(offsets: Any, targets: Any) -> tuple[Array, Array]:
    starts = check_array("bfs", "offsets", offsets, INTEGERS)
    ends = check_array("bfs", "targets", targets, INTEGERS)
    if not 2 <= len(starts) <= _MOST:
        raise InvalidArgument(
            f"bfs(): 'offsets' has {len(starts)} elements, and a graph of n vertices n + 1\n"
            "  hint: it has at least one vertex"
        )
    if starts[0] != 0 or starts[-1] != len(ends) or np.any(starts[1:] < starts[:-1]):
        raise InvalidArgument(
            f"bfs(): 'offsets' does not rise from 0 to the {len(ends)} elements of 'targets'\n"
            "  hint: offsets[v + 1] - offsets[v] is the number of neighbours of v"
        )
    if len(ends) and (int(ends.min()) < 0 or int(ends.max()) >= len(starts) - 1):
        raise InvalidArgument(
            f"bfs(): 'targets' holds {ends.min()} to {ends.max()}, and the vertices are 0 to "
            f"{len(starts) - 2}\n"
            "  hint: number the vertices from 0"
        )
    return starts.astype(np.int64, copy=False), ends.astype(np.int64, copy=False)
