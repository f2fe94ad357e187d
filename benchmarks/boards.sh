#!/usr/bin/env bash
set -euo pipefail
usage() {
  cat <<'TEXT'
usage: bash benchmarks/boards.sh [OPTION...] [MODEL...]

Packs models for 64-bit Arm, runs each with samples/c_api in QEMU's user mode, compares its output with the golden bytes, and
counts the instructions of one invoke, in millions. Instructions are not cycles.

  --isa LIST       of instruction sets, with commas       (default: neon,dotprod)
  --output FOLDER  for plans, programs and counts         (default: build/boards-benchmark)
  --help

Models are read from QPLAN_SHARED (default: ../shared): kws_ref_model, person_detect, pretrainedResnet_quant, ad01_int8.
Needs build/release/bin/qplan, build/aarch64/lib/libqplan.a (preset aarch64), g++-aarch64-linux-gnu and qemu-user up to
version 8.
TEXT
}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
shared=${QPLAN_SHARED:-$root/../shared}
isas=neon,dotprod output=$root/build/boards-benchmark models=()
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --isa | --output)
      [ $# -ge 2 ] || { echo "boards.sh: $1 needs a value" >&2; exit 2; }
      [ "$1" = --isa ] && isas=$2 || output=$2
      shift ;;
    -*) echo "boards.sh: option '$1' is not known; see --help" >&2; exit 2 ;;
    *) models+=("$1") ;;
  esac
  shift
done
[ ${#models[@]} -gt 0 ] || models=(kws_ref_model person_detect pretrainedResnet_quant ad01_int8)
declare -A golden=([kws_ref_model]=rand1 [person_detect]=person [pretrainedResnet_quant]=bird [ad01_int8]=rand1)
# Of each instruction set the least processor that has it.
declare -A processor=([reference]=cortex-a53 [neon]=cortex-a53 [dotprod]=neoverse-n1)
declare -A goal=([neon:kws_ref_model]=1.3 [neon:person_detect]=3.4 [neon:pretrainedResnet_quant]=4.6 [neon:ad01_int8]=0.12
  [dotprod:kws_ref_model]=0.55 [dotprod:person_detect]=1.5 [dotprod:pretrainedResnet_quant]=1.8 [dotprod:ad01_int8]=0.055)
mkdir -p "$output"
tree=$root/build/aarch64 program=$output/qplan_c_api
${CC:-cc} -std=c11 -O2 -Wall -Wextra -fPIC -shared -fvisibility=hidden "$root/benchmarks/qemu/insn_count.c" \
  -o "$output/insn_count.so"
# Static and at fixed addresses, by which the plugin counts.
aarch64-linux-gnu-gcc -std=c99 -O1 -static -no-pie -I"$root/include" -I"$tree/third_party" "$root/samples/c_api/main.c" \
  "$tree/lib/libqplan.a" -o "$program"
aarch64-linux-gnu-nm -C --numeric-sort "$program" > "$output/symbols.txt"
address() { awk -v name="$1" '$2 ~ /[tT]/ && $3 == name { printf "0x%s", $1 }' "$output/symbols.txt"; }

printf '%-26s %-8s %12s %8s\n' model isa instructions goal
for isa in ${isas//,/ }; do
  for model in "${models[@]}"; do
    files=$shared/golden/$model/${golden[$model]:-rand1}
    plan=$output/$model.$isa.qplan counts=$output/$model.$isa.txt
    "${QPLAN_COMMAND:-$root/build/release/bin/qplan}" pack "$shared/models/$model.tflite" -o "$plan" \
      --target "cpu,arch=aarch64,isa=$isa" > "$output/pack.txt"
    qemu-aarch64 -cpu "${processor[$isa]:-max}" \
      -plugin "$output/insn_count.so,begin=$(address qplan_session_invoke),end=$(address qplan_session_view),out=$counts" \
      "$program" "$plan" "$files/input0.bin" -o "$output/output.bin" > "$output/run.txt"
    cmp "$output/output.bin" "$files/output0.bin"
    awk -v model="$model" -v isa="$isa" -v goal="${goal[$isa:$model]:--}" \
      '$1 == "total" { printf "%-26s %-8s %12.3f %8s\n", model, isa, $2 / 1e6, goal }' "$counts"
  done
done
