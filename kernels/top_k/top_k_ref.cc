// The elements that were found so far are kept in order: a new one is inserted after those that are not
// smaller.
#include "kernels/top_k/top_k.h"

namespace qplan::top_k_ref {
namespace {

// A NaN is less than every number.
template <typename T>
bool is_less(T a, T b) {
  return a < b;
}
template <>
bool is_less(float a, float b) {
  return a < b || (__builtin_isnan(a) && !__builtin_isnan(b));
}

template <typename T>
void run_row(const TopKArgs& args, const T* in, T* values, int32_t* indices) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < args.depth; ++i) {
    if (found == args.k && !is_less(values[found - 1], in[i])) continue;
    uint32_t at = found < args.k ? found++ : found - 1;
    for (; at > 0 && is_less(values[at - 1], in[i]); --at) {
      values[at] = values[at - 1];
      indices[at] = indices[at - 1];
    }
    values[at] = in[i];
    indices[at] = static_cast<int32_t>(i);
  }
}

template <typename T>
void run_rows(const TopKArgs& args, uint32_t begin, uint32_t end) {
  for (uint64_t row = begin; row < end; ++row) {
    run_row(args, static_cast<const T*>(args.input) + row * args.depth,
            static_cast<T*>(args.values) + row * args.k, args.indices + row * args.k);
  }
}

}  // namespace

Refusal accepts(const TopKArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const TopKArgs&) { return 0; }
uint32_t work_items(const TopKArgs& args) { return static_cast<uint32_t>(args.rows); }

void run(const TopKArgs& args, uint32_t begin, uint32_t end, void*) {
  switch (args.dtype) {
    case Dtype::kU8:
      return run_rows<uint8_t>(args, begin, end);
    case Dtype::kS8:
      return run_rows<int8_t>(args, begin, end);
    case Dtype::kS16:
      return run_rows<int16_t>(args, begin, end);
    case Dtype::kS32:
      return run_rows<int32_t>(args, begin, end);
    case Dtype::kF32:
      return run_rows<float>(args, begin, end);
    case Dtype::kS64:
    case Dtype::kOther:
      break;
  }
}

}  // namespace qplan::top_k_ref
