"""Declarations, helpers and kernels of Sarek IR; see `ir.nodes`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sarek_numba.display import code
from sarek_numba.ir.expressions import Expr
from sarek_numba.ir.native import NativeFunction
from sarek_numba.ir.statements import Body
from sarek_numba.ir.types import ArrayInfo, ElementType, Role, Scalar
from sarek_numba.ir.values import Var, span_field
from sarek_numba.span import Span


@dataclass(frozen=True, slots=True)
class ParamDecl:
    """A parameter; `array` is given for arrays. `role` says what the launch fills it with."""

    var: Var
    array: ArrayInfo | None
    role: Role


@dataclass(frozen=True, slots=True)
class LocalDecl:
    """A local of the whole kernel or helper; `value` is an ArrayCreate for an array per thread."""

    var: Var
    value: Expr | None = None
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class SharedDecl:
    """A shared array of `size` elements; without a size it views the dynamic region.

    `offset` (bytes from the start of the dynamic region) counts only without a size.
    """

    var: Var
    element: ElementType
    size: Expr | None
    offset: int = 0
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True)
class ConstDecl:
    """A constant array, its values as bit patterns in C order."""

    var: Var
    element: Scalar
    bits: tuple[int, ...]
    span: Span | None = span_field()


Decl = ParamDecl | LocalDecl | SharedDecl | ConstDecl


@dataclass(frozen=True, slots=True)
class HelperFunction:
    """A device function: its array parameters are base buffers, all else is scalar.

    `inline` asks devices for its body in place of each call.
    """

    name: str
    params: tuple[Var, ...]
    result: ElementType
    body: Body
    locals: tuple[LocalDecl, ...] = ()
    inline: bool = False
    span: Span | None = span_field()


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Kernel:
    """A kernel. `name` and all spans are tags: they take no part in the content hash.

    `index_bits` is 32 when every array of the launch has fewer than 2^31 elements and block ×
    grid is below 2^31 along each axis, else 64; length, offset, shape and stride parameters have
    that width. `warp_width` is the number of threads of a warp, None where nothing depends on it.
    With `fastmath` float operations may deviate as `accept.fastmath` says; the oracle's do not.

    As text it is its text form (`ir.text`), which a notebook shows in colour.
    """

    name: str
    body: Body
    params: tuple[ParamDecl, ...] = ()
    locals: tuple[LocalDecl | SharedDecl | ConstDecl, ...] = ()
    types: tuple[tuple[str, tuple[tuple[str, ElementType], ...]], ...] = ()
    variants: tuple[tuple[str, tuple[tuple[str, tuple[ElementType, ...]], ...]], ...] = ()
    functions: tuple[HelperFunction, ...] = ()
    native_function: NativeFunction | None = None
    index_bits: int = 32
    warp_width: int | None = None
    fastmath: bool = False
    span: Span | None = span_field()

    def __str__(self) -> str:
        from sarek_numba.ir.text import text  # it knows all nodes, kernels included

        return text(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return code(str(self), "sarek_numba.ir.highlight:IRLexer")


default_kernel = Kernel("", ())


def make_kernel(name: str, body: Body, **fields: Any) -> Kernel:
    """A kernel from its name and body, every other field at its default unless given."""
    return Kernel(name, body, **fields)
