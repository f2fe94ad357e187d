// Glue of resize_bilinear.
#include "kernels/spatial/spatial.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

static_assert(static_cast<int>(ResizeRounding::kFloat) == format::ResizeRule_TFL_FLOAT &&
                  static_cast<int>(ResizeRounding::kInteger) == format::ResizeRule_TFL_INTEGER,
              "the plan's numbers");

// A function of its own, whose stack is free while arguments are filled.
__attribute__((noinline)) bool check_step(const StepCheck& check, const StepView& step) {
  if (!check.arity(1, 1) || !check.params(format::KernelParams_ResizeBilinearParams)) return false;
  const format::ResizeBilinearParams& params = check.params_as<format::ResizeBilinearParams>();
  if (params.rule() > format::ResizeRule_MAX) {
    return check.fail(QPLAN_KERNEL_MISSING)
           << "rule " << static_cast<uint32_t>(params.rule()) << " is unknown to this runtime; update it";
  }
  if (params.align_corners() && params.half_pixel_centers()) {
    return check.fail() << "align_corners and half_pixel_centers exclude each other";
  }
  const uint32_t dtypes =
      params.rule() == format::ResizeRule_TFL_FLOAT ? dtype_bit(Dtype::kU8) : kDtypesQuantized;
  Shape input;
  Shape output;
  if (!check.input(0, "input", dtypes, 4, &input) ||
      !check.output(0, "output", dtype_bit(step.input(0).dtype), 4, &output)) {
    return false;
  }
  if (output[0] != input[0] || output[3] != input[3]) {
    return check.fail_output(0, "output") << "has batch " << output[0] << " and " << output[3]
                                          << " channels, expected " << input[0] << " and " << input[3];
  }
  constexpr int64_t kMax = ResizeBilinearArgs::kMaxExtent;
  return check.range("input height", input[1], 1, kMax) && check.range("input width", input[2], 1, kMax) &&
         check.range("output height", output[1], 1, kMax) &&
         check.range("output width", output[2], 1, kMax) &&
         check.range("batch * output height", int64_t{output[0]} * output[1], 1, INT32_MAX);
}

qplan_status bind(const StepView& step, bool checked, ResizeBilinearArgs& args, Error* error) {
  const StepCheck check(step, "resize_bilinear", error);
  if (checked && !check_step(check, step)) return check.status();
  const format::ResizeBilinearParams& params = check.params_as<format::ResizeBilinearParams>();
  const Extents input = extents_of(step, step.inputs()->Get(0));
  const Extents output = extents_of(step, step.outputs()->Get(0));
  args.dtype = step.input_dtype(0);
  args.rule = static_cast<ResizeRounding>(params.rule());
  args.align_corners = params.align_corners();
  args.half_pixel_centers = params.half_pixel_centers();
  args.input = step.input_data(0);
  args.output = step.output_data(0);
  args.batch = input[0];
  args.input_h = input[1];
  args.input_w = input[2];
  args.channels = input[3];
  args.output_h = output[1];
  args.output_w = output[2];
  args.first_row = 0;
  args.rows = output[1];
  return QPLAN_OK;
}

uint64_t work(const ResizeBilinearArgs& args) {
  constexpr uint64_t kNeighbours = 4;
  return saturating_product(kNeighbours, args.batch, args.output_h, args.output_w, args.channels);
}

bool accepts_rows(const StepView&, uint32_t input) { return input == 0; }

// Any row may be made of any two: the input is whole.
RowWindow row_window(const void* storage) {
  const uint32_t input_h = static_cast<const ResizeBilinearArgs*>(storage)->input_h;
  return {0, 0, input_h, input_h};
}

void cut_rows(const StepView&, const CutRows& rows, void* storage) {
  ResizeBilinearArgs& args = *static_cast<ResizeBilinearArgs*>(storage);
  args.batch = 1;
  args.input = rows.from;
  args.output = rows.to;
  args.first_row = rows.output.begin;
  args.rows = rows.output.end - rows.output.begin;
}

constexpr bool kIsFirst = true;
constexpr RowCut kRowCut = {accepts_rows, row_window, cut_rows, nullptr, kIsFirst};

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(ResizeBilinearArgs, name, isa),
    QPLAN_RESIZE_BILINEAR_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {
    QPLAN_VARIANT_ROW(ResizeBilinearArgs, resize_bilinear_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kResizeBilinearFamily = make_family<ResizeBilinearArgs, bind, never_in_place, work>(
    kKernel_resize_bilinear, "resize_bilinear", kVariants);
constexpr KernelFamily kResizeBilinearFamilyReference =
    make_family<ResizeBilinearArgs, bind, never_in_place, work>(kKernel_resize_bilinear, "resize_bilinear",
                                                                kReference);

constexpr KernelFamily kResizeBilinearLayer = as_layer(kResizeBilinearFamily, kRowCut);
constexpr KernelFamily kResizeBilinearLayerReference = as_layer(kResizeBilinearFamilyReference, kRowCut);

}  // namespace qplan
