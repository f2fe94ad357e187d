// depthwise_conv2d for cores that compute in general registers. Windows of 3x3, which nearly all networks
// have: four channels at a time, the three input rows under a row of output are in scratch memory as pairs of
// neighbouring columns, channel by channel, so that two outputs of a channel take three words and twelve
// instructions that multiply. A row is expanded once for all rows of output in a range of work items, so that
// the output may take the place of the input: what a stripe of output overwrites has been expanded before.
// Other windows: tap by tap.
#include <stddef.h>
#include <stdint.h>

#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/depthwise_conv2d/depthwise_rows_scalar.h"
#include "kernels/depthwise_conv2d/depthwise_taps.h"
#include "kernels/scalar/outputs.h"

namespace qplan {
namespace {

constexpr uint32_t kMaxStride = 1 << 8;
constexpr uint32_t kMaxWidth = 1 << 16;
constexpr uint64_t kMaxTaps = 1 << 10;

inline bool is_3x3(const DepthwiseConv2dArgs& a) {
  return a.kernel_h == kWindow && a.kernel_w == kWindow && a.dilation_h == 1 && a.dilation_w == 1 &&
         (a.stride_w == 1 || a.stride_w == 2) && a.stride_h <= kMaxStride;
}

// Whether the output takes the place of the input; bind has checked that it may.
inline bool is_in_place(const DepthwiseConv2dArgs& a) { return a.input != nullptr && a.input == a.output; }

// Output rows of a stripe: the more, the fewer rows move from one to the next and the fewer weights are read
// again. In place, scratch memory adds to what is least there.
constexpr uint32_t kStripeWords = 512;
constexpr uint32_t kSmallStripeWords = 128;
inline uint32_t stripe_rows(const DepthwiseConv2dArgs& a) {
  const uint32_t input_rows = (is_in_place(a) ? kSmallStripeWords : kStripeWords) / row_words(a);
  if (input_rows < kWindow + a.stride_h) return 1;
  const uint32_t rows = (input_rows - kWindow) / a.stride_h + 1;
  return rows < a.output_h ? rows : a.output_h;
}
inline size_t stripe_words(const DepthwiseConv2dArgs& a) {
  return (size_t{stripe_rows(a) - 1} * a.stride_h + kWindow) * row_words(a);
}

inline Refusal scalar_accepts(const DepthwiseConv2dArgs& a) {
  if (a.contract == Contract::kAcc32) return Refusal::kContract;
  if (a.output_c != a.input_c) return Refusal::kGroups;
  if (a.weights_layout != kLayout_hwo16) return Refusal::kLayout;
  if (kIsForm && (!has_form_alone(a) || !is_3x3(a) || a.input_c % kBlock != 0)) return Refusal::kContract;
  // In place, rows must be expanded before they are overwritten: they belong to a window by then.
  if ((a.pad_top >= kWindow || !is_3x3(a)) && is_in_place(a)) return Refusal::kWindow;
  const bool fits = a.input_c <= (1u << 24) && a.output_w <= kMaxWidth && a.pad_left <= kMaxWidth &&
                    a.pad_top <= kMaxWidth && (kIsForm || uint64_t{a.kernel_h} * a.kernel_w <= kMaxTaps);
  return fits ? Refusal::kNone : Refusal::kTooLarge;
}

inline size_t scalar_scratch_bytes(const DepthwiseConv2dArgs& a) {
  const size_t bytes = is_3x3(a) ? stripe_words(a) * sizeof(uint32_t) : 0;
  return (bytes + 63) / 64 * 64;
}

#if !defined(QPLAN_ONLY_QUERIES)

class Depthwise {
 public:
  Depthwise(const DepthwiseConv2dArgs& args, void* scratch)
      : a_(args),
        outputs_(args),
        stripe_rows_(is_3x3(args) ? stripe_rows(args) : 0),
        expansion_(args, is_3x3(args) ? row_words(args) : 0),
        pairs_(static_cast<uint32_t*>(scratch)) {
#if defined(QPLAN_SCALAR_FPU)
    const bool is_near = args.stride_w == 1;
    plain_.pairs_bytes = args.output_w / 2 * (is_near ? 1 : 2) * kBlock * 4;
    plain_.is_odd = args.output_w % 2;
    plain_.out_stride = args.output_c;
    plain_.in_step = (expansion_.words() * args.stride_h - plain_.is_odd * kBlock) * 4 - plain_.pairs_bytes;
#endif
  }

