// resize_bilinear between sixteenths, 8 channels at a time.
#include <immintrin.h>

#include "kernels/simd/low_bytes.h"
#include "kernels/resize_bilinear/resize_bilinear.h"
#include "kernels/resize_bilinear/resize_bilinear_sixteenths.h"

namespace qplan::resize_bilinear_sse41 {
namespace {

template <bool kSigned>
struct Lanes {
  static constexpr uint32_t kCount = 8;

  static int32_t value(uint8_t byte) { return kSigned ? static_cast<int8_t>(byte) : byte; }

  static __m128i widen(const uint8_t* from) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    return kSigned ? _mm_cvtepi8_epi16(bytes) : _mm_cvtepu8_epi16(bytes);
  }

  static void blend_rows(const uint8_t* top, const uint8_t* bottom, int32_t distance, int16_t* to) {
    const __m128i upper = _mm_mullo_epi16(widen(top), _mm_set1_epi16(static_cast<int16_t>(16 - distance)));
    const __m128i lower = _mm_mullo_epi16(widen(bottom), _mm_set1_epi16(static_cast<int16_t>(distance)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_add_epi16(upper, lower));
  }

  static void blend_columns(const int16_t* left, const int16_t* right, int32_t distance, uint8_t* to,
                            uint32_t count) {
    const __m128i from = _mm_loadu_si128(reinterpret_cast<const __m128i*>(left));
    const __m128i step = _mm_sub_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(right)), from);
    const __m128i moved = _mm_mullo_epi16(step, _mm_set1_epi16(static_cast<int16_t>(distance)));
    __m128i sum = _mm_add_epi16(_mm_slli_epi16(from, 4), moved);
    const __m128i half = _mm_set1_epi16(128);
    __m128i bytes;
    if (kSigned) {
      // Half away from zero: a negative sum is rounded half down.
      sum = _mm_add_epi16(_mm_add_epi16(sum, half), _mm_srai_epi16(sum, 15));
      sum = _mm_srai_epi16(sum, 8);
      bytes = _mm_packs_epi16(sum, sum);
    } else {
      sum = _mm_srli_epi16(_mm_add_epi16(sum, half), 8);
      bytes = _mm_packus_epi16(sum, sum);
    }
    store_low_bytes(to, bytes, count);
  }
};

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const ResizeBilinearArgs& args) { return sixteenths_accept(args); }

size_t scratch_bytes(const ResizeBilinearArgs& args) { return sixteenths_scratch_bytes<Lanes<true>>(args); }

uint32_t units(const ResizeBilinearArgs& args) { return args.batch * args.output_h; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const ResizeBilinearArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  if (args.dtype == Dtype::kS8) {
    run_sixteenths<Lanes<true>>(args, begin, end, scratch);
  } else {
    run_sixteenths<Lanes<false>>(args, begin, end, scratch);
  }
}
#endif

}  // namespace qplan::resize_bilinear_sse41
