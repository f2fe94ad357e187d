#include "kernels/batch_matmul/batch_matmul.h"

#include "src/runtime/bind/family.h"
#include "src/runtime/bind/broadcast.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, const StepView& step) {
  if (!check.arity(2, 1) || !check.params(format::KernelParams_BatchMatmulParams)) return false;
  Shape a, b, output;
  if (!check.input(0, "input 1", kDtypesU8S8, kAnyRank, &a)) return false;
  const Dtype dtype = step.input(0).dtype;
  if (!check.input(1, "input 2", dtype_bit(dtype), kAnyRank, &b) ||
      !check.output(0, "output", dtype_bit(dtype), kAnyRank, &output)) {
    return false;
  }
  const format::BatchMatmulParams& p = check.params_as<format::BatchMatmulParams>();
  if (!check.contract(p.contract(), kContractsTfl2F32e)) return false;
  const bool scaled = p.contract() == format::Contract_F32E
                          ? check.scale("scale", p.scale())
                          : check.multiplier("output", p.output_multiplier(), p.output_shift());
  return scaled && are_matrices(check, a, b, output, p.transpose_b()) &&
         check.in_dtype("a_zero_point", p.a_zero_point(), dtype) &&
         check.in_dtype("b_zero_point", p.b_zero_point(), dtype) &&
         check.in_dtype("output_zero_point", p.output_zero_point(), dtype) &&
         check.clamp(p.clamp_min(), p.clamp_max(), dtype);
}

qplan_status bind(const StepView& step, bool checked, BatchMatmulArgs& args, Error* error) {
  const StepCheck check(step, "batch_matmul", error);
  if (checked && !check_step(check, step)) return check.status();
  const Shape a = shape_of(step.input(0)), b = shape_of(step.input(1)), output = shape_of(step.output(0));
  if (!make_broadcast(batches_of(a), batches_of(b), batches_of(output), &args.batches)) {
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

uint64_t work(const BatchMatmulArgs& args) {
  return saturating_product(args.batches.elements, args.m, args.n, uint64_t{args.k} + 1);
}

constexpr KernelVariant kVariants[] = {
// Each call packs weights.
#define QPLAN_VARIANT(name, isa) with_packed_weights(QPLAN_VARIANT_ROW(BatchMatmulArgs, name, isa)),
    QPLAN_BATCH_MATMUL_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {
    QPLAN_VARIANT_ROW(BatchMatmulArgs, batch_matmul_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kBatchMatmulFamily =
    make_family<BatchMatmulArgs, bind, never_in_place, work>(kKernel_batch_matmul, "batch_matmul", kVariants);
constexpr KernelFamily kBatchMatmulFamilyReference = make_family<BatchMatmulArgs, bind, never_in_place, work>(
    kKernel_batch_matmul, "batch_matmul", kReference);

}  // namespace qplan
