// The table of all kernel families.
#include "kernels/families.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "kernels/kernel.h"
#include "qplan/qplan.h"

namespace qplan {
namespace {

TEST(Families, StandAtTheirNumberUnderTheirName) {
  const qplan_kernel_set* all = qplan_kernels_all();
  const qplan_kernel_set* reference = qplan_kernels_reference();
  ASSERT_EQ(all->num_families, reference->num_families);
  EXPECT_EQ(all->families[0], nullptr);
  EXPECT_EQ(reference->families[0], nullptr);
#define QPLAN_KERNEL(number, family, descriptor, params)          \
  ASSERT_LT(uint32_t{number}, all->num_families);                 \
  EXPECT_EQ(all->families[number], &descriptor);                  \
  EXPECT_EQ(reference->families[number], &descriptor##Reference); \
  EXPECT_EQ(descriptor.id, number);                               \
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

TEST(Families, VariantsHaveNamesOfTheirOwnAndBestStandsFirst) {
  const qplan_kernel_set* all = qplan_kernels_all();
  std::set<std::string> names;
  for (uint32_t id = 1; id < all->num_families; ++id) {
    const KernelFamily& family = *all->families[id];
    for (uint32_t i = 0; i < family.num_variants; ++i) {
      EXPECT_TRUE(names.insert(family.variants[i].name).second) << family.variants[i].name;
      if (i > 0) {
        EXPECT_LE(family.variants[i].isa, family.variants[i - 1].isa) << family.variants[i].name;
      }
    }
  }
}

}  // namespace
}  // namespace qplan
