// Real layer shapes, and the Args of convolutions filled with random data.
#ifndef QPLAN_BENCHMARKS_KERNELS_LAYERS_H_
#define QPLAN_BENCHMARKS_KERNELS_LAYERS_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "kernels/conv2d/conv2d.h"
#include "kernels/layout.h"

namespace qplan::benchmarks {

struct Layer {
  const char* name;
  uint32_t size;  // input height and width
  uint32_t input_c;
  uint32_t output_c;
  uint32_t kernel;
  uint32_t stride;
};

// MobileNet V2 1.0 224 and ResNet-8.
inline constexpr Layer kConvLayers[] = {
    {"first_3x3s2", 224, 3, 32, 3, 2},   {"project_112", 112, 32, 16, 1, 1},
    {"expand_56", 56, 24, 144, 1, 1},    {"project_28", 28, 192, 32, 1, 1},
    {"expand_14", 14, 96, 576, 1, 1},    {"project_7", 7, 960, 160, 1, 1},
    {"head_7", 7, 320, 1280, 1, 1},      {"resnet8_3x3_16", 32, 16, 16, 3, 1},
    {"resnet8_3x3_64", 8, 64, 64, 3, 1},
};
inline constexpr Layer kDepthwiseLayers[] = {
    {"112_32_s1", 112, 32, 32, 3, 1},  {"112_96_s2", 112, 96, 96, 3, 2}, {"28_192_s1", 28, 192, 192, 3, 1},
    {"14_576_s1", 14, 576, 576, 3, 1}, {"7_960_s1", 7, 960, 960, 3, 1},
};

// The table has these under F32E too, to show what the contract costs.
inline constexpr Layer kF32eConvLayer = kConvLayers[2];
inline constexpr Layer kF32eDepthwiseLayer = kDepthwiseLayers[2];

struct Aligned {
  void operator()(void* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<uint8_t, Aligned>;
inline Buffer aligned_buffer(size_t bytes) {
  return Buffer(static_cast<uint8_t*>(std::aligned_alloc(64, (bytes + 127) / 64 * 64)));
}

// A layer with "same" padding, uint8 in and out.
struct ConvProblem {
  Conv2dArgs args;
  Buffer input, weights, bias, multiplier, shift, scale, output;
  uint64_t macs = 0;

  ConvProblem(const Layer& layer, bool depthwise, Contract contract) {
    std::mt19937 random(1);
    args.batch = 1;
    args.input_h = args.input_w = layer.size;
    args.input_c = layer.input_c;
    args.output_h = args.output_w = (layer.size + layer.stride - 1) / layer.stride;
    args.output_c = layer.output_c;
    args.kernel_h = args.kernel_w = layer.kernel;
    args.stride_h = args.stride_w = layer.stride;
    args.dilation_h = args.dilation_w = 1;
    const uint32_t covered = (args.output_h - 1) * layer.stride + layer.kernel;
    args.pad_top = args.pad_left = covered > layer.size ? (covered - layer.size) / 2 : 0;
    args.groups = depthwise ? layer.input_c : 1;
    args.pad_value = 117;
    args.output_zero_point = 3;
    args.clamp_max = 255;
    args.input_dtype = args.output_dtype = Dtype::kU8;
    args.weights_layout = depthwise ? uint16_t{kLayout_hwo16} : layout_in_place(args);
    const LayoutWindow window = {layer.kernel, layer.kernel, depthwise ? 1 : layer.input_c};
    const uint64_t k = window.h * window.w * window.channels;
    const uint64_t channels = layout_channels(args.weights_layout, layer.output_c);
    macs = k * layer.output_c * args.output_h * args.output_w;

    const auto random_bytes = [&](size_t bytes) {
      Buffer buffer = aligned_buffer(bytes);
      for (size_t i = 0; i < bytes; ++i) buffer.get()[i] = static_cast<uint8_t>(random());
      return buffer;
    };
    input = random_bytes(uint64_t{layer.size} * layer.size * layer.input_c);
    const uint64_t weight_bytes = layout_bytes(args.weights_layout, layer.output_c, window);
    weights = aligned_buffer(weight_bytes);
    std::fill_n(weights.get(), weight_bytes, uint8_t{0});
    for (uint64_t o = 0; o < layer.output_c; ++o) {
      for (uint64_t i = 0; i < k; ++i) {
        weights.get()[layout_index(args.weights_layout, o, i, layer.output_c, window)] =
            static_cast<uint8_t>(random());
      }
    }
    output = aligned_buffer(uint64_t{args.output_h} * args.output_w * layer.output_c);
    bias = aligned_buffer(channels * 4);
    multiplier = aligned_buffer(channels * 4);
    shift = aligned_buffer(channels * 4);
    scale = aligned_buffer(channels * 4);
    for (uint64_t i = 0; i < channels; ++i) {
      reinterpret_cast<int32_t*>(bias.get())[i] = static_cast<int32_t>(random() % 10000) - 5000;
      reinterpret_cast<int32_t*>(multiplier.get())[i] =
          static_cast<int32_t>(random() % (1u << 30)) + (1 << 30);
      reinterpret_cast<int32_t*>(shift.get())[i] = -9;
      reinterpret_cast<float*>(scale.get())[i] =
          0x1p-10f * (1.0f + static_cast<float>(random() % 1000) / 1000);
    }
    args.input = input.get();
    args.weights = reinterpret_cast<const int8_t*>(weights.get());
    args.bias = reinterpret_cast<const int32_t*>(bias.get());
    args.contract = contract;
    if (contract == Contract::kF32e) {
      args.scale = reinterpret_cast<const float*>(scale.get());
    } else {
      args.multiplier = reinterpret_cast<const int32_t*>(multiplier.get());
      args.shift = reinterpret_cast<const int32_t*>(shift.get());
    }
    args.output = output.get();
  }
};

}  // namespace qplan::benchmarks

#endif  // QPLAN_BENCHMARKS_KERNELS_LAYERS_H_
