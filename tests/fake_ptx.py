"""The declarations of kernels as NVRTC's PTX has them, of CUDA C++, for a driver of tests."""

from __future__ import annotations

import re

_KERNEL = re.compile(r"__global__ void\s+(\w+)\s*\(([^)]*)\)")
_TYPES = {"double": ".f64", "float": ".f32", "long": ".u64", "short": ".u16", "char": ".u8"}


def declarations(source: str) -> str:
    """PTX without any body; names are not mangled, as the fake driver's are not."""
    made = [".version 8.0", ".address_size 64"]
    for name, inside in _KERNEL.findall(source):
        given = [each for each in inside.split(",") if each.strip()]
        parts = [f".param {_type(each)} {name}_param_{k}" for k, each in enumerate(given)]
        made.append(f".visible .entry {name}({', '.join(parts)}) {{ ret; }}")
    return "\n".join(made)


def _type(declared: str) -> str:
    if "*" in declared:
        return ".u64"
    words = declared.split()
    return next((type for word, type in _TYPES.items() if word in words), ".u32")
