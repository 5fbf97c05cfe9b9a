"""Options and fixtures that every test may use."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="write golden files instead of comparing"
    )


@pytest.fixture
def golden(request):
    """`golden(text, name)` compares with `golden/<name>.txt` beside the test, or writes it."""

    def compare(text: str, name: str) -> None:
        path = Path(request.path).parent / "golden" / f"{name}.txt"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        assert path.exists(), (
            f"no golden file {path.name}: run pytest --update-golden and look at it"
        )
        assert path.read_text() == text

    return compare
