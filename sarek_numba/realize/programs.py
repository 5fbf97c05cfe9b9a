"""A kernel that is compiled for a device, and what a schedule gives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sarek_numba.errors import ArgumentCountError, InvalidArgument, InvalidDimensions
from sarek_numba.ir.nodes import ParamDecl
from sarek_numba.ir.types import PartOf, Scalar, UserArgument
from sarek_numba.runtime import launch as launching
from sarek_numba.runtime.arguments import Arguments, converter, describe
from sarek_numba.runtime.device import Dimensions
from sarek_numba.runtime.dimensions import check_limits, dimensions, needs_wide_indices, shared_size
from sarek_numba.runtime.foreign import placed
from sarek_numba.runtime.handmade import arguments_of, check_argument, name_of
from sarek_numba.runtime.registry import Device, device


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A kernel and the device that it is compiled for. Made by `compile.program_for`."""

    device: Device
    analysed: launching.Analysed

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.analysed.kernel.name

    def bind(self, values: Sequence[Any]) -> Arguments:
        """The arguments of a launch, checked against what the kernel declares.

        Numbers of Python become those of their parameters. Raises ArgumentCountError,
        ArgumentTypeError, InvalidArgument.
        """
        kernel = self.analysed.kernel
        wanted = arguments_of(kernel)
        wanted += [[]] * (len(self.analysed.names) - len(wanted))  # the last ones are not used
        if len(values) != len(wanted):
            raise ArgumentCountError(
                f"kernel '{self.name}' takes {len(wanted)} arguments, and {len(values)} are given"
            )
        names = [name_of(params) for params in wanted]
        given = [_number(self.name, *each) for each in zip(names, wanted, values, strict=True)]
        arguments = describe(self.name, names, given, (None,) * len(given))
        placed(self.name, names, arguments.foreign, self.device)
        for params, name, kind, value in zip(wanted, names, arguments.kinds, given, strict=True):
            check_argument(self.name, name, params, kind, value)
        return arguments

    def check(
        self, arguments: Arguments, grid: Any, block: Any, shared_bytes: Any
    ) -> tuple[Dimensions, Dimensions, int]:
        """The dimensions of a launch that is checked as every launch is.

        Raises InvalidDimensions, LaunchError, CapabilityError.
        """
        name, device, analysed = self.name, self.device, self.analysed
        blocks, threads = dimensions(name, "grid", grid), dimensions(name, "block", block)
        shared = shared_size(name, shared_bytes)
        check_limits(name, blocks, threads, device.record)
        if needs_wide_indices(blocks, threads):
            raise InvalidDimensions(
                f"kernel '{name}' is compiled for indices of 32 bits: grid {blocks} of blocks "
                f"{threads} has more threads along an axis"
            )
        launching.check_warps(device, analysed, threads)
        launching.check_local(device, analysed, threads)
        launching.check(device, analysed, arguments, shared)
        return blocks, threads, shared

    def __reduce__(self) -> Any:
        """Its IR, which is compiled where the pickle is read, for the device of the same name."""
        analysed = self.analysed
        about = analysed.kernel, analysed.names, analysed.debug, analysed.grants
        return _remade, (self.device.name, *about)

    def __repr__(self) -> str:
        return f"<program {self.name} for {self.device.name}>"


def _remade(name: str, kernel: Any, names: Any, debug: bool, grants: Any) -> Program:
    target, analysed = device(name), launching.analyse(kernel, names, debug=debug, grants=grants)
    launching.check_capabilities(target, analysed)
    launching.compile_on(target, analysed)
    return Program(target, analysed)


def _number(kernel: str, name: str, params: Sequence[ParamDecl], value: Any) -> Any:
    """A number of Python as one of its parameter, anything else as it is."""
    if not params or not isinstance(value, int | float | complex) or isinstance(value, bool):
        return value
    if isinstance(value, np.generic):  # float64 is a float of Python too
        return value
    scalar, role = params[0].var.type, params[0].role
    if not isinstance(scalar, Scalar) or params[0].array is not None:
        return value
    if isinstance(role, PartOf):
        return np.dtype(f"complex{2 * scalar.bits}").type(value)
    if not isinstance(role, UserArgument) or isinstance(value, complex):
        return value
    if isinstance(value, float):
        return converter(scalar)(value) if scalar.is_float else value
    if scalar.is_float or (scalar.is_integer and scalar.minimum <= value <= scalar.maximum):
        return converter(scalar)(value)
    if scalar.is_integer:
        raise InvalidArgument(
            f"kernel '{kernel}': argument '{name}' is {value}, and {scalar.value} goes from "
            f"{scalar.minimum} to {scalar.maximum}"
        )
    return value
