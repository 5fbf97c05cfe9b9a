"""Statements of Sarek IR as lines of a C-like language.

In: bodies of verified, legalised IR, in the scope of a function whose parameters are declared. Out:
indented lines. A loop whose bounds cannot overflow is the plain `for` of a C programmer; any other
counts its passes, which are exact at the ends of the type.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from sarek_numba.codegen.aliasing import aliasing_name
from sarek_numba.codegen.deep import DEEPEST, depth_of, split
from sarek_numba.codegen.dialect import Dialect, WarpSpelling
from sarek_numba.codegen.expressions import MULTIPLY, RELATION, Expressions, type_name
from sarek_numba.codegen.matrices import print_matrix
from sarek_numba.codegen.namer import Namer
from sarek_numba.codegen.prelude import UNSIGNED, Prelude
from sarek_numba.codegen.warps import shuffle_definition, shuffle_name
from sarek_numba.errors import InvalidIR
from sarek_numba.ir.nodes import (
    SHUFFLES,
    ArrayCreate,
    ArrayRead,
    Assert,
    Assign,
    Atomic,
    AtomicOp,
    Barrier,
    Binary,
    BinOp,
    Block,
    Body,
    Break,
    Call,
    Cast,
    Const,
    Continue,
    Coopmat,
    Direction,
    Empty,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    LElement,
    Let,
    LetMut,
    LValue,
    LVar,
    Match,
    MemFence,
    Native,
    Pragma,
    Print,
    Return,
    Seq,
    SharedDecl,
    Stmt,
    Subscript,
    TupleExpr,
    Unary,
    UnOp,
    Var,
    VarRef,
    Warp,
    WarpBarrier,
    While,
)
from sarek_numba.ir.types import Array, ElementType, MemSpace, Scalar, Vec
from sarek_numba.ir.typing import scalar_of
from sarek_numba.ir.walk import map_expressions, walk_exprs, walk_stmts

_INDENT = "    "
_COMPOUND = frozenset(
    {BinOp.ADD, BinOp.SUB, BinOp.MUL, BinOp.DIV, BinOp.BITAND, BinOp.BITOR, BinOp.BITXOR}
)


class Statements(Expressions):
    """Prints the bodies of one program's functions, one function at a time."""

    def __init__(self, dialect: Dialect, prelude: Prelude, namer: Namer) -> None:
        super().__init__(dialect, prelude)
        self.namer = namer
        self.fragments: dict[str, str] = {}
        self.results: dict[str, str] = {}  # C type of each helper's result
        self.aliasing: frozenset[Scalar] = frozenset()  # elements spelled so that they may alias
        self.carried: dict[int, tuple[Var, ...]] = {}  # by loop that threads leave apart
        self.accumulating: frozenset[int] = frozenset()  # loops that hand a float on
        self.lines: list[str] = []
        self._depth = 1
        self._parts = 0  # ids of variables of the printer's own count down from here
        self._structure: str | None = None
        self._loop_lead = ""
        self._unroll = ""  # the line before the next loop

    def start(self, structure: str | None) -> None:
        """Begin a function; `structure` is the C type of its result if that is a tuple."""
        self.lines = []
        self._depth = 1
        self._structure = structure

    def line(self, text: str) -> None:
        self.lines.append(_INDENT * self._depth + text)

    # --- types and declarations ---

    def type(self, type: ElementType) -> str:
        """The C type of a value."""
        if not isinstance(type, Scalar) or type not in self.dialect.types:
            raise InvalidIR(f"{self.dialect.name} has no spelling for the type {type}")
        return self.dialect.types[type]

    def memory_type(self, element: ElementType) -> str:
        """The C type of an element in memory."""
        name = self.type(element)
        assert isinstance(element, Scalar)
        return self.dialect.memory_types.get(element, name)

    def pointed_type(self, element: ElementType) -> str:
        """The C type of an element behind a pointer, where others may overlap it."""
        if element in self.aliasing:
            return aliasing_name(self.type(element))
        return self.memory_type(element)

    def declare_name(self, var: Var) -> str:
        """Give a variable its name in the present scope."""
        name = self.names[var.id] = self.namer.name(var.name)
        return name

    def declare(self, var: Var, value: Expr | None) -> None:
        """Declare a variable or an array of the thread; a variable without a value is zero."""
        match value:
            case ArrayCreate(element=element, size=Const() as size, space=MemSpace.LOCAL):
                self._declare_array(var, self.memory_type(element), max(1, int(size.value)))
            case ArrayCreate(space=MemSpace.SHARED):
                pass  # stands at the head of the kernel: see `hoisted_shared`
            case VarRef(var=Var(type=Vec() | Array()) as array):
                self.names[var.id] = self.names[array.id]
            case _:
                text = "0" if value is None else self.value(value)
                self.line(f"{self.type(var.type)} {self.declare_name(var)} = {text};")

    def _declare_array(self, var: Var, type: str, length: int) -> None:
        """Declare an array of the thread."""
        self._array_lines(self.dialect.thread_array, var, type=type, length=length)

    def declare_shared(self, var: Var, type: str, length: int) -> None:
        """Declare an array of the block that has a constant length."""
        space = self.dialect.declare_space[MemSpace.SHARED]
        self._array_lines(self.dialect.shared_array, var, space=space, type=type, length=length)

    def _array_lines(self, text: str, var: Var, **given: str | int) -> None:
        name = self.declare_name(var)
        holder = self.namer.name(f"{var.name}_holder") if "{holder}" in text else ""
        for line in text.format(name=name, holder=holder, **given).splitlines():
            self.line(line)

    def hoisted_shared(self, body: Body) -> Iterator[SharedDecl]:
        """Shared arrays that are created within a body; C-like languages want them at its head."""
        for stmt in walk_stmts(body):
            match stmt:
                case Let(var=var, value=ArrayCreate(element, size, MemSpace.SHARED)):
                    yield SharedDecl(var, element, size)
                case _:
                    pass

    # --- statements ---

    def body(self, body: Body) -> None:
        """Print statements in the present scope."""
        for stmt in body:
            self._statement(stmt)

    def _nested(self, body: Body) -> None:
        """Print a body one level deeper, in a scope of its own."""
        self.namer.enter()
        self._depth += 1
        self.body(body)
        self._depth -= 1
        self.namer.leave()

    def _statement(self, stmt: Stmt) -> None:
        carried = self.carried.get(id(stmt), ())
        self._keep_apart(carried)
        self._loop_lead = self.dialect.accumulating_loop if id(stmt) in self.accumulating else ""
        if not isinstance(stmt, While):
            stmt = map_expressions(stmt, self._shallow)
        match stmt:
            case Let(var=var, value=value) | LetMut(var=var, value=value):
                self.declare(var, value)
            case Assign(target=target, value=value):
                self._assign(target, value)
            case If():
                self._if(stmt)
            case For():
                self._for(stmt)
            case While():
                self._while(stmt)
            case Break():
                self.line("break;")
            case Continue():
                self.line("continue;")
            case Return(value=value):
                self._return(value)
            case Barrier():
                self.line(f"{self.dialect.barrier};")
            case MemFence(scope=scope):
                self.line(f"{self.dialect.fences[scope]};")
            case Call(results=results, function=function, args=args):
                self._call_helper(results, function, args)
            case Atomic():
                self._atomic(stmt)
            case Pragma(hints=("unroll", *count), body=(For() as loop,)):
                passes = f" {count[0]}" if count else ""
                self._unroll = self.dialect.unroll.format(count=passes)
                self._statement(loop)
            case Seq(body=body) | Pragma(body=body):
                self.body(body)
            case Block(body=body):
                self.line("{")
                self._nested(body)
                self.line("}")
            case Native(texts=texts, fallback=fallback):
                self._native(dict(texts).get(self.dialect.framework), fallback)
            case ExprStmt(value=value):
                self.line(f"(void)({self.value(value)});")
            case Empty() | Assert():
                pass
            case Warp():
                self._warp(stmt)
            case WarpBarrier():
                self.line(f"{self._warp_spelling().barrier};")
            case Print():
                raise InvalidIR("a print is made of stores by passes.report before it is printed")
            case Coopmat():
                print_matrix(self, stmt)
            case Match():
                raise InvalidIR(f"{self.dialect.name} has no spelling for {type_name(stmt)}")
            case _:
                assert_never(stmt)
        self._keep_apart(carried)

    def _native(self, text: str | None, fallback: Body) -> None:
        if text is None:
            self.body(fallback)
            return
        for line in text.splitlines():
            self.line(line)

    def _target(self, target: LValue) -> str:
        match target:
            case LVar(var=var):
                return self.names[var.id]
            case LElement(array=array, index=index):
                return f"{self.names[array.id]}[{self.index(index)}]"
            case _:
                raise InvalidIR(f"{self.dialect.name} has no spelling for {type_name(target)}")

    def _assign(self, target: LValue, value: Expr) -> None:
        place, text = self._target(target), self.value(value)
        if isinstance(value, Binary) and value.op in _COMPOUND and _reads(value.left, target):
            lead = f"{place} {value.op.value} "
            right = self.expression(value.right).code
            if text in (lead + right, f"{lead}({right})"):
                self.line(f"{place} {value.op.value}= {right};")
                return
        self.line(f"{place} = {text};")

    def _if(self, stmt: If) -> None:
        word = "if"
        while True:
            self.line(f"{word} ({self.value(stmt.condition)}) {{")
            self._nested(stmt.then)
            match stmt.orelse:
                case (If() as following,) if depth_of(following.condition) <= DEEPEST:
                    stmt, word = following, "} else if"
                case ():
                    break
                case orelse:
                    self.line("} else {")
                    self._nested(orelse)
                    break
        self.line("}")

    def _return(self, value: Expr | None) -> None:
        if value is None:
            self.line("return;")
        elif isinstance(value, TupleExpr):
            assert self._structure is not None
            items = ", ".join(map(self._item, value.items))
            self.line(f"return {self.dialect.structure.format(type=self._structure, items=items)};")
        else:
            self.line(f"return {self.value(value)};")

    def _item(self, value: Expr) -> str:
        if not self.dialect.exact_items:
            return self.argument(value)
        return self.typed(self.expression(value)).code

    def _call_helper(self, results: tuple[Var, ...], function: str, args: tuple[Expr, ...]) -> None:
        call = self.helper_call(function, args)
        if not results:
            self.line(f"{call};")
            return
        structure = self.results[function]
        if not structure.startswith("struct "):
            self.line(f"{structure} {self.declare_name(results[0])} = {call};")
            return
        whole = self.namer.name(f"{self.functions[function]}_result")
        self.line(f"{structure} {whole} = {call};")
        for i, var in enumerate(results):
            self.line(f"{self.type(var.type)} {self.declare_name(var)} = {whole}.item{i};")

    def _shallow(self, expr: Expr) -> Expr:
        """The expression, or what is left of a deep one once its parts have been declared."""
        return split(expr, self._part) if depth_of(expr) > DEEPEST else expr

    def _part(self, expr: Expr) -> Expr:
        self._parts -= 1
        var = Var("part", self._parts, scalar_of(expr))
        self.declare(var, expr)
        return VarRef(var)

    # --- loops ---

    def _loop(self, head: str) -> None:
        for lead in (self._loop_lead, self._unroll):
            if lead:
                self.line(lead)
        self._unroll = ""
        self.line(head)

    def _keep_apart(self, carried: tuple[Var, ...]) -> None:
        for var in carried:
            assert isinstance(var.type, Scalar)
            self.line(self.dialect.keep_apart[var.type].format(self.names[var.id]))

    def _while(self, loop: While) -> None:
        if depth_of(loop.condition) <= DEEPEST:
            self._loop(f"while ({self.value(loop.condition)}) {{")
            self._nested(loop.body)
        else:  # its parts are declared anew in each pass
            stop = If(Unary(UnOp.NOT, loop.condition), (Break(),))
            self._loop("while (true) {")
            self._nested((stop, *loop.body))
        self.line("}")

    def _for(self, loop: For) -> None:
        by_one = isinstance(loop.step, Const) and abs(int(loop.step.value)) == 1
        if loop.direction is not Direction.RUNTIME and (loop.unguarded or by_one):
            self._plain_for(loop)
        else:
            self._counted_for(loop)

    def _plain_for(self, loop: For) -> None:
        type = self.type(loop.var.type)
        first = self.value(loop.first)
        stop = self._fixed(loop.stop, type, f"{loop.var.name}_stop")
        upto = loop.direction is Direction.UPTO
        if isinstance(loop.step, Const):
            step, number = "", int(loop.step.value)
            change = "++" if number == 1 else "--" if number == -1 else ""
            if not change:
                change = f" += {number}" if number > 0 else f" -= {-number}"
        else:
            step = self._fixed(loop.step, type, f"{loop.var.name}_step")
            change = f" += {step}"
        self.namer.enter()
        name = self.declare_name(loop.var)
        order = "<" if upto else ">"
        self._loop(f"for ({type} {name} = {first}; {name} {order} {stop}; {name}{change}) {{")
        self._nested(loop.body)
        self.line("}")
        self.namer.leave()

    def _counted_for(self, loop: For) -> None:
        scalar = loop.var.type
        assert isinstance(scalar, Scalar)
        unsigned = UNSIGNED.get(scalar, scalar)
        wide = self.type(unsigned if unsigned.bits >= 32 else Scalar.UINT32)
        type, wish = self.type(scalar), loop.var.name
        first = self._fixed(loop.first, type, f"{wish}_first")
        stop = self.value(loop.stop)
        step = self._fixed(loop.step, type, f"{wish}_step", above=MULTIPLY)
        passes = self.namer.name(f"{wish}_passes")
        count = self.prelude.function("passes", scalar)
        self.line(f"{wide} {passes} = {count}({first}, {stop}, {step});")
        self.namer.enter()
        counter = self.namer.name(f"{wish}_pass")
        self._loop(f"for ({wide} {counter} = 0; {counter} < {passes}; {counter}++) {{")
        self._depth += 1
        start = "" if first == "0" else f"{first} + "
        self.line(f"{type} {self.declare_name(loop.var)} = {start}{counter} * {step};")
        self._depth -= 1
        self._nested(loop.body)
        self.line("}")
        self.namer.leave()

    def _fixed(self, expr: Expr, type: str, wish: str, above: int = RELATION) -> str:
        """An operand that keeps its value while a loop runs; it binds tighter than `above`."""
        text = self.operand(expr)
        if _never_changes(expr) and text.precedence > above:
            return text.code
        name = self.namer.name(wish)
        self.line(f"{type} {name} = {text.code};")
        return name

    # --- warps ---

    def _warp_spelling(self) -> WarpSpelling:
        if self.dialect.warp is None:
            raise InvalidIR(f"{self.dialect.name} has no spelling for warp operations")
        return self.dialect.warp

    def _warp(self, stmt: Warp) -> None:
        warp, type = self._warp_spelling(), stmt.result.type
        assert isinstance(type, Scalar)
        if stmt.value is None:
            one = f"({self.type(type)})-1 >> ({type.bits} - {warp.size})"
            self.line(f"{self.type(type)} {self.declare_name(stmt.result)} = {one};")
            return
        assert stmt.op in SHUFFLES, "other collectives are made of them"
        assert stmt.lane is not None
        name = shuffle_name(stmt.op, type)
        self.prelude.define(name, shuffle_definition(self.dialect, warp, stmt.op, type))
        given = [self.argument(stmt.value), self.value(stmt.lane), str(stmt.width)]
        given += warp.parameter.split()[-1:]
        call = f"{name}({', '.join(given)})"
        self.line(f"{self.type(type)} {self.declare_name(stmt.result)} = {call};")

    # --- atomics ---

    def _atomic(self, stmt: Atomic) -> None:
        match stmt.array.type:
            case Vec(element=Scalar() as scalar):
                space = MemSpace.GLOBAL
            case Array(element=Scalar() as scalar, space=space):
                pass
            case other:
                raise InvalidIR(f"no atomic operations on {other}")
        pointer = f"&{self.names[stmt.array.id]}[{self.index(stmt.index)}]"
        given = [e for e in (stmt.compare, stmt.value) if e is not None]
        call = self._atomic_call(stmt.op, scalar, space, pointer, given)
        if stmt.result is None:
            self.line(f"{call};")
        else:
            self.line(f"{self.type(scalar)} {self.declare_name(stmt.result)} = {call};")

    def _atomic_call(
        self, op: AtomicOp, scalar: Scalar, space: MemSpace, pointer: str, given: list[Expr]
    ) -> str:
        native, word = self.dialect.atomics.get((op, scalar)), self.dialect.pointer_space[space]
        if native is not None:
            values = (self.typed(self.expression(e)).code for e in given)
            return native.format(pointer, *values, space=word)
        if op is AtomicOp.LOAD:
            type = self.pointed_type(scalar)
            return self.dialect.volatile.format(pointer, space=f"{word} ".lstrip(), type=type)
        family = AtomicOp.EXCH if op is AtomicOp.STORE else op
        function = self.prelude.function(f"atomic_{family.value}", scalar, space=space)
        return f"{function}({', '.join((pointer, *map(self.value, given)))})"


def _reads(expr: Expr, target: LValue) -> bool:
    """Whether the expression may be the present value of the target (its text decides)."""
    match expr, target:
        case VarRef(var=read), LVar(var=written):
            return read.id == written.id
        case ArrayRead(array=read), LElement(array=written):
            return read.id == written.id
        case _:
            return False


def _never_changes(expr: Expr) -> bool:
    """Whether a C expression gives the same value all through a loop, whatever its body does."""
    return all(
        isinstance(e, Const | Index | Binary | Unary | Cast | Subscript)
        or (isinstance(e, VarRef) and not e.var.mutable)
        for e in walk_exprs(expr)
    )
