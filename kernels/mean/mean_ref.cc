// A work item is a block of outputs.
#include "kernels/mean/mean.h"
#include "kernels/numeric/requantize.h"

namespace qplan {
namespace mean_ref {
namespace {

// Outputs of a work item; more where a work item's number would not fit.
uint64_t block_outputs(const MeanArgs& args) {
  return args.num_outputs < uint64_t{1} << 32 ? uint64_t{32} : uint64_t{1} << 20;
}

// The offset of element `index` in the order of the axes.
uint64_t offset_of(uint64_t index, uint32_t rank, const uint64_t* extents, const uint64_t* strides) {
  uint64_t offset = 0;
  for (uint32_t axis = rank; axis-- > 0;) {
    offset += index % extents[axis] * strides[axis];
    index /= extents[axis];
  }
  return offset;
}

template <typename T>
int32_t sum_of(const MeanArgs& args, const T* input) {
  const bool one = args.reduced_rank == 0;
  const uint64_t run = one ? 1 : args.reduced_extents[args.reduced_rank - 1];
  const uint64_t stride = one ? 0 : args.reduced_strides[args.reduced_rank - 1];
  int32_t sum = 0;
  for (uint64_t i = 0; i < args.num_reduced; i += run) {
    const T* at = input + offset_of(i, args.reduced_rank, args.reduced_extents, args.reduced_strides);
    for (uint64_t k = 0; k < run; ++k) sum += at[k * stride] - args.input_zero_point;
  }
  return sum;
}

int32_t mean_of(const MeanArgs& args, int32_t sum) {
  const int32_t lo = dtype_min(args.dtype), hi = dtype_max(args.dtype);
  if (args.contract == Contract::kF32e) {
    return requantize_f32e(sum, args.scale, args.output_zero_point, lo, hi);
  }
  const int32_t scaled = requantize_tfl2(sum, args.output_multiplier, args.output_shift);
  return add_clamp(scaled, args.output_zero_point, lo, hi);
}

template <typename T>
void run_typed(const MeanArgs& args, uint64_t begin, uint64_t end) {
  const T* input = static_cast<const T*>(args.input);
  T* output = static_cast<T*>(args.output);
  for (uint64_t at = begin; at < end; ++at) {
    const uint64_t offset = offset_of(at, args.kept_rank, args.kept_extents, args.kept_strides);
    output[at] = static_cast<T>(mean_of(args, sum_of(args, input + offset)));
  }
}

}  // namespace

Refusal accepts(const MeanArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const MeanArgs&) { return 0; }

uint32_t work_items(const MeanArgs& args) {
  return static_cast<uint32_t>((args.num_outputs + block_outputs(args) - 1) / block_outputs(args));
}

void run(const MeanArgs& args, uint32_t begin, uint32_t end, void*) {
  const uint64_t first = uint64_t{begin} * block_outputs(args);
  const uint64_t last = uint64_t{end} * block_outputs(args);
  const uint64_t stop = last < args.num_outputs ? last : args.num_outputs;
  if (args.dtype == Dtype::kU8) {
    run_typed<uint8_t>(args, first, stop);
  } else {
    run_typed<int8_t>(args, first, stop);
  }
}

}  // namespace mean_ref
}  // namespace qplan