  void run(uint32_t begin, uint32_t end) {
    const TowardsZero rounding(outputs_.rounds_towards_zero());
    if (is_in_place(a_)) {
      begin *= a_.output_h;
      end *= a_.output_h;
    }
    if (!kOnlyForm && !is_3x3(a_)) {
      for (uint32_t row = begin; row < end; ++row) run_any_window(row);
      return;
    }
    for (uint32_t c = 0; c < a_.input_c; c += kBlock) run_block(begin, end, c);
  }

 private:
  const uint8_t* image_of(uint32_t n) const {
    return static_cast<const uint8_t*>(a_.input) + n * a_.input_h * expansion_.row_bytes();
  }
  int32_t value(uint8_t byte) const {
    return a_.input_dtype == Dtype::kS8 ? static_cast<int8_t>(byte) : byte;
  }
  // Computed where it is needed: a smaller object is less stack.
  size_t weights_stride() const { return (size_t{a_.output_c} + 15) / 16 * 16; }

  // ---- windows of 3x3 ----

  void run_block(uint32_t begin, uint32_t end, uint32_t c) {
    const uint32_t count = !kOnlyForm && a_.input_c - c < kBlock ? a_.input_c - c : kBlock;
    Channel channels[kBlock];
    read_channels(c, count, channels);
    int32_t held = 0;  // input rows of the image that are expanded: those before this one
    for (uint32_t row = begin; row < end;) {
      uint32_t n = 0, y = row;
      if (a_.batch != 1) {
        n = row / a_.output_h;
        y = row % a_.output_h;
      }
      uint32_t rows = stripe_rows_;
      if (rows > a_.output_h - y) rows = a_.output_h - y;
      if (rows > end - row) rows = end - row;
      const int32_t first = static_cast<int32_t>(y * a_.stride_h) - static_cast<int32_t>(a_.pad_top);
      const uint32_t num_rows = (rows - 1) * a_.stride_h + kWindow;
      uint32_t kept = 0;
      if (row != begin && y != 0 && first < held) {
        kept = static_cast<uint32_t>(held - first);
        move_rows(pairs_ + (held_rows_ - kept) * expansion_.words(), kept);
      }
      if (kept < num_rows) {
        expansion_.expand(image_of(n), first + static_cast<int32_t>(kept), num_rows - kept, c, count,
                          pairs_ + kept * expansion_.words());
      }
      held = first + static_cast<int32_t>(num_rows);
      held_rows_ = num_rows;
      uint8_t* out = static_cast<uint8_t*>(a_.output) + size_t{row} * a_.output_w * a_.output_c + c;
      run_stripe_of_block(channels, count, rows, c, out);
      row += rows;
    }
  }

  // Expanded rows to the front.
  void move_rows(const uint32_t* from, uint32_t rows) const {
    if (from == pairs_) return;
    uint32_t* to = pairs_;
    uint32_t* const end = to + rows * expansion_.words();
#if defined(QPLAN_SCALAR_DSP)
    if (rows == 0) return;
    __asm__ volatile(
        "1:\n\t"
        "ldmia %[from]!, {r3, r4, r5, r6}\n\t"
        "stmia %[to]!, {r3, r4, r5, r6}\n\t"
        "cmp %[to], %[end]\n\t"
        "bne 1b\n\t"
        : [from] "+r"(from), [to] "+r"(to)
        : [end] "r"(end)
        : "r3", "r4", "r5", "r6", "cc", "memory");
#else
    for (; to != end; to += kBlock, from += kBlock) {
      const uint32_t a = from[0], b = from[1], c = from[2], d = from[3];
      to[0] = a;
      to[1] = b;
      to[2] = c;
      to[3] = d;
    }
#endif
  }

  // Reads the weights of channels [c, c + count), which all stripes use. The layout has whole blocks.
  __attribute__((noinline)) void read_channels(uint32_t c, uint32_t count, Channel* channels) const {
    const int8_t* at = a_.weights + c;
    const size_t stride = weights_stride();
    for (uint32_t ky = 0; ky < kWindow; ++ky, at += kWindow * stride) {
      const uint32_t left = load_quad(at), middle = load_quad(at + stride),
                     right = load_quad(at + 2 * stride);
      const uint32_t left_even = even_bytes(left), middle_even = even_bytes(middle),
                     right_even = even_bytes(right);
      channels[0].weights[ky] = {low_halves(left_even, middle_even), low_halves(middle_even, right_even)};
      channels[2].weights[ky] = {high_halves(left_even, middle_even), high_halves(middle_even, right_even)};
      const uint32_t left_odd = odd_bytes(left), middle_odd = odd_bytes(middle), right_odd = odd_bytes(right);
      channels[1].weights[ky] = {low_halves(left_odd, middle_odd), low_halves(middle_odd, right_odd)};
      channels[3].weights[ky] = {high_halves(left_odd, middle_odd), high_halves(middle_odd, right_odd)};
    }
    if (!kOnlyForm && a_.weights_zero_point != 0) center(channels);
    const int32_t* bias = a_.bias + c;
    if (!outputs_.has_form(c)) {
      for (uint32_t i = 0; i < count; ++i) channels[i].bias = bias[i];
      return;
    }
    const float *scale = a_.float_scale + c, *offset = a_.float_offset + c;
    for (uint32_t i = 0; i < count; ++i, ++channels) {
      channels->bias = bias[i];
      channels->scale = scale[i];
      channels->offset = offset[i];
    }
  }

