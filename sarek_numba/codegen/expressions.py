"""Expressions of Sarek IR as text of a C-like language.

In: an expression of verified IR, the names of its variables. Out: a `Text` with as few parentheses
as precedence and good taste allow, which evaluates to the value that `ir.semantics` gives, edges
included.

C computes in its own types: below 32 bits in int, mixed signs in unsigned, and an overflow of
signed integers has no meaning. So a `Text` says in which C type it stands (`carrier`) and whether
its value is the value meant (`exact`) or merely equal to it modulo 2^n. Casts are written only
where a use needs more than it has: an assignment or an argument of a function with a prototype
converts by itself, and sums and products may go on in the unsigned type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sarek_numba.codegen.dialect import Dialect
from sarek_numba.codegen.literals import bare_literal, typed_literal
from sarek_numba.codegen.prelude import UNSIGNED, Prelude
from sarek_numba.errors import InvalidIR
from sarek_numba.ir.nodes import (
    COMPARISONS,
    LOGICAL,
    SHIFTS,
    App,
    ArrayRead,
    Binary,
    BinOp,
    Cast,
    Const,
    Coordinate,
    Expr,
    IfExpr,
    Index,
    Intrinsic,
    Subscript,
    Unary,
    UnOp,
    Var,
    VarRef,
)
from sarek_numba.ir.types import BOOL, Array, Kind, Scalar, Vec

PRIMARY, UNARY, MULTIPLY, ADD, SHIFT, RELATION, EQUALITY, BITAND, BITXOR, BITOR = range(15, 5, -1)
LOGICAL_AND, LOGICAL_OR, TERNARY = 5, 4, 3

_OPERATORS: Mapping[BinOp, tuple[str, int]] = {
    BinOp.ADD: ("+", ADD),
    BinOp.SUB: ("-", ADD),
    BinOp.MUL: ("*", MULTIPLY),
    BinOp.DIV: ("/", MULTIPLY),
    BinOp.MOD: ("%", MULTIPLY),
    BinOp.FLOORDIV: ("/", MULTIPLY),
    BinOp.FLOORMOD: ("%", MULTIPLY),
    BinOp.EQ: ("==", EQUALITY),
    BinOp.NE: ("!=", EQUALITY),
    BinOp.LT: ("<", RELATION),
    BinOp.LE: ("<=", RELATION),
    BinOp.GT: (">", RELATION),
    BinOp.GE: (">=", RELATION),
    BinOp.AND: ("&&", LOGICAL_AND),
    BinOp.OR: ("||", LOGICAL_OR),
    BinOp.SHL: ("<<", SHIFT),
    BinOp.SHR: (">>", SHIFT),
    BinOp.BITAND: ("&", BITAND),
    BinOp.BITOR: ("|", BITOR),
    BinOp.BITXOR: ("^", BITXOR),
}
_RING = frozenset({BinOp.ADD, BinOp.SUB, BinOp.MUL})
_BITWISE = frozenset({BinOp.BITAND, BinOp.BITOR, BinOp.BITXOR})
_DIVISIONS: Mapping[BinOp, str] = {
    BinOp.DIV: "div",
    BinOp.MOD: "mod",
    BinOp.FLOORDIV: "floor_div",
    BinOp.FLOORMOD: "floor_mod",
}
_CHAINS = _BITWISE | LOGICAL
# What an operand must bind at least as strongly as, where that is more than the language asks: few
# remember how shifts, bit operations, comparisons, `&&` and `||` bind among themselves.
_LOWEST_OPERAND = {
    SHIFT: UNARY,
    BITAND: UNARY,
    BITXOR: UNARY,
    BITOR: UNARY,
    RELATION: ADD,
    EQUALITY: ADD,
    LOGICAL_AND: EQUALITY,
    LOGICAL_OR: EQUALITY,
}


class Text(NamedTuple):
    """An expression as text: see the contract of this module."""

    code: str
    precedence: int
    type: Scalar
    carrier: Scalar
    exact: bool = True


class Expressions:
    """Prints expressions; `names` is filled by whoever declares the variables."""

    def __init__(self, dialect: Dialect, prelude: Prelude) -> None:
        self.dialect = dialect
        self.prelude = prelude
        self.names: dict[int, str] = {}
        self.functions: dict[str, str] = {}
        self.given: dict[str, tuple[str, ...]] = {}  # built-in values that helpers are given

    # --- what a use may ask of a text ---

    def value(self, expr: Expr) -> str:
        """The expression where C converts it to its type: an initialiser, an argument, a store."""
        text = self.expression(expr)
        doubted = (text.carrier, text.type) in self.dialect.narrowings
        return (self._exact(text) if doubted else text).code

    def index(self, expr: Expr) -> str:
        """The expression as an index: any integer type whose value is meant, or modulo 2^64."""
        text = self.expression(expr)
        if text.type.bits == 64 and text.carrier.bits == 64:
            return text.code
        return self._exact(text).code

    def condition(self, expr: Expr) -> str:
        return self.expression(expr).code

    def operand(self, expr: Expr) -> Text:
        """The expression with its value and a C type of its sign."""
        return self._signed(self.expression(expr))

    def typed(self, text: Text) -> Text:
        """The text with exactly its own type in C, as an overloaded function wants it."""
        if text.carrier is text.type and text.exact:
            return text
        digits = text.code.removeprefix("-")
        if digits.isdigit() and text.type.bits >= 32:
            return Text(text.code + self.dialect.suffixes[text.type], *text[1:3], text.type)
        return self._cast(text.type, text)

    def _exact(self, text: Text) -> Text:
        return text if text.exact else self._cast(text.type, text)

    def _signed(self, text: Text) -> Text:
        mixed = text.type.kind is Kind.SIGNED and text.carrier.kind is Kind.UNSIGNED
        return self._cast(text.type, text) if mixed or not text.exact else text

    def _cast(self, type: Scalar, text: Text) -> Text:
        narrowing = self.dialect.narrowings.get((text.carrier, type))
        if narrowing:
            return Text(f"{narrowing}({text.code})", PRIMARY, type, type)
        return Text(f"({self.dialect.types[type]}){_above(text, UNARY)}", UNARY, type, type)

    # --- expressions ---

    def expression(self, expr: Expr) -> Text:
        """The text of an expression. One frame for each level, for expressions are deep."""
        match expr:
            case Const():
                return self._const(expr)
            case VarRef(var=var):
                return self._variable(var)
            case Binary(op=op, left=left, right=right):
                return self._binary(expr, self.expression(left), self.expression(right))
            case ArrayRead(array=array, index=index):
                return self._element(array, self.expression(index))
            case Subscript(index=index, extent=extent, wrap=wrap):
                inner = self.expression(index)
                if not wrap or inner.type.kind is not Kind.SIGNED:
                    return inner
                return self._prelude("wrap", inner.type, inner, self.expression(extent))
            case Unary(op=op, operand=operand):
                return self._unary(op, self.expression(operand), expr.unguarded)
            case Cast(type=type, operand=operand):
                return self._conversion(type, self.expression(operand))
            case Index(coordinate=coordinate, axis=axis, type=type):
                return self._coordinate(coordinate, axis, type)
            case IfExpr(condition=condition, then=then, orelse=orelse):
                choice = self.expression(condition)
                return self._choice(choice, self.expression(then), self.expression(orelse))
            case Intrinsic(args=args):
                return self._intrinsic(expr, [self.expression(arg) for arg in args])
            case App(function=function, args=args, type=Scalar() as type):
                return Text(self.helper_call(function, args), PRIMARY, type, type)
            case _:
                raise InvalidIR(f"{self.dialect.name} has no spelling for {type_name(expr)}")

    def argument(self, expr: Expr) -> str:
        """An argument of a helper: an array by its name, or a value."""
        if isinstance(expr, VarRef) and isinstance(expr.var.type, Vec | Array):
            return self.names[expr.var.id]
        return self.value(expr)

    def helper_call(self, function: str, args: tuple[Expr, ...]) -> str:
        """A call of a helper."""
        given = (*map(self.argument, args), *self.given.get(function, ()))
        return f"{self.functions[function]}({', '.join(given)})"

    def _const(self, const: Const) -> Text:
        if const.type.is_integer:
            bare = bare_literal(int(const.value))
            if bare is not None:
                precedence = UNARY if bare.startswith("-") else PRIMARY
                return Text(bare, precedence, const.type, Scalar.INT32)
        code = typed_literal(self.dialect, const)
        unary = code.startswith("-") or (code.startswith("(") and not code.endswith(")"))
        return Text(code, UNARY if unary else PRIMARY, const.type, const.type)

    def _coordinate(self, coordinate: Coordinate, axis: int, type: Scalar) -> Text:
        dialect = self.dialect
        narrow = dialect.narrow_coordinates.get(coordinate)
        if narrow and type.bits == 32:
            code, carrier = narrow[axis], dialect.narrow_coordinate_type
        else:
            wide = coordinate in dialect.wide_coordinates
            code = dialect.coordinates[coordinate][axis]
            carrier = Scalar.UINT64 if wide else dialect.coordinate_type
        precedence = ADD if " + " in code else MULTIPLY if " * " in code else PRIMARY
        return Text(code, precedence, type, carrier)

    def _variable(self, var: Var) -> Text:
        assert isinstance(var.type, Scalar)
        return Text(self.names[var.id], PRIMARY, var.type, var.type)

    def _element(self, array: Var, index: Text) -> Text:
        assert isinstance(array.type, Vec | Array)
        assert isinstance(array.type.element, Scalar)
        if index.type.bits != 64 or index.carrier.bits != 64:
            index = self._exact(index)
        element = array.type.element
        return Text(f"{self.names[array.id]}[{index.code}]", PRIMARY, element, element)

    def _choice(self, condition: Text, then: Text, orelse: Text) -> Text:
        then, orelse = self._signed(then), self._signed(orelse)
        first, second = _above(then, TERNARY), _above(orelse, TERNARY)
        code = f"{_above(condition, TERNARY + 1)} ? {first} : {second}"
        type = then.type
        typed = type is BOOL or (type.bits >= 32 and type in (then.carrier, orelse.carrier))
        return Text(code, TERNARY, type, type if typed else Scalar.INT32)

    # --- operators ---

    def _unary(self, op: UnOp, operand: Text, unguarded: bool) -> Text:
        type = operand.type
        if op is UnOp.NOT or type is BOOL:
            return Text(f"!{_above(operand, UNARY)}", UNARY, BOOL, BOOL)
        if type.is_float:
            return Text(f"-{_sign_free(operand)}", UNARY, type, type)
        if type.bits < 32:
            exact = unguarded if op is UnOp.NEG else type.kind is Kind.SIGNED
            code = f"{op.value}{_sign_free(self._exact(operand))}"
            return Text(code, UNARY, type, Scalar.INT32, exact)
        unsigned = UNSIGNED.get(type, type)
        if operand.carrier not in (type, unsigned):
            operand = self.typed(operand)
        if op is UnOp.NEG and not unguarded and operand.carrier is not unsigned:
            operand = self._cast(unsigned, operand)
        code = f"{op.value}{_sign_free(operand)}"
        return Text(code, UNARY, type, operand.carrier, operand.carrier is type)

    def _binary(self, node: Binary, left: Text, right: Text) -> Text:
        op, type = node.op, left.type
        if op in COMPARISONS or op in LOGICAL:
            left, right = self._pair(self._signed(left), self._signed(right))
            return self._infix(op, left, right, BOOL, BOOL)
        if op in SHIFTS:
            return self._shift(op, left, self._exact(right), node.unguarded)
        if op in _DIVISIONS:
            return self._division(op, left, right, node.unguarded)
        if type.is_float:
            return self._infix(op, left, right, type, type)
        if type is BOOL:
            return self._infix(op, left, right, BOOL, BOOL)
        if type.bits < 32:
            return self._narrow(op, self._exact(left), self._exact(right), node.unguarded)
        return self._ring(op, left, right, node.unguarded or op in _BITWISE)

    def _pair(self, left: Text, right: Text) -> tuple[Text, Text]:
        """Both texts, one of them at least of their type in C, so that the other one follows it."""
        type = left.type
        if type.bits < 32 or type in (left.carrier, right.carrier):
            return left, right
        if type is Scalar.INT32 and left.carrier.bits < 32:  # C computes in int
            return left, right
        return self.typed(left), right

    def _ring(self, op: BinOp, left: Text, right: Text, plain: bool) -> Text:
        """Sums, products, bit operations of 32 and 64 bits; `plain` where none overflows."""
        type = left.type
        unsigned = UNSIGNED.get(type, type)
        left, right = (
            text if text.carrier.bits <= type.bits else self._cast(type, text)
            for text in (left, right)
        )
        if unsigned in (left.carrier, right.carrier):
            return self._infix(op, left, right, type, unsigned, unsigned is type)
        if plain or type is unsigned:
            left, right = self._pair(left, right)
            return self._infix(op, left, right, type, type)
        if left.carrier is type or right.carrier is not type:
            left = self._cast(unsigned, left)
        else:
            right = self._cast(unsigned, right)
        return self._infix(op, left, right, type, unsigned, False)

    def _narrow(self, op: BinOp, left: Text, right: Text, unguarded: bool) -> Text:
        """Operations of 8 and 16 bits, which C does in int."""
        type = left.type
        if op is BinOp.MUL and type is Scalar.UINT16:  # 65535 * 65535 overflows an int
            left = self._cast(Scalar.UINT32, left)
            return self._infix(op, left, right, type, Scalar.UINT32, False)
        return self._infix(op, left, right, type, Scalar.INT32, unguarded or op in _BITWISE)

    def _shift(self, op: BinOp, left: Text, count: Text, unguarded: bool) -> Text:
        type = left.type
        if not unguarded:
            family = "shift_left" if op is BinOp.SHL else "shift_right"
            unsigned_count = Scalar.UINT64 if count.type.bits == 64 else Scalar.UINT32
            name = self.prelude.function(family, type, unsigned_count)
            return Text(f"{name}({left.code}, {count.code})", PRIMARY, type, type)
        left = self._exact(left) if type.bits < 32 else self.typed(left)
        if type.bits >= 32:
            return self._infix(op, left, count, type, type)
        return self._infix(op, left, count, type, Scalar.INT32, op is BinOp.SHR)

    def _division(self, op: BinOp, left: Text, right: Text, unguarded: bool) -> Text:
        type = left.type
        if type.is_float:
            if op is BinOp.DIV:
                if quotient := self.dialect.quotients.get(type):
                    return Text(quotient.format(left.code, right.code), PRIMARY, type, type)
                return self._infix(op, left, right, type, type)
            if op is BinOp.MOD:
                return self._call("fmod", type, [left, right])
            return self._prelude(_DIVISIONS[op], type, left, right)
        floors = op in (BinOp.FLOORDIV, BinOp.FLOORMOD) and type.kind is Kind.SIGNED
        if unguarded and not floors:
            left, right = self._pair(self._signed(left), self._signed(right))
            return self._infix(op, left, right, type, type if type.bits >= 32 else Scalar.INT32)
        family = _DIVISIONS[op]
        if floors:
            family += "_plain" if unguarded else ""
        elif type.kind is Kind.UNSIGNED:
            family = family.removeprefix("floor_")
        return self._prelude(family, type, left, right)

    def _infix(
        self, op: BinOp, left: Text, right: Text, type: Scalar, carrier: Scalar, exact: bool = True
    ) -> Text:
        symbol, precedence = _OPERATORS[op]
        lowest = _LOWEST_OPERAND.get(precedence)
        first, last = lowest or precedence, lowest or precedence + 1
        if op in _CHAINS and left.precedence == precedence:
            first = precedence
        if op in LOGICAL and right.precedence == precedence:  # a && (b && c) is a && b && c
            last = precedence
        code = f"{_above(left, first)} {symbol} {_above(right, last)}"
        return Text(code, precedence, type, carrier, exact)

    # --- conversions and functions ---

    def _conversion(self, type: Scalar, operand: Text) -> Text:
        source = operand.type
        if type is source:
            return operand
        if type is BOOL:
            zero = "0" if source.is_integer else "0.0" + self.dialect.suffixes[source]
            operand = self._exact(operand)
            return Text(f"{_above(operand, RELATION)} != {zero}", EQUALITY, BOOL, BOOL)
        if source.is_float and type.is_integer:
            name = self.prelude.function("to", source, type)
            return Text(f"{name}({operand.code})", PRIMARY, type, type)
        if type.is_float or type.bits > source.bits:
            operand = self._exact(operand)
        if operand.carrier is type and not operand.code.removeprefix("-").isdigit():
            return Text(operand.code, operand.precedence, type, type)
        if _widens_by_itself(operand.carrier, type):
            return Text(operand.code, operand.precedence, type, operand.carrier)
        return self._cast(type, operand)

    def _intrinsic(self, node: Intrinsic, args: list[Text]) -> Text:
        if node.name == "reinterpret":
            template = self.dialect.reinterpret[node.type]
            return Text(template.format(self.typed(args[0]).code), PRIMARY, node.type, node.type)
        return self._call(node.name, args[0].type, args, node.type)

    def _call(
        self, name: str, scalar: Scalar, args: list[Text], result: Scalar | None = None
    ) -> Text:
        template = self.dialect.functions.get((name, scalar))
        if template is None:
            return self._prelude(name, scalar, *args)
        code = template.format(*(self.typed(arg).code for arg in args))
        result = result or scalar
        return Text(code, PRIMARY, result, result)

    def _prelude(self, family: str, scalar: Scalar, *args: Text) -> Text:
        name = self.prelude.function(family, scalar)
        code = f"{name}({', '.join(arg.code for arg in args)})"
        return Text(code, PRIMARY, scalar, scalar)


def _widens_by_itself(carrier: Scalar, type: Scalar) -> bool:
    """Whether C takes a value of one integer type for one of a wider type wherever they meet."""
    if not (carrier.is_integer and type.kind is Kind.SIGNED and carrier.bits < type.bits):
        return False
    return carrier.kind is Kind.SIGNED or (carrier.bits < 32 <= type.bits)


def type_name(node: object) -> str:
    """The kind of an IR node, for messages."""
    return type(node).__name__


def _above(text: Text, precedence: int) -> str:
    """The code, in parentheses unless it binds at least as strongly as `precedence`."""
    return text.code if text.precedence >= precedence else f"({text.code})"


def _sign_free(text: Text) -> str:
    """The operand of a prefix operator: `-` and `-` must not meet as `--`."""
    code = _above(text, UNARY)
    return f"({code})" if code.startswith("-") else code
