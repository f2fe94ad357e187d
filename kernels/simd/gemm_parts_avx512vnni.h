// What tiles of a product (kernels/numeric/gemm.h) are made of, with AVX-512: their rows, sums and stores.
// GCC keeps arrays of vectors in memory unless the loops over them are unrolled. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_GEMM_PARTS_AVX512VNNI_H_
#define QPLAN_KERNELS_SIMD_GEMM_PARTS_AVX512VNNI_H_

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/avx512vnni.h"
#include "kernels/simd/rows_avx512vnni.h"

namespace qplan {
namespace {

// The bytes of a block's weights.
inline size_t product_bytes(const Gemm& g) { return g.num_taps * size_t{tap_k4(g)} * 64; }

// What a loop keeps in registers beyond the vectors is read from memory again after this. GCC would keep as
// much of it as it can in registers of vectors; it gets there and back through the queue of the products,
// where the addresses of the next ones wait for it.
__attribute__((always_inline)) inline void read_again() { __asm__ volatile("" ::: "memory"); }

// Whether one of num_blocks blocks has a weight with a rest.
inline bool has_rests(const Gemm& g, uint32_t first_block, uint32_t num_blocks) {
  uint32_t r = 0;
  while (r < g.num_rests && g.rests[r].block - first_block >= num_blocks) ++r;
  return r < g.num_rests;
}

// Groups of four bytes that kBlocks blocks from first_block on have products of, run by run: those of each
// tap, and those of rests of weights. It begins with the first tap.
template <uint32_t kBlocks, bool kHasRests = true>
struct GroupRuns {
  const int8_t* weights;  // of the first block; those of the next one are block_bytes further
  size_t block_bytes;
  size_t at, end;  // of this run, from a row's start
  uint32_t next;   // of taps, then of rests
  uint32_t count;

  GroupRuns(const Gemm& g, uint32_t first_block)
      : weights(g.weights + first_block * product_bytes(g)),
        block_bytes(product_bytes(g)),
        at(g.tap_offsets[0]),
        end(at + tap_k4(g) * size_t{4}),
        next(1),
        count(g.num_taps + (kHasRests ? g.num_rests : 0)) {
    while (kHasRests && count > g.num_taps && g.rests[count - 1 - g.num_taps].block - first_block >= kBlocks)
      --count;
  }

  // To the next run; false where there is no more.
  __attribute__((always_inline)) bool advance(const Gemm& g, uint32_t first_block) {
    for (; next != count; ++next) {
      if (!kHasRests || next < g.num_taps) {
        at = g.tap_offsets[next++];
        end = at + tap_k4(g) * size_t{4};
        return true;
      }
      const GemmRest& rest = g.rests[next - g.num_taps];
      const uint32_t block = rest.block - first_block;
      if (block >= kBlocks) continue;
      weights = rest.weights_from(block);
      block_bytes = 64;
      at = rest.at;
      end = at + 4;
      ++next;
      return true;
    }
    return false;
  }
};

// Where a tile's rows begin. Rows at one distance from each other need fewer registers.
template <uint32_t kRows>
struct EvenRows512 {
  static constexpr bool kAreEven = true;
  const uint8_t* first;
  size_t stride;
  EvenRows512(const uint8_t* first_row, size_t row_stride) : first(first_row), stride(row_stride) {}
  EvenRows512(const Gemm& g, uint32_t row) : EvenRows512(g.first_row + row * g.row_stride, g.row_stride) {}
  const uint8_t* operator[](uint32_t p) const { return first + p * stride; }
};

template <uint32_t kRows>
struct ListedRows512 {
  static constexpr bool kAreEven = false;
  const uint8_t* rows[kRows];
  ListedRows512(const Gemm& g, uint32_t row) {
    const uint8_t* const* list = g.rows + row;
    __asm__("" : "+r"(list));  // else GCC keeps the distance of each from g.rows
#pragma GCC unroll 16
    for (uint32_t p = 0; p < kRows; ++p) rows[p] = list[p];
  }
  const uint8_t* operator[](uint32_t p) const { return rows[p]; }
};

// Listed rows of which a tile's are at one distance from each other.
template <uint32_t kRows>
struct RunRows512 {
  static constexpr bool kAreEven = true;
  const uint8_t* first;
  size_t stride;
  RunRows512(const Gemm& g, uint32_t row) : first(g.rows[row]), stride(g.row_stride) {}
  const uint8_t* operator[](uint32_t p) const { return first + p * stride; }
};

// The sums of a tile before its first product: biases and what the rows add to all channels.
template <uint32_t kRows, uint32_t kBlocks>
__attribute__((always_inline)) inline void begin_sums512(const Gemm& g, uint32_t first_row,
                                                         uint32_t first_channel,
                                                         __m512i (&sums)[kRows * kBlocks]) {
#pragma GCC unroll 16
  for (uint32_t b = 0; b < kBlocks; ++b) {
    const __m512i bias = _mm512_loadu_si512(g.bias + first_channel + b * 16);
#pragma GCC unroll 16
    for (uint32_t p = 0; p < kRows; ++p) sums[p * kBlocks + b] = bias;
  }
  if (g.row_term == nullptr) return;
#pragma GCC unroll 16
  for (uint32_t p = 0; p < kRows; ++p) {
    const __m512i term = _mm512_set1_epi32(g.row_term[first_row + p]);
#pragma GCC unroll 16
    for (uint32_t b = 0; b < kBlocks; ++b) {
      sums[p * kBlocks + b] = _mm512_add_epi32(sums[p * kBlocks + b], term);
    }
  }
}

// Where the bytes of each row are, in order. Three even rows share an address: one each would need more
// registers than there are, and each from the one before it an instruction.
template <typename Rows>
class RowCursor {
 public:
  __attribute__((always_inline)) RowCursor(const Rows& rows, size_t at) : rows_(rows), at_(at) {
    if constexpr (Rows::kAreEven) from_ = rows.first + at;
  }
  __attribute__((always_inline)) const uint8_t* next(uint32_t p) {
    if constexpr (Rows::kAreEven) {
      if (p > 0 && p % 3 == 0) from_ += 3 * rows_.stride;
      return from_ + p % 3 * rows_.stride;
    } else {
      return rows_[p] + at_;
    }
  }

