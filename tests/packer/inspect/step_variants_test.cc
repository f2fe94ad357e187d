#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/conv2d/conv2d.h"
#include "kernels/cpu.h"
#include "kernels/layout.h"
#include "src/packer/inspect/inspect.h"
#include "src/runtime/bind/family.h"

namespace qplan::inspect::step_variants_test {
namespace {

// A layer of 4 channels, in the layout that the vector variants read.
Conv2dArgs layer() {
  Conv2dArgs args;
  args.batch = args.kernel_h = args.kernel_w = args.stride_h = args.stride_w = 1;
  args.dilation_h = args.dilation_w = args.groups = 1;
  args.input_h = args.input_w = args.output_h = args.output_w = 8;
  args.input_c = 4;
  args.output_c = 16;
  args.input_dtype = args.output_dtype = Dtype::kU8;
  args.weights_layout = kLayout_o16k4;
  return args;
}

// Those of one architecture, whose kernels read one layout.
std::vector<uint32_t> all_isas() {
  std::vector<uint32_t> isas;
  for (uint32_t v = 0; v < kConv2dFamily.num_variants; ++v) {
    const uint32_t isa = kConv2dFamily.variants[v].isa;
    if (isa == QPLAN_ISA_REFERENCE || isa_has_vectors(isa)) isas.push_back(isa);
  }
  std::ranges::sort(isas);  // lowest first
  return isas;
}

TEST(StepVariants, TheBestVariantRefusesNothing) {
  const Conv2dArgs args = layer();
  for (const IsaVariant& of_isa : variants_by_isa(kConv2dFamily, &args, all_isas(), 0)) {
    EXPECT_EQ(of_isa.variant->isa, of_isa.isa);
    EXPECT_TRUE(of_isa.better.empty());
  }
}

TEST(StepVariants, HaveTheReasonOfEachBetterOneThatRefuses) {
  Conv2dArgs args = layer();
  args.weights_layout = kLayout_ohwi;
  const std::vector<IsaVariant> by_layout = variants_by_isa(kConv2dFamily, &args, all_isas(), 0);
  for (const IsaVariant& of_isa : by_layout) {
    EXPECT_EQ(of_isa.variant->isa, uint32_t{QPLAN_ISA_REFERENCE});
    for (const RefusingVariant& refused : of_isa.better) {
      EXPECT_TRUE(isa_within(refused.variant->isa, of_isa.isa)) << refused.variant->name;
      EXPECT_EQ(refused.reason, "it does not read weights in this layout") << refused.variant->name;
    }
    EXPECT_EQ(of_isa.better.empty(), of_isa.isa == QPLAN_ISA_REFERENCE);
  }
  args = layer();
  args.input_zero_point = 3;
  for (const IsaVariant& of_isa : variants_by_isa(kConv2dFamily, &args, all_isas(), 0)) {
    for (const RefusingVariant& refused : of_isa.better)
      EXPECT_EQ(refused.reason, "it does not compute with this input zero point");
  }
}

TEST(StepVariants, NameTheScheduleWhereItAsksForLess) {
  const Conv2dArgs args = layer();
  const uint64_t reference_only = uint64_t{QPLAN_ISA_REFERENCE} << 56;
  for (const IsaVariant& of_isa : variants_by_isa(kConv2dFamily, &args, all_isas(), reference_only)) {
    EXPECT_EQ(of_isa.variant->isa, uint32_t{QPLAN_ISA_REFERENCE});
    for (const RefusingVariant& refused : of_isa.better)
      EXPECT_EQ(refused.reason, "the step's schedule asks for another instruction set");
  }
}

#if defined(__x86_64__)
// The kept plan resizes and takes the largest channel in one kernel of AVX-512, and layer by layer elsewhere.
TEST(StepVariants, OfLayersAreThoseOfTheInstructionSetsThatRunThem) {
  std::ifstream file("tests/data/plans/labels_v1.16_x86_64.qplan", std::ios::binary);
  const std::vector<uint8_t> plan{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  ir::Json step;
  const std::vector<uint32_t> isas = {QPLAN_ISA_REFERENCE, QPLAN_ISA_AVX2, QPLAN_ISA_AVX512VNNI};
  add_variants(PlanReader(plan).view(), 0, isas, &step);
  const auto kernels = [](const ir::Json& of) {
    std::string text;
    for (const ir::Json& variant : of.at("variants")) {
      EXPECT_FALSE(variant.contains("refused")) << variant;
      text += variant.at("kernel").get<std::string>() + " ";
    }
    return text;
  };
  EXPECT_EQ(kernels(step), "resize_arg_max_avx512vnni chain_avx2 chain_ref ");
  ASSERT_EQ(step.at("layers").size(), 2u);
  EXPECT_EQ(kernels(step.at("layers")[0]), "resize_bilinear_avx2 resize_bilinear_ref ");
  EXPECT_EQ(kernels(step.at("layers")[1]), "arg_max_avx2 arg_max_ref ");
}
#endif

}  // namespace
}  // namespace qplan::inspect::step_variants_test
