// From a plan's step to Conv2dArgs.
#include <gtest/gtest.h>

#include <cfenv>
#include <cfloat>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/conv2d/conv2d.h"
#include "src/runtime/bind/family.h"
#include "tests/support/conv2d_step_spec.h"
#include "tests/support/random.h"
#include "tests/support/variants.h"

namespace qplan::conv2d_step_test {
namespace {

using testing::ArgsStorage;
using testing::Conv2dStepSpec;
using testing::TestStep;

TEST(Conv2dStep, FillsArgsFromAValidStep) {
  Conv2dStepSpec spec;
  TestStep step(kKernel_conv2d);
  spec.make(step);
  for (const bool check : {true, false}) {
    ArgsStorage storage;
    Error error;
    ASSERT_EQ(step.bind(kConv2dFamily, &storage, &error, check), QPLAN_OK) << error.text();
    const auto& args = storage.as<Conv2dArgs>();
    EXPECT_EQ(args.input, step.view().data[0]);
    EXPECT_EQ(args.weights, step.view().data[1]);
    EXPECT_EQ(args.bias[0], 7);
    EXPECT_EQ(args.multiplier[5], 1 << 30);
    EXPECT_EQ(args.shift[5], 1);
    EXPECT_EQ(args.output, step.view().data[5]);
    EXPECT_EQ(args.batch, 2u);
    EXPECT_EQ(args.input_h, 5u);
    EXPECT_EQ(args.input_w, 4u);
    EXPECT_EQ(args.input_c, 4u);
    EXPECT_EQ(args.output_h, 3u);
    EXPECT_EQ(args.output_w, 4u);
    EXPECT_EQ(args.output_c, 6u);
    EXPECT_EQ(args.kernel_h, 3u);
    EXPECT_EQ(args.kernel_w, 3u);
    EXPECT_EQ(args.stride_h, 2u);
    EXPECT_EQ(args.stride_w, 1u);
    EXPECT_EQ(args.pad_top, 1u);
    EXPECT_EQ(args.pad_left, 1u);
    EXPECT_EQ(args.groups, 2u);
    EXPECT_EQ(args.input_zero_point, 3);
    EXPECT_EQ(args.weights_zero_point, -2);
    EXPECT_EQ(args.pad_value, 3);
    EXPECT_EQ(args.output_zero_point, -5);
    EXPECT_EQ(args.clamp_min, -128);
    EXPECT_EQ(args.clamp_max, 127);
    EXPECT_EQ(args.input_dtype, Dtype::kU8);
    EXPECT_EQ(args.output_dtype, Dtype::kS8);
    EXPECT_EQ(args.weights_layout, kLayout_ohwi);
    testing::run_variant(kConv2dFamilyReference.variants[0], storage.bytes);
  }
}

// With one more input, that is added.
struct ResidualSpec {
  Conv2dStepSpec layer;
  std::vector<int64_t> shape;
  format::Contract contract = format::Contract_TFL2;
  int32_t left_shift = 20, input1_zero_point = 0, output_shift = -18, clamp_max = 127;
  bool is_input1 = false;
  bool is_there = true;

