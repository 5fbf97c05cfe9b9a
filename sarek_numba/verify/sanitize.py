"""`sarek.sanitize`: one launch on the oracle with all checks, told as a report.

The launch takes the path of every other launch, with all its refusals, to a device of its own: the
interpreter, whose program is asked to `check` where it would be asked to `launch`, so that findings
are returned and not raised.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sarek_numba.ir.nodes import Kernel, ParamDecl
from sarek_numba.runtime.device import Bytes, Dimensions, Program
from sarek_numba.runtime.registry import Device, device


def sanitize(
    kernel: Any,
    *,
    checks: Collection[str] = (),
    races: str = "default",
    seed: int | None = None,
    step_limit: int | None = None,
) -> Sanitizer:
    """Check a launch: `sarek.sanitize(k)[grid, block](*arguments)` gives a report of its findings.

    Always checked are bounds, data races, divergent barriers, uninitialised and unbound reads,
    overflow of Python ints, asserts and progress. `checks={"division"}` adds integer division by
    zero, `races="strict"` unordered writes of identical bits. `seed` permutes the order of blocks
    (`SAREK_SEED` by default). The arguments are changed as by a launch. What refuses a launch is
    raised as ever.
    """
    options: dict[str, Any] = {"checks": frozenset(checks), "races": races, "seed": seed}
    if step_limit is not None:
        options["step_limit"] = step_limit
    return Sanitizer(kernel, options)


@dataclass(frozen=True, slots=True)
class Sanitizer:
    """A kernel to be checked; index it with grid and block, and call that with the arguments."""

    kernel: Any
    options: Mapping[str, Any]

    def __getitem__(self, configuration: Any) -> Callable[..., Any]:
        grid, block, stream, shared_bytes = (*configuration, None, 0)[:4]

        def launch(*arguments: Any, **named: Any) -> Any:
            run = _Run(self.options)
            token = _current.set(run)
            try:
                self.kernel.launch(
                    *arguments,
                    grid=grid,
                    block=block,
                    stream=stream,
                    shared_bytes=shared_bytes,
                    device=_checking(device("interpreter")),
                    **named,
                )
            finally:
                _current.reset(token)
            return run.report

        return launch


@dataclass(slots=True)
class _Run:
    """What one launch is checked for, and what it found."""

    options: Mapping[str, Any]
    report: Any = None


_current: ContextVar[_Run] = ContextVar("sarek_sanitize")
_making = threading.Lock()


def _checking(interpreter: Device) -> Device:
    with _making:
        return _checking_device(interpreter)


@cache
def _checking_device(interpreter: Device) -> Device:
    """The interpreter, checking: one device, so that what is prepared for it is kept."""
    return Device(_CheckingDriver(interpreter))


class _CheckingDriver:
    def __init__(self, interpreter: Device) -> None:
        self._driver = interpreter.driver
        self.record = interpreter.record
        self.memory = interpreter.driver.memory
        self.externals = interpreter.driver.externals
        self.queues = interpreter.driver.queues
        self.plans = interpreter.driver.plans
        self.target = interpreter.driver.target

    def prepare(self, kernel: Kernel) -> Program:
        return _CheckingProgram(self._driver.prepare(kernel))

    def source(self, kernel: Kernel) -> str:
        return self._driver.source(kernel)

    def bind(self, memory: Bytes, *, read: bool, written: bool) -> Any:
        return self._driver.bind(memory, read=read, written=written)

    def unbind(self, buffer: Any) -> None:
        self._driver.unbind(buffer)


@dataclass(slots=True)
class _CheckingProgram:
    program: Any  # of the interpreter, whose `check` gives a report
    params: tuple[ParamDecl, ...] = field(init=False)
    source: str = field(init=False)
    static_shared_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.params = self.program.params
        self.source = self.program.source
        self.static_shared_bytes = self.program.static_shared_bytes

    def launch(
        self, grid: Dimensions, block: Dimensions, shared_bytes: int, arguments: Sequence[Any]
    ) -> None:
        run = _current.get()
        run.report = self.program.check(grid, block, shared_bytes, arguments, **run.options)
