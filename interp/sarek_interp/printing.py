"""`print` on the oracle: lanes leave their texts with the launch, which orders them at its end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat

from sarek_interp.code import Context, Step
from sarek_interp.expressions import compile_expr
from sarek_interp.machine import Machine
from sarek_numba.ir.nodes import Print
from sarek_numba.ir.printing import shown


def compile_print(c: Context, stmt: Print) -> Step:
    """The step that evaluates the parts of a print and notes a text for each live lane."""
    parts = [part if isinstance(part, str) else compile_expr(c, part) for part in stmt.parts]

    def run(m: Machine) -> None:
        frame_lanes = m.selected()
        lanes = m.chunk_lanes(frame_lanes)
        places = range(m.chunk.lanes) if lanes is None else lanes.tolist()
        columns: list[Iterator[str]] = []
        for part in parts:
            if isinstance(part, str):
                columns.append(repeat(part, len(places)))
                continue
            values = part.evaluate(m)
            if values.size == 1:
                columns.append(repeat(shown(values[0], part.type), len(places)))
                continue
            live = values if frame_lanes is None else values[frame_lanes]
            columns.append(iter([shown(value, part.type) for value in live]))
        first = m.chunk.first * m.chunk.launch.threads
        texts = map("".join, zip(*columns, strict=True)) if columns else repeat("", len(places))
        m.chunk.launch.lines += [
            (first + place, text) for place, text in zip(places, texts, strict=True)
        ]

    return run
