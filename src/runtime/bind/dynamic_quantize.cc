// Kernel argument binding of dynamic_quantize and dynamic_dequantize.
#include "kernels/dynamic_quantize/dynamic_quantize.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

constexpr uint32_t kF32 = dtype_bit(Dtype::kF32), kS32 = dtype_bit(Dtype::kS32);

// One entry for each index of the first `axes` axes of the data.
bool check_rows(const StepCheck& check, uint32_t axes, const Shape& data) {
  return check.range("rows", axes, 0, data.rank) &&
         check.range("number of rows", static_cast<int64_t>(axis_rows(data, axes)), 1, INT32_MAX);
}
bool check_padding(const StepCheck& check, const format::DynamicQuantizeParams& p, const Shape& input,
                   const Shape& output) {
  if (input == output && p.pad_top() == 0 && p.pad_left() == 0) return true;
  if (input.rank != 4 || p.rows() != 1) {
    return check.fail() << "padding asks for an input of rank 4 with rows along its first axis";
  }
  if (output.rank != 4 || output[0] != input[0] || output[3] != input[3]) {
    return check.fail_output(0, "output") << "differs from the input in another axis than height and width";
  }
  if (uint64_t{p.pad_top()} + input[1] <= output[1] && uint64_t{p.pad_left()} + input[2] <= output[2])
    return true;
  return check.fail_output(0, "output") << "is smaller than the input with its padding";
}

bool check_quantize(const StepCheck& check) {
  Shape input, output, scale, zero_point;
  if (!check.arity(1, 3) || !check.params(format::KernelParams_DynamicQuantizeParams) ||
      !check.input(0, "input", kF32, kAnyRank, &input) ||
      !check.output(0, "output", dtype_bit(Dtype::kS8), kAnyRank, &output) ||
      !check.output(1, "scale", kF32, kAnyRank, &scale) ||
      !check.output(2, "zero point", kS32, kAnyRank, &zero_point)) {
    return false;
  }
  const auto& p = check.params_as<format::DynamicQuantizeParams>();
  if (!check_rows(check, p.rows(), input)) return false;
  const uint64_t rows = axis_rows(input, p.rows());
  if (scale.elements() != rows) return check.fail_output(1, "scale") << "has not " << rows << " entries";
  if (zero_point.elements() != rows)
    return check.fail_output(2, "zero point") << "has not " << rows << " entries";
  return check_padding(check, p, input, output);
}

qplan_status bind_quantize(const StepView& step, bool checked, DynamicQuantizeArgs& args, Error* error) {
  const StepCheck check(step, "dynamic_quantize", error);
  if (checked && !check_quantize(check)) return check.status();
  const auto& p = check.params_as<format::DynamicQuantizeParams>();
  const Shape input = shape_of(step.input(0)), output = shape_of(step.output(0));
  args.input = static_cast<const float*>(step.input_data(0));
  args.output = static_cast<int8_t*>(step.output_data(0));
  args.scale = static_cast<float*>(step.output_data(1));
  args.zero_point = static_cast<int32_t*>(step.output_data(2));
  args.rows = static_cast<uint32_t>(axis_rows(input, p.rows()));
  args.symmetric = p.symmetric();
  args.input_h = args.input_w = args.output_h = args.output_w = 1;
  if (input == output) {
    args.channels = input.elements() / args.rows;
    return QPLAN_OK;
  }
  args.input_h = input[1];
  args.input_w = input[2];
  args.channels = input[3];
  args.output_h = output[1];
  args.output_w = output[2];
  args.pad_top = p.pad_top();
  args.pad_left = p.pad_left();
  return QPLAN_OK;
}

uint64_t quantize_work(const DynamicQuantizeArgs& args) {
  constexpr uint64_t kPasses = 2;  // the ends, the elements
  return saturating_product(kPasses, args.rows, args.output_h, args.output_w, args.channels);
}

