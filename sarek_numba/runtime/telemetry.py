"""What launches tell of themselves: to whoever listens, and to standard error under `SAREK_DEBUG`.

Without a listener a launch tells nothing and measures nothing. While there is one, launches wait
until they are done, each is measured, and none takes the short way of `runtime.plans`.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

from sarek_numba import settings

COMPONENTS = ("transfer", "kernel", "memory", "execute")
ONCE, TIMES, OPTIONS, SOURCE = 1, 2, 3, 4  # levels of SAREK_DEBUG: each tells more


@dataclass(frozen=True, slots=True)
class Launched:
    """One launch. Times are in seconds, `began` by `time.perf_counter`.

    `host_s` is all of the launch, `device_s` the kernel's own time by the device's clock where it
    has one. Bytes are those of the arrays that the kernel reads and writes, wholly or in part.
    """

    kernel: str
    device: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    began: float
    host_s: float
    device_s: float
    read_bytes: int
    written_bytes: int
    values: tuple[Any, ...]
    thread: int


class Listener(Protocol):
    """Is told of every launch of the process."""

    def launched(self, launch: Launched) -> None:
        """A launch is done."""
        ...


listeners: tuple[Listener, ...] = ()  # launches are guarded by it: see `runtime.guards`
_lock = threading.Lock()
_began = threading.local()


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell a listener of the launches within, whatever thread makes them."""
    global listeners
    with _lock:
        listeners = (*listeners, listener)
    try:
        yield
    finally:
        with _lock:
            listeners = tuple(one for one in listeners if one is not listener)


def is_measuring() -> bool:
    """Whether launches are measured: somebody listens, or debugging wants times."""
    return bool(listeners) or level("execute") >= TIMES


def begin() -> None:
    """A launch begins in this thread; nothing is checked yet."""
    _began.at = perf_counter()


def began() -> float:
    """When the launch of this thread began."""
    return getattr(_began, "at", None) or perf_counter()


def tell(launch: Launched) -> None:
    """Tell whoever listens, and the log."""
    for listener in listeners:
        listener.launched(launch)
    say(
        "execute",
        TIMES,
        lambda: (
            f"{launch.kernel} on {launch.device}: grid {launch.grid}, block {launch.block}, "
            f"{launch.device_s * 1e3:.3f} ms, with the host {launch.host_s * 1e3:.3f} ms"
        ),
    )


# --- SAREK_DEBUG ----------------------------------------------------------------------------------


def level(component: str) -> int:
    """How much `SAREK_DEBUG` asks of a component: 0 nothing, else ONCE to SOURCE."""
    if not settings.is_debugging():
        return 0
    words = settings.debug_words()
    if not words:
        return 0
    numbers = [int(word) for word in words if word.isdigit()]
    named = words & {*COMPONENTS, "all"}
    if named and not named & {component, "all"}:
        return 0
    return max(numbers) if numbers else ONCE


def say(component: str, least: int, text: Callable[[], str]) -> None:
    """One message of a component, if `SAREK_DEBUG` asks for that much of it."""
    if level(component) >= least:
        _logger(component).debug(text())


def _logger(component: str) -> logging.Logger:
    """The logger of a component; messages go to standard error unless the program handles them."""
    root = logging.getLogger("sarek_numba")
    if root.level == logging.NOTSET:
        root.setLevel(logging.DEBUG)
    if not root.handlers and not logging.getLogger().handlers:
        root.addHandler(_ToStandardError())
    return root.getChild(component)


class _ToStandardError(logging.Handler):
    """Writes to what `sys.stderr` is when a message comes."""

    def emit(self, record: logging.LogRecord) -> None:
        component = record.name.rpartition(".")[2]
        print(f"sarek {component}: {record.getMessage()}", file=sys.stderr)
