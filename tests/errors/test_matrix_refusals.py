"""Cooperative matrices that a launch refuses: what a device lacks, what shows when it runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_cuda.runtime import CudaDriver
from sarek_numba.runtime.registry import Device
from tests.fake_cuda import FakeApi

Config = sarek.coopmat.Config
BYTES = Config(8, 8, 8, "int8", "int8", "int32", "int32")
NARROW_SUMS = Config(16, 16, 16, "float16", "float16", "float16", "float32")
FLOATS = Config(16, 16, 8, "float32", "float32", "float32", "float32")


def product(config):
    @sarek.kernel
    def product(a, b, c):
        left = sarek.coopmat.fragment(config, "a")
        right = sarek.coopmat.fragment(config, "b")
        total = sarek.coopmat.fragment(config, "result")
        added = sarek.coopmat.fragment(config, "c")
        sarek.coopmat.load(left, a, (0, 0), 32)
        sarek.coopmat.load(right, b, (0, 0), 32)
        sarek.coopmat.muladd(total, left, right, added)
        sarek.coopmat.store(total, c, (0, 0), 32)

    return product


@sarek.kernel
def copied(x, out, first, stride):
    f = sarek.coopmat.fragment(BYTES, "a")
    sarek.coopmat.load(f, x, first, stride)
    sarek.coopmat.store(f, out, 0, 8)


@sarek.kernel
def stored(x, out, first, stride):
    f = sarek.coopmat.fragment(BYTES, "a")
    sarek.coopmat.store(f, out, first, stride)


@sarek.kernel
def elsewhere(x, out):
    f = sarek.coopmat.fragment(BYTES, "a")
    sarek.coopmat.load(f, x, x[sarek.thread_idx.x] * 8, 8)
    sarek.coopmat.store(f, out, 0, 8)


@sarek.kernel
def filled(x, out):
    f = sarek.coopmat.fragment(BYTES, "a")
    sarek.coopmat.fill(f, x[sarek.thread_idx.x])
    sarek.coopmat.store(f, out, 0, 8)


def card(listed: bool = True) -> Device:
    """A CUDA device of compute capability 9.0, as if it had no configurations where not listed."""
    made = CudaDriver(FakeApi(), 0, "cuda:0")
    if not listed:
        made.record = replace(made.record, coopmat=())
    return Device(made)


def matrices(config):
    shapes = (config.a, config.b, config.result)
    return [np.ones((32, 32), each) for each in shapes]


def shown(caught) -> str:
    name = Path(__file__).name
    return f"{type(caught.value).__name__}\n{caught.value}\n".replace(__file__, name)


@pytest.mark.parametrize(
    ("name", "config", "listed"),
    [
        ("shape", BYTES, True),
        ("sums", NARROW_SUMS, True),
        ("components", FLOATS, True),
        ("matrices", BYTES, False),
    ],
)
def test_what_a_device_lacks(golden, name, config, listed):
    """The configuration by name, the line, and what there is instead; data are untouched."""
    given = matrices(config)
    with pytest.raises(sarek.CapabilityError) as caught:
        product(config).launch(*given, grid=1, block=32, device=card(listed))
    assert all((each == 1).all() for each in given)
    text = shown(caught)
    assert f"{Path(__file__).name}:" in text
    golden(text, f"matrix_{name}_that_a_device_lacks")


MIXED = np.zeros(128, np.int8)
MIXED[5] = 3


@pytest.mark.parametrize(
    ("name", "kernel", "arguments"),
    [
        ("stride_misaligned", copied, (0, 12)),
        ("place_misaligned", copied, (4, 8)),
        ("stride_negative", copied, (64, -8)),
        ("store_misaligned", stored, (0, 12)),
        ("tile_outside", copied, (72, 8)),
        ("place_not_uniform", elsewhere, ()),
        ("value_not_uniform", filled, ()),
    ],
)
def test_what_shows_when_it_runs(golden, name, kernel, arguments):
    """The oracle says which matrix, which element and where."""
    out = np.zeros(128, np.int8)
    with pytest.raises(sarek.SarekError) as caught:
        kernel.launch(MIXED.copy(), out, *arguments, grid=1, block=32, device="interpreter")
    text = shown(caught)
    assert f"{Path(__file__).name}:" in text
    golden(text, f"matrix_{name}_at_run_time")


@pytest.mark.parametrize("device", ["interpreter", "native"])
def test_a_part_of_a_warp(golden, device):
    out = np.zeros(128, np.int8)
    with pytest.raises(sarek.SarekError) as caught:
        copied.launch(MIXED.copy(), out, 0, 8, grid=1, block=40, device=device)
    golden(shown(caught), f"matrix_by_a_part_of_a_warp_on_{device}")
