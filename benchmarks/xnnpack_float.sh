#!/usr/bin/env bash
set -euo pipefail
usage() {
  cat <<'TEXT'
usage: bash benchmarks/xnnpack_float.sh [OPTION...] [MODEL...]

Measures the float32 convolutions and fully connected layers of models beside XNNPACK's on this machine, one thread. Both
run the layers of a model in a row, in turns (qplan, XNNPACK, qplan, ...); the time of a layer is its smallest of a turn, that
of a model the median of the rounds' sums, and the ratio the median of theirs. Models that are quantised are packed with
--keep-float, so that their layers are float32. Without models: those of the reference data (QPLAN_SHARED).

XNNPACK comes from Debian's libxnnpack-dev.

  --rounds N       of turns of 300 ms each                        (default: 7)
  --folder FOLDER  libxnnpack-dev and libpthreadpool-dev unpacked (dpkg -x), where they are not installed
  --layers         print the layers' times, too
  --help
TEXT
}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
rounds=7 folder= layers=0 models=()
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --layers) layers=1 ;;
    --rounds | --folder)
      [ $# -ge 2 ] || { echo "xnnpack_float.sh: $1 needs a value" >&2; exit 2; }
      [ "$1" = --rounds ] && rounds=$2 || folder=$(cd "$2" && pwd)
      shift ;;
    -*) echo "xnnpack_float.sh: option '$1' is not known; see --help" >&2; exit 2 ;;
    *) models+=("$1") ;;
  esac
  shift
done
shared=${QPLAN_SHARED:-$root/../shared}
[ ${#models[@]} -gt 0 ] || models=("$shared"/models/{kws_ref_model_float32,pretrainedResnet,ad01_fp32}.tflite
  "$shared"/onnx/{mobilenet_v1_0.25_128_quant_B,mobilenet_v2_1.0_224_quant_As8w}.onnx)
qplan=${QPLAN_COMMAND:-$root/build/release/bin/qplan}
output=$root/build/xnnpack-float
mkdir -p "$output"
${CC:-cc} -std=c11 -O2 -Wall -Wextra ${folder:+-I"$folder/usr/include"} "$root/benchmarks/peers/xnnpack_layers.c" \
  -o "$output/xnnpack_layers" ${folder:+-L"$folder/usr/lib/$(${CC:-cc} -print-multiarch)"} -l:libXNNPACK.so.0
python3 "$root/benchmarks/report/xnnpack_float.py" --qplan "$qplan" --peer "$output/xnnpack_layers" --folder "$output" \
  --rounds "$rounds" $([ "$layers" = 1 ] && echo --layers) "${models[@]}"
