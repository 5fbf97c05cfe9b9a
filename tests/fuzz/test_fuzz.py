"""Random structured kernels: every executor gives what CPython gives.

All `KERNELS` run on the oracle and, where it is present, on Intel's OpenCL runtime. Native code and
PoCL take seconds to compile a batch, so `make test` gives them the first `FEWER`; `make fuzz` gives
everything to all.
"""

from __future__ import annotations

import pytest

import sarek_numba as sarek
from tests.fuzz.batch import Batch, on_device
from tests.fuzz.generator import generate
from tests.fuzz.programs import Form

KERNELS, FEWER, SIZE = 300, 40, 10
SLOW = ("native", "opencl:pocl:0")
DEVICES = tuple(device.name for device in sarek.devices())


@pytest.mark.parametrize("first", range(0, KERNELS, SIZE))
def test_executors_equal_cpython(first):
    """No executor differs on the kernels of these seeds."""
    batch = Batch([generate(seed) for seed in range(first, first + SIZE)], Form.FUNCTION)
    assert len(batch.expected) > batch.left_out
    for name in DEVICES:
        if first < FEWER or name not in SLOW:
            found = list(batch.differences(name, on_device(name)))
            assert not found, "\n\n".join(map(str, found))


def test_a_seed_gives_one_program():
    assert generate(5).text() == generate(5).text()
    assert generate(5).text() != generate(6).text()


def test_a_wrong_executor_is_found():
    """Positive control: an executor that runs nothing differs."""
    batch = Batch([generate(seed) for seed in range(3)], Form.FUNCTION)
    assert list(batch.differences("nothing", lambda *_: None))
