// kernels/numeric/gemm.h with one vpdpbusd for 64 products. Internal linkage only.
#ifndef QPLAN_KERNELS_NUMERIC_GEMM_AVX512VNNI_INL_
#define QPLAN_KERNELS_NUMERIC_GEMM_AVX512VNNI_INL_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/numeric/gemm_half_avx512vnni.inl"
#include "kernels/numeric/requantize_avx512vnni.inl"
#include "kernels/numeric/row_sums_avx512vnni.inl"

namespace qplan {
namespace {

// `count` rows of 32 or 16 channels; mask is for rows whose channels end earlier.
__attribute__((always_inline)) inline void store_rows256(uint8_t* out, size_t stride, bool whole,
                                                         __mmask32 mask, __m512i rows, uint32_t count) {
  const __m256i low = _mm512_castsi512_si256(rows), high = _mm512_extracti64x4_epi64(rows, 1);
  if (whole) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), low);
    if (count > 1) _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + stride), high);
  } else {
    _mm256_mask_storeu_epi8(out, mask, low);
    if (count > 1) _mm256_mask_storeu_epi8(out + stride, mask, high);
  }
}

__attribute__((always_inline)) inline void store_row128(uint8_t* out, bool whole, __mmask16 mask,
                                                        __m128i row) {
  if (whole) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), row);
  } else {
    _mm_mask_storeu_epi8(out, mask, row);
  }
}

__attribute__((always_inline)) inline void store_rows128(uint8_t* out, size_t stride, bool whole,
                                                         __mmask16 mask, __m512i rows, uint32_t count) {
  store_row128(out, whole, mask, _mm512_castsi512_si128(rows));
  if (count > 1) store_row128(out + stride, whole, mask, _mm512_extracti32x4_epi32(rows, 1));
  if (count > 2) store_row128(out + 2 * stride, whole, mask, _mm512_extracti32x4_epi32(rows, 2));
  if (count > 3) store_row128(out + 3 * stride, whole, mask, _mm512_extracti32x4_epi32(rows, 3));
}

// Stores the outputs of a tile, four vectors at a time: one row of 64 channels, two of 32 or four of 16.
template <uint32_t kRows, uint32_t kBlocks>
__attribute__((always_inline)) inline void store_tile512(const Gemm& g,
                                                         const __m512i (&outputs)[kRows * kBlocks],
                                                         uint32_t first_row, uint32_t first_channel) {
  constexpr uint32_t kLast = kRows * kBlocks - 1;
  const Bytes512 bytes(g);
  const uint32_t left = g.num_channels - first_channel;
  const __mmask64 mask = mask64(left < kBlocks * 16 ? left : kBlocks * 16);
  const bool whole = left >= kBlocks * 16;
  uint8_t* out = g.first_out + first_row * g.out_stride + first_channel;
#pragma GCC unroll 16
  for (uint32_t i = 0; i <= kLast; i += 4) {
    const __m512i four =
        bytes.pack(outputs[i], outputs[i + 1 < kLast ? i + 1 : kLast], outputs[i + 2 < kLast ? i + 2 : kLast],
                   outputs[i + 3 < kLast ? i + 3 : kLast]);
    if (kBlocks == 4) {
      if (whole) {
        _mm512_storeu_si512(out, four);
      } else {
        _mm512_mask_storeu_epi8(out, mask, four);
      }
      out += g.out_stride;
    } else if (kBlocks == 2) {
      store_rows256(out, g.out_stride, whole, static_cast<__mmask32>(mask), four, kRows - i / 2 < 2 ? 1 : 2);
      out += 2 * g.out_stride;
    } else {
      store_rows128(out, g.out_stride, whole, static_cast<__mmask16>(mask), four,
                    kRows - i < 4 ? kRows - i : 4);
      out += 4 * g.out_stride;
    }
  }
}

// Where one tap of a tile's rows begins. Rows at one distance from each other need fewer registers.
template <uint32_t kRows>
struct EvenRows512 {
  const uint8_t* first;
  size_t stride;
  EvenRows512(const Gemm& g, uint32_t row, uint32_t tap)
      : first(g.first_row + row * g.row_stride + g.tap_offsets[tap]), stride(g.row_stride) {}
  const uint8_t* operator[](uint32_t p) const { return first + p * stride; }
};

