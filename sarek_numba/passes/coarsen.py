"""Coarsening: each thread does the work of several, so that more of its accesses are under way.

In: the kernel as the passes before leave it. Out: one whose block does what `each` blocks of the
user's do that are neighbours along x, thread by thread. A parameter of role `Threads` has the
number of the user's threads along x and says how many blocks are to be launched (`launched`).

The threads that a thread stands for run in lock-step, statement by statement, and what a statement
reads is read for all of them before anything is written for one. That is one of the orders in which
the threads of a launch may run (they share no barrier and nothing of a warp, and atomics are left
alone), so each result of it is one of the user's kernel, bit for bit. They do so where all exist
and pass the tests that stand around everything the kernel does (`if i < n`); else each does the
whole of the user's kernel, one after the other.

It is done for who asks for it (`asked`), who is told what was done, or why nothing was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial, reduce

from sarek_numba import policy
from sarek_numba.ir.build import Fresh
from sarek_numba.ir.nodes import (
    App,
    ArrayCreate,
    ArrayRead,
    ArrayReadExpr,
    Assert,
    Assign,
    Atomic,
    Barrier,
    Binary,
    BinOp,
    Body,
    Call,
    Cast,
    ConstDecl,
    Coopmat,
    Coordinate,
    Direction,
    Expr,
    For,
    If,
    Index,
    Kernel,
    LElement,
    Let,
    LetMut,
    LVar,
    MemFence,
    ParamDecl,
    Pragma,
    Print,
    Return,
    SharedDecl,
    Stmt,
    Unary,
    UnOp,
    VarRef,
    Warp,
    WarpBarrier,
    While,
    constant,
)
from sarek_numba.ir.texts import has_texts
from sarek_numba.ir.types import BOOL, INT32, INT64, Scalar, Threads, Vec
from sarek_numba.ir.typing import type_of
from sarek_numba.ir.walk import (
    bound_within,
    declared_by,
    expressions_of,
    map_body_expressions,
    map_expr,
    substitute,
    substitute_body,
    walk_body_exprs,
    walk_exprs,
    walk_stmts,
)
from sarek_numba.passes.common import Target

NAME = "coarsening"
_MOST = 8  # threads that one stands for
_READ_BYTES = 64  # that one thread is to have under way; more need registers and win nothing
_MOST_NODES = 200  # of expressions in a kernel: what computes for long does not wait for memory
PROOF = policy.Proof(
    "threads that share no barrier, no shared memory, no warp operation and no atomic may run in "
    "lock-step, each in its own order"
)

_TAKEN = (Let, LetMut, Assign, If, Call)
_REFUSED: dict[type, str] = {
    Barrier: "its threads meet at a barrier",
    WarpBarrier: "its threads meet at a barrier",
    Warp: "it has operations of a warp",
    Coopmat: "it has matrix operations",
    Atomic: "it has atomic operations",
    MemFence: "it has a fence",
    For: "it has a loop",
    While: "it has a loop",
    Print: "it prints",
    Assert: "it asserts",
    Return: "it returns from within",
    Pragma: "it has a pragma",
}


# --- what is launched -----------------------------------------------------------------------------


def launched(params: Sequence[ParamDecl], grid: tuple[int, int, int]) -> tuple[int, int, int]:
    """The grid that a program with these parameters is launched with, for one of the user's."""
    return -(-grid[0] // each_of(params)), grid[1], grid[2]


def each_of(params: Sequence[ParamDecl]) -> int:
    """How many of the user's threads one thread of a program with these parameters stands for."""
    return next((param.role.each for param in params if isinstance(param.role, Threads)), 1)


# --- decisions ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Decision:
    """What the pass decided of the last kernel; None where the target cannot."""

    outcome: policy.Applied | policy.Refused | None = None


_asking: ContextVar[Decision | None] = ContextVar("sarek_coarsening", default=None)


@contextmanager
def asked() -> Iterator[Decision]:
    """Within, kernels are coarsened for targets that can, and decisions told to what this gives."""
    decision = Decision()
    token = _asking.set(decision)
    try:
        yield decision
    finally:
        _asking.reset(token)


# --- the pass -------------------------------------------------------------------------------------


def coarsen(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with the work of several threads in each, if that is asked for."""
    decision = _asking.get()
    if not target.coarsening or decision is None:
        return kernel
    each = _each(kernel, target)
    if isinstance(each, str):
        decision.outcome = policy.Refused(each)
        return kernel
    text = f"{each} elements a thread; {PROOF.text}"
    decision.outcome = policy.Applied(replace(PROOF, text=text))
    return _Coarsening(kernel, each, target.address_bits).run()


def _each(kernel: Kernel, target: Target) -> int | str:
    """How many threads one stands for; why only itself."""
    why = why_not(kernel)
    if why is not None:
        return why
    widest = max(_element_bytes(kernel), default=0)
    if not widest:
        return "it uses no array"
    each, read = min(_MOST, target.coarsening // widest), _read_bytes(kernel)
    while each > 1 and each * read > _READ_BYTES:
        each //= 2
    if each > 1:
        return each
    if read * 2 > _READ_BYTES:
        return f"a thread reads {read} bytes, which are enough to wait for"
    return f"its elements of {widest} bytes are wide enough"


def _element_bytes(kernel: Kernel) -> list[int]:
    elements = [param.array.element for param in kernel.params if param.array is not None]
    return [element.bits // 8 for element in elements if isinstance(element, Scalar)]


def _read_bytes(kernel: Kernel) -> int:
    """Bytes of the arguments that one thread reads, in all branches."""
    arrays = {param.var.id: param.var.type for param in kernel.params}
    total = 0
    for expr in walk_body_exprs(kernel.body):
        kind = arrays.get(expr.array.id) if isinstance(expr, ArrayRead) else None
        if isinstance(kind, Vec) and isinstance(kind.element, Scalar):
            total += kind.element.bits // 8
    return total


def why_not(kernel: Kernel) -> str | None:
    """Why a thread of a kernel may not do the work of several, or gains nothing by it."""
    for decl in kernel.locals:
        if not isinstance(decl, ConstDecl):
            return f"it has {'shared memory' if isinstance(decl, SharedDecl) else 'local arrays'}"
    if has_texts(kernel):
        return "a function of it is given as text"
    why = _statements_refused(kernel.body)
    if why is not None:
        return why
    for helper in kernel.functions:
        why = _statements_refused(helper.body, (*_TAKEN, Return))
        if why is not None or helper.locals:
            return f"its function '{helper.name}' is no formula: {why or 'it has local arrays'}"
        if any(isinstance(expr, Index) for expr in walk_body_exprs(helper.body)):
            return f"its function '{helper.name}' asks for the place in the grid"
    return _expressions_refused(kernel)


def _statements_refused(body: Body, taken: tuple[type, ...] = _TAKEN) -> str | None:
    for stmt in walk_stmts(body):
        if not isinstance(stmt, taken):
            return _REFUSED.get(type(stmt), f"it has a statement {type(stmt).__name__}")
        if isinstance(stmt, Assign) and not isinstance(stmt.target, LVar | LElement):
            return "it has records"
    return None


def _expressions_refused(kernel: Kernel) -> str | None:
    count = 0
    for expr in walk_body_exprs(kernel.body):
        count += 1
        match expr:
            case ArrayCreate():
                return "it has local arrays"
            case Index(coordinate=Coordinate.GRID_DIM, axis=0):
                return "it asks for the number of blocks"
            case _:
                pass
    if count > _MOST_NODES:
        return f"it is long: {count} operations, of which {_MOST_NODES} are the most"
    return None


# --- copies ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Copy:
    """The code of one of the threads that a thread stands for: its variables, and its place."""

    fresh: Fresh
    places: dict[Coordinate, Expr]  # along x, of the index type
    variables: dict[int, Expr] = field(default_factory=dict)

    def body(self, body: Body) -> Body:
        """A copy of statements; what they declare is known to later ones."""
        for stmt in walk_stmts(body):
            for var in (*declared_by(stmt), *bound_within(stmt)):
                self.variables[var.id] = VarRef(self.fresh.like(var))
        return map_body_expressions(substitute_body(body, self.variables), self.placed)

    def expr(self, expr: Expr) -> Expr:
        """A copy of an expression."""
        return self.placed(substitute(expr, self.variables))

    def placed(self, root: Expr) -> Expr:
        """An expression with the place of this thread for that of the launched one."""

        def node(expr: Expr) -> Expr:
            match expr:
                case Index(coordinate=coordinate, axis=0, type=kind) if coordinate in self.places:
                    place = self.places[coordinate]
                    return place if type_of(place) is kind else Cast(kind, place, span=expr.span)
                case _:
                    return expr

        return map_expr(root, node)


# --- the new body ---------------------------------------------------------------------------------


class _Coarsening:
    def __init__(self, kernel: Kernel, each: int, address_bits: int) -> None:
        self.kernel = kernel
        self.each = each
        self.width = INT32 if kernel.index_bits == 32 else INT64  # of the parameter
        self.word = INT64 if address_bits == 64 else self.width  # of what is computed
        self.fresh = Fresh.beyond(kernel)
        self.threads = self.fresh("threads", self.width)
        self.first = self.fresh("first", self.word)  # of the threads that the block stands for
        self.rest = self.fresh("rest", self.word)  # threads that there are from that one on
        self.done = self.fresh("done", BOOL, mutable=True)

    def run(self) -> Kernel:
        """The kernel anew."""
        block, size = self._index(Coordinate.BLOCK_IDX), self._size(self.each)
        all_exist = _less(_sum(self._thread(), self._size(self.each - 1)), VarRef(self.rest))
        body: tuple[Stmt, ...] = (
            Let(self.first, _times(block, size)),
            Let(self.rest, Binary(BinOp.SUB, self._count(), VarRef(self.first), weak=True)),
            LetMut(self.done, constant(BOOL, False)),
            If(all_exist, self._together()),
            If(Unary(UnOp.NOT, VarRef(self.done)), (self._one_by_one(),)),
        )
        param = ParamDecl(self.threads, None, Threads(self.each))
        return replace(self.kernel, params=(*self.kernel.params, param), body=body)

    def _index(self, coordinate: Coordinate) -> Expr:
        return Index(coordinate, 0, self.word)

    def _count(self) -> Expr:
        """The user's threads along x."""
        count = VarRef(self.threads)
        return count if self.word is self.width else Cast(self.word, count)

    def _thread(self) -> Expr:
        return self._index(Coordinate.THREAD_IDX)

    def _size(self, blocks: int) -> Expr:
        """Threads along x of so many blocks."""
        return _times(self._index(Coordinate.BLOCK_DIM), constant(self.word, blocks))

    def _copy(self, number: Expr, global_index: Expr) -> _Copy:
        """The code of the thread of a block, by the block's number among those that are one."""
        blocks = _times(self._index(Coordinate.BLOCK_IDX), constant(self.word, self.each))
        places = {
            Coordinate.GLOBAL_IDX: global_index,
            Coordinate.BLOCK_IDX: _sum(blocks, number),
            Coordinate.GRID_SIZE: self._count(),
        }
        return _Copy(self.fresh, places)

    # --- one by one ---

    def _one_by_one(self) -> Stmt:
        number = self.fresh("number", self.word)
        local = self.fresh("place", self.word)
        index = self.fresh("index", self.word)
        size = self._index(Coordinate.BLOCK_DIM)
        copy = self._copy(VarRef(number), VarRef(index))
        exists = If(
            _less(VarRef(local), VarRef(self.rest)),
            (Let(index, _sum(VarRef(self.first), VarRef(local))), *copy.body(self.kernel.body)),
        )
        steps = (Let(local, _sum(self._thread(), _times(VarRef(number), size))), exists)
        zero, one = constant(self.word, 0), constant(self.word, 1)
        count = constant(self.word, self.each)
        return For(number, zero, count, one, Direction.UPTO, steps, unguarded=True)

    # --- together ---

    def _together(self) -> Body:
        lets: list[Stmt] = []
        copies: list[_Copy] = []
        for k in range(self.each):
            index = self.fresh("index", self.word)
            local = self._thread() if k == 0 else _sum(self._thread(), self._size(k))
            lets.append(Let(index, _sum(VarRef(self.first), local)))
            copies.append(self._copy(constant(self.word, k), VarRef(index)))
        return (*lets, *self._guarded(self.kernel.body, copies))

    def _guarded(self, body: Body, copies: list[_Copy]) -> Body:
        """What all do who pass the tests around it; it says that it is done."""
        guard = _guard(body)
        if guard is None:
            return (*self._lock_step(body, copies), Assign(LVar(self.done), constant(BOOL, True)))
        lets = self._lock_step(body[:-1], copies)
        condition = reduce(partial(Binary, BinOp.AND), [c.expr(guard.condition) for c in copies])
        return (*lets, If(condition, self._guarded(guard.then, copies)))

    def _lock_step(self, body: Body, copies: list[_Copy]) -> Body:
        """Statements, each for all before the next; stores stand behind all that they store."""
        result: list[Stmt] = []
        for stmt in body:
            made = [one for copy in copies for one in copy.body((stmt,))]
            stores: list[Stmt] = []
            for one in made:
                match one:
                    case Assign(target=LElement(index=index) as target, value=value):
                        target = replace(target, index=self._named("index", index, result))
                        value = self._named("value", value, result)
                        stores.append(replace(one, target=target, value=value))
                    case _:
                        result.append(one)
            result += stores
        return tuple(result)

    def _named(self, name: str, expr: Expr, lets: list[Stmt]) -> Expr:
        """An expression that reads no memory, behind `lets` that do."""
        if not _reads(expr):
            return expr
        var = self.fresh(name, type_of(expr))
        lets.append(Let(var, expr, span=expr.span))
        return VarRef(var, span=expr.span)


def _guard(body: Body) -> If | None:
    """The test that stands around all that a body does, if memory has no part in it."""
    if not body or not isinstance(body[-1], If) or body[-1].orelse:
        return None
    lets, guard = body[:-1], body[-1]
    if not all(isinstance(stmt, Let) for stmt in lets):
        return None
    roots = [expr for stmt in (*lets, replace(guard, then=())) for expr in expressions_of(stmt)]
    return None if any(map(_reads, roots)) else guard


def _reads(root: Expr) -> bool:
    return any(isinstance(e, ArrayRead | ArrayReadExpr | App) for e in walk_exprs(root))


def _times(left: Expr, right: Expr) -> Expr:
    return Binary(BinOp.MUL, left, right, weak=True)


def _sum(left: Expr, right: Expr) -> Expr:
    return Binary(BinOp.ADD, left, right, weak=True)


def _less(left: Expr, right: Expr) -> Expr:
    return Binary(BinOp.LT, left, right)
