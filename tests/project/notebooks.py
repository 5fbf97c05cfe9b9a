"""Whether the outputs that a notebook was committed with are what a run gives.

Texts are equal but for times. Pictures are alike: fonts differ a little between machines. A cell
tagged "varies" (what devices compute differently) has outputs of the same kinds. A notebook without
any outputs is only run.
"""

from __future__ import annotations

import base64
import io
import re
from typing import Any

import numpy as np

_SECONDS = re.compile(r"\b\d+\.\d+ s\b")
_PICTURE = "image/png"
_MOST_UNLIKE = 12  # mean difference of 8-bit pixels
_SIZES = 0.05  # relative difference of widths and heights


def differences(committed: Any, run: Any) -> list[str]:
    """One line for each cell whose outputs are not those of the run."""
    cells = [
        (number, ours, theirs)
        for number, (ours, theirs) in enumerate(zip(committed.cells, run.cells, strict=True))
        if ours.cell_type == "code"
    ]
    if not any(ours.outputs for _, ours, _ in cells):
        return []
    found = []
    for number, ours, theirs in cells:
        varies = "varies" in ours.metadata.get("tags", ())
        expected, actual = _outputs(ours, varies), _outputs(theirs, varies)
        if not _alike(expected, actual):
            found.append(f"cell {number}: {_texts(actual)}, committed is {_texts(expected)}")
    return found


def _outputs(cell: Any, varies: bool) -> dict[str, Any]:
    """What a cell shows, by kind and position; streams are one text each, however they came."""
    shown: dict[str, Any] = {}
    for position, output in enumerate(o for o in cell.outputs if o.output_type != "stream"):
        assert output.output_type != "error", output
        for kind, content in output.data.items():
            shown[f"{kind} {position}"] = content
    for output in cell.outputs:
        if output.output_type == "stream":
            shown[output.name] = shown.get(output.name, "") + output.text
    return {kind: "" if varies else _plain(kind, content) for kind, content in shown.items()}


def _plain(kind: str, content: str) -> Any:
    if kind.startswith(_PICTURE):
        return _pixels(content)
    return _SECONDS.sub("… s", content)


def _pixels(encoded: str) -> np.ndarray:
    from PIL import Image

    picture = Image.open(io.BytesIO(base64.b64decode(encoded)))
    return np.asarray(picture.convert("RGB"), np.int16)


def _alike(expected: dict[str, Any], actual: dict[str, Any]) -> bool:
    if expected.keys() != actual.keys():
        return False
    return all(_same(expected[kind], actual[kind]) for kind in expected)


def _same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, str):
        return expected == actual
    sizes = np.array([expected.shape[:2], actual.shape[:2]])
    if (np.abs(sizes[0] - sizes[1]) > _SIZES * sizes[0]).any():
        return False
    height, width = sizes.min(axis=0)
    unlike = np.abs(expected[:height, :width] - actual[:height, :width]).mean()
    return bool(unlike <= _MOST_UNLIKE)


def _texts(outputs: dict[str, Any]) -> dict[str, str]:
    return {
        kind: content if isinstance(content, str) else f"picture {content.shape}"
        for kind, content in outputs.items()
        if not kind.startswith("text/html")
    }


# --- for the positive control ---------------------------------------------------------------------


def _cell_with(notebook: Any, kind: str) -> Any:
    return next(
        output
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if kind in output.get("data", ())
    )


def changed_text(notebook: Any) -> None:
    """Change a text that a cell gives."""
    output = _cell_with(notebook, "text/plain")
    output.data["text/plain"] += " "


def changed_picture(notebook: Any) -> None:
    """Turn the first picture into its negative."""
    from PIL import Image, ImageOps

    output = _cell_with(notebook, _PICTURE)
    picture = Image.open(io.BytesIO(base64.b64decode(output.data[_PICTURE])))
    stream = io.BytesIO()
    ImageOps.invert(picture.convert("RGB")).save(stream, "PNG")
    output.data[_PICTURE] = base64.b64encode(stream.getvalue()).decode()


def no_output(notebook: Any) -> None:
    """Take away the outputs of one cell."""
    next(cell for cell in notebook.cells if cell.get("outputs")).outputs = []
