"""Kernels of the corpus once more on devices that follow plans: what counts is a later launch."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import dispatcher, execute
from sarek_numba.runtime.storage import Access
from tests.executors import check
from tests.kernels.corpus import CASES

DEVICES = [device.name for device in sarek.devices() if device.driver.plans is not None]
ON_ARRAYS = [name for name in DEVICES if sarek.device(name).driver.memory is None]
_EACH = 5
REFUSED_PLANS = 0.35  # of the corpus at most: records by value, reports, overlaps


@pytest.mark.parametrize("device", ON_ARRAYS)
def test_corpus_by_attempts(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs are those of NumPy when a launch is like earlier ones; most of the corpus is."""
    longs: list[str] = []
    through = dispatcher.describe

    def noted(name: str, *others: Any) -> Any:
        longs.append(name)
        return through(name, *others)

    monkeypatch.setattr(dispatcher, "describe", noted)
    taken, cases = 0, [case for case in CASES if not case.warps][::_EACH]
    for case in cases:

        def twice_before(rng: np.random.Generator, case: Any = case) -> Any:
            made = case.launch(rng)
            for _ in range(2):
                alike = copy.deepcopy(made.arguments)  # overlaps stay within one deep copy
                with sarek.use_device(device):
                    case.kernel[made.grid, made.block, None, made.shared_bytes](*alike)
            longs.clear()
            return made

        check(device, replace(case, launch=twice_before))
        taken += not longs
    assert taken > len(cases) * (1 - REFUSED_PLANS)


@pytest.fixture
def no_window() -> Iterator[None]:
    """Launches on devices with a window start, and are waited for, when they are called."""
    execute.window.configure(enabled=False)
    yield
    execute.window.configure(enabled=True)


def _whole(arguments: Any) -> bool:
    """Whether all arrays are the whole of memory of their own, with numbers in it."""
    arrays = [a for a in arguments if isinstance(a, np.ndarray)]
    apart = len({id(a) for a in arrays}) == len(arrays)
    return apart and all(
        a.flags.owndata and a.flags.c_contiguous and a.dtype.names is None for a in arrays
    )


def _in_vectors(arguments: Any) -> list[Any]:
    return [sarek.vector(a) if isinstance(a, np.ndarray) else a for a in arguments]


@pytest.mark.parametrize("device", DEVICES)
def test_vectors_by_attempts(device: str, no_window: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with vectors, other ones than in the launches before, that are on the device."""
    longs: list[str] = []
    through = dispatcher.describe

    def noted(name: str, *others: Any) -> Any:
        longs.append(name)
        return through(name, *others)

    monkeypatch.setattr(dispatcher, "describe", noted)
    taken = total = 0
    for case in [case for case in CASES if not case.warps and not case.ulp][::_EACH]:
        made = case.launch(np.random.default_rng(7))
        if not _whole(made.arguments):
            continue
        total += 1
        launch = case.kernel[made.grid, made.block, None, made.shared_bytes]
        with sarek.use_device(device):
            for _ in range(2):
                launch(*_in_vectors(made.arguments))
            given = _in_vectors(made.arguments)
            memory = sarek.device(device).driver.memory
            execute.transfer_all(given, device)
            execute.mark_stale(given, device)
            for each in given:
                if isinstance(each, sarek.Vector):
                    for access in Access:
                        each._storage.note(memory, access, None)
            longs.clear()
            launch(*given)
            taken += not longs
            for actual, expected in zip(given, made.expected, strict=True):
                if expected is not None:
                    assert np.asarray(actual).tobytes() == np.asarray(expected).tobytes(), case.name
    assert taken > total * (1 - REFUSED_PLANS)
