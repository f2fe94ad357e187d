// The formulas of quantization.h as they stand there, for every dtype.
#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/requantize.h"
#include "kernels/quantization/quantization.h"

namespace qplan {
namespace quantize_ref {
namespace {

// Beyond +-2^17 every result saturates; within, float32 holds all halves exactly.
float limit(float x) {
  constexpr float kLimit = 131072.0f;
  if (x != x) return 0.0f;
  return x < -kLimit ? -kLimit : x > kLimit ? kLimit : x;
}

int32_t round_half_away(float x) {
  const int32_t whole = static_cast<int32_t>(x);
  const float rest = x - static_cast<float>(whole);
  return rest >= 0.5f ? whole + 1 : rest <= -0.5f ? whole - 1 : whole;
}

int32_t round_half_even(float x) {
  // Adding 1.5 * 2^23 leaves no fraction bits, so that the addition itself rounds half to even.
  constexpr float kMagic = 12582912.0f;
  return static_cast<int32_t>((x + kMagic) - kMagic);
}

// `step`: between elements of the output.
template <typename T, QuantizeRounding kRule>
void run_typed(const QuantizeArgs& args, const float* from, T* to, uint64_t step, uint64_t elements) {
  const float inverse = 1.0f / args.scale;
  for (uint64_t i = 0; i < elements; ++i) {
    const float real = limit(kRule == QuantizeRounding::kMulEven ? from[i] * inverse : from[i] / args.scale);
    const int32_t rounded =
        kRule == QuantizeRounding::kDivAway ? round_half_away(real) : round_half_even(real);
    *to = static_cast<T>(clamp_s32(rounded + args.zero_point, dtype_min(args.dtype), dtype_max(args.dtype)));
    to += step;
  }
}

template <typename T>
void run_rule(const QuantizeArgs& args, const float* from, T* to, uint64_t step, uint64_t elements) {
  switch (args.rule) {
    case QuantizeRounding::kDivAway:
      return run_typed<T, QuantizeRounding::kDivAway>(args, from, to, step, elements);
    case QuantizeRounding::kDivEven:
      return run_typed<T, QuantizeRounding::kDivEven>(args, from, to, step, elements);
    case QuantizeRounding::kMulEven:
      return run_typed<T, QuantizeRounding::kMulEven>(args, from, to, step, elements);
  }
}

// Pixels of all images, which have all channels. One channel: the elements.
template <typename T>
void run_pixels(const QuantizeArgs& args, ElementRange range) {
  T* to = static_cast<T*>(args.output) + range.begin * args.channels;
  const uint64_t pixels = args.channels == 1 ? args.elements : args.pixels();
  for (uint64_t at = range.begin; at < range.end;) {
    const uint64_t image = at / pixels, first = at % pixels;
    const uint64_t rest = range.end - at, count = pixels - first < rest ? pixels - first : rest;
    const float* from = args.input + image * args.channels * args.plane_stride + first;
    for (uint32_t c = 0; c < args.channels; ++c) {
      run_rule<T>(args, from + c * args.plane_stride, to + c, args.channels, count);
    }
    to += count * args.channels;
    at += count;
  }
}

}  // namespace

Refusal accepts(const QuantizeArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const QuantizeArgs&) { return 0; }
uint32_t work_items(const QuantizeArgs& args) { return num_chunks(args.elements / args.channels); }

void run(const QuantizeArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.elements / args.channels, begin, end);
  if (args.dtype == Dtype::kU8) {
    run_pixels<uint8_t>(args, range);
  } else if (args.dtype == Dtype::kS16) {
    run_pixels<int16_t>(args, range);
  } else {
    run_pixels<int8_t>(args, range);
  }
}

}  // namespace quantize_ref

