"""Tests of vectors, streams, windows and launches once more, on the fake of the Metal framework.

In a process of its own: here the device is not among `sarek.devices()`. What kernels compute is not
looked at: texts have tests of their own. What needs float64 is skipped by name.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = "streams window vectors bad_launches execute".split()
LEAST = 100  # tests in them
NOT = "corpus or parts_of_warps"


@pytest.mark.slow
@pytest.mark.cpu_only
def test_on_the_fake_device() -> None:
    """All pass, and no fewer than there are."""
    command = [sys.executable, "-m", "pytest", "-q", "--fake-metal", "-p", "no:cacheprovider"]
    files = [f"tests/conformance/test_{file}.py" for file in FILES]
    chosen = ["-k", f"metal:0 and not ({NOT})", *files]
    done = subprocess.run([*command, *chosen], cwd=ROOT, capture_output=True, text=True)
    found = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert found
    assert int(found[1]) >= LEAST
