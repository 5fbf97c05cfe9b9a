"""The cache on disk: what one process made, for the next one.

An entry is one file, named by the digest of its key, in a folder for its kind. It begins with the
digest of what follows, so that a file that is cut short, or of which a part is not what was
written, is no entry; it is removed. Entries are written to a file of another name, which is then
renamed: readers see a whole entry or none, whoever else writes it at that time, and a writer that
is killed leaves a file that nobody reads and that a later process removes. No file is a pickle:
this module sees bytes, and its callers read JSON, machine code and programs of drivers.

Nothing here fails. What cannot be read is not there, what cannot be written is not kept, of which a
warning tells once. Beyond the size that `settings.cache_bytes` states, the entries that were not
used for the longest time go.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sarek_numba import settings
from sarek_numba.runtime.cache import count

KERNELS = "kernels"  # what the front end made of a function
CODE = ("native", "opencl", "cuda", "vulkan")  # what a device's compiler made

_FORMAT = "1"  # of all entries; another one is another folder
_MAGIC = b"sarek cache\n"
_HEAD = len(_MAGIC) + hashlib.sha256().digest_size
_UNFINISHED = ".unfinished"
_FORGOTTEN = 3600.0  # seconds after which no one is still writing a file
_REFRESHED = 3600.0  # seconds after which a use is noted again
_BETWEEN_SWEEPS = 64  # entries written
_KEPT_SHARE = 0.8  # of the limit, after a sweep

_lock = threading.Lock()
_written = 0
_warned = False


class _Loads(threading.local):
    code = 0


_loads = _Loads()


def code_loads() -> int:
    """How often this thread was given what a device's compiler had made before."""
    return _loads.code


# --- keys -----------------------------------------------------------------------------------------


def key_of(*parts: object) -> str:
    """The digest of what an entry depends on, and of this package.

    The parts are str, bytes, numbers, None, or tuples of such.
    """
    digest = hashlib.sha256()
    for part in (own_package(), *parts):
        _add(digest, part)
    return digest.hexdigest()


def _add(digest: hashlib._Hash, part: object) -> None:
    if isinstance(part, tuple):
        digest.update(b"(%d" % len(part))
        for each in part:
            _add(digest, each)
        return
    if isinstance(part, bytes):
        raw, kind = part, b"bytes"
    else:
        assert part is None or isinstance(part, (str, bool, int, float)), f"no key: {part!r}"
        raw, kind = str(part).encode("utf-8", "surrogatepass"), type(part).__name__.encode()
    digest.update(b"%s %d:" % (kind, len(raw)))
    digest.update(raw)


@cache
def own_package() -> str:
    """The digest of this package: its version, and the names, sizes and times of its modules.

    The version alone does not change while the package is worked on. It stands in the name of the
    folder that installers leave beside the package, and reading that needs no import.
    """
    root = Path(settings.__file__).parent
    beside = os.listdir(root.parent)
    found = sorted(n for n in beside if n.startswith("sarek_numba-") and n.endswith(".dist-info"))
    lines = sorted(_modules(str(root)))
    return hashlib.sha256("\n".join((*found, *lines)).encode()).hexdigest()


def _modules(folder: str) -> Iterator[str]:
    """A line for each module in a folder and below."""
    with os.scandir(folder) as found:
        for each in found:
            if each.name.endswith(".py"):
                state = each.stat()
                yield f"{each.path} {state.st_size} {state.st_mtime_ns}"
            elif each.is_dir() and each.name != "__pycache__":
                yield from _modules(each.path)


def of_python() -> tuple[str, ...]:
    """Which Python this is."""
    return sys.implementation.name, sys.version, str(sys.flags.optimize), sys.byteorder


# --- entries --------------------------------------------------------------------------------------


def load(kind: str, key: str, *, counted: bool = True) -> bytes | None:
    """What was saved under a key, or None; `counters` count it where it is something compiled."""
    folder = settings.cache_folder()
    if folder is None:
        return None
    path = _path(folder, kind, key)
    content = _read(path)
    if counted:
        count("disk_misses" if content is None else "disk_hits")
    if content is not None and kind in CODE:
        _loads.code += 1
    return content


