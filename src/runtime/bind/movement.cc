// Kernel argument binding of copy, concat, split, pad and transpose, which move elements; lookup.cc has
// gather.
#include "kernels/movement/movement.h"

#include "src/runtime/bind/broadcast.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {

// ---- copy ----

namespace {

bool check_copy(const StepCheck& check, const StepView& step) {
  if (!check.arity(1, 1) || !check.params(format::KernelParams_NoParams)) return false;
  if (!check.input(0, "input", kDtypesAny8To64, kAnyRank, nullptr) ||
      !check.output(0, "output", dtype_bit(step.input_dtype(0)), kAnyRank, nullptr)) {
    return false;
  }
  const uint64_t input_bytes = step.size_bytes(step.step->inputs()->Get(0));
  const uint64_t output_bytes = step.size_bytes(step.step->outputs()->Get(0));
  if (input_bytes == output_bytes) return true;
  return check.fail_output(0, "output") << "has " << output_bytes << " bytes, the input " << input_bytes;
}

qplan_status bind_copy(const StepView& step, bool checked, CopyArgs& args, Error* error) {
  const StepCheck check(step, "copy", error);
  if (checked && !check_copy(check, step)) return check.status();
  args.input = step.input_data(0);
  args.output = step.output_data(0);
  args.bytes = step.size_bytes(step.step->inputs()->Get(0));
  return QPLAN_OK;
}

bool copy_in_place(const StepView&, uint32_t, uint32_t) { return true; }

uint64_t copy_work(const CopyArgs& args) { return args.bytes; }

#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(CopyArgs, name, isa),
constexpr KernelVariant kCopyVariants[] = {QPLAN_COPY_VARIANTS};
#undef QPLAN_VARIANT

}  // namespace

constexpr KernelFamily kCopyFamily =
    make_family<CopyArgs, bind_copy, copy_in_place, copy_work>(kKernel_copy, "copy", kCopyVariants);
constexpr KernelFamily kCopyFamilyReference = kCopyFamily;

// ---- concat ----

namespace {

bool check_concat(const StepCheck& check, const StepView& step) {
  const uint32_t num_inputs = step.num_inputs();
  if (!check.range("number of inputs", num_inputs, 1, ConcatArgs::kMaxInputs) ||
      !check.arity(num_inputs, 1) || !check.params(format::KernelParams_ConcatParams)) {
    return false;
  }
  Shape output;
  if (!check.output(0, "output", kDtypesAny8To64, kAnyRank, &output)) return false;
  const uint32_t axis = check.params_as<format::ConcatParams>().axis();
  if (!check.range("axis", axis, 0, int64_t{output.rank} - 1)) return false;
  uint64_t extent = 0;
  for (uint32_t i = 0; i < num_inputs; ++i) {
    Shape input;
    if (!check.input(i, "input", dtype_bit(step.output(0).dtype), output.rank, &input)) return false;
    if (!equal_but_for_axis(input, output, axis)) {
      return check.fail_input(i, "input") << "differs from the output in another axis than " << axis;
    }
    extent += input[axis];
  }
  if (extent != output[axis]) {
    return check.fail_output(0, "output")
           << "has extent " << output[axis] << " along axis " << axis << ", the inputs together " << extent;
  }
  return check.range("number of rows", static_cast<int64_t>(axis_rows(output, axis)), 1, INT32_MAX);
}

qplan_status bind_concat(const StepView& step, bool checked, ConcatArgs& args, Error* error) {
  const StepCheck check(step, "concat", error);
  if (checked && !check_concat(check, step)) return check.status();
  const uint32_t axis = check.params_as<format::ConcatParams>().axis();
  const uint64_t rows = axis_rows(shape_of(step.output(0)), axis);
  args.output = static_cast<uint8_t*>(step.output_data(0));
  args.output_row_bytes = step.output(0).size_bytes / rows;
  args.rows = static_cast<uint32_t>(rows);
  args.num_inputs = step.num_inputs();
  for (uint32_t i = 0; i < args.num_inputs; ++i) {
    args.inputs[i] = static_cast<const uint8_t*>(step.input_data(i));
    args.row_bytes[i] = step.input(i).size_bytes / rows;
  }
  return QPLAN_OK;
}

// With one row, an input is one range of the output.
bool concat_part(const StepView& step, uint32_t, uint32_t input, uint64_t* offset) {
  if (axis_rows(shape_of(step.output(0)), step.step->params_as_ConcatParams()->axis()) != 1) return false;
  *offset = 0;
  for (uint32_t i = 0; i < input; ++i) *offset += step.input(i).size_bytes;
  return true;
}

uint64_t concat_work(const ConcatArgs& args) { return saturating_product(args.rows, args.output_row_bytes); }

#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(ConcatArgs, name, isa),
constexpr KernelVariant kConcatVariants[] = {QPLAN_CONCAT_VARIANTS};
#undef QPLAN_VARIANT

}  // namespace

