"""Cases from the field: functions, closures, globals, threads (sections F and L)."""

from __future__ import annotations

import collections
import gc
import threading
import weakref

import numpy as np
import pytest

import sarek_numba as sarek
from tests.conformance.everywhere import everywhere, gives
from tests.conformance.made import made
from tests.executors import EMULATION, executors, run
from tests.kernels.case import Launch

devices = pytest.mark.parametrize("device", [name for name in executors() if name != EMULATION])


def adding(k):
    @sarek.kernel
    def add(out, x):
        t = sarek.thread_idx.x
        out[t] = x[t] + k

    return add


@everywhere
def test_case_76_closures(executor):
    """Kernels of one factory have each the value it was given, in any order of launches."""
    x = np.arange(3, dtype=np.int32)
    kernels = {k: adding(k) for k in (1, 2, 3)}
    for k in (1, 2, 3, 2, 1):
        gives(executor, kernels[k], x + k, x)


@everywhere
def test_case_79_late(executor):
    """A captured variable assigned after the kernel is defined counts as it is at the launch."""

    @sarek.kernel
    def late(out):
        out[sarek.thread_idx.x] = value

    value = 3
    gives(executor, late, [3, 3])
    value = 4
    gives(executor, late, [4, 4])


MODULE = """
SCALE = 2

@sarek.function
def inner(v):
    return v * SCALE

@sarek.function
def outer(v):
    return inner(v) + 1

@sarek.kernel
def k(out, x):
    t = sarek.thread_idx.x
    out[t] = outer(x[t])
"""


@everywhere
def test_case_77_globals(executor):
    """A rebound global of a helper's helper, and a rebound helper, are noticed at the next
    launch, and going back is too.
    """
    kernel = made(MODULE, "k")
    scope = kernel.py_func.__globals__
    x = np.arange(3, dtype=np.int32)
    gives(executor, kernel, x * 2 + 1, x)
    scope["SCALE"] = 5
    gives(executor, kernel, x * 5 + 1, x)
    old = scope["inner"]
    scope["inner"] = made("@sarek.function\ndef inner(v):\n    return v - 7\n", "inner")
    gives(executor, kernel, x - 6, x)
    scope["inner"], scope["SCALE"] = old, 2
    gives(executor, kernel, x * 2 + 1, x)


@sarek.kernel
def reciprocal_like(out, x, y):
    t = sarek.thread_idx.x
    out[t] = x[t] / y


@devices
def test_case_83_variants(device):
    """Specialisations by element type, layout and argument kind never take each other's place."""
    for dtypes in ((np.float32, np.int32, np.float64), (np.float64, np.int32, np.float32)):
        for dtype in dtypes:
            x = np.arange(1, 13, dtype=dtype)
            for view, y in ((x, 2), (x[::2], 4), (x[::-1], 2.0), (x, dtype(8))):
                out = np.zeros(len(view))
                run(device, reciprocal_like, Launch(1, len(view), (out, view, y), ()))
                assert out.tolist() == (view / y).tolist()


BAD_THEN_GOOD = """
@sarek.kernel
def k(out, n):
    out[0] = n + missing
"""


@devices
def test_case_82_again(device):
    """A kernel that failed to compile fails again, until its name exists; then it runs whole."""
    kernel = made(BAD_THEN_GOOD, "k")
    for _ in range(2):
        with pytest.raises(sarek.UnknownName, match="missing"):
            run(device, kernel, Launch(1, 1, (np.zeros(1, np.int32), 3), ()))
    kernel.py_func.__globals__["missing"] = 4
    gives(device, kernel, [7], 3)


HELPER = "@sarek.function\ndef helper(v):\n    return v {}\n"


@everywhere
def test_case_86_equal_names(executor):
    """Two device functions of one name, from two modules, in one kernel."""
    first, second = made(HELPER.format("+ 1"), "helper"), made(HELPER.format("* 10"), "helper")

    @sarek.kernel
    def both(out, x):
        t = sarek.thread_idx.x
        out[t] = first(x[t]) + second(x[t])

    x = np.arange(3, dtype=np.int32)
    gives(executor, both, x + 1 + x * 10, x)


Size = collections.namedtuple("Size", "rows columns depth")
SIZE = Size(3, 4, 5)
SHAPE = (2, 7, 9)


@sarek.function
def both_ways(v):
    if v > 1:
        pair = (v, v * 2)
        v = 0
    else:
        pair = (v * 3, v)
    return pair[0], pair[1] + v * 100


@sarek.kernel
def tuples(out):
    t = sarek.thread_idx.x
    a, b, c = SIZE
    first, second = both_ways(t)
    r = SHAPE[::-1]
    out[t, 0] = a * 100 + b * 10 + c
    out[t, 1] = first * 10 + second
    out[t, 2] = r[0] * 100 + r[2] + SIZE.columns
    out[t, 3] = len(SHAPE[1:])


@everywhere
def test_case_88_tuples(executor):
    """Unpacking a named tuple, slicing a tuple, tuples assigned in both branches."""
    pairs = [(t, t * 2) if t > 1 else (t * 3, t + t * 100) for t in range(4)]
    expected = [(345, p * 10 + q, 906, 2) for p, q in pairs]
    gives(executor, tuples, expected)


