"""Inlining of helpers: of those that ask for it, of all where a target has no calls, and of those
with barriers where it asks.

A call becomes the helper's body with variables of its own; parameters that are bound to arrays,
constants and immutable variables are replaced by them. Where the only `return` is the last
statement its value is bound by a `Let`. Other returns become assignments of the result: what
follows a branch that returns moves into the other branch, a return within a loop leaves the loop,
and a flag tells what comes behind that it has happened. A call within an expression is lifted out
of it, under the condition under which it is evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sarek_numba.ir.build import Fresh
from sarek_numba.ir.nodes import (
    App,
    Assign,
    Barrier,
    Binary,
    BinOp,
    Body,
    Break,
    Call,
    Const,
    Expr,
    For,
    HelperFunction,
    If,
    IfExpr,
    Kernel,
    Let,
    LetMut,
    LocalDecl,
    LVar,
    Pragma,
    Return,
    Stmt,
    TupleExpr,
    Unary,
    UnOp,
    Var,
    VarRef,
    WarpBarrier,
    While,
    constant,
)
from sarek_numba.ir.texts import is_given
from sarek_numba.ir.types import BOOL, Array, Vec
from sarek_numba.ir.typing import type_of
from sarek_numba.ir.walk import (
    bodies_of,
    expressions_of,
    map_body,
    map_expressions,
    operands,
    rebuild,
    substitute,
    substitute_body,
    walk_exprs,
    walk_stmts,
    with_bodies,
)
from sarek_numba.passes.common import Target
from sarek_numba.passes.prune import reachable
from sarek_numba.passes.unroll import renamed


def inline(kernel: Kernel, target: Target) -> Kernel:
    """The kernel without the calls that the target cannot have; helpers left uncalled stay."""
    chosen = _chosen(kernel, target)
    return _Inliner(kernel, chosen).run() if chosen else kernel


def _chosen(kernel: Kernel, target: Target) -> set[str]:
    """Names of the helpers to inline."""
    if not target.calls:
        return {helper.name for helper in kernel.functions if not is_given(helper)}
    with_barriers: set[str] = set()
    if target.inline_barriers:
        for helper in kernel.functions:  # callees come before their callers
            if any(_has_barrier(stmt, with_barriers) for stmt in walk_stmts(helper.body)):
                with_barriers.add(helper.name)
    asked = {helper.name for helper in kernel.functions if helper.inline and not is_given(helper)}
    return with_barriers | asked


def _has_barrier(stmt: Stmt, chosen: set[str]) -> bool:
    match stmt:
        case Barrier() | WarpBarrier():
            return True
        case Call(function=function):
            return function in chosen
        case _:
            return False


class _Inliner:
    def __init__(self, kernel: Kernel, chosen: set[str]) -> None:
        self.kernel = kernel
        self.chosen = chosen
        self.fresh = Fresh.beyond(kernel)
        self.helpers: dict[str, HelperFunction] = {}
        self.locals = list(kernel.locals)
        # results of calls that became assigned variables
        self.mutable: dict[int, VarRef] = {}

    def run(self) -> Kernel:
        kept = []
        for helper in self.kernel.functions:  # callees come before their callers
            outer, self.locals = self.locals, []
            body = self._body(reachable(helper.body))
            extra = tuple(decl for decl in self.locals if isinstance(decl, LocalDecl))
            self.locals = outer
            new = replace(helper, body=body, locals=(*helper.locals, *extra))
            self.helpers[helper.name] = new
            if helper.name not in self.chosen:
                kept.append(new)
        body = self._body(self.kernel.body)
        return replace(self.kernel, body=body, locals=tuple(self.locals), functions=tuple(kept))

    def _body(self, body: Body) -> Body:
        self.mutable = {}
        body = map_body(body, self._statement)
        return substitute_body(body, self.mutable) if self.mutable else body

    def _statement(self, stmt: Stmt) -> Stmt | Body:
        if any(self._is_chosen(expr) for expr in expressions_of(stmt)):
            *before, stmt = self._lifted(stmt)
        else:
            before = []
        if isinstance(stmt, Call) and stmt.function in self.chosen:
            return (*before, *self._inlined(stmt))
        return (*before, stmt) if before else stmt

    # --- one call ---

    def _inlined(self, call: Call) -> Body:
        helper = self.helpers[call.function]
        lets: list[Stmt] = []
        values: dict[int, Const | VarRef] = {}
        for param, arg in zip(helper.params, call.args, strict=True):
            values[param.id] = self._argument(param, arg, lets)
        for decl in helper.locals:
            values[decl.var.id] = VarRef(self._local(decl, lets))
        body = renamed(helper.body, self.fresh, values)
        if _returns(body) == 0:
            return (*lets, *body)
        if _returns(body) == 1 and isinstance(body[-1], Return):
            return (*lets, *body[:-1], *_bound(call, body[-1].value))
        return (*lets, *self._with_exits(call, body))

    def _argument(self, param: Var, arg: Expr, lets: list[Stmt]) -> Const | VarRef:
        """What stands for a parameter in the body."""
        match arg:
            case Const() if not param.mutable:
                return arg
            case VarRef(var=var) if isinstance(var.type, Vec | Array):
                return arg
            case VarRef(var=var) if not var.mutable and not param.mutable:
                return arg
            case _:
                var = self.fresh.like(param)
                lets.append((LetMut if param.mutable else Let)(var, arg, span=arg.span))
                return VarRef(var)

    def _local(self, decl: LocalDecl, lets: list[Stmt]) -> Var:
        """The caller's variable for a local of the helper: an array is declared once for all."""
        var = self.fresh.like(decl.var)
        if isinstance(var.type, Array):
            self.locals.append(replace(decl, var=var))
        else:
            var = replace(var, mutable=True)
            lets.append(LetMut(var, decl.value, span=decl.span))
        return var

    def _with_exits(self, call: Call, body: Body) -> Body:
        results = tuple(replace(var, mutable=True) for var in call.results)
        for old, new in zip(call.results, results, strict=True):
            self.mutable[old.id] = VarRef(new)
        flag = self.fresh("done", BOOL, mutable=True) if _needs_flag(body) else None
        declared: list[Stmt] = [LetMut(var, span=call.span) for var in results]
        if flag is not None:
            declared.append(LetMut(flag, constant(BOOL, False), span=call.span))
        return (*declared, *_Exits(results, flag).body(body, in_loop=False))

    # --- calls within expressions ---

    def _is_chosen(self, expr: Expr) -> bool:
        return any(isinstance(e, App) and e.function in self.chosen for e in walk_exprs(expr))

    def _lifted(self, stmt: Stmt) -> Body:
        """A statement whose pure calls are made before it, or are replaced by what they compute."""
        before: list[Stmt] = []
        new = map_expressions(stmt, lambda root: self._lift(root, before))
        if before and isinstance(new, While):
            leave = If(Unary(UnOp.NOT, new.condition), (Break(),))
            always = constant(BOOL, True, new.condition.span)
            return (While(always, (*before, leave, *new.body), span=new.span),)
        return (*before, new)

    def _lift(self, expr: Expr, before: list[Stmt]) -> Expr:
        if not self._is_chosen(expr):
            return expr
        match expr:
            case IfExpr(condition=condition, then=then, orelse=orelse):
                return self._lift_choice(self._lift(condition, before), then, orelse, before)
            case Binary(op=BinOp.AND, left=left, right=right):
                return self._lift_choice(self._lift(left, before), right, _FALSE, before)
            case Binary(op=BinOp.OR, left=left, right=right):
                return self._lift_choice(self._lift(left, before), _TRUE, right, before)
        new = rebuild(expr, [self._lift(operand, before) for operand in operands(expr)])
        if not isinstance(new, App) or new.function not in self.chosen:
            return new
        value = _as_expression(self.helpers[new.function], new.args)
        if value is not None:
            return value
        result = self.fresh(new.function, new.type)
        before += self._inlined(Call((result,), new.function, new.args, span=new.span))
        return VarRef(result, span=new.span)

    def _lift_choice(self, condition: Expr, then: Expr, orelse: Expr, before: list[Stmt]) -> Expr:
        chosen = self.fresh("chosen", type_of(then), mutable=True)
        branches = []
        for value in (then, orelse):
            inside: list[Stmt] = []
            new = self._lift(value, inside)
            branches.append((*inside, Assign(LVar(chosen), new)))
        before += (LetMut(chosen), If(condition, branches[0], branches[1]))
        return VarRef(chosen)


