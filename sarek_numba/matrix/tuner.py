"""`sarek.matrix.tune`: times the variants and tilings of a rewrite, and keeps the fastest.

Nothing of the user's is written: launches work on copies. Operands of floats are replaced by small
whole numbers, whose sums are exact in any order, so the result of each candidate must be that of
the kernel as given, byte for byte; who leaves one wrong byte is left out, however fast. Where the
given kernel rounds otherwise (a factor within its sum), what counts is the result of the smallest
tiles, if that is near the given kernel's.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sarek_numba.errors import DeviceLost, InvalidArgument
from sarek_numba.matrix import tuned
from sarek_numba.matrix.request import Asks, asked
from sarek_numba.matrix.rewrite.form import variant_name
from sarek_numba.matrix.specialise import Outcome
from sarek_numba.matrix.tuned import Choice
from sarek_numba.runtime import launch as launching
from sarek_numba.runtime import recorders
from sarek_numba.runtime.duplicates import duplicates
from sarek_numba.runtime.outcome import Original, Request, check_request
from sarek_numba.runtime.registry import Device

_SAMPLE = 2e-3  # seconds
_MOST_LAUNCHES = 100  # of a sample
_ROUNDS = 3
_LARGEST = 4  # of the whole numbers: sums of 2^20 products are exact in float32
_NEAR = 64.0  # units in the last place, of the largest element

Timer = Callable[..., float]
"""Is given a launch, as `runtime.launch.launch` is, and gives its seconds."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """What was tried: `outcome` is that of the fastest, `seconds` are by candidate, `errors` say
    why others are out. `str` is a table, the fastest first.
    """

    outcome: Outcome
    seconds: dict[Choice, float] = field(default_factory=dict)
    errors: dict[Choice, str] = field(default_factory=dict)

    def __str__(self) -> str:
        ranked = sorted(self.seconds.items(), key=lambda pair: pair[1])
        lines = [f"{_name(choice)}: {took * 1e6:.4g} us" for choice, took in ranked]
        lines += [f"{_name(choice)}: {why}" for choice, why in self.errors.items()]
        return "\n".join([str(self.outcome), *(f"  {line}" for line in lines)])


def tune(
    k: Asks,
    *args: Any,
    grid: Any,
    block: Any,
    device: str | Device | None = None,
    precision: str | None = None,
    timer: Timer | None = None,
) -> Tuned:
    """Find the fastest rewrite of a launch; later launches like it, of later processes too, use it.

    Takes what `sarek.matrix.run` takes. `timer` takes the place of timing. Raises InvalidArgument
    as that does and where no candidate is right, GraphError inside a capture.
    """
    ask = asked(k, "sarek.matrix.tune")
    check_request(k.__name__, precision, True)
    recorders.refuse("tiles are tuned", "tune them before")
    trial = _Trial(k, ask, args, grid, block, device, precision)
    first = trial.launch(trial.copies(), lambda *launch: None)
    if isinstance(first, Original):
        return Tuned(first)
    trial.operands = first.operands
    found = Tuned(first)
    choices = list(first.choices)
    _time(trial, choices, timer or _seconds, found)
    expected = _expected(trial, choices[-1])
    for choice in sorted(found.seconds, key=lambda each: found.seconds[each]):
        outcome, result = trial.result(choice)
        if result == expected:
            tuned.keep(first.key, choice)
            return Tuned(outcome, found.seconds, found.errors)
        del found.seconds[choice]
        found.errors[choice] = "its result is wrong"
    refused = InvalidArgument(f"kernel '{k.__name__}': none of {len(choices)} rewrites is right")
    for choice, why in found.errors.items():
        refused.add_note(f"{_name(choice)}: {why}")
    raise refused


def _name(choice: Choice) -> str:
    variant, tiling = choice
    (down, across), (rows, columns) = tiling.warps, tiling.fragments
    return (
        f"{variant_name(variant)}, {down} x {across} warps of {rows} x {columns} fragments, "
        f"{tiling.depth} deep"
    )


@contextmanager
def _choosing(choice: Choice | None) -> Iterator[None]:
    token = tuned.forced.set(choice)
    try:
        yield
    finally:
        tuned.forced.reset(token)


@dataclass(slots=True)
class _Trial:
    """Launches of a kernel on copies of its arguments; `operands` are the places of C, A and B."""

    kernel: Asks
    ask: Any
    given: Sequence[Any]
    grid: Any
    block: Any
    device: str | Device | None
    precision: str | None
    operands: tuple[int, int, int] | None = None

    def copies(self) -> list[Any]:
        """The arguments, each array a vector of its own memory, with whole numbers as operands."""
        found = duplicates(self.given, range(len(self.given)), vectors=True)
        values = [found.get(position, value) for position, value in enumerate(self.given)]
        if self.operands is not None:
            for position in self.operands[1:]:
                _fill(values[position])
        return values

    def launch(self, values: Sequence[Any], launch: Callable[..., None] | None = None) -> Outcome:
        request = Request(self.precision, launch)
        outcome: Outcome = self.ask(
            request, tuple(values), self.grid, self.block, self.device, None
        )
        return outcome

    def result(self, choice: Choice) -> tuple[Outcome, bytes]:
        """What a candidate leaves in C."""
        assert self.operands is not None
        values = self.copies()
        with _choosing(choice):
            outcome = self.launch(values)
        return outcome, np.asarray(values[self.operands[0]]).tobytes()

    def reference(self) -> Any:
        """What the kernel as given leaves in C."""
        assert self.operands is not None
        values = self.copies()
        launch: Any = self.kernel
        launch.launch(*values, grid=self.grid, block=self.block, device=self.device)
        return np.array(values[self.operands[0]])


def _fill(operand: Any) -> None:
    """Whole numbers whose products are summed exactly; all of an integer's."""
    numbers = np.random.default_rng(0)
    kind, shape = np.dtype(operand.dtype), operand.shape
    if kind.kind in "iu":
        ends = np.iinfo(kind)
        operand[...] = numbers.integers(ends.min, ends.max, shape, kind, endpoint=True)
    elif kind.kind == "b":
        operand[...] = numbers.integers(0, 2, shape).astype(kind)
    else:
        operand[...] = numbers.integers(-_LARGEST, _LARGEST + 1, shape, np.int8).astype(kind)


