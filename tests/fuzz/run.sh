#!/usr/bin/env bash
# Fuzzes one target with libFuzzer, from its corpus and from what earlier runs found.
# usage: bash tests/fuzz/run.sh [--release] [--minimise] TARGET SECONDS [ARGUMENT OF LIBFUZZER...]
#   --release   without sanitizers, with the kernels of a release build: several times as fast, sees less
#   --minimise  then merges what was found into tests/fuzz/corpus/TARGET: the fewest, smallest inputs with the same edges
# New inputs are in build/<preset>/finds/TARGET, inputs that crash in build/<preset>/crashes/TARGET (README.md).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
preset=fuzz minimise=
while [[ ${1:-} == --* ]]; do
  case "$1" in
    --release) preset=fuzz-release ;;
    --minimise) minimise=1 ;;
    *) break ;;
  esac
  shift
done
if [[ $# -lt 2 || ! $2 =~ ^[0-9]+$ ]]; then
  sed -n '2,6s/^# //p' "${BASH_SOURCE[0]}" >&2
  exit 2
fi
target=$1 seconds=$2
shift 2
if [[ ! -f tests/fuzz/targets/${target}_fuzz.cc ]]; then
  echo "run.sh: unknown target '$target'; known:" tests/fuzz/targets/*_fuzz.cc >&2
  exit 2
fi

bash cmake/install_packages.sh build fuzz
cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset" --target "${target}_fuzz"
binary=build/$preset/bin/${target}_fuzz
corpus=tests/fuzz/corpus/$target
finds=build/$preset/finds/$target
crashes=build/$preset/crashes/$target
mkdir -p "$finds" "$crashes" "$corpus"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"

status=0
if ((seconds > 0)); then
  "$binary" "$finds" "$corpus" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=2560 -print_final_stats=1 \
    -artifact_prefix="$crashes/" "$@" || status=$?
fi
if [[ -n $minimise ]]; then
  merged=build/$preset/merged/$target
  rm -rf "$merged"
  mkdir -p "$merged"
  # Edges alone, without how often each is passed: the tree holds few seeds.
  "$binary" -merge=1 -use_counters=0 -timeout=25 -rss_limit_mb=2560 "$merged" "$corpus" "$finds"
  rm -f "$corpus"/*
  cp "$merged"/* "$corpus"
  du -sh --apparent-size "$corpus"
fi
exit "$status"
