// The formulas of conv2d.h as they stand there, for every dtype and layout.
#include <type_traits>

#include "kernels/conv2d/conv2d.h"
#include "kernels/layout.h"
#include "kernels/numeric/products.h"
#include "kernels/numeric/requantize.h"

namespace qplan::conv2d_ref {
namespace {

// Functions that are not inlined keep their stack out of that of the usual ones: small cores run these
// kernels.

// A layout without code of its own: what the args say.
constexpr uint16_t kOtherLayout = UINT16_MAX;

// The accumulator of output channel o for a window of an image, weight by weight.
template <typename In, uint16_t kLayout, typename Sum>
__attribute__((noinline)) Sum accumulate(const Conv2dArgs& a, const In* image, const TapWindow& at,
                                         uint32_t o) {
  const uint32_t group_c = a.input_c / a.groups;
  const uint32_t first_c = o / (a.output_c / a.groups) * group_c;
  const uint16_t layout = kLayout == kOtherLayout ? a.weights_layout : kLayout;
  const LayoutWindow window = {a.kernel_h, a.kernel_w, group_c};
  using Bits = std::make_unsigned_t<Sum>;
  Bits sum = static_cast<Bits>(channel_bias<Sum>(a, o));
  uint64_t k = 0;
  for (uint32_t ky = 0; ky < a.kernel_h; ++ky) {
    const int32_t y = at.y + static_cast<int32_t>(ky * a.dilation_h);
    for (uint32_t kx = 0; kx < a.kernel_w; ++kx) {
      const int32_t x = at.x + static_cast<int32_t>(kx * a.dilation_w);
      const bool inside =
          y >= 0 && x >= 0 && static_cast<uint32_t>(y) < a.input_h && static_cast<uint32_t>(x) < a.input_w;
      const In* pixel = image;
      if (inside)
        pixel +=
            (uint64_t{static_cast<uint32_t>(y)} * a.input_w + static_cast<uint32_t>(x)) * a.input_c + first_c;
      for (uint32_t i = 0; i < group_c; ++i, ++k) {
        const int32_t v = inside ? pixel[i] : a.pad_value;
        const int32_t w = layout_weight(layout, a.weights, layout_index(layout, o, k, a.output_c, window), o);
        // The second factor is within +-255, the first within +-65535.
        sum += static_cast<Bits>((v - a.input_zero_point) * (w - a.weights_zero_point));
      }
    }
  }
  return static_cast<Sum>(sum);
}

// The accumulators of output channels o to o + kOutputs of one group, whose weights are neighbours (ohwi): of
// a row of taps those inside are neighbours, too, where they are not dilated.
template <uint32_t kOutputs, typename Sum, typename In>
void accumulate_rows(const Conv2dArgs& a, const In* image, const TapWindow& at, uint32_t o, Sum* sums) {
  using Bits = std::make_unsigned_t<Sum>;
  const uint32_t group_c = a.input_c / a.groups;
  const size_t row = size_t{a.kernel_w} * group_c, channel = a.kernel_h * row;  // weights
  const size_t before = size_t{at.columns.begin} * group_c, after = row - size_t{at.columns.end} * group_c;
  const int32_t x = at.x + static_cast<int32_t>(at.columns.begin * a.dilation_w);
  const In* in = image + o / (a.output_c / a.groups) * group_c;
  const bool is_one_run = a.groups == 1 && a.dilation_w == 1;
  const uint32_t columns = at.columns.end - at.columns.begin;
  const uint32_t runs = is_one_run ? 1 : columns;
  const size_t run = is_one_run ? size_t{columns} * group_c : group_c;
  const int32_t outside = a.pad_value - a.input_zero_point;
  Bits bits[kOutputs];
  const auto add_outside = [&](const int8_t* weights, size_t n) {
    if (outside != 0) add_products_of<kOutputs>(outside, weights, channel, n, a.weights_zero_point, bits);
  };
  for (uint32_t j = 0; j < kOutputs; ++j) bits[j] = static_cast<Bits>(channel_bias<Sum>(a, o + j));
  const int8_t* weights = a.weights + o * channel;
  for (uint32_t ky = 0; ky < a.kernel_h; ++ky, weights += row) {
    if (ky < at.rows.begin || ky >= at.rows.end || columns == 0) {
      add_outside(weights, row);
      continue;
    }
    add_outside(weights, before);
    const int32_t y = at.y + static_cast<int32_t>(ky * a.dilation_h);
    const In* pixel =
        in + (uint64_t{static_cast<uint32_t>(y)} * a.input_w + static_cast<uint32_t>(x)) * a.input_c;
    for (uint32_t i = 0; i < runs; ++i) {
      add_products<kOutputs>(pixel + size_t{i} * a.dilation_w * a.input_c, weights + before + i * run,
                             channel, run, {a.input_zero_point, a.weights_zero_point}, bits);
    }
    add_outside(weights + row - after, after);
  }
  for (uint32_t j = 0; j < kOutputs; ++j) sums[j] = static_cast<Sum>(bits[j]);
}

// What weight_rests add to the accumulators of output channels o to o + count. Plans for processors of 32
// bits have none.
template <typename In, typename Sum>
__attribute__((noinline)) void add_rests(const Conv2dArgs& a, const In* image, const TapWindow& at,
                                         uint32_t o, uint32_t count, Sum* sums) {
  const uint32_t group_c = a.input_c / a.groups;
  for (uint32_t i = 0; i < a.num_weight_rests; ++i) {
    const WeightRest r = weight_rest(a, i);
    if (r.channel - o >= count) continue;
    const uint32_t tap = r.k / group_c, c = r.channel / (a.output_c / a.groups) * group_c + r.k % group_c;
    const int32_t y = at.y + static_cast<int32_t>(tap / a.kernel_w * a.dilation_h);
    const int32_t x = at.x + static_cast<int32_t>(tap % a.kernel_w * a.dilation_w);
    const bool inside =
        y >= 0 && x >= 0 && static_cast<uint32_t>(y) < a.input_h && static_cast<uint32_t>(x) < a.input_w;
    const int32_t v =
        inside
            ? image[(uint64_t{static_cast<uint32_t>(y)} * a.input_w + static_cast<uint32_t>(x)) * a.input_c +
                    c]
            : a.pad_value;
    using Bits = std::make_unsigned_t<Sum>;
    Sum& sum = sums[r.channel - o];
    sum = static_cast<Sum>(static_cast<Bits>(sum) + static_cast<Bits>((v - a.input_zero_point) * r.rest));
  }
}

constexpr uint32_t kBlock = 4;  // output channels

// The accumulators of output channels o and following, as many as are in sums then: kBlock or 1.
template <typename In, typename Sum>
uint32_t accumulators(const Conv2dArgs& a, const In* image, const TapWindow& window, uint32_t o, Sum* sums) {
  if (a.weights_layout == kLayout_ohwi) {
    const uint32_t group = a.output_c / a.groups;
    if (group - o % group >= kBlock) {
      accumulate_rows<kBlock>(a, image, window, o, sums);
      return kBlock;
    }
    accumulate_rows<1>(a, image, window, o, sums);
  } else if (a.weights_layout == kLayout_o16k4) {
    *sums = accumulate<In, kLayout_o16k4, Sum>(a, image, window, o);
  } else {
    *sums = accumulate<In, kOtherLayout, Sum>(a, image, window, o);
  }
  return 1;
}

// What becomes of an accumulator, for element `at` of the output: itself where Out is int32, which is ACC32.
template <typename Out, typename Sum>
Out output(const Conv2dArgs& a, Sum sum, uint32_t o, uint64_t at) {
  if constexpr (sizeof(Out) == sizeof(int32_t)) {
    return sum;
  } else {
    const int32_t value = requantize_channel(a, sum, o);
    if (!a.has_residual) return static_cast<Out>(value);
    const int32_t residual = static_cast<const Out*>(a.residual)[at];
    return static_cast<Out>(a.residual_is_a ? sum_of(a.residual_sum, residual, value, false)
                                            : sum_of(a.residual_sum, value, residual, false));
  }
}

// All channels of a pixel of the output, the first of which is element `at`, to `out`.
template <typename In, typename Out, typename Sum>
void run_pixel(const Conv2dArgs& a, const In* image, const TapWindow& window, uint64_t at, Out* out) {
  Sum sums[kBlock];
  for (uint32_t o = 0; o < a.output_c;) {
    const uint32_t last = o + accumulators(a, image, window, o, sums);
    if (sizeof(void*) > 4 && a.num_weight_rests != 0) add_rests(a, image, window, o, last - o, sums);
    for (const Sum* sum = sums; o < last; ++o, ++sum) out[o] = output<Out>(a, *sum, o, at + o);
  }
}

// kInPlace: over the input, which the window of a pixel begins no earlier in than the output's pixel does.
// The pixel is complete in `copy` before it is written.
template <typename In, typename Out, typename Sum = int32_t, bool kInPlace = false>
__attribute__((noinline)) void run_rows(const Conv2dArgs& a, uint32_t begin, uint32_t end, Out* copy) {
  for (uint32_t row = begin; row < end; ++row) {
    const uint32_t n = row / a.output_h, y = row % a.output_h;
    const In* image = static_cast<const In*>(a.input) + uint64_t{n} * a.input_h * a.input_w * a.input_c;
    uint64_t at = uint64_t{row} * a.output_w * a.output_c;
    const int32_t y0 = static_cast<int32_t>(y * a.stride_h) - static_cast<int32_t>(a.pad_top);
    for (uint32_t x = 0; x < a.output_w; ++x, at += a.output_c) {
      const int32_t x0 = static_cast<int32_t>(x * a.stride_w) - static_cast<int32_t>(a.pad_left);
      Out* const out = static_cast<Out*>(a.output) + at;
      run_pixel<In, Out, Sum>(a, image, tap_window(a, y0, x0), at, kInPlace ? copy : out);
      for (uint32_t o = 0; kInPlace && o < a.output_c; ++o) out[o] = copy[o];
    }
  }
}

bool is_in_place(const Conv2dArgs& a) { return a.input != nullptr && a.input == a.output; }

template <typename In>
void run_output(const Conv2dArgs& a, uint32_t begin, uint32_t end, void* scratch) {
  if (is_in_place(a)) {  // of the same element size
    a.output_dtype == Dtype::kS8
        ? run_rows<In, int8_t, int32_t, true>(a, begin, end, static_cast<int8_t*>(scratch))
        : run_rows<In, uint8_t, int32_t, true>(a, begin, end, static_cast<uint8_t*>(scratch));
    return;
  }
  if (a.output_dtype == Dtype::kS8) {
    run_rows<In, int8_t>(a, begin, end, nullptr);
  } else if (a.output_dtype == Dtype::kS32) {
    run_rows<In, int32_t>(a, begin, end, nullptr);
  } else {
    run_rows<In, uint8_t>(a, begin, end, nullptr);
  }
}

}  // namespace

Refusal accepts(const Conv2dArgs&) { return Refusal::kNone; }

// In place, a pixel of output.
size_t scratch_bytes(const Conv2dArgs& args) {
  return is_in_place(args) ? (size_t{args.output_c} + 63) / 64 * 64 : 0;
}

uint32_t work_items(const Conv2dArgs& args) { return args.batch * args.output_h; }

void run(const Conv2dArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  if (args.input_dtype == Dtype::kS16) {
    (args.has_wide_bias ? run_rows<int16_t, int16_t, int64_t> : run_rows<int16_t, int16_t>)(args, begin, end,
                                                                                            nullptr);
  } else if (args.input_dtype == Dtype::kS8) {
    run_output<int8_t>(args, begin, end, scratch);
  } else {
    run_output<uint8_t>(args, begin, end, scratch);
  }
}

}  // namespace qplan::conv2d_ref

