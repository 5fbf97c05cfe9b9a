"""`sarek.compare`: one launch on every device, and how far each is from the oracle."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any

import numpy as np

from sarek_numba.display import columns, table
from sarek_numba.errors import SarekError, Writer
from sarek_numba.runtime import registry
from sarek_numba.verify.copies import copies
from sarek_numba.verify.sanitize import Sanitizer
from sarek_numba.verify.ulp import ulp_distance

ORACLE = "interpreter"


@dataclass(frozen=True, slots=True)
class Difference:
    """One argument on one device against the oracle.

    `ulp` is the largest distance, `first` the index of the first element that differs, with both
    values; `first` is None where all bits are equal. `writer` is who wrote that element last in the
    oracle; None where nobody did.
    """

    argument: str
    ulp: float
    first: tuple[int, ...] | None
    actual: Any = None
    expected: Any = None
    writer: Writer | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One device: what differs in each array, or the error it raised."""

    device: str
    differences: tuple[Difference, ...]
    error: str | None = None

    @property
    def ulp(self) -> float:
        """Largest distance over all arrays; infinite after an error."""
        if self.error is not None:
            return float("inf")
        return max((difference.ulp for difference in self.differences), default=0.0)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The table that `compare` returns; it prints itself, in a notebook as HTML."""

    kernel: str
    rows: tuple[Row, ...]

    @property
    def agrees(self) -> bool:
        """Whether every device gave the oracle's bits."""
        return all(row.ulp == 0 for row in self.rows)

    def _cells(self) -> list[tuple[str, str, str]]:
        return [(row.device, _distance(row), _first(row)) for row in self.rows]

    def _caption(self) -> str:
        return f"{self.kernel} compared with the {ORACLE}"

    def __str__(self) -> str:
        return "\n".join([self._caption(), *columns([_HEADS, *self._cells()])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return table(_HEADS, self._cells(), self._caption())


_HEADS = ("device", "largest ULP", "first difference")


def _distance(row: Row) -> str:
    if row.error is not None:
        return "failed"
    return "0 (same bits)" if row.ulp == 0 else f"{row.ulp:g}"


def _first(row: Row) -> str:
    if row.error is not None:
        return row.error
    found = [difference for difference in row.differences if difference.first is not None]
    if not found:
        return ""
    one = found[0]
    index = ", ".join(map(str, one.first or ()))
    text = f"{one.argument}[{index}] is {one.actual!s}, the oracle has {one.expected!s}"
    return f"{text}, written by {one.writer}" if one.writer else text


def compare(kernel: Any, devices: Sequence[Any] | None = None) -> Comparer:
    """Compare a launch on several devices with the oracle.

    `sarek.compare(k)[grid, block](*arguments)` runs `k` on the oracle and on each of `devices`
    (names or devices; every device found, by default), each time on fresh copies of the arrays, and
    returns a `Comparison`. The arguments themselves are not changed. Raises OracleError where the
    oracle finds a fault: there is nothing to compare with then.
    """
    chosen = registry.devices() if devices is None else devices
    names = [device if isinstance(device, str) else device.name for device in chosen]
    return Comparer(kernel, tuple(name for name in names if name != ORACLE))


@dataclass(frozen=True, slots=True)
class Comparer:
    """A kernel and the devices to compare; index it with grid and block to launch."""

    kernel: Any
    devices: tuple[str, ...]

    def __getitem__(self, configuration: Any) -> Callable[..., Comparison]:
        def launch(*arguments: Any, **named: Any) -> Comparison:
            expected = self._run(ORACLE, configuration, arguments, named)
            rows = [
                self._row(name, configuration, arguments, named, expected) for name in self.devices
            ]
            return Comparison(self.kernel.__name__, tuple(rows))

        return launch

    def _run(self, device: str, configuration: Any, arguments: Any, named: Any) -> dict[str, Any]:
        """The arrays after a launch on copies, by the name of their parameter."""
        given = self._copied(arguments, named)
        with registry.use_device(device):
            self.kernel[configuration](*given.values())
        return {name: value for name, value in given.items() if isinstance(value, np.ndarray)}

    def _copied(self, arguments: Any, named: Any) -> dict[str, Any]:
        bound = inspect.signature(self.kernel.py_func).bind(*arguments, **named)
        return dict(zip(bound.arguments, copies(tuple(bound.arguments.values())), strict=True))

    def _row(
        self, device: str, configuration: Any, arguments: Any, named: Any, expected: dict[str, Any]
    ) -> Row:
        try:
            actual = self._run(device, configuration, arguments, named)
        except SarekError as error:
            return Row(device, (), f"{type(error).__name__}: {str(error).splitlines()[0]}")
        found = [_difference(name, actual[name], expected[name]) for name in expected]
        for k, each in enumerate(found):
            if each.first is not None:  # the first is what the table shows
                writer = self._writer(configuration, arguments, named, each)
                found[k] = replace(each, writer=writer)
                break
        return Row(device, tuple(found))

    def _writer(
        self, configuration: Any, arguments: Any, named: Any, difference: Difference
    ) -> Writer | None:
        """Run the launch on the oracle again, with an eye on the element that differs."""
        given = self._copied(arguments, named)
        array = given[difference.argument]
        element = array[tuple(slice(k, k + 1) for k in difference.first or ())]
        start = element.__array_interface__["data"][0]
        sanitizer = Sanitizer(self.kernel, {"watch": (start, start + array.itemsize)})
        with redirect_stdout(StringIO()):  # what the kernel prints has been shown
            writer: Writer | None = sanitizer[configuration](*given.values()).writer
        return writer


def _difference(name: str, actual: Any, expected: Any) -> Difference:
    distance = ulp_distance(actual, expected)
    if not distance.any():
        return Difference(name, 0.0, None)
    first = tuple(int(k) for k in np.argwhere(distance > 0)[0])
    return Difference(name, float(distance.max()), first, actual[first], expected[first])
