// Tails of byte vectors, by instructions that every x86-64 has. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_LOW_BYTES_H_
#define QPLAN_KERNELS_SIMD_LOW_BYTES_H_

#include <immintrin.h>
#include <stdint.h>

namespace qplan {
namespace {

// count (<= 8) bytes in the low bytes of the result.
inline __m128i load_low_bytes(const uint8_t* from, uint32_t count) {
  if (count == 8) return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  uint64_t bytes = 0;
  for (uint32_t i = count; i-- > 0;) bytes = bytes << 8 | from[i];
  return _mm_cvtsi64_si128(static_cast<int64_t>(bytes));
}

// Stores the low count (<= 16) bytes of v: for a tail its 8, 4, 2 and 1 bytes.
inline void store_low_bytes(uint8_t* to, __m128i v, uint32_t count) {
  if (count == 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), v);
    return;
  }
  if ((count & 8) != 0) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), v);
    v = _mm_srli_si128(v, 8);
    to += 8;
  }
  uint64_t bytes = static_cast<uint64_t>(_mm_cvtsi128_si64(v));
  if ((count & 4) != 0) {
    __builtin_memcpy(to, &bytes, 4);
    bytes >>= 32;
    to += 4;
  }
  if ((count & 2) != 0) {
    __builtin_memcpy(to, &bytes, 2);
    bytes >>= 16;
    to += 2;
  }
  if ((count & 1) != 0) *to = static_cast<uint8_t>(bytes);
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_LOW_BYTES_H_