  ResidualSpec() : shape(layer.output_shape) {}
  void make(TestStep& step) {
    layer.edit = [this](TestStep& edited) {
      if (!is_there) return;
      size_t count = 1;
      for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
      edited.input<int8_t>(shape, std::vector<int8_t>(count, 3));
    };
    layer.make(
        step,
        [this](flatbuffers::FlatBufferBuilder& builder) {
          return format::CreateAddParams(builder, contract, left_shift, input1_zero_point, 1 << 30, 0, 0,
                                         1 << 30, 0, 0, 1 << 30, output_shift, -128, clamp_max, 0.5f, 0.5f,
                                         1.0f);
        },
        is_input1);
  }
};

TEST(Conv2dStep, FillsTheResidual) {
  ResidualSpec spec;
  spec.is_input1 = true;
  TestStep step(kKernel_conv2d);
  spec.make(step);
  ArgsStorage storage;
  Error error;
  ASSERT_EQ(step.bind(kConv2dFamily, &storage, &error), QPLAN_OK) << error.text();
  const auto& args = storage.as<Conv2dArgs>();
  EXPECT_TRUE(args.has_residual);
  EXPECT_TRUE(args.residual_is_a);
  EXPECT_EQ(args.residual, step.view().data[6]);
  EXPECT_EQ(args.residual_sum.left_shift, 20);
  EXPECT_EQ(args.residual_sum.output_shift, -18);
  EXPECT_EQ(args.residual_sum.dtype, Dtype::kS8);
}

TEST(Conv2dStep, RefusesWrongResiduals) {
  testing::expect_refusals<ResidualSpec>(
      kConv2dFamily,
      {{[](ResidualSpec& s) { s.is_there = false; }, "the step has 5 inputs, expected 6"},
       {[](ResidualSpec& s) { s.shape[1] += 1; }, "residual is not of the output's shape"},
       {[](ResidualSpec& s) { s.shape.pop_back(); }, "residual has rank 3, expected 4"},
       {[](ResidualSpec& s) { s.contract = format::Contract_TFL1; }, "only TFL2, F32E", QPLAN_KERNEL_MISSING},
       {[](ResidualSpec& s) { s.left_shift = 23; }, "left_shift 23"},
       {[](ResidualSpec& s) { s.input1_zero_point = 128; }, "input1_zero_point"},
       {[](ResidualSpec& s) { s.output_shift = 1; }, "shift 1"},
       {[](ResidualSpec& s) { s.clamp_max = 128; }, "clamp_max"},
       {[](ResidualSpec& s) { s.layer = testing::acc32_conv2d_step(); },
        "a residual is added to outputs of 8 bits, not to accumulators"}});
}

// A step whose bias is followed by rests of two weights.
struct RestsSpec {
  Conv2dStepSpec layer;
  std::vector<int32_t> rests = {5, 35, -128, 0, 0, 127};

  RestsSpec() { layer.groups = 1, layer.set_constants(kLayout_o16k4, 6, 4); }
  void make(TestStep& step) {
    layer.bias.insert(layer.bias.end(), rests.begin(), rests.end());
    layer.make(step);
  }
};

TEST(Conv2dStep, RestsOfWeightsFollowTheBias) {
  for (const bool check : {true, false}) {
    RestsSpec spec;
    TestStep step(kKernel_conv2d);
    spec.make(step);
    ArgsStorage storage;
    Error error;
    ASSERT_EQ(step.bind(kConv2dFamily, &storage, &error, check), QPLAN_OK) << error.text();
    const auto& args = storage.as<Conv2dArgs>();
    ASSERT_EQ(args.num_weight_rests, 2);
    EXPECT_EQ(weight_rest(args, 0).channel, 5u);
    EXPECT_EQ(weight_rest(args, 0).k, 35u);
    EXPECT_EQ(weight_rest(args, 0).rest, -128);
    EXPECT_EQ(weight_rest(args, 1).channel, 0u);
    EXPECT_EQ(weight_rest(args, 1).rest, 127);
    testing::run_variant(kConv2dFamilyReference.variants[0], storage.bytes);
  }
}

TEST(Conv2dStep, RefusesWrongRestsOfWeights) {
  testing::expect_refusals<RestsSpec>(
      kConv2dFamily,
      {{[](RestsSpec& s) { s.rests[0] = 6; }, "channel of a rest of a weight 6 is not in 0 .. 5"},
       {[](RestsSpec& s) { s.rests[3] = -1; }, "channel of a rest of a weight"},
       {[](RestsSpec& s) { s.rests[1] = 36; }, "place of a rest of a weight 36 is not in 0 .. 35"},
       {[](RestsSpec& s) { s.rests[4] = -1; }, "place of a rest of a weight"},
       {[](RestsSpec& s) { s.rests[2] = -129; }, "rest of a weight -129 is not in -128 .. 127"},
       {[](RestsSpec& s) { s.rests[5] = 128; }, "rest of a weight 128 is not in -128 .. 127"},
       {[](RestsSpec& s) { s.rests.pop_back(); }, "bias has 84 bytes, expected 19 elements of 4"},
       {[](RestsSpec& s) { s.rests.resize(3 * (kMaxWeightRests + 1)); }, "bias has 124 bytes, expected 28"},
       {[](RestsSpec& s) { s.layer.set_constants(kLayout_ohwi, 6, 4); }, "bias has 48 bytes, expected 6"}});
}

// Another step computes the bias: it is in the arena.
struct ComputedBiasSpec : Conv2dStepSpec {
  std::function<void(TestStep&)> change = [](TestStep&) {};

