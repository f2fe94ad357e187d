// The vocabulary of kernels/simd/simd.h with AVX-VNNI: that of AVX2 with another dot product. Internal
// linkage only.
#ifndef QPLAN_KERNELS_SIMD_AVXVNNI_H_
#define QPLAN_KERNELS_SIMD_AVXVNNI_H_

#if !defined(QPLAN_SIMD_ISA)
#define QPLAN_SIMD_ISA avxvnni
#define QPLAN_SIMD_VECTORS avx2
#endif
#define QPLAN_SIMD_OWN_DOT 1

#include "kernels/simd/avx2.h"

namespace qplan {
namespace {

// Six rows leave registers for two vectors of weights, one of the input and the sign bias.
constexpr uint32_t kDotVectors = 2;
constexpr uint32_t kDotRows = 6;
constexpr bool kDotKeepsLanes = true;
using DotSignBias = __m256i;
using DotRow = __m256i;
using DotWeights = __m256i;

inline DotSignBias dot_sign_bias(uint8_t sign_bias) { return set_bytes(sign_bias); }
inline DotRow dot_row(const uint8_t* from, DotSignBias sign_bias) {
  int32_t four;
  __builtin_memcpy(&four, from, 4);
  return _mm256_xor_si256(_mm256_set1_epi32(four), sign_bias);
}
inline DotWeights dot_weights(const int8_t* from) { return load_whole(from); }
// In each lane the dot product of four uint8 and four int8, without saturation. In assembly: GCC 12 moves the
// accumulators to and fro around the intrinsic. AVX-512 has the same instruction in another encoding, for
// which tests compile this file: not every processor with AVX-512 has this one.
inline void dot_add([[maybe_unused]] VecI32& sums, [[maybe_unused]] DotRow row,
                    [[maybe_unused]] DotWeights weights) {
#if defined(__AVXVNNI__)
  __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums) : "x"(row), "x"(weights));
#elif !defined(QPLAN_ONLY_QUERIES)  // clang checks the sizes of operands in functions that nobody calls too
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(row), "v"(weights));
#endif
}
inline VecI32 dot_sums(const VecI32 (&sums)[kDotVectors], uint32_t half) { return sums[half]; }

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_AVXVNNI_H_
