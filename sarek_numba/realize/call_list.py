"""Graphs of devices that have no mechanism of their own: steps, done one after the other.

A launch that does not change is done by a plan from its third time on, as any launch like earlier
ones is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sarek_numba.realize import copies
from sarek_numba.runtime import launch as launching
from sarek_numba.runtime import telemetry
from sarek_numba.runtime.attempts import attempt_of, note_vectors
from sarek_numba.runtime.graphs import CopyStep, FillStep, LaunchStep, Step
from sarek_numba.runtime.guards import guards_of
from sarek_numba.runtime.plans import Attempt

_LAUNCHES_BEFORE_A_PLAN = 2


def do_step(step: Step) -> None:
    """Do a step now. Raises BackendError, OracleError."""
    match step:
        case LaunchStep():
            telemetry.begin()
            launching.launch(
                step.device, step.analysed, step.arguments, step.grid, step.block,
                step.shared_bytes,
            )  # fmt: skip
        case CopyStep(device, destination, source):
            native = copies.copy(device, destination, source)
            how = "on the device" if native else "through the host"
            telemetry.say(
                "transfer",
                telemetry.ONCE,
                lambda: f"copy {destination.nbytes} bytes to {device.name}, {how}",
            )
        case FillStep(device, destination, value):
            copies.fill(device, destination, value)


class _Repeated:
    """A step that is done again and again."""

    __slots__ = ("_attempt", "_count", "step")

    def __init__(self, step: Step) -> None:
        self.step = step
        self._count = 0
        self._attempt: Attempt | None = None

    def __call__(self) -> None:
        step = self.step
        if not isinstance(step, LaunchStep):
            do_step(step)
            return
        given = step.arguments.given
        if self._attempt is not None:
            attempt, finish = self._attempt
            rest = attempt(*given)
            if rest is None:
                return
            if rest is not False:
                assert finish is not None
                finish(given, rest)
                return
        do_step(step)
        self._learn(step)

    def _learn(self, step: LaunchStep) -> None:
        """Make a plan of the launch that was just done."""
        self._count += 1
        note_vectors(step.device, step.arguments.given, step.analysed)
        if self._count != _LAUNCHES_BEFORE_A_PLAN or telemetry.is_measuring():
            return
        guards = guards_of((), step.device.driver)
        if guards is None:
            return
        learnt = attempt_of(
            step.device, step.analysed, guards, (), step.arguments.given, step.arguments,
            step.grid, step.block, step.shared_bytes,
        )  # fmt: skip
        self._attempt = None if learnt is None else learnt[1]


class CallList:
    """Groups of steps, done in order, which respects all dependencies."""

    def __init__(self, groups: Sequence[Sequence[Step]]) -> None:
        self._groups = [[_Repeated(step) for step in group] for group in groups]
        self._devices = {step.device for group in groups for step in group}

    def change(self, changed: Mapping[int, Sequence[Step]]) -> None:
        """Have some groups be others from now on."""
        for number, steps in changed.items():
            self._groups[number] = [_Repeated(step) for step in steps]
            self._devices |= {step.device for step in steps}

    def replay(self, wait: bool) -> None:
        """Do all steps. Raises BackendError, OracleError."""
        for group in self._groups:
            for step in group:
                step()
        if wait:
            for device in self._devices:
                device.synchronize()
