"""Warps of an emulated block: what threads ask of their warp, and the answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sarek_numba.errors import WarpDivergence
from sarek_numba.ir.nodes import WarpOp


@dataclass(frozen=True, slots=True)
class Request:
    """A thread waits for its warp: `op` is None at a warp barrier.

    At an operation of cooperative matrices it is the operation's name, and `value` what all threads
    must give alike.
    """

    op: WarpOp | str | None
    value: Any = None
    lane: Any = None
    width: int = 32


def answers(requests: list[Request], size: int) -> list[Any]:
    """What each thread of a warp gets. Raises WarpDivergence if they ask for different things."""
    op = requests[0].op
    if any(request.op != op for request in requests):
        raise WarpDivergence("the threads of a warp stand at different warp operations")
    values = [request.value for request in requests]
    if isinstance(op, str):
        if any(value != values[0] for value in values):
            raise WarpDivergence(f"the threads of a warp give sarek.{op}() different operands")
        return [None] * len(requests)
    match op:
        case None:
            return [None] * len(requests)
        case WarpOp.ALL:
            return [all(bool(value) for value in values)] * len(requests)
        case WarpOp.ANY:
            return [any(bool(value) for value in values)] * len(requests)
        case WarpOp.BALLOT | WarpOp.ACTIVE_MASK:
            votes = [True] * len(values) if op is WarpOp.ACTIVE_MASK else map(bool, values)
            mask = sum(1 << lane for lane, vote in enumerate(votes) if vote)
            return [(np.uint32 if size <= 32 else np.uint64)(mask)] * len(requests)
        case WarpOp.SUM:
            return [_tree(values, lambda left, right: left + right)] * len(requests)
        case WarpOp.MIN:
            return [_tree(values, least)] * len(requests)
        case WarpOp.MAX:
            return [_tree(values, greatest)] * len(requests)
        case _:
            return [values[_source(request, own)] for own, request in enumerate(requests)]


def _source(request: Request, own: int) -> int:
    place, lane = own % request.width, int(request.lane)
    match request.op:
        case WarpOp.SHUFFLE:
            source = lane
        case WarpOp.SHUFFLE_UP:
            source = place - lane
        case WarpOp.SHUFFLE_DOWN:
            source = place + lane
        case _:
            source = place ^ lane
    return own - place + source if 0 <= source < request.width else own


def least(left: Any, right: Any) -> Any:
    """`np.fmin` with the left one of equal zeros, which NumPy's own leaves open."""
    return left if left <= right or right != right else right


def greatest(left: Any, right: Any) -> Any:
    """`np.fmax` with the left one of equal zeros."""
    return left if left >= right or right != right else right


def _tree(values: list[Any], combine: Callable[[Any, Any], Any]) -> Any:
    while len(values) > 1:
        half = len(values) // 2
        values = [combine(*pair) for pair in zip(values[:half], values[half:], strict=True)]
    return values[0]
