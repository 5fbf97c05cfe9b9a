"""NVIDIA devices through CUDA C++, NVRTC and the driver API.

Importing this package opens nothing.
"""

from sarek_cuda.runtime import backend

__all__ = ["backend"]
