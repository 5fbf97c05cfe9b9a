"""Statements: branches, masks, loops and calls of one lane group.

A uniform condition is a real branch. A divergent one runs each arm under the lanes that take it,
if any do. Where all lanes run, an arm is emitted a second time for the case that all of them take
it, so that the common case of a bounds guard has no masks at all.
"""

from __future__ import annotations

from typing import assert_never

from sarek_native import masks, memory, outlined, texts
from sarek_native.expressions import constant_size, emit, type_name
from sarek_native.loops import emit_for, emit_while
from sarek_native.matrices import emit_matrix
from sarek_native.operators import cast
from sarek_native.state import FunctionContext, State
from sarek_native.values import Place, Slot, Value, zero
from sarek_native.warps import emit_warp
from sarek_numba.errors import UnsupportedConstruct
from sarek_numba.ir.nodes import (
    App,
    ArrayCreate,
    Assert,
    Assign,
    Atomic,
    Barrier,
    Block,
    Body,
    Break,
    Call,
    Continue,
    Coopmat,
    Empty,
    Expr,
    ExprStmt,
    For,
    HelperFunction,
    If,
    LElement,
    Let,
    LetMut,
    LocalDecl,
    LVar,
    Match,
    MemFence,
    Native,
    Pragma,
    Print,
    Return,
    Seq,
    Stmt,
    TupleExpr,
    Var,
    VarRef,
    Warp,
    WarpBarrier,
    While,
)
from sarek_numba.ir.texts import text_of
from sarek_numba.ir.types import Array, MemSpace, Scalar, TupleType, Vec
from sarek_numba.ir.uniformity import BLOCK
from sarek_numba.ir.walk import walk_body_exprs, walk_stmts

_COPIED = 400  # statements and expressions of an arm that is emitted for all lanes as well


def emit_body(state: State, body: Body) -> None:
    """The statements of a body. Afterwards the mask holds the lanes of `mask` that have not left,
    and the block is closed if control can not come out at the end."""
    code = state.code
    end: str | None = None
    for position, stmt in enumerate(body):
        before = state.mask
        rest = body[position + 1 :] if state.mask is None and _leaves_early(stmt) else ()
        if rest and _worth_copying(rest):
            # as its else arm, the rest of the body gets a way for the case that nobody leaves
            assert isinstance(stmt, If)
            _if(state, If(stmt.condition, stmt.then, rest, span=stmt.span))
            break
        emit_stmt(state, stmt)
        if code.closed:
            break
        if not state.departs(stmt):
            continue
        state.remain(before)
        if position + 1 < len(body) and state.mask != before:
            end = end or code.fresh("end")
            going = code.fresh("stay")
            code.branch(masks.any_lane(code, state.mask), going, end)
            code.label(going)
    if end is not None:
        code.label(end)


def emit_stmt(state: State, stmt: Stmt) -> None:
    code = state.code
    match stmt:
        case Let(var=var, value=value):
            _let(state, var, value)
        case LetMut(var=var, value=initial):
            _let_mut(state, var, initial)
        case Assign(target=LVar(var=var), value=value):
            _assign(state, var, emit(state, value))
        case Assign(target=LElement(array=array, index=index), value=value):
            at = emit(state, index)
            stored = emit(state, value)
            memory.store(code, state.place_of(array), at, stored, state.mask)
        case If():
            _if(state, stmt)
        case While():
            emit_while(state, stmt, emit_body)
        case For():
            emit_for(state, stmt, emit_body)
        case Break() | Continue():
            state.depart(stmt)
        case Return(value=result):
            if result is not None:
                _results(state, result)
            state.depart(stmt)
        case Seq(body=body) | Block(body=body) | Pragma(body=body) | Native(fallback=body):
            emit_body(state, body)
        case Call(results=results):
            assert state.inline is not None
            for var, found in zip(results, state.inline(state, stmt), strict=True):
                state.bind(var, found)
        case Atomic():
            _atomic(state, stmt)
        case Warp():
            emit_warp(state, stmt)
        case MemFence():
            code.effect("fence seq_cst")
        case ExprStmt(value=value):
            emit(state, value)
        case Empty() | Assert() | WarpBarrier():
            pass
        case Barrier():
            raise AssertionError("a barrier within a region")
        case Coopmat():
            emit_matrix(state, stmt)
        case Assign() | Match() | Print():
            raise UnsupportedConstruct(f"{type_name(stmt)} is not supported by the native device")
        case _:
            assert_never(stmt)


