"""Tests of vectors, streams, windows and sources once more, on the fake HIP device.

In a process of its own: here the device is not among `sarek.devices()`. What CUDA's runtime shares
is looked at more closely on its own fake (`test_fake_cuda`); here every call goes through the types
of HIP's functions of C. What kernels compute is not looked at: texts have tests of their own.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = """
    conformance/test_streams.py conformance/test_window.py conformance/test_execute.py
    conformance/test_hip_sources.py unit/test_pinned.py
""".split()
LEAST = 75  # tests in them
NOT = "corpus or parts_of_warps"  # texts that are run elsewhere; warps, which the fake has not


@pytest.mark.slow
@pytest.mark.cpu_only
def test_on_the_fake_device() -> None:
    """All pass, and no fewer than there are."""
    command = [sys.executable, "-m", "pytest", "-q", "--fake-hip", "-p", "no:cacheprovider"]
    chosen = ["-k", f"hip:0 and not ({NOT})", *(f"tests/{file}" for file in FILES)]
    done = subprocess.run([*command, *chosen], cwd=ROOT, capture_output=True, text=True)
    found = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert found
    assert int(found[1]) >= LEAST