  ComputedBiasSpec() {
    edit = [this](TestStep& step) {
      step.tensor(kBias).bank = TestStep::kArenaBank;
      change(step);
    };
  }
  ComputedBiasSpec(const ComputedBiasSpec&) = delete;
};

TEST(Conv2dStep, TakesABiasThatAnotherStepComputes) {
  for (const bool check : {true, false}) {
    ComputedBiasSpec spec;
    TestStep step(kKernel_conv2d);
    spec.make(step);
    ArgsStorage storage;
    Error error;
    ASSERT_EQ(step.bind(kConv2dFamily, &storage, &error, check), QPLAN_OK) << error.text();
    EXPECT_EQ(storage.as<Conv2dArgs>().bias, step.view().data[Conv2dStepSpec::kBias]);
    EXPECT_EQ(storage.as<Conv2dArgs>().num_weight_rests, 0);
    testing::run_variant(kConv2dFamilyReference.variants[0], storage.bytes);
  }
}

TEST(Conv2dStep, RefusesAWrongComputedBias) {
  using Spec = ComputedBiasSpec;
  const auto bias = [](std::function<void(TestStep::TensorSpec&)> change) {
    return [change](Spec& s) { s.change = [change](TestStep& step) { change(step.tensor(Spec::kBias)); }; };
  };
  testing::expect_refusals<Spec>(
      kConv2dFamily,
      {{bias([](TestStep::TensorSpec& t) { t.type_code = 2; }), "bias has float32"},
       {bias([](TestStep::TensorSpec& t) { t.shape = {1, 6}; }), "bias has rank 2, expected 1"},
       {bias([](TestStep::TensorSpec& t) { t.offset += 2; }), "is not aligned to 4"},
       {[](Spec& s) { s.bias.push_back(0); }, "bias has 7 elements, expected 6"},
       {[](Spec& s) { s.bias.pop_back(); }, "bias has 5 elements, expected 6"},
       {[](Spec& s) { s.multiplier[1] = -1; }, "multiplier -1 of channel 1"},
       {[](Spec& s) { s.shift.pop_back(); }, "shift has"},
       {[](Spec& s) { s.weights.pop_back(); }, "weights has"},
       {[](Spec& s) { s.float_epilogue = format::FloatEpilogue_PLAIN; }, "float_scale has 0 entries"},
       // What rests of weights would be is too much here.
       {[](Spec& s) {
          s.groups = 1, s.set_constants(kLayout_o16k4, 6, 4);
          s.bias.resize(19);
        },
        "bias has 19 elements, expected 16"},
       {[](Spec& s) {
          s.contract = format::Contract_ACC32;
          s.multiplier.clear();
          s.output_zero_point = s.clamp_min = s.clamp_max = 0;
        },
        "bias is not a constant"}});
}

TEST(Conv2dStep, NeedsNoAddressesOfActivations) {
  Conv2dStepSpec spec;
  TestStep step(kKernel_conv2d);
  spec.make(step);
  std::vector<void*> data(step.view().data, step.view().data + step.num_tensors());
  data[0] = data[5] = nullptr;
  StepView view = step.view();
  view.data = data.data();
  ArgsStorage storage;
  Error error;
  ASSERT_EQ(kConv2dFamily.bind(view, true, storage.bytes, &error), QPLAN_OK) << error.text();
  EXPECT_GE(kConv2dFamilyReference.variants[0].work_items(storage.bytes), 1u);
}

TEST(Conv2dStep, TakesEveryLayoutAndAnyWindow) {
  const std::vector<std::function<void(Conv2dStepSpec&)>> changes = {
      [](Conv2dStepSpec& s) { s.set_constants(kLayout_o16k4, 6, 2); },
      [](Conv2dStepSpec& s) { s.groups = 1, s.set_constants(kLayout_o16k4, 6, 4); },
      [](Conv2dStepSpec& s) { s.set_constants(kLayout_o16r4, 6, 2); },
      [](Conv2dStepSpec& s) { s.set_constants(kLayout_o16i4, 6, 2); },
      [](Conv2dStepSpec& s) { s.set_constants(kLayout_o16z4, 6, 2); },
      [](Conv2dStepSpec& s) { s.pad_top = s.pad_left = 100; },  // windows beside the input
      [](Conv2dStepSpec& s) { s.stride_h = 1000, s.dilation_w = 1000; },
      [](Conv2dStepSpec& s) { s.pad_top = INT32_MAX, s.stride_h = INT32_MAX / 2 - 1; },
      [](Conv2dStepSpec& s) { s.multiplier[0] = 0, s.shift[0] = -31, s.shift[1] = 30; },
      [](Conv2dStepSpec& s) { s.clamp_min = s.clamp_max = 127; },
  };
  for (const auto& change : changes) {
    Conv2dStepSpec spec;
    change(spec);
    TestStep step(kKernel_conv2d);
    spec.make(step);
    ArgsStorage storage;
    Error error;
    EXPECT_EQ(step.bind(kConv2dFamily, &storage, &error), QPLAN_OK) << error.text();
    for (uint32_t i = 0; i < kConv2dFamily.num_variants; ++i) {
      const KernelVariant& variant = kConv2dFamily.variants[i];
      if (cpu_has_isa(variant.isa) && variant.accepts(storage.bytes))
        testing::run_variant(variant, storage.bytes);
    }
  }
}

TEST(Conv2dStep, UnderF32eOneScaleIsMeant) {
  Conv2dStepSpec spec = testing::f32e_conv2d_step();
  spec.scale = {0.0f, 1.0f, FLT_MAX, FLT_TRUE_MIN, 0.5f, 0.25f};
  TestStep step(kKernel_conv2d);
  spec.make(step);
  for (const bool check : {true, false}) {
    ArgsStorage storage;
    Error error;
    ASSERT_EQ(step.bind(kConv2dFamily, &storage, &error, check), QPLAN_OK) << error.text();
    const auto& args = storage.as<Conv2dArgs>();
    EXPECT_EQ(args.contract, Contract::kF32e);
    EXPECT_EQ(args.scale[5], 0.25f);
    EXPECT_EQ(args.multiplier, nullptr);
    EXPECT_EQ(args.shift, nullptr);
    testing::run_variant(kConv2dFamilyReference.variants[0], storage.bytes);
  }
}

TEST(Conv2dStep, UnderAcc32TheSumsAreTheOutput) {
  Conv2dStepSpec spec = testing::acc32_conv2d_step();
  spec.input_zero_point = spec.pad_value = 0;
  spec.weights_zero_point = 0;
  TestStep step(kKernel_conv2d);
  spec.make(step);
  for (const bool check : {true, false}) {
    ArgsStorage storage;
    Error error;
    ASSERT_EQ(step.bind(kConv2dFamily, &storage, &error, check), QPLAN_OK) << error.text();
    const auto& args = storage.as<Conv2dArgs>();
    EXPECT_EQ(args.contract, Contract::kAcc32);
    EXPECT_EQ(args.output_dtype, Dtype::kS32);
    EXPECT_EQ(args.multiplier, nullptr);
    EXPECT_EQ(args.shift, nullptr);
    EXPECT_EQ(args.scale, nullptr);
    testing::run_variant(kConv2dFamilyReference.variants[0], storage.bytes);
    // The first window begins above and left of the input, whose bytes are i * 37: pixels (0, 0), (0, 1), (1,
    // 0), (1, 1) of channels 0 and 1, all weights 1, bias 7.
    int32_t sum = 7;
    for (const int i : {0, 1, 4, 5, 16, 17, 20, 21}) sum += i * 37 % 256;
    EXPECT_EQ(step.output_data<int32_t>()[0], sum);
  }
}

TEST(Conv2dStep, AFloatEpilogueIsHandedOn) {
  Conv2dStepSpec spec;
  spec.float_epilogue = format::FloatEpilogue_SIGNED;
  spec.float_scale = {1, 2, 3, 4, 5, 6};
  spec.float_offset = {7, 8, 9, 10, 11, 12};
  TestStep step(kKernel_conv2d);
  spec.make(step);
  for (const bool check : {true, false}) {
    ArgsStorage storage;
    Error error;
    ASSERT_EQ(step.bind(kConv2dFamily, &storage, &error, check), QPLAN_OK) << error.text();
    const auto& args = storage.as<Conv2dArgs>();
    EXPECT_EQ(args.float_epilogue, FloatEpilogue::kSigned);
    EXPECT_EQ(args.float_scale[5], 6.0f);
    EXPECT_EQ(args.float_offset[0], 7.0f);
  }
}

TEST(Conv2dStep, AFloatEpilogueOfAnotherKindIsPassedOver) {
  Conv2dStepSpec spec;
  spec.float_epilogue = static_cast<format::FloatEpilogue>(3);
  TestStep step(kKernel_conv2d);
  spec.make(step);
  ArgsStorage storage;
  Error error;
  ASSERT_EQ(step.bind(kConv2dFamily, &storage, &error), QPLAN_OK) << error.text();
  EXPECT_EQ(storage.as<Conv2dArgs>().float_epilogue, FloatEpilogue::kNone);
  EXPECT_EQ(storage.as<Conv2dArgs>().float_scale, nullptr);
}

// Whatever a hostile plan says there, kernels come back, and stay in their memories (ASan looks on).
TEST(Conv2dStep, FloatEpiloguesMayHoldAnything) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), inf, -inf, FLT_MAX, FLT_TRUE_MIN}) {
    for (const auto form : {format::FloatEpilogue_PLAIN, format::FloatEpilogue_SIGNED}) {
      Conv2dStepSpec spec;
      spec.groups = 1;
      spec.input_zero_point = 0;
      spec.set_constants(kLayout_o16k4, 6, 4);
      spec.float_epilogue = form;
      spec.float_scale = std::vector<float>(16, value);
      spec.float_scale[0] = 1.0f;
      spec.float_offset = std::vector<float>(16, value);
      TestStep step(kKernel_conv2d);
      spec.make(step);
      ArgsStorage storage;
      Error error;
      ASSERT_EQ(step.bind(kConv2dFamily, &storage, &error), QPLAN_OK) << error.text();
      for (uint32_t i = 0; i < kConv2dFamily.num_variants; ++i) {
        const KernelVariant& variant = kConv2dFamily.variants[i];
        if (!cpu_has_isa(variant.isa)) continue;
        ASSERT_TRUE(variant.accepts(storage.bytes)) << variant.name;
        testing::run_variant(variant, storage.bytes);
      }
      EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    }
  }
}