template <uint32_t kRows>
struct ListedRows512 {
  const uint8_t* rows[kRows];
  ListedRows512(const Gemm& g, uint32_t row, uint32_t tap) {
#pragma GCC unroll 16
    for (uint32_t p = 0; p < kRows; ++p) rows[p] = g.rows[row + p] + g.tap_offsets[tap];
  }
  const uint8_t* operator[](uint32_t p) const { return rows[p]; }
};

// kRows rows by kBlocks blocks of 16 channels. One epilogue a function: what depends on the contract is
// decided outside. GCC keeps arrays in memory unless the loops over them are unrolled.
template <typename Epilogue, template <uint32_t> class Rows, bool kFlip, uint32_t kRows, uint32_t kBlocks>
inline void gemm_tile512(const Gemm& g, uint32_t first_row, uint32_t first_block) {
  __m512i sums[kRows * kBlocks];
  const size_t num_k4 = tap_k4(g), block_bytes = g.num_taps * num_k4 * 64;
  const int8_t* weights = g.weights + first_block * block_bytes;
  const uint32_t first_channel = first_block * 16;
#pragma GCC unroll 16
  for (uint32_t b = 0; b < kBlocks; ++b) {
    const __m512i bias = _mm512_loadu_si512(g.bias + first_channel + b * 16);
#pragma GCC unroll 16
    for (uint32_t p = 0; p < kRows; ++p) sums[p * kBlocks + b] = bias;
  }
  if (g.row_term != nullptr) {
#pragma GCC unroll 16
    for (uint32_t p = 0; p < kRows; ++p) {
      const __m512i term = _mm512_set1_epi32(g.row_term[first_row + p]);
#pragma GCC unroll 16
      for (uint32_t b = 0; b < kBlocks; ++b)
        sums[p * kBlocks + b] = _mm512_add_epi32(sums[p * kBlocks + b], term);
    }
  }
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(g.flip));
  for (uint32_t t = 0; t < g.num_taps; ++t) {
    const Rows<kRows> rows(g, first_row, t);
    for (size_t k = 0; k < num_k4; ++k, weights += 64) {
      __m512i w[kBlocks];
#pragma GCC unroll 16
      for (uint32_t b = 0; b < kBlocks; ++b) w[b] = _mm512_loadu_si512(weights + b * block_bytes);
#pragma GCC unroll 16
      for (uint32_t p = 0; p < kRows; ++p) {
        int32_t four;
        __builtin_memcpy(&four, rows[p] + k * 4, 4);
        __m512i u = _mm512_set1_epi32(four);
        if (kFlip) u = _mm512_xor_si512(u, flip);
#pragma GCC unroll 16
        for (uint32_t b = 0; b < kBlocks; ++b) dot_u8s8_512(sums[p * kBlocks + b], u, w[b]);
      }
    }
  }
#pragma GCC unroll 16
  for (uint32_t b = 0; b < kBlocks; ++b) {
    const Epilogue epilogue(g, first_channel + b * 16);
#pragma GCC unroll 16
    for (uint32_t p = 0; p < kRows; ++p) sums[p * kBlocks + b] = epilogue.outputs(sums[p * kBlocks + b]);
  }
  store_tile512<kRows, kBlocks>(g, sums, first_row, first_channel);
}

// All rows, of which there are at least kRows: the last tile may begin among rows that are done.
template <typename Epilogue, template <uint32_t> class Rows, bool kFlip, uint32_t kRows, uint32_t kBlocks>
inline void gemm_full_tiles512(const Gemm& g, uint32_t first_block) {
  for (uint32_t p = 0; p < g.num_rows; p += kRows) {
    const uint32_t row = p + kRows <= g.num_rows ? p : g.num_rows - kRows;
    gemm_tile512<Epilogue, Rows, kFlip, kRows, kBlocks>(g, row, first_block);
  }
}

// One row alone waits for its own sums, and those of six of one block hardly suffice.
template <typename Epilogue, template <uint32_t> class Rows, bool kFlip, uint32_t kBlocks>
inline void gemm_tiles512(const Gemm& g, uint32_t first_block) {
  if (kBlocks == 1 && g.num_rows >= 12) {
    gemm_full_tiles512<Epilogue, Rows, kFlip, kBlocks == 1 ? 12 : 6, kBlocks>(g, first_block);
  } else if (g.num_rows >= 6) {
    gemm_full_tiles512<Epilogue, Rows, kFlip, 6, kBlocks>(g, first_block);
  } else {
    for (uint32_t p = 0; p < g.num_rows; ++p) {
      gemm_tile512<Epilogue, Rows, kFlip, 1, kBlocks>(g, p, first_block);
    }
  }
}

