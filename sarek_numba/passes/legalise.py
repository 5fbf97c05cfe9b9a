"""The last shape of IR, which every printer takes.

`flatten` opens `Seq` and `Block` and drops `Empty` and `ExprStmt`: expressions are pure, and every
variable has an id of its own, so a scope means nothing. `legalise` turns `ArrayLen` into a
parameter or the constant that it is.
"""

from __future__ import annotations

from dataclasses import replace

from sarek_numba.ir.build import Fresh
from sarek_numba.ir.nodes import (
    App,
    ArrayCreate,
    ArrayLen,
    Binary,
    BinOp,
    Block,
    Body,
    Call,
    Cast,
    ConstDecl,
    Empty,
    Expr,
    ExprStmt,
    HelperFunction,
    Kernel,
    LocalDecl,
    ParamDecl,
    Seq,
    SharedDecl,
    Stmt,
    Var,
    VarRef,
    constant,
)
from sarek_numba.ir.types import (
    INT32,
    INT64,
    DynamicSharedLength,
    LengthOf,
    Role,
    Scalar,
    UserArgument,
)
from sarek_numba.ir.typing import scalar_of
from sarek_numba.ir.walk import (
    bodies_of_kernel,
    map_body,
    map_expr,
    map_expressions,
    walk_body_exprs,
)
from sarek_numba.passes.common import Target, map_bodies

# --- nesting --------------------------------------------------------------------------------------


def flatten(kernel: Kernel, target: Target) -> Kernel:
    """The kernel without `Seq`, `Block`, `Empty` and `ExprStmt`."""
    return map_bodies(kernel, lambda body: map_body(body, _opened))


def _opened(stmt: Stmt) -> Stmt | Body:
    match stmt:
        case Seq(body=body) | Block(body=body):
            return body
        case Empty() | ExprStmt():
            return ()
        case _:
            return stmt


# --- lengths --------------------------------------------------------------------------------------


def legalise(kernel: Kernel, target: Target) -> Kernel:
    """The kernel without `ArrayLen`."""
    bodies = bodies_of_kernel(kernel)
    if not any(isinstance(e, ArrayLen) for body in bodies for e in walk_body_exprs(body)):
        return kernel
    return _Lengths(kernel).run()


class _Lengths:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.fresh = Fresh.beyond(kernel)
        self.params = list(kernel.params)
        self.decls = {decl.var.id: decl for decl in kernel.locals}
        # of each helper, the positions of the arrays whose lengths it takes behind its parameters
        self.wanted: dict[str, tuple[int, ...]] = {}

    def run(self) -> Kernel:
        helpers = tuple(self._helper(helper) for helper in self.kernel.functions)
        body = self._body(map_body(self.kernel.body, self._call), {})
        return replace(self.kernel, body=body, params=tuple(self.params), functions=helpers)

    def _helper(self, helper: HelperFunction) -> HelperFunction:
        """A helper with a parameter for each length that it, or what it calls, asks for."""
        body = map_body(helper.body, self._call)
        positions = {param.id: place for place, param in enumerate(helper.params)}
        decls = {decl.var.id: decl for decl in helper.locals}
        asked = {
            expr.array.id: expr.array
            for expr in walk_body_exprs(body)
            if isinstance(expr, ArrayLen) and expr.array.id not in decls
        }
        lengths = {
            id: self.fresh(f"{array.name}_length", INT64)
            for id, array in asked.items()
            if id in positions
        }
        self.decls.update(decls)
        self.wanted[helper.name] = tuple(positions[id] for id in lengths)
        params = (*helper.params, *lengths.values())
        return replace(helper, params=params, body=self._body(body, lengths))

    def _body(self, body: Body, lengths: dict[int, Var]) -> Body:
        def node(expr: Expr) -> Expr:
            match expr:
                case ArrayLen(array=array):
                    if array.id in lengths:
                        return VarRef(lengths[array.id], span=expr.span)
                    return self._length(array)
                case _:
                    return expr

        def statement(stmt: Stmt) -> Stmt:
            return map_expressions(stmt, lambda root: map_expr(root, node))

        return map_body(body, statement)

    def _call(self, stmt: Stmt) -> Stmt:
        """A statement whose calls pass the lengths that helpers ask for."""

        def node(expr: Expr) -> Expr:
            match expr:
                case App(function=function, args=args):
                    return replace(expr, args=self._with_lengths(function, args))
                case _:
                    return expr

        stmt = map_expressions(stmt, lambda root: map_expr(root, node))
        if isinstance(stmt, Call):
            return replace(stmt, args=self._with_lengths(stmt.function, stmt.args))
        return stmt

    def _with_lengths(self, function: str, args: tuple[Expr, ...]) -> tuple[Expr, ...]:
        lengths = []
        for place in self.wanted[function]:
            array = args[place]
            assert isinstance(array, VarRef)
            lengths.append(ArrayLen(array.var, span=array.span))
        return (*args, *lengths)

    def _length(self, array: Var) -> Expr:
        """The length of an array of the kernel, as an int64."""
        decl = self.decls.get(array.id)
        match decl:
            case None:
                return _as_int64(VarRef(self._parameter(array)))
            case ConstDecl(bits=bits):
                return constant(INT64, len(bits))
            case SharedDecl(size=None, element=element, offset=offset):
                region = VarRef(self._role_parameter(DynamicSharedLength(), "shared_bytes"))
                rest = Binary(BinOp.SUB, _as_int64(region), constant(INT64, offset))
                assert isinstance(element, Scalar)
                return Binary(BinOp.DIV, rest, constant(INT64, element.bits // 8))
            case SharedDecl(size=size) if size is not None:
                return _as_int64(size)
            case LocalDecl(value=ArrayCreate(size=size)):
                return _as_int64(size)
            case _:
                raise AssertionError(f"{array.name} is no array")

    def _parameter(self, array: Var) -> Var:
        for param in self.kernel.params:
            if param.var.id == array.id and isinstance(param.role, UserArgument):
                return self._role_parameter(LengthOf(param.role.argument), f"{array.name}_length")
        raise AssertionError(f"{array.name} is not declared")

    def _role_parameter(self, role: Role, name: str) -> Var:
        for param in self.params:
            if param.role == role:
                return param.var
        kind: Scalar = INT32 if self.kernel.index_bits == 32 else INT64
        var = self.fresh(name, kind)
        self.params.append(ParamDecl(var, None, role))
        return var


def _as_int64(expr: Expr) -> Expr:
    return expr if scalar_of(expr) is INT64 else Cast(INT64, expr)
