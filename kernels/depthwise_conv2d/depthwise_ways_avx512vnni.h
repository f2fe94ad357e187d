// How depthwise_columns_avx512vnni.cc makes the outputs of a block of channels, and what scratch memory that
// takes. No vectors here: packers on other processors ask, too. Internal linkage only.
#ifndef QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_WAYS_AVX512VNNI_H_
#define QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_WAYS_AVX512VNNI_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/depthwise_conv2d/depthwise_columns.h"
#include "kernels/numeric/requantize.h"

namespace qplan {
namespace {

// ---- epilogues ----

enum class Form { kPlain, kSigned, kFractions, kF32e, kIntegers };

inline Form form_of(const DepthwiseConv2dArgs& a, const Block& block) {
  if (a.contract == Contract::kF32e)
    return are_fractions(a.scale + block.channel, block.count) ? Form::kFractions : Form::kF32e;
  if (a.float_epilogue != FloatEpilogue::kNone &&
      groups_have_form(a, block.channel / 16, (block.count + 15) / 16)) {
    return a.float_epilogue == FloatEpilogue::kPlain ? Form::kPlain : Form::kSigned;
  }
  return Form::kIntegers;
}

// Whether outputs fill their dtype from the zero point on.
inline bool outputs_are_free(const DepthwiseConv2dArgs& a) {
  return a.clamp_max - a.clamp_min == 255 && a.output_zero_point == a.clamp_min;
}

// ---- ways ----

enum class WayKind {
  kColumns,  // columns are gathered into the scratch
  kSlide,    // columns stay in registers (depthwise_slide_avx512vnni.h)
  kHalves,   // the same of half the channels at a time; the others follow (depthwise_channels_avx512vnni.h)
  kPixels,   // a vector has several pixels of 8 or 16 channels
};

// Weights that need nine or ten bits (int8 less their zero point) are sums of up to three that are int8.
constexpr uint32_t kMaxParts = 3;

// As many as weights of that zero point may need: 127 + 128 is one more than two parts can be.
inline uint32_t most_parts(const DepthwiseConv2dArgs& a) {
  if (a.weights_zero_point == 0) return 1;
  return a.weights_zero_point == INT8_MIN ? kMaxParts : 2;
}

// Whether vectors hold two pixels of eight channels in each 128 bits: at most two parts of weights are sure.
inline bool has_pixel_pairs(const DepthwiseConv2dArgs& a, Form form) {
  return a.input_c == 8 && a.kernel_h == 3 && a.stride_h == 1 && a.dilation_w == 1 && form == Form::kPlain &&
         most_parts(a) <= 2;
}

// Fewer parts never need more scratch.
inline WayKind way_kind(const DepthwiseConv2dArgs& a, const Block& block, Form form, uint32_t num_parts) {
  const bool is_rare = form == Form::kIntegers || form == Form::kF32e;
  if (a.kernel_h != 3 || num_parts > 2 || is_rare) return WayKind::kColumns;
  if (form == Form::kSigned) return block.count == 64 ? WayKind::kSlide : WayKind::kColumns;
  if (form == Form::kPlain && (has_pixel_pairs(a, form) || (a.input_c == 16 && a.dilation_w == 1)))
    return WayKind::kPixels;
  const bool has_halves = block.count == 64 && outputs_are_free(a) && a.input_dtype == a.output_dtype;
  return has_halves ? WayKind::kHalves : WayKind::kSlide;
}

// Pixels of both passes of kHalves: few enough that the second one finds the rows where the first one left
// them.
constexpr uint32_t kPassPixels = 72;

// Pixels that stand a multiple of 512 apart compete for eight of the 64 sets of the L1 cache: over 14 of
// them, the second pass did not find the rows there.
constexpr uint32_t kCompetingPixels = 8;

// Outputs of each row that a pass makes, of num_outputs: passes have about as many.
inline uint32_t pass_pixels(const DepthwiseConv2dArgs& a, uint32_t num_outputs) {
  const uint32_t most = size_t{a.dilation_w} * a.input_c % 512 == 0 ? kCompetingPixels : kPassPixels;
  if (num_outputs <= most) return num_outputs;
  const uint32_t num_passes = (num_outputs + most - 1) / most;
  return (num_outputs + num_passes - 1) / num_passes;
}

// Outputs of a row that kColumns makes from one run of columns.
constexpr uint32_t kChunk = 32;

// ---- scratch ----

// What is in the scratch, each at a multiple of 64.
struct Scratch {
  int8_t* weights;   // [part][kernel column][row of outputs][dword][q][64]
  int32_t* bias;     // these: [q][16]
  int32_t* factor;   // multiplier, scale or float_scale
  int32_t* addend;   // shift or float_offset
  uint8_t* padding;  // a row of the input that is outside
  int8_t* columns;   // of kColumns: [column][dword][q][64]; of kHalves: words of half the channels of outputs
  uint8_t* narrow;   // two rows of vectors of outputs that are stored in parts
};

inline uint32_t num_dwords(const DepthwiseConv2dArgs& a) { return a.kernel_h == 3 ? 1 : 2; }
inline size_t part_bytes(const DepthwiseConv2dArgs& a) {
  return size_t{a.kernel_w} * rows_at_once(a) * num_dwords(a) * 256;
}
inline size_t padding_bytes(const DepthwiseConv2dArgs& a) {
  return (size_t{a.input_w} * a.input_c + 127) / 64 * 64;
}
// Columns of a chunk: vectors of outputs come in fours, or two of two rows.
inline size_t columns_bytes(const DepthwiseConv2dArgs& a) {
  const uint32_t outputs = a.output_w < kChunk ? (a.output_w + 3) / 4 * 4 : kChunk;
  return (size_t{outputs - 1} * a.stride_w + a.kernel_w) * num_dwords(a) * 256;
}
constexpr size_t kNarrowBytes = 2 * kChunk * 64;

inline Scratch scratch_in(const DepthwiseConv2dArgs& a, void* scratch) {
  int8_t* weights = static_cast<int8_t*>(scratch);
  auto* bias = reinterpret_cast<int32_t*>(weights + most_parts(a) * part_bytes(a));
  auto* padding = reinterpret_cast<uint8_t*>(bias + 192);
  auto* columns = reinterpret_cast<int8_t*>(padding + padding_bytes(a));
  auto* narrow = reinterpret_cast<uint8_t*>(columns + columns_bytes(a));
  return {weights, bias, bias + 64, bias + 128, padding, columns, narrow};
}

// What a block needs from Scratch::columns on.
inline size_t way_bytes(const DepthwiseConv2dArgs& a, const Block& block) {
  switch (way_kind(a, block, form_of(a, block), most_parts(a))) {
    case WayKind::kColumns:
      return columns_bytes(a) + (block.count == 64 ? 0 : kNarrowBytes);
    case WayKind::kHalves:
      return size_t{pass_pixels(a, phase_outputs(a.output_w, a.dilation_w))} * rows_at_once(a) * 64;
    case WayKind::kSlide:
    case WayKind::kPixels:
      return 0;
  }
  return 0;
}

inline size_t columns_scratch_bytes(const DepthwiseConv2dArgs& a) {
  size_t most = 0;
  for (uint32_t b = 0; b < num_blocks(a.input_c); ++b) {
    const size_t bytes = way_bytes(a, block_at(a.input_c, b));
    if (bytes > most) most = bytes;
  }
  return most_parts(a) * part_bytes(a) + 3 * 64 * sizeof(int32_t) + padding_bytes(a) + most;
}

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_DEPTHWISE_CONV2D_DEPTHWISE_WAYS_AVX512VNNI_H_