bool check_dequantize(const StepCheck& check) {
  Shape input, output, scale, zero_point;
  if (!check.arity(6, 1) || !check.params(format::KernelParams_DynamicDequantizeParams) ||
      !check.input(0, "input", kS32, kAnyRank, &input) || !check.input(1, "scale", kF32, kAnyRank, &scale) ||
      !check.input(2, "zero point", kS32, kAnyRank, &zero_point) ||
      !check.output(0, "output", kF32, kAnyRank, &output)) {
    return false;
  }
  const auto& p = check.params_as<format::DynamicDequantizeParams>();
  if (input.rank == 0) return check.fail_input(0, "input") << "is a scalar, expected at least one axis";
  if (input != output) return check.fail_output(0, "output") << "has another shape than the input";
  if (!check_rows(check, p.rows(), input)) return false;
  if (p.rows() == input.rank) return check.fail() << "rows " << p.rows() << " leave no axis for the channels";
  const uint64_t rows = axis_rows(input, p.rows()), channels = input[input.rank - 1];
  if (scale.elements() != rows) return check.fail_input(1, "scale") << "has not " << rows << " entries";
  if (zero_point.elements() != rows)
    return check.fail_input(2, "zero point") << "has not " << rows << " entries";
  return check.range("number of pixels", static_cast<int64_t>(axis_rows(input, input.rank - 1)), 1,
                     INT32_MAX) &&
         check.constant(3, "weight scale", Dtype::kF32, channels) &&
         check.constant(4, "weight sum", Dtype::kS32, channels) &&
         check.constant(5, "bias", Dtype::kF32, channels) && check.float_clamp(p.clamp_min(), p.clamp_max());
}

qplan_status bind_dequantize(const StepView& step, bool checked, DynamicDequantizeArgs& args, Error* error) {
  const StepCheck check(step, "dynamic_dequantize", error);
  if (checked && !check_dequantize(check)) return check.status();
  const auto& p = check.params_as<format::DynamicDequantizeParams>();
  const Shape input = shape_of(step.input(0));
  args.input = static_cast<const int32_t*>(step.input_data(0));
  args.scale = static_cast<const float*>(step.input_data(1));
  args.zero_point = static_cast<const int32_t*>(step.input_data(2));
  args.weight_scale = static_cast<const float*>(step.input_data(3));
  args.weight_sum = static_cast<const int32_t*>(step.input_data(4));
  args.bias = static_cast<const float*>(step.input_data(5));
  args.output = static_cast<float*>(step.output_data(0));
  args.rows = static_cast<uint32_t>(axis_rows(input, p.rows()));
  args.pixels = static_cast<uint32_t>(axis_rows(input, input.rank - 1) / args.rows);
  args.channels = input[input.rank - 1];
  args.clamp_min = p.clamp_min();
  args.clamp_max = p.clamp_max();
  args.in_turn = p.in_turn();
  return QPLAN_OK;
}

uint64_t dequantize_work(const DynamicDequantizeArgs& args) {
  return saturating_product(args.rows, args.pixels, args.channels);
}

// Element by element, of the same size.
bool dequantize_in_place(const StepView&, uint32_t, uint32_t input) { return input == 0; }

constexpr KernelVariant kQuantizeVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(DynamicQuantizeArgs, name, isa),
    QPLAN_DYNAMIC_QUANTIZE_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kQuantizeReference[] = {
    QPLAN_VARIANT_ROW(DynamicQuantizeArgs, dynamic_quantize_ref, QPLAN_ISA_REFERENCE)};
constexpr KernelVariant kDequantizeVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(DynamicDequantizeArgs, name, isa),
    QPLAN_DYNAMIC_DEQUANTIZE_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kDequantizeReference[] = {
    QPLAN_VARIANT_ROW(DynamicDequantizeArgs, dynamic_dequantize_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kDynamicQuantizeFamily =
    make_family<DynamicQuantizeArgs, bind_quantize, never_in_place, quantize_work>(
        kKernel_dynamic_quantize, "dynamic_quantize", kQuantizeVariants);
constexpr KernelFamily kDynamicQuantizeFamilyReference =
    make_family<DynamicQuantizeArgs, bind_quantize, never_in_place, quantize_work>(
        kKernel_dynamic_quantize, "dynamic_quantize", kQuantizeReference);
constexpr KernelFamily kDynamicDequantizeFamily =
    make_family<DynamicDequantizeArgs, bind_dequantize, dequantize_in_place, dequantize_work>(
        kKernel_dynamic_dequantize, "dynamic_dequantize", kDequantizeVariants);
constexpr KernelFamily kDynamicDequantizeFamilyReference =
    make_family<DynamicDequantizeArgs, bind_dequantize, dequantize_in_place, dequantize_work>(
        kKernel_dynamic_dequantize, "dynamic_dequantize", kDequantizeReference);

}  // namespace qplan
