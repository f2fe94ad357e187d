#include "kernels/lut8/lut8.h"

#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, const StepView& step) {
  if (!check.arity(2, 1) || !check.params(format::KernelParams_Lut8Params)) return false;
  Shape input;
  Shape output;
  if (!check.input(0, "input", kDtypesU8S8, kAnyRank, &input) ||
      !check.output(0, "output", kDtypesU8S8, kAnyRank, &output)) {
    return false;
  }
  if (input != output) return check.fail_output(0, "output") << "has another shape than the input";
  return check.constant(1, "table", step.output(0).dtype, Lut8Args::kTableEntries);
}

qplan_status bind(const StepView& step, bool checked, Lut8Args& args, Error* error) {
  const StepCheck check(step, "lut8", error);
  if (checked && !check_step(check, step)) return check.status();
  args.input = static_cast<const uint8_t*>(step.input_data(0));
  args.table = static_cast<const uint8_t*>(step.input_data(1));
  args.output = static_cast<uint8_t*>(step.output_data(0));
  args.elements = shape_of(step.input(0)).elements();
  return QPLAN_OK;
}

bool in_place(const StepView&, uint32_t, uint32_t input) { return input == 0; }

// Rows of images, which are one axis of elements.
bool accepts_rows(const StepView& step, uint32_t input) {
  return input == 0 && shape_of(step.output(0)).rank == 4;
}

RowWindow row_window(const void*) { return {1, 0, 1, UINT32_MAX}; }

void cut_rows(const StepView& step, const CutRows& rows, void* storage) {
  Lut8Args& args = *static_cast<Lut8Args*>(storage);
  const Shape shape = shape_of(step.output(0));
  args.input = static_cast<const uint8_t*>(rows.from);
  args.output = static_cast<uint8_t*>(rows.to);
  args.elements = uint64_t{rows.output.end - rows.output.begin} * shape[2] * shape[3];
}

constexpr RowCut kRowCut = {accepts_rows, row_window, cut_rows};

uint64_t work(const Lut8Args& args) { return args.elements; }

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(Lut8Args, name, isa),
    QPLAN_LUT8_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(Lut8Args, lut8_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kLut8Family =
    make_family<Lut8Args, bind, in_place, work>(kKernel_lut8, "lut8", kVariants, &kRowCut);
constexpr KernelFamily kLut8FamilyReference =
    make_family<Lut8Args, bind, in_place, work>(kKernel_lut8, "lut8", kReference, &kRowCut);

}  // namespace qplan
