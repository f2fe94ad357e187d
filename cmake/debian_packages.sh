#!/usr/bin/env bash
# Makes Debian packages of this tree: libqplan-runtime1, libqplan1, qplan, libqplan-dev and python3-qplan.
# usage: bash cmake/debian_packages.sh [DIRECTORY]
#   DIRECTORY        where the .deb files go (default: build/debian)
#   QPLAN_DEB_BUILD  the build tree (default: build/deb), whose prefix becomes /usr
# Needs dpkg-dev.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
out="$(realpath -m "${1:-$root/build/debian}")"
command -v dpkg-shlibdeps >/dev/null || { echo "debian_packages.sh: dpkg-shlibdeps is missing; apt-get install dpkg-dev" >&2; exit 1; }
cd "$root"
build="${QPLAN_DEB_BUILD:-build/deb}"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DQPLAN_DEBIAN_LAYOUT=ON >/dev/null
cmake --build "$build" --target qplan_installed
mkdir -p "$out"
(cd "$build" && cpack -G DEB -B "$out" --config CPackConfig.cmake)
rm -rf "$out/_CPack_Packages"
ls -l "$out"/*.deb