def _time(trial: _Trial, choices: Sequence[Choice], timer: Timer, found: Tuned) -> None:
    """The shortest time of each candidate, in rounds of another order each; or why it has none."""
    order = random.Random(0)
    values = trial.copies()
    for _ in range(_ROUNDS):
        for choice in order.sample(list(choices), len(choices)):
            if choice in found.errors:
                continue
            took: list[float] = []

            def timed(*launch: Any, took: list[float] = took) -> None:
                took.append(timer(*launch))

            try:
                with _choosing(choice):
                    outcome = trial.launch(values, timed)
            except (MemoryError, DeviceLost):
                raise
            except Exception as error:  # of this candidate
                outcome = Original(f"{type(error).__name__}: {error}")
            if isinstance(outcome, Original):
                found.errors[choice] = outcome.reason
                found.seconds.pop(choice, None)
            else:
                found.seconds[choice] = min(took[0], found.seconds.get(choice, took[0]))


def _seconds(device: Device, *launch: Any) -> float:
    """The time of one of several launches, which are waited for together."""
    count, took = 1, 0.0
    for _ in range(2):  # the first compiles, brings the arguments and tells how many are a sample
        launching.launch(device, *launch)
        device.synchronize()
        began = time.perf_counter()
        for _ in range(count):
            launching.launch(device, *launch)
        device.synchronize()
        took = (time.perf_counter() - began) / count
        count = max(1, min(_MOST_LAUNCHES, int(_SAMPLE / max(took, 1e-7))))
    return took


def _expected(trial: _Trial, smallest: Choice) -> bytes:
    """What C must be."""
    exact = trial.reference()
    _, result = trial.result(smallest)
    if result != exact.tobytes() and _is_near(np.frombuffer(result, exact.dtype), exact.ravel()):
        return result
    whole: bytes = exact.tobytes()
    return whole


def _is_near(found: Any, expected: Any) -> bool:
    """Whether floats are the same but for rounding."""
    kind = expected.dtype
    if kind.kind in "biu":
        return False
    eps = {2: 2.0**-7, 4: 2.0**-23}[kind.itemsize]  # of bfloat16 at most, and of float32
    a, b = found.astype(np.float64), expected.astype(np.float64)
    largest = np.max(np.abs(b), initial=0.0, where=np.isfinite(b))
    return bool(np.allclose(a, b, rtol=_NEAR * eps, atol=_NEAR * eps * largest, equal_nan=True))


__all__ = ["Tuned", "tune"]
