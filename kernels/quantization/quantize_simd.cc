// From float32 to 8 bits by vectors: quantize, and dynamic_quantize with dynamic_dequantize, its way back.
#include "kernels/elementwise/broadcast.h"
#include "kernels/quantization/quantization.h"
#include "kernels/simd/float_functions.h"
#include "kernels/simd/float_rows.h"
#include "kernels/simd/simd.h"

namespace qplan {

// quantize by vectors; channels come together by the vocabulary's PixelMover.
namespace {

constexpr uint64_t kQuantizeItemPixels = 1024;
// Pixels that are quantised before they are brought together: a plane's are a cache line of the outputs.
constexpr uint32_t kQuantizeBlockPixels = 64;

inline uint64_t quantize_image_items(const QuantizeArgs& args) {
  return (args.pixels() + kQuantizeItemPixels - 1) / kQuantizeItemPixels;
}
inline uint64_t quantize_images(const QuantizeArgs& args) {
  return args.elements / args.channels / args.pixels();
}

template <QuantizeRounding kRule>
struct Quantizer {
  const VecF32 factor;
  const Output output;

  explicit Quantizer(const QuantizeArgs& args)
      : factor(set_reals(kRule == QuantizeRounding::kMulEven ? 1.0f / args.scale : args.scale)),
        output(set_output(args.zero_point, dtype_min(args.dtype), dtype_max(args.dtype))) {}

  inline void run(const float* from, uint8_t* to, uint64_t elements) const {
    uint64_t i = 0;
    for (; i + kLanes <= elements; i += kLanes) quantize(from + i, to + i, kLanes);
    if (i < elements) quantize(from + i, to + i, static_cast<uint32_t>(elements - i));
  }

