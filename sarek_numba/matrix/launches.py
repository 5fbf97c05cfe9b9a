"""Launches that may run as another kernel: from a launch's arguments to the decision, and the run.

`instead` is asked after all checks of a launch, and before anything is bound. What it decides is
in the report of `sarek.policy`; it never fails where the kernel as given would run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

from sarek_numba import policy
from sarek_numba.ir.nodes import Kernel
from sarek_numba.ir.types import Role
from sarek_numba.matrix import kinds, testing, tuned
from sarek_numba.matrix.bind import Dimensions, Launch
from sarek_numba.matrix.choose import NAME, choose, product_of
from sarek_numba.matrix.product import Product
from sarek_numba.matrix.specialise import Outcome, Specialised, specialise
from sarek_numba.runtime import launch as launching
from sarek_numba.runtime import recorders
from sarek_numba.runtime.arguments import Arguments, Sizes, fillers
from sarek_numba.runtime.cache import Memo
from sarek_numba.runtime.outcome import Original, Request
from sarek_numba.runtime.registry import Device
from sarek_numba.runtime.stream import Stream
from sarek_numba.runtime.submission import MOST_BLOCKS
from sarek_numba.runtime.window import flush_device


@dataclass(frozen=True, slots=True)
class Given:
    """A checked launch of a kernel as given."""

    device: Device
    analysed: launching.Analysed
    arguments: Arguments
    grid: Dimensions
    block: Dimensions
    shared_bytes: int
    stream: Stream | None
    grants: tuple[policy.Grant, ...] = ()  # the kernel's own


_MOST_DECIDED = 512
_analysed: Memo[tuple[Kernel, launching.Analysed]] = Memo()


def instead(
    given: Given,
    precision: str | None = None,
    *,
    explicit: bool = False,
    launch: Callable[..., None] | None = None,
) -> Outcome:
    """Run a launch as another kernel, if it may; `Original` if nothing was run. `launch` is given
    the launch in place of the runtime.

    One that is joined to no others begins at once: in the window it would gain nothing, and the
    device would wait for the host.
    """
    known, key = _known(given, precision, explicit)
    if known is None:
        decided = _decide(given, precision, explicit)
        if isinstance(decided, Original):
            return decided
        known = decided
        if key is not None:
            if len(_decided) >= _MOST_DECIDED:
                _decided.clear()
            _decided[key] = known
    made = known.made
    policy.record_once(
        given.analysed.kernel.name,
        given.device.record.name,
        NAME,
        policy.Applied(made.evidence),
    )
    arguments = replace(given.arguments, values=(*given.arguments.values, *made.extra))
    ready = given.device, known.analysed, arguments, made.grid, made.block, 0, given.stream
    own = () if known.own is None else (known.own,)
    (launch or launching.launch)(*ready, *own)
    if given.stream is None and made.grid[0] > MOST_BLOCKS:
        flush_device(given.device.driver, "product")
    return made


@dataclass(frozen=True, slots=True)
class _Decided:
    """What launches like one that was looked at run. `kernel` is the one as given."""

    kernel: Kernel
    made: Specialised
    analysed: launching.Analysed
    own: launching.Prepared | None


_decided: dict[Hashable, _Decided] = {}


def _known(
    given: Given, precision: str | None, explicit: bool
) -> tuple[_Decided | None, Hashable | None]:
    """What was decided of launches of a kernel with the same numbers at the same places, on the
    same device with the same grants; and where to note it. CPUs gain nothing by that.
    """
    if given.device.record.is_cpu or not explicit or testing.pins() or tuned.forced.get():
        return None, None
    found = facts(given)
    if found is None or policy.disabled(NAME):
        return None, None
    kernel = given.analysed.kernel
    key = (
        *(id(kernel), given.device, precision, given.stream is None, policy.budget(given.grants)),
        *(found.grid, found.block, tuple(found.values.values()), tuple(found.buffers.values())),
        *(tuned.changes(), testing.any_size.get()),
    )
    decided = _decided.get(key)
    return (decided if decided is not None and decided.kernel is kernel else None), key


def _decide(given: Given, precision: str | None, explicit: bool) -> _Decided | Original:
    """What a launch runs, compiled."""
    plan = choose(
        device=given.device,
        ir=given.analysed.kernel,
        launch=lambda: facts(given),
        precision=precision,
        explicit=explicit,
        stream=given.stream is not None,
        grants=given.grants,
    )
    if isinstance(plan, Original):
        return plan
    record = given.device.record
    try:
        made = specialise(
            plan,
            _certain(facts(given)),
            record,
            len(given.arguments.values),
            given.device.driver,
        )
        if isinstance(made, Specialised):
            return _ready(given, made)
    except Exception as error:  # the kernel as given can run
        reason = str(error).partition("\n")[0]
        made = Original(f"the rewrite failed: {type(error).__name__}: {reason}")
    policy.record_once(given.analysed.kernel.name, record.name, NAME, policy.Refused(made.reason))
    return made


def attempt(
    launch: tuple[Any, ...], grants: tuple[policy.Grant, ...], request: Request | None
) -> Outcome:
    """Run a launch of a kernel of the user's as another one, if it may; `launch` is a `Given`."""
    given = replace(Given(*launch), grants=grants)
    if request is None:
        return instead(given)
    return instead(given, request.precision, explicit=True, launch=request.launch)