  void center(Channel* channels) const {
    const uint32_t zero_points = pair_of(a_.weights_zero_point, a_.weights_zero_point);
    for (uint32_t i = 0; i < kBlock; ++i) {
      for (RowWeights& weights : channels[i].weights) {
        weights = {subtract_pairs(weights.first, zero_points), subtract_pairs(weights.last, zero_points)};
      }
    }
  }

  void run_stripe_of_block(const Channel* channels, uint32_t count, uint32_t rows, uint32_t c, uint8_t* out) {
#if defined(QPLAN_SCALAR_FPU)
    if (kOnlyForm || (outputs_.is_full() && a_.output_dtype == Dtype::kS8 && outputs_.has_form(c))) {
      plain_.rows_bytes = rows * expansion_.words() * a_.stride_h * 4;
      plain_.channels = count;
      (a_.stride_w == 1 ? run_plain_rows<true> : run_plain_rows<false>)(pairs_, channels,
                                                                        expansion_.words() * 4, out, &plain_);
      return;
    }
#endif
    for (uint32_t i = 0; i < count; ++i) run_channel(pairs_ + i, channels[i], rows, c + i, out + i);
  }

  // A stripe of channel c.
  __attribute__((noinline)) void run_channel(const uint32_t* pairs, const Channel& channel, uint32_t rows,
                                             uint32_t c, uint8_t* out) const {
#if defined(QPLAN_SCALAR_FPU)
    if (outputs_.has_form(c)) {
      const float scale = channel.scale, offset = channel.offset;
      if (outputs_.is_full()) {
        const uint32_t sign_bias = a_.output_dtype == Dtype::kS8 ? 0x80 : 0;
        return run_stripe(pairs, channel.weights, rows, channel.bias, out,
                          [=](int32_t sum) { return full_output(sum, scale, offset, sign_bias); });
      }
      return run_stripe(pairs, channel.weights, rows, channel.bias, out,
                        [=](int32_t sum) { return outputs_.form_output(sum, scale, offset); });
    }
#endif
    run_stripe(pairs, channel.weights, rows, channel.bias, out,
               [=](int32_t sum) { return outputs_.output(sum, c); });
  }

  template <typename Output>
  void run_stripe(const uint32_t* pairs, const RowWeights* weights, uint32_t rows, int32_t bias, uint8_t* out,
                  const Output& output) const {
    const size_t step = size_t{expansion_.words()} * a_.stride_h,
                 out_step = size_t{a_.output_w} * a_.output_c;
    if (a_.stride_w == 1) {
      for (; rows > 0; --rows, pairs += step, out += out_step) {
        run_row(pairs, expansion_.words(), *weights, weights[1], weights[2], bias, a_.output_w, out,
                a_.output_c, output);
      }
    } else {
      for (; rows > 0; --rows, pairs += step, out += out_step) {
        run_strided_row(pairs, expansion_.words(), *weights, weights[1], weights[2], bias, a_.output_w, out,
                        a_.output_c, output);
      }
    }
  }

  // Two outputs at a time: windows in columns 0 to 2 and 1 to 3 of two pairs.
  template <typename Output>
  static void run_row(const uint32_t* pairs, uint32_t words, RowWeights w0, RowWeights w1, RowWeights w2,
                      int32_t bias, uint32_t width, uint8_t* out, size_t stride, const Output& output) {
    uint32_t a0 = pairs[0], a1 = pairs[words], a2 = pairs[2 * words];
    for (;;) {
      pairs += kBlock;
      int32_t left = add_products(bias, a0, w0.first), right = add_high_low(bias, a0, w0.first);
      a0 = pairs[0];
      left = add_low_high(left, a0, w0.last);
      right = add_products(right, a0, w0.last);
      left = add_products(left, a1, w1.first);
      right = add_high_low(right, a1, w1.first);
      a1 = pairs[words];
      left = add_low_high(left, a1, w1.last);
      right = add_products(right, a1, w1.last);
      left = add_products(left, a2, w2.first);
      right = add_high_low(right, a2, w2.first);
      a2 = pairs[2 * words];
      left = add_low_high(left, a2, w2.last);
      right = add_products(right, a2, w2.last);
      *out = output(left);
      if (width == 1) return;
      out += stride;
      *out = output(right);
      out += stride;
      width -= 2;
      if (width == 0) return;
    }
  }

