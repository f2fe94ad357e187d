// conv2d, grouped convolution included:
//
//   out[n,y,x,o] = clamp(output_zero_point + requant(acc[n,y,x,o], o), clamp_min, clamp_max)
//   acc[n,y,x,o] = bias[o] + sum over ky, kx, i of
//                  (in[n, in_y, in_x, g * I + i] - input_zero_point)
//                  * (weights[o, ky, kx, i] - weights_zero_point)
//   in_y         = y * stride_h + ky * dilation_h - pad_top
//   in_x         = x * stride_w + kx * dilation_w - pad_left
//
// I = input_c / groups input channels a group, g = o / (output_c / groups); outside its extents in[...] is
// pad_value. Sums are taken modulo 2^32, with has_wide_bias modulo 2^64. requant
// (kernels/numeric/requantize.h) is, under the contract
//
//   TFL2, TFL1   requantize_tfl2, requantize_tfl1 (acc, multiplier[o], shift[o])
//   F32E         round half even (float(acc) * scale[o])
//
// With int16 input and output the contract is TFL2, and the bias is int32, or int64 (has_wide_bias): then
// requant is requantize_tfl2_wide.
//
// and under ACC32 the output is int32: out[n,y,x,o] = acc[n,y,x,o], without zero point and clamp.
//
// With a residual, an activation of the output's shape and dtype, the output is the sum of that and of what
// is above, which is no int32 then:
//
//   out'[n,y,x,o] = sum_of(out[n,y,x,o], residual[n,y,x,o])      (kernels/elementwise/add.h)
//
// or, with residual_is_a, of the two the other way round.
//
// A weight that is no int8 is one of the weights and a rest: weights[o,ky,kx,i] above is that and the rest of
// each WeightRest whose channel is o and whose k is (ky * kernel_w + kx) * I + i. They stand after the
// entries of bias, three int32 each. (Of weights that are uint8, less their zero point, nearly all are int8.
// With rests for the others, no kernel has to subtract weights_zero_point * the sum of a window.)
//
// Another step may compute the bias, where inputs are of 8 bits, but not under ACC32; it has no rests then.
//
// Weights are in the layout weights_layout (kernels/layout.h), of a window [kernel_h, kernel_w, I]: any but
// hwo16, o4k4 and o4h4. Taps are followed by zeros where layout_needs_zeros says so. bias, multiplier, shift
// and scale have layout_channels(weights_layout, output_c) entries, as have float_scale and float_offset
// (kernels/numeric/requantize.h, FloatEpilogue).
#ifndef QPLAN_KERNELS_CONV2D_CONV2D_H_
#define QPLAN_KERNELS_CONV2D_CONV2D_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/elementwise/add.h"
#include "kernels/layout.h"
#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "kernels/variant.h"

