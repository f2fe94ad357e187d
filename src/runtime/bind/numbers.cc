// Kernel argument binding of int_binary, int_reduce, cast and gather_nd.
#include "kernels/numbers/numbers.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

static_assert(static_cast<int>(IntBinary::kDiv) == format::IntBinary_MAX &&
                  static_cast<int>(IntReduction::kProduct) == format::FloatReduction_MAX,
              "the plan's numbers");

// ---- int_binary ----

constexpr uint32_t kS32 = dtype_bit(Dtype::kS32);
constexpr uint32_t kS32S64 = kS32 | dtype_bit(Dtype::kS64);

bool check_binary(const StepCheck& check, const StepView& step) {
  if (!check.arity(2, 1) || !check.params(format::KernelParams_IntBinaryParams) ||
      !check.input(0, "input 1", kS32S64, kAnyRank, nullptr)) {
    return false;
  }
  const uint32_t dtype = dtype_bit(step.input(0).dtype);
  if (!check.input(1, "input 2", dtype, kAnyRank, nullptr) ||
      !check.output(0, "output", dtype, kAnyRank, nullptr)) {
    return false;
  }
  const auto& params = check.params_as<format::IntBinaryParams>();
  if (params.op() <= format::IntBinary_MAX) return true;
  return check.fail(QPLAN_KERNEL_MISSING)
         << "operation " << static_cast<uint32_t>(params.op()) << ", expected at most "
         << static_cast<uint32_t>(format::IntBinary_MAX);
}

qplan_status bind_binary(const StepView& step, bool checked, IntBinaryArgs& args, Error* error) {
  const StepCheck check(step, "int_binary", error);
  if (checked && !check_binary(check, step)) return check.status();
  if (!make_broadcast(step, &args.broadcast)) {
    check.fail_output(0, "output") << "is not the shape that the inputs broadcast to";
    return check.status();
  }
  args.op = static_cast<IntBinary>(check.params_as<format::IntBinaryParams>().op());
  args.dtype = step.input(0).dtype;
  args.a = step.input_data(0);
  args.b = step.input_data(1);
  args.output = step.output_data(0);
  return QPLAN_OK;
}

uint64_t binary_work(const IntBinaryArgs& args) { return args.broadcast.elements; }

// ---- int_reduce ----

qplan_status bind_reduce(const StepView& step, bool checked, IntReduceArgs& args, Error* error) {
  const StepCheck check(step, "int_reduce", error);
  if (checked && !check_reduced(check, step, kS32S64)) return check.status();
  const auto& params = check.params_as<format::FloatReduceParams>();
  args.reduction = static_cast<IntReduction>(params.reduction());
  args.dtype = step.input(0).dtype;
  args.input = step.input_data(0);
  args.output = step.output_data(0);
  split_axes(shape_of(step.input(0)), params.axes(), args);
  return QPLAN_OK;
}

uint64_t reduce_work(const IntReduceArgs& args) {
  return saturating_product(args.num_outputs, args.num_reduced);
}

// ---- cast ----

bool check_cast(const StepCheck& check) {
  Shape input, output;
  if (!check.arity(1, 1) || !check.params(format::KernelParams_NoParams) ||
      !check.input(0, "input", kDtypesAny8To64, kAnyRank, &input) ||
      !check.output(0, "output", kDtypesAny8To64, kAnyRank, &output)) {
    return false;
  }
  return input == output || check.fail_output(0, "output") << "has another shape than the input";
}

qplan_status bind_cast(const StepView& step, bool checked, CastArgs& args, Error* error) {
  const StepCheck check(step, "cast", error);
  if (checked && !check_cast(check)) return check.status();
  args.input_dtype = step.input(0).dtype;
  args.output_dtype = step.output(0).dtype;
  args.input = step.input_data(0);
  args.output = step.output_data(0);
  args.elements = shape_of(step.input(0)).elements();
  return QPLAN_OK;
}

uint64_t cast_work(const CastArgs& args) { return args.elements; }

// ---- gather_nd ----

