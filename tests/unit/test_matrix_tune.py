"""The search for the fastest tiling of a rewrite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import GraphError, InvalidArgument, accept, policy
from sarek_numba.matrix import Specialised, specialise, tuned, tuner
from sarek_numba.matrix.rewrite.form import Direct, Form, Staged
from sarek_numba.runtime import disk
from sarek_numba.runtime.outcome import Original

N = 32
LAUNCH: dict[str, Any] = {"grid": (8, 8), "block": (4, 4), "device": "native"}
CONSENT = accept.relaxed_accumulation("a test")


@sarek.kernel
def multiply(c, a, b):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = np.int32(0)
        for k in range(a.shape[1]):
            total += np.int32(a[i, k]) * np.int32(b[k, j])
        c[i, j] = total


@sarek.kernel
def scaled(c, a, b, alpha):
    i, j = sarek.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += alpha * np.float32(a[i, k]) * np.float32(b[k, j])
        c[i, j] = total + c[i, j]


@sarek.kernel
def double(x):
    i = sarek.global_idx.x
    if i < len(x):
        x[i] *= 2


@pytest.fixture(autouse=True)
def _forget(disk_cache: Path) -> Iterator[None]:
    tuned.forget()
    yield
    tuned.forget()


def integers(n: int = N) -> list[Any]:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, (n, n)).astype(np.int8) for _ in range(2))
    return [np.full((n, n), 7, np.int32), a, b]


def halves() -> list[Any]:
    rng = np.random.default_rng(0)
    c, *operands = (rng.random((N, N)) for _ in range(3))
    return [c.astype(np.float32), *(x.astype(np.float16) for x in operands), np.float32(1 / 3)]


class Timer:
    """Pretends: the kernel of so many threads for a tile is the fastest; the others are as slow as
    they come.
    """

    def __init__(self, fastest: int) -> None:
        self.fastest, self.seen = fastest, 0

    def __call__(self, device: Any, analysed: Any, arguments: Any, grid: Any, *_: Any) -> float:
        self.seen += 1
        return 1e-6 if grid[0] == self.fastest else float(self.seen)


def test_the_fastest_is_kept_and_used() -> None:
    """By later launches, and by those of other processes; not by another size."""
    before = sarek.matrix.run(multiply, *integers(), **LAUNCH)
    assert before.grid[0] == 4
    found = sarek.matrix.tune(multiply, *integers(), **LAUNCH, timer=Timer(1))
    assert isinstance(found.outcome, Specialised)
    assert found.outcome.grid[0] == 1
    for _ in range(2):  # from the process, then from the disk
        assert sarek.matrix.run(multiply, *integers(), **LAUNCH).grid[0] == 1
        tuned.forget()
    larger = integers(72)
    after = sarek.matrix.run(multiply, *larger, grid=(18, 18), block=(4, 4), device="native")
    assert after.tiling == sarek.matrix.run(multiply, *larger, **LAUNCH | {"grid": (18, 18)}).tiling
    assert after.grid[0] > 1


def test_each_candidate_is_timed_in_each_round() -> None:
    """All that fit, directly from global memory and staged, three times each."""
    timer = Timer(0)
    with policy.grant(CONSENT):
        found = sarek.matrix.tune(scaled, *halves(), **LAUNCH, timer=timer)
    variants = {type(variant) for variant, _ in found.seconds}
    assert variants == {Direct, Staged}
    assert timer.seen == 3 * len(found.seconds)
    assert list(map(tuner._name, found.seconds)) != []
    assert str(found).startswith("Specialised: ")
    assert len(str(found).splitlines()) == 1 + len(found.seconds)


def test_real_times() -> None:
    """Without a pretended timer."""
    found = sarek.matrix.tune(multiply, *integers(), **LAUNCH)
    assert all(0 < took < 60 for took in found.seconds.values())
    assert isinstance(found.outcome, Specialised)
    best = min(found.seconds, key=lambda choice: found.seconds[choice])
    assert (found.outcome.variant, found.outcome.tiling) == best


@pytest.mark.parametrize("device", ["native", "interpreter"])
def test_nothing_of_the_users_is_written(device: str) -> None:
    """Arrays, vectors, operands that are one array."""
    c, a, _ = integers(9)
    vector = sarek.vector(c)
    launch = LAUNCH | {"device": device}
    sarek.matrix.tune(multiply, c, a, a, **launch)
    sarek.matrix.tune(multiply, vector, a, a, **launch)
    assert (c == 7).all()
    assert (np.asarray(vector) == 7).all()
    assert (a == integers(9)[1]).all()


def test_a_wrong_candidate_loses_however_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose kernel leaves out a step: it is named as wrong, and another one is kept."""
    real = specialise.values
    wrong: list[Any] = []

    def values(product: Any, bound: Any, form: Form, *rest: Any) -> dict[str, int]:
        told = real(product, bound, form, *rest)
        if told["work"] != 1:
            return told
        wrong.append((form.variant, form.tiling))
        return told | {"steps": told["steps"] - 1}

    monkeypatch.setattr(specialise, "values", values)
    found = sarek.matrix.tune(multiply, *integers(), **LAUNCH, timer=Timer(1))
    assert wrong
    assert found.errors == dict.fromkeys(wrong, "its result is wrong")
    assert "its result is wrong" in str(found)
    assert isinstance(found.outcome, Specialised)
    assert found.outcome.grid[0] > 1
    assert not set(wrong) & set(found.seconds)
    c, a, b = integers()
    sarek.matrix.run(multiply, c, a, b, **LAUNCH)
    assert (c == a.astype(np.int32) @ b).all()


