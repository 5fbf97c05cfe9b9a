"""A fault of PoCL's work-group function generator, and how kernels are kept from it.

It takes a variable to be the same for all threads where every value assigned to it is (PoCL 3.0 and
5.0), and keeps such a variable once for the work-group when it lives across a barrier. A counter of
a loop that threads leave at different times differs afterwards all the same:

    int count = 0;
    while (count < 8 && x[get_local_id(0)] <= 3) count += 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_local_id(0)] = count;           // the same, wrong number in all threads

Around such a loop the variable takes in the sign bit of the thread's position: zero, though nothing
says so where that analysis runs. Before the loop it makes the loop's values depend on the thread;
after it alone it would do too, if the compiler did not move it behind the barrier.

PoCL 5.0 (LLVM 16) also ends the process with failed assertions on some kernels in which a barrier
stands in the `else` of a loop that `break` leaves ("Cannot add context restore for a PHI node at
the region entry"); PoCL 3.0 compiles them. Nothing is done about that here.

It keeps the local arrays of all threads of a block on the stack of one of its own threads, and ends
the process where that overflows, without a word.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from sarek_numba.codegen.dialect import Dialect
from sarek_numba.ir.nodes import Barrier, Kernel
from sarek_numba.ir.walk import bodies_of_kernel, walk_stmts
from sarek_opencl.apart import STATEMENTS

# Bytes of the stack of a new thread where nothing limits it (glibc).
_STACK = 2 * 2**20


def is_pocl(device: Any) -> bool:
    """Whether PoCL drives a device."""
    return bool(device.platform.name == "Portable Computing Language")


def local_bytes() -> int:
    """Bytes for the local arrays of a block: half a stack, for other values lie on it too."""
    if sys.platform == "win32":
        return _STACK // 2
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return (_STACK if limit == resource.RLIM_INFINITY else limit) // 2


def dialect_for(kernel: Kernel, dialect: Dialect) -> Dialect:
    """The dialect with which PoCL keeps variables of threads apart."""
    bodies = bodies_of_kernel(kernel)
    if any(isinstance(stmt, Barrier) for body in bodies for stmt in walk_stmts(body)):
        return replace(dialect, keep_apart=STATEMENTS)
    return dialect
