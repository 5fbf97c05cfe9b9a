"""Vulkan devices of version 1.2 and up that have buffer device addresses.

Importing this package opens nothing.
"""

from sarek_vulkan.runtime import backend

__all__ = ["backend"]
