"""What is compiled lives as long as a kernel of its content, and the newest a little longer.

Objects are counted, not bytes: programs that nobody dropped are found by weak references.
"""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.ir.nodes import Kernel
from sarek_numba.runtime import cache
from sarek_numba.runtime.cache import Memo, clear_launch_cache, counters, identity_of
from tests.conformance.generated import kernel
from tests.toolchains import shim
from tests.unit.fake_backend import fake_device
from tests.unit.test_launch_core import copy_kernel, go

__all__ = ["fake_device"]

NAMES = [d.name for d in sarek.devices()]
MOST = 3


@pytest.fixture(autouse=True)
def _fresh() -> None:
    clear_launch_cache()
    counters.reset()


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`programs(device)` gives how many programs live of those made from now on."""

    def watch(device: sarek.Device) -> Any:
        made: list[weakref.ref[Any]] = []
        driver: Any = device.driver
        prepare = driver.prepare

        def watched(kernel: Kernel) -> Any:
            program = prepare(kernel)
            made.append(weakref.ref(program))
            return program

        monkeypatch.setattr(driver, "prepare", watched)

        def living() -> int:
            gc.collect()
            return len({id(each()) for each in made if each() is not None})

        return living

    return watch


def _added(number: int) -> Any:
    """A kernel like no other."""
    body = ["i = sarek.global_idx.x", f"out[i] = out[i] + {number}"]
    return kernel(f"added_{number}", ["out"], body)


def _launched(made: Any, device: sarek.Device, number: int) -> None:
    out = np.zeros(8, np.int32)
    with sarek.use_device(device):
        made[1, 8](out)
    assert out.tolist() == [number] * 8


def test_hundreds_of_kernels_leave_no_more_than_the_newest(fake_device: Any, programs: Any) -> None:
    """Each of 600 is dropped after its launch."""
    living = programs(fake_device)
    for k in range(600):
        go(fake_device, copy_kernel(name=f"copy_{k}"), np.zeros(2, np.float32), np.zeros(2, "f4"))
    assert counters.compiles == 600
    assert living() == cache.MOST_KEPT
    assert len(cache._newest) == cache.MOST_KEPT


@pytest.mark.parametrize("name", [*NAMES, *([] if shim.why_not() else ["shim:cuda"])])
def test_programs_of_a_device_go(name: str, programs: Any, monkeypatch: Any) -> None:
    """With their kernels, but for the newest, and with the memo even those."""
    monkeypatch.setattr(cache, "MOST_KEPT", MOST)
    device = shim.device(name) if name.startswith("shim:") else sarek.device(name)
    living = programs(device)
    for number in range(1, 11):
        _launched(_added(number), device, number)
        assert living() == min(number, MOST)
    clear_launch_cache()
    assert living() == 0


def test_a_kernel_that_lives_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are: what is dropped is nobody's."""
    monkeypatch.setattr(cache, "MOST_KEPT", MOST)
    device = sarek.device("native")
    kernels = [(number, _added(number)) for number in range(1, 9)]
    for _ in range(3):
        for number, made in kernels:
            _launched(made, device, number)
    assert counters.compiles == 8


def test_a_kernel_that_is_launched_again_and_again_goes_too(
    programs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its plans, which later launches are made of, do not outlive it."""
    monkeypatch.setattr(cache, "MOST_KEPT", 1)
    for name in NAMES:
        device = sarek.device(name)
        living = programs(device)
        for number in (1, 2, 3):
            made = _added(number)
            for _ in range(6):
                _launched(made, device, number)
        del made
        clear_launch_cache()
        assert living() == 0, name


def test_values_without_an_identity_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest is made again, the newest is not."""
    monkeypatch.setattr(cache, "MOST_KEPT", MOST)
    memo: Memo[int] = Memo()
    made: list[int] = []

    def get(key: int) -> int:
        return memo.get(key, lambda: made.append(key) or key + 1)

    assert [get(key) for key in (1, 2, 3, 4)] == [2, 3, 4, 5]
    assert len(memo._values) == MOST
    assert [get(4), get(1)] == [5, 2]
    assert made == [1, 2, 3, 4, 1]


def test_an_identity_is_one_object() -> None:
    """It is forgotten with the last that has it, and what is made for it is its own."""
    memo: Memo[str] = Memo()
    one, other = identity_of("a", "k"), identity_of("a", "l")
    assert identity_of("a", "k") is one
    assert memo.get("key", lambda: "first", one) == "first"
    assert memo.get("key", lambda: "second", other) == "second"
    assert memo.get("key", lambda: "third", one) == "first"
    clear_launch_cache()
    assert memo.get("key", lambda: "third", one) == "third"
    here = weakref.ref(one)
    del one
    assert here() is None  # at once: nothing made for it holds it
