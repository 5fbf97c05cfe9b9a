"""Every example that a reader may copy runs: README, documents, notebooks, doctests."""

from __future__ import annotations

import contextlib
import doctest
import io
import linecache
import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest

import sarek_numba
from tests.project import notebooks

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FENCE = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_examples_of_a_document(path):
    """Python blocks run one after another; a text block right after one is what it prints."""
    names: dict[str, object] = {"__name__": "example"}
    for number, (code, printed) in enumerate(FENCE.findall(path.read_text())):
        file = f"<{path.name} {number}>"
        linecache.cache[file] = (len(code), None, code.splitlines(True), file)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(code, file, "exec", dont_inherit=True), names)
        if printed:
            assert output.getvalue().split() == printed.split()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook(path, monkeypatch):
    """A notebook runs from top to bottom; the outputs that are in it are those of the run."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    committed = nbformat.read(path, as_version=4)
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    assert notebooks.differences(committed, notebook) == []


def test_a_changed_output_is_found():
    """Positive control: text, tables and pictures that a run does not give."""
    nbformat = pytest.importorskip("nbformat")
    path = next(path for path in NOTEBOOKS if path.name.startswith("04"))
    assert notebooks.differences(*(nbformat.read(path, as_version=4) for _ in range(2))) == []
    for change in (notebooks.changed_text, notebooks.changed_picture, notebooks.no_output):
        other = nbformat.read(path, as_version=4)
        change(other)
        found = notebooks.differences(nbformat.read(path, as_version=4), other)
        assert len(found) == 1, found


def _modules():
    return [
        name
        for _, name, _ in pkgutil.walk_packages(sarek_numba.__path__, "sarek_numba.")
        if not name.endswith("__main__")
    ]


@pytest.mark.parametrize("name", _modules())
def test_doctests(name):
    """Examples in docstrings give what they show."""
    assert doctest.testmod(import_module(name)).failed == 0
