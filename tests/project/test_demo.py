"""`sarek demo` does what it says: a table, pictures, and a failure where a device disagrees."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import sarek_numba as sarek
from sarek_numba.cli import main
from sarek_numba.cli.demo import run as demo
from sarek_numba.cli.demo.problems import PROBLEMS


def test_demo_runs_on_every_device(tmp_path):
    """Every problem agrees on every device, and every picture shows something."""
    image = pytest.importorskip("PIL.Image")
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for device in sarek.devices():
        assert result.output.count(device.name) >= len(PROBLEMS)
    wanted = {f"{problem.name}.png" for problem in PROBLEMS if problem.picture}
    assert {path.name for path in tmp_path.glob("*.png")} == wanted
    for path in tmp_path.glob("*.png"):
        assert np.asarray(image.open(path)).std() > 5, f"{path.name} is flat"


def test_a_wrong_result_is_shown():
    """Positive control: a device that is off by one element fails the comparison."""
    outcome = demo.Outcome("blur", "gpu", 0.1, 1e9)
    assert not outcome.agrees
    assert "1e+09 ULP" in demo.agreement(outcome)
    assert not demo.Outcome("blur", "gpu", None, None, "LaunchFailed: lost").agrees


def test_demo_agrees_with_numpy():
    """The oracle's results are what NumPy gives, where NumPy has the function."""
    by_name = {problem.name: problem for problem in PROBLEMS}
    with sarek.use_device("interpreter"):
        for name, meaning in {
            "scan": lambda v: np.cumsum(v, dtype=np.int32),
            "histogram": lambda v: np.bincount(v, minlength=256).astype(np.uint32),
        }.items():
            inputs = by_name[name].prepare()
            assert np.array_equal(by_name[name].solve(*inputs), meaning(*inputs))
        a, b = by_name["matmul_tiled"].prepare()
        product = by_name["matmul_tiled"].solve(a, b)
    assert np.allclose(product, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)
