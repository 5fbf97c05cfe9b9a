"""Which tests run on which shim.

A text of HIP is one of CUDA with some words replaced, and Metal's has the same printer: what every
test asks of the printer, it asks of `shim:cuda`. The other shims run the corpus and what is about
the words in which their languages differ. `make test-all` (`--everything`) runs everything of each.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.declared import mark

FOLDER = Path(__file__).parent

# by shim: the modules of this folder that it runs; shims that are not here run all
DECLARED = {
    "shim:hip": {
        "test_corpus",
        "test_cases_atomics",
        "test_cases_rounding",
        "test_casts",
        "test_found_by_fuzzing",
        "test_hints",
        "test_matrices",
        "test_matrix_accuracy",
        "test_matrix_configurations",
        "test_printing",
        "test_warps",
    },
    "shim:metal": {
        "test_complex",
        "test_corpus",
        "test_cases_atomics",
        "test_cases_rounding",
        "test_casts",
        "test_found_by_fuzzing",
        "test_functions",
        "test_matrices",
        "test_matrix_accuracy",
        "test_matrix_configurations",
        "test_printing",
        "test_warps",
    },
}


def is_wanted(module: str, parameters: Iterable[Any]) -> bool:
    """Whether a test of a module with these parameters is run without `--everything`."""
    return all(
        module in DECLARED[given]
        for given in parameters
        if isinstance(given, str) and given in DECLARED
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark(items)
    if config.getoption("--everything"):
        return
    wanted, left = [], []
    for item in items:
        given = getattr(getattr(item, "callspec", None), "params", {}).values()
        is_here = item.path.parent == FOLDER  # this is called with the items of every folder
        (left if is_here and not is_wanted(item.path.stem, given) else wanted).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = wanted