 private:
  const Rows& rows_;
  const uint8_t* from_ = nullptr;
  size_t at_;
};

// Adds the products of the four bytes of each row that are `at` bytes after its start.
template <bool kSignBias, uint32_t kRows, uint32_t kBlocks, typename Rows>
__attribute__((always_inline)) inline void add_products512(const Rows& rows, size_t at, const int8_t* weights,
                                                           size_t block_bytes, __m512i sign_bias,
                                                           __m512i (&sums)[kRows * kBlocks]) {
  __m512i w[kBlocks];
#pragma GCC unroll 16
  for (uint32_t b = 0; b < kBlocks; ++b) w[b] = _mm512_loadu_si512(weights + b * block_bytes);
  RowCursor<Rows> cursor(rows, at);
#pragma GCC unroll 16
  for (uint32_t p = 0; p < kRows; ++p) {
    int32_t four;
    __builtin_memcpy(&four, cursor.next(p), 4);
    __m512i u = _mm512_set1_epi32(four);
    if (kSignBias) u = _mm512_xor_si512(u, sign_bias);
#pragma GCC unroll 16
    for (uint32_t b = 0; b < kBlocks; ++b) dot_u8s8_512(sums[p * kBlocks + b], u, w[b]);
  }
}

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

// What bytes sums with a residual become: their zero point is in the offset.
struct SumBytes {
  int32_t output_zero_point, clamp_min, clamp_max;
};

// Where outputs of channels first_channel .. first_channel + kBlocks * 16 - 1 go, of which the last may be no
// channels.
template <uint32_t kBlocks>
struct TileStore512 {
  OutputBytes bytes;
  uint8_t* first;
  size_t stride;
  __mmask64 mask;
  bool whole, is_contiguous;

  TileStore512(const Gemm& g, uint32_t first_channel)
      : bytes(g.residual == nullptr ? OutputBytes(g)
                                    : OutputBytes(SumBytes{0, g.residual->clamp_min, g.residual->clamp_max})),
        first(g.first_out + first_channel),
        stride(g.out_stride),
        mask(mask64(g.num_channels - first_channel)),
        whole(g.num_channels - first_channel >= kBlocks * 16),
        is_contiguous(whole && stride == kBlocks * 16) {}

