// The tiles of kernels/simd/gemm.h with RISC-V's vectors: four rows by 16 channels, whatever the length of
// registers. A segment load divides the weights of a group by their number in it, the other factor is a byte
// of a row in a general register, and products of 16 bits are added to 32 (vwmacc): there is no dot product.
// int8 is read with its sign as u - 128, so that 128 times the sum of a channel's weights is missing, with
// which sums begin. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_TILES_RVV_H_
#define QPLAN_KERNELS_SIMD_TILES_RVV_H_

#include <riscv_vector.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/outputs_rvv.h"

namespace qplan {
namespace {

constexpr size_t kWide = 16;

// What the bytes of rows are.
enum class RowBytes {
  kUnsigned,
  kSigned,
  kToUnsigned,  // int8, to which 128 is added: for one row, which would not pay for sums of weights
};

template <RowBytes kBytesOfRow>
inline int16_t row_byte(const uint8_t* at) {
  if constexpr (kBytesOfRow == RowBytes::kSigned) return *reinterpret_cast<const int8_t*>(at);
  if constexpr (kBytesOfRow == RowBytes::kToUnsigned) return static_cast<int16_t>(*at ^ 0x80);
  return *at;
}

// The sums of up to four rows. A struct cannot hold vectors whose length the compiler does not know.
#define QPLAN_ADD_ROW(row, k, weights_of_k) \
  if constexpr (kRows > row)                \
  sum##row = vwmacc_vx_i32m4(sum##row, row_byte<kBytesOfRow>(at##row + k), weights_of_k, kWide)
#define QPLAN_ADD_K(k)       \
  QPLAN_ADD_ROW(0, k, w##k); \
  QPLAN_ADD_ROW(1, k, w##k); \
  QPLAN_ADD_ROW(2, k, w##k); \
  QPLAN_ADD_ROW(3, k, w##k)

template <uint32_t kRows, RowBytes kBytesOfRow, typename Finish>
__attribute__((always_inline)) inline void wide_tile(const Gemm& g, uint32_t row, const int8_t* weights,
                                                     const int32_t* begin, const Finish& finish) {
  constexpr uint32_t kSecond = kRows > 1 ? 1 : 0, kThird = kRows > 2 ? 2 : 0, kFourth = kRows > 3 ? 3 : 0;
  const vint32m4_t first = vle32_v_i32m4(begin, kWide);
  const auto term = [&](uint32_t p) { return g.row_term != nullptr ? g.row_term[row + p] : 0; };
  vint32m4_t sum0 = vadd_vx_i32m4(first, term(0), kWide), sum1 = vadd_vx_i32m4(first, term(kSecond), kWide),
             sum2 = vadd_vx_i32m4(first, term(kThird), kWide),
             sum3 = vadd_vx_i32m4(first, term(kFourth), kWide);
  const uint32_t num_k4 = tap_k4(g);
  for (uint32_t t = 0; t < g.num_taps; ++t) {
    const uint8_t* at0 = row_tap(g, row, t);
    [[maybe_unused]] const uint8_t* at1 = row_tap(g, row + kSecond, t);
    [[maybe_unused]] const uint8_t* at2 = row_tap(g, row + kThird, t);
    [[maybe_unused]] const uint8_t* at3 = row_tap(g, row + kFourth, t);
#pragma clang loop unroll_count(4)
    for (uint32_t k4 = num_k4; k4 != 0; --k4) {
      vint8m1_t v0, v1, v2, v3;
      vlseg4e8_v_i8m1(&v0, &v1, &v2, &v3, weights, kWide);
      const vint16m2_t w0 = vsext_vf2_i16m2(v0, kWide), w1 = vsext_vf2_i16m2(v1, kWide);
      const vint16m2_t w2 = vsext_vf2_i16m2(v2, kWide), w3 = vsext_vf2_i16m2(v3, kWide);
      QPLAN_ADD_K(0);
      QPLAN_ADD_K(1);
      QPLAN_ADD_K(2);
      QPLAN_ADD_K(3);
      weights += 64;
      at0 += 4, at1 += 4, at2 += 4, at3 += 4;
    }
  }
  finish(row, sum0);
  if constexpr (kRows > 1) finish(row + 1, sum1);
  if constexpr (kRows > 2) finish(row + 2, sum2);
  if constexpr (kRows > 3) finish(row + 3, sum3);
}
#undef QPLAN_ADD_K
#undef QPLAN_ADD_ROW

// What the sums of 16 channels begin with where rows are signed.
inline void begin_signed(const Gemm& g, uint32_t channel, const int8_t* weights, int32_t* begin) {
  vint32m4_t sums = vmv_v_x_i32m4(0, kWide);
  for (size_t k4 = size_t{g.num_taps} * tap_k4(g); k4 != 0; --k4, weights += 64) {
    vint8m1_t v0, v1, v2, v3;
    vlseg4e8_v_i8m1(&v0, &v1, &v2, &v3, weights, kWide);
    const vint16m2_t pairs =
        vadd_vv_i16m2(vwadd_vv_i16m2(v0, v1, kWide), vwadd_vv_i16m2(v2, v3, kWide), kWide);
    sums = vwadd_wv_i32m4(sums, pairs, kWide);
  }
  const vint32m4_t bias = vle32_v_i32m4(g.bias + channel, kWide);
  vse32_v_i32m4(begin, vadd_vv_i32m4(bias, vsll_vx_i32m4(sums, 7, kWide), kWide), kWide);
}

// Writes outputs of a row's sums.
template <typename Epilogue>
struct WideOutputs {
  WideBytes bytes;
  explicit WideOutputs(const Gemm& g) : bytes(g) {}
  void write(const Gemm& g, uint32_t row, uint32_t channel, vint32m4_t sums, size_t count) const {
    bytes.store(g.first_out + row * g.out_stride + channel,
                WideEpilogue<Epilogue>::outputs(g, channel, sums, count), count);
  }
};

// ACC32: the sums are the outputs.
struct WideSums {
  explicit WideSums(const Gemm&) {}
  void write(const Gemm& g, uint32_t row, uint32_t channel, vint32m4_t sums, size_t count) const {
    vse32_v_i32m4(reinterpret_cast<int32_t*>(g.first_out + row * g.out_stride) + channel, sums, count);
  }
};

// All rows by 16 channels. Not inlined: a function for each writer, whose loops need all registers.
template <RowBytes kBytesOfRow, typename Writer>
__attribute__((noinline)) void gemm_rows(const Gemm& product, uint32_t channel) {
  const Gemm g = product;  // which outputs cannot change
  const int8_t* weights = g.weights + size_t{channel / 16} * g.num_taps * tap_k4(g) * 64;
  int32_t of_signed[kWide];
  if (kBytesOfRow == RowBytes::kSigned) begin_signed(g, channel, weights, of_signed);
  const int32_t* begin = kBytesOfRow == RowBytes::kSigned ? of_signed : g.bias + channel;
  const size_t left = g.num_channels - channel, count = left < kWide ? left : kWide;
  const Writer writer(g);
  round_ties_up();
  const auto finish = [&](uint32_t row, vint32m4_t sums) __attribute__((always_inline)) {
    writer.write(g, row, channel, sums, count);
  };
  uint32_t row = 0;
  if constexpr (kBytesOfRow != RowBytes::kToUnsigned) {
    for (; row + 4 <= g.num_rows; row += 4) wide_tile<4, kBytesOfRow>(g, row, weights, begin, finish);
    for (; row + 2 <= g.num_rows; row += 2) wide_tile<2, kBytesOfRow>(g, row, weights, begin, finish);
  }
  for (; row < g.num_rows; ++row) wide_tile<1, kBytesOfRow>(g, row, weights, begin, finish);
}

template <typename Writer>
inline void gemm_channels(const Gemm& g, uint32_t channel) {
  if (g.sign_bias == 0) return gemm_rows<RowBytes::kUnsigned, Writer>(g, channel);
  g.num_rows == 1 ? gemm_rows<RowBytes::kToUnsigned, Writer>(g, channel)
                  : gemm_rows<RowBytes::kSigned, Writer>(g, channel);
}

// Channels of blocks [first_block, end_block). A function of its own, never inlined: EpilogueRounding may
// change the floating point environment around it.
__attribute__((noinline)) void gemm_blocks(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  for (uint32_t channel = first_block * 16; channel < end_block * 16; channel += 16) {
    with_epilogue(g, channel, [&](auto kind) {
      gemm_channels<WideOutputs<typename decltype(kind)::Epilogue>>(g, channel);
    });
  }
}

__attribute__((noinline)) void sums_blocks(const Gemm& g, uint32_t first_block, uint32_t end_block) {
  for (uint32_t channel = first_block * 16; channel < end_block * 16; channel += 16) {
    gemm_channels<WideSums>(g, channel);
  }
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_TILES_RVV_H_
