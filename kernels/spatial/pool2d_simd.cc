// avg_pool2d and max_pool2d, a vector of channels at a time.
#include "kernels/simd/channel_sums.h"
#include "kernels/simd/simd.h"
#include "kernels/spatial/spatial.h"

namespace qplan {
namespace {

// A sum of fewer bytes than this, and the half that is added to it, are exact in float32, and so is the
// truncated quotient: two quotients that differ do so by more than a rounding.
constexpr uint64_t kMaxAverageCount = 1u << 15;

// Reductions: made for a window of `count` elements, they gather rows of it and turn them into bytes.
class Average {
 public:
  Average(const Pool2dArgs& args, uint32_t count)
      : sign_bias_(byte_sign_bias(args.dtype)),
        origin_shift_(set_ints(static_cast<int32_t>(count) * sign_bias_)),
        half_(set_ints(static_cast<int32_t>(count / 2))),
        divisor_(set_reals(static_cast<float>(count))),
        bytes_(args.dtype, 0, args.clamp_min, args.clamp_max) {}
  void begin() { sums_ = ChannelSums(); }
  void add_row(const uint8_t* from, uint64_t stride, uint32_t count, uint32_t channels) {
    sums_.add_positions(from, stride, count, channels, sign_bias_);
  }
  VecI32 bytes() const {
    return bytes_.pack(mean(sums_.of[0]), mean(sums_.of[1]), mean(sums_.of[2]), mean(sums_.of[3]));
  }

 private:
  VecI32 mean(VecI32 unsigned_sum) const {
    const VecI32 sum = sub(unsigned_sum, origin_shift_);
    return truncate(div(to_reals(if_positive(sum, add(sum, half_), sub(sum, half_))), divisor_));
  }

  uint8_t sign_bias_;
  VecI32 origin_shift_, half_;
  VecF32 divisor_;
  ChannelBytes bytes_;
  ChannelSums sums_;
};

class AverageF32e {
 public:
  AverageF32e(const Pool2dArgs& args, uint32_t count)
      : sign_bias_(byte_sign_bias(args.dtype)),
        zero_(set_ints(static_cast<int32_t>(count) * (args.input_zero_point + sign_bias_))),
        scale_(set_reals(pool_scale_f32e(args, count))),
        bytes_(args.dtype, args.output_zero_point, args.clamp_min, args.clamp_max) {}
  void begin() { sums_ = ChannelSums(); }
  void add_row(const uint8_t* from, uint64_t stride, uint32_t count, uint32_t channels) {
    sums_.add_positions(from, stride, count, channels, sign_bias_);
  }
  VecI32 bytes() const {
    return bytes_.pack(mean(sums_.of[0]), mean(sums_.of[1]), mean(sums_.of[2]), mean(sums_.of[3]));
  }

 private:
  // What is below int32 becomes its minimum; what is above would, too, and is held back.
  VecI32 mean(VecI32 unsigned_sum) const {
    return round(min(mul(to_reals(sub(unsigned_sum, zero_)), scale_), set_reals(65536.0f)));
  }

  uint8_t sign_bias_;
  VecI32 zero_;
  VecF32 scale_;
  ChannelBytes bytes_;
  ChannelSums sums_;
};

class Maximum {
 public:
  Maximum(const Pool2dArgs& args, uint32_t)
      : sign_bias_(set_bytes(byte_sign_bias(args.dtype))),
        bytes_(args.dtype, 0, args.clamp_min, args.clamp_max) {}
  void begin() { max_ = set_ints(0); }
  void add_row(const uint8_t* from, uint64_t stride, uint32_t count, uint32_t channels) {
    for (uint32_t i = 0; i < count; ++i, from += stride) {
      max_ = max_bytes(max_, bit_xor(load_vector(from, channels), sign_bias_));
    }
  }
  VecI32 bytes() const { return bytes_.clamp(max_); }

 private:
  VecI32 sign_bias_, max_ = set_ints(0);
  ChannelBytes bytes_;
};

template <typename Reduction>
inline void pool2d_rows(const Pool2dArgs& args, uint32_t begin, uint32_t end) {
  const uint8_t* input = static_cast<const uint8_t*>(args.input);
  const uint64_t channels = args.channels, row_bytes = args.input_w * channels;
  const uint64_t input_bytes = uint64_t{args.batch} * args.input_h * row_bytes;
  for (uint32_t row = begin; row < end; ++row) {
    const uint32_t n = row / args.output_h, y = row % args.output_h;
    uint8_t* out = static_cast<uint8_t*>(args.output) + uint64_t{row} * args.output_w * channels;
    const PoolSpan rows = pool_span(y, args.stride_h, args.pad_top, args.pool_h, args.input_h);
    const uint64_t first_row = (uint64_t{n} * args.input_h + rows.begin) * row_bytes;
    for (uint32_t x = 0; x < args.output_w; ++x, out += channels) {
      const PoolSpan columns = pool_span(x, args.stride_w, args.pad_left, args.pool_w, args.input_w);
      uint32_t height = rows.end - rows.begin, width = columns.end - columns.begin;
      Reduction reduction(args, height * width);
      if (width == args.input_w) {  // whole rows are one
        width *= height;
        height = 1;
      }
      for (uint32_t c = 0; c < args.channels; c += kBytes) {
        const uint32_t now = args.channels - c < kBytes ? args.channels - c : kBytes;
        reduction.begin();
        for (uint32_t i = 0; i < height; ++i) {
          const uint64_t at = first_row + i * row_bytes + columns.begin * channels + c;
          reduction.add_row(input + at, channels, width,
                            positions_width(channels, width, now, input_bytes - at));
        }
        store_vector(out + c, reduction.bytes(), now);
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

QPLAN_SIMD_NAMESPACE(avg_pool2d) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const Pool2dArgs& args) {
  if (args.dtype == Dtype::kS16) return Refusal::kDtype;
  return uint64_t{args.pool_h} * args.pool_w < kMaxAverageCount ? Refusal::kNone : Refusal::kTooLarge;
}

size_t scratch_bytes(const Pool2dArgs&) { return 0; }

uint32_t work_items(const Pool2dArgs& args) { return args.batch * args.output_h; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const Pool2dArgs& args, uint32_t begin, uint32_t end, void*) { avg_pool2d_lanes(args, begin, end); }
#endif

}  // QPLAN_SIMD_NAMESPACE(avg_pool2d)

QPLAN_SIMD_NAMESPACE(max_pool2d) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const Pool2dArgs& args) {
  return args.dtype == Dtype::kS16 ? Refusal::kDtype : Refusal::kNone;
}

size_t scratch_bytes(const Pool2dArgs&) { return 0; }

uint32_t work_items(const Pool2dArgs& args) { return args.batch * args.output_h; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const Pool2dArgs& args, uint32_t begin, uint32_t end, void*) { max_pool2d_lanes(args, begin, end); }
#endif

}  // QPLAN_SIMD_NAMESPACE(max_pool2d)

}  // namespace qplan
