// From a plan's step to RequantizeArgs.
#include <gtest/gtest.h>

#include <cfenv>
#include <cfloat>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "kernels/quantization/quantization.h"
#include "src/runtime/bind/family.h"
#include "tests/support/refusals.h"
#include "tests/support/test_step.h"
#include "tests/support/variants.h"

namespace qplan::requantize_step_test {
namespace {

using testing::ArgsStorage;
using testing::TestStep;

struct Spec {
  enum : uint32_t { kInput, kOutput };

  std::vector<int64_t> input_shape = {2, 3};
  std::vector<int64_t> output_shape = {2, 3};
  format::KernelParams params_type = format::KernelParams_RequantizeParams;
  format::Contract contract = format::Contract_TFL2;
  int32_t input_zero_point = 128;  // uint8
  int32_t output_zero_point = -1;  // int8
  int32_t multiplier = 1 << 30;
  int32_t shift = 1;
  int32_t clamp_min = -128, clamp_max = 127;
  float scale = 0.0f;
  std::vector<int32_t> multipliers, shifts;  // not empty: inputs of the step
  std::vector<float> scales;
  uint32_t axis = 1;
  bool is_wide = false;  // the input is int32
  format::FloatEpilogue float_epilogue = format::FloatEpilogue_NONE;
  std::vector<float> float_scale, float_offset;
  std::function<void(TestStep&)> edit = [](TestStep&) {};

