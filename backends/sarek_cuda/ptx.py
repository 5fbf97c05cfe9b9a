"""What PTX says of the parameters of a kernel (PTX ISA, "Kernel Function Parameters").

In comes PTX, of NVRTC's or somebody else's; out come the declarations of one `.entry`. A compiler
writes an `int` as `.u32` and a pointer as `.u64`, so of integers the width is known alone, and of
64 bits not whether they are an address, unless `.ptr` says so. Structures are arrays of `.b8`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from sarek_numba.runtime.cudalike.parameters import Parameter

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DECLARATION = re.compile(
    r"""\s*\.param \s+ (?:\.align\s+\d+\s+)?
    \.(?P<type>[usb](?:8|16|32|64)|f(?:16|32|64)|f16x2|b128) \s+
    (?P<pointer>\.ptr\b (?:\s*\.(?:global|const|shared|local)\b)? (?:\s*\.align\s+\d+)? \s*)?
    (?:\.align\s+\d+\s+)?
    [\w$%]+ \s* (?:\[\s*(?P<count>\d+)\s*\])? \s*""",
    re.VERBOSE,
)
_FLOATS: Mapping[str, np.dtype[Any] | bool] = {
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}


def parameters(text: str, name: str) -> tuple[Parameter, ...] | None:
    """The parameters of a kernel; None where the text does not have it in a form known here."""
    entry = re.search(
        rf"\.entry\s+{re.escape(name)}(?![\w$])\s*(?:\(([^)]*)\))?", _COMMENT.sub(" ", text)
    )
    if entry is None:
        return None
    inside = (entry[1] or "").strip()
    found = [_parameter(each) for each in inside.split(",")] if inside else []
    known = tuple(each for each in found if each is not None)
    return known if len(known) == len(found) else None


def _parameter(declaration: str) -> Parameter | None:
    match = _DECLARATION.fullmatch(declaration)
    if match is None:
        return None
    word, count = match["type"], match["count"]
    bits = 32 if word == "f16x2" else int(word[1:])
    size = bits // 8 * int(count or 1)
    if match["pointer"]:
        return Parameter(f".{word} .ptr", size, type=None)
    if count is not None:
        return Parameter(f".{word}[{count}]", size)
    return Parameter(f".{word}", size, _FLOATS.get(word, True), word.startswith(("u", "s")))
