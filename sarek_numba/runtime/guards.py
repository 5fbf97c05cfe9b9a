"""The guards of a launch: a global that the kernel captured, a variable of the environment, the
device of `use_device`, grants, listeners, the memo.

An equal object in the place of another does not count: then the launch takes the long way, which
compares as it always does.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from contextvars import ContextVar
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sarek_numba import policy, settings
from sarek_numba.runtime import cache, recorders, registry, telemetry
from sarek_numba.runtime.plans import ABSENT, Guard, Place

if TYPE_CHECKING:
    from sarek_numba.frontend.typed import Captured


def guards_of(captures: Iterable[Captured], driver: Any) -> tuple[Guard, ...] | None:
    """The guards of a launch that went well a moment ago; None if some cannot be made.

    `driver` is that of the device, whose record must not be exchanged.
    """
    environment = settings.environment_items()
    if environment is None or "record" not in vars(driver):
        return None
    guards = [
        *(_item(*entry) for entry in environment),
        _context(registry.current_device),
        _context(settings.simulated_width),
        _context(policy.surrounding),
        _context(recorders.current),
        _item(vars(policy), "process_grants"),
        _item(vars(telemetry), "listeners"),
        _item(vars(cache), "generation"),
        _item(vars(driver), "record"),
    ]
    for captured in captures:
        guards += _of_captured(captured)
    return tuple({(g.place, id(g.container), g.key): g for g in guards}.values())


def _item(container: Any, key: Any) -> Guard:
    return Guard(Place.ITEM, container, key, container.get(key, ABSENT))


def _context(variable: ContextVar[Any]) -> Guard:
    return Guard(Place.CONTEXT, variable, None, variable.get())


def _of_captured(captured: Captured) -> list[Guard]:
    """Guards for a value that the kernel captured.

    What the kernel keeps a copy of, and attributes of objects that are no modules, can change
    without any place holding another object: the captured value itself is asked then.
    """
    function, name = captured.function, captured.name
    code = function.__code__
    if name in code.co_freevars:
        cell = (function.__closure__ or ())[code.co_freevars.index(name)]
        guards = [Guard(Place.CELL, cell, None, cell.cell_contents)]
    else:
        guards = [_item(function.__globals__, name)]
        if guards[0].expected is ABSENT:
            guards.append(_item(vars(builtins), name))
    for attribute in captured.path:
        owner = guards[-1].expected
        if type(owner) is not ModuleType or attribute not in vars(owner):
            return [Guard(Place.CALL, captured.is_current, captured, None)]
        guards.append(_item(vars(owner), attribute))
    if guards[-1].expected is not captured.value:
        return [Guard(Place.CALL, captured.is_current, captured, None)]
    return guards
