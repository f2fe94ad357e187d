// fully_connected: a matrix product of rows.
//
// out[r,o] = clamp(output_zero_point + requant(acc[r,o], o), clamp_min, clamp_max)
// acc[r,o] = bias[o] + sum over k of (in[r,k] - input_zero_point) * (weights[o,k] - weights_zero_point)
//
// Sums are taken modulo 2^32; requant is that of conv2d (kernels/conv2d/conv2d.h), under the same contracts;
// under ACC32 out[r,o] = acc[r,o], as int32. int16 is as there.
// Weights [output_c, input_c] are in the layout weights_layout: ohwi, o16k4, o16r8, o4k4, o4h4 or o4k16
// (kernels/layout.h). In o16r8 there are zeros after the inputs. bias, multiplier, shift, scale, float_scale
// and float_offset have layout_channels(weights_layout, output_c) entries.
#ifndef QPLAN_KERNELS_FULLY_CONNECTED_FULLY_CONNECTED_H_
#define QPLAN_KERNELS_FULLY_CONNECTED_FULLY_CONNECTED_H_

#include <stddef.h>
#include <stdint.h>

#include "kernels/numeric/dtype.h"
#include "kernels/numeric/requantize.h"
#include "kernels/schedule.h"
#include "kernels/variant.h"

namespace qplan {

// Ranges that bind has checked: extents are in [1, 2^31); zero points and clamps are within their dtypes,
// weights_zero_point within int8; rows * ceil(output_c / 16) is below 2^31; scales are finite and not
// negative.
struct FullyConnectedArgs {
  const void* input = nullptr;  // [rows, input_c]
  const int8_t* weights = nullptr;
  const int32_t* bias = nullptr;        // int64 where has_wide_bias
  const int32_t* multiplier = nullptr;  // TFL2 and TFL1 only
  const int32_t* shift = nullptr;       // TFL2 and TFL1 only
  const float* scale = nullptr;         // F32E only
  const float* float_scale = nullptr;   // these two: null under FloatEpilogue::kNone
  const float* float_offset = nullptr;
  void* output = nullptr;  // [rows, output_c]
  uint32_t rows = 0;
  uint32_t input_c = 0;
  uint32_t output_c = 0;
  int32_t input_zero_point = 0;
  int32_t weights_zero_point = 0;
  int32_t output_zero_point = 0;
  int32_t clamp_min = 0;
  int32_t clamp_max = 0;
  Contract contract = Contract::kTfl2;
  FloatEpilogue float_epilogue = FloatEpilogue::kNone;  // kNone but for TFL2 and TFL1
  bool has_wide_bias = false;                           // int16 only: bias and accumulators are int64
  Dtype input_dtype = Dtype::kOther;                    // uint8, int8 or int16
  Dtype output_dtype = Dtype::kOther;  // uint8 or int8, int32 under ACC32; int16 where the input is
  uint8_t int16_groups = 0;            // kernels/layout.h
  uint16_t weights_layout = 0;         // layouts.def
  uint64_t schedule = 0;               // kernels/schedule.h
};

// Knobs of the vector variants: rows of a work item, and its blocks of 16 channels.
enum FullyConnectedKnob : uint32_t { kFullyConnectedRowChunk, kFullyConnectedBlockGroup };
constexpr Knob kFullyConnectedKnobs[] = {{"row_chunk", KnobKind::kTile, 3, {24, 48, 96}},
                                         {"block_group", KnobKind::kTile, 5, {2, 4, 8, 16, 64}}};

// Best first; the reference, which computes all that is bound, is the last.
// Work items of the reference: blocks of 16 outputs, r * ceil(output_c / 16) + o / 16.
#define QPLAN_FULLY_CONNECTED_VARIANTS   \
  QPLAN_DOT_VARIANTS(fully_connected)    \
  QPLAN_SCALAR_VARIANTS(fully_connected) \
  QPLAN_VARIANT(fully_connected_ref, QPLAN_ISA_REFERENCE)
#define QPLAN_VARIANT(name, isa) QPLAN_DECLARE_VARIANT(name, FullyConnectedArgs)
QPLAN_FULLY_CONNECTED_VARIANTS
#undef QPLAN_VARIANT

// fully_connected_dsp without what layers of most networks do without (has_form_alone,
// kernels/scalar/outputs.h): what C that `qplan emit-c` writes links where it is enough for all layers.
QPLAN_DECLARE_VARIANT(fully_connected_dsp_form, FullyConnectedArgs)

}  // namespace qplan

#endif  // QPLAN_KERNELS_FULLY_CONNECTED_FULLY_CONNECTED_H_
