// The table of all kernel families.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "kernels/conv2d/conv2d.h"
#include "kernels/cpu.h"
#include "kernels/layout.h"
#include "qplan/qplan.h"
#include "src/runtime/bind/family.h"

namespace qplan::families_test {
namespace {

TEST(Families, StandAtTheirNumberUnderTheirName) {
  const qplan_kernel_set* all = qplan_kernels_all();
  const qplan_kernel_set* reference = qplan_kernels_reference();
  ASSERT_EQ(all->num_families, reference->num_families);
  EXPECT_EQ(all->families[0], nullptr);
  EXPECT_EQ(reference->families[0], nullptr);
#define QPLAN_KERNEL(number, family, descriptor, params, args_bytes) \
  ASSERT_LT(uint32_t{number}, all->num_families);                    \
  EXPECT_EQ(all->families[number], &descriptor);                     \
  EXPECT_EQ(reference->families[number], &descriptor##Reference);    \
  EXPECT_EQ(descriptor.id, number);                                  \
  EXPECT_EQ(std::string(descriptor.name), #family);
#include "format/kernels.def"
#undef QPLAN_KERNEL
}

TEST(Families, EndWithTheReference) {
  const qplan_kernel_set* all = qplan_kernels_all();
  const qplan_kernel_set* reference = qplan_kernels_reference();
  for (uint32_t id = 1; id < all->num_families; ++id) {
    const KernelFamily& family = *all->families[id];
    const KernelFamily& small = *reference->families[id];
    ASSERT_GE(family.num_variants, 1u) << family.name;
    const KernelVariant& last = family.variants[family.num_variants - 1];
    EXPECT_EQ(last.isa, static_cast<uint32_t>(QPLAN_ISA_REFERENCE)) << family.name;
    ASSERT_EQ(small.num_variants, 1u) << family.name;
    EXPECT_EQ(std::string(small.variants[0].name), last.name);
    EXPECT_EQ(small.id, family.id);
    EXPECT_EQ(std::string(small.name), family.name);
  }
}

// One long range packs less often than several short ones.
TEST(Families, VariantsThatPackWeightsInEachCallRepeatWork) {
  for (const KernelFamily* family : {&kBatchMatmulFamily, &kConv2dTransposeFamily}) {
    for (uint32_t i = 0; i < family->num_variants; ++i) {
      const KernelVariant& variant = family->variants[i];
      const bool is_reference = variant.isa == QPLAN_ISA_REFERENCE;
      EXPECT_EQ(variant.repeated_work, is_reference ? RepeatedWork::kNone : RepeatedWork::kPackedWeights)
          << variant.name;
      for (const bool is_uneven : {false, true}) {
        EXPECT_EQ(tasks_per_worker(variant, is_uneven), is_reference ? 4u : 1u) << variant.name;
      }
    }
  }
}

TEST(Families, AVariantsNameSaysWhatRunsAndBestStandsFirst) {
  const qplan_kernel_set* all = qplan_kernels_all();
  // Families may share variants, as maximum and minimum do.
  std::map<std::string, decltype(KernelVariant::run)> names;
  for (uint32_t id = 1; id < all->num_families; ++id) {
    const KernelFamily& family = *all->families[id];
    for (uint32_t i = 0; i < family.num_variants; ++i) {
      const KernelVariant& variant = family.variants[i];
      EXPECT_EQ(names.emplace(variant.name, variant.run).first->second, variant.run) << variant.name;
      if (i > 0) {
        EXPECT_LE(family.variants[i].isa, family.variants[i - 1].isa) << family.variants[i].name;
      }
    }
  }
}

// A schedule has a byte for each knob, whose values differ and are not 0, the variant's own choice.
TEST(Families, KnobsHaveNamesAndValues) {
  const qplan_kernel_set* all = qplan_kernels_all();
  for (uint32_t id = 1; id < all->num_families; ++id) {
    const KernelFamily& family = *all->families[id];
    for (uint32_t i = 0; i < family.num_variants; ++i) {
      const KernelVariant& variant = family.variants[i];
      EXPECT_LE(variant.num_knobs, kMaxKnobs) << variant.name;
      EXPECT_TRUE(variant.isa != QPLAN_ISA_REFERENCE || variant.num_knobs == 0) << variant.name;
      std::set<std::string> names = {"isa", "grain"};  // of every step
      for (uint32_t k = 0; k < variant.num_knobs; ++k) {
        const Knob& knob = variant.knobs[k];
        EXPECT_TRUE(names.insert(knob.name).second) << variant.name << " " << knob.name;
        std::set<uint32_t> values = {0};
        ASSERT_LE(knob.num_values, 8u);
        for (uint32_t v = 0; v < knob.num_values; ++v) {
          EXPECT_TRUE(values.insert(knob.values[v]).second) << variant.name << " " << knob.name;
        }
      }
    }
  }
}

TEST(Families, AScheduleLimitsTheIsaOfItsStep) {
  constexpr auto kIsa = [](uint64_t isa) { return isa << 56; };
  Conv2dArgs args;  // what all variants accept
  args.batch = args.input_h = args.input_w = args.output_h = args.output_w = args.kernel_h = args.kernel_w =
      1;
  args.stride_h = args.stride_w = args.dilation_h = args.dilation_w = args.groups = 1;
  args.input_c = args.output_c = 16;
  args.input_dtype = args.output_dtype = Dtype::kU8;
  args.weights_layout = kLayout_o16k4;
  const auto chosen = [&](uint32_t limit, uint64_t schedule) {
    return choose_variant(kConv2dFamily, &args, limit, SIZE_MAX, schedule)->isa;
  };
  const uint32_t best = kConv2dFamily.variants[0].isa;
  EXPECT_EQ(chosen(best, 0), best);
  EXPECT_EQ(chosen(best, kIsa(QPLAN_ISA_REFERENCE)), uint32_t{QPLAN_ISA_REFERENCE});
  EXPECT_EQ(chosen(best, kIsa(255)), best);  // no such instruction set: no limit
  for (uint32_t i = 0; i < kConv2dFamily.num_variants; ++i) {
    const uint32_t isa = kConv2dFamily.variants[i].isa;
    if (!isa_within(isa, best)) continue;  // not of every machine of a higher set
    EXPECT_EQ(chosen(best, kIsa(isa)), isa);
    EXPECT_EQ(chosen(isa, kIsa(best)), isa);
  }
}

}  // namespace
}  // namespace qplan::families_test