// conv2d_transpose, output by output: of each tap the one element of the input that it takes to this output,
// if there is one.
namespace qplan::conv2d_transpose_ref {
namespace {

// The input position that contributes to output position `at` through kernel position `tap`; -1 where none
// does.
int64_t source_of(uint32_t at, uint32_t tap, uint32_t pad, uint32_t stride, uint32_t extent) {
  const int64_t reach = int64_t{at} + pad - tap;
  if (reach < 0 || reach % stride != 0 || reach / stride >= extent) return -1;
  return reach / stride;
}

// The weights of a tap, in groups of `group` that are 64 bytes apart.
struct Tap {
  const int8_t* weights;
  uint32_t group;
};
Tap tap_of(const Conv2dTransposeArgs& a, uint32_t ky, uint32_t kx, uint32_t o) {
  const uint64_t k = (uint64_t{ky} * a.kernel_w + kx) * a.input_c;
  const LayoutWindow window = {a.kernel_h, a.kernel_w, a.input_c, a.stride_h, a.stride_w};
  const bool is_packed = a.weights_layout == kLayout_o16p4;
  const uint16_t layout = is_packed ? kLayout_o16p4 : kLayout_ohwi;
  return {a.weights + layout_index(layout, o, k, a.output_c, window), is_packed ? 4 : a.input_c};
}

template <typename In, typename Sum>
Sum accumulate(const Conv2dTransposeArgs& a, const In* image, uint32_t y, uint32_t x, uint32_t o) {
  using Bits = std::make_unsigned_t<Sum>;
  Bits sum = static_cast<Bits>(channel_bias<Sum>(a, o));
  for (uint32_t ky = 0; ky < a.kernel_h; ++ky) {
    const int64_t in_y = source_of(y, ky, a.pad_top, a.stride_h, a.input_h);
    if (in_y < 0) continue;
    for (uint32_t kx = 0; kx < a.kernel_w; ++kx) {
      const int64_t in_x = source_of(x, kx, a.pad_left, a.stride_w, a.input_w);
      if (in_x < 0) continue;
      const In* pixel =
          image + (static_cast<uint64_t>(in_y) * a.input_w + static_cast<uint64_t>(in_x)) * a.input_c;
      const Tap tap = tap_of(a, ky, kx, o);
      const int8_t* weights = tap.weights;
      for (uint32_t first = 0; first < a.input_c; first += tap.group, weights += 64) {
        const uint32_t rest = a.input_c - first, count = rest < tap.group ? rest : tap.group;
        for (uint32_t i = 0; i < count; ++i) {
          // The second factor is within +-255, the first within +-65535.
          sum += static_cast<Bits>((pixel[first + i] - a.input_zero_point) *
                                   (weights[i] - a.weights_zero_point));
        }
      }
    }
  }
  return static_cast<Sum>(sum);
}

template <typename In, typename Out, typename Sum>
void run_rows(const Conv2dTransposeArgs& a, uint32_t begin, uint32_t end) {
  for (uint32_t row = begin; row < end; ++row) {
    const uint32_t n = row / a.output_h, y = row % a.output_h;
    const In* image = static_cast<const In*>(a.input) + uint64_t{n} * a.input_h * a.input_w * a.input_c;
    Out* out = static_cast<Out*>(a.output) + uint64_t{row} * a.output_w * a.output_c;
    for (uint32_t x = 0; x < a.output_w; ++x) {
      for (uint32_t o = 0; o < a.output_c; ++o) {
        const Sum sum = accumulate<In, Sum>(a, image, y, x, o);
        if constexpr (sizeof(Out) == sizeof(int32_t)) {
          *out++ = static_cast<Out>(sum);  // ACC32
        } else {
          *out++ = static_cast<Out>(requantize_channel(a, sum, o));
        }
      }
    }
  }
}

template <typename In>
void run_output(const Conv2dTransposeArgs& a, uint32_t begin, uint32_t end) {
  if (a.output_dtype == Dtype::kS8) {
    run_rows<In, int8_t, int32_t>(a, begin, end);
  } else if (a.output_dtype == Dtype::kS32) {
    run_rows<In, int32_t, int32_t>(a, begin, end);
  } else {
    run_rows<In, uint8_t, int32_t>(a, begin, end);
  }
}

}  // namespace

Refusal accepts(const Conv2dTransposeArgs&) { return Refusal::kNone; }

size_t scratch_bytes(const Conv2dTransposeArgs&) { return 0; }

uint32_t work_items(const Conv2dTransposeArgs& args) { return args.batch * args.output_h; }

void run(const Conv2dTransposeArgs& args, uint32_t begin, uint32_t end, void*) {
  if (args.input_dtype == Dtype::kS16) {
    (args.has_wide_bias ? run_rows<int16_t, int16_t, int64_t>
                        : run_rows<int16_t, int16_t, int32_t>)(args, begin, end);
  } else if (args.input_dtype == Dtype::kS8) {
    run_output<int8_t>(args, begin, end);
  } else {
    run_output<uint8_t>(args, begin, end);
  }
}

}  // namespace qplan::conv2d_transpose_ref
