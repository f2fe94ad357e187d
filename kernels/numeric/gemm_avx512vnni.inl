// uint8 rows times int8 weights in layout o16k4, requantised: out[p][o] = clamp(zero_point + requant(bias[o]
// + row_term[p] + sum_k rows[p][k] * weights[o][k])), under TFL2 or F32E. The heart of convolution and of
// fully connected layers. Internal linkage only.
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
  const float* scale = nullptr;  // not null: F32E, without multiplier and shift
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

// Requantises and stores the sums of a tile. Inlined by force: the sums stay in registers.
template <typename Epilogue, uint32_t kRows, uint32_t kBlocks>
__attribute__((always_inline)) inline void store_tile512(const Gemm& g, const __m512i (&sums)[kRows][kBlocks],
                                                         uint32_t first_row, uint32_t first_channel) {
  for (uint32_t b = 0; b < kBlocks; ++b) {
    const uint32_t channel = first_channel + b * 16;
    const Epilogue epilogue(g, channel);
    const __mmask16 mask = mask16(g.num_channels - channel);
    for (uint32_t p = 0; p < kRows; ++p) {
      __m512i sum = sums[p][b];
      if (g.row_term != nullptr) sum = _mm512_add_epi32(sum, _mm512_set1_epi32(g.row_term[first_row + p]));
      uint8_t* out = g.out + (first_row + p) * g.out_stride + channel;
      _mm_mask_storeu_epi8(out, mask, epilogue.bytes(sum));
    }
  }
}

// kRows rows by kBlocks blocks of 16 channels.
template <uint32_t kRows, uint32_t kBlocks>
inline void gemm_tile512(const Gemm& g, uint32_t first_row, uint32_t first_block) {
  __m512i sums[kRows][kBlocks];
  const size_t block_bytes = size_t{g.num_k4} * 64;
  const int8_t* weights = g.weights + first_block * block_bytes;
  const uint8_t* rows = g.rows + first_row * g.row_stride;
  const uint32_t first_channel = first_block * 16;
  for (uint32_t b = 0; b < kBlocks; ++b) {
    const __m512i bias = _mm512_loadu_si512(g.bias + first_channel + b * 16);
    for (uint32_t p = 0; p < kRows; ++p) sums[p][b] = bias;
  }
  for (uint32_t k = 0; k < g.num_k4; ++k) {
    __m512i w[kBlocks];
    for (uint32_t b = 0; b < kBlocks; ++b)
      w[b] = _mm512_loadu_si512(weights + b * block_bytes + size_t{k} * 64);
    for (uint32_t p = 0; p < kRows; ++p) {
      int32_t four;
      __builtin_memcpy(&four, rows + p * g.row_stride + size_t{k} * 4, 4);
      const __m512i u = _mm512_set1_epi32(four);
      for (uint32_t b = 0; b < kBlocks; ++b) dot_u8s8_512(sums[p][b], u, w[b]);
    }
  }
  if (g.scale != nullptr) {
    store_tile512<F32eEpilogue512>(g, sums, first_row, first_channel);
  } else {
    store_tile512<Tfl2Epilogue512>(g, sums, first_row, first_channel);
  }
}

template <uint32_t kBlocks>
inline void gemm_rows512(const Gemm& g, uint32_t first_block) {
  uint32_t p = 0;
  for (; p + 6 <= g.num_rows; p += 6) gemm_tile512<6, kBlocks>(g, p, first_block);
  for (; p + 3 <= g.num_rows; p += 3) gemm_tile512<3, kBlocks>(g, p, first_block);
  for (; p < g.num_rows; ++p) gemm_tile512<1, kBlocks>(g, p, first_block);
}

// Channels of blocks [first_block, end_block).
inline void gemm(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  uint32_t b = first_block;
  for (; b + 4 <= end_block; b += 4) gemm_rows512<4>(g, b);
  for (; b + 2 <= end_block; b += 2) gemm_rows512<2>(g, b);
  for (; b < end_block; ++b) gemm_rows512<1>(g, b);
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
