"""The content hash of a kernel: the key of every memo and cache.

Equal hashes mean equal canonical texts: the same kernel but for its own name, spans and the ids of
its variables, so rebuilding a kernel gives the hash again. Variable names count. A native function
has no text and counts by its module and qualified name.
"""

from __future__ import annotations

import hashlib

from sarek_numba.ir.nodes import Kernel
from sarek_numba.ir.text import canonical_text


def content_hash(kernel: Kernel) -> str:
    """The hash as hexadecimal digits."""
    digest = hashlib.sha256(canonical_text(kernel).encode("utf-8", "surrogatepass"))
    if kernel.native_function is not None:
        run = kernel.native_function.run
        digest.update(f"native {run.__module__}.{run.__qualname__}".encode())
    return digest.hexdigest()
