// The formula of depthwise_conv2d.h as it stands there, for every dtype and layout.
#include <type_traits>

#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/layout.h"
#include "kernels/numeric/products.h"
#include "kernels/numeric/requantize.h"

namespace qplan::depthwise_conv2d_ref {
namespace {

// Functions that are not inlined keep their stack out of that of the usual ones: small cores run these
// kernels.

// The accumulator of output channel o for a window of an image. The second factor of a product is within
// +-255, the first within +-65535.
template <typename In, uint16_t kLayout, typename Sum = int32_t>
__attribute__((noinline)) Sum accumulate(const DepthwiseConv2dArgs& a, const In* image, const TapWindow& at,
                                         uint32_t o) {
  const uint32_t c = o / (a.output_c / a.input_c);
  const uint64_t num_k = uint64_t{a.kernel_h} * a.kernel_w;
  using Bits = std::make_unsigned_t<Sum>;
  Bits sum = static_cast<Bits>(channel_bias<Sum>(a, o));
  uint64_t k = 0;
  for (uint32_t ky = 0; ky < a.kernel_h; ++ky) {
    const int32_t y = at.y + static_cast<int32_t>(ky * a.dilation_h);
    for (uint32_t kx = 0; kx < a.kernel_w; ++kx, ++k) {
      const int32_t x = at.x + static_cast<int32_t>(kx * a.dilation_w);
      int32_t v = a.pad_value;
      if (y >= 0 && x >= 0 && static_cast<uint32_t>(y) < a.input_h && static_cast<uint32_t>(x) < a.input_w) {
        v = image[(uint64_t{static_cast<uint32_t>(y)} * a.input_w + static_cast<uint32_t>(x)) * a.input_c +
                  c];
      }
      const int32_t w = a.weights[layout_index(kLayout, o, k, a.output_c, num_k)];
      sum += static_cast<Bits>((v - a.input_zero_point) * (w - a.weights_zero_point));
    }
  }
  return static_cast<Sum>(sum);
}

constexpr uint32_t kBlock = 16;  // channels

// The accumulators of `count` output channels from o on, at most kBlock, one for each input channel: tap by
// tap, since the inputs of a tap are neighbours.
template <uint16_t kLayout, typename In, typename Sum>
void accumulate_block(const DepthwiseConv2dArgs& a, const In* image, const TapWindow& at, uint32_t o,
                      uint32_t count, Sum* sums) {
  using Bits = std::make_unsigned_t<Sum>;
  const uint64_t num_k = uint64_t{a.kernel_h} * a.kernel_w;
  const auto index = [&](uint64_t channel, uint64_t k) {
    return layout_index(kLayout, channel, k, a.output_c, num_k);
  };
  const auto step =
      static_cast<size_t>(index(1, 0) - index(0, 0));  // from a channel's weights to the next one's
  const int32_t zero_point = a.input_zero_point, weights_zero_point = a.weights_zero_point;
  const int32_t outside = a.pad_value - zero_point;
  const auto add = [&](uint32_t j, int32_t v, int32_t w) {
    sums[j] = static_cast<Sum>(static_cast<Bits>(sums[j]) + static_cast<Bits>(v * (w - weights_zero_point)));
  };
  for (uint32_t j = 0; j < count; ++j) sums[j] = channel_bias<Sum>(a, o + j);
  uint32_t k = 0;
  for (uint32_t ky = 0; ky < a.kernel_h; ++ky) {
    const bool is_row = ky >= at.rows.begin && ky < at.rows.end;
    const auto y = static_cast<uint32_t>(at.y + static_cast<int32_t>(ky * a.dilation_h));
    for (uint32_t kx = 0; kx < a.kernel_w; ++kx, ++k) {
      const int8_t* weights = a.weights + index(o, k);
      if (is_row && kx >= at.columns.begin && kx < at.columns.end) {
        const auto x = static_cast<uint32_t>(at.x + static_cast<int32_t>(kx * a.dilation_w));
        const In* in = image + (uint64_t{y} * a.input_w + x) * a.input_c + o;
        for (uint32_t j = 0; j < count; ++j) add(j, in[j] - zero_point, weights[j * step]);
      } else if (outside != 0) {
        for (uint32_t j = 0; j < count; ++j) add(j, outside, weights[j * step]);
      }
    }
  }
}

// What becomes of an accumulator: itself where Out is int32, which is ACC32.
template <typename Out, typename Sum>
Out output(const DepthwiseConv2dArgs& a, Sum sum, uint32_t o) {
  if constexpr (sizeof(Out) == sizeof(int32_t)) {
    return sum;
  } else {
    return static_cast<Out>(requantize_channel(a, sum, o));
  }
}

// All channels of a pixel of the output.
template <typename In, typename Out, uint16_t kLayout, typename Sum>
void run_pixel(const DepthwiseConv2dArgs& a, const In* image, const TapWindow& window, Out* out) {
  Sum sums[kBlock];
  for (uint32_t o = 0; o < a.output_c;) {
    uint32_t count = 1;
    if (a.input_c == a.output_c) {
      count = a.output_c - o < kBlock ? a.output_c - o : kBlock;
      accumulate_block<kLayout>(a, image, window, o, count, sums);
    } else {
      sums[0] = accumulate<In, kLayout, Sum>(a, image, window, o);
    }
    for (uint32_t j = 0; j < count; ++j, ++o) out[o] = output<Out>(a, sums[j], o);
  }
}

template <typename In, typename Out, uint16_t kLayout, typename Sum = int32_t>
__attribute__((noinline)) void run_rows(const DepthwiseConv2dArgs& a, uint32_t begin, uint32_t end) {
  for (uint32_t row = begin; row < end; ++row) {
    const uint32_t n = row / a.output_h, y = row % a.output_h;
    const In* image = static_cast<const In*>(a.input) + uint64_t{n} * a.input_h * a.input_w * a.input_c;
    Out* out = static_cast<Out*>(a.output) + uint64_t{row} * a.output_w * a.output_c;
    const int32_t y0 = static_cast<int32_t>(y * a.stride_h) - static_cast<int32_t>(a.pad_top);
    for (uint32_t x = 0; x < a.output_w; ++x, out += a.output_c) {
      const int32_t x0 = static_cast<int32_t>(x * a.stride_w) - static_cast<int32_t>(a.pad_left);
      run_pixel<In, Out, kLayout, Sum>(a, image, tap_window(a, y0, x0), out);
    }
  }
}

// With the output in the place of the input: channel by channel, from a copy of the channel's image.
template <typename In, typename Out, uint16_t kLayout>
__attribute__((noinline)) void run_images_in_place(const DepthwiseConv2dArgs& a, uint32_t begin, uint32_t end,
                                                   In* plane) {
  DepthwiseConv2dArgs of_plane = a;
  of_plane.input_c = 1;  // so that all outputs are of the only channel
  const uint32_t pixels = a.input_h * a.input_w;
  for (uint32_t n = begin; n < end; ++n) {
    const In* image = static_cast<const In*>(a.input) + uint64_t{n} * pixels * a.input_c;
    Out* out = static_cast<Out*>(a.output) + uint64_t{n} * pixels * a.input_c;
    for (uint32_t o = 0; o < a.output_c; ++o) {
      for (uint32_t i = 0; i < pixels; ++i) plane[i] = image[i * uint64_t{a.input_c} + o];
      for (uint32_t i = 0; i < pixels; ++i) {
        const int32_t y0 = static_cast<int32_t>(i / a.output_w) - static_cast<int32_t>(a.pad_top);
        const int32_t x0 = static_cast<int32_t>(i % a.output_w) - static_cast<int32_t>(a.pad_left);
        out[i * uint64_t{a.output_c} + o] =
            output<Out>(a, accumulate<In, kLayout>(of_plane, plane, tap_window(of_plane, y0, x0), o), o);
      }
    }
  }
}

bool is_in_place(const DepthwiseConv2dArgs& a) { return a.input != nullptr && a.input == a.output; }

template <typename In, typename Out>
void run_layout(const DepthwiseConv2dArgs& a, uint32_t begin, uint32_t end, void* scratch) {
  if constexpr (sizeof(Out) == 1) {
    // Only windows of this layout are computed in place (src/runtime/bind/conv2d.cc).
    if (is_in_place(a)) {
      return run_images_in_place<In, Out, kLayout_hwo16>(a, begin, end, static_cast<In*>(scratch));
    }
  }
  if (a.weights_layout == kLayout_hwo16) {
    run_rows<In, Out, kLayout_hwo16>(a, begin, end);
  } else {
    run_rows<In, Out, kLayout_ohwi>(a, begin, end);
  }
}

template <typename In>
void run_output(const DepthwiseConv2dArgs& a, uint32_t begin, uint32_t end, void* scratch) {
  if (a.output_dtype == Dtype::kS8) {
    run_layout<In, int8_t>(a, begin, end, scratch);
  } else if (a.output_dtype == Dtype::kS32) {
    run_layout<In, int32_t>(a, begin, end, scratch);
  } else {
    run_layout<In, uint8_t>(a, begin, end, scratch);
  }
}

}  // namespace

Refusal accepts(const DepthwiseConv2dArgs&) { return Refusal::kNone; }

// In place, a copy of a channel; an image is then one work item.
size_t scratch_bytes(const DepthwiseConv2dArgs& args) {
  return is_in_place(args) ? (size_t{args.input_h} * args.input_w + 63) / 64 * 64 : 0;
}

uint32_t work_items(const DepthwiseConv2dArgs& args) {
  return is_in_place(args) ? args.batch : args.batch * args.output_h;
}

void run(const DepthwiseConv2dArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  if (args.input_dtype == Dtype::kS16) {
    (args.has_wide_bias ? run_rows<int16_t, int16_t, kLayout_ohwi, int64_t>
                        : run_rows<int16_t, int16_t, kLayout_ohwi>)(args, begin, end);
  } else if (args.input_dtype == Dtype::kS8) {
    run_output<int8_t>(args, begin, end, scratch);
  } else {
    run_output<uint8_t>(args, begin, end, scratch);
  }
}

}  // namespace qplan::depthwise_conv2d_ref
