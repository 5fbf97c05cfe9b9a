"""The text that a device compiles, as a string that shows itself in colour in a notebook."""

from __future__ import annotations

from sarek_numba.display import code

# The language of each backend's text, as `display.code` names lexers; others are shown plain.
LEXERS = {
    "opencl": "sarek_numba.runtime.opencl_c:OpenCLLexer",
    "native": "llvm",
    "interpreter": "sarek_numba.ir.highlight:IRLexer",
}


class Source(str):
    """A program's text, and the backend it is for. Printed, it is the text."""

    __slots__ = ("backend",)
    backend: str

    def __new__(cls, text: str, backend: str) -> Source:
        made = super().__new__(cls, text)
        made.backend = backend
        return made

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return code(self, LEXERS.get(self.backend))
