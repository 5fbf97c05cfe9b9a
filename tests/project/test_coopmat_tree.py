"""tools/coopmat_tree.sh: what it says where it cannot work, and that no half of a tree stays."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "coopmat_tree.sh"
TOOLS = "bash basename cat chmod cp cut dirname env flock ln mkdir mv rm sha256sum tail true uname"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it makes trees of Debian")


@pytest.fixture
def run(tmp_path):
    """`run(*options, name="text of a program"…)`: the script where just these programs exist."""

    def start(*options: str, **programs: str) -> subprocess.CompletedProcess[str]:
        folder = tmp_path / "bin"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        given = {"unshare": 'shift; "$@"', "id": "echo 0", **programs}
        for name, text in given.items():
            (folder / name).write_text(f"#!{shutil.which('bash')}\n{text}\n")
            (folder / name).chmod(0o755)
        for tool in set(TOOLS.split()) - set(given):  # never write through such a link
            found = shutil.which(tool)
            assert found is not None, tool
            (folder / tool).symlink_to(found)
        environment = {"PATH": str(folder), "SAREK_COOPMAT_TREE": str(tmp_path / "trees")}
        return subprocess.run(
            [SCRIPT, *options],
            env={**environment, "PYTHON": sys.executable, "HOME": os.environ.get("HOME", "/")},
            capture_output=True,
            text=True,
        )

    return start


def test_not_root(run):
    """One line; a failure where it was asked for, none where it is only wanted if possible."""
    said = "coopmat: left out, it needs to be root, to make a tree and mount folders into it\n"
    asked, wanted = run(id="echo 1000"), run("--where-possible", id="echo 1000")
    assert (asked.returncode, asked.stderr) == (1, said)
    assert (wanted.returncode, wanted.stderr) == (0, said)


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        ({}, "debootstrap is missing: apt-get install debootstrap"),
        ({"debootstrap": "true", "unshare": "false"}, "this system permits no mounts"),
        ({"uname": "echo Darwin"}, "it needs Linux"),
    ],
)
def test_what_is_missing(run, programs, said):
    done = run(**programs)
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(
    not Path("/usr/share/debootstrap").exists(), reason="debootstrap is not installed"
)
def test_half_a_tree_is_none(run, tmp_path):
    """What debootstrap left when it failed is no tree, and is made again."""
    fails = 'mkdir -p "${@: -1}/bin"; echo "E: no network"; exit 1'
    for _ in range(2):
        done = run(debootstrap=fails)
        assert done.returncode == 1
        assert "E: no network" in done.stderr
        assert "coopmat: left out, debootstrap failed" in done.stderr
        assert not list((tmp_path / "trees").glob("forky-*"))
