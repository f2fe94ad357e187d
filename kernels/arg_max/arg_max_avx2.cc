// arg_max along the last axis, 32 bytes at a time.
#include <immintrin.h>

#include "kernels/arg_max/arg_max.h"
#include "kernels/arg_max/arg_max_rows.h"

namespace qplan::arg_max_avx2 {
namespace {

struct Lanes {
  static constexpr uint32_t kBytes = 32;

  static __m256i load(const uint8_t* from, uint8_t flip) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return _mm256_xor_si256(bytes, _mm256_set1_epi8(static_cast<char>(flip)));
  }

  // readable: bytes that may be read, at least count.
  static __m256i load_some(const uint8_t* from, uint32_t count, uint64_t readable, uint8_t flip) {
    uint8_t copy[kBytes];
    if (readable < kBytes) {
      __builtin_memcpy(copy, from, count);
      from = copy;
    }
    const __m256i index = _mm256_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
                                           19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
    const __m256i inside = _mm256_cmpgt_epi8(_mm256_set1_epi8(static_cast<char>(count)), index);
    return _mm256_and_si256(load(from, flip), inside);
  }

  static __m256i max(__m256i a, __m256i b) { return _mm256_max_epu8(a, b); }

  static __m256i largest(__m256i v) {
    const __m128i half = _mm_max_epu8(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    const __m128i all = _mm_set1_epi8(-1);
    const __m128i pairs = _mm_max_epu8(half, _mm_srli_epi16(half, 8));
    // The least of eight 16-bit numbers: of the complements, with 255 in their high bytes gone.
    const __m128i low = _mm_andnot_si128(pairs, _mm_srli_epi16(all, 8));
    return _mm256_broadcastb_epi8(_mm_xor_si128(_mm_minpos_epu16(low), all));
  }

  static uint32_t first_of(__m256i v, __m256i largest) {
    const auto found = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(v, largest)));
    return found == 0 ? kBytes : static_cast<uint32_t>(__builtin_ctz(found));
  }
};

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const ArgMaxArgs& args) { return rows_accept(args); }

size_t scratch_bytes(const ArgMaxArgs&) { return 0; }

uint32_t units(const ArgMaxArgs& args) { return num_chunks(args.outer); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const ArgMaxArgs& args, uint32_t begin, uint32_t end, void*) { run_rows<Lanes>(args, begin, end); }
#endif

}  // namespace qplan::arg_max_avx2
