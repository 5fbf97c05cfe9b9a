"""The memo of launches: each thing is done once, however many threads ask for it at the same time.

A `Memo` maps a key to what a function made for it. While one thread makes a value, others that ask
for the same key wait for it. A failure is raised to the thread that met it and is not remembered:
the next one tries again. Of the threads that waited for it one does, and its failure is that of the
others. `counters` says what was really done; `clear_launch_cache` forgets it all.

What is made for a kernel hangs on its `Identity`. That lives while a kernel of such content does,
and the newest outlive theirs, so that a cell of a notebook that is run again compiles nothing. A
process that makes kernels without end keeps no more than that.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

Value = TypeVar("Value")
MOST_KEPT = 256  # identities that nobody has any more, and values of a memo without identities


@dataclass(slots=True)
class Counters:
    """How often each step of a launch was really done, since the start or the last `reset`."""

    capability_checks: int = 0
    sources: int = 0
    compiles: int = 0
    coarsened: int = 0  # of these, kernels whose threads do the work of several
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


class Identity:
    """A kernel's content and name. `made` is what memos have for it, by memo and key."""

    __slots__ = ("__weakref__", "content", "made", "name")

    def __init__(self, content: str, name: str) -> None:
        self.content = content
        self.name = name
        self.made: dict[Hashable, Any] = {}


_identities: WeakValueDictionary[tuple[str, str], Identity] = WeakValueDictionary()
_newest: OrderedDict[Identity, None] = OrderedDict()  # the newest last
_identifying = threading.Lock()


def identity_of(content: str, name: str) -> Identity:
    """The one identity of kernels of this content and name; it is the newest now."""
    with _identifying:
        identity = _identities.get((content, name))
        if identity is None:
            identity = _identities[content, name] = Identity(content, name)
        _newest[identity] = None
        _newest.move_to_end(identity)
        dropped = _newest.popitem(last=False) if len(_newest) > MOST_KEPT else None
    del dropped  # without the lock: programs may go with it
    return identity


class Memo(Generic[Value]):
    """Values by key, each made once; no value is None.

    Those of an identity live as long as it does. Of those without one `MOST_KEPT` are kept; the
    oldest goes first.
    """

    def __init__(self) -> None:
        self._values: dict[Hashable, Value] = {}
        self._making: dict[Hashable, _Making] = {}
        self._lock = threading.Lock()
        _memos.append(self)

    def get(
        self, key: Hashable, make: Callable[[], Value], identity: Identity | None = None
    ) -> Value:
        """The value of a key, made by `make` if there is none yet."""
        value = self._values.get(key) if identity is None else identity.made.get((self, key))
        return self._made(key, make, identity) if value is None else value

    def _made(self, key: Hashable, make: Callable[[], Value], identity: Identity | None) -> Value:
        whole = (identity, key)
        with self._lock:
            making = self._making.setdefault(whole, _Making())
            making.threads += 1
            failures = making.failures
        try:
            with making.lock:
                if identity is None:
                    return self._made_in(self._values, key, make, making, failures)
                return self._made_in(identity.made, (self, key), make, making, failures)
        finally:
            with self._lock:
                making.threads -= 1
                if not making.threads:
                    del self._making[whole]

    def _made_in(
        self,
        values: dict[Hashable, Value],
        key: Hashable,
        make: Callable[[], Value],
        making: _Making,
        failures: int,
    ) -> Value:
        """The value, made by this thread, which came after so many failures, if none has it yet.

        `values` are those of now: after a `clear`, what was begun before is not kept.
        """
        value = values.get(key)
        if value is not None:
            return value
        if making.failures >= failures + 2 and making.error is not None:
            raise making.error  # this thread waited for one that failed, and for the second attempt
        try:
            value = make()
        except Exception as error:
            making.failures, making.error = making.failures + 1, error
            raise
        values[key] = value
        if values is self._values:
            self._drop_oldest()
        return value

    def _drop_oldest(self) -> None:
        with self._lock:
            while len(self._values) > MOST_KEPT:
                del self._values[next(iter(self._values))]

    def __len__(self) -> int:
        """How many values there are without an identity."""
        return len(self._values)

    def clear(self) -> None:
        """Forget all values but those of identities."""
        self._values = {}


_memos: list[Memo[Any]] = []
generation = object()  # another one after each `clear_launch_cache`


def clear_launch_cache() -> None:
    """Make every kernel check its capabilities, generate its source and compile again."""
    global generation
    generation = object()
    for memo in _memos:
        memo.clear()
    with _identifying:
        identities = list(_identities.values())
        _newest.clear()
    for identity in identities:
        identity.made = {}
