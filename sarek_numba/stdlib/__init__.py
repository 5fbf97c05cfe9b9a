"""Parallel algorithms written in the kernel language, as functions of NumPy arrays.

Each takes host arrays, runs on `device` (a name or a device; the one of `sarek.use_device` if left
out) and returns new arrays; inputs are only read. Arguments are checked before anything is
launched: ArgumentTypeError for a wrong kind or element type, InvalidArgument for a wrong value.
Results do not depend on the device: the order of floating-point operations is fixed by the length.

`block` holds the collectives of one block, for use inside kernels: they are `sarek.block`.
"""

from __future__ import annotations

from sarek_numba.stdlib import block
from sarek_numba.stdlib.compact import compact
from sarek_numba.stdlib.fourier import fft, ifft
from sarek_numba.stdlib.graph import bfs
from sarek_numba.stdlib.histogram import histogram
from sarek_numba.stdlib.matrix import matmul, transpose
from sarek_numba.stdlib.reduce import reduce_max, reduce_min, reduce_prod, reduce_sum
from sarek_numba.stdlib.scan import exclusive_scan, inclusive_scan
from sarek_numba.stdlib.sort import sort, sort_by_key

__all__ = [
    "bfs",
    "block",
    "compact",
    "exclusive_scan",
    "fft",
    "histogram",
    "ifft",
    "inclusive_scan",
    "matmul",
    "reduce_max",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "sort",
    "sort_by_key",
    "transpose",
]
