// Hostile steps of recurrent layers and of softmax to int16: what binding refuses, and that what it accepts
// computes without overflow at the ends of every range.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/layout.h"
#include "src/runtime/bind/family.h"
#include "tests/support/refusals.h"
#include "tests/support/step_runner.h"
#include "tests/support/test_step.h"

namespace qplan::testing::recurrent_step_test {
namespace {

// A sequence of two steps of three channels, four cells.
struct Lstm {
  std::vector<int64_t> input = {1, 2, 3}, output = {1, 2, 4}, state = {1, 4};
  size_t weights = 16 * 3, biases = 16;
  std::vector<int32_t> multipliers = {1 << 30, 1 << 30, 1 << 30, 1 << 30}, shifts = {0, 0, 0, 0};
  int32_t output_shift = -8, zero_point = 0, clip = 0;
  uint32_t cell_bits = 12;
  uint16_t layout = kLayout_ohwi;
  bool coupled = false;

  void make(TestStep& step) const {
    step.input<int8_t>(input, std::vector<int8_t>(elements_of(input), 127));
    step.constant<int8_t>({static_cast<int64_t>(weights)}, std::vector<int8_t>(weights, -128));
    step.constant<int8_t>({64}, std::vector<int8_t>(64, 127));
    for (int i = 0; i < 2; ++i)
      step.constant<int32_t>({static_cast<int64_t>(biases)}, std::vector<int32_t>(biases, INT32_MAX));
    step.input<int8_t>(state, std::vector<int8_t>(elements_of(state), -128));
    step.input<int16_t>(state, std::vector<int16_t>(elements_of(state), -32768));
    step.output<int8_t>(output);
    step.output<int8_t>(state);
    step.output<int16_t>(state);
    step.finish(format::KernelParams_LstmParams,
                format::CreateLstmParamsDirect(step.builder(), coupled, false, layout, &multipliers, &shifts,
                                               &multipliers, &shifts, INT32_MAX, output_shift, zero_point,
                                               cell_bits, clip)
                    .Union());
  }
};

TEST(RecurrentStep, RecurrentLayersAreRefusedWhereTheyDoNotFit) {
  expect_refusals(kLstmFamily, std::vector<Refusal<Lstm>>{
                                   {[](Lstm& l) {
                                      l.output = {1, 2, 3};
                                    },
                                    "is not the input's sequence"},
                                   {[](Lstm& l) {
                                      l.output = {1, 3, 4};
                                    },
                                    "is not the input's sequence"},
                                   {[](Lstm& l) {
                                      l.state = {2, 4};
                                    },
                                    "is not of 1 samples"},
                                   {[](Lstm& l) { l.weights = 47; }, "input weights"},
                                   {[](Lstm& l) { l.biases = 15; }, "input bias"},
                                   {[](Lstm& l) { l.layout = kLayout_o16k4; }, "input weights"},
                                   {[](Lstm& l) { l.layout = kLayout_o2r4; }, "layout", QPLAN_KERNEL_MISSING},
                                   {[](Lstm& l) { l.coupled = true; }, "input weights"},
                                   {[](Lstm& l) { l.multipliers.pop_back(); }, "as gates, 4"},
                                   {[](Lstm& l) { l.multipliers[3] = -1; }, "multiplier -1"},
                                   {[](Lstm& l) { l.shifts[0] = 31; }, "shift 31"},
                                   {[](Lstm& l) { l.output_shift = -32; }, "shift -32"},
                                   {[](Lstm& l) { l.zero_point = 128; }, "output zero point"},
                                   {[](Lstm& l) { l.cell_bits = 8; }, "cell_bits"},
                                   {[](Lstm& l) { l.cell_bits = 16; }, "cell_bits"},
                                   {[](Lstm& l) { l.clip = -1; }, "cell_clip"},
                               });
}

void run_with_scratch(TestStep& step, const KernelFamily& family) {
  ArgsStorage args;
  Error error;
  ASSERT_EQ(step.bind(family, &args, &error), QPLAN_OK) << error.text();
  const KernelVariant& reference = family.variants[family.num_variants - 1];
  std::vector<uint8_t> scratch(reference.scratch_bytes(args.bytes) + 64);
  uint8_t* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  reference.run(args.bytes, 0, reference.work_items(args.bytes), aligned);
}

// Shifts to the left and sums that wrap; under sanitizers that is what these runs are for.
TEST(RecurrentStep, RecurrentLayersComputeAtTheEndsOfAllRanges) {
  for (const int32_t shift : {-31, 0, 30}) {
    for (const uint32_t bits : {9u, 15u}) {
      Lstm lstm;
      lstm.shifts = std::vector<int32_t>(4, shift);
      lstm.output_shift = shift;
      lstm.cell_bits = bits;
      TestStep step(kKernel_lstm);
      lstm.make(step);
      run_with_scratch(step, kLstmFamily);
    }
  }
}

// The same layer on float32, or with weights of int8.
struct FloatLstm {
  std::vector<int64_t> input = {1, 2, 3}, output = {1, 2, 4}, state = {1, 4};
  size_t weights = 16 * 3, recurrent = 16 * 4, biases = 16, scales = 8;
  bool hybrid = false, coupled = false, float_weights = true;
  float clip = 0;
  uint16_t layout = kLayout_ohwi;