  template <typename Output>
  static void run_strided_row(const uint32_t* pairs, uint32_t words, RowWeights w0, RowWeights w1,
                              RowWeights w2, int32_t bias, uint32_t width, uint8_t* out, size_t stride,
                              const Output& output) {
    uint32_t a0 = pairs[0], a1 = pairs[words], a2 = pairs[2 * words];
    for (; width > 0; --width, out += stride) {
      pairs += kBlock;
      int32_t sum = add_products(bias, a0, w0.first);
      a0 = pairs[0];
      sum = add_products(add_low_high(sum, a0, w0.last), a1, w1.first);
      a1 = pairs[words];
      sum = add_products(add_low_high(sum, a1, w1.last), a2, w2.first);
      a2 = pairs[2 * words];
      *out = output(add_low_high(sum, a2, w2.last));
    }
  }

  // ---- any window ----

  __attribute__((noinline)) void run_any_window(uint32_t row) const {
    const uint32_t n = row / a_.output_h, y = row % a_.output_h;
    const uint8_t* image = image_of(n);
    uint8_t* out = static_cast<uint8_t*>(a_.output) + size_t{row} * a_.output_w * a_.output_c;
    const int32_t y0 = static_cast<int32_t>(y * a_.stride_h) - static_cast<int32_t>(a_.pad_top);
    for (uint32_t x = 0; x < a_.output_w; ++x) {
      const int32_t x0 = static_cast<int32_t>(x * a_.stride_w) - static_cast<int32_t>(a_.pad_left);
      for (uint32_t c = 0; c < a_.output_c; ++c) *out++ = outputs_.output(sum_of_window(image, y0, x0, c), c);
    }
  }

  int32_t sum_of_window(const uint8_t* image, int32_t y0, int32_t x0, uint32_t c) const {
    uint32_t sum = static_cast<uint32_t>(a_.bias[c]);
    const int8_t* weights = a_.weights + c;
    const int32_t outside = a_.pad_value - a_.input_zero_point;
    const size_t stride = weights_stride();
    for (uint32_t ky = 0; ky < a_.kernel_h; ++ky) {
      const int32_t y = y0 + static_cast<int32_t>(ky * a_.dilation_h);
      const bool is_row = y >= 0 && static_cast<uint32_t>(y) < a_.input_h;
      const uint8_t* row = image + (is_row ? static_cast<uint32_t>(y) * expansion_.row_bytes() : 0) + c;
      for (uint32_t kx = 0; kx < a_.kernel_w; ++kx, weights += stride) {
        const int32_t x = x0 + static_cast<int32_t>(kx * a_.dilation_w);
        const bool is_inside = is_row && x >= 0 && static_cast<uint32_t>(x) < a_.input_w;
        const int32_t v =
            is_inside ? value(row[static_cast<uint32_t>(x) * size_t{a_.input_c}]) - a_.input_zero_point
                      : outside;
        sum += static_cast<uint32_t>(v * (*weights - a_.weights_zero_point));
      }
    }
    return static_cast<int32_t>(sum);
  }

  const DepthwiseConv2dArgs& a_;
  const Outputs<DepthwiseConv2dArgs> outputs_;
  const uint32_t stripe_rows_;
  const RowExpansion expansion_;
  uint32_t* const pairs_;   // [input row][pair][channel]
  uint32_t held_rows_ = 0;  // of the stripe before
#if defined(QPLAN_SCALAR_FPU)
  PlainRows plain_;
#endif
};

#endif

}  // namespace

namespace QPLAN_SCALAR_VARIANT(depthwise_conv2d) {

#if !defined(QPLAN_ONLY_RUN)
  Refusal accepts(const DepthwiseConv2dArgs& args) { return scalar_accepts(args); }

  size_t scratch_bytes(const DepthwiseConv2dArgs& args) { return scalar_scratch_bytes(args); }

  // In place, an image is one: its rows depend on those before.
  uint32_t work_items(const DepthwiseConv2dArgs& args) {
    return is_in_place(args) ? args.batch : args.batch * args.output_h;
  }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
  void run(const DepthwiseConv2dArgs& args, uint32_t begin, uint32_t end, void* scratch) {
    Depthwise(args, scratch).run(begin, end);
  }
#endif

}  // namespace )

}  // namespace qplan
