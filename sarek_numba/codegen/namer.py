"""From variables to identifiers of a C-like language.

In: a wish (the user's own name), and the words and beginnings of words that a program must not
redefine. Out: ASCII identifiers, unique among all names visible where they stand, equal to the wish
wherever that is legal. Sibling scopes may use one name twice, as a person would write two loops
over `k`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_FOREIGN = re.compile(r"[^A-Za-z0-9_]")
_UNDERSCORES = re.compile(r"__+")
_RESERVED_LEAD = re.compile(r"^_+(?=[A-Z0-9])|^_+$")


def identifier(wish: str) -> str:
    """The wish as a C identifier in ASCII without double underscores, not yet unique.

    Letters lose their accents; other alphabets become the names of their letters, and characters
    without such a name their code points.
    """
    text = "".join(map(_ascii, unicodedata.normalize("NFKD", wish)))
    text = _UNDERSCORES.sub("_", _FOREIGN.sub("_", text))
    text = _RESERVED_LEAD.sub("", text)
    return text if text[:1].isalpha() or text[:1] == "_" else f"v{text}"


def _ascii(character: str) -> str:
    if character.isascii():
        return character
    if unicodedata.combining(character):
        return ""
    word = unicodedata.name(character, "").split(" WITH ")[0].rpartition(" ")[2].lower()
    return word if word.isalpha() else f"u{ord(character):x}"


class Namer:
    """Gives out names, scope by scope; a name stays taken until its scope is left."""

    def __init__(self, reserved: Iterable[str], leads: tuple[str, ...] = ()) -> None:
        self._leads = leads
        self._taken = set(reserved)
        self._scopes: list[list[str]] = [[]]
        self._next: dict[str, int] = {}  # where to look first, so that many equal wishes stay cheap

    def enter(self) -> None:
        """Open a scope."""
        self._scopes.append([])

    def leave(self) -> None:
        """Close the innermost scope; its names are free again."""
        self._taken.difference_update(self._scopes.pop())
        self._next.clear()

    def name(self, wish: str, avoid: frozenset[str] = frozenset()) -> str:
        """A name as near to the wish as is legal, taken from now on in the innermost scope.

        It is none of the names in `avoid`.
        """
        stem = identifier(wish)
        if stem.startswith(self._leads):
            stem = f"v_{stem}"
        text, number = stem, self._next.get(stem, 1)
        separator = "" if stem.endswith("_") else "_"
        while text in self._taken or text in avoid:
            text = f"{stem}{separator}{number}"
            number += 1
        if text != stem:
            self._next[stem] = number
        self._taken.add(text)
        self._scopes[-1].append(text)
        return text
