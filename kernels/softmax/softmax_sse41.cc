// softmax, 4 elements at a time.
#include <immintrin.h>

#include "kernels/numeric/requantize_sse41.inl"
#include "kernels/softmax/softmax.h"
#include "kernels/softmax/softmax_rows.inl"

namespace qplan::softmax_sse41 {
namespace {

struct Lanes {
  using Vector = __m128i;
  static constexpr uint32_t kCount = 4;

  static Vector set1(int32_t value) { return _mm_set1_epi32(value); }
  static Vector add(Vector a, Vector b) { return _mm_add_epi32(a, b); }
  static Vector sub(Vector a, Vector b) { return _mm_sub_epi32(a, b); }
  static Vector bit_and(Vector a, Vector b) { return _mm_and_si128(a, b); }
  template <int kShift>
  static Vector shift_left(Vector v) {
    return _mm_slli_epi32(v, kShift);
  }
  template <int kShift>
  static Vector shift_right(Vector v) {
    return _mm_srai_epi32(v, kShift);
  }
  // Even and odd lanes in 64 bits each, of which bits 31 .. 62 are the result.
  static Vector doubling_high_mul(Vector a, Vector b) {
    const Vector half = _mm_set1_epi64x(int64_t{1} << 30);
    const Vector even = _mm_add_epi64(_mm_mul_epi32(a, b), half);
    const Vector odd = _mm_add_epi64(_mm_mul_epi32(_mm_srli_epi64(a, 32), _mm_srli_epi64(b, 32)), half);
    return _mm_blend_epi16(_mm_srli_epi64(even, 31), _mm_slli_epi64(odd, 1), 0xCC);
  }
  // The bit goes where blending looks at it.
  template <int kBit>
  static Vector select_bit(Vector bits, Vector yes, Vector no) {
    const __m128 sign = _mm_castsi128_ps(_mm_slli_epi32(bits, 31 - kBit));
    return _mm_castps_si128(_mm_blendv_ps(_mm_castsi128_ps(no), _mm_castsi128_ps(yes), sign));
  }
  static Vector select_zero(Vector v, Vector yes, Vector no) {
    return _mm_blendv_epi8(no, yes, _mm_cmpeq_epi32(v, _mm_setzero_si128()));
  }

  static Vector widen(const uint8_t* bytes) {
    int32_t four;
    __builtin_memcpy(&four, bytes, 4);
    return _mm_cvtepu8_epi32(_mm_cvtsi32_si128(four));
  }
  static Vector load(const void* from) { return load128(from); }
  static void store(int32_t* to, Vector v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), v); }
  static void store_bytes(uint8_t* to, __m128i bytes, uint32_t count) {
    store_low_bytes(to, bytes, count < kCount ? count : kCount);
  }
  static Vector shift_left_by(Vector v, int32_t count) { return _mm_sll_epi32(v, _mm_cvtsi32_si128(count)); }
  static Vector zero_above(Vector v, int32_t limit, Vector value) {
    return _mm_andnot_si128(_mm_cmpgt_epi32(v, set1(limit)), value);
  }

  static uint8_t largest(const uint8_t* from, uint32_t count, uint8_t flip) {
    uint8_t most = 0;
    uint64_t i = 0;
    if (count >= 16) {
      const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
      __m128i v = _mm_setzero_si128();
      for (; i + 16 <= count; i += 16) v = _mm_max_epu8(v, _mm_xor_si128(load128(from + i), flips));
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
    const Vector product = _mm_add_epi32(doubling_high_mul(v, set1(factor)), half);
    const Vector scaled = _mm_srl_epi32(product, _mm_cvtsi32_si128(right));
    return _mm_add_epi8(low_bytes128(_mm_min_epu32(scaled, set1(255))),
                        _mm_set1_epi8(static_cast<char>(zero)));
  }

  static __m128i share_bytes(Vector v, float sum, const SoftmaxArgs& args) {
    const RealOutput128 output =
        real_output128(args.output_zero_point, dtype_min(args.dtype), dtype_max(args.dtype));
    const __m128 share = _mm_div_ps(_mm_castsi128_ps(v), _mm_set1_ps(sum));
    return finish_real128(_mm_div_ps(share, _mm_set1_ps(args.output_scale)), output);
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

}  // namespace qplan::softmax_sse41
