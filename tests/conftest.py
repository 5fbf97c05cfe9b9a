"""Options and fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="write golden files instead of comparing"
    )
    parser.addoption("--disk-cache", metavar="FOLDER", help="run with a cache on disk")
    parser.addoption(
        "--fake-cuda", action="store_true", help="have cuda:0 be the fake of tests/fake_cuda.py"
    )
    parser.addoption(
        "--fake-hip", action="store_true", help="have hip:0 be the fake of tests/fake_hip.py"
    )
    parser.addoption(
        "--fake-metal", action="store_true", help="have metal:0 be the fake of tests/fake_metal.py"
    )
    parser.addoption(
        "--everything",
        action="store_true",
        help="every test on every shim (tests/conformance/conftest.py), texts for every target",
    )


def pytest_configure(config):
    """No cache on disk: a test finds nothing of another's, and writes none of the user's."""
    folder = config.getoption("--disk-cache")
    os.environ["SAREK_CACHE"] = "1" if folder else "0"
    if folder:
        os.environ["SAREK_CACHE_DIR"] = folder
    if config.getoption("--fake-cuda"):
        from sarek_cuda import driver
        from tests.fake_cuda import FakeApi

        driver.use(FakeApi(devices=2))
    if config.getoption("--fake-hip"):
        from sarek_hip import driver as hip
        from tests import fake_hip

        hip.use(fake_hip.api())
    if config.getoption("--fake-metal"):
        import sarek_numba as sarek
        from sarek_metal import driver as metal
        from sarek_numba.verify.numerics import self_test
        from tests.fake_metal import framework

        metal.use(framework())
        self_test(sarek.device("metal"))  # else float32 is refused


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """A test is skipped whose kernel the shim refuses for what a language is known to lack."""
    from sarek_numba.errors import CapabilityError

    try:
        return (yield)
    except CapabilityError as refusal:
        from tests.toolchains import shim

        if not refusal.verdicts or not shim.is_declared(refusal):
            raise
        pytest.skip(str(refusal).splitlines()[0])


_SHORTEST = [bytes([n]) for n in range(256)]  # of each CPython has one object


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """No driver wrote into bytes that all of the process share.

    What kernels of a module were compiled to goes with its last test: they live on in it.
    """
    wrong = {n: text for n, text in enumerate(_SHORTEST) if text[0] != n}
    assert not wrong, f"someone wrote into bytes: {wrong}"
    if nextitem is None or nextitem.path != item.path:
        from sarek_numba.runtime.cache import clear_launch_cache

        clear_launch_cache()


@pytest.fixture
def everything(request):
    """Whether `--everything` is given."""
    return request.config.getoption("--everything")


@pytest.fixture
def disk_cache(tmp_path, monkeypatch):
    """An empty cache on disk of the test's own: its folder."""
    from sarek_numba.runtime import disk

    monkeypatch.setenv("SAREK_CACHE", "1")
    monkeypatch.setenv("SAREK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(disk, "_warned", False)
    monkeypatch.setattr(disk, "_written", 1)  # no sweep but where a test asks for it
    return tmp_path / "cache"


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
