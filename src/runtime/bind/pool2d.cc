// Glue of avg_pool2d and max_pool2d: the same parameters, checked alike.
#include <float.h>
#include <stddef.h>

#include "format/plan_view.h"
#include "kernels/spatial/spatial.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, const StepView& step) {
  if (!check.arity(1, 1) || !check.params(format::KernelParams_Pool2dParams)) return false;
  Shape input;
  Shape output;
  if (!check.input(0, "input", kDtypesQuantized, 4, &input)) return false;
  const Dtype dtype = step.input_dtype(0);
  if (!check.output(0, "output", dtype_bit(dtype), 4, &output)) return false;
  if (output[0] != input[0] || output[3] != input[3]) {
    return check.fail_output(0, "output") << "has batch " << output[0] << " and " << output[3]
                                          << " channels, expected " << input[0] << " and " << input[3];
  }
  const format::Pool2dParams& params = check.params_as<format::Pool2dParams>();
  const WindowAxis height = {"height",          input[1], output[1],       params.pool_h(),
                             params.stride_h(), 1,        params.pad_top()};
  const WindowAxis width = {"width",           input[2], output[2],        params.pool_w(),
                            params.stride_w(), 1,        params.pad_left()};
  return check.window_touches_input(height) && check.window_touches_input(width) &&
         check.range("batch * output height", int64_t{output[0]} * output[1], 1, INT32_MAX) &&
         check.clamp(params.clamp_min(), params.clamp_max(), dtype);
}

// Checks of avg_pool2d alone.
bool check_average(const StepCheck& check, const format::Pool2dParams& params, Dtype dtype) {
  if (!check.contract(params.contract(), kContractsTfl2F32e) ||
      !check.contract_of_dtype(params.contract(), dtype)) {
    return false;
  }
  if (params.contract() != format::Contract_F32E) return true;
  if (!check.scale("input_scale", params.input_scale()) ||
      !check.scale("output_scale", params.output_scale()) ||
      !check.in_dtype("input_zero_point", params.input_zero_point(), dtype) ||
      !check.in_dtype("output_zero_point", params.output_zero_point(), dtype)) {
    return false;
  }
  // The largest of the windows' factors.
  if (params.input_scale() / params.output_scale() <= FLT_MAX) return true;
  return check.fail() << "input_scale / output_scale is not finite";
}

void fill(const StepView& step, const format::TableFields& params, Pool2dArgs& args) {
  using Params = format::Pool2dParams;
  const int64_t *from = step.input_extents(0), *to = step.output_extents(0);
  args.dtype = step.input_dtype(0);
  args.input = step.input_data(0);
  args.output = step.output_data(0);
  args.batch = static_cast<uint32_t>(from[0]);
  args.input_h = static_cast<uint32_t>(from[1]);
  args.input_w = static_cast<uint32_t>(from[2]);
  args.channels = static_cast<uint32_t>(from[3]);
  args.output_h = static_cast<uint32_t>(to[1]);
  args.output_w = static_cast<uint32_t>(to[2]);
  fill_words<Params::VT_POOL_H, Params::VT_CLAMP_MAX, offsetof(Pool2dArgs, pool_h),
             offsetof(Pool2dArgs, clamp_max)>(params, args);
}

qplan_status bind_avg(const StepView& step, bool checked, Pool2dArgs& args, Error* error) {
  const StepCheck check(step, "avg_pool2d", error);
  if (checked) {
    if (!check_step(check, step)) return check.status();
    const auto& params = check.params_as<format::Pool2dParams>();
    if (!check_average(check, params, step.input_dtype(0))) return check.status();
  }
  using Params = format::Pool2dParams;
  const format::TableFields params(step.step->params());
  fill(step, params, args);
  args.contract = static_cast<Contract>(params.scalar<uint8_t>(Params::VT_CONTRACT));
  args.input_scale = params.scalar<float>(Params::VT_INPUT_SCALE);
  args.output_scale = params.scalar<float>(Params::VT_OUTPUT_SCALE);
  args.input_zero_point = params.scalar<int32_t>(Params::VT_INPUT_ZERO_POINT);
  args.output_zero_point = params.scalar<int32_t>(Params::VT_OUTPUT_ZERO_POINT);
  args.count_include_pad = params.scalar<uint8_t>(Params::VT_COUNT_INCLUDE_PAD) != 0;
  return QPLAN_OK;
}

