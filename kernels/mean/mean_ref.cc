// A work item is a block of outputs.
#include "kernels/mean/mean.h"
#include "kernels/numeric/requantize.h"

namespace qplan {
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

// visit(element) for the elements that become one, in the order of the tensor.
template <typename T, typename Visit>
void for_each_reduced(const MeanArgs& args, const T* input, const Visit& visit) {
  const bool one = args.reduced_rank == 0;
  const uint64_t run = one ? 1 : args.reduced_extents[args.reduced_rank - 1];
  const uint64_t stride = one ? 0 : args.reduced_strides[args.reduced_rank - 1];
  for (uint64_t i = 0; i < args.num_reduced; i += run) {
    const T* at = input + offset_of(i, args.reduced_rank, args.reduced_extents, args.reduced_strides);
    for (uint64_t k = 0; k < run; ++k) visit(at[k * stride]);
  }
}

template <typename T>
int32_t sum_of(const MeanArgs& args, const T* input) {
  int32_t sum = 0;
  for_each_reduced(args, input, [&](T x) { sum += x - args.input_zero_point; });
  return sum;
}

template <typename T>
int32_t extremum_of(const MeanArgs& args, const T* input) {
  T found = *input;
  for_each_reduced(args, input, [&](T x) {
    if (args.reduction == Reduction::kMax ? x > found : x < found) found = x;
  });
  return found;
}

template <typename T>
int32_t product_of(const MeanArgs& args, const T* input) {
  int32_t product = 1;
  for_each_reduced(args, input, [&](T x) {
    product = requantize_tfl2_wide(int64_t{product} * (x - args.input_zero_point), args.output_multiplier,
                                   args.output_shift);
  });
  return add_clamp(product, args.output_zero_point, dtype_min(args.dtype), dtype_max(args.dtype));
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
    const T* first = input + offset;
    switch (args.reduction) {
      case Reduction::kMean:
        output[at] = static_cast<T>(mean_of(args, sum_of(args, first)));
        break;
      case Reduction::kMax:
      case Reduction::kMin:
        output[at] = static_cast<T>(extremum_of(args, first));
        break;
      case Reduction::kProd:
        output[at] = static_cast<T>(product_of(args, first));
        break;
    }
  }
}

uint32_t blocks(const MeanArgs& args) {
  return static_cast<uint32_t>((args.num_outputs + block_outputs(args) - 1) / block_outputs(args));
}

void run_blocks(const MeanArgs& args, uint32_t begin, uint32_t end) {
  const uint64_t first = uint64_t{begin} * block_outputs(args);
  const uint64_t last = uint64_t{end} * block_outputs(args);
  const uint64_t stop = last < args.num_outputs ? last : args.num_outputs;
  if (args.dtype == Dtype::kU8) {
    run_typed<uint8_t>(args, first, stop);
  } else if (args.dtype == Dtype::kS16) {
    run_typed<int16_t>(args, first, stop);
  } else {
    run_typed<int8_t>(args, first, stop);
  }
}

}  // namespace

namespace mean_ref {
Refusal accepts(const MeanArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const MeanArgs&) { return 0; }
uint32_t work_items(const MeanArgs& args) { return blocks(args); }
void run(const MeanArgs& args, uint32_t begin, uint32_t end, void*) { run_blocks(args, begin, end); }
}  // namespace mean_ref

namespace reduce_ref {
Refusal accepts(const MeanArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const MeanArgs&) { return 0; }
uint32_t work_items(const MeanArgs& args) { return blocks(args); }
void run(const MeanArgs& args, uint32_t begin, uint32_t end, void*) { run_blocks(args, begin, end); }
}  // namespace reduce_ref

}  // namespace qplan
