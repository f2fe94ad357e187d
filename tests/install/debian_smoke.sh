#!/usr/bin/env bash
# Installs the Debian packages in a clean Debian 12 and uses them: command, manual, completion, C by pkg-config, C++ by CMake,
# Python. usage: bash tests/install/debian_smoke.sh DIRECTORY_OF_DEBS [CHROOT]
#   CHROOT   a directory that debootstrap has filled; without it one is made and removed. Needs root, debootstrap and a mirror.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
debs="$(realpath "${1:?usage: debian_smoke.sh DIRECTORY_OF_DEBS [CHROOT]}")"
chroot="${2:-}"
if [[ -z $chroot ]]; then
  chroot="$(mktemp -d /tmp/qplan_chroot.XXXXXX)"
  trap 'rm -rf --one-file-system "$chroot"' EXIT
  debootstrap --variant=minbase bookworm "$chroot" "${QPLAN_MIRROR:-http://deb.debian.org/debian}" >"$chroot.log" 2>&1
fi
inside() { chroot "$chroot" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }

rm -rf "$chroot/smoke"
mkdir -p "$chroot/smoke"
cp "$debs"/*.deb "$chroot/smoke/"
cp -r "$root/samples" "$chroot/smoke/samples"
cp -r "$root/tests/data/digits" "$chroot/smoke/digits"
cp /etc/resolv.conf "$chroot/etc/resolv.conf" 2>/dev/null || true
cp -n /etc/apt/apt.conf.d/* "$chroot/etc/apt/apt.conf.d/"  # proxies

echo "== install"
inside sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends /smoke/*.deb g++ cmake make pkg-config >/smoke/apt.log 2>&1 || { tail -20 /smoke/apt.log; exit 1; }'
# What packages that link the libraries will depend on.
inside sh -ec '
  cd /var/lib/dpkg/info
  grep -q "^libqplan 1 libqplan1 " libqplan1*.shlibs
  grep -q "^libqplan_runtime 1 libqplan-runtime1 " libqplan-runtime1*.shlibs
'
echo "== command"
inside sh -ec '
  cd /smoke
  qplan --version
  qplan pack samples/models/digits.tflite -o digits.qplan
  qplan check digits.qplan
  qplan run digits.qplan --input samples/images/digit7.png --labels samples/models/digits_labels.txt | head -1
  qplan run digits.qplan --input samples/images/digit7.png --labels samples/models/digits_labels.txt | grep -q "seven"
  test -f /usr/share/man/man1/qplan-pack.1 || test -f /usr/share/man/man1/qplan-pack.1.gz || grep -q "path-exclude.*man" -r /etc/dpkg
'
echo "== C by pkg-config"
inside sh -ec '
  cd /smoke
  gcc -std=c99 samples/c_api/main.c -o c_api $(pkg-config --cflags --libs qplan-runtime)
  ./c_api digits.qplan digits/digit3_input.bin -o out.bin
  cmp out.bin digits/digit3_output.bin
'
echo "== C++ by CMake"
inside sh -ec '
  cd /smoke
  cmake -S samples/cpp_api -B cpp >/dev/null && cmake --build cpp >/dev/null
  ./cpp/qplan_cpp_api digits.qplan digits/digit8_input.bin out.bin
  cmp out.bin digits/digit8_output.bin
'
echo "== Python"
inside sh -ec '
  cd /smoke
  python3 -c "
import numpy, qplan
plan = qplan.Plan(\"digits.qplan\")
image = numpy.fromfile(\"digits/digit5_input.bin\", numpy.int8).reshape(1, 16, 16, 1)
print(qplan.Session(plan).run(image)[0].argmax())
assert qplan.check(plan)
"
'
echo "== remove"
inside sh -ec 'apt-get purge -y -qq qplan libqplan1 libqplan-runtime1 >/dev/null 2>&1; ! command -v qplan'
echo "passed"
