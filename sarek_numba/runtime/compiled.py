"""What the front end makes of a function, and how it is kept on disk for later processes.

`look_up` is asked before a function is compiled. Its key is the content of the function and of all
that it reaches (`frontend.content`), what else the front end is told, and the versions of Python,
NumPy, Numba and this package. An entry has the kernel with its spans, where the captured values are
read, and the notes to be shown as warnings. The values themselves are those of this process: the
key says that they are equal. Spans are in the files of the functions as this process has them.
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import dataclass
from types import FunctionType

import numpy as np

from sarek_numba import settings
from sarek_numba.errors import CompileWarning, Diagnostic, TypingError
from sarek_numba.frontend.captures import captured, read_captured
from sarek_numba.frontend.content import Content, Undigestable, content_of
from sarek_numba.frontend.typed import Captured
from sarek_numba.ir.nodes import Kernel
from sarek_numba.ir.stored import NotReadable, NotStorable, decode, encode
from sarek_numba.runtime import disk

_NUMBERS_FROM = ("numba", "llvmlite", "ml_dtypes")


@dataclass(frozen=True, slots=True)
class Compiled:
    """A verified kernel as lowered, the captured values that it was made from, and what inference
    noted, which was shown when it was compiled.
    """

    kernel: Kernel
    captures: tuple[Captured, ...]
    notes: tuple[Diagnostic, ...] = ()


def show_notes(notes: tuple[Diagnostic, ...]) -> None:
    """Show what inference noted, as warnings at the lines of the kernel and its callees."""
    for note in notes:
        file, line = (note.span.file, note.span.line) if note.span else ("<kernel>", 0)
        warnings.warn_explicit(str(note), CompileWarning, file, line)


@dataclass(frozen=True, slots=True)
class LookUp:
    """A function whose content is known, and what was found of it."""

    key: str
    content: Content
    found: Compiled | None

    def keep(self, compiled: Compiled) -> None:
        """Keep what was compiled after nothing was found, if it is plain data.

        Not where the program changed meanwhile what it had been compiled from.
        """
        try:
            if content_of(self.content.functions[0]).digest == self.content.digest:
                disk.save(disk.KERNELS, self.key, _written(compiled, self.content))
        except (NotStorable, Undigestable):
            return


def look_up(function: FunctionType, about: tuple[object, ...]) -> LookUp | None:
    """What was kept of a function, for this that the front end is told beside it.

    None where the cache is off, a stage is to be shown, or the content cannot be told.
    """
    if settings.cache_folder() is None or settings.dump_stages():
        return None
    try:
        content = content_of(function)
    except (Undigestable, RecursionError):
        return None
    key = disk.key_of("kernel", content.digest, _versions(), *about)
    found = disk.load(disk.KERNELS, key)
    if found is None:
        return LookUp(key, content, None)
    try:
        compiled = _read(found, content)
    except NotReadable:
        disk.drop(disk.KERNELS, key)
        return LookUp(key, content, None)
    show_notes(compiled.notes)
    return LookUp(key, content, compiled)


def _versions() -> tuple[str, ...]:
    numbers = (str(getattr(sys.modules.get(m), "__version__", "")) for m in _NUMBERS_FROM)
    return (*disk.of_python(), np.__version__, *numbers)


# --- entries --------------------------------------------------------------------------------------


def _written(compiled: Compiled, content: Content) -> bytes:
    """An entry. Raises NotStorable."""
    numbers = {function: number for number, function in enumerate(content.functions)}
    captures = []
    for each in compiled.captures:
        if each.function not in numbers:
            raise NotStorable(f"{each.name} of another function")
        captures.append([numbers[each.function], each.name, *each.path])
    if any(note.error is not TypingError for note in compiled.notes):
        raise NotStorable("a note of another kind")
    notes = tuple((n.message, n.span, n.hint, n.notes, n.function) for n in compiled.notes)
    rows = encode((compiled.kernel, notes), content.files)
    return json.dumps([rows, captures], separators=(",", ":")).encode()


def _read(entry: bytes, content: Content) -> Compiled:
    """The result that an entry stands for, in this process. Raises NotReadable."""
    try:
        rows, captures = json.loads(entry)
        kernel, notes = decode(rows, content.files)
        diagnostics = tuple(Diagnostic(TypingError, *note) for note in notes)
        restored = tuple(_captured(content, *each) for each in captures)
    except (LookupError, TypeError, ValueError) as error:
        raise NotReadable(str(error)) from error
    return Compiled(kernel, restored, diagnostics)


def _captured(content: Content, number: int, name: str, *path: str) -> Captured:
    function = content.functions[number]
    return captured(function, name, path, read_captured(function, name, path))
