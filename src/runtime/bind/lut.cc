// Kernel argument binding of lut8 and lut16, look-ups in tables of constants.
#include "kernels/elementwise/elementwise.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {

// ---- lut8 ----

namespace {

bool check_lut8(const StepCheck& check, const StepView& step) {
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

qplan_status bind_lut8(const StepView& step, bool checked, Lut8Args& args, Error* error) {
  const StepCheck check(step, "lut8", error);
  if (checked && !check_lut8(check, step)) return check.status();
  args.input = static_cast<const uint8_t*>(step.input_data(0));
  args.table = static_cast<const uint8_t*>(step.input_data(1));
  args.output = static_cast<uint8_t*>(step.output_data(0));
  args.elements = shape_of(step.input(0)).elements();
  return QPLAN_OK;
}

bool lut8_in_place(const StepView&, uint32_t, uint32_t input) { return input == 0; }

// Rows of images, which are one axis of elements.
bool accepts_lut8_rows(const StepView& step, uint32_t input) {
  return input == 0 && shape_of(step.output(0)).rank == 4;
}

RowWindow lut8_row_window(const void*) { return {1, 0, 1, UINT32_MAX}; }

void cut_lut8_rows(const StepView& step, const CutRows& rows, void* storage) {
  Lut8Args& args = *static_cast<Lut8Args*>(storage);
  const Shape shape = shape_of(step.output(0));
  args.input = static_cast<const uint8_t*>(rows.from);
  args.output = static_cast<uint8_t*>(rows.to);
  args.elements = uint64_t{rows.output.end - rows.output.begin} * shape[2] * shape[3];
}

constexpr RowCut kLut8RowCut = {accepts_lut8_rows, lut8_row_window, cut_lut8_rows};

uint64_t lut8_work(const Lut8Args& args) { return args.elements; }

#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(Lut8Args, name, isa),
constexpr KernelVariant kLut8Variants[] = {QPLAN_LUT8_VARIANTS};
#undef QPLAN_VARIANT
constexpr KernelVariant kLut8Reference[] = {QPLAN_VARIANT_ROW(Lut8Args, lut8_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kLut8Family = make_family<Lut8Args, bind_lut8, lut8_in_place, lut8_work>(
    kKernel_lut8, "lut8", kLut8Variants, &kLut8RowCut);
constexpr KernelFamily kLut8FamilyReference = make_family<Lut8Args, bind_lut8, lut8_in_place, lut8_work>(
    kKernel_lut8, "lut8", kLut8Reference, &kLut8RowCut);

// ---- lut16 ----

namespace {

bool check_lut16(const StepCheck& check) {
  if (!check.arity(2, 1) || !check.params(format::KernelParams_Lut16Params)) return false;
  Shape input;
  Shape output;
  if (!check.input(0, "input", dtype_bit(Dtype::kS16), kAnyRank, &input) ||
      !check.output(0, "output", dtype_bit(Dtype::kS16), kAnyRank, &output)) {
    return false;
  }
  if (input != output) return check.fail_output(0, "output") << "has another shape than the input";
  const format::Lut16Params& p = check.params_as<format::Lut16Params>();
  return check.constant(1, "table", Dtype::kS32, Lut16Args::kTableEntries) &&
         check.range("multiplier", p.multiplier(), 0, INT16_MAX) && check.range("shift", p.shift(), 0, 30);
}

qplan_status bind_lut16(const StepView& step, bool checked, Lut16Args& args, Error* error) {
  const StepCheck check(step, "lut16", error);
  if (checked && !check_lut16(check)) return check.status();
  const format::Lut16Params& p = check.params_as<format::Lut16Params>();
  args.input = static_cast<const int16_t*>(step.input_data(0));
  args.table = static_cast<const int32_t*>(step.input_data(1));
  args.output = static_cast<int16_t*>(step.output_data(0));
  args.elements = shape_of(step.input(0)).elements();
  args.is_tanh = p.is_tanh();
  args.multiplier = p.multiplier();
  args.shift = p.shift();
  return QPLAN_OK;
}

bool lut16_in_place(const StepView&, uint32_t, uint32_t input) { return input == 0; }

uint64_t lut16_work(const Lut16Args& args) { return args.elements; }

#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(Lut16Args, name, isa),
constexpr KernelVariant kLut16Variants[] = {QPLAN_LUT16_VARIANTS};
#undef QPLAN_VARIANT

}  // namespace

constexpr KernelFamily kLut16Family =
    make_family<Lut16Args, bind_lut16, lut16_in_place, lut16_work>(kKernel_lut16, "lut16", kLut16Variants);
constexpr KernelFamily kLut16FamilyReference = kLut16Family;

}  // namespace qplan