_FALSE, _TRUE = constant(BOOL, False), constant(BOOL, True)


def _as_expression(helper: HelperFunction, args: tuple[Expr, ...]) -> Expr | None:
    """The value of a helper that is one expression, where its arguments may stand repeatedly."""
    match helper.body:
        case (Return(value=value),) if value is not None:
            if all(isinstance(arg, Const | VarRef) for arg in args):
                params = (param.id for param in helper.params)
                return substitute(value, dict(zip(params, args, strict=True)))
        case _:
            pass
    return None


def _bound(call: Call, value: Expr | None) -> Iterator[Stmt]:
    """The results of a call bound to the value returned."""
    for var, item in zip(call.results, _items(value, len(call.results)), strict=True):
        yield Let(var, item, span=call.span)


def _items(value: Expr | None, count: int) -> tuple[Expr, ...]:
    if value is None or count == 0:
        return ()
    if isinstance(value, TupleExpr) and count > 1:
        return value.items
    return (value,)


# --- returns --------------------------------------------------------------------------------------


def _returns(body: Body) -> int:
    return sum(isinstance(stmt, Return) for stmt in walk_stmts(body))


def _may_return(stmt: Stmt) -> bool:
    return _returns((stmt,)) > 0


def _always_returns(body: Body) -> bool:
    """Whether a body returns on every path (and neither breaks nor continues)."""
    if not body:
        return False
    match body[-1]:
        case Return():
            return True
        case If(then=then, orelse=orelse):
            return _always_returns(then) and _always_returns(orelse)
        case _:
            return False


