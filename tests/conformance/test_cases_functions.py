"""Cases from the field: functions, closures, globals, threads (sections F and L)."""

from __future__ import annotations

import collections
import gc
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import sarek_numba as sarek
from tests.conformance.everywhere import everywhere, gives
from tests.conformance.made import made
from tests.executors import EMULATION, device_of, executors, run
from tests.executors import devices as present
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


def scaling(k, offset):
    @sarek.function
    def scale(v):
        return v * k + offset

    return scale


@everywhere
def test_case_76_functions(executor):
    """Device functions of one factory stay apart within a kernel, whatever types they captured."""
    twice, thrice, half = scaling(2, 0), scaling(3, 1), scaling(np.float32(0.5), 0)

    @sarek.kernel
    def each(out, x):
        t = sarek.thread_idx.x
        out[t, 0] = twice(x[t])
        out[t, 1] = thrice(x[t])
        out[t, 2] = twice(thrice(x[t])) + half(np.float32(x[t]))

    x = np.array([2, 4, 6], np.int32)
    expected = np.stack([x * 2, x * 3 + 1, (x * 3 + 1) * 2 + x // 2], axis=1)
    gives(executor, each, expected, x)


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


@everywhere
def test_case_79_unassigned(executor):
    """Launched before it is assigned, it is a name without a value; afterwards the kernel runs."""

    @sarek.function
    def helper(v):
        return v + value

    @sarek.kernel
    def early(out):
        out[sarek.thread_idx.x] = helper(1)

    out = np.zeros(2, np.int32)
    with pytest.raises(NameError, match="value"):
        run(executor, early, Launch(1, 2, (out,), ()))
    assert not out.any()
    value = 6
    gives(executor, early, [7, 7])


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


@sarek.function
def twice_to(f, v):
    return f(f(v))


@sarek.function
def add_one(v):
    return v + 1


@sarek.function
def doubled(v):
    return v * 2


@sarek.function
def limited(v, most=3):
    return min(v, most)


def overloads(order):
    """A new kernel whose calls of one helper, by function, literal and type, stand in an order."""
    calls = (
        "out[t, 0] = twice_to(add_one, x[t])",
        "out[t, 1] = twice_to(doubled, x[t])",
        "out[t, 2] = limited(x[t])",
        "out[t, 3] = limited(x[t], 5)",
        "out[t, 4] = limited(y[t], 1.5) * 4",
        "out[t, 5] = limited(y[t]) * 4",
    )
    body = "".join(f"    {calls[k]}\n" for k in order)
    helpers = {f.__name__: f for f in (twice_to, add_one, doubled, limited)}
    text = f"@sarek.kernel\ndef k(out, x, y):\n    t = sarek.thread_idx.x\n{body}"
    return made(text, "k", **helpers)


@everywhere
@pytest.mark.parametrize("order", [range(6), range(5, -1, -1), (3, 0, 5, 2, 1, 4)])
def test_case_83_overloads(executor, order):
    """One helper for several functions, literals and types, whichever is met first."""
    x = np.array([1, 4, 9], np.int32)
    y = np.array([1.25, 2.75, 8], np.float32)
    rows = [
        (v + 2, v * 4, min(v, 3), min(v, 5), min(w, 1.5) * 4, min(w, 3) * 4)
        for v, w in zip(x.tolist(), y.tolist(), strict=True)
    ]
    gives(executor, overloads(order), rows, x, y)


@everywhere
def test_case_83_literals(executor):
    """One kernel launched with literals that mean other code, in both orders."""
    for flags in ((True, False, None), (None, False, True)):
        for flag in flags:
            expected = [t if flag is None else t * 10 if flag else t + 100 for t in range(3)]
            gives(executor, by_flag, expected, flag)


@sarek.kernel
def by_flag(out, flag):
    t = sarek.thread_idx.x
    if flag is None:
        out[t] = t
    elif flag:
        out[t] = t * 10
    else:
        out[t] = t + 100


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


BAD_SCRIPT = """
import sys
import numpy as np
import sarek_numba as sarek

@sarek.kernel
def k(out, n):
    out[0] = n + missing

for _ in range(2):
    out = np.zeros(1, np.int32)
    try:
        k.launch(out, 3, grid=1, block=1, device=sys.argv[1])
    except sarek.UnknownName as error:
        print(str(error).splitlines()[0].split(":", 1)[1], out[0])
"""


@pytest.mark.parametrize("device", present())
def test_case_82_processes(device, tmp_path):
    """Each process that launches it, and each launch in one, gets the same error."""
    file = tmp_path / "bad.py"
    file.write_text(BAD_SCRIPT)
    command = [sys.executable, str(file), device]
    texts = [subprocess.run(command, capture_output=True, text=True, check=True).stdout
             for _ in range(2)]  # fmt: skip
    lines = (texts[0] + texts[1]).splitlines()
    assert len(lines) == 4
    assert len(set(lines)) == 1
    assert "missing" in lines[0]
    assert lines[0].startswith("8:18: ")
    assert lines[0].endswith(" 0")


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


FACTORY_OF_ONE_NAME = """
def factory(factor):
    @sarek.function
    def helper(v):
        return v * factor

    @sarek.kernel
    def same(out, x):
        t = sarek.thread_idx.x
        out[t] = helper(x[t]) + OFFSET

    return same
"""


@everywhere
def test_case_86_factories(executor):
    """Kernels of one name, from factories of two modules, launched in turn."""
    modules = [made(FACTORY_OF_ONE_NAME, "factory", OFFSET=offset) for offset in (0, 50)]
    kernels = [(k, f, factory(f)) for k, factory in enumerate(modules) for f in (2, 3)]
    x = np.arange(3, dtype=np.int32)
    for k, factor, kernel in kernels + kernels[::-1]:
        gives(executor, kernel, x * factor + 50 * k, x)


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
    with sarek.use_device(device_of(device)):
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
def test_case_91_annotation(device):
    """A return annotation other than None is refused; `-> None` and a bare return are not."""

    @sarek.kernel
    def stated(out) -> sarek.int32:
        out[0] = 1

    @sarek.kernel
    def nothing(out) -> None:
        out[0] = 1
        return

    out = np.zeros(1, np.int32)
    with pytest.raises(sarek.CompileError, match="return"):
        run(device, stated, Launch(1, 1, (out,), ()))
    assert out[0] == 0
    run(device, nothing, Launch(1, 1, (out,), ()))
    assert out[0] == 1


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
