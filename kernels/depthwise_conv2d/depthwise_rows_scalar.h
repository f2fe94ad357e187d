// Rows under windows of 3x3 for depthwise_conv2d_scalar.cc: those of the input, expanded to what it
// multiplies, and those of outputs, by hand-written assembly. Internal linkage only.
#ifndef QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_ROWS_SCALAR_H_
#define QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_ROWS_SCALAR_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/scalar/dsp.h"

namespace qplan {
namespace {

// ---- rows of the input, four channels at a time, as pairs of neighbouring columns, channel by channel

constexpr uint32_t kBlock = 4;   // channels
constexpr uint32_t kWindow = 3;  // rows and columns

// Words of a row of the input under a row of output: pairs of columns of each channel of a block.
inline uint32_t row_words(const DepthwiseConv2dArgs& a) {
  return ((a.stride_w == 1 ? (a.output_w + 1) / 2 : a.output_w) + 1) * kBlock;
}

#if !defined(QPLAN_ONLY_QUERIES)

#if defined(QPLAN_SCALAR_DSP)
// What the assembly below knows of a row.
struct RowPairs {
  uint32_t left, whole_bytes, right;  // pairs outside the image, inside (their bytes), outside
  uint32_t ends;  // 1: the first pair has its right column inside; 2: the last one its left
  uint32_t step;  // bytes from where a row has been read to the next one
};
static_assert(sizeof(RowPairs) == 20, "the assembly knows its fields");

// Rows (r7) from r0 on to r1 on: r2 is the bytes of a column, r10 the RowPairs, r12 a pair outside the image.
#define QPLAN_STORE_PAIRS(left_even, left_odd, right_even, right_odd) \
  "pkhbt r3, " left_even ", " right_even                              \
  ", lsl #16\n\t"                                                     \
  "pkhbt r4, " left_odd ", " right_odd                                \
  ", lsl #16\n\t"                                                     \
  "pkhtb r5, " right_even ", " left_even                              \
  ", asr #16\n\t"                                                     \
  "pkhtb r6, " right_odd ", " left_odd                                \
  ", asr #16\n\t"                                                     \
  "stmia r1!, {r3, r4, r5, r6}\n\t"
#define QPLAN_OUTSIDE_PAIRS(count, label) \
  "ldr r11, [r10, " count                 \
  "]\n\t"                                 \
  "cmp r11, #0\n\t"                       \
  "beq " label "1f\n" label               \
  "0:\n\t"                                \
  "strd r12, r12, [r1], #8\n\t"           \
  "strd r12, r12, [r1], #8\n\t"           \
  "subs r11, r11, #1\n\t"                 \
  "bne " label "0b\n" label "1:\n\t"
#define QPLAN_EXPAND_COLUMNS(extend)                                                                         \
  "ldr r3, [r0]\n\t"                                                                                         \
  "ldr r4, [r0, r2]\n\t"                                                                                     \
  "add r0, r0, r2, lsl #1\n\t" extend " r5, r3\n\t" extend " r6, r4\n\t" extend " r8, r3, ror #8\n\t" extend \
  " r9, r4, ror #8\n\t" QPLAN_STORE_PAIRS("r5", "r8", "r6", "r9")
#define QPLAN_EXPAND_ROWS(extend) \
  "1:\n\t" QPLAN_OUTSIDE_PAIRS("#0", "2") \
  "ldr lr, [r10, #12]\n\t" \
  "tst lr, #1\n\t" \
  "beq 3f\n\t" \
  "ldr r3, [r0]\n\t" \
  "add r0, r0, r2\n\t" extend " r8, r3\n\t" extend " r9, r3, ror #8\n\t" \
  QPLAN_STORE_PAIRS("r12", "r12", "r8", "r9") \
  "3:\n\t" \
  "ldr r11, [r10, #4]\n\t" \
  "tst r11, #16\n\t" \
  "add r11, r11, r1\n\t" \
  "bne 8f\n\t" \
  "cmp r1, r11\n\t" \
  "beq 5f\n" \
  "4:\n\t" QPLAN_EXPAND_COLUMNS(extend) \
  "8:\n\t" QPLAN_EXPAND_COLUMNS(extend) \
  "cmp r1, r11\n\t" \
  "bne 4b\n" \
  "5:\n\t" \
  "tst lr, #2\n\t" \
  "beq 6f\n\t" \
  "ldr r3, [r0]\n\t" extend " r8, r3\n\t" extend " r9, r3, ror #8\n\t" \
  QPLAN_STORE_PAIRS("r8", "r9", "r12", "r12") \
  "6:\n\t" QPLAN_OUTSIDE_PAIRS("#8", "7") \
  "ldr r3, [r10, #16]\n\t" \
  "subs r7, r7, #1\n\t" \
  "add r0, r0, r3\n\t" \
  "bne 1b\n\t"
#endif

// The even bytes and the odd ones of four channels, extended to int16.
template <bool kSigned>
inline uint32_t even_channels(uint32_t quad) {
  return kSigned ? even_bytes(quad) : even_bytes_u8(quad);
}
template <bool kSigned>
inline uint32_t odd_channels(uint32_t quad) {
  return kSigned ? odd_bytes(quad) : odd_bytes_u8(quad);
}

class RowExpansion {
 public:
  // words: of a row.
  RowExpansion(const DepthwiseConv2dArgs& args, uint32_t words)
      : a_(args),
        row_bytes_(size_t{args.input_w} * args.input_c),
        words_(words),
        outside_(pair_of(args.pad_value, args.pad_value)) {
#if defined(QPLAN_SCALAR_DSP)
    const uint32_t pairs = words / kBlock;
    const uint32_t left = args.pad_left / 2 < pairs ? args.pad_left / 2 : pairs;
    uint32_t columns = args.input_w, right = pairs - left;
    const uint32_t begins = args.pad_left % 2 != 0 && right != 0;
    columns -= begins;
    right -= begins;
    const uint32_t whole = columns / 2 < right ? columns / 2 : right;
    right -= whole;
    const uint32_t ends = columns % 2 != 0 && right != 0;
    row_ = {left, whole * kBlock * 4, right - ends, begins | ends << 1,
            static_cast<uint32_t>(row_bytes_) - (begins + 2 * whole) * args.input_c};
#endif
  }

