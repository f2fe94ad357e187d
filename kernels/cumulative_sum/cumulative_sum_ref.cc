// The formula of cumulative_sum.h as it stands there.
#include "kernels/cumulative_sum/cumulative_sum.h"
#include "kernels/numeric/requantize.h"

namespace qplan::cumulative_sum_ref {
namespace {

int32_t sum_of(int32_t a, int32_t b) { return wrap_add(a, b); }
float sum_of(float a, float b) { return a + b; }

template <typename T>
void run_line(const CumulativeSumArgs& args, const T* in, T* out) {
  T sum = 0;
  for (uint64_t i = 0; i < args.depth; ++i) {
    const uint64_t at = (args.reverse ? args.depth - 1 - i : i) * args.inner;
    const T next = sum_of(sum, in[at]);
    out[at] = args.exclusive ? sum : next;
    sum = next;
  }
}

template <typename T>
void run_lines(const CumulativeSumArgs& args, uint32_t begin, uint32_t end) {
  const uint64_t block = args.depth * args.inner;
  for (uint64_t outer = begin; outer < end; ++outer) {
    for (uint64_t inner = 0; inner < args.inner; ++inner) {
      const uint64_t at = outer * block + inner;
      run_line(args, static_cast<const T*>(args.input) + at, static_cast<T*>(args.output) + at);
    }
  }
}

}  // namespace

Refusal accepts(const CumulativeSumArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const CumulativeSumArgs&) { return 0; }
uint32_t work_items(const CumulativeSumArgs& args) { return static_cast<uint32_t>(args.outer); }

void run(const CumulativeSumArgs& args, uint32_t begin, uint32_t end, void*) {
  if (args.dtype == Dtype::kF32) {
    run_lines<float>(args, begin, end);
  } else {
    run_lines<int32_t>(args, begin, end);
  }
}

}  // namespace qplan::cumulative_sum_ref
