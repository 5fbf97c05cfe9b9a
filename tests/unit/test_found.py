"""The calls of a driver are found once, by one thread."""

from __future__ import annotations

import threading
import time

import pytest

from sarek_numba.runtime.cudalike.found import Found
from sarek_numba.runtime.device import BackendUnavailable


def test_one_thread_loads() -> None:
    """All get what it found; a replacement holds until it is taken away."""
    loaded: list[object] = []

    def load() -> object:
        time.sleep(0.05)
        loaded.append(object())
        return loaded[-1]

    found = Found(load)
    assert not found.is_loaded()
    given: list[object] = []
    threads = [threading.Thread(target=lambda: given.append(found.api())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loaded) == 1
    assert given == 4 * loaded
    assert found.is_loaded()
    other = object()
    found.use(other)
    assert found.api() is other
    found.use(None)
    assert not found.is_loaded()
    assert found.api() is loaded[1]


def test_what_is_not_there_is_asked_for_again() -> None:
    """As after an installation."""
    answers = iter([BackendUnavailable("there is no driver"), 7])

    def load() -> int:
        answer = next(answers)
        if isinstance(answer, int):
            return answer
        raise answer

    found = Found(load)
    with pytest.raises(BackendUnavailable, match="there is no driver"):
        found.api()
    assert not found.is_loaded()
    assert found.api() == 7
