// The formula of conv2d.h as it stands there, for every dtype and layout.
#include <type_traits>

#include "kernels/conv2d/conv2d.h"
#include "kernels/layout.h"
#include "kernels/numeric/requantize.h"

namespace qplan::conv2d_ref {
namespace {

// A layout without code of its own: what the args say.
constexpr uint16_t kOtherLayout = UINT16_MAX;

// The accumulator of output channel o where the window begins at (y0, x0) of image n.
template <typename In, uint16_t kLayout, typename Sum = int32_t>
Sum accumulate(const Conv2dArgs& a, const In* image, int32_t y0, int32_t x0, uint32_t o) {
  const uint32_t group_c = a.input_c / a.groups;
  const uint32_t first_c = o / (a.output_c / a.groups) * group_c;
  const uint16_t layout = kLayout == kOtherLayout ? a.weights_layout : kLayout;
  const LayoutWindow window = {a.kernel_h, a.kernel_w, group_c};
  using Bits = std::make_unsigned_t<Sum>;
  Bits sum = static_cast<Bits>(channel_bias<Sum>(a, o));
  uint64_t k = 0;
  for (uint32_t ky = 0; ky < a.kernel_h; ++ky) {
    const int32_t y = y0 + static_cast<int32_t>(ky * a.dilation_h);
    for (uint32_t kx = 0; kx < a.kernel_w; ++kx) {
      const int32_t x = x0 + static_cast<int32_t>(kx * a.dilation_w);
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

template <typename In>
int32_t accumulator(const Conv2dArgs& a, const In* image, int32_t y0, int32_t x0, uint32_t o) {
  switch (a.weights_layout) {
    case kLayout_ohwi:
      return accumulate<In, kLayout_ohwi>(a, image, y0, x0, o);
    case kLayout_o16k4:
      return accumulate<In, kLayout_o16k4>(a, image, y0, x0, o);
    default:
      return accumulate<In, kOtherLayout>(a, image, y0, x0, o);
  }
}

// What becomes of an accumulator, for element `at` of the output: itself where Out is int32, which is ACC32.
template <typename Out>
Out output(const Conv2dArgs& a, int32_t sum, uint32_t o, uint64_t at) {
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

template <typename In, typename Out>
void run_rows(const Conv2dArgs& a, uint32_t begin, uint32_t end) {
  for (uint32_t row = begin; row < end; ++row) {
    const uint32_t n = row / a.output_h, y = row % a.output_h;
    const In* image = static_cast<const In*>(a.input) + uint64_t{n} * a.input_h * a.input_w * a.input_c;
    Out* out = static_cast<Out*>(a.output);
    uint64_t at = uint64_t{row} * a.output_w * a.output_c;
    const int32_t y0 = static_cast<int32_t>(y * a.stride_h) - static_cast<int32_t>(a.pad_top);
    for (uint32_t x = 0; x < a.output_w; ++x) {
      const int32_t x0 = static_cast<int32_t>(x * a.stride_w) - static_cast<int32_t>(a.pad_left);
      for (uint32_t o = 0; o < a.output_c; ++o, ++at) {
        out[at] = output<Out>(a, accumulator(a, image, y0, x0, o), o, at);
      }
    }
  }
}

// int16 in and out.
template <typename Sum>
void run_rows_s16(const Conv2dArgs& a, uint32_t begin, uint32_t end) {
  for (uint32_t row = begin; row < end; ++row) {
    const uint32_t n = row / a.output_h, y = row % a.output_h;
    const auto* image =
        static_cast<const int16_t*>(a.input) + uint64_t{n} * a.input_h * a.input_w * a.input_c;
    auto* out = static_cast<int16_t*>(a.output) + uint64_t{row} * a.output_w * a.output_c;
    const int32_t y0 = static_cast<int32_t>(y * a.stride_h) - static_cast<int32_t>(a.pad_top);
    for (uint32_t x = 0; x < a.output_w; ++x) {
      const int32_t x0 = static_cast<int32_t>(x * a.stride_w) - static_cast<int32_t>(a.pad_left);
      for (uint32_t o = 0; o < a.output_c; ++o) {
        const Sum sum = accumulate<int16_t, kLayout_ohwi, Sum>(a, image, y0, x0, o);
        *out++ = static_cast<int16_t>(requantize_channel(a, sum, o));
      }
    }
  }
}

// A window of one pixel with as many outputs as inputs, in the place of the input: from a copy of the pixel.
template <typename In, typename Out>
void run_rows_in_place(const Conv2dArgs& a, uint32_t begin, uint32_t end, In* copy) {
  Conv2dArgs of_pixel = a;
  of_pixel.input_h = of_pixel.input_w = 1;
  const uint64_t first = uint64_t{begin} * a.output_w, last = uint64_t{end} * a.output_w;
  for (uint64_t pixel = first; pixel < last; ++pixel) {
    const In* from = static_cast<const In*>(a.input) + pixel * a.input_c;
    Out* out = static_cast<Out*>(a.output);
    for (uint32_t i = 0; i < a.input_c; ++i) copy[i] = from[i];
    for (uint32_t o = 0; o < a.output_c; ++o) {
      const uint64_t at = pixel * a.output_c + o;
      out[at] = output<Out>(a, accumulator(of_pixel, copy, 0, 0, o), o, at);
    }
  }
}

bool is_in_place(const Conv2dArgs& a) { return a.input != nullptr && a.input == a.output; }

template <typename In>
void run_output(const Conv2dArgs& a, uint32_t begin, uint32_t end, void* scratch) {
  if (is_in_place(a)) {  // of the same element size
    a.output_dtype == Dtype::kS8 ? run_rows_in_place<In, int8_t>(a, begin, end, static_cast<In*>(scratch))
                                 : run_rows_in_place<In, uint8_t>(a, begin, end, static_cast<In*>(scratch));
    return;
  }
  if (a.output_dtype == Dtype::kS8) {
    run_rows<In, int8_t>(a, begin, end);
  } else if (a.output_dtype == Dtype::kS32) {
    run_rows<In, int32_t>(a, begin, end);
  } else {
    run_rows<In, uint8_t>(a, begin, end);
  }
}

}  // namespace

Refusal accepts(const Conv2dArgs&) { return Refusal::kNone; }

// In place, a copy of a pixel.
size_t scratch_bytes(const Conv2dArgs& args) {
  return is_in_place(args) ? (size_t{args.input_c} + 63) / 64 * 64 : 0;
}

uint32_t work_items(const Conv2dArgs& args) { return args.batch * args.output_h; }

void run(const Conv2dArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  if (args.input_dtype == Dtype::kS16) {
    (args.has_wide_bias ? run_rows_s16<int64_t> : run_rows_s16<int32_t>)(args, begin, end);
  } else if (args.input_dtype == Dtype::kS8) {
    run_output<int8_t>(args, begin, end, scratch);
  } else {
    run_output<uint8_t>(args, begin, end, scratch);
  }
}

}  // namespace qplan::conv2d_ref
