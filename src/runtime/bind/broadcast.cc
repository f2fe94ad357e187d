#include "src/runtime/bind/broadcast.h"

namespace qplan {
namespace {

// The extent along `axis` of the output, counted from the last: missing leading axes are 1.
uint32_t aligned_extent(const Extents& shape, uint32_t rank, uint32_t axis) {
  const uint32_t missing = rank - shape.rank;
  return axis < missing ? 1 : shape[axis - missing];
}

void swap(uint64_t& a, uint64_t& b) {
  const uint64_t value = a;
  a = b;
  b = value;
}

}  // namespace

bool make_broadcast(const Extents& a, const Extents& b, const Extents& output, Broadcast* broadcast) {
  if (output.rank != (a.rank > b.rank ? a.rank : b.rank)) return false;
  *broadcast = Broadcast{};
  broadcast->elements = 1;
  for (uint32_t axis = 0; axis < output.rank; ++axis) broadcast->elements *= output[axis];
  // The axes are collected where they stay: arrays on the stack would make this the deepest call of a run on
  // small processors.
  uint64_t* const extents = broadcast->extents;
  uint64_t* const a_strides = broadcast->a_strides;
  uint64_t* const b_strides = broadcast->b_strides;
  uint32_t rank = 0;  // of the three arrays, which hold the last axis first
  uint64_t a_stride = 1;
  uint64_t b_stride = 1;
  for (uint32_t axis = output.rank; axis-- > 0;) {
    const uint64_t a_extent = aligned_extent(a, output.rank, axis);
    const uint64_t b_extent = aligned_extent(b, output.rank, axis);
    if (a_extent != b_extent && a_extent != 1 && b_extent != 1) return false;
    const uint64_t extent = a_extent > b_extent ? a_extent : b_extent;
    if (extent != output[axis]) return false;
    if (extent == 1) continue;
    const uint64_t a_step = a_extent == 1 ? 0 : a_stride;
    const uint64_t b_step = b_extent == 1 ? 0 : b_stride;
    a_stride *= a_extent;
    b_stride *= b_extent;
    const bool continues = rank > 0 && a_step == a_strides[rank - 1] * extents[rank - 1] &&
                           b_step == b_strides[rank - 1] * extents[rank - 1];
    if (continues) {
      extents[rank - 1] *= extent;
    } else {
      extents[rank] = extent;
      a_strides[rank] = a_step;
      b_strides[rank] = b_step;
      ++rank;
    }
  }
  if (rank == 0) return true;
  broadcast->rank = rank;
  for (uint32_t i = 0; i < rank / 2; ++i) {
    const uint32_t other = rank - 1 - i;
    swap(extents[i], extents[other]);
    swap(a_strides[i], a_strides[other]);
    swap(b_strides[i], b_strides[other]);
  }
  return true;
}

bool make_broadcast(const StepView& step, Broadcast* broadcast) {
  const auto* inputs = step.inputs();
  return make_broadcast(extents_of(step, inputs->Get(0)), extents_of(step, inputs->Get(1)),
                        extents_of(step, step.outputs()->Get(0)), broadcast);
}

bool check_axes(const StepCheck& check, uint32_t axes, const Shape& input) {
  if (axes != 0 && axes >> input.rank == 0) return true;
  return check.fail() << "axes " << axes << " names no axis or one beyond the input's rank " << input.rank;
}

bool check_reduced(const StepCheck& check, const StepView& step, uint32_t dtypes) {
  Shape input, output;
  if (!check.arity(1, 1) || !check.params(format::KernelParams_FloatReduceParams) ||
      !check.input(0, "input", dtypes, kAnyRank, &input) ||
      !check.output(0, "output", dtype_bit(step.input(0).dtype), kAnyRank, &output)) {
    return false;
  }
  const auto& params = check.params_as<format::FloatReduceParams>();
  if (params.reduction() > format::FloatReduction_MAX) {
    return check.fail(QPLAN_KERNEL_MISSING) << "reduction " << static_cast<uint32_t>(params.reduction())
                                            << " is unknown to this runtime; update it";
  }
  if (!check_axes(check, params.axes(), input)) return false;
  if (is_reduced_shape(input, params.axes(), output)) return true;
  return check.fail_output(0, "output") << "is not the input's shape reduced along axes " << params.axes();
}

bool binary_in_place(const StepView& step, uint32_t output, uint32_t input) {
  const uint32_t to = step.outputs()->Get(output), from = step.inputs()->Get(input);
  return have_same_shape(step, to, from) && dtype_bytes(step.dtype(to)) == dtype_bytes(step.dtype(from));
}

}  // namespace qplan
