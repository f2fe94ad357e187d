// conv2d_transpose as matrix products. Outputs whose positions leave one remainder by the strides, a phase,
// read the same taps: each phase is a convolution of stride 1 with its part of the weights.
#include <stddef.h>
#include <stdint.h>

#include "kernels/conv2d/conv2d.h"
#include "kernels/numeric/gemm.h"
#include "kernels/simd/gemm.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

// Each call sums up the weights, which costs little more than an output of each phase: 5 % of the
// instructions for 256 outputs (64 to 32 channels, AVX2, 2026-11). A work item has enough rows for this many
// outputs.
constexpr uint64_t kUpconvItemOutputs = 1024;
constexpr uint32_t kUpconvMostTaps = 64;
constexpr uint32_t kUpconvMostStride = 8;
constexpr uint64_t kUpconvMostScratch = uint64_t{1} << 22;

inline uint64_t upconv_channels(const Conv2dTransposeArgs& a) {
  return (uint64_t{a.output_c} + 15) / 16 * 16;
}
inline LayoutWindow upconv_window(const Conv2dTransposeArgs& a) {
  return {a.kernel_h, a.kernel_w, a.input_c, a.stride_h, a.stride_w};
}
inline uint32_t upconv_item_rows(const Conv2dTransposeArgs& a) {
  const uint64_t rows = (kUpconvItemOutputs + a.output_w - 1) / a.output_w;
  return rows < a.output_h ? static_cast<uint32_t>(rows) : a.output_h;
}
inline uint32_t upconv_image_items(const Conv2dTransposeArgs& a) {
  return (a.output_h + upconv_item_rows(a) - 1) / upconv_item_rows(a);
}

// The remainder by the stride of the taps that outputs of a remainder read.
inline uint32_t upconv_first_tap(uint32_t phase, uint32_t pad, uint32_t stride) {
  return static_cast<uint32_t>((uint64_t{phase} + pad) % stride);
}

// A row of the input, with room for what windows read before and after it.
inline uint64_t upconv_margin(const Conv2dTransposeArgs& a) {
  return (uint64_t{a.kernel_w} - 1 + a.stride_w - 1) / a.stride_w;
}
inline uint64_t upconv_row_pixels(const Conv2dTransposeArgs& a) {
  const uint64_t reach = (uint64_t{a.output_w} - 1 + a.pad_left) / a.stride_w + 1;
  return upconv_margin(a) + (reach > a.input_w ? reach : a.input_w);
}
inline uint64_t upconv_row_bytes(const Conv2dTransposeArgs& a) {
  return aligned_to_64(upconv_row_pixels(a) * a.input_c + 64);
}
inline uint64_t upconv_rows(const Conv2dTransposeArgs& a) {
  return (uint64_t{a.kernel_h} + a.stride_h - 1) / a.stride_h;
}
inline uint64_t upconv_biases_bytes(const Conv2dTransposeArgs& a) {
  return aligned_to_64(uint64_t{a.stride_h} * a.stride_w * upconv_channels(a) * 4);
}

inline int32_t upconv_u_zero(const Conv2dTransposeArgs& a) {
  return a.input_dtype == Dtype::kS8 ? a.input_zero_point + 128 : a.input_zero_point;
}

// The biases of the phases of taps, phase_h * stride_w + phase_w: bias - u_zero * the sum of the weights.
inline void sum_upconv_phase(const Conv2dTransposeArgs& a, const LayoutPhase& phase, int32_t* biases) {
  const uint64_t groups = phase.rows * phase.columns * ((uint64_t{a.input_c} + 3) / 4);
  const int8_t* from = a.weights + phase.begin;
  const auto u_zero = static_cast<uint32_t>(upconv_u_zero(a));
  for (uint64_t first = 0; first < upconv_channels(a); first += 16) {
    int32_t sums[16] = {};  // of at most 2^6 * 2^24 weights: they wrap
    for (uint64_t group = 0; group < groups; ++group, from += 64) {
      for (uint32_t o = 0; o < 16; ++o) {
        const int32_t four = from[o * 4] + from[o * 4 + 1] + from[o * 4 + 2] + from[o * 4 + 3];
        sums[o] = wrap_add(sums[o], four);
      }
    }
    for (uint32_t o = 0; o < 16; ++o) {
      biases[first + o] = static_cast<int32_t>(static_cast<uint32_t>(a.bias[first + o]) -
                                               u_zero * static_cast<uint32_t>(sums[o]));
    }
  }
}

inline void sum_upconv_phases(const Conv2dTransposeArgs& a, int32_t* biases) {
  for (uint32_t h = 0; h < a.stride_h; ++h) {
    for (uint32_t w = 0; w < a.stride_w; ++w, biases += upconv_channels(a))
      sum_upconv_phase(a, layout_phase(h, w, a.output_c, upconv_window(a)), biases);
  }
}

// Copies the rows of the input that the taps of output row y read, as uint8. Margins, and rows outside the
// input, are filled with the zero point, which adds nothing.
inline void copy_upconv_rows(const Conv2dTransposeArgs& a, const uint8_t* image, uint32_t y,
                             uint32_t first_tap, uint64_t num_taps, uint8_t* to) {
  const auto u_zero = static_cast<uint8_t>(upconv_u_zero(a));
  const size_t margin = upconv_margin(a) * a.input_c, row = size_t{a.input_w} * a.input_c;
  const auto whole = static_cast<size_t>(upconv_row_bytes(a));
  for (uint32_t i = 0; i < num_taps; ++i, to += whole) {
    const int64_t reach = int64_t{y} + a.pad_top - first_tap - int64_t{i} * a.stride_h;
    const int64_t in_y = reach / int64_t{a.stride_h};
    if (reach < 0 || in_y >= int64_t{a.input_h}) {
      fill(to, u_zero, whole);
      continue;
    }
    fill(to, u_zero, margin);
    copy_run(to + margin, image + static_cast<size_t>(in_y) * row, row,
             a.input_dtype == Dtype::kS8 ? 0x80 : 0);
    // After the copy, which may reach over its end.
    fill(to + margin + row, u_zero, whole - margin - row);
  }
}