  // Four vectors, as many rows: one row of 64 channels, two of 32 or four of 16, of which `count` are wanted.
  __attribute__((always_inline)) void store_four(uint8_t* out, const __m512i (&four)[4],
                                                 uint32_t count) const {
    const __m512i packed = bytes.pack(four[0], four[1], four[2], four[3]);
    if (is_contiguous && count * kBlocks == 4) {
      _mm512_storeu_si512(out, packed);
    } else if (kBlocks == 4) {
      if (whole) {
        _mm512_storeu_si512(out, packed);
      } else {
        _mm512_mask_storeu_epi8(out, mask, packed);
      }
    } else if (kBlocks == 2) {
      store_rows256(out, stride, whole, static_cast<__mmask32>(mask), packed, count);
    } else {
      store_rows128(out, stride, whole, static_cast<__mmask16>(mask), packed, count);
    }
  }

  template <uint32_t kRows>
  __attribute__((always_inline)) void store(const __m512i (&outputs)[kRows * kBlocks],
                                            uint32_t first_row) const {
    constexpr uint32_t kLast = kRows * kBlocks - 1, kAtOnce = 4 / kBlocks;
    uint8_t* out = first + first_row * stride;
#pragma GCC unroll 16
    for (uint32_t i = 0; i <= kLast; i += 4, out += kAtOnce * stride) {
      const __m512i four[4] = {outputs[i], outputs[i + 1 < kLast ? i + 1 : kLast],
                               outputs[i + 2 < kLast ? i + 2 : kLast],
                               outputs[i + 3 < kLast ? i + 3 : kLast]};
      store_four(out, four, kRows - i / kBlocks < kAtOnce ? kRows - i / kBlocks : kAtOnce);
    }
  }
};

}  // namespace

// Sums with a residual (kernels/numeric/gemm.h) of a tile's outputs before they are bytes: an add of its own
// would read the outputs again, and make of them what they were here. Internal linkage only.

namespace {

// Only a file that defines this has the code for it in its tiles.
#if defined(QPLAN_PRODUCT_ADDS_RESIDUAL)
constexpr bool kProductAddsResidual = true;
#else
constexpr bool kProductAddsResidual = false;
#endif

// A residual's bytes as 32-bit integers.
template <bool kSigned>
__attribute__((always_inline)) inline __m512i widen512(__m128i bytes) {
  return kSigned ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes);
}

// fma(a, scale1, fma(b, scale2, offset)), where the residual is a or b.
template <bool kSigned, bool kIsA>
class ResidualSum512 {
 public:
  explicit ResidualSum512(const Gemm& g)
      : output_(set_output(g.output_zero_point, g.clamp_min, g.clamp_max)),
        scale1_(_mm512_set1_ps(g.residual->scale1)),
        scale2_(_mm512_set1_ps(g.residual->scale2)),
        offset_(_mm512_set1_ps(g.residual->offset)) {}

  // The sum of 16 outputs without zero point and clamp.
  __attribute__((always_inline)) __m512i sums(__m512i v, __m128i residual_bytes) const {
    const __m512i clamped = _mm512_min_epi32(_mm512_max_epi32(v, output_.clamp_min), output_.clamp_max);
    const __m512 output = _mm512_cvtepi32_ps(_mm512_add_epi32(clamped, output_.zero_point));
    const __m512 residual = _mm512_cvtepi32_ps(widen512<kSigned>(residual_bytes));
    const __m512 a = kIsA ? residual : output, b = kIsA ? output : residual;
    return _mm512_cvtps_epi32(_mm512_fmadd_ps(a, scale1_, _mm512_fmadd_ps(b, scale2_, offset_)));
  }

 private:
  Output output_;
  __m512 scale1_, scale2_, offset_;
};

// Stores the sums of a tile's outputs, num_rows rows of kBlocks vectors of 16 channels, with the residual.
template <uint32_t kBlocks, bool kSigned, bool kIsA>
__attribute__((noinline)) void store_sums512(const Gemm& g, const __m512i* outputs, uint32_t num_rows,
                                             uint32_t first_row, uint32_t first_channel) {
  const ResidualSum512<kSigned, kIsA> sum(g);
  const TileStore512<kBlocks> store(g, first_channel);
  const uint8_t* residual = g.residual->first + first_row * g.out_stride + first_channel;
  uint8_t* out = store.first + first_row * store.stride;
  for (uint32_t row = 0; row < num_rows; row += 4 / kBlocks) {
    const uint32_t count = num_rows - row < 4 / kBlocks ? num_rows - row : 4 / kBlocks;
    __m512i sums[4];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t p = i / kBlocks < count ? i / kBlocks : count - 1, b = i % kBlocks;
      const uint8_t* at = residual + p * g.out_stride + b * 16;
      const __m128i bytes = store.whole
                                ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(at))
                                : _mm_maskz_loadu_epi8(static_cast<__mmask16>(store.mask >> (b * 16)), at);
      sums[i] = sum.sums(outputs[(row + p) * kBlocks + b], bytes);
    }
    store.store_four(out, sums, count);
    residual += count * g.out_stride;
    out += count * store.stride;
  }
}

