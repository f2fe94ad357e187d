// Kernel argument binding of float_binary and float_unary.
#include "kernels/float_elementwise/float_elementwise.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

static_assert(static_cast<int>(FloatBinary::kPower) == format::FloatBinary_MAX &&
                  static_cast<int>(FloatUnary::kElu) == format::FloatUnary_MAX,
              "the plan's numbers");

constexpr uint32_t kF32 = dtype_bit(Dtype::kF32);

bool check_binary(const StepCheck& check) {
  if (!check.arity(2, 1) || !check.params(format::KernelParams_FloatBinaryParams) ||
      !check.input(0, "input 1", kF32, kAnyRank, nullptr) ||
      !check.input(1, "input 2", kF32, kAnyRank, nullptr) ||
      !check.output(0, "output", kF32, kAnyRank, nullptr)) {
    return false;
  }
  const auto& params = check.params_as<format::FloatBinaryParams>();
  if (params.op() > format::FloatBinary_MAX) {
    return check.fail(QPLAN_KERNEL_MISSING)
           << "operation " << static_cast<uint32_t>(params.op()) << " is unknown to this runtime; update it";
  }
  return check.float_clamp(params.clamp_min(), params.clamp_max());
}

qplan_status bind_binary(const StepView& step, bool checked, FloatBinaryArgs& args, Error* error) {
  const StepCheck check(step, "float_binary", error);
  if (checked && !check_binary(check)) return check.status();
  if (!make_broadcast(shape_of(step.input(0)), shape_of(step.input(1)), shape_of(step.output(0)),
                      &args.broadcast)) {
    check.fail_output(0, "output") << "is not the shape that the inputs broadcast to";
    return check.status();
  }
  const auto& params = check.params_as<format::FloatBinaryParams>();
  args.op = static_cast<FloatBinary>(params.op());
  args.a = static_cast<const float*>(step.input_data(0));
  args.b = static_cast<const float*>(step.input_data(1));
  args.output = static_cast<float*>(step.output_data(0));
  args.clamp_min = params.clamp_min();
  args.clamp_max = params.clamp_max();
  return QPLAN_OK;
}

bool check_unary(const StepCheck& check) {
  Shape input, output;
  if (!check.arity(1, 1) || !check.params(format::KernelParams_FloatUnaryParams) ||
      !check.input(0, "input", kF32, kAnyRank, &input) ||
      !check.output(0, "output", kF32, kAnyRank, &output)) {
    return false;
  }
  if (input != output) return check.fail_output(0, "output") << "has another shape than the input";
  const auto& params = check.params_as<format::FloatUnaryParams>();
  if (params.function() > format::FloatUnary_MAX) {
    return check.fail(QPLAN_KERNEL_MISSING) << "function " << static_cast<uint32_t>(params.function())
                                            << " is unknown to this runtime; update it";
  }
  return params.function() != format::FloatUnary_CLAMP || check.float_clamp(params.p(), params.q());
}

qplan_status bind_unary(const StepView& step, bool checked, FloatUnaryArgs& args, Error* error) {
  const StepCheck check(step, "float_unary", error);
  if (checked && !check_unary(check)) return check.status();
  const auto& params = check.params_as<format::FloatUnaryParams>();
  args.function = static_cast<FloatUnary>(params.function());
  args.input = static_cast<const float*>(step.input_data(0));
  args.output = static_cast<float*>(step.output_data(0));
  args.elements = shape_of(step.input(0)).elements();
  args.p = params.p();
  args.q = params.q();
  return QPLAN_OK;
}

bool unary_in_place(const StepView&, uint32_t, uint32_t) { return true; }

uint64_t binary_work(const FloatBinaryArgs& args) { return args.broadcast.elements; }
uint64_t unary_work(const FloatUnaryArgs& args) { return args.elements; }

constexpr KernelVariant kBinaryVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(FloatBinaryArgs, name, isa),
    QPLAN_FLOAT_BINARY_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kBinaryReference[] = {
    QPLAN_VARIANT_ROW(FloatBinaryArgs, float_binary_ref, QPLAN_ISA_REFERENCE)};
constexpr KernelVariant kUnaryVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(FloatUnaryArgs, name, isa),
    QPLAN_FLOAT_UNARY_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kUnaryReference[] = {
    QPLAN_VARIANT_ROW(FloatUnaryArgs, float_unary_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kFloatBinaryFamily =
    make_family<FloatBinaryArgs, bind_binary, binary_in_place, binary_work>(kKernel_float_binary,
                                                                            "float_binary", kBinaryVariants);
constexpr KernelFamily kFloatBinaryFamilyReference =
    make_family<FloatBinaryArgs, bind_binary, binary_in_place, binary_work>(kKernel_float_binary,
                                                                            "float_binary", kBinaryReference);
constexpr KernelFamily kFloatUnaryFamily =
    make_family<FloatUnaryArgs, bind_unary, unary_in_place, unary_work>(kKernel_float_unary, "float_unary",
                                                                        kUnaryVariants);
constexpr KernelFamily kFloatUnaryFamilyReference =
    make_family<FloatUnaryArgs, bind_unary, unary_in_place, unary_work>(kKernel_float_unary, "float_unary",
                                                                        kUnaryReference);

}  // namespace qplan
