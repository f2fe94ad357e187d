#include "kernels/lut16/lut16.h"

#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check) {
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

qplan_status bind(const StepView& step, bool checked, Lut16Args& args, Error* error) {
  const StepCheck check(step, "lut16", error);
  if (checked && !check_step(check)) return check.status();
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

bool in_place(const StepView&, uint32_t, uint32_t input) { return input == 0; }

uint64_t work(const Lut16Args& args) { return args.elements; }

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(Lut16Args, name, isa),
    QPLAN_LUT16_VARIANTS
#undef QPLAN_VARIANT
};

}  // namespace

constexpr KernelFamily kLut16Family =
    make_family<Lut16Args, bind, in_place, work>(kKernel_lut16, "lut16", kVariants);
constexpr KernelFamily kLut16FamilyReference = kLut16Family;

}  // namespace qplan
