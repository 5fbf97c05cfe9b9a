"""The calls of a driver, found once in a process, and those that tests put in their place."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Calls = TypeVar("Calls")


class Found(Generic[Calls]):
    """What `load` gives, which raises BackendUnavailable with what helps; asked again after that.

    Any number of threads may ask; `load` runs in one of them.
    """

    def __init__(self, load: Callable[[], Calls]) -> None:
        self._load = load
        self._calls: Calls | None = None
        self._lock = threading.RLock()

    def api(self) -> Calls:
        """The calls, with the driver loaded. Raises BackendUnavailable."""
        with self._lock:
            if self._calls is None:
                self._calls = self._load()
            return self._calls

    def use(self, replacement: Calls | None) -> None:
        """Have other calls, as tests do; None is what the machine has."""
        with self._lock:
            self._calls = replacement

    def is_loaded(self) -> bool:
        """Without a wait: a process may be forked while another thread loads."""
        return self._calls is not None