  void make(TestStep& step) const {
    const auto constant = [&](size_t count, bool is_float) {
      const auto shape = std::vector<int64_t>{static_cast<int64_t>(count)};
      if (is_float) {
        step.constant<float>(shape, std::vector<float>(count, 1e30f));
      } else {
        step.constant<int8_t>(shape, std::vector<int8_t>(count, -128));
      }
    };
    step.input<float>(input, std::vector<float>(elements_of(input), -1e30f));
    constant(weights, float_weights);
    constant(recurrent, float_weights);
    constant(biases, true);
    constant(scales, true);
    for (int i = 0; i < 2; ++i) step.input<float>(state, std::vector<float>(elements_of(state), 1e38f));
    step.output<float>(output);
    step.output<float>(state);
    step.output<float>(state);
    step.finish(
        format::KernelParams_FloatLstmParams,
        format::CreateFloatLstmParams(step.builder(), coupled, false, hybrid, true, clip, layout).Union());
  }
};

TEST(RecurrentStep, FloatLayersAreRefusedWhereTheyDoNotFit) {
  std::vector<Refusal<FloatLstm>> refusals = {
      {[](FloatLstm& l) {
         l.output = {1, 2, 3};
       },
       "is not the input's sequence"},
      {[](FloatLstm& l) {
         l.state = {2, 4};
       },
       "is not of 1 samples"},
      {[](FloatLstm& l) { l.weights = 47; }, "input weights"},
      {[](FloatLstm& l) { l.recurrent = 63; }, "recurrent weights"},
      {[](FloatLstm& l) { l.biases = 15; }, "bias"},
      {[](FloatLstm& l) { l.scales = 7; }, "weight scales"},
      {[](FloatLstm& l) { l.coupled = true, l.weights = 47; }, "input weights"},
      {[](FloatLstm& l) { l.float_weights = false; }, "input weights"},
      {[](FloatLstm& l) { l.hybrid = true; }, "input weights"},
      {[](FloatLstm& l) { l.layout = kLayout_o16k4; }, "layout", QPLAN_KERNEL_MISSING},
      {[](FloatLstm& l) { l.hybrid = true, l.float_weights = false, l.layout = kLayout_o2r4; }, "layout",
       QPLAN_KERNEL_MISSING},
      {[](FloatLstm& l) { l.clip = -1; }, "clamp"},
      {[](FloatLstm& l) { l.clip = std::numeric_limits<float>::quiet_NaN(); }, "clamp"},
  };
  expect_refusals(kFloatLstmFamily, refusals);
  // Sums that are infinite, and infinity less infinity.
  for (const bool hybrid : {false, true}) {
    TestStep step(kKernel_float_lstm);
    FloatLstm{.hybrid = hybrid, .float_weights = !hybrid}.make(step);
    run_with_scratch(step, kFloatLstmFamily);
  }
}

// Two samples of three channels, four filters of rank two and memory five.
struct Svdf {
  std::vector<int64_t> input = {2, 3}, output = {2, 2}, first = {2, 4, 5}, last = {2, 4, 5};
  int64_t weights = 12, time_weights = 20, filters = 4, units = 2;
  uint32_t rank = 2;
  int32_t feature_shift = 30, output_shift = 30, zero_point = 0;

