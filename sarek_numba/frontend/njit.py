"""Vectors as arguments of functions of `numba.njit`, which work on their elements on the host.

Numba asks a vector for its type (`_numba_type_`), and gets one that is an array in all but how it
comes out of the object: the vector brings its elements to the host first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.extending import NativeValue, box, register_model, unbox
from numba.np.numpy_support import from_dtype


class VectorType(types.Array):  # type: ignore[misc] # Numba ships no types
    """The elements of a vector on the host."""

    @property
    def as_array(self) -> Any:
        """The array that it is within a function."""
        return types.Array(
            self.dtype, self.ndim, self.layout, readonly=not self.mutable, aligned=self.aligned
        )


def vector_type(array: np.ndarray[Any, Any]) -> VectorType:
    """The type of a vector whose elements an array describes."""
    flags = array.flags
    layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
    return VectorType(
        from_dtype(array.dtype),
        array.ndim,
        layout,
        readonly=not flags.writeable,
        aligned=bool(flags.aligned),
    )


register_model(VectorType)(models.ArrayModel)


@unbox(VectorType)  # type: ignore[untyped-decorator] # Numba ships no types
def _unbox(kind: Any, vector: Any, c: Any) -> Any:
    builder = c.builder
    value = cgutils.alloca_once(builder, c.context.get_value_type(kind.as_array), zfill=True)
    failed = cgutils.alloca_once_value(builder, cgutils.true_bit)
    array = c.pyapi.call_method(vector, "_elements_on_host")
    with builder.if_then(cgutils.is_not_null(builder, array)):
        native = c.unbox(kind.as_array, array)
        builder.store(native.value, value)
        builder.store(native.is_error, failed)
        c.pyapi.decref(array)
    return NativeValue(builder.load(value), is_error=builder.load(failed), cleanup=native.cleanup)


@box(VectorType)  # type: ignore[untyped-decorator] # as above
def _box(kind: Any, value: Any, c: Any) -> Any:
    return c.box(kind.as_array, value)
