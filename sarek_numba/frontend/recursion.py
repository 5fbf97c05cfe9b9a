"""Specialisations of device functions, and recursion of bounded depth.

Each level of a recursion is a specialisation of its own, so that no function of a device's program
calls itself: level k calls level k + 1, and the last level has no call. There the flow that would
call once more ends in a failing assertion (`cut`), which the oracle reports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from numba.core import ir

from sarek_numba.errors import UnsupportedConstruct
from sarek_numba.frontend.functions import DEEPEST, DeviceFunction
from sarek_numba.frontend.graph import reachable_blocks
from sarek_numba.frontend.texts import InlineSource
from sarek_numba.frontend.typed import Type, Typed
from sarek_numba.frontend.weak import Refusal

Instantiate = Callable[[DeviceFunction, tuple[Type, ...]], Typed]
Depths = dict[FunctionType, int]


@dataclass(slots=True)
class _Open:
    """A function that is being typed, and the functions around it whose depth decides about it."""

    callee: DeviceFunction
    around: set[FunctionType] = field(default_factory=set)
    is_cut: bool = False


class Specialisations:
    """The device functions of one kernel, each typed once for its argument types and depth."""

    def __init__(self, instantiate: Instantiate) -> None:
        self._instantiate = instantiate
        self._known: dict[Any, list[tuple[Depths, Typed | None]]] = {}
        self._open: list[_Open] = []

    def typed(self, callee: DeviceFunction, args: tuple[Type, ...]) -> Typed | None:
        """The function typed for these arguments; None for a call that would be too deep.

        Refuses recursion without a bound.
        """
        function = callee.function
        for depths, known in self._known.get((callee.key, args), ()):
            if all(self._depth(each) == depth for each, depth in depths.items()):
                for each in depths:
                    self._depend_on(each)
                return self._or_cut(known)
        depth = self._depth(function)
        if depth:
            self._check_bound(function)
            self._depend_on(function)
            if callee.inline_depth is not None and depth > callee.inline_depth:
                return self._or_cut(None)
        return self._or_cut(self._new(callee, args))

    def _new(self, callee: DeviceFunction, args: tuple[Type, ...]) -> Typed | None:
        frame = _Open(callee)
        self._open.append(frame)
        try:
            typed: Typed | None = self._instantiate(callee, args)
        finally:
            self._open.pop()
        assert typed is not None
        typed.inline = callee.inline
        typed.given = callee if isinstance(callee, InlineSource) else None
        if frame.is_cut and not _returns(typed):
            if not frame.around:
                raise Refusal(
                    f"{callee.function.__name__}() calls itself on every path",
                    "return without a call on some path",
                    UnsupportedConstruct,
                )
            typed = None
        depths = {each: self._depth(each) for each in frame.around}
        self._known.setdefault((callee.key, args), []).append((depths, typed))
        return typed

    def _or_cut(self, typed: Typed | None) -> Typed | None:
        if typed is None and self._open:
            self._open[-1].is_cut = True
        return typed

    def _depth(self, function: FunctionType) -> int:
        return sum(frame.callee.function is function for frame in self._open)

    def _depend_on(self, function: FunctionType) -> None:
        """Note in the functions within the outermost call of this one that its depth counts."""
        within = False
        for frame in self._open:
            if within:
                frame.around.add(function)
            within = within or frame.callee.function is function

    def _check_bound(self, function: FunctionType) -> None:
        """Refuse a cycle of calls in which no function has a bound."""
        for frame in reversed(self._open):
            if frame.callee.inline_depth is not None:
                return
            if frame.callee.function is function:
                break
        raise Refusal(
            f"{function.__name__}() calls itself",
            f"write a loop, or bound it with @sarek.function(inline_depth=N), N up to {DEEPEST}",
            UnsupportedConstruct,
        )


def _returns(typed: Typed) -> bool:
    return any(isinstance(b.body[-1], ir.Return) for b in typed.function_ir.blocks.values())


def cut(function_ir: ir.FunctionIR, calls: dict[Any, str]) -> None:
    """End the flow where a call would be too deep, and drop what then is never reached.

    `calls` are the assignments of the calls, with the message of the assertion.
    """
    if not calls:
        return
    blocks = function_ir.blocks
    for block in blocks.values():
        for position, statement in enumerate(block.body):
            if statement in calls:
                failure = ir.StaticRaise(AssertionError, (calls[statement],), statement.loc)
                block.body[position:] = [failure]
                break
    reached = reachable_blocks(blocks)
    for label in [label for label in blocks if label not in reached]:
        del blocks[label]
    for block in blocks.values():
        for statement in block.body:
            value = getattr(statement, "value", None)
            if isinstance(value, ir.Expr) and value.op == "phi":
                pairs = zip(value.incoming_blocks, value.incoming_values, strict=True)
                kept = [pair for pair in pairs if pair[0] in reached and _leads(blocks, pair[0])]
                value.incoming_blocks[:] = [label for label, _ in kept]
                value.incoming_values[:] = [variable for _, variable in kept]


def _leads(blocks: dict[int, ir.Block], label: int) -> bool:
    return not isinstance(blocks[label].body[-1], ir.StaticRaise)