  inline void quantize(const float* from, uint8_t* to, uint32_t count) const {
    // Beyond them every result saturates.
    const VecF32 low = set_reals(-1024.0f), high = set_reals(1024.0f);
    const VecF32 x = load_reals(from, count);
    const VecF32 real = zero_nans(kRule == QuantizeRounding::kMulEven ? mul(x, factor) : div(x, factor));
    const VecF32 limited = min(max(real, low), high);
    const VecI32 whole = kRule == QuantizeRounding::kDivAway ? round_away(limited) : round(limited);
    store_bytes(to, finish(whole, output), count);
  }
};

// Pixels of 2 to 4 channels from the planes of an image.
template <QuantizeRounding kRule, int kChannels>
inline void gather_pixels(const QuantizeArgs& args, const float* from, uint8_t* to, uint64_t pixels) {
  const Quantizer<kRule> quantizer(args);
  const PixelMover<kChannels, true> mover;
  uint8_t planes[kChannels * kQuantizeBlockPixels];
  for (uint64_t p = 0; p < pixels; p += kQuantizeBlockPixels) {
    const uint64_t left = pixels - p;
    const uint32_t count = left < kQuantizeBlockPixels ? static_cast<uint32_t>(left) : kQuantizeBlockPixels;
    for (uint32_t c = 0; c < kChannels; ++c) {
      quantizer.run(from + c * args.plane_stride + p, planes + c * kQuantizeBlockPixels, count);
    }
    uint32_t moved = 0;
    for (; moved + mover.kPixels <= count; moved += mover.kPixels) {
      mover.move(planes + moved, to + (p + moved) * kChannels, kQuantizeBlockPixels);
    }
    for (; moved < count; ++moved) {
      for (uint32_t c = 0; c < kChannels; ++c) {
        to[(p + moved) * kChannels + c] = planes[c * kQuantizeBlockPixels + moved];
      }
    }
  }
}

// The same of any number of channels, channel by channel.
template <QuantizeRounding kRule>
inline void scatter_planes(const QuantizeArgs& args, const float* from, uint8_t* to, uint64_t pixels) {
  const Quantizer<kRule> quantizer(args);
  uint8_t plane[kQuantizeBlockPixels];
  for (uint64_t p = 0; p < pixels; p += kQuantizeBlockPixels) {
    const uint64_t left = pixels - p;
    const uint32_t count = left < kQuantizeBlockPixels ? static_cast<uint32_t>(left) : kQuantizeBlockPixels;
    for (uint32_t c = 0; c < args.channels; ++c) {
      quantizer.run(from + c * args.plane_stride + p, plane, count);
      for (uint32_t i = 0; i < count; ++i) to[(p + i) * args.channels + c] = plane[i];
    }
  }
}

template <QuantizeRounding kRule>
inline void quantize_planes(const QuantizeArgs& args, uint32_t begin, uint32_t end) {
  const uint64_t of_image = quantize_image_items(args), pixels = args.pixels();
  for (uint32_t item = begin; item < end; ++item) {
    const uint64_t image = item / of_image, first = item % of_image * kQuantizeItemPixels;
    const uint64_t count = pixels - first < kQuantizeItemPixels ? pixels - first : kQuantizeItemPixels;
    const float* from = args.input + image * args.channels * args.plane_stride + first;
    uint8_t* to = static_cast<uint8_t*>(args.output) + (image * pixels + first) * args.channels;
    switch (args.channels) {
      case 2:
        gather_pixels<kRule, 2>(args, from, to, count);
        break;
      case 3:
        gather_pixels<kRule, 3>(args, from, to, count);
        break;
      case 4:
        gather_pixels<kRule, 4>(args, from, to, count);
        break;
      default:
        scatter_planes<kRule>(args, from, to, count);
    }
  }
}

template <QuantizeRounding kRule>
inline void quantize_items(const QuantizeArgs& args, uint32_t begin, uint32_t end) {
  if (args.channels > 1) return quantize_planes<kRule>(args, begin, end);
  const ElementRange range = chunk_range(args.elements, begin, end);
  Quantizer<kRule>(args).run(args.input + range.begin, static_cast<uint8_t*>(args.output) + range.begin,
                             range.end - range.begin);
}

inline void quantize_lanes(const QuantizeArgs& args, uint32_t begin, uint32_t end) {
  switch (args.rule) {
    case QuantizeRounding::kDivAway:
      return quantize_items<QuantizeRounding::kDivAway>(args, begin, end);
    case QuantizeRounding::kDivEven:
      return quantize_items<QuantizeRounding::kDivEven>(args, begin, end);
    case QuantizeRounding::kMulEven:
      return quantize_items<QuantizeRounding::kMulEven>(args, begin, end);
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(quantize) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const QuantizeArgs& args) {
  if (args.dtype == Dtype::kS16) return Refusal::kDtype;
  if (args.channels == 1) return Refusal::kNone;
  return quantize_images(args) * quantize_image_items(args) <= UINT32_MAX ? Refusal::kNone
                                                                          : Refusal::kTooLarge;
}

size_t scratch_bytes(const QuantizeArgs&) { return 0; }

uint32_t work_items(const QuantizeArgs& args) {
  if (args.channels == 1) return num_chunks(args.elements);
  return static_cast<uint32_t>(quantize_images(args) * quantize_image_items(args));
}
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const QuantizeArgs& args, uint32_t begin, uint32_t end, void*) { quantize_lanes(args, begin, end); }
#endif

}  // QPLAN_SIMD_NAMESPACE(quantize)

// dynamic_quantize and dynamic_dequantize, element by element.
namespace {

inline void fill(int8_t* out, uint64_t count, int32_t value) {
  for (uint64_t i = 0; i < count; ++i) out[i] = static_cast<int8_t>(value);
}

inline void dynamic_quantize_rows(const DynamicQuantizeArgs& a, uint32_t begin, uint32_t end) {
  const uint64_t elements = uint64_t{a.input_h} * a.input_w * a.channels;
  const uint64_t inside = a.input_w * a.channels, left = a.pad_left * a.channels;
  const uint64_t line = a.output_w * a.channels;
  for (uint32_t r = begin; r < end; ++r) {
    const float* x = a.input + r * elements;
    float least, most;
    find_ends(x, elements, &least, &most);
    const DynamicScale scale = dynamic_scale(least, most, a.symmetric);
    a.scale[r] = scale.scale;
    a.zero_point[r] = scale.zero_point;
    int8_t* out = a.output + r * a.output_h * line;
    fill(out, a.pad_top * line, scale.zero_point);
    out += a.pad_top * line;
    for (uint32_t y = 0; y < a.input_h; ++y, out += line, x += inside) {
      fill(out, left, scale.zero_point);
      quantize_run(x, out + left, inside, scale, a.symmetric);
      fill(out + left + inside, line - left - inside, scale.zero_point);
    }
    fill(out, (a.output_h - a.pad_top - a.input_h) * line, scale.zero_point);
  }
}

inline void dynamic_dequantize_pixels(const DynamicDequantizeArgs& a, uint32_t begin, uint32_t end) {
  const VecF32 least = set_reals(a.clamp_min), most = set_reals(a.clamp_max);
  for (uint32_t pixel = begin; pixel < end; ++pixel) {
    const uint32_t r = pixel / a.pixels;
    const uint64_t first = uint64_t{pixel} * a.channels;
    const VecI32 zero_point = set_ints(a.zero_point[r]);
    const VecF32 scale = set_reals(a.scale[r]);
    for (uint32_t o = 0; o < a.channels; o += kLanes) {
      const uint32_t count = a.channels - o < kLanes ? a.channels - o : kLanes;
      const VecI32 offset = mul(load_ints(a.weight_sum + o, count), zero_point);
      const VecF32 real = to_reals(sub(load_ints(a.input + first + o, count), offset));
      const VecF32 weight_scale = load_reals(a.weight_scale + o, count);
      const VecF32 value =
          a.in_turn ? mul(mul(real, weight_scale), scale) : mul(real, mul(weight_scale, scale));
      store_reals(a.output + first + o, clamp(add(value, load_reals(a.bias + o, count)), least, most), count);
    }
  }
}

}  // namespace

QPLAN_SIMD_NAMESPACE(dynamic_quantize) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const DynamicQuantizeArgs&) { return Refusal::kNone; }

size_t scratch_bytes(const DynamicQuantizeArgs&) { return 0; }

uint32_t work_items(const DynamicQuantizeArgs& args) { return args.rows; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const DynamicQuantizeArgs& args, uint32_t begin, uint32_t end, void*) {
  dynamic_quantize_rows(args, begin, end);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(dynamic_quantize)

QPLAN_SIMD_NAMESPACE(dynamic_dequantize) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const DynamicDequantizeArgs&) { return Refusal::kNone; }

size_t scratch_bytes(const DynamicDequantizeArgs&) { return 0; }

uint32_t work_items(const DynamicDequantizeArgs& args) { return args.rows * args.pixels; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const DynamicDequantizeArgs& args, uint32_t begin, uint32_t end, void*) {
  dynamic_dequantize_pixels(args, begin, end);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(dynamic_dequantize)

}  // namespace qplan
