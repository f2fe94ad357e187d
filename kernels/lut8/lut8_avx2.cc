// lut8, 32 bytes at a time: the low four bits look into all sixteen rows of the table, the high four choose
// between pairs of rows, of pairs, and so on.
#include <immintrin.h>

#include "kernels/elementwise/chunks.h"
#include "kernels/lut8/lut8.h"

namespace qplan::lut8_avx2 {
namespace {

inline __m256i load(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

// Among the rows [kFirst, kFirst + 2^kLevels), takes the one that bits 4 .. 3 + kLevels of x choose, and
// looks up its low bits.
template <int kFirst, int kLevels>
inline __m256i look_up(const __m256i* rows, __m256i low, __m256i x) {
  if constexpr (kLevels == 0) {
    return _mm256_shuffle_epi8(rows[kFirst], low);
  } else {
    constexpr int kHalf = 1 << (kLevels - 1);
    const __m256i lower = look_up<kFirst, kLevels - 1>(rows, low, x);
    const __m256i upper = look_up<kFirst + kHalf, kLevels - 1>(rows, low, x);
    // Bit 3 + kLevels where blending looks at it.
    return _mm256_blendv_epi8(lower, upper, _mm256_slli_epi16(x, 4 - kLevels));
  }
}

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const Lut8Args& args) { return args.elements >= 64 ? Refusal::kNone : Refusal::kTooSmall; }

size_t scratch_bytes(const Lut8Args&) { return 0; }

uint32_t units(const Lut8Args& args) { return num_chunks(args.elements); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const Lut8Args& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.elements, begin, end);
  __m256i rows[16];
  for (int i = 0; i < 16; ++i) {
    rows[i] = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(args.table) + i));
  }
  const __m256i low_bits = _mm256_set1_epi8(15);
  uint64_t i = range.begin;
  for (; i + 32 <= range.end; i += 32) {
    const __m256i x = load(args.input + i);
    const __m256i looked_up = look_up<0, 4>(rows, _mm256_and_si256(x, low_bits), x);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(args.output + i), looked_up);
  }
  for (; i < range.end; ++i) args.output[i] = args.table[args.input[i]];
}
#endif

}  // namespace qplan::lut8_avx2