constexpr KernelFamily kConcatFamily = make_family<ConcatArgs, bind_concat, never_in_place, concat_work>(
    kKernel_concat, "concat", kConcatVariants, nullptr, concat_part);
constexpr KernelFamily kConcatFamilyReference = kConcatFamily;

// ---- split ----

namespace {

bool check_split(const StepCheck& check, const StepView& step) {
  const uint32_t num_outputs = step.num_outputs();
  if (!check.range("number of outputs", num_outputs, 1, SplitArgs::kMaxOutputs) ||
      !check.arity(1, num_outputs) || !check.params(format::KernelParams_SplitParams)) {
    return false;
  }
  Shape input;
  if (!check.input(0, "input", kDtypesAny8To64, kAnyRank, &input)) return false;
  const uint32_t axis = check.params_as<format::SplitParams>().axis();
  if (!check.range("axis", axis, 0, int64_t{input.rank} - 1)) return false;
  uint64_t extent = 0;
  for (uint32_t i = 0; i < num_outputs; ++i) {
    Shape output;
    if (!check.output(i, "output", dtype_bit(step.input(0).dtype), input.rank, &output)) return false;
    if (!equal_but_for_axis(output, input, axis)) {
      return check.fail_output(i, "output") << "differs from the input in another axis than " << axis;
    }
    extent += output[axis];
  }
  if (extent != input[axis]) {
    return check.fail_input(0, "input")
           << "has extent " << input[axis] << " along axis " << axis << ", the outputs together " << extent;
  }
  return check.range("number of rows", static_cast<int64_t>(axis_rows(input, axis)), 1, INT32_MAX);
}

qplan_status bind_split(const StepView& step, bool checked, SplitArgs& args, Error* error) {
  const StepCheck check(step, "split", error);
  if (checked && !check_split(check, step)) return check.status();
  const uint32_t axis = check.params_as<format::SplitParams>().axis();
  const uint64_t rows = axis_rows(shape_of(step.input(0)), axis);
  args.input = static_cast<const uint8_t*>(step.input_data(0));
  args.input_row_bytes = step.input(0).size_bytes / rows;
  args.rows = static_cast<uint32_t>(rows);
  args.num_outputs = step.num_outputs();
  for (uint32_t i = 0; i < args.num_outputs; ++i) {
    args.outputs[i] = static_cast<uint8_t*>(step.output_data(i));
    args.row_bytes[i] = step.output(i).size_bytes / rows;
  }
  return QPLAN_OK;
}

// With one row, an output is one range of the input.
bool split_part(const StepView& step, uint32_t output, uint32_t, uint64_t* offset) {
  if (axis_rows(shape_of(step.input(0)), step.step->params_as_SplitParams()->axis()) != 1) return false;
  *offset = 0;
  for (uint32_t i = 0; i < output; ++i) *offset += step.output(i).size_bytes;
  return true;
}

uint64_t split_work(const SplitArgs& args) { return saturating_product(args.rows, args.input_row_bytes); }

#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(SplitArgs, name, isa),
constexpr KernelVariant kSplitVariants[] = {QPLAN_SPLIT_VARIANTS};
#undef QPLAN_VARIANT

}  // namespace

