#!/usr/bin/env bash
set -euo pipefail
usage() {
  cat <<'TEXT'
usage: bash benchmarks/xnnpack.sh [OPTION...] FOLDER

Counts the instructions that XNNPACK's arm64 kernels take for the convolutions and fully connected layers of the models of
benchmarks/boards.sh, each by itself, in QEMU's user mode, beside those of the whole model here (from boards.sh, run before).

FOLDER has XNNPACK as Debian's packages have it, unpacked, not installed:
  apt-get download libxnnpack-dev:arm64 libxnnpack0:arm64 libcpuinfo0:arm64 libpthreadpool0:arm64 libpthreadpool-dev:arm64
  for package in *.deb; do dpkg -x "$package" FOLDER; done

  --isa LIST       neon, dotprod or both                          (default: neon,dotprod)
  --output FOLDER  where boards.sh left its plans and its counts  (default: build/boards-benchmark)
  --help
TEXT
}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
isas=neon,dotprod output=$root/build/boards-benchmark folder=
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --isa | --output)
      [ $# -ge 2 ] || { echo "xnnpack.sh: $1 needs a value" >&2; exit 2; }
      [ "$1" = --isa ] && isas=$2 || output=$2
      shift ;;
    -*) echo "xnnpack.sh: option '$1' is not known; see --help" >&2; exit 2 ;;
    *) folder=$(cd "$1" && pwd) ;;
  esac
  shift
done
[ -n "$folder" ] || { usage >&2; exit 2; }
[ -f "$output/insn_count.so" ] || { echo "xnnpack.sh: '$output' has no counts; run benchmarks/boards.sh first" >&2; exit 1; }
libraries=$folder/usr/lib/aarch64-linux-gnu program=$output/xnnpack_layers
declare -A processor=([neon]=cortex-a53 [dotprod]=neoverse-n1)
aarch64-linux-gnu-gcc -std=c11 -O1 -no-pie -Wall -Wextra -I"$folder/usr/include" "$root/benchmarks/peers/xnnpack_layers.c" \
  -o "$program" -L"$libraries" -lXNNPACK -Wl,-rpath-link,"$libraries"
address() { aarch64-linux-gnu-nm "$program" | awk -v name="$1" '$3 == name { printf "0x%s", $1 }'; }
# Steps with weights as the program reads them.
layers() {
  python3 -c '
import json, math, sys
WINDOW = ("kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w", "pad_top", "pad_left", "groups")
plan = json.load(sys.stdin)
for step in plan["steps"]:
    if step["op"] not in ("conv2d", "depthwise_conv2d", "fully_connected"):
        continue
    params = step["params"]
    source, result = ([int(extent) for extent in step[key][0].split("x")] for key in ("input_shapes", "output_shapes"))
    if step["op"] == "fully_connected":
        numbers = [1, 1, math.prod(source), 1, 1, math.prod(result), 1, 1, 1, 1, 1, 1, 0, 0, 1]
    else:
        numbers = source[1:] + result[1:] + [int(params[name]) for name in WINDOW]
    # Not by zero points, which the packer moves to the middle of the dtype, nor by dtypes inside, which it makes int8.
    print("qs8" if plan["inputs"][0]["dtype"] == "int8" else "qu8", *numbers)'
}

printf '%-26s %-8s %12s %12s %6s\n' model isa qplan XNNPACK ratio
for isa in ${isas//,/ }; do
  for model in kws_ref_model person_detect pretrainedResnet_quant ad01_int8 mobilenet_v2_1.0_224_quant; do
    qplan=${QPLAN_COMMAND:-$root/build/release/bin/qplan}
    # Without cascades, in which layers are no steps.
    "$qplan" pack "${QPLAN_SHARED:-$root/../shared}/models/$model.tflite" -o "$output/$model.layers.qplan" --fuse off \
      --target "cpu,arch=aarch64,isa=$isa" > "$output/pack.txt"
    "$qplan" inspect "$output/$model.layers.qplan" --json | layers > "$output/layers.txt"
    qemu-aarch64 -cpu "${processor[$isa]}" -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$libraries" \
      -plugin "$output/insn_count.so,begin=$(address begin_of_layers),end=$(address end_of_layers),out=$output/xnnpack.txt" \
      "$program" < "$output/layers.txt" > "$output/run.txt"
    awk -v model="$model" -v isa="$isa" '$1 == "total" { if (FNR == NR) own = $2; else
      printf "%-26s %-8s %12.3f %12.3f %6.2f\n", model, isa, own / 1e6, $2 / 1e6, own / $2 }' \
      "$output/$model.$isa.txt" "$output/xnnpack.txt"
  done
done
