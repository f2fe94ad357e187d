// The vector of lanes_avx512vnni.inl as 64 bytes, by names that are the same for every instruction set. What
// zips and packs does so within 128 bits: packing what was zipped has the order of before. Internal linkage
// only.
#ifndef QPLAN_KERNELS_NUMERIC_BYTES_AVX512VNNI_INL_
#define QPLAN_KERNELS_NUMERIC_BYTES_AVX512VNNI_INL_

#include "kernels/numeric/lanes_avx512vnni.inl"

namespace qplan {
namespace {

constexpr uint32_t kBytes = 64;

inline Ints set_bytes(uint8_t v) { return _mm512_set1_epi8(static_cast<char>(v)); }
inline Ints bit_xor(Ints a, Ints b) { return _mm512_xor_si512(a, b); }
inline Ints max_bytes(Ints a, Ints b) { return _mm512_max_epu8(a, b); }
inline Ints min_bytes(Ints a, Ints b) { return _mm512_min_epu8(a, b); }
inline Ints zip_low_bytes(Ints a, Ints b) { return _mm512_unpacklo_epi8(a, b); }
inline Ints zip_high_bytes(Ints a, Ints b) { return _mm512_unpackhi_epi8(a, b); }
inline Ints zip_low_words(Ints a, Ints b) { return _mm512_unpacklo_epi16(a, b); }
inline Ints zip_high_words(Ints a, Ints b) { return _mm512_unpackhi_epi16(a, b); }
// Saturating: int32 to int16, int16 to uint8.
inline Ints pack_ints(Ints a, Ints b) { return _mm512_packs_epi32(a, b); }
inline Ints pack_words(Ints a, Ints b) { return _mm512_packus_epi16(a, b); }

inline Ints set_words(int16_t v) { return _mm512_set1_epi16(v); }
inline Ints add_words(Ints a, Ints b) { return _mm512_add_epi16(a, b); }
inline Ints add_words_saturating(Ints a, Ints b) { return _mm512_adds_epi16(a, b); }

// Pairs of int16: a0 * b0 + a1 * b1.
inline Ints multiply_pairs(Ints a, Ints b) { return _mm512_madd_epi16(a, b); }
inline Ints min_unsigned(Ints a, Ints b) { return _mm512_min_epu32(a, b); }
inline Ints shift_right(Ints v, int32_t count) { return _mm512_sra_epi32(v, _mm_cvtsi32_si128(count)); }
// Whether a lane of a is below that of b, both without a sign.
inline bool any_below(Ints a, Ints b) { return _mm512_cmplt_epu32_mask(a, b) != 0; }

// The first count (1 .. kBytes) bytes; nothing is read or written behind them.
inline Ints load_vector(const uint8_t* from, uint32_t count) {
  return _mm512_maskz_loadu_epi8(mask64(count), from);
}
inline void store_vector(uint8_t* to, Ints bytes, uint32_t count) {
  _mm512_mask_storeu_epi8(to, mask64(count), bytes);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_BYTES_AVX512VNNI_INL_
