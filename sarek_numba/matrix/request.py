"""`sarek.matrix.run`: a launch that asks to run on matrix units, and says what it ran as."""

from __future__ import annotations

from typing import Any, Protocol

from sarek_numba import policy
from sarek_numba.errors import InvalidArgument
from sarek_numba.matrix.specialise import Outcome
from sarek_numba.runtime.outcome import Request, check_request
from sarek_numba.runtime.registry import Device
from sarek_numba.runtime.stream import Stream


class Asks(Protocol):
    """A kernel made by `@sarek.kernel`."""

    __name__: str

    def launch_asking(
        self, request: Request, arguments: tuple[Any, ...], grid: Any, block: Any, *where: Any
    ) -> Outcome: ...


def asked(k: Any, name: str) -> Any:
    """How a kernel is launched on request. Raises InvalidArgument for what is no kernel."""
    ask = getattr(k, "launch_asking", None)
    if ask is None:
        raise InvalidArgument(
            f"{name} takes a kernel, not {type(k).__name__}\n"
            "  hint: decorate the function by @sarek.kernel"
        )
    return ask


def run(
    k: Asks,
    *args: Any,
    grid: Any,
    block: Any,
    device: str | Device | None = None,
    stream: Stream | None = None,
    precision: str | None = None,
) -> Outcome:
    """Launch a kernel as its rewrite on matrix units, where it is a product and has one.

    `grid` and `block` are those of the kernel as given, which runs where there is no rewrite or a
    grant is missing. `precision` is what operands of float32 may be rounded to, which a grant must
    allow. The outcome's text begins with `Specialised` or `Original`, and says why. Raises
    InvalidArgument for another precision or for what is no kernel, and as a launch does.
    """
    ask = asked(k, "sarek.matrix.run")
    check_request(k.__name__, precision, True)
    outcome: Outcome = ask(Request(precision), args, grid, block, device, stream)
    policy.explain(f"kernel '{k.__name__}': {outcome}")
    return outcome
