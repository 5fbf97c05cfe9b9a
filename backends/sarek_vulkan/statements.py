"""Statements of Sarek IR as SPIR-V's structured control flow, block for block.

A branch is a selection, a loop has one header, one block that begins its next pass and one behind
it; `break`, `continue` and `return` leave by a jump to these or out of the function. What stands
behind such a jump in a body never runs and is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, assert_never

from sarek_numba.errors import InvalidIR
from sarek_numba.ir.nodes import (
    ArrayCreate,
    Assert,
    Assign,
    Atomic,
    Barrier,
    Block,
    Body,
    Break,
    Call,
    Const,
    Continue,
    Coopmat,
    Direction,
    Empty,
    Expr,
    ExprStmt,
    For,
    If,
    LElement,
    Let,
    LetMut,
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
from sarek_numba.ir.types import Array, MemSpace, Scalar, TupleType, Vec
from sarek_vulkan import atomics, fragments, operators, synchronisation, warps, watch
from sarek_vulkan.arrays import Variable, memory_scalar
from sarek_vulkan.code import Value
from sarek_vulkan.expressions import Expressions, kind_of


class _Loop(NamedTuple):
    next: int
    merge: int
    left: int | None  # see `watch`


class Statements(Expressions):
    """Emits the bodies of one function; `result` is the type id of what it returns."""

    result: int = 0
    _loops: tuple[_Loop, ...] = ()
    _unroll = False

    def body(self, body: Body) -> None:
        for stmt in body:
            if not self.code.open:
                return
            self._statement(stmt)

    # --- declarations ---

    def declare(self, var: Var, value: Expr | None) -> None:
        """Declare a variable or an array of the thread; a variable without a value is zero."""
        match value:
            case ArrayCreate(element=Scalar() as element, size=Const() as size, space=space):
                if space is MemSpace.LOCAL:
                    self._declare_array(var, element, max(1, int(size.value)))
                # a shared one is a variable of the module: see `program`
            case VarRef(var=Var(type=Vec() | Array()) as array):
                self.arrays[var.id] = self.array(array)
            case None:
                assert isinstance(var.type, Scalar)
                type = self.code.types.scalar(var.type)
                self.bind(var, Value(self.code.types.zero(type), var.type))
            case _:
                self.bind(var, self.expression(value))

    def bind(self, var: Var, value: Value) -> None:
        """Give a scalar variable its first value."""
        if not var.mutable:
            self.values[var.id] = value
            return
        if var.id not in self.variables:
            variable = self.code.variable(self.code.types.scalar(value.type))
            self.code.name(variable, var.name)
            self.variables[var.id] = variable
        self.code.effect("OpStore", self.variables[var.id], value.id)

    def _declare_array(self, var: Var, element: Scalar, length: int) -> None:
        types, stored = self.code.types, memory_scalar(element)
        self.program.local_bytes += length * stored.bits // 8
        type = types.array(types.scalar(stored), length)
        array = self.code.variable(type)
        self.code.name(array, var.name)
        self.arrays[var.id] = Variable(array, element, "Function", stored, type)

    # --- statements ---

    def _statement(self, stmt: Stmt) -> None:
        match stmt:
            case Let(var=var, value=value) | LetMut(var=var, value=value):
                self.declare(var, value)
            case Assign(target=target, value=value):
                self._assign(target, value)
            case If(condition=condition, then=then, orelse=orelse):
                self._if(self.expression(condition), then, orelse)
            case For():
                self._for(stmt)
            case While(condition=condition, body=body):
                self._loop(lambda: self.expression(condition), lambda: self.body(body), None)
            case Break():
                watch.leaves(self, self._loops[-1].left)
                self.code.branch(self._loops[-1].merge)
            case Continue():
                self.code.branch(self._loops[-1].next)
            case Return(value=value):
                self._return(value)
            case Barrier():
                synchronisation.barrier(self.code, self.program.model)
            case MemFence(scope=scope):
                synchronisation.fence(self.code, self.program.model, scope)
            case Call(results=results, function=function, args=args):
                self._call(results, function, args)
            case Atomic():
                atomics.atomic(self, stmt)
            case Pragma(hints=hints, body=body):
                self._unroll = hints[:1] == ("unroll",)
                self.body(body)
                self._unroll = False
            case Seq(body=body) | Block(body=body):
                self.body(body)
            case Empty() | Assert() | ExprStmt():  # expressions are pure
                pass
            case Warp():
                warps.collective(self, stmt)
            case WarpBarrier():
                synchronisation.warp_barrier(self.code, self.program.model)
            case Print():
                raise InvalidIR("a print is made of stores by passes.report before it is emitted")
            case Coopmat():
                fragments.statement(self, stmt)
            case Native():
                raise InvalidIR("a text is the whole body of a helper (`assembly`)")
            case Match():
                raise InvalidIR(f"SPIR-V has no spelling for {kind_of(stmt)}")
            case _:
                assert_never(stmt)

    def _assign(self, target: object, value: Expr) -> None:
        match target:
            case LVar(var=var):
                self.code.effect("OpStore", self.variables[var.id], self.expression(value).id)
            case LElement(array=array, index=index):
                place, given = self.expression(index), self.expression(value)
                self.program.memory.store(self.code, self.array(array), place, given)
            case _:
                raise InvalidIR(f"SPIR-V has no spelling for {kind_of(target)}")

    def _if(self, condition: Value, then: Body, orelse: Body) -> None:
        code = self.code
        first, merge = code.label(), code.label()
        second = code.label() if orelse else merge
        code.effect("OpSelectionMerge", merge, "None")
        code.end("OpBranchConditional", condition.id, first, second)
        reached = not orelse
        arms = ((first, then), (second, orelse)) if orelse else ((first, then),)
        for label, arm in arms:
            code.start(label)
            self.body(arm)
            reached |= code.open
            code.branch(merge)
        code.start(merge)
        if not reached:
            code.end("OpUnreachable")

    def _return(self, value: Expr | None) -> None:
        code = self.code
        if value is None:
            code.end("OpReturn")
        elif isinstance(value, TupleExpr):
            items = [self.expression(item).id for item in value.items]
            code.end("OpReturnValue", code.do("OpCompositeConstruct", self.result, *items))
        else:
            code.end("OpReturnValue", self.expression(value).id)

    def _call(self, results: tuple[Var, ...], function: str, args: tuple[Expr, ...]) -> None:
        whole = self.call(function, args)
        is_tuple = isinstance(self.helpers(function).result, TupleType)
        for place, var in enumerate(results):
            assert isinstance(var.type, Scalar)
            if is_tuple:
                item = self.code.value("OpCompositeExtract", var.type, whole, place)
            else:
                item = Value(whole, var.type)
            self.bind(var, item)

    # --- loops ---

    def _loop(
        self,
        condition: Callable[[], Value],
        body: Callable[[], None],
        advance: Callable[[], None] | None,
    ) -> None:
        """`while condition: body`, `advance` between the passes, which `continue` leads to."""
        code = self.code
        header, test, inside, following, merge = (code.label() for _ in range(5))
        hint, self._unroll = "Unroll" if self._unroll else "None", False
        left = watch.place(self)
        code.branch(header)
        code.start(header)
        code.effect("OpLoopMerge", merge, following, hint)
        code.branch(test)
        code.start(test)
        passes = condition()
        if left is None:
            code.end("OpBranchConditional", passes.id, inside, merge)
        else:
            leaving = code.label()
            code.effect("OpSelectionMerge", inside, "None")
            code.end("OpBranchConditional", passes.id, inside, leaving)
            code.start(leaving)
            watch.leaves(self, left)
            code.branch(merge)
        code.start(inside)
        outer, self._loops = self._loops, (*self._loops, _Loop(following, merge, left))
        body()
        self._loops = outer
        code.branch(following)
        code.start(following)
        if advance is not None:
            advance()
        code.branch(header)
        code.start(merge)
        watch.behind(self, left)

    def _for(self, loop: For) -> None:
        by_one = isinstance(loop.step, Const) and abs(int(loop.step.value)) == 1
        if loop.direction is not Direction.RUNTIME and (loop.unguarded or by_one):
            self._plain_for(loop)
        else:
            self._counted_for(loop)

    def _counter(self, type: Scalar, first: Value) -> int:
        """A variable that counts."""
        counter = self.code.variable(self.code.types.scalar(type))
        self.code.effect("OpStore", counter, first.id)
        return counter

    def _plain_for(self, loop: For) -> None:
        code, type = self.code, loop.var.type
        assert isinstance(type, Scalar)
        first, stop = self.expression(loop.first), self.expression(loop.stop)
        step = self.expression(loop.step)
        counter = self._counter(type, first)
        order = "lt" if loop.direction is Direction.UPTO else "gt"

        def condition() -> Value:
            value = code.value("OpLoad", type, counter)
            return code.compare(order, value, stop)

        def advance() -> None:
            value = code.value("OpLoad", type, counter)
            code.effect("OpStore", counter, code.add(value, step).id)

        def body() -> None:
            self.bind(loop.var, code.value("OpLoad", type, counter))
            self.body(loop.body)

        self._loop(condition, body, advance)

    def _counted_for(self, loop: For) -> None:
        code, type = self.code, loop.var.type
        assert isinstance(type, Scalar)
        first, stop = self.expression(loop.first), self.expression(loop.stop)
        step = self.expression(loop.step)
        count = operators.passes(code, first, stop, step)
        counter = self._counter(count.type, code.constant(count.type, 0))

        def condition() -> Value:
            return code.compare("lt", code.value("OpLoad", count.type, counter), count)

        def advance() -> None:
            value = code.value("OpLoad", count.type, counter)
            one = code.constant(count.type, 1)
            code.effect("OpStore", counter, code.add(value, one).id)

        def body() -> None:
            number = code.resized(code.value("OpLoad", count.type, counter), type)
            self.bind(loop.var, code.add(first, code.mul(number, step)))
            self.body(loop.body)

        self._loop(condition, body, advance)
