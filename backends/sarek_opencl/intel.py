"""Faults of Intel's CPU runtime, and the kernels that must be kept from them.

It reorders float sums and products of a loop, as only fast math may, where threads are not
vectorised: in a block of fewer threads than a vector has, or in what is left over of a block
(2026.2; `for (int j = 0; j < n; j++) r *= e[i];` with four threads). A pragma before the loop keeps
it from that, and the vectorisation over threads as it is.

Its vectoriser (2026.2, pass `vplan-vec`) crashes the process on a loop whose threads leave it at
different times and in which one variable takes the old value of another, both having started equal
in all threads, where only the former is used afterwards:

    long a = 0, b = 1;
    for (int v = 0; v < get_global_id(0) % 40; v++) { long t = b; b = a + b; a = t; }
    out[get_global_id(0)] = a;

It compiles with a start that differs between threads, with a loop that is left together, and
without vectorisation. So the loop's variables are made to depend on the thread in front of it.

The vectoriser lays a thread's own array out lane by lane (element 0 of all lanes, element 1 of all
lanes, …), so that threads that read the same element read a vector. Then it takes an address that
threads choose between for one in an array laid out thread by thread (2026.2, blocks of at least
eight threads): each reads or writes what belongs to another, or the process ends.

    int v[4];                               // filled; b and c are arguments of the kernel
    out[i] = *(x[i] > 0 ? v + b : v + c);

Nothing here prints such addresses, but optimisation makes them of reads in both arms of a branch,
as in `if (x > 0) return v[k]; return v[k + 1];` in a function that a loop calls, and of an index
that is chosen. An array that is a field of a structure keeps the layout thread by thread: kernels
in which threads may so choose get that. It costs most where an array is gone through in step.

An array of the block is a variable of the program until a pass puts the block's own memory in its
place. Where LLVM has made one write of writes to two such arrays, through an address that depends
on the way, that pass changes the address there and forgets other uses of the arrays: part of the
kernel then works on memory that is no block's (2026.2, where threads are not vectorised: in blocks
that are not of whole vectors).

    local int a[21], b[21];                 // i: position in the block, n: 21
    if (i < n) {
        int x = p[i], y = x == 0 ? q[i] : 0, z = x == 1 ? q[i] : 0;
        a[i] = x;                           // made of it: where x is 0, a[i] = 0; then
        if (x == 0) b[i] = y;               // *(x == 0 ? b + i : a + i) = x == 0 ? y : x
        out[i] = z;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int x = a[i];                           // always 0
    out[i + n] = x == 0 ? b[i] : 0;
    out[i + 2 * n] = x;

So each such array is named once, in the address of its start, to which zero is added. Nothing says
that it is zero; it is the same for all threads of a block, so that their addresses stay in line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sarek_numba.codegen.dialect import Dialect
from sarek_numba.ir.nodes import (
    ArrayRead,
    Assign,
    Body,
    Expr,
    For,
    HelperFunction,
    Index,
    Kernel,
    Let,
    LetMut,
    LVar,
    VarRef,
    While,
)
from sarek_numba.ir.walk import walk_exprs, walk_stmts
from sarek_opencl.apart import STATEMENTS
from sarek_opencl.choices import chooses_between_elements

_IN_ORDER = "#pragma clang loop vectorize(disable)"
_THREAD_BY_THREAD = """struct {{ {type} elements[{length}]; }} {holder};
{type} *{name} = {holder}.elements;"""
_NAMED_ONCE = """{space} {type} {holder}[{length}];
{space} {type} *{name} = {holder} + (get_group_id(0) >> 63);"""


def dialect_for(kernel: Kernel, dialect: Dialect) -> Dialect:
    """The dialect with which Intel's compiler keeps the meaning of the kernel, and survives it."""
    dialect = replace(dialect, accumulating_loop=_IN_ORDER, shared_array=_NAMED_ONCE)
    if chooses_between_elements(kernel):
        dialect = replace(dialect, thread_array=_THREAD_BY_THREAD)
    if _rotates(kernel) or any(map(_rotates, kernel.functions)):
        return replace(dialect, keep_apart=STATEMENTS)
    return dialect


def _rotates(function: Kernel | HelperFunction) -> bool:
    """Whether a loop moves values between variables that start alike in all threads."""
    loops = [s for s in walk_stmts(function.body) if isinstance(s, For | While)]
    moved = {pair for loop in loops for pair in _moves(loop.body)}
    if not moved:
        return False
    equal = set(_start_equal(function))
    return any(target in equal and source in equal for target, source in moved)


def _moves(body: Body) -> Iterator[tuple[int, int]]:
    """Pairs of variables, by id, of which the first takes a value of the second in the body.

    Both are assigned there; the value may go by way of a variable that the body declares.
    """
    assigned: set[int] = set()
    holds: dict[int, int] = {}
    pairs: list[tuple[int, int]] = []
    for stmt in walk_stmts(body):
        match stmt:
            case Let(var=var, value=VarRef(var=source)) | LetMut(var=var, value=VarRef(var=source)):
                holds[var.id] = holds.get(source.id, source.id)
            case Assign(target=LVar(var=var), value=value):
                assigned.add(var.id)
                if isinstance(value, VarRef):
                    pairs.append((var.id, holds.get(value.var.id, value.var.id)))
            case _:
                pass
    return (pair for pair in pairs if pair[0] != pair[1] and assigned.issuperset(pair))


def _start_equal(function: Kernel | HelperFunction) -> Iterator[int]:
    """Variables whose first value may be the same in all threads."""
    for stmt in walk_stmts(function.body):
        if isinstance(stmt, LetMut) and (stmt.value is None or _is_uniform(stmt.value, function)):
            yield stmt.var.id


def _is_uniform(value: Expr, function: Kernel | HelperFunction) -> bool:
    if isinstance(function, HelperFunction):  # what it is given may be equal
        given = {var.id for var in function.params}
    else:
        given = {decl.var.id for decl in function.params}
    return all(
        e.var.id in given if isinstance(e, VarRef) else not isinstance(e, ArrayRead | Index)
        for e in walk_exprs(value)
    )
