"""`sarek.inline_source`: a function written as text for some frameworks. Imports no Numba.

The fallback, a Python function, gives the types and the meaning: the oracle and emulation run it,
and so does every device for whose framework there is no text.
"""

from __future__ import annotations

import difflib
import inspect
import linecache
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any

from sarek_numba.errors import Diagnostic, UnsupportedConstruct
from sarek_numba.frontend.functions import DeviceFunction
from sarek_numba.span import Span

FRAMEWORKS = ("cuda", "hip", "metal", "native", "opencl", "vulkan")
_REFERENCE = re.compile(r"\$(?:(\$)|(\w+)(\.type\b)?)?")

Texts = tuple[tuple[str, str], ...]


class InlineSource(DeviceFunction):
    """A function given by texts, a pair of a framework and a text each, and its fallback."""

    def __init__(
        self, name: str, texts: Texts, fallback: DeviceFunction, span: Span | None
    ) -> None:
        super().__init__(fallback.function, inline_depth=fallback.inline_depth)
        self.texts = texts
        self.span = span
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    @property
    def key(self) -> Any:
        """Two texts of one fallback are two functions."""
        return self

    def __repr__(self) -> str:
        return f"<sarek inline source {self.name}: {', '.join(name for name, _ in self.texts)}>"


def inline_source(
    source: Mapping[str, str] | Callable[[str], str | None], fallback: Any = None
) -> InlineSource:
    """A function that kernels call, written as text for some frameworks.

    `source` is a text for each framework ("cuda", "hip", "metal", "native", "opencl", "vulkan"), or
    a function that gives the text of a framework by its name, or None. `fallback` is the Python
    function that the texts stand for; `$name` in a text is its parameter of that name.
    """
    span = place("inline_source")
    given = texts_of(source, span)
    if fallback is None:
        missing = "neither a text nor a fallback" if not given else "no fallback"
        raise refused(
            f"sarek.inline_source has {missing}",
            span,
            "give fallback=f, the Python function that the texts stand for",
        )
    function = function_of(fallback, "the fallback", span)
    if not given:
        raise refused(
            "sarek.inline_source has no text for any framework",
            span,
            "decorate the fallback with @sarek.function, and call that",
        )
    check_references(given, function.function, "the fallback", span)
    return InlineSource(function.function.__name__, given, function, span)


def texts_of(source: Any, span: Span | None) -> Texts:
    """The texts by framework, in order. Raises UnsupportedConstruct."""
    if isinstance(source, Mapping):
        found = dict(source)
    elif callable(source):
        made = {framework: source(framework) for framework in FRAMEWORKS}
        found = {framework: text for framework, text in made.items() if text is not None}
    else:
        raise refused(
            f"the source is a dict of texts, or a function of a framework's name, not {source!r}",
            span,
            'write {"opencl": "$x + 1"}',
        )
    for framework, text in found.items():
        if framework not in FRAMEWORKS:
            raise refused(
                f"{framework!r} is no framework",
                span,
                closest(str(framework), FRAMEWORKS) or f"there are {', '.join(FRAMEWORKS)}",
            )
        if not isinstance(text, str) or not text.strip():
            raise refused(
                f"the {framework} text is {text!r}", span, "leave the framework out, or write text"
            )
    return tuple(sorted(found.items()))


def function_of(given: Any, role: str, span: Span | None) -> DeviceFunction:
    """A Python function, or what marks one, as a device function."""
    if isinstance(given, FunctionType):
        return DeviceFunction(given)
    if isinstance(given, DeviceFunction) and not isinstance(given, InlineSource):
        return given
    raise refused(f"{role} is no Python function, but {given!r}", span, "define it with def")


def check_references(texts: Texts, function: FunctionType, role: str, span: Span | None) -> None:
    """Refuse a `$name` that is no parameter."""
    names = tuple(inspect.signature(function).parameters)
    for framework, text in texts:
        for match in _REFERENCE.finditer(text):
            dollar, name, of_type = match.groups()
            if dollar or name in names or (name == "return" and of_type):
                continue
            if name is None:
                raise refused(f"a $ of the {framework} text has no name", span, "write $$ for $")
            raise refused(
                f"${name} of the {framework} text is no parameter of {role} "
                f"{function.__name__}({', '.join(names)})",
                span,
                closest(name, names, "$") or "give it as an argument",
            )


def by_position(text: str, places: Mapping[str, str]) -> str:
    """A text as the IR has it: parameters by position; `places` are "$0" or "${0+1}" by name."""

    def placed(match: re.Match[str]) -> str:
        dollar, name, of_type = match.groups()
        if dollar:
            return "$$"
        return places.get(name, f"${name}") + (of_type or "")

    return _REFERENCE.sub(placed, text)


# --- refusals -------------------------------------------------------------------------------------


def place(word: str) -> Span | None:
    """Where the user's program calls a function of this package, which is written as `word`."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") in _OWN_MODULES:
        frame = frame.f_back
    file, line = frame.f_code.co_filename, frame.f_lineno
    column = linecache.getline(file, line).find(word)
    return Span(file, line) if column < 0 else Span(file, line, column, line, column + len(word))


_OWN_MODULES = (__name__, "sarek_numba.frontend.intrinsics", "sarek_numba.frontend.registered")


def refused(message: str, span: Span | None, hint: str | None) -> UnsupportedConstruct:
    return UnsupportedConstruct(Diagnostic(UnsupportedConstruct, message, span, hint))


def closest(name: str, names: Iterable[str], lead: str = "") -> str | None:
    """A hint that names what was probably meant."""
    found = difflib.get_close_matches(name, list(names), 1, 0.5)
    return f"did you mean {lead + found[0]!r}?" if found else None
