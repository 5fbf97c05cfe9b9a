"""A check of a second that a device computes what the oracle does: some kernels, bit for bit."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from sarek_numba.errors import CapabilityError, DeviationWarning
from sarek_numba.execute import run_vectors
from sarek_numba.ir import build
from sarek_numba.ir.nodes import Barrier, Expr, Kernel, make_kernel
from sarek_numba.ir.types import FLOAT32, FLOAT64, INT32, Scalar
from sarek_numba.runtime.registry import Device, oracle
from sarek_numba.verify.numerics import elementwise

_BLOCK = 64
_LENGTH = 1000  # no whole number of blocks
_BINS = 16


class Outcome(Enum):
    """What became of one kernel; a refusal is no fault."""

    SAME = "same bits"
    REFUSED = "refused"
    DIFFERS = "differs"
    FAILED = "failed"

    @property
    def is_fault(self) -> bool:
        return self in (Outcome.DIFFERS, Outcome.FAILED)


@dataclass(frozen=True, slots=True)
class Checked:
    """One kernel on one device; `text` says what is wrong, `seconds` includes compiling."""

    kernel: str
    outcome: Outcome
    text: str
    seconds: float


def parity(device: Device) -> tuple[Checked, ...]:
    """Every kernel of `KERNELS` on a device, against the oracle. Raises nothing of the device's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeviationWarning)
        return tuple(_checked(name, make(), device) for name, make in KERNELS.items())


def _checked(name: str, kernel: Kernel, device: Device) -> Checked:
    start = time.perf_counter()
    outcome, text = _compared(kernel, device)
    return Checked(name, outcome, text, time.perf_counter() - start)


def _compared(kernel: Kernel, device: Device) -> tuple[Outcome, str]:
    expected = _arguments(kernel)
    run_vectors(oracle(), kernel, expected, _BLOCK, -(-_LENGTH // _BLOCK))
    actual = _arguments(kernel)
    try:
        run_vectors(device, kernel, actual, _BLOCK, -(-_LENGTH // _BLOCK))
    except CapabilityError as refused:
        return Outcome.REFUSED, str(refused).splitlines()[0]
    except Exception as error:  # whatever a driver does is what is looked for
        return Outcome.FAILED, first_line(error)
    for got, right in zip(actual, expected, strict=True):
        differs = np.flatnonzero(got.view(np.uint8) != right.view(np.uint8))
        if len(differs):
            row = int(differs[0]) // got.itemsize
            return Outcome.DIFFERS, f"element {row} is {got[row]!r}, the oracle has {right[row]!r}"
    return Outcome.SAME, ""


def first_line(error: Exception) -> str:
    """The class of an error and the first line of its text."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _arguments(kernel: Kernel) -> list[npt.NDArray[Any]]:
    """Arrays for the kernel: zeros where it writes, the same random numbers where it reads."""
    generator = np.random.default_rng(5)
    found = []
    for param in kernel.params:
        if param.array is None:
            continue
        assert isinstance(param.array.element, Scalar)
        dtype = np.dtype(param.array.element.value)
        if param.array.writable:
            found.append(np.zeros(_LENGTH, dtype))
        elif dtype.kind == "f":
            found.append(generator.uniform(0.5, 100, _LENGTH).astype(dtype))
        else:
            found.append(generator.integers(-(2**31), 2**31, _LENGTH).astype(dtype))
    return found


# --- the kernels ----------------------------------------------------------------------------------


def _integers() -> Kernel:
    def results(given: Mapping[str, Expr]) -> list[Expr]:
        a, b = given["a"], given["b"]
        quotient, rest = build.floordiv(a, b), build.floormod(a, b)
        shifted = build.bitxor(build.shr(a, build.lit(INT32, 3)), b)
        return [reduce(build.add, (build.mul(a, b), quotient, rest, shifted))]

    return elementwise("integers", results, {"a": INT32, "b": INT32}, [INT32])


def _floats(scalar: Scalar) -> Kernel:
    def results(given: Mapping[str, Expr]) -> list[Expr]:
        a, b = given["a"], given["b"]
        root = build.intrinsic("sqrt", build.add(build.mul(a, a), build.mul(b, b)))
        return [build.sub(build.div(root, b), build.mul(a, b))]

    return elementwise(scalar.value, results, {"a": scalar, "b": scalar}, [scalar])


def _shared() -> Kernel:
    """Every block turns its elements around, in shared memory and behind a barrier."""
    fresh = build.Fresh()
    out, x = (
        build.array_param(fresh, "out", INT32, 0),
        build.array_param(fresh, "x", INT32, 1, writable=False),
    )
    length = build.length_param(fresh, "length", 0)
    tile = build.shared_decl(fresh, "tile", INT32, _BLOCK)
    i, t = fresh("i", INT32), fresh("t", INT32)
    inside = build.lt(i, length.var)
    body = (
        build.let(i, build.coordinate("global_idx", 0, INT32)),
        build.let(t, build.coordinate("thread_idx", 0, INT32)),
        build.store(tile.var, t, 0),
        build.if_(inside, [build.store(tile.var, t, build.read(x.var, i))]),
        Barrier(),
        build.if_(
            inside,
            [
                build.store(
                    out.var, i, build.read(tile.var, build.sub(build.lit(INT32, _BLOCK - 1), t))
                )
            ],
        ),
    )
    return make_kernel("shared", body, params=(out, x, length), locals=(tile,))


def _atomics() -> Kernel:
    """How many elements fall into each of a few bins."""
    fresh = build.Fresh()
    counts, x = (
        build.array_param(fresh, "counts", INT32, 0),
        build.array_param(fresh, "x", INT32, 1, writable=False),
    )
    length = build.length_param(fresh, "length", 1)
    i = fresh("i", INT32)
    bin_ = build.bitand(build.read(x.var, i), build.lit(INT32, _BINS - 1))
    body = (
        build.let(i, build.coordinate("global_idx", 0, INT32)),
        build.if_(build.lt(i, length.var), [build.atomic("add", counts.var, bin_, 1)]),
    )
    return make_kernel("atomics", body, params=(counts, x, length))


KERNELS: Mapping[str, Callable[[], Kernel]] = {
    "integers": _integers,
    "float32": lambda: _floats(FLOAT32),
    "float64": lambda: _floats(FLOAT64),
    "shared memory": _shared,
    "atomics": _atomics,
}
