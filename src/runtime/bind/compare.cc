// Kernel argument binding of compare and select.
#include "kernels/compare/compare.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

static_assert(static_cast<int>(Comparison::kEqual) == format::Comparison_MAX, "the plan's numbers");

// A condition: a byte for each element. Steps see bool as uint8.
constexpr uint32_t kCondition = dtype_bit(Dtype::kU8);

// ---- compare ----

bool check_compare(const StepCheck& check, const StepView& step) {
  if (!check.arity(2, 1) || !check.params(format::KernelParams_CompareParams) ||
      !check.input(0, "input 1", kDtypesAny8To64, kAnyRank, nullptr) ||
      !check.input(1, "input 2", dtype_bit(step.input(0).dtype), kAnyRank, nullptr) ||
      !check.output(0, "output", kCondition, kAnyRank, nullptr)) {
    return false;
  }
  const auto& params = check.params_as<format::CompareParams>();
  if (params.op() <= format::Comparison_MAX) return true;
  return check.fail(QPLAN_KERNEL_MISSING)
         << "comparison " << static_cast<uint32_t>(params.op()) << ", expected at most "
         << static_cast<uint32_t>(format::Comparison_MAX);
}

qplan_status bind_compare(const StepView& step, bool checked, CompareArgs& args, Error* error) {
  const StepCheck check(step, "compare", error);
  if (checked && !check_compare(check, step)) return check.status();
  if (!make_broadcast(shape_of(step.input(0)), shape_of(step.input(1)), shape_of(step.output(0)),
                      &args.broadcast)) {
    check.fail_output(0, "output") << "is not the shape that the inputs broadcast to";
    return check.status();
  }
  args.op = static_cast<Comparison>(check.params_as<format::CompareParams>().op());
  args.dtype = step.input(0).dtype;
  args.a = step.input_data(0);
  args.b = step.input_data(1);
  args.output = static_cast<uint8_t*>(step.output_data(0));
  return QPLAN_OK;
}

uint64_t compare_work(const CompareArgs& args) { return args.broadcast.elements; }

// ---- select ----

bool check_select(const StepCheck& check, const StepView& step) {
  return check.arity(3, 1) && check.params(format::KernelParams_NoParams) &&
         check.input(0, "condition", kCondition, kAnyRank, nullptr) &&
         check.input(1, "input 1", kDtypesAny8To64, kAnyRank, nullptr) &&
         check.input(2, "input 2", dtype_bit(step.input(1).dtype), kAnyRank, nullptr) &&
         check.output(0, "output", dtype_bit(step.input(1).dtype), kAnyRank, nullptr);
}

// The extent of `shape`, aligned with the last axes of `output`, at an axis of it.
uint32_t extent_at(const Shape& shape, const Shape& output, uint32_t axis) {
  const uint32_t missing = output.rank - shape.rank;
  return axis < missing ? 1 : shape[axis - missing];
}

// Whether each extent of the output is that of an input, and every other one 1.
bool broadcasts_to(const Shape (&inputs)[3], const Shape& output) {
  for (const Shape& input : inputs) {
    if (input.rank > output.rank) return false;
  }
  for (uint32_t axis = 0; axis < output.rank; ++axis) {
    bool has_extent = output[axis] == 1;
    for (const Shape& input : inputs) {
      const uint32_t extent = extent_at(input, output, axis);
      if (extent != 1 && extent != output[axis]) return false;
      has_extent = has_extent || extent == output[axis];
    }
    if (!has_extent) return false;
  }
  return true;
}

void fill_strides(const Shape& input, const Shape& output, uint64_t* strides) {
  uint64_t stride = 1;
  for (uint32_t axis = output.rank; axis-- > 0;) {
    const uint32_t extent = extent_at(input, output, axis);
    strides[axis] = extent == 1 ? 0 : stride;
    stride *= extent;
  }
}

qplan_status bind_select(const StepView& step, bool checked, SelectArgs& args, Error* error) {
  const StepCheck check(step, "select", error);
  if (checked && !check_select(check, step)) return check.status();
  const Shape inputs[3] = {shape_of(step.input(0)), shape_of(step.input(1)), shape_of(step.input(2))};
  const Shape output = shape_of(step.output(0));
  if (!broadcasts_to(inputs, output)) {
    check.fail_output(0, "output") << "is not the shape that the inputs broadcast to";
    return check.status();
  }
  args.condition = static_cast<const uint8_t*>(step.input_data(0));
  args.a = static_cast<const uint8_t*>(step.input_data(1));
  args.b = static_cast<const uint8_t*>(step.input_data(2));
  args.output = static_cast<uint8_t*>(step.output_data(0));
  args.element_bytes = dtype_bytes(step.input(1).dtype);
  args.elements = output.elements();
  if (output.rank == 0) return QPLAN_OK;  // one element, as the defaults say
  args.rank = output.rank;
  for (uint32_t axis = 0; axis < output.rank; ++axis) args.extents[axis] = output[axis];
  fill_strides(inputs[0], output, args.condition_strides);
  fill_strides(inputs[1], output, args.a_strides);
  fill_strides(inputs[2], output, args.b_strides);
  return QPLAN_OK;
}

uint64_t select_work(const SelectArgs& args) { return args.elements; }

constexpr KernelVariant kCompareVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(CompareArgs, name, isa),
    QPLAN_COMPARE_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kSelectVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(SelectArgs, name, isa),
    QPLAN_SELECT_VARIANTS
#undef QPLAN_VARIANT
};

}  // namespace

constexpr KernelFamily kCompareFamily = make_family<CompareArgs, bind_compare, binary_in_place, compare_work>(
    kKernel_compare, "compare", kCompareVariants);
constexpr KernelFamily kCompareFamilyReference = kCompareFamily;
constexpr KernelFamily kSelectFamily = make_family<SelectArgs, bind_select, binary_in_place, select_work>(
    kKernel_select, "select", kSelectVariants);
constexpr KernelFamily kSelectFamilyReference = kSelectFamily;

}  // namespace qplan
