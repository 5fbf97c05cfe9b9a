"""Texts for devices that are not here, compiled for the CPU and run as devices of the tests.

`device("shim:cuda")` takes what the CUDA backend gives NVRTC, word for word. `machine.cpp`
runs the blocks; a header for each language (`cuda.h`, `hip.h`, `metal_stdlib`) spells its names. So
every test that runs on all executors checks these texts against CPython and NumPy. They are no
devices of `sarek.devices()`.
"""

from tests.toolchains.shim.driver import LANGUAGES, Language, device, is_declared, why_not

__all__ = ["LANGUAGES", "Language", "device", "is_declared", "why_not"]
