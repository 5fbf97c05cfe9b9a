"""The numbered requirements of `sarek_numba.realize` each have a test that bears their number."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
NUMBERS = range(1, 23)


def numbers_of(text: str) -> set[int]:
    """The requirements that the tests of a file are named after: `test_f07_…` is of the 7th."""
    names = [node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    return {int(found[1]) for name in names if (found := re.match(r"test_f(\d\d)_", name))}


def test_each_requirement_has_a_test():
    """From the search for a block's size, 1 to 4, to what graphs keep alive, 22."""
    found: set[int] = set()
    for path in sorted((TESTS / "unit").glob("test_realize*.py")):
        found |= numbers_of(path.read_text())
    assert sorted(found) == list(NUMBERS)


def test_names_are_read():
    """Positive control: what is no test, or has no number, does not count."""
    text = "def test_f03_x(): ...\ndef f04_x(): ...\ndef test_f5_x(): ...\n# def test_f06_x"
    assert numbers_of(text) == {3}
