// The parameters of steps as text, one function per table of the schema.
#include <charconv>

#include "kernels/layout.h"
#include "src/packer/inspect/inspect.h"

namespace qplan::inspect {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

// The shortest decimal that reads back as the same float.
std::string text(float value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof(digits), value).ptr};
}
std::string text(bool value) { return value ? "true" : "false"; }
template <typename Integer>
std::string text(Integer value) {
  return std::to_string(value);
}
std::string text(const flatbuffers::Vector<uint32_t>* values) {
  std::string result = "[";
  for (uint32_t i = 0; i < format::count_of(values); ++i) {
    result += (i == 0 ? "" : ", ") + std::to_string(values->Get(i));
  }
  return result + "]";
}
std::string text(format::Contract contract) { return format::EnumNameContract(contract); }
std::string text(format::FloatForm form) { return format::EnumNameFloatForm(form); }
std::string text(format::QuantizeRule rule) { return format::EnumNameQuantizeRule(rule); }
std::string text(format::ResizeRule rule) { return format::EnumNameResizeRule(rule); }

Fields joined(Fields first, const Fields& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Only the fields that the step's contract looks at are shown.
#define QPLAN_FIELD(name) \
  { #name, text(p.name()) }

Fields fields(const format::Conv2dParams& p) {
  return {QPLAN_FIELD(contract),
          {"weights_layout", layout_name(p.weights_layout())},
          QPLAN_FIELD(kernel_h),
          QPLAN_FIELD(kernel_w),
          QPLAN_FIELD(stride_h),
          QPLAN_FIELD(stride_w),
          QPLAN_FIELD(dilation_h),
          QPLAN_FIELD(dilation_w),
          QPLAN_FIELD(pad_top),
          QPLAN_FIELD(pad_left),
          QPLAN_FIELD(groups),
          QPLAN_FIELD(input_zero_point),
          QPLAN_FIELD(weights_zero_point),
          QPLAN_FIELD(pad_value),
          QPLAN_FIELD(output_zero_point),
          QPLAN_FIELD(clamp_min),
          QPLAN_FIELD(clamp_max),
          QPLAN_FIELD(float_form)};
}
Fields fields(const format::FullyConnectedParams& p) {
  return {QPLAN_FIELD(contract),          {"weights_layout", layout_name(p.weights_layout())},
          QPLAN_FIELD(input_zero_point),  QPLAN_FIELD(weights_zero_point),
          QPLAN_FIELD(output_zero_point), QPLAN_FIELD(clamp_min),
          QPLAN_FIELD(clamp_max),         QPLAN_FIELD(float_form)};
}
Fields fields(const format::Pool2dParams& p) {
  Fields result = {QPLAN_FIELD(contract), QPLAN_FIELD(pool_h),    QPLAN_FIELD(pool_w),
                   QPLAN_FIELD(stride_h), QPLAN_FIELD(stride_w),  QPLAN_FIELD(pad_top),
                   QPLAN_FIELD(pad_left), QPLAN_FIELD(clamp_min), QPLAN_FIELD(clamp_max)};
  if (p.contract() != format::Contract_F32E) return result;
  return joined(std::move(result),
                {QPLAN_FIELD(input_scale), QPLAN_FIELD(input_zero_point), QPLAN_FIELD(output_scale),
                 QPLAN_FIELD(output_zero_point), QPLAN_FIELD(count_include_pad)});
}
Fields fields(const format::AddParams& p) {
  if (p.contract() == format::Contract_F32E) {
    return {QPLAN_FIELD(contract),          QPLAN_FIELD(input1_scale),      QPLAN_FIELD(input1_zero_point),
            QPLAN_FIELD(input2_scale),      QPLAN_FIELD(input2_zero_point), QPLAN_FIELD(output_scale),
            QPLAN_FIELD(output_zero_point), QPLAN_FIELD(clamp_min),         QPLAN_FIELD(clamp_max)};
  }
  return {QPLAN_FIELD(contract),          QPLAN_FIELD(left_shift),   QPLAN_FIELD(input1_zero_point),
          QPLAN_FIELD(input1_multiplier), QPLAN_FIELD(input1_shift), QPLAN_FIELD(input2_zero_point),
          QPLAN_FIELD(input2_multiplier), QPLAN_FIELD(input2_shift), QPLAN_FIELD(output_zero_point),
          QPLAN_FIELD(output_multiplier), QPLAN_FIELD(output_shift), QPLAN_FIELD(clamp_min),
          QPLAN_FIELD(clamp_max)};
}
Fields fields(const format::MulParams& p) {
  if (p.contract() == format::Contract_F32E) {
    return {QPLAN_FIELD(contract),          QPLAN_FIELD(input1_scale),      QPLAN_FIELD(input1_zero_point),
            QPLAN_FIELD(input2_scale),      QPLAN_FIELD(input2_zero_point), QPLAN_FIELD(output_scale),
            QPLAN_FIELD(output_zero_point), QPLAN_FIELD(clamp_min),         QPLAN_FIELD(clamp_max)};
  }
  return {QPLAN_FIELD(contract),          QPLAN_FIELD(input1_zero_point), QPLAN_FIELD(input2_zero_point),
          QPLAN_FIELD(output_zero_point), QPLAN_FIELD(output_multiplier), QPLAN_FIELD(output_shift),
          QPLAN_FIELD(clamp_min),         QPLAN_FIELD(clamp_max)};
}
Fields fields(const format::MeanParams& p) {
  Fields result = {QPLAN_FIELD(contract), QPLAN_FIELD(axes), QPLAN_FIELD(input_zero_point),
                   QPLAN_FIELD(output_zero_point)};
  if (p.contract() == format::Contract_F32E) return joined(std::move(result), {QPLAN_FIELD(scale)});
  return joined(std::move(result), {QPLAN_FIELD(output_multiplier), QPLAN_FIELD(output_shift)});
}
Fields fields(const format::SoftmaxParams& p) {
  if (p.contract() == format::Contract_F32E) {
    return {QPLAN_FIELD(contract), QPLAN_FIELD(output_scale), QPLAN_FIELD(output_zero_point)};
  }
  return {QPLAN_FIELD(contract), QPLAN_FIELD(input_multiplier), QPLAN_FIELD(input_left_shift),
          QPLAN_FIELD(diff_min)};
}
Fields fields(const format::Lut8Params&) { return {}; }
Fields fields(const format::QuantizeParams& p) {
  return {QPLAN_FIELD(rule), QPLAN_FIELD(scale), QPLAN_FIELD(zero_point)};
}
Fields fields(const format::DequantizeParams& p) { return {QPLAN_FIELD(scale), QPLAN_FIELD(zero_point)}; }
Fields fields(const format::RequantizeParams& p) {
  Fields result = {QPLAN_FIELD(contract), QPLAN_FIELD(input_zero_point), QPLAN_FIELD(output_zero_point)};
  const Fields scale = p.contract() == format::Contract_F32E
                           ? Fields{QPLAN_FIELD(scale)}
                           : Fields{QPLAN_FIELD(multiplier), QPLAN_FIELD(shift)};
  return joined(joined(std::move(result), scale),
                {QPLAN_FIELD(clamp_min), QPLAN_FIELD(clamp_max), QPLAN_FIELD(axis), QPLAN_FIELD(float_form)});
}
Fields fields(const format::PadParams& p) { return {QPLAN_FIELD(before), QPLAN_FIELD(value)}; }
Fields fields(const format::TransposeParams& p) { return {QPLAN_FIELD(permutation)}; }
Fields fields(const format::ConcatParams& p) { return {QPLAN_FIELD(axis)}; }
Fields fields(const format::SplitParams& p) { return {QPLAN_FIELD(axis)}; }
Fields fields(const format::ResizeBilinearParams& p) {
  return {QPLAN_FIELD(rule), QPLAN_FIELD(align_corners), QPLAN_FIELD(half_pixel_centers)};
}
Fields fields(const format::ArgMaxParams& p) { return {QPLAN_FIELD(axis)}; }
Fields fields(const format::CopyParams&) { return {}; }
// "stage0": "conv2d {inputs=[3, 4, 5, 6, 7], ...}", ...; from the number of the plan's tensors on, tiles.
Fields fields(const format::ChainParams& p) {
  Fields result;
  for (uint32_t i = 0; i < p.stages()->size(); ++i) {
    const format::KernelStep& stage = *p.stages()->Get(i);
    std::string text_of_stage = kernel_name(stage.kernel()) + " {inputs=" + text(stage.inputs());
    for (const auto& [name, value] : step_params(stage)) text_of_stage += ", " + name + "=" + value;
    result.emplace_back("stage" + std::to_string(i), text_of_stage + "}");
    if (i < p.tiles()->size()) {
      const format::Tensor& tile = *p.tiles()->Get(i);
      result.emplace_back("tile" + std::to_string(i), dtype_text(tile) + " " + shape_text(tile));
    }
  }
  return result;
}

#undef QPLAN_FIELD

}  // namespace

namespace {

Fields params_fields(const format::KernelStep& step) {
  switch (step.kernel()) {
    // open() has checked that the table is the kernel's.
#define QPLAN_KERNEL(id, family, descriptor, Params) \
  case id:                                           \
    return fields(*step.params_as_##Params());
#include "format/kernels.def"
#undef QPLAN_KERNEL
    default:
      return {};
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> step_params(const format::KernelStep& step) {
  Fields result = params_fields(step);
  if (step.residual() == nullptr) return result;
  result.emplace_back("residual", step.residual_is_input1() ? "input1" : "input2");
  for (const auto& [name, value] : fields(*step.residual())) result.emplace_back("residual_" + name, value);
  return result;
}

}  // namespace qplan::inspect
