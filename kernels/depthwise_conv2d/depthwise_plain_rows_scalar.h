// Outputs of windows of 3x3, channel by channel and two at a time, by hand-written assembly for cores with
// the DSP extension and floating point: what depthwise_conv2d_scalar.cc runs where a product and a sum in
// float make the outputs. Internal linkage only.
#ifndef QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_PLAIN_ROWS_SCALAR_H_
#define QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_PLAIN_ROWS_SCALAR_H_

#include <stdint.h>

#include "kernels/depthwise_conv2d/depthwise_expand_scalar.h"
#include "kernels/scalar/dsp.h"

namespace qplan {
namespace {

// The weights of a row of the window: the first two and the last two.
struct RowWeights {
  uint32_t first, last;
};
struct Channel {
  RowWeights weights[kWindow];
  int32_t bias;
  float scale, offset;
};

#if defined(QPLAN_SCALAR_FPU)
// Rows of outputs of a block where Outputs::is_full() and outputs are int8.
struct PlainRows {
  uint32_t in_step;              // bytes from the end of the pairs of a row to the next one
  uint32_t pairs_bytes, is_odd;  // of the outputs of a row that come in pairs; whether there is one more
  uint32_t out_stride;           // bytes from an output to the next one
  uint32_t rows_bytes;           // of the pairs of all rows
  uint32_t channels;
};
static_assert(sizeof(Channel) == 36 && sizeof(PlainRows) == 24, "the assembly knows their fields");

// Registers are given out by hand: three words, six pairs of weights, two sums and three pointers are all
// that there are. s8 is the channel, s9 the end of the row, s10 and s11 are the bias, s12 is the end of the
// rows, s14 the scale, s15 the offset, s16 where the channel's pairs begin, s17 its outputs, s18 to s23
// are the fields of PlainRows.
//
// Two outputs (r1, r4) of windows that are one column apart, and of windows that are two apart; one output.
#define QPLAN_ONE_ROW(word, load, first, last) \
  "smlad r1, " word ", " first                 \
  ", r1\n\t"                                   \
  "ldr " word ", " load                        \
  "\n\t"                                       \
  "smlabt r1, " word ", " last ", r1\n\t"
#define QPLAN_ONE                                \
  QPLAN_ONE_ROW("r12", "[r0, #16]!", "r5", "r6") \
  QPLAN_ONE_ROW("lr", "[r0, r2]", "r7", "r8")    \
  QPLAN_ONE_ROW("r11", "[r0, r2, lsl #1]", "r9", "r10")
#define QPLAN_NEAR_ROW(word, load, first, last)                                                     \
  "smlatb r4, " word ", " first ", r4\n\t" QPLAN_ONE_ROW(word, load, first, last) "smlad r4, " word \
                                                                                  ", " last ", r4\n\t"
#define QPLAN_NEAR_TWO                            \
  QPLAN_NEAR_ROW("r12", "[r0, #16]!", "r5", "r6") \
  QPLAN_NEAR_ROW("lr", "[r0, r2]", "r7", "r8")    \
  QPLAN_NEAR_ROW("r11", "[r0, r2, lsl #1]", "r9", "r10")
#define QPLAN_FAR_ROW(word, load, first, last) \
  "smlad r4, " word ", " first                 \
  ", r4\n\t"                                   \
  "ldr " word ", " load                        \
  "\n\t"                                       \
  "smlabt r4, " word ", " last ", r4\n\t"
#define QPLAN_FAR_TWO                            \
  QPLAN_ONE                                      \
  QPLAN_FAR_ROW("r12", "[r0, #16]!", "r5", "r6") \
  QPLAN_FAR_ROW("lr", "[r0, r2]", "r7", "r8")    \
  QPLAN_FAR_ROW("r11", "[r0, r2, lsl #1]", "r9", "r10")

#define QPLAN_STORE_TWO(two_outputs)      \
  "vmov r1, r4, s10, s11\n\t" two_outputs \
  "vmov s0, s1, r1, r4\n\t"               \
  "vmov.f32 s2, s15\n\t"                  \
  "vmov.f32 s3, s15\n\t"                  \
  "vcvt.f32.s32 s0, s0\n\t"               \
  "vcvt.f32.s32 s1, s1\n\t"               \
  "vfma.f32 s2, s0, s14\n\t"              \
  "vfma.f32 s3, s1, s14\n\t"              \
  "vcvt.u32.f32 s2, s2\n\t"               \
  "vcvt.u32.f32 s3, s3\n\t"               \
  "vmov r1, r4, s2, s3\n\t"               \
  "usat r1, #8, r1\n\t"                   \
  "usat r4, #8, r4\n\t"                   \
  "eor r1, r1, #128\n\t"                  \
  "eor r4, r4, #128\n\t"                  \
  "strb r1, [r3]\n\t"                     \
  "vmov r1, s21\n\t"                      \
  "strb r4, [r3, r1]\n\t"                 \
  "add r3, r3, r1, lsl #1\n\t"

// bytes: of the pairs that two outputs move on by. Four outputs in a round; an odd pair of them begins in its
// middle.
#define QPLAN_PLAIN_ROWS(two_outputs, bytes) \
  "vmov s8, r1\n\t" \
  "vmov s16, s17, r0, r3\n\t" \
  "vldmia r4, {s18-s23}\n\t" \
  "5:\n\t" /* A channel. */ \
  "vmov r1, s8\n\t" \
  "ldmia r1!, {r5, r6, r7, r8, r9, r10}\n\t" \
  "vldr s10, [r1]\n\t" \
  "vldr s14, [r1, #4]\n\t" \
  "vldr s15, [r1, #8]\n\t" \
  "add r1, r1, #12\n\t" \
  "vmov s8, r1\n\t" \
  "vmov r1, s22\n\t" \
  "vmov.f32 s11, s10\n\t" \
  "add r1, r1, r0\n\t" \
  "vmov s12, r1\n\t" \
  "1:\n\t" /* A row. */ \
  "vmov r1, s19\n\t" \
  "ldr r12, [r0]\n\t" \
  "ldr lr, [r0, r2]\n\t" \
  "ldr r11, [r0, r2, lsl #1]\n\t" \
  "add r4, r1, r0\n\t" \
  "vmov s9, r4\n\t" \
  "tst r1, #" bytes "\n\t" \
  "bne 6f\n\t" \
  "cmp r1, #0\n\t" \
  "beq 3f\n\t" \
  "2:\n\t" \
  QPLAN_STORE_TWO(two_outputs) \
  "6:\n\t" \
  QPLAN_STORE_TWO(two_outputs) \
  "vmov r1, s9\n\t" \
  "cmp r0, r1\n\t" \
  "bne 2b\n\t" \
  "3:\n\t" /* One more. */ \
  "vmov r1, s20\n\t" \
  "cmp r1, #0\n\t" \
  "beq 4f\n\t" \
  "vmov r1, s10\n\t" \
  QPLAN_ONE \
  "vmov s0, r1\n\t" \
  "vmov.f32 s2, s15\n\t" \
  "vcvt.f32.s32 s0, s0\n\t" \
  "vfma.f32 s2, s0, s14\n\t" \
  "vcvt.u32.f32 s2, s2\n\t" \
  "vmov r1, s2\n\t" \
  "usat r1, #8, r1\n\t" \
  "eor r1, r1, #128\n\t" \
  "vmov r4, s21\n\t" \
  "strb r1, [r3]\n\t" \
  "add r3, r3, r4\n\t" \
  "4:\n\t" \
  "vmov r1, s18\n\t" \
  "add r0, r0, r1\n\t" \
  "vmov r1, s12\n\t" \
  "cmp r0, r1\n\t" \
  "bne 1b\n\t" \
  "vmov r0, r3, s16, s17\n\t" \
  "vmov r1, s23\n\t" \
  "add r0, r0, #4\n\t" \
  "add r3, r3, #1\n\t" \
  "subs r1, r1, #1\n\t" \
  "vmov s16, s17, r0, r3\n\t" \
  "vmov s23, r1\n\t" \
  "bne 5b\n\t"

template <bool kNear>
__attribute__((noinline)) void run_plain_rows(const uint32_t* pairs, const Channel* channel,
                                              uint32_t row_bytes, uint8_t* out, const PlainRows* rows) {
  register const uint32_t* r0 __asm__("r0") = pairs;
  register const Channel* r1 __asm__("r1") = channel;
  register uint32_t r2 __asm__("r2") = row_bytes;
  register uint8_t* r3 __asm__("r3") = out;
  register const PlainRows* r4 __asm__("r4") = rows;
  if constexpr (kNear) {
    __asm__ volatile(QPLAN_PLAIN_ROWS(QPLAN_NEAR_TWO, "16")
                     : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3), "+r"(r4)
                     :
                     : "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "lr", "s0", "s1", "s2", "s3", "s8",
                       "s9", "s10", "s11", "s12", "s14", "s15", "s16", "s17", "s18", "s19", "s20", "s21",
                       "s22", "s23", "cc", "memory");
  } else {
    __asm__ volatile(QPLAN_PLAIN_ROWS(QPLAN_FAR_TWO, "32")
                     : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3), "+r"(r4)
                     :
                     : "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "lr", "s0", "s1", "s2", "s3", "s8",
                       "s9", "s10", "s11", "s12", "s14", "s15", "s16", "s17", "s18", "s19", "s20", "s21",
                       "s22", "s23", "cc", "memory");
  }
}
#endif

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_PLAIN_ROWS_SCALAR_H_
