#!/usr/bin/env bash
# Makes Debian packages of this tree: libqplan-runtime1, libqplan1, qplan, libqplan-dev and python3-qplan.
# usage: bash cmake/debian_packages.sh [--board ARCHITECTURE] [DIRECTORY]
#   --board arm64 or riscv64  a cross build without the packer: all of these but libqplan1
#   DIRECTORY                 where the .deb files go (default: build/debian)
#   QPLAN_DEB_BUILD           the build tree (default: build/deb, or build/deb-ARCHITECTURE), whose prefix becomes /usr
# Needs dpkg-dev, and the architecture's compiler.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
fail() { echo "debian_packages.sh: $1" >&2; exit 1; }
options=() tree=build/deb
if [[ ${1:-} == --board ]]; then
  case "${2:-}" in
    arm64) processor=aarch64 ;;
    riscv64) processor=riscv64 ;;
    *) fail "--board '${2:-}': expected arm64 or riscv64" ;;
  esac
  command -v "$processor-linux-gnu-g++" >/dev/null ||
    fail "$processor-linux-gnu-g++ is missing; apt-get install g++-$processor-linux-gnu"
  options=(-DQPLAN_BUILD_PACKER=OFF "-DCMAKE_TOOLCHAIN_FILE=$root/cmake/toolchains/$processor.cmake"
           "-DCMAKE_INSTALL_LIBDIR=lib/$processor-linux-gnu")
  tree="build/deb-$2"
  shift 2
fi
out="$(realpath -m "${1:-$root/build/debian}")"
command -v dpkg-shlibdeps >/dev/null || fail "dpkg-shlibdeps is missing; apt-get install dpkg-dev"
cd "$root"
build="${QPLAN_DEB_BUILD:-$tree}"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DQPLAN_DEBIAN_LAYOUT=ON \
  "${options[@]}" >/dev/null
cmake --build "$build" --target qplan_installed
mkdir -p "$out"
(cd "$build" && cpack -G DEB -B "$out" --config CPackConfig.cmake)
rm -rf "$out/_CPack_Packages"
ls -l "$out"/*.deb
