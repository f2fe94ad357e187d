// softmax, 16 elements at a time.
#include <immintrin.h>

#include "kernels/numeric/requantize_avx512vnni.inl"
#include "kernels/softmax/softmax.h"
#include "kernels/softmax/softmax_rows.inl"

namespace qplan::softmax_avx512vnni {
namespace {

struct Lanes {
  using Vector = __m512i;
  static constexpr uint32_t kCount = 16;

  static Vector set1(int32_t value) { return _mm512_set1_epi32(value); }
  static Vector add(Vector a, Vector b) { return _mm512_add_epi32(a, b); }
  static Vector sub(Vector a, Vector b) { return _mm512_sub_epi32(a, b); }
  static Vector bit_and(Vector a, Vector b) { return _mm512_and_si512(a, b); }
  template <int kShift>
  static Vector shift_left(Vector v) {
    return _mm512_slli_epi32(v, kShift);
  }
  template <int kShift>
  static Vector shift_right(Vector v) {
    return _mm512_srai_epi32(v, kShift);
  }
  static Vector doubling_high_mul(Vector a, Vector b) { return doubling_high_mul512(a, b); }
  template <int kBit>
  static Vector select_bit(Vector bits, Vector yes, Vector no) {
    return _mm512_mask_mov_epi32(no, _mm512_test_epi32_mask(bits, set1(1 << kBit)), yes);
  }
  static Vector select_zero(Vector v, Vector yes, Vector no) {
    return _mm512_mask_mov_epi32(no, _mm512_testn_epi32_mask(v, v), yes);
  }

  static Vector widen(const uint8_t* bytes) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)));
  }
  static Vector load(const void* from) { return _mm512_loadu_si512(from); }
  static void store(int32_t* to, Vector v) { _mm512_storeu_si512(to, v); }
  static void store_bytes(uint8_t* to, __m128i bytes, uint32_t count) {
    _mm_mask_storeu_epi8(to, mask16(count), bytes);
  }
  static Vector shift_left_by(Vector v, int32_t count) {
    return _mm512_sll_epi32(v, _mm_cvtsi32_si128(count));
  }
  static Vector zero_above(Vector v, int32_t limit, Vector value) {
    return _mm512_maskz_mov_epi32(_mm512_cmple_epi32_mask(v, set1(limit)), value);
  }

  static uint8_t largest(const uint8_t* from, uint32_t count, uint8_t flip) {
    const __m512i flips = _mm512_set1_epi8(static_cast<char>(flip));
    __m512i most = _mm512_setzero_si512();
    for (uint64_t i = 0; i < count; i += 64) {
      const __mmask64 mask = mask64(static_cast<uint32_t>(count - i));
      const __m512i bytes = _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, from + i), flips);
      most = _mm512_mask_max_epu8(most, mask, most, bytes);
    }
    const __m256i half = _mm256_max_epu8(_mm512_castsi512_si256(most), _mm512_extracti64x4_epi64(most, 1));
    __m128i v = _mm_max_epu8(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    v = _mm_max_epu8(v, _mm_srli_si128(v, 8));
    v = _mm_max_epu8(v, _mm_srli_si128(v, 4));
    v = _mm_max_epu8(v, _mm_srli_si128(v, 2));
    v = _mm_max_epu8(v, _mm_srli_si128(v, 1));
    return static_cast<uint8_t>(_mm_cvtsi128_si32(v));
  }

  // v and factor are not negative.
  static __m128i scaled_bytes(Vector v, int32_t factor, int32_t right, uint8_t zero) {
    const Vector half = set1(right < 32 ? 1 << (right - 1) : 0);
    const Vector product = _mm512_add_epi32(doubling_high_mul(v, set1(factor)), half);
    const Vector scaled = _mm512_srl_epi32(product, _mm_cvtsi32_si128(right));
    return _mm_add_epi8(_mm512_cvtepi32_epi8(_mm512_min_epu32(scaled, set1(255))),
                        _mm_set1_epi8(static_cast<char>(zero)));
  }

  static __m128i share_bytes(Vector v, float sum, const SoftmaxArgs& args) {
    const RealOutput512 output =
        real_output512(args.output_zero_point, dtype_min(args.dtype), dtype_max(args.dtype));
    const __m512 share = _mm512_div_ps(_mm512_castsi512_ps(v), _mm512_set1_ps(sum));
    return finish_real512(_mm512_div_ps(share, _mm512_set1_ps(args.output_scale)), output);
  }
};

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const SoftmaxArgs& args) { return softmax_rows_accept(args); }

size_t scratch_bytes(const SoftmaxArgs&) { return kSoftmaxScratchBytes; }

uint32_t units(const SoftmaxArgs& args) { return args.rows; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const SoftmaxArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  run_rows<Lanes>(args, begin, end, scratch);
}
#endif

}  // namespace qplan::softmax_avx512vnni
