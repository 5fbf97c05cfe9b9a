"""A graph as a picture: calls in rows, each below those that it is behind."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_WIDTH, _HEIGHT, _ACROSS, _DOWN, _LETTER = 60, 40, 24, 34, 7.2

Row = tuple[str, str, str, str]
"""Number, title, arguments, and the numbers of the calls that it is behind."""


def svg(rows: Sequence[Row]) -> str:
    """The picture, as SVG in HTML. Lines lead from a call to those behind it."""
    behind = [[int(k) for k in row[3].split(", ") if k] for row in rows]
    depths: list[int] = []
    for earlier in behind:
        depths.append(1 + max((depths[k] for k in earlier), default=-1))
    widths = [_WIDTH + int(_LETTER * max(len(row[1]), len(row[2]))) for row in rows]
    places: list[tuple[int, int]] = []
    ends: dict[int, int] = {}
    for width, depth in zip(widths, depths, strict=True):
        places.append((ends.get(depth, 0), depth * (_HEIGHT + _DOWN)))
        ends[depth] = places[-1][0] + width + _ACROSS
    lines = [
        _line(places[k], widths[k], places[number], widths[number])
        for number, earlier in enumerate(behind)
        for k in earlier
    ]
    boxes = [_box(*each) for each in zip(rows, places, widths, strict=True)]
    right = max(ends.values(), default=0)
    bottom = (1 + max(depths, default=0)) * (_HEIGHT + _DOWN)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{right}" height="{bottom}" '
        f'viewBox="-1 -1 {right + 2} {bottom}" font-family="monospace" font-size="12" '
        f'fill="none" stroke="currentColor">{"".join((*lines, *boxes))}</svg>'
    )


def _line(start: tuple[int, int], wide: int, end: tuple[int, int], width: int) -> str:
    x, y = start[0] + wide // 2, start[1] + _HEIGHT
    u, v = end[0] + width // 2, end[1]
    return f'<path d="M{x},{y} C{x},{y + _DOWN} {u},{v - _DOWN} {u},{v}" opacity="0.5"/>'


def _box(row: Row, place: tuple[int, int], width: int) -> str:
    number, title, arguments, _ = row
    x, y = place
    text = 'stroke="none" fill="currentColor"'
    return (
        f'<g><rect x="{x}" y="{y}" width="{width}" height="{_HEIGHT}" rx="4"/>'
        f'<text x="{x + 8}" y="{y + 16}" {text}>{escape(f"{number}: {title}")}</text>'
        f'<text x="{x + 8}" y="{y + 32}" {text} opacity="0.7">{escape(arguments)}</text></g>'
    )
