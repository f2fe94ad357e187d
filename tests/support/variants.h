// Running a family's variants in tests: a new row of its list is tested without new code.
#ifndef QPLAN_TESTS_SUPPORT_VARIANTS_H_
#define QPLAN_TESTS_SUPPORT_VARIANTS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu.h"
#include "src/runtime/bind/family.h"

namespace qplan::testing {

// The variant over kernels/simd/generic.h, which only kernels_tests has; null where the family has none.
#if defined(QPLAN_TEST_GENERIC)
const KernelVariant* generic_variant_of(const KernelFamily& family);
#else
inline const KernelVariant* generic_variant_of(const KernelFamily&) { return nullptr; }
#endif

// Whether it multiplies weights in a layout of microcontrollers' own: tests/kernels/scalar has its problems.
inline bool has_layout_of_its_own(const KernelFamily& family, uint32_t isa) {
  const bool has_weights = family.id == kKernel_conv2d || family.id == kKernel_depthwise_conv2d ||
                           family.id == kKernel_fully_connected || family.id == kKernel_chain;
  return isa == QPLAN_ISA_DSP || (isa == QPLAN_ISA_MVE && has_weights);
}

// All others of the family, for ::testing::ValuesIn.
inline std::vector<const KernelVariant*> variants_of(const KernelFamily& family) {
  std::vector<const KernelVariant*> variants;
  for (uint32_t i = 0; i < family.num_variants; ++i) {
    if (!has_layout_of_its_own(family, family.variants[i].isa)) variants.push_back(&family.variants[i]);
  }
  if (const KernelVariant* generic = generic_variant_of(family)) variants.push_back(generic);
  return variants;
}

// Its number is below those of isa.def and above the reference's (tests/kernels/generic/kernels/isas.h).
inline bool can_run(const KernelVariant& variant) {
  const bool is_generic = variant.isa > QPLAN_ISA_REFERENCE && variant.isa < QPLAN_ISA_DSP;
  return is_generic || cpu_has_isa(variant.isa);
}

// Names a parameterised test after its variant.
inline std::string variant_test_name(const ::testing::TestParamInfo<const KernelVariant*>& info) {
  return info.param->name;
}

// Every combination of the variant's settings, for each knob one beyond the last and the largest byte among
// them. All give the same bytes.
inline std::vector<uint64_t> schedules_of(const KernelVariant& variant) {
  std::vector<uint64_t> schedules = {0};
  for (uint32_t k = 0; k < variant.num_knobs; ++k) {
    const std::vector<uint64_t> shorter = schedules;
    for (const uint64_t schedule : shorter) {
      for (uint64_t s = 1; s <= variant.knobs[k].num_values + 1u; ++s)
        schedules.push_back(schedule | s << (8 * k));
      schedules.push_back(schedule | uint64_t{0xff} << (8 * k));
    }
  }
  return schedules;
}

// Bytes after the scratch that a variant must leave alone: where addresses are checked there are none.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr size_t kBytesAfterScratch = 0;
#else
inline constexpr size_t kBytesAfterScratch = 256;
#endif

// One range of units with scratch of exactly the size the variant asked for, 64-byte aligned, filled with
// garbage.
inline void run_units(const KernelVariant& variant, const void* args, uint32_t begin, uint32_t end) {
  const size_t scratch_bytes = variant.scratch_bytes(args);
  EXPECT_EQ(scratch_bytes % 64, 0u) << variant.name;
  void* scratch = ::operator new (scratch_bytes + kBytesAfterScratch, std::align_val_t{64});
  auto* const after = static_cast<uint8_t*>(scratch) + scratch_bytes;
  std::memset(scratch, 0xa5, scratch_bytes);
  std::memset(after, 0x5a, kBytesAfterScratch);
  variant.run(args, begin, end, scratch);
  EXPECT_TRUE(std::all_of(after, after + kBytesAfterScratch, [](uint8_t byte) { return byte == 0x5a; }))
      << variant.name << " writes after its " << scratch_bytes << " bytes of scratch";
  ::operator delete (scratch, std::align_val_t{64});
}

inline void run_variant(const KernelVariant& variant, const void* args) {
  run_units(variant, args, 0, variant.work_items(args));
}

// All units in ranges drawn by the seed, run in a shuffled order unless they have one.
inline void run_variant_in_pieces(const KernelVariant& variant, const void* args, uint64_t seed,
                                  bool is_ordered = false) {
  std::mt19937_64 random(seed);
  const uint32_t units = variant.work_items(args);
  std::vector<std::pair<uint32_t, uint32_t>> ranges;
  for (uint32_t begin = 0; begin < units;) {
    const uint32_t most = units - begin;
    const uint32_t count = 1 + static_cast<uint32_t>(random() % (most < 5 ? most : 5));
    ranges.emplace_back(begin, begin + count);
    begin += count;
  }
  if (!is_ordered) std::shuffle(ranges.begin(), ranges.end(), random);
  for (const auto& [begin, end] : ranges) run_units(variant, args, begin, end);
}

}  // namespace qplan::testing

// Leaves the test unless this machine can run the variant.
#define QPLAN_SKIP_UNLESS_RUNNABLE(variant)                       \
  if (!::qplan::testing::can_run(variant)) {                      \
    GTEST_SKIP() << "this machine cannot run " << (variant).name; \
  }                                                               \
  static_assert(true, "the macro wants a semicolon")

#endif  // QPLAN_TESTS_SUPPORT_VARIANTS_H_
