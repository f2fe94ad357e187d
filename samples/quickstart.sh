#!/usr/bin/env bash
# Builds qplan, packs a model, runs it on pictures and tells what it predicts, what memory it takes and how long.
# usage: bash samples/quickstart.sh [MODEL [IMAGE...]]
#   without arguments: the digits model and the pictures of this repository
#   MODEL    a quantised .tflite or .onnx
#   IMAGE    .png .jpg .bmp (or .npy, or the raw tensor as .bin), one inference each
#   Class names come from the file in QPLAN_LABELS, or from <model>_labels.txt beside the model, one per line.
# Needs Debian 12 and, where packages are missing, root or sudo. Writes to build/ only.
set -euo pipefail

die() {
  echo "quickstart: $*" >&2
  exit 1
}

case "${1:-}" in
  -h | --help)
    sed -n '2,/^set /{s/^# \{0,1\}//;/^set /d;p}' "${BASH_SOURCE[0]}"
    exit 0
    ;;
esac

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
if [[ $# -eq 0 ]]; then
  model="$root/samples/models/digits.tflite"
  images=("$root"/samples/images/*.png)
else
  model="$1"
  shift
  images=("$@")
fi
for file in "$model" "${images[@]}"; do
  [[ -e $file ]] || die "'$file' does not exist"
  [[ -f $file && -r $file ]] || die "'$file' is not a readable file"
done
name="$(basename "$model")"
name="${name%.*}"
labels="${QPLAN_LABELS:-${model%.*}_labels.txt}"
if [[ -n ${QPLAN_LABELS:-} && ! -f $labels ]]; then
  die "'$labels' (QPLAN_LABELS) is not a file"
fi

echo "== build =="
bash "$root/cmake/install_packages.sh" build
build="$root/build/release"
log="$root/build/quickstart.log"
mkdir -p "$root/build"
# Tests need packages that this script does not install; a build tree that has them keeps them.
configure_options=()
[[ -f $build/CMakeCache.txt ]] || configure_options=(-DQPLAN_BUILD_TESTS=OFF)
build_command() {
  cd "$root" && cmake --preset release "${configure_options[@]}" &&
    cmake --build --preset release --target qplan_command
}
echo "building the qplan command (the first time takes some minutes; log: $log)"
if ! (build_command) >"$log" 2>&1; then
  tail -n 30 "$log" >&2
  die "the build failed; the whole log is in '$log'"
fi
qplan="$build/bin/qplan"
echo "ready: $qplan"

echo
echo "== pack $name =="
plan_dir="$root/build/quickstart"
plan="$plan_dir/$name.qplan"
mkdir -p "$plan_dir"
"$qplan" pack "$model" -o "$plan"

if [[ ${#images[@]} -gt 0 ]]; then
  echo
  echo "== predictions =="
  run_options=(--top 3)
  if [[ -f $labels ]]; then
    run_options+=(--labels "$labels")
  fi
  for image in "${images[@]}"; do
    scores="$("$qplan" run "$plan" --input "$image" "${run_options[@]}")"  # "0.972656  seven", best first
    printf '%-20s %s\n' "$(basename "$image")" "$(awk '{
        score = $1
        sub(/^[^ ]+ +/, "")
        printf "%s%s (%s)", (NR == 1 ? "" : NR == 2 ? "; then " : ", "), $0, score
      }' <<<"$scores")"
  done
fi

echo
echo "== plan and memory =="
"$qplan" inspect "$plan"

echo
echo "== time =="
"$qplan" bench "$plan"

echo
echo "the plan is '$plan'; next: '$qplan --help'"
