#include "kernels/float_batch_matmul/float_batch_matmul.h"

#include "src/runtime/bind/family.h"
#include "src/runtime/bind/broadcast.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check) {
  Shape a, b, output;
  constexpr uint32_t kF32 = dtype_bit(Dtype::kF32);
  if (!check.arity(2, 1) || !check.params(format::KernelParams_FloatBatchMatmulParams) ||
      !check.input(0, "input 1", kF32, kAnyRank, &a) || !check.input(1, "input 2", kF32, kAnyRank, &b) ||
      !check.output(0, "output", kF32, kAnyRank, &output)) {
    return false;
  }
  return are_matrices(check, a, b, output, check.params_as<format::FloatBatchMatmulParams>().transpose_b());
}

qplan_status bind(const StepView& step, bool checked, FloatBatchMatmulArgs& args, Error* error) {
  const StepCheck check(step, "float_batch_matmul", error);
  if (checked && !check_step(check)) return check.status();
  const Shape a = shape_of(step.input(0)), b = shape_of(step.input(1)), output = shape_of(step.output(0));
  if (!make_broadcast(batches_of(a), batches_of(b), batches_of(output), &args.batches)) {
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

uint64_t work(const FloatBatchMatmulArgs& args) {
  return saturating_product(args.batches.elements, args.m, args.n, uint64_t{args.k} + 1);
}

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(FloatBatchMatmulArgs, name, isa),
    QPLAN_FLOAT_BATCH_MATMUL_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {
    QPLAN_VARIANT_ROW(FloatBatchMatmulArgs, float_batch_matmul_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kFloatBatchMatmulFamily =
    make_family<FloatBatchMatmulArgs, bind, never_in_place, work>(kKernel_float_batch_matmul,
                                                                  "float_batch_matmul", kVariants);
constexpr KernelFamily kFloatBatchMatmulFamilyReference =
    make_family<FloatBatchMatmulArgs, bind, never_in_place, work>(kKernel_float_batch_matmul,
                                                                  "float_batch_matmul", kReference);

}  // namespace qplan
