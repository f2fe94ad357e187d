#include "kernels/transpose/transpose.h"

#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {
namespace {

bool check_step(const StepCheck& check, const StepView& step) {
  if (!check.arity(1, 1) || !check.params(format::KernelParams_TransposeParams)) return false;
  Shape input;
  Shape output;
  if (!check.input(0, "input", kDtypesAny8To64, kAnyRank, &input) ||
      !check.output(0, "output", dtype_bit(step.input(0).dtype), input.rank, &output)) {
    return false;
  }
  const auto* permutation = check.params_as<format::TransposeParams>().permutation();
  const uint32_t entries = permutation != nullptr ? permutation->size() : 0;
  if (entries != input.rank) {
    return check.fail() << "permutation has " << entries << " entries, the input has rank " << input.rank;
  }
  uint32_t seen = 0;
  for (uint32_t i = 0; i < input.rank; ++i) {
    const uint32_t axis = permutation->Get(i);
    if (axis >= input.rank || (seen >> axis & 1) != 0) {
      return check.fail() << "permutation entry " << i << " is " << axis << ", beyond the rank " << input.rank
                          << " or a repetition";
    }
    seen |= 1u << axis;
    if (output[i] != input[axis]) {
      return check.fail_output(0, "output")
             << "has extent " << output[i] << " along axis " << i << ", expected " << input[axis];
    }
  }
  return true;
}

qplan_status bind(const StepView& step, bool checked, TransposeArgs& args, Error* error) {
  const StepCheck check(step, "transpose", error);
  if (checked && !check_step(check, step)) return check.status();
  const Shape input = shape_of(step.input(0));
  args.input = step.input_data(0);
  args.output = step.output_data(0);
  args.element_bytes = dtype_bytes(step.input(0).dtype);
  args.elements = input.elements();
  uint64_t strides[format::kMaxRank];
  uint64_t stride = 1;
  for (uint32_t axis = input.rank; axis-- > 0;) {
    strides[axis] = stride;
    stride *= input[axis];
  }
  const auto* permutation = check.params_as<format::TransposeParams>().permutation();
  args.rank = 0;
  for (uint32_t i = 0; i < input.rank; ++i) {
    const uint32_t axis = permutation->Get(i);
    const uint64_t extent = input[axis];
    if (extent == 1) continue;
    if (args.rank > 0 && args.input_strides[args.rank - 1] == extent * strides[axis]) {
      args.extents[args.rank - 1] *= extent;
      args.input_strides[args.rank - 1] = strides[axis];
    } else {
      args.extents[args.rank] = extent;
      args.input_strides[args.rank] = strides[axis];
      ++args.rank;
    }
  }
  if (args.rank == 0) args.rank = 1;  // one element, as the defaults say
  return QPLAN_OK;
}

// Rows of images from planes of bytes.
bool accepts_rows(const StepView& step, uint32_t input) {
  const auto* permutation = step.step->params_as_TransposeParams()->permutation();
  return input == 0 && permutation != nullptr && permutation->size() == 4 &&
         dtype_bytes(step.input(0).dtype) == 1 && permutation->Get(0) == 0 && permutation->Get(1) == 2 &&
         permutation->Get(2) == 3;
}

bool reads_planes(const StepView&) { return true; }

RowWindow row_window(const void*) { return {1, 0, 1, UINT32_MAX}; }

void cut_rows(const StepView& step, const CutRows& rows, void* storage) {
  TransposeArgs& args = *static_cast<TransposeArgs*>(storage);
  const Shape shape = shape_of(step.output(0));
  const uint64_t pixels = uint64_t{rows.output.end - rows.output.begin} * shape[2];
  args.input = rows.from;
  args.output = rows.to;
  args.elements = pixels * shape[3];
  args.rank = 2;
  args.extents[0] = pixels;
  args.extents[1] = shape[3];
  args.input_strides[0] = 1;
  args.input_strides[1] = uint64_t{shape[1]} * shape[2];
}

constexpr RowCut kRowCut = {accepts_rows, row_window, cut_rows, reads_planes};

uint64_t work(const TransposeArgs& args) { return saturating_product(args.elements, args.element_bytes); }

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(TransposeArgs, name, isa),
    QPLAN_TRANSPOSE_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(TransposeArgs, transpose_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kTransposeFamily = make_family<TransposeArgs, bind, never_in_place, work>(
    kKernel_transpose, "transpose", kVariants, &kRowCut);
constexpr KernelFamily kTransposeFamilyReference = make_family<TransposeArgs, bind, never_in_place, work>(
    kKernel_transpose, "transpose", kReference, &kRowCut);

}  // namespace qplan
