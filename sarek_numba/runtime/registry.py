"""Which devices there are, and which one a launch goes to.

Backends are found by the entry-point group `sarek_numba.backends`, and by `FIRST_PARTY` in a
checkout that is not installed. A backend is loaded and asked for its devices once, on first use;
one that cannot load has no devices and a reason, and never makes an enumeration fail.
`SAREK_DISABLE` and `SAREK_DEVICE` are read at each call.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, overload

from sarek_numba import settings
from sarek_numba.capability import Capability, DeviceRecord, Limits, Verdict, fact_of
from sarek_numba.display import table as html_table
from sarek_numba.errors import UnknownDevice
from sarek_numba.ir.nodes import AtomicOp
from sarek_numba.ir.types import MemSpace, Scalar
from sarek_numba.runtime.allocator import Allocator, MemoryStatistics
from sarek_numba.runtime.cache import clear_launch_cache
from sarek_numba.runtime.device import Backend, BackendUnavailable, Driver
from sarek_numba.runtime.plans import Acceptors
from sarek_numba.runtime.promised import recalled
from sarek_numba.runtime.work import finish_all

if TYPE_CHECKING:
    from sarek_numba.runtime.stream import Stream

ENTRY_POINT_GROUP = "sarek_numba.backends"
ORDER = ("cuda", "hip", "opencl", "vulkan", "metal", "native", "interpreter")
FIRST_PARTY = {
    "cuda": "sarek_cuda",
    "hip": "sarek_hip",
    "opencl": "sarek_opencl",
    "metal": "sarek_metal",
    "vulkan": "sarek_vulkan",
    "native": "sarek_native",
    "interpreter": "sarek_interp",
}
_CHECKOUT_ROOTS = ("backends", "interp")
_FALLBACK_DEVICE = "native"


class Device:
    """One device, as users hold it. Devices are unique: compare them with `is` or `==`."""

    __slots__ = ("driver",)

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    @property
    def name(self) -> str:
        """The canonical name, such as "native" or "opencl:pocl:0"."""
        return self.driver.record.name

    @property
    def record(self) -> DeviceRecord:
        """Everything known of the device, as data."""
        return self.driver.record

    @property
    def limits(self) -> Limits:
        """The limits of a launch."""
        return self.driver.record.limits

    def supports(
        self,
        feature: str,
        scalar: Scalar | str | type | None = None,
        op: AtomicOp | str | None = None,
        space: MemSpace | str | None = None,
        *,
        function: str | None = None,
        target: Scalar | str | type | None = None,
    ) -> bool:
        """Whether a capability is available, as `supports("atomic", "float32", "add", "shared")`.

        `capability.FEATURES` has all features. An unknown capability is not supported. Raises
        ValueError for a word that names nothing.
        """
        capability = Capability(
            feature,
            None if scalar is None else _scalar(scalar),
            None if op is None else AtomicOp(op),
            None if space is None else MemSpace(space),
            function,
            None if target is None else _scalar(target),
        )
        return fact_of(capability, self.record).verdict is Verdict.AVAILABLE

    def stream(self) -> Stream:
        """A new stream. Raises StreamError with reason "unsupported" on a device that has none."""
        from sarek_numba.runtime.stream import Stream

        return Stream(self)

    def synchronize(self) -> None:
        """Wait for all work of this device, on whatever stream. Raises BackendError."""
        finish_all(self.driver.queues, "synchronize")

    def memory_statistics(self) -> MemoryStatistics:
        """What vectors have of the device's memory, what is kept for later ones, and the peak."""
        memory, allocator = self.driver.memory, self._allocator
        found = MemoryStatistics() if allocator is None else allocator.statistics
        pinned = None if memory is None else memory.pinned
        return found if pinned is None else replace(found, pinned=pinned.bytes)

    def free_cached(self) -> int:
        """Give up the memory that is kept for later vectors; gives its bytes."""
        return 0 if self._allocator is None else self._allocator.flush()

    @property
    def _allocator(self) -> Allocator | None:
        memory = self.driver.memory
        return None if memory is None else memory.allocator

    def __repr__(self) -> str:
        return f"<sarek device {self.name}: {self.record.description}>"


def _scalar(name: Scalar | str | type) -> Scalar:
    if isinstance(name, Scalar | str):
        return Scalar(name)
    return Scalar(getattr(name, "name", None) or name.__name__)


