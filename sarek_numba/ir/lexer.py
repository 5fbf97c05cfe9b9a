"""Tokens of the text of IR, and the part of the parser that names, types and constants share."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from sarek_numba.ir.nodes import Const, Var, constant
from sarek_numba.ir.spelling import BARE_NAME, RESERVED, SCALAR_NAMES
from sarek_numba.ir.types import (
    FLOAT64,
    INT64,
    UNIT,
    Array,
    ElementType,
    FixedArray,
    MemSpace,
    Record,
    Scalar,
    TupleType,
    Variant,
    Vec,
)

SCALARS = {name: scalar for scalar, name in SCALAR_NAMES.items()}

TOKEN = re.compile(
    rf"""
      (?P<space>[ \t\r\n]+)
    | (?P<number>0x[0-9a-f]+ | \d+(?:\.\d+)?(?:e[+-]?\d+)?)(?P<suffix>[a-z]+\d+)?
    | (?P<name>{BARE_NAME})
    | `(?P<quoted>(?:[^`\\]|\\.)*)`
    | (?P<string>"(?:[^"\\]|\\.)*")
    | (?P<sign>->|//|%%|==|!=|<=|>=|<<|>>|[-+*/%<>&|^~=!?:;,.#@(){{}}\[\]])
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    """`kind` is "number", "name", "quoted", "string", "sign" or "end"."""

    kind: str
    text: str
    suffix: str
    line: int


def tokens_of(source: str) -> list[Token]:
    """All tokens of a text, and one of kind "end"; raises ValueError at a foreign character."""
    found: list[Token] = []
    place, line = 0, 1
    while place < len(source):
        match = TOKEN.match(source, place)
        if match is None:
            raise ValueError(f"line {line}: {source[place : place + 10]!r} is no word of IR text")
        kind = match.lastgroup if match.lastgroup != "suffix" else "number"
        if kind != "space":
            assert kind is not None
            found.append(Token(kind, match[kind], match["suffix"] or "", line))
        line += match[0].count("\n")
        place = match.end()
    found.append(Token("end", "", "", line))
    return found


class Reader:
    """A place among the tokens, and what has been declared before it."""

    def __init__(self, source: str) -> None:
        self.tokens = tokens_of(source)
        self.place = 0
        self.by_id: dict[int, Var] = {}
        self.by_name: dict[str, Var] = {}
        self.last_number = -1

    # --- tokens ---------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.place]

    def error(self, wanted: str) -> ValueError:
        shown = self.token.text or "the end"
        return ValueError(f"line {self.token.line}: {wanted} is wanted, not {shown!r}")

    def at(self, text: str) -> bool:
        """Whether the next token is this sign or word of the language."""
        token = self.token
        return token.text == text and token.kind in ("sign", "name")

    def take(self, text: str) -> bool:
        """Pass over the next token if it is this one."""
        if not self.at(text):
            return False
        self.place += 1
        return True

    def want(self, text: str) -> None:
        if not self.take(text):
            raise self.error(repr(text))

    def word(self) -> str:
        """A bare word, reserved or not."""
        token = self.token
        if token.kind != "name":
            raise self.error("a word")
        self.place += 1
        return token.text

    def is_name(self) -> bool:
        token = self.token
        return token.kind == "quoted" or (token.kind == "name" and token.text not in RESERVED)

    def name(self) -> str:
        token = self.token
        if not self.is_name():
            raise self.error("a name")
        self.place += 1
        if token.kind == "name":
            return token.text
        return str(json.loads(f'"{token.text}"'))

    def string(self) -> str:
        token = self.token
        if token.kind != "string":
            raise self.error("a string")
        self.place += 1
        return str(json.loads(token.text))

    def integer(self) -> int:
        token = self.token
        if token.kind != "number" or token.suffix:
            raise self.error("a plain integer")
        self.place += 1
        return int(token.text, 0)

    # --- variables ------------------------------------------------------------------------------

    def use(self) -> Var:
        token = self.token
        name = self.name()
        var = self.by_id.get(self.integer()) if self.take("#") else self.by_name.get(name)
        if var is None or var.name != name:
            raise ValueError(f"line {token.line}: {name} is not declared")
        return var

    def declare(self, mutable: bool = False, by_id_alone: bool = False) -> Var:
        """A declaration. Variables of patterns within expressions are used by id alone."""
        name = self.name()
        number = self.integer() if self.take("#") else self.last_number + 1
        if self.take("!"):
            mutable = not mutable
        self.want(":")
        var = Var(name, number, self.type(), mutable)
        self.last_number = number
        self.by_id[number] = var
        if not by_id_alone:
            self.by_name[name] = var
        return var

    # --- types and constants --------------------------------------------------------------------

    def scalar(self) -> Scalar:
        scalar = SCALARS.get(self.token.text)
        if scalar is None or self.token.kind != "name":
            raise self.error("a scalar type")
        self.place += 1
        return scalar

    def type(self) -> ElementType:
        if self.take("unit"):
            return UNIT
        if self.take("vec"):
            self.want("<")
            element = self.type()
            self.close_angle()
            return Vec(element)
        if self.take("array"):
            self.want("<")
            element = self.type()
            self.want(",")
            space = MemSpace(self.word())
            self.close_angle()
            return Array(element, space)
        if self.take("tuple"):
            self.want("<")
            items = [] if self.token.text in (">", ">>") else [self.type()]
            while self.take(","):
                items.append(self.type())
            self.close_angle()
            return TupleType(tuple(items))
        if self.take("fixed"):
            return self.fixed_array()
        if self.take("record"):
            return self.record_type()
        if self.take("variant"):
            return Variant(*self.constructors())
        return self.scalar()

    def close_angle(self) -> None:
        """A closing angle; two of them are one token, of which half is left."""
        if self.at(">>"):
            token = self.token
            self.tokens[self.place] = token._replace(text=">")
            return
        self.want(">")

    def fixed_array(self) -> FixedArray:
        self.want("<")
        element = self.type()
        shape: list[int] = []
        while self.take(","):
            shape.append(self.integer())
        self.close_angle()
        return FixedArray(element, tuple(shape))

    def record_type(self) -> Record:
        name = self.name()
        fields: list[tuple[str, ElementType]] = []
        offsets: list[int] = []
        self.want("(")
        while not self.take(")"):
            field = self.name()
            if self.take("at"):
                offsets.append(self.integer())
            self.want(":")
            fields.append((field, self.type()))
            self.take(",")
        if not self.take("@"):
            return Record(name, tuple(fields))
        return Record(name, tuple(fields), tuple(offsets), self.integer())

    def fields(self) -> tuple[str, tuple[tuple[str, ElementType], ...]]:
        name = self.name()
        found: list[tuple[str, ElementType]] = []
        self.want("(")
        while not self.take(")"):
            field = self.name()
            self.want(":")
            found.append((field, self.type()))
            self.take(",")
        return name, tuple(found)

    def constructors(self) -> tuple[str, tuple[tuple[str, tuple[ElementType, ...]], ...]]:
        name = self.name()
        found: list[tuple[str, tuple[ElementType, ...]]] = []
        self.want("(")
        while not self.take(")"):
            constructor = self.name()
            payload: list[ElementType] = []
            self.want("(")
            while not self.take(")"):
                payload.append(self.type())
                self.take(",")
            found.append((constructor, tuple(payload)))
            self.take(",")
        return name, tuple(found)

    def constant(self) -> Const | None:
        """A constant, if one stands here."""
        negative = self.at("-") and (
            self.tokens[self.place + 1].kind == "number"
            or self.tokens[self.place + 1][:2] == ("name", "inf")
        )
        if negative:
            self.place += 1
        token = self.token
        if token.kind == "number":
            self.place += 1
            return _number(token, negative)
        if token.kind != "name" or token.text not in ("true", "false", "inf", "nan", "bits"):
            return None
        self.place += 1
        if token.text in ("true", "false"):
            return constant(Scalar.BOOL, token.text == "true")
        self.want(".")
        type = self.scalar()
        if token.text == "inf":
            return constant(type, float("-inf" if negative else "inf"))
        self.want("(")
        bits = self.integer()
        self.want(")")
        return Const(type, bits)


def _number(token: Token, negative: bool) -> Const:
    digits = f"-{token.text}" if negative else token.text
    is_float = any(mark in token.text for mark in ".e") and not token.text.startswith("0x")
    if is_float:
        return constant(SCALARS[token.suffix] if token.suffix else FLOAT64, float(digits))
    return constant(SCALARS[token.suffix] if token.suffix else INT64, int(digits))
