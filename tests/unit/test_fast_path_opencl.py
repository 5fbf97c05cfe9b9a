"""Launches on OpenCL devices that machine code does wholly: arguments set, enqueued, waited for."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.errors import BackendError
from sarek_numba.execute import window
from sarek_numba.runtime.cache import counters
from sarek_numba.runtime.storage import Access

NAMES = [d.name for d in sarek.devices() if d.record.backend == "opencl"]
N = 32

pytestmark = pytest.mark.skipif(not NAMES, reason="no OpenCL device is present")


@sarek.kernel
def store(out, a, b, c, d, e):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = a + 10 * b + 100 * c + 1000 * d + (10000 if e else 0)


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Each device, with launches that are done when they return."""
    store._configurations.clear()
    window.configure(enabled=False)
    with sarek.use_device(request.param):
        yield request.param
    window.configure(enabled=True)


def given(k: int) -> tuple[Any, ...]:
    """Scalars of 1, 2, 4 and 8 bytes, and a float."""
    return np.int8(k % 10), np.uint16(k % 7), float(k % 3), np.int64(k % 5), k % 2 == 0


def expected(k: int) -> float:
    a, b, c, d, e = given(k)
    return float(int(a) + 10 * int(b) + 100 * c + 1000 * int(d) + (10000 if e else 0))


def learnt(out: Any) -> Any:
    """A configuration whose next launches on `out` need no Python code."""
    launch = store[1, N]
    for _ in range(4):
        launch(out, *given(1))
    assert launch.attempts
    return launch


@pytest.fixture
def no_python(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function after whose call no launch can be given to a queue by Python code."""
    from sarek_opencl import driver

    def refuse(*_: Any) -> Any:
        raise AssertionError("by Python code")

    return lambda: monkeypatch.setattr(driver, "enqueue", refuse)


def block_of(launch: Any) -> Any:
    """The words that machine code follows."""
    attempt = launch.attempts[0][0]
    names = attempt.__code__.co_freevars
    return attempt.__closure__[names.index("launches")].cell_contents.words


def test_scalars_that_change_need_no_python(name: str, no_python: Any) -> None:
    """Of every width; those that are as before too."""
    out = sarek.zeros(N, np.float64)
    launch = learnt(out)
    no_python()
    before = counters.launches
    for k in [*range(40), 39, 39, 0]:
        launch(out, *given(k))
        assert np.asarray(out).tolist() == [expected(k)] * N
        sarek.execute.transfer_all([out], name)
        sarek.execute.mark_stale([out], name)
        out._storage.note(sarek.device(name).driver.memory, Access.WRITE, None)
    assert counters.launches == before + 43


def test_another_vector_is_bound_by_python_and_then_known(name: str, no_python: Any) -> None:
    """The control, too: the first launch on it is not machine code's alone."""
    launch = learnt(sarek.zeros(N, np.float64))
    other = sarek.zeros(N, np.float64)
    for k in (2, 3):
        launch(other, *given(k))
    no_python()
    launch(other, *given(4))
    with pytest.raises(AssertionError, match="by Python code"):
        launch(sarek.zeros(N, np.float64), *given(4))
    assert np.asarray(other).tolist() == [expected(4)] * N


def test_window_and_machine_code_share_a_kernel_object(name: str) -> None:
    """Arguments that one of them set are known to the other."""
    out = sarek.zeros(N, np.float64)
    launch = learnt(out)
    for k in range(30):
        window.configure(enabled=k % 3 == 0)
        launch(out, *given(k))
        if k % 2:
            assert np.asarray(out).tolist() == [expected(k)] * N


def test_threads_that_change_scalars(name: str) -> None:
    """Each launch has its own, whoever sets arguments meanwhile."""
    outs = [sarek.zeros(N, np.float64) for _ in range(8)]
    launch = learnt(outs[0])

    def one(k: int) -> list[Any]:
        found = []
        for j in range(40):
            with sarek.use_device(name):
                launch(outs[k], *given(k + j))
            found.append(np.asarray(outs[k]).tolist() == [expected(k + j)] * N)
        return found

    with ThreadPoolExecutor(8) as pool:
        assert all(all(each) for each in pool.map(one, range(8)))


@pytest.mark.parametrize(("place", "code"), [(1, -49), (2, -5), (3, -14)])
def test_what_the_driver_refuses_is_done_by_python_or_told(
    name: str, place: int, code: int
) -> None:
    """An argument or a launch that is refused is tried once more; a launch that ran is not."""
    out = sarek.zeros(N, np.float64)
    launch = learnt(out)
    block = block_of(launch)
    kinds = {1: [ctypes.c_int] * 4, 2: [ctypes.c_void_p] * 9, 3: [ctypes.c_void_p] * 2}[place]
    calls: list[int] = []

    def failing(*_: Any) -> int:
        calls.append(place)
        return code

    callback = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(failing)
    usual, block[place] = int(block[place]), ctypes.cast(callback, ctypes.c_void_p).value
    before = counters.launches
    launch(out, *given(8))
    block[place] = usual
    launch(out, *given(8))
    assert calls == [place]
    assert counters.launches == before + 2
    assert np.asarray(out).tolist() == [expected(8)] * N


def test_a_launch_that_failed_is_told_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the words of this package; nothing is held, and the next launch runs."""
    from sarek_opencl import driver, plans

    cl = driver.load()
    with pytest.raises(cl.Error) as caught:
        cl.Buffer(sarek.device(name).driver.context, cl.mem_flags.READ_ONLY, 0)
    out = sarek.zeros(N, np.float64)
    launch = learnt(out)
    block = block_of(launch)
    callback = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 2)(lambda *_: -14)

    def told(*_: Any) -> None:
        raise caught.value

    monkeypatch.setattr(plans._Launches, "failed", told)
    usual, block[3] = int(block[3]), ctypes.cast(callback, ctypes.c_void_p).value
    with pytest.raises(BackendError, match=r"a launch on .* failed"):
        launch(out, *given(2))
    block[3] = usual
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(out._storage.lock.acquire, False).result()
        pool.submit(out._storage.lock.release).result()
    launch(out, *given(3))
    assert np.asarray(out).tolist() == [expected(3)] * N


def test_machine_code_comes_from_the_disk(tmp_path: Any) -> None:
    """A second process compiles no launcher; its launches are the same."""
    code = (
        "import llvmlite.binding as llvm, numpy as np, sarek_numba as sarek\n"
        "from sarek_numba import execute\n"
        "from sarek_numba.runtime import disk\n"
        "from tests.unit.test_fast_path_opencl import NAMES, expected, given, store\n"
        "kept = []\n"
        "save = disk.save\n"
        "disk.save = lambda kind, *rest: (kept.append(kind), save(kind, *rest))\n"
        "execute.window.configure(enabled=False)\n"
        "for name in ('native', *NAMES):\n"
        "    out = sarek.zeros(32, np.float64)\n"
        "    for k in range(6):\n"
        "        store.launch(out, *given(k % 4), grid=1, block=32, device=name)\n"
        "    assert np.asarray(out).tolist() == [expected(1)] * 32\n"
        "print(kept.count('launchers'))\n"
    )
    environment = os.environ | {"SAREK_CACHE_DIR": str(tmp_path), "SAREK_CACHE": "1"}
    printed = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()[-1]
        for _ in range(2)
    ]
    assert printed == ["2", "0"]
