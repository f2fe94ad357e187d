#!/usr/bin/env bash
# Builds and runs the kernel benchmarks; the table goes to benchmarks/results/<date>-<commit>.txt and to the screen.
# Variants of one layer stand below each other and run in turns (random interleaving), so the ratios hold on a noisy
# machine. Arguments go to Google Benchmark: --benchmark_filter=conv2d_avx2
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --preset release -DQPLAN_BUILD_BENCHMARKS=ON >/dev/null
cmake --build --preset release --target kernel_benchmarks
commit=$(git rev-parse --short HEAD)
out="benchmarks/results/$(date +%Y-%m-%d)-$commit.txt"
{
  echo "commit $commit"
  sed -n 's/^model name[^:]*: /cpu /p' /proc/cpuinfo | head -n 1
  c++ --version | head -n 1
  build/release/bin/kernel_benchmarks --benchmark_repetitions=5 --benchmark_enable_random_interleaving=true \
    --benchmark_report_aggregates_only=true "$@" 2>/dev/null | grep _median | sort -t/ -k2,2
} | tee "$out.tmp"
mv "$out.tmp" "$out"
