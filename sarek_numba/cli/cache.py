"""`sarek cache`: what the cache on disk holds, and emptying it."""

from __future__ import annotations

from pathlib import Path

import click

from sarek_numba import settings
from sarek_numba.runtime import disk

_WORDS = {
    disk.KERNELS: "kernels in Sarek IR",
    "native": "machine code",
    "opencl": "OpenCL programs",
}


@click.group()
def command() -> None:
    """Show or empty the cache on disk."""


@command.command()
def info() -> None:
    """Print where the cache is, how large it is, and how large it may become."""
    folder = _folder()
    if folder is None:
        return
    found = [entry for entry in disk.entries(folder) if entry.kind]
    click.echo(f"folder   {folder}")
    click.echo(f"limit    {_megabytes(settings.cache_bytes())} (SAREK_CACHE_MB)")
    click.echo(f"entries  {len(found)}, {_megabytes(sum(each.bytes for each in found))}")
    for kind in sorted({each.kind for each in found}):
        sizes = [each.bytes for each in found if each.kind == kind]
        click.echo(f"  {_WORDS.get(kind, kind)}: {len(sizes)}, {_megabytes(sum(sizes))}")


@command.command()
def clear() -> None:
    """Remove every entry; other files in the folder stay."""
    folder = _folder()
    if folder is not None:
        removed = disk.clear(folder)
        click.echo(f"removed {removed} {'entry' if removed == 1 else 'entries'} from {folder}")


def _folder() -> Path | None:
    folder = settings.cache_folder()
    if folder is None:
        click.echo("the cache on disk is off: SAREK_CACHE is 0")
    return folder


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