  size_t row_bytes() const { return row_bytes_; }
  uint32_t words() const { return words_; }

  // Expands input rows [y, y + rows) of channels [c, c + count) of an image, as pairs of columns from
  // -pad_left on, one row after another.
  __attribute__((noinline)) void expand(const uint8_t* image, int32_t y, uint32_t rows, uint32_t c,
                                        uint32_t count, uint32_t* to) const {
    uint32_t* const begin = to;
    for (; rows > 0 && y < 0; --rows, ++y) to = fill_row(to);
    uint32_t inside = 0;
    if (static_cast<uint32_t>(y) < a_.input_h) {
      inside = a_.input_h - static_cast<uint32_t>(y);
      if (inside > rows) inside = rows;
    }
    if (inside != 0) to = expand_inside(image + static_cast<uint32_t>(y) * row_bytes_ + c, inside, count, to);
    for (rows -= inside; rows > 0; --rows) to = fill_row(to);
    if (kOnlyForm || a_.input_zero_point == 0) return;
    const uint32_t zero_points = pair_of(a_.input_zero_point, a_.input_zero_point);
    for (uint32_t* pair = begin; pair != to; ++pair) *pair = subtract_pairs(*pair, zero_points);
  }

 private:
  uint32_t* fill_row(uint32_t* to) const {
    uint32_t* const end = to + words_;
#if defined(QPLAN_SCALAR_DSP)
    __asm__ volatile(
        "1:\n\t"
        "strd %[pair], %[pair], [%[to]], #8\n\t"
        "strd %[pair], %[pair], [%[to]], #8\n\t"
        "cmp %[to], %[end]\n\t"
        "bne 1b\n\t"
        : [to] "+r"(to)
        : [pair] "r"(outside_), [end] "r"(end)
        : "cc", "memory");
#else
    for (; to != end; to += kBlock) to[0] = to[1] = to[2] = to[3] = outside_;
#endif
    return to;
  }

