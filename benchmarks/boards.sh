#!/usr/bin/env bash
set -euo pipefail
usage() {
  cat <<'TEXT'
usage: bash benchmarks/boards.sh [OPTION...] [MODEL...]

Packs models for 64-bit Arm and RISC-V, runs each with samples/c_api in QEMU's user mode, compares its output with the golden
bytes, and counts the instructions of one invoke, in millions. Instructions are not cycles.

  --isa LIST       of instruction sets, with commas       (default: neon,dotprod,i8mm,rvv)
  --output FOLDER  for plans, programs and counts         (default: build/boards-benchmark)
  --help

Models are read from QPLAN_SHARED (default: ../shared): kws_ref_model, person_detect, pretrainedResnet_quant, ad01_int8,
mobilenet_v2_1.0_224_quant.
Needs build/release/bin/qplan, libqplan.a of the presets aarch64 and riscv64 (build/<preset>/lib), the cross compilers
g++-aarch64-linux-gnu and g++-riscv64-linux-gnu, and qemu-user up to version 8.
TEXT
}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
shared=${QPLAN_SHARED:-$root/../shared}
isas=neon,dotprod,i8mm,rvv output=$root/build/boards-benchmark models=()
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
[ ${#models[@]} -gt 0 ] || models=(kws_ref_model person_detect pretrainedResnet_quant ad01_int8 mobilenet_v2_1.0_224_quant)
declare -A golden=([kws_ref_model]=rand1 [person_detect]=person [pretrainedResnet_quant]=bird [ad01_int8]=rand1)
# Each instruction set's architecture, and the least processor that has it.
declare -A arch=([reference]=aarch64 [neon]=aarch64 [dotprod]=aarch64 [i8mm]=aarch64 [rvv]=riscv64)
declare -A processor=([reference]=cortex-a53 [neon]=cortex-a53 [dotprod]=neoverse-n1 [i8mm]=max [rvv]=rv64,v=true,vext_spec=v1.0,vlen=128)
declare -A goal
goals() {
  local isa=$1 i=0
  shift
  for model in kws_ref_model person_detect pretrainedResnet_quant ad01_int8 mobilenet_v2_1.0_224_quant; do
    goal[$isa:$model]=${*:$((++i)):1}
  done
}
goals neon 1.3 3.4 4.6 0.12 120
goals dotprod 0.55 1.5 1.8 0.055 52
goals i8mm 0.45 1.3 1.4 0.05 42
goals rvv 1.3 3.4 4.6 0.12 120
mkdir -p "$output"
${CC:-cc} -std=c11 -O2 -Wall -Wextra -fPIC -shared -fvisibility=hidden "$root/benchmarks/qemu/insn_count.c" \
  -o "$output/insn_count.so"
# Static and at fixed addresses, by which the plugin counts.
build_program() {
  local of=$1 tree=$root/build/$1
  "$of-linux-gnu-gcc" -std=c99 -O1 -static -no-pie -I"$root/include" -I"$tree/third_party" "$root/samples/c_api/main.c" \
    "$tree/lib/libqplan.a" -o "$output/qplan_c_api.$of"
  "$of-linux-gnu-nm" -C --numeric-sort "$output/qplan_c_api.$of" > "$output/symbols.$of.txt"
}
address() { awk -v name="$2" '$2 ~ /[tT]/ && $3 == name { printf "0x%s", $1 }' "$output/symbols.$1.txt"; }
for of in $(for isa in ${isas//,/ }; do echo "${arch[$isa]}"; done | sort -u); do build_program "$of"; done

printf '%-26s %-8s %12s %8s\n' model isa instructions goal
for isa in ${isas//,/ }; do
  for model in "${models[@]}"; do
    files=$shared/golden/$model/${golden[$model]:-rand1}
    plan=$output/$model.$isa.qplan counts=$output/$model.$isa.txt
    "${QPLAN_COMMAND:-$root/build/release/bin/qplan}" pack "$shared/models/$model.tflite" -o "$plan" \
      --target "cpu,arch=${arch[$isa]},isa=$isa" > "$output/pack.txt"
    begin=$(address "${arch[$isa]}" qplan_session_invoke) end=$(address "${arch[$isa]}" qplan_session_view)
    "qemu-${arch[$isa]}" -cpu "${processor[$isa]}" -plugin "$output/insn_count.so,begin=$begin,end=$end,out=$counts" \
      "$output/qplan_c_api.${arch[$isa]}" "$plan" "$files/input0.bin" -o "$output/output.bin" > "$output/run.txt"
    cmp "$output/output.bin" "$files/output0.bin"
    awk -v model="$model" -v isa="$isa" -v goal="${goal[$isa:$model]:--}" \
      '$1 == "total" { printf "%-26s %-8s %12.3f %8s\n", model, isa, $2 / 1e6, goal }' "$counts"
  done
done
