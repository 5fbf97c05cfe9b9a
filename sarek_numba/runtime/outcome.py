"""What a launch ran: the kernel as it was given, or what stands in for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sarek_numba.accept import ROUNDINGS
from sarek_numba.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Original:
    """The kernel ran as it was given; `reason` says why nothing stood in for it."""

    reason: str

    def __str__(self) -> str:
        return f"Original: {self.reason}"


@dataclass(frozen=True, slots=True)
class Request:
    """A launch asks to run on matrix units; `precision` is for operands of float32.

    `launch` takes the place of `runtime.launch.launch` for what stands in for the kernel.
    """

    precision: str | None
    launch: Callable[..., None] | None = None


def check_request(kernel: str, precision: str | None, explicit: bool) -> None:
    """Refuse words that name no precision of operands. Raises InvalidArgument."""
    if precision is not None and precision not in ROUNDINGS:
        raise InvalidArgument(
            f"kernel '{kernel}': precision is {precision!r}\n"
            f"  hint: None, or one of {', '.join(map(repr, ROUNDINGS))}"
        )
    if not isinstance(explicit, bool):
        raise InvalidArgument(f"kernel '{kernel}': explicit is True or False, not {explicit!r}")
