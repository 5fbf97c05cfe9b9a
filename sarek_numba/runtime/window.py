"""The launch window: launches without a stream wait for the next point that needs them.

A device with queues has one `Window`, shared by all threads. A launch whose arrays are all vectors
in the device's memory is checked, and what it needs is compiled and brought there, in the call;
then it waits with others until something needs its results or changes its arguments, and all are
given to the device together, in order. Every other launch is such a point itself.

A failure of the device's driver is raised by the call that had the launch submitted, and names the
launch and the line that made it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from sarek_numba.errors import InvalidArgument, UnknownDevice
from sarek_numba.runtime.device import Driver, Queues
from sarek_numba.runtime.registry import ORDER, Device, device
from sarek_numba.runtime.work import AT_ONCE, Work, WorkQueue, forget_all_done

__all__ = ["Statistics", "configure", "flush", "statistics"]

LIMIT = 64
_AT_LEAST = 3  # calls below that of the user there are functions of ours, up to one of `execute`
_ours: tuple[str, ...] = ()  # the packages whose code is no user's


@dataclass(slots=True)
class Statistics:
    """What windows did since the start or the last `reset`.

    `deferred` launches waited, `fused` ones were joined to others; `flushes` has how often windows
    that were not empty were submitted, by the reason.
    """

    deferred: int = 0
    fused: int = 0
    flushes: dict[str, int] = field(default_factory=dict)

    def reset(self) -> None:
        """Begin again."""
        with _lock:
            self.deferred = self.fused = 0
            self.flushes.clear()


statistics = Statistics()


@dataclass(frozen=True, slots=True)
class _Settings:
    enabled: bool = True
    limit: int = LIMIT


_lock = threading.Lock()
_settings: dict[str, _Settings] = {}
_default = _Settings()
_windows: dict[Queues, Window] = {}


# --- the public functions -------------------------------------------------------------------------


def configure(
    backend: str | None = None, *, enabled: bool | None = None, limit: int | None = None
) -> None:
    """Have the launches of a backend's devices, or of all, wait or not, and at most how many.

    What is not given stays as it is. Raises UnknownDevice, InvalidArgument.
    """
    global _default
    if backend is not None and backend not in ORDER:
        raise UnknownDevice(
            f"the window of backend {backend!r}: there is no such backend\n"
            f"  hint: one of {', '.join(ORDER)}"
        )
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise InvalidArgument(f"a window has room for at least 1 launch, not for {limit!r}")
    if enabled is not None and not isinstance(enabled, bool):
        raise InvalidArgument(f"a window is enabled or not: True or False, not {enabled!r}")
    for window in list(_windows.values()):
        window.submit_all("configure")
    with _lock:
        before = _default if backend is None else _settings.get(backend, _default)
        now = _Settings(
            before.enabled if enabled is None else enabled,
            before.limit if limit is None else limit,
        )
        if backend is None:
            _default = now
            _settings.clear()
        else:
            _settings[backend] = now
        for window in _windows.values():
            window.settings = _settings.get(window.backend, _default)


def flush(which: str | Device | None = None) -> None:
    """Submit what waits in the window of a device, or in all. Raises BackendError."""
    if which is not None:
        flush_device(device(which).driver, "flush")
        return
    failures: list[Exception] = []
    for window in list(_windows.values()):
        try:
            window.submit_all("flush")
        except Exception as error:  # the other devices get theirs all the same
            failures.append(error)
    if failures:
        raise failures[0]


# --- windows --------------------------------------------------------------------------------------


class Deferred(Work):
    """A launch in a window. `mark` is None until it is submitted."""

    __slots__ = ("_place", "kernel", "start")

    def __init__(self, queue: Window, start: Callable[[], Any], used: Any, kernel: str) -> None:
        self.queue = queue
        self.mark = None
        self.used = used
        self.told = False
        self.start: Callable[[], Any] | None = start
        self.kernel = kernel
        self._place = _users_place()

    def submit(self, why: str) -> None:
        """With all before it."""
        if self.mark is None and not self.told:
            self.queue.submit_all(why)

    def wait(self, why: str) -> None:
        """Return when it is done. Raises BackendError with the launch's name and line."""
        self.submit(why)
        try:
            super().wait(why)
        except Exception as error:
            raise self.named(error) from None

    def is_done(self, number: int = 0) -> bool:
        """Whether it was submitted, and is done or has failed and said so."""
        if self.told:
            return True
        mark = self.mark
        if mark is None:
            return False
        status = self.queue.queues.status(mark)
        return status == 0 or (status > 0 and self.number <= number)

    def begin(self) -> Exception | None:
        """Give it to the device; its failure, if it fails."""
        start, self.start = self.start, None
        assert start is not None, "it begins once"
        try:
            self.mark = start()
        except Exception as error:
            self.told = True
            return self.named(error)
        return None

    def named(self, error: Exception) -> Exception:
        """The error, saying which launch it is of."""
        note = f"\n  note: of the launch of kernel '{self.kernel}' at {_line(self._place)}"
        if error.args and note not in str(error.args[0]):
            error.args = (f"{error.args[0]}{note}", *error.args[1:])
        return error


