// From a plan's step to FullyConnectedArgs.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "kernels/layout.h"
#include "kernels/matmul/matmul.h"
#include "src/runtime/bind/family.h"
#include "tests/support/refusals.h"
#include "tests/support/test_step.h"
#include "tests/support/variants.h"

namespace qplan::fully_connected_step_test {
namespace {

using testing::ArgsStorage;
using testing::TestStep;

// 2 x 3 rows of five values, seven outputs each.
struct Spec {
  // Tensors of the step, in the order they are added.
  enum : uint32_t { kInput, kWeights, kBias, kMultiplier, kShift, kOutput };

  std::vector<int64_t> input_shape = {2, 3, 5};
  std::vector<int64_t> output_shape = {2, 3, 7};
  std::vector<int8_t> weights = std::vector<int8_t>(35, 1);
  std::vector<int32_t> bias = std::vector<int32_t>(7, 3);
  // Empty, with no scale: the output, tensor 3, is int32.
  std::vector<int32_t> multiplier = std::vector<int32_t>(7, 1 << 30);
  std::vector<int32_t> shift = std::vector<int32_t>(7, 1);
  std::vector<float> scale;  // not empty: in the place of multiplier and shift
  format::KernelParams params_type = format::KernelParams_FullyConnectedParams;
  format::Contract contract = format::Contract_TFL2;
  uint16_t layout = kLayout_ohwi;
  int32_t input_zero_point = -3;    // int8
  int32_t weights_zero_point = 1;   // int8
  int32_t output_zero_point = 200;  // uint8
  int32_t clamp_min = 0, clamp_max = 255;
  std::function<void(TestStep&)> edit = [](TestStep&) {};

  void set_layout(uint16_t new_layout) {
    layout = new_layout;
    weights.assign(layout_bytes(layout, 7, 5), 1);
    bias.assign(layout_channels(layout, 7), 3);
    multiplier.assign(layout_channels(layout, 7), 1 << 30);
    shift.assign(layout_channels(layout, 7), 1);
  }

  // In groups of eight: of five inputs, three bytes are after them.
  void clear_after_rows() {
    for (size_t i = 0; i < weights.size(); ++i) {
      if (i % 8 >= 5) weights[i] = 0;
    }
  }

