// resize_bilinear between sixteenths, 16 channels at a time.
#include <immintrin.h>

#include "kernels/simd/avx2.h"
#include "kernels/resize_bilinear/resize_bilinear.h"
#include "kernels/resize_bilinear/resize_bilinear_sixteenths.h"

namespace qplan::resize_bilinear_avx2 {
namespace {

template <bool kSigned>
struct Lanes {
  static constexpr uint32_t kCount = 16;

  static int32_t value(uint8_t byte) { return kSigned ? static_cast<int8_t>(byte) : byte; }

  static __m256i widen(const uint8_t* from) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return kSigned ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
  }

  static void blend_rows(const uint8_t* top, const uint8_t* bottom, int32_t distance, int16_t* to) {
    const __m256i upper =
        _mm256_mullo_epi16(widen(top), _mm256_set1_epi16(static_cast<int16_t>(16 - distance)));
    const __m256i lower =
        _mm256_mullo_epi16(widen(bottom), _mm256_set1_epi16(static_cast<int16_t>(distance)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_add_epi16(upper, lower));
  }

  static void blend_columns(const int16_t* left, const int16_t* right, int32_t distance, uint8_t* to,
                            uint32_t count) {
    const __m256i from = load_whole(left);
    const __m256i step = _mm256_sub_epi16(load_whole(right), from);
    const __m256i moved = _mm256_mullo_epi16(step, _mm256_set1_epi16(static_cast<int16_t>(distance)));
    __m256i sum = _mm256_add_epi16(_mm256_slli_epi16(from, 4), moved);
    const __m256i half = _mm256_set1_epi16(128);
    __m128i bytes;
    if (kSigned) {
      // Half away from zero: a negative sum is rounded half down.
      sum = _mm256_add_epi16(_mm256_add_epi16(sum, half), _mm256_srai_epi16(sum, 15));
      sum = _mm256_srai_epi16(sum, 8);
      bytes = _mm_packs_epi16(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    } else {
      sum = _mm256_srli_epi16(_mm256_add_epi16(sum, half), 8);
      bytes = _mm_packus_epi16(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
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

}  // namespace qplan::resize_bilinear_avx2
