"""A Pygments lexer for the text of IR, and a kernel as HTML.

The lexer splits a text as the parser does (`ir.lexer.TOKEN`), so that the two cannot disagree; what
is no word of IR becomes an error token, and nothing is lost. Imported only where Pygments is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from pygments.lexer import Lexer
from pygments.token import Error, Keyword, Name, Number, Operator, String, Whitespace

from sarek_numba.ir.intrinsics import INTRINSICS
from sarek_numba.ir.lexer import SCALARS, TOKEN
from sarek_numba.ir.nodes import AtomicOp, Coordinate, WarpOp
from sarek_numba.ir.spelling import KEYWORDS

_TYPES = {*SCALARS, "vec", "tuple", "fixed", "unit"}
_BUILTINS = {place.value for place in Coordinate} | {"at", "wrap"}
_CALLED = {*INTRINSICS, "range"}
_OPERATIONS = {op.value for op in (*AtomicOp, *WarpOp)}
# Words that mean something in the first lines of a kernel, and are names elsewhere.
_HEAD = {"kernel", "index", "argument", "length", "offset", "shape", "stride", "real", "imag",
         "readonly", "report", "dynamic_shared_length", "inline", "global", "pairs"}  # fmt: skip
_HEADED = {"kernel", "param", "function", "shared"}
_KINDS = {"space": Whitespace, "number": Number, "quoted": Name, "string": String, "sign": Operator}


class IRLexer(Lexer):
    """Words of the text form of Sarek IR; `sarek-ir` to Pygments."""

    name = "Sarek IR"
    aliases: ClassVar[list[str]] = ["sarek-ir"]
    filenames: ClassVar[list[str]] = ["*.sarek-ir"]

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"stripnl": False, "ensurenl": False, **options})

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """Position, kind and text of each token; their texts joined are the text."""
        place, line_word, before = 0, "", ""
        while place < len(text):
            match = TOKEN.match(text, place)
            if match is None:
                yield place, Error, text[place]
                place += 1
                continue
            kind = "number" if match["number"] else str(match.lastgroup)
            if kind == "space" and "\n" in match[0]:
                line_word = before = ""
            if kind == "number" and match["suffix"]:
                yield place, Number, match["number"]
                yield match.start("suffix"), Keyword.Type, match["suffix"]
            elif kind == "name":
                line_word = line_word or match[0]
                called = text[match.end() : match.end() + 1] in (".", "(")
                yield place, _word(match[0], line_word, before, called), match[0]
            else:
                yield place, _KINDS[kind], match[0]
            before = before if kind == "space" else match[0]
            place = match.end()


def _word(word: str, line_word: str, before: str, called: bool) -> Any:
    """The kind of a bare word, by itself, the first word of its line and what stands beside it."""
    if before in ("@", "call") or (before == "function" and line_word == "function"):
        return Name.Function
    if before in ("atomic", "warp") and word in _OPERATIONS:
        return Name.Function
    if word in _TYPES:
        return Keyword.Type
    if word in _BUILTINS:
        return Name.Builtin
    if word in _CALLED and called:
        return Name.Function
    if word in KEYWORDS or (word in _HEAD and line_word in _HEADED):
        return Keyword
    return Name.Variable
