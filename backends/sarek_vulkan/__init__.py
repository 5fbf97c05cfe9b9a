"""Vulkan devices, whose kernels are SPIR-V that this package writes itself.

Importing this package opens nothing.
"""
