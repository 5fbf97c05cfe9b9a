#!/usr/bin/env bash
# System packages that the tests need. The software OpenCL drivers come as Python packages, so the one
# thing to look for there is a C++ runtime. Vulkan has no such packages: its loader, a driver that
# needs no GPU, the validation layer and a compiler of GLSL are the system's. g++ compiles texts of
# devices that are not here for the CPU, clang for AMD's (tests/toolchains).
set -eu
packages=()
command -v g++ >/dev/null || packages+=(g++)
command -v clang-19 >/dev/null || packages+=(clang-19)
ldconfig -p 2>/dev/null | grep -q libstdc++.so.6 || packages+=(libstdc++6)
ldconfig -p 2>/dev/null | grep -q libvulkan.so.1 || packages+=(libvulkan1)
compgen -G '/usr/share/vulkan/icd.d/*.json' >/dev/null || packages+=(mesa-vulkan-drivers)
compgen -G '/usr/share/vulkan/explicit_layer.d/*validation*.json' >/dev/null || packages+=(vulkan-validationlayers)
# AMD's own library and compiler of HIP, which need no GPU to be called
ldconfig -p 2>/dev/null | grep -q 'libamdhip64.so' || packages+=(libamdhip64-5 libhiprtc-builtins5)
command -v glslangValidator >/dev/null || command -v glslc >/dev/null || packages+=(glslang-tools)
# as root, a newer Mesa is tested in a tree of its own (tools/coopmat_tree.sh)
[ "$(id -u)" != 0 ] || command -v debootstrap >/dev/null || packages+=(debootstrap)
if [ ${#packages[@]} -eq 0 ]; then
    echo "system: nothing to install"
elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "system: installing ${packages[*]}"
    apt-get update -qq
    for package in "${packages[@]}"; do # one that this system does not know keeps no other away
        apt-get install -y -qq "$package" || echo "system: $package cannot be installed here"
    done
else
    echo "system: skipped, not root or no apt-get: ${packages[*]} missing, devices and the shim of the tests may be absent"
fi
