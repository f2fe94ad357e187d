#!/usr/bin/env bash
set -euo pipefail
usage() {
  cat <<'TEXT'
usage: bash benchmarks/run.sh [OPTION...] [-- OPTIONS OF GOOGLE BENCHMARK]

Builds the benchmarks, measures, and writes build/benchmarks/<date>-<commit>/ (benchmarks/README.md says how to read it):
  machine.txt                   what it ran on, and how
  table.md, results.json        whole models, with their goals and their peers in the same rounds
  roofline-<model>.svg          each step between what the machine can multiply and what it can read
  layers.md                     the same as figures
  kernels.txt                   every variant of every kernel family on the steps of these models

  --quick          three models, short turns, no reference kernels: about two minutes
  --models A,B     these models (names of benchmarks/models.json)
  --ort FOLDER     ONNX Runtime as a peer: the folder where the user has run, once,
                   `npm i --ignore-scripts onnxruntime-node@1.30.0`
  --no-kernels     whole models only
  --no-models      kernels only
  --output FOLDER  in place of build/benchmarks/<date>-<commit>
  --help

Models are read from QPLAN_SHARED (default: ../shared). Without them kernels run on a built-in list of layers. oneDNN is a
peer where Debian's libdnnl-dev is installed. Times mean little while the machine does anything else; the table
reports that load.
TEXT
}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
shared=${QPLAN_SHARED:-$root/../shared}
quick= ort= models= output= run_kernels=1 run_models=1
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --quick) quick=1 ;;
    --no-kernels) run_kernels= ;;
    --no-models) run_models= ;;
    --models | --ort | --output)
      [ $# -ge 2 ] || { echo "run.sh: $1 needs a value" >&2; exit 2; }
      declare "${1#--}=$2"
      shift ;;
    --) shift; break ;;
    *) echo "run.sh: unknown option '$1'; see --help" >&2; exit 2 ;;
  esac
  shift
done
if [ -n "$ort" ] && [ ! -d "$ort/node_modules/onnxruntime-node" ]; then
  echo "run.sh: '$ort/node_modules/onnxruntime-node' is missing; there: npm i --ignore-scripts onnxruntime-node@1.30.0" >&2
  exit 2
fi
if [ -n "$ort" ] && ! command -v node >/dev/null; then
  echo "run.sh: --ort needs node, which is not installed" >&2
  exit 2
fi
python=/usr/bin/python3
[ -x "$python" ] || python=python3

cd "$root"
cmake --preset release -DQPLAN_BUILD_BENCHMARKS=ON >/dev/null
cmake --build --preset release --target qplan_benchmarks
bin=$root/build/release/bin
commit=$(git rev-parse --short HEAD)
[ -z "$(git status --porcelain --untracked-files=no)" ] || commit=$commit-changed
final=${output:-build/benchmarks/$(date +%Y-%m-%d)-$commit}
# Nothing is in the folder before all is there.
mkdir -p "$(dirname "$final")"
output=$(mktemp -d "$final.XXXXXX")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch" "$output"' EXIT

{
  echo "commit    $commit"
  echo "date      $(date -u '+%Y-%m-%d %H:%M UTC')"
  sed -n 's/^model name[^:]*: */cpu       /p' /proc/cpuinfo | head -n 1
  echo "cores     $(nproc)"
  echo "compiler  $(c++ --version | head -n 1)"
  echo "flags     $(sed -n 's/^CMAKE_CXX_FLAGS_RELEASE:STRING=//p' build/release/CMakeCache.txt), by file: cmake/QplanIsa.cmake"
  echo "system    $(uname -sm)"
  echo "load      $(cut -d' ' -f1-3 /proc/loadavg) before the runs"
} | tee "$output/machine.txt"

# The files of the table's models that are there, or of those chosen.
model_files() {
  "$python" - "$shared" "$models" "$quick" <<'PYTHON'
import json, pathlib, sys
shared, chosen, quick = pathlib.Path(sys.argv[1]), sys.argv[2].split(","), sys.argv[3]
for model in json.loads(pathlib.Path("benchmarks/models.json").read_text())["models"]:
    wanted = model["name"] in chosen if chosen != [""] else not quick or model.get("quick")
    if wanted and (shared / model["file"]).exists():
        print(shared / model["file"])
PYTHON
}
mapfile -t files < <(model_files)
if [ ${#files[@]} -eq 0 ]; then
  echo "run.sh: no models in '$shared' (QPLAN_SHARED): whole models are not measured, kernels on the built-in list" >&2
fi

if [ -n "$run_models" ] && [ ${#files[@]} -gt 0 ]; then
  "$python" benchmarks/report/compare.py --bin "$bin" --shared "$shared" --output "$output/results.json" \
    ${ort:+--ort "$ort"} ${models:+--models "$models"} ${quick:+--quick}
  "$python" benchmarks/report/table.py "$output/results.json" | tee "$output/table.md"
  "$python" benchmarks/report/roofline.py "$output/results.json" "$output"
fi
if [ -n "$run_kernels" ]; then
  # Variants run in turns (random interleaving), so that their ratios hold on a noisy machine.
  "$bin/kernel_benchmarks" "${files[@]}" benchmarks/kernels/operators.relay --benchmark_repetitions=5 --benchmark_min_time=0.02 \
    --benchmark_enable_random_interleaving=true --benchmark_report_aggregates_only=true \
    --benchmark_out="$scratch/kernels.json" --benchmark_out_format=json ${quick:+--benchmark_filter=-_ref/} "$@" >/dev/null
  "$python" benchmarks/report/kernels.py "$scratch/kernels.json" | tee "$output/kernels.txt"
fi
mkdir -p "$final"
mv "$output"/* "$final"
echo "written to $final"