TEST(Conv2dStep, RefusesAFloatEpilogueOfAnotherSize) {
  const auto form = [](std::vector<float> scale, std::vector<float> offset) {
    return [=](Conv2dStepSpec& s) {
      s.float_epilogue = format::FloatEpilogue_PLAIN, s.float_scale = scale, s.float_offset = offset;
    };
  };
  testing::expect_refusals<Conv2dStepSpec>(
      kConv2dFamily, {{form({}, {}), "float_scale has 0 entries, expected 6"},
                      {form({1, 2, 3, 4, 5}, {1, 2, 3, 4, 5, 6}), "float_scale has 5 entries, expected 6"},
                      {form({1, 2, 3, 4, 5, 6}, {1}), "float_offset has 1 entries, expected 6"}});
}

TEST(Conv2dStep, RefusesWhatItCannotProve) {
  testing::expect_refusals(kConv2dFamily, testing::common_conv2d_refusals());
  testing::expect_refusals(kConv2dFamily, testing::f32e_conv2d_refusals());
  testing::expect_refusals(kConv2dFamily, testing::acc32_conv2d_refusals());
  testing::expect_refusals<Conv2dStepSpec>(
      kConv2dFamily,
      {
          {[](Conv2dStepSpec& s) { s.groups = 3; }, "input channels 4 are not divisible by groups 3"},
          {[](Conv2dStepSpec& s) { s.groups = 4; }, "output channels 6 are not divisible by groups 4"},
          {[](Conv2dStepSpec& s) { s.groups = UINT32_MAX; },
           "input channels 4 are not divisible by groups 4294967295"},
          {[](Conv2dStepSpec& s) { s.groups = 1; }, "weights has 108 bytes, expected 216"},
          {[](Conv2dStepSpec& s) { s.layout = kLayout_hwo16; },
           "no variant reads weight layout 2 (hwo16), only ohwi, o16k4, o16r4, o16i4, o16z4, o16r8, o16i8, "
           "o16z8, o2r4, o2h4 and o4k16",
           QPLAN_KERNEL_MISSING},
          {[](Conv2dStepSpec& s) { s.layout = kLayout_o16k4; }, "weights has 108 bytes, expected 320"},
      });
}

