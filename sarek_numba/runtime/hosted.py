"""Vectors among values, as arrays of the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from sarek_numba.runtime.soa import SoAVector
from sarek_numba.runtime.vector import Vector


@contextmanager
def on_host(values: Sequence[Any]) -> Iterator[list[Any]]:
    """The values with NumPy's arrays in place of vectors, for the body of `with` to read and write.

    Afterwards the host's elements are the newest, of vectors that are not read only.
    """
    with ExitStack() as stack:
        yield [
            stack.enter_context(value.host())
            if isinstance(value, Vector | SoAVector) and not value.readonly
            else array_on_host(value)
            for value in values
        ]


def array_on_host(value: Any) -> Any:
    """The elements of a vector, current, as an array that must not be written; others as is."""
    if isinstance(value, SoAVector):
        return np.asarray(value)
    return value._fetch(value._array) if isinstance(value, Vector) else value
