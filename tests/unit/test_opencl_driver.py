"""Finding OpenCL drivers: nothing at import, all at the first use, and why where there is none."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from opencl_kernels import drivers

from sarek_numba.capability import Capability, Verdict
from sarek_numba.ir.nodes import AtomicOp
from sarek_numba.ir.types import MemSpace, Scalar
from sarek_numba.runtime.device import BackendUnavailable
from sarek_opencl import driver as library
from sarek_opencl.record import _atomic_fact, build_options, has_extended_atomics

needs_device = pytest.mark.skipif(not drivers(), reason="no OpenCL device")


def _python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return done.stdout.strip()


def test_importing_opens_nothing() -> None:
    """The package loads neither pyopencl nor a driver until it is asked for devices."""
    assert _python("import sys, sarek_opencl; print('pyopencl' in sys.modules)") == "False"


@needs_device
def test_wheels_are_found_without_preparation() -> None:
    """PoCL and Intel's runtime, where installed, are devices; the environment is as it was."""
    code = (
        "import os; before = dict(os.environ); from sarek_opencl import backend\n"
        "names = [d.record.name for d in backend.drivers()]\n"
        "changed = {k for k in {**before, **os.environ} if before.get(k) != os.environ.get(k)}\n"
        "print(names, 'OCL_ICD_VENDORS' in changed)"
    )
    environment = {"OCL_ICD_VENDORS": ""}
    if "OCL_ICD_VENDORS" not in os.environ:
        environment = {}
    shown = _python(code, **environment)
    assert shown.endswith("False")
    for distribution, name in (
        ("pocl-binary-distribution", "opencl:pocl:0"),
        ("intel-opencl-rt", "opencl:intel:0"),
    ):
        if _installed(distribution):
            assert name in shown


def _installed(distribution: str) -> bool:
    try:
        importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def test_without_pyopencl_the_reason_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """An absent library is a reason with the command that helps, not an ImportError."""
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    with pytest.raises(BackendUnavailable, match=r"pip install 'pyopencl\[pocl\]'"):
        library.platforms()


@needs_device
@pytest.mark.parametrize("name", sorted(drivers()))
def test_records(name: str) -> None:
    """Names, limits, identity and facts with their evidence."""
    driver = drivers()[name]
    record = driver.record
    assert record.name == name
    assert record.backend == "opencl"
    assert record.limits.threads_per_block >= 256
    assert record.limits.shared_bytes >= 16 * 1024
    assert {"driver", "version", "platform"} <= dict(record.identity).keys()
    atomic = Capability("atomic", Scalar.FLOAT32, AtomicOp.ADD, MemSpace.SHARED)
    fact = record.facts[atomic]
    assert fact.verdict is Verdict.AVAILABLE
    assert "compare-and-exchange" in fact.evidence
    assert Capability("arithmetic", Scalar.FLOAT16) not in record.facts
    assert all(fact.evidence for fact in record.facts.values())
    assert not any(option.startswith("-cl-fast") for option in build_options(driver.device))
    assert driver.target is not None
    assert driver.target.address_bits == (64 if record.is_cpu else 32)


def test_64_bit_atomics_stand_on_an_extension() -> None:
    """Without it they are refused by name; a 32-bit device's 64-bit load is not trusted."""
    bare = SimpleNamespace(extensions="cl_khr_fp64", address_bits=64)
    for scalar in (Scalar.INT64, Scalar.FLOAT64):
        fact = _atomic_fact(bare, AtomicOp.ADD, scalar)
        assert fact.verdict is Verdict.UNAVAILABLE
        assert fact.evidence == "cl_khr_int64_base_atomics is not advertised"
        assert fact.remedy == "use a 32-bit type, or launch on another device"
    assert _atomic_fact(bare, AtomicOp.DEC, Scalar.INT32).verdict is Verdict.AVAILABLE
    narrow = SimpleNamespace(extensions="cl_khr_int64_base_atomics", address_bits=32)
    assert _atomic_fact(narrow, AtomicOp.LOAD, Scalar.UINT64).verdict is Verdict.UNKNOWN
    assert _atomic_fact(narrow, AtomicOp.MAX, Scalar.UINT64).verdict is Verdict.AVAILABLE
    assert not has_extended_atomics(narrow)
