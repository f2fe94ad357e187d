#!/usr/bin/env bash
# One network written in several ways: prints the digest of each model's canonical body and whether they are one.
# usage: bash samples/three_ways.sh [--input-shape NAME=SHAPE] [MODEL MODEL...]
#   MODEL    forms of one network: .tflite, .onnx, .pt or Relay text
#   --input-shape   of the input of .pt files, which do not record it: image=1x1x16x16
#   without arguments: the digits network of samples/models from TFLite, ONNX (integer weights, float weights) and PyTorch;
#            where the reference data is (../shared, or QPLAN_SHARED), three more networks from TFLite and ONNX
#   QPLAN    the command (default: build/release/bin/qplan, else the one in PATH)
# Exit status: 0 one body for each network, 1 more than one (what differs is printed), 2 wrong usage or a model that cannot be
# imported.
set -euo pipefail

die() {
  echo "three_ways: $*" >&2
  exit 2
}

case "${1:-}" in
  -h | --help)
    sed -n '2,/^set /{s/^# \{0,1\}//;/^set /d;p}' "${BASH_SOURCE[0]}"
    exit 0
    ;;
esac

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
qplan="${QPLAN:-$root/build/release/bin/qplan}"
[[ -n ${QPLAN:-} || -x $qplan ]] || qplan=qplan
command -v "$qplan" >/dev/null || die "no command '$qplan': build it (samples/quickstart.sh) or set QPLAN"

shape=()
if [[ ${1:-} == --input-shape ]]; then
  [[ $# -ge 2 ]] || die "--input-shape needs NAME=SHAPE"
  shape=(--input-shape "$2")
  shift 2
fi

# The forms of one network. Prints a line for each; 1 when their bodies differ.
compare() {
  local first="" first_digest="" status=0 model digest options
  for model in "$@"; do
    [[ -f $model ]] || die "'$model' is not a file"
    options=()
    [[ $model != *.pt ]] || options=("${shape[@]}")
    digest="$("$qplan" import "$model" "${options[@]}" --canonical --body --print | sha256sum | cut -c 1-16)" || exit 2
    printf '  %s  %s\n' "$digest" "$(basename "$model")"
    if [[ -z $first ]]; then
      first="$model" first_digest="$digest"
    elif [[ $digest != "$first_digest" ]]; then
      # Biases may be 1 apart: then the texts differ and the bodies are one all the same.
      options=()
      [[ $first != *.pt && $model != *.pt ]] || options=("${shape[@]}")
      "$qplan" import "$first" --diff "$model" "${options[@]}" 2>&1 | sed 's/^/    /' || status=1
    fi
  done
  [[ $status -eq 0 ]] && echo "  one canonical body" || echo "  NOT one canonical body"
  return $status
}

if [[ $# -gt 0 ]]; then
  [[ $# -gt 1 ]] || die "one model: there is nothing to compare it with"
  compare "$@"
  exit
fi

status=0
shape=(--input-shape image=1x1x16x16)
echo "digits"
models="$root/samples/models"
compare "$models/digits.tflite" "$models/digits_qdq.onnx" "$models/digits_float_weights.onnx" "$models/digits.pt" || status=1

shared="${QPLAN_SHARED:-$root/../shared}"
[[ -d $shared/onnx ]] || exit $status
for network in pretrainedResnet_quant kws_ref_model mobilenet_v1_0.25_128_quant; do
  echo "$network"
  forms=("$shared/models/$network.tflite")
  # As8w, Au8a: weights or activations of the other signedness. B: float weights, input and output. qop: QLinearConv.
  for form in A Apad As8w Au8a B qop; do
    [[ ! -f $shared/onnx/${network}_$form.onnx ]] || forms+=("$shared/onnx/${network}_$form.onnx")
  done
  compare "${forms[@]}" || status=1
done
exit $status
