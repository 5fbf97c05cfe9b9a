"""Cooperative matrices in a C-like language: one line for each operation of a fragment.

In: operations of verified, legalised IR. Out: a declaration of what a thread holds, or a call of a
function that the dialect's `Matrices` names; the program defines it as it does any other function
of a dialect (`Dialect.word_prologue`). A place is a pointer to the fragment's first component, in
memory that the language calls by `space`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sarek_numba.errors import InvalidIR
from sarek_numba.ir.nodes import (
    CMDecl,
    CMFill,
    CMLoad,
    CMMulAdd,
    CMStore,
    Coopmat,
    CoopmatConfig,
    Fragment,
    Var,
)
from sarek_numba.ir.types import Array, MemSpace

if TYPE_CHECKING:
    from sarek_numba.codegen.statements import Statements


class Matrices(Protocol):
    """How a language spells operations on fragments. Each raises InvalidIR for what it cannot."""

    def declare(self, name: str, fragment: Fragment) -> str:
        """A fragment of zeros."""

    def fill(self, name: str, fragment: Fragment, value: str) -> str:
        """Give all components a value; that of a half is its bits."""

    def load(
        self, name: str, fragment: Fragment, space: str, place: str, stride: str, column_major: bool
    ) -> str:
        """Fill a fragment from memory."""

    def store(
        self, name: str, fragment: Fragment, space: str, place: str, stride: str, column_major: bool
    ) -> str:
        """Write a fragment to memory."""

    def multiply_add(self, config: CoopmatConfig, result: str, a: str, b: str, c: str) -> str:
        """result = a @ b + c; `c` may be `result`."""


def saturating_definition(head: str, count: str) -> str:
    """A multiply-add of bytes in C++ whose sums, int or unsigned int as `Whole` says, saturate.

    By construction once for all of a sum: that of the products alone is far within an int, and is
    added to c in 64 bits. A thread holds `count` of them, those of unsigned int as the same bits.
    """
    return f"""\
template <typename Whole, typename Product, int m, int n, int k>
{head} void matrix_multiply_add_saturating(
    int *d, const unsigned int *a, const unsigned int *b, const int *c) {{
    const int count = {count};
    const long long lowest = (Whole)-1 < (Whole)1 ? -2147483648LL : 0LL;
    const long long highest = lowest + 4294967295LL;
    int products[count] = {{}};
    matrix_multiply_add<Product, m, n, k>(products, a, b, products);
    #pragma unroll
    for (int i = 0; i < count; i++) {{
        long long sum = (long long)(Whole)c[i] + products[i];
        d[i] = (int)(sum < lowest ? lowest : sum > highest ? highest : sum);
    }}
}}"""


def print_matrix(printer: Statements, stmt: Coopmat) -> None:
    """Print one operation. Raises InvalidIR where the language has none."""
    dialect, names = printer.dialect, printer.fragments
    if dialect.matrices is None:
        raise InvalidIR(f"{dialect.name} has no spelling for cooperative matrices")
    spelling = dialect.matrices
    match stmt.op:
        case CMDecl(name=name, fragment=fragment):
            names[name] = printer.namer.name(name)
            printer.line(f"{spelling.declare(names[name], fragment)};")
        case CMFill(target=name, fragment=fragment, value=value):
            text = spelling.fill(names[name], fragment, printer.value(value))
            printer.line(f"{text};")
        case CMLoad(target=name, fragment=fragment, source=array) as op:
            given = _place(printer, array, op)
            printer.line(f"{spelling.load(names[name], fragment, *given, op.column_major)};")
        case CMStore(source=name, fragment=fragment, target=array) as op:
            given = _place(printer, array, op)
            printer.line(f"{spelling.store(names[name], fragment, *given, op.column_major)};")
        case CMMulAdd(target=target, a=a, b=b, c=c, config=config):
            held = (names[each] for each in (target, a, b, c))
            printer.line(f"{spelling.multiply_add(config, *held)};")


def _place(printer: Statements, array: Var, op: CMLoad | CMStore) -> tuple[str, str, str]:
    """Space, pointer and stride."""
    space = array.type.space if isinstance(array.type, Array) else MemSpace.GLOBAL
    place = f"{printer.names[array.id]} + ({printer.index(op.index)})"
    return printer.dialect.pointer_space[space], place, printer.index(op.stride)
