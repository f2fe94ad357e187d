#!/usr/bin/env bash
# Builds qplan, packs a model, runs it on pictures and prints what it predicts, how much memory it needs and how long it
# takes. Then it builds the libraries that `cmake --install build/release` and Python need.
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
bash "$root/cmake/install_packages.sh" build python
build="$root/build/release"
log="$root/build/quickstart.log"
mkdir -p "$root/build"
# Writes to the log and shows how far the build is: ninja's "[37/410] Building ...". One line on a terminal, else a line
# for each tenth.
build_targets() {
  (cd "$root" && cmake --build --preset release "$@" 2>&1) | tee -a "$log" | awk -v terminal="$([[ -t 1 ]] && echo 1)" '
      match($0, /^\[[0-9]+\/[0-9]+\]/) {
        split(substr($0, 2, RLENGTH - 2), part, "/")
        tenth = int(10 * part[1] / part[2])
        if (terminal) { printf "\r  %d of %d steps\033[K", part[1], part[2]; fflush() }
        else if (tenth > shown) { printf "  %d of %d steps\n", part[1], part[2]; fflush() }
        if (tenth > shown) shown = tenth
      }
      END { if (terminal && NR > 0) printf "\r\033[K" }'
  return "${PIPESTATUS[0]}"
}
failed_build() {
  tail -n 30 "$log" >&2
  die "the build failed; the whole log is in '$log'"
}
echo "building the qplan command (the first time takes some minutes; log: $log)"
(cd "$root" && cmake --preset release) >"$log" 2>&1 || failed_build
build_targets --target qplan_command || failed_build
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
echo "== libraries =="
echo "building what 'cmake --install build/release' and Python need"
build_targets --target qplan_installed || failed_build

echo
echo "the plan is '$plan'; next: '$qplan --help'"
