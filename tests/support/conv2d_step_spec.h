// A valid step of conv2d or depthwise_conv2d, to be changed by tests.
#ifndef QPLAN_TESTS_SUPPORT_CONV2D_STEP_SPEC_H_
#define QPLAN_TESTS_SUPPORT_CONV2D_STEP_SPEC_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/layout.h"
#include "tests/support/refusals.h"
#include "tests/support/test_step.h"

namespace qplan::testing {

struct Conv2dStepSpec {
  // Tensors of the step, in the order they are added.
  enum : uint32_t { kInput, kWeights, kBias, kMultiplier, kShift, kOutput };

  std::vector<int64_t> input_shape = {2, 5, 4, 4};
  std::vector<int64_t> output_shape = {2, 3, 4, 6};
  std::vector<int8_t> weights = std::vector<int8_t>(6 * 3 * 3 * 2, 1);
  std::vector<int32_t> bias = std::vector<int32_t>(6, 7);
  // Empty, with no scale: the output, tensor 3, is int32.
  std::vector<int32_t> multiplier = std::vector<int32_t>(6, 1 << 30);
  std::vector<int32_t> shift = std::vector<int32_t>(6, 1);
  std::vector<float> scale;  // not empty: in the place of multiplier and shift; then the output is tensor 4
  format::KernelParams params_type = format::KernelParams_Conv2dParams;
  format::Contract contract = format::Contract_TFL2;
  uint16_t layout = kLayout_ohwi;
  uint32_t kernel_h = 3, kernel_w = 3;
  uint32_t stride_h = 2, stride_w = 1;
  uint32_t dilation_h = 1, dilation_w = 1;
  uint32_t pad_top = 1, pad_left = 1;
  uint32_t groups = 2;
  int32_t input_zero_point = 3;     // uint8
  int32_t weights_zero_point = -2;  // int8
  int32_t pad_value = 3;            // uint8
  int32_t output_zero_point = -5;   // int8
  int32_t clamp_min = -128, clamp_max = 127;
  format::FloatEpilogue float_epilogue = format::FloatEpilogue_NONE;
  std::vector<float> float_scale, float_offset;  // not empty: written
  // Last changes to tensors and operand lists.
  std::function<void(TestStep&)> edit = [](TestStep&) {};

  // Weights and constants for `channels` outputs of windows of `num_c` channels in a layout, which pads with
  // zeros.
  void set_constants(uint16_t new_layout, uint64_t channels, uint64_t num_c) {
    layout = new_layout;
    const LayoutWindow window = {kernel_h, kernel_w, num_c};
    weights.assign(layout_bytes(layout, channels, window), 0);
    for (uint64_t o = 0; o < channels; ++o) {
      for (uint64_t k = 0; k < kernel_h * kernel_w * num_c; ++k) {
        weights[layout_index(layout, o, k, channels, window)] = 1;
      }
    }
    bias.assign(layout_channels(layout, channels), 7);
    multiplier.assign(layout_channels(layout, channels), 1 << 30);
    shift.assign(layout_channels(layout, channels), 1);
  }

  // residual: writes the sum's parameters; `edit` adds the input.
  using Residual = std::function<flatbuffers::Offset<format::AddParams>(flatbuffers::FlatBufferBuilder&)>;

  void make(TestStep& step, const Residual& residual = nullptr, bool residual_is_input1 = false) {
    size_t count = 1;
    for (const int64_t extent : input_shape) count *= static_cast<size_t>(extent);
    std::vector<uint8_t> input(count);
    for (size_t i = 0; i < count; ++i) input[i] = static_cast<uint8_t>(i * 37);
    step.input<uint8_t>(input_shape, input);
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
      step.output<int8_t>(output_shape);
    }
    edit(step);
    const auto vector = [&](const std::vector<float>& values) {
      return values.empty() ? flatbuffers::Offset<flatbuffers::Vector<float>>()
                            : step.builder().CreateVector(values);
    };
    const auto scales = vector(float_scale), offsets = vector(float_offset);
    const auto sum = residual ? residual(step.builder()) : flatbuffers::Offset<format::AddParams>();
    step.finish(params_type,
                format::CreateConv2dParams(step.builder(), contract, layout, kernel_h, kernel_w, stride_h,
                                           stride_w, dilation_h, dilation_w, pad_top, pad_left, groups,
                                           input_zero_point, weights_zero_point, pad_value, output_zero_point,
                                           clamp_min, clamp_max, float_epilogue, scales, offsets)
                    .Union(),
                sum, residual_is_input1);
  }
};