def stays(outcome: Outcome, device: Device, kernel: Kernel) -> bool:
    """Whether launches like one that ran the kernel as given do so too, at any size."""
    if isinstance(outcome, Specialised):
        return False
    if device.record.backend not in kinds.RULES:
        return True
    found = product_of(kernel)
    return not (isinstance(found, Product) and kinds.may_be_automatic(device.record, found.case))


def facts(given: Given) -> Launch | None:
    """What is known of a launch; None where arguments are not plain arrays and numbers, and where
    the launch is taken down for later.
    """
    arguments = given.arguments
    if arguments.columns or recorders.current.get() is not None:
        return None
    sizes = Sizes(given.shared_bytes, given.grid[0] * given.block[0])
    params = [decl for decl in given.analysed.kernel.params if decl.array is None]
    values: dict[Role, int | float | bool] = {
        decl.role: fill(arguments, (), sizes)
        for decl, fill in zip(params, fillers(params), strict=True)
    }
    buffers = {}
    for position in arguments.arrays:
        region = arguments.arrangement.regions[arguments.placement(position).region]
        start = region.start - region.phase
        buffers[position] = start, arguments.values[position].itemsize
    return Launch(given.grid, given.block, values, buffers)


def _certain(launch: Launch | None) -> Launch:
    assert launch is not None, "a plan was made from it"
    return launch


def _ready(given: Given, made: Specialised) -> _Decided:
    """The other kernel, checked and compiled."""
    names = (*given.analysed.names, *(f"number {at}" for at in range(len(made.extra))))
    analysed = _analysed_of(made.ir, names)
    arguments = replace(given.arguments, values=(*given.arguments.values, *made.extra))
    launching.check_warps(given.device, analysed, made.block)
    launching.check(given.device, analysed, arguments, 0)
    own = None
    if made.own is None:
        launching.program_of(given.device, analysed, made.grid, made.block)
    else:
        program = made.own.program
        own = launching.Prepared(program, fillers(program.params))
    return _Decided(given.analysed.kernel, made, analysed, own)


def _analysed_of(kernel: Kernel, names: tuple[str, ...]) -> launching.Analysed:
    """By the kernel itself, which the memo keeps."""
    return _analysed.get((id(kernel), names), lambda: (kernel, launching.analyse(kernel, names)))[1]


__all__ = ["Given", "attempt", "facts", "instead", "stays"]
