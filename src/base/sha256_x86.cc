// SHA-256 by the SHA extensions of x86-64. Compiled with their flags; sha256.cc calls it where the processor
// has them.
#include "src/base/sha256.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

namespace qplan {

bool cpu_has_sha_ni() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(1, 0, &a, &b, &c, &d) || (c & bit_SSSE3) == 0 || (c & bit_SSE4_1) == 0) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 29)) != 0;
}

void sha256_blocks_sha_ni(uint32_t state[8], const uint8_t* bytes, size_t count) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  auto* words = reinterpret_cast<__m128i*>(state);
  // The instructions want the words a, b, e, f in one register and c, d, g, h in the other, the first one
  // highest.
  const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xb1);
  const __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1b);
  __m128i abef = _mm_alignr_epi8(badc, hgfe, 8);
  __m128i cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);
  for (; count > 0; --count, bytes += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    const auto* message = reinterpret_cast<const __m128i*>(bytes);
    __m128i w[4];
    for (int i = 0; i < 4; ++i) w[i] = _mm_shuffle_epi8(_mm_loadu_si128(message + i), big_endian);
      // Four rounds a turn. Each instruction does two, and swaps the roles of the registers.
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      const auto* k = reinterpret_cast<const __m128i*>(kSha256Round + 4 * i);
      const __m128i sum = _mm_add_epi32(w[i % 4], _mm_loadu_si128(k));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
      if (i < 12) {  // the words of four turns on
        const __m128i last = w[(i + 3) % 4];
        const __m128i seven_back = _mm_alignr_epi8(last, w[(i + 2) % 4], 4);
        const __m128i partial = _mm_add_epi32(_mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]), seven_back);
        w[i % 4] = _mm_sha256msg2_epu32(partial, last);
      }
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}

}  // namespace qplan
#endif
