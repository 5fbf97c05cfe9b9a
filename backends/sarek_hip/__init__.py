"""AMD devices through HIP C++, hiprtc and the HIP runtime.

Importing this package opens nothing.
"""

from sarek_hip.runtime import backend

__all__ = ["backend"]
