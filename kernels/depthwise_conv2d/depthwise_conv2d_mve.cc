// depthwise_conv2d with MVE. Windows of up to 4x4, which nearly all networks have: a word of scratch memory
// holds a column of one channel, four rows of it, and the columns of a channel are neighbours, so that a
// window is one vector and VMLADAVA makes its sum. A row of input takes the place of the oldest one in the
// words, and the weights are rotated to meet it: each row is scattered once, and the output may take the
// place of the input, whose row has been read before. Other windows: four channels at a time, tap by tap.
#include <stddef.h>
#include <stdint.h>

#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_taps.h"
#include "kernels/simd/dots_mve.h"

namespace qplan::depthwise_conv2d_mve {
namespace {

constexpr uint32_t kSlots = 4;  // rows of a word, columns of a vector
constexpr uint32_t kGroup = 4;  // channels whose outputs are made at once
constexpr uint32_t kMaxColumns = 1 << 10;
constexpr uint32_t kMaxExtent = 1 << 16;
constexpr uint64_t kMaxTaps = 1 << 10;
// Channels of a block are eight, which is what a row is read by, or four where columns take more scratch
// memory than this: in small memories it counts.
constexpr size_t kMaxBlockBytes = 1024;

inline bool has_small_window(const DepthwiseConv2dArgs& a) {
  return a.kernel_h <= kSlots && a.kernel_w <= kSlots && a.dilation_h == 1 && a.dilation_w == 1 &&
         a.weights_zero_point == 0 && a.stride_w <= kMaxExtent && a.stride_h <= kMaxExtent &&
         uint64_t{a.output_w - 1} * a.stride_w + kSlots <= kMaxColumns;
}

// Columns under a row of output, those that are read beside the last window included.
inline uint32_t num_columns(const DepthwiseConv2dArgs& a) { return (a.output_w - 1) * a.stride_w + kSlots; }
inline size_t pitch_of(const DepthwiseConv2dArgs& a) { return size_t{num_columns(a)} * kSlots; }
inline uint32_t block_channels(const DepthwiseConv2dArgs& a) {
  return a.input_c > kGroup && 2 * kGroup * pitch_of(a) <= kMaxBlockBytes ? 2 * kGroup : kGroup;
}

// Scratch: the columns, a Row, then a Group for each four channels of a block: stacks of small devices are
// short.
constexpr size_t kRowBytes = 64;
constexpr size_t kGroupBytes = 96;
inline size_t columns_bytes(const DepthwiseConv2dArgs& a) {
  return (block_channels(a) * pitch_of(a) + 15) / 16 * 16;
}

// Whether the output takes the place of the input; bind has checked that it may.
inline bool is_in_place(const DepthwiseConv2dArgs& a) { return a.input != nullptr && a.input == a.output; }

#if !defined(QPLAN_ONLY_QUERIES)

// Four channels, and what a row of outputs of any of them takes. Multipliers and what a Row has are for TFL2
// without shifts to the left.
struct Group {
  int32_t multiplier[kGroup];
  int32_t bias[kGroup];  // less what the zero point and the sign bias of inputs make
  // Words of columns, in which the window's first row is the least significant byte.
  uint32_t weights[kGroup][kSlots];
};
struct Row {
  int32_t clamp_min[kGroup], clamp_max[kGroup];
  uint32_t pitch;     // bytes from the columns of a channel to those of the next one
  uint32_t out_step;  // bytes from an output to the next one
  uint32_t count;
  int32_t zero_point;
  // By how much words are shifted to meet those of columns: rotated, as the second count is negative.
  int32_t left, right;
};
static_assert(sizeof(Group) == kGroupBytes && sizeof(Row) <= kRowBytes, "scratch memory has room for them");

#if defined(QPLAN_MVE)
static_assert(sizeof(Row) == 56 && offsetof(Group, weights) == 32 && offsetof(Row, left) == 48,
              "the assembly knows their fields");

#define QPLAN_MVE_ROTATE(to, from) \
  "vldrw.u32 " to ", [r8, " from   \
  "]\n\t"                          \
  "vmov q5, " to                   \
  "\n\t"                           \
  "vshl.u32 " to                   \
  ", r5\n\t"                       \
  "vshl.u32 q5, r6\n\t"            \
  "vorr " to ", " to ", q5\n\t"
#define QPLAN_MVE_GROUP_ROW(step) \
  __asm__ volatile(                          \
      "mov r8, r0\n\t"                       \
      "mov r12, r3\n\t"                      \
      "ldrd r5, r6, [r12, #48]\n\t"          \
      "vldrw.u32 q7, [r2]\n\t"               \
      "vldrw.u32 q4, [r8, #16]\n\t"          \
      QPLAN_MVE_ROTATE("q0", "#32")          \
      QPLAN_MVE_ROTATE("q1", "#48")          \
      QPLAN_MVE_ROTATE("q2", "#64")          \
      QPLAN_MVE_ROTATE("q3", "#80")          \
      "ldrd r2, r11, [r12, #32]\n\t"         \
      "add r3, r1, r2\n\t"                   \
      "add r5, r3, r2\n\t"                   \
      "add r9, r5, r2\n\t"                   \
      "ldrd r2, r10, [r12, #40]\n\t"         \
      "dls lr, r2\n"                         \
      "1:\n\t"                               \
      "vmov r0, r4, q4[2], q4[0]\n\t"        \
      "vmov r2, r6, q4[3], q4[1]\n\t"        \
      "vldrw.u32 q5, [r1], " step "\n\t"     \
      "vmladava.s8 r0, q0, q5\n\t"           \
      "vldrw.u32 q6, [r3], " step "\n\t"     \
      "vmladava.s8 r2, q1, q6\n\t"           \
      "vldrw.u32 q5, [r5], " step "\n\t"     \
      "vmladava.s8 r4, q2, q5\n\t"           \
      "vldrw.u32 q6, [r9], " step "\n\t"     \
      "vmladava.s8 r6, q3, q6\n\t"           \
      "vldrw.u32 q6, [r8]\n\t"               \
      "vmov q5[2], q5[0], r0, r4\n\t"        \
      "vmov q5[3], q5[1], r2, r6\n\t"        \
      "vqrdmulh.s32 q5, q5, q6\n\t"          \
      "vand q6, q5, q7\n\t"                  \
      "vshr.s32 q6, q6, #31\n\t"             \
      "vqadd.s32 q5, q5, q6\n\t"             \
      "vldrw.u32 q6, [r12]\n\t"              \
      "vrshl.s32 q5, q5, q7\n\t"             \
      "vqadd.s32 q5, q5, r10\n\t"            \
      "vmax.s32 q5, q5, q6\n\t"              \
      "vldrw.u32 q6, [r12, #16]\n\t"         \
      "vmin.s32 q5, q5, q6\n\t"              \
      "vstrb.32 q5, [r7]\n\t"                \
      "add r7, r7, r11\n\t"                  \
      "le lr, 1b\n\t"                        \
      : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3), "+r"(r7) \
      :                                      \
      : "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory", QPLAN_MVE_VECTORS)

// Outputs of a row of four channels, whose shifts and columns begin at `shift` and `columns`. kStride columns
// from a window to the next.
template <uint32_t kStride>
__attribute__((noinline)) void run_group_row(const Group* group, const uint8_t* columns,
                                             const int32_t* shift, const Row* row, uint8_t* out) {
  register const Group* r0 __asm__("r0") = group;
  register const uint8_t* r1 __asm__("r1") = columns;
  register const int32_t* r2 __asm__("r2") = shift;
  register const Row* r3 __asm__("r3") = row;
  register uint8_t* r7 __asm__("r7") = out;
  if constexpr (kStride == 1) {
    QPLAN_MVE_GROUP_ROW("#4");
  } else {
    QPLAN_MVE_GROUP_ROW("#8");
  }
}
#undef QPLAN_MVE_GROUP_ROW
#undef QPLAN_MVE_ROTATE
#endif

inline int32_t window_sum(const uint8_t* columns, const uint32_t (&weights)[kSlots], int32_t sum) {
#if defined(QPLAN_MVE)
  return vmladavaq_s8(sum, vldrbq_s8(reinterpret_cast<const int8_t*>(columns)),
                      vldrbq_s8(reinterpret_cast<const int8_t*>(weights)));
#else
  const auto* w = reinterpret_cast<const int8_t*>(weights);
  for (uint32_t i = 0; i < kSlots * kSlots; ++i) sum = wrap_add(sum, static_cast<int8_t>(columns[i]) * w[i]);
  return sum;
#endif
}

class Depthwise {
 public:
  Depthwise(const DepthwiseConv2dArgs& args, void* scratch)
      : a_(args),
        row_bytes_(size_t{args.input_w} * args.input_c),
        weights_stride_((size_t{args.output_c} + 15) / 16 * 16),
        sign_bias_(args.input_dtype == Dtype::kS8 ? 0 : 0x80),
        columns_(static_cast<uint8_t*>(scratch)),
        row_(reinterpret_cast<Row*>(columns_ + columns_bytes(args))),
        groups_(reinterpret_cast<Group*>(columns_ + columns_bytes(args) + kRowBytes)),
        pitch_(pitch_of(args)),
        is_fast_(args.contract == Contract::kTfl2 && args.stride_w <= 2 &&
                 !shifts_left(args.shift, args.output_c)) {
    const uint32_t all = num_columns(args);
    const uint32_t room = args.pad_left < all ? all - args.pad_left : 0;
    inside_columns_ = args.input_w < room ? args.input_w : room;
    for (uint32_t i = 0; i < kGroup; ++i) {
      row_->clamp_min[i] = args.clamp_min;
      row_->clamp_max[i] = args.clamp_max;
    }
    row_->pitch = static_cast<uint32_t>(pitch_);
    row_->out_step = args.output_c;
    row_->count = args.output_w;
    row_->zero_point = args.output_zero_point;
  }

