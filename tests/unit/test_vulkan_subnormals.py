"""Subnormal numbers on a driver that takes them for zeros here and there, as NVIDIA's does.

llvmpipe stands for it: before what NVIDIA's driver flushes, the emitter of these tests puts the
flushing, made of bits. So the constructions are tried by what they are for, and without them the
same driver is seen to be wrong.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import passes
from sarek_numba.capability import Capability, Verdict
from sarek_numba.ir.nodes import AtomicOp
from sarek_numba.ir.types import FLOAT32, FLOAT64, MemSpace, Scalar
from sarek_numba.runtime.registry import Device
from sarek_vulkan.code import Code, Value
from sarek_vulkan.emit import emit, target_for
from sarek_vulkan.record import abilities_of, record_of
from sarek_vulkan.runtime import VulkanDriver
from sarek_vulkan.spirv import disassemble
from tests.unit.vulkan_facts import NVIDIA
from tests.unit.vulkan_kit import driver_of, on_vulkan

TINY = np.finfo(np.float32).smallest_subnormal
NORMAL = np.finfo(np.float32).tiny
LARGE = np.finfo(np.float32).max
NUMBERS = np.array(
    [0.0, TINY, 3 * TINY, NORMAL - TINY, NORMAL, 1e-30, 0.75, 1.0, 2.5, 2.0**60, 2.0**70, LARGE],
    np.float32,
)
NUMBERS = np.append(NUMBERS, np.array([np.inf, np.nan], np.float32))
NUMBERS = np.concatenate([NUMBERS, -NUMBERS])
WIDE = np.concatenate(
    [
        NUMBERS.astype(np.float64),
        np.float64(TINY) * np.array([0.25, 0.5, 0.75, 1.5, 2.5, 3.5, -0.5, -1.5, 2.0**22 + 0.5]),
        np.float64(NORMAL) * np.array([1 - 2.0**-25, 1 - 2.0**-24, 1 - 2.0**-26, 1 + 2.0**-24]),
        np.array([5e-324, 1e-300, -1e-300, 1e300]),
    ]
)


@sarek.kernel
def compares(out, chosen, a, b):
    i, j = sarek.global_idx.x, sarek.global_idx.y
    if i < len(a) and j < len(b):
        x, y = a[i], b[j]
        out[i, j, 0] = x < y
        out[i, j, 1] = x <= y
        out[i, j, 2] = x > y
        out[i, j, 3] = x >= y
        out[i, j, 4] = x == y
        out[i, j, 5] = x != y
        out[i, j, 6] = x < 0
        out[i, j, 7] = x <= 0
        out[i, j, 8] = x > 0.5
        out[i, j, 9] = x == sarek.float32(1e-45)
        out[i, j, 10] = bool(x)
        out[i, j, 11] = not x
        chosen[i, j, 0] = min(x, y)
        chosen[i, j, 1] = max(x, y)
        chosen[i, j, 2] = np.floor(x)
        chosen[i, j, 3] = np.ceil(x)
        chosen[i, j, 4] = x // y
        chosen[i, j, 5] = x % y
        chosen[i, j, 6] = x if x < 20 else sarek.float32(20)
        chosen[i, j, 7] = max(x, sarek.float32(-1e30))
        chosen[i, j, 8] = x if x > sarek.float32(1.1754944e-38) else sarek.float32(1.1754944e-38)
        chosen[i, j, 9] = min(x, sarek.float32(0))


@sarek.kernel
def converts(widened, narrowed, a, w):
    i = sarek.global_idx.x
    if i < len(a):
        widened[i] = a[i]
    if i < len(w):
        narrowed[i] = w[i]


@pytest.fixture
def flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules in which float32 are flushed where NVIDIA's driver does it."""
    compare, convert, extended = Code.plain_compare, Code.plain_convert, Code.extended
    select = Code.select

    def flushed(code: Code, a: Value) -> Value:
        """The number, or the zero of its sign in the place of a subnormal one."""
        if a.type is not FLOAT32:
            return a
        bits = code.bits_of(a)
        exponent = code.both(bits, code.constant(bits.type, 0x7F800000))
        sign = code.both(bits, code.constant(bits.type, 1 << 31))
        kept = code.select(code.is_zero(exponent), sign, bits)
        return code.reinterpreted(kept, FLOAT32)

    def compared(code: Code, name: str, a: Value, b: Value) -> Value:
        found = compare(code, name, flushed(code, a), flushed(code, b))
        of[id(code), found.id] = {a.id, b.id}
        return found

    def chosen(code: Code, condition: Value, a: Value, b: Value) -> Value:
        """One of two; a minimum or maximum where these two are compared."""
        found = select(code, condition, a, b)
        is_extreme = of.get((id(code), condition.id)) == {a.id, b.id}
        return flushed(code, found) if is_extreme else found

    of: dict[tuple[int, int], set[int]] = {}
    monkeypatch.setattr(Code, "plain_compare", compared)
    monkeypatch.setattr(Code, "select", chosen)
    monkeypatch.setattr(
        Code, "plain_convert", lambda c, a, to: flushed(c, convert(c, flushed(c, a), to))
    )
    monkeypatch.setattr(
        Code,
        "extended",
        lambda c, name, type, *args: extended(c, name, type, *(flushed(c, a) for a in args)),
    )


