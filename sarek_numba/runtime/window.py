"""The launch window: launches without a stream wait for the next point that needs them.

A device with queues has one `Window`, shared by all threads. A launch whose arrays are all vectors
in the device's memory is checked, and what it needs is compiled and brought there, in the call;
then it waits with others until something needs its results or changes its arguments, and all are
given to the device together: in order, or several as one (`fusion`). Every other launch is such a
point itself.

A failure of the device's driver is raised by the call that had the launch submitted, and names the
launch and the line that made it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Literal

from sarek_numba.capability import DeviceRecord
from sarek_numba.errors import InvalidArgument, UnknownDevice
from sarek_numba.runtime import fusion
from sarek_numba.runtime.device import Driver, JoinedProgram, Queues
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
    fuse: bool | None = None  # None: what the device's record says


_lock = threading.Lock()
_settings: dict[str, _Settings] = {}
_default = _Settings()
_windows: dict[Queues, Window] = {}


# --- the public functions -------------------------------------------------------------------------


def configure(
    backend: str | None = None,
    *,
    enabled: bool | None = None,
    limit: int | None = None,
    fuse: bool | Literal["auto"] | None = None,
) -> None:
    """Have the launches of a backend's devices, or of all, wait or not, and at most how many.

    `fuse` is whether small independent ones are given to a device as one; "auto", as at the start:
    where the device's record says that it pays. What is not given stays as it is. Raises
    UnknownDevice, InvalidArgument.
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
    if not (fuse is None or isinstance(fuse, bool) or (isinstance(fuse, str) and fuse == "auto")):
        raise InvalidArgument(f'launches are fused or not: True, False or "auto", not {fuse!r}')
    for window in list(_windows.values()):
        window.submit_all("configure")
    with _lock:
        before = _default if backend is None else _settings.get(backend, _default)
        now = _Settings(
            before.enabled if enabled is None else enabled,
            before.limit if limit is None else limit,
            before.fuse if fuse is None else None if isinstance(fuse, str) else fuse,
        )
        if backend is None:
            _default = now
            _settings.clear()
        else:
            _settings[backend] = now
        for window in _windows.values():
            window.adopt(_settings.get(window.record.backend, _default))


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


_Place = tuple[CodeType, int] | None  # code, and how far it is
_Launch = tuple[str, _Place]  # a kernel, and where it was launched


@dataclass(frozen=True, slots=True)
class _Joined:
    """What became of a launch that was not submitted by itself, in its order.

    `launches` ran as one, with `mark`. If it was submitted before launches of earlier calls, those
    are done with the last of them, which was one of `behind`; then that mark is the launch's.
    """

    launches: Sequence[_Launch]
    mark: Any
    behind: Sequence[_Launch] = ()


class Deferred(Work):
    """A launch in a window. `mark` is None until it is submitted."""

    __slots__ = ("_place", "joined", "kernel", "start")

    def __init__(self, queue: Window, start: Callable[[], Any], used: Any, kernel: str) -> None:
        self.queue = queue
        self.mark = None
        self.used = used
        self.told = False
        self.start: Callable[[], Any] | None = start
        self.kernel = kernel
        self._place = _users_place()
        self.joined: _Joined | None = None

    def submit(self, why: str) -> None:
        """With all before it."""
        if self.mark is None and not self.told:
            self.queue.submit_all(why)

    def wait(self, why: str) -> None:
        """Return when it is done. Raises BackendError with the launch's name and line."""
        self.submit(why)
        joined = self.joined
        behind = joined.behind if joined is not None else ()
        try:
            if joined is not None and behind and not self.told:
                self.queue.queues.wait(joined.mark)
        except Exception as error:
            self.told = True
            raise self.named(error) from None
        try:
            super().wait(why)
        except Exception as error:
            raise (_named(error, behind) if behind else self.named(error)) from None

    def is_done(self, number: int = 0) -> bool:
        """Whether it was submitted, and is done or has failed and said so."""
        if self.told:
            return True
        mark = self.mark
        if mark is None:
            return False
        joined, status = self.joined, self.queue.queues.status
        if joined is not None and joined.behind and status(joined.mark) < 0:
            return False
        found = status(mark)
        return found == 0 or (found > 0 and self.number <= number)

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
        """The error, saying which launch it is of, or which ran as one with it."""
        return _named(error, self.launches())

    def launches(self) -> Sequence[_Launch]:
        """What ran as one."""
        return ((self.kernel, self._place),) if self.joined is None else self.joined.launches


