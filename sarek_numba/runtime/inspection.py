"""What a kernel shows of itself: its signature, and what it has been compiled for, with its needs.

A table as text and as HTML. It opens no device: what a device can do is `sarek.devices`' to say.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from types import FunctionType
from typing import Any

from sarek_numba.capability import describe
from sarek_numba.display import code, columns, table
from sarek_numba.ir.types import ArrayInfo, Pair, Record, Scalar
from sarek_numba.ir.variants import variant_name
from sarek_numba.runtime.arguments import Kind, PythonNumber, element_of
from sarek_numba.runtime.launch import Analysed
from sarek_numba.runtime.signature import place_of

_HEADS = ("compiled for", "indices", "needs")


@dataclass(frozen=True, slots=True)
class Card:
    """A kernel on one page. `compiled` has the kinds of arguments of each specialisation."""

    function: FunctionType
    options: Mapping[str, Any]
    compiled: tuple[tuple[tuple[Kind, ...], Analysed], ...]

    def text(self) -> str:
        """The page as text."""
        lines = [self._headline()]
        if not self.compiled:
            return "\n".join([*lines, "not compiled yet"])
        return "\n".join([*lines, *columns([_HEADS, *self._rows()])])

    def html(self) -> str:
        """The page as HTML; the Python text can be unfolded."""
        if self.compiled:
            shown = table(_HEADS, self._rows(), self._headline())
        else:
            shown = f"<p>{escape(self._headline())}<br>not compiled yet</p>"
        try:
            text = inspect.getsource(self.function)
        except (OSError, TypeError):
            return shown
        return f"{shown}<details><summary>Python</summary>{code(text, 'python')}</details>"

    def _headline(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        signature = inspect.signature(self.function)
        bare = [p.replace(annotation=_bare(p.annotation)) for p in signature.parameters.values()]
        signature = inspect.Signature(bare)
        return f"kernel {self.function.__name__}{signature} at {place_of(self.function)}{options}"

    def _rows(self) -> list[tuple[str, str, str]]:
        return [
            (", ".join(map(_kind_text, kinds)), _width_text(analysed), _needs_text(analysed))
            for kinds, analysed in self.compiled
        ]


class _Bare(str):
    """An annotation that is text, shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _bare(annotation: Any) -> Any:
    return _Bare(annotation) if isinstance(annotation, str) else annotation


def _width_text(analysed: Analysed) -> str:
    width = analysed.kernel.warp_width
    warps = "" if width is None else f", warps of {width}"
    return f"{analysed.kernel.index_bits}-bit{warps}"


def _needs_text(analysed: Analysed) -> str:
    return ", ".join(dict.fromkeys(map(describe, analysed.needs))) or "nothing"


def _kind_text(kind: Kind) -> str:
    """A kind of argument as an annotation would state it."""
    match kind:
        case ArrayInfo():
            element = element_of(kind)
            name = "record" if isinstance(element, Record) else element.value
            shape = ", ".join([":"] * kind.ndim)
            return f"{name}[{shape}] {kind.layout}{'' if kind.writable else ' readonly'}"
        case Record():
            return variant_name(kind) or "record"
        case Scalar() | Pair() | PythonNumber():
            return kind.value
        case None:
            return "None"
