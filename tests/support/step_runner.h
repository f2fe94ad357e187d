// Runs a TestStep through its family's glue and one variant, and compares what different ways of running
// give.
#ifndef QPLAN_TESTS_SUPPORT_STEP_RUNNER_H_
#define QPLAN_TESTS_SUPPORT_STEP_RUNNER_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "src/runtime/bind/family.h"
#include "tests/support/test_step.h"
#include "tests/support/variants.h"

namespace qplan::testing {

inline void fill_outputs(const StepView& view, uint8_t value) {
  for (uint32_t o = 0; o < view.num_outputs(); ++o) {
    std::memset(view.output_data(o), value, view.output(o).size_bytes);
  }
}

inline std::vector<std::vector<uint8_t>> output_bytes(const StepView& view) {
  std::vector<std::vector<uint8_t>> all;
  for (uint32_t o = 0; o < view.num_outputs(); ++o) {
    const auto* bytes = static_cast<const uint8_t*>(view.output_data(o));
    all.emplace_back(bytes, bytes + view.output(o).size_bytes);
  }
  return all;
}

// Binds the step and runs the variant: all units at once, then in shuffled pieces with args that were bound
// without checks and from an array of tensors; both must give the same bytes. False, without a failure, if
// the variant does not take the args.
inline bool run_step(TestStep& step, const KernelFamily& family, const KernelVariant& variant,
                     uint64_t seed) {
  ArgsStorage args;
  Error error;
  const qplan_status status = step.bind(family, &args, &error);
  EXPECT_EQ(status, QPLAN_OK) << error.text() << ", seed " << seed;
  if (status != QPLAN_OK || !variant.accepts(args.bytes)) return false;
  fill_outputs(step.view(), 0xcd);
  run_variant(variant, args.bytes);
  const auto whole = output_bytes(step.view());

  ArgsStorage unchecked;
  EXPECT_EQ(family.bind(step.table_view(), false, unchecked.bytes, &error), QPLAN_OK) << "seed " << seed;
  fill_outputs(step.view(), 0x35);
  run_variant_in_pieces(variant, unchecked.bytes, seed);
  EXPECT_EQ(output_bytes(step.view()), whole) << "pieces differ from the whole, seed " << seed;
  return true;
}

// Elements of a tensor of this shape.
inline size_t elements_of(const std::vector<int64_t>& shape) {
  size_t product = 1;
  for (const int64_t extent : shape) product *= static_cast<size_t>(extent);
  return product;
}

// The elements of output o.
template <typename T>
std::vector<T> output_values(const TestStep& step, uint32_t o = 0) {
  const T* data = step.output_data<T>(o);
  return std::vector<T>(data, data + step.view().output(o).size_bytes / sizeof(T));
}

// The first output after all of the step ran by the family's reference.
template <typename T>
std::vector<T> run_reference(TestStep& step, const KernelFamily& family) {
  ArgsStorage args;
  Error error;
  EXPECT_EQ(step.bind(family, &args, &error), QPLAN_OK) << error.text();
  if (error.text()[0] != '\0') return {};
  const KernelVariant& reference = family.variants[family.num_variants - 1];
  EXPECT_TRUE(reference.accepts(args.bytes));
  reference.run(args.bytes, 0, reference.work_items(args.bytes), nullptr);
  return output_values<T>(step);
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_STEP_RUNNER_H_
