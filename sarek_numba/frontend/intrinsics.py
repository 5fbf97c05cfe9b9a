"""`sarek.register_intrinsic`: a function of `sarek.math` of the user's own. Imports no Numba.

It is an `InlineSource` with a name and stated types: its arguments are converted to those of the
first signature that holds them, on every device, in emulation and in plain Python alike.
"""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sarek_numba.frontend import mathematics
from sarek_numba.frontend.functions import DeviceFunction
from sarek_numba.frontend.texts import (
    InlineSource,
    Texts,
    check_references,
    closest,
    function_of,
    place,
    refused,
    texts_of,
)
from sarek_numba.span import Span

DType = np.dtype[Any]
_NAMES = """
    bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64
""".split()
_SHAPE = re.compile(r"\s*(\w+)\s*\(([^()]*)\)\s*")


@dataclass(frozen=True, slots=True)
class Signature:
    """The types of the result and of the arguments."""

    result: DType
    arguments: tuple[DType, ...]

    def takes(self, given: Sequence[type | DType]) -> bool:
        """Whether each argument is held: a dtype, or Python's `int` or `float`."""
        return all(map(_holds, self.arguments, given))

    def __str__(self) -> str:
        return f"{self.result.name}({', '.join(each.name for each in self.arguments)})"


def _holds(wanted: DType, given: type | DType) -> bool:
    if given is int:
        return wanted.kind in "iuf"
    if given is float:
        return wanted.kind == "f"
    return np.can_cast(given, wanted, "safe") and (wanted.kind == "b") == (given == np.bool_)


class RegisteredIntrinsic(InlineSource):
    """A function with texts for some frameworks, stated types, and a name in `sarek.math`."""

    def __init__(
        self,
        name: str,
        signatures: tuple[Signature, ...],
        texts: Texts,
        reference: DeviceFunction,
        span: Span | None,
    ) -> None:
        super().__init__(name, texts, reference, span)
        self.signatures = signatures
        self.__name__ = self.__qualname__ = name

    def signature_for(self, given: Sequence[type | DType]) -> Signature | None:
        """The first signature that holds the arguments."""
        return next((each for each in self.signatures if each.takes(given)), None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.emulated(self.function)(*args, **kwargs)

    def emulated(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The reference on arguments of the stated types."""
        parameters = inspect.signature(self.function)

        def call(*args: Any, **kwargs: Any) -> Any:
            bound = parameters.bind(*args, **kwargs)
            bound.apply_defaults()
            values = tuple(bound.arguments.values())
            signature = self.signature_for(tuple(map(_kind_of, values)))
            if signature is None:
                shown = ", ".join(type(value).__name__ for value in values)
                raise TypeError(f"{self.name}() takes {self.shown()}, not ({shown})")
            pairs = zip(signature.arguments, values, strict=True)
            with np.errstate(all="ignore"):
                result = function(*(wanted.type(value) for wanted, value in pairs))
            return signature.result.type(result)

        return call

    def shown(self) -> str:
        """The signatures, for messages."""
        return " or ".join(map(str, self.signatures))

    def __repr__(self) -> str:
        return f"<sarek intrinsic {self.name}: {self.shown()}>"


def _kind_of(value: Any) -> type | DType:
    """Python's `int` or `float`, or the dtype of what else there is."""
    return type(value) if type(value) in (int, float) else np.asarray(value).dtype


def register_intrinsic(
    name: str,
    signature: str | Sequence[str],
    source: Mapping[str, str] | Callable[[str], str | None],
    python: Any = None,
) -> RegisteredIntrinsic:
    """Add a function to `sarek.math`: `sarek.math.name` in kernels, on all devices.

    `signature` is one, as "float32(float32, int32)", or several of which the first counts that
    holds the arguments. `source` has texts as those of `sarek.inline_source`, `python` is the
    reference: what the function means. The function is also returned.
    """
    span = place("register_intrinsic")
    _check_name(name, span)
    if python is None:
        hint = "give python=f, the Python function that says what it means"
        raise refused(f"the intrinsic {name!r} has no reference", span, hint)
    reference = function_of(python, "the reference", span)
    texts = texts_of(source, span)
    if not texts:
        hint = "decorate the reference with @sarek.function, and call that"
        raise refused(f"the intrinsic {name!r} has no text for any framework", span, hint)
    check_references(texts, reference.function, "the reference", span)
    given = (signature,) if isinstance(signature, str) else tuple(signature)
    signatures = tuple(_read(each, reference, span) for each in given)
    if not signatures:
        hint = 'write one, as "float32(float32)"'
        raise refused(f"the intrinsic {name!r} has no signature", span, hint)
    _check_clash(name, reference, span)
    made = RegisteredIntrinsic(name, signatures, texts, reference, span)
    setattr(mathematics, name, made)
    return made


def _check_name(name: Any, span: Span | None) -> None:
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise refused(f"{name!r} is no name of a function", span, "use letters, digits and _")
    if name.startswith("_"):
        raise refused(f"{name!r} begins with _", span, "leave the underscore out")


def _check_clash(name: str, reference: DeviceFunction, span: Span | None) -> None:
    """A cell of a notebook may run again: the same definition takes the place of the last one."""
    known = getattr(mathematics, name, None)
    if known is None:
        return
    if isinstance(known, RegisteredIntrinsic):
        old, new = known.function, reference.function
        if (old.__module__, old.__qualname__) == (new.__module__, new.__qualname__):
            return
        where = f" at {known.span}" if known.span else ""
        raise refused(f"sarek.math.{name} is registered already{where}", span, "use another name")
    raise refused(f"sarek.math has a {name} of its own", span, "use another name")


def _read(signature: Any, reference: DeviceFunction, span: Span | None) -> Signature:
    match = _SHAPE.fullmatch(signature) if isinstance(signature, str) else None
    if match is None:
        raise refused(
            f"{signature!r} is no signature", span, 'write it as "float32(float32, int32)"'
        )
    names = [each.strip() for each in match[2].split(",")] if match[2].strip() else []
    types = tuple(_type(each, span) for each in names)
    count = len(inspect.signature(reference.function).parameters)
    if count != len(types):
        shown = reference.function.__name__
        raise refused(
            f"the signature {signature!r} has {_counted(len(types))}, and the reference {shown}() "
            f"takes {count}",
            span,
            "state a type for each parameter",
        )
    return Signature(_type(match[1], span), types)


def _counted(count: int) -> str:
    return f"{count} argument{'' if count == 1 else 's'}"


def _type(name: str, span: Span | None) -> DType:
    if name not in _NAMES:
        hint = closest(name, _NAMES) or f"there are {', '.join(_NAMES)}"
        raise refused(f"{name!r} in a signature is no type", span, hint)
    return np.dtype(name)