  void make(TestStep& step) const {
    const auto filled = [](int64_t count, auto value) {
      return std::vector<decltype(value)>(static_cast<size_t>(count), value);
    };
    step.input<int8_t>(input, filled(elements_of(input), int8_t{-128}));
    step.constant<int8_t>({weights}, filled(weights, int8_t{-128}));
    step.constant<int16_t>({time_weights}, filled(time_weights, int16_t{-32768}));
    step.constant<int32_t>({filters}, filled(filters, INT32_MIN));
    step.constant<int32_t>({units}, filled(units, INT32_MAX));
    step.input<int16_t>(first, filled(elements_of(first), int16_t{-32768}));
    step.output<int8_t>(output);
    step.output<int16_t>(last);
    step.finish(format::KernelParams_SvdfParams,
                format::CreateSvdfParams(step.builder(), rank, INT32_MAX, feature_shift, INT32_MAX,
                                         output_shift, zero_point)
                    .Union());
  }
};

TEST(RecurrentStep, SvdfIsRefusedWhereItDoesNotFitAndComputesAtTheEndsOfAllRanges) {
  expect_refusals(kSvdfFamily, std::vector<Refusal<Svdf>>{
                                   {[](Svdf& s) {
                                      s.input = {1, 3};
                                    },
                                    "as many samples"},
                                   {[](Svdf& s) {
                                      s.last = {2, 4, 4};
                                    },
                                    "another shape"},
                                   {[](Svdf& s) { s.rank = 0; }, "do not make"},
                                   {[](Svdf& s) { s.rank = 3; }, "do not make"},
                                   {[](Svdf& s) { s.rank = 1; }, "do not make"},
                                   {[](Svdf& s) { s.weights = 11; }, "feature weights"},
                                   {[](Svdf& s) { s.time_weights = 19; }, "time weights"},
                                   {[](Svdf& s) { s.filters = 3; }, "feature bias"},
                                   {[](Svdf& s) { s.units = 3; }, "bias"},
                                   {[](Svdf& s) { s.feature_shift = 31; }, "shift 31"},
                                   {[](Svdf& s) { s.output_shift = -32; }, "shift -32"},
                                   {[](Svdf& s) { s.zero_point = -129; }, "output zero point"},
                               });
  TestStep step(kKernel_svdf);
  Svdf().make(step);
  EXPECT_EQ(run_reference<int8_t>(step, kSvdfFamily).size(), 4u);
}

struct Softmax16 {
  bool is_wide = true;
  std::vector<int64_t> input = {2, 3}, output = {2, 3};
  int32_t multiplier = 1 << 30, shift = 1, diff_min = 0;
  std::vector<int16_t> exponentials = std::vector<int16_t>(513, 32767),
                       reciprocals = std::vector<int16_t>(513, 32767);

  void make(TestStep& step) const {
    const auto count = elements_of(input);
    if (is_wide) {
      step.input<int16_t>(input, std::vector<int16_t>(count, -32768));
      step.constant<int16_t>({static_cast<int64_t>(exponentials.size())}, exponentials);
      step.constant<int16_t>({static_cast<int64_t>(reciprocals.size())}, reciprocals);
    } else {
      step.input<int8_t>(input, std::vector<int8_t>(count, -128));
    }
    step.output<int16_t>(output);
    step.finish(format::KernelParams_Softmax16Params,
                format::CreateSoftmax16Params(step.builder(), multiplier, shift, diff_min).Union());
  }
};

TEST(RecurrentStep, SoftmaxToInt16IsRefusedWhereItCouldOverflow) {
  expect_refusals(kSoftmax16Family,
                  std::vector<Refusal<Softmax16>>{
                      {[](Softmax16& s) {
                         s.output = {3, 2};
                       },
                       "another shape"},
                      {[](Softmax16& s) {
                         s.input = s.output = {1, 65536};
                       },
                       "depth"},
                      {[](Softmax16& s) { s.multiplier = -1; }, "multiplier -1"},
                      {[](Softmax16& s) { s.shift = 31; }, "shift 31"},
                      {[](Softmax16& s) { s.exponentials.pop_back(); }, "table of exponentials"},
                      {[](Softmax16& s) { s.exponentials[5] = -1; }, "entry 5"},
                      {[](Softmax16& s) { s.exponentials[512] = 1; }, "entry 512"},
                      {[](Softmax16& s) { s.reciprocals[0] = -1; }, "entry 0"},
                      {[](Softmax16& s) { s.is_wide = false, s.shift = 32; }, "input_shift"},
                      {[](Softmax16& s) { s.is_wide = false, s.diff_min = 1; }, "diff_min"},
                      {[](Softmax16& s) { s.is_wide = false, s.shift = 31, s.diff_min = -2; }, "diff_min"},
                  });
  Softmax16 least;
  least.exponentials = std::vector<int16_t>(513, 0);
  least.exponentials[511] = least.exponentials[512] = 2;
  TestStep step(kKernel_softmax16);
  least.make(step);
  EXPECT_EQ(run_reference<int16_t>(step, kSoftmax16Family).size(), 6u);
}

}  // namespace
}  // namespace qplan::testing::recurrent_step_test
