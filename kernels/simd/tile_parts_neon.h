// What the tiles of 64-bit Arm have in common (tiles_neon.h, tiles_dotprod.h, tiles_i8mm.h): rows, channels,
// and the way from sums to outputs. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_TILE_PARTS_NEON_H_
#define QPLAN_KERNELS_SIMD_TILE_PARTS_NEON_H_

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/gemm.h"
#include "kernels/simd/plain_bytes_neon.h"

namespace qplan {
namespace {

// ---- loads that move `from` on, each by one instruction: GCC 12 makes the two of most of them ----

// Two vectors.
template <typename Element, typename Vector>
__attribute__((always_inline)) inline void load_two_on(const Element*& from, Vector& first, Vector& second) {
#if defined(__clang__)
  load_two(from, first, second);
  from += 2 * sizeof(Vector) / sizeof(Element);
#else
  const auto* vectors = reinterpret_cast<const Vector*>(from);
  __asm__("ldp %q0, %q1, [%2], #32"
          : "=w"(first), "=w"(second), "+r"(from)
          : "m"(vectors[0]), "m"(vectors[1]));
#endif
}
// load_two each time that it is called: copies of vectors that are overwritten would take more instructions.
// It needs no register for the second address, as load_two may.
template <typename Element, typename Vector>
__attribute__((always_inline)) inline void load_two_anew(const Element* from, Vector& first, Vector& second) {
#if defined(__clang__)
  load_two(from, first, second);
#else
  const auto* vectors = reinterpret_cast<const Vector*>(from);
  __asm__ volatile("ldp %q0, %q1, %2"
                   : "=w"(first), "=w"(second)
                   : "Ump"(vectors[0]), "m"(*reinterpret_cast<const Vector(*)[2]>(from)));
#endif
}
// Four vectors that are not overwritten, so that they may be neighbours without copies.
template <typename Element, typename Vector>
__attribute__((always_inline)) inline void load_constants(const Element* from, Vector (&to)[4]) {
#if defined(__clang__)
  load_two(from, to[0], to[1]);
  load_two(from + 32 / sizeof(Element), to[2], to[3]);
#else
  int32x4x4_t four;
  __asm__ volatile("ld1 {%S0.4s - %V0.4s}, %1"
                   : "=w"(four)
                   : "Q"(*reinterpret_cast<const Vector(*)[4]>(from)));
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) to[i] = reinterpret_cast<Vector>(four.val[i]);
#endif
}
template <typename Element, typename Vector>
__attribute__((always_inline)) inline void load_constants(const Element* from, Vector (&to)[2]) {
  load_two_anew(from, to[0], to[1]);
}
// Four vectors of bytes.
__attribute__((always_inline)) inline void load_four_on(const int8_t*& from, int8x16_t (&to)[4]) {
#if defined(__clang__)
  const int8x16x4_t four = vld1q_s8_x4(from);
  from += 64;
#else
  int8x16x4_t four;
  const auto* vectors = reinterpret_cast<const int8x16x4_t*>(from);
  __asm__("ld1 {%S0.16b - %V0.16b}, [%1], #64" : "=w"(four), "+r"(from) : "m"(*vectors));
#endif
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) to[i] = four.val[i];
}

// kCount groups of four bytes, each in all lanes of a vector (LD4R, LD2R, LD1R). By number, since GCC 12
// spills other vectors where it has to find neighbours for these.
template <int kCount>
__attribute__((always_inline)) inline void load_groups_on(const uint8_t*& from, int8x16_t (&to)[kCount]) {
#if defined(__clang__)
  for (int i = 0; i < kCount; ++i) to[i] = vreinterpretq_s8_u32(vdupq_n_u32(load_four(from + 4 * i)));
  from += 4 * kCount;
#else
  struct Bytes {
    uint8_t of[4 * kCount];
  };
  const auto& bytes = *reinterpret_cast<const Bytes*>(from);
  if constexpr (kCount == 4) {
    register int8x16_t a __asm__("v28");
    register int8x16_t b __asm__("v29");
    register int8x16_t c __asm__("v30");
    register int8x16_t d __asm__("v31");
    __asm__("ld4r {v28.4s - v31.4s}, [%4], #16"
            : "=w"(a), "=w"(b), "=w"(c), "=w"(d), "+r"(from)
            : "m"(bytes));
    to[0] = a;
    to[1] = b;
    to[2] = c;
    to[3] = d;
  } else if constexpr (kCount == 2) {
    register int8x16_t a __asm__("v28");
    register int8x16_t b __asm__("v29");
    __asm__("ld2r {v28.4s - v29.4s}, [%2], #8" : "=w"(a), "=w"(b), "+r"(from) : "m"(bytes));
    to[0] = a;
    to[1] = b;
  } else {
    __asm__("ld1r {%0.4s}, [%1], #4" : "=w"(to[0]), "+r"(from) : "m"(bytes));
  }
#endif
}

