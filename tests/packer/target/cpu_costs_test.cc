#include <gtest/gtest.h>

#include <algorithm>

#include "qplan/qplan.h"
#include "src/packer/error.h"
#include "src/packer/pipeline/pipeline.h"
#include "src/packer/target/profile.h"
#include "src/packer/target/target.h"
#include "src/packer/text/text.h"

namespace qplan::target::cpu_costs_test {
namespace {

CpuCosts costs_of(const std::string& target) { return pipeline::parse_targets(target)[0].cpu_costs; }

// Layers of benchmarks/results/2026-11-22-0c32335/kernels.txt: MobileNet V2 1.0 224, but the last two (kws,
// ad01).
struct Layer {
  const char* name;
  CpuWork work;
  uint64_t macs, bytes, weight_bytes;
  uint64_t avx512vnni_ns, avx2_ns, sse41_ns;
};
constexpr Layer kLayers[] = {
    {"conv2d 14x14x192 to 64", CpuWork::kConvolution, 2'408'448, 50'176, 12'288, 11'760, 45'550, 91'540},
    {"conv2d 28x28x32 to 192", CpuWork::kConvolution, 4'816'896, 175'616, 6'144, 25'290, 132'610, 287'010},
    {"conv2d 7x7x320 to 1280", CpuWork::kConvolution, 20'070'400, 78'400, 409'600, 93'670, 366'720, 733'420},
    {"depthwise 28x28x192", CpuWork::kDepthwise, 1'354'752, 301'056, 1'728, 14'830, 57'210, 254'020},
    {"depthwise 7x7x960", CpuWork::kDepthwise, 423'360, 94'080, 8'640, 6'080, 21'390, 93'430},
    {"add 14x14x96", CpuWork::kArithmetic, 0, 56'448, 0, 2'120, 2'150, 5'440},
    {"avg_pool2d 7x7x1280", CpuWork::kPool, 0, 64'000, 0, 1'140, 1'410, 2'890},
    {"conv2d 25x5x64 to 64", CpuWork::kConvolution, 512'000, 16'000, 4'096, 2'650, 11'220, 23'770},
    {"fully connected 640 to 128", CpuWork::kConvolution, 81'920, 768, 81'920, 780, 1'720, 3'980},
};

// Estimates are for decisions between devices: twice or half of what was measured is good enough.
TEST(CpuCosts, EstimatesOfLayersAreWithinAFactorOfTwoOfTheirMeasurements) {
  const CpuCosts avx512vnni = costs_of("cpu,isa=avx512vnni"), avx2 = costs_of("cpu,isa=avx2"),
                 sse41 = costs_of("cpu,isa=sse41");
  for (const Layer& layer : kLayers) {
    const auto check = [&](const CpuCosts& costs, uint64_t measured, const char* isa) {
      const uint64_t estimated = cpu_ns(costs, layer.work, layer.macs, layer.bytes, layer.weight_bytes);
      EXPECT_LT(estimated, measured * 2) << layer.name << ", " << isa;
      EXPECT_GT(estimated, measured / 2) << layer.name << ", " << isa;
    };
    check(avx512vnni, layer.avx512vnni_ns, "avx512vnni");
    check(avx2, layer.avx2_ns, "avx2");
    check(sse41, layer.sse41_ns, "sse41");
  }
}

TEST(CpuCosts, ABetterInstructionSetIsNeverSlower) {
  const char* const kTargets[] = {"cpu,isa=avx512vnni", "cpu,isa=avxvnni",   "cpu,isa=avx2",
                                  "cpu,isa=sse41",      "cpu,isa=reference", "cpu,arch=cortex-m"};
  for (size_t i = 1; i < std::size(kTargets); ++i) {
    const CpuCosts better = costs_of(kTargets[i - 1]), lesser = costs_of(kTargets[i]);
    for (const Layer& layer : kLayers) {
      const auto ns = [&](const CpuCosts& costs) {
        return cpu_ns(costs, layer.work, layer.macs, layer.bytes, layer.weight_bytes);
      };
      EXPECT_LE(ns(better), ns(lesser)) << layer.name << ", " << kTargets[i];
    }
  }
}

TEST(CpuCosts, ABetterInstructionSetOfABoardIsNeverSlower) {
  const std::vector<std::vector<const char*>> archs = {
      {"cpu,arch=aarch64,isa=i8mm", "cpu,arch=aarch64,isa=dotprod", "cpu,arch=aarch64,isa=neon",
       "cpu,arch=aarch64,isa=reference"},
      {"cpu,arch=riscv64", "cpu,arch=riscv64,isa=reference"}};
  for (const std::vector<const char*>& targets : archs) {
    for (size_t i = 1; i < targets.size(); ++i) {
      const CpuCosts better = costs_of(targets[i - 1]), lesser = costs_of(targets[i]);
      for (const Layer& layer : kLayers) {
        const auto ns = [&](const CpuCosts& costs) {
          return cpu_ns(costs, layer.work, layer.macs, layer.bytes, layer.weight_bytes);
        };
        EXPECT_LE(ns(better), ns(lesser)) << layer.name << ", " << targets[i];
      }
    }
  }
}

TEST(CpuCosts, DefaultFiguresAreThoseOfTheMeasurements) {
  EXPECT_EQ(costs_of("cpu").macs_per_us(), 243'333u);  // 243 GMAC/s of a 3.65 GHz Zen 4
  EXPECT_EQ(costs_of("cpu,isa=avx2").macs_per_us(), 66'363u);
  EXPECT_EQ(costs_of("cpu,isa=avx2").bytes_per_us(), 24'496u);
}

TEST(CpuCosts, AClockScalesAllTimes) {
  const CpuCosts whole = costs_of("cpu,isa=avx2,clock=3.65GHz"),
                 half = costs_of("cpu,isa=avx2,clock=1825MHz");
  for (const Layer& layer : kLayers) {
    const uint64_t ns = cpu_ns(whole, layer.work, layer.macs, layer.bytes, layer.weight_bytes);
    EXPECT_EQ(cpu_ns(half, layer.work, layer.macs, layer.bytes, layer.weight_bytes) / 2, ns) << layer.name;
  }
}

TEST(CpuCosts, WhatTheUserSaysOfTheSpeedHoldsAndOtherWorkKeepsItsRatio) {
  const CpuCosts costs = costs_of("cpu,isa=avx2,macs_per_us=1000,bytes_per_us=2000,clock=1GHz");
  EXPECT_EQ(costs.macs_per_us(), 1000u);
  EXPECT_EQ(costs.bytes_per_us(), 2000u);
  const CpuCosts defaults = costs_of("cpu,isa=avx2");
  // A depthwise MAC costs 100000 / 55000 of one of a convolution.
  EXPECT_EQ(defaults.of(CpuWork::kDepthwise).macs, 100'000u);
  EXPECT_EQ(costs.of(CpuWork::kConvolution).macs, 1'000'000u);
  EXPECT_EQ(costs.of(CpuWork::kDepthwise).macs, 1'818'181u);
}

TEST(CpuCosts, HugeWorkDoesNotOverflow) {
  const CpuCosts costs = costs_of("cpu,arch=cortex-m,clock=1kHz");
  EXPECT_EQ(cpu_ns(costs, CpuWork::kConvolution, uint64_t{1} << 50, uint64_t{1} << 50, 0), uint64_t{1} << 60);
  EXPECT_EQ(mul_div(UINT64_MAX, UINT64_MAX, 1), uint64_t{1} << 60);
  // The most that a target file may say: 10^12 kHz and 10^9 pJ, whose product has 70 bits.
  CpuCosts hostile = costs;
  hostile.clock_khz = 1'000'000'000'000;
  hostile.pj_per_cycle = 1'000'000'000;
  EXPECT_EQ(cpu_pj(hostile, 1), 1'000'000'000'000'000u);
  EXPECT_EQ(cpu_pj(hostile, 2000), uint64_t{1} << 60);
  EXPECT_EQ(cpu_pj(hostile, uint64_t{1} << 60), uint64_t{1} << 60);
}

TEST(CpuCosts, TheKindOfWorkFollowsTheOperator) {
  const ir::Module module = text::parse(
      "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1, 8, 8, 16), int8], %w: Tensor[(16, 3, 3, 1), int8], "
      "%v: Tensor[(16, 1, 1, 16), int8], %y: Tensor[(1, 8, 8, 3), int8], %u: Tensor[(16, 3, 3, 3), int8]) {\n"
      "  %0 = qnn.conv2d(%x, %w, 0, 0, 1f, 1f, groups=16, data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
      "  %1 = qnn.requantize(%0, 1f, 0, 4f, 0);\n"
      "  %2 = qnn.conv2d(%1, %v, 0, 0, 1f, 1f, data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
      "  %3 = qnn.requantize(%2, 1f, 0, 4f, 0);\n"
      "  %4 = qnn.requantize(%3, 1f, 0, 4f, 0);\n"
      "  %5 = qnn.add(%4, %3, 1f, 0, 1f, 0, 2f, 0);\n"
      "  %6 = qnn.softmax(%5, 1f, 0, 0.00390625f, -128);\n"
      "  %7 = qnn.conv2d(%y, %u, 0, 0, 1f, 1f, data_layout=\"NHWC\", kernel_layout=\"OHWI\");\n"
      "  (%6, %7)\n}\n",
      "test");
  const ir::Function& main = module.main();
  const CpuWork expected[] = {
      CpuWork::kDepthwise, CpuWork::kConvert,    CpuWork::kConvolution, CpuWork::kConvert,
      CpuWork::kTable,     CpuWork::kArithmetic, CpuWork::kSoftmax,     CpuWork::kNarrowConvolution};
  ASSERT_EQ(main.nodes().size(), std::size(expected));
  for (size_t n = 0; n < std::size(expected); ++n)
    EXPECT_EQ(cpu_work(main, main.nodes()[n]), expected[n]) << n;
}

}  // namespace
}  // namespace qplan::target::cpu_costs_test
