#!/usr/bin/env bash
# Make the virtual environment $1 with the package in editable form and everything its tests use.
# PYTHON names the interpreter to make it with. Safe to run again.
set -eu
cd "$(dirname "$0")/.."
venv=$1
if [ ! -x "$venv/bin/python" ]; then
    echo "setup: virtual environment $venv with $("${PYTHON:-python3}" --version)"
    "${PYTHON:-python3}" -m venv "$venv"
fi
echo "setup: installing sarek-numba[dev]: numba, pyopencl, the PoCL and Intel OpenCL runtimes, test tools"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[dev]'