// The input is [outer..., axes of the indices..., block...]; the output [outer..., rows of indices...,
// block...].
bool check_gather(const StepCheck& check, const StepView& step) {
  Shape input, indices, output;
  if (!check.arity(2, 1) || !check.params(format::KernelParams_GatherNdParams) ||
      !check.input(0, "input", kDtypesAny8To64, kAnyRank, &input) ||
      !check.input(1, "indices", kS32, kAnyRank, &indices)) {
    return false;
  }
  if (!check.output(0, "output", dtype_bit(step.input(0).dtype), kAnyRank, &output)) return false;
  const auto& p = check.params_as<format::GatherNdParams>();
  if (p.rank() == 0 || p.axis() > input.rank || p.rank() > input.rank - p.axis()) {
    return check.fail() << "axes " << p.axis() << " and " << p.rank() << " after it of an input of rank "
                        << input.rank;
  }
  if (indices.elements() % p.rank() != 0)
    return check.fail() << indices.elements() << " indices are no rows of " << p.rank();
  uint64_t elements = indices.elements() / p.rank();
  for (uint32_t axis = 0; axis < input.rank; ++axis) {
    if (axis < p.axis() || axis >= p.axis() + p.rank()) elements *= input[axis];
    if (elements >= uint64_t{1} << 48) break;
  }
  if (elements == output.elements()) return true;
  return check.fail_output(0, "output") << "has " << output.elements() << " elements, expected " << elements;
}

qplan_status bind_gather(const StepView& step, bool checked, GatherNdArgs& args, Error* error) {
  const StepCheck check(step, "gather_nd", error);
  if (checked && !check_gather(check, step)) return check.status();
  const auto& p = check.params_as<format::GatherNdParams>();
  const Shape input = shape_of(step.input(0)), indices = shape_of(step.input(1));
  args.input = static_cast<const uint8_t*>(step.input_data(0));
  args.indices = static_cast<const int32_t*>(step.input_data(1));
  args.output = static_cast<uint8_t*>(step.output_data(0));
  args.rank = p.rank();
  args.rows = indices.elements() / p.rank();
  args.block_bytes = dtype_bytes(step.input(0).dtype);
  uint64_t places = 1;
  for (uint32_t axis = 0; axis < input.rank; ++axis) {
    if (axis < p.axis()) {
      args.outer *= input[axis];
    } else if (axis < p.axis() + p.rank()) {
      args.extents[axis - p.axis()] = input[axis];
      places *= input[axis];
    } else {
      args.block_bytes *= input[axis];
    }
  }
  args.outer_bytes = places * args.block_bytes;
  return QPLAN_OK;
}

uint64_t gather_work(const GatherNdArgs& args) {
  return saturating_product(args.outer, args.rows, args.block_bytes);
}

constexpr KernelVariant kBinaryVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(IntBinaryArgs, name, isa),
    QPLAN_INT_BINARY_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kIntReduceVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(IntReduceArgs, name, isa),
    QPLAN_INT_REDUCE_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kCastVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(CastArgs, name, isa),
    QPLAN_CAST_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kGatherVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(GatherNdArgs, name, isa),
    QPLAN_GATHER_ND_VARIANTS
#undef QPLAN_VARIANT
};

}  // namespace

constexpr KernelFamily kIntBinaryFamily =
    make_family<IntBinaryArgs, bind_binary, binary_in_place, binary_work>(kKernel_int_binary, "int_binary",
                                                                          kBinaryVariants);
constexpr KernelFamily kIntBinaryFamilyReference = kIntBinaryFamily;
constexpr KernelFamily kIntReduceFamily =
    make_family<IntReduceArgs, bind_reduce, never_in_place, reduce_work>(kKernel_int_reduce, "int_reduce",
                                                                         kIntReduceVariants);
constexpr KernelFamily kIntReduceFamilyReference = kIntReduceFamily;
constexpr KernelFamily kCastFamily =
    make_family<CastArgs, bind_cast, never_in_place, cast_work>(kKernel_cast, "cast", kCastVariants);
constexpr KernelFamily kCastFamilyReference = kCastFamily;
constexpr KernelFamily kGatherNdFamily = make_family<GatherNdArgs, bind_gather, never_in_place, gather_work>(
    kKernel_gather_nd, "gather_nd", kGatherVariants);
constexpr KernelFamily kGatherNdFamilyReference = kGatherNdFamily;

}  // namespace qplan
