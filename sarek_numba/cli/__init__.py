"""The command `sarek`. Each subcommand is a module here, loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module

import click

# Name of each subcommand and the module whose attribute `command` it is.
COMMANDS = {
    "cache": "sarek_numba.cli.cache",
    "demo": "sarek_numba.cli.demo_command",
    "devices": "sarek_numba.cli.devices",
    "doctor": "sarek_numba.cli.doctor",
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[name]).command
        return command


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sarek-numba", prog_name="sarek")
def main() -> None:
    """Kernels in Python, on every device, checked against an oracle."""
