#!/usr/bin/env bash
# Builds qplan with other compilers than GCC 12 and runs what they have made: the tests of the kernels, the runtime, the
# packer and the C API, and digits.tflite, whose plan has to be the same to the byte with all of them.
# usage: bash tests/install/compilers.sh COMPILER...
#   COMPILER            gcc-11, clang-16: installed on this machine; trixie/gcc-14: in a Debian 13 that debootstrap fills,
#                       which needs root and a mirror (QPLAN_MIRROR); bookworm/..., sid/... likewise; aarch64/clang-14:
#                       kernels for 64-bit Arm by it, all else by GCC; QEMU runs the kernels' tests
#   QPLAN_COMPILER_DIR  where trees, logs and Debian folders stay (default: build/compilers)
# Prints a line for each compiler. Exit status 1 where one fails. A build takes some 15 minutes of processor time.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
[[ $# -gt 0 ]] || { sed -n '2,10s/^# //p' "$0" >&2; exit 2; }
base="$(realpath -m "${QPLAN_COMPILER_DIR:-$root/build/compilers}")"
mkdir -p "$base"
packages() { awk -v kind="$1" '$1 == kind && $2 != "g++" {print $2}' "$root/cmake/debian-packages.txt"; }

# build SOURCES TREE COMPILER: runs on this machine or inside a Debian folder.
cat >"$base/build.sh" <<'END'
set -e
source=$1 tree=$2 compiler=$3
case $compiler in
  gcc-*) cxx=g++-${compiler#gcc-} ;;
  clang-*) cxx=clang++-${compiler#clang-} ;;
  *) echo "'$compiler': expected gcc-VERSION or clang-VERSION"; exit 2 ;;
esac
# Debian's libraries need the libstdc++ of its newest GCC, which the loader finds, but an older GCC links with its own.
link=()
if [[ $compiler == gcc-* && $(gcc -dumpversion) -gt ${compiler#gcc-} ]]; then
  link=(-DCMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined)
fi
cmake -S "$source" -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE=Release -DQPLAN_BUILD_TESTS=ON -DQPLAN_UNITY_SIZE=24 \
  -DCMAKE_C_COMPILER="$compiler" -DCMAKE_CXX_COMPILER="$cxx" "${link[@]}"
cmake --build "$tree" --target qplan_command kernels_tests runtime_tests packer_tests capi_tests
cd "$source"
for tests in kernels runtime packer capi; do
  "$(find "$tree" -name "${tests}_tests" -type f -perm -u+x)" --gtest_brief=1
done
"$tree/bin/qplan" pack samples/models/digits.tflite -o "$tree/digits.qplan" --strip-names
"$tree/bin/qplan" run "$tree/digits.qplan" --input tests/data/digits/digit7_input.bin --output-dir "$tree/out"
cmp "$tree/out/output0.bin" tests/data/digits/digit7_output.bin
END

# debian RELEASE: a Debian folder with what the build needs.
debian() {
  local folder="$base/$1"
  if [[ ! -e $folder/.complete ]]; then
    debootstrap --variant=minbase --include=ca-certificates "$1" "$folder" "${QPLAN_MIRROR:-http://deb.debian.org/debian}"
    cp -n /etc/apt/apt.conf.d/* "$folder/etc/apt/apt.conf.d/"  # proxies
    touch "$folder/.complete"
  fi
  cp /etc/resolv.conf "$folder/etc/resolv.conf" 2>/dev/null || true
}

# board ARCH COMPILER
board() {
  local tree="$base/$1-$2"
  cmake -S "$root" -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_TOOLCHAIN_FILE="$root/cmake/toolchains/$1.cmake" \
    -DQPLAN_KERNELS_COMPILER="clang++-${2#clang-};--target=$1-linux-gnu" -DQPLAN_EMULATED_CPU=max \
    -DQPLAN_BUILD_PACKER=OFF -DQPLAN_BUILD_TESTS=ON -DQPLAN_WERROR=ON -DQPLAN_UNITY_SIZE=24
  cmake --build "$tree" --target kernels_tests
  "qemu-$1" -cpu max -L "/usr/$1-linux-gnu" "$tree/bin/kernels_tests" --gtest_brief=1
}

one() {  # COMPILER: builds and tests with it
  local name="$1" plan="$base/${1//\//_}.qplan"
  if [[ $name == aarch64/* ]]; then
    board "${name%/*}" "${name#*/}"
    return
  fi
  if [[ $name == */* ]]; then
    local release="${name%/*}" compiler="${name#*/}"
    local folder="$base/$release"
    debian "$release"
    local needed
    needed="$(packages build)"
    local packages=(g++ "$compiler" $needed libgtest-dev python3)
    [[ $compiler != gcc-* ]] || packages+=("g++-${compiler#gcc-}")
    [[ $compiler != clang-* ]] || packages+=("libomp-${compiler#clang-}-dev")
    chroot "$folder" env DEBIAN_FRONTEND=noninteractive sh -c \
      'apt-get update && apt-get install -y --no-install-recommends "$@"' sh "${packages[@]}"
    rm -rf "$folder/qplan"
    mkdir -p "$folder/qplan"
    git -C "$root" ls-files -z | tar -C "$root" --null -T - -cf - | tar -C "$folder/qplan" -xf -
    cp "$base/build.sh" "$folder/build.sh"
    chroot "$folder" bash /build.sh /qplan "/tree-$compiler" "$compiler"
    cp "$folder/tree-$compiler/digits.qplan" "$plan"
  else
    bash "$base/build.sh" "$root" "$base/$name" "$name"
    cp "$base/$name/digits.qplan" "$plan"
  fi
  # The first compiler's plan is what the others are compared with.
  [[ -e $base/expected.qplan ]] || cp "$plan" "$base/expected.qplan"
  cmp "$plan" "$base/expected.qplan"
}

rm -f "$base/expected.qplan"
status=0
for name in "$@"; do
  begin=$SECONDS log="$base/${name//\//_}.log"
  (set -e; one "$name") >"$log" 2>&1 &  # in the background, because a condition would switch -e off inside
  if wait $!; then
    printf 'ok       %-16s %4d s, %d warnings\n' "$name" $((SECONDS - begin)) "$(grep -c 'warning:' "$log" || true)"
  else
    printf 'FAILED   %-16s see %s\n' "$name" "$log"
    tail -n 20 "$log" | sed 's/^/  /'
    status=1
  fi
done
exit $status
