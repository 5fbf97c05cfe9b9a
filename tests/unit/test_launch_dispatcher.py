"""`@sarek.kernel`: forms of launch, specialisations, captured values, inspection."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import errors
from sarek_numba.ir.nodes import Kernel
from sarek_numba.ir.types import ArrayInfo, Scalar
from sarek_numba.runtime.cache import clear_launch_cache, counters
from tests.unit.fake_backend import fake_device

__all__ = ["fake_device"]

FACTOR = 3


@sarek.kernel
def scale(out, x, factor=2.0):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = x[i] * factor


@sarek.kernel
def captured(out):
    out[0] = FACTOR


@sarek.kernel
def stated(out: sarek.float32[:], n: sarek.int32):
    out[0] = n


@pytest.fixture(autouse=True)
def _fresh() -> None:
    clear_launch_cache()
    counters.reset()


def arrays(dtype: Any = np.float32) -> tuple[Any, Any]:
    return np.zeros(8, dtype), np.ones(8, dtype)


def events(device: Any, name: str) -> list[Any]:
    return [event for event in device.driver.events if event[0] == name]


# --- forms of launch ------------------------------------------------------------------------------


def test_brackets_and_launch_are_the_same(fake_device: Any) -> None:
    """Grid, block and shared bytes reach the device as they were given."""
    scale[(2, 3), np.int64(8)](*arrays())
    scale[(2, 3), 8, None, 16](*arrays())
    scale.launch(*arrays(), 1.0, grid=(2, 3), block=8, shared_bytes=16)
    scale.launch(*arrays(), grid=[2, 3], block=(8,), shared_bytes=16, factor=1.0)
    assert events(fake_device, "launch") == [
        ("launch", (2, 3, 1), (8, 1, 1), 0),
        *[("launch", (2, 3, 1), (8, 1, 1), 16)] * 3,
    ]


def test_launch_names_its_device(fake_device: Any) -> None:
    """A name or a device."""
    other = sarek.device("fake:1")
    scale.launch(*arrays(), grid=1, block=8, device="fake:1")
    scale.launch(*arrays(), grid=1, block=8, device=other)
    assert events(fake_device, "launch") == []
    assert len(events(other, "launch")) == 2


def test_configuration_may_be_kept(fake_device: Any) -> None:
    """k[grid, block] is a value that can be called many times."""
    configured = scale[1, 8]
    configured(*arrays())
    configured(*arrays())
    assert len(events(fake_device, "launch")) == 2


def test_forall_launches_enough_blocks(fake_device: Any) -> None:
    """ceil(n / block)."""
    scale.forall(17, block=8)(*arrays())
    scale.forall(16, block=(2, 4))(*arrays())
    scale.forall(1)(*arrays())
    assert events(fake_device, "launch") == [
        ("launch", (3, 1, 1), (8, 1, 1), 0),
        ("launch", (2, 1, 1), (2, 4, 1), 0),
        ("launch", (1, 1, 1), (256, 1, 1), 0),
    ]


def test_forall_of_nothing_launches_nothing(fake_device: Any) -> None:
    """Its arguments are checked all the same, see the refusals."""
    scale.forall(0)(*arrays())
    assert fake_device.driver.events == []


def test_defaults_and_keywords_reach_the_device(fake_device: Any) -> None:
    """A default is an argument like any other."""
    out, x = arrays()
    scale[1, 8](x=x, out=out)
    assert fake_device.driver.arguments[-1] == 2.0
    scale[1, 8](out, x, factor=5.0)
    assert fake_device.driver.arguments[-1] == 5.0


# --- specialisations ------------------------------------------------------------------------------


def test_types_make_specialisations(fake_device: Any) -> None:
    """Types, layouts, weak and strong numbers; values do not."""
    launch = scale[1, 8]
    launch(*arrays(), 2.0)
    launch(*arrays(), 3.0)
    assert counters.compiles == 1
    launch(*arrays(), np.float32(3))
    assert counters.compiles == 1  # a float that only meets float32 is the same program
    launch(*arrays(), 3)
    launch(*arrays(), 2**40)
    launch(*arrays(np.int32), 3)
    out, x = arrays()
    launch(out[::2], x)
    assert counters.compiles == 5


def test_rebound_global_is_a_new_specialisation(
    fake_device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never stale code, and the old value finds its old program."""
    out = np.zeros(1, np.int32)
    captured[1, 1](out)
    monkeypatch.setitem(globals(), "FACTOR", 4)
    captured[1, 1](out)
    assert counters.compiles == 2
    monkeypatch.setitem(globals(), "FACTOR", 3)
    captured[1, 1](out)
    captured[1, 1](out)
    assert counters.compiles == 2


