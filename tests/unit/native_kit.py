"""Runs IR written by hand on the native device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from sarek_native.driver import NativeDriver
from sarek_numba.ir.build import Fresh, array_param, coordinate, for_, read, scalar_param, store
from sarek_numba.ir.nodes import Direction, Expr, Kernel, ParamDecl, VarRef, make_kernel
from sarek_numba.ir.types import INT64, Scalar

Dimensions = tuple[int, int, int]
Operation = Callable[..., Expr]


@cache
def driver() -> NativeDriver:
    return NativeDriver()


def launch(
    kernel: Kernel,
    arguments: Sequence[Any],
    grid: Dimensions = (1, 1, 1),
    block: Dimensions = (64, 1, 1),
    shared_bytes: int = 0,
    passes: bool = True,
) -> None:
    """Run a kernel on arrays, which it may change, and NumPy scalars."""
    program = driver().prepare(kernel) if passes else driver().program(kernel)
    bound = [
        driver().bind(a.reshape(-1).view(np.uint8), read=True, written=True)
        if isinstance(a, np.ndarray)
        else a
        for a in arguments
    ]
    program.launch(grid, block, shared_bytes, bound)


def arrays(fresh: Fresh, *elements: Scalar) -> list[ParamDecl]:
    return [array_param(fresh, f"a{k}", element, k) for k, element in enumerate(elements)]


def map_kernel(inputs: Sequence[Scalar], operations: Sequence[tuple[Operation, Scalar]]) -> Kernel:
    """Each operation of the elements of all inputs, into an output of its own.

    The threads of one block take turns over the elements, so the last turn has lanes left out.
    """
    fresh = Fresh()
    params = arrays(fresh, *inputs, *(result for _, result in operations))
    count = scalar_param(fresh, "count", INT64, len(params))
    i = fresh("i", INT64)
    elements = [read(param.var, i) for param in params[: len(inputs)]]
    outputs = params[len(inputs) :]
    body = [
        store(output.var, i, operation(*elements))
        for output, (operation, _) in zip(outputs, operations, strict=True)
    ]
    loop = for_(
        i,
        coordinate("thread_idx"),
        VarRef(count.var),
        *body,
        step=coordinate("block_dim"),
        direction=Direction.UPTO,
    )
    return make_kernel("map", (loop,), params=(*params, count))


def mapped(
    inputs: Sequence[np.ndarray[Any, Any]],
    operations: Sequence[tuple[Operation, Scalar]],
    passes: bool = True,
) -> list[np.ndarray[Any, Any]]:
    """The outputs of `map_kernel`."""
    types = [Scalar(array.dtype.name) for array in inputs]
    outputs = [np.zeros(inputs[0].shape, result.value) for _, result in operations]
    count = np.int64(inputs[0].size)
    launch(map_kernel(types, operations), [*inputs, *outputs, count], passes=passes)
    return outputs


def same(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Where two arrays agree bit for bit; any NaN agrees with any other."""
    if a.dtype.kind != "f":
        return np.asarray(a == b)
    both = np.isnan(a) & np.isnan(b)
    return np.asarray(both | ((a == b) & (np.signbit(a) == np.signbit(b))))
