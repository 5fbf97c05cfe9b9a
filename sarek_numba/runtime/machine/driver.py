"""LLVM and CPython, as launchers need them: machine code in memory, and functions of Python of it.

llvmlite and ctypes are used here and in the drivers of backends alone.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from sarek_numba.runtime import disk

CLOCK = getattr(time, "CLOCK_MONOTONIC", 0)
_FAST_CALL = 0x80  # METH_FASTCALL: called with a C array of the arguments
_KIND = "launchers"


class _Method(ctypes.Structure):
    """PyMethodDef"""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


def is_usual() -> bool:
    """Whether this is CPython with 64 bits and a lock around all objects, on a POSIX system."""
    is_locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    return (
        sys.implementation.name == "cpython"
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and sys.byteorder == "little"
        and is_locked
        and os.name == "posix"
    )


def word(address: int) -> int:
    """The int64 at an address."""
    return ctypes.c_int64.from_address(address).value


def symbol(name: str) -> int | None:
    """The address of a function of CPython or of the C library."""
    for library in (ctypes.pythonapi, ctypes.CDLL(None)):
        function = getattr(library, name, None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value
    return None


class Code:
    """A launcher in memory. `functions` are those that its text declares.

    `ready` is False where a function that it calls is missing.
    """

    def __init__(self, text: str, objects: Mapping[str, object]) -> None:
        self._objects = dict(objects)  # they live as long
        self._engine: Any = None
        self._method: _Method | None = None
        names = {line.split("@")[1].split("(")[0] for line in text.splitlines()
                 if line.startswith("declare ") and "@llvm." not in line}  # fmt: skip
        for name in names:
            found = symbol(name)
            if found is None:
                return
            llvm.add_symbol(name, found)
        self._engine = _loaded(text)
        for name, each in objects.items():
            where = self._engine.get_global_value_address(name)
            ctypes.c_int64.from_address(where).value = id(each)
        entry = self._engine.get_function_address("launch")
        self._method = _Method(b"launch", entry, _FAST_CALL, None)

    @property
    def ready(self) -> bool:
        return self._method is not None

    def function(self, table: Any) -> Callable[..., Any]:
        """A Python function, which is given a table and the arguments; `self` must live as long."""
        assert self._method is not None, "it is ready"
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
        make.restype = ctypes.py_object
        made: Callable[..., Any] = make(ctypes.addressof(self._method), table, None)
        return made


_lock = threading.Lock()


def _loaded(text: str) -> Any:
    """An engine that has the machine code of a text, from the cache on disk if it is there."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    key = disk.key_of("launcher", _identity(), text)
    code = disk.load(_KIND, key)
    made: list[bytes] = []
    with _lock:
        target = llvm.Target.from_default_triple()
        features = llvm.get_host_cpu_features().flatten()
        machine = target.create_target_machine(llvm.get_host_cpu_name(), features, opt=2)
        module = llvm.parse_assembly("" if code else text)
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        engine = llvm.create_mcjit_compiler(module, machine)
        if code:
            engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        else:
            engine.set_object_cache(lambda _, compiled: made.append(bytes(compiled)))
        engine.finalize_object()
    for each in made:
        disk.save(_KIND, key, each)
    return engine


def _identity() -> tuple[str, ...]:
    return (
        llvmlite.__version__,
        ".".join(map(str, llvm.llvm_version_info)),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
        platform.machine(),
        llvm.get_process_triple(),
        *disk.of_python(),
    )