  void make(TestStep& step) {
    size_t count = 1;
    for (const int64_t extent : input_shape) count *= static_cast<size_t>(extent);
    if (is_wide) {
      step.input<int32_t>(input_shape, std::vector<int32_t>(count, 1000));
    } else {
      step.input<uint8_t>(input_shape, std::vector<uint8_t>(count, 130));
    }
    step.output<int8_t>(output_shape);
    for (const auto* values : {&multipliers, &shifts}) {
      if (!values->empty()) step.constant<int32_t>({static_cast<int64_t>(values->size())}, *values);
    }
    if (!scales.empty()) step.constant<float>({static_cast<int64_t>(scales.size())}, scales);
    edit(step);
    const auto form_scales = step.builder().CreateVector(float_scale);
    const auto form_offsets = step.builder().CreateVector(float_offset);
    step.finish(params_type,
                format::CreateRequantizeParams(step.builder(), contract, input_zero_point, output_zero_point,
                                               multiplier, shift, clamp_min, clamp_max, scale, axis,
                                               float_epilogue, form_scales, form_offsets)
                    .Union());
  }
};

TEST(RequantizeStep, FillsArgsFromAValidStep) {
  for (const bool check : {true, false}) {
    Spec spec;
    TestStep step(kKernel_requantize);
    spec.make(step);
    ArgsStorage storage;
    Error error;
    ASSERT_EQ(step.bind(kRequantizeFamily, &storage, &error, check), QPLAN_OK) << error.text();
    const auto& args = storage.as<RequantizeArgs>();
    EXPECT_EQ(args.input, step.view().data[0]);
    EXPECT_EQ(args.output, step.view().data[1]);
    EXPECT_EQ(args.count, 6u);
    EXPECT_EQ(args.input_zero_point, 128);
    EXPECT_EQ(args.output_zero_point, -1);
    EXPECT_EQ(args.multiplier, 1 << 30);
    EXPECT_EQ(args.shift, 1);
    EXPECT_EQ(args.clamp_min, -128);
    EXPECT_EQ(args.clamp_max, 127);
    EXPECT_EQ(args.input_dtype, Dtype::kU8);
    EXPECT_EQ(args.output_dtype, Dtype::kS8);
    testing::run_variant(kRequantizeFamilyReference.variants[0], storage.bytes);
    EXPECT_EQ(std::vector<int8_t>(step.output_data<int8_t>(), step.output_data<int8_t>() + 6),
              std::vector<int8_t>(6, 130 - 128 - 1));
  }
}

// int32 under F32E.
Spec f32e_spec() {
  Spec spec;
  spec.contract = format::Contract_F32E;
  spec.is_wide = true;
  spec.input_zero_point = 0;
  spec.multiplier = -1;  // not looked at
  spec.scale = 0.0625f;
  return spec;
}

TEST(RequantizeStep, UnderF32eTheScaleIsMeant) {
  Spec spec = f32e_spec();
  TestStep step(kKernel_requantize);
  spec.make(step);
  ArgsStorage storage;
  Error error;
  ASSERT_EQ(step.bind(kRequantizeFamily, &storage, &error), QPLAN_OK) << error.text();
  testing::run_variant(kRequantizeFamilyReference.variants[0], storage.bytes);
  // 62.5 to even, less 1
  EXPECT_EQ(step.output_data<int8_t>()[0], 61);
}

TEST(RequantizeStep, UnderF32eRefusesWhatItCannotProve) {
  const auto scale = [](float value) { return [=](Spec& s) { s = f32e_spec(), s.scale = value; }; };
  testing::expect_refusals<Spec>(
      kRequantizeFamily, {{scale(0.0f), "scale is not in (0, 2^100]"},
                          {scale(-1.0f), "scale is not in (0, 2^100]"},
                          {scale(std::numeric_limits<float>::infinity()), "scale is not in (0, 2^100]"},
                          {scale(std::numeric_limits<float>::quiet_NaN()), "scale is not in (0, 2^100]"},
                          {[](Spec& s) { s = f32e_spec(), s.is_wide = false; },
                           "input has uint8, expected int32 under contract F32E"}});
}

// int32 [2, 3] with a multiplier for each index of the last axis.
Spec per_channel_spec() {
  Spec spec;
  spec.is_wide = true;
  spec.input_zero_point = 0;
  spec.multiplier = -1, spec.shift = 99;  // not looked at
  spec.multipliers = {1 << 30, 1 << 30, 0};
  spec.shifts = {-4, -5, 0};
  return spec;
}

TEST(RequantizeStep, AMultiplierPerIndexOfAnAxis) {
  for (const bool check : {true, false}) {
    Spec spec = per_channel_spec();
    TestStep step(kKernel_requantize);
    spec.make(step);
    ArgsStorage storage;
    Error error;
    ASSERT_EQ(step.bind(kRequantizeFamily, &storage, &error, check), QPLAN_OK) << error.text();
    const auto& args = storage.as<RequantizeArgs>();
    EXPECT_EQ(args.channels, 3u);
    EXPECT_EQ(args.inner, 1u);
    testing::run_variant(kRequantizeFamilyReference.variants[0], storage.bytes);
    // 1000 / 32 = 31.25 and 1000 / 64 = 15.6, less 1
    EXPECT_EQ(std::vector<int8_t>(step.output_data<int8_t>(), step.output_data<int8_t>() + 6),
              (std::vector<int8_t>{30, 15, -1, 30, 15, -1}));
  }
}

TEST(RequantizeStep, AScalePerIndexOfTheFirstAxis) {
  Spec spec = f32e_spec();
  spec.scale = -1.0f;  // not looked at
  spec.scales = {0.0625f, 0.0f};
  spec.axis = 0;
  TestStep step(kKernel_requantize);
  spec.make(step);
  ArgsStorage storage;
  Error error;
  ASSERT_EQ(step.bind(kRequantizeFamily, &storage, &error), QPLAN_OK) << error.text();
  EXPECT_EQ(storage.as<RequantizeArgs>().channels, 2u);
  EXPECT_EQ(storage.as<RequantizeArgs>().inner, 3u);
  testing::run_variant(kRequantizeFamilyReference.variants[0], storage.bytes);
  EXPECT_EQ(std::vector<int8_t>(step.output_data<int8_t>(), step.output_data<int8_t>() + 6),
            (std::vector<int8_t>{61, 61, 61, -1, -1, -1}));
}

TEST(RequantizeStep, RefusesMultipliersThatItCannotProve) {
  const auto change = [](std::function<void(Spec&)> apply) {
    return [apply](Spec& s) {
      s = per_channel_spec();
      apply(s);
    };
  };
  const auto scales = [](std::vector<float> values) {
    return [values](Spec& s) { s = f32e_spec(), s.scales = values; };
  };
  testing::expect_refusals<Spec>(
      kRequantizeFamily,
      {{change([](Spec& s) { s.axis = 2; }), "axis 2 of an input of rank 2"},
       {change([](Spec& s) { s.axis = UINT32_MAX; }), "axis 4294967295 of an input of rank 2"},
       {change([](Spec& s) { s.axis = 0; }), "multiplier has 12 bytes, expected 2 elements of 4"},
       {change([](Spec& s) { s.shifts.pop_back(); }), "shift has 8 bytes, expected 3 elements of 4"},
       {change([](Spec& s) { s.shifts.clear(); }), "the step has 2 inputs, expected 3"},
       {change([](Spec& s) { s.contract = format::Contract_F32E; }), "the step has 3 inputs, expected 2"},
       {change([](Spec& s) { s.input_shape = s.output_shape = {}; }), "axis 1 of an input of rank 0"},
       {change([](Spec& s) { s.multipliers[1] = -1; }),
        "multiplier -1 of channel 1 is not in 0 .. 2147483647"},
       {change([](Spec& s) { s.shifts[2] = 31; }), "shift 31 of channel 2 is not in -31 .. 30"},
       {change([](Spec& s) { s.edit = [](TestStep& step) { step.tensor(3).bank = TestStep::kArenaBank; }; }),
        "shift is not a constant"},
       {scales({1.0f, 1.0f}), "scale has 8 bytes, expected 3 elements of 4"},
       {scales({1.0f, -1.0f, 1.0f}), "scale of channel 1 is negative or not finite"},
       {scales({1.0f, 1.0f, std::numeric_limits<float>::infinity()}),
        "scale of channel 2 is negative or not finite"}});
}

TEST(RequantizeStep, AFloatEpilogueIsHandedOn) {
  Spec spec = per_channel_spec();
  spec.float_epilogue = format::FloatEpilogue_SIGNED;
  spec.float_scale = {1, 2, 3};
  spec.float_offset = {4, 5, 6};
  TestStep step(kKernel_requantize);
  spec.make(step);
  for (const bool check : {true, false}) {
    ArgsStorage storage;
    Error error;
    ASSERT_EQ(step.bind(kRequantizeFamily, &storage, &error, check), QPLAN_OK) << error.text();
    const auto& args = storage.as<RequantizeArgs>();
    EXPECT_EQ(args.float_epilogue, FloatEpilogue::kSigned);
    EXPECT_EQ(args.float_scale[2], 3.0f);
    EXPECT_EQ(args.float_offset[0], 4.0f);
  }
}

TEST(RequantizeStep, AFloatEpilogueOfAnotherKindOrContractIsPassedOver) {
  Spec other;
  other.float_epilogue = static_cast<format::FloatEpilogue>(3);
  Spec f32e = f32e_spec();
  f32e.float_epilogue = format::FloatEpilogue_PLAIN;
  for (Spec* spec : {&other, &f32e}) {
    TestStep step(kKernel_requantize);
    spec->make(step);
    ArgsStorage storage;
    Error error;
    ASSERT_EQ(step.bind(kRequantizeFamily, &storage, &error), QPLAN_OK) << error.text();
    EXPECT_EQ(storage.as<RequantizeArgs>().float_epilogue, FloatEpilogue::kNone);
    EXPECT_EQ(storage.as<RequantizeArgs>().float_scale, nullptr);
  }
}

// Whatever a hostile plan says there, kernels come back, and stay in their memories (ASan looks on).
TEST(RequantizeStep, FloatEpiloguesMayHoldAnything) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), inf, -inf, FLT_MAX, FLT_TRUE_MIN}) {
    for (const auto form : {format::FloatEpilogue_PLAIN, format::FloatEpilogue_SIGNED}) {
      for (const int64_t channels : {0, 3, 70}) {  // 0: one for all
        Spec spec = channels == 0 ? Spec() : per_channel_spec();
        const auto entries = static_cast<size_t>(std::max<int64_t>(channels, 1));
        if (channels != 0) {
          spec.input_shape = spec.output_shape = {5, channels};
          spec.multipliers.assign(entries, 1 << 30);
          spec.shifts.assign(entries, -3);
        }
        spec.float_epilogue = form;
        spec.float_scale.assign(entries, value);
        spec.float_offset.assign(entries, value);
        for (size_t c = 0; c < entries; c += 16) spec.float_scale[c] = c % 32 == 0 ? 1.0f : value;
        TestStep step(kKernel_requantize);
        spec.make(step);
        ArgsStorage storage;
        Error error;
        ASSERT_EQ(step.bind(kRequantizeFamily, &storage, &error), QPLAN_OK) << error.text();
        for (uint32_t i = 0; i < kRequantizeFamily.num_variants; ++i) {
          const KernelVariant& variant = kRequantizeFamily.variants[i];
          if (!cpu_has_isa(variant.isa)) continue;
          ASSERT_TRUE(variant.accepts(storage.bytes)) << variant.name;
          testing::run_variant(variant, storage.bytes);
        }
        EXPECT_EQ(std::fegetround(), FE_TONEAREST);
      }
    }
  }
}