def test_equal_values_of_other_types_are_other_values(
    fake_device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3 and 3.0 are not one value, nor are 0.0 and -0.0."""
    out = np.zeros(1, np.float32)
    texts = set()
    for value in (3, 3.0, np.float32(3), 0.0, -0.0):
        monkeypatch.setitem(globals(), "FACTOR", value)
        texts.add(str(captured.ir(out).body))
    assert len(texts) >= 3
    captured[1, 1](out)


def test_rebound_closure_cell_is_a_new_specialisation(fake_device: Any) -> None:
    """A variable assigned after the kernel was defined counts as it is at the launch."""

    def make() -> Any:
        @sarek.kernel
        def fill(out):
            out[0] = value

        value = 1

        def rebind(new: int) -> None:
            nonlocal value
            value = new

        return fill, rebind

    fill, rebind = make()
    fill[1, 1](np.zeros(1, np.int32))
    rebind(2)
    fill[1, 1](np.zeros(1, np.int32))
    assert counters.compiles == 2


def test_rebound_global_of_a_device_function_counts(
    fake_device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Captured values of callees are captured values of the kernel."""
    through_helper[1, 1](np.zeros(1, np.int32))
    monkeypatch.setitem(globals(), "FACTOR", 7)
    through_helper[1, 1](np.zeros(1, np.int32))
    assert counters.compiles == 2


@sarek.function
def factor_of(x):
    return x * FACTOR


@sarek.kernel
def through_helper(out):
    out[0] = factor_of(out[0])


def test_factory_kernels_do_not_share_code(fake_device: Any) -> None:
    """Two kernels of one definition differ by what they captured."""

    def make(value: int) -> Any:
        @sarek.kernel
        def fill(out):
            out[0] = value

        return fill

    out = np.zeros(1, np.int32)
    assert make(1).ir(out) != make(2).ir(out)


def test_failing_compilation_fails_each_time(fake_device: Any) -> None:
    """With the same error; a good specialisation of the kernel still works."""

    @sarek.kernel
    def shifts(out, x):
        out[0] = x[0] << 1

    texts = set()
    for _ in range(2):
        with pytest.raises(errors.CompileError) as raised:
            shifts[1, 1](*arrays())
        texts.add(str(raised.value))
    assert len(texts) == 1
    shifts[1, 1](*arrays(np.int32))
    assert len(events(fake_device, "launch")) == 1


def test_sixteen_threads_compile_a_new_kernel_once(fake_device: Any) -> None:
    """Front end and device compiler each run once."""

    @sarek.kernel
    def fresh(out, x):
        out[0] = x[0]

    def launch(_: int) -> None:
        fresh.launch(*arrays(), grid=1, block=1, device=fake_device)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(launch, range(16)))
    assert (counters.compiles, counters.launches) == (1, 16)


def test_wide_launches_get_wide_indices(fake_device: Any) -> None:
    """2^31 threads along an axis need 64-bit indices."""
    limits = fake_device.record.limits
    record = fake_device.record
    wide = type(limits)(256, (256, 1, 1), (2**31, 1, 1), 1024, 2**40)
    fake_device.driver.record = type(record)(record.name, "fake", "jit", "", (), wide, record.facts)
    scale[2**23 - 1, 256](*arrays())
    narrow = fake_device.driver.arguments
    scale[2**23, 256](*arrays())
    assert counters.compiles == 2
    assert np.int32 in map(type, narrow)
    assert np.int32 not in map(type, fake_device.driver.arguments)


def test_long_array_gets_wide_lengths(fake_device: Any) -> None:
    """An array of 2^31 elements, which the fake device never touches."""
    huge = np.empty(2**31, np.int8)
    captured[1, 1](huge)
    assert captured._specialise((ArrayInfo(Scalar.INT8),), 64).kernel.index_bits == 64
    assert counters.compiles == 1


