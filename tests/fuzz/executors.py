"""Executors of generated kernels: CPython, and the oracle on what the front end makes of them."""

from __future__ import annotations

from functools import lru_cache
from types import FunctionType

import numpy as np
from numba.core import types

from sarek_interp.launch import execute
from sarek_numba.frontend.infer import infer
from sarek_numba.frontend.lower import lower
from sarek_numba.frontend.weak import WEAK_INT
from sarek_numba.ir.nodes import Kernel
from sarek_numba.ir.types import LengthOf, UserArgument
from sarek_numba.ir.verify import verify
from sarek_numba.verify.emulate import emulate
from tests.fuzz.generator import BLOCK, GRID, Arguments

ARGUMENT_TYPES = (
    *(types.Array(element, 1, "C") for element in (types.int32, types.uint8, types.float32)),
    WEAK_INT,
    WEAK_INT,
)


def emulated(function: FunctionType, arguments: Arguments) -> None:
    """Run in CPython, thread by thread."""
    emulate(function)[GRID, BLOCK](*arguments)


@lru_cache(maxsize=4)
def compiled(function: FunctionType) -> Kernel:
    """The verified kernel of a generated function."""
    kernel = lower(infer(function, ARGUMENT_TYPES))
    verify(kernel)
    return kernel


def on_oracle(function: FunctionType, arguments: Arguments) -> None:
    """Run on the oracle; a finding is an error."""
    kernel = compiled(function)
    report = execute(kernel, (GRID, 1, 1), (BLOCK, 1, 1), bound(kernel, arguments))
    if report.findings:
        raise RuntimeError(str(report.findings[0]))


def bound(kernel: Kernel, arguments: Arguments) -> list[object]:
    """A value for each parameter."""
    values: list[object] = []
    for parameter in kernel.params:
        match parameter.role:
            case UserArgument(argument=k) if parameter.array is not None:
                values.append(arguments[k].view(np.uint8))  # type: ignore[union-attr]
            case UserArgument(argument=k):
                values.append(np.int64(arguments[k]))  # type: ignore[arg-type]
            case LengthOf(argument=k):
                values.append(np.int32(arguments[k].size))  # type: ignore[union-attr]
            case role:
                raise AssertionError(f"no value for {role}")
    return values
