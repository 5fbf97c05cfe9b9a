"""The files of the cache on disk: whole or not there, whatever happens to them."""

from __future__ import annotations

import builtins
import errno
import os
import random
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sarek_numba.cli import main
from sarek_numba.runtime import disk
from sarek_numba.runtime.cache import counters

KEY = disk.key_of("a key of the tests")
KIND = disk.KERNELS


def _file(folder: Path) -> Path:
    [entry] = disk.entries(folder)
    return entry.path


def test_what_is_saved_is_loaded(disk_cache: Path) -> None:
    """Once under its kind and key, and counted."""
    before = (counters.disk_misses, counters.disk_writes, counters.disk_hits)
    assert disk.load(KIND, KEY) is None
    disk.save(KIND, KEY, b"content")
    assert disk.load(KIND, KEY) == b"content"
    assert disk.load("native", KEY) is None
    after = (counters.disk_misses, counters.disk_writes, counters.disk_hits)
    assert [b - a for a, b in zip(before, after, strict=True)] == [2, 1, 1]


def test_the_cache_can_be_off(disk_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SAREK_CACHE=0: nothing is written, and nothing is found."""
    disk.save(KIND, KEY, b"content")
    monkeypatch.setenv("SAREK_CACHE", "0")
    assert disk.load(KIND, KEY) is None
    disk.save(KIND, disk.key_of("another"), b"content")
    assert len(list(disk.entries(disk_cache))) == 1


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_file_is_no_entry(disk_cache: Path, seed: int) -> None:
    """Cut short, extended, zeroed, with a byte changed: a miss, and it is removed."""
    chance = random.Random(seed)
    disk.save(KIND, KEY, chance.randbytes(300))
    path = _file(disk_cache)
    whole = path.read_bytes()
    place = chance.randrange(len(whole))
    match seed % 4:
        case 0:
            path.write_bytes(whole[:place])
        case 1:
            path.write_bytes(whole + b"x")
        case 2:
            path.write_bytes(bytes(len(whole)))
        case _:
            changed = whole[place] ^ (1 << chance.randrange(8))
            path.write_bytes(whole[:place] + bytes([changed]) + whole[place + 1 :])
    assert disk.load(KIND, KEY) is None
    assert not path.exists()
    disk.save(KIND, KEY, b"anew")
    assert disk.load(KIND, KEY) == b"anew"


def _script(folder: Path, text: str) -> subprocess.Popen[str]:
    environment = os.environ | {"SAREK_CACHE": "1", "SAREK_CACHE_DIR": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-c", "from sarek_numba.runtime import disk\n" + text],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_killed_writer_leaves_no_entry(disk_cache: Path) -> None:
    """Killed between writing and renaming; a later process removes what it left."""
    kill = (
        "import os, signal\n"
        "disk.os.replace = lambda a, b: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"disk.save({KIND!r}, {KEY!r}, b'half')\n"
    )
    assert _script(disk_cache, kill).wait() == -9
    path = _file(disk_cache)
    assert path.name.endswith(".unfinished")
    assert disk.load(KIND, KEY) is None
    assert disk.sweep(disk_cache) == 0  # a writer may still be at it
    os.utime(path, (0, 0))
    assert disk.sweep(disk_cache) == 1
    assert not path.exists()


def test_many_processes_write_one_key(disk_cache: Path) -> None:
    """Sixteen at once: each reads a whole entry, or none, and one stays."""
    text = (
        "import sys\n"
        "for k in range(300):\n"
        f"    disk.save({KIND!r}, {KEY!r}, bytes([k % 251]) * (1000 + 37 * k))\n"
        f"    found = disk.load({KIND!r}, {KEY!r})\n"
        "    assert found is not None and len(set(found)) == 1, 'torn'\n"
        "    assert len(found) == 1000 + 37 * k or (len(found) - 1000) % 37 == 0\n"
        "print('done')\n"
    )
    running = [_script(disk_cache, text) for _ in range(16)]
    assert [each.communicate()[0] for each in running] == ["done\n"] * 16
    assert len(list(disk.entries(disk_cache))) == 1


def _warned_once(action: Any) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            action()
    assert [each.category for each in caught] == [RuntimeWarning]
    return str(caught[0].message)


def test_a_folder_that_cannot_be_written(disk_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning, once, that says what to do; a file where the folder should be is such a case."""
    disk_cache.write_text("no folder")
    message = _warned_once(lambda: disk.save(KIND, KEY, b"content"))
    assert str(disk_cache) in message
    assert "SAREK_CACHE=0" in message
    assert disk.load(KIND, KEY) is None


class _Full:
    """A file on a full disk: the first bytes find room."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __enter__(self) -> _Full:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, content: bytes) -> None:
        self._file.write(content[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_that_is_full_or_read_only(
    disk_cache: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    """A warning, once, and nothing is left of what was begun."""

    def refusing(path: Path, mode: str) -> Any:
        if error == errno.ENOSPC:
            return _Full(builtins.open(path, mode))
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(disk, "open", refusing, raising=False)
    message = _warned_once(lambda: disk.save(KIND, KEY, b"content" * 100))
    assert os.strerror(error) in message
    assert list(disk.entries(disk_cache)) == []


def test_the_oldest_go(disk_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit, those not used for longest; a use counts as new."""
    keys = [disk.key_of(number) for number in range(10)]
    for age, key in enumerate(keys):
        disk.save(KIND, key, bytes(10_000))
        path = next(e.path for e in disk.entries(disk_cache) if e.path.name == key)
        os.utime(path, (time.time() - 10_000 * (20 - age),) * 2)
    assert disk.load(KIND, keys[0]) is not None  # the oldest is used
    monkeypatch.setenv("SAREK_CACHE_MB", "0.05")
    monkeypatch.setattr(disk, "_written", 0)
    disk.save(KIND, disk.key_of("one more"), bytes(10_000))  # the first of a process sweeps
    kept = {entry.path.name for entry in disk.entries(disk_cache)}
    assert kept == {disk.key_of("one more"), keys[0], keys[9]}


def test_only_entries_are_removed(disk_cache: Path) -> None:
    """A folder that holds other files keeps them."""
    disk.save(KIND, KEY, b"content")
    own = [disk_cache / "notes.txt", disk_cache / "v1" / "kernels" / "zz" / "abc"]
    for path in own:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    assert disk.clear(disk_cache) == 1
    assert [path.read_text() for path in own] == ["mine", "mine"]


def test_a_key_tells_its_parts_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """By value, type and place; and by the package itself."""
    parts: list[tuple[object, ...]] = [
        ("a", "b"), ("ab",), ("ab", ""), ("", "ab"), (b"ab",), (1,), ("1",), (True,), (1.0,),
        (None,), ("None",), (("a", "b"),), (("a",), "b"), (("a",), ("b",)), (), ((),),
    ]  # fmt: skip
    keys = [disk.key_of(*each) for each in parts]
    assert len(set(keys)) == len(parts)
    assert keys == [disk.key_of(*each) for each in parts]
    monkeypatch.setattr(disk, "own_package", lambda: "a later version")
    assert not {disk.key_of(*each) for each in parts} & set(keys)


def test_a_changed_module_of_the_package_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is enough, and so is a new version beside it."""
    package = tmp_path / "sarek_numba"
    package.mkdir()
    module = package / "settings.py"
    module.write_text("")
    monkeypatch.setattr(disk.settings, "__file__", str(module))
    found = [disk.own_package.__wrapped__()]
    os.utime(module, (1, 1))
    found.append(disk.own_package.__wrapped__())
    (tmp_path / "sarek_numba-9.9.dist-info").mkdir()
    found.append(disk.own_package.__wrapped__())
    assert len(set(found)) == 3


def test_command_line(disk_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sarek cache info` counts by kind, `clear` empties."""
    disk.save(KIND, KEY, b"content")
    disk.save("native", KEY, bytes(2_000_000))
    shown = CliRunner().invoke(main, ["cache", "info"])
    assert shown.exit_code == 0
    assert str(disk_cache) in shown.output
    assert "entries  2, 2.0 MB" in shown.output
    assert "machine code: 1, 2.0 MB" in shown.output
    cleared = CliRunner().invoke(main, ["cache", "clear"])
    assert cleared.output == f"removed 2 entries from {disk_cache}\n"
    assert "entries  0" in CliRunner().invoke(main, ["cache", "info"]).output
    monkeypatch.setenv("SAREK_CACHE", "0")
    assert "off" in CliRunner().invoke(main, ["cache", "info"]).output
