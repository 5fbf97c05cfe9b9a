"""What a kernel needs of a device, each need with the span of its first use.

`needs(kernel)` walks the IR; `capability` compares the result with a device record. Nothing is
needed that does not occur: a float64 array that is only copied needs storage, not arithmetic.
`promises(kernel)` is what the results of a kernel stand on beyond that, as correctly rounded
division.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import assert_never

from sarek_numba.ir.intrinsics import INTRINSICS
from sarek_numba.ir.nodes import (
    ArrayCreate,
    ArrayRead,
    Assign,
    Atomic,
    AtomicOp,
    Barrier,
    Binary,
    BinOp,
    Body,
    Cast,
    CMMulAdd,
    Coopmat,
    CoopmatConfig,
    Expr,
    For,
    Index,
    Intrinsic,
    Kernel,
    LocalDecl,
    MemFence,
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
    FLOAT32,
    HALVES,
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
from sarek_numba.ir.walk import (
    bodies_of_kernel,
    declared_by,
    expressions_of,
    root_variable,
    walk_exprs,
    walk_stmts,
)
from sarek_numba.span import Span


@dataclass(frozen=True, slots=True)
class Need:
    """`feature` is a row of `capability.FEATURES`, which says what of the rest it names: a scalar,
    an operation and a memory space of atomics, a function of the table of intrinsics or the scope
    of a fence, the target of a conversion, the configuration of a cooperative matrix.
    """

    feature: str
    scalar: Scalar | None = None
    op: AtomicOp | None = None
    space: MemSpace | None = None
    span: Span | None = field(default=None, compare=False)
    function: str | None = None
    target: Scalar | None = None
    configuration: CoopmatConfig | None = None


def needs(kernel: Kernel) -> tuple[Need, ...]:
    """Every need of a kernel once, in the order of first use."""
    return _first_uses(_in_kernel(kernel))


def promises(kernel: Kernel) -> tuple[Need, ...]:
    """Every promise about numbers that the kernel's results stand on, in the order of first use."""
    return _first_uses(_promises(kernel))


def _first_uses(used: Iterable[Need]) -> tuple[Need, ...]:
    found: dict[Need, Need] = {}
    for need in used:
        known = found.setdefault(need, need)
        if known.span is None and need.span is not None:
            found[need] = need  # a use in the body shows more than a declaration without a place
    return tuple(found.values())


def _in_kernel(kernel: Kernel) -> Iterator[Need]:
    if kernel.index_bits == 64:
        yield Need("wide_index", span=kernel.span)
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
        case MemFence(scope=scope):
            yield Need("fence", span=stmt.span, function=scope.value)
        case Coopmat(op=matrix):
            yield Need("coopmat", span=stmt.span)
            if isinstance(matrix, CMMulAdd):
                yield Need("coopmat", span=stmt.span, configuration=matrix.config)
        case Assign(target=target):
            written = root_variable(target)
            if written is not None and isinstance(written.type, Vec | Array):
                span = target.span or stmt.span
                yield from _storage(written.type, span)
                for part in _scalars(written.type):
                    if part.bits < 32:  # a device may have to rewrite its neighbours
                        yield Need("store", part, span=span)
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
            case Intrinsic(name=name, args=args, type=type):
                yield from _arithmetic(type, expr.span)
                for arg in args:
                    yield from _arithmetic(type_of(arg), expr.span)
                if not INTRINSICS[name].exact:
                    yield Need("function", type, span=expr.span, function=name)
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
    """Logic on bools is had everywhere; halves are stored and converted alone."""
    if isinstance(type, Scalar) and type is not BOOL and type not in HALVES:
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


# --- promises about numbers -----------------------------------------------------------------------

_SUMS = frozenset({BinOp.ADD, BinOp.SUB})
_QUOTIENTS = frozenset({BinOp.DIV, BinOp.FLOORDIV})
_DIVISIONS = _QUOTIENTS | {BinOp.MOD, BinOp.FLOORMOD}
_EVERYWHERE = ("subnormal_inputs", "nan", "signed_zeros")  # of any operation on floats
_OF_FUNCTIONS = {"sqrt": "square_root", "fma": "fma"}


def _promises(kernel: Kernel) -> Iterator[Need]:
    products: set[Scalar] = set()
    sums: dict[Scalar, Span | None] = {}
    for body in bodies_of_kernel(kernel):
        for stmt in walk_stmts(body):
            for root in expressions_of(stmt):
                for expr in walk_exprs(root):
                    yield from _promised(expr)
                    match expr:
                        case Binary(op=BinOp.MUL, left=left):
                            products |= set(_floats(type_of(left)))
                        case Binary(op=op, left=left) if op in _SUMS:
                            for scalar in _floats(type_of(left)):
                                sums.setdefault(scalar, expr.span)
                        case _:
                            pass
    for scalar, span in sums.items():
        if scalar in products:
            yield Need("contraction", scalar, span=span)


def _promised(expr: Expr) -> Iterator[Need]:
    """What the result of one operation stands on."""
    match expr:
        case Binary(op=op, left=left):
            operand = type_of(left)
            for scalar in _floats(operand):
                yield from _of_floats(scalar, expr.span)
                if op in _SUMS or op is BinOp.MUL:
                    yield Need("rounding", scalar, span=expr.span)
                if op in _QUOTIENTS:
                    yield Need("division", scalar, span=expr.span)
                if op in _DIVISIONS or op in _SUMS or op is BinOp.MUL:
                    yield Need("subnormal_results", scalar, span=expr.span)
            if isinstance(operand, Scalar) and operand.is_integer and op in _DIVISIONS:
                yield Need("integer_division", operand, span=expr.span)
        case Intrinsic(name=name, args=args):
            for scalar in _floats(type_of(args[0])):
                yield from _of_floats(scalar, expr.span)
                if name in _OF_FUNCTIONS:
                    yield Need(_OF_FUNCTIONS[name], scalar, span=expr.span)
                if name == "fma" or not INTRINSICS[name].exact:
                    yield Need("subnormal_results", scalar, span=expr.span)
        case Cast(type=target, operand=operand):
            source = type_of(operand)
            assert isinstance(source, Scalar)
            source = FLOAT32 if source in HALVES else source
            if _may_round(source, target):
                yield Need("conversion", source, span=expr.span, target=target)
        case _:
            pass


def _may_round(source: Scalar, target: Scalar) -> bool:
    """Whether a conversion has an edge: where one side is a float, and none a bool.

    What is converted to a half is rounded by the compiler's own code.
    """
    if target in HALVES or source is target:
        return False
    return BOOL not in (source, target) and (source.is_float or target.is_float)


def _of_floats(scalar: Scalar, span: Span | None) -> Iterator[Need]:
    for feature in _EVERYWHERE:
        yield Need(feature, scalar, span=span)


def _floats(type: ElementType) -> tuple[Scalar, ...]:
    return (type,) if isinstance(type, Scalar) and type.is_float else ()
