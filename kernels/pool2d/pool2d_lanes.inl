// avg_pool2d and max_pool2d, a vector of channels at a time. An ISA file includes its
// kernels/numeric/lanes_<isa>.inl before this one, which gives the names used here their meaning. Internal
// linkage only.
#ifndef QPLAN_KERNELS_POOL2D_POOL2D_LANES_INL_
#define QPLAN_KERNELS_POOL2D_POOL2D_LANES_INL_

#include "kernels/pool2d/pool2d.h"

namespace qplan {
namespace {

// A sum of fewer bytes than this, and the half that is added to it, are exact in float32, and so is the
// truncated quotient: two quotients that differ do so by more than a rounding.
constexpr uint64_t kMaxAverageCount = 1u << 15;

// Reductions: made for a window of `count` elements, they turn what `with` gathered into bytes.
struct Average {
  Ints half;
  Reals divisor;
  Output clamp;
  Average(const Pool2dArgs& args, uint32_t count)
      : half(set_ints(static_cast<int32_t>(count / 2))),
        divisor(set_reals(static_cast<float>(count))),
        clamp(set_output(0, args.clamp_min, args.clamp_max)) {}
  static Ints first() { return set_ints(0); }
  static Ints with(Ints sum, Ints v) { return add(sum, v); }
  __m128i bytes(Ints sum) const {
    const Ints rounded = if_positive(sum, add(sum, half), sub(sum, half));
    return finish(truncate(div(to_reals(rounded), divisor)), clamp);
  }
};

struct AverageF32e {
  Ints zero;
  Reals scale;
  RealOutput output;
  AverageF32e(const Pool2dArgs& args, uint32_t count)
      : zero(set_ints(static_cast<int32_t>(count) * args.input_zero_point)),
        scale(set_reals(pool_scale_f32e(args, count))),
        output(set_real_output(args.output_zero_point, args.clamp_min, args.clamp_max)) {}
  static Ints first() { return set_ints(0); }
  static Ints with(Ints sum, Ints v) { return add(sum, v); }
  __m128i bytes(Ints sum) const { return finish(mul(to_reals(sub(sum, zero)), scale), output); }
};

struct Maximum {
  Output clamp;
  Maximum(const Pool2dArgs& args, uint32_t) : clamp(set_output(0, args.clamp_min, args.clamp_max)) {}
  static Ints first() { return set_ints(INT32_MIN); }
  static Ints with(Ints maximum, Ints v) { return max(maximum, v); }
  __m128i bytes(Ints maximum) const { return finish(maximum, clamp); }
};

template <typename Reduction>
inline void pool2d_rows(const Pool2dArgs& args, uint32_t begin, uint32_t end) {
  const size_t row_bytes = size_t{args.input_w} * args.channels;
  for (uint32_t row = begin; row < end; ++row) {
    const uint32_t n = row / args.output_h, y = row % args.output_h;
    const uint8_t* image = static_cast<const uint8_t*>(args.input) + n * args.input_h * row_bytes;
    uint8_t* out = static_cast<uint8_t*>(args.output) + size_t{row} * args.output_w * args.channels;
    const PoolSpan rows = pool_span(y, args.stride_h, args.pad_top, args.pool_h, args.input_h);
    for (uint32_t x = 0; x < args.output_w; ++x, out += args.channels) {
      const PoolSpan columns = pool_span(x, args.stride_w, args.pad_left, args.pool_w, args.input_w);
      const Reduction reduction(args, (rows.end - rows.begin) * (columns.end - columns.begin));
      for (uint32_t c = 0; c < args.channels; c += kLanes) {
        const uint32_t now = args.channels - c < kLanes ? args.channels - c : kLanes;
        Ints reduced = Reduction::first();
        for (uint32_t in_y = rows.begin; in_y < rows.end; ++in_y) {
          const uint8_t* at = image + in_y * row_bytes + size_t{columns.begin} * args.channels + c;
          for (uint32_t in_x = columns.begin; in_x < columns.end; ++in_x, at += args.channels) {
            reduced = Reduction::with(reduced, widen(load_bytes(at, now), args.dtype));
          }
        }
        store_bytes(out + c, reduction.bytes(reduced), now);
      }
    }
  }
}

inline void avg_pool2d_lanes(const Pool2dArgs& args, uint32_t begin, uint32_t end) {
  if (args.contract == Contract::kF32e) {
    pool2d_rows<AverageF32e>(args, begin, end);
  } else {
    pool2d_rows<Average>(args, begin, end);
  }
}

inline void max_pool2d_lanes(const Pool2dArgs& args, uint32_t begin, uint32_t end) {
  pool2d_rows<Maximum>(args, begin, end);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_POOL2D_POOL2D_LANES_INL_
