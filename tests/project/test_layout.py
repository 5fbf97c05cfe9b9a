"""The rules of the house that no linter knows: who imports what, how long files are, what ships."""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = sorted(
    path
    for folder in ("sarek_numba", "backends", "interp")
    for path in (ROOT / folder).rglob("*.py")
)
IDS = [str(path.relative_to(ROOT)) for path in SOURCES]
LONGEST = 700


def imported(path: Path) -> set[str]:
    """Top-level names of the modules a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


def uses_environment(path: Path) -> bool:
    """Whether a file touches os.environ or os.getenv."""
    return any(
        isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "putenv")
        for node in ast.walk(ast.parse(path.read_text()))
    )


@pytest.mark.parametrize("path", SOURCES, ids=IDS)
def test_house_rules(path):
    """Numba, ctypes and the environment stay where they belong; files stay short and documented."""
    inside = path.relative_to(ROOT).parts
    found = imported(path)
    if inside[1:2] != ("frontend",) and inside != ("sarek_numba", "dispatcher.py"):
        assert "numba" not in found
    if path.name != "driver.py" and inside != ("sarek_numba", "runtime", "launch.py"):
        assert not found & {"ctypes", "cffi"}
    if inside[0] != "backends" and inside[1:] != ("runtime", "machine", "driver.py"):
        assert not found & {"llvmlite", "pyopencl"}
    if path.name not in ("settings.py", "driver.py"):
        assert not uses_environment(path)
    text = path.read_text()
    assert len(text.splitlines()) <= LONGEST, f"over {LONGEST} lines: is it two things?"
    assert not text.strip() or ast.get_docstring(ast.parse(text)), "no contract at its head"


def test_the_rules_can_fail(tmp_path):
    """Positive control: a file that breaks the rules is seen to."""
    bad = tmp_path / "bad.py"
    bad.write_text("import os\nfrom numba.core import types\nprint(os.environ['HOME'])\n")
    assert imported(bad) == {"os", "numba"}
    assert uses_environment(bad)


def test_import_opens_nothing():
    """`import sarek_numba` loads no backend, no driver and nothing slow beside Numba."""
    code = (
        "import sys, sarek_numba\n"
        "heavy = {'pyopencl', 'sarek_opencl', 'sarek_native', 'sarek_interp', 'rich', 'click',"
        " 'hypothesis', 'PIL', 'skimage', 'greenlet'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_wheel_holds_the_tree(tmp_path):
    """The wheel has every source file of the packages, and nothing else but metadata."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    data = (ROOT / "sarek_numba" / "passes" / "stored_functions").rglob("*.json")
    expected = {
        "/".join(parts if parts[0] == "sarek_numba" else parts[1:])
        for path in [*SOURCES, ROOT / "sarek_numba" / "py.typed", *data]
        for parts in [path.relative_to(ROOT).parts]
    }
    assert names == expected


def test_modules_of_tests_are_told_apart():
    """pytest knows a module outside of a package by its name alone."""
    loose = [
        path.name
        for path in (ROOT / "tests").rglob("test_*.py")
        if not (path.parent / "__init__.py").exists()
    ]
    assert len(set(loose)) == len(loose)


def test_nothing_names_a_machine():
    """No tracked file names a path of one machine or the host of a package registry."""
    words = [
        "/wo" + "rk/",
        "/ro" + "ot/",
        "bash" + "_jobs",
        "pypi" + ".org",
        "pythonhosted" + ".org",
    ]
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    hits = []
    for name in listed:
        path = ROOT / name
        if path.suffix in (".png", ".json") or not path.is_file():
            continue
        text = path.read_text(errors="ignore")
        hits += [f"{name}: {word}" for word in words if word in text]
    assert hits == []
