"""Rules of `sarek.coopmat`: fragments agree, and lie in memory as devices load them."""

from __future__ import annotations

from typing import Any

from numba.core import types

from sarek_numba.errors import UnsupportedConstruct
from sarek_numba.frontend import warps
from sarek_numba.frontend.extensions import CompileTime, FragmentType, space_of
from sarek_numba.frontend.matrices import LAYOUTS, USES, Config, coopmat
from sarek_numba.frontend.rules.arrays import (
    check_stored,
    indexed,
    is_captured_array,
    require_writable,
)
from sarek_numba.frontend.rules.registry import rule
from sarek_numba.frontend.typed import Fragment, Matrix, Operation, Type
from sarek_numba.frontend.weak import (
    Refusal,
    constant_of,
    describe,
    is_whole,
    operand,
    type_of,
)
from sarek_numba.ir.matrices import ACCUMULATORS, fragments_of, row_alignment
from sarek_numba.ir.types import MemSpace, Scalar

_ROW_MAJOR = CompileTime(LAYOUTS[0])
_CONFIG_HINT = "make a sarek.coopmat.Config around the kernel, and give its name"


@rule(coopmat.fragment)
def fragment(config: Type, use: Type) -> Operation:
    warps.width()
    given = _object(config)
    if not isinstance(given, Config):
        with operand(0):
            raise Refusal(
                f"sarek.coopmat.fragment() takes a configuration, not {describe(config)}",
                _CONFIG_HINT,
            )
    name = _object(use)
    if name not in USES:
        with operand(1):
            raise Refusal(
                f"the use of a fragment is a constant string, not {describe(use)}"
                if not isinstance(name, str)
                else f"a configuration has no fragment {name!r}",
                f"write {', '.join(map(repr, USES[:-1]))} or {USES[-1]!r}",
            )
    made = FragmentType(given, str(name))
    return Operation(Fragment(given.configuration, made.use), (), made)


def _object(type: Type) -> Any:
    return type.value if isinstance(type, CompileTime) else None


@rule(Config)
def config(*args: Type, **kws: Type) -> Operation:
    raise Refusal(
        "sarek.coopmat.Config() is called outside of kernels", _CONFIG_HINT, UnsupportedConstruct
    )


def _fragment(name: str, position: int, given: Type) -> FragmentType:
    if isinstance(given, FragmentType):
        return given
    with operand(position):
        raise Refusal(
            f"sarek.coopmat.{name}() takes a fragment, not {describe(given)}",
            'declare one, as in f = sarek.coopmat.fragment(config, "a")',
        )


# --- memory ---------------------------------------------------------------------------------------


def _tile(
    name: str, fragment: Type, array: Type, index: Type, stride: Type, layout: Type
) -> Operation:
    held = _fragment(name, 0, fragment)
    if not isinstance(array, types.Array):
        hint = "write the array and the index as two arguments, as in (f, a, i, stride)"
        if is_captured_array(array):
            hint = "pass the array as an argument"
        with operand(1):
            raise Refusal(f"sarek.coopmat.{name}() takes an array, not {describe(array)}", hint)
    with operand(1):
        _check_array(held, array)
    with operand(2):
        place = indexed(array, index)
        if isinstance(place, types.Array):
            raise Refusal(
                f"sarek.coopmat.{name}() takes the place of one element, not {describe(place)}",
                "give an index for each axis, as a tuple of ints",
            )
    column_major = _is_column_major(layout)
    _check_places(held, array, index, stride, column_major)
    what = Matrix(name, held.config.configuration, column_major)
    return Operation(what, (held, array, index, types.int64), types.none)


def _check_array(held: FragmentType, array: Type) -> None:
    wanted = type_of(Scalar(held.component))
    if array.dtype != wanted:
        raise Refusal(
            f"a fragment {held.use!r} of {wanted} is not in {describe(array)}",
            f"use an array of {wanted}, or another configuration",
        )
    if space_of(array) not in (MemSpace.GLOBAL, MemSpace.SHARED):
        raise Refusal(
            f"a fragment lies in memory that threads share, not in {describe(array)}",
            "use an array argument, or one of sarek.shared.array",
        )
    if array.layout not in ("C", "F"):
        raise Refusal(
            f"a fragment lies in contiguous memory, and {describe(array)} may have gaps",
            "annotate it as contiguous, as in sarek.int8[:, ::1], or copy it to shared memory",
        )
    if not array.aligned:
        raise Refusal(
            "a fragment lies in aligned memory, and these elements are packed",
            "align the records, as in numpy.dtype([...], align=True)",
        )


