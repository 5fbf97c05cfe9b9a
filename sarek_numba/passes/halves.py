"""Halves as the 16 bits that they are, for targets that all have 16-bit integers in memory.

In: a kernel as lowered. Out: the same without float16 and bfloat16: what is stored, passed or kept
is a uint16, and each conversion an `App` of a helper of `half_functions`, which the kernel then
has. So storage is all that a device needs, and every device rounds alike. A scalar argument that is
a half is passed as the float32 of the same value. A fragment of halves keeps its type, as
matrix units know it: memory has its components as bits, and so has the value of a fill.
"""

from __future__ import annotations

from dataclasses import replace

from sarek_numba.ir import semantics
from sarek_numba.ir.build import Fresh, all_vars
from sarek_numba.ir.matrices import HALF_BITS
from sarek_numba.ir.nodes import (
    App,
    ArrayCreate,
    ArrayLen,
    ArrayRead,
    Body,
    Cast,
    Const,
    ConstDecl,
    Expr,
    HelperFunction,
    Intrinsic,
    Kernel,
    LocalDecl,
    ParamDecl,
    SharedDecl,
    Stmt,
    Subscript,
    Var,
    VarRef,
)
from sarek_numba.ir.types import (
    FLOAT32,
    HALVES,
    Array,
    ElementType,
    FixedArray,
    Record,
    Scalar,
    TupleType,
    Unit,
    Variant,
    Vec,
)
from sarek_numba.ir.typing import type_of, variants_of
from sarek_numba.ir.walk import (
    bodies_of_kernel,
    map_body,
    map_expressions,
    map_variables,
    operands,
    rebuild,
    walk_body_exprs,
)
from sarek_numba.passes.common import Target
from sarek_numba.passes.functions import renamed
from sarek_numba.passes.half_functions import function
from sarek_numba.span import Span

BITS = HALF_BITS


