#!/usr/bin/env bash
# Tests on a newer Mesa than this system's: its lavapipe has cooperative matrices.
#
#   tools/coopmat_tree.sh                 make the tree unless it is there, run the tests in it
#   tools/coopmat_tree.sh --where-possible    the same, or one line that says why not
#   tools/coopmat_tree.sh COMMAND…        run a command in the tree, in the repository's root
#
# The tree is a Debian "forky" of debootstrap's, 1.3 GB, kept in a cache folder
# (SAREK_COOPMAT_TREE, else sarek_numba/trees of the user's cache folder). This repository, the virtual
# environment and its Python are mounted into it, in a namespace of mounts that ends with the run, so
# that nothing is ever left mounted and this system's own folders are not written to.
# PYTHON names the environment's Python (.venv/bin/python), JOBS how many tests run at once.
set -eu
suite=forky
packages=mesa-vulkan-drivers,libvulkan1,vulkan-validationlayers,spirv-tools,glslang-tools,pocl-opencl-icd
repository=$(cd "$(dirname "$0")/.." && pwd -P)
python=${PYTHON:-$repository/.venv/bin/python}
cache=${SAREK_COOPMAT_TREE:-${XDG_CACHE_HOME:-$HOME/.cache}/sarek_numba/trees}
tree=$cache/$suite-$(echo "$suite $packages 1" | sha256sum | cut -c1-12)

where_possible=
if [ "${1:-}" = --where-possible ]; then
    where_possible=yes
    shift
fi

refuse() { # what is missing; where the tests are only wanted if possible, that is all
    echo "coopmat: left out, $1" >&2
    [ -n "$where_possible" ] && exit 0
    exit 1
}

[ "$(uname -s)" = Linux ] || refuse "it needs Linux"
[ "$(id -u)" = 0 ] || refuse "it needs to be root, to make a tree and mount folders into it"
if ! [ -e "$tree" ] && ! command -v debootstrap >/dev/null; then
    refuse "debootstrap is missing: apt-get install debootstrap"
fi
unshare --mount true 2>/dev/null || refuse "this system permits no mounts (unshare --mount fails)"
[ -x "$python" ] || refuse "there is no environment at $python: make test sets it up"

# --- the tree -------------------------------------------------------------------------------------

make_tree() { # under another name first, so that a tree is whole if it is there
    local partial=$cache/partial scripts=$cache/debootstrap
    rm -rf --one-file-system "$partial" "$scripts"
    cp -a /usr/share/debootstrap "$scripts"
    [ -e "$scripts/scripts/$suite" ] || ln -s sid "$scripts/scripts/$suite"
    echo "coopmat: making $tree, which takes a minute or two"
    if ! DEBOOTSTRAP_DIR=$scripts unshare --mount debootstrap --variant=minbase \
        --include="$packages" "$suite" "$partial" >"$cache/log" 2>&1; then
        tail -n 20 "$cache/log" >&2
        return 1
    fi
    rm -rf "$scripts" "$partial"/var/cache/apt/archives/*.deb
    mv "$partial" "$tree"
}

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
[ -e "$tree" ] || make_tree || refuse "debootstrap failed: $cache/log"
exec 9>&-

# --- the run --------------------------------------------------------------------------------------

if [ $# -eq 0 ]; then
    set -- "$python" -m pytest -q -p no:cacheprovider -n "${JOBS:-2}" --dist worksteal \
        tests/unit/test_vulkan_{coopmat,driver,externals,memory,validation}.py
fi

# What Python needs: "mount" and a path of its own, or "copy" and a shared library that the tree lacks.
# A Python among the system's folders, which the tree has too, is its program and its own library.
paths=$("$python" - "$tree" <<'PYTHON'
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

tree, base = sys.argv[1], os.path.realpath(sys.base_prefix)
mounted = [sys.prefix, sys.base_prefix, base]
if base in ("/", "/usr"):
    chain = [os.path.abspath(sys.executable)]  # of links, each of which the tree needs
    while os.path.islink(chain[-1]):
        chain.append(os.path.join(os.path.dirname(chain[-1]), os.readlink(chain[-1])))
    programs = [each for each in chain if not each.startswith(sys.prefix + os.sep)]
    mounted = [sys.prefix, *programs, sysconfig.get_path("stdlib")]
modules = Path(sysconfig.get_config_var("DESTSHARED") or ".").glob("*.so")
told = subprocess.run(["ldd", sys.executable, *modules], capture_output=True, text=True).stdout
libraries = {line.split("=> ")[1].split(" (")[0] for line in told.splitlines() if "=> /" in line}
for path in dict.fromkeys(map(os.path.abspath, mounted)):
    print("mount", path)
for path in sorted(libraries):
    if not os.path.exists(tree + path) and not any(Path(path).is_relative_to(m) for m in mounted):
        print("copy", path)
PYTHON
)

export repository tree paths
exec unshare --mount --propagation private bash -eu -c '
bind() { # a path of this system at the same place in the tree
    if [ -d "$1" ]; then
        mkdir -p "$tree$1"
    elif ! [ -e "$tree$1" ]; then
        mkdir -p "$(dirname "$tree$1")"
        touch "$tree$1"
    fi
    mount --rbind "$1" "$tree$1"
}
mount -t tmpfs none "$tree/tmp"
mkdir "$tree/tmp/libraries"
for path in /proc /dev /sys "$repository"; do bind "$path"; done
while read -r way path; do
    case $way in
        mount) bind "$path" ;;
        copy) cp -L "$path" "$tree/tmp/libraries/" ;;
    esac
done <<<"$paths"
exec chroot "$tree" /usr/bin/env -i \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    LD_LIBRARY_PATH=/tmp/libraries PYTHONPATH="$repository:$repository/backends:$repository/interp" \
    OCL_ICD_VENDORS=/etc/OpenCL/vendors PYTHONDONTWRITEBYTECODE=1 \
    bash -c "cd \"\$1\"; shift; exec \"\$@\"" - "$repository" "$@"
' - "$@"
