"""Kernels in which a compiler may come to choose between elements of a thread's own arrays.

Where threads go different ways and read an element on each, LLVM may move the reads behind the
place where the ways meet: one read through an address that depends on the way. So it may with
writes; and an index that is chosen, or made not negative, may become a choice of addresses. Which
it makes of which, and when, depends on passes that nothing here can follow. So this finds the
kernels in which it might:

- an index of such an array differs between threads of a block;
- two places read (or two write) such arrays, and a branch, or a loop that threads leave apart, has
  one of them within and another outside. The branch counts even where all threads take it alike: a
  choice so made has been followed to no element at all.

A place in a loop counts as several, since the loop may be unrolled; one in a helper, which may be
called in a loop, does too. A text of the user's gets no such array.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sarek_numba.ir.nodes import (
    App,
    ArrayRead,
    Assign,
    Atomic,
    Binary,
    BinOp,
    Body,
    Break,
    Call,
    Continue,
    Expr,
    For,
    If,
    IfExpr,
    Kernel,
    LElement,
    Return,
    Stmt,
    Var,
    While,
)
from sarek_numba.ir.types import Array, MemSpace
from sarek_numba.ir.uniformity import BLOCK, Uniformity, analyse
from sarek_numba.ir.walk import (
    assigned_by,
    bodies_of,
    bodies_of_kernel,
    expressions_of,
    walk_body_exprs,
    walk_exprs,
    walk_stmts,
)


class Places(NamedTuple):
    """How many places read and write arrays of the thread, those of called helpers included."""

    reads: int = 0
    writes: int = 0

    def joined(self, other: Places) -> Places:
        return Places(self.reads + other.reads, self.writes + other.writes)


def chooses_between_elements(kernel: Kernel) -> bool:
    """Whether threads of a block may come to different elements of arrays of their own."""
    return _Search(kernel).found()


class _Search:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.helpers: dict[str, Places] = {}
        for helper in kernel.functions:  # what a helper calls comes before it
            self.helpers[helper.name] = self.of_body(helper.body)
        self.all = self.of_body(kernel.body)

    def found(self) -> bool:
        if not any(self.all):
            return False
        self.uniformity: Uniformity = analyse(self.kernel)
        if any(map(self.indexes_apart, bodies_of_kernel(self.kernel))):
            return True
        return self.parts(self.kernel.body, False) or any(
            self.parts(helper.body, True)
            for helper in self.kernel.functions
            if any(self.helpers[helper.name])
        )

    def indexes_apart(self, body: Body) -> bool:
        """Whether an index of an array of the thread differs between threads of a block."""
        return any(self.uniformity.of_expr(index) > BLOCK for index in _indices(body))

    # --- counting ---

    def of_body(self, body: Body) -> Places:
        places = self.of_exprs(walk_body_exprs(body))
        for stmt in walk_stmts(body):
            match stmt:
                case Call(function=function):
                    places = places.joined(self.helpers[function])
                case Atomic(array=array) if _is_own(array):
                    places = places.joined(Places(1, 1))
                case _:
                    written = assigned_by(stmt)
                    if written is not None and _is_own(written):
                        places = places.joined(Places(writes=1))
        return places

    def of_exprs(self, exprs: Iterator[Expr]) -> Places:
        places = Places()
        for expr in exprs:
            match expr:
                case ArrayRead(array=array) if _is_own(array):
                    places = places.joined(Places(reads=1))
                case App(function=function):
                    places = places.joined(self.helpers[function])
                case _:
                    pass
        return places

    # --- searching ---

    def parts(self, body: Body, repeated: bool) -> bool:
        """Whether something in the body comes between places; `repeated`: in a loop."""
        before = Places()
        for stmt in body:
            if self.parted_by(stmt, before, repeated):
                return True
            again = repeated or isinstance(stmt, For | While)
            if any(self.parts(inner, again) for inner in bodies_of(stmt)):
                return True
            before = before.joined(self.of_body((stmt,)))
        return False

    def parted_by(self, stmt: Stmt, before: Places, repeated: bool) -> bool:
        again = repeated or isinstance(stmt, While)
        for expr in walk_exprs(*expressions_of(stmt)):
            if any(self.is_divided(self.of_exprs(walk_exprs(w)), again) for w in _ways(expr)):
                return True
        match stmt:
            case If(then=then, orelse=orelse):
                if any(self.is_divided(self.of_body(arm), repeated) for arm in (then, orelse)):
                    return True
                # those that leave have been at places before, those that stay come to others
                return _leaves((stmt,)) and (repeated or self.is_divided(before, False))
            case For(body=inner) | While(body=inner):
                if self.uniformity.of_loop(stmt) <= BLOCK:
                    return False
                tested = self.of_exprs(walk_exprs(*expressions_of(stmt)))
                return self.is_divided(tested, False) or self.is_divided(
                    self.of_body(inner), repeated
                )
            case _:
                return False

    def is_divided(self, inside: Places, repeated: bool) -> bool:
        """Whether places are inside, and others outside or, in a loop, in another pass."""
        pairs = zip(inside, self.all, strict=True)
        return any(mine > 0 and (repeated or mine < every) for mine, every in pairs)


def _is_own(array: Var) -> bool:
    return isinstance(array.type, Array) and array.type.space is MemSpace.LOCAL


def _indices(body: Body) -> Iterator[Expr]:
    """The indices of arrays of the thread."""
    for expr in walk_body_exprs(body):
        if isinstance(expr, ArrayRead) and _is_own(expr.array):
            yield expr.index
    for stmt in walk_stmts(body):
        match stmt:
            case Atomic(array=array, index=index) if _is_own(array):
                yield index
            case Assign(target=LElement(array=array, index=index)) if _is_own(array):
                yield index
            case _:
                pass


def _ways(expr: Expr) -> tuple[Expr, ...]:
    """The operands of which one may be left out."""
    match expr:
        case IfExpr(then=then, orelse=orelse):
            return (then, orelse)
        case Binary(op=BinOp.AND | BinOp.OR, right=right):
            return (right,)
        case _:
            return ()


def _leaves(body: Body) -> bool:
    return any(isinstance(stmt, Return | Break | Continue) for stmt in walk_stmts(body))