@sarek.kernel
def keyworded(out, x, s=2, *, shift=1):
    t = sarek.thread_idx.x
    out[t] = x[t] * s + shift


@devices
def test_case_89_keywords(device):
    """Defaults and keywords at a launch; a wrong or missing one is named."""
    x = np.arange(3, dtype=np.int32)
    with sarek.use_device(device):
        for named, expected in (({}, x * 2 + 1), ({"s": 5}, x * 5 + 1), ({"shift": 0}, x * 2)):
            out = np.zeros(3, np.int32)
            keyworded[1, 3](out, x=x, **named)
            assert out.tolist() == expected.tolist()
        with pytest.raises(sarek.ArgumentCountError, match="scale"):
            keyworded[1, 3](out, x, scale=3)
        with pytest.raises(sarek.ArgumentCountError, match="x"):
            keyworded[1, 3](out)
        with pytest.raises(sarek.ArgumentCountError, match="out"):
            keyworded[1, 3](out, x, out=out)


@devices
def test_case_91_value(device):
    """A kernel that returns a value is refused."""

    @sarek.kernel
    def returns(out):
        out[0] = 1
        return out[0]

    out = np.zeros(1, np.int32)
    with pytest.raises(sarek.CompileError, match="return"):
        run(device, returns, Launch(1, 1, (out,), ()))
    assert out[0] == 0


@devices
def test_case_85_threads(device):
    """Sixteen threads that meet the same new kernels at once all get right results."""
    kernels = [adding(100 + k) for k in range(4)]
    wrong: list[object] = []
    start = threading.Barrier(16)

    def work(number):
        try:
            start.wait()
            for step in range(4):
                k = (number + step) % 4
                x = np.arange(8, dtype=np.int32) + number
                out = np.zeros(8, np.int32)
                run(device, kernels[k], Launch(1, 8, (out, x), ()))
                if out.tolist() != (x + 100 + k).tolist():
                    wrong.append((number, k, out))
        except BaseException as error:
            wrong.append(error)
            raise

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@devices
def test_case_154_thread(device):
    """A kernel that one thread compiled runs in another, with new values of what it captures."""
    kernel = adding(9)
    x = np.arange(4, dtype=np.int32)
    gives(device, kernel, x + 9, x)
    found = []

    def work():
        out = np.zeros(4, np.int32)
        run(device, kernel, Launch(1, 4, (out, x), ()))
        found.append(out.tolist())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [[9, 10, 11, 12]]


FACTORY = """
def factory():
    @sarek.kernel
    def k(out):
        out[sarek.thread_idx.x] = 5
    return k
"""


@devices
def test_case_158_leak(device):
    """Kernels made again and again from one source are freed with what was compiled of them."""
    factory = made(FACTORY, "factory")
    out = np.zeros(2, np.int32)
    alive = []
    for _ in range(300 if device == "native" else 60):
        kernel = factory()
        run(device, kernel, Launch(1, 2, (out,), ()))
        alive.append(weakref.ref(kernel))
    del kernel
    gc.collect()
    assert sum(reference() is not None for reference in alive) == 0
    assert out.tolist() == [5, 5]


def kept_objects():
    gc.collect()
    return len(gc.get_objects())


def test_case_158_bounded():
    """The number of objects kept does not grow with the number of such kernels."""
    factory = made(FACTORY, "factory")
    out = np.zeros(2, np.int32)
    counts = []
    for _ in range(3):
        for _ in range(60):
            run("native", factory(), Launch(1, 2, (out,), ()))
        counts.append(kept_objects())
    assert counts[2] - counts[1] < 60, counts


ONE_INPUT = {
    "element type": lambda: (np.zeros(4, np.int64), 3),
    "dimensions": lambda: (np.zeros((4, 1), np.int32)[:, 0], 3),
    "strides": lambda: (np.zeros(8, np.int32)[::2], 3),
    "int beyond int32": lambda: (np.zeros(4, np.int64), 2**40),
    "float": lambda: (np.zeros(4, np.int32), 3.0),
    "bool": lambda: (np.zeros(4, np.int32), True),
    "NumPy scalar": lambda: (np.zeros(4, np.int32), np.uint32(3)),
    "None": lambda: (np.zeros(4, np.int32), None),
}


@sarek.kernel
def by_input(out, n):
    t = sarek.thread_idx.x
    if n is None:
        out[t] = -1
    else:
        out[t] = n * 2 + t


@devices
def test_case_80_inputs(device):
    """One kind of input varied at a time, in both orders: results are always those of the kind."""
    orders = (list(ONE_INPUT), list(reversed(ONE_INPUT)))
    for name in (*orders[0], *orders[1]):
        out, n = ONE_INPUT[name]()
        run(device, by_input, Launch(1, 4, (out, n), ()))
        wanted = [-1] * 4 if n is None else [int(n) * 2 + t for t in range(4)]
        wrapped = np.array(wanted, np.int64).astype(out.dtype).tolist()
        assert out.tolist() == wrapped, name
