"""The calls that are made of a driver of CUDA's form, and what differs between such drivers.

Devices, modules, functions, streams and events are the API's own objects; contexts and addresses of
memory are numbers. A context is that of a thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sarek_numba.runtime.cache import clear_launch_cache


class ApiError(Exception):
    """A status of a call that is no success."""

    def __init__(self, code: int, name: str, text: str = "") -> None:
        self.code = code
        self.name = name
        super().__init__(f"{name} ({text})" if text else name)


class ImageError(Exception):
    """A module that the driver does not take, with its log."""

    def __init__(self, error: ApiError, log: str) -> None:
        self.error = error
        self.log = log
        super().__init__(str(error))


@dataclass(slots=True, eq=False)
class Framework:
    """A driver's name, its compiler's, and the statuses that are told apart.

    After those that are `sticky` nothing works in the process. A kernel is told before it may have
    more than `usual_shared` bytes of shared memory, declared ones and dynamic ones together.
    `attribute` is what names of a function's attributes begin with. `forked` is true in a process
    that was forked after the driver was loaded.
    """

    name: str
    compiler: str
    attribute: str
    usual_shared: int
    out_of_memory: int
    not_found: int
    out_of_resources: int
    sticky: Mapping[int, str]
    forked: bool = False

    def watch_forks(self, is_open: Callable[[], bool]) -> None:
        """The driver does not work in a child: every launch there is to find that out."""

        def after() -> None:
            self.forked = is_open()
            if self.forked:
                clear_launch_cache()

        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=after)


class Api(Protocol):
    """The calls. Each raises ApiError."""

    framework: Framework

    # --- devices ---

    def devices(self) -> list[Any]:
        """All devices."""
        ...

    # --- contexts ---

    def primary_context(self, device: Any) -> int:
        """The context of a device, which is kept; no context is 0."""
        ...

    def current_context(self) -> int:
        """That of this thread, or 0."""
        ...

    def set_context(self, context: int) -> None:
        """Have this thread use a context."""
        ...

    def push_context(self, context: int) -> None:
        """Have this thread use a context until `pop_context`."""
        ...

    def pop_context(self) -> None:
        """Have this thread use the context that it used before."""
        ...

    # --- code ---

    def load(self, image: bytes) -> Any:
        """A module. Raises ImageError with the log of the driver."""
        ...

    def unload(self, module: Any) -> None:
        """Give a module up, whose kernels nobody launches any more."""
        ...

    def function(self, module: Any, name: str) -> Any:
        """A kernel of a module."""
        ...

    def finish_loading(self, function: Any) -> None:
        """Have the code of a kernel on the device, so that no launch loads it."""
        ...

    def function_names(self, module: Any) -> Sequence[str]:
        """The names of a module's kernels, as the linker has them, where the driver tells them."""
        ...

    def parameter_sizes(self, function: Any) -> tuple[int, ...] | None:
        """Bytes of each parameter, where the driver tells them."""
        ...

    def function_attribute(self, function: Any, name: str) -> int:
        """An attribute by its name, without the prefix."""
        ...

    def set_function_attribute(self, function: Any, name: str, value: int) -> None:
        """An attribute by its name, without the prefix."""
        ...

    @property
    def launch(self) -> Any:
        """The call that launches: (function, grid, block, bytes, stream, addresses, 0) beside each
        other; it gives a tuple with the status, which is false for success."""
        ...

    def check(self, result: tuple[Any, ...]) -> Any:
        """Raise the error of what `launch` gave."""
        ...

    def calls_for_machine_code(self) -> tuple[int, int] | None:
        """The addresses of the calls that launch and that tell the context; None where they are not
        known. Both are of C; the latter writes a pointer or a number to where it is told.
        """
        ...

    def context_word(self, context: int) -> int:
        """A context as that call writes it, with zeros above."""
        ...

    def number(self, handle: Any) -> int:
        """A function or a stream as machine code passes it."""
        ...

    def status(self, code: int) -> Any:
        """The status of a call that machine code made, as `launch` gives it."""
        ...

    # --- memory ---

    def allocate(self, size: int) -> int:
        """The address of so many bytes of the device's memory."""
        ...

    def free(self, address: int) -> None:
        """Give memory back."""
        ...

    def allocate_host(self, size: int) -> int:
        """The address of so many page-locked bytes of the host, for all devices."""
        ...

    def free_host(self, address: int) -> None:
        """Give page-locked memory back."""
        ...

    def free_memory(self) -> int:
        """Bytes that the device has left."""
        ...

    def copy_in(self, to: int, host: int, size: int, stream: Any) -> None:
        """From the host, in a stream."""
        ...

    def copy_out(self, host: int, of: int, size: int, stream: Any) -> None:
        """To the host, in a stream."""
        ...

    def copy_between(
        self, to: int, to_context: int, of: int, of_context: int, size: int, stream: Any
    ) -> None:
        """From one address of devices to another, in a stream of the context `to_context`."""
        ...

    # --- streams and events ---

    def stream(self) -> Any:
        """A stream that does not wait for the default one."""
        ...

    def finish_stream(self, stream: Any) -> None:
        """Wait for all that a stream was given."""
        ...

    def event(self, *, timed: bool) -> Any:
        """An event; only one that is timed has a time."""
        ...

    def record(self, event: Any, stream: Any) -> None:
        """Have an event happen behind all that a stream was given."""
        ...

    def has_happened(self, event: Any) -> bool:
        """Whether a recorded event has."""
        ...

    def wait_for(self, event: Any) -> None:
        """Return when an event has happened."""
        ...

    def follow(self, stream: Any, event: Any) -> None:
        """What a stream is given from now on begins after an event."""
        ...

    def elapsed_ms(self, start: Any, end: Any) -> float:
        """Between two timed events that have happened."""
        ...
