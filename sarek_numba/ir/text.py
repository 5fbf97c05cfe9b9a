"""The canonical text of IR, which `ir.parse` reads back: parse(text(kernel)) == kernel.

Spans and a native function are not in the text. `docs/ir.md` shows the form by example. A variable
is written by its name where that is unique in the kernel, else as name#id; its declaration states
the id where it is not one more than that of the declaration before. `3` is an int64 and `0.5` a
float64, other constants carry their type; all are exact. `.w` after an operator or type means weak,
`.u` unguarded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import assert_never

from sarek_numba.ir.build import all_vars
from sarek_numba.ir.nodes import (
    Assert,
    Assign,
    Atomic,
    Barrier,
    Block,
    Body,
    Break,
    Call,
    CMDecl,
    CMFill,
    CMLoad,
    CMMulAdd,
    CMStore,
    Const,
    ConstDecl,
    Continue,
    Coopmat,
    CoopmatConfig,
    CoopmatOp,
    Direction,
    Empty,
    Expr,
    ExprStmt,
    For,
    Fragment,
    HelperFunction,
    If,
    Kernel,
    Let,
    LetMut,
    LocalDecl,
    Match,
    MemFence,
    Native,
    ParamDecl,
    Pragma,
    Print,
    Return,
    Seq,
    SharedDecl,
    Stmt,
    Var,
    Warp,
    WarpBarrier,
    While,
)
from sarek_numba.ir.spelling import (
    MARK,
    MARK_END,
    SCALAR_NAMES,
    ExprPrinter,
    constant_text,
    constructors_text,
    fields_text,
    name_text,
    type_text,
)
from sarek_numba.ir.types import (
    PART_NAMES,
    ArrayInfo,
    DynamicSharedLength,
    LengthOf,
    NumberOf,
    OffsetOf,
    PartOf,
    ReportBuffer,
    Role,
    ShapeOf,
    StrideOf,
    Threads,
    UserArgument,
)
from sarek_numba.ir.walk import deep_recursion, root_variable


def text(kernel: Kernel, mark: object = None) -> str:
    """The text of a kernel, with carets below the node `mark` if it is given."""
    with deep_recursion():
        return _with_carets(Printer(kernel, mark=mark).kernel(kernel))


def canonical_text(kernel: Kernel) -> str:
    """The text with variables numbered in order of declaration and no name: what is hashed."""
    numbers = {var.id: number for number, var in enumerate(all_vars(kernel))}
    with deep_recursion():
        return Printer(kernel, numbers=numbers).kernel(kernel, name="_")


def nameless_text(kernel: Kernel) -> str:
    """`canonical_text` without the names of variables: equal if kernels do the same alike."""
    numbers = {var.id: number for number, var in enumerate(all_vars(kernel))}
    with deep_recursion():
        return _Nameless(kernel, numbers=numbers).kernel(kernel, name="_")


def _with_carets(marked: str) -> str:
    """Each marked stretch replaced by its text, with carets on a line of their own below."""
    lines: list[str] = []
    for line in marked.split("\n"):
        plain = line.replace(MARK, "").replace(MARK_END, "")
        lines.append(plain)
        if MARK in line:
            start = line.index(MARK)
            end = line.find(MARK_END) - 1 if MARK_END in line else len(plain)
            lines.append(" " * start + "^" * max(1, end - start))
    return "\n".join(lines)


class Printer(ExprPrinter):
    """Prints a kernel line by line; `numbers` gives variables other ids than their own."""

    def __init__(
        self, kernel: Kernel, mark: object = None, numbers: Mapping[int, int] | None = None
    ) -> None:
        super().__init__(mark)
        self.numbers = numbers
        self.lines: list[str] = []
        self.indent = 0
        self.last_number = -1
        declared = all_vars(kernel)
        names = Counter(var.name for var in declared)
        self.plain = {var.id: var.name for var in declared if names[var.name] == 1}

    # --- variables ------------------------------------------------------------------------------

    def number(self, var: Var) -> int:
        return var.id if self.numbers is None else self.numbers.get(var.id, var.id)

    def use(self, var: Var) -> str:
        if self.plain.get(var.id) == var.name:
            return name_text(var.name)
        return f"{name_text(var.name)}#{self.number(var)}"

    def declare(self, var: Var, mutable: bool = False) -> str:
        """A declaration; `mutable` is what the place lets one expect."""
        number = self.number(var)
        expected = self.plain.get(var.id) == var.name and number == self.last_number + 1
        name = name_text(var.name) if expected else f"{name_text(var.name)}#{number}"
        self.last_number = number
        return f"{name}{'!' * (var.mutable is not mutable)}: {type_text(var.type)}"

    # --- lines ----------------------------------------------------------------------------------

    def line(self, shown: str, node: object = None) -> None:
        if node is not None and node is self.mark:
            shown = f"{MARK}{shown}{MARK_END}"
        self.lines.append("  " * self.indent + shown)

    def block(self, head: str, body: Body, node: object = None) -> None:
        self.line(f"{head} {{", node)
        self.inside(body)
        self.line("}")

    def inside(self, body: Body) -> None:
        self.indent += 1
        for stmt in body:
            self.statement(stmt)
        self.indent -= 1

    # --- statements -----------------------------------------------------------------------------

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case If():
                self.conditional(stmt)
            case While(condition=condition, body=body):
                self.block(f"while {self.expr(condition)}", body, stmt)
            case For():
                self.block(self.loop_head(stmt), stmt.body, stmt)
            case Seq(body=body):
                self.block("seq", body, stmt)
            case Block(body=body):
                self.block("block", body, stmt)
            case Pragma(hints=hints, body=body):
                self.block(" ".join(("pragma", *map(json.dumps, hints))), body, stmt)
            case Native(texts=texts, fallback=body):
                pairs = (f"{json.dumps(name)}: {json.dumps(source)}" for name, source in texts)
                self.block(f"native ({', '.join(pairs)})", body, stmt)
            case Match(scrutinee=scrutinee, cases=cases):
                self.line(f"match {self.expr(scrutinee)} {{", stmt)
                self.indent += 1
                for pattern, body in cases:
                    self.block(f"case {self.pattern(pattern)}", body)
                self.indent -= 1
                self.line("}")
            case _:
                self.line(self.simple(stmt), stmt)

    def conditional(self, stmt: If) -> None:
        head, node = f"if {self.expr(stmt.condition)} {{", stmt
        while True:
            self.line(head, node)
            self.inside(node.then)
            match node.orelse:
                case ():
                    break
                case (If() as node,):
                    head = f"}} else if {self.expr(node.condition)} {{"
                case _:
                    self.line("} else {")
                    self.inside(node.orelse)
                    break
        self.line("}")

    def loop_head(self, stmt: For) -> str:
        var = self.declare(stmt.var)
        bounds = self.list((stmt.first, stmt.stop, stmt.step))
        direction = "" if stmt.direction is Direction.UPTO else f" {stmt.direction.value}"
        call = f"range{'.u' * stmt.unguarded}({bounds})"
        return f"for {var} in {call}{direction}"

    def simple(self, stmt: Stmt) -> str:
        """A statement of one line."""
        match stmt:
            case Let(var=var, value=value):
                return f"let {self.declare(var)} = {self.expr(value)}"
            case LetMut(var=var, value=initial):
                head = f"var {self.declare(var, mutable=True)}"
                return head if initial is None else f"{head} = {self.expr(initial)}"
            case Assign(target=target, value=value):
                word = "set " if root_variable(target) is None else ""
                return f"{word}{self.lvalue(target)} = {self.expr(value)}"
            case Break():
                return "break"
            case Continue():
                return "continue"
            case Return(value=result):
                return "return" if result is None else f"return {self.expr(result)}"
            case Barrier():
                return "barrier"
            case WarpBarrier():
                return "warp_barrier"
            case MemFence(scope=scope):
                return f"fence {scope.value}"
            case Empty():
                return "pass"
            case ExprStmt(value=value):
                return f"expr {self.expr(value)}"
            case Call(results=results, function=function, args=args):
                return f"{self.bound(results)}call {name_text(function)}({self.list(args)})"
            case Atomic():
                results = () if stmt.result is None else (stmt.result,)
                return f"{self.bound(results)}{self.atomic(stmt)}"
            case Warp(result=var):
                return f"{self.bound((var,))}{self.warp(stmt)}"
            case Assert(condition=condition, message=message):
                return f"assert {self.expr(condition)}, {json.dumps(message)}"
            case Print(parts=parts):
                shown = [json.dumps(p) if isinstance(p, str) else self.expr(p) for p in parts]
                return f"print({', '.join(shown)})"
            case Coopmat(op=op):
                return f"coopmat {self.coopmat(op)}"
            case If() | While() | For() | Seq() | Block() | Pragma() | Native() | Match():
                raise AssertionError("not of one line")
            case _:
                assert_never(stmt)

    def bound(self, results: tuple[Var, ...]) -> str:
        return f"let {', '.join(map(self.declare, results))} = " if results else ""

    def atomic(self, stmt: Atomic) -> str:
        shown = f"{self.use(stmt.array)}[{self.expr(stmt.index)}]"
        if stmt.value is not None:
            shown += f", {self.expr(stmt.value)}"
        if stmt.compare is not None:
            shown += f", compare {self.expr(stmt.compare)}"
        return f"atomic {name_text(stmt.op.value)}({shown})"

    def warp(self, stmt: Warp) -> str:
        shown = [self.expr(e) for e in (stmt.value, stmt.lane) if e is not None]
        return f"warp {name_text(stmt.op.value)}({', '.join((*shown, f'width {stmt.width}'))})"

    def coopmat(self, op: CoopmatOp) -> str:
        match op:
            case CMDecl(name=name, fragment=fragment):
                return f"declare({json.dumps(name)}, {_fragment(fragment)})"
            case CMLoad(target=name, fragment=fragment, source=array):
                place = self.tile(array, op.index, op.stride, op.column_major)
                return f"load({json.dumps(name)}, {_fragment(fragment)}, {place})"
            case CMStore(source=name, fragment=fragment, target=array):
                place = self.tile(array, op.index, op.stride, op.column_major)
                return f"store({json.dumps(name)}, {_fragment(fragment)}, {place})"
            case CMMulAdd(target=target, a=a, b=b, c=c, config=config):
                names = ", ".join(map(json.dumps, (target, a, b, c)))
                return f"muladd({names}, {_config(config)})"
            case CMFill(target=name, fragment=fragment, value=value):
                return f"fill({json.dumps(name)}, {_fragment(fragment)}, {self.expr(value)})"
            case _:
                assert_never(op)

    def tile(self, array: Var, index: Expr, stride: Expr, column_major: bool) -> str:
        order = "column_major" if column_major else "row_major"
        return f"{self.use(array)}[{self.expr(index)}], {self.expr(stride)}, {order}"

    # --- declarations ---------------------------------------------------------------------------

    def kernel(self, kernel: Kernel, name: str | None = None) -> str:
        shown = name_text(kernel.name) if name is None else name
        warp = "" if kernel.warp_width is None else f" warp {kernel.warp_width}"
        fastmath = " fastmath" if kernel.fastmath else ""
        self.line(f"kernel {shown} index {kernel.index_bits}{warp}{fastmath} {{")
        self.indent += 1
        for record, fields in kernel.types:
            self.line(f"record {fields_text(record, fields)}")
        for variant, constructors in kernel.variants:
            self.line(f"variant {constructors_text(variant, constructors)}")
        for param in kernel.params:
            self.line(self.param(param), param)
        for decl in kernel.locals:
            self.line(self.local(decl), decl)
        for function in kernel.functions:
            self.function(function)
        self.indent -= 1
        self.inside(kernel.body)
        self.line("}")
        return "\n".join(self.lines) + "\n"

    def param(self, param: ParamDecl) -> str:
        array = "" if param.array is None else f" {_array_info(param.array)}"
        return f"param {self.declare(param.var)} = {_role(param.role)}{array}"

    def local(self, decl: LocalDecl | SharedDecl | ConstDecl) -> str:
        match decl:
            case LocalDecl(var=var, value=value):
                head = f"local {self.declare(var)}"
                return head if value is None else f"{head} = {self.expr(value)}"
            case SharedDecl(var=var, element=element, size=size, offset=offset):
                head = f"shared {self.declare(var)}"
                length = "dynamic" if size is None else self.expr(size)
                place = f" at {offset}" if offset else ""
                return f"{head} = {type_text(element)}[{length}]{place}"
            case ConstDecl(var=var, element=element, bits=bits):
                values = ", ".join(constant_text(Const(element, pattern)) for pattern in bits)
                return f"const {self.declare(var)} = {SCALAR_NAMES[element]}[{values}]"
            case _:
                assert_never(decl)

    def function(self, function: HelperFunction) -> None:
        params = ", ".join(map(self.declare, function.params))
        head = f"function {name_text(function.name)}({params}) -> {type_text(function.result)}"
        self.line(f"{head}{' inline' if function.inline else ''} {{", function)
        self.indent += 1
        for decl in function.locals:
            self.line(self.local(decl), decl)
        self.indent -= 1
        self.inside(function.body)
        self.line("}")


def _role(role: Role) -> str:
    match role:
        case UserArgument(argument=argument, column=None):
            return f"argument {argument}"
        case UserArgument(argument=argument, column=column):
            return f"column {argument} {column}"
        case PartOf(argument=argument, part=part):
            return f"{PART_NAMES[part]} {argument}"
        case NumberOf(argument=argument, number=number):
            return f"number {argument} {number}"
        case LengthOf(argument=argument):
            return f"length {argument}"
        case OffsetOf(argument=argument):
            return f"offset {argument}"
        case ShapeOf(argument=argument, axis=axis):
            return f"shape {argument} {axis}"
        case StrideOf(argument=argument, axis=axis):
            return f"stride {argument} {axis}"
        case DynamicSharedLength():
            return "dynamic_shared_length"
        case Threads(each=each):
            return f"threads {each}"
        case ReportBuffer():
            return "report"
        case _:
            assert_never(role)


def _array_info(info: ArrayInfo) -> str:
    access = "" if info.writable else ", readonly"
    element = type_text(info.element) + (" pairs" if info.pairs else "")
    shape = f"{element}, {info.space.value}, {info.ndim}, {info.layout}"
    alone = ", restrict" if info.restrict else ""
    split = " columns" if info.columns else ""
    within = "" if info.record is None else f", in{split} {type_text(info.record)}"
    return f"array({shape}{access}{alone}{within})"


def _fragment(fragment: Fragment) -> str:
    size = f"{fragment.rows}, {fragment.columns}"
    names = f"{json.dumps(fragment.use)}, {SCALAR_NAMES[fragment.component]}"
    return f"fragment({names}, {size}, {json.dumps(fragment.scope)})"


def _config(config: CoopmatConfig) -> str:
    size = f"{config.m}, {config.n}, {config.k}"
    scalars = (config.a, config.b, config.c, config.result)
    types = ", ".join(SCALAR_NAMES[scalar] for scalar in scalars)
    saturating = str(config.saturating).lower()
    return f"config({size}, {types}, {saturating}, {json.dumps(config.scope)})"


class _Nameless(Printer):
    """Prints variables by their numbers alone."""

    def use(self, var: Var) -> str:
        return f"#{self.number(var)}"

    def declare(self, var: Var, mutable: bool = False) -> str:
        return f"{self.use(var)}{'!' * (var.mutable is not mutable)}: {type_text(var.type)}"
