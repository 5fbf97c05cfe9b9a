"""Case 169: what other compilers end with an assertion that has no text is a refusal that has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sarek_numba as sarek

DEVICES = [device.name for device in sarek.devices()]


@sarek.function
def pair(a, b):
    return a + b


def range_of_a_float(x):
    for k in range(1.5):
        x[k] = 0


def array_as_a_condition(x):
    if x:
        x[0] = 0


def unknown_attribute(x):
    x[0] = x.lenght


def wrong_arity(x):
    x[0] = pair(1)


REFUSALS = {
    range_of_a_float: (sarek.TypingError, "range() takes integers, not"),
    array_as_a_condition: (sarek.TypingError, "truth value"),
    unknown_attribute: (sarek.UnknownName, "lenght"),
    wrong_arity: (sarek.TypingError, "'b'"),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("function", REFUSALS, ids=lambda function: function.__name__)
def test_case_169(function, device):
    """On every device: a class of its kind, file, line and column, a caret, a sentence, a hint."""
    kind, words = REFUSALS[function]
    x = np.zeros(4, np.float32)
    with pytest.raises(kind) as raised:
        sarek.kernel(function).launch(x, grid=1, block=4, device=device)
    first, excerpt, caret, *rest = str(raised.value).splitlines()
    line = raised.value.span.line
    assert first.startswith(f"{Path(__file__)}:{line}:")
    assert words in first
    assert excerpt.split("|")[0].strip() == str(line)
    assert "^" in caret
    assert any(each.startswith("  hint: ") for each in rest)
    assert not x.any()