TEST(RequantizeStep, RefusesAFloatEpilogueOfAnotherSize) {
  const auto form = [](std::vector<float> scale, std::vector<float> offset) {
    return [=](Spec& s) {
      s = per_channel_spec();
      s.float_epilogue = format::FloatEpilogue_PLAIN, s.float_scale = scale, s.float_offset = offset;
    };
  };
  testing::expect_refusals<Spec>(
      kRequantizeFamily,
      {{form({}, {}), "float_scale has 0 entries, expected 3"},
       {form({1, 2, 3, 4}, {1, 2, 3}), "float_scale has 4 entries, expected 3"},
       {form({1, 2, 3}, {1}), "float_offset has 1 entries, expected 3"},
       {[](Spec& s) {
          s.float_epilogue = format::FloatEpilogue_PLAIN, s.float_scale = {1, 2}, s.float_offset = {1, 2};
        },
        "float_scale has 2 entries, expected 1"}});
}

TEST(RequantizeStep, TakesScalars) {
  Spec spec;
  spec.input_shape = spec.output_shape = {};
  TestStep step(kKernel_requantize);
  spec.make(step);
  ArgsStorage storage;
  Error error;
  ASSERT_EQ(step.bind(kRequantizeFamily, &storage, &error), QPLAN_OK) << error.text();
  EXPECT_EQ(storage.as<RequantizeArgs>().count, 1u);
}

