"""Kernels that others wrote, as text in a language of the device.

Arrays must be contiguous. With `inject_lengths` each is followed by its number of elements as an
int32, which a kernel then declares behind each pointer. Where the device tells the types of a
kernel's parameters, numbers are checked against them, and Python numbers take them; elsewhere a
Python int is an int32 and a Python float a float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sarek_numba.errors import (
    ArgumentCountError,
    ArgumentTypeError,
    InvalidFile,
    LengthOverflow,
    UnsupportedLanguage,
)
from sarek_numba.runtime import recorders, telemetry
from sarek_numba.runtime.arguments import Arguments, describe
from sarek_numba.runtime.cache import Memo, count
from sarek_numba.runtime.clock import Clock
from sarek_numba.runtime.dimensions import check_limits, dimensions, shared_size
from sarek_numba.runtime.enqueue import enqueue, queue_for
from sarek_numba.runtime.foreign import placed
from sarek_numba.runtime.languages import External, Externals, Language, Separate
from sarek_numba.runtime.memory import bound_regions
from sarek_numba.runtime.registry import Device
from sarek_numba.runtime.stream import Stream


@dataclass(frozen=True, slots=True)
class Length:
    """A number of elements that the launch adds behind an array."""

    elements: int


@dataclass(frozen=True, slots=True)
class _Array:
    position: int


@dataclass(frozen=True, slots=True)
class _Number:
    position: int
    value: Any


_Slot = Length | _Array | _Number

_compiled: Memo[External] = Memo()


def supports_language(target: Device, language: Language) -> bool:
    """Whether the device compiles kernels of a language."""
    externals = target.driver.externals
    return externals is not None and language in externals.languages


def detect_language(path: str | Path) -> Language:
    """The language of a file, by its suffix. Raises InvalidFile."""
    suffix = Path(path).suffix.lower()
    for language in Language:
        if suffix in language.value:
            return language
    known = " ".join(suffix for language in Language for suffix in language.value)
    raise InvalidFile(f"{path}: no language has the suffix {suffix!r}\n  hint: one of {known}")


def load_source(path: str | Path) -> str | bytes:
    """The contents of a file: bytes of SPIR-V, else text. Raises InvalidFile."""
    language = detect_language(path)
    try:
        if language is Language.SPIRV:
            return Path(path).read_bytes()
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFile(f"{path} cannot be read: {error}") from error


def run_source(
    target: Device,
    source: str | bytes,
    language: Language,
    name: str,
    values: Sequence[Any],
    block: Any,
    grid: Any,
    shared_bytes: int,
    inject_lengths: bool,
    stream: Stream | None = None,
) -> None:
    """Check, compile and launch; see `sarek_numba.execute.run_source`."""
    recorders.refuse(
        f"kernel '{name}' of a source in {language.name} is launched",
        "a capture takes kernels of @sarek.kernel and Sarek IR",
    )
    telemetry.begin()
    externals = target.driver.externals
    if externals is None or language not in externals.languages:
        raise UnsupportedLanguage(
            f"kernel '{name}': {target.record.name} takes no {language.name}\n"
            f"  hint: {_taken(externals)}"
        )
    names = [f"argument {k}" for k in range(len(values))]
    arguments = describe(name, names, values, (None,) * len(values))
    target = placed(name, names, arguments.foreign, target)
    externals = target.driver.externals
    assert externals is not None, "as on the same device in another context"
    _check_whole(name, arguments)
    slots = _slots(name, arguments, inject_lengths)
    blocks, threads = dimensions(name, "grid", grid), dimensions(name, "block", block)
    check_limits(name, blocks, threads, target.record)
    shared = shared_size(name, shared_bytes)
    key = (target, language, source, name)
    external = _compiled.get(key, lambda: _compile(target, externals, language, source, name))
    types = external.types
    if types and shared and external.shared_parameter:
        types = types[:-1]
    if isinstance(external, Separate):
        types = _interleaved(name, slots, external)
        external.check(threads, shared)
    given = _filled(name, slots, types)
    arrays = [arguments.values[position] for position in arguments.arrays]
    every = set(range(len(arrays)))
    written = {k for k in every if arrays[k].flags.writeable}

    def parameters(buffers: Sequence[Any]) -> list[Any]:
        count("launches")
        return [
            buffers[arguments.placement(each.position).region] if isinstance(each, _Array) else each
            for each in given
        ]

    def prepare(buffers: Sequence[Any]) -> Callable[[], Any]:
        assert queue is not None
        given = (queue.handle, blocks, threads, shared, parameters(buffers))
        start = partial(external.enqueue, *given)
        return start if clock is None else partial(clock.over, start)

    arrangement, storages = arguments.arrangement, arguments.storages
    clock = Clock(target.driver, arrays) if telemetry.is_measuring() else None
    queue = queue_for(target.driver, stream, arguments, measured=clock is not None)
    if queue is not None:
        enqueue(name, target.driver, queue, arrangement, arrays, every, written, storages, prepare)
    else:
        with bound_regions(target.driver, arrangement, arrays, every, written, storages) as buffers:
            if clock is None:
                external.launch(blocks, threads, shared, parameters(buffers))
            else:
                clock.run(external, blocks, threads, shared, parameters(buffers))
    if clock is not None:
        clock.tell(target, name, blocks, threads, arguments.values, every, written)


def _compile(
    target: Device, externals: Externals, language: Language, source: str | bytes, name: str
) -> External:
    count("compiles")
    telemetry.say("kernel", telemetry.ONCE, lambda: f"{name} for {target.record.name}")
    telemetry.say("kernel", telemetry.SOURCE, lambda: str(source))
    return externals.compile(language, source, name)


def _taken(externals: Externals | None) -> str:
    if externals is None or not externals.languages:
        return "it runs kernels of this package alone"
    return f"it takes {', '.join(sorted(language.name for language in externals.languages))}"


def _check_whole(kernel: str, arguments: Arguments) -> None:
    """Refuse arrays that a pointer alone does not describe."""
    for position in arguments.columns:
        raise ArgumentTypeError(
            f"kernel '{kernel}': argument {position} is of records in columns, and an external "
            "kernel takes arrays\n  hint: pass its columns, v['x'] and so on"
        )
    for position in arguments.arrays:
        array = arguments.values[position]
        if not array.flags.forc:
            raise ArgumentTypeError(
                f"kernel '{kernel}': argument {position} is an array with gaps, and an external "
                "kernel takes contiguous ones\n  hint: pass numpy.ascontiguousarray(...)"
            )
        region = arguments.arrangement.regions[arguments.placement(position).region]
        if len(region.members) > 1 and arguments.placement(position).offset:
            raise ArgumentTypeError(
                f"kernel '{kernel}': argument {position} overlaps another one, and an external "
                "kernel takes whole arrays\n  hint: pass a copy of it"
            )


def _slots(kernel: str, arguments: Arguments, inject_lengths: bool) -> list[_Slot]:
    slots: list[_Slot] = []
    for position, value in enumerate(arguments.values):
        if position not in arguments.arrays:
            if not isinstance(value, bool | int | float | np.generic):
                raise ArgumentTypeError(
                    f"kernel '{kernel}': argument {position} is {value!r}; a kernel of another "
                    "language takes arrays and numbers"
                )
            slots.append(_Number(position, value))
            continue
        slots.append(_Array(position))
        if inject_lengths:
            if value.size >= 2**31:
                raise LengthOverflow(
                    f"kernel '{kernel}': argument {position} has {value.size} elements, and its "
                    "length is an int32\n  hint: inject_lengths=False, and pass it as numpy.int64"
                )
            slots.append(Length(value.size))
    return slots


def _interleaved(
    kernel: str, slots: Sequence[_Slot], external: Separate
) -> tuple[np.dtype[Any] | None, ...]:
    """The types of parameters in the order of the arguments."""
    arrays = sum(isinstance(slot, _Array) for slot in slots)
    if arrays != external.memory or len(slots) - arrays != len(external.numbers):
        raise ArgumentCountError(
            f"kernel '{kernel}' has {external.memory} buffers and {len(external.numbers)} numbers, "
            f"and the arguments are {arrays} and {len(slots) - arrays}\n"
            "  hint: a length follows each array unless inject_lengths=False"
        )
    numbers = iter(external.numbers)
    return tuple(None if isinstance(slot, _Array) else next(numbers) for slot in slots)


def _filled(
    kernel: str, slots: Sequence[_Slot], types: Sequence[np.dtype[Any] | None] | None
) -> list[_Array | np.generic]:
    """Arrays and numbers as the parameters take them."""
    if types is not None and len(types) != len(slots):
        raise ArgumentCountError(
            f"kernel '{kernel}' has {len(types)} parameters, and the arguments fill {len(slots)}\n"
            "  hint: a length follows each array unless inject_lengths=False"
        )
    return [
        _filled_slot(kernel, slot, True if types is None else types[k])
        for k, slot in enumerate(slots)
    ]


def _filled_slot(
    kernel: str, slot: _Slot, type: np.dtype[Any] | bool | None
) -> _Array | np.generic:
    """A slot for a parameter of a type: None is memory, True is not known."""
    match slot:
        case _Array(position=position):
            if isinstance(type, np.dtype):
                raise _mismatch(kernel, f"argument {position} is an array", type)
            return slot
        case Length(elements=elements):
            length = np.int32(elements)
            if type is not True and type != length.dtype:
                raise _mismatch(kernel, "the length behind an array is an int32", type)
            return length
        case _Number(position=position, value=np.generic() as value):
            if type is not True and type != value.dtype:
                raise _mismatch(kernel, f"argument {position} is of {value.dtype}", type)
            return value
        case _Number(position=position, value=value):
            return _number(kernel, position, value, type)


def _number(
    kernel: str, position: int, value: Any, type: np.dtype[Any] | bool | None
) -> np.generic:
    """A Python number as the parameter's type, if it fits."""
    default = np.dtype(np.float32 if isinstance(value, float) else np.int32)
    wanted = default if type is True else type
    words = f"argument {position} is the Python {value.__class__.__name__} {value!r}"
    if not isinstance(wanted, np.dtype) or (isinstance(value, float) and wanted.kind != "f"):
        raise _mismatch(kernel, words, type)
    if wanted.kind in "iu" and not np.iinfo(wanted).min <= value <= np.iinfo(wanted).max:
        raise _mismatch(kernel, words, wanted)
    with np.errstate(over="ignore"):
        made: np.generic = wanted.type(value)
    return made


def _mismatch(kernel: str, what: str, type: np.dtype[Any] | bool | None) -> ArgumentTypeError:
    declared = type if isinstance(type, np.dtype) else "memory"
    return ArgumentTypeError(f"kernel '{kernel}': {what}, and its parameter is {declared}")
