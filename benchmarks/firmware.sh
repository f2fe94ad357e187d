#!/usr/bin/env bash
set -euo pipefail
usage() {
  cat <<'TEXT'
usage: bash benchmarks/firmware.sh [OPTION...] [MODEL...]

Packs models for a Cortex-M core, builds an image of each (samples/firmware), runs it in QEMU, compares its output with the
golden bytes, and counts what one invoke executes: instructions, loads and stores, by step and by function. Instructions
are not cycles: a load or a taken branch takes more than one of those.

  --core C         cortex-m0plus, cortex-m3, cortex-m4, cortex-m7, cortex-m33, cortex-m55, cortex-m85   (default: cortex-m4)
  --target T       the packer's target                    (default: cpu,arch= the core)
  --fuse F         the packer's option                    (default: its own)
  --max-ram BYTES  the packer's option                    (default: none)
  --form F         plan, array or aot: the runtime's API, or what emit-c writes   (default: plan)
  --build-type T   of CMake, for all but the kernels that keep flags of their own   (default: MinSizeRel)
  --start          counts the start in place of an invoke: opening the plan with its digest, and init (form plan)
  --no-digest      opens the plan without it
  --steps          a table of the steps of each model, too
  --functions      a table of the functions of each model, too
  --cycles         a table of the inner loops of each model, too: their instructions and the cycles that llvm-mca (LLVM 16)
                   estimates for them on cortex-m4, m7, m33 and m55, where memory never makes them wait
  --tflm FOLDER    counts TensorFlow Lite Micro in the place of qplan: FOLDER is its source tree, whose own Makefile builds
                   the library for the core (and downloads what the tree lacks)
  --cmsis-nn       with the kernels of CMSIS-NN
  --make V=VALUE   of TFLM's Makefile, such as CMSIS_NN_PATH=folder; may be repeated
  --output FOLDER  for plans, images and counts           (default: build/firmware-benchmark)
  --help

Models are read from QPLAN_SHARED (default: ../shared): kws_ref_model, person_detect, pretrainedResnet_quant, ad01_int8.
Needs build/release/bin/qplan, a C compiler, gcc-arm-none-eabi, libnewlib-arm-none-eabi,
libstdc++-arm-none-eabi-newlib and qemu-system-arm up to version 8.
TEXT
}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
shared=${QPLAN_SHARED:-$root/../shared}
core=cortex-m4 form=plan target= build_type=MinSizeRel fuse= max_ram= start= digest=ON tflm= output=$root/build/firmware-benchmark tables=() models=()
make_options=()
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --steps | --functions | --cycles) tables+=("$1") ;;
    --no-digest) digest=OFF tables+=("$1") ;;
    --start) start=1 tables+=("$1") ;;
    --cmsis-nn) make_options+=(OPTIMIZED_KERNEL_DIR=cmsis_nn) ;;
    --core | --target | --fuse | --max-ram | --form | --build-type | --output | --tflm | --make)
      [ $# -ge 2 ] || { echo "firmware.sh: $1 needs a value" >&2; exit 2; }
      name=${1#--}
      if [ "$name" = make ]; then make_options+=("$2"); else declare "${name//-/_}=$2"; fi
      shift ;;
    -*) echo "firmware.sh: option '$1' is not known; see --help" >&2; exit 2 ;;
    *) models+=("$1") ;;
  esac
  shift
done
[ ${#models[@]} -gt 0 ] || models=(kws_ref_model person_detect pretrainedResnet_quant ad01_int8)
declare -A golden=([kws_ref_model]=rand1 [person_detect]=person [pretrainedResnet_quant]=bird [ad01_int8]=rand1)
case $core in
  cortex-m0plus | cortex-m3) board=mps2-an385 ;;
  cortex-m4) board=mps2-an386 ;;
  cortex-m7) board=mps2-an500 ;;
  cortex-m33) board=mps2-an505 ;;
  cortex-m55 | cortex-m85) board=mps3-an547 ;;
  *) echo "firmware.sh: --core '$core' is not known; see --help" >&2; exit 2 ;;
esac
: "${target:=cpu,arch=$core}"
case $form in
  plan | array | aot) ;;
  *) echo "firmware.sh: --form '$form' is not known; see --help" >&2; exit 2 ;;
esac
[ -z "$start" ] || [ "$form" = plan ] || { echo "firmware.sh: --start counts the form plan, not '$form'" >&2; exit 2; }
if [ -n "$tflm" ]; then
  [ "$form$start" = plan ] || { echo "firmware.sh: --tflm goes with neither --form nor --start" >&2; exit 2; }
  makefile=tensorflow/lite/micro/tools/make/Makefile
  [ -f "$tflm/$makefile" ] || { echo "firmware.sh: --tflm '$tflm' has no $makefile: expected TFLM's source tree" >&2; exit 2; }
  tflm=$(cd "$tflm" && pwd) form=tflm