// Windows of 3 x 3 pixels of 2 channels, 6 outputs. Kernels multiply the bytes after taps by bytes outside
// the window.
TEST(Conv2dStep, RefusesWeightsBehindTaps) {
  const auto byte = [](uint16_t layout, size_t at, int8_t value) {
    return [=](Conv2dStepSpec& s) {
      s.set_constants(layout, 6, 2);
      s.weights[at] = value;
    };
  };
  testing::expect_refusals<Conv2dStepSpec>(
      kConv2dFamily,
      {
          // Rows of 6 bytes in 2 groups of four: bytes 2 and 3 of the second group of each row.
          {byte(kLayout_o16r4, 66, 7), "weights in o16r4 have 7 at byte 66, after a tap, expected 0"},
          {byte(kLayout_o16r4, 383, -128), "weights in o16r4 have -128 at byte 383, after a tap, expected 0"},
          // Pixels of 2 bytes in one group.
          {byte(kLayout_o16i4, 2, 1), "weights in o16i4 have 1 at byte 2, after a tap, expected 0"},
          {byte(kLayout_o16i4, 9 * 64 - 1, 1),
           "weights in o16i4 have 1 at byte 575, after a tap, expected 0"},
          // 18 bytes in 5 groups.
          {byte(kLayout_o16z4, 4 * 64 + 2, -1),
           "weights in o16z4 have -1 at byte 258, after a tap, expected 0"},
      });
}

