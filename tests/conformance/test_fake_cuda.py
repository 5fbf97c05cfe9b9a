"""The tests of vectors, streams, windows and launches once more, on the fake CUDA device.

In processes of their own: here the device is not among `sarek.devices()`. Kernels are compiled and
run by the shim of `tests/toolchains`, so the corpus and warps are among them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "tests/conformance/test_streams.py": 20,
    "tests/conformance/test_window.py": 20,
    "tests/conformance/test_vectors.py": 12,
    "tests/conformance/test_bad_launches.py": 40,
    "tests/conformance/test_execute.py": 8,
    "tests/conformance/test_cuda_sources.py": 5,
    "tests/conformance/test_cuda_interface.py": 4,
    "tests/conformance/test_cuda_arrays.py": 24,
    "tests/conformance/test_corpus.py": 240,
    "tests/conformance/test_warps.py": 20,
    "tests/unit/test_fast_path_devices.py": 40,
    "tests/unit/test_pinned.py": 5,
}
NOT = "the_corpus_with"  # the corpus once more for each kind of window


@pytest.mark.slow
@pytest.mark.cpu_only
@pytest.mark.parametrize("file", FILES)
def test_on_the_fake_device(file: str) -> None:
    """All pass, and no fewer than there are."""
    command = [sys.executable, "-m", "pytest", "-q", "--fake-cuda", "-p", "no:cacheprovider"]
    chosen = ["-k", f"(cuda:0 or two_devices) and not ({NOT})", file]
    done = subprocess.run([*command, *chosen], cwd=ROOT, capture_output=True, text=True)
    found = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert found
    assert int(found[1]) >= FILES[file]