  // Rows of the image; returns where the next ones go.
  uint32_t* expand_inside(const uint8_t* row, uint32_t rows, uint32_t count, uint32_t* to) const {
#if defined(QPLAN_SCALAR_DSP)
    if (kOnlyForm || count == kBlock) {
      return kOnlyForm || a_.input_dtype == Dtype::kS8 ? expand_blocks<true>(row, rows, to)
                                                       : expand_blocks<false>(row, rows, to);
    }
#endif
    const bool is_signed = a_.input_dtype == Dtype::kS8;
    for (; rows > 0; --rows, row += row_bytes_) {
      to = is_signed ? expand_columns<true>(row, count, to) : expand_columns<false>(row, count, to);
    }
    return to;
  }

#if defined(QPLAN_SCALAR_DSP)
  template <bool kSigned>
  __attribute__((always_inline)) uint32_t* expand_blocks(const uint8_t* from, uint32_t count,
                                                         uint32_t* to) const {
    register const uint8_t* r0 __asm__("r0") = from;
    register uint32_t* r1 __asm__("r1") = to;
    register size_t r2 __asm__("r2") = a_.input_c;
    register uint32_t rows __asm__("r7") = count;
    register const RowPairs* r10 __asm__("r10") = &row_;
    register uint32_t r12 __asm__("r12") = outside_;
    if constexpr (kSigned) {
      __asm__ volatile(QPLAN_EXPAND_ROWS("sxtb16")
                       : "+r"(r0), "+r"(r1), "+r"(rows)
                       : "r"(r2), "r"(r10), "r"(r12)
                       : "r3", "r4", "r5", "r6", "r8", "r9", "r11", "lr", "cc", "memory");
    } else {
      __asm__ volatile(QPLAN_EXPAND_ROWS("uxtb16")
                       : "+r"(r0), "+r"(r1), "+r"(rows)
                       : "r"(r2), "r"(r10), "r"(r12)
                       : "r3", "r4", "r5", "r6", "r8", "r9", "r11", "lr", "cc", "memory");
    }
    return r1;
  }
#endif

  // A row of a block, column by column; the last one may have fewer than four channels.
  template <bool kSigned>
  __attribute__((noinline)) uint32_t* expand_columns(const uint8_t* row, uint32_t count, uint32_t* to) const {
    for (uint32_t pair = 0; pair < words_ / kBlock; ++pair, to += kBlock) {
      const uint32_t x = 2 * pair - a_.pad_left;  // wraps below 0
      const uint32_t left = column(row, x, count), right = column(row, x + 1, count);
      const uint32_t left_even = even_channels<kSigned>(left), right_even = even_channels<kSigned>(right);
      const uint32_t left_odd = odd_channels<kSigned>(left), right_odd = odd_channels<kSigned>(right);
      to[0] = low_halves(left_even, right_even);
      to[1] = low_halves(left_odd, right_odd);
      to[2] = high_halves(left_even, right_even);
      to[3] = high_halves(left_odd, right_odd);
    }
    return to;
  }

  // The channels of a column of a row; outside the image, those of the padding.
  uint32_t column(const uint8_t* row, uint32_t x, uint32_t count) const {
    if (x >= a_.input_w) return static_cast<uint8_t>(a_.pad_value) * 0x01010101u;
    const uint8_t* from = row + size_t{x} * a_.input_c;
    if (count == kBlock) return load_quad(from);
    uint32_t quad = 0;
    for (uint32_t i = 0; i < count; ++i) quad |= static_cast<uint32_t>(from[i]) << (8 * i);
    return quad;
  }

  const DepthwiseConv2dArgs& a_;
  const size_t row_bytes_;
  const uint32_t words_, outside_;  // outside_: a pair of the padding
#if defined(QPLAN_SCALAR_DSP)
  RowPairs row_;
#endif
};

#endif

// ---- outputs, channel by channel and two at a time, by assembly for cores with the DSP extension and
// floating point: what runs where a product and a sum in float make the outputs

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

#endif  // QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_ROWS_SCALAR_H_