// The same under F32E.
inline Conv2dStepSpec f32e_conv2d_step() {
  Conv2dStepSpec spec;
  spec.contract = format::Contract_F32E;
  spec.scale = std::vector<float>(6, 0.5f);
  return spec;
}

// The same under ACC32.
inline Conv2dStepSpec acc32_conv2d_step() {
  Conv2dStepSpec spec;
  spec.contract = format::Contract_ACC32;
  spec.multiplier.clear();
  spec.output_zero_point = spec.clamp_min = spec.clamp_max = 0;
  return spec;
}

inline std::vector<Refusal<Conv2dStepSpec>> acc32_conv2d_refusals() {
  using Spec = Conv2dStepSpec;
  const auto change = [](std::function<void(Spec&)> apply) {
    return [apply](Spec& spec) {
      spec = acc32_conv2d_step();
      apply(spec);
    };
  };
  return {
      {change([](Spec& s) { s.multiplier.assign(6, 1); }), "the step has 5 inputs, expected 3"},
      {change([](Spec& s) { s.scale.assign(6, 1.0f); }), "the step has 4 inputs, expected 3"},
      {change([](Spec& s) { s.contract = format::Contract_TFL2; }), "the step has 3 inputs, expected 5"},
      {change([](Spec& s) {
         s.edit = [](TestStep& step) { step.tensor(3).size /= 4, step.tensor(3).type_bits = 8; };
       }),
       "output has int8"},
      {change([](Spec& s) { s.bias.pop_back(); }), "bias has"},
      {change([](Spec& s) { s.output_zero_point = -1; }),
       "output zero point under ACC32 -1 is not in 0 .. 0"},
      {change([](Spec& s) { s.clamp_min = INT32_MIN; }),
       "clamp_min under ACC32 -2147483648 is not in 0 .. 0"},
      {change([](Spec& s) { s.clamp_max = 127; }), "clamp_max under ACC32 127 is not in 0 .. 0"},
  };
}

inline std::vector<Refusal<Conv2dStepSpec>> f32e_conv2d_refusals() {
  using Spec = Conv2dStepSpec;
  constexpr uint32_t kScale = Spec::kMultiplier;
  const auto change = [](std::function<void(Spec&)> apply) {
    return [apply](Spec& spec) {
      spec = f32e_conv2d_step();
      apply(spec);
    };
  };
  const auto scale = [change](float value) { return change([value](Spec& s) { s.scale[3] = value; }); };
  return {
      {change([](Spec& s) { s.scale.clear(); }), "the step has 5 inputs, expected 4"},
      {change([](Spec& s) { s.contract = format::Contract_TFL2; }), "the step has 4 inputs, expected 5"},
      {change([](Spec& s) { s.scale.pop_back(); }), "scale has 20 bytes, expected 6 elements of 4"},
      {change([](Spec& s) { s.edit = [](TestStep& step) { step.tensor(kScale).type_code = 0; }; }),
       "scale has int32, expected float32"},
      {change(
           [](Spec& s) { s.edit = [](TestStep& step) { step.tensor(kScale).bank = TestStep::kArenaBank; }; }),
       "scale is not a constant"},
      {change([](Spec& s) { s.edit = [](TestStep& step) { step.tensor(kScale).offset = 2; }; }),
       "scale at offset 2 is not aligned to 4"},
      {scale(-1.0f), "scale of channel 3 is negative or not finite"},
      {scale(std::numeric_limits<float>::infinity()), "scale of channel 3 is negative or not finite"},
      {scale(std::numeric_limits<float>::quiet_NaN()), "scale of channel 3 is negative or not finite"},
  };
}