namespace dequantize_ref {
namespace {

// step: between elements of the input.
template <typename T>
void run_typed(const DequantizeArgs& args, const T* from, uint64_t step, float* to, uint64_t elements) {
  for (uint64_t i = 0; i < elements; ++i)
    to[i] = args.scale * static_cast<float>(from[i * step] - args.zero_point);
}

// Pixels of all images, which have all channels. One channel: the elements.
template <typename T>
void run_pixels(const DequantizeArgs& args, ElementRange range) {
  const T* input = static_cast<const T*>(args.input);
  if (args.channels == 1)
    return run_typed<T>(args, input + range.begin, 1, args.output + range.begin, range.end - range.begin);
  for (uint64_t at = range.begin; at < range.end;) {
    const uint64_t image = at / args.pixels, first = at % args.pixels;
    const uint64_t rest = range.end - at, count = args.pixels - first < rest ? args.pixels - first : rest;
    float* to = args.output + image * args.channels * args.pixels + first;
    for (uint32_t c = 0; c < args.channels; ++c)
      run_typed<T>(args, input + at * args.channels + c, args.channels, to + c * args.pixels, count);
    at += count;
  }
}

}  // namespace

Refusal accepts(const DequantizeArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const DequantizeArgs&) { return 0; }
uint32_t work_items(const DequantizeArgs& args) { return num_chunks(args.elements / args.channels); }

void run(const DequantizeArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.elements / args.channels, begin, end);
  if (args.dtype == Dtype::kU8) {
    run_pixels<uint8_t>(args, range);
  } else if (args.dtype == Dtype::kS16) {
    run_pixels<int16_t>(args, range);
  } else {
    run_pixels<int8_t>(args, range);
  }
}

}  // namespace dequantize_ref

namespace requantize_ref {
namespace {

int32_t requantize_one(const RequantizeArgs& a, int32_t x, uint32_t c) {
  if (a.contract == Contract::kF32e) {
    const float scale = a.scales != nullptr ? a.scales[c] : a.scale;
    return requantize_f32e(x, scale, a.output_zero_point, a.clamp_min, a.clamp_max);
  }
  const int32_t multiplier = a.multipliers != nullptr ? a.multipliers[c] : a.multiplier;
  const int32_t shift = a.shifts != nullptr ? a.shifts[c] : a.shift;
  const int32_t scaled = a.contract == Contract::kTfl1 ? requantize_tfl1(x, multiplier, shift)
                                                       : requantize_tfl2(x, multiplier, shift);
  return add_clamp(scaled, a.output_zero_point, a.clamp_min, a.clamp_max);
}

template <typename In, typename Out>
void run_chunks(const RequantizeArgs& a, uint32_t begin, uint32_t end) {
  const In* in = static_cast<const In*>(a.input);
  Out* out = static_cast<Out*>(a.output);
  const uint64_t first = uint64_t{begin} * kRequantizeChunk;
  const uint64_t stop = uint64_t{end} * kRequantizeChunk;
  const uint64_t last = stop < a.count ? stop : a.count;
  for (uint64_t i = first; i < last; ++i) {
    const auto c = static_cast<uint32_t>(i / a.inner % a.channels);
    out[i] = static_cast<Out>(requantize_one(a, wrap_sub(in[i], a.input_zero_point), c));
  }
}

template <typename In>
void run_output(const RequantizeArgs& a, uint32_t begin, uint32_t end) {
  if (a.output_dtype == Dtype::kS8) {
    run_chunks<In, int8_t>(a, begin, end);
  } else if (a.output_dtype == Dtype::kS16) {
    run_chunks<In, int16_t>(a, begin, end);
  } else if (a.output_dtype == Dtype::kS32) {
    run_chunks<In, int32_t>(a, begin, end);
  } else {
    run_chunks<In, uint8_t>(a, begin, end);
  }
}

}  // namespace

Refusal accepts(const RequantizeArgs&) { return Refusal::kNone; }

size_t scratch_bytes(const RequantizeArgs&) { return 0; }

uint32_t work_items(const RequantizeArgs& args) {
  return static_cast<uint32_t>((args.count + kRequantizeChunk - 1) / kRequantizeChunk);
}

void run(const RequantizeArgs& args, uint32_t begin, uint32_t end, void*) {
  if (args.input_dtype == Dtype::kS32) {
    run_output<int32_t>(args, begin, end);
  } else if (args.input_dtype == Dtype::kS8) {
    run_output<int8_t>(args, begin, end);
  } else if (args.input_dtype == Dtype::kS16) {
    run_output<int16_t>(args, begin, end);
  } else {
    run_output<uint8_t>(args, begin, end);
  }
}

}  // namespace requantize_ref

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
