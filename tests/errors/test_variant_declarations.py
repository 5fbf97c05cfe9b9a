"""Declarations of variants that are refused: with file, line, column, a caret and one hint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sarek_numba as sarek


def declared_twice():
    sarek.variant("Shape", [("Circle", sarek.float32), ("Circle", sarek.int32)])


def declared_twice_in_two_ways():
    sarek.variant("Shape", {"Circle": sarek.float32}, Circle=sarek.int32)


def declared_cyclic():
    sarek.variant("Tree", Leaf=sarek.int32, Node=("Tree", "Tree"))


def declared_named_tag():
    sarek.variant("Label", text=sarek.int32, tag=sarek.uint8)


def declared_named_as_a_method():
    sarek.variant("Table", values=sarek.int32)


def declared_named_as_an_attribute():
    sarek.variant("Table", _row=None, dtype=None)


def declared_as_a_keyword():
    sarek.variant("Maybe", {"None": None, "Some": sarek.int32})


def declared_without_cases():
    sarek.variant("Nothing")


def declared_without_a_name():
    sarek.variant("no name", Case=None)


def declared_of_no_type():
    sarek.variant("Text", Some=sarek.int32, Any="characters")


def declared_of_a_later_type():
    sarek.variant("Small", Half=sarek.coopmat)


def declared_of_durations():
    sarek.variant("Small", Pair=np.dtype([("low", "m8[s]")]))


def declared_of_an_array():
    sarek.variant(
        "Row",
        Cells=(sarek.int32, np.dtype((np.float32, 3))),
    )


DECLARATIONS = [value for name, value in dict(globals()).items() if name.startswith("declared")]


@pytest.mark.parametrize("declare", DECLARATIONS, ids=lambda declare: declare.__name__)
def test_declaration(declare, golden):
    """The error is that of the call, at its place."""
    with pytest.raises(sarek.CompileError) as caught:
        declare()
    file = declare.__code__.co_filename
    shown = f"{type(caught.value).__name__}\n{caught.value}\n".replace(file, Path(file).name)
    assert f"{Path(file).name}:{declare.__code__.co_firstlineno + 1}:5: " in shown
    assert "^" in shown
    assert "hint:" in shown
    golden(shown, declare.__name__)
