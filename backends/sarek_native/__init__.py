"""Native CPU backend: Sarek IR to vector LLVM IR, lanes are the threads of a block.

`backend` is the entry point. LLVM is loaded when the drivers are asked for, not before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sarek_numba.runtime.device import BackendUnavailable

if TYPE_CHECKING:
    from sarek_numba.runtime.device import Driver


class NativeBackend:
    """The backend of the CPU that this process runs on: one device."""

    name = "native"

    def drivers(self) -> Sequence[Driver]:
        """The one device. Raises BackendUnavailable without llvmlite."""
        try:
            from sarek_native.driver import NativeDriver
        except ImportError as reason:
            raise BackendUnavailable(f"llvmlite can not be imported: {reason}") from reason
        return (NativeDriver(),)


backend = NativeBackend()