  // Output rows [begin, end) of all images.
  void run(uint32_t begin, uint32_t end) {
    const uint32_t block = block_channels(a_);
    for (uint32_t c = 0; c < a_.input_c; c += block) {
      run_block(begin, end, c, a_.input_c - c < block ? a_.input_c - c : block);
    }
  }

 private:
  void run_block(uint32_t begin, uint32_t end, uint32_t c, uint32_t count) {
#if defined(QPLAN_MVE)
    const auto run = a_.stride_w == 1 ? run_group_row<1> : run_group_row<2>;
#endif
    for (uint32_t i = 0; i < count; i += kGroup) prepare(c + i, groups_ + i / kGroup);
    fill_bytes(columns_, static_cast<uint8_t>(a_.pad_value) ^ sign_bias_, count * pitch_);
    int32_t held =
        INT32_MIN;  // rows of the image at hand before this one are held, as far as they are needed
    for (uint32_t row = begin; row < end; ++row) {
      uint32_t n = 0, y = row;
      if (a_.batch != 1) {
        n = row / a_.output_h;
        y = row % a_.output_h;
      }
      const int32_t first = static_cast<int32_t>(y * a_.stride_h) - static_cast<int32_t>(a_.pad_top);
      const int32_t last = first + static_cast<int32_t>(a_.kernel_h);
      if (y == 0 || row == begin || held < first) held = first;
      for (; held < last; ++held) read_row(n, held, c, count);
      uint8_t* out = static_cast<uint8_t*>(a_.output) + size_t{row} * a_.output_w * a_.output_c + c;
      row_->left = static_cast<int32_t>(8 * (static_cast<uint32_t>(first) % kSlots));
      row_->right = row_->left - 32;
      uint32_t i = 0;
#if defined(QPLAN_MVE)
      if (is_fast_) {
        const Group* group = groups_;
        const uint8_t* columns = columns_;
        for (const int32_t* shift = a_.shift + c; i + kGroup <= count;
             i += kGroup, ++group, shift += kGroup, columns += kGroup * pitch_) {
          run(group, columns, shift, row_, out + i);
        }
      }
#endif
      for (; i < count; i += kGroup) {
        run_group(groups_[i / kGroup], c + i, count - i, columns_ + i * pitch_, out + i);
      }
    }
  }

