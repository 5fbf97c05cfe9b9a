"""The rule of `print`: numbers and constant strings, with constant `sep` and `end`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numba.core import types

from sarek_numba.errors import UnsupportedConstruct
from sarek_numba.frontend.complexes import is_complex
from sarek_numba.frontend.extensions import CompileTime
from sarek_numba.frontend.rules.operators import at_run_time
from sarek_numba.frontend.typed import Operation, Print, Type
from sarek_numba.frontend.weak import Refusal, describe, is_number

_DEFAULTS = {"sep": " ", "end": "\n"}


def printing(args: tuple[Type, ...], named: Mapping[str, Type]) -> Operation:
    """A call of `print`. Raises a `Refusal` at the argument that cannot be printed."""
    texts = dict(_DEFAULTS)
    for name, kind in named.items():
        if name not in texts:
            raise Refusal(
                f"print() in a kernel has no argument {name!r}",
                "it has sep and end; text goes to sys.stdout when the launch ends",
                UnsupportedConstruct,
            )
        if isinstance(kind, types.NoneType):
            continue
        value = _text(kind)
        if value is None:
            refusal = Refusal(
                f"the argument {name!r} of print() is a constant string, not {describe(kind)}",
                "write it in quotes",
            )
            refusal.operand = (name,)
            raise refusal
        texts[name] = value
    operands = tuple(_printable(place, kind) for place, kind in enumerate(args))
    return Operation(Print(texts["sep"], texts["end"]), operands, types.none)


def _text(kind: Type) -> str | None:
    value: Any = kind.value if isinstance(kind, CompileTime) else None
    return value if isinstance(value, str) else None


def _printable(place: int, kind: Type) -> Type:
    if _text(kind) is not None:
        return kind
    if is_number(kind) and not is_complex(kind):
        return at_run_time(kind)
    refusal = Refusal(
        f"print() in a kernel takes numbers and constant strings, not {describe(kind)}",
        "print its real and imag" if is_complex(kind) else "print its elements one by one",
    )
    refusal.operand = (place,)
    raise refusal
