"""The time of one launch, and the warning of copies that nobody sees."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Container, Sequence, Set
from time import perf_counter
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from sarek_numba.errors import HiddenCopyWarning
from sarek_numba.runtime import telemetry
from sarek_numba.runtime.device import Dimensions, Driver
from sarek_numba.runtime.registry import Device
from sarek_numba.runtime.work import AT_ONCE

_NOTICED = 1 << 20  # bytes of an array whose copy is worth a word

_queues: WeakKeyDictionary[Driver, Any] = WeakKeyDictionary()  # that keep the times of their work
_lock = threading.Lock()


class Launchable(Protocol):
    """A program, or a kernel that somebody else wrote."""

    def launch(
        self, grid: Dimensions, block: Dimensions, shared_bytes: int, arguments: Sequence[Any]
    ) -> None:
        """Run it; returns when it is done. Raises BackendError."""
        ...


class Clock:
    """Measures one launch whose arguments have been checked."""

    def __init__(self, driver: Driver, arrays: Sequence[npt.NDArray[Any]]) -> None:
        self._driver = driver
        self._arrays = arrays
        self._seconds = 0.0

    def run(
        self,
        program: Launchable,
        grid: Dimensions,
        block: Dimensions,
        shared_bytes: int,
        arguments: Sequence[Any],
    ) -> None:
        """Launch and wait: on a queue that keeps times where the device has one."""
        queues = self._driver.queues
        enqueue = getattr(program, "enqueue", None)
        if queues is None or queues is AT_ONCE or enqueue is None or 0 in grid or 0 in block:
            began = perf_counter()
            program.launch(grid, block, shared_bytes, arguments)
            self._seconds = perf_counter() - began
            return
        with _lock:
            handle = _queues.get(self._driver)
            if handle is None:
                handle = _queues[self._driver] = queues.open()
        self.waited(enqueue(handle, grid, block, shared_bytes, arguments))

    def over(self, start: Callable[[], Any]) -> Any:
        """Give a launch to a queue and wait; gives its mark."""
        mark = start()
        self.waited(mark)
        return mark

    def waited(self, mark: Any) -> None:
        """Wait for the mark of the launch."""
        queues = self._driver.queues
        assert queues is not None
        queues.wait(mark)
        self._seconds = queues.duration_ms(mark) / 1e3

    def tell(
        self,
        device: Device,
        kernel: str,
        grid: Dimensions,
        block: Dimensions,
        values: Sequence[Any],
        read: Set[int],
        written: Set[int],
    ) -> None:
        """Tell whoever listens; `read` and `written` are numbers of arrays."""
        began = telemetry.began()
        telemetry.tell(
            telemetry.Launched(
                kernel=kernel,
                device=device.record.name,
                grid=grid,
                block=block,
                began=began,
                host_s=perf_counter() - began,
                device_s=self._seconds,
                read_bytes=self._bytes(read),
                written_bytes=self._bytes(written),
                values=tuple(values),
                thread=threading.get_ident(),
            )
        )

    def _bytes(self, numbers: Set[int]) -> int:
        return sum(int(self._arrays[k].nbytes) for k in numbers)


# --- copies ---------------------------------------------------------------------------------------

_told: set[tuple[str, str]] = set()


def warn_of_copies(
    kernel: str,
    device: Device,
    arrays: Sequence[npt.NDArray[Any]],
    vectors: Container[int],
) -> None:
    """Say once for a kernel that large arrays go to a GPU and back in each of its launches.

    `vectors` are the numbers of the arrays that are vectors.
    """
    key = (kernel, device.record.name)
    if device.record.is_cpu or key in _told:
        return
    copied = [a for k, a in enumerate(arrays) if k not in vectors and a.nbytes >= _NOTICED]
    if not copied:
        return
    _told.add(key)
    largest: np.ndarray[Any, Any] = max(copied, key=lambda array: array.nbytes)
    warnings.warn(
        f"kernel '{kernel}': {len(copied)} arrays of NumPy, one of {largest.nbytes} bytes, are "
        f"copied to {device.record.name} and what is written back, in each launch\n"
        "  hint: sarek.vector(array) stays on the device",
        HiddenCopyWarning,
        stacklevel=2,
    )
