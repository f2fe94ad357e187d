// Adds steps to a plan that is made by hand: layers with random weights in any layout, parameters of the
// families that several steps share, and constants.
#ifndef QPLAN_TESTS_FUZZ_STEPS_PLAN_H_
#define QPLAN_TESTS_FUZZ_STEPS_PLAN_H_

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "format/plan_generated.h"
#include "kernels/layout.h"
#include "tests/support/plan_builder.h"
#include "tests/support/random.h"

namespace qplan::testing {

class StepsPlan {
 protected:
  using Builder = flatbuffers::FlatBufferBuilder;
  enum Kernel : uint16_t {
#define QPLAN_KERNEL(id, name, descriptor, params, args_bytes) k_##name = id,
#include "format/kernels.def"
#undef QPLAN_KERNEL
  };
  static constexpr int32_t kMultiplier = 1 << 30;
  static constexpr uint64_t kScratchBytes = 1 << 16;
  static constexpr uint8_t kUint = 1, kFloat = 2;  // DLDataTypeCode

  uint32_t float_constant(size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(random_.unit() - 0.5);
    std::vector<uint8_t> bytes(count * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return spec_.add_constant({static_cast<int64_t>(count)}, bytes, "", kFloat, 32);
  }

  // [batch, cells] of a recurrent layer.
  uint32_t float_state(int64_t batch, size_t cells) {
    const uint32_t constant = float_constant(static_cast<size_t>(batch) * cells);
    spec_.tensors[constant].shape = {batch, static_cast<int64_t>(cells)};
    return constant;
  }

  struct Window {
    uint32_t stride, dilation, pad, groups;
    int32_t input_zero_point = -3;  // vector variants take -128
  };

  uint32_t step(uint16_t kernel, std::vector<uint32_t> inputs, std::vector<int64_t> shape,
                ParamsWriter params, uint8_t code = 0, uint8_t bits = 8) {
    const uint32_t output = spec_.add_tensor(std::move(shape), "t", code, bits);
    spec_.add_step(kernel, std::move(inputs), {output}, std::move(params), "s");
    return output;
  }

  static ParamsWriter prelu_params(int32_t zero_point) {
    return [=](Builder& b) {
      return done(format::KernelParams_PreluParams,
                  format::CreatePreluParams(b, zero_point, 0, zero_point, kMultiplier, 1, kMultiplier, -6));
    };
  }
  static ParamsWriter mean_params(uint32_t axes) {
    return [=](Builder& b) {
      return done(format::KernelParams_MeanParams,
                  format::CreateMeanParams(b, format::Contract_TFL2, axes, 6, 1, kMultiplier, -3));
    };
  }
  static ParamsWriter layer_params(uint32_t size, uint32_t stride, uint32_t pad, uint32_t groups,
                                   int32_t input_zero_point, int32_t output_zero_point,
                                   int32_t clamp_min = -128, int32_t clamp_max = 127) {
    return [=](Builder& b) {
      return done(format::KernelParams_Conv2dParams,
                  format::CreateConv2dParams(b, format::Contract_TFL2, kLayout_ohwi, size, size, stride,
                                             stride, 1, 1, pad, pad, groups, input_zero_point, 0,
                                             input_zero_point, output_zero_point, clamp_min, clamp_max));
    };
  }

  uint32_t convolution(uint16_t kernel, uint32_t input, std::vector<int64_t> shape, uint32_t group_channels,
                       uint32_t size, uint16_t layout, Window window) {
    const uint64_t channels = static_cast<uint64_t>(shape[3]);
    const std::vector<uint32_t> constants = weights(channels, {size, size, group_channels}, layout);
    return step(kernel, {input, constants[0], constants[1], constants[2], constants[3]}, std::move(shape),
                [=](Builder& b) {
                  return done(format::KernelParams_Conv2dParams,
                              format::CreateConv2dParams(
                                  b, format::Contract_TFL2, layout, size, size, window.stride, window.stride,
                                  window.dilation, window.dilation, window.pad, window.pad, window.groups,
                                  window.input_zero_point, 0, -3, 4, -128, 127));
                });
  }

  uint32_t fully_connected(uint32_t input, uint64_t num_k, int64_t outputs) {
    const std::vector<uint32_t> constants =
        weights(static_cast<uint64_t>(outputs), {1, 1, num_k}, kLayout_o16k4);
    return step(k_fully_connected, {input, constants[0], constants[1], constants[2], constants[3]},
                {1, outputs}, [](Builder& b) {
                  return done(format::KernelParams_FullyConnectedParams,
                              format::CreateFullyConnectedParams(b, format::Contract_TFL2, kLayout_o16k4, 5,
                                                                 0, -7, -128, 127));
                });
  }

  // Weights, bias, multiplier, shift. The layout is padded with zeros.
  std::vector<uint32_t> weights(uint64_t channels, const LayoutWindow& window, uint16_t layout) {
    const uint64_t bytes = layout_bytes(layout, channels, window);
    const uint64_t entries = layout_channels(layout, channels);
    std::vector<uint8_t> values(bytes, 0);
    for (uint64_t o = 0; o < channels; ++o) {
      for (uint64_t k = 0; k < window.h * window.w * window.channels; ++k) {
        values[layout_index(layout, o, k, channels, window)] = random_bytes(1)[0];
      }
    }
    return {spec_.add_constant({static_cast<int64_t>(bytes)}, values),
            int32_constant(std::vector<int32_t>(entries, 1000)),
            int32_constant(std::vector<int32_t>(entries, kMultiplier)),
            int32_constant(std::vector<int32_t>(entries, -9))};
  }

  uint32_t int32_constant(const std::vector<int32_t>& values) {
    std::vector<uint8_t> bytes(values.size() * sizeof(int32_t));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return spec_.add_constant({static_cast<int64_t>(values.size())}, bytes, "", 0, 32);
  }

  std::vector<uint8_t> random_bytes(size_t count) { return random_.integers<uint8_t>(count, 0, 255); }

  template <typename Params>
  static std::pair<format::KernelParams, flatbuffers::Offset<void>> done(format::KernelParams type,
                                                                         flatbuffers::Offset<Params> params) {
    return {type, params.Union()};
  }
  static ParamsWriter quantize_params(format::QuantizeRule rule) {
    return [=](Builder& b) {
      return done(format::KernelParams_QuantizeParams, format::CreateQuantizeParams(b, rule, 0.02f, 3));
    };
  }
  static ParamsWriter pool_params() {
    return [](Builder& b) {
      return done(format::KernelParams_Pool2dParams,
                  format::CreatePool2dParams(b, format::Contract_TFL2, 3, 3, 2, 2, 1, 1, -128, 127));
    };
  }
  static ParamsWriter add_params() {
    return [](Builder& b) {
      return done(format::KernelParams_AddParams,
                  format::CreateAddParams(b, format::Contract_TFL2, 20, -3, kMultiplier, 0, 9, kMultiplier,
                                          -1, 4, kMultiplier, -18, -128, 127));
    };
  }
  static ParamsWriter resize_params(format::ResizeRule rule, bool align_corners, bool half_pixel_centers) {
    return [=](Builder& b) {
      return done(format::KernelParams_ResizeBilinearParams,
                  format::CreateResizeBilinearParams(b, rule, align_corners, half_pixel_centers));
    };
  }

  PlanSpec spec_;
  Random random_{1};
};

}  // namespace qplan::testing

#endif  // QPLAN_TESTS_FUZZ_STEPS_PLAN_H_
