"""`sarek.profile()`: what launches cost, kernel by kernel."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from time import perf_counter
from typing import Any

from sarek_numba.display import table
from sarek_numba.errors import InvalidArgument
from sarek_numba.runtime.cache import Counters, counters
from sarek_numba.runtime.telemetry import Launched, listening

_HEADS = ("kernel", "device", "launches", "device ms", "overhead ms", "GB/s", "GFLOP/s")
_NAMES = 2  # columns that hold names, the rest numbers

Operations = Mapping[str, float | Callable[..., float]]


@dataclass(frozen=True, slots=True)
class KernelProfile:
    """All launches of a kernel on a device. Times are in seconds, bytes those of whole arrays.

    `flops` are operations of all launches, None if nobody said how many a launch has.
    """

    kernel: str
    device: str
    launches: int
    device_s: float
    host_s: float
    read_bytes: int
    written_bytes: int
    flops: float | None

    @property
    def overhead_s(self) -> float:
        """What the launches took beside the kernels."""
        return self.host_s - self.device_s

    @property
    def gigabytes_per_second(self) -> float:
        """Bytes read and written over the kernels' time."""
        moved = self.read_bytes + self.written_bytes
        return moved / self.device_s / 1e9 if self.device_s else 0.0

    @property
    def gigaflops_per_second(self) -> float | None:
        """Operations over the kernels' time; None if they are not known."""
        if self.flops is None:
            return None
        return self.flops / self.device_s / 1e9 if self.device_s else 0.0


@dataclass(slots=True)
class Profile:
    """What `sarek.profile()` gives. As text and in a notebook it is its table."""

    flops: Operations = field(default_factory=dict)
    launches: list[Launched] = field(default_factory=list)
    uploads: int = 0
    downloads: int = 0
    uploaded_bytes: int = 0
    downloaded_bytes: int = 0
    began: float = 0.0

    def launched(self, launch: Launched) -> None:
        """See `runtime.telemetry.Listener`."""
        self.launches.append(launch)

    def kernels(self) -> list[KernelProfile]:
        """One entry for each kernel and device, the most device time first."""
        groups: dict[tuple[str, str], list[Launched]] = {}
        for launch in self.launches:
            groups.setdefault((launch.kernel, launch.device), []).append(launch)
        found = [self._summed(*key, several) for key, several in groups.items()]
        return sorted(found, key=lambda entry: -entry.device_s)

    def _summed(self, kernel: str, device: str, several: list[Launched]) -> KernelProfile:
        return KernelProfile(
            kernel,
            device,
            len(several),
            sum(one.device_s for one in several),
            sum(one.host_s for one in several),
            sum(one.read_bytes for one in several),
            sum(one.written_bytes for one in several),
            self._operations(kernel, several),
        )

    def _operations(self, kernel: str, several: list[Launched]) -> float | None:
        each = self.flops.get(kernel)
        if each is None:
            return None
        if callable(each):
            return float(sum(each(*one.values) for one in several))
        return float(each) * len(several)

    def rows(self) -> list[dict[str, Any]]:
        """The entries of `kernels()` as dictionaries, for tables of others."""
        return [
            {
                "kernel": entry.kernel,
                "device": entry.device,
                "launches": entry.launches,
                "device_ms": entry.device_s * 1e3,
                "overhead_ms": entry.overhead_s * 1e3,
                "read_bytes": entry.read_bytes,
                "written_bytes": entry.written_bytes,
                "GB/s": entry.gigabytes_per_second,
                "GFLOP/s": entry.gigaflops_per_second,
            }
            for entry in self.kernels()
        ]

    def frame(self) -> Any:
        """`rows()` as a DataFrame. Raises ImportError without pandas."""
        import pandas  # type: ignore[import-untyped]  # not a dependency

        return pandas.DataFrame(self.rows())

    def chrome_trace(self, path: str | Path) -> None:
        """Write the launches for `chrome://tracing` and Perfetto. Raises OSError."""
        events = [event for launch in self.launches for event in self._events(launch)]
        content = {"traceEvents": events, "displayTimeUnit": "ms"}
        Path(path).write_text(json.dumps(content), encoding="utf-8")

    def _events(self, launch: Launched) -> Iterator[dict[str, Any]]:
        start = (launch.began - self.began) * 1e6
        common = {"ph": "X", "pid": os.getpid(), "name": launch.kernel}
        details = {
            "grid": launch.grid,
            "block": launch.block,
            "read_bytes": launch.read_bytes,
            "written_bytes": launch.written_bytes,
        }
        host = {"cat": "host", "tid": f"thread {launch.thread}", "ts": start}
        yield {**common, **host, "dur": launch.host_s * 1e6, "args": details}
        end = start + launch.host_s * 1e6
        device = {"cat": "device", "tid": launch.device, "ts": end - launch.device_s * 1e6}
        yield {**common, **device, "dur": launch.device_s * 1e6, "args": details}

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                entry.kernel,
                entry.device,
                str(entry.launches),
                f"{entry.device_s * 1e3:.3f}",
                f"{entry.overhead_s * 1e3:.3f}",
                f"{entry.gigabytes_per_second:.2f}",
                "" if (rate := entry.gigaflops_per_second) is None else f"{rate:.2f}",
            )
            for entry in self.kernels()
        ]

    def _caption(self) -> str:
        return (
            f"{self.uploads} uploads ({self.uploaded_bytes} bytes), "
            f"{self.downloads} downloads ({self.downloaded_bytes} bytes)"
        )

    def __str__(self) -> str:
        from rich.console import Console
        from rich.table import Table

        shown = Table(caption=self._caption())
        for k, head in enumerate(_HEADS):
            shown.add_column(head, justify="left" if k < _NAMES else "right")
        for cells in self._cells():
            shown.add_row(*cells)
        text = StringIO()
        Console(file=text, width=120).print(shown)
        return text.getvalue().rstrip("\n")

    def _repr_html_(self) -> str:
        return table(_HEADS, self._cells(), self._caption())


@contextmanager
def profile(flops: Operations | None = None) -> Iterator[Profile]:
    """Measure the launches within, of all threads.

    Each launch waits until its kernel is done. `flops` says for kernels, by name, how many
    operations a launch has: a number, or a function of the launch's arguments. Raises
    InvalidArgument.
    """
    stated = dict(flops or {})
    for name, each in stated.items():
        if not isinstance(name, str) or not (callable(each) or isinstance(each, int | float)):
            raise InvalidArgument(
                f"profile(): 'flops' maps names of kernels to numbers or functions, not "
                f"{name!r} to {each!r}\n"
                '  hint: flops={"saxpy": lambda a, x, y: 2 * len(y)}'
            )
    found = Profile(stated, began=perf_counter())
    before = _moved(counters)
    with listening(found):
        try:
            yield found
        finally:
            moved = [after - start for after, start in zip(_moved(counters), before, strict=True)]
            found.uploads, found.downloads, found.uploaded_bytes, found.downloaded_bytes = moved


def _moved(now: Counters) -> tuple[int, int, int, int]:
    return now.uploads, now.downloads, now.uploaded_bytes, now.downloaded_bytes
