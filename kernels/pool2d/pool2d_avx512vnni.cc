// avg_pool2d and max_pool2d, 16 channels at a time.
#include "kernels/elementwise/elements_avx512vnni.inl"
#include "kernels/pool2d/pool2d.h"

namespace qplan {
namespace {

// A sum of fewer bytes than this, and the half that is added to it, are exact in float32, and so is the
// truncated quotient: two quotients that differ do so by more than a rounding.
constexpr uint64_t kMaxAverageCount = 1u << 15;

// Reductions: made for a window of `count` elements, they turn what `add` gathered into bytes.
struct Average {
  __m512i half;
  __m512 divisor;
  Output512 clamp;
  Average(const Pool2dArgs& args, uint32_t count)
      : half(_mm512_set1_epi32(static_cast<int32_t>(count / 2))),
        divisor(_mm512_set1_ps(static_cast<float>(count))),
        clamp(output512(0, args.clamp_min, args.clamp_max)) {}
  static __m512i first() { return _mm512_setzero_si512(); }
  static __m512i add(__m512i sum, __m512i v) { return _mm512_add_epi32(sum, v); }
  __m128i bytes(__m512i sum) const {
    const __mmask16 positive = _mm512_cmpgt_epi32_mask(sum, _mm512_setzero_si512());
    const __m512i down = _mm512_sub_epi32(sum, half);
    const __m512i rounded = _mm512_mask_add_epi32(down, positive, sum, half);
    const __m512 quotient = _mm512_div_ps(_mm512_cvtepi32_ps(rounded), divisor);
    return finish512(_mm512_cvttps_epi32(quotient), clamp);
  }
};

struct AverageF32e {
  __m512i zero;
  __m512 scale;
  RealOutput512 output;
  AverageF32e(const Pool2dArgs& args, uint32_t count)
      : zero(_mm512_set1_epi32(static_cast<int32_t>(count) * args.input_zero_point)),
        scale(_mm512_set1_ps(pool_scale_f32e(args, count))),
        output(real_output512(args.output_zero_point, args.clamp_min, args.clamp_max)) {}
  static __m512i first() { return _mm512_setzero_si512(); }
  static __m512i add(__m512i sum, __m512i v) { return _mm512_add_epi32(sum, v); }
  __m128i bytes(__m512i sum) const {
    return finish_real512(_mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(sum, zero)), scale), output);
  }
};

struct Maximum {
  Output512 clamp;
  Maximum(const Pool2dArgs& args, uint32_t) : clamp(output512(0, args.clamp_min, args.clamp_max)) {}
  static __m512i first() { return _mm512_set1_epi32(INT32_MIN); }
  static __m512i add(__m512i max, __m512i v) { return _mm512_max_epi32(max, v); }
  __m128i bytes(__m512i max) const { return finish512(max, clamp); }
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
      for (uint32_t c = 0; c < args.channels; c += 16) {
        const __mmask16 mask = mask16(args.channels - c);
        __m512i reduced = Reduction::first();
        for (uint32_t in_y = rows.begin; in_y < rows.end; ++in_y) {
          const uint8_t* at = image + in_y * row_bytes + size_t{columns.begin} * args.channels + c;
          for (uint32_t in_x = columns.begin; in_x < columns.end; ++in_x, at += args.channels) {
            reduced = Reduction::add(reduced, widen512(_mm_maskz_loadu_epi8(mask, at), args.dtype));
          }
        }
        _mm_mask_storeu_epi8(out + c, mask, reduction.bytes(reduced));
      }
    }
  }
}

}  // namespace

namespace avg_pool2d_avx512vnni {
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
}  // namespace avg_pool2d_avx512vnni

namespace max_pool2d_avx512vnni {
bool accepts(const Pool2dArgs&) { return true; }
size_t scratch_bytes(const Pool2dArgs&) { return 0; }
uint32_t units(const Pool2dArgs& args) { return args.batch * args.output_h; }
void run(const Pool2dArgs& args, uint32_t begin, uint32_t end, void*) { run_rows<Maximum>(args, begin, end); }
}  // namespace max_pool2d_avx512vnni

}  // namespace qplan
