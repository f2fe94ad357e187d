// avg_pool2d and max_pool2d, 8 channels at a time.
#include "kernels/elementwise/elements_avx2.inl"
#include "kernels/pool2d/pool2d.h"

namespace qplan {
namespace {

// A sum of fewer bytes than this, and the half that is added to it, are exact in float32, and so is the
// truncated quotient: two quotients that differ do so by more than a rounding.
constexpr uint64_t kMaxAverageCount = 1u << 15;

// Reductions: made for a window of `count` elements, they turn what `add` gathered into bytes.
struct Average {
  __m256i half;
  __m256 divisor;
  Output256 clamp;
  Average(const Pool2dArgs& args, uint32_t count)
      : half(_mm256_set1_epi32(static_cast<int32_t>(count / 2))),
        divisor(_mm256_set1_ps(static_cast<float>(count))),
        clamp(output256(0, args.clamp_min, args.clamp_max)) {}
  static __m256i first() { return _mm256_setzero_si256(); }
  static __m256i add(__m256i sum, __m256i v) { return _mm256_add_epi32(sum, v); }
  __m128i bytes(__m256i sum) const {
    const __m256i positive = _mm256_cmpgt_epi32(sum, _mm256_setzero_si256());
    const __m256i rounded =
        _mm256_blendv_epi8(_mm256_sub_epi32(sum, half), _mm256_add_epi32(sum, half), positive);
    const __m256 quotient = _mm256_div_ps(_mm256_cvtepi32_ps(rounded), divisor);
    return finish256(_mm256_cvttps_epi32(quotient), clamp);
  }
};

struct AverageF32e {
  __m256i zero;
  __m256 scale;
  RealOutput256 output;
  AverageF32e(const Pool2dArgs& args, uint32_t count)
      : zero(_mm256_set1_epi32(static_cast<int32_t>(count) * args.input_zero_point)),
        scale(_mm256_set1_ps(pool_scale_f32e(args, count))),
        output(real_output256(args.output_zero_point, args.clamp_min, args.clamp_max)) {}
  static __m256i first() { return _mm256_setzero_si256(); }
  static __m256i add(__m256i sum, __m256i v) { return _mm256_add_epi32(sum, v); }
  __m128i bytes(__m256i sum) const {
    return finish_real256(_mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(sum, zero)), scale), output);
  }
};

struct Maximum {
  Output256 clamp;
  Maximum(const Pool2dArgs& args, uint32_t) : clamp(output256(0, args.clamp_min, args.clamp_max)) {}
  static __m256i first() { return _mm256_set1_epi32(INT32_MIN); }
  static __m256i add(__m256i max, __m256i v) { return _mm256_max_epi32(max, v); }
  __m128i bytes(__m256i max) const { return finish256(max, clamp); }
};

template <typename Reduction>
inline void run_rows(const Pool2dArgs& args, uint32_t begin, uint32_t end) {
  const size_t row_bytes = size_t{args.input_w} * args.channels;
  for (uint32_t row = begin; row < end; ++row) {
    const uint32_t n = row / args.output_h, y = row % args.output_h;
    const uint8_t* image = static_cast<const uint8_t*>(args.input) + n * args.input_h * row_bytes;
    uint8_t* out = static_cast<uint8_t*>(args.output) + size_t{row} * args.output_w * args.channels;
    const PoolSpan rows = pool_span(y, args.stride_h, args.pad_top, args.pool_h, args.input_h);
    for (uint32_t x = 0; x < args.output_w; ++x, out += args.channels) {
      const PoolSpan columns = pool_span(x, args.stride_w, args.pad_left, args.pool_w, args.input_w);
      const Reduction reduction(args, (rows.end - rows.begin) * (columns.end - columns.begin));
      for (uint32_t c = 0; c < args.channels; c += 8) {
        const uint32_t now = args.channels - c < 8 ? args.channels - c : 8;
        __m256i reduced = Reduction::first();
        for (uint32_t in_y = rows.begin; in_y < rows.end; ++in_y) {
          const uint8_t* at = image + in_y * row_bytes + size_t{columns.begin} * args.channels + c;
          for (uint32_t in_x = columns.begin; in_x < columns.end; ++in_x, at += args.channels) {
            reduced = Reduction::add(reduced, widen256(load_low_bytes(at, now), args.dtype));
          }
        }
        store_low_bytes(out + c, reduction.bytes(reduced), now);
      }
    }
  }
}

}  // namespace

namespace avg_pool2d_avx2 {
bool accepts(const Pool2dArgs& args) { return uint64_t{args.pool_h} * args.pool_w < kMaxAverageCount; }
size_t scratch_bytes(const Pool2dArgs&) { return 0; }
uint32_t units(const Pool2dArgs& args) { return args.batch * args.output_h; }
void run(const Pool2dArgs& args, uint32_t begin, uint32_t end, void*) {
  if (args.contract == Contract::kF32e) {
    run_rows<AverageF32e>(args, begin, end);
  } else {
    run_rows<Average>(args, begin, end);
  }
}
}  // namespace avg_pool2d_avx2

namespace max_pool2d_avx2 {
bool accepts(const Pool2dArgs&) { return true; }
size_t scratch_bytes(const Pool2dArgs&) { return 0; }
uint32_t units(const Pool2dArgs& args) { return args.batch * args.output_h; }
void run(const Pool2dArgs& args, uint32_t begin, uint32_t end, void*) { run_rows<Maximum>(args, begin, end); }
}  // namespace max_pool2d_avx2

}  // namespace qplan
