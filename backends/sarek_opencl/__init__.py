"""OpenCL devices: PoCL, Intel's CPU runtime, NVIDIA and whatever else the loader finds.

Importing this package opens nothing.
"""

from sarek_opencl.runtime import backend

__all__ = ["backend"]