def halves(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with uint16 in place of halves."""
    if not any(_has_half(var.type) for var in all_vars(kernel)) and not _converts(kernel):
        return kernel
    return _Halves(kernel).run()


def _converts(kernel: Kernel) -> bool:
    made = (Cast, Intrinsic)
    return any(
        isinstance(expr, made) and expr.type in HALVES
        for body in bodies_of_kernel(kernel)
        for expr in walk_body_exprs(body)
    )


def _has_half(type: ElementType) -> bool:
    return as_bits(type) != type


def as_bits(type: ElementType) -> ElementType:
    """A type with uint16 in place of halves."""
    match type:
        case Scalar():
            return BITS if type in HALVES else type
        case Vec(element=element):
            return Vec(as_bits(element))
        case Array(element=element, space=space):
            return Array(as_bits(element), space)
        case FixedArray(element=element, shape=shape):
            return FixedArray(as_bits(element), shape)
        case TupleType(items=items):
            return TupleType(tuple(map(as_bits, items)))
        case Record(fields=fields):
            return replace(type, fields=tuple((name, as_bits(part)) for name, part in fields))
        case Variant(constructors=constructors):
            cases = tuple((name, tuple(map(as_bits, parts))) for name, parts in constructors)
            return replace(type, constructors=cases)
        case Unit():
            return type


class _Halves:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.variants = variants_of(kernel)
        self.fresh = Fresh.beyond(kernel)
        self.taken = {helper.name for helper in kernel.functions}
        self.helpers: dict[str, HelperFunction] = {}  # by their names among the texts
        self.new: dict[int, Var] = {}
        self.arguments: dict[int, Scalar] = {}  # scalar arguments that are halves, by id
        for param in kernel.params:
            if isinstance(param.var.type, Scalar) and param.var.type in HALVES:
                self.arguments[param.var.id] = param.var.type
        for var in all_vars(kernel):
            type = FLOAT32 if var.id in self.arguments else as_bits(var.type)
            if type != var.type:
                self.new[var.id] = replace(var, type=type)

    def run(self) -> Kernel:
        kernel = self.kernel
        functions = tuple(map(self._function, kernel.functions))
        body = self._body(kernel.body)
        return replace(
            kernel,
            body=body,
            params=tuple(map(self._parameter, kernel.params)),
            locals=tuple(map(self._declaration, kernel.locals)),
            types=tuple(
                (name, tuple((field, as_bits(part)) for field, part in fields))
                for name, fields in kernel.types
            ),
            variants=tuple(
                (name, tuple((case, tuple(map(as_bits, parts))) for case, parts in cases))
                for name, cases in kernel.variants
            ),
            functions=(*self.helpers.values(), *functions),
        )

    # --- declarations

    def _parameter(self, param: ParamDecl) -> ParamDecl:
        info = param.array
        if info is not None and _has_half(info.element):
            info = replace(info, element=as_bits(info.element))
        return replace(param, var=self.variable(param.var), array=info)

    def _declaration(
        self, decl: LocalDecl | SharedDecl | ConstDecl
    ) -> LocalDecl | SharedDecl | ConstDecl:
        var = self.variable(decl.var)
        match decl:
            case LocalDecl(value=value):
                return replace(decl, var=var, value=None if value is None else self.node(value))
            case SharedDecl(element=element, size=size):
                size = None if size is None else self.node(size)
                return replace(decl, var=var, element=as_bits(element), size=size)
            case ConstDecl(element=element):
                return replace(decl, var=var, element=BITS if element in HALVES else element)

    def _function(self, helper: HelperFunction) -> HelperFunction:
        return replace(
            helper,
            params=tuple(map(self.variable, helper.params)),
            result=as_bits(helper.result),
            locals=tuple(
                decl
                for local in helper.locals
                if isinstance(decl := self._declaration(local), LocalDecl)
            ),
            body=self._body(helper.body),
        )

    def variable(self, var: Var) -> Var:
        return self.new.get(var.id, var)

    def _body(self, body: Body) -> Body:
        def statement(stmt: Stmt) -> Stmt:
            return map_variables(map_expressions(stmt, self.node), self.variable)

        return map_body(body, statement)

    # --- expressions

    def node(self, expr: Expr) -> Expr:
        """An expression without halves; one of a half gives its bits."""
        match expr:
            case Cast(type=target, operand=operand):
                source = type_of(operand, self.variants)
                assert isinstance(source, Scalar)
                if source in HALVES:
                    return self._from_half(operand, source, target, expr.span)
                if target in HALVES:
                    return self._to_half(self.node(operand), source, target, expr.span, expr.weak)
            case Intrinsic(name="reinterpret", args=(value,), type=target):
                source = type_of(value, self.variants)
                if target in HALVES or source in HALVES:
                    return _same_bits(self.node(value), source, target, expr.span)
            case VarRef(var=var) if var.id in self.arguments:
                value = VarRef(self.variable(var), span=expr.span)
                return self._to_half(value, FLOAT32, self.arguments[var.id], expr.span)
            case VarRef(var=var):
                return replace(expr, var=self.new[var.id]) if var.id in self.new else expr
            case _:
                pass
        old = operands(expr)
        return self._own(rebuild(expr, [self.node(operand) for operand in old]) if old else expr)

    def _own(self, expr: Expr) -> Expr:
        """A node with its own array and type as they are now."""
        match expr:
            case ArrayRead(array=array) | Subscript(array=array) | ArrayLen(array=array):
                return replace(expr, array=self.new[array.id]) if array.id in self.new else expr
            case ArrayCreate(element=element) if _has_half(element):
                return replace(expr, element=as_bits(element))
            case App(type=type) if _has_half(type):
                return replace(expr, type=as_bits(type))
            case _:
                return expr

    def _from_half(self, operand: Expr, source: Scalar, target: Scalar, span: Span | None) -> Expr:
        if isinstance(operand, VarRef) and operand.var.id in self.arguments:
            value: Expr = VarRef(self.variable(operand.var), span=operand.span)
        else:
            bits = self.node(operand)
            if target is source:
                return bits
            value = self._widened(bits, source, span)
        if target in HALVES:
            return self._to_half(value, FLOAT32, target, span)
        return value if target is FLOAT32 else Cast(target, value, span=span)

    def _widened(self, bits: Expr, source: Scalar, span: Span | None) -> Expr:
        if isinstance(bits, Const):
            known = semantics.fold_cast(FLOAT32, Const(source, bits.bits))
            return replace(known, span=span)
        return self._call(f"from_{source.value}", bits, FLOAT32, span)

    def _to_half(
        self, value: Expr, source: Scalar, target: Scalar, span: Span | None, weak: bool = False
    ) -> Expr:
        """The bits of the half nearest to a value of a type that is none."""
        if isinstance(value, Const):
            return Const(BITS, semantics.fold_cast(target, value).bits, span=span)
        if source.is_integer and source.bits >= 32 and target is Scalar.BFLOAT16:
            value, source = self._call(f"odd_{source.value}", value, FLOAT32, span), FLOAT32
        elif not source.is_float:
            # exact below 2^24, and all from 65520 on is infinity, which rounding does not change
            value, source = Cast(FLOAT32, value, weak, span=span), FLOAT32
        return self._call(f"{target.value}_from_{source.value}", value, BITS, span)

    def _call(self, name: str, value: Expr, type: Scalar, span: Span | None) -> Expr:
        if name not in self.helpers:
            (helper,) = renamed((function(name),), name, self.taken, self.fresh)
            self.taken.add(helper.name)
            self.helpers[name] = helper
        return App(self.helpers[name].name, (value,), type, span=span)


def _same_bits(bits: Expr, source: ElementType, target: Scalar, span: Span | None) -> Expr:
    """`reinterpret` from or to a half, of which there are only the bits."""
    given = BITS if source in HALVES else source
    wanted = BITS if target in HALVES else target
    return bits if given is wanted else Intrinsic((), "reinterpret", (bits,), wanted, span=span)