// Listed rows are those of a band, which holds uint8.
template <typename Epilogue, uint32_t kBlocks>
inline void gemm_rows512(const Gemm& g, uint32_t first_block) {
  if (g.rows != nullptr) {
    gemm_tiles512<Epilogue, ListedRows512, false, kBlocks>(g, first_block);
  } else if (Epilogue::kIsFloat && g.flip == 0) {
    gemm_tiles512<Epilogue, EvenRows512, false, kBlocks>(g, first_block);
  } else {
    gemm_tiles512<Epilogue, EvenRows512, true, kBlocks>(g, first_block);
  }
}

// Channels [b, b + kBlocks) in integers. TFL1 is rare: one small tile.
template <uint32_t kBlocks>
inline void gemm_integer_rows512(const Gemm& g, uint32_t b) {
  if (g.contract == Contract::kTfl2) return gemm_rows512<Tfl2Epilogue512, kBlocks>(g, b);
  for (uint32_t end = b + kBlocks; b < end; ++b) gemm_rows512<Tfl1Epilogue512, 1>(g, b);
}

template <typename Epilogue, uint32_t kBlocks>
inline uint32_t gemm_blocks512(const Gemm& g, uint32_t b, uint32_t end_block) {
  for (; b + kBlocks <= end_block; b += kBlocks) {
    const bool in_float = g.contract == Contract::kF32e ||
                          (g.float_form != FloatForm::kNone && groups_have_form(g, b, kBlocks));
    if (in_float) {
      gemm_rows512<Epilogue, kBlocks>(g, b);
    } else {
      gemm_integer_rows512<kBlocks>(g, b);
    }
  }
  return b;
}

// The last block as a half, if it is one, in float: whether it was done.
template <typename Epilogue>
inline bool gemm_half_block512(const Gemm& g, uint32_t block) {
  if (g.num_channels - block * 16 > kHalfBlock || g.num_rows < 16) return false;
  if (g.contract != Contract::kF32e && (g.float_form == FloatForm::kNone || !groups_have_form(g, block, 1))) {
    return false;
  }
  if (g.rows != nullptr) {
    gemm_half_tiles512<Epilogue, ListedRows512, false, 8>(g, block);
  } else if (g.flip == 0) {
    gemm_half_tiles512<Epilogue, EvenRows512, false, 16>(g, block);
  } else {
    gemm_half_tiles512<Epilogue, EvenRows512, true, 16>(g, block);
  }
  return true;
}

template <typename Epilogue>
inline void gemm_all_blocks512(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  if (first_block < end_block && gemm_half_block512<Epilogue>(g, end_block - 1)) --end_block;
  uint32_t b = gemm_blocks512<Epilogue, 4>(g, first_block, end_block);
  b = gemm_blocks512<Epilogue, 2>(g, b, end_block);
  gemm_blocks512<Epilogue, 1>(g, b, end_block);
}

// Channels of blocks [first_block, end_block).
inline void gemm(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  if (g.contract == Contract::kF32e) {
    gemm_all_blocks512<F32eEpilogue512>(g, first_block, end_block);
  } else if (g.float_form == FloatForm::kPlain) {
    gemm_all_blocks512<PlainEpilogue512>(g, first_block, end_block);
  } else {
    gemm_all_blocks512<SignedEpilogue512>(g, first_block, end_block);
  }
}

// to[i] = from[i] ^ flip; may write up to 63 bytes more than that.
inline void copy_run(uint8_t* to, const uint8_t* from, size_t count, uint8_t flip) {
  const __m512i flips = _mm512_set1_epi8(static_cast<char>(flip));
  for (size_t i = 0; i < count; i += 64) {
    const uint64_t left = count - i;
    const __m512i v =
        _mm512_maskz_loadu_epi8(mask64(left >= 64 ? 64 : static_cast<uint32_t>(left)), from + i);
    _mm512_storeu_si512(to + i, _mm512_xor_si512(v, flips));
  }
}

inline void fill(uint8_t* to, uint8_t value, size_t count) {
  const __m512i values = _mm512_set1_epi8(static_cast<char>(value));
  for (size_t i = 0; i < count; i += 64) {
    const uint64_t left = count - i;
    _mm512_mask_storeu_epi8(to + i, left >= 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1, values);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_NUMERIC_GEMM_AVX512VNNI_INL_