def _is_column_major(layout: Type) -> bool:
    given = _object(layout)
    if given not in LAYOUTS:
        with operand("layout"):
            raise Refusal(
                f"the layout of a fragment is a constant string, not {describe(layout)}"
                if not isinstance(given, str)
                else f"there is no layout {given!r}",
                f"write {LAYOUTS[0]!r} or {LAYOUTS[1]!r}",
            )
    return bool(given == LAYOUTS[1])


def _check_places(
    held: FragmentType, array: Type, index: Type, stride: Type, column_major: bool
) -> None:
    """Refuse a stride, or an index, that is known to begin a row where no device may load one."""
    if not is_whole(stride):
        with operand(3):
            raise Refusal(
                f"the stride of a fragment is an integer, not {describe(stride)}",
                "give the elements between the beginnings of two rows",
            )
    kind = fragments_of(held.config.configuration)[held.use]
    wanted = row_alignment(kind, column_major)
    size = wanted * kind.component.bits // 8
    row = "columns" if column_major else "rows"
    step = constant_of(stride)
    with operand(3):
        if step is not None and not 0 <= int(step) < 1 << 31:
            raise Refusal(f"the stride of a fragment is {step}", "give one from 0 to 2**31 - 1")
        if step is not None and int(step) % wanted:
            raise Refusal(
                f"a stride of {step} elements begins {row} elsewhere than at multiples of "
                f"{size} bytes",
                f"use a multiple of {wanted}: pad the {row} of the matrix",
            )
    first = constant_of(index) if array.ndim == 1 else None
    with operand(2):
        if first is not None and int(first) % wanted:
            raise Refusal(
                f"element {first} is not at a multiple of {size} bytes, where {row} of this "
                "fragment begin",
                f"use a multiple of {wanted}",
            )


@rule(coopmat.load)
def load(
    fragment: Type, array: Type, index: Type, stride: Type, layout: Type = _ROW_MAJOR
) -> Operation:
    return _tile("load", fragment, array, index, stride, layout)


@rule(coopmat.store)
def store(
    fragment: Type, array: Type, index: Type, stride: Type, layout: Type = _ROW_MAJOR
) -> Operation:
    found = _tile("store", fragment, array, index, stride, layout)
    with operand(1):
        require_writable(array)
    return found


# --- fragments alone ------------------------------------------------------------------------------


@rule(coopmat.muladd)
def muladd(result: Type, a: Type, b: Type, c: Type) -> Operation:
    given = (result, a, b, c)
    held = [_fragment("muladd", position, each) for position, each in enumerate(given)]
    config = held[0].config
    for position, (name, each) in enumerate(zip(("result", "a", "b", "c"), held, strict=True)):
        with operand(position):
            if each.config != config:
                raise Refusal(
                    f"the fragments of sarek.coopmat.muladd() are of different configurations: "
                    f"{config!r} and {each.config!r}",
                    "declare all four for one configuration",
                )
            if each.use != name and not _may_stand_for(each, name):
                raise Refusal(
                    f"sarek.coopmat.muladd() takes a fragment {name!r} here, not {each.use!r}",
                    "the order is muladd(result, a, b, c)",
                )
    return Operation(Matrix("muladd", config.configuration), given, types.none)


def _may_stand_for(held: FragmentType, use: str) -> bool:
    """Sums go on: what one multiply-add gave is what the next one adds to."""
    of_sums = held.use in ACCUMULATORS and use in ACCUMULATORS
    return of_sums and held.config.c == held.config.result


@rule(coopmat.fill)
def fill(fragment: Type, value: Type) -> Operation:
    held = _fragment("fill", 0, fragment)
    element = type_of(Scalar(held.component))
    with operand(1):
        check_stored(value, element)
    return Operation(Matrix("fill", held.config.configuration), (held, element), types.none)
