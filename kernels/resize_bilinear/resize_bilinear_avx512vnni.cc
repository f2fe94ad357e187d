// resize_bilinear between sixteenths, 32 channels at a time.
#include <immintrin.h>

#include "kernels/simd/avx512vnni.h"
#include "kernels/resize_bilinear/resize_bilinear.h"
#include "kernels/resize_bilinear/resize_bilinear_sixteenths.h"

namespace qplan::resize_bilinear_avx512vnni {
namespace {

template <bool kSigned>
struct Lanes {
  static constexpr uint32_t kCount = 32;

  static int32_t value(uint8_t byte) { return kSigned ? static_cast<int8_t>(byte) : byte; }

  static __m512i widen(const uint8_t* from) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return kSigned ? _mm512_cvtepi8_epi16(bytes) : _mm512_cvtepu8_epi16(bytes);
  }

  static void blend_rows(const uint8_t* top, const uint8_t* bottom, int32_t distance, int16_t* to) {
    const __m512i upper =
        _mm512_mullo_epi16(widen(top), _mm512_set1_epi16(static_cast<int16_t>(16 - distance)));
    const __m512i lower =
        _mm512_mullo_epi16(widen(bottom), _mm512_set1_epi16(static_cast<int16_t>(distance)));
    _mm512_storeu_si512(to, _mm512_add_epi16(upper, lower));
  }

  static void blend_columns(const int16_t* left, const int16_t* right, int32_t distance, uint8_t* to,
                            uint32_t count) {
    const __m512i from = _mm512_loadu_si512(left);
    const __m512i step = _mm512_sub_epi16(_mm512_loadu_si512(right), from);
    const __m512i moved = _mm512_mullo_epi16(step, _mm512_set1_epi16(static_cast<int16_t>(distance)));
    __m512i sum = _mm512_add_epi16(_mm512_slli_epi16(from, 4), moved);
    const __m512i half = _mm512_set1_epi16(128);
    if (kSigned) {
      // Half away from zero: a negative sum is rounded half down.
      sum = _mm512_add_epi16(_mm512_add_epi16(sum, half), _mm512_srai_epi16(sum, 15));
      sum = _mm512_srai_epi16(sum, 8);
    } else {
      sum = _mm512_srli_epi16(_mm512_add_epi16(sum, half), 8);
    }
    const __m256i bytes = _mm512_cvtepi16_epi8(sum);
    if (count == kCount) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
    } else {
      _mm256_mask_storeu_epi8(to, static_cast<__mmask32>((uint32_t{1} << count) - 1), bytes);
    }
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

}  // namespace qplan::resize_bilinear_avx512vnni
