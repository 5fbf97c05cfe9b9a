"""Schedules: calls in order, compiled, run, recorded as graphs and replayed. See docs/realize.md.

`graph_launches` is an int: how often graphs were launched, recordings included.
"""

from __future__ import annotations

from typing import Any

from sarek_numba.realize import copies, run
from sarek_numba.realize.buffers import (
    Buffers,
    ExecContext,
    MultiBuffer,
    resolve,
    resolve_buffer,
)
from sarek_numba.realize.captures import (
    CapturedGraph,
    capture,
    capturing,
    create_linear_with_vars,
)
from sarek_numba.realize.compile import compile_linear
from sarek_numba.realize.copies import buffer_copy
from sarek_numba.realize.data import (
    DEVICE_NUMBER,
    Buffer,
    CopyCall,
    CustomCall,
    KernelCall,
    LaunchInfo,
    Layout,
    Linear,
    Param,
    ProgramCall,
    Select,
    SliceCall,
    Stack,
    Variable,
    View,
    ceiling,
)
from sarek_numba.realize.local_size import optimize_local_size
from sarek_numba.realize.run import run_linear
from sarek_numba.realize.several import copy_shards

__all__ = [
    "DEVICE_NUMBER",
    "Buffer",
    "Buffers",
    "CapturedGraph",
    "CopyCall",
    "CustomCall",
    "ExecContext",
    "KernelCall",
    "LaunchInfo",
    "Layout",
    "Linear",
    "MultiBuffer",
    "Param",
    "ProgramCall",
    "Select",
    "SliceCall",
    "Stack",
    "Variable",
    "View",
    "buffer_copy",
    "capture",
    "capturing",
    "ceiling",
    "compile_linear",
    "copies",
    "copy_shards",
    "create_linear_with_vars",
    "optimize_local_size",
    "resolve",
    "resolve_buffer",
    "run_linear",
]


def __getattr__(name: str) -> Any:
    if name == "graph_launches":
        return run.statistics.launches
    raise AttributeError(f"module 'sarek_numba.realize' has no attribute {name!r}")
