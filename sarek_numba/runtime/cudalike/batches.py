"""Launches of a device that begin at once: batches of them, and the openings of batches.

A batch is work of the queue of the device's window; its launches are one behind the other. What
launches use is noted with the batch. During an opening everything that was noted stays noted, so
machine code (`launcher_ir`) adds launches that use nothing else without telling: the state says how
many. An opening ends before anything looks at how far the batch is, and before other work comes to
the queue. Then what was added is counted.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_numba.runtime.cudalike.queues import Mark
from sarek_numba.runtime.window import Window
from sarek_numba.runtime.work import Work

if TYPE_CHECKING:
    from sarek_numba.runtime.cudalike.queues import Stream

MOST = 64  # launches of one batch
_MOST_BATCHES = 16  # that are not known to be done
_NO_OPENING, _ADDED, _LEFT = 0, 1, 2  # words of the state; openings are numbers from 1 on


class Batch(Work):
    """Launches that began at once, one after the other; it is the mark of the last of them.

    It grows only while it is the last work of its queue, and with the queue's lock or in an
    opening. `number` and `given` grow with it, so that who waited for what it was drops nothing
    that came to it later.
    """

    __slots__ = ("_batches", "_given", "kept", "launches", "names", "stream")
    event = start = None  # as of a `Mark`

    def __init__(self, batches: Batches, window: Window, stream: Stream) -> None:
        self.queue = window
        self.kept: list[Any] = []
        self.number = 0
        self.told = False
        self.stream = stream
        self.launches = 0
        self.names: dict[str, None] = {}  # of kernels
        self._batches = batches
        self._given = 0

    @property
    def mark(self) -> Any:  # of what it is now
        return self

    @property
    def used(self) -> Sequence[Any]:
        """What must live until it is done."""
        return self.kept

    @used.setter
    def used(self, value: Sequence[Any]) -> None:
        self.kept = list(value)

    @property
    def given(self) -> int:
        """The number in the stream of the last launch."""
        self._batches.end(self)
        return self._given

    def reach(self, given: int, number: int, launches: int) -> None:
        """It has more launches, up to a number in the stream. The queue's lock is held."""
        self._given = given
        self.number = number
        self.launches += launches

    def wait(self, why: str) -> None:
        """Return when that is done which is in it by now. Raises BackendError."""
        with self.queue.lock:
            number, given = self.number, self.given
        try:
            if not self.told:
                self.queue.queues.wait(Mark(self.stream, given))
        except Exception as error:
            self.told = True
            self._batches.end(self)
            raise self._named(error) from None
        finally:
            self.queue.forget_done(number)

    def _named(self, error: Exception) -> Exception:
        """The error, saying whose launches are in the batch."""
        names = " and ".join(f"'{name}'" for name in self.names)
        note = f"\n  note: of a launch of kernel {names.replace(' and ', ' or ')}"
        if names and error.args and note not in str(error.args[0]):
            error.args = (f"{error.args[0]}{note}", *error.args[1:])
        return error


class Batches:
    """The batches of one device. `state` is as `launcher_ir` has it."""

    def __init__(self, window: Window, stream: Stream) -> None:
        self.state = np.zeros(3, np.int64)
        self._words = self.state.data
        self._window = window
        self._stream = stream
        self._last: Batch | None = None  # that was opened
        self._openings = itertools.count(1)
        window.before_work = self.end

    @property
    def opening(self) -> int:
        """The number of the opening, 0 for none."""
        return int(self._words[_NO_OPENING])

    def end(self, batch: Batch | None = None) -> None:
        """End the opening, if it is of the batch, and count what came in it."""
        if batch is not None and batch is not self._last:
            return
        words = self._words
        words[_NO_OPENING] = 0
        if words[_ADDED]:
            window = self._window
            with window.lock:  # with it nobody opens a batch; somebody may have done so before
                words[_NO_OPENING] = 0
                added, words[_ADDED] = words[_ADDED], 0
                if added and self._last is not None:
                    window._count += 1
                    self._last.reach(self._stream.next(), window._count, added)

    def batch(self) -> Batch:
        """The batch that the next launch comes to, open. The window's lock is held."""
        words, last = self._words, self._last
        if last is not None and words[_NO_OPENING] and words[_LEFT] > 0 and not last.told:
            return last
        self.end()
        window = self._window
        works = window._works
        if works:
            last = works[-1]  # type: ignore[assignment] # looked at next
            if type(last) is Batch and last.launches < MOST and not last.told:
                return self._open(last)
            window.forget_done()
            if len(works) > _MOST_BATCHES:
                works[0].wait("full")
        made = Batch(self, window, self._stream)
        window.remember(made)
        return self._open(made)

    def _open(self, batch: Batch) -> Batch:
        words = self._words
        self._last = batch
        words[_LEFT] = MOST - batch.launches
        words[_NO_OPENING] = next(self._openings)
        return batch

    def add(self, batch: Batch, name: str, used: Sequence[Any]) -> None:
        """A launch was given to the stream. The window's lock is held since `batch`."""
        window, words = self._window, self._words
        window._count += 1
        batch.reach(self._stream.next(), window._count, 1)
        batch.kept.append(used)
        batch.names[name] = None
        words[_LEFT] -= 1
