#include "kernels/numeric/fixed_point.h"
#include "kernels/softmax/softmax.h"

namespace qplan {
namespace log_softmax_ref {
namespace {

// Q5.26.
int32_t scaled(const LogSoftmaxArgs& args, int32_t difference) {
  return doubling_high_mul(wrap_shift_left(difference, args.input_left_shift), args.input_multiplier);
}

template <typename T>
void run_row(const LogSoftmaxArgs& args, const T* input, T* output) {
  const int32_t lowest = dtype_min(args.dtype), highest = dtype_max(args.dtype);
  int32_t max = lowest;
  for (uint32_t i = 0; i < args.depth; ++i) max = input[i] > max ? input[i] : max;
  uint64_t total = 0;  // Q12.19; the largest element contributes 1
  for (uint32_t i = 0; i < args.depth; ++i) {
    const int32_t difference = input[i] - max;
    if (difference < args.diff_min) continue;
    const int32_t e = fixed_exp_negative<5>(scaled(args, difference));
    total += static_cast<uint32_t>(rounding_shift_right(e, 12));
  }
  const int32_t log = fixed_log(total < INT32_MAX ? static_cast<int32_t>(total) : INT32_MAX);

  // log is not negative, so that this does not leave int32.
  const int32_t farthest = requantize_tfl2(INT32_MIN + log, args.reverse_multiplier, args.reverse_shift);
  const int32_t least = farthest > args.diff_min - 1 ? farthest : args.diff_min - 1;
  for (uint32_t i = 0; i < args.depth; ++i) {
    const int32_t difference = input[i] - max;
    int32_t value = lowest;
    if (difference > least) {
      const int32_t sixteenths = rounding_shift_right(wrap_sub(scaled(args, difference), log), 22);
      value = clamp_s32(highest + sixteenths, lowest, highest);
    }
    output[i] = static_cast<T>(value);
  }
}

template <typename T>
void run_rows(const LogSoftmaxArgs& args, uint32_t begin, uint32_t end) {
  for (uint32_t row = begin; row < end; ++row) {
    const uint64_t at = uint64_t{row} * args.depth;
    run_row(args, static_cast<const T*>(args.input) + at, static_cast<T*>(args.output) + at);
  }
}

}  // namespace

Refusal accepts(const LogSoftmaxArgs&) { return Refusal::kNone; }
size_t scratch_bytes(const LogSoftmaxArgs&) { return 0; }
uint32_t work_items(const LogSoftmaxArgs& args) { return args.rows; }

void run(const LogSoftmaxArgs& args, uint32_t begin, uint32_t end, void*) {
  if (args.dtype == Dtype::kU8) {
    run_rows<uint8_t>(args, begin, end);
  } else {
    run_rows<int8_t>(args, begin, end);
  }
}

}  // namespace log_softmax_ref
}  // namespace qplan
