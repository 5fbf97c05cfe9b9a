"""What programs of `tests.fuzz.captures` and `tests.fuzz.schedules` are made of.

Threads of a launch do not race: what a launch writes it reads at the thread's own element alone, or
shares no bytes with what it reads. Numbers stay whole and small enough for float32: sums and
products wrap in 2**20.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import sarek_numba as sarek

MOST = 96  # elements
BLOCK = 16
_GRID = MOST // BLOCK
Number = Any  # an int or a float, or what `capture` has for a variable


@sarek.kernel
def add(out: Any, x: Any, n: Any, a: Any) -> None:
    """out = a x + out, at the same place."""
    i = sarek.global_idx.x
    if i < n and i < len(out) and i < len(x):
        out[i] = (int(a) * int(x[i]) + int(out[i])) % 1021


@sarek.kernel
def turn(out: Any, x: Any, n: Any, a: Any) -> None:
    """Elements of x, turned round by n."""
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = (int(x[(i + n) % len(x)]) + int(a)) % 1021


@sarek.kernel
def mix(out: Any, x: Any, y: Any, n: Any) -> None:
    """The elements of x behind those of y, backwards."""
    i = sarek.global_idx.x
    if i < len(out):
        j = len(out) - 1 - i
        out[i] = int(y[j % len(y)]) if i < n else int(x[j % len(x)])


@sarek.kernel
def swap(x: Any, y: Any, n: Any) -> None:
    """Two outputs."""
    i = sarek.global_idx.x
    if i < n and i < len(x) and i < len(y):
        kept = x[i]
        x[i] = y[i]
        y[i] = kept


@sarek.kernel
def total(out: Any, x: Any) -> None:
    """A block adds up what it shares; its first thread writes everywhere."""
    parts = sarek.shared.array(16, sarek.int32)
    t = sarek.thread_idx.x
    own = 0
    for i in range(t, len(x), 16):
        own += int(x[i])
    parts[t] = own
    sarek.barrier()
    if t == 0:
        found = 0
        for k in range(16):
            found += parts[k]
        for i in range(len(out)):
            out[i] = (found + i) % 1021


KERNELS = {"add": add, "turn": turn, "mix": mix, "swap": swap, "total": total}


@dataclass(frozen=True, slots=True)
class Part:
    """Elements of a memory."""

    name: str
    first: int
    last: int
    is_writable: bool = True

    @property
    def size(self) -> int:
        return self.last - self.first

    def overlaps(self, other: Part) -> bool:
        """Whether they share an element."""
        return self.name == other.name and max(self.first, other.first) < min(self.last, other.last)

    def is_same(self, other: Part) -> bool:
        """Whether they begin at one element."""
        return self.name == other.name and self.first == other.first


@dataclass(frozen=True, slots=True)
class Operation:
    """What a program does: a kernel's name, "copy", "strided", "fill" or "constant"."""

    what: str
    parts: tuple[Part, ...]
    size: str  # how n enters: "n", "half", "more" or a number
    number: int  # what is written by fills; how long copies are

    def __str__(self) -> str:
        shown = ", ".join(f"{p.name}[{p.first}:{p.last}]" for p in self.parts)
        return f"{self.what}({shown}; {self.size}, {self.number})"


def operation(rng: random.Random, parts: Sequence[Part], dtype: Any) -> Operation | None:
    """One on some of the parts; None if these allow none of the kind that was thrown."""
    what = rng.choice([*KERNELS, *KERNELS, "copy", "copy", "strided", "fill", "fill", "constant"])
    out, x, y = parts[:3]
    size = rng.choice(["n", "n", "half", "more", str(rng.randint(0, MOST))])
    used: tuple[Part, ...]
    match what:
        case "add":
            used = out, x
            allowed = not out.overlaps(x) or out.is_same(x)
        case "turn" | "total":
            used = out, x
            allowed = not out.overlaps(x)
        case "mix":
            used = out, x, y
            allowed = not out.overlaps(x) and not out.overlaps(y)
        case "swap":
            used = out, x
            allowed = x.is_writable and not out.overlaps(x)
        case "copy":
            used, allowed = (out, x), True  # as if all was read before it is written
        case "strided":
            used, allowed = (out, x), not out.overlaps(x)
        case _:
            used, allowed = (out,), True
    if not out.is_writable or not allowed:
        return None
    return Operation(what, used, size, rng.randint(0, 40))


def as_captured(name: str) -> str:
    """The name of an array as it was in the block: copies from arrays have these elements."""
    return f"{name} as captured"


def do(each: Operation, known: Mapping[str, Any], n: Number, a: Number) -> None:
    """Do an operation on vectors and arrays by their names."""
    names = [part.name for part in each.parts]
    if each.what in ("copy", "strided") and as_captured(names[1]) in known:
        names[1] = as_captured(names[1])
    found = [known[n][part.first : part.last] for n, part in zip(names, each.parts, strict=True)]
    sizes = {"n": n, "half": n // 2, "more": n + 3}
    size = sizes.get(each.size)
    size = int(each.size) if size is None else size
    least = min(part.size for part in each.parts)
    match each.what:
        case "add":
            add.forall(size)(*found, size, a)
        case "turn":
            turn[_GRID, BLOCK](*found, size, a)
        case "mix":
            mix[_GRID, BLOCK](*found, size)
        case "swap":
            swap[_GRID, BLOCK](*found, size)
        case "total":
            total[1, 16](*found)
        case "copy":
            found[0][:least] = found[1][:least]
        case "strided":
            found[0][:least:2] = found[1][:least:2]
        case "fill":
            found[0].fill(each.number)
        case _:
            count = found[0].shape[0]
            found[0][:] = np.arange(each.number, each.number + count).astype(found[0].dtype)