  void make(TestStep& step) {
    size_t count = 1;
    for (const int64_t extent : input_shape) count *= static_cast<size_t>(extent);
    step.input<int8_t>(input_shape, std::vector<int8_t>(count, 4));
    step.constant<int8_t>({static_cast<int64_t>(weights.size())}, weights);
    step.constant<int32_t>({static_cast<int64_t>(bias.size())}, bias);
    if (!scale.empty()) {
      step.constant<float>({static_cast<int64_t>(scale.size())}, scale);
    } else if (!multiplier.empty()) {
      step.constant<int32_t>({static_cast<int64_t>(multiplier.size())}, multiplier);
      step.constant<int32_t>({static_cast<int64_t>(shift.size())}, shift);
    }
    if (multiplier.empty() && scale.empty()) {
      step.output<int32_t>(output_shape);
    } else {
      step.output<uint8_t>(output_shape);
    }
    edit(step);
    step.finish(params_type, format::CreateFullyConnectedParams(
                                 step.builder(), contract, layout, input_zero_point, weights_zero_point,
                                 output_zero_point, clamp_min, clamp_max, format::FloatEpilogue_NONE, 0, 0, 4)
                                 .Union());
  }
};

TEST(FullyConnectedStep, FillsArgsFromAValidStep) {
  for (const bool check : {true, false}) {
    Spec spec;
    TestStep step(kKernel_fully_connected);
    spec.make(step);
    ArgsStorage storage;
    Error error;
    ASSERT_EQ(step.bind(kFullyConnectedFamily, &storage, &error, check), QPLAN_OK) << error.text();
    const auto& args = storage.as<FullyConnectedArgs>();
    EXPECT_EQ(args.input, step.view().data[0]);
    EXPECT_EQ(args.weights, step.view().data[1]);
    EXPECT_EQ(args.bias, step.view().data[2]);
    EXPECT_EQ(args.multiplier, step.view().data[3]);
    EXPECT_EQ(args.shift, step.view().data[4]);
    EXPECT_EQ(args.output, step.view().data[5]);
    EXPECT_EQ(args.rows, 6u);
    EXPECT_EQ(args.input_c, 5u);
    EXPECT_EQ(args.output_c, 7u);
    EXPECT_EQ(args.input_zero_point, -3);
    EXPECT_EQ(args.weights_zero_point, 1);
    EXPECT_EQ(args.output_zero_point, 200);
    EXPECT_EQ(args.clamp_min, 0);
    EXPECT_EQ(args.clamp_max, 255);
    EXPECT_EQ(args.int16_groups, 4);
    EXPECT_EQ(args.input_dtype, Dtype::kS8);
    EXPECT_EQ(args.output_dtype, Dtype::kU8);
    // (4 + 3) * (1 - 1) five times, plus 3, plus 200.
    testing::run_variant(kFullyConnectedFamilyReference.variants[0], storage.bytes);
    EXPECT_EQ(std::vector<uint8_t>(step.output_data<uint8_t>(), step.output_data<uint8_t>() + 42),
              std::vector<uint8_t>(42, 203));
  }
}

TEST(FullyConnectedStep, RowsMayBeCutOtherwise) {
  const std::vector<std::function<void(Spec&)>> changes = {
      [](Spec& s) { s.set_layout(kLayout_o16k4); },
      [](Spec& s) {
        s.output_shape = {6, 7};
      },
      [](Spec& s) {
        s.input_shape = {6, 5};
      },
      [](Spec& s) {
        s.input_shape = {5}, s.output_shape = {1, 1, 7};
      },
      [](Spec& s) { s.input_shape = {1, 1, 1, 1, 6, 5}; },
  };
  for (const auto& change : changes) {
    Spec spec;
    change(spec);
    TestStep step(kKernel_fully_connected);
    spec.make(step);
    ArgsStorage storage;
    Error error;
    EXPECT_EQ(step.bind(kFullyConnectedFamily, &storage, &error), QPLAN_OK) << error.text();
    for (uint32_t i = 0; i < kFullyConnectedFamily.num_variants; ++i) {
      const KernelVariant& variant = kFullyConnectedFamily.variants[i];
      if (cpu_has_isa(variant.isa) && variant.accepts(storage.bytes))
        testing::run_variant(variant, storage.bytes);
    }
  }
}

Spec acc32_spec() {
  Spec spec;
  spec.contract = format::Contract_ACC32;
  spec.multiplier.clear();
  spec.output_zero_point = spec.clamp_min = spec.clamp_max = 0;
  return spec;
}

TEST(FullyConnectedStep, UnderAcc32TheSumsAreTheOutput) {
  Spec spec = acc32_spec();
  spec.weights_zero_point = -100;
  TestStep step(kKernel_fully_connected);
  spec.make(step);
  ArgsStorage storage;
  Error error;
  ASSERT_EQ(step.bind(kFullyConnectedFamily, &storage, &error), QPLAN_OK) << error.text();
  EXPECT_EQ(storage.as<FullyConnectedArgs>().multiplier, nullptr);
  testing::run_variant(kFullyConnectedFamilyReference.variants[0], storage.bytes);
  // (4 + 3) * (1 + 100) five times, plus 3
  EXPECT_EQ(std::vector<int32_t>(step.output_data<int32_t>(), step.output_data<int32_t>() + 42),
            std::vector<int32_t>(42, 3538));
}

TEST(FullyConnectedStep, UnderF32eOneScaleIsMeant) {
  Spec spec;
  spec.contract = format::Contract_F32E;
  spec.scale = std::vector<float>(7, 0.5f);
  TestStep step(kKernel_fully_connected);
  spec.make(step);
  ArgsStorage storage;
  Error error;
  ASSERT_EQ(step.bind(kFullyConnectedFamily, &storage, &error), QPLAN_OK) << error.text();
  testing::run_variant(kFullyConnectedFamilyReference.variants[0], storage.bytes);
  // 3 halves, to even, plus 200
  EXPECT_EQ(step.output_data<uint8_t>()[0], 202);
}

TEST(FullyConnectedStep, UnderF32eRefusesWhatItCannotProve) {
  const auto scales = [](std::vector<float> values) {
    return [values](Spec& s) { s.contract = format::Contract_F32E, s.scale = values; };
  };
  testing::expect_refusals<Spec>(
      kFullyConnectedFamily,
      {{scales({}), "the step has 5 inputs, expected 4"},
       {scales({1, 1, 1, 1, 1, 1}), "scale has 24 bytes, expected 7 elements of 4"},
       {scales({1, -1, 1, 1, 1, 1, 1}), "scale of channel 1 is negative or not finite"},
       {scales({1, 1, 1, 1, 1, 1, std::numeric_limits<float>::infinity()}),
        "scale of channel 6 is negative or not finite"}});
}

TEST(FullyConnectedStep, RefusesWhatItCannotProve) {
  const auto edit = [](std::function<void(TestStep&)> change) {
    return [change](Spec& spec) { spec.edit = change; };
  };
  const auto in_arena = [edit](uint32_t tensor) {
    return edit([=](TestStep& step) { step.tensor(tensor).bank = TestStep::kArenaBank; });
  };
  const auto dtype = [edit](uint32_t tensor, uint8_t code, uint8_t bits) {
    return edit([=](TestStep& step) {
      TestStep::TensorSpec& spec = step.tensor(tensor);
      spec.size = spec.size * 8 / spec.type_bits * bits / 8;
      spec.type_code = code;
      spec.type_bits = bits;
    });
  };
  testing::expect_refusals<Spec>(
      kFullyConnectedFamily,
      {
          {edit([](TestStep& step) { step.inputs().pop_back(); }), "the step has 4 inputs, expected 5"},
          {edit([](TestStep& step) { step.outputs().push_back(5); }), "the step has 2 outputs, expected 1"},
          {[](Spec& s) { s.params_type = format::KernelParams_Conv2dParams; },
           "expected FullyConnectedParams"},
          {[](Spec& s) { s.contract = format::Contract_POT; },
           "contract POT is not computed by this runtime, only TFL2, TFL1, F32E, ACC32",
           QPLAN_KERNEL_MISSING},
          {[](Spec& s) { s.contract = format::Contract_ACC32; }, "the step has 5 inputs, expected 3"},
          {[](Spec& s) { s = acc32_spec(), s.scale = std::vector<float>(7, 1.0f); },
           "the step has 4 inputs, expected 3"},
          {[](Spec& s) { s = acc32_spec(), s.contract = format::Contract_F32E; },
           "the step has 3 inputs, expected 4"},
          {[](Spec& s) { s = acc32_spec(), s.clamp_max = 255; },
           "clamp_max under ACC32 255 is not in 0 .. 0"},
          {[](Spec& s) { s = acc32_spec(), s.output_zero_point = 1; },
           "output zero point under ACC32 1 is not in 0 .. 0"},
          {[](Spec& s) { s.layout = kLayout_hwo16; },
           "no variant reads weight layout 2 (hwo16), only ohwi, o16k4, o4k4, o4h4, o4k16 and o16r8",
           QPLAN_KERNEL_MISSING},
          {dtype(Spec::kInput, 0, 32), "input has int32"},
          {dtype(Spec::kOutput, 2, 32), "output has float32"},
          {dtype(Spec::kWeights, 1, 8), "weights has uint8, expected int8"},
          {dtype(Spec::kBias, 0, 64), "bias has int64, expected int32"},
          {in_arena(Spec::kWeights), "weights is not a constant"},
          {in_arena(Spec::kBias), "bias is not a constant"},
          {in_arena(Spec::kMultiplier), "multiplier is not a constant"},
          {in_arena(Spec::kShift), "shift is not a constant"},
          {[](Spec& s) { s.input_shape = {}; }, "must have an axis of channels"},
          {[](Spec& s) { s.output_shape = {}; }, "must have an axis of channels"},
          {edit([](TestStep& step) { step.tensor(Spec::kInput).shape.resize(7, 1); }), "input has rank 7"},
          {[](Spec& s) {
             s.output_shape = {5, 7};
           },
           "input rows 6 are not the output's 5"},
          {[](Spec& s) {
             s.input_shape = {3, 5};
           },
           "input rows 3 are not the output's 6"},
          {edit([](TestStep& step) {
             for (const uint32_t tensor : {Spec::kInput, Spec::kOutput}) {
               TestStep::TensorSpec& spec = step.tensor(tensor);
               spec.shape.assign({1 << 20, 1 << 11, 7});
               spec.size = uint64_t{7} << 31;
             }
           }),
           "2147483648 rows of 7 outputs are too many"},
          {[](Spec& s) { s.input_shape[2] = 6; }, "weights has 35 bytes, expected 42"},
          {[](Spec& s) { s.output_shape[2] = 8; }, "weights has 35 bytes, expected 40"},
          {[](Spec& s) { s.layout = kLayout_o16k4; }, "weights has 35 bytes, expected 128"},
          {[](Spec& s) { s.set_layout(kLayout_o16k4), s.multiplier.resize(7); }, "multiplier has 28 bytes"},
          {[](Spec& s) { s.bias.pop_back(); }, "bias has 24 bytes, expected 7 elements of 4"},
          {[](Spec& s) { s.multiplier[6] = -7; }, "multiplier -7 of channel 6 is not in 0 .. 2147483647"},
          {[](Spec& s) { s.shift[0] = 31; }, "shift 31 of channel 0 is not in -31 .. 30"},
          {[](Spec& s) { s.input_zero_point = 128; }, "input zero point 128 is outside int8"},
          {[](Spec& s) { s.weights_zero_point = -129; }, "weights zero point -129 is outside int8"},
          {[](Spec& s) { s.output_zero_point = -1; }, "output zero point -1 is outside uint8"},
          {[](Spec& s) { s.clamp_min = -1; }, "clamp_min -1 is outside uint8"},
          {[](Spec& s) { s.clamp_max = 256; }, "clamp_max 256 is outside uint8"},
          {[](Spec& s) { s.clamp_min = 9, s.clamp_max = 8; }, "clamp_min 9 is above clamp_max 8"},
      });
}

// Five inputs in a group of eight: kernels multiply three bytes after them.
TEST(FullyConnectedStep, RefusesWeightsAfterARowInGroupsOfEight) {
  const auto byte = [](size_t at, int8_t value) {
    return [=](Spec& s) {
      s.set_layout(kLayout_o16r8);
      s.clear_after_rows();
      s.weights[at] = value;
    };
  };
  testing::expect_refusals<Spec>(
      kFullyConnectedFamily,
      {
          {byte(5, 7), "weights in o16r8 have 7 at byte 5, after a tap, expected 0"},
          {byte(127, -128), "weights in o16r8 have -128 at byte 127, after a tap, expected 0"},
      });
}

TEST(FullyConnectedStep, TakesAnyWeightsThatReachNoOutput) {
  for (const uint16_t layout : {kLayout_o16k4, kLayout_o16r8, kLayout_o4k4, kLayout_o4h4, kLayout_o4k16}) {
    Spec spec;
    spec.set_layout(layout);
    if (layout == kLayout_o16r8) spec.clear_after_rows();
    TestStep step(kKernel_fully_connected);
    spec.make(step);
    ArgsStorage storage;
    Error error;
    EXPECT_EQ(step.bind(kFullyConnectedFamily, &storage, &error), QPLAN_OK) << error.text();
  }
}

TEST(FullyConnectedStep, ReferenceFamilyHasTheReferenceOnly) {
  EXPECT_EQ(kFullyConnectedFamilyReference.num_variants, 1u);
  EXPECT_EQ(std::string(kFullyConnectedFamilyReference.variants[0].name), "fully_connected_ref");
}

}  // namespace
}  // namespace qplan::fully_connected_step_test
