#!/usr/bin/env bash
# Installs the packages of debian-packages.txt that are missing.
# usage: install_packages.sh GROUP...      (build, python, test, bench, fuzz)
set -euo pipefail
list="$(dirname "${BASH_SOURCE[0]}")/debian-packages.txt"

if ! command -v dpkg-query >/dev/null; then
  echo "install_packages.sh: not a Debian system; install by hand what cmake asks for (list: $list)" >&2
  exit 0
fi

missing=()
for group in "$@"; do
  while read -r kind package; do
    [[ $kind == "$group" ]] || continue
    status="$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)"
    [[ $status == installed ]] || missing+=("$package")
  done <"$list"
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "install_packages.sh: packages are missing and this is neither root nor is there sudo; as root, run:" >&2
    echo "  apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "installing ${missing[*]}"
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}")
# The package lists may be absent (fresh container) or old.
if ! "${install[@]}" >/dev/null 2>&1; then
  "${as_root[@]}" apt-get update -qq
  "${install[@]}" >/dev/null
fi
