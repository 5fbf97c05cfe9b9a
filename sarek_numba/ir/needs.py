"""What a kernel needs of a device, each need with the span of its first use.

`needs(kernel)` walks the IR; `capability` compares the result with a device record. Nothing is
needed that does not occur: a float64 array that is only copied needs storage, not arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import assert_never

from sarek_numba.ir.nodes import (
    ArrayCreate,
    ArrayRead,
    Assign,
    Atomic,
    AtomicOp,
    Barrier,
    Binary,
    Body,
    Cast,
    Expr,
    For,
    Index,
    Intrinsic,
    Kernel,
    LocalDecl,
    Print,
    SharedDecl,
    Stmt,
    Subscript,
    Unary,
    Var,
    Warp,
    WarpBarrier,
)
from sarek_numba.ir.types import (
    BOOL,
    Array,
    ElementType,
    FixedArray,
    MemSpace,
    Record,
    Scalar,
    TupleType,
    Unit,
    Variant,
    Vec,
)
from sarek_numba.ir.typing import type_of
from sarek_numba.ir.walk import declared_by, expressions_of, root_variable, walk_exprs, walk_stmts
from sarek_numba.span import Span


@dataclass(frozen=True, slots=True)
class Need:
    """`feature`: "storage", "arithmetic", "atomic", "shared", "barrier", "warp",
    "dynamic_shared", "print".

    "storage" and "arithmetic" name a scalar; "atomic" an operation, a scalar and a memory space.
    """

    feature: str
    scalar: Scalar | None = None
    op: AtomicOp | None = None
    space: MemSpace | None = None
    span: Span | None = field(default=None, compare=False)


def needs(kernel: Kernel) -> tuple[Need, ...]:
    """Every need of a kernel once, in the order of first use."""
    found: dict[Need, Need] = {}
    for need in _in_kernel(kernel):
        known = found.setdefault(need, need)
        if known.span is None and need.span is not None:
            found[need] = need  # a use in the body shows more than a declaration without a place
    return tuple(found.values())


def _in_kernel(kernel: Kernel) -> Iterator[Need]:
    for param in kernel.params:
        yield from _storage(param.var.type, None)
    for decl in kernel.locals:
        yield from _storage(decl.var.type, decl.span)
        match decl:
            case SharedDecl(size=None):
                yield Need("dynamic_shared", span=decl.span)
            case SharedDecl():
                yield Need("shared", span=decl.span)
            case LocalDecl(value=value) if value is not None:
                yield from _expression(value)
            case _:
                pass
    for function in kernel.functions:
        for local in function.locals:
            yield from _storage(local.var.type, local.span)
        yield from _body(function.body)
    yield from _body(kernel.body)


def _body(body: Body) -> Iterator[Need]:
    for stmt in walk_stmts(body):
        yield from _statement(stmt)
        for root in expressions_of(stmt):
            yield from _expression(root)


def _statement(stmt: Stmt) -> Iterator[Need]:
    for var in declared_by(stmt):
        if isinstance(var.type, Array):
            yield from _storage(var.type, stmt.span)
            if var.type.space is MemSpace.SHARED:
                yield Need("shared", span=stmt.span)
    match stmt:
        case Barrier():
            yield Need("barrier", span=stmt.span)
        case Atomic(op=op, array=array):
            (element,) = _scalars(array.type)
            yield Need("atomic", element, op, _space(array), stmt.span)
        case Warp(value=value):
            yield Need("warp", span=stmt.span)
            if value is not None:
                yield from _arithmetic(type_of(value), stmt.span)
        case WarpBarrier():
            yield Need("warp", span=stmt.span)
        case Assign(target=target):
            written = root_variable(target)
            if written is not None and isinstance(written.type, Vec | Array):
                yield from _storage(written.type, target.span or stmt.span)
        case Print():
            yield Need("print", span=stmt.span)
        case For(var=var):
            yield from _arithmetic(var.type, stmt.span)
        case _:
            pass


def _expression(root: Expr) -> Iterator[Need]:
    for expr in walk_exprs(root):
        match expr:
            case Binary(left=operand) | Unary(operand=operand):
                yield from _arithmetic(type_of(operand), expr.span)
            case Cast(type=type, operand=operand):
                yield from _arithmetic(type, expr.span)
                yield from _arithmetic(type_of(operand), expr.span)
            case Intrinsic(args=args, type=type):
                yield from _arithmetic(type, expr.span)
                for arg in args:
                    yield from _arithmetic(type_of(arg), expr.span)
            case Index(type=type):
                yield from _arithmetic(type, expr.span)
            case Subscript(index=index, wrap=True):
                yield from _arithmetic(type_of(index), expr.span)
            case ArrayRead(array=array):
                yield from _storage(array.type, expr.span)
            case ArrayCreate(element=element):
                yield from _storage(element, expr.span)
            case _:
                pass


def _arithmetic(type: ElementType, span: Span | None) -> Iterator[Need]:
    """Logic on bools is had everywhere."""
    if isinstance(type, Scalar) and type is not BOOL:
        yield Need("arithmetic", type, span=span)


def _storage(type: ElementType, span: Span | None) -> Iterator[Need]:
    for scalar in _scalars(type):
        yield Need("storage", scalar, span=span)


def _scalars(type: ElementType) -> Iterator[Scalar]:
    """The scalars that a type is made of."""
    match type:
        case Scalar():
            yield type
        case Vec(element=element) | Array(element=element) | FixedArray(element=element):
            yield from _scalars(element)
        case Record(fields=fields):
            for _, part in fields:
                yield from _scalars(part)
        case TupleType(items=items):
            for part in items:
                yield from _scalars(part)
        case Variant(constructors=constructors):
            yield Scalar.INT32  # the tag
            for _, payload in constructors:
                for part in payload:
                    yield from _scalars(part)
        case Unit():
            pass
        case _:
            assert_never(type)


def _space(array: Var) -> MemSpace:
    return array.type.space if isinstance(array.type, Array) else MemSpace.GLOBAL
