"""Reads the operations of cooperative matrices: a part of `ir.parse`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sarek_numba.ir.nodes import (
    CMDecl,
    CMFill,
    CMLoad,
    CMMulAdd,
    CMStore,
    Coopmat,
    CoopmatConfig,
    CoopmatOp,
    Expr,
    Fragment,
    Var,
)
from sarek_numba.ir.parse_expr import ExprReader

T = TypeVar("T")


class CoopmatReader(ExprReader):
    """Reads what follows the word `coopmat`."""

    def coopmat(self) -> Coopmat:
        word = self.word()
        self.want("(")
        name = self.string()
        self.want(",")
        op: CoopmatOp
        match word:
            case "declare":
                op = CMDecl(name, self.fragment())
            case "load":
                op = CMLoad(name, self.fragment(), *self.tile())
            case "store":
                op = CMStore(name, self.fragment(), *self.tile())
            case "fill":
                fragment = self.fragment()
                self.want(",")
                op = CMFill(name, fragment, self.expr())
            case "muladd":
                operands: list[str] = []
                while self.token.kind == "string":
                    operands.append(self.string())
                    self.want(",")
                a, b, c = operands
                op = CMMulAdd(name, a, b, c, self.config())
            case _:
                raise self.error("an operation of cooperative matrices before this")
        self.want(")")
        return Coopmat(op)

    def tile(self) -> tuple[Var, Expr, Expr, bool]:
        self.want(",")
        array, index = self.use(), self.index()
        self.want(",")
        stride = self.expr()
        self.want(",")
        return array, index, stride, self.word() == "column_major"

    def fragment(self) -> Fragment:
        self.want("fragment")
        self.want("(")
        use = self.before_comma(self.string)
        component = self.before_comma(self.scalar)
        rows = self.before_comma(self.integer)
        columns = self.before_comma(self.integer)
        scope = self.string()
        self.want(")")
        return Fragment(use, component, rows, columns, scope)

    def config(self) -> CoopmatConfig:
        if self.word() != "config":
            raise self.error("a configuration before this")
        self.want("(")
        m, n, k = (self.before_comma(self.integer) for _ in range(3))
        a, b, c, result = (self.before_comma(self.scalar) for _ in range(4))
        saturating = self.word() == "true"
        self.want(",")
        scope = self.string()
        self.want(")")
        return CoopmatConfig(m, n, k, a, b, c, result, saturating, scope)

    def before_comma(self, read: Callable[[], T]) -> T:
        found = read()
        self.want(",")
        return found
