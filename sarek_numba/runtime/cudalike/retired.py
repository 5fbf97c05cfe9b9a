"""Modules that nobody has any more, until the device can let them go.

A driver may wait for its device before it unloads code, also for work that the host holds back; and
finalizers run anywhere. So a module is only noted when its last kernel goes, and is unloaded before
a later kernel is built, if the device has nothing to do then.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from sarek_numba.runtime.cudalike.access import check
from sarek_numba.runtime.work import is_idle

if TYPE_CHECKING:
    from sarek_numba.runtime.cudalike.owner import Owner


class Retired:
    """The modules of one device. Safe to use from any thread."""

    def __init__(self) -> None:
        self._modules: deque[Any] = deque()

    def __len__(self) -> int:
        return len(self._modules)

    def follow(self, holder: object, module: Any) -> None:
        """A module is of use as long as an object is."""
        weakref.finalize(holder, self._modules.append, module).atexit = False

    def let_go(self, owner: Owner) -> None:
        """Unload all, if the device has nothing to do. Raises BackendError."""
        if not self._modules or owner.access.is_lost or not _has_done_all(owner):
            return
        with check("unloading a kernel", owner.access):
            while self._modules:
                try:
                    module = self._modules.popleft()
                except IndexError:  # another thread had the last one
                    return
                owner.access.api.unload(module)


def _has_done_all(owner: Owner) -> bool:
    """Whether nothing is under way; of launches that are waited for, one may be interrupted."""
    return is_idle(owner.streams) and owner.streams.status(owner.streams.last()) == 0
