#!/usr/bin/env bash
# Unit and golden tests and 200 fuzzed kernels on each CPython from 3.11 to 3.14 that is found.
# An interpreter that cannot be set up (no Numba for it yet, say) is named and skipped.
set -u
cd "$(dirname "$0")/.."
failed=0
tried=0
log=$(mktemp)
find_python() {
    command -v "python$1" 2>/dev/null && return
    ls -d "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python 2>/dev/null | sort -V | tail -n 1
}
for version in 3.11 3.12 3.13 3.14; do
    python=$(find_python "$version")
    if [ -z "$python" ] || ! "$python" -c 'import sys' 2>/dev/null; then
        echo "python $version: not found, skipped"
        continue
    fi
    venv=.venvs/$version
    if ! PYTHON=$python tools/setup_environment.sh "$venv" >"$log" 2>&1; then
        echo "python $version: environment could not be made, skipped: $(tail -n 1 "$log")"
        continue
    fi
    tried=$((tried + 1))
    echo "python $version: $("$venv/bin/python" --version)"
    "$venv/bin/python" -m pytest -q -p no:cacheprovider tests/unit tests/golden || failed=1
    "$venv/bin/python" -m tests.fuzz --count 200 --seed 0 || failed=1
done
[ "$tried" -gt 0 ] || { echo "no CPython from 3.11 to 3.14 found"; exit 1; }
exit $failed