TEST(RequantizeStep, SharesABufferWithAn8BitInputOnly) {
  Spec bytes;
  TestStep step(kKernel_requantize);
  bytes.make(step);
  EXPECT_TRUE(kRequantizeFamily.in_place(step.view(), 0, 0));

  TestStep wide(kKernel_requantize);
  Spec words;
  words.edit = [](TestStep& s) {
    s.tensor(Spec::kInput).type_code = 0, s.tensor(Spec::kInput).type_bits = 32;
  };
  words.make(wide);
  EXPECT_FALSE(kRequantizeFamily.in_place(wide.view(), 0, 0));
}

TEST(RequantizeStep, RefusesWhatItCannotProve) {
  const auto edit = [](std::function<void(TestStep&)> change) {
    return [change](Spec& spec) { spec.edit = change; };
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
      kRequantizeFamily,
      {
          {edit([](TestStep& step) { step.inputs().push_back(0); }), "the step has 2 inputs, expected 3"},
          {edit([](TestStep& step) { step.outputs().push_back(1); }), "the step has 2 outputs, expected 1"},
          {[](Spec& s) { s.params_type = format::KernelParams_NoParams; }, "expected RequantizeParams"},
          {[](Spec& s) { s.contract = format::Contract_POT; },
           "contract POT is not computed by this runtime, only TFL2", QPLAN_KERNEL_MISSING},
          {dtype(Spec::kInput, 2, 32), "input has float32"},
          {dtype(Spec::kInput, 0, 64), "input has int64"},
          {dtype(Spec::kOutput, 0, 64), "output has int64"},
          {[](Spec& s) {
             s.output_shape = {3, 2};
           },
           "input and output differ in shape"},
          {[](Spec& s) { s.output_shape = {6}; }, "input and output differ in shape"},
          {edit([](TestStep& step) {
             for (const uint32_t tensor : {Spec::kInput, Spec::kOutput}) {
               TestStep::TensorSpec& spec = step.tensor(tensor);
               spec.shape.assign({1 << 24, 1 << 24});
               spec.size = uint64_t{1} << 48;
             }
           }),
           "281474976710656 elements are too many"},
          {[](Spec& s) { s.input_zero_point = -1; }, "input zero point -1 is outside uint8"},
          {[](Spec& s) { s.output_zero_point = 128; }, "output zero point 128 is outside int8"},
          {[](Spec& s) { s.multiplier = -1; }, "output multiplier -1 is negative"},
          {[](Spec& s) { s.shift = -32; }, "output shift -32 is not in -31 .. 30"},
          {[](Spec& s) { s.shift = 31; }, "output shift 31 is not in -31 .. 30"},
          {[](Spec& s) { s.clamp_min = -129; }, "clamp_min -129 is outside int8"},
          {[](Spec& s) { s.clamp_max = 128; }, "clamp_max 128 is outside int8"},
          {[](Spec& s) { s.clamp_min = 1, s.clamp_max = 0; }, "clamp_min 1 is above clamp_max 0"},
      });
}

}  // namespace
}  // namespace qplan::requantize_step_test