TEST(Conv2dStep, TakesAnyWeightsOfOutputsThatThereAreNot) {
  for (const uint16_t layout : {kLayout_o16k4, kLayout_o16r4, kLayout_o16i4, kLayout_o16z4}) {
    Conv2dStepSpec spec;
    spec.set_constants(layout, 6, 2);
    spec.weights[6 * 4] = 99;
    if (layout == kLayout_o16k4) spec.weights.back() = 99;  // the rest of that layout, too
    TestStep step(kKernel_conv2d);
    spec.make(step);
    ArgsStorage storage;
    Error error;
    EXPECT_EQ(step.bind(kConv2dFamily, &storage, &error), QPLAN_OK) << error.text();
  }
}

TEST(Conv2dStep, NeverSharesABuffer) {
  Conv2dStepSpec spec;
  TestStep step(kKernel_conv2d);
  spec.make(step);
  EXPECT_FALSE(kConv2dFamily.in_place(step.view(), 0, 0));
}

// Whether each window of a layer without padding before its input begins at the byte of its own pixel of the
// output or later.
bool begins_behind_output(const std::vector<int64_t>& from, const std::vector<int64_t>& to, int64_t stride_h,
                          int64_t stride_w) {
  for (int64_t n = 0; n < to[0]; ++n) {
    for (int64_t y = 0; y < to[1]; ++y) {
      for (int64_t x = 0; x < to[2]; ++x) {
        if (y * stride_h >= from[1] || x * stride_w >= from[2]) continue;  // it reads nothing
        const int64_t read = ((n * from[1] + y * stride_h) * from[2] + x * stride_w) * from[3];
        if (read < ((n * to[1] + y) * to[2] + x) * to[3]) return false;
      }
    }
  }
  return true;
}

