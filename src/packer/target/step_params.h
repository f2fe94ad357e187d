// The parameters of a step as values: one struct for each table of parameters in format/plan.fbs, which says
// what the fields mean. src/packer/target/pack_step.cc writes them.
#ifndef QPLAN_SRC_PACKER_TARGET_STEP_PARAMS_H_
#define QPLAN_SRC_PACKER_TARGET_STEP_PARAMS_H_

#include <cstdint>
#include <type_traits>
#include <variant>
#include <vector>

#include "format/plan_generated.h"

namespace qplan::target {

// Float requantisation beside multipliers and shifts (format/README.md, "Float forms"). The vectors are empty
// under FloatForm_NONE.
struct FloatForms {
  format::FloatForm form = format::FloatForm_NONE;
  std::vector<float> scale;
  std::vector<float> offset;
  bool operator==(const FloatForms&) const = default;
};

struct Conv2dParams {
  format::Contract contract = format::Contract_NONE;
  uint16_t weights_layout = 0;
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
  FloatForms float_forms = {};
  bool operator==(const Conv2dParams&) const = default;
};

struct FullyConnectedParams {
  format::Contract contract = format::Contract_NONE;
  uint16_t weights_layout = 0;
  int32_t input_zero_point = 0;
  int32_t weights_zero_point = 0;
  int32_t output_zero_point = 0;
  int32_t clamp_min = 0;
  int32_t clamp_max = 0;
  FloatForms float_forms = {};
  bool operator==(const FullyConnectedParams&) const = default;
};

struct Pool2dParams {
  format::Contract contract = format::Contract_NONE;
  uint32_t pool_h = 0;
  uint32_t pool_w = 0;
  uint32_t stride_h = 0;
  uint32_t stride_w = 0;
  uint32_t pad_top = 0;
  uint32_t pad_left = 0;
  int32_t clamp_min = 0;
  int32_t clamp_max = 0;
  float input_scale = 0.0f;  // from here on: averages under F32E
  int32_t input_zero_point = 0;
  float output_scale = 0.0f;
  int32_t output_zero_point = 0;
  bool count_include_pad = false;
  bool operator==(const Pool2dParams&) const = default;
};

struct AddParams {
  format::Contract contract = format::Contract_NONE;
  int32_t left_shift = 0;
  int32_t input1_zero_point = 0;
  int32_t input1_multiplier = 0;
  int32_t input1_shift = 0;
  int32_t input2_zero_point = 0;
  int32_t input2_multiplier = 0;
  int32_t input2_shift = 0;
  int32_t output_zero_point = 0;
  int32_t output_multiplier = 0;
  int32_t output_shift = 0;
  int32_t clamp_min = 0;
  int32_t clamp_max = 0;
  float input1_scale = 0.0f;
  float input2_scale = 0.0f;
  float output_scale = 0.0f;
  float float_scale1 = 0.0f;  // 0: the sum has no float form
  float float_scale2 = 0.0f;
  float float_offset = 0.0f;
  bool operator==(const AddParams&) const = default;
};

struct MulParams {
  format::Contract contract = format::Contract_NONE;
  int32_t input1_zero_point = 0;
  int32_t input2_zero_point = 0;
  int32_t output_zero_point = 0;
  int32_t output_multiplier = 0;
  int32_t output_shift = 0;
  int32_t clamp_min = 0;
  int32_t clamp_max = 0;
  float input1_scale = 0.0f;  // from here on: F32E
  float input2_scale = 0.0f;
  float output_scale = 0.0f;
  bool operator==(const MulParams&) const = default;
};

struct MeanParams {
  format::Contract contract = format::Contract_NONE;
  uint32_t axes = 0;  // bit i: axis i is reduced
  int32_t input_zero_point = 0;
  int32_t output_zero_point = 0;
  int32_t output_multiplier = 0;
  int32_t output_shift = 0;
  float scale = 0.0f;  // F32E
  bool operator==(const MeanParams&) const = default;
};

struct SoftmaxParams {
  format::Contract contract = format::Contract_NONE;
  int32_t input_multiplier = 0;
  int32_t input_left_shift = 0;
  int32_t diff_min = 0;
  float output_scale = 0.0f;  // these two: F32E
  int32_t output_zero_point = 0;
  bool operator==(const SoftmaxParams&) const = default;
};

struct Lut8Params {
  bool operator==(const Lut8Params&) const = default;
};

struct QuantizeParams {
  format::QuantizeRule rule = format::QuantizeRule_DIV_AWAY;
  float scale = 0.0f;
  int32_t zero_point = 0;
  bool operator==(const QuantizeParams&) const = default;
};

struct DequantizeParams {
  float scale = 0.0f;
  int32_t zero_point = 0;
  bool operator==(const DequantizeParams&) const = default;
};

struct RequantizeParams {
  format::Contract contract = format::Contract_NONE;
  int32_t input_zero_point = 0;
  int32_t output_zero_point = 0;
  int32_t multiplier = 0;
  int32_t shift = 0;
  int32_t clamp_min = 0;
  int32_t clamp_max = 0;
  float scale = 0.0f;
  uint32_t axis = 0;
  FloatForms float_forms = {};
  bool operator==(const RequantizeParams&) const = default;
};

struct PadParams {
  std::vector<uint32_t> before;
  int32_t value = 0;
  bool operator==(const PadParams&) const = default;
};

struct TransposeParams {
  std::vector<uint32_t> permutation;
  bool operator==(const TransposeParams&) const = default;
};

struct ConcatParams {
  uint32_t axis = 0;
  bool operator==(const ConcatParams&) const = default;
};

struct SplitParams {
  uint32_t axis = 0;
  bool operator==(const SplitParams&) const = default;
};

struct ResizeBilinearParams {
  format::ResizeRule rule = format::ResizeRule_TFL_FLOAT;
  bool align_corners = false;
  bool half_pixel_centers = false;
  bool operator==(const ResizeBilinearParams&) const = default;
};

struct ArgMaxParams {
  uint32_t axis = 0;
  bool operator==(const ArgMaxParams&) const = default;
};

struct CopyParams {
  bool operator==(const CopyParams&) const = default;
};

// The stages and tiles are the step's own (ProgramStep::stages, tiles).
struct ChainParams {
  bool operator==(const ChainParams&) const = default;
};

// Alternatives in the order of the schema's union: the index is the union's type.
using StepParams =
    std::variant<std::monostate, Conv2dParams, FullyConnectedParams, Pool2dParams, AddParams, MulParams,
                 MeanParams, SoftmaxParams, Lut8Params, QuantizeParams, DequantizeParams, RequantizeParams,
                 PadParams, TransposeParams, ConcatParams, SplitParams, ResizeBilinearParams, ArgMaxParams,
                 CopyParams, ChainParams>;
static_assert(std::variant_size_v<StepParams> == format::KernelParams_MAX + 1);

inline format::KernelParams type_of(const StepParams& params) {
  return static_cast<format::KernelParams>(params.index());
}

}  // namespace qplan::target

#endif  // QPLAN_SRC_PACKER_TARGET_STEP_PARAMS_H_
