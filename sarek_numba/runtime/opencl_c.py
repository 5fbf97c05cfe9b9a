"""A Pygments lexer for OpenCL C: C with qualifiers, types and functions of its own.

Imported only where Pygments is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from pygments.lexers.c_cpp import CLexer
from pygments.token import Keyword, Name

_QUALIFIERS = re.compile(r"(__)?(kernel|global|local|constant|private|read_only|write_only)")
_TYPES = re.compile(
    r"(bool|u?(char|short|int|long)|half|float|double)(2|3|4|8|16)?|size_t|ptrdiff_t"
    r"|atomic_\w*(int|long)|event_t"
)
_FUNCTIONS = re.compile(
    r"(get_|atomic_|atom_|sub_group_|work_group_|convert_|as_|native_|vload|vstore)\w+"
    r"|barrier|mem_fence|printf|fma|clz|popcount|mul_hi|select|fmin|fmax|fabs|floor|ceil|trunc"
    r"|rint|sqrt|rsqrt|isnan|isinf|CLK_\w+"
)


class OpenCLLexer(CLexer):
    """OpenCL C."""

    name = "OpenCL C"
    aliases: ClassVar[list[str]] = ["opencl-c"]
    filenames: ClassVar[list[str]] = ["*.cl"]

    def get_tokens_unprocessed(
        self, text: str, stack: tuple[str, ...] = ("root",)
    ) -> Iterator[tuple[int, Any, str]]:
        """The tokens of C, with the words of OpenCL told apart."""
        for place, token, word in super().get_tokens_unprocessed(text, stack):
            yield place, _kind(token, word), word


def _kind(token: Any, word: str) -> Any:
    if token not in Name and token not in Keyword:
        return token
    if _QUALIFIERS.fullmatch(word):
        return Keyword
    if _TYPES.fullmatch(word):
        return Keyword.Type
    return Name.Builtin if _FUNCTIONS.fullmatch(word) else token
