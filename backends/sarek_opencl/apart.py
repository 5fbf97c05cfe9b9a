"""Statements that make a variable depend on the thread, and change nothing.

They take in the sign bit of the thread's position: zero, though nothing says so where a compiler
decides which variables are the same in all threads.
"""

from __future__ import annotations

from sarek_numba.ir.types import Scalar

_ZERO = "(get_local_id(0) | get_local_id(1) | get_local_id(2)) >> 63"
_INTEGER = f"{{0}} |= {_ZERO};"
STATEMENTS = {scalar: _INTEGER for scalar in Scalar if scalar.is_integer} | {
    Scalar.BOOL: f"{{0}} = {{0}} || {_ZERO};",
    Scalar.FLOAT32: f"{{0}} = as_float(as_uint({{0}}) | (uint)({_ZERO}));",
    Scalar.FLOAT64: f"{{0}} = as_double(as_ulong({{0}}) | {_ZERO});",
}
