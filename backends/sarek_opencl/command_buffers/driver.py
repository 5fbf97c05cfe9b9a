"""The functions of `cl_khr_command_buffer` and of mutable dispatches, called by ctypes.

Before version 1.0.0 of the first the functions took other parameters, and before 0.9.3 of the
second, so drivers of those have none here. Constants and structures are those of `cl_ext.h`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

from sarek_opencl.driver import load

_BUFFERS, _MUTABLE = "cl_khr_command_buffer", "cl_khr_command_buffer_mutable_dispatch"
_LEAST = {_BUFFERS: (1, 0, 0), _MUTABLE: (0, 9, 3)}
_CAPABILITIES, _REQUIRED = 0x12A9, 0x12AA  # CL_DEVICE_COMMAND_BUFFER_…_KHR
_CAN_AGAIN = 0x4  # CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR
_CAN_CHANGE = 0x12B0  # CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR
_FLAGS, _AGAIN, _MUTABLE_FLAG = 0x1293, 0x1, 0x2
_UPDATABLE = 0x12B1  # CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR
_CHANGES = 0x2 | 0x4 | 0x8  # global size, local size, arguments
_DISPATCHES = 0  # CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR
_NAMES = (
    "clCreateCommandBufferKHR",
    "clReleaseCommandBufferKHR",
    "clFinalizeCommandBufferKHR",
    "clEnqueueCommandBufferKHR",
    "clCommandCopyBufferKHR",
    "clCommandFillBufferKHR",
    "clCommandNDRangeKernelKHR",
    "clUpdateMutableCommandsKHR",
)

Size3 = ctypes.c_size_t * 3
Argument = tuple[int, bytes | None]
"""The size of an argument and its bytes; none for local memory."""


class _Given(ctypes.Structure):
    """cl_mutable_dispatch_arg_khr"""

    _fields_ = [
        ("index", ctypes.c_uint),
        ("size", ctypes.c_size_t),
        ("value", ctypes.c_void_p),
    ]


class _Change(ctypes.Structure):
    """cl_mutable_dispatch_config_khr"""

    _fields_ = [
        ("command", ctypes.c_void_p),
        ("num_args", ctypes.c_uint),
        ("num_svm_args", ctypes.c_uint),
        ("num_exec_infos", ctypes.c_uint),
        ("work_dim", ctypes.c_uint),
        ("arg_list", ctypes.POINTER(_Given)),
        ("arg_svm_list", ctypes.c_void_p),
        ("exec_info_list", ctypes.c_void_p),
        ("global_work_offset", ctypes.c_void_p),
        ("global_work_size", ctypes.POINTER(ctypes.c_size_t)),
        ("local_work_size", ctypes.POINTER(ctypes.c_size_t)),
    ]


@cache
def calls_of(device: Any) -> Calls | None:
    """What a device has of the extensions; None if it is not enough for graphs."""
    versions = {
        each.name: (each.version >> 22, each.version >> 12 & 0x3FF, each.version & 0xFFF)
        for each in _extensions(device)
    }
    if versions.get(_BUFFERS, (0,)) < _LEAST[_BUFFERS]:
        return None
    can, must = _number(device, _CAPABILITIES), _number(device, _REQUIRED)
    if not can & _CAN_AGAIN or must:
        return None
    is_mutable = versions.get(_MUTABLE, (0,)) >= _LEAST[_MUTABLE]
    is_mutable = is_mutable and _number(device, _CAN_CHANGE) & _CHANGES == _CHANGES
    return Calls(device, is_mutable)


def _extensions(device: Any) -> Sequence[Any]:
    """With their versions: since OpenCL 3.0."""
    try:
        found: Sequence[Any] = device.extensions_with_version
    except (load().Error, AttributeError):
        return ()
    return found


def _library() -> Any:
    return ctypes.CDLL(load()._cl.__file__)


def _number(device: Any, parameter: int) -> int:
    """A property of a device that pyopencl has no name for; 0 if there is none."""
    found, size = ctypes.c_uint64(), ctypes.c_size_t()
    handle = ctypes.c_void_p(device.int_ptr)
    status = _library().clGetDeviceInfo(
        handle, parameter, 8, ctypes.byref(found), ctypes.byref(size)
    )
    return 0 if status else found.value


class Calls:
    """The functions of one device's platform. Raises pyopencl's errors."""

    def __init__(self, device: Any, is_mutable: bool) -> None:
        self.is_mutable = is_mutable
        find = _library().clGetExtensionFunctionAddressForPlatform
        find.restype = ctypes.c_void_p
        platform = ctypes.c_void_p(device.platform.int_ptr)
        addresses = {name: find(platform, name.encode()) for name in _NAMES}
        pointer, count, status = ctypes.c_void_p, ctypes.c_uint, ctypes.c_int
        size, no_of = ctypes.c_size_t, (ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p)
        command = (pointer, pointer, pointer)  # buffer, queue, properties

        def function(name: str, *types: Any, gives: Any = status) -> Any:
            return ctypes.CFUNCTYPE(gives, *types)(addresses[name] or 0)

        self._create = function(
            "clCreateCommandBufferKHR", count, pointer, pointer, pointer, gives=pointer
        )
        self._release = function("clReleaseCommandBufferKHR", pointer)
        self._finalize = function("clFinalizeCommandBufferKHR", pointer)
        self._enqueue = function(
            "clEnqueueCommandBufferKHR", count, pointer, pointer, count, pointer, pointer
        )
        self._copy = function(
            "clCommandCopyBufferKHR", *command, pointer, pointer, size, size, size, *no_of, pointer
        )
        self._fill = function(
            "clCommandFillBufferKHR",
            *command, pointer, pointer, size, size, size, *no_of, pointer,
        )  # fmt: skip
        self._launch = function(
            "clCommandNDRangeKernelKHR",
            *command, pointer, count, pointer, pointer, pointer, *no_of, pointer,
        )  # fmt: skip
        self._update = function("clUpdateMutableCommandsKHR", pointer, count, pointer, pointer)

    def create(self, queue: Any) -> int:
        """A command buffer that a queue in order does, as often as it is asked."""
        queues = (ctypes.c_void_p * 1)(queue.int_ptr)
        flags = _AGAIN | (_MUTABLE_FLAG if self.is_mutable else 0)
        properties = (ctypes.c_uint64 * 3)(_FLAGS, flags, 0)
        status = ctypes.c_int()
        made = self._create(1, queues, properties, ctypes.byref(status))
        _check("clCreateCommandBufferKHR", status.value)
        return int(made)

    def release(self, buffer: int) -> None:
        """What is under way ends first."""
        self._release(buffer)

    def finalize(self, buffer: int) -> None:
        """Nothing more is recorded."""
        _check("clFinalizeCommandBufferKHR", self._finalize(buffer))

    def enqueue(self, buffer: int, queue: Any) -> Any:
        """Do all that was recorded; gives the event."""
        queues = (ctypes.c_void_p * 1)(queue.int_ptr)
        event = ctypes.c_void_p()
        status = self._enqueue(1, queues, buffer, 0, None, ctypes.byref(event))
        _check("clEnqueueCommandBufferKHR", status)
        return load().Event.from_int_ptr(event.value, retain=False)

    def copy(self, buffer: int, source: Any, target: Any, begin: int, at: int, size: int) -> None:
        """Record a copy of bytes between memory objects."""
        places = (source.int_ptr, target.int_ptr, begin, at, size)
        status = self._copy(buffer, None, None, *places, 0, None, None, None)
        _check("clCommandCopyBufferKHR", status)

    def fill(self, buffer: int, target: Any, word: bytes, at: int, size: int) -> None:
        """Record that a word is repeated in bytes of a memory object."""
        pattern = ctypes.create_string_buffer(word, len(word))
        status = self._fill(
            buffer, None, None, target.int_ptr, pattern, len(word), at, size, 0, None, None, None
        )
        _check("clCommandFillBufferKHR", status)

    def launch(self, buffer: int, kernel: Any, total: Sequence[int], block: Sequence[int]) -> int:
        """Record a launch with the arguments that are set; gives the command, to be changed."""
        properties = (ctypes.c_uint64 * 3)(_UPDATABLE, _CHANGES, 0) if self.is_mutable else None
        command = ctypes.c_void_p()
        status = self._launch(
            buffer, None, properties, kernel.int_ptr, 3, None, Size3(*total), Size3(*block),
            0, None, None, ctypes.byref(command) if self.is_mutable else None,
        )  # fmt: skip
        _check("clCommandNDRangeKernelKHR", status)
        return command.value or 0

    def change(
        self,
        buffer: int,
        changes: Sequence[tuple[int, Sequence[int], Sequence[int], dict[int, Argument]]],
    ) -> None:
        """Have launches have other sizes and arguments, by their numbers, from now on."""
        made: list[_Change] = []
        kept: list[Any] = []  # until the call returns
        for command, total, block, arguments in changes:
            given = (_Given * len(arguments))()
            for place, (number, (size, value)) in enumerate(arguments.items()):
                content = None if value is None else ctypes.create_string_buffer(value, size)
                kept.append(content)
                at = None if content is None else ctypes.addressof(content)
                given[place] = _Given(number, size, at)
            sizes = Size3(*total), Size3(*block)
            kept.append((given, sizes))
            one = _Change(command=command, num_args=len(arguments), work_dim=3)
            if arguments:
                one.arg_list = given
            one.global_work_size, one.local_work_size = sizes
            made.append(one)
        kinds = (ctypes.c_uint * len(made))(*[_DISPATCHES] * len(made))
        pointers = (ctypes.c_void_p * len(made))(*map(ctypes.addressof, made))
        _check("clUpdateMutableCommandsKHR", self._update(buffer, len(made), kinds, pointers))


def _check(function: str, status: int) -> None:
    cl = load()
    if status:
        raise cl.Error(cl._cl._ErrorRecord(msg="", code=status, routine=function))
