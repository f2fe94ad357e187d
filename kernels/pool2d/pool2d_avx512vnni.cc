// avg_pool2d and max_pool2d, 16 channels at a time.
#include "kernels/elementwise/elements_avx512vnni.inl"
#include "kernels/pool2d/pool2d.h"

namespace qplan {
namespace {

// A sum of fewer bytes than this, and the half that is added to it, are exact in float32, and so is the
// truncated quotient: two quotients that differ do so by more than a rounding.
constexpr uint64_t kMaxAverageCount = 1u << 15;

struct Average {
  static __m512i first() { return _mm512_setzero_si512(); }
  static __m512i add(__m512i sum, __m512i v) { return _mm512_add_epi32(sum, v); }
  static __m512i result(__m512i sum, uint32_t count) {
    const __m512i half = _mm512_set1_epi32(static_cast<int32_t>(count / 2));
    const __mmask16 positive = _mm512_cmpgt_epi32_mask(sum, _mm512_setzero_si512());
    const __m512i down = _mm512_sub_epi32(sum, half);
    const __m512i rounded = _mm512_mask_add_epi32(down, positive, sum, half);
    return _mm512_cvttps_epi32(
        _mm512_div_ps(_mm512_cvtepi32_ps(rounded), _mm512_set1_ps(static_cast<float>(count))));
  }
};

struct Maximum {
  static __m512i first() { return _mm512_set1_epi32(INT32_MIN); }
  static __m512i add(__m512i max, __m512i v) { return _mm512_max_epi32(max, v); }
  static __m512i result(__m512i max, uint32_t) { return max; }
};

template <typename Reduction>
inline void run_rows(const Pool2dArgs& args, uint32_t begin, uint32_t end) {
  const Output512 clamp = output512(0, args.clamp_min, args.clamp_max);
  const size_t row_bytes = size_t{args.input_w} * args.channels;
  for (uint32_t row = begin; row < end; ++row) {
    const uint32_t n = row / args.output_h, y = row % args.output_h;
    const uint8_t* image = static_cast<const uint8_t*>(args.input) + n * args.input_h * row_bytes;
    uint8_t* out = static_cast<uint8_t*>(args.output) + size_t{row} * args.output_w * args.channels;
    const PoolSpan rows = pool_span(y, args.stride_h, args.pad_top, args.pool_h, args.input_h);
    for (uint32_t x = 0; x < args.output_w; ++x, out += args.channels) {
      const PoolSpan columns = pool_span(x, args.stride_w, args.pad_left, args.pool_w, args.input_w);
      const uint32_t count = (rows.end - rows.begin) * (columns.end - columns.begin);
      for (uint32_t c = 0; c < args.channels; c += 16) {
        const __mmask16 mask = mask16(args.channels - c);
        __m512i reduced = Reduction::first();
        for (uint32_t in_y = rows.begin; in_y < rows.end; ++in_y) {
          const uint8_t* at = image + in_y * row_bytes + size_t{columns.begin} * args.channels + c;
          for (uint32_t in_x = columns.begin; in_x < columns.end; ++in_x, at += args.channels) {
            reduced = Reduction::add(reduced, widen512(_mm_maskz_loadu_epi8(mask, at), args.dtype));
          }
        }
        _mm_mask_storeu_epi8(out + c, mask, finish512(Reduction::result(reduced, count), clamp));
      }
    }
  }
}

}  // namespace

namespace avg_pool2d_avx512vnni {
bool accepts(const Pool2dArgs& args) {
  return args.contract == Contract::kTfl2 && uint64_t{args.pool_h} * args.pool_w < kMaxAverageCount;
}
size_t scratch_bytes(const Pool2dArgs&) { return 0; }
uint32_t units(const Pool2dArgs& args) { return args.batch * args.output_h; }
void run(const Pool2dArgs& args, uint32_t begin, uint32_t end, void*) { run_rows<Average>(args, begin, end); }
}  // namespace avg_pool2d_avx512vnni

namespace max_pool2d_avx512vnni {
bool accepts(const Pool2dArgs&) { return true; }
size_t scratch_bytes(const Pool2dArgs&) { return 0; }
uint32_t units(const Pool2dArgs& args) { return args.batch * args.output_h; }
void run(const Pool2dArgs& args, uint32_t begin, uint32_t end, void*) { run_rows<Maximum>(args, begin, end); }
}  // namespace max_pool2d_avx512vnni

}  // namespace qplan
