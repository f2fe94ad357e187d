// What the vocabularies of x86 share: tails of byte vectors, moves of pixels, look-ups in tables and the
// largest byte by SSE4.1.
// Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_X86_BYTES_H_
#define QPLAN_KERNELS_SIMD_X86_BYTES_H_

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

// 16 pixels of 2 to 4 channels of a byte, between planes `stride` bytes apart and pixels side by side: each
// vector of the one is put together from all those of the other.
template <int kChannels, bool kToPixels>
class PixelMover {
 public:
  static constexpr uint32_t kPixels = 16;

  PixelMover() {
    for (int o = 0; o < kChannels; ++o) {
      alignas(16) int8_t from[kChannels][16];
      for (int byte = 0; byte < 16; ++byte) {
        // The byte of pixel p and channel c is number p * channels + c among pixels, p of plane c.
        const int at = o * 16 + byte;
        const int place = kToPixels ? at % kChannels * 16 + at / kChannels : byte * kChannels + o;
        for (int i = 0; i < kChannels; ++i) {
          from[i][byte] = static_cast<int8_t>(place / 16 == i ? place % 16 : -1);
        }
      }
      for (int i = 0; i < kChannels; ++i) places_[o][i] = _mm_load_si128(reinterpret_cast<__m128i*>(from[i]));
    }
  }

  void move(const uint8_t* from, uint8_t* to, uint64_t stride) const {
    const uint64_t from_stride = kToPixels ? stride : 16, to_stride = kToPixels ? 16 : stride;
    __m128i in[kChannels];
    for (int i = 0; i < kChannels; ++i) {
      in[i] =
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + static_cast<uint64_t>(i) * from_stride));
    }
    for (int o = 0; o < kChannels; ++o) {
      __m128i out = _mm_shuffle_epi8(in[0], places_[o][0]);
      for (int i = 1; i < kChannels; ++i) out = _mm_or_si128(out, _mm_shuffle_epi8(in[i], places_[o][i]));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + static_cast<uint64_t>(o) * to_stride), out);
    }
  }

 private:
  // places_[o][i] says where in input vector i each byte of output vector o is; -1 means that it is in
  // another one.
  __m128i places_[kChannels][kChannels];
};

// A table of 256 bytes, by vectors Row::Vec: the low four bits of an index look into all sixteen rows, the
// high four choose between pairs of rows, of pairs, and so on. Row: load(16 bytes), low_bits(x), shuffle(row,
// low), and choose<kBit>(lower, upper, x), which takes upper where that bit of x is set.
template <typename Row>
class RowTable {
  using Vec = typename Row::Vec;

 public:
  explicit RowTable(const uint8_t* table) {
    for (int i = 0; i < 16; ++i) rows_[i] = Row::load(table + 16 * i);
  }
  Vec look_up(Vec x) const { return among<0, 4>(Row::low_bits(x), x); }

 private:
  // Among the rows [kFirst, kFirst + 2^kLevels).
  template <int kFirst, int kLevels>
  Vec among(Vec low, Vec x) const {
    if constexpr (kLevels == 0) {
      return Row::shuffle(rows_[kFirst], low);
    } else {
      constexpr int kHalf = 1 << (kLevels - 1);
      const Vec lower = among<kFirst, kLevels - 1>(low, x);
      const Vec upper = among<kFirst + kHalf, kLevels - 1>(low, x);
      return Row::template choose<3 + kLevels>(lower, upper, x);
    }
  }

  Vec rows_[16];
};

// The largest byte of v, in each byte.
inline __m128i largest_byte_in_all(__m128i v) {
  const __m128i all = _mm_set1_epi8(-1);
  const __m128i pairs = _mm_max_epu8(v, _mm_srli_epi16(v, 8));
  // The least of eight 16-bit numbers: of the complements, with 255 in their high bytes gone.
  const __m128i low = _mm_andnot_si128(pairs, _mm_srli_epi16(all, 8));
  return _mm_shuffle_epi8(_mm_xor_si128(_mm_minpos_epu16(low), all), _mm_setzero_si128());
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_X86_BYTES_H_
