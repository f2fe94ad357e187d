#include "kernels/arg_max/arg_max.h"
#include "kernels/elementwise/broadcast.h"

namespace qplan {
namespace arg_max_ref {
namespace {

// False for a NaN on the left; true for a number above a NaN.
bool is_above(float candidate, float best) {
  return candidate > best || (best != best && candidate == candidate);
}
bool is_above(int candidate, int best) { return candidate > best; }  // what 8-bit operands promote to

template <bool kIsMinimum, typename T>
uint32_t index_of_best(const T* at, uint32_t extent, uint64_t stride) {
  uint32_t index = 0;
  T best = at[0];
  for (uint32_t k = 1; k < extent; ++k) {
    const T candidate = at[k * stride];
    if (kIsMinimum ? is_above(best, candidate) : is_above(candidate, best)) {
      best = candidate;
      index = k;
    }
  }
  return index;
}

template <typename T>
void run_typed(const ArgMaxArgs& args, ElementRange range) {
  const T* input = static_cast<const T*>(args.input);
  for (uint64_t at = range.begin; at < range.end; ++at) {
    const uint64_t first = at / args.inner * args.extent * args.inner + at % args.inner;
    const uint32_t index = args.is_minimum ? index_of_best<true>(input + first, args.extent, args.inner)
                                           : index_of_best<false>(input + first, args.extent, args.inner);
    if (args.output_dtype == Dtype::kS32) {
      static_cast<int32_t*>(args.output)[at] = static_cast<int32_t>(index);
    } else {
      static_cast<int64_t*>(args.output)[at] = index;
    }
  }
}

}  // namespace

Refusal accepts(const ArgMaxArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const ArgMaxArgs&) { return 0; }
uint32_t work_items(const ArgMaxArgs& args) { return num_chunks(args.outer * args.inner); }

void run(const ArgMaxArgs& args, uint32_t begin, uint32_t end, void*) {
  const ElementRange range = chunk_range(args.outer * args.inner, begin, end);
  switch (args.input_dtype) {
    case Dtype::kU8:
      return run_typed<uint8_t>(args, range);
    case Dtype::kS8:
      return run_typed<int8_t>(args, range);
    default:
      return run_typed<float>(args, range);
  }
}

}  // namespace arg_max_ref
}  // namespace qplan
