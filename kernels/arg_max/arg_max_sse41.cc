// arg_max along the last axis, 16 bytes at a time.
#include <immintrin.h>

#include "kernels/arg_max/arg_max.h"
#include "kernels/arg_max/arg_max_rows.h"

namespace qplan::arg_max_sse41 {
namespace {

struct Lanes {
  static constexpr uint32_t kBytes = 16;

  static __m128i load(const uint8_t* from, uint8_t flip) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm_xor_si128(bytes, _mm_set1_epi8(static_cast<char>(flip)));
  }

  // readable: bytes that may be read, at least count.
  static __m128i load_some(const uint8_t* from, uint32_t count, uint64_t readable, uint8_t flip) {
    uint8_t copy[kBytes];
    if (readable < kBytes) {
      __builtin_memcpy(copy, from, count);
      from = copy;
    }
    const __m128i index = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m128i inside = _mm_cmpgt_epi8(_mm_set1_epi8(static_cast<char>(count)), index);
    return _mm_and_si128(load(from, flip), inside);
  }

  static __m128i max(__m128i a, __m128i b) { return _mm_max_epu8(a, b); }

  static __m128i largest(__m128i v) {
    const __m128i all = _mm_set1_epi8(-1);
    const __m128i pairs = _mm_max_epu8(v, _mm_srli_epi16(v, 8));
    // The least of eight 16-bit numbers: of the complements, with 255 in their high bytes gone.
    const __m128i low = _mm_andnot_si128(pairs, _mm_srli_epi16(all, 8));
    return _mm_shuffle_epi8(_mm_xor_si128(_mm_minpos_epu16(low), all), _mm_setzero_si128());
  }

  static uint32_t first_of(__m128i v, __m128i largest) {
    const auto found = static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(v, largest)));
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

}  // namespace qplan::arg_max_sse41
