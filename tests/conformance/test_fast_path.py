"""Kernels of the corpus once more on devices that follow plans: what counts is a later launch."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import dispatcher
from tests.executors import check
from tests.kernels.corpus import CASES

DEVICES = [device.name for device in sarek.devices() if device.driver.plans is not None]
_EACH = 5
REFUSED_PLANS = 0.5  # of the corpus at most: records, complex numbers, strides, reports


@pytest.mark.parametrize("device", DEVICES)
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
