"""The rule of `sarek.unroll`."""

from __future__ import annotations

from sarek_numba.frontend import language
from sarek_numba.frontend.extensions import RANGE, RangeType
from sarek_numba.frontend.rules.registry import rule
from sarek_numba.frontend.typed import Operation, Type, Unroll
from sarek_numba.frontend.weak import Refusal, WeakInt, constant_of, describe, operand


@rule(language.unroll)
def unrolled(loop: Type, count: Type | None = None) -> Operation:
    if not isinstance(loop, RangeType):
        with operand(0):
            raise Refusal(
                f"sarek.unroll() takes a range, not {describe(loop)}",
                "write for k in sarek.unroll(range(n)):",
            )
    if count is None:
        return Operation(Unroll(None), (loop,), RANGE)
    passes = constant_of(count)
    if not isinstance(count, WeakInt) or passes is None or passes < 1:
        shown = describe(count) if passes is None else repr(passes)
        with operand(1):
            raise Refusal(
                f"sarek.unroll() takes a constant number of passes, at least 1, not {shown}",
                "write a literal, or leave it out",
            )
    return Operation(Unroll(int(passes)), (loop,), RANGE)