def _path(folder: Path, kind: str, key: str) -> Path:
    return folder / f"v{_FORMAT}" / kind / key[:2] / key


def _read(path: Path) -> bytes | None:
    try:
        with open(path, "rb") as file:
            whole = file.read()
            used = os.fstat(file.fileno()).st_mtime
    except OSError:
        return None
    content = whole[_HEAD:]
    if whole[:_HEAD] != _MAGIC + hashlib.sha256(content).digest():
        _remove(path)
        return None
    if time.time() - used > _REFRESHED:
        with suppress(OSError):  # another's file, or one that was just removed
            os.utime(path)
    return content


def save(kind: str, key: str, content: bytes) -> None:
    """Keep bytes under a key. What another process keeps there is as good: the last one stays."""
    folder = settings.cache_folder()
    if folder is None:
        return
    path = _path(folder, kind, key)
    try:
        _write(path, _MAGIC + hashlib.sha256(content).digest() + content)
    except OSError as error:
        _warn(folder, error)
        return
    count("disk_writes")
    if _is_time_to_sweep():
        sweep(folder)


def drop(kind: str, key: str) -> None:
    """Forget an entry that turned out to be of no use."""
    folder = settings.cache_folder()
    if folder is not None:
        _remove(_path(folder, kind, key))


def _write(path: Path, whole: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_name(
        f"{path.name}.{os.getpid()}.{threading.get_ident()}.{time.time_ns()}{_UNFINISHED}"
    )
    try:
        with open(unfinished, "xb") as file:
            file.write(whole)
        os.replace(unfinished, path)
    except OSError:
        _remove(unfinished)
        raise


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _warn(folder: Path, error: OSError) -> None:
    global _warned
    with _lock:
        if _warned:
            return
        _warned = True
    warnings.warn(
        f"the cache in {folder} cannot be written ({error.strerror or error}), and what is "
        "compiled now is compiled again by later processes\n"
        "  hint: name another folder in SAREK_CACHE_DIR, or set SAREK_CACHE=0",
        RuntimeWarning,
        stacklevel=3,
    )


# --- the whole cache ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of the cache; `used` is a time in seconds since the epoch."""

    path: Path
    kind: str
    bytes: int
    used: float


def entries(folder: Path) -> Iterator[Entry]:
    """All entries, of every format; files that are being written have no kind."""
    for inside, _, names in os.walk(folder):
        for name in names:
            path = Path(inside, name)
            parts = path.relative_to(folder).parts
            if len(parts) != 4 or not _is_ours(parts):
                continue
            try:
                found = path.stat()
            except OSError:
                continue
            kind = "" if name.endswith(_UNFINISHED) else parts[1]
            yield Entry(path, kind, found.st_size, found.st_mtime)


def _is_ours(parts: tuple[str, ...]) -> bool:
    """Whether a file lies where this module puts files: nothing else is ever removed."""
    version, _, short, name = parts
    return version[:1] == "v" and version[1:].isdigit() and len(short) == 2 and name[:2] == short


def clear(folder: Path) -> int:
    """Remove all entries; how many there were."""
    return sum(_remove(entry.path) and bool(entry.kind) for entry in list(entries(folder)))


def sweep(folder: Path) -> int:
    """Remove what killed writers left, and, beyond the limit, what was not used for longest."""
    removed, now = 0, time.time()
    kept = []
    for entry in entries(folder):
        if entry.kind:
            kept.append(entry)
        elif now - entry.used > _FORGOTTEN:
            removed += _remove(entry.path)
    limit = settings.cache_bytes()
    total = sum(entry.bytes for entry in kept)
    if total <= limit:
        return removed
    for entry in sorted(kept, key=lambda each: each.used):
        if total <= limit * _KEPT_SHARE:
            break
        removed += _remove(entry.path)
        total -= entry.bytes
    return removed


def _is_time_to_sweep() -> bool:
    """At a process's first entry, and now and then."""
    global _written
    with _lock:
        _written += 1
        return _written % _BETWEEN_SWEEPS == 1