constexpr KernelFamily kSplitFamily = make_family<SplitArgs, bind_split, never_in_place, split_work>(
    kKernel_split, "split", kSplitVariants, nullptr, split_part);
constexpr KernelFamily kSplitFamilyReference = kSplitFamily;

// ---- pad ----

namespace {

bool check_pad(const StepCheck& check, const StepView& step) {
  if (!check.arity(1, 1) || !check.params(format::KernelParams_PadParams)) return false;
  Shape input;
  Shape output;
  if (!check.input(0, "input", kDtypesAny8To64, kAnyRank, &input)) return false;
  const Dtype dtype = step.input(0).dtype;
  if (!check.output(0, "output", dtype_bit(dtype), input.rank, &output)) return false;
  const format::PadParams& params = check.params_as<format::PadParams>();
  const uint32_t num_before = params.before() != nullptr ? params.before()->size() : 0;
  if (num_before != input.rank) {
    return check.fail() << "before has " << num_before << " entries, the input has rank " << input.rank;
  }
  for (uint32_t axis = 0; axis < input.rank; ++axis) {
    const uint64_t inside_end = uint64_t{params.before()->Get(axis)} + input[axis];
    if (inside_end > output[axis]) {
      return check.fail_output(0, "output") << "has extent " << output[axis] << " along axis " << axis
                                            << ", less than before + input, " << inside_end;
    }
  }
  // A float's value is given by its bits.
  const bool narrow = dtype_bytes(dtype) < 4;
  return !narrow || check.in_dtype("value", params.value(), dtype);
}

void fill_pad_axes(const Shape& input, const Shape& output, const format::PadParams& params, PadArgs& args) {
  args.rank = 0;
  for (uint32_t axis = 0; axis < input.rank; ++axis) {
    const uint32_t before = params.before()->Get(axis);
    if (args.rank > 0 && input[axis] == output[axis]) {
      const uint32_t last = args.rank - 1;
      args.input_extents[last] *= input[axis];
      args.output_extents[last] *= output[axis];
      args.before[last] *= input[axis];
    } else {
      args.input_extents[args.rank] = input[axis];
      args.output_extents[args.rank] = output[axis];
      args.before[args.rank] = before;
      ++args.rank;
    }
  }
  if (args.rank == 0) args.rank = 1;  // a scalar: one element, as the defaults say
}

qplan_status bind_pad(const StepView& step, bool checked, PadArgs& args, Error* error) {
  const StepCheck check(step, "pad", error);
  if (checked && !check_pad(check, step)) return check.status();
  const format::PadParams& params = check.params_as<format::PadParams>();
  const Dtype dtype = step.input(0).dtype;
  args.input = static_cast<const uint8_t*>(step.input_data(0));
  args.output = static_cast<uint8_t*>(step.output_data(0));
  args.element_bytes = dtype_bytes(dtype);
  args.value = static_cast<uint64_t>(int64_t{params.value()});
  fill_pad_axes(shape_of(step.input(0)), shape_of(step.output(0)), params, args);
  uint64_t rows = 1;
  for (uint32_t axis = 0; axis + 1 < args.rank; ++axis) rows *= args.output_extents[axis];
  if (checked && !check.range("number of rows", static_cast<int64_t>(rows), 1, INT32_MAX))
    return check.status();
  args.rows = static_cast<uint32_t>(rows);
  return QPLAN_OK;
}

uint64_t pad_work(const PadArgs& args) {
  return saturating_product(args.rows, args.output_extents[args.rank - 1], args.element_bytes);
}

#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(PadArgs, name, isa),
constexpr KernelVariant kPadVariants[] = {QPLAN_PAD_VARIANTS};
#undef QPLAN_VARIANT

}  // namespace

