#include "src/runtime/bind/step_check.h"

#include <float.h>

#include "kernels/layout.h"
#include "src/base/checked.h"

namespace qplan {

static_assert(static_cast<int>(Contract::kTfl2) == format::Contract_TFL2 &&
                  static_cast<int>(Contract::kTfl1) == format::Contract_TFL1 &&
                  static_cast<int>(Contract::kF32e) == format::Contract_F32E &&
                  static_cast<int>(Contract::kAcc32) == format::Contract_ACC32,
              "the plan's numbers");

namespace {

constexpr int64_t kMaxExtent = INT32_MAX;
constexpr uint64_t kMaxElements = uint64_t{1} << 48;

void fill_shape(const int64_t* extents, uint32_t rank, Shape* shape) {
  *shape = Shape();
  shape->rank = rank;
  for (uint32_t i = 0; i < rank && i < format::kMaxRank; ++i)
    shape->extents[i] = static_cast<uint32_t>(extents[i]);
}

}  // namespace

Shape shape_of(const StepTensor& tensor) {
  Shape shape;
  fill_shape(tensor.extents, tensor.rank, &shape);
  return shape;
}

uint64_t rows_of(const StepView& step, uint32_t tensor) {
  const uint32_t rank = step.rank(tensor);
  const int64_t* extents = step.extents(tensor);
  uint64_t product = 1;
  for (uint32_t i = 0; i + 1 < rank; ++i) product *= static_cast<uint32_t>(extents[i]);
  return product;
}

bool have_same_shape(const StepView& step, uint32_t a, uint32_t b) {
  const uint32_t rank = step.rank(a);
  const int64_t *of_a = step.extents(a), *of_b = step.extents(b);
  bool same = rank == step.rank(b);
  for (uint32_t i = 0; same && i < rank; ++i) same = of_a[i] == of_b[i];
  return same;
}

StepCheck::Failure StepCheck::fail(qplan_status status, int32_t tensor) const {
  error_->set(status, -1, tensor) << family_ << ": ";
  return Failure(*error_);
}

StepCheck::Failure StepCheck::fail_input(uint32_t i, const char* role) const {
  return fail(QPLAN_PLAN_CORRUPT, static_cast<int32_t>(inputs()->Get(i))) << role << " ";
}

StepCheck::Failure StepCheck::fail_output(uint32_t i, const char* role) const {
  return fail(QPLAN_PLAN_CORRUPT, static_cast<int32_t>(outputs()->Get(i))) << role << " ";
}

bool StepCheck::arity(uint32_t num_inputs, uint32_t num_outputs) const {
  const uint32_t found_inputs = format::count_of(inputs()), found_outputs = format::count_of(outputs());
  if (found_inputs != num_inputs) {
    return fail() << "the step has " << found_inputs << " inputs, expected " << num_inputs;
  }
  if (found_outputs != num_outputs) {
    return fail() << "the step has " << found_outputs << " outputs, expected " << num_outputs;
  }
  return true;
}

bool StepCheck::params(format::KernelParams type) const {
  const auto found = fields_.scalar<uint8_t>(format::KernelStep::VT_PARAMS_TYPE);
  if (found == type && fields_.has(format::KernelStep::VT_PARAMS)) return true;
  return fail() << "the step has parameters of type " << uint32_t{found} << ", expected "
                << format::EnumNameKernelParams(type);
}

bool StepCheck::contract(format::Contract found, uint32_t computed) const {
  if (found <= format::Contract_MAX && (computed & contract_bit(found)) != 0) return true;
  Failure failure = fail(QPLAN_KERNEL_MISSING);
  const char* name = format::EnumNameContract(found);
  if (name[0] != '\0') {
    failure << "contract " << name;
  } else {
    failure << "contract " << static_cast<uint32_t>(found);
  }
  failure << " is not computed by this runtime, only ";
  const char* separator = "";
  for (const format::Contract contract : format::EnumValuesContract()) {
    if ((computed & contract_bit(contract)) == 0) continue;
    failure << separator << format::EnumNameContract(contract);
    separator = ", ";
  }
  return failure;
}

bool StepCheck::layout_of(uint16_t found, const uint16_t* read, size_t count) const {
  for (size_t i = 0; i < count; ++i) {
    if (found == read[i]) return true;
  }
  Failure failure = fail(QPLAN_KERNEL_MISSING);
  failure << "no variant reads weight layout " << uint32_t{found} << " (" << layout_name(found) << "), only ";
  for (size_t i = 0; i < count; ++i) {
    failure << (i == 0 ? "" : i + 1 == count ? " and " : ", ") << layout_name(read[i]);
  }
  return failure;
}

bool StepCheck::tensor(uint32_t t, const char* role, uint32_t dtypes, uint32_t rank, Shape* shape) const {
  const auto index = static_cast<int32_t>(t);
  const Dtype dtype = step_.dtype(t);
  if (dtype == Dtype::kOther || (dtypes & dtype_bit(dtype)) == 0) {
    return fail(QPLAN_PLAN_CORRUPT, index)
           << role << " has " << dtype_name(dtype) << ", which this kernel does not take";
  }
  const uint32_t found_rank = step_.rank(t);
  const int64_t* const extents = found_rank == 0 ? nullptr : step_.extents(t);
  if (found_rank > format::kMaxRank || (rank != kAnyRank && found_rank != rank)) {
    Failure failure = fail(QPLAN_PLAN_CORRUPT, index);
    failure << role << " has rank " << found_rank;
    if (rank == kAnyRank) return failure << ", the most is " << format::kMaxRank;
    return failure << ", expected " << rank;
  }
  // open() has compared the shapes and sizes of what is described of a plan.
  const bool is_compared = step_.plan != nullptr && step_.tensors != nullptr;
  uint64_t elements = 1;
  for (uint32_t i = 0; !is_compared && i < found_rank; ++i) {
    const int64_t extent = extents[i];
    if (extent < 1 || extent > kMaxExtent) {
      return fail(QPLAN_PLAN_CORRUPT, index)
             << role << " extent " << extent << " of axis " << i << " is not in 1 .. " << kMaxExtent;
    }
    // More than 2^33 times more than 2^15 is too many; the product of others has 64 bits.
    const bool is_huge = elements >> 33 != 0 && extent >> 15 != 0;
    elements *= static_cast<uint32_t>(extent);
    if (is_huge || elements > kMaxElements) {
      return fail(QPLAN_PLAN_CORRUPT, index) << role << " has more than " << kMaxElements << " elements";
    }
  }
  const uint32_t element_bytes = dtype_bytes(dtype);
  const uint64_t size = step_.size_bytes(t), offset = step_.offset(t);
  if (!is_compared && size != elements * element_bytes) {
    return fail(QPLAN_PLAN_CORRUPT, index)
           << role << " has " << size << " bytes, expected " << elements * element_bytes;
  }
  if (!is_multiple(offset, element_bytes)) {
    return fail(QPLAN_PLAN_CORRUPT, index)
           << role << " at offset " << offset << " is not aligned to " << element_bytes << " bytes";
  }
  if (shape != nullptr) fill_shape(extents, found_rank, shape);
  return true;
}

bool StepCheck::input(uint32_t i, const char* role, uint32_t dtypes, uint32_t rank, Shape* shape) const {
  return tensor(inputs()->Get(i), role, dtypes, rank, shape);
}

bool StepCheck::output(uint32_t i, const char* role, uint32_t dtypes, uint32_t rank, Shape* shape) const {
  return tensor(outputs()->Get(i), role, dtypes, rank, shape);
}

bool StepCheck::constant(uint32_t i, const char* role, Dtype dtype, uint64_t count) const {
  const uint32_t t = inputs()->Get(i);
  if (!step_.is_constant(t)) return fail_input(i, role) << "is not a constant";
  if (step_.dtype(t) != dtype) {
    return fail_input(i, role) << "has " << dtype_name(step_.dtype(t)) << ", expected " << dtype_name(dtype);
  }
  const uint64_t size = step_.size_bytes(t), offset = step_.offset(t);
  const uint32_t element_bytes = dtype_bytes(dtype);
  uint64_t expected = 0;
  if (!checked_mul(count, uint64_t{element_bytes}, &expected) || size != expected) {
    return fail_input(i, role) << "has " << size << " bytes, expected " << count << " elements of "
                               << element_bytes;
  }
  if (!is_multiple(offset, element_bytes)) {
    return fail_input(i, role) << "at offset " << offset << " is not aligned to " << element_bytes
                               << " bytes";
  }
  return true;
}

bool StepCheck::constant_range(uint32_t i, const char* role, uint64_t count, int32_t min, int32_t max) const {
  const auto* values = static_cast<const int32_t*>(step_.input_data(i));
  // Counted in 32 bits, as a start of a small device looks at thousands; constant() has compared the count.
  const auto num = static_cast<uint32_t>(count);
  const auto base = static_cast<uint32_t>(min), width = static_cast<uint32_t>(max) - base;
  // First, without a branch for each: distances from min that are all below the greatest power of two that
  // the range has room for are what nearly all plans have. Others are looked at one by one.
  uint32_t most = UINT32_MAX >> __builtin_clz(width | 1);
  if (most > width) most >>= 1;
  uint32_t seen = 0, at = 0;
  for (; base == 0 && at + 4 <= num; at += 4) {
    seen |= static_cast<uint32_t>(values[at] | values[at + 1] | values[at + 2] | values[at + 3]);
  }
  for (; at + 4 <= num; at += 4) {
    seen |= (static_cast<uint32_t>(values[at]) - base) | (static_cast<uint32_t>(values[at + 1]) - base) |
            (static_cast<uint32_t>(values[at + 2]) - base) | (static_cast<uint32_t>(values[at + 3]) - base);
  }
  if (seen > most) at = 0;
  while (at < num && static_cast<uint32_t>(values[at]) - base <= width) ++at;
  if (at == num) return true;
  return fail_input(i, role) << values[at] << " of channel " << at << " is not in " << min << " .. " << max;
}

bool StepCheck::constant_scales(uint32_t i, const char* role, uint64_t count) const {
  const auto* values = static_cast<const float*>(step_.input_data(i));
  for (uint64_t at = 0; at < count; ++at) {
    if (!(values[at] >= 0.0f && values[at] <= FLT_MAX)) {
      return fail_input(i, role) << "of channel " << at << " is negative or not finite";
    }
  }
  return true;
}

bool StepCheck::channel_constants(format::Contract contract, uint32_t first, uint64_t count,
                                  bool wide_bias) const {
  const bool is_wide = wide_bias && step_.input(first).dtype == Dtype::kS64;
  if (!constant(first, "bias", is_wide ? Dtype::kS64 : Dtype::kS32, count)) return false;
  return contract == format::Contract_ACC32 ||
         multipliers(contract, first + 1, count, is_wide ? kMaxWideShift : 30);
}

bool StepCheck::multipliers(format::Contract contract, uint32_t first, uint64_t count,
                            int32_t max_shift) const {
  if (contract == format::Contract_F32E) {
    return constant(first, "scale", Dtype::kF32, count) && constant_scales(first, "scale", count);
  }
  return constant(first, "multiplier", Dtype::kS32, count) &&
         constant(first + 1, "shift", Dtype::kS32, count) &&
         constant_range(first, "multiplier", count, 0, INT32_MAX) &&
         constant_range(first + 1, "shift", count, -31, max_shift);
}

bool StepCheck::float_epilogue_entries(const char* name, const flatbuffers::Vector<float>* values,
                                       uint64_t count) const {
  const uint64_t found = values != nullptr ? values->size() : 0;
  if (found == count) return true;
  return fail() << name << " has " << found << " entries, expected " << count;
}

bool StepCheck::range(const char* name, int64_t value, int64_t min, int64_t max) const {
  if (value >= min && value <= max) return true;
  return fail() << name << " " << value << " is not in " << min << " .. " << max;
}

bool StepCheck::in_dtype(const char* name, int32_t value, Dtype dtype) const {
  if (value >= dtype_min(dtype) && value <= dtype_max(dtype)) return true;
  return fail() << name << " " << value << " is outside " << dtype_name(dtype);
}

bool StepCheck::clamp(int32_t clamp_min, int32_t clamp_max, Dtype dtype) const {
  if (!in_dtype("clamp_min", clamp_min, dtype) || !in_dtype("clamp_max", clamp_max, dtype)) return false;
  if (clamp_min <= clamp_max) return true;
  return fail() << "clamp_min " << clamp_min << " is above clamp_max " << clamp_max;
}

bool StepCheck::float_clamp(float clamp_min, float clamp_max) const {
  if (clamp_min <= clamp_max) return true;
  return fail() << "clamp_min is above clamp_max, or one of them is no number";
}

bool StepCheck::layer_output(format::Contract contract, Dtype dtype, int32_t zero_point, int32_t clamp_min,
                             int32_t clamp_max) const {
  if (contract != format::Contract_ACC32) {
    return in_dtype("output zero point", zero_point, dtype) && clamp(clamp_min, clamp_max, dtype);
  }
  return range("output zero point under ACC32", zero_point, 0, 0) &&
         range("clamp_min under ACC32", clamp_min, 0, 0) && range("clamp_max under ACC32", clamp_max, 0, 0);
}

bool StepCheck::contract_of_dtype(format::Contract contract, Dtype dtype) const {
  if (dtype != Dtype::kS16 || contract == format::Contract_TFL2) return true;
  return fail(QPLAN_KERNEL_MISSING) << "contract " << format::EnumNameContract(contract)
                                    << " is not computed by this runtime for int16, only TFL2";
}

bool StepCheck::multiplier(const char* name, int32_t multiplier, int32_t shift) const {
  if (multiplier < 0) return fail() << name << " multiplier " << multiplier << " is negative";
  if (shift >= -31 && shift <= 30) return true;
  return fail() << name << " shift " << shift << " is not in -31 .. 30";
}

bool StepCheck::scale(const char* name, float value) const {
  if (value > 0.0f && value <= kMaxScale) return true;
  return fail() << name << " is not in (0, 2^100]";
}

bool StepCheck::window(const WindowAxis& axis) const {
  if (axis.kernel < 1 || axis.stride < 1 || axis.dilation < 1) {
    return fail() << axis.name << ": kernel " << axis.kernel << ", stride " << axis.stride << " and dilation "
                  << axis.dilation << " must be at least 1";
  }
  // Each product is below 2^64.
  const uint64_t last_begin = uint64_t{axis.output - 1} * axis.stride;
  const uint64_t reach = uint64_t{axis.kernel - 1} * axis.dilation;
  uint64_t last = 0;
  if (axis.pad > INT32_MAX || !checked_add(last_begin, reach, &last) || last > INT32_MAX) {
    return fail() << axis.name << ": output " << axis.output << ", kernel " << axis.kernel << ", stride "
                  << axis.stride << ", dilation " << axis.dilation << ", pad " << axis.pad
                  << " exceed 2147483647";
  }
  return true;
}

bool StepCheck::window_touches_input(const WindowAxis& axis) const {
  if (!window(axis)) return false;
  if (axis.pad >= axis.kernel) {
    return fail() << axis.name << ": pad " << axis.pad << " is not below the window's " << axis.kernel;
  }
  const int64_t last_begin = int64_t{axis.output - 1} * axis.stride - axis.pad;
  if (last_begin < int64_t{axis.input}) return true;
  return fail() << axis.name << ": the last of " << axis.output << " windows begins at " << last_begin
                << ", after the input's " << axis.input;
}

namespace {

// Which of four inputs a byte of a group of o2h4 belongs to.
uint64_t half_place(uint64_t at) {
  constexpr uint64_t kOrder[] = {0, 2, 1, 3};
  return kOrder[at / 2];
}

}  // namespace

// Not inlined, so that its stack is free where checked steps are bound.
__attribute__((noinline)) bool StepCheck::zeros_after_taps(uint32_t i, uint16_t layout,
                                                           const LayoutWindow& window) const {
  const LayoutTaps taps = layout_taps(layout, window);
  const uint64_t group = taps.group, tail = taps.bytes & (group - 1);  // these are powers of two
  if (!layout_needs_zeros(layout) || tail == 0) return true;
  const auto* weights = static_cast<const int8_t*>(step_.input_data(i));
  const uint64_t block = layout_block(layout) * group;
  const uint64_t tap_bytes = taps.padded() * layout_block(layout), bytes = step_.input(i).size_bytes;
  for (uint64_t last = tap_bytes - block; last < bytes; last += tap_bytes) {
    for (uint64_t at = last; at < last + block; ++at) {
      const uint64_t in_group = layout == kLayout_o2h4 ? half_place(at & (block - 1)) : at & (group - 1);
      if (in_group < tail || weights[at] == 0) continue;
      return fail_input(i, "weights") << "in " << layout_name(layout) << " have " << int32_t{weights[at]}
                                      << " at byte " << at << ", after a tap, expected 0";
    }
  }
  return true;
}

}  // namespace qplan
