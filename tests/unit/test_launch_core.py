"""Launches of IR made by hand on a device that records: order, counters, bytes, refusals."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import sleep
from typing import Any

import numpy as np
import pytest

from sarek_numba import errors
from sarek_numba.ir import build
from sarek_numba.ir.nodes import Const, Kernel, SharedDecl, make_kernel
from sarek_numba.ir.types import FLOAT32, FLOAT64, INT32, OffsetOf, Scalar
from sarek_numba.runtime import launch as launching
from sarek_numba.runtime.arguments import describe
from sarek_numba.runtime.cache import Memo, clear_launch_cache, counters
from sarek_numba.runtime.device import Dimensions
from sarek_numba.runtime.registry import Device
from tests.unit.fake_backend import NO_FLOAT64, fake_device

__all__ = ["fake_device"]

NAMES = ("out", "x", "n")
ONE: Dimensions = (1, 1, 1)


def copy_kernel(
    element: Scalar = FLOAT32, index_bits: int = 32, shared: int = 0, name: str = "copy"
) -> Kernel:
    """out[0] = x[0]; parameters: out, its offset, x, its length, and the scalar n."""
    fresh = build.Fresh()
    out = build.array_param(fresh, "out", element, 0)
    x = build.array_param(fresh, "x", element, 1, writable=False)
    params = (
        out,
        build.scalar_param(fresh, "out_offset", INT32, OffsetOf(0)),
        x,
        build.length_param(fresh, "x_length", 1),
        build.scalar_param(fresh, "n", Scalar.INT64, 2),
    )
    locals_: tuple[SharedDecl, ...] = ()
    if shared:
        locals_ = (build.shared_decl(fresh, "tile", FLOAT32, shared),)
    body = (build.store(out.var, 0, build.read(x.var, 0)),)
    return make_kernel(name, body, params=params, locals=locals_, index_bits=index_bits)


def go(device: Device, kernel: Kernel, out: Any, x: Any, n: Any = 5, shared: int = 0) -> None:
    arguments = describe(kernel.name, NAMES, [out, x, n], [None] * 3)
    analysed = launching.analyse(kernel, NAMES)
    launching.check(device, analysed, arguments, shared)
    launching.launch(device, analysed, arguments, (2, 1, 1), (4, 1, 1), shared)


@pytest.fixture(autouse=True)
def _fresh() -> None:
    clear_launch_cache()
    counters.reset()


def counted() -> tuple[int, int, int]:
    return counters.capability_checks, counters.compiles, counters.launches


def test_launch_binds_runs_and_unbinds(fake_device: Device) -> None:
    """Each argument with what its role says; reads and writes tell the driver what to move."""
    out, x = np.zeros(8, np.float32), np.arange(6, dtype=np.float32)
    driver: Any = fake_device.driver

    def behaviour(out: Any, offset: Any, x: Any, length: Any, n: Any) -> None:
        out.view(np.float32)[offset] = x.view(np.float32)[length - 1] + n

    driver.behaviour = behaviour
    go(fake_device, copy_kernel(), out[::-1], x)
    assert out.tolist() == [0, 0, 0, 0, 0, 0, 0, 10]
    assert driver.events == [
        ("prepare", "copy"),
        *sorted([("bind", 32, False, True), ("bind", 24, True, False)], key=_by(out, x)),
        ("launch", (2, 1, 1), (4, 1, 1), 0),
        *sorted([("unbind", 32), ("unbind", 24)], key=_by(out, x), reverse=True),
    ]
    assert [type(a) for a in driver.arguments[1::2]] == [np.int32, np.int32]
    assert type(driver.arguments[4]) is np.int64


def _by(out: Any, x: Any) -> Any:
    """Regions are bound in order of address."""
    first = {32: out.ctypes.data, 24: x.ctypes.data}
    return lambda event: first[event[1]]


def test_overlapping_arguments_are_one_buffer(fake_device: Device) -> None:
    """What is written through one is read through the other."""
    array = np.zeros(4, np.float32)
    go(fake_device, copy_kernel(), array, array)
    driver: Any = fake_device.driver
    assert [e for e in driver.events if e[0] == "bind"] == [("bind", 16, True, True)]
    assert driver.arguments[0] is driver.arguments[2]


def test_second_launch_checks_and_compiles_nothing(fake_device: Device) -> None:
    """The memo is by content: an equal kernel made anew is the same kernel."""
    out, x = np.zeros(4, np.float32), np.zeros(4, np.float32)
    go(fake_device, copy_kernel(), out, x)
    go(fake_device, copy_kernel(), out, x)
    assert counted() == (1, 1, 2)
    clear_launch_cache()
    go(fake_device, copy_kernel(), out, x)
    assert counted() == (2, 2, 3)


def test_content_name_and_device_each_make_a_program(fake_device: Device) -> None:
    """A program's text names its kernel; nothing compiled for one device runs on another."""
    from sarek_numba.runtime.registry import device

    out, x = np.zeros(4, np.float32), np.zeros(4, np.float32)
    go(fake_device, copy_kernel(), out, x)
    go(fake_device, copy_kernel(name="other"), out, x)
    go(fake_device, copy_kernel(shared=3), out, x)
    go(device("fake:1"), copy_kernel(), out, x)
    assert counters.compiles == 4


