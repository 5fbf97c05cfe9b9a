"""From a launch that went the long way to the functions that do the next one like it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sarek_numba.ir.nodes import ParamDecl
from sarek_numba.ir.types import (
    HALVES,
    DynamicSharedLength,
    LengthOf,
    OffsetOf,
    Pair,
    PartOf,
    Scalar,
    ShapeOf,
    StrideOf,
    Threads,
    UserArgument,
)
from sarek_numba.passes.coarsen import launched
from sarek_numba.runtime import launch as launching
from sarek_numba.runtime.arguments import ELEMENTS, Arguments, Kind, PythonNumber, Sizes
from sarek_numba.runtime.device import Dimensions
from sarek_numba.runtime.memory import address, alignment_of, extent, least_unit
from sarek_numba.runtime.plans import (
    ArrayCheck,
    Attempt,
    BoolCheck,
    Check,
    ComplexCheck,
    Extent,
    Fill,
    Fixed,
    FloatCheck,
    Guard,
    IntCheck,
    Length,
    Memory,
    NoneCheck,
    Number,
    Offset,
    PairCheck,
    Part,
    Plan,
    ScalarCheck,
    Stride,
)
from sarek_numba.runtime.registry import Device
from sarek_numba.runtime.storage import Access
from sarek_numba.runtime.vector import Vector
from sarek_numba.runtime.window import window_of

_INT32, _INT64 = Scalar.INT32, Scalar.INT64


def attempt_of(
    target: Device,
    analysed: launching.Analysed,
    guards: tuple[Guard, ...],
    known: Sequence[Plan],
    given: Sequence[Any],
    arguments: Arguments,
    grid: Dimensions,
    block: Dimensions,
    shared_bytes: int,
) -> tuple[Plan, Attempt] | None:
    """A plan of launches like one that went well, and an attempt that follows it.

    None where there can be none, or one of those that are known describes the launch, although it
    did not take place by it: another one would not either.
    """
    plans = target.driver.plans
    if plans is None or launching.reports(target, analysed):
        return None
    checks = checks_of(given, arguments, analysed)
    if checks is None:
        return None
    program = launching.program_of(target, analysed, grid, block)
    fills = fills_of(program.params, checks, Sizes(shared_bytes, grid[0] * block[0]))
    if fills is None:
        return None
    plan = Plan(
        kernel=analysed.kernel.name,
        program=program,
        grid=launched(program.params, grid),
        block=block,
        shared_bytes=shared_bytes,
        guards=guards,
        checks=checks,
        fills=fills,
        apart=analysed.restrict,
    )
    if any(plan.is_like(other) for other in known):
        return None
    attempt = plans.attempt(plan)
    return None if attempt is None else (plan, attempt)


def note_vectors(target: Device, given: Sequence[Any], analysed: launching.Analysed) -> None:
    """After a launch: which vectors the next one like it would find where it needs them."""
    queue = window_of(target.driver)
    for position, value in enumerate(given):
        if isinstance(value, Vector):
            value._storage.note(target.driver.memory, _access(analysed, position), queue)


def _access(analysed: launching.Analysed, position: int) -> Access | None:
    if position in analysed.writes:
        return Access.WRITE
    return Access.READ if position in analysed.reads else None


def checks_of(
    given: Sequence[Any], arguments: Arguments, analysed: launching.Analysed
) -> tuple[Check, ...] | None:
    """Checks for arguments like those given; None where plans do not describe one of them."""
    arrangement = arguments.arrangement
    if arrangement.reach >= 2**31 or any(region.staging for region in arrangement.regions):
        return None
    if not all(_starts_region(arguments, position) for position in arguments.arrays):
        return None
    checks: list[Check] = []
    for position, value in enumerate(given):
        check: Check | None
        if isinstance(value, np.ndarray | Vector):
            check = _array_check(value, _access(analysed, position))
        else:
            check = _scalar_check(value, arguments.kinds[position])
        if check is None:
            return None
        checks.append(check)
    return tuple(checks)


def _starts_region(arguments: Arguments, position: int) -> bool:
    """Whether an array's lowest byte is the first of what is bound for it."""
    array = arguments.values[position]
    region = arguments.arrangement.regions[arguments.placement(position).region]
    return extent(array, address(array))[0] == region.start