# --- where kernels live ---------------------------------------------------------------------------


class Holder:
    @sarek.kernel
    def attribute(out):  # noqa: N805
        out[0] = 1

    @staticmethod
    @sarek.kernel
    def static(out):
        out[0] = 2

    @sarek.kernel
    @staticmethod
    def inside(out):
        out[0] = 3


@pytest.mark.parametrize("name", ["attribute", "static", "inside"])
def test_kernels_may_be_class_attributes(name: str, fake_device: Any) -> None:
    """Through the class and through an instance, self is never passed."""
    for owner in (Holder, Holder()):
        getattr(owner, name)[1, 1](np.zeros(1, np.int32))
    assert len(events(fake_device, "launch")) == 2


def test_kernel_made_by_exec(fake_device: Any) -> None:
    """Without source text."""
    space: dict[str, Any] = {"sarek": sarek}
    exec("@sarek.kernel\ndef made(out):\n    out[0] = 5\n", space)
    space["made"][1, 1](np.zeros(1, np.int32))
    assert len(events(fake_device, "launch")) == 1


def test_kernel_from_standard_input() -> None:
    """A program without a file."""
    code = (
        "import numpy as np, sarek_numba as sarek\n"
        "@sarek.kernel\n"
        "def k(out):\n"
        "    out[0] = 5\n"
        "assert k.ir(np.zeros(1, np.int32)).name == 'k'\n"
    )
    subprocess.run([sys.executable, "-"], input=code, text=True, check=True)


# --- inspection -----------------------------------------------------------------------------------


def test_ir_of_values_types_and_annotations(fake_device: Any) -> None:
    """All name one specialisation."""
    kernel = stated.ir()
    assert isinstance(kernel, Kernel)
    assert kernel.name == "stated"
    assert stated.ir(sarek.float32[:], sarek.int32) is kernel
    assert stated.ir(np.zeros(3, np.float32), np.int32(1)) is kernel
    assert scale.ir(sarek.float64[:], sarek.float64[::1], float) is scale.ir(
        np.zeros(2), np.zeros(2), 1.0
    )


def test_ir_without_types_needs_annotations() -> None:
    """And says so."""
    with pytest.raises(errors.ArgumentCountError) as raised:
        scale.ir()
    assert str(raised.value) == (
        "kernel 'scale' states no type for each of its parameters\n"
        "  hint: give arguments or types, as in k.ir(sarek.float32[:], int)"
    )


def test_source_and_needs(fake_device: Any) -> None:
    """Of a device by name, for types."""
    assert stated.source("fake:0") == "// stated"
    assert stated.source(fake_device) is stated.source("fake:0")
    scalars = {need.scalar for need in stated.needs()}
    assert Scalar.FLOAT32 in scalars


def test_dump_prints_stages(
    fake_device: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """SAREK_DUMP names the stages; nothing else is printed."""
    monkeypatch.setenv("SAREK_DUMP", "ir, source")

    @sarek.kernel
    def dumped(out):
        out[0] = 1

    dumped[1, 1](np.zeros(1, np.int32))
    text = capfd.readouterr().err
    headings = [line for line in text.splitlines() if line.startswith("----")]
    assert headings == ["---- ir: dumped", "---- source: dumped"]


def test_kernel_shows_and_documents_itself() -> None:
    """The function's own name and text are kept."""

    @sarek.kernel
    def documented(out):
        """Sets an element."""
        out[0] = 1

    assert repr(documented) == "<sarek kernel documented(out)>"
    assert documented.__doc__ == "Sets an element."
    assert documented.__name__ == "documented"
    assert documented.py_func is documented.__wrapped__


def test_public_names_exist() -> None:
    """Each name in __all__ loads, and its home defines it."""
    missing = []
    for name in sarek.__all__:
        try:
            getattr(sarek, name)
        except (ImportError, AttributeError):
            missing.append(name)
    assert missing == []
    assert set(sarek.__all__) <= set(dir(sarek))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sarek.nothing  # type: ignore[attr-defined]