def _let(state: State, var: Var, value: Expr) -> None:
    if isinstance(value, ArrayCreate):
        state.bindings[var.id] = array_place(state, var, value)
    else:
        state.bind(var, emit(state, value))


def _let_mut(state: State, var: Var, initial: Expr | None) -> None:
    if isinstance(initial, ArrayCreate):
        state.bindings[var.id] = array_place(state, var, initial)
        return
    assert isinstance(var.type, Scalar)
    value = Value(var.type, zero(var.type)) if initial is None else emit(state, initial)
    slot = state.reserved.get(var.id) or state.code.slot(var.type, state.varies(var))
    state.bindings[var.id] = slot
    state.code.write(slot, value if slot.lanes else state.scalar(value))


def array_place(state: State, var: Var, create: ArrayCreate) -> Place:
    """Storage for a local array (one for each thread) or a shared one."""
    size = constant_size(create.size)
    allocate = state.shared_array if create.space is MemSpace.SHARED else state.local_array
    assert allocate is not None
    return allocate(var, size)


def _assign(state: State, var: Var, value: Value) -> None:
    slot = state.bindings[var.id]
    assert isinstance(slot, Slot), f"{var.name} is immutable"
    state.put(slot, value)


def _atomic(state: State, stmt: Atomic) -> None:
    place = state.place_of(stmt.array)
    index = emit(state, stmt.index)
    operands = [emit(state, e) for e in (stmt.compare, stmt.value) if e is not None]
    old = memory.atomic(state.code, stmt.op, place, index, tuple(operands), state.mask)
    if stmt.result is not None:
        state.bind(stmt.result, old)


# --- branches -------------------------------------------------------------------------------------


def _if(state: State, stmt: If) -> None:
    condition = emit(state, stmt.condition)
    if state.uniformity.of_expr(stmt.condition) <= BLOCK:
        condition = state.scalar(condition)
    if condition.uniform:
        _uniform_if(state, stmt, condition)
        return
    flags = masks.condition_lanes(state.code, condition)
    ways = [state.mask is None and _worth_copying(arm) for arm in (stmt.then, stmt.orelse)]
    if any(ways):
        _guarded_if(state, stmt, flags, ways)
    else:
        _divergent_if(state, stmt, flags)


def _leaves_early(stmt: Stmt) -> bool:
    """Is this an `if` without else whose arm ends by leaving?"""
    if not isinstance(stmt, If) or stmt.orelse or not stmt.then:
        return False
    return isinstance(stmt.then[-1], Return | Continue | Break)


def _uniform_if(state: State, stmt: If, condition: Value) -> None:
    code, before = state.code, state.mask
    then, orelse, join = (code.fresh(stem) for stem in ("then", "else", "join"))
    code.branch(condition.text, then, orelse if stmt.orelse else join)
    open_ends = not stmt.orelse
    for label, body in ((then, stmt.then), (orelse, stmt.orelse)):
        if label == orelse and not body:
            continue
        code.label(label)
        state.mask = before
        emit_body(state, body)
        if not code.closed:
            open_ends = True
            code.jump(join)
    state.mask = before
    if open_ends:
        code.label(join)


def _divergent_if(state: State, stmt: If, flags: str) -> None:
    code, before = state.code, state.mask
    for body, lanes in ((stmt.then, masks.narrow), (stmt.orelse, masks.exclude)):
        if not body:
            continue
        mask = lanes(code, before, flags)
        some, done = code.fresh("some"), code.fresh("done")
        code.branch(masks.any_lane(code, mask), some, done)
        code.label(some)
        state.mask = mask
        emit_body(state, body)
        code.label(done)
    state.mask = before


def _guarded_if(state: State, stmt: If, flags: str, ways: list[bool]) -> None:
    """A divergent branch with a way of its own, without masks, where all lanes take one arm."""
    code = state.code
    join = code.fresh("join")
    tests = (masks.every_lane, masks.no_lane)
    for body, test, wanted in zip((stmt.then, stmt.orelse), tests, ways, strict=True):
        if not wanted:
            continue
        together, others = code.fresh("together"), code.fresh("others")
        code.branch(test(code, flags), together, others)
        code.label(together)
        state.mask = None
        emit_body(state, body)
        if not code.closed:
            code.jump(join)
        code.label(others)
    state.mask = None
    _divergent_if(state, stmt, flags)
    code.label(join)


def _worth_copying(body: Body) -> bool:
    """Is an arm small enough to be emitted twice, and does it touch memory?"""
    count, touches = 0, False
    for stmt in walk_stmts(body):
        count += 1
        touches = touches or (isinstance(stmt, Assign) and isinstance(stmt.target, LElement))
        if count > _COPIED:
            return False
    for _ in walk_body_exprs(body):
        count += 1
        if count > _COPIED:
            return False
    return touches


