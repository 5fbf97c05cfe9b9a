"""The memo of launches: each thing is done once, however many threads ask for it at the same time.

A `Memo` maps a key to what a function made for it. While one thread makes a value, others that ask
for the same key wait for it. A failure is raised to the thread that met it and is not remembered:
the next one tries again. Of the threads that waited for it one does, and its failure is that of the
others. `counters` says what was really done; `clear_launch_cache` forgets it all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

Value = TypeVar("Value")


@dataclass(slots=True)
class Counters:
    """How often each step of a launch was really done, since the start or the last `reset`."""

    capability_checks: int = 0
    sources: int = 0
    compiles: int = 0
    uploads: int = 0
    downloads: int = 0
    uploaded_bytes: int = 0
    downloaded_bytes: int = 0
    disk_hits: int = 0
    disk_misses: int = 0
    disk_writes: int = 0
    _launches: int = 0  # those that Python counted

    @property
    def launches(self) -> int:
        return self._launches + int(compiled_launches[0])

    def reset(self) -> None:
        for counter in fields(self):
            setattr(self, counter.name, 0)
        compiled_launches[0] = 0


compiled_launches: npt.NDArray[np.int64] = np.zeros(1, np.int64)  # counted by machine code
counters = Counters()
_counting = threading.Lock()


def count(name: str, by: int = 1) -> None:
    """Add to a counter; safe from any thread."""
    name = "_launches" if name == "launches" else name
    with _counting:
        setattr(counters, name, getattr(counters, name) + by)


class _Making:
    """A value that a thread makes and others wait for."""

    __slots__ = ("error", "failures", "lock", "threads")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.threads = 0  # that make it or wait for it
        self.failures = 0
        self.error: Exception | None = None  # the last failure


class Memo(Generic[Value]):
    """Values by key, each made once; no value is None."""

    def __init__(self) -> None:
        self._values: dict[Hashable, Value] = {}
        self._making: dict[Hashable, _Making] = {}
        self._lock = threading.Lock()
        _memos.append(self)

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key, made by `make` if there is none yet."""
        value = self._values.get(key)
        return self._made(key, make) if value is None else value

    def _made(self, key: Hashable, make: Callable[[], Value]) -> Value:
        with self._lock:
            making = self._making.setdefault(key, _Making())
            making.threads += 1
            failures = making.failures
        try:
            with making.lock:
                return self._made_here(key, make, making, failures)
        finally:
            with self._lock:
                making.threads -= 1
                if not making.threads:
                    del self._making[key]

    def _made_here(
        self, key: Hashable, make: Callable[[], Value], making: _Making, failures: int
    ) -> Value:
        """The value, made by this thread, which came after so many failures, if none has it yet."""
        values = self._values  # after `clear`, what was begun before is not kept
        value = values.get(key)
        if value is not None:
            return value
        if making.failures >= failures + 2 and making.error is not None:
            raise making.error  # this thread waited for one that failed, and for the second attempt
        try:
            value = values[key] = make()
        except Exception as error:
            making.failures, making.error = making.failures + 1, error
            raise
        return value

    def __len__(self) -> int:
        return len(self._values)

    def clear(self) -> None:
        """Forget all values."""
        self._values = {}


_memos: list[Memo[Any]] = []
generation = object()  # another one after each `clear_launch_cache`


def clear_launch_cache() -> None:
    """Make every kernel check its capabilities, generate its source and compile again."""
    global generation
    generation = object()
    for memo in _memos:
        memo.clear()
