// uint8 rows times int8 weights in layout o16k4, requantised: out[p][o] = clamp(zero_point + requant(bias[o]
// + row_term[p] + sum_k rows[p][k] * weights[o][k])), under TFL2, TFL1 or F32E. The heart of convolution and
// of fully connected layers. Internal linkage only.
#ifndef QPLAN_KERNELS_NUMERIC_GEMM_AVX512VNNI_INL_
#define QPLAN_KERNELS_NUMERIC_GEMM_AVX512VNNI_INL_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/requantize_avx512vnni.inl"

namespace qplan {
namespace {

struct Gemm {
  const uint8_t* rows = nullptr;  // num_rows of them, 4 * num_k4 readable bytes each
  size_t row_stride = 0;          // bytes
  uint32_t num_rows = 0;
  uint32_t num_k4 = 0;              // groups of four products
  const int8_t* weights = nullptr;  // o16k4
  const int32_t* bias = nullptr;    // these four: one entry per channel, rounded up to 16
  const int32_t* multiplier = nullptr;
  const int32_t* shift = nullptr;
  const float* scale = nullptr;  // F32E, without multiplier and shift
  const float* float_scale = nullptr;
  const float* float_offset = nullptr;
  Contract contract = Contract::kTfl2;
  FloatForm float_form = FloatForm::kNone;
  // Added to every channel of a row (the weights' zero point); null: nothing.
  const int32_t* row_term = nullptr;
  uint32_t num_channels = 0;
  uint8_t* out = nullptr;  // out[p * out_stride + o]
  size_t out_stride = 0;   // bytes
  int32_t output_zero_point = 0;
  int32_t clamp_min = 0;
  int32_t clamp_max = 0;
};

// In assembly: GCC 12 moves the accumulators to and fro around the intrinsic.
inline void dot_u8s8_512(__m512i& sum, __m512i u8, __m512i s8) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(u8), "v"(s8));
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
  uint8_t* out = g.out + first_row * g.out_stride + first_channel;
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
      const auto mask32 = static_cast<__mmask32>(mask);
      _mm256_mask_storeu_epi8(out, mask32, _mm512_castsi512_si256(four));
      if (i + 2 <= kLast) {
        _mm256_mask_storeu_epi8(out + g.out_stride, mask32, _mm512_extracti64x4_epi64(four, 1));
      }
      out += 2 * g.out_stride;
    } else {
      const auto mask16 = static_cast<__mmask16>(mask);
      _mm_mask_storeu_epi8(out, mask16, _mm512_castsi512_si128(four));
      if (i + 1 <= kLast)
        _mm_mask_storeu_epi8(out + g.out_stride, mask16, _mm512_extracti32x4_epi32(four, 1));
      if (i + 2 <= kLast)
        _mm_mask_storeu_epi8(out + 2 * g.out_stride, mask16, _mm512_extracti32x4_epi32(four, 2));
      if (i + 3 <= kLast)
        _mm_mask_storeu_epi8(out + 3 * g.out_stride, mask16, _mm512_extracti32x4_epi32(four, 3));
      out += 4 * g.out_stride;
    }
  }
}

// kRows rows by kBlocks blocks of 16 channels. One epilogue a function: what depends on the contract is
// decided outside, and the sums stay in registers.
template <typename Epilogue, uint32_t kRows, uint32_t kBlocks>
inline void gemm_tile512(const Gemm& g, uint32_t first_row, uint32_t first_block) {
  __m512i sums[kRows * kBlocks];
  const size_t block_bytes = size_t{g.num_k4} * 64;
  const int8_t* weights = g.weights + first_block * block_bytes;
  const uint8_t* rows = g.rows + first_row * g.row_stride;
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
  for (uint32_t k = 0; k < g.num_k4; ++k) {
    __m512i w[kBlocks];
#pragma GCC unroll 16
    for (uint32_t b = 0; b < kBlocks; ++b)
      w[b] = _mm512_loadu_si512(weights + b * block_bytes + size_t{k} * 64);
#pragma GCC unroll 16
    for (uint32_t p = 0; p < kRows; ++p) {
      int32_t four;
      __builtin_memcpy(&four, rows + p * g.row_stride + size_t{k} * 4, 4);
      const __m512i u = _mm512_set1_epi32(four);
#pragma GCC unroll 16
      for (uint32_t b = 0; b < kBlocks; ++b) dot_u8s8_512(sums[p * kBlocks + b], u, w[b]);
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

template <typename Epilogue, uint32_t kBlocks>
inline void gemm_rows512(const Gemm& g, uint32_t first_block) {
  uint32_t p = 0;
  for (; p + 6 <= g.num_rows; p += 6) gemm_tile512<Epilogue, 6, kBlocks>(g, p, first_block);
  for (; p + 3 <= g.num_rows; p += 3) gemm_tile512<Epilogue, 3, kBlocks>(g, p, first_block);
  for (; p < g.num_rows; ++p) gemm_tile512<Epilogue, 1, kBlocks>(g, p, first_block);
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

template <typename Epilogue>
inline void gemm_all_blocks512(const Gemm& g, uint32_t first_block, uint32_t end_block) {
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

// Sum of count bytes.
inline uint32_t sum_bytes(const uint8_t* bytes, size_t count) {
  __m512i sum = _mm512_setzero_si512();
  for (size_t i = 0; i < count; i += 64) {
    const uint64_t left = count - i;
    const __mmask64 mask = left >= 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
    const __m512i v = _mm512_maskz_loadu_epi8(mask, bytes + i);
    sum = _mm512_add_epi64(sum, _mm512_sad_epu8(v, _mm512_setzero_si512()));
  }
  return static_cast<uint32_t>(_mm512_reduce_add_epi64(sum));
}

// to[i] = from[i] ^ flip: flip 0x80 turns int8 into uint8 plus 128.
inline void copy_flip(uint8_t* to, const uint8_t* from, size_t count, uint8_t flip) {
  const __m512i flips = _mm512_set1_epi8(static_cast<char>(flip));
  for (size_t i = 0; i < count; i += 64) {
    const uint64_t left = count - i;
    const __mmask64 mask = left >= 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
    const __m512i v = _mm512_maskz_loadu_epi8(mask, from + i);
    _mm512_mask_storeu_epi8(to + i, mask, _mm512_xor_si512(v, flips));
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
