"""Reads the text of IR: the inverse of `ir.text`.

A text that is not of that form raises ValueError with the line. What is read is as it stands: use
`ir.verify` to know that it is right.
"""

from __future__ import annotations

from sarek_numba.ir.nodes import (
    Assert,
    Assign,
    Atomic,
    AtomicOp,
    Barrier,
    Block,
    Body,
    Break,
    Call,
    ConstDecl,
    Continue,
    Direction,
    Empty,
    Expr,
    ExprStmt,
    FenceScope,
    For,
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
    Pattern,
    Pragma,
    Print,
    Return,
    Seq,
    SharedDecl,
    Stmt,
    Var,
    Warp,
    WarpBarrier,
    WarpOp,
    While,
)
from sarek_numba.ir.parse_coopmat import CoopmatReader
from sarek_numba.ir.types import (
    PART_NAMES,
    ArrayInfo,
    DynamicSharedLength,
    LengthOf,
    MemSpace,
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
from sarek_numba.ir.walk import deep_recursion

WORDS: dict[str, Stmt] = {
    "break": Break(),
    "continue": Continue(),
    "barrier": Barrier(),
    "warp_barrier": WarpBarrier(),
    "pass": Empty(),
}


def parse(source: str) -> Kernel:
    """The kernel of a text; raises ValueError with the line of what is not understood."""
    with deep_recursion():
        return _Parser(source).kernel()


class _Parser(CoopmatReader):
    """Reads statements and declarations."""

    # --- declarations ---------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        self.want("kernel")
        name = "_" if self.take("_") else self.name()
        self.want("index")
        index_bits = self.integer()
        warp_width = self.integer() if self.take("warp") else None
        fastmath = self.take("fastmath")
        self.want("{")
        types, variants = [], []
        while self.at("record") or self.at("variant"):
            if self.take("record"):
                types.append(self.fields())
            else:
                self.want("variant")
                variants.append(self.constructors())
        params = []
        while self.take("param"):
            params.append(self.param())
        decls = self.decls()
        functions = []
        while self.take("function"):
            functions.append(self.function())
        body = self.rest()
        if self.token.kind != "end":
            raise self.error("the end")
        return Kernel(
            name,
            body,
            tuple(params),
            decls,
            tuple(types),
            tuple(variants),
            tuple(functions),
            index_bits=index_bits,
            warp_width=warp_width,
            fastmath=fastmath,
        )

    def param(self) -> ParamDecl:
        var = self.declare()
        self.want("=")
        role = self.role()
        return ParamDecl(var, self.array_info() if self.take("array") else None, role)

    def role(self) -> Role:
        word = self.word()
        match word:
            case "argument":
                return UserArgument(self.integer())
            case "column":
                return UserArgument(self.integer(), self.integer())
            case "real" | "imag" as name:
                return PartOf(self.integer(), PART_NAMES.index(name))
            case "number":
                return NumberOf(self.integer(), self.integer())
            case "length":
                return LengthOf(self.integer())
            case "offset":
                return OffsetOf(self.integer())
            case "shape":
                return ShapeOf(self.integer(), self.integer())
            case "stride":
                return StrideOf(self.integer(), self.integer())
            case "dynamic_shared_length":
                return DynamicSharedLength()
            case "threads":
                return Threads(self.integer())
            case "report":
                return ReportBuffer()
            case _:
                raise self.error("a role before this")

    def array_info(self) -> ArrayInfo:
        self.want("(")
        element, pairs = self.type(), self.take("pairs")
        self.want(",")
        space = MemSpace(self.word())
        self.want(",")
        ndim = self.integer()
        self.want(",")
        layout = self.word()
        writable, record, restrict, columns = True, None, False, False
        while self.take(","):
            if self.take("readonly"):
                writable = False
            elif self.take("restrict"):
                restrict = True
            else:
                self.want("in")
                columns = self.take("columns")
                self.want("record")
                record = self.record_type()
        self.want(")")
        return ArrayInfo(element, space, ndim, layout, writable, pairs, record, restrict, columns)

    def decls(self) -> tuple[LocalDecl | SharedDecl | ConstDecl, ...]:
        found: list[LocalDecl | SharedDecl | ConstDecl] = []
        while True:
            if self.take("local"):
                found.append(LocalDecl(self.declare(), self.expr() if self.take("=") else None))
            elif self.take("shared"):
                found.append(self.shared())
            elif self.take("const"):
                found.append(self.const())
            else:
                return tuple(found)

    def shared(self) -> SharedDecl:
        var = self.declare()
        self.want("=")
        element = self.type()
        self.want("[")
        size = None if self.take("dynamic") else self.expr()
        self.want("]")
        return SharedDecl(var, element, size, self.integer() if self.take("at") else 0)

    def const(self) -> ConstDecl:
        var = self.declare()
        self.want("=")
        element = self.scalar()
        values: list[int] = []
        self.want("[")
        while not self.take("]"):
            if values:
                self.want(",")
            value = self.constant()
            if value is None:
                raise self.error("a constant")
            values.append(value.bits)
        return ConstDecl(var, element, tuple(values))

    def function(self) -> HelperFunction:
        name = self.name()
        params: list[Var] = []
        self.want("(")
        while not self.take(")"):
            if params:
                self.want(",")
            params.append(self.declare())
        self.want("->")
        result = self.type()
        inline = self.take("inline")
        self.want("{")
        decls = self.decls()
        if not all(isinstance(decl, LocalDecl) for decl in decls):
            raise self.error("no shared or constant array in a function")
        locals = tuple(decl for decl in decls if isinstance(decl, LocalDecl))
        return HelperFunction(name, tuple(params), result, self.rest(), locals, inline)

    # --- statements -----------------------------------------------------------------------------

    def body(self) -> Body:
        self.want("{")
        return self.rest()

    def rest(self) -> Body:
        """Statements up to the closing brace."""
        found: list[Stmt] = []
        while not self.take("}"):
            found.append(self.statement())
        return tuple(found)

    def statement(self) -> Stmt:
        if self.is_name():
            return self.assign()
        token = self.token
        word = self.word()
        if word in WORDS:
            return WORDS[word]
        match word:
            case "let":
                return self.let()
            case "var":
                var = self.declare(mutable=True)
                return LetMut(var, self.expr() if self.take("=") else None)
            case "set":
                return self.assign()
            case "if":
                return self.conditional()
            case "while":
                return While(self.expr(), self.body())
            case "for":
                return self.loop()
            case "return":
                ends = self.at("}") or self.token.line != token.line
                return Return(None if ends else self.expr())
            case "fence":
                return MemFence(FenceScope(self.word()))
            case "expr":
                return ExprStmt(self.expr())
            case "call":
                return Call((), self.name(), self.arguments())
            case "atomic":
                return self.atomic(None)
            case "assert":
                condition = self.expr()
                self.want(",")
                return Assert(condition, self.string())
            case "print":
                return Print(self.printed())
            case "coopmat":
                return self.coopmat()
            case _:
                return self.nested(word)

    def printed(self) -> tuple[str | Expr, ...]:
        """The parts of a print: texts and expressions."""
        parts: list[str | Expr] = []
        self.want("(")
        while not self.take(")"):
            if parts:
                self.want(",")
            parts.append(self.string() if self.token.kind == "string" else self.expr())
        return tuple(parts)

    def nested(self, word: str) -> Stmt:
        match word:
            case "seq":
                return Seq(self.body())
            case "block":
                return Block(self.body())
            case "match":
                return self.match_statement()
            case "pragma":
                hints: list[str] = []
                while self.token.kind == "string":
                    hints.append(self.string())
                return Pragma(tuple(hints), self.body())
            case "native":
                texts: list[tuple[str, str]] = []
                self.want("(")
                while not self.take(")"):
                    if texts:
                        self.want(",")
                    framework = self.string()
                    self.want(":")
                    texts.append((framework, self.string()))
                return Native(tuple(texts), self.body())
            case _:
                self.place -= 1
                raise self.error("a statement")

    def let(self) -> Stmt:
        bound = [self.declare()]
        while self.take(","):
            bound.append(self.declare())
        self.want("=")
        if self.take("call"):
            return Call(tuple(bound), self.name(), self.arguments())
        (var,) = bound
        if self.take("atomic"):
            return self.atomic(var)
        if self.take("warp"):
            return self.warp(var)
        return Let(var, self.expr())

    def assign(self) -> Assign:
        target = self.lvalue()
        self.want("=")
        return Assign(target, self.expr())

    def lvalue(self) -> LValue:
        target: LValue
        if self.take("("):
            base = self.expr()
            self.want(")")
            target = LElementExpr(base, self.index())
        else:
            var = self.use()
            target = LElement(var, self.index()) if self.at("[") else LVar(var)
        while self.take("."):
            target = LField(target, self.name())
        return target

    def conditional(self) -> If:
        """A chain of `else if` is read without recursion."""
        arms = [(self.expr(), self.body())]
        orelse: Body = ()
        while self.take("else"):
            if not self.take("if"):
                orelse = self.body()
                break
            arms.append((self.expr(), self.body()))
        condition, then = arms.pop()
        found = If(condition, then, orelse)
        while arms:
            condition, then = arms.pop()
            found = If(condition, then, (found,))
        return found

    def loop(self) -> For:
        var = self.declare()
        self.want("in")
        self.want("range")
        _, unguarded = self.flags()
        first, stop, step = self.arguments()
        direction = Direction.UPTO if self.at("{") else Direction(self.word())
        return For(var, first, stop, step, direction, self.body(), unguarded)

    def match_statement(self) -> Match:
        scrutinee = self.expr()
        cases: list[tuple[Pattern, Body]] = []
        self.want("{")
        while self.take("case"):
            pattern = self.pattern()
            cases.append((pattern, self.body()))
        self.want("}")
        return Match(scrutinee, tuple(cases))

    def atomic(self, result: Var | None) -> Atomic:
        token = self.token  # `and` and `or` are words of the language, so they come quoted
        op = AtomicOp(self.name() if token.kind == "quoted" else self.word())
        self.want("(")
        array = self.use()
        index = self.index()
        value = compare = None
        while self.take(","):
            if self.take("compare"):
                compare = self.expr()
            else:
                value = self.expr()
        self.want(")")
        return Atomic(op, result, array, index, value, compare)

    def warp(self, result: Var) -> Warp:
        op = WarpOp(self.word())
        self.want("(")
        operands: list[Expr] = []
        while not self.take("width"):
            operands.append(self.expr())
            self.want(",")
        width = self.integer()
        self.want(")")
        value, lane = (*operands, None, None)[:2]
        return Warp(op, result, width, value, lane)
