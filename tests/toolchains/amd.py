"""Clang's amdgcn target as a compiler of HIP C++, without ROCm: see `hip_prelude.h`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

TARGETS = ("gfx90a", "gfx942", "gfx1100", "gfx1201")
ENDS = ("gfx90a", "gfx1201")  # of them, by age
_NAMES = ("clang-19", "clang-20", "clang-21", "clang-22")  # gfx1201 is known since 19
_OPTIONS = """
    -x hip --cuda-device-only -nogpulib -nogpuinc -D__HIPCC_RTC__ -fdeclspec -w -O1 -S
    -include __clang_hip_runtime_wrapper.h
""".split()


def compiler() -> str | None:
    """The name of a clang that knows the targets, None where there is none."""
    return next((name for name in _NAMES if shutil.which(name)), None)


def why_not() -> str:
    """Why there is no compiler here; empty where there is one."""
    return "" if compiler() else "there is no clang 19 or later"


def assembly(text: str, target: str) -> tuple[str, str]:
    """What the compiler has against a program, and its assembly where that is nothing."""
    command = [compiler() or "", *_OPTIONS, f"--offload-arch={target}", "-include"]
    command += [str(Path(__file__).with_name("hip_prelude.h")), "-", "-o", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    return (done.stderr or "clang failed", "") if done.returncode else ("", done.stdout)
