// arg_max of rows of up to 32 bytes, 32 rows at a time: 513 x 513 rows of 21 take 117 us, row by row with
// vectors of 32 bytes 249 (Zen 5).
//
// A byte becomes a key of 16 bits: its value above, and below 255 less its index, so that the largest key is
// that of the first of the largest bytes. A lane of 128 bits holds eight keys of a row; vectors of different
// rows are interleaved and halved by the maximum until each word is a row.
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/elementwise/broadcast.h"
#include "kernels/reduction/reduction.h"

namespace qplan::arg_max_short_avx512vnni {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const ArgMaxArgs& args) {
  if (args.inner != 1) return Refusal::kAxes;
  if (args.extent > 32) return Refusal::kTooLarge;
  if (args.outer < 16) return Refusal::kTooSmall;
  return args.input_dtype == Dtype::kU8 || args.input_dtype == Dtype::kS8 ? Refusal::kNone : Refusal::kDtype;
}

size_t scratch_bytes(const ArgMaxArgs&) { return 0; }

uint32_t work_items(const ArgMaxArgs& args) { return num_chunks(args.outer); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
namespace {

constexpr uint32_t kRows = 32;  // at a time

template <bool kSigned>
inline __m512i largest_keys(__m512i a, __m512i b) {
  return kSigned ? _mm512_max_epi16(a, b) : _mm512_max_epu16(a, b);
}

// Rows of up to 8 * kEights bytes.
template <bool kSigned, uint32_t kEights>
class ShortRows {
 public:
  ShortRows(const ArgMaxArgs& args)
      : extent_(args.extent), row_mask_(static_cast<uint32_t>((uint64_t{1} << args.extent) - 1)) {
    const __m512i in_lane = _mm512_set4_epi32(0x0F0E0D0C, 0x0B0A0908, 0x07060504, 0x03020100);
    for (uint32_t half = 0; half < 2; ++half) {
      const __m512i first = _mm512_set1_epi8(static_cast<char>(255 - 16 * half));
      low_bytes_[half] = _mm512_sub_epi8(first, in_lane);
    }
    for (uint32_t i = 0; i < kEights; ++i) {
      const uint32_t left = extent_ > 8 * i ? extent_ - 8 * i : 0;
      const uint64_t lane = left >= 8 ? 0xFFFF : (uint64_t{1} << 2 * left) - 1;
      key_masks_[i] = lane * 0x0001000100010001;
    }
  }

  // The indices of 32 rows from `first` on, in 16 bits each. kIsWhole: whole vectors may be read from the
  // beginning of each row; otherwise no more than the rows, those after `last` are `last` again.
  template <bool kIsWhole>
  __attribute__((always_inline)) __m512i indices(const uint8_t* first, uint32_t last) const {
    const auto four = [&](uint32_t row) { return keys_of_four<kIsWhole>(first, row, last); };
    const __m512i even = interleave(interleave(four(0), four(4)), interleave(four(2), four(6)));
    const __m512i odd = interleave(interleave(four(1), four(5)), interleave(four(3), four(7)));
    const __m512i low_byte = _mm512_set1_epi16(255);
    return _mm512_andnot_si512(interleave(even, odd), low_byte);
  }

 private:
  // The larger of each two neighbours, alternately of a and of b.
  static __m512i interleave(__m512i a, __m512i b) {
    return largest_keys<kSigned>(_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b));
  }

  // Eight keys of each of the rows row, row + 8, row + 16, row + 24, in a lane each.
  template <bool kIsWhole>
  __m512i keys_of_four(const uint8_t* first, uint32_t row, uint32_t last) const {
    const auto at = [&](uint32_t i) {
      const uint32_t index = row + 8 * i;
      return first + uint64_t{kIsWhole || index < last ? index : last} * extent_;
    };
    if constexpr (kEights <= 2) {
      const auto load = [&](uint32_t i) {
        if constexpr (kIsWhole) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at(i)));
        return _mm_maskz_loadu_epi8(static_cast<__mmask16>(row_mask_), at(i));
      };
      __m512i bytes = _mm512_castsi128_si512(load(0));
      bytes = _mm512_mask_broadcast_i32x4(bytes, 0x00F0, load(1));
      bytes = _mm512_mask_broadcast_i32x4(bytes, 0x0F00, load(2));
      bytes = _mm512_mask_broadcast_i32x4(bytes, 0xF000, load(3));
      return keys_of_lanes<0>(bytes);
    } else {
      const auto load = [&](uint32_t i) {
        if constexpr (kIsWhole) return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at(i)));
        return _mm256_maskz_loadu_epi8(row_mask_, at(i));
      };
      const __m512i lower = _mm512_mask_broadcast_i64x4(_mm512_castsi256_si512(load(0)), 0xF0, load(1));
      const __m512i upper = _mm512_mask_broadcast_i64x4(_mm512_castsi256_si512(load(2)), 0xF0, load(3));
      return largest_keys<kSigned>(keys_of_lanes<0>(_mm512_shuffle_i32x4(lower, upper, 0x88)),
                                   keys_of_lanes<1>(_mm512_shuffle_i32x4(lower, upper, 0xDD)));
    }
  }

  // The keys of bytes [16 * kHalf, 16 * kHalf + 16), a row a lane. Where a row has ended they are below all.
  template <uint32_t kHalf>
  __m512i keys_of_lanes(__m512i bytes) const {
    constexpr uint32_t kLower = 2 * kHalf, kUpper = 2 * kHalf + 1;
    const __m512i lowest = _mm512_set1_epi16(kSigned ? INT16_MIN : 0);
    const __m512i lower = _mm512_mask_unpacklo_epi8(lowest, key_masks_[kLower], low_bytes_[kHalf], bytes);
    if constexpr (kUpper >= kEights) return lower;
    return largest_keys<kSigned>(
        lower, _mm512_mask_unpackhi_epi8(lowest, key_masks_[kUpper], low_bytes_[kHalf], bytes));
  }

  uint32_t extent_;
  uint32_t row_mask_;  // a bit for each byte of a row
  __m512i low_bytes_[2];
  __mmask64 key_masks_[kEights];
};

