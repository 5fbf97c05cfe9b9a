"""HTML for notebooks: tables, and code with its words in colour. Everything given is escaped.

Code stands on a background of its own, light or dark as the notebook is, so that it can be read
where the notebook's theme is not known either. Pygments finds the words; it is imported when code
is first shown, and without it code is shown plain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import import_module
from typing import Any

# For each kind of word: its Pygments token, its colour on light and on dark ground.
PALETTE = {
    "comment": ("Comment", "#57606a", "#9198a1"),
    "keyword": ("Keyword", "#a40e26", "#ff7b72"),
    "type": ("Keyword.Type", "#0550ae", "#79c0ff"),
    "function": ("Name.Function", "#6639ba", "#d2a8ff"),
    "builtin": ("Name.Builtin", "#953800", "#ffa657"),
    "variable": ("Name.Variable", "#1f2328", "#e6edf3"),
    "number": ("Number", "#116329", "#7ee787"),
    "string": ("String", "#0a3069", "#a5d6ff"),
    "wrong": ("Error", "#a40e26", "#ff7b72"),
}
GROUND = ("#f6f8fa", "#161b22")
INK = ("#1f2328", "#e6edf3")
_DARK = (  # how JupyterLab, VS Code and Colab say that their theme is dark
    'body[data-jp-theme-light="false"]',
    "body.vscode-dark",
    'html[theme="dark"]',
)


def themed(colours: Mapping[str, tuple[str, str]], attribute: str) -> str:
    """Rules that give an attribute of each selector a colour on light and one on dark ground."""
    light = (f"{selector}{{{attribute}:{pair[0]}}}" for selector, pair in colours.items())
    dark = (
        ",".join(f"{theme} {selector}" for theme in _DARK) + f"{{{attribute}:{pair[1]}}}"
        for selector, pair in colours.items()
    )
    return "".join([*light, *dark])


_BLOCK = "pre.sarek-code.sarek-code"
STYLE = (
    f"<style>{_BLOCK}{{padding:.6em .8em;border-radius:4px;overflow-x:auto;"
    "line-height:1.35;white-space:pre;text-align:left}"
    ".sarek-code .s-keyword{font-weight:600}"
    "table.sarek-table td,table.sarek-table th{text-align:left;vertical-align:top}"
    "table.sarek-table caption{text-align:left;caption-side:top;padding-bottom:.3em}"
    + themed({_BLOCK: GROUND}, "background")
    + themed({_BLOCK: INK}, "color")
    + themed({f".sarek-code .s-{name}": row[1:] for name, row in PALETTE.items()}, "color")
    + "</style>"
)


def code(text: str, lexer: str | None = None) -> str:
    """HTML of a program's text; `lexer` names one of Pygments', or a class as "module:name"."""
    return f'{STYLE}<pre class="sarek-code">{words(text, lexer)}</pre>'


def words(text: str, lexer: str | None) -> str:
    """The text escaped, its words in spans of their kind; plain where that is not to be had."""
    made = _lexer(lexer)
    if made is None:
        return escape(text)
    classes = _classes()
    shown = []
    for token, word in made.get_tokens(text):
        while token is not None and token not in classes:
            token = token.parent
        shown.append(escape(word) if token is None else _span(classes[token], word))
    return "".join(shown)


def _span(name: str, word: str) -> str:
    """A word in a span; one of several lines has one on each, so that lines can be split."""
    parts = (
        f'<span class="s-{name}">{escape(part)}</span>' * bool(part) for part in word.split("\n")
    )
    return "\n".join(parts)


def _lexer(name: str | None) -> Any:
    if name is None:
        return None
    try:
        from pygments.lexers import get_lexer_by_name  # slow, and only a display needs it
    except ImportError:
        return None
    module, _, kind = name.partition(":")
    if kind:
        return getattr(import_module(module), kind)(stripnl=False, ensurenl=False)
    return get_lexer_by_name(name, stripnl=False, ensurenl=False)


def _classes() -> dict[Any, str]:
    from pygments.token import string_to_tokentype

    return {string_to_tokentype(row[0]): name for name, row in PALETTE.items()}


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", raw: bool = False
) -> str:
    """HTML of a table of plain text; with `raw` the cells are HTML already."""
    shown = [_row("th", heads), *(_row("td", cells, raw) for cells in rows)]
    head = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f'{STYLE}<table class="sarek-table">{head}{"".join(shown)}</table>'


def _row(tag: str, cells: Sequence[str], raw: bool = False) -> str:
    texts = cells if raw else map(escape, cells)
    return "<tr>" + "".join(f"<{tag}>{text}</{tag}>" for text in texts) + "</tr>"


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of text as lines of aligned columns."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