def _named(error: Exception, launches: Sequence[_Launch]) -> Exception:
    if len(launches) == 1:
        kernel, place = launches[0]
        note = f"\n  note: of the launch of kernel '{kernel}' at {_line(place)}"
    else:
        each = dict.fromkeys(f"\n    kernel '{k}' at {_line(place)}" for k, place in launches)
        note = f"\n  note: of one of {len(launches)} launches that ran as one:{''.join(each)}"
    if error.args and note not in str(error.args[0]):
        error.args = (f"{error.args[0]}{note}", *error.args[1:])
    return error


class Window(WorkQueue):
    """The launches of a device that have no stream, in order."""

    def __init__(self, queues: Queues, record: DeviceRecord) -> None:
        super().__init__(queues, queues.default())
        self.record = record
        self.adopt(_settings.get(record.backend, _default))
        self.waiting: list[Deferred] = []
        self._in_flight: Work | None = None  # the last of the window before the last full one

    def adopt(self, settings: _Settings) -> None:
        """Go by these settings from now on."""
        self.settings = settings
        self._why_apart = fusion.why_apart(self.record, settings.fuse)
        self._decisions = fusion.Decisions(self.record.name)

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
        with self.lock:  # what another thread is giving to the device has begun when it is free
            if not self.waiting:
                return
            decision = self._decision(self.waiting)
            waiting, self.waiting = self.waiting, []
            if decision is None:
                failures = [failure for work in waiting if (failure := work.begin()) is not None]
            else:
                failures = self._submit_joined(waiting, decision)
            self.queues.submit(self.handle)
        if waiting:
            with _lock:
                statistics.flushes[why] = statistics.flushes.get(why, 0) + 1
        if failures:
            raise failures[0]

    def _decision(self, waiting: Sequence[Deferred]) -> fusion.Decision | None:
        """What is given to the device as one; None if nothing is."""
        if self._why_apart is None:
            return self._decisions.of(waiting)
        if len(waiting) >= fusion.COUNTS[-1]:
            fusion.tell(waiting[0].kernel, self.record.name, self._why_apart)
        return None

    def _submit_joined(
        self, waiting: Sequence[Deferred], decision: fusion.Decision
    ) -> list[Exception]:
        """Give the device what waits, in batches; the failures."""
        failures: list[Exception] = []
        marks: list[Any] = []
        for places, program in decision.batches:
            works = [waiting[place] for place in places]
            if program is None or not self._join(works, program):
                failures += [failure for work in works if (failure := work.begin()) is not None]
            marks.append(works[-1].mark)
        behind = {k: waiting[decision.batches[k][0][-1]].launches() for _, k in decision.late}
        for place, k in decision.late:
            work = waiting[place]
            if not work.told:
                work.joined = _Joined(work.launches(), work.mark, behind[k])
                work.mark = self.queues.mark(self.handle) if marks[k] is None else marks[k]
        return failures

    def _join(self, works: Sequence[Deferred], program: JoinedProgram) -> bool:
        """Give launches to the device as one. What it does not take is to be given to it one by
        one: it has begun with none of them.
        """
        try:
            mark = fusion.submit(works, program, self)
        except Exception as error:
            fusion.refused(works[0], len(works), error)
            self._decisions.forget()
            return False
        joined = _Joined([(work.kernel, work._place) for work in works], mark)
        for work in works:
            work.mark, work.start, work.joined = mark, None, joined
        with _lock:
            statistics.fused += len(works)
        return True


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
            window = _windows[queues] = Window(queues, driver.record)
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
