#include "kernels/elementwise/broadcast.h"
#include "kernels/numeric/requantize.h"
#include "kernels/quantize/quantize.h"

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
}  // namespace qplan