# --- calls ----------------------------------------------------------------------------------------


def _results(state: State, value: Expr) -> None:
    """Put what a helper returns into its result slots."""
    items = value.items if isinstance(value, TupleExpr) else (value,)
    for slot, item in zip(state.function.results, items, strict=False):
        state.put(slot, emit(state, item))


def inline(state: State, call: Call | App) -> list[Value]:
    """The body of a helper in place of its call; gives its results."""
    helper = state.functions[call.function]
    arguments: list[Value | Place] = []
    for param, argument in zip(helper.params, call.args, strict=True):
        if isinstance(param.type, Vec | Array):
            assert isinstance(argument, VarRef)
            arguments.append(state.place_of(argument.var))
        else:
            arguments.append(emit(state, argument))
    lanes = _result_lanes(state, call)
    if text_of(helper) is not None:
        found = texts.call(state, helper, arguments)
        pairs = zip(found, lanes, strict=False)
        return [value if wide else state.scalar(value) for value, wide in pairs]
    if helper.name in state.outlined:
        found = outlined.call(state, call, arguments, _inlined_wide)
        pairs = zip(found, lanes, strict=False)
        return [value if wide else state.scalar(value) for value, wide in pairs]
    for param, value in zip(helper.params, arguments, strict=True):
        state.bindings[param.id] = value
    return _inlined(state, helper, lanes)


def _inlined_wide(state: State, helper: HelperFunction) -> list[Value]:
    return _inlined(state, helper, [True] * len(_result_types(helper)))


def _inlined(state: State, helper: HelperFunction, lanes: list[bool]) -> list[Value]:
    """The body of a helper whose parameters are bound; `lanes` says which results are vectors."""
    code = state.code
    declare_locals(state, helper.locals)
    if _returns_at_end(helper):
        return _straight(state, helper)
    outer, before = state.function, state.mask
    staying = masks.Live(code) if returns_apart(state, helper.body) else None
    if staying is not None:
        staying.set(before)
    types = _result_types(helper) if lanes else ()
    slots = tuple(code.slot(type, wide) for type, wide in zip(types, lanes, strict=True))
    state.function = FunctionContext(code.fresh("leave"), before, staying, slots)
    for slot in slots:
        code.write(slot, Value(slot.type, zero(slot.type)))
    emit_body(state, helper.body)
    code.label(state.function.exit)
    state.function, state.mask = outer, before
    return [code.read(slot) for slot in slots]


def declare_locals(state: State, locals: tuple[LocalDecl, ...]) -> None:
    """Kernel-wide or helper-wide locals: arrays of each thread, and mutable variables."""
    for decl in locals:
        _let_mut(state, decl.var, decl.value)


def _result_lanes(state: State, call: Call | App) -> list[bool]:
    """Which results of a call are vectors: those that it does not give every thread the same."""
    if isinstance(call, App):
        return [state.uniformity.of_expr(call) > BLOCK]
    return [state.varies(var) for var in call.results]


def _result_types(helper: HelperFunction) -> tuple[Scalar, ...]:
    result = helper.result
    items = result.items if isinstance(result, TupleType) else (result,)
    return tuple(item for item in items if isinstance(item, Scalar))


def _returns_at_end(helper: HelperFunction) -> bool:
    """Is the only return the last statement (or none there)?"""
    count = sum(isinstance(stmt, Return) for stmt in walk_stmts(helper.body))
    return count == 0 or (count == 1 and isinstance(helper.body[-1], Return))


def _straight(state: State, helper: HelperFunction) -> list[Value]:
    """A helper whose only return is its last statement needs no result slots."""
    outer, before = state.function, state.mask
    state.function = FunctionContext("unreachable", before)
    last = helper.body[-1] if helper.body else Empty()
    body = helper.body[:-1] if isinstance(last, Return) else helper.body
    emit_body(state, body)
    found: list[Value] = []
    if isinstance(last, Return) and last.value is not None:
        items = last.value.items if isinstance(last.value, TupleExpr) else (last.value,)
        types = _result_types(helper)
        found = [
            cast(state.code, emit(state, item), type)
            for item, type in zip(items, types, strict=True)
        ]
    state.function, state.mask = outer, before
    return found


def returns_apart(state: State, body: Body) -> bool:
    """Does any return leave threads behind?"""
    return any(
        isinstance(stmt, Return) and state.uniformity.control_of(stmt).level > BLOCK
        for stmt in walk_stmts(body)
    )