constexpr KernelFamily kPadFamily =
    make_family<PadArgs, bind_pad, never_in_place, pad_work>(kKernel_pad, "pad", kPadVariants);
constexpr KernelFamily kPadFamilyReference = kPadFamily;

// ---- transpose ----

namespace {

// A function of its own, whose stack is free while arguments are filled.
__attribute__((noinline)) bool check_transpose(const StepCheck& check, const StepView& step) {
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

qplan_status bind_transpose(const StepView& step, bool checked, TransposeArgs& args, Error* error) {
  const StepCheck check(step, "transpose", error);
  if (checked && !check_transpose(check, step)) return check.status();
  const uint32_t from = step.inputs()->Get(0);
  const Extents input = extents_of(step, from);
  args.input = step.input_data(0);
  args.output = step.output_data(0);
  args.element_bytes = dtype_bytes(step.dtype(from));
  args.elements = elements_of(step, from);
  const auto* permutation = check.params_as<format::TransposeParams>().permutation();
  args.rank = 0;
  for (uint32_t i = 0; i < input.rank; ++i) {
    const uint32_t axis = permutation->Get(i);
    const uint64_t extent = input[axis];
    if (extent == 1) continue;
    uint64_t stride = 1;
    for (uint32_t inner = axis + 1; inner < input.rank; ++inner) stride *= input[inner];
    if (args.rank > 0 && args.input_strides[args.rank - 1] == extent * stride) {
      args.extents[args.rank - 1] *= extent;
      args.input_strides[args.rank - 1] = stride;
    } else {
      args.extents[args.rank] = extent;
      args.input_strides[args.rank] = stride;
      ++args.rank;
    }
  }
  if (args.rank == 0) args.rank = 1;  // one element, as the defaults say
  return QPLAN_OK;
}

// Rows of images from planes of bytes.
bool accepts_transpose_rows(const StepView& step, uint32_t input) {
  const auto* permutation = step.step->params_as_TransposeParams()->permutation();
  return input == 0 && permutation != nullptr && permutation->size() == 4 &&
         dtype_bytes(step.input_dtype(0)) == 1 && permutation->Get(0) == 0 && permutation->Get(1) == 2 &&
         permutation->Get(2) == 3;
}

bool reads_planes(const StepView&) { return true; }

RowWindow transpose_row_window(const void*) { return {1, 0, 1, UINT32_MAX}; }

void cut_transpose_rows(const StepView& step, const CutRows& rows, void* storage) {
  TransposeArgs& args = *static_cast<TransposeArgs*>(storage);
  const Extents shape = extents_of(step, step.outputs()->Get(0));
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

constexpr RowCut kTransposeRowCut = {accepts_transpose_rows, transpose_row_window, cut_transpose_rows,
                                     reads_planes};

uint64_t transpose_work(const TransposeArgs& args) {
  return saturating_product(args.elements, args.element_bytes);
}

#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(TransposeArgs, name, isa),
constexpr KernelVariant kTransposeVariants[] = {QPLAN_TRANSPOSE_VARIANTS};
#undef QPLAN_VARIANT
constexpr KernelVariant kTransposeReference[] = {
    QPLAN_VARIANT_ROW(TransposeArgs, transpose_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kTransposeFamily =
    make_family<TransposeArgs, bind_transpose, never_in_place, transpose_work>(
        kKernel_transpose, "transpose", kTransposeVariants, &kTransposeRowCut);
constexpr KernelFamily kTransposeFamilyReference =
    make_family<TransposeArgs, bind_transpose, never_in_place, transpose_work>(
        kKernel_transpose, "transpose", kTransposeReference, &kTransposeRowCut);

}  // namespace qplan