@dataclass(frozen=True, slots=True)
class Presence:
    """One line of `devices(why=True)`: a device, or the reason why a backend has none."""

    name: str
    device: Device | None
    reason: str

    def __iter__(self) -> Iterator[object]:
        return iter((self.name, self.device, self.reason))


class PresenceTable(list[Presence]):
    """What `devices(why=True)` gives: a list that shows itself as a table."""

    def __repr__(self) -> str:
        from rich.console import Console  # slow to import, and only a display needs it
        from rich.table import Table

        table = Table("device", "present", "reason or description")
        for line in self:
            table.add_row(line.name, "yes" if line.device else "no", line.reason)
        console = Console(width=100)
        with console.capture() as capture:
            console.print(table)
        return capture.get().rstrip()

    def _repr_html_(self) -> str:
        rows = ((line.name, "yes" if line.device else "no", line.reason) for line in self)
        return html_table(("device", "present", "reason or description"), rows)


# --- finding backends -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Opened:
    """A backend after its first use: its devices, or why it has none."""

    devices: tuple[Device, ...]
    reason: str


_lock = threading.RLock()
_known: dict[str, str] = {}
_opened: dict[str, _Opened] = {}
_others: dict[int, Device] = {}  # by the driver's identity: devices in contexts of other libraries
current_device: ContextVar[Device | None] = ContextVar("sarek_device", default=None)


def _modules() -> dict[str, str]:
    """Name of each backend and the module that holds it, in the order of enumeration.

    Read once: a launch must not search the installed packages.
    """
    with _lock:
        if not _known:
            found = dict(FIRST_PARTY)
            for entry in entry_points(group=ENTRY_POINT_GROUP):
                found[entry.name] = entry.value
            _known.update(sorted(found.items(), key=_rank))
        return _known


def _rank(item: tuple[str, str]) -> tuple[int, str]:
    name = item[0]
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def _load(module: str) -> Backend:
    """The backend that a module holds; an entry point may name the attribute after a colon."""
    path, _, attribute = module.partition(":")
    loaded: ModuleType = _import_from_checkout(path)
    backend: Backend = getattr(loaded, attribute or "backend")
    return backend


