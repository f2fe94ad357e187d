// conv2d_transpose as matrix products. Outputs whose positions leave one remainder by the strides, a phase,
// read the same taps: each phase is a convolution of stride 1 with its part of the weights.
#include <stddef.h>
#include <stdint.h>

#include "kernels/conv2d_transpose/conv2d_transpose.h"
#include "kernels/numeric/gemm.h"
#include "kernels/simd/gemm.h"
#include "kernels/simd/simd.h"

namespace qplan {
namespace {

// Each call packs the weights. A work item has enough rows for this many outputs, so that packing takes a
// small part of the time.
constexpr uint64_t kUpconvItemOutputs = 4096;
constexpr uint32_t kUpconvMostTaps = 64;
constexpr uint32_t kUpconvMostStride = 8;
constexpr uint64_t kUpconvMostScratch = uint64_t{1} << 22;

inline uint64_t upconv_channels(const Conv2dTransposeArgs& a) {
  return (uint64_t{a.output_c} + 15) / 16 * 16;
}
inline uint64_t upconv_tap_bytes(const Conv2dTransposeArgs& a) {  // of a tap of all channels
  return upconv_channels(a) * ((uint64_t{a.input_c} + 3) / 4 * 4);
}
inline uint32_t upconv_item_rows(const Conv2dTransposeArgs& a) {
  const uint64_t rows = (kUpconvItemOutputs + a.output_w - 1) / a.output_w;
  return rows < a.output_h ? static_cast<uint32_t>(rows) : a.output_h;
}
inline uint32_t upconv_image_items(const Conv2dTransposeArgs& a) {
  return (a.output_h + upconv_item_rows(a) - 1) / upconv_item_rows(a);
}

// Along one axis.
struct UpconvPhase {
  uint32_t first_tap, num_taps;  // taps first_tap, first_tap + stride, ...
};
inline UpconvPhase upconv_phase(uint32_t phase, uint32_t pad, uint32_t stride, uint32_t kernel) {
  const auto first = static_cast<uint32_t>((uint64_t{phase} + pad) % stride);
  return {first, first < kernel ? (kernel - first + stride - 1) / stride : 0};
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
inline uint64_t upconv_packed_bytes(const Conv2dTransposeArgs& a) {
  return aligned_to_64(uint64_t{a.kernel_h} * a.kernel_w * upconv_tap_bytes(a));
}
inline uint64_t upconv_biases_bytes(const Conv2dTransposeArgs& a) {
  return aligned_to_64(uint64_t{a.stride_h} * a.stride_w * upconv_channels(a) * 4);
}

struct UpconvScratch {
  int8_t* packed;   // phase after phase: taps in their order, in layout o16k4
  int32_t* biases;  // of each phase and channel
  int32_t* multiplier;
  int32_t* shift;
  float* scale;
  uint8_t* rows;

  UpconvScratch(const Conv2dTransposeArgs& a, void* scratch) {
    auto* bytes = static_cast<uint8_t*>(scratch);
    const auto take = [&](uint64_t size) {
      void* part = bytes;
      bytes += aligned_to_64(size);
      return part;
    };
    packed = static_cast<int8_t*>(take(upconv_packed_bytes(a)));
    biases = static_cast<int32_t*>(take(upconv_biases_bytes(a)));
    multiplier = static_cast<int32_t*>(take(upconv_channels(a) * 4));
    shift = static_cast<int32_t*>(take(upconv_channels(a) * 4));
    scale = static_cast<float*>(take(upconv_channels(a) * 4));
    rows = bytes;
  }
};

inline int32_t upconv_u_zero(const Conv2dTransposeArgs& a) {
  return a.input_dtype == Dtype::kS8 ? a.input_zero_point + 128 : a.input_zero_point;
}

// The taps of one phase, and its biases: bias - u_zero * the sum of its weights.
inline int8_t* pack_upconv_phase(const Conv2dTransposeArgs& a, UpconvPhase y, UpconvPhase x, int8_t* to,
                                 int32_t* biases) {
  const uint64_t num_k4 = (uint64_t{a.input_c} + 3) / 4;
  for (uint64_t first = 0; first < upconv_channels(a); first += 16) {
    uint32_t sums[16] = {};
    for (uint64_t tap = 0; tap < uint64_t{y.num_taps} * x.num_taps; ++tap) {
      const uint64_t ky = y.first_tap + tap / x.num_taps * a.stride_h;
      const uint64_t kx = x.first_tap + tap % x.num_taps * a.stride_w;
      for (uint64_t o = 0; o < 16; ++o) {
        const int8_t* from = a.weights + (((first + o) * a.kernel_h + ky) * a.kernel_w + kx) * a.input_c;
        for (uint64_t k = 0; k < num_k4 * 4; ++k) {
          const int8_t w = first + o < a.output_c && k < a.input_c ? from[k] : int8_t{0};
          to[k / 4 * 64 + o * 4 + k % 4] = w;
          sums[o] += static_cast<uint32_t>(int32_t{w});
        }
      }
      to += num_k4 * 64;
    }
    for (uint64_t o = 0; o < 16; ++o) {
      const auto bias = static_cast<uint32_t>(first + o < a.output_c ? a.bias[first + o] : 0);
      biases[first + o] = static_cast<int32_t>(bias - static_cast<uint32_t>(upconv_u_zero(a)) * sums[o]);
    }
  }
  return to;
}

inline void pack_upconv_phases(const Conv2dTransposeArgs& a, const UpconvScratch& s) {
  int8_t* to = s.packed;
  int32_t* biases = s.biases;
  for (uint32_t py = 0; py < a.stride_h; ++py) {
    for (uint32_t px = 0; px < a.stride_w; ++px, biases += upconv_channels(a)) {
      to = pack_upconv_phase(a, upconv_phase(py, a.pad_top, a.stride_h, a.kernel_h),
                             upconv_phase(px, a.pad_left, a.stride_w, a.kernel_w), to, biases);
    }
  }
  for (uint64_t o = 0; o < upconv_channels(a); ++o) {
    const bool is_there = o < a.output_c;
    s.multiplier[o] = is_there && a.multiplier != nullptr ? a.multiplier[o] : 0;
    s.shift[o] = is_there && a.shift != nullptr ? a.shift[o] : 0;
    s.scale[o] = is_there && a.scale != nullptr ? a.scale[o] : 0.0f;
  }
}

// Copies the rows of the input that the taps of output row y read, as uint8. Margins, and rows outside the
// input, are filled with the zero point, which adds nothing.
inline void copy_upconv_rows(const Conv2dTransposeArgs& a, const uint8_t* image, uint32_t y,
                             UpconvPhase phase, uint8_t* to) {
  const auto u_zero = static_cast<uint8_t>(upconv_u_zero(a));
  const size_t margin = upconv_margin(a) * a.input_c, row = size_t{a.input_w} * a.input_c;
  const auto whole = static_cast<size_t>(upconv_row_bytes(a));
  for (uint32_t i = 0; i < phase.num_taps; ++i, to += whole) {
    const int64_t reach = int64_t{y} + a.pad_top - phase.first_tap - int64_t{i} * a.stride_h;
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

inline void upconv_row(const Conv2dTransposeArgs& a, const UpconvScratch& s, const uint8_t* image, uint32_t y,
                       uint8_t* out) {
  const uint32_t py = y % a.stride_h;
  const UpconvPhase rows = upconv_phase(py, a.pad_top, a.stride_h, a.kernel_h);
  copy_upconv_rows(a, image, y, rows, s.rows);
  // Where the weights of this row's phases begin.
  const int8_t* weights = s.packed;
  for (uint32_t p = 0; p < py; ++p) {
    const UpconvPhase before = upconv_phase(p, a.pad_top, a.stride_h, a.kernel_h);
    weights += uint64_t{before.num_taps} * a.kernel_w * upconv_tap_bytes(a);
  }
  size_t offsets[kUpconvMostTaps];
  Gemm g;
  g.multiplier = s.multiplier;
  g.shift = s.shift;
  g.scale = s.scale;
  g.contract = a.contract;
  g.num_channels = a.output_c;
  g.out_stride = uint64_t{a.stride_w} * a.output_c;
  g.output_zero_point = a.output_zero_point;
  g.clamp_min = a.clamp_min;
  g.clamp_max = a.clamp_max;
  g.first_row = s.rows;
  g.row_stride = a.input_c;
  g.tap_bytes = a.input_c;
  g.tap_offsets = offsets;
  for (uint32_t px = 0; px < a.stride_w && px < a.output_w; ++px) {
    const UpconvPhase columns = upconv_phase(px, a.pad_left, a.stride_w, a.kernel_w);
    // The pixel under the first tap of the phase's first output, counted from the begin of the margin.
    const uint64_t base = upconv_margin(a) + (uint64_t{px} + a.pad_left - columns.first_tap) / a.stride_w;
    for (uint32_t i = 0; i < rows.num_taps; ++i) {
      for (uint32_t j = 0; j < columns.num_taps; ++j)
        offsets[i * columns.num_taps + j] = i * upconv_row_bytes(a) + (base - j) * a.input_c;
    }
    g.num_taps = rows.num_taps * columns.num_taps;
    g.weights = weights;
    g.bias = s.biases + (uint64_t{py} * a.stride_w + px) * upconv_channels(a);
    g.num_rows = (a.output_w - px + a.stride_w - 1) / a.stride_w;
    g.first_out = out + uint64_t{px} * a.output_c;
    QPLAN_SIMD_VARIANT(gemm)::run(g, 0, static_cast<uint32_t>(upconv_channels(a) / 16));
    weights += g.num_taps * upconv_tap_bytes(a);
  }
}

inline void upconv_items(const Conv2dTransposeArgs& a, uint32_t begin, uint32_t end, void* scratch) {
  const UpconvScratch s(a, scratch);
  pack_upconv_phases(a, s);
  const uint32_t items = upconv_image_items(a), item_rows = upconv_item_rows(a);
  for (uint32_t item = begin; item < end; ++item) {
    const uint64_t n = item / items;
    const uint32_t first = item % items * item_rows;
    const auto* image = static_cast<const uint8_t*>(a.input) + n * a.input_h * a.input_w * a.input_c;
    for (uint32_t y = first; y < a.output_h && y - first < item_rows; ++y) {
      upconv_row(a, s, image, y,
                 static_cast<uint8_t*>(a.output) + (n * a.output_h + y) * a.output_w * a.output_c);
    }
  }
}

inline uint64_t upconv_scratch(const Conv2dTransposeArgs& a) {
  return upconv_packed_bytes(a) + upconv_biases_bytes(a) + 3 * aligned_to_64(upconv_channels(a) * 4) +
         upconv_rows(a) * upconv_row_bytes(a);
}

}  // namespace

QPLAN_SIMD_NAMESPACE(conv2d_transpose) {

#if !defined(QPLAN_ONLY_RUN)
Refusal accepts(const Conv2dTransposeArgs& args) {
  const bool is_8_bit = (args.input_dtype == Dtype::kS8 || args.input_dtype == Dtype::kU8) &&
                        (args.output_dtype == Dtype::kS8 || args.output_dtype == Dtype::kU8);
  if (!is_8_bit) return Refusal::kDtype;
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
