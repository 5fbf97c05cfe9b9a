"""The context of a device, and errors of its driver as ours.

Contexts are those that other libraries share. A thread that has no context gets it for good; one
that has another gets ours for the duration of a call.
"""

from __future__ import annotations

import threading
from typing import Any

from sarek_numba.errors import BackendError, DeviceLost, LaunchFailed, OutOfMemory
from sarek_numba.runtime.cudalike.api import Api, ApiError


class Access:
    """The context of one device. As a context manager it is that of the thread meanwhile.

    `lost` is what took the device away, in words.
    """

    def __init__(self, api: Api, device: Any, name: str) -> None:
        self.api = api
        self.device = device
        self.name = name
        self.launch = api.launch
        self.lost: str | None = None
        self._context = 0
        self._opening = threading.RLock()

    def refuse_lost(self) -> None:
        """Raise DeviceLost where nothing works any more."""
        if self.api.framework.forked:
            raise DeviceLost(
                f"{self.name} was opened before this process was forked, and "
                f"{self.api.framework.name} does not work in forked processes\n"
                '  hint: multiprocessing.set_start_method("spawn"), or launch on the device '
                "'native'"
            )
        if self.lost is not None:
            raise DeviceLost(self.lost)

    @property
    def is_lost(self) -> bool:
        """Whether nothing works any more."""
        return self.api.framework.forked or self.lost is not None

    @property
    def context(self) -> int:
        """The primary context."""
        if not self._context:
            with self._opening:
                if not self._context:
                    self._context = self.api.primary_context(self.device)
        return self._context

    def enter(self) -> bool:
        """Have the thread use the context; whether `leave` has to be called."""
        context, api = self.context, self.api
        current = api.current_context()
        if current == context:
            return False
        if not current:
            api.set_context(context)
            return False
        api.push_context(context)
        return True

    def leave(self) -> None:
        """Have the thread use the context that it used before."""
        self.api.pop_context()


class check:  # noqa: N801 # it is used as a function
    """Turn an error of the driver during `action` into the error of this package; bytes `asked`.

    The device's context is that of the thread meanwhile.
    """

    __slots__ = ("_access", "_action", "_asked", "_pushed")

    def __init__(self, action: str, access: Access, asked: int = 0) -> None:
        self._action = action
        self._access = access
        self._asked = asked
        self._pushed = False

    def __enter__(self) -> None:
        self._access.refuse_lost()
        try:
            self._pushed = self._access.enter()
        except ApiError as error:
            raise failure(error, "opening a context", self._access) from error

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if isinstance(error, ApiError):
                raise failure(error, self._action, self._access, self._asked) from error
        finally:
            if self._pushed:
                self._access.leave()


def failure(error: ApiError, action: str, access: Access, asked: int = 0) -> BackendError:
    """The error of this package for an error of the driver."""
    message = f"{action} on {access.name} failed: {error}"
    framework = access.api.framework
    if error.code in framework.sticky:
        if access.lost is None:
            access.lost = (
                f"{access.name} was lost: {action} failed with {error.name}: "
                f"{framework.sticky[error.code]}; nothing of {framework.name} works in this "
                "process any more\n"
                "  hint: run the launch on the device 'interpreter', which says what is wrong with "
                "it; then start the program again"
            )
        return DeviceLost(access.lost)
    if error.code == framework.out_of_memory:
        free = _free(access)
        return OutOfMemory(f"{message}: {asked} bytes, and {free} are free", asked, free)
    return LaunchFailed(message) if "launch" in action else BackendError(message)


def _free(access: Access) -> int:
    try:
        return access.api.free_memory()
    except ApiError:
        return 0
