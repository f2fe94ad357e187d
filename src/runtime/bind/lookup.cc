// Kernel argument binding of look-ups: lut8 and lut16, in tables of constants, and gather, at positions.
#include "kernels/elementwise/elementwise.h"
#include "kernels/movement/movement.h"
#include "src/runtime/bind/family.h"
#include "src/runtime/bind/step_check.h"

namespace qplan {

// ---- lut8 ----

namespace {

// A function of its own, whose stack is free while arguments are filled.
__attribute__((noinline)) bool check_lut8(const StepCheck& check, const StepView& step) {
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
  args.elements = elements_of(step, step.inputs()->Get(0));
  return QPLAN_OK;
}

bool lut8_in_place(const StepView&, uint32_t, uint32_t input) { return input == 0; }

// Rows of images, which are one axis of elements.
bool accepts_lut8_rows(const StepView& step, uint32_t input) {
  return input == 0 && step.rank(step.outputs()->Get(0)) == 4;
}

RowWindow lut8_row_window(const void*) { return {1, 0, 1, UINT32_MAX}; }

void cut_lut8_rows(const StepView& step, const CutRows& rows, void* storage) {
  Lut8Args& args = *static_cast<Lut8Args*>(storage);
  const Extents shape = extents_of(step, step.outputs()->Get(0));
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

// ---- gather ----

namespace {

bool has_table(const format::GatherParams& params, uint32_t axis) {
  return (params.tables() >> axis & 1) != 0;
}

// The positions that every axis reads lie in the input.
bool check_positions(const StepCheck& check, const StepView& step, const Shape& input, const Shape& output) {
  const format::GatherParams& params = check.params_as<format::GatherParams>();
  uint64_t entries = 0;
  for (uint32_t axis = 0; axis < input.rank; ++axis) entries += has_table(params, axis) ? output[axis] : 0;
  if (params.tables() != 0 && !check.constant(1, "positions", Dtype::kS32, entries)) return false;
  const auto* table = params.tables() != 0 ? static_cast<const int32_t*>(step.input_data(1)) : nullptr;
  for (uint32_t axis = 0; axis < input.rank; ++axis) {
    const auto refuse = [&](int64_t position) {
      return check.fail() << "position " << position << " of axis " << axis
                          << " is not in the input's extent " << input[axis];
    };
    if (has_table(params, axis)) {
      for (uint32_t i = 0; i < output[axis]; ++i) {
        const int32_t position = *table++;
        if (position < 0 || static_cast<uint32_t>(position) >= input[axis]) return refuse(position);
      }
      continue;
    }
    // The first and the last: below 2^31 + 2^31 * 2^31.
    const int64_t first = params.begin()->Get(axis);
    const int64_t last = first + int64_t{params.step()->Get(axis)} * (int64_t{output[axis]} - 1);
    if (first >= input[axis]) return refuse(first);
    if (last < 0 || last >= input[axis]) return refuse(last);
  }
  return true;
}

bool check_step(const StepCheck& check, const StepView& step) {
  if (!check.params(format::KernelParams_GatherParams)) return false;
  const format::GatherParams& params = check.params_as<format::GatherParams>();
  if (!check.arity(params.tables() != 0 ? 2 : 1, 1)) return false;
  Shape input;
  Shape output;
  if (!check.input(0, "input", kDtypesAny8To64, kAnyRank, &input) ||
      !check.output(0, "output", dtype_bit(step.input(0).dtype), input.rank, &output)) {
    return false;
  }
  const uint32_t begins = params.begin() != nullptr ? params.begin()->size() : 0;
  const uint32_t steps = params.step() != nullptr ? params.step()->size() : 0;
  if (begins != input.rank || steps != input.rank || params.tables() >> input.rank != 0) {
    return check.fail() << "begin and step have " << begins << " and " << steps << " entries, tables is "
                        << params.tables() << ", and the input has rank " << input.rank;
  }
  return check_positions(check, step, input, output);
}

// Axes that are one range of the input, with what is inside them, become a block; neighbours of one stride
// become one axis. Returns the offset in bytes of what position 0 of every axis reads.
uint64_t fill_axes(const StepView& step, const format::GatherParams& params, const int32_t* tables,
                   GatherArgs& args) {
  const Shape input = shape_of(step.input(0));
  const Shape output = shape_of(step.output(0));
  args.block_bytes = dtype_bytes(step.input(0).dtype);
  for (uint32_t axis = 0; axis < input.rank; ++axis) tables += has_table(params, axis) ? output[axis] : 0;
  uint64_t offset = 0, element_bytes = args.block_bytes;  // of an element along the axis
  uint32_t rank = 0;                                      // innermost first, until they are turned
  for (uint32_t axis = input.rank; axis-- > 0;) {
    const uint64_t extent = output[axis];
    const auto bytes = static_cast<int64_t>(element_bytes);
    element_bytes *= input[axis];
    if (has_table(params, axis)) {
      tables -= extent;
      args.tables[rank] = tables;
      args.extents[rank] = extent;
      args.strides[rank] = bytes;
      ++rank;
      continue;
    }
    offset += params.begin()->Get(axis) * static_cast<uint64_t>(bytes);
    if (extent == 1) continue;
    const int64_t stride = params.step()->Get(axis) * bytes;
    if (rank == 0 && stride == static_cast<int64_t>(args.block_bytes)) {
      args.block_bytes *= extent;
    } else if (rank > 0 && args.tables[rank - 1] == nullptr &&
               stride == static_cast<int64_t>(args.extents[rank - 1]) * args.strides[rank - 1]) {
      args.extents[rank - 1] *= extent;
    } else {
      args.tables[rank] = nullptr;
      args.extents[rank] = extent;
      args.strides[rank] = stride;
      ++rank;
    }
  }
  for (uint32_t i = 0; i < rank / 2; ++i) {
    const uint32_t other = rank - 1 - i;
    const uint64_t extent = args.extents[i];
    const int64_t stride = args.strides[i];
    const int32_t* const table = args.tables[i];
    args.extents[i] = args.extents[other], args.extents[other] = extent;
    args.strides[i] = args.strides[other], args.strides[other] = stride;
    args.tables[i] = args.tables[other], args.tables[other] = table;
  }
  args.rank = rank == 0 ? 1 : rank;
  return offset;
}

qplan_status bind(const StepView& step, bool checked, GatherArgs& args, Error* error) {
  const StepCheck check(step, "gather", error);
  if (checked && !check_step(check, step)) return check.status();
  const format::GatherParams& params = check.params_as<format::GatherParams>();
  const auto* tables = params.tables() != 0 ? static_cast<const int32_t*>(step.input_data(1)) : nullptr;
  const uint64_t offset = fill_axes(step, params, tables, args);
  const auto* const input = static_cast<const uint8_t*>(step.input_data(0));
  args.input = input != nullptr ? input + offset : nullptr;  // null where a plan is checked without memory
  args.output = static_cast<uint8_t*>(step.output_data(0));
  uint64_t rows = 1;
  for (uint32_t axis = 0; axis + 1 < args.rank; ++axis) rows *= args.extents[axis];
  if (checked && !check.range("number of rows", static_cast<int64_t>(rows), 1, INT32_MAX))
    return check.status();
  args.rows = static_cast<uint32_t>(rows);
  return QPLAN_OK;
}

// A slice that is one range of the input.
bool part(const StepView& step, uint32_t, uint32_t input, uint64_t* offset) {
  const format::GatherParams& params = *step.step->params_as_GatherParams();
  if (input != 0 || params.tables() != 0) return false;
  GatherArgs args;
  *offset = fill_axes(step, params, nullptr, args);
  return args.rank == 1 && args.extents[0] == 1;
}

uint64_t work(const GatherArgs& args) {
  return saturating_product(args.rows, args.extents[args.rank - 1], args.block_bytes);
}

constexpr KernelVariant kVariants[] = {
#define QPLAN_VARIANT(name, isa) QPLAN_VARIANT_ROW(GatherArgs, name, isa),
    QPLAN_GATHER_VARIANTS
#undef QPLAN_VARIANT
};
constexpr KernelVariant kReference[] = {QPLAN_VARIANT_ROW(GatherArgs, gather_ref, QPLAN_ISA_REFERENCE)};

}  // namespace

constexpr KernelFamily kGatherFamily =
    make_family<GatherArgs, bind, never_in_place, work>(kKernel_gather, "gather", kVariants, nullptr, part);
constexpr KernelFamily kGatherFamilyReference =
    make_family<GatherArgs, bind, never_in_place, work>(kKernel_gather, "gather", kReference, nullptr, part);

}  // namespace qplan
