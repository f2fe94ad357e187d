// The formula of conv2d_transpose.h, output by output: of each tap the one element of the input that it takes
// to this output, if there is one.
#include <type_traits>

#include "kernels/conv2d_transpose/conv2d_transpose.h"
#include "kernels/numeric/requantize.h"

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
