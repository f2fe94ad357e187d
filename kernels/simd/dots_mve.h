// Products of rows of bytes with Armv8.1-M's vectors (MVE): VMLADAVA adds 16 products of int8 to a sum in a
// general register, of which eight are even and can be one. So a tile is two rows by four channels, or a row
// by eight, and its sums leave as vectors of four channels. Weights are in kLayout_o4k16. What is compiled
// from this for other processors, which packers and tests do, says the same in plain C.
//
// The loops are assembly: GCC 12 gives the sums odd registers as well, which takes a move around each
// product, and has no more than seven vectors without a spill. Internal linkage only.
#ifndef QPLAN_KERNELS_SIMD_DOTS_MVE_H_
#define QPLAN_KERNELS_SIMD_DOTS_MVE_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2) != 0
#define QPLAN_MVE 1
#include <arm_mve.h>
#endif

namespace qplan {
namespace {

constexpr uint32_t kChunk = 16;        // bytes of a row that are multiplied at once
constexpr uint32_t kTileChannels = 4;  // of a block of kLayout_o4k16
constexpr uint32_t kTileRows = 2;

inline size_t chunk_bytes(size_t bytes) { return (bytes + kChunk - 1) / kChunk * kChunk; }

// TFL2 in vectors: a doubling high multiplication that rounds ties upwards, and a rounding shift that does,
// too, of a value that is one less where it is negative and the shift is not 0: ties go away from zero then,
// and what is no tie stays on its side. Shifts are to the right: their vectors hold the negative counts of
// VRSHL.
#if defined(QPLAN_MVE)
inline int32x4_t requantize_right(int32x4_t sums, int32x4_t multiplier, int32x4_t shift) {
  const int32x4_t product = vqrdmulhq_s32(sums, multiplier);
  const int32x4_t less = vshrq_n_s32(vandq_s32(product, shift), 31);
  return vrshlq_s32(vqaddq_s32(product, less), shift);
}
#define QPLAN_MVE_VECTORS                                                                               \
  "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15", \
      "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23", "s24", "s25", "s26", "s27", "s28", "s29", \
      "s30", "s31"
#endif

// Whole blocks of four channels of two rows of int8, from products to outputs under TFL2 without shifts to
// the left.
struct RowPair {
  const uint8_t* rows[kTileRows];  // whole chunks: what is beyond the row is zero
  const int8_t* weights;           // these six: of the next channel
  const int32_t* bias;
  const int32_t* multiplier;
  const int32_t* shift;
  uint8_t* out[kTileRows];
  const uint8_t* out_end;  // of the first row
  uint32_t chunks;
  int32_t zero_point;
  int32_t clamp_min, clamp_max;
};

#if defined(QPLAN_MVE)
static_assert(sizeof(RowPair) == 52 && offsetof(RowPair, out) == 24 && offsetof(RowPair, clamp_max) == 48,
              "the assembly knows its fields");

#define QPLAN_MVE_PAIR_CHUNK    \
  "vldrb.u8 q0, [r1], #16\n\t"  \
  "vldrb.u8 q2, [r5], #64\n\t"  \
  "vmladava.s8 r0, q2, q0\n\t"  \
  "vldrb.u8 q1, [r3], #16\n\t"  \
  "vmladava.s8 r8, q2, q1\n\t"  \
  "vldrb.u8 q3, [r5, #-48]\n\t" \
  "vmladava.s8 r2, q3, q0\n\t"  \
  "vmladava.s8 r10, q3, q1\n\t" \
  "vldrb.u8 q4, [r5, #-32]\n\t" \
  "vmladava.s8 r4, q4, q0\n\t"  \
  "vmladava.s8 r12, q4, q1\n\t" \
  "vldrb.u8 q5, [r5, #-16]\n\t" \
  "vmladava.s8 r6, q5, q0\n\t"  \
  "vmladava.s8 lr, q5, q1\n\t"
// The sums of two vectors, q0 and q1, by the multipliers in q2 and q3 and the shifts in `shift0` and
// `shift1`; r4 is the zero point, q6 and q7 are the clamp.
#define QPLAN_MVE_OUTPUTS(multiplier1, shift0, shift1) \
  "vqrdmulh.s32 q0, q0, q2\n\t"                        \
  "vqrdmulh.s32 q1, q1, " multiplier1                  \
  "\n\t"                                               \
  "vand q2, q0, " shift0                               \
  "\n\t"                                               \
  "vand q3, q1, " shift1                               \
  "\n\t"                                               \
  "vshr.s32 q2, q2, #31\n\t"                           \
  "vshr.s32 q3, q3, #31\n\t"                           \
  "vqadd.s32 q0, q0, q2\n\t"                           \
  "vqadd.s32 q1, q1, q3\n\t"                           \
  "vrshl.s32 q0, q0, " shift0                          \
  "\n\t"                                               \
  "vrshl.s32 q1, q1, " shift1                          \
  "\n\t"                                               \
  "vqadd.s32 q0, q0, r4\n\t"                           \
  "vqadd.s32 q1, q1, r4\n\t"                           \
  "vmax.s32 q0, q0, q6\n\t"                            \
  "vmax.s32 q1, q1, q6\n\t"                            \
  "vmin.s32 q0, q0, q7\n\t"                            \
  "vmin.s32 q1, q1, q7\n\t"
// Chunks two at a time; an odd number of them is entered in the middle.
#define QPLAN_MVE_LOOP(CHUNK)   \
  "lsrs r7, r7, #1\n\t"         \
  "bcs 3f\n\t"                  \
  "subs r7, r7, #1\n"           \
  "2:\n\t" CHUNK "3:\n\t" CHUNK \
  "subs r7, r7, #1\n\t"         \
  "bpl 2b\n\t"
// The sums: even registers of q0, then of q1. VMOV's first register is that of the lower lane.
#define QPLAN_MVE_SUMS             \
  "vmov q0[2], q0[0], r0, r4\n\t"  \
  "vmov q0[3], q0[1], r2, r6\n\t"  \
  "vmov q1[2], q1[0], r8, r12\n\t" \
  "vmov q1[3], q1[1], r10, lr\n\t"
#define QPLAN_MVE_CLOBBERS                                                                         \
  "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory", \
      QPLAN_MVE_VECTORS

__attribute__((noinline)) inline void multiply_pair(RowPair* pair) {
  register RowPair* at __asm__("r0") = pair;
  __asm__ volatile(
      "mov r9, r0\n\t"
      "ldr r2, [r9, #44]\n\t"
      "ldr r4, [r9, #48]\n\t"
      "ldrd r5, r11, [r9, #8]\n\t"
      "vdup.32 q6, r2\n\t"
      "vdup.32 q7, r4\n"
      "1:\n\t"
      "ldrd r0, r2, [r11], #8\n\t"
      "ldrd r4, r6, [r11], #8\n\t"
      "ldrd r1, r3, [r9]\n\t"
      "ldr r7, [r9, #36]\n\t"
      "mov r8, r0\n\t"
      "mov r10, r2\n\t"
      "mov r12, r4\n\t"
      "mov lr, r6\n\t"
      QPLAN_MVE_LOOP(QPLAN_MVE_PAIR_CHUNK)
      QPLAN_MVE_SUMS
      "ldrd r0, r2, [r9, #16]\n\t"
      "ldr r4, [r9, #40]\n\t"
      "vldrw.32 q2, [r0], #16\n\t"
      "vldrw.32 q4, [r2], #16\n\t"
      "strd r0, r2, [r9, #16]\n\t"
      QPLAN_MVE_OUTPUTS("q2", "q4", "q4")
      "ldrd r0, r2, [r9, #24]\n\t"
      "ldr r4, [r9, #32]\n\t"
      "vstrb.32 q0, [r0], #4\n\t"
      "vstrb.32 q1, [r2], #4\n\t"
      "strd r0, r2, [r9, #24]\n\t"
      "cmp r0, r4\n\t"
      "bne 1b\n\t"
      : "+r"(at)
      :
      : QPLAN_MVE_CLOBBERS);
}
#else
inline uint8_t output_of(const RowPair& pair, int32_t sum, uint32_t o) {
  const int32_t value = requantize_tfl2(sum, pair.multiplier[o], pair.shift[o]);
  return static_cast<uint8_t>(add_clamp(value, pair.zero_point, pair.clamp_min, pair.clamp_max));
}
inline int32_t sum_of_products(int32_t sum, const uint8_t* row, const int8_t* weights, uint32_t chunks) {
  auto bits = static_cast<uint32_t>(sum);
  for (uint32_t chunk = 0; chunk < chunks; ++chunk, row += kChunk, weights += kChunk * kTileChannels) {
    for (uint32_t k = 0; k < kChunk; ++k)
      bits += static_cast<uint32_t>(static_cast<int8_t>(row[k]) * weights[k]);
  }
  return static_cast<int32_t>(bits);
}
inline void multiply_pair(RowPair* pair) {
  const int8_t* weights = pair->weights;
  const int32_t* bias = pair->bias;
  for (; pair->out[0] != pair->out_end; weights += size_t{pair->chunks} * kChunk * kTileChannels) {
    for (uint32_t o = 0; o < kTileChannels; ++o, ++bias) {
      for (uint32_t p = 0; p < kTileRows; ++p) {
        const int32_t sum = sum_of_products(*bias, pair->rows[p], weights + o * kChunk, pair->chunks);
        pair->out[p][o] = output_of(*pair, sum, o);
      }
    }
    pair->multiplier += kTileChannels;
    pair->shift += kTileChannels;
    for (uint8_t*& out : pair->out) out += kTileChannels;
  }
}
#endif

// The same for one row, eight channels at a time: out_end is a multiple of eight outputs away. rows[1] and
// out[1] are not looked at.
#if defined(QPLAN_MVE)
#define QPLAN_MVE_ROW_CHUNK     \
  "vldrb.u8 q0, [r1], #16\n\t"  \
  "vldrb.u8 q2, [r3], #64\n\t"  \
  "vmladava.s8 r0, q2, q0\n\t"  \
  "vldrb.u8 q3, [r3, #-48]\n\t" \
  "vmladava.s8 r2, q3, q0\n\t"  \
  "vldrb.u8 q4, [r3, #-32]\n\t" \
  "vmladava.s8 r4, q4, q0\n\t"  \
  "vldrb.u8 q5, [r3, #-16]\n\t" \
  "vmladava.s8 r6, q5, q0\n\t"  \
  "vldrb.u8 q2, [r5], #64\n\t"  \
  "vmladava.s8 r8, q2, q0\n\t"  \
  "vldrb.u8 q3, [r5, #-48]\n\t" \
  "vmladava.s8 r10, q3, q0\n\t" \
  "vldrb.u8 q4, [r5, #-32]\n\t" \
  "vmladava.s8 r12, q4, q0\n\t" \
  "vldrb.u8 q5, [r5, #-16]\n\t" \
  "vmladava.s8 lr, q5, q0\n\t"

__attribute__((noinline)) inline void multiply_eights(RowPair* row) {
  register RowPair* at __asm__("r0") = row;
  __asm__ volatile(
      "mov r9, r0\n\t"
      "ldr r2, [r9, #44]\n\t"
      "ldr r4, [r9, #48]\n\t"
      "ldrd r5, r11, [r9, #8]\n\t"
      "vdup.32 q6, r2\n\t"
      "vdup.32 q7, r4\n"
      "1:\n\t"
      "ldr r7, [r9, #36]\n\t"
      "mov r3, r5\n\t"
      "add r5, r5, r7, lsl #6\n\t"
      "ldr r1, [r9]\n\t"
      "ldrd r0, r2, [r11], #8\n\t"
      "ldrd r4, r6, [r11], #8\n\t"
      "ldrd r8, r10, [r11], #8\n\t"
      "ldrd r12, lr, [r11], #8\n\t"
      QPLAN_MVE_LOOP(QPLAN_MVE_ROW_CHUNK)
      QPLAN_MVE_SUMS
      "ldrd r0, r2, [r9, #16]\n\t"
      "ldr r4, [r9, #40]\n\t"
      "vldrw.32 q2, [r0], #32\n\t"
      "vldrw.32 q3, [r0, #-16]\n\t"
      "vldrw.32 q4, [r2], #32\n\t"
      "vldrw.32 q5, [r2, #-16]\n\t"
      "strd r0, r2, [r9, #16]\n\t"
      QPLAN_MVE_OUTPUTS("q3", "q4", "q5")
      "ldr r0, [r9, #24]\n\t"
      "ldr r4, [r9, #32]\n\t"
      "vstrb.32 q0, [r0], #8\n\t"
      "vstrb.32 q1, [r0, #-4]\n\t"
      "str r0, [r9, #24]\n\t"
      "cmp r0, r4\n\t"
      "bne 1b\n\t"
      : "+r"(at)
      :
      : QPLAN_MVE_CLOBBERS);
}
#undef QPLAN_MVE_PAIR_CHUNK
#undef QPLAN_MVE_ROW_CHUNK
#undef QPLAN_MVE_LOOP
#undef QPLAN_MVE_SUMS
#else
inline void multiply_eights(RowPair* row) {
  row->rows[1] = row->rows[0];
  row->out[1] = row->out[0];
  multiply_pair(row);
}
#endif

// The sums of a block of four channels of a row of whole chunks, of int8 or uint8 (which is widened to 16
// bits, half as many at a time).
template <bool kSigned>
inline void sum_block(int32_t* sums, const uint8_t* row, const int8_t* weights, uint32_t chunks) {
  for (uint32_t i = 0; i < kTileChannels; ++i) {
    const uint8_t* from = row;
    const int8_t* w = weights + i * kChunk;
    int32_t sum = sums[i];
    for (uint32_t chunk = 0; chunk < chunks; ++chunk, from += kChunk, w += kChunk * kTileChannels) {
#if defined(QPLAN_MVE)
      if constexpr (kSigned) {
        sum = vmladavaq_s8(sum, vldrbq_s8(reinterpret_cast<const int8_t*>(from)), vldrbq_s8(w));
      } else {
        sum = vmladavaq_s16(sum, vreinterpretq_s16_u16(vldrbq_u16(from)), vldrbq_s16(w));
        sum = vmladavaq_s16(sum, vreinterpretq_s16_u16(vldrbq_u16(from + 8)), vldrbq_s16(w + 8));
      }
#else
      for (uint32_t k = 0; k < kChunk; ++k) {
        const int32_t x = kSigned ? static_cast<int8_t>(from[k]) : from[k];
        sum = wrap_add(sum, x * w[k]);
      }
#endif
    }
    sums[i] = sum;
  }
}

// The sum, modulo 2^32, of whole chunks of a row.
template <bool kSigned>
inline int32_t sum_row(const uint8_t* row, uint32_t chunks) {
  int32_t sum = 0;
  for (uint32_t i = 0; i < chunks * kChunk; ++i)
    sum = wrap_add(sum, kSigned ? static_cast<int8_t>(row[i]) : row[i]);
  return sum;
}

// Whether a channel's multiplier comes with a shift to the left, which the tiles leave out.
inline bool shifts_left(const int32_t* shift, uint32_t count) {
  uint32_t i = 0;
#if defined(QPLAN_MVE)
  int32_t largest = INT32_MIN;
  for (; i + 4 <= count; i += 4) largest = vmaxvq_s32(largest, vldrwq_s32(shift + i));
  if (largest > 0) return true;
#endif
  for (; i < count; ++i) {
    if (shift[i] > 0) return true;
  }
  return false;
}

// ---- bytes ----

inline void copy_bytes(uint8_t* to, const uint8_t* from, size_t bytes) {
#if defined(QPLAN_MVE)
  __asm__ volatile(
      "wlstp.8 lr, %[bytes], 2f\n"
      "1:\n\t"
      "vldrb.u8 q0, [%[from]], #16\n\t"
      "vstrb.8 q0, [%[to]], #16\n\t"
      "letp lr, 1b\n"
      "2:\n\t"
      : [to] "+r"(to), [from] "+r"(from)
      : [bytes] "r"(bytes)
      : "lr", "s0", "s1", "s2", "s3", "cc", "memory");
#else
  for (size_t i = 0; i < bytes; ++i) to[i] = from[i];
#endif
}

inline void fill_bytes(uint8_t* to, uint8_t value, size_t bytes) {
#if defined(QPLAN_MVE)
  __asm__ volatile(
      "vdup.8 q0, %[value]\n\t"
      "wlstp.8 lr, %[bytes], 2f\n"
      "1:\n\t"
      "vstrb.8 q0, [%[to]], #16\n\t"
      "letp lr, 1b\n"
      "2:\n\t"
      : [to] "+r"(to)
      : [bytes] "r"(bytes), [value] "r"(value)
      : "lr", "s0", "s1", "s2", "s3", "cc", "memory");
#else
  for (size_t i = 0; i < bytes; ++i) to[i] = value;
#endif
}

// `rows` runs of `bytes`, from_step bytes apart, to where they are to_step bytes apart.
inline void copy_rows(uint8_t* to, size_t to_step, const uint8_t* from, size_t from_step, size_t bytes,
                      uint32_t rows) {
#if defined(QPLAN_MVE)
  const uint8_t* run;
  uint8_t* at;
  __asm__ volatile(
      "1:\n\t"
      "mov %[run], %[from]\n\t"
      "mov %[at], %[to]\n\t"
      "wlstp.8 lr, %[bytes], 3f\n"
      "2:\n\t"
      "vldrb.u8 q0, [%[run]], #16\n\t"
      "vstrb.8 q0, [%[at]], #16\n\t"
      "letp lr, 2b\n"
      "3:\n\t"
      "add %[from], %[from], %[from_step]\n\t"
      "add %[to], %[to], %[to_step]\n\t"
      "subs %[rows], %[rows], #1\n\t"
      "bne 1b\n\t"
      : [to] "+r"(to), [from] "+r"(from), [rows] "+r"(rows), [run] "=&r"(run), [at] "=&r"(at)
      : [bytes] "r"(bytes), [from_step] "r"(from_step), [to_step] "r"(to_step)
      : "lr", "s0", "s1", "s2", "s3", "cc", "memory");
#else
  for (; rows > 0; --rows, from += from_step, to += to_step) copy_bytes(to, from, bytes);
#endif
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_SIMD_DOTS_MVE_H_
