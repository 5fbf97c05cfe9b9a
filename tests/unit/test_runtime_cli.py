"""The command `sarek`, and what importing the package costs."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from sarek_numba.cli import COMMANDS, main
from sarek_numba.ir.nodes import CoopmatConfig
from sarek_numba.ir.types import Scalar
from tests.unit.fake_backend import fake_device

__all__ = ["fake_device"]


def test_devices_are_listed(fake_device: Any) -> None:
    """As a table of what is there and what is not."""
    result = CliRunner().invoke(main, ["devices"])
    assert result.exit_code == 0
    assert "fake:0" in result.output
    assert "the device fake:1" in result.output


def test_cooperative_matrices_are_listed(fake_device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a device, one a line; a device without them has no such table."""
    shown = CliRunner().invoke(main, ["devices", "fake:0"]).output
    assert "cooperative matrices" not in shown
    config = CoopmatConfig(8, 8, 16, *[Scalar.INT8] * 2, *[Scalar.INT32] * 2)
    having = replace(fake_device.record, coopmat=(config,))
    monkeypatch.setattr(fake_device.driver, "record", having)
    shown = CliRunner().invoke(main, ["devices", "fake:0"]).output
    assert "cooperative matrices" in shown
    assert "8x8x16 int8 * int8 + int32 -> int32" in shown


def test_help_names_every_command() -> None:
    """Each has one line."""
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    for name in COMMANDS:
        assert f"  {name} " in result.output


def test_unknown_command_is_refused() -> None:
    """With click's own text."""
    result = CliRunner().invoke(main, ["launch"])
    assert result.exit_code == 2
    assert "No such command 'launch'" in result.output


def _import_milliseconds() -> float:
    command = [sys.executable, "-X", "importtime", "-c", "import numba, sarek_numba"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()
    [own] = [line for line in lines if line.endswith("| sarek_numba")]
    return int(own.split("|")[1]) / 1000


def test_import_adds_little_to_numba() -> None:
    """At most 20 ms, the best of three measurements on a busy machine."""
    assert min(_import_milliseconds() for _ in range(3)) < 20
