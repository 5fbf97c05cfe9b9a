"""Rules of what a `match` asks of its subject; see `frontend.matching`."""

from __future__ import annotations

from numba.core import types

from sarek_numba.frontend import matching
from sarek_numba.frontend.patterns import wrong_length
from sarek_numba.frontend.rules.registry import rule
from sarek_numba.frontend.typed import Constant, Operation, Type
from sarek_numba.frontend.weak import Refusal, constant_of, describe

_NOTHING = Operation(Constant(None), (), types.none)


@rule(matching.check_pattern)
def check_pattern(subject: Type, wanted: Type, count: Type) -> Operation:
    """Computes nothing; refuses a subject that the pattern never takes."""
    if wanted.value == "bool":
        if not isinstance(subject, types.Boolean):
            raise Refusal(
                f"True and False are patterns of a bool, and this is {describe(subject)}",
                "write a number",
            )
        return _NOTHING
    items = int(constant_of(count) or 0)
    if not isinstance(subject, types.BaseTuple):
        raise Refusal(
            f"a pattern with items takes a tuple, not {describe(subject)}",
            "write a value, a name or `_`",
        )
    if len(subject) != items:
        raise Refusal(*wrong_length(items, len(subject)))
    return _NOTHING