qplan_status bind_max(const StepView& step, bool checked, Pool2dArgs& args, Error* error) {
  const StepCheck check(step, "max_pool2d", error);
  if (checked && !check_step(check, step)) return check.status();
  fill(step, format::TableFields(step.step->params()), args);
  return QPLAN_OK;
}

uint64_t work(const Pool2dArgs& args) {
  // A window is looked at as far as there are inputs.
  const uint32_t window_h = args.pool_h < args.input_h ? args.pool_h : args.input_h;
  const uint32_t window_w = args.pool_w < args.input_w ? args.pool_w : args.input_w;
  return saturating_product(args.batch, args.output_h, args.output_w, args.channels, window_h, window_w);
}

// For cascades, as convolutions are cut. bind has checked that all windows touch the input.
bool accepts_rows(const StepView& step, uint32_t input) {
  return input == 0 && step.input_dtype(0) != Dtype::kS16;  // rows are cut in elements of a byte
}

RowWindow row_window(const void* storage) {
  const Pool2dArgs& args = *static_cast<const Pool2dArgs*>(storage);
  return {args.stride_h, args.pad_top, args.pool_h, args.input_h};
}

void cut_rows(const StepView&, const CutRows& rows, void* storage) {
  Pool2dArgs& args = *static_cast<Pool2dArgs*>(storage);
  const Rows input = rows.window.reads(rows.output);
  // Not negative: where the rows do not begin with the image, the first window does not reach beyond them.
  args.pad_top = static_cast<uint32_t>(int64_t{input.begin} + rows.window.pad_top -
                                       int64_t{rows.output.begin} * args.stride_h);
  args.batch = 1;
  args.input = rows.from;
  args.input_h = input.end - input.begin;
  args.output = rows.to;
  args.output_h = rows.output.end - rows.output.begin;
}

constexpr RowCut kRowCut = {accepts_rows, row_window, cut_rows};

#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(Pool2dArgs, name, isa),
constexpr KernelVariant kAvgVariants[] = {QPLAN_AVG_POOL2D_VARIANTS};
constexpr KernelVariant kMaxVariants[] = {QPLAN_MAX_POOL2D_VARIANTS};
#undef QPLAN_VARIANT
constexpr KernelVariant kAvgReference[] = {
    QPLAN_VARIANT_ROW(Pool2dArgs, avg_pool2d_ref, QPLAN_ISA_REFERENCE)};
constexpr KernelVariant kMaxReference[] = {
    QPLAN_VARIANT_ROW(Pool2dArgs, max_pool2d_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kAvgPool2dFamily =
    make_family<Pool2dArgs, bind_avg, never_in_place, work>(kKernel_avg_pool2d, "avg_pool2d", kAvgVariants);
constexpr KernelFamily kAvgPool2dFamilyReference =
    make_family<Pool2dArgs, bind_avg, never_in_place, work>(kKernel_avg_pool2d, "avg_pool2d", kAvgReference);
constexpr KernelFamily kMaxPool2dFamily =
    make_family<Pool2dArgs, bind_max, never_in_place, work>(kKernel_max_pool2d, "max_pool2d", kMaxVariants);
constexpr KernelFamily kMaxPool2dFamilyReference =
    make_family<Pool2dArgs, bind_max, never_in_place, work>(kKernel_max_pool2d, "max_pool2d", kMaxReference);

constexpr KernelFamily kAvgPool2dLayer = as_layer(kAvgPool2dFamily, kRowCut);
constexpr KernelFamily kAvgPool2dLayerReference = as_layer(kAvgPool2dFamilyReference, kRowCut);
constexpr KernelFamily kMaxPool2dLayer = as_layer(kMaxPool2dFamily, kRowCut);
constexpr KernelFamily kMaxPool2dLayerReference = as_layer(kMaxPool2dFamilyReference, kRowCut);

}  // namespace qplan