// Refusals that both families share, word for word.
inline std::vector<Refusal<Conv2dStepSpec>> common_conv2d_refusals() {
  using Spec = Conv2dStepSpec;
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
  const auto in_arena = [edit](uint32_t tensor) {
    return edit([=](TestStep& step) { step.tensor(tensor).bank = TestStep::kArenaBank; });
  };
  return {
      {edit([](TestStep& step) { step.inputs().pop_back(); }), "the step has 4 inputs, expected 5"},
      {edit([](TestStep& step) { step.inputs().push_back(0); }), "the step has 6 inputs, expected 5"},
      {edit([](TestStep& step) { step.inputs().clear(); }), "the step has 0 inputs, expected 5"},
      {edit([](TestStep& step) { step.outputs().clear(); }), "the step has 0 outputs, expected 1"},
      {edit([](TestStep& step) { step.outputs().push_back(5); }), "the step has 2 outputs, expected 1"},
      {[](Spec& s) { s.params_type = format::KernelParams_Pool2dParams; }, "expected Conv2dParams"},
      {[](Spec& s) { s.params_type = format::KernelParams_NONE; }, "expected Conv2dParams"},
      {[](Spec& s) { s.contract = format::Contract_POT; },
       "contract POT is not computed by this runtime, only TFL2, TFL1, F32E, ACC32", QPLAN_KERNEL_MISSING},
      {[](Spec& s) { s.contract = format::Contract_NONE; }, "contract NONE is not computed by this runtime",
       QPLAN_KERNEL_MISSING},
      {[](Spec& s) { s.contract = static_cast<format::Contract>(200); },
       "contract 200 is not computed by this runtime", QPLAN_KERNEL_MISSING},
      {[](Spec& s) { s.layout = 99; }, "no variant reads weight layout 99 (unknown)", QPLAN_KERNEL_MISSING},
      {dtype(Spec::kInput, 2, 32), "input has float32"},
      {dtype(Spec::kInput, 0, 32), "input has int32"},
      {dtype(Spec::kInput, 1, 32), "input has another dtype"},
      {dtype(Spec::kOutput, 0, 32), "output has int32"},
      {dtype(Spec::kWeights, 1, 8), "weights has uint8, expected int8"},
      {dtype(Spec::kBias, 2, 32), "bias has float32, expected int32"},
      {dtype(Spec::kMultiplier, 0, 64), "multiplier has int64, expected int32"},
      {dtype(Spec::kShift, 0, 16), "shift has int16, expected int32"},
      {in_arena(Spec::kWeights), "weights is not a constant"},
      {in_arena(Spec::kMultiplier), "multiplier is not a constant"},
      {in_arena(Spec::kShift), "shift is not a constant"},
      {edit([](TestStep& step) { step.tensor(Spec::kInput).shape.pop_back(); }),
       "input has rank 3, expected 4"},
      {edit([](TestStep& step) { step.tensor(Spec::kInput).shape.clear(); }), "input has rank 0, expected 4"},
      {edit([](TestStep& step) { step.tensor(Spec::kOutput).shape.push_back(1); }),
       "output has rank 5, expected 4"},
      {edit([](TestStep& step) { step.tensor(Spec::kInput).shape[1] = 0; }), "input extent 0 of axis 1"},
      {edit([](TestStep& step) { step.tensor(Spec::kInput).shape[0] = -2; }), "input extent -2 of axis 0"},
      {edit([](TestStep& step) { step.tensor(Spec::kOutput).shape[2] = int64_t{1} << 31; }),
       "output extent 2147483648 of axis 2"},
      {edit([](TestStep& step) {
         step.tensor(Spec::kOutput).shape = {1 << 30, 1 << 30, 1 << 30, 1 << 30};
       }),
       "output has more than"},
      {edit([](TestStep& step) { step.tensor(Spec::kInput).size -= 1; }), "input has"},
      {edit([](TestStep& step) { step.tensor(Spec::kOutput).size += 1; }), "output has"},
      {edit([](TestStep& step) { step.tensor(Spec::kBias).offset = 2; }),
       "bias at offset 2 is not aligned to 4"},
      {edit([](TestStep& step) { step.tensor(Spec::kShift).offset = 1; }),
       "shift at offset 1 is not aligned to 4"},
      {[](Spec& s) { s.input_shape[0] = 3; }, "input batch 3 is not the output's 2"},
      {[](Spec& s) { s.kernel_h = 0; }, "height: kernel 0"},
      {[](Spec& s) { s.kernel_w = 0; }, "width: kernel 0"},
      {[](Spec& s) { s.stride_h = 0; }, "height: kernel 3, stride 0"},
      {[](Spec& s) { s.stride_w = 0; }, "width: kernel 3, stride 0"},
      {[](Spec& s) { s.dilation_h = 0; }, "dilation 0"},
      {[](Spec& s) { s.dilation_w = 0; }, "dilation 0"},
      {[](Spec& s) { s.stride_h = 0x80000000u; }, "height: output 3, kernel 3, stride 2147483648"},
      {[](Spec& s) { s.dilation_w = UINT32_MAX; }, "dilation 4294967295"},
      {[](Spec& s) { s.pad_top = 0x80000000u; }, "pad 2147483648"},
      {[](Spec& s) { s.pad_left = UINT32_MAX; }, "pad 4294967295"},
      {[](Spec& s) { s.kernel_h = (1u << 31) - 8; }, "is too large"},
      {[](Spec& s) { s.kernel_h = s.kernel_w = (1u << 31) - 8; }, "is too large"},
      {[](Spec& s) { s.kernel_h = UINT32_MAX; }, "kernel 4294967295"},
      {[](Spec& s) { s.kernel_h = 4; }, "weights has"},
      {[](Spec& s) { s.kernel_w = 1; }, "weights has"},
      {[](Spec& s) { s.weights.pop_back(); }, "weights has"},
      {[](Spec& s) { s.weights.push_back(0); }, "weights has"},
      {[](Spec& s) { s.bias.pop_back(); }, "bias has"},
      {[](Spec& s) { s.multiplier.push_back(1); }, "multiplier has"},
      {[](Spec& s) { s.shift.pop_back(); }, "shift has"},
      {[](Spec& s) { s.multiplier[1] = -1; }, "multiplier -1 of channel 1 is not in 0 .. 2147483647"},
      {[](Spec& s) { s.multiplier.back() = INT32_MIN; }, "multiplier -2147483648 of channel"},
      {[](Spec& s) { s.shift[2] = -32; }, "shift -32 of channel 2 is not in -31 .. 30"},
      {[](Spec& s) { s.shift.back() = 31; }, "shift 31 of channel"},
      {[](Spec& s) { s.input_zero_point = -1; }, "input zero point -1 is outside uint8"},
      {[](Spec& s) { s.input_zero_point = 256; }, "input zero point 256 is outside uint8"},
      {[](Spec& s) { s.pad_value = 256; }, "pad value 256 is outside uint8"},
      {[](Spec& s) { s.pad_value = INT32_MIN; }, "pad value -2147483648 is outside uint8"},
      {[](Spec& s) { s.weights_zero_point = 128; }, "weights zero point 128 is outside int8"},
      {[](Spec& s) { s.weights_zero_point = -129; }, "weights zero point -129 is outside int8"},
      {[](Spec& s) { s.output_zero_point = 128; }, "output zero point 128 is outside int8"},
      {[](Spec& s) { s.clamp_min = -129; }, "clamp_min -129 is outside int8"},
      {[](Spec& s) { s.clamp_max = 128; }, "clamp_max 128 is outside int8"},
      {[](Spec& s) { s.clamp_min = 5, s.clamp_max = 4; }, "clamp_min 5 is above clamp_max 4"},
      {[](Spec& s) { s.groups = 0; }, "groups 0"},
  };
}

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_SUPPORT_CONV2D_STEP_SPEC_H_