def _import_from_checkout(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name or name not in FIRST_PARTY.values():
            raise
        checkout = Path(__file__).resolve().parents[2]
        for root in _CHECKOUT_ROOTS:
            if (checkout / root / name / "__init__.py").is_file():
                sys.path.append(str(checkout / root))
                return importlib.import_module(name)
        raise


def _open(name: str, module: str) -> _Opened:
    with _lock:
        if name not in _opened:
            _opened[name] = _open_now(module)
        return _opened[name]


def _open_now(module: str) -> _Opened:
    try:
        devices = tuple(map(_opened_device, _load(module).drivers()))
    except BackendUnavailable as unavailable:
        return _Opened((), str(unavailable))
    except Exception as error:  # whatever a driver does, enumeration goes on without it
        return _Opened((), f"{type(error).__name__}: {error}")
    return _Opened(devices, "" if devices else "no device found")


def _opened_device(driver: Driver) -> Device:
    driver.record = recalled(driver.record)
    return Device(driver)


def forget_backends() -> None:
    """Drop what was opened, so that the next enumeration asks every backend again."""
    with _lock:
        _known.clear()
        _opened.clear()
        _others.clear()
    clear_launch_cache()


def backend_of(name: str) -> Backend | None:
    """A backend by its name, if it has devices here and is not disabled."""
    module = _modules().get(name)
    if module is None or name in settings.disabled_backends() or not _open(name, module).devices:
        return None
    return _load(module)


def device_of(driver: Driver) -> Device:
    """The device of a driver, of one in another library's context too."""
    with _lock:
        for opened in _opened.values():
            for each in opened.devices:
                if each.driver is driver:
                    return each
        return _others.setdefault(id(driver), Device(driver))


def acceptors() -> Acceptors | None:
    """Machine code that checks arguments, which the native device may have."""
    if _FALLBACK_DEVICE in settings.disabled_backends():
        return None
    for each in _open(_FALLBACK_DEVICE, _modules().get(_FALLBACK_DEVICE, "")).devices:
        if isinstance(each.driver.plans, Acceptors):
            return each.driver.plans
    return None


def devices_of(backend: str) -> tuple[Device, ...]:
    """The devices of one backend; none where it has none or is disabled. Opens no other."""
    if backend not in _modules() or backend in settings.disabled_backends():
        return ()
    return _open(backend, _modules()[backend]).devices


def oracle() -> Device:
    """The interpreter, whether or not launches may go to it. Raises UnknownDevice without it."""
    name = "interpreter"
    opened = _open(name, _modules().get(name, ""))
    if not opened.devices:
        raise UnknownDevice(f"there is no interpreter here: {opened.reason}")
    return opened.devices[0]


# --- the public functions -------------------------------------------------------------------------


@overload
def devices(why: Literal[False] = False) -> list[Device]: ...
@overload
def devices(why: Literal[True]) -> PresenceTable: ...
def devices(why: bool = False) -> list[Device] | PresenceTable:
    """All devices present, best first: GPUs, then native, then the interpreter. Never fails.

    With `why=True` a list of (name, device or None, reason) for every backend, shown as a table.
    """
    table = _presence()
    if why:
        return table
    return [line.device for line in table if line.device]


def _presence() -> PresenceTable:
    disabled = settings.disabled_backends()
    table = PresenceTable()
    for name, module in _modules().items():
        if name in disabled:
            table.append(Presence(name, None, "disabled by SAREK_DISABLE"))
            continue
        opened = _open(name, module)
        table.extend(Presence(d.name, d, d.record.description) for d in opened.devices)
        if not opened.devices:
            table.append(Presence(name, None, opened.reason))
    return table


def device(which: str | Device | Callable[[Device], bool] | Any = None) -> Device:
    """The device of a name, "best" (the first of `devices()`), or the first that a predicate
    accepts.

    A name may stop at a colon: "opencl" is the first OpenCL device. Without an argument it is the
    device that a launch would use now. Of an array of another library in a device's memory, or of
    such a library's queue or context, it is the device that works there. Raises UnknownDevice.
    """
    if which is None:
        return _default()
    if isinstance(which, Device):
        return which
    if isinstance(which, str):
        return _named(which)
    if not callable(which):
        return _of_others(which)
    for candidate in _present():
        if which(candidate):
            return candidate
    raise UnknownDevice(f"no device satisfies the predicate; present are {_names(_present())}")


def _of_others(value: Any) -> Device:
    from sarek_numba.runtime.places import device_of_foreign

    found = device_of_foreign(value)
    if found is None:
        raise UnknownDevice(f"{value!r} is of no device\n  hint: one of {_names(_present())}")
    return found


@contextmanager
def use_device(which: str | Device | Callable[[Device], bool]) -> Iterator[Device]:
    """Send the launches of this block (in this thread or task) to a device unless they name one."""
    chosen = device(which)
    token = current_device.set(chosen)
    try:
        yield chosen
    finally:
        current_device.reset(token)


def _default() -> Device:
    current = current_device.get()
    if current is not None:
        return current
    wanted = settings.default_device()
    if wanted is None:
        return _named(_FALLBACK_DEVICE)
    try:
        return _named(wanted)
    except UnknownDevice as unknown:
        raise UnknownDevice(f"SAREK_DEVICE: {unknown}") from None


def _present() -> list[Device]:
    return [line.device for line in _presence() if line.device]


def _named(name: str) -> Device:
    wanted = name.strip().lower()
    backend = wanted.partition(":")[0]
    if backend in _modules() and backend not in settings.disabled_backends():
        for candidate in _open(backend, _modules()[backend]).devices:
            if _matches(candidate, wanted):
                return candidate
    table = _presence()
    for line in table:
        if line.device and (wanted == "best" or _matches(line.device, wanted)):
            return line.device
    raise UnknownDevice(_unknown(name, wanted, table))


def _matches(candidate: Device, wanted: str) -> bool:
    return f"{candidate.name}:".startswith(f"{wanted}:")


def _names(present: Sequence[Device]) -> str:
    return ", ".join(d.name for d in present) or "none"


def _unknown(name: str, wanted: str, table: PresenceTable) -> str:
    from difflib import get_close_matches

    present = [line.device for line in table if line.device]
    text = f"no device is named {name!r}; present are {_names(present)}"
    absent = [line for line in table if not line.device and line.name == wanted.partition(":")[0]]
    if absent:
        return f"{text}\n  note: {absent[0].name}: {absent[0].reason}"
    near = get_close_matches(wanted, [d.name for d in present], n=1)
    return f"{text}\n  hint: did you mean {near[0]!r}?" if near else text
