#!/usr/bin/env bash
# System packages that the tests need. The software OpenCL drivers come as Python packages, so the one
# thing to look for is the OpenCL loader's own needs: a C++ runtime and libnuma on some systems. g++
# compiles texts of devices that are not here for the CPU, clang for AMD's (tests/toolchains).
set -eu
missing=()
packages=()
command -v g++ >/dev/null || { missing+=(g++); packages+=(g++); }
command -v clang-19 >/dev/null || { missing+=(clang-19); packages+=(clang-19); }
for library in libstdc++.so.6; do
    ldconfig -p 2>/dev/null | grep -q "$library" || { missing+=("$library"); packages+=(libstdc++6); }
done
if [ ${#missing[@]} -eq 0 ]; then
    echo "system: nothing to install"
elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "system: installing ${packages[*]} (for ${missing[*]})"
    apt-get update -qq
    for package in "${packages[@]}"; do # older systems have no clang 19; what needs it is skipped
        apt-get install -y -qq "$package" || echo "system: $package cannot be installed"
    done
else
    echo "system: skipped, not root or no apt-get: ${missing[*]} missing, OpenCL devices and the shim of the tests may be absent"
fi
