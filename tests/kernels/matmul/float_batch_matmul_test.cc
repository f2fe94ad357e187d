// float_batch_matmul: every variant has the bits of the sum written out here.
#include <gtest/gtest.h>

#include <functional>

#include "kernels/matmul/matmul.h"
#include "src/runtime/bind/family.h"
#include "tests/support/floats.h"
#include "tests/support/nd.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"

namespace qplan::float_batch_matmul_test {
namespace {

using testing::ArgsStorage;
using testing::Extents;
using testing::Floats;
using testing::Random;
using testing::TestStep;

struct MatmulSpec {
  Extents a = {2, 3, 4}, b = {4, 5}, output = {2, 3, 5};
  bool transpose_b = false;
  std::function<void(TestStep&)> tweak = {};

  TestStep make_of(const std::vector<float>& x, const std::vector<float>& y) const {
    TestStep step(kKernel_float_batch_matmul);
    step.input<float>(a, x);
    step.input<float>(b, y);
    step.output<float>(output);
    if (tweak) tweak(step);
    step.finish(format::KernelParams_FloatBatchMatmulParams,
                format::CreateFloatBatchMatmulParams(step.builder(), transpose_b).Union());
    return step;
  }
  void make(TestStep& step) const {
    step = make_of(std::vector<float>(static_cast<size_t>(testing::num_elements(a))),
                   std::vector<float>(static_cast<size_t>(testing::num_elements(b))));
  }

  std::vector<float> expected(const std::vector<float>& x, const std::vector<float>& y) const {
    std::vector<float> sums;
    const int64_t depth = a.back();
    testing::for_each_position(output, [&](const Extents& at) {
      volatile float sum = 0.0f;
      for (int64_t k = 0; k < depth; ++k) {
        Extents at_a = at, at_b = at;
        at_a.back() = k;
        at_b[at_b.size() - (transpose_b ? 1 : 2)] = k;
        if (transpose_b) at_b[at_b.size() - 2] = at.back();
        const volatile float product = x[static_cast<size_t>(testing::broadcast_index(a, at_a))] *
                                       y[static_cast<size_t>(testing::broadcast_index(b, at_b))];
        sum = sum + product;
      }
      sums.push_back(static_cast<float>(sum));
    });
    return sums;
  }
};

class FloatBatchMatmulVariant : public ::testing::TestWithParam<const KernelVariant*> {
 protected:
  void SetUp() override { QPLAN_SKIP_UNLESS_RUNNABLE(*GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(All, FloatBatchMatmulVariant,
                         ::testing::ValuesIn(testing::variants_of(kFloatBatchMatmulFamily)),
                         testing::variant_test_name);

TEST_P(FloatBatchMatmulVariant, AddsInTheOrderOfTheCommonExtent) {
  for (uint64_t seed = 1; seed <= 120 && !HasFailure(); ++seed) {
    Random random(seed);
    const Extents batches = testing::random_shape(random, static_cast<size_t>(random.integer(0, 4)), 3);
    MatmulSpec spec;
    spec.transpose_b = random.chance(0.3);
    spec.a = testing::random_broadcast_source(random, batches);
    spec.b = testing::random_broadcast_source(random, batches);
    spec.output = testing::broadcast_shape(spec.a, spec.b);
    // No extent of 1 among those that are multiplied, which the oracle would repeat.
    const int64_t m = random.integer(2, 6), k = random.integer(2, 20), n = random.integer(2, 90);
    spec.a.insert(spec.a.end(), {m, k});
    spec.b.insert(spec.b.end(), {spec.transpose_b ? n : k, spec.transpose_b ? k : n});
    spec.output.insert(spec.output.end(), {m, n});
    for (const Floats kind : {Floats::kPlain, Floats::kWide, Floats::kSpecial}) {
      const auto x = testing::random_floats(random, static_cast<size_t>(testing::num_elements(spec.a)), kind);
      const auto y = testing::random_floats(random, static_cast<size_t>(testing::num_elements(spec.b)), kind);
      TestStep step = spec.make_of(x, y);
      ArgsStorage args;
      Error error;
      ASSERT_EQ(step.bind(kFloatBatchMatmulFamily, &args, &error), QPLAN_OK) << error.text();
      if (!GetParam()->accepts(args.bytes)) continue;  // transposed matrices
      if (!testing::run_step(step, kFloatBatchMatmulFamily, *GetParam(), seed)) return;
      testing::expect_same_floats(testing::output_values<float>(step), spec.expected(x, y),
                                  "seed " + std::to_string(seed));
    }
  }
}

TEST(FloatBatchMatmul, BindRefusesWhatIsWrong) {
  const std::vector<testing::Refusal<MatmulSpec>> refusals = {
      // clang-format off
      {[](MatmulSpec& s) { s.tweak = [](TestStep& t) { t.inputs().push_back(0); }; }, "expected 2"},
      {[](MatmulSpec& s) { s.tweak = [](TestStep& t) { t.tensor(0).type_code = 0; }; }, "input 1"},
      {[](MatmulSpec& s) { s.tweak = [](TestStep& t) { t.tensor(1).type_code = 0; }; }, "input 2"},
      {[](MatmulSpec& s) { s.tweak = [](TestStep& t) { t.tensor(2).type_code = 0; }; }, "output"},
      {[](MatmulSpec& s) { s.b = {5, 4}; }, "do not make"},
      {[](MatmulSpec& s) { s.transpose_b = true; }, "do not make"},
      {[](MatmulSpec& s) { s.b = {20}; }, "rank 2"},
      {[](MatmulSpec& s) { s.output = {1, 3, 5}; }, "broadcast to"},
      // clang-format on
  };
  testing::expect_refusals(kFloatBatchMatmulFamily, refusals);
}

}  // namespace
}  // namespace qplan::float_batch_matmul_test
