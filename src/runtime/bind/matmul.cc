// Kernel argument binding of fully_connected, batch_matmul and float_batch_matmul.
#include "kernels/matmul/matmul.h"

#include <stddef.h>

#include "format/plan_view.h"
#include "kernels/layout.h"
#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/layer.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {

// ---- fully_connected ----

namespace {

using layer::kBias;
using layer::kInput;
using layer::kWeights;
using layer::num_inputs;
using layer::output_dtypes;

// What `fill_fully_connected` relies on.
bool check_fully_connected_operands(const StepCheck& check, const StepView& step) {
  if (!check.params(format::KernelParams_FullyConnectedParams)) return false;
  const auto contract = static_cast<format::Contract>(
      check.params_fields().scalar<uint8_t>(format::FullyConnectedParams::VT_CONTRACT));
  if (!check.contract(contract, kContractsLayer) || !check.arity(num_inputs(contract), 1) ||
      !check.input(kInput, "input", kDtypesQuantized, kAnyRank, nullptr) ||
      !check.output(0, "output", output_dtypes(contract, step.input_dtype(kInput)), kAnyRank, nullptr)) {
    return false;
  }
  if (step.rank(step.step->inputs()->Get(kInput)) >= 1 && step.rank(step.step->outputs()->Get(0)) >= 1)
    return true;
  return check.fail() << "input and output must have an axis of channels";
}

void fill_fully_connected(const StepView& step, FullyConnectedArgs& __restrict args) {
  using Params = format::FullyConnectedParams;
  const format::TableFields fields(step.step);
  const format::TableFields p(fields.table(format::KernelStep::VT_PARAMS));
  const uint32_t* inputs = fields.vector<uint32_t>(format::KernelStep::VT_INPUTS)->data();
  const uint32_t input = inputs[kInput];
  const uint32_t output = fields.vector<uint32_t>(format::KernelStep::VT_OUTPUTS)->Get(0);
  args.input = step.address(input);
  layer::fill_constants<Params>(step, inputs, p, args);
  args.output = step.address(output);
  args.rows = static_cast<uint32_t>(rows_of(step, input));
  args.input_c = columns_of(step, input);
  args.output_c = columns_of(step, output);
  fill_words<Params::VT_INPUT_ZERO_POINT, Params::VT_CLAMP_MAX,
             offsetof(FullyConnectedArgs, input_zero_point), offsetof(FullyConnectedArgs, clamp_max)>(p,
                                                                                                      args);
  args.input_dtype = step.dtype(input);
  args.output_dtype = step.dtype(output);
  args.has_wide_bias = step.dtype(inputs[kBias]) == Dtype::kS64;
  args.weights_layout = p.scalar<uint16_t>(Params::VT_WEIGHTS_LAYOUT);
  // Kernels of 64-bit Arm alone read it.
  if constexpr (sizeof(void*) > 4) args.int16_groups = p.scalar<uint8_t>(Params::VT_INT16_GROUPS);
  args.schedule = fields.scalar<uint64_t>(format::KernelStep::VT_SCHEDULE);
}

bool check_fully_connected(const StepCheck& check, const StepView& step, const FullyConnectedArgs& a) {
  const format::Contract contract = contract_of(a.contract);
  if (a.input_dtype == Dtype::kS16 &&
      (!check.contract_of_dtype(contract, a.input_dtype) ||
       !check.range("weights layout of int16", a.weights_layout, kLayout_ohwi, kLayout_ohwi))) {
    return false;
  }
  if (!check.in_dtype("input zero point", a.input_zero_point, a.input_dtype) ||
      !check.in_dtype("weights zero point", a.weights_zero_point, Dtype::kS8) ||
      !check.layer_output(contract, a.output_dtype, a.output_zero_point, a.clamp_min, a.clamp_max)) {
    return false;
  }
  const uint64_t input_rows = rows_of(step, step.step->inputs()->Get(kInput));
  const uint64_t output_rows = rows_of(step, step.step->outputs()->Get(0));
  if (input_rows != output_rows) {
    return check.fail() << "input rows " << input_rows << " are not the output's " << output_rows;
  }
  const uint64_t work_items = input_rows * ((a.output_c + 15) / 16);
  if (work_items > INT32_MAX)
    return check.fail() << input_rows << " rows of " << a.output_c << " outputs are too many";
  const uint64_t channels = layout_channels(a.weights_layout, a.output_c);
  return check.layout(a.weights_layout, kLayout_ohwi, kLayout_o16k4, kLayout_o4k4, kLayout_o4h4,
                      kLayout_o4k16, kLayout_o16r8) &&
         check.constant(kWeights, "weights", Dtype::kS8,
                        layout_bytes(a.weights_layout, a.output_c, a.input_c)) &&
         check.zeros_after_taps(kWeights, a.weights_layout, {1, 1, a.input_c}) &&
         check.channel_constants(contract, kBias, channels, a.input_dtype == Dtype::kS16) &&
         check.float_epilogue<format::FullyConnectedParams>(check.params_fields(), contract, channels);
}

qplan_status bind_fully_connected(const StepView& step, bool check, FullyConnectedArgs& args, Error* error) {
  const StepCheck checker(step, "fully_connected", error);
  if (check && !check_fully_connected_operands(checker, step)) return checker.status();
  fill_fully_connected(step, args);
  return check && !check_fully_connected(checker, step, args) ? checker.status() : qplan_status{QPLAN_OK};
}

uint64_t fully_connected_work(const FullyConnectedArgs& args) {
  return saturating_product(args.rows, args.output_c, uint64_t{args.input_c} + 1);
}

constexpr KernelVariant kFullyConnectedVariants[] = {
#define QPLAN_VARIANT(name, isa) \
  with_knobs(QPLAN_VARIANT_ROW(FullyConnectedArgs, name, isa), kFullyConnectedKnobs),
    QPLAN_FULLY_CONNECTED_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kFullyConnectedReference[] = {
    QPLAN_VARIANT_ROW(FullyConnectedArgs, fully_connected_ref, QPLAN_ISA_REFERENCE)};
#define QPLAN_VARIANT(name, isa) \
  with_knobs(QPLAN_VARIANT_ROW(FullyConnectedArgs, name, isa), kFullyConnectedKnobs),
constexpr KernelVariant kFullyConnectedOptimized[] = {QPLAN_DOT_VARIANTS(fully_connected)
                                                          QPLAN_SCALAR_VARIANTS(fully_connected)};
#undef QPLAN_VARIANT
constexpr KernelVariant kFullyConnectedForm[] = {
    QPLAN_VARIANT_ROW(FullyConnectedArgs, fully_connected_dsp_form, QPLAN_ISA_DSP)};

}  // namespace

constexpr KernelFamily kFullyConnectedFamily =
    make_family<FullyConnectedArgs, bind_fully_connected, never_in_place, fully_connected_work>(
        kKernel_fully_connected, "fully_connected", kFullyConnectedVariants);
constexpr KernelFamily kFullyConnectedFamilyReference =
    make_family<FullyConnectedArgs, bind_fully_connected, never_in_place, fully_connected_work>(
        kKernel_fully_connected, "fully_connected", kFullyConnectedReference);
constexpr KernelFamily kFullyConnectedFamilyOptimized =
    make_family<FullyConnectedArgs, bind_fully_connected, never_in_place, fully_connected_work>(
        kKernel_fully_connected, "fully_connected", kFullyConnectedOptimized);
// Cascades have none of these as layers.
constexpr KernelFamily kFullyConnectedFamilyForm =
    make_family<FullyConnectedArgs, bind_fully_connected, never_in_place, fully_connected_work>(
        kKernel_fully_connected, "fully_connected", kFullyConnectedForm);

// ---- batch_matmul ----

namespace {

// This and float_batch_matmul have tensors whose last two axes are matrices.

// The leading axes of a tensor of matrices.
Extents batches_of(const StepView& step, uint32_t tensor) {
  return {step.extents(tensor), step.rank(tensor) - 2};
}
bool broadcast_batches(const StepView& step, Broadcast* broadcast) {
  const auto* inputs = step.inputs();
  return make_broadcast(batches_of(step, inputs->Get(0)), batches_of(step, inputs->Get(1)),
                        batches_of(step, step.outputs()->Get(0)), broadcast);
}

// Whether the matrices of a and b make those of the output, which are few enough to count.
bool are_matrices(const StepCheck& check, const Shape& a, const Shape& b, const Shape& output,
                  bool transpose_b) {
  if (a.rank < 2 || b.rank < 2 || output.rank < 2)
    return check.fail() << "a tensor of matrices has rank 2 or more";
  const uint32_t b_k = b[b.rank - (transpose_b ? 1 : 2)], b_n = b[b.rank - (transpose_b ? 2 : 1)];
  if (a[a.rank - 1] != b_k || output[output.rank - 2] != a[a.rank - 2] || output[output.rank - 1] != b_n) {
    return check.fail() << "matrices of " << a[a.rank - 2] << " x " << a[a.rank - 1] << " and " << b_k
                        << " x " << b_n << " do not make " << output[output.rank - 2] << " x "
                        << output[output.rank - 1];
  }
  return check.range("output rows", static_cast<int64_t>(output.elements() / output[output.rank - 1]), 1,
                     INT32_MAX);
}

bool check_batch_matmul(const StepCheck& check, const StepView& step) {
  if (!check.arity(2, 1) || !check.params(format::KernelParams_BatchMatmulParams)) return false;
  Shape a, b, output;
  if (!check.input(0, "input 1", kDtypesQuantized, kAnyRank, &a)) return false;
  const Dtype dtype = step.input(0).dtype;
  if (!check.input(1, "input 2", dtype_bit(dtype), kAnyRank, &b) ||
      !check.output(0, "output", dtype_bit(dtype), kAnyRank, &output)) {
    return false;
  }
  const format::BatchMatmulParams& p = check.params_as<format::BatchMatmulParams>();
  if (!check.contract(p.contract(), kContractsTfl2F32e) || !check.contract_of_dtype(p.contract(), dtype))
    return false;
  const int32_t most_shift = dtype == Dtype::kS16 ? kMaxWideShift : 30;
  const bool scaled = p.contract() == format::Contract_F32E
                          ? check.scale("scale", p.scale())
                          : check.multiplier("output", p.output_multiplier(), p.output_shift()) &&
                                check.range("output shift", p.output_shift(), -31, most_shift);
  return scaled && are_matrices(check, a, b, output, p.transpose_b()) &&
         check.in_dtype("a_zero_point", p.a_zero_point(), dtype) &&
         check.in_dtype("b_zero_point", p.b_zero_point(), dtype) &&
         check.in_dtype("output_zero_point", p.output_zero_point(), dtype) &&
         check.clamp(p.clamp_min(), p.clamp_max(), dtype);
}

qplan_status bind_batch_matmul(const StepView& step, bool checked, BatchMatmulArgs& args, Error* error) {
  const StepCheck check(step, "batch_matmul", error);
  if (checked && !check_batch_matmul(check, step)) return check.status();
  const Extents a = extents_of(step, step.inputs()->Get(0));
  const Extents output = extents_of(step, step.outputs()->Get(0));
  if (!broadcast_batches(step, &args.batches)) {
    check.fail_output(0, "output") << "does not have the leading axes that the inputs broadcast to";
    return check.status();
  }
  const format::BatchMatmulParams& p = check.params_as<format::BatchMatmulParams>();
  args.dtype = step.input(0).dtype;
  args.a = step.input_data(0);
  args.b = step.input_data(1);
  args.output = step.output_data(0);
  args.m = a[a.rank - 2];
  args.k = a[a.rank - 1];
  args.n = output[output.rank - 1];
  args.b_k_stride = p.transpose_b() ? 1 : args.n;
  args.b_n_stride = p.transpose_b() ? args.k : 1;
  args.a_zero_point = p.a_zero_point();
  args.b_zero_point = p.b_zero_point();
  args.output_zero_point = p.output_zero_point();
  args.output_multiplier = p.output_multiplier();
  args.output_shift = p.output_shift();
  args.clamp_min = p.clamp_min();
  args.clamp_max = p.clamp_max();
  args.contract = contract_of(p.contract());
  args.scale = p.scale();
  return QPLAN_OK;
}

uint64_t batch_matmul_work(const BatchMatmulArgs& args) {
  return saturating_product(args.batches.elements, args.m, args.n, uint64_t{args.k} + 1);
}

// Each call packs weights.
#define QPLAN_VARIANT(name, isa) with_packed_weights(QPLAN_VARIANT_ROW(BatchMatmulArgs, name, isa)),
constexpr KernelVariant kBatchMatmulVariants[] = {QPLAN_BATCH_MATMUL_VARIANTS};
#undef QPLAN_VARIANT
constexpr KernelVariant kBatchMatmulReference[] = {
    QPLAN_VARIANT_ROW(BatchMatmulArgs, batch_matmul_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kBatchMatmulFamily =
    make_family<BatchMatmulArgs, bind_batch_matmul, never_in_place, batch_matmul_work>(
        kKernel_batch_matmul, "batch_matmul", kBatchMatmulVariants);
constexpr KernelFamily kBatchMatmulFamilyReference =
    make_family<BatchMatmulArgs, bind_batch_matmul, never_in_place, batch_matmul_work>(
        kKernel_batch_matmul, "batch_matmul", kBatchMatmulReference);

// ---- float_batch_matmul ----

namespace {

bool check_float_batch_matmul(const StepCheck& check) {
  Shape a, b, output;
  constexpr uint32_t kF32 = dtype_bit(Dtype::kF32);
  if (!check.arity(2, 1) || !check.params(format::KernelParams_FloatBatchMatmulParams) ||
      !check.input(0, "input 1", kF32, kAnyRank, &a) || !check.input(1, "input 2", kF32, kAnyRank, &b) ||
      !check.output(0, "output", kF32, kAnyRank, &output)) {
    return false;
  }
  return are_matrices(check, a, b, output, check.params_as<format::FloatBatchMatmulParams>().transpose_b());
}

qplan_status bind_float_batch_matmul(const StepView& step, bool checked, FloatBatchMatmulArgs& args,
                                     Error* error) {
  const StepCheck check(step, "float_batch_matmul", error);
  if (checked && !check_float_batch_matmul(check)) return check.status();
  const Extents a = extents_of(step, step.inputs()->Get(0));
  const Extents output = extents_of(step, step.outputs()->Get(0));
  if (!broadcast_batches(step, &args.batches)) {
    check.fail_output(0, "output") << "does not have the leading axes that the inputs broadcast to";
    return check.status();
  }
  const bool transpose_b = check.params_as<format::FloatBatchMatmulParams>().transpose_b();
  args.a = static_cast<const float*>(step.input_data(0));
  args.b = static_cast<const float*>(step.input_data(1));
  args.output = static_cast<float*>(step.output_data(0));
  args.m = a[a.rank - 2];
  args.k = a[a.rank - 1];
  args.n = output[output.rank - 1];
  args.b_k_stride = transpose_b ? 1 : args.n;
  args.b_n_stride = transpose_b ? args.k : 1;
  return QPLAN_OK;
}

uint64_t float_batch_matmul_work(const FloatBatchMatmulArgs& args) {
  return saturating_product(args.batches.elements, args.m, args.n, uint64_t{args.k} + 1);
}

#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(FloatBatchMatmulArgs, name, isa),
constexpr KernelVariant kFloatBatchMatmulVariants[] = {QPLAN_FLOAT_BATCH_MATMUL_VARIANTS};
#undef QPLAN_VARIANT
constexpr KernelVariant kFloatBatchMatmulReference[] = {
    QPLAN_VARIANT_ROW(FloatBatchMatmulArgs, float_batch_matmul_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kFloatBatchMatmulFamily =
    make_family<FloatBatchMatmulArgs, bind_float_batch_matmul, never_in_place, float_batch_matmul_work>(
        kKernel_float_batch_matmul, "float_batch_matmul", kFloatBatchMatmulVariants);
constexpr KernelFamily kFloatBatchMatmulFamilyReference =
    make_family<FloatBatchMatmulArgs, bind_float_batch_matmul, never_in_place, float_batch_matmul_work>(
        kKernel_float_batch_matmul, "float_batch_matmul", kFloatBatchMatmulReference);

}  // namespace qplan
