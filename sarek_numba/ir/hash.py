"""The content hash of a kernel: the key of every memo and cache.

Equal hashes mean equal canonical texts: the same kernel but for its own name, spans and the ids of
its variables, so rebuilding a kernel gives the hash again. Variable names count. A native function
has no text and counts by its module and qualified name.
"""

from __future__ import annotations

import hashlib

from sarek_numba.ir.native import NativeRun
from sarek_numba.ir.nodes import Kernel
from sarek_numba.ir.text import canonical_text


def content_hash(kernel: Kernel) -> str:
    """The hash as hexadecimal digits."""
    digest = hashlib.sha256(canonical_text(kernel).encode("utf-8", "surrogatepass"))
    if kernel.native_function is not None:
        digest.update(f"native {_qualified(kernel.native_function.run)}".encode())
    return digest.hexdigest()


def _qualified(run: NativeRun) -> str:
    owner: object = run if hasattr(run, "__qualname__") else type(run)
    return f"{owner.__module__}.{getattr(owner, '__qualname__', '')}"