bool is_part_of_input(Conv2dStepSpec spec) {
  TestStep step(kKernel_conv2d);
  spec.make(step);
  uint64_t offset = 99;
  const bool is_part = kConv2dFamily.part(step.view(), 0, 0, &offset);
  EXPECT_TRUE(!is_part || offset == 0);
  EXPECT_FALSE(kConv2dFamily.part(step.view(), 0, Conv2dStepSpec::kWeights, &offset));
  return is_part;
}

Conv2dStepSpec strided_spec() {
  Conv2dStepSpec spec;
  spec.input_shape = {1, 8, 8, 4};
  spec.output_shape = {1, 4, 4, 8};
  spec.stride_h = spec.stride_w = 2;
  spec.pad_top = spec.pad_left = 0;
  spec.groups = 1;
  spec.set_constants(kLayout_o2h4, 8, 4);
  return spec;
}

TEST(Conv2dStep, WritesOverItsInputOnlyBehindItsWindows) {
  uint32_t num_parts = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    testing::Random random(seed);
    const auto draw = [&](int64_t most) { return random.integer(1, most); };
    Conv2dStepSpec spec = strided_spec();
    spec.input_shape = {draw(2), draw(7), draw(7), draw(5)};
    spec.output_shape = {spec.input_shape[0], draw(7), draw(7), draw(9)};
    spec.stride_h = static_cast<uint32_t>(draw(3));
    spec.stride_w = static_cast<uint32_t>(draw(3));
    if (!is_part_of_input(spec)) continue;
    ++num_parts;
    EXPECT_TRUE(begins_behind_output(spec.input_shape, spec.output_shape, spec.stride_h, spec.stride_w))
        << seed;
  }
  EXPECT_GT(num_parts, 300u);
}

TEST(Conv2dStep, WritesOverNoInputOfOtherLayers) {
  EXPECT_TRUE(is_part_of_input(strided_spec()));
  const std::vector<void (*)(Conv2dStepSpec&)> changes = {
      [](Conv2dStepSpec& s) { s.pad_top = 1; },
      [](Conv2dStepSpec& s) { s.pad_left = 1; },
      [](Conv2dStepSpec& s) { s.groups = 2; },
      [](Conv2dStepSpec& s) {
        s.stride_h = 1, s.output_shape = {1, 4, 7, 8};
      },
      [](Conv2dStepSpec& s) { s.stride_w = 1; },
      [](Conv2dStepSpec& s) { s.output_shape[3] = 9; },
      [](Conv2dStepSpec& s) {
        s.output_shape = {1, 8, 4, 8};
      },  // as large as the input
      [](Conv2dStepSpec& s) {
        s.output_shape = {1, 40, 4, 8};
      },  // larger: windows after the input
      [](Conv2dStepSpec& s) { s.layout = kLayout_ohwi; },
      [](Conv2dStepSpec& s) { s.layout = kLayout_o16r4; },
      [](Conv2dStepSpec& s) { s.contract = format::Contract_ACC32; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    Conv2dStepSpec spec = strided_spec();
    changes[i](spec);
    EXPECT_FALSE(is_part_of_input(spec)) << i;
  }
}

TEST(Conv2dStep, ReferenceFamilyHasTheReferenceOnly) {
  EXPECT_EQ(kConv2dFamilyReference.num_variants, 1u);
  EXPECT_EQ(kConv2dFamilyReference.id, kConv2dFamily.id);
  EXPECT_EQ(std::string(kConv2dFamilyReference.variants[0].name), "conv2d_ref");
  EXPECT_EQ(std::string(kConv2dFamily.variants[kConv2dFamily.num_variants - 1].name), "conv2d_ref");
}

}  // namespace
}  // namespace qplan::conv2d_step_test