  // Four channels, of which those after the last one have zeros: the layout has whole blocks of 16. A cascade
  // prepares them for each row of output.
  __attribute__((noinline)) void prepare(uint32_t c, Group* group) const {
    const int8_t* from = a_.weights + c;
    auto* words = reinterpret_cast<int8_t*>(group->weights);
    // Factors are x ^ sign_bias as int8, which is x less the sign bias.
    const int32_t factor = sign_bias_ - a_.input_zero_point;
#if defined(QPLAN_MVE)
    const uint32x4_t offsets = vmulq_n_u32(vidupq_n_u32(0, 1), kSlots * kSlots);
    for (auto& channel : group->weights) vstrwq_u32(channel, vdupq_n_u32(0));
    int32x4_t sums = vdupq_n_s32(0);
    for (uint32_t ky = 0; ky < a_.kernel_h; ++ky) {
      int8_t* to = words + ky;
      for (uint32_t kx = a_.kernel_w; kx > 0; --kx, to += kSlots, from += weights_stride_) {
        const int32x4_t weights = vldrbq_s32(from);
        vstrbq_scatter_offset_s32(to, offsets, weights);
        sums = vaddq_s32(sums, weights);
      }
    }
    vstrwq_s32(group->bias, vmlaq_n_s32(vldrwq_s32(a_.bias + c), sums, factor));
#else
    fill_bytes(reinterpret_cast<uint8_t*>(words), 0, sizeof(group->weights));
    int32_t sums[kGroup] = {};
    for (uint32_t ky = 0; ky < a_.kernel_h; ++ky) {
      for (uint32_t kx = 0; kx < a_.kernel_w; ++kx, from += weights_stride_) {
        for (uint32_t i = 0; i < kGroup; ++i) {
          words[(i * kSlots + kx) * kSlots + ky] = from[i];
          sums[i] += from[i];
        }
      }
    }
    for (uint32_t i = 0; i < kGroup; ++i) {
      group->bias[i] = wrap_add(a_.bias[c + i], wrap_mul(factor, sums[i]));
    }
#endif
    if (!is_fast_) return;
#if defined(QPLAN_MVE)
    vstrwq_s32(group->multiplier, vldrwq_s32(a_.multiplier + c));
#else
    for (uint32_t i = 0; i < kGroup; ++i) group->multiplier[i] = a_.multiplier[c + i];
#endif
  }

