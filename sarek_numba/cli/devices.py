"""`sarek devices`: what can run kernels here, and why the rest cannot."""

from __future__ import annotations

import click

from sarek_numba.runtime.registry import devices


@click.command()
def command() -> None:
    """List every backend with its devices, or why it has none."""
    click.echo(repr(devices(why=True)))