// One element, in all lanes.
__attribute__((always_inline)) inline VecI32 load_one_on(const int32_t*& from) {
  VecI32 all;
#if defined(__clang__)
  all = vld1q_dup_s32(from++);
#else
  __asm__("ld1r {%0.4s}, [%1], #4" : "=w"(all), "+r"(from) : "m"(*from));
#endif
  return all;
}

// ---- tiles ----

// Where the rows of a product and their outputs begin, tile after tile.
struct RowWalk {
  const uint8_t* const* rows;
  const uint8_t* next_row;
  size_t row_stride;
  const int32_t* term;  // null: nothing is added
  uint8_t* out;

  explicit RowWalk(const Gemm& g)
      : rows(g.rows), next_row(g.first_row), row_stride(g.row_stride), term(g.row_term), out(g.first_out) {}

  // The rows of a tile.
  template <uint32_t kRows>
  __attribute__((always_inline)) void take(const uint8_t* (&of_tile)[kRows]) {
    if (rows != nullptr) {
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; ++p) of_tile[p] = rows[p];
      rows += kRows;
    } else {
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; ++p, next_row += row_stride) of_tile[p] = next_row;
    }
  }
  // Moves `out` over the outputs of a tile.
  template <uint32_t kRows>
  __attribute__((always_inline)) void next_tile(const Gemm& g) {
    out += kRows * g.out_stride;
    // Otherwise GCC 12 counts an address for each row of outputs, in memory.
    __asm__ volatile("" : "+r"(out));
  }
};

// 16, 8 or 4 bytes; zeros after them.
template <uint32_t kCount>
inline uint8x16_t load_some(const uint8_t* from) {
  if constexpr (kCount == 16) return vld1q_u8(from);
  if constexpr (kCount == 8) return vcombine_u8(vld1_u8(from), vcreate_u8(0));
  return vcombine_u8(vcreate_u8(load_four(from)), vcreate_u8(0));
}

// 16 channels of rows, or the first `count` of them.
template <uint32_t kRows>
__attribute__((always_inline)) inline void store_rows(uint8_t* out, size_t stride,
                                                      const VecI32 (&rows)[kRows], uint32_t count) {
  if (count >= 16) {
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) store_ints(out + p * stride, rows[p]);
    return;
  }
  VecI32 in_memory[kRows];  // so that `rows` need not be
  __builtin_memcpy(in_memory, rows, sizeof(rows));
#pragma GCC unroll 1
  for (uint32_t p = 0; p < kRows; ++p) store_vector(out + p * stride, in_memory[p], count);
}

// 8 channels of rows, two in each vector.
template <uint32_t kRows>
__attribute__((always_inline)) inline void store_half_rows(uint8_t* out, size_t stride,
                                                           const VecI32 (&rows)[(kRows + 1) / 2],
                                                           uint32_t count) {
  if (count >= 8) {
#pragma GCC unroll 8
    for (uint32_t p = 0; p < kRows; ++p) {
      const uint8x16_t both = as_bytes(rows[p / 2]);
      if (p % 2 == 0) {
        vst1_u8(out + p * stride, vget_low_u8(both));
      } else {  // one instruction (ST1), unlike vst1_u8 of the high half
        const uint64_t high = vgetq_lane_u64(vreinterpretq_u64_u8(both), 1);
        __builtin_memcpy(out + p * stride, &high, sizeof(high));
      }
    }
    return;
  }
  VecI32 in_memory[(kRows + 1) / 2];
  __builtin_memcpy(in_memory, rows, sizeof(rows));
#pragma GCC unroll 1
  for (uint32_t p = 0; p < kRows; p += 2) {
    store_halves(out + p * stride, stride, in_memory[p / 2], count, p + 1 < kRows ? 2 : 1);
  }
}