def _array_check(given: Any, access: Access | None) -> ArrayCheck | None:
    array = given._array if type(given) is Vector else given
    if type(array) is not np.ndarray:
        return None
    flags, dtype = array.flags, array.dtype
    if dtype not in ELEMENTS and (dtype.names is None or not array.ndim):
        return None
    return ArrayCheck(
        vector=array is not given,
        dtype=dtype,
        ndim=array.ndim,
        contiguous=(flags.c_contiguous, flags.f_contiguous),
        writable=flags.writeable,
        alignment=alignment_of(array),
        most_bytes=least_unit(array) * 2**31 - 1,
        access=access,
    )


def _scalar_check(value: Any, kind: Kind) -> Check | None:
    if isinstance(kind, Scalar) and kind in HALVES:
        return None  # a half is passed as a float32
    if value is None:
        return NoneCheck()
    if type(value) is bool:
        return BoolCheck()
    if type(value) is int:
        return _int_check(value, kind)
    if type(value) is float:
        return FloatCheck(kind is Scalar.FLOAT32)
    if type(value) is complex:
        return ComplexCheck(isinstance(kind, Pair) and kind.part is Scalar.FLOAT32)
    if isinstance(value, np.generic):
        element = ELEMENTS.get(value.dtype)
        if isinstance(element, Scalar) and type(value) is np.dtype(element.value).type:
            return ScalarCheck(type(value), element)
        if isinstance(element, Pair) and type(value) is np.dtype(element.value).type:
            return PairCheck(type(value), element.part)
    return None


def _int_check(value: int, kind: Kind) -> IntCheck | None:
    """The ints that are of the same kind."""
    if kind is PythonNumber.INT:
        return IntCheck(_INT32.minimum, _INT32.maximum)
    if kind is PythonNumber.WIDE_INT:
        return (
            IntCheck(_INT32.maximum + 1, _INT64.maximum)
            if value > 0
            else IntCheck(_INT64.minimum, _INT32.minimum - 1)
        )
    if isinstance(kind, Scalar) and kind.is_integer:
        return IntCheck(max(kind.minimum, _INT64.minimum), min(kind.maximum, _INT64.maximum))
    if kind is PythonNumber.FLOAT or (isinstance(kind, Scalar) and kind.is_float):
        return IntCheck(_INT64.minimum, _INT64.maximum)
    return None


def fills_of(
    params: Sequence[ParamDecl], checks: Sequence[Check], sizes: Sizes
) -> tuple[Fill, ...] | None:
    """What fills each parameter; None where plans do not describe one of them."""
    fills = [_fill(param, checks, sizes) for param in params]
    found = tuple(fill for fill in fills if fill is not None)
    return found if len(found) == len(fills) else None


def _fill(param: ParamDecl, checks: Sequence[Check], sizes: Sizes) -> Fill | None:
    type = param.var.type
    match param.role:
        case UserArgument(argument=position) if param.array is not None:
            return Memory(position)
        case _ if not isinstance(type, Scalar):
            return None
        case UserArgument(argument=position):
            return Number(position, type) if _takes(type, checks[position]) else None
        case PartOf(argument=position, part=part):
            return Part(position, part, type) if _has_parts(type, checks[position]) else None
        case LengthOf(argument=position):
            return Length(position, type)
        case ShapeOf(argument=position, axis=axis):
            return Extent(position, axis, type)
        case StrideOf(argument=position, axis=axis):
            return Stride(position, axis, type)
        case OffsetOf(argument=position):
            check = checks[position]
            is_strided = isinstance(check, ArrayCheck) and check.strided
            return Offset(position, type) if is_strided else Fixed(0, type)
        case DynamicSharedLength():
            return Fixed(sizes.shared_bytes, type)
        case Threads():
            return Fixed(sizes.threads, type)
        case _:  # records, reports
            return None


def _has_parts(type: Scalar, check: Check) -> bool:
    """Whether the parts of every complex number that passes a check are of a type."""
    match check:
        case ComplexCheck():
            return type.is_float
        case PairCheck(part=part):
            return part is type
        case _:
            return False


def _takes(type: Scalar, check: Check) -> bool:
    """Whether every number that passes a check is one of a type, but for rounding."""
    match check:
        case IntCheck(least=least, most=most):
            if type.is_float:
                return True
            return type.is_integer and type.minimum <= least and most <= type.maximum
        case FloatCheck():
            return type.is_float
        case ScalarCheck(scalar=scalar):
            return scalar is type
        case BoolCheck():
            return type is Scalar.BOOL
        case _:
            return False
