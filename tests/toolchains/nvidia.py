"""NVIDIA's compilers of CUDA C++: NVRTC, or nvcc where there is none."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

TARGETS = ("sm_75", "sm_80", "sm_90a", "sm_100")
ENDS = ("sm_75", "sm_100")  # of them, by age
EXACT = ("--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false")
QUICK = "--Ofast-compile=max"  # what is asked is whether it compiles


@cache
def nvrtc() -> Any:
    """The bindings of NVRTC, None where it cannot be loaded."""
    try:
        from cuda.bindings import nvrtc as bindings

        status, *_ = bindings.nvrtcVersion()
    except Exception:  # whatever a loader raises, there is no NVRTC
        return None
    return bindings if status == bindings.nvrtcResult.NVRTC_SUCCESS else None


def why_not() -> str:
    """Why there is no compiler here; empty where there is one."""
    return "" if nvrtc() or shutil.which("nvcc") else "there is neither NVRTC nor nvcc"


def refusal(text: str, target: str) -> str:
    """What the compiler has against a program; empty where it makes code of it."""
    return _by_nvrtc(text, target)[0] if nvrtc() else by_nvcc(text, target)


def ptx(text: str) -> str:
    """The PTX that NVRTC makes of a program, as a launch would have it."""
    log, code = _by_nvrtc(text, "compute_90", quick=False)
    assert not log, log
    return code


def _by_nvrtc(text: str, target: str, quick: bool = True) -> tuple[str, str]:
    """The log where the program is refused, else nothing and its PTX."""
    api = nvrtc()
    status, program = api.nvrtcCreateProgram(text.encode(), b"program.cu", 0, [], [])
    assert status == api.nvrtcResult.NVRTC_SUCCESS
    options = [f"--gpu-architecture={target}", *EXACT, *([QUICK] if quick else [])]
    (status,) = api.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
    if status == api.nvrtcResult.NVRTC_SUCCESS:
        code = bytes(api.nvrtcGetPTXSize(program)[1] + 2)
        api.nvrtcGetPTX(program, code)
        log = b""
    else:
        code, log = b"", bytes(api.nvrtcGetProgramLogSize(program)[1] + 2)
        api.nvrtcGetProgramLog(program, log)
    api.nvrtcDestroyProgram(program)
    return log.decode().rstrip("\0"), code.decode().rstrip("\0")


def by_nvcc(text: str, target: str) -> str:
    """What nvcc has against a program."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "program.cu")
        file.write_text(text)
        command = ["nvcc", "-cubin", "-w", f"-arch={target}", "-fmad=false", str(file)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr or "nvcc failed"