// The first `count` (1 .. kRows) of 32 indices.
inline void store_indices(int32_t* to, __m512i indices, uint32_t count) {
  const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << count) - 1);
  const __m512i lower = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(indices));
  const __m512i upper = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(indices, 1));
  _mm512_mask_storeu_epi32(to, static_cast<__mmask16>(mask), lower);
  _mm512_mask_storeu_epi32(to + 16, static_cast<__mmask16>(mask >> 16), upper);
}
inline void store_indices(int64_t* to, __m512i indices, uint32_t count) {
  const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << count) - 1);
  const __m128i parts[4] = {_mm512_castsi512_si128(indices), _mm512_extracti32x4_epi32(indices, 1),
                            _mm512_extracti32x4_epi32(indices, 2), _mm512_extracti32x4_epi32(indices, 3)};
  for (uint32_t i = 0; i < 4; ++i) {
    _mm512_mask_storeu_epi64(to + 8 * i, static_cast<__mmask8>(mask >> 8 * i),
                             _mm512_cvtepu16_epi64(parts[i]));
  }
}

template <bool kSigned, uint32_t kEights, typename Index>
void arg_max_short_rows(const ArgMaxArgs& args, ElementRange range) {
  const ShortRows<kSigned, kEights> rows(args);
  const uint8_t* input = static_cast<const uint8_t*>(args.input);
  Index* output = static_cast<Index*>(args.output);
  uint64_t at = range.begin;
  // The last rows of the input have no vector after their beginning.
  constexpr uint32_t kRead = kEights <= 2 ? 16 : 32;
  const uint64_t last = kRead / args.extent + 1;
  const uint64_t whole = args.outer > last ? args.outer - last : 0;
  const uint64_t end = whole < range.end ? whole : range.end;
  for (; at + kRows <= end; at += kRows) {
    store_indices(output + at, rows.template indices<true>(input + at * args.extent, 0), kRows);
  }
  for (; at < range.end; at += kRows) {
    const uint32_t count = range.end - at < kRows ? static_cast<uint32_t>(range.end - at) : kRows;
    const uint8_t* first = input + at * args.extent;
    store_indices(output + at, rows.template indices<false>(first, count - 1), count);
  }
}

template <uint32_t kEights>
void run_short_rows(const ArgMaxArgs& args, ElementRange range) {
  const bool is_signed = args.input_dtype == Dtype::kS8, is_narrow = args.output_dtype == Dtype::kS32;
  if (is_signed) {
    return is_narrow ? arg_max_short_rows<true, kEights, int32_t>(args, range)
                     : arg_max_short_rows<true, kEights, int64_t>(args, range);
  }
  return is_narrow ? arg_max_short_rows<false, kEights, int32_t>(args, range)
                   : arg_max_short_rows<false, kEights, int64_t>(args, range);
}

}  // namespace

void run(const ArgMaxArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.outer, begin, end);
  if (args.extent <= 8) return run_short_rows<1>(args, range);
  if (args.extent <= 16) return run_short_rows<2>(args, range);
  if (args.extent <= 24) return run_short_rows<3>(args, range);
  run_short_rows<4>(args, range);
}
#endif

}  // namespace qplan::arg_max_short_avx512vnni