// The same of outputs in registers.
template <uint32_t kRows, uint32_t kBlocks>
__attribute__((always_inline)) inline void store_sums512(const Gemm& g,
                                                         const __m512i (&outputs)[kRows * kBlocks],
                                                         uint32_t first_row, uint32_t first_channel) {
  __m512i in_memory[kRows * kBlocks];
#pragma GCC unroll 32
  for (uint32_t i = 0; i < kRows * kBlocks; ++i) in_memory[i] = outputs[i];
  if (g.residual->is_signed) {
    g.residual->is_a ? store_sums512<kBlocks, true, true>(g, in_memory, kRows, first_row, first_channel)
                     : store_sums512<kBlocks, true, false>(g, in_memory, kRows, first_row, first_channel);
  } else {
    g.residual->is_a ? store_sums512<kBlocks, false, true>(g, in_memory, kRows, first_row, first_channel)
                     : store_sums512<kBlocks, false, false>(g, in_memory, kRows, first_row, first_channel);
  }
}

}  // namespace

// One row of a product (kernels/numeric/gemm.h), as of fully connected layers: the weights are read once, and
// what takes time is waiting, for them and for sums. Internal linkage only.

namespace {

// Blocks of 16 channels of a tile of one row.
constexpr uint32_t kRowBlocks = 8;

// Blocks [first_block, first_block + kBlocks) of one row. Where they are few, neighbouring groups of four
// bytes have sums of their own.
template <typename Epilogue, template <uint32_t> class Rows, bool kSignBias, uint32_t kBlocks>
__attribute__((noinline)) void gemm_row512(const Gemm& g, uint32_t row, uint32_t first_block) {
  constexpr uint32_t kParts = kBlocks <= 4 ? 2 : 1;
  GroupRuns<kBlocks> runs(g, first_block);
  const uint32_t first_channel = first_block * 16;
  const __m512i sign_bias = _mm512_set1_epi8(static_cast<char>(g.sign_bias));
  const Rows<1> rows(g, row);
  __m512i sums[kBlocks], others[kBlocks];
  begin_sums512<1, kBlocks>(g, row, first_channel, sums);
#pragma GCC unroll 8
  for (uint32_t b = 0; b < kBlocks; ++b) others[b] = _mm512_setzero_si512();
  do {
    const size_t block_bytes = runs.block_bytes, end = runs.end;
    size_t at = runs.at;
    const int8_t* weights = runs.weights;
    for (; at + kParts * 4 <= end; at += kParts * 4, weights += kParts * 64) {
      add_products512<kSignBias, 1, kBlocks>(rows, at, weights, block_bytes, sign_bias, sums);
      if (kParts == 2) {
        add_products512<kSignBias, 1, kBlocks>(rows, at + 4, weights + 64, block_bytes, sign_bias, others);
      }
    }
    if (at < end) {
      add_products512<kSignBias, 1, kBlocks>(rows, at, weights, block_bytes, sign_bias, sums);
      weights += 64;
    }
    runs.weights = weights;
  } while (runs.advance(g, first_block));
#pragma GCC unroll 8
  for (uint32_t b = 0; b < kBlocks; ++b) {
    if (kParts == 2) sums[b] = _mm512_add_epi32(sums[b], others[b]);
    sums[b] = Epilogue(g, first_channel + b * 16).outputs(sums[b]);
  }
  constexpr uint32_t kStored = kBlocks < 4 ? kBlocks : 4;
#pragma GCC unroll 2
  for (uint32_t b = 0; b < kBlocks; b += kStored) {
    __m512i stored[kStored];
#pragma GCC unroll 4
    for (uint32_t i = 0; i < kStored; ++i) stored[i] = sums[b + i];
    if (kProductAddsResidual && g.residual != nullptr) {
      store_sums512<1, kStored>(g, stored, row, first_channel + b * 16);
    } else {
      TileStore512<kStored>(g, first_channel + b * 16).template store<1>(stored, row);
    }
  }
}

}  // namespace

}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_GEMM_PARTS_AVX512VNNI_H_
