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
options=() tree=build/deb board=
if [[ ${1:-} == --board ]]; then
  board="${2:-}"
  case "$board" in
    arm64) processor=aarch64 ;;
    riscv64) processor=riscv64 ;;
    *) fail "--board '$board': expected arm64 or riscv64" ;;
  esac
  command -v "$processor-linux-gnu-g++" >/dev/null ||
    fail "$processor-linux-gnu-g++ is missing; apt-get install g++-$processor-linux-gnu"
  options=(-DQPLAN_BUILD_PACKER=OFF "-DCMAKE_TOOLCHAIN_FILE=$root/cmake/toolchains/$processor.cmake"
           "-DCMAKE_INSTALL_LIBDIR=lib/$processor-linux-gnu")
  tree="build/deb-$board"
  shift 2
fi
[[ $# -le 1 && ${1:-} != -* ]] || fail "usage: debian_packages.sh [--board ARCHITECTURE] [DIRECTORY]"
out="$(realpath -m "${1:-$root/build/debian}")"
[[ -n $board ]] || command -v dpkg-shlibdeps >/dev/null || fail "dpkg-shlibdeps is missing; apt-get install dpkg-dev"
cd "$root"
build="${QPLAN_DEB_BUILD:-$tree}"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DQPLAN_DEBIAN_LAYOUT=ON \
  "${options[@]}" >/dev/null
cmake --build "$build" --target qplan_installed
# The version of the C library that cmake/QplanPackages.cmake states for cross builds.
if [[ -n $board ]]; then
  newest="$(readelf -V "$build"/lib/*.so "$build"/bin/qplan | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)"
  [[ $(printf 'GLIBC_2.34\n%s\n' "$newest" | sort -V | tail -n 1) == GLIBC_2.34 ]] ||
    fail "the build needs $newest, and its packages would ask for libc6 2.34; correct cmake/QplanPackages.cmake"
fi
mkdir -p "$out"
(cd "$build" && cpack -G DEB -B "$out" --config CPackConfig.cmake)
rm -rf "$out/_CPack_Packages"
ls -l "$out"/*.deb