def test_all_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept, and each candidate is named."""
    real = specialise.values

    def values(*of: Any) -> dict[str, int]:
        told = real(*of)
        return told | {"inner": told["inner"] - 1}

    monkeypatch.setattr(specialise, "values", values)
    with pytest.raises(InvalidArgument, match=r"none of \d rewrites is right") as refused:
        sarek.matrix.tune(multiply, *integers(), **LAUNCH)
    assert any("its result is wrong" in note for note in refused.value.__notes__)
    assert tuned._known
    assert set(tuned._known.values()) == {None}


def test_a_candidate_that_fails_is_left_out() -> None:
    """With its error."""

    def timer(device: Any, analysed: Any, arguments: Any, grid: Any, *_: Any) -> float:
        if grid[0] == 1:
            raise RuntimeError("too large for this device")
        return 1.0

    found = sarek.matrix.tune(multiply, *integers(), **LAUNCH, timer=timer)
    assert isinstance(found.outcome, Specialised)
    assert set(found.errors.values()) == {"RuntimeError: too large for this device"}


def test_a_factor_within_the_sum() -> None:
    """The given kernel rounds each product with it: the smallest tiles are what counts, if near."""
    with policy.grant(CONSENT):
        found = sarek.matrix.tune(scaled, *halves(), **LAUNCH)
    assert isinstance(found.outcome, Specialised)
    assert found.errors == {}


def test_no_rewrite() -> None:
    """Without consent nothing is tried, and the reason is there."""
    found = sarek.matrix.tune(scaled, *halves(), **LAUNCH)
    assert isinstance(found.outcome, Original)
    assert "relaxed_accumulation" in str(found)
    assert (found.seconds, found.errors) == ({}, {})


def test_choices_are_of_one_device() -> None:
    """Another device has another key."""
    native = sarek.matrix.run(multiply, *integers(), **LAUNCH)
    other = sarek.matrix.run(multiply, *integers(), **LAUNCH | {"device": "interpreter"})
    assert native.key[:-1] == other.key[:-1]
    assert native.key[-1] != other.key[-1]


@pytest.mark.parametrize("content", [b"{", b'["staged", 1]', b'["staged", 9, 9, 9, 9, 9]'])
def test_a_spoilt_entry_counts_as_none(content: bytes) -> None:
    """What is no choice, and a choice that does not fit."""
    first = sarek.matrix.run(multiply, *integers(), **LAUNCH)
    disk.save("matrix_tiles", disk.key_of("matrix_tiles", first.key), content)
    tuned.forget()
    again = sarek.matrix.run(multiply, *integers(), **LAUNCH)
    assert (again.variant, again.tiling) == (first.variant, first.tiling)


def test_refusals() -> None:
    """What is no kernel, another precision, a capture."""
    with pytest.raises(InvalidArgument, match=r"sarek\.matrix\.tune takes a kernel, not function"):
        sarek.matrix.tune(lambda c: c, *integers(), **LAUNCH)
    with pytest.raises(InvalidArgument, match="precision is 'half'"):
        sarek.matrix.tune(multiply, *integers(), **LAUNCH, precision="half")
    x = sarek.vector(np.arange(4))
    with sarek.use_device("native"), sarek.capture():
        double[1, 4](x)
        with pytest.raises(GraphError, match="tiles are tuned"):
            sarek.matrix.tune(multiply, *integers(), **LAUNCH)