namespace qplan {

// Room for what one layer may have. Layers with more keep their weights_zero_point.
constexpr uint32_t kMaxWeightRests = 4;

// Ranges that bind has checked: every extent is in [1, 2^31); y * stride_h + ky * dilation_h and pad_top are
// below 2^31, so that positions and their differences fit int32 (horizontally too); groups divides input_c
// and output_c; zero points and clamps are within their dtypes, weights_zero_point within int8; output rows
// (batch * output_h) fit uint32; scales are finite and not negative.
struct Conv2dArgs {
  const void* input = nullptr;  // [batch, input_h, input_w, input_c]
  const int8_t* weights = nullptr;
  const int32_t* bias = nullptr;        // int64 where has_wide_bias
  const int32_t* multiplier = nullptr;  // TFL2 and TFL1 only
  const int32_t* shift = nullptr;       // TFL2 and TFL1 only
  const float* scale = nullptr;         // F32E only
  const float* float_scale = nullptr;   // these two: null under FloatEpilogue::kNone
  const float* float_offset = nullptr;
  void* output = nullptr;  // [batch, output_h, output_w, output_c]
  uint32_t batch = 0;
  uint32_t input_h = 0;
  uint32_t input_w = 0;
  uint32_t input_c = 0;
  uint32_t output_h = 0;
  uint32_t output_w = 0;
  uint32_t output_c = 0;
  uint32_t kernel_h = 0;
  uint32_t kernel_w = 0;
  uint32_t stride_h = 0;
  uint32_t stride_w = 0;
  uint32_t dilation_h = 0;
  uint32_t dilation_w = 0;
  uint32_t pad_top = 0;
  uint32_t pad_left = 0;
  uint32_t groups = 0;
  int32_t input_zero_point = 0;
  int32_t weights_zero_point = 0;
  int32_t pad_value = 0;
  int32_t output_zero_point = 0;
  int32_t clamp_min = 0;
  int32_t clamp_max = 0;
  Contract contract = Contract::kTfl2;
  FloatEpilogue float_epilogue = FloatEpilogue::kNone;  // kNone but for TFL2 and TFL1
  Dtype input_dtype = Dtype::kOther;                    // uint8, int8 or int16
  Dtype output_dtype = Dtype::kOther;  // uint8 or int8, int32 under ACC32; int16 where the input is
  uint16_t weights_layout = 0;         // layouts.def
  uint64_t schedule = 0;               // kernels/variant.h
  bool has_wide_bias = false;          // int16 only: bias and accumulators are int64
  uint8_t int16_groups = 0;            // kernels/layout.h
  uint8_t num_weight_rests = 0;        // at most kMaxWeightRests; with layouts of 16 channels only
  bool has_residual = false;           // what these three are for; not with int16
  const void* residual = nullptr;      // as the output
  bool residual_is_a = false;
  AddFormula residual_sum;
};

struct WeightRest {
  uint32_t channel;
  uint32_t k;
  int32_t rest;  // int8
};
static inline WeightRest weight_rest(const Conv2dArgs& a, uint32_t i) {
  const int32_t* from = a.bias + layout_channels(a.weights_layout, a.output_c) + 3 * i;
  return {static_cast<uint32_t>(from[0]), static_cast<uint32_t>(from[1]), from[2]};
}

// Knobs of the vector variants: output pixels of a block; groups into which a block's output channels are
// divided, each a work item; 1: all blocks of a group before the next group.
enum Conv2dKnob : uint32_t { kConv2dBlockPixels, kConv2dChannelGroups, kConv2dGroupsOuter };
constexpr Knob kConv2dKnobs[] = {{"block_pixels", KnobKind::kTile, 4, {24, 48, 96, 192}},
                                 {"channel_groups", KnobKind::kTile, 5, {1, 2, 4, 8, 16}},
                                 {"groups_outer", KnobKind::kOrder, 1, {1}}};

// Best first; the reference, which computes all that is bound, is the last.
// Work items of the reference: output rows, n * output_h + y.
#define QPLAN_CONV2D_VARIANTS   \
  QPLAN_DOT_VARIANTS(conv2d)    \
  QPLAN_SCALAR_VARIANTS(conv2d) \
  QPLAN_VARIANT(conv2d_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, Conv2dArgs)
QPLAN_CONV2D_VARIANTS
#undef QPLAN_VARIANT

// conv2d_dsp without what layers of most networks do without (has_form_alone, kernels/scalar/outputs.h): what
// C that `qplan emit-c` writes links where it is enough for all layers.
QPLAN_DECLARE_VARIANT(conv2d_dsp_form, Conv2dArgs)

// conv2d_transpose: each element of the input adds a window of products to the output.
//
//   out[n,y,x,o] = clamp(output_zero_point + requant(acc[n,y,x,o], o), clamp_min, clamp_max)
//   acc[n,y,x,o] = bias[o] + sum over in_y, in_x, i, and over the ky, kx with
//                  y = in_y * stride_h + ky - pad_top and x = in_x * stride_w + kx - pad_left, of
//                  (in[n, in_y, in_x, i] - input_zero_point) * (weights[o, ky, kx, i] - weights_zero_point)
//
// Sums, requant and dtypes are those of conv2d. Outputs that no element of the input reaches are the bias
// alone. The weights are in the layout ohwi, or in o16p4 (kernels/layouts.def), of 8-bit inputs.
//
// Dilations and groups are 1, there is no residual, and pad_value means nothing. pad_top and pad_left are the
// rows and columns that are cut off before the output; extents and pads are below 2^31.
using Conv2dTransposeArgs = Conv2dArgs;

// Best first; the reference, whose work items are output rows, n * output_h + y, is the last.
#define QPLAN_CONV2D_TRANSPOSE_VARIANTS \
  QPLAN_DOT_VARIANTS(conv2d_transpose)  \
  QPLAN_VARIANT(conv2d_transpose_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, Conv2dTransposeArgs)
QPLAN_CONV2D_TRANSPOSE_VARIANTS
#undef QPLAN_VARIANT

// How the vector variants read the window of a convolution: in taps, runs of bytes that they multiply four at
// a time; and the layout that has the weights in this order. Both follow from the layer alone: the packer
// asks here, too. Internal linkage only.
namespace {

// Bytes of a column of an interleaved line buffer, which has one row of output.
constexpr uint32_t kMaxInterleavedBytes = 16;
constexpr uint32_t kMinInterleavedWidth = 16;

// Whether the rows of a line buffer are interleaved into one, where that makes fewer groups of four: all of a
// window is then one tap, column by column. Not where rows of output share most rows of input: each is
// interleaved anew.
inline bool rows_are_interleaved(const Conv2dArgs& a) {
  const uint64_t run = uint64_t{a.kernel_w} * a.input_c;
  return a.groups == 1 && a.stride_h > 1 && a.dilation_h == 1 && a.dilation_w == 1 &&
         a.output_w >= kMinInterleavedWidth && uint64_t{a.kernel_h} * a.input_c <= kMaxInterleavedBytes &&
         (a.kernel_h * run + 3) / 4 < a.kernel_h * ((run + 3) / 4);
}

// Whether a tap is a row of the window, else a pixel: the channels of one of several groups are not side by
// side from pixel to pixel.
inline bool taps_are_rows(const Conv2dArgs& a) {
  return (a.dilation_w == 1 || a.kernel_w == 1) && a.groups == 1;
}

// Whether each group has whole blocks of 16 channels.
inline bool has_whole_blocks(const Conv2dArgs& a) { return a.groups == 1 || a.output_c / a.groups % 16 == 0; }

// Whether weights are packed for vector variants: of layers under ACC32 they stay as they are.
inline bool has_vector_variants(const Conv2dArgs& a) {
  return a.contract != Contract::kAcc32 && has_whole_blocks(a);
}

// The one layout that the variants read: its taps are theirs. Where they are whole groups of four anyway it
// is o16k4. Plans before 1.5 have all weights in o16k4; where that is not the layout, the reference runs.
inline uint16_t layout_in_place(const Conv2dArgs& a) {
  if (rows_are_interleaved(a)) return kLayout_o16z4;
  if (taps_are_rows(a)) return uint64_t{a.kernel_w} * a.input_c % 4 == 0 ? kLayout_o16k4 : kLayout_o16r4;
  return a.input_c / a.groups % 4 == 0 ? kLayout_o16k4 : kLayout_o16i4;
}

// Bytes of such a tap.
inline uint64_t vector_tap_bytes(const Conv2dArgs& a) {
  if (rows_are_interleaved(a)) return uint64_t{a.kernel_h} * a.kernel_w * a.input_c;
  return taps_are_rows(a) ? uint64_t{a.kernel_w} * a.input_c : uint64_t{a.input_c} / a.groups;
}

// The same taps in groups of eight bytes.
inline uint16_t layout_of_eights(const Conv2dArgs& a) {
  if (rows_are_interleaved(a)) return kLayout_o16z8;
  return taps_are_rows(a) ? kLayout_o16r8 : kLayout_o16i8;
}

// Whether groups of eight bytes take fewer products than groups of four, for kernels that read both: a tap of
// one group of four would leave half a group of eight empty.
inline bool eights_are_better(const Conv2dArgs& a) { return vector_tap_bytes(a) > 4; }

}  // namespace
}  // namespace qplan

#endif  // QPLAN_KERNELS_CONV2D_CONV2D_H_
