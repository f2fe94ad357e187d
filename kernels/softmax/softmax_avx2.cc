// softmax, 8 elements at a time.
#include <immintrin.h>

#include "kernels/numeric/requantize_avx2.inl"
#include "kernels/softmax/softmax.h"
#include "kernels/softmax/softmax_rows.inl"

namespace qplan::softmax_avx2 {
namespace {

struct Lanes {
  using Vector = __m256i;
  static constexpr uint32_t kCount = 8;

  static Vector set1(int32_t value) { return _mm256_set1_epi32(value); }
  static Vector add(Vector a, Vector b) { return _mm256_add_epi32(a, b); }
  static Vector sub(Vector a, Vector b) { return _mm256_sub_epi32(a, b); }
  static Vector bit_and(Vector a, Vector b) { return _mm256_and_si256(a, b); }
  template <int kShift>
  static Vector shift_left(Vector v) {
    return _mm256_slli_epi32(v, kShift);
  }
  template <int kShift>
  static Vector shift_right(Vector v) {
    return _mm256_srai_epi32(v, kShift);
  }
  static Vector doubling_high_mul(Vector a, Vector b) { return doubling_high_mul256(a, b); }
  // The bit goes where blending looks at it.
  template <int kBit>
  static Vector select_bit(Vector bits, Vector yes, Vector no) {
    const __m256 sign = _mm256_castsi256_ps(_mm256_slli_epi32(bits, 31 - kBit));
    return _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(no), _mm256_castsi256_ps(yes), sign));
  }
  static Vector select_zero(Vector v, Vector yes, Vector no) {
    return _mm256_blendv_epi8(no, yes, _mm256_cmpeq_epi32(v, _mm256_setzero_si256()));
  }

  static Vector widen(const uint8_t* bytes) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)));
  }
  static Vector load(const void* from) { return load256(from); }
  static void store(int32_t* to, Vector v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }
  static void store_bytes(uint8_t* to, __m128i bytes, uint32_t count) {
    store_low_bytes(to, bytes, count < kCount ? count : kCount);
  }
  static Vector shift_left_by(Vector v, int32_t count) {
    return _mm256_sll_epi32(v, _mm_cvtsi32_si128(count));
  }
  static Vector zero_above(Vector v, int32_t limit, Vector value) {
    return _mm256_andnot_si256(_mm256_cmpgt_epi32(v, set1(limit)), value);
  }

  static uint8_t largest(const uint8_t* from, uint32_t count, uint8_t flip) {
    uint8_t most = 0;
    uint64_t i = 0;
    if (count >= 32) {
      const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip));
      __m256i bytes = _mm256_setzero_si256();
      for (; i + 32 <= count; i += 32) {
        bytes = _mm256_max_epu8(bytes, _mm256_xor_si256(load256(from + i), flips));
      }
      __m128i v = _mm_max_epu8(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
      v = _mm_max_epu8(v, _mm_srli_si128(v, 8));
      v = _mm_max_epu8(v, _mm_srli_si128(v, 4));
      v = _mm_max_epu8(v, _mm_srli_si128(v, 2));
      v = _mm_max_epu8(v, _mm_srli_si128(v, 1));
      most = static_cast<uint8_t>(_mm_cvtsi128_si32(v));
    }
    for (; i < count; ++i) {
      const uint8_t byte = static_cast<uint8_t>(from[i] ^ flip);
      most = byte > most ? byte : most;
    }
    return most;
  }

  // v and factor are not negative.
  static __m128i scaled_bytes(Vector v, int32_t factor, int32_t right, uint8_t zero) {
    const Vector half = set1(right < 32 ? 1 << (right - 1) : 0);
    const Vector product = _mm256_add_epi32(doubling_high_mul(v, set1(factor)), half);
    const Vector scaled = _mm256_srl_epi32(product, _mm_cvtsi32_si128(right));
    return _mm_add_epi8(low_bytes256(_mm256_min_epu32(scaled, set1(255))),
                        _mm_set1_epi8(static_cast<char>(zero)));
  }

  static __m128i share_bytes(Vector v, float sum, const SoftmaxArgs& args) {
    const RealOutput256 output =
        real_output256(args.output_zero_point, dtype_min(args.dtype), dtype_max(args.dtype));
    const __m256 share = _mm256_div_ps(_mm256_castsi256_ps(v), _mm256_set1_ps(sum));
    return finish_real256(_mm256_div_ps(share, _mm256_set1_ps(args.output_scale)), output);
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

}  // namespace qplan::softmax_avx2
