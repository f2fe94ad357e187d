#!/usr/bin/env bash
# Plays each kind of user in a clean directory: a new clone, an empty environment, a home of its own.
# usage: bash tests/players/players.sh BUILD | --all
#   BUILD   a build tree of this repository: players use what it built (the test install/players)
#   --all   the clone builds itself by samples/quickstart.sh, which takes minutes, and by a wheel
# Prints a line for each player. Exit status 1 where one fails; its output is shown. Players whose tools are missing are skipped.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
mode="${1:?usage: players.sh BUILD | --all}"
[[ $mode == --all ]] || build="$(realpath "$mode")"
work="$(mktemp -d /tmp/qplan_players.XXXXXX)"
trap 'rm -rf "$work"' EXIT
mkdir "$work/home"
git -C "$root" ls-files -z | (cd "$root" && xargs -0 -I{} sh -c '[ -e "{}" ] && printf "%s\0" "{}"') >"$work/files"
mkdir "$work/qplan"
(cd "$root" && tar --null -cf - -T "$work/files") | tar -xf - -C "$work/qplan"  # as a clone of what is checked in, with changes
clean() { env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$work/home" LANG=C.UTF-8 "$@"; }
prefix="$work/prefix"
python=/usr/bin/python3
status=0

play() {  # NAME FUNCTION
  local begin=$SECONDS
  # In the background, because a condition would switch -e off inside.
  (set -e; cd "$work/qplan"; "$2") >"$work/log" 2>&1 &
  if wait $!; then
    printf 'ok       %-12s %3d s\n' "$1" $((SECONDS - begin))
  elif [[ $(tail -n 1 "$work/log") == skipped:* ]]; then
    printf 'skipped  %-12s %s\n' "$1" "$(tail -n 1 "$work/log")"
  else
    status=1
    printf 'FAILED   %-12s\n' "$1"
    sed 's/^/  /' "$work/log" | tail -n 30
  fi
}
need() { command -v "$1" >/dev/null || { echo "skipped: $1 is missing"; exit 3; }; }

quickstart() { clean bash samples/quickstart.sh; }
install_() {
  clean cmake --install "${build:-$work/qplan/build/release}" --prefix "$prefix"
  clean "$prefix/bin/qplan" --version
}
command_() {
  local q="$prefix/bin/qplan"
  clean "$q" pack samples/models/digits.tflite -o digits.qplan
  clean "$q" inspect digits.qplan
  clean "$q" check digits.qplan
  clean "$q" bench digits.qplan
  clean "$q" run digits.qplan --input samples/images/digit7.png --labels samples/models/digits_labels.txt | tee out.txt
  grep -q "seven" out.txt
}
onnx() {
  clean "$prefix/bin/qplan" pack samples/models/digits_qdq.onnx -o onnx.qplan --io int8 --io-layout nhwc
  clean "$prefix/bin/qplan" run onnx.qplan --input samples/images/digit3.png --top 1 | tee out.txt
  grep -q "  3$" out.txt
}
pytorch() {
  clean "$prefix/bin/qplan" pack samples/models/digits.pt -o pt.qplan --input-shape image=1x1x16x16 --io int8 --io-layout nhwc
  clean "$prefix/bin/qplan" run pt.qplan --input samples/images/digit5.png --top 1 | tee out.txt
  grep -q "  5$" out.txt
  clean QPLAN="$prefix/bin/qplan" QPLAN_SHARED=absent bash samples/three_ways.sh
}
c_program() {
  clean cmake -S samples/c_api -B c -DCMAKE_PREFIX_PATH="$prefix"
  clean cmake --build c
  clean c/qplan_c_api digits.qplan tests/data/digits/digit3_input.bin -o out.bin
  cmp out.bin tests/data/digits/digit3_output.bin
}
cpp_program() {
  clean cmake -S samples/cpp_api -B cpp -DCMAKE_PREFIX_PATH="$prefix"
  clean cmake --build cpp
  clean cpp/qplan_cpp_api digits.qplan tests/data/digits/digit8_input.bin out.bin
  cmp out.bin tests/data/digits/digit8_output.bin
}
wheel() {
  "$python" -c "import pip, numpy" 2>/dev/null || { echo "skipped: python3-pip or python3-numpy is missing"; exit 3; }
  local settings=()
  [[ -z ${build:-} ]] || settings=(--config-settings "build-dir=$build" --config-settings skip-build=1)
  clean "$python" -m pip install . --target "$work/site" --no-deps --no-index --no-build-isolation "${settings[@]}"
  cd "$work/home"
  clean PYTHONPATH="$work/site" "$python" - "$work/qplan" <<'END'
import sys
import numpy
import qplan

data = sys.argv[1] + "/tests/data/digits/digit6_"
image = numpy.fromfile(data + "input.bin", numpy.int8).reshape(1, 16, 16, 1)
expected = numpy.fromfile(data + "output.bin", numpy.int8).reshape(1, 10)
report = qplan.check(sys.argv[1] + "/samples/models/digits.tflite", [image], [expected])
print(report)
sys.exit(not report)
END
}
report() {
  "$prefix/bin/qplan" report --help >/dev/null 2>&1 || { echo "skipped: this build has no 'qplan report'"; exit 3; }
  clean "$prefix/bin/qplan" report digits.qplan -o report.html
  grep -q "<html" report.html
}
firmware() {
  clean "$prefix/bin/qplan" pack samples/models/digits.tflite -o m4.qplan --target cpu,arch=cortex-m4
  clean "$prefix/bin/qplan" emit-c m4.qplan -o digits_c
  need arm-none-eabi-gcc
  clean arm-none-eabi-gcc -std=c99 -pedantic -Wall -Werror -mcpu=cortex-m4 -mthumb -Os -I"$prefix/include" -Idigits_c -c \
    digits_c/*.c
  need qemu-system-arm
  [[ $mode == --all ]] || return 0  # the runtime for the board takes a minute to build; firmware/ of the tests runs it, too
  clean cmake -S samples/firmware -B fw -G Ninja -DCMAKE_BUILD_TYPE=MinSizeRel \
    -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/toolchains/cortex-m4.cmake" -DFIRMWARE_PLAN="$PWD/m4.qplan" \
    -DFIRMWARE_INPUT="$PWD/tests/data/digits/digit0_input.bin" -DFIRMWARE_EXPECTED="$PWD/tests/data/digits/digit0_output.bin"
  clean cmake --build fw
  clean timeout 60 qemu-system-arm -M mps2-an386 -nographic -monitor none -serial none \
    -semihosting-config enable=on,target=native -kernel fw/firmware.elf
}
npu_vendor() {
  clean cmake -S samples/npu_driver_skeleton -B npu -DCMAKE_PREFIX_PATH="$prefix"
  clean cmake --build npu
  clean "$prefix/bin/qplan" pack samples/models/digits.tflite -o npu.qplan --target "vta, cpu" --no-cost-gate
  clean "$prefix/bin/qplan" run npu.qplan --input samples/images/digit7.png
}

[[ $mode != --all ]] || play quickstart quickstart
play install install_
play command command_
play onnx onnx
play pytorch pytorch
play c c_program
play c++ cpp_program
play wheel wheel
play report report
play firmware firmware
play npu npu_vendor
exit $status
