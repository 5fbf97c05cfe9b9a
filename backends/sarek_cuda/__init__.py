"""NVIDIA devices through CUDA C++, NVRTC and the driver API.

Importing this package opens nothing.
"""