def _needs_flag(body: Body) -> bool:
    """Whether a return leaves something behind it that only a flag can skip."""
    for place, stmt in enumerate(body):
        if not _may_return(stmt) or isinstance(stmt, Return):
            continue
        rest = body[place + 1 :]
        if isinstance(stmt, If):
            if _always_returns(stmt.then):
                return _needs_flag(stmt.then) or _needs_flag((*stmt.orelse, *rest))
            if _always_returns(stmt.orelse):
                return _needs_flag((*stmt.then, *rest)) or _needs_flag(stmt.orelse)
            if rest or _needs_flag(stmt.then) or _needs_flag(stmt.orelse):
                return True
        elif rest or _loop_within_loop(stmt):
            return True
    return False


def _loop_within_loop(stmt: Stmt) -> bool:
    """Whether a return leaves two loops at once."""
    for inner in (nested for body in bodies_of(stmt) for nested in walk_stmts(body)):
        if isinstance(inner, For | While | Pragma) and _may_return(inner):
            return True
    return False


@dataclass(frozen=True, slots=True)
class _Exits:
    """Turns returns into assignments of `results`; `flag` becomes True at each, if there is one."""

    results: tuple[Var, ...]
    flag: Var | None

    def body(self, body: Body, *, in_loop: bool) -> Body:
        done: list[Stmt] = []
        for place, stmt in enumerate(body):
            rest = body[place + 1 :]
            match stmt:
                case Return():
                    return (*done, *self._exit(stmt, in_loop=in_loop))
                case _ if not _may_return(stmt):
                    done.append(stmt)
                case If() if not in_loop:
                    return (*done, *self._branch(stmt, rest))
                case If():
                    branches = [self.body(inner, in_loop=True) for inner in bodies_of(stmt)]
                    done.append(with_bodies(stmt, branches))
                case _:
                    is_loop = isinstance(stmt, For | While)
                    inside = [
                        self.body(inner, in_loop=in_loop or is_loop) for inner in bodies_of(stmt)
                    ]
                    done.append(with_bodies(stmt, inside))
                    if in_loop and is_loop:
                        done.append(If(self._is_done(), (Break(),)))
                    elif not in_loop:
                        return (*done, *self._unless_done(rest))
        return tuple(done)

    def _exit(self, stmt: Return, *, in_loop: bool) -> Iterator[Stmt]:
        items = _items(stmt.value, len(self.results))
        for var, item in zip(self.results, items, strict=True):
            yield Assign(LVar(var), item, span=stmt.span)
        if self.flag is not None:
            yield Assign(LVar(self.flag), constant(BOOL, True), span=stmt.span)
        if in_loop:
            yield Break(span=stmt.span)

    def _branch(self, stmt: If, rest: Body) -> Body:
        """A branch outside all loops, and what follows it."""
        if _always_returns(stmt.then):
            then, orelse, rest = stmt.then, (*stmt.orelse, *rest), ()
        elif _always_returns(stmt.orelse):
            then, orelse, rest = (*stmt.then, *rest), stmt.orelse, ()
        else:
            then, orelse = stmt.then, stmt.orelse
        branches = [self.body(inner, in_loop=False) for inner in (then, orelse)]
        return (with_bodies(stmt, branches), *self._unless_done(rest))

    def _unless_done(self, rest: Body) -> Body:
        if not rest:
            return ()
        return (If(Unary(UnOp.NOT, self._is_done()), self.body(rest, in_loop=False)),)

    def _is_done(self) -> Expr:
        assert self.flag is not None
        return VarRef(self.flag)
