// Kernel argument binding of conversions between numbers and their quantised form (kernels/quantization/).
#include "kernels/quantization/quantization.h"

#include <float.h>

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {

// ---- quantize ----

namespace {

static_assert(static_cast<int>(QuantizeRounding::kDivAway) == format::QuantizeRule_DIV_AWAY &&
                  static_cast<int>(QuantizeRounding::kDivEven) == format::QuantizeRule_DIV_EVEN &&
                  static_cast<int>(QuantizeRounding::kMulEven) == format::QuantizeRule_MUL_EVEN,
              "the plan's numbers");

// A function of its own, whose stack is free while arguments are filled.
__attribute__((noinline)) bool check_quantize(const StepCheck& check, const StepView& step) {
  if (!check.arity(1, 1) || !check.params(format::KernelParams_QuantizeParams)) return false;
  Shape input;
  Shape output;
  if (!check.input(0, "input", dtype_bit(Dtype::kF32), kAnyRank, &input) ||
      !check.output(0, "output", kDtypesQuantized, kAnyRank, &output)) {
    return false;
  }
  if (input != output && !moves_channels(input, output)) {
    return check.fail_output(0, "output")
           << "has another shape than the input, and not that of the input with axis 1 as the last one";
  }
  const format::QuantizeParams& params = check.params_as<format::QuantizeParams>();
  if (params.rule() > format::QuantizeRule_MAX) {
    return check.fail(QPLAN_KERNEL_MISSING)
           << "rule " << static_cast<uint32_t>(params.rule()) << " is unknown to this runtime; update it";
  }
  if (!(params.scale() > 0.0f && params.scale() <= FLT_MAX)) {
    return check.fail() << "scale is not a positive finite number";
  }
  return check.in_dtype("zero_point", params.zero_point(), step.output(0).dtype);
}

bool reads_planes(const StepView& step) {
  return moves_channels(extents_of(step, step.inputs()->Get(0)), extents_of(step, step.outputs()->Get(0)));
}

qplan_status bind_quantize(const StepView& step, bool checked, QuantizeArgs& args, Error* error) {
  const StepCheck check(step, "quantize", error);
  if (checked && !check_quantize(check, step)) return check.status();
  const format::QuantizeParams& params = check.params_as<format::QuantizeParams>();
  args.dtype = step.output_dtype(0);
  args.rule = static_cast<QuantizeRounding>(params.rule());
  args.input = static_cast<const float*>(step.input_data(0));
  args.output = step.output_data(0);
  args.elements = elements_of(step, step.inputs()->Get(0));
  args.scale = params.scale();
  args.zero_point = params.zero_point();
  // With one channel, or one pixel, the order stays.
  if (reads_planes(step)) {
    const Extents input = extents_of(step, step.inputs()->Get(0));
    args.channels = input[1];
    args.plane_stride = args.elements / input[0] / input[1];
  }
  return QPLAN_OK;
}

// Rows of images: one axis of elements, or parts of planes.
bool accepts_rows(const StepView& step, uint32_t input) {
  return input == 0 && step.rank(step.outputs()->Get(0)) == 4;
}

RowWindow row_window(const void*) { return {1, 0, 1, UINT32_MAX}; }

void cut_rows(const StepView& step, const CutRows& rows, void* storage) {
  QuantizeArgs& args = *static_cast<QuantizeArgs*>(storage);
  const Extents shape = extents_of(step, step.outputs()->Get(0));
  args.input = static_cast<const float*>(rows.from);
  args.output = rows.to;
  args.elements = uint64_t{rows.output.end - rows.output.begin} * shape[2] * shape[3];
}

constexpr RowCut kQuantizeRowCut = {accepts_rows, row_window, cut_rows, reads_planes};

uint64_t quantize_work(const QuantizeArgs& args) { return args.elements; }

constexpr KernelVariant kQuantizeVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(QuantizeArgs, name, isa),
    QPLAN_QUANTIZE_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kQuantizeReference[] = {
    QPLAN_VARIANT_ROW(QuantizeArgs, quantize_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kQuantizeFamily =
    make_family<QuantizeArgs, bind_quantize, never_in_place, quantize_work>(
        kKernel_quantize, "quantize", kQuantizeVariants, &kQuantizeRowCut);
constexpr KernelFamily kQuantizeFamilyReference =
    make_family<QuantizeArgs, bind_quantize, never_in_place, quantize_work>(
        kKernel_quantize, "quantize", kQuantizeReference, &kQuantizeRowCut);

// ---- dequantize ----

namespace {

bool check_dequantize(const StepCheck& check, const StepView& step) {
  if (!check.arity(1, 1) || !check.params(format::KernelParams_DequantizeParams)) return false;
  Shape input;
  Shape output;
  if (!check.input(0, "input", kDtypesQuantized, kAnyRank, &input) ||
      !check.output(0, "output", dtype_bit(Dtype::kF32), kAnyRank, &output)) {
    return false;
  }
  if (input != output && !moves_channels(output, input)) {
    return check.fail_output(0, "output")
           << "has another shape than the input, and not that of the input with the last axis as axis 1";
  }
  const format::DequantizeParams& params = check.params_as<format::DequantizeParams>();
  if (!(params.scale() > 0.0f && params.scale() <= FLT_MAX)) {
    return check.fail() << "scale is not a positive finite number";
  }
  return check.in_dtype("zero_point", params.zero_point(), step.input(0).dtype);
}

qplan_status bind_dequantize(const StepView& step, bool checked, DequantizeArgs& args, Error* error) {
  const StepCheck check(step, "dequantize", error);
  if (checked && !check_dequantize(check, step)) return check.status();
  const format::DequantizeParams& params = check.params_as<format::DequantizeParams>();
  args.dtype = step.input(0).dtype;
  args.input = step.input_data(0);
  args.output = static_cast<float*>(step.output_data(0));
  const Shape input = shape_of(step.input(0));
  args.elements = input.elements();
  args.scale = params.scale();
  args.zero_point = params.zero_point();
  // With one channel, or one pixel, the order stays.
  if (moves_channels(shape_of(step.output(0)), input)) {
    args.channels = input[input.rank - 1];
    args.pixels = args.elements / input[0] / args.channels;
  }
  return QPLAN_OK;
}

uint64_t dequantize_work(const DequantizeArgs& args) { return args.elements; }

constexpr KernelVariant kDequantizeVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(DequantizeArgs, name, isa),
    QPLAN_DEQUANTIZE_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kDequantizeReference[] = {
    QPLAN_VARIANT_ROW(DequantizeArgs, dequantize_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kDequantizeFamily =
    make_family<DequantizeArgs, bind_dequantize, never_in_place, dequantize_work>(
        kKernel_dequantize, "dequantize", kDequantizeVariants);
constexpr KernelFamily kDequantizeFamilyReference =
    make_family<DequantizeArgs, bind_dequantize, never_in_place, dequantize_work>(
        kKernel_dequantize, "dequantize", kDequantizeReference);

// ---- requantize ----

namespace {

// Without constants the parameters hold the one multiplier or scale. Under F32E the scales stand where the
// multipliers do, and there are no shifts.
enum Input : uint32_t { kInput, kMultiplier, kShift, kNumInputs, kScale = kMultiplier };

bool is_per_channel(const StepView& step) { return step.num_inputs() != 1; }

uint32_t num_requantize_inputs(const StepView& step) {
  if (!is_per_channel(step)) return 1;
  return step.step->params_as_RequantizeParams()->contract() == format::Contract_F32E ? kShift : kNumInputs;
}

bool check_multipliers(const StepCheck& check, const StepView& step, const Shape& input) {
  const auto& p = check.params_as<format::RequantizeParams>();
  const bool is_f32e = p.contract() == format::Contract_F32E;
  if (!is_per_channel(step)) {
    return is_f32e ? check.scale("scale", p.scale()) : check.multiplier("output", p.multiplier(), p.shift());
  }
  if (p.axis() >= input.rank)
    return check.fail() << "axis " << p.axis() << " of an input of rank " << input.rank;
  return check.multipliers(p.contract(), kMultiplier, input[p.axis()]);
}

bool check_requantize(const StepCheck& check, const StepView& step) {
  Shape input, output;
  if (!check.params(format::KernelParams_RequantizeParams)) return false;
  const auto& p = check.params_as<format::RequantizeParams>();
  if (!check.contract(p.contract(), kContractsAccumulator) || !check.arity(num_requantize_inputs(step), 1) ||
      !check.input(kInput, "input", kDtypesQuantized | dtype_bit(Dtype::kS32), kAnyRank, &input) ||
      !check.output(0, "output",
                    kDtypesQuantized | (p.contract() == format::Contract_TFL2 ? dtype_bit(Dtype::kS32) : 0),
                    kAnyRank, &output) ||
      !check_multipliers(check, step, input)) {
    return false;
  }
  const Dtype output_dtype = step.output(0).dtype;
  if (p.contract() == format::Contract_F32E && step.input(0).dtype != Dtype::kS32) {
    return check.fail_input(0, "input")
           << "has " << dtype_name(step.input(0).dtype) << ", expected int32 under contract F32E";
  }
  if (!check.in_dtype("input zero point", p.input_zero_point(), step.input(0).dtype) ||
      !check.in_dtype("output zero point", p.output_zero_point(), output_dtype) ||
      !check.clamp(p.clamp_min(), p.clamp_max(), output_dtype)) {
    return false;
  }
  if (!check.float_epilogue<format::RequantizeParams>(format::TableFields(&p), p.contract(),
                                                      is_per_channel(step) ? input[p.axis()] : 1)) {
    return false;
  }
  if (input != output) return check.fail() << "input and output differ in shape";
  if (input.elements() / kRequantizeChunk >= INT32_MAX) {
    return check.fail() << input.elements() << " elements are too many";
  }
  return true;
}

qplan_status bind_requantize(const StepView& step, bool check, RequantizeArgs& args, Error* error) {
  if (check) {
    const StepCheck checker(step, "requantize", error);
    if (!check_requantize(checker, step)) return checker.status();
  }
  const format::RequantizeParams& p = *step.step->params_as_RequantizeParams();
  args.input = step.input_data(0);
  args.output = step.output_data(0);
  args.count = shape_of(step.input(0)).elements();
  args.input_zero_point = p.input_zero_point();
  args.output_zero_point = p.output_zero_point();
  args.multiplier = p.multiplier();
  args.shift = p.shift();
  args.scale = p.scale();
  fill_float_epilogue<format::RequantizeParams>(format::TableFields(&p), p.contract(), args);
  args.contract = contract_of(p.contract());
  if (is_per_channel(step)) {
    const Shape input = shape_of(step.input(kInput));
    args.channels = input[p.axis()];
    args.inner = args.count / (axis_rows(input, p.axis()) * args.channels);
    if (args.contract == Contract::kF32e) {
      args.scales = static_cast<const float*>(step.input_data(kScale));
    } else {
      args.multipliers = static_cast<const int32_t*>(step.input_data(kMultiplier));
      args.shifts = static_cast<const int32_t*>(step.input_data(kShift));
    }
  }
  args.clamp_min = p.clamp_min();
  args.clamp_max = p.clamp_max();
  args.input_dtype = step.input(0).dtype;
  args.output_dtype = step.output(0).dtype;
  return QPLAN_OK;
}

// Each output is written after the input at its place was read. Where output and input differ in size, the
// work item of another worker may still have to read what this one would overwrite.
bool requantize_in_place(const StepView& step, uint32_t, uint32_t input) {
  return input == kInput && dtype_bytes(step.input(kInput).dtype) == dtype_bytes(step.output(0).dtype);
}

uint64_t requantize_work(const RequantizeArgs& args) { return args.count; }

constexpr KernelVariant kRequantizeVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(RequantizeArgs, name, isa),
    QPLAN_REQUANTIZE_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kRequantizeReference[] = {
    QPLAN_VARIANT_ROW(RequantizeArgs, requantize_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kRequantizeFamily =
    make_family<RequantizeArgs, bind_requantize, requantize_in_place, requantize_work>(
        kKernel_requantize, "requantize", kRequantizeVariants);
constexpr KernelFamily kRequantizeFamilyReference =
    make_family<RequantizeArgs, bind_requantize, requantize_in_place, requantize_work>(
        kKernel_requantize, "requantize", kRequantizeReference);

// ---- dynamic_quantize, dynamic_dequantize ----

namespace {

constexpr uint32_t kF32 = dtype_bit(Dtype::kF32), kS32 = dtype_bit(Dtype::kS32);

// One entry for each index of the first `axes` axes of the data.
bool check_dynamic_rows(const StepCheck& check, uint32_t axes, const Shape& data) {
  return check.range("rows", axes, 0, data.rank) &&
         check.range("number of rows", static_cast<int64_t>(axis_rows(data, axes)), 1, INT32_MAX);
}
bool check_dynamic_padding(const StepCheck& check, const format::DynamicQuantizeParams& p, const Shape& input,
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

bool check_dynamic_quantize(const StepCheck& check) {
  Shape input, output, scale, zero_point;
  if (!check.arity(1, 3) || !check.params(format::KernelParams_DynamicQuantizeParams) ||
      !check.input(0, "input", kF32, kAnyRank, &input) ||
      !check.output(0, "output", dtype_bit(Dtype::kS8), kAnyRank, &output) ||
      !check.output(1, "scale", kF32, kAnyRank, &scale) ||
      !check.output(2, "zero point", kS32, kAnyRank, &zero_point)) {
    return false;
  }
  const auto& p = check.params_as<format::DynamicQuantizeParams>();
  if (!check_dynamic_rows(check, p.rows(), input)) return false;
  const uint64_t rows = axis_rows(input, p.rows());
  if (scale.elements() != rows) return check.fail_output(1, "scale") << "has not " << rows << " entries";
  if (zero_point.elements() != rows)
    return check.fail_output(2, "zero point") << "has not " << rows << " entries";
  return check_dynamic_padding(check, p, input, output);
}

qplan_status bind_dynamic_quantize(const StepView& step, bool checked, DynamicQuantizeArgs& args,
                                   Error* error) {
  const StepCheck check(step, "dynamic_quantize", error);
  if (checked && !check_dynamic_quantize(check)) return check.status();
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

uint64_t dynamic_quantize_work(const DynamicQuantizeArgs& args) {
  constexpr uint64_t kPasses = 2;  // the ends, the elements
  return saturating_product(kPasses, args.rows, args.output_h, args.output_w, args.channels);
}

bool check_dynamic_dequantize(const StepCheck& check) {
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
  if (!check_dynamic_rows(check, p.rows(), input)) return false;
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

qplan_status bind_dynamic_dequantize(const StepView& step, bool checked, DynamicDequantizeArgs& args,
                                     Error* error) {
  const StepCheck check(step, "dynamic_dequantize", error);
  if (checked && !check_dynamic_dequantize(check)) return check.status();
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

uint64_t dynamic_dequantize_work(const DynamicDequantizeArgs& args) {
  return saturating_product(args.rows, args.pixels, args.channels);
}

// Element by element, of the same size.
bool dynamic_dequantize_in_place(const StepView&, uint32_t, uint32_t input) { return input == 0; }

constexpr KernelVariant kDynamicQuantizeVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(DynamicQuantizeArgs, name, isa),
    QPLAN_DYNAMIC_QUANTIZE_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kDynamicQuantizeReference[] = {
    QPLAN_VARIANT_ROW(DynamicQuantizeArgs, dynamic_quantize_ref, QPLAN_ISA_REFERENCE)};
constexpr KernelVariant kDynamicDequantizeVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(DynamicDequantizeArgs, name, isa),
    QPLAN_DYNAMIC_DEQUANTIZE_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kDynamicDequantizeReference[] = {
    QPLAN_VARIANT_ROW(DynamicDequantizeArgs, dynamic_dequantize_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kDynamicQuantizeFamily =
    make_family<DynamicQuantizeArgs, bind_dynamic_quantize, never_in_place, dynamic_quantize_work>(
        kKernel_dynamic_quantize, "dynamic_quantize", kDynamicQuantizeVariants);
constexpr KernelFamily kDynamicQuantizeFamilyReference =
    make_family<DynamicQuantizeArgs, bind_dynamic_quantize, never_in_place, dynamic_quantize_work>(
        kKernel_dynamic_quantize, "dynamic_quantize", kDynamicQuantizeReference);
constexpr KernelFamily kDynamicDequantizeFamily =
    make_family<DynamicDequantizeArgs, bind_dynamic_dequantize, dynamic_dequantize_in_place,
                dynamic_dequantize_work>(kKernel_dynamic_dequantize, "dynamic_dequantize",
                                         kDynamicDequantizeVariants);
constexpr KernelFamily kDynamicDequantizeFamilyReference =
    make_family<DynamicDequantizeArgs, bind_dynamic_dequantize, dynamic_dequantize_in_place,
                dynamic_dequantize_work>(kKernel_dynamic_dequantize, "dynamic_dequantize",
                                         kDynamicDequantizeReference);

}  // namespace qplan
