#!/usr/bin/env bash
# Fills a folder with Python and NumPy of Debian 12 for a board, to be run by QEMU's user mode; nothing is installed on this
# machine. usage: bash tests/boards/sysroot.sh FOLDER [ARCHITECTURE]
#   ARCHITECTURE  Debian's name of it (default: arm64)
# The test boards/python_aarch64 looks for one at build/sysroot/aarch64, or where QPLAN_BOARD_SYSROOT says. 60 MB are fetched.
set -euo pipefail
folder="$(realpath -m "${1:?usage: sysroot.sh FOLDER [ARCHITECTURE]}")"
architecture="${2:-arm64}"
marker="$folder/.qplan_sysroot"  # written last, with the architecture
if [[ -e $marker ]]; then
  [[ $(cat "$marker") == "$architecture" ]] && exit 0
  echo "sysroot.sh: $folder is for $(cat "$marker"), not for $architecture; name another folder" >&2
  exit 1
fi
if [[ -e $folder && -n $(ls -A "$folder") ]]; then
  echo "sysroot.sh: $folder exists, and is not what this script has made; name another folder" >&2
  exit 1
fi
for tool in apt-get dpkg-deb; do
  command -v $tool >/dev/null || { echo "sysroot.sh: $tool is missing; this works on Debian and what descends from it" >&2; exit 1; }
done
mkdir -p "$(dirname "$folder")"
work="$(mktemp -d "$(dirname "$folder")/sysroot.XXXXXX")"  # beside it, so that moving is not copying
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/lists/partial "$work"/archives/partial "$work/root"
: >"$work/status"
echo "deb [arch=$architecture] ${QPLAN_MIRROR:-http://deb.debian.org/debian} bookworm main" >"$work/sources.list"
# A package database of its own, in which nothing is installed yet: apt finds all that NumPy depends on.
apt() {
  apt-get -qq -o APT::Architecture="$architecture" -o APT::Architectures::="$architecture" -o APT::Sandbox::User=root \
    -o APT::Get::List-Cleanup=false -o Debug::NoLocking=1 -o Dir::Etc::SourceList="$work/sources.list" \
    -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$work/lists" -o Dir::State::status="$work/status" \
    -o Dir::Cache::Archives="$work/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= "$@"
}
apt update
apt install --yes --no-install-recommends --download-only python3-numpy libgomp1 libstdc++6 >/dev/null
for package in "$work"/archives/*.deb; do
  dpkg-deb --extract "$package" "$work/root"
done
# What update-alternatives would link.
for library in "$work"/root/usr/lib/*/{blas/libblas,lapack/liblapack}.so.3; do
  ln -s "$(basename "$(dirname "$library")")/$(basename "$library")" "$(dirname "$library")/../"
done
echo "$architecture" >"$work/root/.qplan_sysroot"
[[ ! -e $folder ]] || rmdir "$folder"
mv "$work/root" "$folder"
echo "sysroot.sh: $folder has $(basename "$(readlink -f "$folder/usr/bin/python3")") and NumPy for $architecture"
