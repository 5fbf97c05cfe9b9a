"""The peers, each a module with CONTENDERS and the environment its worker needs.

All run on BENCH_THREADS threads, pinned to as many cores.
"""

from __future__ import annotations

import os
import tempfile
from importlib.util import find_spec
from pathlib import Path

from benchmarks.measure import Peer

THREADS = os.environ.setdefault("BENCH_THREADS", "2")
for _name in (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "POCL_MAX_PTHREAD_COUNT",
    "POCL_CPU_MAX_CU_COUNT", "DPCPP_CPU_NUM_CUS", "CL_CONFIG_CPU_TBB_NUM_WORKERS", "SAREK_THREADS",
):  # fmt: skip
    os.environ[_name] = THREADS


def _vendors(library: Path | None) -> str:
    """A folder of OpenCL vendor files that names this library alone, or none."""
    folder = Path(tempfile.mkdtemp(prefix="bench-opencl-"))
    if library:
        (folder / "vendor.icd").write_text(f"{library}\n")
    return str(folder)


def _opencl(pattern: str, library: Path | None, note: str, **more: str) -> Peer:
    env = {"BENCH_OPENCL": pattern, "OCL_ICD_VENDORS": _vendors(library), **more}
    if library:
        env["LD_LIBRARY_PATH"] = str(library.parent)
    return Peer("benchmarks.peers.opencl_peer", env=env, note=note)


def _sarek(device: str) -> Peer:
    env = {"BENCH_SAREK": device}
    return Peer("benchmarks.peers.sarek_peer", env=env, note=f"this package on {device}")


def _generated(device: str) -> Peer:
    env = {"BENCH_SAREK": device}
    note = f"what this package generates for {device}, buffers kept"
    return Peer("benchmarks.peers.generated_peer", env=env, note=note)


def _peers() -> dict[str, Peer]:
    import sys

    intel = Path(sys.prefix) / "lib" / "libintelocl.so"
    peers = {
        "sarek-native": _sarek("native"),
        "sarek-pocl": _sarek("opencl:pocl:0"),
        "sarek-intel": _sarek("opencl:intel:0"),
        "sarek-pocl-text": _generated("opencl:pocl:0"),
        "sarek-intel-text": _generated("opencl:intel:0"),
        "numpy": Peer("benchmarks.peers.numpy_peer", note="one thread; a library where marked"),
        "numba": Peer("benchmarks.peers.numba_peer", note="njit(parallel=True), fastmath off"),
        "pocl": _opencl("Portable", None, "hand-written OpenCL C"),
        "pocl-exact": _opencl("Portable", None, "the same, no contraction", BENCH_EXACT="1"),
    }
    if intel.exists():
        peers["intel"] = _opencl("Intel", intel, "hand-written OpenCL C")
        peers["intel-exact"] = _opencl("Intel", intel, "the same, no contraction", BENCH_EXACT="1")
    if find_spec("warp"):
        peers["warp"] = Peer("benchmarks.peers.warp_peer", note="CPU launches are serial")
    return peers


PEERS = _peers()