  // Scatters row y of channels [c, c + count) into its bytes of the columns.
  __attribute__((noinline)) void read_row(uint32_t n, int32_t y, uint32_t c, uint32_t count) const {
    const bool is_inside = y >= 0 && static_cast<uint32_t>(y) < a_.input_h;
    uint8_t* to = columns_ + size_t{a_.pad_left} * kSlots + static_cast<uint32_t>(y) % kSlots;
    const uint8_t pad = static_cast<uint8_t>(a_.pad_value) ^ sign_bias_;
    const uint8_t* from = nullptr;
    if (is_inside) {
      from = static_cast<const uint8_t*>(a_.input) + n * a_.input_h * row_bytes_ +
             static_cast<size_t>(y) * row_bytes_ + c;
    }
#if defined(QPLAN_MVE)
    const mve_pred16_t lanes = vctp16q(count);
    const uint16x8_t offsets = vmulq_n_u16(vidupq_n_u16(0, 1), static_cast<uint16_t>(pitch_));
    if (!is_inside) {
      const uint16x8_t pads = vdupq_n_u16(pad);
      for (uint32_t x = inside_columns_; x > 0; --x, to += kSlots) {
        vstrbq_scatter_offset_p_u16(to, offsets, pads, lanes);
      }
      return;
    }
    if (count == 2 * kGroup && sign_bias_ == 0) {
      for (uint32_t x = inside_columns_; x > 0; --x, to += kSlots, from += a_.input_c) {
        vstrbq_scatter_offset_u16(to, offsets, vldrbq_u16(from));
      }
      return;
    }
    const uint16x8_t sign_biases = vdupq_n_u16(sign_bias_);
    for (uint32_t x = inside_columns_; x > 0; --x, to += kSlots, from += a_.input_c) {
      vstrbq_scatter_offset_p_u16(to, offsets, veorq_u16(vldrbq_z_u16(from, lanes), sign_biases), lanes);
    }
#else
    for (uint32_t x = 0; x < inside_columns_; ++x, to += kSlots) {
      for (uint32_t i = 0; i < count; ++i) {
        to[i * pitch_] =
            is_inside ? static_cast<uint8_t>(from[size_t{x} * a_.input_c + i] ^ sign_bias_) : pad;
      }
    }
#endif
  }

