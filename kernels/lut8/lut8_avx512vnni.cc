// lut8, 64 bytes at a time. The table is 128 words of two entries in four vectors: the even bytes look up
// theirs, then the odd ones.
#include <immintrin.h>

#include "kernels/elementwise/chunks.h"
#include "kernels/lut8/lut8.h"

namespace qplan::lut8_avx512vnni {
namespace {

struct Table {
  __m512i words[4];

  // The words of 32 bytes, as the low bits of words say; of an odd one the high byte is meant.
  __m512i look_up(__m512i bytes) const {
    const __m512i index = _mm512_srli_epi16(bytes, 1);
    const __m512i lower = _mm512_permutex2var_epi16(words[0], index, words[1]);
    const __m512i upper = _mm512_permutex2var_epi16(words[2], index, words[3]);
    const __m512i found =
        _mm512_mask_mov_epi16(lower, _mm512_test_epi16_mask(bytes, _mm512_set1_epi16(128)), upper);
    const __mmask32 odd = _mm512_test_epi16_mask(bytes, _mm512_set1_epi16(1));
    return _mm512_mask_srli_epi16(found, odd, found, 8);
  }
};

inline __m512i look_up(const Table& table, __m512i x) {
  const __m512i low_byte = _mm512_set1_epi16(255);
  const __m512i even = table.look_up(_mm512_and_si512(x, low_byte));
  const __m512i odd = table.look_up(_mm512_srli_epi16(x, 8));
  // low_byte ? even : odd << 8
  return _mm512_ternarylogic_epi32(low_byte, even, _mm512_slli_epi16(odd, 8), 0xCA);
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
  Table table;
  for (int i = 0; i < 4; ++i) table.words[i] = _mm512_loadu_si512(args.table + 64 * i);
  uint64_t i = range.begin;
  for (; i + 64 <= range.end; i += 64) {
    _mm512_storeu_si512(args.output + i, look_up(table, _mm512_loadu_si512(args.input + i)));
  }
  if (i == range.end) return;
  const __mmask64 mask = (__mmask64{1} << (range.end - i)) - 1;
  const __m512i x = _mm512_maskz_loadu_epi8(mask, args.input + i);
  _mm512_mask_storeu_epi8(args.output + i, mask, look_up(table, x));
}
#endif

}  // namespace qplan::lut8_avx512vnni