class Window(WorkQueue):
    """The launches of a device that have no stream, in order."""

    def __init__(self, queues: Queues, backend: str) -> None:
        super().__init__(queues, queues.default())
        self.backend = backend
        self.settings = _settings.get(backend, _default)  # `configure` changes it
        self.waiting: list[Deferred] = []
        self._in_flight: Work | None = None  # the last of the window before the last full one

    def make_room(self) -> None:
        """Submit everything if the window is full; wait if the device is two windows behind."""
        if len(self.waiting) < self.settings.limit:
            return
        with self.lock:
            last = self.waiting[-1] if self.waiting else None
            self.submit_all("full")
            behind, self._in_flight = self._in_flight, last
        if behind is not None:
            behind.wait("full")

    def give(self, start: Callable[[], Any], used: Any, kernel: str) -> Work:
        """Have a launch wait for a point that needs it; what is done is looked for at the first."""
        work = Deferred(self, start, used, kernel)
        if not self.waiting:
            forget_all_done()
        with self.lock:
            self.remember(work)
            self.waiting.append(work)
        with _lock:
            statistics.deferred += 1
        return work

    def submit_all(self, why: str) -> None:
        """Give the device what waits. All of it begins, whatever fails; the first failure is
        raised.
        """
        if not self.waiting:
            return
        with self.lock:
            waiting, self.waiting = self.waiting, []
            failures = [failure for work in waiting if (failure := work.begin()) is not None]
            self.queues.submit(self.handle)
        if waiting:
            with _lock:
                statistics.flushes[why] = statistics.flushes.get(why, 0) + 1
        if failures:
            raise failures[0]


def window_of(driver: Driver) -> Window | None:
    """The window of a device whose launches may wait; None where they do not."""
    queues = driver.queues
    if queues is None or queues is AT_ONCE:
        return None
    window = _windows.get(queues) or window_for(driver)
    return window if window.settings.enabled else None


def window_for(driver: Driver) -> Window:
    """The window of a device with queues, whether launches wait there now or not."""
    queues = driver.queues
    assert queues is not None, "it has queues"
    with _lock:
        window = _windows.get(queues)
        if window is None:
            window = _windows[queues] = Window(queues, driver.record.backend)
        return window


def flush_device(driver: Driver, why: str) -> None:
    """Submit what waits in the window of a device. Raises BackendError."""
    window = _windows.get(driver.queues) if driver.queues is not None else None
    if window is not None:
        window.submit_all(why)


def hide(package: Path) -> None:
    """Count the code of a package, which has launches wait for its callers, as no user's."""
    global _ours
    _ours = (*_ours, f"{package}{os.sep}")


hide(Path(__file__).resolve().parents[1])


def _users_place() -> tuple[CodeType, int] | None:
    """Code of the nearest caller that is a user's, and how far it is."""
    frame: FrameType | None = sys._getframe(_AT_LEAST)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_ours):
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def _line(place: tuple[CodeType, int] | None) -> str:
    """File and line of a place; which line it is takes long in a large module."""
    if place is None:
        return "?"
    code, at = place
    found = (line for start, end, line in code.co_lines() if start <= at < end)
    return f"{code.co_filename}:{next(found, None) or code.co_firstlineno}"