  // A row of up to four channels, by the contract's formula.
  void run_group(const Group& group, uint32_t c, uint32_t count, const uint8_t* columns,
                 uint8_t* out_row) const {
    const uint32_t some = count < kGroup ? count : kGroup;
    const size_t step = size_t{a_.stride_w} * kSlots;
    for (uint32_t i = 0; i < some; ++i) {
      uint32_t weights[kSlots];
      for (uint32_t kx = 0; kx < kSlots; ++kx) {
        const uint32_t w = group.weights[i][kx], left = static_cast<uint32_t>(row_->left);
        weights[kx] = w << left | w >> (32 - left) % 32;
      }
      const uint8_t* column = columns + i * pitch_;
      uint8_t* out = out_row + i;
      for (uint32_t x = 0; x < a_.output_w; ++x, out += a_.output_c, column += step) {
        const int32_t sum = window_sum(column, weights, group.bias[i]);
        *out = static_cast<uint8_t>(requantize_channel(a_, sum, c + i));
      }
    }
  }

  const DepthwiseConv2dArgs& a_;
  const size_t row_bytes_, weights_stride_;
  const uint8_t sign_bias_;
  uint8_t* const columns_;
  Row* const row_;
  Group* const groups_;
  const size_t pitch_;  // bytes of the columns of a channel
  const bool is_fast_;
  uint32_t inside_columns_;
};

// ---- other windows ----

// The sums of channels [c, c + count) of the window at (y, x), four at most.
inline void any_window(const DepthwiseConv2dArgs& a, const uint8_t* image, int32_t y, int32_t x, uint32_t c,
                       uint32_t count, int32_t* sums) {
  const size_t weights_stride = (size_t{a.output_c} + 15) / 16 * 16;
  const int8_t* weights = a.weights + c;
  const int32_t outside = a.pad_value - a.input_zero_point;
  const bool is_signed = a.input_dtype == Dtype::kS8;
#if defined(QPLAN_MVE)
  const mve_pred16_t lanes = vctp32q(count);
  int32x4_t sum = vldrwq_z_s32(a.bias + c, lanes);
#else
  for (uint32_t i = 0; i < count; ++i) sums[i] = a.bias[c + i];
#endif
  for (uint32_t ky = 0; ky < a.kernel_h; ++ky) {
    const int32_t iy = y + static_cast<int32_t>(ky * a.dilation_h);
    for (uint32_t kx = 0; kx < a.kernel_w; ++kx, weights += weights_stride) {
      const int32_t ix = x + static_cast<int32_t>(kx * a.dilation_w);
      const bool is_inside = iy >= 0 && ix >= 0 && static_cast<uint32_t>(iy) < a.input_h &&
                             static_cast<uint32_t>(ix) < a.input_w;
      const uint8_t* from = image;
      if (is_inside) {
        from += (size_t{static_cast<uint32_t>(iy)} * a.input_w + static_cast<uint32_t>(ix)) * a.input_c + c;
      }
#if defined(QPLAN_MVE)
      int32x4_t input = vdupq_n_s32(outside);
      if (is_inside) {
        input = is_signed ? vldrbq_z_s32(reinterpret_cast<const int8_t*>(from), lanes)
                          : vreinterpretq_s32_u32(vldrbq_z_u32(from, lanes));
        input = vsubq_n_s32(input, a.input_zero_point);
      }
      const int32x4_t w = vsubq_n_s32(vldrbq_s32(weights), a.weights_zero_point);
      sum = vaddq_s32(sum, vmulq_s32(input, w));
#else
      for (uint32_t i = 0; i < count; ++i) {
        const int32_t byte = is_signed && is_inside ? static_cast<int8_t>(from[i]) : is_inside ? from[i] : 0;
        const int32_t input = is_inside ? byte - a.input_zero_point : outside;
        sums[i] = wrap_add(sums[i], input * (weights[i] - a.weights_zero_point));
      }
#endif
    }
  }
#if defined(QPLAN_MVE)
  vstrwq_p_s32(sums, sum, lanes);
#endif
}

inline void run_any_windows(const DepthwiseConv2dArgs& a, uint32_t begin, uint32_t end) {
  for (uint32_t row = begin; row < end; ++row) {
    const uint32_t n = row / a.output_h, y = row % a.output_h;
    const uint8_t* image =
        static_cast<const uint8_t*>(a.input) + size_t{n} * a.input_h * a.input_w * a.input_c;
    uint8_t* out = static_cast<uint8_t*>(a.output) + size_t{row} * a.output_w * a.output_c;
    const int32_t first = static_cast<int32_t>(y * a.stride_h) - static_cast<int32_t>(a.pad_top);
    for (uint32_t x = 0; x < a.output_w; ++x, out += a.output_c) {
      const int32_t left = static_cast<int32_t>(x * a.stride_w) - static_cast<int32_t>(a.pad_left);
      for (uint32_t c = 0; c < a.input_c; c += kGroup) {
        const uint32_t count = a.input_c - c < kGroup ? a.input_c - c : kGroup;
        int32_t sums[kGroup];
        any_window(a, image, first, left, c, count, sums);
        for (uint32_t i = 0; i < count; ++i) {
          out[c + i] = static_cast<uint8_t>(requantize_channel(a, sums[i], c + i));
        }
      }
    }
  }
}

#endif

}  // namespace

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const DepthwiseConv2dArgs& a) {
  if (a.contract == Contract::kAcc32) return Refusal::kContract;
  if (a.output_c != a.input_c) return Refusal::kGroups;
  if (a.weights_layout != kLayout_hwo16) return Refusal::kLayout;
  // In place, rows are read into columns before they are overwritten where they belong to a window by then.
  if (is_in_place(a) && (!has_small_window(a) || a.pad_top >= a.kernel_h)) return Refusal::kWindow;
  const bool fits = a.input_c <= (1u << 24) && a.output_w <= kMaxExtent && a.pad_left <= kMaxExtent &&
                    a.pad_top <= kMaxExtent && uint64_t{a.kernel_h} * a.kernel_w <= kMaxTaps;
  return fits ? Refusal::kNone : Refusal::kTooLarge;
}

size_t scratch_bytes(const DepthwiseConv2dArgs& a) {
  if (!has_small_window(a)) return 0;
  return (columns_bytes(a) + kRowBytes + block_channels(a) / kGroup * kGroupBytes + 63) / 64 * 64;
}

uint32_t work_items(const DepthwiseConv2dArgs& a) { return is_in_place(a) ? a.batch : a.batch * a.output_h; }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const DepthwiseConv2dArgs& a, uint32_t begin, uint32_t end, void* scratch) {
  if (is_in_place(a)) {
    begin *= a.output_h;
    end *= a.output_h;
  }
  if (!has_small_window(a)) return run_any_windows(a, begin, end);
  Depthwise(a, scratch).run(begin, end);
}
#endif

}  // namespace qplan::depthwise_conv2d_mve