def results(device: Device) -> list[np.ndarray]:
    count = len(NUMBERS)
    out = np.full((count, count, 12), 7, np.int8)
    chosen = np.full((count, count, 10), 7, np.float32)
    compares.launch(out, chosen, NUMBERS, NUMBERS, grid=(4, 4), block=(8, 8), device=device)
    widened, narrowed = np.full(count, 7.0), np.full(len(WIDE), 7, np.float32)
    converts.launch(widened, narrowed, NUMBERS, WIDE, grid=8, block=8, device=device)
    return [out, chosen.view(np.uint32), widened.view(np.uint64), narrowed.view(np.uint32)]


def differing(device: Device) -> list[int]:
    """How many elements of each result are not the oracle's, but that a NaN is any NaN."""
    found = []
    for ours, oracle in zip(results(device), results(sarek.device("interpreter")), strict=True):
        floats = {np.dtype(np.uint32): np.float32, np.dtype(np.uint64): np.float64}
        wrong = ours != oracle
        if ours.dtype in floats:
            kind = floats[ours.dtype]
            wrong &= ~(np.isnan(ours.view(kind)) & np.isnan(oracle.view(kind)))
        found.append(int(wrong.sum()))
    return found


def constructed(device: Device, *, flushes: frozenset[Scalar]) -> Device:
    """The device with or without the constructions, whatever it is."""
    made = VulkanDriver(driver_of(device).physical, f"vulkan:flushes-{len(flushes)}")
    made.abilities = replace(made.abilities, flushes=flushes)
    return Device(made)


@on_vulkan
def test_what_is_flushed_is_constructed(device, flushing):
    """Bit for bit like the oracle; without the constructions each kind of result is wrong."""
    assert differing(constructed(device, flushes=frozenset({FLOAT32}))) == [0, 0, 0, 0]
    if driver_of(device).physical.is_cpu:
        assert all(differing(constructed(device, flushes=frozenset())))


@on_vulkan
def test_constructions_change_nothing_where_nothing_is_flushed(device):
    """They hold on a driver that keeps subnormal numbers, and on the device as it is."""
    assert differing(constructed(device, flushes=frozenset({FLOAT32}))) == [0, 0, 0, 0]
    assert differing(device) == [0, 0, 0, 0]


def test_nvidia_keeps_them_by_construction():
    """Its record promises them, and its abilities say where that takes something."""
    record = record_of(NVIDIA, "vulkan:0")
    for feature in ("subnormal_inputs", "subnormal_results"):
        assert record.facts[Capability(feature, FLOAT32)].verdict is Verdict.AVAILABLE
    abilities = abilities_of(NVIDIA)
    assert abilities.flushes == {FLOAT32}
    assert (AtomicOp.ADD, FLOAT32, MemSpace.GLOBAL) not in abilities.atomics


def test_a_grant_of_fast_arithmetic_gives_them_up():
    """`sarek.accept.fastmath` leaves the comparison to the device, as a constant beyond does."""
    arrays = [sarek.int8[:, :, :], sarek.float32[:, :, :], sarek.float32[:], sarek.float32[:]]
    counts = {}
    for fast in (False, True):
        kernel = passes.optimise(compares.ir(*arrays), target_for(abilities_of(NVIDIA)))
        kernel = replace(kernel, fastmath=fast)
        text = disassemble(emit(kernel, abilities_of(NVIDIA), 256).words)
        counts[fast] = text.count(" OpFOrdLessThan "), text.count(" OpFUnordNotEqual ")
    assert counts[True] < counts[False]


@sarek.kernel
def roots(out, a):
    i = sarek.global_idx.x
    if i < len(a):
        out[i] = np.sqrt(a[i])


@on_vulkan
@pytest.mark.parametrize("flushed", [False, True], ids=["as it is", "flushing"])
def test_square_roots_through_float64(
    device: Device, flushed: bool, request: pytest.FixtureRequest
) -> None:
    """Where the device's own are exact in float64 alone, with subnormal arguments."""
    made = VulkanDriver(driver_of(device).physical, "vulkan:roots")
    flushes = made.abilities.flushes | (frozenset({FLOAT32}) if flushed else frozenset())
    made.abilities = replace(
        made.abilities, flushes=flushes, exact_square_root=frozenset({FLOAT64})
    )
    if flushed:
        request.getfixturevalue("flushing")
    bits = np.random.default_rng(3).integers(0, 2**31, 4000, np.uint32)
    a = np.concatenate([bits.view(np.float32), NUMBERS, -bits[:9].view(np.float32)])
    out, expected = np.full((2, len(a)), 7, np.float32)
    roots.launch(out, a, grid=64, block=64, device=Device(made))
    roots.launch(expected, a, grid=64, block=64, device="interpreter")
    np.testing.assert_array_equal(out, expected)
    kernel = passes.legalise(roots.ir(out, a), made.target)
    assert "OpFConvert" in disassemble(emit(kernel, made.abilities, 256).words)
