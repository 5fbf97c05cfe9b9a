"""Metal's text as the shim takes it: word for word, but for what C++ has no words for.

A kernel's parameters have attributes, which say what fills them: the wrapper of a kernel is written
from these. An array of the threadgroup's is one of the thread of the host that runs the block.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sarek_metal.memory import Layout
from sarek_numba.ir.nodes import ParamDecl

_HEAD = re.compile(r"kernel void\s+(\w+)\((.*?)\n?\)\s*\{", re.DOTALL)
_PARAMETER = re.compile(r"\s*(.+?) ?(\w+) \[\[(\w+)(?:\((\d+)\))?\]\]\s*", re.DOTALL)
_ATTRIBUTE = re.compile(r" \[\[\w+(?:\(\d+\))?\]\]")
_VECTORS = re.compile(
    r"^thread(s|groups)?_p(osition_in|er)_(grid|threadgroup)$|^threadgroup_position"
)
_ARRAY = re.compile(r"^( +)threadgroup ([\w ]+?) (\w+)\[(\d+)\];", re.MULTILINE)


def kernel_names(text: str) -> list[str]:
    """The kernels of a program."""
    return [head[1] for head in _HEAD.finditer(text)]


def as_cpp(text: str, name: str, run: str, shared_bytes: int, kernel: str | None = None) -> str:
    """A program in a namespace, and a function that takes the arguments of a kernel, of the first.

    These are the addresses of its buffers, then that of the structure of its numbers.
    """
    head = next(head for head in _HEAD.finditer(text) if kernel in (None, head[1]))
    given = []
    for parameter in head[2].split(","):
        found = _PARAMETER.fullmatch(parameter)
        if not found:
            assert parameter.strip() == "void", f"no attribute tells what fills {parameter!r}"
            continue
        type, _, attribute, place = found.groups()
        if attribute == "buffer" and type.endswith("&"):
            type = type.removeprefix("constant ").removesuffix("&").strip()
            given.append(f"*({_in_namespace(type, name)} *)given[{place}]")
        elif attribute == "buffer":
            given.append(f"({_in_namespace(type, name)})given[{place}]")
        elif attribute == "threadgroup":
            given.append(f"{name}::region")
        else:
            axis = ".x" if type in ("uint", "ushort") and _VECTORS.match(attribute) else ""
            given.append(f"attribute::{attribute}(){axis}")
    region = f"static thread_local ulong region[{-(-shared_bytes // 8)}];\n"
    code = _ATTRIBUTE.sub("", _ARRAY.sub(r"\1static thread_local \2 \3[\4];", text))
    return (
        f"namespace {name} {{\n{region}{code}}}\n"
        f'extern "C" void {run}(void **given) {{ {name}::{head[1]}({", ".join(given)}); }}\n'
    )


def _in_namespace(type: str, name: str) -> str:
    """The type of a pointer; those with names of the program's own are found in its namespace."""
    return re.sub(r"\b(aliasing_\w+|sarek_arguments)", rf"{name}::\1", type)


def packer(params: Sequence[ParamDecl]) -> Callable[[Sequence[Any]], tuple[Any, Any]]:
    """A function of a launch's arguments: their addresses, and what must live as long."""
    layout = Layout(params)

    def pack(values: Sequence[Any]) -> tuple[Any, Any]:
        buffers = [values[k].ctypes.data for k in layout.buffers]
        numbers = np.frombuffer(layout.pack(values) or b"\0", np.uint8)
        addresses = [*buffers, numbers.ctypes.data]
        return (ctypes.c_void_p * len(addresses))(*addresses), numbers

    return pack
