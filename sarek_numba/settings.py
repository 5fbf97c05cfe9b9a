"""The environment variables this package reads; nothing else in it touches `os.environ`.

Every function reads afresh, so a test or a notebook may change a variable between two launches.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any


def _words(name: str) -> frozenset[str]:
    return frozenset(w.strip().lower() for w in os.environ.get(name, "").split(",") if w.strip())


def default_device() -> str | None:
    """SAREK_DEVICE: name of the device that launches use when none is named."""
    return os.environ.get("SAREK_DEVICE") or None


def disabled_backends() -> frozenset[str]:
    """SAREK_DISABLE: names of backends that are treated as absent."""
    return _words("SAREK_DISABLE")


def dump_stages() -> frozenset[str]:
    """SAREK_DUMP: stages whose result is printed to standard error ("all" for every stage)."""
    return _words("SAREK_DUMP")


def environment_items() -> list[tuple[dict[Any, Any], Any]] | None:
    """Where the variables that decide about a launch stand: dicts and keys; None if not known.

    While the same objects stand there, and no others appear, nothing about them has changed.
    """
    data = getattr(os.environ, "_data", None)
    encode = getattr(os.environ, "encodekey", None)
    if type(data) is not dict or encode is None:
        return None
    return [(vars(os), "environ"), *((data, encode(name)) for name in _OF_LAUNCHES)]


_OF_LAUNCHES = (
    "SAREK_DEBUG",
    "SAREK_DEVICE",
    "SAREK_DISABLE",
    "SAREK_OPT_DISABLE",
    "SAREK_OPT_ENABLE",
    "SAREK_WARP_WIDTH",
)


def is_debugging() -> bool:
    """Whether SAREK_DEBUG may say something: a look that costs a launch little."""
    data = getattr(os.environ, "_data", None)
    return type(data) is not dict or _DEBUG in data


_DEBUG = getattr(os.environ, "encodekey", str)("SAREK_DEBUG")


def debug_words() -> frozenset[str]:
    """SAREK_DEBUG: a level from 1 to 4 and components, of which "all" is the default."""
    return _words("SAREK_DEBUG") - {"0"}


def disabled_optimisations() -> frozenset[str]:
    """SAREK_OPT_DISABLE: grants and optimisations that are revoked ("all" for every one)."""
    return _words("SAREK_OPT_DISABLE")


def enabled_optimisations() -> frozenset[str]:
    """SAREK_OPT_ENABLE: optimisations that are done where nothing measured says that they win."""
    return _words("SAREK_OPT_ENABLE")


def explain() -> bool:
    """SAREK_EXPLAIN: whether decisions are printed to standard error, one line each."""
    return os.environ.get("SAREK_EXPLAIN", "0") not in ("", "0")


def jit() -> bool:
    """SAREK_JIT: whether functions of `sarek.jit` are captured and replayed; 0 runs them."""
    return os.environ.get("SAREK_JIT", "1").strip() != "0"


def seed() -> int:
    """SAREK_SEED: seed of the oracle's block order, 0 by default."""
    return int(os.environ.get("SAREK_SEED", "0"))


def threads() -> int:
    """SAREK_THREADS: worker threads of the native device; by default one per core it may use."""
    text = os.environ.get("SAREK_THREADS")
    if text:
        return max(1, int(text))
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else (os.cpu_count() or 1)


def vulkan_validation() -> bool:
    """SAREK_VULKAN_VALIDATION: whether Vulkan runs under the Khronos validation layer."""
    return os.environ.get("SAREK_VULKAN_VALIDATION", "0") not in ("", "0")


def rocm_folder() -> Path | None:
    """ROCM_PATH: the folder of ROCm, where it is not one of the usual ones."""
    stated = os.environ.get("ROCM_PATH")
    return Path(stated) if stated else None


def cache_folder() -> Path | None:
    """SAREK_CACHE_DIR: where results are kept for later processes; by default the user's folder of
    caches. None where SAREK_CACHE is 0.
    """
    if os.environ.get("SAREK_CACHE", "1").strip().lower() in ("0", "off", "no", "false"):
        return None
    stated = os.environ.get("SAREK_CACHE_DIR")
    return Path(stated) if stated else _user_folder()


@cache
def _user_folder() -> Path:
    from platformdirs import user_cache_path  # imported where it is needed

    return user_cache_path("sarek_numba", appauthor=False)


def cache_bytes() -> int:
    """SAREK_CACHE_MB: how much the cache on disk may hold, 1024 MB by default."""
    return int(float(os.environ.get("SAREK_CACHE_MB", "1024")) * 1e6)


simulated_width: ContextVar[int | None] = ContextVar("simulated_warp_width", default=None)


def warp_width() -> int | None:
    """The width of a warp that is wanted of devices that can choose: `simulated_warp_width`, else
    SAREK_WARP_WIDTH.
    """
    text = os.environ.get("SAREK_WARP_WIDTH")
    return simulated_width.get() or (int(text) if text else None)


@contextmanager
def simulated_warp_width(width: int) -> Iterator[None]:
    """Launches within run with warps of so many threads where the device can choose.

    The interpreter, emulation and the native device can: 1, 2, 4, 8, 16, 32 or 64.
    """
    if isinstance(width, bool) or width not in (1, 2, 4, 8, 16, 32, 64):
        raise ValueError(f"a warp has 1, 2, 4, 8, 16, 32 or 64 threads, not {width!r}")
    token = simulated_width.set(width)
    try:
        yield
    finally:
        simulated_width.reset(token)