elif [ ${#make_options[@]} -gt 0 ]; then
  echo "firmware.sh: --cmsis-nn and --make go with --tflm" >&2
  exit 2
fi
qplan=${QPLAN_COMMAND:-$root/build/release/bin/qplan}
mkdir -p "$output"
output=$(cd "$output" && pwd)

${CC:-cc} -std=c11 -O2 -Wall -Wextra -fPIC -shared -fvisibility=hidden "$root/benchmarks/qemu/insn_count.c" \
  -o "$output/insn_count.so"

# The addresses of the functions that match a pattern, separated by colons.
addresses() {
  arm-none-eabi-nm "$1" | awk -v pattern="$2" '$2 ~ /[tT]/ && $3 ~ pattern { printf "%s0x%s", sep, $1; sep = ":" }'
}

# TFLM's library, by its Makefile and the installed compiler, with hard floats as the toolchain files have them.
if [ -n "$tflm" ]; then
  case $core in
    cortex-m4 | cortex-m7) architecture=$core+fp ;;
    cortex-m85) architecture=cortex-m55 ;;  # as the toolchain file has it
    *) architecture=$core ;;
  esac
  # The build type for profiles: `release` leaves out the calls of the profiler that name the operators.
  make -C "$tflm" -f "$makefile" -j"$(nproc)" TARGET=cortex_m_generic TARGET_ARCH="$architecture" BUILD_TYPE=release_with_logs \
    TARGET_TOOLCHAIN_ROOT="$(dirname "$(command -v arm-none-eabi-gcc)")/" ${make_options[@]+"${make_options[@]}"} microlite \
    > "$output/tflm.txt" 2>&1 || { tail -40 "$output/tflm.txt" >&2; exit 1; }
  # Its folder depends on the version and is named after the options: the one made last of the same build with the same
  # kernels.
  kernels= build=release_with_logs
  for option in ${make_options[@]+"${make_options[@]}"}; do
    case $option in
      OPTIMIZED_KERNEL_DIR=*) kernels=${option#*=} ;;
      BUILD_TYPE=*) build=${option#*=} ;;
    esac
  done
  named=(! -path "*cmsis_nn_*")
  [ -z "$kernels" ] || named=(-path "*_${kernels}_*")
  library=$(find "$tflm" -name libtensorflow-microlite.a -path "*cortex_m_generic_${architecture}_${build}[_/]*" "${named[@]}" -printf '%T@ %p\n' |
    sort -n | tail -1 | cut -d' ' -f2-)
  [ -n "$library" ] || { echo "firmware.sh: TFLM's Makefile made no libtensorflow-microlite.a in '$tflm'" >&2; exit 1; }
fi

for model in "${models[@]}"; do
  case_folder=$shared/golden/$model/${golden[$model]:-rand1}
  folder=$output/$model
  mkdir -p "$folder"
  "$qplan" pack "$shared/models/$model.tflite" -o "$folder/model.qplan" --target "$target" ${fuse:+--fuse "$fuse"} \
    ${max_ram:+--max-ram "$max_ram"} > "$folder/pack.txt"
  "$qplan" inspect "$folder/model.qplan" --json > "$folder/inspect.json"
  tree=$output/$core what=(-DFIRMWARE_PLAN="$folder/model.qplan") first='^qplan_session_invoke$' last='^qplan_session_view$'
  [ -z "$start" ] || first='^qplan_plan_open$'  # the sample then looks for its input
  source=$root/samples/firmware
  if [ -n "$tflm" ]; then
    source=$root/benchmarks/peers/tflm tree=$output/$core-tflm first='^invoke_once$' last='^invoke_done$'
    what=(-DTFLM_ROOT="$tflm" -DTFLM_LIBRARY="$library" -DFIRMWARE_PLAN="$shared/models/$model.tflite")
  elif [ "$form" != plan ]; then
    rm -rf "$folder/c"
    "$qplan" emit-c "$folder/model.qplan" -o "$folder/c" --name model $([ "$form" = aot ] && echo --aot) > /dev/null
    tree=$output/$core-c what=(-DFIRMWARE_C="$folder/c" -DFIRMWARE_NAME=model) first='^model_run$' last='^model_output$'
  fi
  # One build tree for all images: the runtime is compiled once.
  cmake -S "$source" -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE="$build_type" \
    -DCMAKE_TOOLCHAIN_FILE="$root/cmake/toolchains/$core.cmake" "${what[@]}" \
    -DFIRMWARE_DIGEST=$digest -DFIRMWARE_INPUT="$case_folder/input0.bin" -DFIRMWARE_EXPECTED="$case_folder/output0.bin" > "$folder/build.txt"
  cmake --build "$tree" >> "$folder/build.txt" || { tail -40 "$folder/build.txt" >&2; exit 1; }
  image=$folder/firmware.elf
  cp "$tree/firmware.elf" "$image"
  # One invoke: what the sample does from its call until it looks at the output. A step begins where the executor
  # calls its function, a layer of a cascade where its arguments are bound.
  begin=$(addresses "$image" "$first") end=$(addresses "$image" "$last")
  marks=$(addresses "$image" '^_ZN5qplan.*run_unkept_step|BeginEvent|^_ZZN5qplan11make_familyI.*StepView.*_FUN')
  rm -f "$folder/counts.txt"
  qemu-system-arm -M "$board" -nographic -monitor none -serial none -semihosting-config enable=on,target=native \
    -plugin "$output/insn_count.so,begin=$begin,end=$end,marks=$marks,out=$folder/counts.txt" \
    -kernel "$image" > "$folder/run.txt" 2>&1 || { echo "firmware.sh: $model:"; cat "$folder/run.txt"; } >&2
  arm-none-eabi-nm -CS --numeric-sort "$image" > "$folder/symbols.txt"
done
python3 "$root/benchmarks/report/firmware.py" "$output" "$core" ${tables[@]+"${tables[@]}"} "${models[@]}"