def test_source_is_made_once(fake_device: Device) -> None:
    """A hit is the same object."""
    analysed = launching.analyse(copy_kernel(), NAMES)
    text = launching.source(fake_device, analysed)
    assert launching.source(fake_device, analysed) is text
    assert counters.sources == 1


def test_sixteen_threads_compile_once(fake_device: Device) -> None:
    """While one compiles, the others wait for it."""
    start = Barrier(16)
    kernel = copy_kernel()

    def one(_: int) -> None:
        start.wait()
        go(fake_device, kernel, np.zeros(4, np.float32), np.zeros(4, np.float32))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, range(16)))
    assert counted() == (1, 1, 16)


def test_failed_compilation_is_not_remembered(
    fake_device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is raised again; once it succeeds, the kernel runs."""
    driver: Any = fake_device.driver
    prepare = type(driver).prepare

    def fail(self: Any, kernel: Kernel) -> None:
        raise errors.SourceCompilationError("no", "text", "log")

    out, x = np.zeros(4, np.float32), np.zeros(4, np.float32)
    monkeypatch.setattr(type(driver), "prepare", fail)
    for _ in range(2):
        with pytest.raises(errors.SourceCompilationError):
            go(fake_device, copy_kernel(), out, x)
    monkeypatch.setattr(type(driver), "prepare", prepare)
    go(fake_device, copy_kernel(), out, x)
    assert counted() == (1, 3, 1)


def test_of_sixteen_threads_that_wait_for_a_failure_one_tries_again(
    fake_device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two compilations, and each thread has an error; a later launch tries anew."""
    start, driver = Barrier(16), fake_device.driver
    kernel = copy_kernel()

    def fail(self: Any, kernel: Kernel) -> None:
        while sum(each.threads for each in launching._prepared._making.values()) < 16:
            if counters.compiles:  # the second attempt: others have left by now
                break
            sleep(0.001)
        raise errors.SourceCompilationError("no", "text", "log")

    def one(_: int) -> str:
        start.wait()
        with pytest.raises(errors.SourceCompilationError) as raised:
            go(fake_device, kernel, np.zeros(4, np.float32), np.zeros(4, np.float32))
        return str(raised.value)

    prepare = type(driver).prepare
    monkeypatch.setattr(type(driver), "prepare", fail)
    with ThreadPoolExecutor(16) as pool:
        texts = set(pool.map(one, range(16)))
    assert (len(texts), counters.compiles, launching._prepared._making) == (1, 2, {})
    monkeypatch.setattr(type(driver), "prepare", prepare)
    go(fake_device, kernel, np.zeros(4, np.float32), np.zeros(4, np.float32))
    assert (counters.compiles, counters.launches) == (3, 1)


def test_what_is_made_while_the_memo_is_cleared_is_not_kept() -> None:
    """It may have been made of what is no longer so."""
    memo: Memo[str] = Memo()

    def make() -> str:
        memo.clear()
        return "old"

    assert memo.get("key", make) == "old"
    assert memo.get("key", lambda: "new") == "new"
    assert memo.get("key", lambda: "newer") == "new"


def _refused(
    device: Device, error: type[Exception], kernel: Kernel, out: Any, x: Any, shared: int = 0
) -> str:
    """The text, after checking that it is raised twice and that nothing moved or changed."""
    before = out.copy()
    for _ in range(2):
        with pytest.raises(error) as raised:
            go(device, kernel, out, x, shared=shared)
    driver: Any = device.driver
    assert driver.events == []
    assert np.array_equal(out, before)
    assert counters.launches == 0
    go(device, copy_kernel(name="after"), np.zeros(2, np.float32), np.zeros(2, np.float32))
    assert counters.launches == 1
    return str(raised.value)


def test_capability_refuses_before_anything_moves(fake_device: Device) -> None:
    """Every time, though the check is done once."""
    out = np.zeros(4)
    text = _refused(fake_device, errors.CapabilityError, copy_kernel(FLOAT64), out, np.ones(4))
    assert text.startswith(
        "kernel 'copy' needs float64 in memory, which device 'fake:0' does not have\n"
        "  device optional: devices of the backend 'fake' may or may not\n"
        f"  {NO_FLOAT64.evidence}"
    )
    assert counters.capability_checks == 2  # the refused kernel and the one after it


def test_shared_memory_beyond_the_device(fake_device: Device) -> None:
    """Static bytes are known from the IR, before the device compiles anything."""
    kernel = copy_kernel(shared=250)
    out, x = np.zeros(4, np.float32), np.zeros(4, np.float32)
    assert _refused(fake_device, errors.InvalidDimensions, kernel, out, x, shared=25) == (
        "kernel 'copy' asks for 1025 bytes of shared memory a block (1000 static and 25 dynamic); "
        "device 'fake:0' has 1024"
    )
    go(fake_device, kernel, out, x, shared=24)


def test_write_to_repeated_elements(fake_device: Device) -> None:
    """A broadcast array is an input only, even if it is writable."""
    row = np.zeros(4, np.float32)
    out = np.lib.stride_tricks.as_strided(row, (3, 4), (0, 4))
    text = _refused(fake_device, errors.InvalidArgument, copy_kernel(), out, row)
    assert text == (
        "kernel 'copy' writes argument 'out', whose elements each stand at several indices "
        "(a stride is 0)\n  hint: pass a copy of it"
    )
    go(fake_device, copy_kernel(), row, out)


def test_length_beyond_int32_in_hand_made_ir(fake_device: Device) -> None:
    """An array of 2^31 elements, none of which is touched, does not fit an int32 length."""
    wide = np.empty(2**31, np.int8)  # never touched, so never backed by memory
    with pytest.raises(errors.LengthOverflow) as error:
        _refused_length(fake_device, wide)
    assert str(error.value) == (
        "kernel 'copy' takes lengths as int32, and an array spans 2147483648 elements"
    )


def _refused_length(device: Device, wide: Any) -> None:
    arguments = describe("copy", NAMES, [np.zeros(1, np.int8), wide, 1], [None] * 3)
    analysed = launching.analyse(copy_kernel(Scalar.INT8), NAMES)
    launching.check(device, analysed, arguments, 0)


def test_needs_are_those_of_the_kernel_as_the_device_runs_it(
    fake_device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What passes take away is not asked of a device that passes are made for."""
    monkeypatch.setattr(launching, "optimise", lambda kernel, target: copy_kernel())
    go(fake_device, copy_kernel(FLOAT64), np.zeros(2), np.zeros(2))
    assert counters.launches == 1


def test_static_shared_bytes_come_from_constant_sizes() -> None:
    """The dynamic region has no size of its own."""
    analysed = launching.analyse(copy_kernel(shared=10), NAMES)
    assert analysed.static_shared_bytes == 40
    [tile] = analysed.kernel.locals
    assert isinstance(tile, SharedDecl)
    assert isinstance(tile.size, Const)
    assert (analysed.reads, analysed.writes) == (frozenset({1}), frozenset({0}))
