"""Which variant and tiling was the fastest: what `matrix.tune` found, in the process and on disk.

A choice is kept by kernel, arithmetic, fragments, how the matrices lie, size class, and by device.
"""

from __future__ import annotations

import json
from contextvars import ContextVar
from typing import TypeAlias

from sarek_numba.capability import DeviceRecord
from sarek_numba.matrix.rewrite.form import Direct, Staged, Tiling, Variant
from sarek_numba.runtime import disk

Choice: TypeAlias = tuple[Variant, Tiling]
Key: TypeAlias = tuple[object, ...]

forced: ContextVar[Choice | None] = ContextVar("sarek_matrix_choice", default=None)
"""The choice that is tried now."""

_KIND = "matrix_tiles"  # of entries on disk
_MOST = 4096
_known: dict[Key, Choice | None] = {}
_changes = 0


def of_device(record: DeviceRecord) -> tuple[str, ...]:
    """Which device it is, with its driver: a choice is of no other one."""
    about = (part for pair in record.identity for part in pair)
    return record.name, record.description, *map(str, about)


def chosen(key: Key) -> Choice | None:
    """What was found to be the fastest; None where nothing was measured."""
    trial = forced.get()
    if trial is not None:
        return trial
    if key not in _known:
        if len(_known) >= _MOST:
            _known.clear()
        _known[key] = _load(key)
    return _known[key]


def keep(key: Key, choice: Choice) -> None:
    """For this process and later ones."""
    global _changes
    _changes += 1
    _known[key] = choice
    variant, tiling = choice
    name = "direct" if isinstance(variant, Direct) else "staged"
    content = [name, *tiling.warps, *tiling.fragments, tiling.depth]
    disk.save(_KIND, disk.key_of(_KIND, key), json.dumps(content).encode())


def forget() -> None:
    """What this process knows; the disk keeps it."""
    global _changes
    _changes += 1
    _known.clear()


def changes() -> int:
    """Another number whenever another choice may be found."""
    return _changes


def _load(key: Key) -> Choice | None:
    digest = disk.key_of(_KIND, key)
    found = disk.load(_KIND, digest, counted=False)
    if found is None:
        return None
    try:
        name, *numbers = json.loads(found)
        down, across, rows, columns, depth = map(int, numbers)
    except (ValueError, TypeError):
        disk.drop(_KIND, digest)
        return None
    tiling = Tiling((down, across), (rows, columns), depth)
    return Direct(tiling.count) if name == "direct" else Staged(), tiling


__all__ = ["Choice", "Key", "changes", "chosen", "forced", "forget", "keep", "of_device"]
