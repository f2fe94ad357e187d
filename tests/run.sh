#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests.
# usage: bash tests/run.sh [ARGUMENT OF CTEST...]
#   QPLAN_PRESET      release (default), asan, tsan, debug, ...: a preset of CMakePresets.json
#   QPLAN_FUZZ_SEEDS  damaged files per fuzzer; 10,000 under asan, else the default of tests/fuzz/sources.h
#   QPLAN_SHARED      directory of reference models and outputs; default ../shared. Tests that need it are skipped
#                     where it is absent
#   QPLAN_FUZZ_REPLAY 0: the corpus of the fuzz targets is not replayed under sanitizers, whose build takes minutes
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset="${QPLAN_PRESET:-release}"

bash cmake/install_packages.sh build python test
# Users of qplan and CI compile everything once, so units are large. Developers compile again what a change touches, so
# units are small (cmake/QplanUnity.cmake).
cmake --preset "$preset" -DQPLAN_BUILD_TESTS=ON -DQPLAN_WERROR=ON ${CI:+-DQPLAN_UNITY_SIZE=120}
# What the build cost; a compiler cache (ccache) makes it cheaper.
TIMEFORMAT='build: %0R s, %0U s + %0S s of processor time'
time cmake --build --preset "$preset"
if [[ $preset == asan ]]; then
  export QPLAN_FUZZ_SEEDS="${QPLAN_FUZZ_SEEDS:-10000}"
fi
if [[ $preset == release && $# -eq 0 && -n ${CI:-} ]]; then
  # Python for a board, in a folder of its own.
  bash tests/boards/sysroot.sh build/sysroot/aarch64 || echo "tests/run.sh: boards/python_aarch64 will be skipped"
fi
if [[ $preset == release && $# -eq 0 ]]; then
  # A passing test is silent; what the runtime costs on a Cortex-M4 is worth a look each time.
  echo "firmware (Cortex-M4, QEMU):"
  ctest --test-dir "build/$preset" -R '^firmware/cortex_m4$' --verbose 2>&1 |
    sed -nE 's/^[0-9]+: (.*\.\.\. )?((text of|code and constants|[a-z]+: memory_bytes).*)$/  \2/p'
fi
status=0
if [[ $preset == release && $# -eq 0 && ${QPLAN_FUZZ_REPLAY:-1} == 1 ]]; then
  # The corpus of the fuzz targets once more, under sanitizers: what they need is built for it, and nothing else.
  bash cmake/install_packages.sh fuzz
  cmake --preset fuzz-replay >/dev/null
  time cmake --build --preset fuzz-replay
  ctest --test-dir build/fuzz-replay -j2 --output-on-failure || status=$?
fi
ctest --test-dir "build/$preset" -j2 --output-on-failure "$@" || status=$?
exit "$status"