inline const int8_t* channel_weights(const Gemm& g, uint32_t channel) {
  return g.weights + size_t{channel / 16} * g.num_taps * tap_k4(g) * 64;
}

inline uint8_t* outputs_at(const Gemm& g, uint32_t row, uint32_t channel) {
  return g.first_out + row * g.out_stride + size_t{channel} * output_bytes(g.contract);
}

// The outputs of sums of rows by 4 * kVectors channels. An epilogue with an offset makes them row by row, and
// loads that of each row anew; any other has what it needs for kLanes channels once for all rows.
template <typename Epilogue, uint32_t kRows, uint32_t kVectors, bool kByRow = kHasOffset<Epilogue>>
class TileOutputs {
 public:
  template <typename Bytes>
  TileOutputs(const Gemm& g, const Bytes&, uint32_t channel, const VecI32 (&)[kRows][kVectors])
      : offsets_(g.float_offset + channel) {
    load_constants(g.float_scale + channel, scale_);
  }
  __attribute__((always_inline)) void make(uint32_t, const VecI32 (&sums)[kVectors],
                                           VecI32 (&outputs)[kVectors]) {
#pragma GCC unroll 2
    for (uint32_t q = 0; q < kVectors; q += 2) {
      VecF32 offset[2];
      load_two_anew(offsets_ + q * kLanes, offset[0], offset[1]);
      outputs[q] = Epilogue(scale_[q], offset[0]).outputs(sums[q]);
      outputs[q + 1] = Epilogue(scale_[q + 1], offset[1]).outputs(sums[q + 1]);
    }
  }

 private:
  const float* offsets_;
  VecF32 scale_[kVectors];
};
template <typename Epilogue, uint32_t kRows, uint32_t kVectors>
class TileOutputs<Epilogue, kRows, kVectors, false> {
 public:
  template <typename Bytes>
  TileOutputs(const Gemm& g, const Bytes&, uint32_t channel, const VecI32 (&sums)[kRows][kVectors]) {
#pragma GCC unroll 4
    for (uint32_t q = 0; q < kVectors; ++q) {
      const Epilogue epilogue(g, channel + q * kLanes);
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; ++p) outputs_[p][q] = epilogue.outputs(sums[p][q]);
    }
  }
  __attribute__((always_inline)) void make(uint32_t p, const VecI32 (&)[kVectors],
                                           VecI32 (&outputs)[kVectors]) const {
#pragma GCC unroll 4
    for (uint32_t q = 0; q < kVectors; ++q) outputs[q] = outputs_[p][q];
  }

 private:
  VecI32 outputs_[kRows][kVectors];
};
template <bool kIsPlain, uint32_t kRows, uint32_t kVectors>
class TileOutputs<ShiftedEpilogue<kIsPlain>, kRows, kVectors, false> {
 public:
  template <typename Bytes>
  TileOutputs(const Gemm& g, const Bytes& bytes, uint32_t, const VecI32 (&)[kRows][kVectors])
      : begin_(bytes.begin) {
    // Otherwise GCC 12 computes it for each row.
    __asm__("" : "+r"(begin_) : "m"(bytes.begin));
    load_constants(g.multiplier, multiplier_);
    load_constants(bytes.left, left_);
  }
  __attribute__((always_inline)) void make(uint32_t, const VecI32 (&sums)[kVectors],
                                           VecI32 (&outputs)[kVectors]) {
    shifted_outputs<kIsPlain>(begin_, multiplier_, left_, sums, outputs);
  }

 private:
  const int32_t* begin_;
  VecI32 multiplier_[kVectors], left_[kVectors];
};

// Makes outputs of a tile's sums. Constants are loaded when the products are done: held meanwhile, they would
// take registers from the sums.
template <typename Epilogue, typename Bytes = EpilogueBytes<Epilogue>>
struct OutputWriter {
  using EpilogueType = Epilogue;
  Bytes bytes;
  explicit OutputWriter(const Gemm& g) : bytes(g) {}