inline void upconv_row(const Conv2dTransposeArgs& a, const int32_t* biases, uint8_t* copy,
                       const uint8_t* image, uint32_t y, uint8_t* out) {
  const uint32_t first_row = upconv_first_tap(y % a.stride_h, a.pad_top, a.stride_h);
  copy_upconv_rows(a, image, y, first_row, layout_phase(first_row, 0, a.output_c, upconv_window(a)).rows,
                   copy);
  size_t offsets[kUpconvMostTaps];
  Gemm g;
  g.multiplier = a.multiplier;
  g.shift = a.shift;
  g.scale = a.scale;
  g.contract = a.contract;
  g.num_channels = a.output_c;
  g.out_stride = uint64_t{a.stride_w} * a.output_c;
  g.output_zero_point = a.output_zero_point;
  g.clamp_min = a.clamp_min;
  g.clamp_max = a.clamp_max;
  g.first_row = copy;
  g.row_stride = a.input_c;
  g.tap_bytes = a.input_c;
  g.tap_offsets = offsets;
  for (uint32_t px = 0; px < a.stride_w && px < a.output_w; ++px) {
    const uint32_t first_column = upconv_first_tap(px, a.pad_left, a.stride_w);
    const LayoutPhase phase = layout_phase(first_row, first_column, a.output_c, upconv_window(a));
    // The pixel under the first tap of the phase's first output, counted from the begin of the margin.
    const uint64_t base = upconv_margin(a) + (uint64_t{px} + a.pad_left - first_column) / a.stride_w;
    for (uint64_t i = 0; i < phase.rows; ++i) {
      for (uint64_t j = 0; j < phase.columns; ++j)
        offsets[i * phase.columns + j] = i * upconv_row_bytes(a) + (base - j) * a.input_c;
    }
    g.num_taps = static_cast<uint32_t>(phase.rows * phase.columns);
    g.weights = a.weights + phase.begin;
    g.bias = biases + (uint64_t{first_row} * a.stride_w + first_column) * upconv_channels(a);
    g.num_rows = (a.output_w - px + a.stride_w - 1) / a.stride_w;
    g.first_out = out + uint64_t{px} * a.output_c;
    QPLAN_SIMD_VARIANT(gemm)::run(g, 0, static_cast<uint32_t>(upconv_channels(a) / 16));
  }
}

inline void upconv_items(const Conv2dTransposeArgs& a, uint32_t begin, uint32_t end, void* scratch) {
  auto* biases = static_cast<int32_t*>(scratch);
  uint8_t* copy = static_cast<uint8_t*>(scratch) + upconv_biases_bytes(a);
  sum_upconv_phases(a, biases);
  const uint32_t items = upconv_image_items(a), item_rows = upconv_item_rows(a);
  for (uint32_t item = begin; item < end; ++item) {
    const uint64_t n = item / items;
    const uint32_t first = item % items * item_rows;
    const auto* image = static_cast<const uint8_t*>(a.input) + n * a.input_h * a.input_w * a.input_c;
    for (uint32_t y = first; y < a.output_h && y - first < item_rows; ++y) {
      upconv_row(a, biases, copy, image, y,
                 static_cast<uint8_t*>(a.output) + (n * a.output_h + y) * a.output_w * a.output_c);
    }
  }
}

inline uint64_t upconv_scratch(const Conv2dTransposeArgs& a) {
  return upconv_biases_bytes(a) + upconv_rows(a) * upconv_row_bytes(a);
}

}  // namespace

QPLAN_SIMD_NAMESPACE(conv2d_transpose) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const Conv2dTransposeArgs& args) {
  const bool is_8_bit = (args.input_dtype == Dtype::kS8 || args.input_dtype == Dtype::kU8) &&
                        (args.output_dtype == Dtype::kS8 || args.output_dtype == Dtype::kU8);
  if (!is_8_bit) return Refusal::kDtype;
  if (args.weights_layout != kLayout_o16p4) return Refusal::kLayout;
  if (args.weights_zero_point != 0) return Refusal::kWeightsZeroPoint;
  // Every phase has a tap.
  if (args.stride_h > args.kernel_h || args.stride_w > args.kernel_w) return Refusal::kWindow;
  if (args.stride_h > kUpconvMostStride || args.stride_w > kUpconvMostStride ||
      args.kernel_h > kUpconvMostTaps || args.kernel_w > kUpconvMostTaps ||
      args.kernel_h * args.kernel_w > kUpconvMostTaps || args.input_c > (1u << 24) ||
      args.output_c > (1u << 20)) {
    return Refusal::kTooLarge;
  }
  return upconv_scratch(args) <= kUpconvMostScratch ? Refusal::kNone : Refusal::kTooLarge;
}

size_t scratch_bytes(const Conv2dTransposeArgs& args) { return static_cast<size_t>(upconv_scratch(args)); }

uint32_t work_items(const Conv2dTransposeArgs& args) { return args.batch * upconv_image_items(args); }
#endif

#if !defined(QPLAN_ONLY_QUERIES)
void run(const Conv2dTransposeArgs& args, uint32_t begin, uint32_t end, void* scratch) {
  upconv_items(args, begin, end, scratch);
}
#endif

}  // QPLAN_SIMD_NAMESPACE(conv2d_transpose)

}  // namespace qplan
