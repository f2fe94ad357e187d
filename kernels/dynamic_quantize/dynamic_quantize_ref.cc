// The formulas of dynamic_quantize.h as they stand there.
#include "kernels/dynamic_quantize/dynamic_quantize.h"

namespace qplan {

namespace dynamic_quantize_ref {
Refusal accepts(const DynamicQuantizeArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const DynamicQuantizeArgs&) { return 0; }
uint32_t work_items(const DynamicQuantizeArgs& args) { return args.rows; }

void run(const DynamicQuantizeArgs& a, uint32_t begin, uint32_t end, void*) {
  const uint64_t elements = uint64_t{a.input_h} * a.input_w * a.channels;
  for (uint32_t r = begin; r < end; ++r) {
    const float* x = a.input + r * elements;
    float least = 0.0f, most = 0.0f;
    for (uint64_t i = 0; i < elements; ++i) {
      least = x[i] < least ? x[i] : least;
      most = x[i] > most ? x[i] : most;
    }
    const DynamicScale scale = dynamic_scale(least, most, a.symmetric);
    a.scale[r] = scale.scale;
    a.zero_point[r] = scale.zero_point;
    int8_t* out = a.output + uint64_t{r} * a.output_h * a.output_w * a.channels;
    for (uint32_t y = 0; y < a.output_h; ++y) {
      for (uint32_t at = 0; at < a.output_w; ++at) {
        const bool inside =
            y >= a.pad_top && y - a.pad_top < a.input_h && at >= a.pad_left && at - a.pad_left < a.input_w;
        for (uint64_t c = 0; c < a.channels; ++c)
          *out++ =
              inside ? dynamic_quantized(*x++, scale, a.symmetric) : static_cast<int8_t>(scale.zero_point);
      }
    }
  }
}

}  // namespace dynamic_quantize_ref

namespace dynamic_dequantize_ref {

Refusal accepts(const DynamicDequantizeArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const DynamicDequantizeArgs&) { return 0; }
uint32_t work_items(const DynamicDequantizeArgs& args) { return args.rows * args.pixels; }

void run(const DynamicDequantizeArgs& a, uint32_t begin, uint32_t end, void*) {
  for (uint32_t pixel = begin; pixel < end; ++pixel) {
    const uint32_t r = pixel / a.pixels;
    const uint64_t first = uint64_t{pixel} * a.channels;
    for (uint32_t o = 0; o < a.channels; ++o) {
      const uint32_t offset = static_cast<uint32_t>(a.zero_point[r]) * static_cast<uint32_t>(a.weight_sum[o]);
      const auto sum = static_cast<int32_t>(static_cast<uint32_t>(a.input[first + o]) - offset);
      const float real = static_cast<float>(sum);
      float value = 0.0f;
      if (a.in_turn) {
        const float product = real * a.weight_scale[o];
        value = product * a.scale[r];
      } else {
        const float scale = a.weight_scale[o] * a.scale[r];
        value = real * scale;
      }
      value = value + a.bias[o];
      a.output[first + o] = value < a.clamp_min ? a.clamp_min : a.clamp_max < value ? a.clamp_max : value;
    }
  }
}

}  // namespace dynamic_dequantize_ref
}  // namespace qplan
