"""The rules of IR, checked: `verify(kernel)` returns, or raises InvalidIR.

The rules are those that `ir.nodes` states. The error carries the text of the kernel with the guilty
node marked. Convergence of barriers is a matter of the user's program, not of IR, and is checked by
`check_convergence`, which gives diagnostics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import assert_never

from sarek_numba.errors import InvalidIR
from sarek_numba.ir.check_coopmat import check_coopmat
from sarek_numba.ir.check_expr import Broken, ExprChecker
from sarek_numba.ir.check_warp import check_warp
from sarek_numba.ir.convergence import check_convergence
from sarek_numba.ir.effects import effects_of
from sarek_numba.ir.nodes import (
    App,
    ArrayCreate,
    Assert,
    Assign,
    Atomic,
    AtomicOp,
    Barrier,
    Block,
    Body,
    Break,
    Call,
    CMStore,
    Const,
    ConstDecl,
    Continue,
    Coopmat,
    Empty,
    Expr,
    ExprStmt,
    For,
    Fragment,
    HelperFunction,
    If,
    Kernel,
    LElement,
    LElementExpr,
    Let,
    LetMut,
    LField,
    LocalDecl,
    LValue,
    LVar,
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
from sarek_numba.ir.records import leaves
from sarek_numba.ir.spelling import type_text
from sarek_numba.ir.text import text
from sarek_numba.ir.types import (
    BOOL,
    INT32,
    INT64,
    UNIT,
    Array,
    ArrayInfo,
    DynamicSharedLength,
    ElementType,
    MemSpace,
    NumberOf,
    PartOf,
    ReportBuffer,
    Scalar,
    TupleType,
    UserArgument,
    Vec,
)
from sarek_numba.ir.typing import record_names
from sarek_numba.ir.walk import deep_recursion, root_variable, walk_body_exprs, walk_stmts
from sarek_numba.ir.warps import WARP_WIDTHS

__all__ = ["check_convergence", "verify"]


def verify(kernel: Kernel) -> None:
    """Check every rule; raises InvalidIR at the first that is broken."""
    try:
        with deep_recursion():
            _Checker(kernel).kernel()
    except Broken as broken:
        error = InvalidIR(f"kernel {kernel.name}: {broken}")
        error.add_note(text(kernel, mark=broken.node))
        raise error from None


class _Checker(ExprChecker):
    """Statements and declarations, on top of expressions."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.checked = kernel
        self.loops = 0
        self.result: ElementType = UNIT
        self.in_helper = False
        self.fragments: dict[str, Fragment] = {}

    # --- declarations ---------------------------------------------------------------------------

    def kernel(self) -> None:
        kernel = self.checked
        if kernel.index_bits not in (32, 64):
            raise Broken(kernel, f"index_bits is {kernel.index_bits}")
        if kernel.warp_width is not None and kernel.warp_width not in WARP_WIDTHS:
            raise Broken(kernel, f"warp_width is {kernel.warp_width}")
        self.types(kernel)
        for param in kernel.params:
            self.param(param)
        for decl in kernel.locals:
            self.local(decl)
        visible = dict(self.scope)
        constants = {d.var.id: d.var for d in kernel.locals if isinstance(d, ConstDecl)}
        for function in kernel.functions:
            self.scope = dict(constants)
            self.function(function)
        self.scope = visible
        self.result, self.in_helper = UNIT, False
        self.body(kernel.body)
        self.read_only(kernel)

    def types(self, kernel: Kernel) -> None:
        """Each record and variant has a name of its own, and no record contains itself."""
        names: set[str] = set()
        for name in (*(n for n, _ in kernel.types), *(n for n, _ in kernel.variants)):
            if name in names:
                raise Broken(kernel, f"two types are named {name}")
            names.add(name)
        for name, fields in kernel.types:
            twice = [field for field, times in Counter(n for n, _ in fields).items() if times > 1]
            if twice:
                raise Broken(kernel, f"record {name} has two fields named {twice[0]}")
            if any(name in record_names(kind) for _, kind in fields):
                raise Broken(kernel, f"record {name} contains itself")

    def read_only(self, kernel: Kernel) -> None:
        """No read-only array is written, helpers included."""
        written = effects_of(kernel).writes
        for param in kernel.params:
            if param.array is not None and not param.array.writable and param.var.id in written:
                raise Broken(param, f"{param.var.name} is read-only but written")

    def param(self, param: ParamDecl) -> None:
        var, array = param.var, param.array
        self.declare(var, param)
        if isinstance(var.type, Vec):
            if array is None or array.element != var.type.element:
                raise Broken(param, f"{var.name} is described as another array")
            if not isinstance(param.role, UserArgument | ReportBuffer):
                raise Broken(param, f"{var.name} is an array but no argument")
            self.column(param, array)
            return
        if array is not None or not isinstance(var.type, Scalar):
            raise Broken(param, f"{var.name} is neither an array nor a scalar")
        wanted = INT32 if self.checked.index_bits == 32 else INT64
        derived = not isinstance(param.role, UserArgument | PartOf | NumberOf | DynamicSharedLength)
        if derived and var.type is not wanted:
            raise Broken(param, f"{var.name} is {var.type.value}, not {wanted.value}")

    def column(self, param: ParamDecl, array: ArrayInfo) -> None:
        """A parameter is a column just where its records lie in columns, and of that type."""
        column = param.role.column if isinstance(param.role, UserArgument) else None
        if column is None and not array.columns:
            return
        if column is None or not array.columns or array.record is None:
            raise Broken(param, f"{param.var.name} is a column, or its records are, but not both")
        found = leaves(array.record)
        if column >= len(found) or found[column].scalar is not array.element:
            raise Broken(param, f"{param.var.name} is no column {column} of its records")

    def local(self, decl: LocalDecl | SharedDecl | ConstDecl) -> None:
        match decl:
            case SharedDecl(var=var, element=element, size=size):
                self.array_type(decl, var, element, MemSpace.SHARED)
                if size is not None:
                    self.size(size)
            case ConstDecl(var=var, element=element, bits=bits):
                self.array_type(decl, var, element, MemSpace.CONSTANT)
                if not all(0 <= pattern < 1 << element.bits for pattern in bits):
                    raise Broken(decl, f"{var.name} holds no bit patterns of {element.value}")
            case LocalDecl(var=var, value=value):
                if isinstance(value, ArrayCreate):
                    self.created(decl, var, value)
                elif value is not None:
                    self.expect(value, var.type, f"the value of {var.name}")
            case _:
                assert_never(decl)
        self.declare(decl.var, decl)

    def array_type(self, node: object, var: Var, element: ElementType, space: MemSpace) -> None:
        if var.type != Array(element, space):
            raise Broken(node, f"{var.name} is {type_text(var.type)}, not what is declared")

    def created(self, node: object, var: Var, value: ArrayCreate) -> None:
        if value.space not in (MemSpace.LOCAL, MemSpace.SHARED):
            raise Broken(value, f"no array is created in {value.space.value} memory")
        self.array_type(node, var, value.element, value.space)
        self.size(value.size)

    def size(self, size: Expr) -> None:
        self.integer(size)
        if isinstance(size, Const) and size.value <= 0:
            raise Broken(size, "an array has at least one element")

    def function(self, function: HelperFunction) -> None:
        if function.name in self.functions:
            raise Broken(function, f"function {function.name} is declared twice")
        for param in function.params:
            self.declare(param, function)
        for decl in function.locals:
            self.local(decl)
        self.result, self.in_helper = function.result, True
        self.body(function.body)
        self.functions[function.name] = function
        if self.has_effects(function):
            self.impure.add(function.name)

    def has_effects(self, function: HelperFunction) -> bool:
        for stmt in walk_stmts(function.body):
            match stmt:
                case Atomic() | Barrier() | Warp() | WarpBarrier() | MemFence():
                    return True
                case Native() | Coopmat():
                    return True
                case Print():
                    return True
                case Call(function=callee) if callee in self.impure:
                    return True
                case Assign(target=target):
                    array = root_variable(target)
                    if array is None or _is_visible(array):
                        return True
                case _:
                    pass
        apps = (expr for expr in walk_body_exprs(function.body) if isinstance(expr, App))
        return any(app.function in self.impure for app in apps)

    # --- statements -----------------------------------------------------------------------------

    def body(self, body: Body, bound: Sequence[Var] = (), node: object = None) -> None:
        """Check a body in a scope of its own, which begins with the variables of `bound`."""
        before = len(self.scope)
        fragments = dict(self.fragments)
        for var in bound:
            self.declare(var, node)
        for stmt in body:
            self.statement(stmt)
        while len(self.scope) > before:  # a dict gives up its entries in reverse order
            self.scope.popitem()
        self.fragments = fragments

    def loop(self, stmt: For | While, bound: Sequence[Var] = ()) -> None:
        self.loops += 1
        self.body(stmt.body, bound, stmt)
        self.loops -= 1

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case Let() | LetMut():
                self.binding(stmt)
            case Assign(target=target, value=value):
                self.expect(value, self.target(target), "the value assigned")
            case If(condition=condition, then=then, orelse=orelse):
                self.expect(condition, BOOL, "a condition")
                self.body(then)
                self.body(orelse)
            case While(condition=condition):
                self.expect(condition, BOOL, "a condition")
                self.loop(stmt)
            case For():
                self.counted(stmt)
            case Break() | Continue():
                if not self.loops:
                    raise Broken(stmt, "it stands outside a loop")
            case Return(value=value):
                self.function_return(stmt, value)
            case Call():
                self.call_statement(stmt)
            case Atomic():
                self.atomic(stmt)
            case Warp():
                check_warp(self, self.checked.warp_width, stmt)
            case Assert(condition=condition):
                self.expect(condition, BOOL, "a condition")
            case Print():
                for value in stmt.values:
                    self.scalar(value)
            case ExprStmt(value=value):
                self.type(value)
            case Seq(body=body) | Block(body=body) | Pragma(body=body) | Native(fallback=body):
                self.body(body)
            case Match(scrutinee=scrutinee, cases=cases):
                matched = self.type(scrutinee)
                for pattern, body in cases:
                    bound = self.pattern(stmt, matched, pattern)
                    self.body(body)
                    self.leave(bound)
            case Coopmat():
                if isinstance(stmt.op, CMStore):
                    self.writable(stmt.op.target, stmt)
                check_coopmat(self, self.fragments, self.checked.warp_width, stmt)
            case Empty() | Barrier() | WarpBarrier() | MemFence():
                pass
            case _:
                assert_never(stmt)

    def binding(self, stmt: Let | LetMut) -> None:
        var, value = stmt.var, stmt.value
        if var.mutable is not isinstance(stmt, LetMut):
            raise Broken(stmt, f"{var.name} is {'' if var.mutable else 'not '}mutable")
        if isinstance(stmt, Let) and isinstance(value, ArrayCreate):
            self.created(stmt, var, value)
        elif value is not None:
            self.expect(value, var.type, f"the value of {var.name}")
        self.declare(var, stmt)

    def target(self, target: LValue) -> ElementType:
        """The type of what an assignment changes."""
        match target:
            case LVar(var=var):
                type = self.use(var, target)
                if not var.mutable or isinstance(type, Vec | Array):
                    raise Broken(target, f"{var.name} is not mutable")
                return type
            case LElement(array=array, index=index):
                self.integer(index)
                return self.writable(array, target)
            case LElementExpr(base=base, index=index):
                self.integer(index)
                base_type = self.type(base)
                if not isinstance(base_type, Vec | Array):
                    raise Broken(base, f"{type_text(base_type)} is no array")
                return base_type.element
            case LField(record=record, name=name):
                return self.field(target, self.target(record), name)
            case _:
                assert_never(target)

    def writable(self, array: Var, node: object) -> ElementType:
        element = self.use_array(array, node)
        if isinstance(array.type, Array) and array.type.space is MemSpace.CONSTANT:
            raise Broken(node, f"{array.name} is constant but written")
        return element

    def counted(self, stmt: For) -> None:
        type = stmt.var.type
        if stmt.var.mutable or not isinstance(type, Scalar) or not type.is_integer:
            raise Broken(stmt, f"{stmt.var.name} is no immutable integer")
        for bound in (stmt.first, stmt.stop, stmt.step):
            self.expect(bound, type, f"a bound of {stmt.var.name}")
        self.loop(stmt, (stmt.var,))

    def function_return(self, stmt: Return, value: Expr | None) -> None:
        if value is not None and not self.in_helper:
            raise Broken(stmt, "a kernel returns no value")
        if value is None and self.result != UNIT:
            raise Broken(stmt, f"a value of {type_text(self.result)} is not returned")
        if value is not None:
            self.expect(value, self.result, "the value returned")

    def call_statement(self, stmt: Call) -> None:
        result = self.call(stmt, stmt.function, stmt.args).result
        given = result.items if isinstance(result, TupleType) else (result,)
        if stmt.results and (result == UNIT or tuple(v.type for v in stmt.results) != given):
            raise Broken(stmt, f"the results are not those of {stmt.function}")
        for var in stmt.results:
            self.declare(var, stmt)

    def atomic(self, stmt: Atomic) -> None:
        op, element = stmt.op, self.use_array(stmt.array, stmt)
        self.integer(stmt.index)
        if op is not AtomicOp.LOAD:
            self.writable(stmt.array, stmt)
        wanted = (op is not AtomicOp.LOAD, op is AtomicOp.CAS)
        if (stmt.value is not None, stmt.compare is not None) != wanted:
            raise Broken(stmt, f"atomic {op.value} has other operands")
        for operand in (stmt.value, stmt.compare):
            if operand is not None:
                self.expect(operand, element, "an operand of the atomic")
        if not isinstance(element, Scalar) or _space(stmt.array) not in _ATOMIC_SPACES:
            raise Broken(stmt, f"there are no atomics on {type_text(stmt.array.type)}")
        if stmt.result is not None:
            if op is AtomicOp.STORE or stmt.result.type != element or stmt.result.mutable:
                raise Broken(stmt, f"{stmt.result.name} cannot hold the old value")
            self.declare(stmt.result, stmt)


_ATOMIC_SPACES = (MemSpace.GLOBAL, MemSpace.SHARED)


def _is_visible(array: Var) -> bool:
    """Whether other threads, or the caller, can see what is stored in a variable."""
    return isinstance(array.type, Vec | Array) and _space(array) is not MemSpace.LOCAL


def _space(array: Var) -> MemSpace:
    return array.type.space if isinstance(array.type, Array) else MemSpace.GLOBAL
