"""Dead code: what no result of the kernel depends on.

Results are stores, atomics, barriers, fences, assertions, calls that have any of these, and whether
a `while` ends. A variable lives if a result, or a condition that leads to one, reads it, or another
living variable is computed from it. Parameters that the launch fills for the compiler's own sake go
where nothing reads them; the user's arguments stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sarek_numba.ir.nodes import (
    App,
    ArrayLen,
    ArrayRead,
    Assert,
    Assign,
    Atomic,
    Barrier,
    Body,
    Break,
    Call,
    Continue,
    Coopmat,
    Decl,
    Expr,
    For,
    HelperFunction,
    If,
    Kernel,
    Let,
    LetMut,
    LocalDecl,
    LVar,
    Match,
    MemFence,
    Native,
    Print,
    Return,
    SharedDecl,
    Stmt,
    Subscript,
    Unary,
    UnOp,
    Var,
    VarRef,
    Warp,
    WarpBarrier,
    While,
)
from sarek_numba.ir.types import UserArgument
from sarek_numba.ir.walk import (
    bodies_of,
    expressions_of,
    free_vars,
    map_body,
    root_variable,
    walk_body_exprs,
    walk_exprs,
    walk_stmts,
    with_bodies,
)
from sarek_numba.passes.common import Target
from sarek_numba.passes.simplify import simplify_node

_JUMPS = (Return, Break, Continue)


def prune(kernel: Kernel, target: Target) -> Kernel:
    """The kernel without dead code, unused helpers, declarations and parameters of the launch."""
    pure: set[str] = set()
    helpers = []
    for helper in kernel.functions:  # callees come before their callers
        body = _prune_body(helper.body, pure, is_kernel=False)
        helpers.append(helper if body is helper.body else replace(helper, body=body))
        if _is_pure(body, pure):
            pure.add(helper.name)
    body = _prune_body(kernel.body, pure, is_kernel=True)
    called = _called(body, helpers)
    kept = tuple(_without_locals(helper) for helper in helpers if helper.name in called)
    return _without_declarations(kernel, body, kept)


def _prune_body(body: Body, pure: set[str], *, is_kernel: bool) -> Body:
    """Until nothing more dies: a branch that has become empty frees what its condition reads."""
    while True:
        old = body
        body = reachable(body)
        body = _without_last_jump(body, Return if is_kernel else None)
        body = map_body(body, _without_empty)
        body = _without_dead(body, _living(body, pure), pure)
        if body is old:
            return body


# --- control --------------------------------------------------------------------------------------


def reachable(body: Body) -> Body:
    """A body without the statements behind a jump."""
    result: list[Stmt] = []
    changed = False
    for place, stmt in enumerate(body):
        nested = bodies_of(stmt)
        new = with_bodies(stmt, [reachable(inner) for inner in nested]) if nested else stmt
        changed = changed or new is not stmt
        result.append(new)
        if ends(new) and place + 1 < len(body):
            changed = True
            break
    return tuple(result) if changed else body


def ends(stmt: Stmt) -> bool:
    """Whether what follows the statement in its body is never reached."""
    match stmt:
        case Return() | Break() | Continue():
            return True
        case If(then=then, orelse=orelse):
            return bool(then and orelse) and ends(then[-1]) and ends(orelse[-1])
        case _:
            return False


def _without_last_jump(body: Body, jump: type[Return | Continue] | None) -> Body:
    """A body without the jump to where it ends anyway: Return in a kernel, Continue in a loop."""
    result: list[Stmt] = []
    for place, stmt in enumerate(body):
        inner = jump if place + 1 == len(body) else None
        match stmt:
            case For(body=nested) | While(body=nested):
                new = with_bodies(stmt, [_without_last_jump(nested, Continue)])
            case If():
                new = with_bodies(stmt, [_without_last_jump(b, inner) for b in bodies_of(stmt)])
            case Return(value=None) | Continue() if inner is not None and isinstance(stmt, inner):
                continue
            case _:
                new = with_bodies(stmt, [_without_last_jump(b, None) for b in bodies_of(stmt)])
        result.append(new)
    same = len(result) == len(body) and all(a is b for a, b in zip(result, body, strict=True))
    return body if same else tuple(result)


def _without_empty(stmt: Stmt) -> Stmt | Body:
    match stmt:
        case If(then=(), orelse=()) | For(body=()):
            return ()
        case If(condition=condition, then=(), orelse=orelse, span=span):
            return If(simplify_node(Unary(UnOp.NOT, condition, span=span)), orelse, span=span)
        case _:
            return stmt


# --- liveness -------------------------------------------------------------------------------------


def _variables(exprs: Iterable[Expr]) -> set[int]:
    """Ids of the variables and arrays that expressions name."""
    found = set()
    for node in walk_exprs(*exprs):
        match node:
            case VarRef(var=var) | ArrayRead(array=var) | Subscript(array=var):
                found.add(var.id)
            case ArrayLen(array=var):
                found.add(var.id)
            case _:
                pass
    return found


def _living(body: Body, pure: set[str]) -> set[int]:
    """Ids of the variables that results depend on."""
    sources: dict[int, set[int]] = {}
    alive: set[int] = set()
    for stmt in walk_stmts(body):
        read = _variables(expressions_of(stmt))
        match stmt:
            case Let(var=var) | LetMut(var=var) | Assign(target=LVar(var=var)):
                sources.setdefault(var.id, set()).update(read)
            case Call(results=results, function=function) if function in pure:
                for var in results:
                    sources.setdefault(var.id, set()).update(read)
            case Assign(target=target):
                alive |= read
                written = root_variable(target)
                if written is not None:
                    alive.add(written.id)
            case _:
                alive |= read
    waiting = list(alive)
    while waiting:
        for source in sources.pop(waiting.pop(), ()):
            if source not in alive:
                alive.add(source)
                waiting.append(source)
    return alive


def _without_dead(body: Body, alive: set[int], pure: set[str]) -> Body:
    return map_body(body, lambda stmt: _living_statement(stmt, alive, pure))


def _living_statement(stmt: Stmt, alive: set[int], pure: set[str]) -> Stmt | Body:
    match stmt:
        case Let(var=var) | LetMut(var=var) | Assign(target=LVar(var=var)) if var.id not in alive:
            return ()
        case Warp(result=Var(id=id)) if id not in alive:
            return ()
        case Atomic(result=Var(id=id)) if id not in alive:
            return replace(stmt, result=None)
        case Call(results=results, function=function) if function in pure:
            return () if alive.isdisjoint(var.id for var in results) else stmt
        case _:
            return stmt


def _is_pure(body: Body, pure: set[str]) -> bool:
    """Whether a helper only computes its result, and surely ends."""
    for stmt in walk_stmts(body):
        match stmt:
            case Assign(target=LVar()):
                pass
            case Call(function=function) if function in pure:
                pass
            case Assign() | Atomic() | Barrier() | Warp() | WarpBarrier() | MemFence():
                return False
            case Call() | While():
                return False
            case Assert() | Print() | Native() | Coopmat() | Match():
                return False
            case _:
                pass
    return True


# --- declarations ---------------------------------------------------------------------------------


def _sizes(decl: Decl) -> tuple[Expr, ...]:
    match decl:
        case SharedDecl(size=expr) | LocalDecl(value=expr) if expr is not None:
            return (expr,)
        case _:
            return ()


def _called(body: Body, helpers: list[HelperFunction]) -> set[str]:
    """Names of the helpers that are called, directly or not."""
    found = _calls_in(body)
    for helper in reversed(helpers):  # callers come behind their callees
        if helper.name in found:
            found |= _calls_in(helper.body)
    return found


def _calls_in(body: Body) -> set[str]:
    calls = {stmt.function for stmt in walk_stmts(body) if isinstance(stmt, Call)}
    return calls | {expr.function for expr in walk_body_exprs(body) if isinstance(expr, App)}


def _without_locals(helper: HelperFunction) -> HelperFunction:
    used = free_vars(helper.body)
    kept = tuple(decl for decl in helper.locals if decl.var.id in used)
    return helper if len(kept) == len(helper.locals) else replace(helper, locals=kept)


def _without_declarations(
    kernel: Kernel, body: Body, helpers: tuple[HelperFunction, ...]
) -> Kernel:
    used = set(free_vars(body))
    locals = tuple(decl for decl in kernel.locals if decl.var.id in used)
    used |= _variables(size for decl in locals for size in _sizes(decl))
    params = tuple(
        param
        for param in kernel.params
        if isinstance(param.role, UserArgument) or param.var.id in used
    )
    same = (
        body is kernel.body
        and len(locals) == len(kernel.locals)
        and len(params) == len(kernel.params)
        and len(helpers) == len(kernel.functions)
        and all(new is old for new, old in zip(helpers, kernel.functions, strict=True))
    )
    if same:
        return kernel
    return replace(kernel, body=body, locals=locals, params=params, functions=helpers)