  template <uint32_t kRows, uint32_t kVectors>
  __attribute__((always_inline)) void write(uint8_t* out, const Gemm& g, uint32_t channel,
                                            const VecI32 (&sums)[kRows][kVectors]) const {
    TileOutputs<Epilogue, kRows, kVectors> outputs(g, bytes, channel, sums);
    const uint32_t count = g.num_channels - channel;
    if constexpr (kVectors == 4) {
      VecI32 packed[kRows];
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; ++p) {
        VecI32 row[kVectors];
        outputs.make(p, sums[p], row);
        packed[p] = bytes.pack(row[0], row[1], row[2], row[3]);
      }
      // By themselves, since GCC 12 copies them where the ways meet.
      if (bytes.is_finished() && count >= 16) return store_rows(out, g.out_stride, packed, 16);
      bytes.finish(packed);
      store_rows(out, g.out_stride, packed, count);
    } else {
      VecI32 packed[(kRows + 1) / 2];  // two rows in each
#pragma GCC unroll 8
      for (uint32_t p = 0; p < kRows; p += 2) {
        VecI32 row[kVectors], next[kVectors];
        outputs.make(p, sums[p], row);
        const uint32_t last = p + 1 < kRows ? p + 1 : p;
        outputs.make(last, sums[last], next);
        packed[p / 2] = bytes.pack(row[0], row[1], next[0], next[1]);
      }
      bytes.finish(packed);
      store_half_rows<kRows>(out, g.out_stride, packed, count);
    }
  }
};

// run(EpilogueKind<...>()), a writer, for the channels from `channel` on, of one group of 16. kChannels: of a
// tile. The constants of ShiftedEpilogue are made once for all rows: of one row that would take as long as
// its outputs.
template <uint32_t kChannels, typename Run>
inline void with_writer(const Gemm& g, uint32_t channel, const Run& run) {
  if (g.num_rows == 1 || !group_is_shifted(g, channel)) {
    with_epilogue_of_bytes(
        g, channel, [&](auto kind) { run(EpilogueKind<OutputWriter<typename decltype(kind)::Epilogue>>()); });
  } else if (has_plain_bytes(g)) {
    run(EpilogueKind<OutputWriter<ShiftedEpilogue<true>, ShiftedBytes<true, kChannels>>>());
  } else {
    run(EpilogueKind<OutputWriter<ShiftedEpilogue<false>, ShiftedBytes<false, kChannels>>>());
  }
}

// ACC32: the sums are the outputs. Vectors of integers are stored as they are.
struct SumWriter {
  using EpilogueType = void;
  explicit SumWriter(const Gemm&) {}

  template <uint32_t kRows, uint32_t kVectors>
  __attribute__((always_inline)) void write(uint8_t* first_out, const Gemm& g, uint32_t channel,
                                            const VecI32 (&sums)[kRows][kVectors]) const {
    for (uint32_t p = 0; p < kRows; ++p) {
      auto* out = reinterpret_cast<float*>(first_out + p * g.out_stride);
      for (uint32_t q = 0; q < kVectors && channel + q * kLanes < g.num_channels; ++q) {
        const uint32_t left = g.num_channels - channel - q * kLanes;
        store_reals(out + q * kLanes, as_reals(sums[p][q]), left < kLanes ? left : kLanes);
      }
    }
  }
};

// Makes g, a copy, which outputs, as bytes, cannot change, the product of the channels from `channel` on.
inline void move_to_channels(Gemm& g, uint32_t channel) {
  g.weights = channel_weights(g, channel);
  g.first_out += size_t{channel} * output_bytes(g.contract);
  g.bias += channel;
  if (g.multiplier != nullptr) g.multiplier += channel;
  if (g.shift != nullptr) g.shift += channel;
  if (g.scale != nullptr) g.scale += channel;
  if (g.float_scale != nullptr) g.float_scale += channel;
  if (g.float_offset != nullptr) g.float_offset += channel;
  g.num_channels -= channel;
}

// Where the channels of a product of one row end that have the same kind of epilogue as those from `channel`
// on.
inline uint32_t end_of_epilogue(const Gemm& g, uint32_t channel, uint32_t end_channel) {
  uint32_t end = channel + 16;
  const auto has_form = [&](uint32_t at) {
    return g.float_epilogue != FloatEpilogue::kNone && groups_have_form(g, at / 16, 1);
  };
  while (end < end_channel && has_form(end) == has_form(channel)) end += 16;
  return end;
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_TILE_PARTS_NEON_H_
