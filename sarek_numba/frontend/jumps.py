"""Turn jumps to labels into falling through, `break`, `continue` and, failing these, flags.

In: a tree with labelled blocks and loops. A jump to a block's label goes behind the block, one to a
loop's label starts the next pass. Out: regions without labels. A jump is dropped where control gets
there by itself, is a `Leave` or an `Again` where the innermost loop decides, and otherwise sets
a flag and leaves what it is in; behind that, what the jump passes over runs only while the flag
is off.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sarek_numba.errors import UnsupportedConstruct
from sarek_numba.frontend.regions import (
    Again,
    Copies,
    Decide,
    Fail,
    Finish,
    Leave,
    Loop,
    Region,
    Regions,
    SetFlag,
    Straight,
    TestFlag,
)

# Where a kernel ends: the label that every `return` without a value goes to.
EXIT = -1


@dataclass(slots=True)
class Block:
    """A body whose jumps to `label` go to what follows the block."""

    label: int
    body: list[Labelled]


@dataclass(slots=True)
class LabelledLoop:
    """An endless loop whose jumps to `label` start the next pass."""

    label: int
    body: list[Labelled]


@dataclass(slots=True)
class Goto:
    """Go to a label of an enclosing block or loop, or to the end."""

    label: int


Labelled = Block | LabelledLoop | Goto | Straight | Copies | Decide | Finish | Fail


def resolve_jumps(tree: list[Labelled]) -> tuple[Regions, dict[int, str]]:
    """The tree without labels, and a word for each flag that it uses."""
    resolver = _Resolver()
    regions = resolver.sequence(tree, frozenset((EXIT,)), ())
    return regions, resolver.flags


@dataclass(slots=True)
class _Frame:
    """An enclosing block or loop: where its end leads, and the flags that jumps out of it set."""

    label: int
    is_loop: bool
    leads_to: frozenset[int]
    flags: list[int] = field(default_factory=list)
    targeted: bool = False


_Frames = tuple[_Frame, ...]


class _Resolver:
    def __init__(self) -> None:
        self.flags: dict[int, str] = {}

    def sequence(self, items: list[Any], falls: frozenset[int], frames: _Frames) -> Regions:
        """Resolve a sequence whose end leads to the labels `falls`.

        Recurses over nesting. Blocks that stand behind each other are walked from the first.
        """
        result: Regions = []
        target = result
        for k, item in enumerate(items):
            last = k == len(items) - 1
            if isinstance(item, Goto):
                target += self.goto(item.label, falls, frames)
            elif isinstance(item, Decide):
                then = self.sequence(item.then, falls, frames)
                orelse = self.sequence(item.orelse, falls, frames)
                target.append(Decide(item.label, then, orelse))
            elif isinstance(item, (Block, LabelledLoop)):
                target = self.enclosed(item, falls if last else None, frames, target)
            else:
                target.append(item)
        return result

    def enclosed(
        self,
        item: Block | LabelledLoop,
        falls: frozenset[int] | None,
        frames: _Frames,
        target: Regions,
    ) -> Regions:
        """Resolve a block or loop into `target`; the list that takes what follows it."""
        if isinstance(item, Block):
            leads_to = frozenset((item.label,)) | (falls or frozenset())
            frame = _Frame(item.label, False, leads_to)
            # a block that holds but a loop, or another block, adds nothing but a place to go to
            body = self.sequence(item.body, leads_to, (*frames, frame))
        else:
            leads_to = falls or frozenset()
            frame = _Frame(item.label, True, leads_to)
            inner = self.sequence(item.body, frozenset((item.label,)), (*frames, frame))
            if frame.targeted:
                inner.insert(0, SetFlag(item.label, False))
            body = [Loop(item.label, inner)]
        if frame.targeted and isinstance(item, Block):
            target.append(SetFlag(item.label, False))
        target += body
        for flag in frame.flags:
            target = self.behind(flag, falls, frames, target)
        return target

    def goto(self, label: int, falls: frozenset[int], frames: _Frames) -> Regions:
        if label in falls:
            return []
        if label == EXIT:
            return [Finish(EXIT)]
        direct = _direct(label, frames)
        if direct is not None:
            return [direct]
        if all(frame.label != label for frame in frames):
            raise UnsupportedConstruct("control flow that structuring cannot place")
        for frame in reversed(frames):
            if frame.label == label:
                frame.targeted = True
                break
            if label not in frame.flags:
                frame.flags.append(label)
        crosses_loop = any(f.is_loop for f in frames[_index(label, frames) :])
        self.flags[label] = "left" if crosses_loop else "skip"
        set_flag: Regions = [SetFlag(label, True)]
        return [*set_flag, Leave()] if frames[-1].is_loop else set_flag

    def behind(
        self, flag: int, falls: frozenset[int] | None, frames: _Frames, target: Regions
    ) -> Regions:
        """What follows a frame that a jump to `flag` has left: the list that takes the rest."""
        if falls is not None and flag in falls:
            return target
        direct = _direct(flag, frames)
        if direct is None and frames and frames[-1].is_loop:
            direct = Leave()
        if direct is not None:
            target.append(TestFlag(flag, True, [direct]))
            return target
        rest: Regions = []
        target.append(TestFlag(flag, False, rest))
        return rest


def _direct(label: int, frames: _Frames) -> Region | None:
    """The `break` or `continue` that gets to a label, if one does."""
    for frame in reversed(frames):
        if frame.is_loop:
            if frame.label == label:
                return Again()
            return Leave() if label in frame.leads_to else None
    return None


def _index(label: int, frames: _Frames) -> int:
    return next(k for k, frame in enumerate(frames) if frame.label == label)
